from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportlab.pdfgen.canvas import Canvas

from arag.graph.citations import is_web_address, parse_citations
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
        {
            "chunk_id": "guide.md:0",
            "document_ids": ["guide.md"],
            "titles": ["Guide"],
            "seen": True,
            "read": True,
            "part": None,
            "parts": None,
            "pages": None,
            "documents": [{"id": "guide.md", "title": "Guide", "url": "", "author": "", "date": ""}],
            "quotes": [{"document_id": "guide.md", "start": 7, "end": 38, "text": "The guide tells of the harbour."}],
        }
    ]
    [citation] = parse_citations("The storm [notes.md:0].", index, ["notes.md:0"], [])
    assert (citation["titles"], citation["seen"], citation["read"]) == ([], True, False)


def test_a_chunk_that_exists_and_was_not_shown_is_cited_as_not_seen(index):
    citation = parse_citations("[guide.md:0]", index, ["notes.md:0"], [])[0]
    assert (citation["document_ids"], citation["seen"], citation["read"]) == (["guide.md"], False, False)
    assert citation["quotes"] == []


def test_an_id_that_is_made_up_is_listed_without_a_document(index):
    nothing = {"part": None, "parts": None, "pages": None, "documents": [], "quotes": []}
    assert parse_citations("[guide.md:7] [atlas.md:3]", index, ["guide.md:0"], []) == [
        {"chunk_id": name, "document_ids": [], "titles": [], "seen": False, "read": False, **nothing}
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


# --- where a source is from ---


@pytest.mark.parametrize(
    ("metadata", "origin"),
    [
        ({}, ("", "", "")),
        (
            {"url": "https://a.org/x?y=1#z", "author": "A. B.", "date": "2024-05-01"},
            ("https://a.org/x?y=1#z", "A. B.", "2024-05-01"),
        ),
        ({"Source_URL": "http://a.org", "Authors": ["A", " B\n"], "Year": 1849}, ("http://a.org", "A, B", "1849")),
        (
            {"link": "HTTPS://A.org", "creator": {"name": "A"}, "published": "May 1849"},
            ("HTTPS://A.org", "A", "May 1849"),
        ),
        ({"authors": [{"name": "A"}, {"name": "B"}], "created": 1849.5}, ("", "A, B", "1849.5")),
        ({"author": "", "creator": "C", "date": None, "year": 1849}, ("", "C", "1849")),
        ({"author": True, "date": {"year": 1849}, "url": ["https://a.org"]}, ("https://a.org", "", "")),
        ({"url": "javascript:alert(1)", "author": "x" * 2_001, "authors": "A"}, ("", "A", "")),
    ],
)
def test_the_metadata_tells_where_a_document_is_from(make_index, metadata, origin):
    index = make_index([{"id": "a", "title": "A", "text": "Some text.", **metadata}])
    [document] = parse_citations("[a:0]", index, ["a:0"], [])[0]["documents"]
    assert (document["url"], document["author"], document["date"]) == origin


@pytest.mark.parametrize(
    "text",
    ["", "a.org", "//a.org", "javascript:alert(1)", "data:text/html,x", "https://", "https://a b", 'https://a"b'],
)
def test_what_is_no_web_address(text):
    assert not is_web_address(text)


def test_a_part_of_a_document_says_which_and_on_which_pages(tmp_path):
    canvas = Canvas(str(tmp_path / "report.pdf"))
    canvas.setTitle("Annual report")
    for page in range(1, 9):
        for line in range(20):
            canvas.drawString(
                72, 720 - 20 * line, f"On page {page} the keeper counted {page * 100 + line} lamps of the pier."
            )
        canvas.showPage()
    canvas.save()
    (tmp_path / "note.txt").write_text("One lamp was broken.")
    with ingest([tmp_path], tmp_path / "index", embedder=HashEmbeddings(), chunk_tokens=700) as index:
        parts = [chunk_id for chunk_id in index.chunk_ids() if chunk_id.startswith("report.pdf")]
        answer = f"They counted 412 lamps [{parts[1]}], of which one was broken [note.txt:0]."
        report, note = parse_citations(answer, index, [*parts, "note.txt:0"], [])
        assert (report["part"], report["parts"]) == (2, len(parts))
        first, last = report["pages"]
        assert first <= 4 <= last
        assert [quote["text"] for quote in report["quotes"]] == ["On page 4 the keeper counted 412 lamps of the pier."]
        assert (note["part"], note["parts"], note["pages"]) == (None, None, None)


# --- the sentences that bear an answer ---

ISLANDS = [
    {
        "id": "light",
        "title": "Vellin Light",
        "text": "Vellin Light is a tower of grey stone. It was designed by Corrin Ashe and first lit in 1849. Its lens "
        "came from the Emberlane Glassworks. The keeper has a garden. Storms broke two of its windows in 1866.",
    },
    {
        "id": "glass",
        "title": "Emberlane Glassworks",
        "text": "The Emberlane Glassworks lay on Brannisey. Mattick Grevane, a failed apothecary, founded it in "
        "1746. It made bottles for the inn, and later lenses. It closed after a fire.",
    },
]


@pytest.fixture(scope="module")
def islands(tmp_path_factory):
    folder = tmp_path_factory.mktemp("islands")
    (folder / "islands.json").write_text(json.dumps(ISLANDS))
    with ingest(folder / "islands.json", folder / "index", embedder=HashEmbeddings()) as index:
        yield index


def quotes(answer, index, seen=("light:0", "glass:0")):
    found = parse_citations(answer, index, seen, [])
    for citation in found:
        chunk = index.get(citation["chunk_id"])
        for quote in citation["quotes"]:
            assert chunk.text[quote["start"] : quote["end"]] == quote["text"]
            assert quote["document_id"] == chunk.document_id
    return {citation["chunk_id"]: [quote["text"] for quote in citation["quotes"]] for citation in found}


FOUNDED = "Mattick Grevane, a failed apothecary, founded it in 1746."
LIT = "It was designed by Corrin Ashe and first lit in 1849."
LENS = "Its lens came from the Emberlane Glassworks."


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The works were founded by Grevane [glass:0].", {"glass:0": [FOUNDED]}),
        ("Mattick Grevane. [glass:0]", {"glass:0": [FOUNDED]}),
        ("**1746.** The *Emberlane Glassworks* was founded in that year [glass:0].", {"glass:0": [FOUNDED]}),
        ("According to [glass:0], an apothecary founded the works.", {"glass:0": [FOUNDED]}),
        (
            "Corrin Ashe designed it [light:0], with a lens from the works [light:0] that Grevane founded [glass:0].",
            {"light:0": [LIT, LENS], "glass:0": [FOUNDED]},
        ),
        (
            "It was first lit 103 years after Grevane founded the glassworks [light:0; glass:0].",
            {"light:0": [LIT], "glass:0": [FOUNDED]},
        ),
        (
            "| Founder | Mattick Grevane | [glass:0] |\n| First lit | 1849 | [light:0] |",
            {"glass:0": [FOUNDED], "light:0": [LIT]},
        ),
        ("Grevane founded the glassworks in 1746.\n\nSources: [glass:0]", {"glass:0": [FOUNDED]}),
        ("Grevane founded the glassworks in 1746.\n\n[glass:0]", {"glass:0": [FOUNDED]}),
    ],
)
def test_the_sentences_that_bear_a_claim_are_quoted(islands, answer, expected):
    assert quotes(answer, islands) == expected


@pytest.mark.parametrize(
    "claim",
    [
        "It was founded by Hesper Quillorne",
        "It was founded in 1764",
        "Grevane came from Paris",
        "Penguins live in the Antarctic",
        "The mayor drank tea every morning",
    ],
)
def test_nothing_is_quoted_for_what_a_chunk_does_not_say(islands, claim):
    assert quotes(f"{claim} [glass:0].", islands) == {"glass:0": []}


@given(
    st.lists(
        st.sampled_from(["[light:0]", "[glass:0; light:0]", "Grevane", "1746", ".", " ", "\n", "lens", "論文", "["])
    ).map("".join)
)
def test_any_answer_has_quotes_that_are_sentences_of_its_chunks(islands, answer):
    found = quotes(answer, islands)
    assert all(len(texts) == len(set(texts)) for texts in found.values())
    assert json.loads(json.dumps(parse_citations(answer, islands, ["light:0"], []))) == parse_citations(
        answer, islands, ["light:0"], []
    )
