from __future__ import annotations

import pytest

from arag.graph.citations import parse_citations
from arag.ingest.pipeline import ingest
from fakes import HashEmbeddings

DOCUMENTS = [
    {"id": "guide.md", "title": "Guide", "text": "The guide tells of the harbour."},
    {"id": "notes.md", "text": "The notes tell of the storm."},
    {"id": "Smith, John", "title": "John Smith", "text": "John Smith was a painter."},
    {"id": "list [2].txt", "title": "List", "text": "The list names the ships."},
    {"id": "my file; old.txt", "title": "File", "text": "The file names the crews."},
    {"id": "论文 一", "title": "论文", "text": "论文说海港。"},
]


@pytest.fixture
def index(make_index):
    return make_index(DOCUMENTS)


def cited(answer, index, seen=(), read=()):
    return [c["chunk_id"] for c in parse_citations(answer, index, seen, read)]


def test_a_citation_says_what_was_cited_and_how_it_was_seen(index):
    assert parse_citations("The harbour [guide.md:0].", index, ["guide.md:0"], ["guide.md:0"]) == [
        {"chunk_id": "guide.md:0", "document_ids": ["guide.md"], "titles": ["Guide"], "seen": True, "read": True}
    ]
    assert parse_citations("The storm [notes.md:0].", index, ["notes.md:0"], []) == [
        {"chunk_id": "notes.md:0", "document_ids": ["notes.md"], "titles": [], "seen": True, "read": False}
    ]


def test_a_chunk_that_exists_and_was_not_shown_is_cited_as_not_seen(index):
    citation = parse_citations("[guide.md:0]", index, ["notes.md:0"], [])[0]
    assert (citation["document_ids"], citation["seen"], citation["read"]) == (["guide.md"], False, False)


def test_an_id_that_is_made_up_is_listed_without_a_document(index):
    assert parse_citations("[guide.md:7] [atlas.md:3]", index, ["guide.md:0"], []) == [
        {"chunk_id": name, "document_ids": [], "titles": [], "seen": False, "read": False}
        for name in ("guide.md:7", "atlas.md:3")
    ]


def test_citations_come_in_the_order_of_the_answer_each_once(index):
    assert cited("B [notes.md:0], A [guide.md:0], B again [notes.md:0].", index) == ["notes.md:0", "guide.md:0"]


@pytest.mark.parametrize(
    "answer",
    [
        "[guide.md:0, notes.md:0]",
        "[guide.md:0; notes.md:0]",
        "[ guide.md:0 ,notes.md:0 ]",
        "[guide.md:0,, notes.md:0,]",
        "[guide.md:0][notes.md:0]",
    ],
)
def test_several_ids_may_stand_in_one_pair_of_brackets(index, answer):
    assert cited(answer, index) == ["guide.md:0", "notes.md:0"]


@pytest.mark.parametrize(
    "answer",
    [
        "The verse [Matthew 5:3], [1 Corinthians 13:4] and [John 3:16, 17:3].",
        "At noon [12:30], at [9:05] or [2024-05-01T12:30], [2024-05-01 12:30:15] and [12:30:15].",
        "Mixed [3:1], [see 3:1], [ratio 16:9], [1:1].",
        "The match [2:1], [Brannisey 3:0], [final score 10:2].",
        "The server [http://localhost:8080], [localhost:8080], [127.0.0.1:80], [example.com:443], [::1].",
        "[Chapter 4:12] [Note: 7] [Fig. 3:2] [vol. 2:117] [St. Ebbery 5:3]",
    ],
)
def test_verses_times_ratios_scores_and_addresses_are_no_citations(index, answer):
    assert cited(answer, index) == cited(answer, index, ["guide.md:0", "Smith, John:0", "论文 一:0"]) == []


def test_made_up_ids_stay_visible(make_index):
    records = [{"id": name, "text": "Some text."} for name in ("mq00012", "mq00020", "handbook/leave.md", "chapter")]
    index = make_index(records)
    assert cited("[chapter:3] [handbook/leave.md:99] [mq00012:7]", index) == [
        "chapter:3",
        "handbook/leave.md:99",
        "mq00012:7",
    ]
    assert cited("[handbook/pay.md:0], [pay.TXT:2] and [atlas.md:3]", index) == [
        "handbook/pay.md:0",
        "pay.TXT:2",
        "atlas.md:3",
    ]
    assert cited("[mq99999:0]", index, ["mq00020:0"]) == ["mq99999:0"]
    assert cited("[Matthew 5:3] [12:30] [mq 3:1]", index, ["mq00020:0"]) == []


def test_numbers_are_made_up_ids_only_of_documents_that_are_numbers_and_were_shown(make_index):
    index = make_index([{"id": name, "text": "Some text."} for name in ("3", "12")])
    assert cited("[3:0]", index) == ["3:0"]
    assert cited("[3:1] [12:30]", index) == []
    assert cited("[3:1] [12:30]", index, ["3:0"]) == ["3:1"]


def test_words_before_an_id_do_not_make_it_another(index):
    assert cited("[see guide.md:0, and notes.md:0]", index) == ["guide.md:0", "notes.md:0"]


def test_a_made_up_id_of_a_document_with_a_comma_stays_whole(index):
    assert cited("[Smith, John:7]", index) == ["Smith, John:7"]


@pytest.mark.parametrize(
    "answer",
    [
        "It is so [1].",
        "It is so [citation needed].",
        "[sic] [...] [] [ ] [,]",
        "[a link](http://127.0.0.1:80)",
        "guide.md:0 without brackets",
        "(guide.md:0)",
        "[guide.md:0",
        "[guide.md\n:0]",
        "[guide.md:]",
        "[guide.md]",
        "",
    ],
)
def test_what_is_no_citation(index, answer):
    assert cited(answer, index) == []


@pytest.mark.parametrize("name", ["Smith, John:0", "list [2].txt:0", "my file; old.txt:0", "论文 一:0"])
def test_ids_with_commas_brackets_and_spaces_that_were_shown(index, name):
    assert cited(f"So it is [{name}], and [guide.md:0].", index, [name, "guide.md:0"]) == [name, "guide.md:0"]
    assert parse_citations(f"[{name}]", index, [name], [])[0]["document_ids"] == [name.removesuffix(":0")]


@pytest.mark.parametrize("name", ["Smith, John:0", "my file; old.txt:0", "论文 一:0"])
def test_ids_with_commas_and_spaces_that_were_not_shown(index, name):
    assert cited(f"So it is [{name}].", index) == [name]


def test_an_id_with_a_comma_may_stand_beside_others_if_it_was_shown_alone(index):
    seen = ["Smith, John:0", "guide.md:0"]
    assert cited("[Smith, John:0] [guide.md:0] [Smith, John:0]", index, seen) == seen


def test_of_two_ids_that_contain_each_other_the_longer_is_found(make_index):
    index = make_index([{"id": i, "text": "The text of a document."} for i in ("a,b", "[a,b:0]")])
    seen = ["a,b:0", "[a,b:0]:0"]
    assert cited("[[a,b:0]:0]", index, seen) == ["[a,b:0]:0"]
    assert cited("[a,b:0]", index, seen) == ["a,b:0"]


def test_ready_made_ids_that_are_numbers_are_citations_where_the_index_holds_them(tmp_path):
    (tmp_path / "chunks.json").write_text('["1:The first chunk of the text.", "12:The other chunk of the text."]')
    with ingest(tmp_path / "chunks.json", tmp_path / "index", embedder=HashEmbeddings()) as index:
        assert cited("So it is [1], [12] and [3].", index) == ["1", "12"]
