"""How an agent gets from what a result shows to the rest: the next hits, whole chunks, whole tables, places."""

from __future__ import annotations

import re

import pytest
from langchain_core.messages import HumanMessage
from openpyxl import Workbook
from pptx import Presentation
from reportlab.pdfgen.canvas import Canvas

from arag.ingest.pipeline import ingest
from arag.retrieval.tools.sets import make_tools
from fakes import HashEmbeddings, write_corpus

QUESTION = HumanMessage("Which ships were lost?")
FILLER = " ".join(f"Nothing of note happened in the year {n} on the islands." for n in range(1600, 1640))
LOST = {f"d{n:02}": f"The ketch number {n} was lost off the Mole in the gale. {FILLER}" for n in range(16)}


def use(tool, after=(), **arguments):
    """Call a tool as a graph does, in a conversation."""
    arguments |= {"messages": [QUESTION, *after]}
    return tool.invoke({"type": "tool_call", "id": "call-1", "name": tool.name, "args": arguments})


def ask_again(tool, **arguments):
    """Make the same call until it shows nothing new; return the messages."""
    messages = []
    while not (messages and messages[-1].text.endswith("Nothing new was found.")):
        messages.append(use(tool, messages, **arguments))
        assert len(messages) < 40
    return messages


def shown_ids(message):
    """Return the ids of the chunks of which a result shows text."""
    return re.findall(r"^\[([^\]]+)\] ", message.text, re.MULTILINE)


# --- searches ---


def test_the_same_search_again_shows_what_it_has_not_shown(make_index):
    keyword_search, *_ = make_tools(make_index(LOST), names="paper")
    messages = ask_again(keyword_search, keywords=["ketch"])
    assert messages[0].text.startswith("ketch: 16 chunks. The best 5 of 16 chunks (again for more):")
    first, second = set(shown_ids(messages[0])), set(shown_ids(messages[1]))
    assert len(second) == 5
    assert second - first
    assert messages[-1].text.startswith("ketch: 16 chunks. All:")
    assert "and 8 more\n" in messages[-1].text
    assert {chunk_id for message in messages for chunk_id in shown_ids(message)} == {f"{name}:0" for name in LOST}
    assert len(messages) <= 8


def test_the_same_search_by_meaning_again_shows_the_next_nearest(make_index):
    _, semantic_search, _ = make_tools(make_index(LOST), names="paper")
    messages = ask_again(semantic_search, queries=["The ketch was lost off the Mole"])
    assert {chunk_id for message in messages for chunk_id in shown_ids(message)} == {f"{name}:0" for name in LOST}


def test_long_sentences_that_are_cut_do_not_keep_their_places(make_index):
    long = {f"d{n}": f"The ketch {n} was lost {'and so on ' * 60} in the gale. {FILLER}" for n in range(8)}
    keyword_search, *_ = make_tools(make_index(long), names="paper")
    messages = ask_again(keyword_search, keywords=["ketch"])
    assert {chunk_id for message in messages for chunk_id in shown_ids(message)} == {f"{name}:0" for name in long}


def test_copies_of_what_was_shown_are_not_shown_later(make_index):
    index = make_index({"a": f"The ketch sank. {FILLER}", "b": f"The ketch sank. {FILLER} The end."})
    keyword_search, *_ = make_tools(index, names="paper")
    first = use(keyword_search, keywords=["ketch"])
    assert first.text.endswith("(the same text: [b:0])")
    assert use(keyword_search, [first], keywords=["ketch"]).text.endswith("Nothing new was found.")


def test_chunks_with_a_common_keyword_alone_are_shown_to_who_asks_again(make_index):
    documents = {f"n{n}": f"Trade went well in the year {n}. {FILLER}" for n in range(9)}
    keyword_search, *_ = make_tools(
        make_index(documents | {"mara": "Mara kept the light.", "both": "Mara and trade."}), names="paper"
    )
    messages = ask_again(keyword_search, keywords=["Mara", "trade"])
    assert "The best 2 of 11 chunks" in messages[0].text
    assert len({chunk_id for message in messages for chunk_id in shown_ids(message)}) == 11


def test_where_the_agent_has_grep_a_search_says_that_it_lists_all(make_index):
    index = make_index(LOST)
    beside_grep = make_tools(index, names="all")[0]
    assert "The best 5 of 16 chunks (grep lists all):" in use(beside_grep, keywords=["ketch"]).text
    alone = make_tools(index, names="paper")[0].invoke({"keywords": ["ketch"]})
    assert "The best 5 of 16 chunks:" in alone


@pytest.mark.parametrize(
    "query",
    [
        "flood report of the harbour board for the year before last",
        "What does the Harbour Board Flood Report say about losses?",
        "the harbour board's flood report, second edition",
    ],
)
def test_a_document_whose_title_is_in_the_query_is_found_by_meaning(make_index, query):
    near = {f"n{n:02}": f"{query} {n}. {FILLER}" for n in range(25)}
    report = {"id": "r", "title": "Harbour Board Flood Report", "text": f"Quays stood under water. {FILLER}"}
    others = [{"id": "b", "title": "Board", "text": f"Planks. {FILLER}"}]
    records = [{"id": name, "text": text} for name, text in near.items()]
    index = make_index([report, *others, *records])
    assert index.semantic_search(query, titles_first=True).hits[0].chunk_id == "r:0"
    assert "b:0" not in [hit.chunk_id for hit in index.semantic_search(query, titles_first=True).hits]
    assert "r:0" not in [hit.chunk_id for hit in index.semantic_search(query).hits]
    assert shown_ids(use(make_tools(index, names="paper")[1], queries=[query]))[0] == "r:0"


# --- reads ---


def test_several_chunks_are_read_whole_up_to_a_budget(make_index):
    index = make_index({f"d{n}": f"The ketch {n} was lost. {FILLER}" for n in range(6)})
    *_, chunk_read = make_tools(index, names="paper")
    tokens = index.get("d0:0").tokens
    assert tokens < 750
    read = use(chunk_read, chunk_ids=["d0:0", "d1:0"])
    assert read.artifact["new_chunks"] == ["d0:0", "d1:0"]
    many = use(chunk_read, chunk_ids=[f"d{n}:0" for n in range(6)])
    assert many.artifact["new_chunks"] == [f"d{n}:0" for n in range(1_500 // tokens)]
    assert re.search(r"\n\[d5:0\] .*… .*…$", many.text)  # passages
    assert use(chunk_read, chunk_ids=["d0:0", "d1:0"], about="ketch").artifact["new_chunks"] == []


def table(rows):
    return "Ship | Built | Master\n--- | --- | ---\n" + "\n".join(
        f"Ketch {n} | {1800 + n} | Master {n} of the {'long ' * (rows // 10)}way" for n in range(rows)
    )


def test_a_small_table_is_read_whole_and_of_a_large_one_the_rows_with_their_columns(make_index):
    documents = {f"{rows}.md": f"{FILLER}\n\n{table(rows)}\n\n{FILLER}" for rows in (8, 60)}
    *_, chunk_read = make_tools(make_index(documents, chunk_tokens=5_000), names="paper")
    small = use(chunk_read, chunk_ids=["8.md:0"], about="Master 3").text
    assert all(f"Ketch {n} | {1800 + n} | Master {n}" in small for n in range(8))
    assert "Ship | Built | Master" in small
    large = use(chunk_read, chunk_ids=["60.md:0"], about="Ketch 33").text
    assert "Ship | Built | Master" in large
    assert "Ketch 33 | 1833" in large
    assert large.count("| Master") < 45


def test_rows_with_years_are_no_headings_of_others(make_index):
    lives = "Orla | 1850 | 1903\nBern | 1811 | 1870\nTilda | 1850 | unknown\nOsric | 12 | unknown"
    accounts = "In millions | 2022 | 2021\nCash | 12 | 13\nNet sales | 5 | 6"
    keyword_search, *_ = make_tools(
        make_index({"a": f"{FILLER}\n\n{lives}", "b": f"{FILLER}\n\n{accounts}"}), names="paper"
    )
    assert "… Osric | 12 | unknown" in keyword_search.invoke({"keywords": ["Osric"]})
    assert "Bern" not in keyword_search.invoke({"keywords": ["Osric"]})
    assert "In millions | 2022 | 2021\n… Net sales | 5 | 6" in keyword_search.invoke({"keywords": ["Net sales"]})


# --- places ---


@pytest.fixture(scope="module")
def formats(tmp_path_factory):
    """The tools on a PDF, a presentation, a workbook and a long text."""
    folder = tmp_path_factory.mktemp("places")
    corpus = write_corpus(folder / "corpus", {"annals.txt": " ".join([FILLER] * 6)})
    canvas = Canvas(str(corpus / "report.pdf"))
    for ship in ("brig", "ketch"):
        canvas.drawString(70, 800, f"The {ship} was lost off the Mole in the gale.")
        canvas.showPage()
    canvas.save()
    deck = Presentation()
    for ship in ("schooner", "cutter"):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = f"About the {ship}"
        slide.placeholders[1].text = f"The {ship} was sold. " * 60
    deck.save(corpus / "deck.pptx")
    book = Workbook()
    book.remove(book.active)
    for name in ("Assembly", "Basin"):
        sheet = book.create_sheet(name)
        for row in (["Part", "Stock"], *([f"{name} part {n}", n] for n in range(60))):
            sheet.append(row)
    book.save(corpus / "stock.xlsx")
    with ingest(corpus, folder / "index", embedder=HashEmbeddings(), chunk_tokens=300) as index:
        yield {tool.name: tool for tool in make_tools(index, names="paper")}


def test_hits_show_their_pages_slides_and_parts(formats):
    search = formats["keyword_search"]
    assert "[report.pdf:0] (pages 1-2) " in search.invoke({"keywords": ["ketch"]})
    slides = search.invoke({"keywords": ["cutter"]})
    assert re.search(r"\[deck\.pptx:\d\] \(part \d of \d, slides? \d", slides)
    assert re.search(r"\[deck\.pptx:\d\] \(slide 2\) ", slides)
    found = search.invoke({"keywords": ["1605"]})
    assert re.search(r"\[annals\.txt:0\] \(part 1 of \d+\) ", found)
    assert found.count("part ") == 1  # once a document
    by_meaning = formats["semantic_search"].invoke({"queries": ["The ketch was lost off the Mole in the gale."]})
    assert re.search(r"\[report\.pdf:0\] \(1\.00, pages 1-2\) ", by_meaning)


def test_chunks_that_are_read_show_their_place(formats):
    read = formats["chunk_read"]
    last = read.invoke({"chunk_ids": ["deck.pptx:2"]})
    assert re.match(r"\[deck\.pptx:2\] About the schooner, part 3 of \d, slide 2\n", last)
    last = read.invoke({"chunk_ids": ["stock.xlsx:1"]})
    assert re.match(r"\[stock\.xlsx:1\] stock, part 2 of \d+, sheets? ", last)
    passages = read.invoke({"chunk_ids": ["annals.txt:1"], "about": "the year 1630"})
    assert re.match(r"\[annals\.txt:1\] \(part 2 of \d+\) ", passages)
