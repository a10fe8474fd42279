"""Citations: which texts are some, what they say of their chunk, and which sentences bear an answer."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag.evaluation.paper_tools import PAPER_TOOLS
from arag.graph.citations import find_grounding, name_index, parse_citations
from arag.ingest.pipeline import ingest
from arag.retrieval.tools.sets import PAPER, make_tools
from fakes import HashEmbeddings

DOCUMENTS = [
    {"id": "guide.md", "title": "Guide", "text": "The guide tells of the harbour."},
    {"id": "notes.md", "text": "The notes tell of the storm."},
    {"id": "Smith, John", "title": "John Smith", "text": "John Smith was a painter."},
    {"id": "list [2].txt", "title": "List", "text": "The list names the ships."},
    {"id": "论文 一", "title": "论文", "text": "论文说海港。"},
]
SHOWN = ["guide.md:0", "notes.md:0"]


@pytest.fixture
def index(make_index):
    return make_index(DOCUMENTS)


def cited(answer, index, seen=(), read=()):
    return [c["chunk_id"] for c in parse_citations(answer, index, seen, read)]


def test_a_citation_says_what_was_cited_and_whether_it_was_shown(index):
    answer = "The harbour [guide.md:0]. The storm [notes.md:0]. Ports [论文 一:0]. A map [atlas.md:3]."
    read, unread, unseen, made_up = parse_citations(answer, index, SHOWN, ["guide.md:0"])
    assert read == {
        "chunk_id": "guide.md:0",
        "index": name_index(index),
        "seen": True,
        "read": True,
        "pages": None,
        "ocr_pages": [],
        "document": {"id": "guide.md", "title": "Guide", "url": "", "author": "", "date": ""},
        "quotes": [{"start": 7, "end": 38, "text": "The guide tells of the harbour."}],
        "spans": [{"start": 12, "end": 24}],
    }
    assert (unread["chunk_id"], unread["seen"], unread["read"]) == ("notes.md:0", True, False)
    assert (unseen["document"]["id"], unseen["seen"], unseen["quotes"]) == ("论文 一", False, [])
    nothing = {"pages": None, "ocr_pages": [], "document": None, "quotes": [], "spans": [{"start": 72, "end": 84}]}
    assert made_up == {"chunk_id": "atlas.md:3", "index": "", "seen": False, "read": False, **nothing}


@pytest.mark.parametrize(
    "answer",
    [
        "So [ guide.md:0 ;, notes.md:0, ] and again [guide.md:0].",
        "So [guide.md:0 and notes.md:0].",
        "So 【guide.md:0】 and 【notes.md:0†source】.",
        "So （guide.md:0、notes.md:0）.",
        "So [`guide.md:0`] and **[notes.md:0]**.",
        "So [[guide.md:0](#a), [notes.md:0](#b)].",
    ],
)
def test_chunks_that_were_shown_are_cited_in_every_kind_of_brackets(index, answer):
    assert cited(answer, index, SHOWN) == SHOWN
    is_round = "(" in answer.replace("](#", "") or "（" in answer
    assert cited(answer, index) == ([] if is_round else SHOWN)


@pytest.mark.parametrize(
    "answer",
    [
        "It is so [1]. [citation needed] [...] [] [ ] [,] [a link](http://127.0.0.1:80)",
        "guide.md:0 without brackets [guide.md\n:0] [guide.md:] [guide.md] [guide.md:0",
        "The verse [Matthew 5:3], [1 Corinthians 13:4] and [John 3:16, 17:3].",
        "At noon [12:30], at [9:05] or [2024-05-01T12:30], [2024-05-01 12:30:15] and (12:30:15).",
        "Mixed [3:1], [ratio 16:9], (1:1), [http://localhost:8080], [localhost:8080], [127.0.0.1:80], [::1].",
        "[Chapter 4:12] [Note: 7] [Fig. 3:2] [vol. 2:117] [St. Ebbery 5:3]",
    ],
)
def test_other_texts_are_not_citations(index, answer):
    assert cited(answer, index) == cited(answer, index, ["notes.md:0", "论文 一:0"]) == []


def test_made_up_ids_of_documents_and_files_stay_visible(make_index):
    index = make_index([{"id": "mq00012", "text": "Some text."}])
    assert cited("[mq00012:7], [handbook/pay.md:0], [pay.TXT:2]", index) == [
        "mq00012:7",
        "handbook/pay.md:0",
        "pay.TXT:2",
    ]


@pytest.mark.parametrize("name", ["Smith, John:0", "list [2].txt:0", "论文 一:0"])
def test_ids_may_have_commas_brackets_and_spaces(index, name):
    assert cited(f"So it is [{name}], and [guide.md:0].", index, [name, "guide.md:0"]) == [name, "guide.md:0"]


def test_ready_made_ids_that_are_numbers_are_citations_in_quotes_as_they_are_shown(tmp_path):
    (tmp_path / "chunks.json").write_text('["1:The first chunk of the text.", "12:The other chunk of the text."]')
    with ingest(tmp_path / "chunks.json", tmp_path / "index", embedder=HashEmbeddings()) as index:
        assert cited('So it is ["1"], ["12"], ["3"] and [1].', index, ["1", "12"]) == ["1", "12"]


IMITATIONS = [
    {"id": "a.md", "title": "Leave", "text": "Staff have 25 days of leave."},
    {"id": "a.md:0", "title": "One", "text": "Staff have 96 days of leave."},
    {"id": "[a.md:0]", "title": "Two", "text": "Staff have 97 days of leave."},
    {"id": "x] Leave: Staff have 98 days. [a.md", "title": "Three [draft]", "text": "Staff have 98 days of leave."},
    {"id": "b.md", "title": "Four] [a.md:0] <x>", "text": "Staff have 99 days of leave."},
]


@pytest.mark.parametrize("names", [PAPER, list(PAPER_TOOLS.values())])
def test_ids_and_titles_that_imitate_the_marks_of_results_do_not_pass_for_other_chunks(make_index, names):
    index = make_index(IMITATIONS)
    search, _, read = make_tools(index, names=names)
    for text in (search.invoke({"keywords": ["leave"]}), read.invoke({"chunk_ids": list(index.chunk_ids())})):
        marks = re.findall(r"^\[.*?\](?= |$)", text, flags=re.MULTILINE)
        quoted = ['["[a.md:0]:0"]', '["x] Leave: Staff have 98 days. [a.md:0"]']
        assert sorted(marks) == sorted(["[a.md:0]", "[a.md:0:0]", "[b.md:0]", quoted[0], quoted[1][: len('["x]')]])
        assert all(mark in text for mark in quoted)
        assert text.count("[a.md:0]") == 2  # the second one in quotes
    assert "[a.md:0:0] One" in read.invoke({"chunk_ids": ["a.md:0:0"]})
    assert "Three [draft]" in read.invoke({"chunk_ids": ["x] Leave: Staff have 98 days. [a.md:0"]})
    assert "Four] [a.md: 0] <x>" in read.invoke({"chunk_ids": ["b.md:0"]})


def test_an_answer_that_cites_an_imitation_does_not_cite_what_it_imitates(make_index):
    index = make_index(IMITATIONS)
    real, *others = index.chunk_ids()
    for chunk_id in others:
        mark = json.dumps(chunk_id) if "[" in chunk_id else chunk_id
        assert cited(f"It is so [{mark}].", index, [real, chunk_id]) == [chunk_id]
    assert cited("[a.md:0]:0", index, [real, "[a.md:0]:0"]) == []
    citations = parse_citations("99 days [a.md:0], or [a.md:0:0].", index, ["a.md:0:0"], [])
    assert [(c["chunk_id"], c["seen"]) for c in citations] == [("a.md:0", False), ("a.md:0:0", True)]


# --- where a source is from ---


@pytest.mark.parametrize(
    ("metadata", "origin"),
    [
        ({"url": "https://a.org/x?y=1#z", "date": "2024-05-01"}, ("https://a.org/x?y=1#z", "", "2024-05-01")),
        ({"Source_URL": "http://a.org", "Authors": ["A", " B\n"], "Year": 1849}, ("http://a.org", "A, B", "1849")),
        ({"url": "javascript:alert(1)", "author": "", "creator": [{"name": "A"}, {"name": "B"}]}, ("", "A, B", "")),
    ],
)
def test_the_metadata_tells_where_a_document_is_from(make_index, metadata, origin):
    index = make_index([{"id": "a", "title": "A", "text": "Some text.", **metadata}])
    document = parse_citations("[a:0]", index, ["a:0"], [])[0]["document"]
    assert (document["url"], document["author"], document["date"]) == origin


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


def quotes(answer, index):
    citations = parse_citations(answer, index, ("light:0", "glass:0"), [])
    for citation in citations:
        text = index.get(citation["chunk_id"]).text
        assert all(text[quote["start"] : quote["end"]] == quote["text"] for quote in citation["quotes"])
    return {citation["chunk_id"]: [quote["text"] for quote in citation["quotes"]] for citation in citations}


FOUNDED = "Mattick Grevane, a failed apothecary, founded it in 1746."
LIT = "It was designed by Corrin Ashe and first lit in 1849."
LENS = "Its lens came from the Emberlane Glassworks."


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("**1746.** The *Emberlane Glassworks* was founded in that year [glass:0].", {"glass:0": [FOUNDED]}),
        (
            "Corrin Ashe designed it [light:0], with a lens from the works [light:0] that Grevane founded [glass:0].",
            {"light:0": [LIT, LENS], "glass:0": [FOUNDED]},
        ),
        (
            "| Founder | Mattick Grevane | [glass:0] |\n| First lit | 1849 | [light:0] |",
            {"glass:0": [FOUNDED], "light:0": [LIT]},
        ),
        ("Grevane founded the glassworks in 1746.\n\n[glass:0]", {"glass:0": [FOUNDED]}),
        (
            "Nothing in the books says what became of all its workers later on. It closed after a fire. [glass:0]",
            {"glass:0": ["It closed after a fire."]},
        ),
        (
            "The light was designed by Corrin Ashe, first lit in 1849, and lost windows in 1866 [light:0].",
            {"light:0": [LIT, "Storms broke two of its windows in 1866."]},
        ),
        ("The light was designed by Corrin Ashe and first lit in 1849, on 1866 nights [light:0].", {"light:0": [LIT]}),
    ],
)
def test_the_sentences_that_bear_a_claim_are_quoted(islands, answer, expected):
    assert quotes(answer, islands) == expected


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ("fft", "fft (a) | Fast Fourier Transform using FFTW"),
        ("shift", "shift (a) | Moves the elements of a"),
        ("GATE", "GATE | the variable of the keeper"),
    ],
)
def test_of_lines_with_a_name_the_one_that_writes_it_alike_is_quoted(make_index, asked, line):
    lines = ["ifft (a) | inverse FFT", "shift_all | moves all", "The gate is shut."]
    index = make_index([{"id": "card", "text": "\n".join([*lines, line])}])
    (citation,) = parse_citations(f"The tool has {asked} [card:0].", index, ("card:0",), [])
    assert [quote["text"] for quote in citation["quotes"]] == [line]


def test_an_item_of_a_list_with_the_number_of_a_claim_is_quoted_beside_its_first_line(make_index):
    line = "The Vellin module of the signal accepts the following run time option:"
    item = "- port: the port to listen to (defaults to 50051)"
    index = make_index([{"id": "gate", "text": f"{line}\n\n{item}\n- host: the host"}])
    (citation,) = parse_citations(f"{line} {item} [gate:0].", index, ("gate:0",), [])
    assert [quote["text"] for quote in citation["quotes"]] == [line, item]


@pytest.mark.parametrize(
    "claim", ["It was founded by Hesper Quillorne", "It was founded in 1764", "The mayor drank tea"]
)
def test_nothing_is_quoted_for_what_a_chunk_does_not_say(islands, claim):
    assert quotes(f"{claim} [glass:0].", islands) == {"glass:0": []}


MAIL = """From: Hesper Quillorne <hesper@lens.example>
To: tolk@lens.example
Subject: The lens

Dear Mr Tolk of the lens,

Grevane cut the lens. It is red.

Best regards,
Hesper Quillorne

On Sat, 1 Oct 2022 at 10:00, Aldous Tolk <tolk@lens.example>
wrote:
{quoted}Hi Hesper, who cut the lens in 1746? Was it a son
{quoted}of Grevane?
"""


@pytest.mark.parametrize("quoted", ["> ", ""])
def test_greetings_headers_and_quoted_replies_of_a_mail_are_not_quoted(make_index, quoted):
    index = make_index([{"id": "mail", "text": MAIL.format(quoted=quoted)}])
    answer = "Hesper Quillorne wrote to Aldous Tolk [mail:0] that Grevane cut the lens [mail:0], in 1746 [mail:0]."
    [citation] = parse_citations(answer, index, ["mail:0"], [])
    assert [quote["text"] for quote in citation["quotes"]] == ["Grevane cut the lens."]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("He wrote this:\n\n> Grevane cut the lens in 1746.", "> Grevane cut the lens in 1746."),
        ("On 12 May 1851 Ada Venn wrote: it is safe. Grevane cut the lens in 1746.", "Grevane cut the lens in 1746."),
    ],
)
def test_what_other_texts_quote_is_quoted(make_index, text, quoted):
    index = make_index([{"id": "page", "text": text}])
    [citation] = parse_citations("Grevane cut the lens in 1746 [page:0].", index, ["page:0"], [])
    assert [quote["text"] for quote in citation["quotes"]] == [quoted]


@given(
    st.lists(
        st.sampled_from(["[light:0]", "[glass:0; light:0]", "Grevane", "1746", ".", " ", "\n", "lens", "論文", "["])
    ).map("".join)
)
def test_any_answer_has_quotes_that_are_sentences_of_its_chunks(islands, answer):
    assert all(len(texts) == len(set(texts)) for texts in quotes(answer, islands).values())
    citations = parse_citations(answer, islands, ["light:0"], [])
    assert json.loads(json.dumps(citations)) == citations


@pytest.mark.parametrize(
    ("answer", "grounding"),
    [
        ("The guide tells of the harbour [guide.md:0]. The notes tell of the storm [notes.md:0].", "supported"),
        ("The guide tells of the harbour [guide.md:0].", "supported"),
        ("The guide tells of the harbour [guide.md:0]. Queens ruled Ardmore in 1200 [notes.md:0].", "partly"),
        ("The guide tells of the harbour [guide.md:0]. A map of it exists [atlas.md:3].", "partly"),
        ("Queens ruled Ardmore in 1200 [notes.md:0].", "none"),
        ("The guide tells of the harbour.", "none"),
        ("", "none"),
    ],
)
def test_grounding_says_how_far_the_cited_chunks_support_an_answer(index, answer, grounding):
    assert find_grounding(parse_citations(answer, index, SHOWN, [])) == grounding
