"""Which sentences the tools show: what answers, and what makes that understandable; each under its own name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from openpyxl import Workbook

from arag.ingest.chunking import chunk_document
from arag.ingest.documents import Document
from arag.ingest.pipeline import ingest
from arag.retrieval.presentation.search_excerpts import excerpt_for_keywords
from arag.retrieval.tools.sets import make_tools
from arag.retrieval.types import Hit
from arag.text.normalise import searchable
from fakes import HashEmbeddings, write_corpus

YEARS = [f"Nothing of note happened in the year {n} on the islands." for n in range(1600, 1840)]
FILLER = " ".join(YEARS[:20])
LONG = "Words follow words " * 40
PARTS = " ".join([FILLER] * 4)
TABLE = """In millions | 2022 | 2021
Assets:
Cash | $ | 12,945 $ | 9,408
Inventories | 19,090 | 17,760
Total assets | $ | 228,275 $ | 232,999"""
STORM = "One came. Two came. A dromond sank. Three went. Four went. Five went."
TREES = "It has no trees at all. " * 8
SAILED = [f"The brig sailed again in the year {n}." for n in range(9)]
RESERVES = [f"## {port}\n\n{FILLER}\n\n### Reserve\n\nThe reserve is {n}." for port, n in [("Basin", 40), ("Mole", 70)]]
PAINTER, COOK = "the first painter of Dorn", "the first cook of Dorn"

DOCUMENTS = {
    "often": " ".join([*SAILED, FILLER, "Then Orlath drowned.", "Then Tamsin wept.", FILLER]),
    "cut": f"{FILLER} Many go {LONG} past the Vellin Rocks {LONG} end. {FILLER}",
    "he": f"{FILLER} Karel was a painter. He was born in Padua. Tamsin stayed. {FILLER}",
    "on": f"{FILLER} Spain wrote most of it. It is followed by Peru. {FILLER}",
    "alone": f"{FILLER} Hera was in Lisbon. {FILLER}",
    "lead": f"{FILLER} Raise the sluice with these:\n\n- A winch\n- A rope\n- Two men\n- An ox\n\n{FILLER}",
    "heading.md": f"{FILLER}\n\n## The Gale of 1775\n\nMany ketches sank. Few came home.\n\n{FILLER}",
    "rows": f"Total assets grew, as the notes on total assets say. {FILLER}\n\n{TABLE}\n\n{FILLER}",
    "parts.md": f"# Chronicle\n\n{PARTS}\n\n## The Great Storm\n\n{STORM} {PARTS}",
    "annals": " ".join([*YEARS[:5], f"Osric was {PAINTER}.", *YEARS[5:90], f"Bettany was {COOK}.", *YEARS[90:]]),
    "harbour.md": "\n\n".join(["# Harbour", *RESERVES]),
    "energy_2024_mwh.csv": "Month,Use\nJanuary,120\nFebruary,98\nMarch,77\nApril,60\n",
    "sales/supplier_list.csv": "Name,City\nKestrwyn,Oslo\nBlom,Bergen\n",
    "合同汇总.txt": "水泵在仓库里。价格是一百元。",
}
RECORDS = [
    {"id": "short", "title": "Orla Moor", "text": f"Orla Moor is a moor. {TREES}A lynx lives there."},
    {"id": "little", "title": "Little", "text": "Jonna was a painter. Tamsin stayed. Nobody knew."},
]


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    folder = tmp_path_factory.mktemp("excerpts")
    corpus = write_corpus(folder / "corpus", DOCUMENTS)
    write_corpus(corpus / "records", RECORDS)
    with ingest(corpus, folder / "index", embedder=HashEmbeddings()) as index:
        yield {tool.name: tool for tool in make_tools(index, names="paper")}


@pytest.fixture(scope="module")
def find(tools):
    """A function that searches for keywords, and returns what is shown of a document."""

    def find(document, *keywords):
        content = tools["keyword_search"].invoke({"keywords": [*keywords], "within": document})
        without_titles = re.sub(r"(?<=[\])] )(?:Orla Moor|Little|Chronicle)(?:: | > )", "", content)
        return " ".join(re.findall(r"(?ms)^\[[^\]]+\] (.*?)(?=\n\n|\Z)", without_titles))

    return find


# --- names ---


@pytest.mark.parametrize(
    ("name", "chunk_id"),
    [
        ("energy", "energy_2024_mwh.csv:0"),
        ("MWh", "energy_2024_mwh.csv:0"),
        ("the supplier list", "sales/supplier_list.csv:0"),
        ("合同", "合同汇总.txt:0"),
    ],
)
def test_a_document_is_found_by_words_that_only_its_name_has(tools, name, chunk_id):
    content = tools["keyword_search"].invoke({"keywords": [name]})
    assert content.startswith(f"{name}: only in the name of [{chunk_id}]. All:\n\n[{chunk_id}] ")
    content = tools["semantic_search"].invoke({"queries": [name]})
    assert content.startswith(f"The nearest, by similarity:\n\n[{chunk_id}] ")


@pytest.mark.parametrize("name", ["3.2.1", "list-supplier", "energy -a", "2024.1"])
def test_a_word_with_its_pieces_in_another_order_is_in_no_name(make_index, name):
    index = make_index([{"id": "energy/1_2.csv", "title": "3.1.2 Supplier list 2024", "text": "January"}])
    (tool,) = make_tools(index, names=["keyword_search"])
    for each in ("energy 3.1.2", "2024 supplier"):
        assert "in the name of" in tool.invoke({"keywords": [each]})
    assert "name" not in tool.invoke({"keywords": [name]})


def test_of_a_table_found_by_its_name_the_header_and_the_first_rows_are_shown(tools):
    rows = "energy 2024 mwh: Month | Use\nMonth: January | Use: 120\nMonth: February | Use: 98"
    assert rows in tools["keyword_search"].invoke({"keywords": ["energy"]})


def test_each_sentence_stands_under_its_own_headings(tools):
    content = tools["keyword_search"].invoke({"keywords": ["The reserve"]})
    assert "Basin > Reserve: The reserve is 40." in content
    assert "Mole > Reserve: The reserve is 70." in content


def test_a_heading_that_ends_in_a_mark_gets_no_colon_before_its_text(tmp_path):
    text = "".join(
        f"# {heading}\n\nThe reserve is low.\n\n" for heading in ("To load:", "注意：", "How much?", "Basin")
    )
    with ingest(
        write_corpus(tmp_path / "corpus", {"rules.md": text}), tmp_path / "index", embedder=HashEmbeddings()
    ) as index:
        shown = make_tools(index, names="paper")[0].invoke({"keywords": ["reserve"]})
    for heading in ("To load:", "注意：", "How much?", "Basin:"):
        assert f"{heading} The reserve is low." in shown


def test_rows_of_two_sheets_stand_under_their_own_and_items_of_a_list_on_their_own_lines(tmp_path):
    book = Workbook()
    book.remove(book.active)
    for name, stock in {"Assembly": 3, "Basin": 7}.items():
        sheet = book.create_sheet(name)
        for row in (["Part", "Stock"], ["Reserve", stock]):
            sheet.append(row)
    corpus = write_corpus(tmp_path / "corpus", {"rules.md": f"# Rules\n\n{FILLER}\n\n- Bring a lamp.\n- Bring rope."})
    book.save(corpus / "stock.xlsx")
    with ingest(corpus, tmp_path / "index", embedder=HashEmbeddings()) as index:
        shown = make_tools(index, names="paper")[0].invoke({"keywords": ["Reserve", "Bring"]})
    assert "Assembly: Part | Stock\nPart: Reserve | Stock: 3\nBasin: Part | Stock\nPart: Reserve | Stock: 7" in shown
    assert "- Bring a lamp.\n- Bring rope." in shown


# --- by keywords ---


def test_every_keyword_has_a_sentence_even_behind_many_of_a_frequent_one(find):
    assert find("often", "brig", "Orlath", "Tamsin") == f"{SAILED[0]} … Then Orlath drowned. Then Tamsin wept. …"


def test_a_long_sentence_is_cut_around_the_keyword(find):
    text = find("cut", "vellin rocks")
    assert "past the Vellin Rocks" in text
    assert (text[0], text[-1]) == ("…", "…")
    assert len(text) <= 402


def test_a_short_document_is_shown_whole_if_a_keyword_names_it_or_little_is_left(find):
    assert find("short", "Orla Moor").startswith("Orla Moor is a moor. It has no trees at all.")
    assert find("short", "lynx") == "… A lynx lives there."
    assert find("little", "Tamsin") == "Jonna was a painter. Tamsin stayed. Nobody knew."


@pytest.mark.parametrize(
    ("document", "keyword", "text"),
    [
        ("he", "Padua", "… Karel was a painter. He was born in Padua. …"),
        ("on", "Spain", "… Spain wrote most of it. It is followed by Peru. …"),
        ("alone", "Lisbon", "… Hera was in Lisbon. …"),
        ("heading", "Gale", "The Gale of 1775: Many ketches sank. …"),
        ("lead", "sluice", "… Raise the sluice with these:\n- A winch\n- A rope\n- Two men …"),
        ("parts", "dromond", "(part 2 of 3) The Great Storm: Two came. A dromond sank. Three went. Four went. …"),
    ],
)
def test_a_sentence_has_what_makes_it_understandable(find, document, keyword, text):
    assert find(document, keyword) == text


RELEASES = (
    f"{FILLER}\n\nOrlath 2.1 (March 1999): Named for a dog. Two more ports were added. The key novelty was the dromond."
    f"\n\n{FILLER}\n\n- Mole: a port. It is old.\n- Basin: a quay. It has a ketch there.\n\n{FILLER}"
)


@pytest.mark.parametrize(
    ("keyword", "label"),
    [("dromond", "Orlath 2.1 (March 1999): Named for a dog. … The key"), ("ketch", "Basin: a quay.\nIt has")],
)
def test_the_label_of_a_paragraph_is_shown(make_index, keyword, label):
    tools = make_tools(make_index({"releases.md": RELEASES}), names="paper")
    for tool, arguments in ((tools[0], {"keywords": [keyword]}), (tools[1], {"queries": [f"The {keyword} there"]})):
        text = tool.invoke(arguments)
        assert label in text
        assert "Mole: a port" not in text


def test_an_entry_of_a_chapters_contents_leads_to_its_section(make_index):
    contents = "# 14. Selling\n\nTable of Contents\n\n14.1. May I sell a dromond?\n\n14.2. May I sell a ketch?"
    sections = (
        f"## 14.1. May I sell a dromond?\n\nGo ahead. Nobody minds. {FILLER}\n\n## 14.2. May I sell a ketch?\n\nNo."
    )
    semantic_search = make_tools(make_index({"selling.md": f"{contents}\n\n{sections}"}), names="paper")[1]
    text = semantic_search.invoke({"queries": ["May I sell a dromond?"]})
    assert "14.1. May I sell a dromond? Go ahead. Nobody minds." in text


def test_a_row_that_a_keyword_labels_comes_first_with_its_header(find):
    text = find("rows", "total assets")
    assert "… In millions | 2022 | 2021\n… Total assets | $228,275 | $232,999 …" in text
    assert "Cash" not in text


def test_a_row_names_the_header_of_its_table_also_from_an_earlier_chunk(make_index):
    rows = "\n".join(f"Sales of product {n} | {n * 7} | {n * 5}" for n in range(100))
    index = make_index({"t": f"{FILLER}\n\nIn millions | 2022 | 2021\n{rows}"}, chunk_tokens=300)
    content = make_tools(index, names="paper")[0].invoke({"keywords": ["Sales of product 91"]})
    assert "[t:3] (part 4 of 4) In millions | 2022 | 2021: Sales of product 91 | 637 | 455 …" in content


# --- by meaning ---


def test_a_long_sentence_found_by_meaning_is_cut_around_the_rarest_word_of_the_query(make_index):
    towns = " ".join(f"Town {n} has the area code {n}" for n in range(15))
    _, tool, _ = make_tools(make_index({"t": f"{towns} Orlath has the area code 513 {towns}."}), names="paper")
    assert "Orlath has the area code 513" in tool.invoke({"queries": ["Which area code does Orlath have?"]})


# --- reads ---


@pytest.fixture
def read(tools):
    """A function that reads chunks of a long document about something, and returns the result."""

    def read(about="", messages=(), ordinals=(0, 1, 2)):
        args = {"chunk_ids": [f"annals:{n}" for n in ordinals], "about": about, "messages": list(messages)}
        return tools["chunk_read"].invoke({"name": "chunk_read", "args": args, "id": "1", "type": "tool_call"})

    return read


def test_of_several_chunks_those_passages_are_shown_that_are_near_and_new(read):
    message = read("Osric first painter Dorn")
    content = message.content
    assert "annals:2" not in message.artifact["chunk_ids"]
    assert f"… {YEARS[4]} Osric was {PAINTER}. {YEARS[5]} {YEARS[6]} …" in content
    assert content.count(PAINTER) == 1
    assert re.search(r"\[annals:2\].*: left out: other passages are closer, or shown above. A chunk read", content)
    first = read(f"{PAINTER}, {COOK}")
    assert f"Bettany was {COOK}." in first.content  # each chunk has its best passage before any has a second
    assert first.artifact["new_chunks"] == []
    assert "Osric" not in read(PAINTER, [first]).content


def test_what_is_looked_for_is_the_question_if_nothing_else_is_said(read):
    asked = [HumanMessage(f"Who was {COOK}?")]
    message = read(messages=asked)
    assert message.artifact["new_chunks"] == ["annals:0"]  # as much as may be read whole
    assert f"Bettany was {COOK}." in message.content
    assert read(messages=asked, ordinals=[2]).artifact["new_chunks"] == ["annals:2"]


# --- whatever the text ---

SENTENCES = [
    "He was here.",
    "The ship sank in Rome.",
    "Orlath saw İstanbul.",
    "# Orlath",
    f"Long {LONG} ship {LONG}.",
    "北京的船。",
    "Ship",
    "It\nwas a ship.",
]
KEYWORDS = ["ship", "Orlath", "i", "é", "北京", "words", "it\xa0was", "t was"]


@given(
    st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=12).map("\n\n".join),
    st.lists(st.sampled_from(KEYWORDS), min_size=1, max_size=4, unique=True),
)
def test_every_keyword_is_shown(text, keywords):
    document = Document("doc", "", text, "doc.txt")
    (chunk,) = chunk_document(document, chunk_tokens=100_000, count=lambda texts: [len(t.split()) for t in texts])
    sentences = [searchable(chunk.sentence_text(n)) for n in range(len(chunk.sentences))]
    keywords = [k for k in keywords if any(searchable(k) in sentence for sentence in sentences)]
    excerpt = excerpt_for_keywords(Hit(chunk, 1.0, dict.fromkeys(keywords, 1)), dict.fromkeys(keywords, 1))
    holding = {n for n, text in enumerate(sentences) if any(searchable(k) in text for k in keywords)}
    positions = [s.position for s in excerpt.sentences]
    matched = {s.position for s in excerpt.sentences if s.matched}
    assert positions == sorted(set(positions))
    assert matched <= holding
    for keyword in keywords:
        assert any(searchable(keyword) in sentences[position] for position in matched)


# --- code ---


def shown_of(tmp_path, name, text, keyword):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / name).write_text(text, encoding="utf-8")
    with ingest(tmp_path / "docs", tmp_path / "index", embedder=HashEmbeddings()) as index:
        (search,) = make_tools(index, names=["keyword_search"])
        return search.invoke({"keywords": [keyword]})


LOOP = "for wheel in range(10):\n    turn(wheel)\n    if wheel > 5:\n        break"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", f"<h1>Loop</h1><p>Turn the wheels:</p><pre>{LOOP}</pre><p>It ends.</p>"),
        ("a.md", f"# Loop\n\nTurn the wheels:\n\n```python\n{LOOP}\n```\n\nIt ends."),
        ("a.txt", f"Turn the wheels:\n\n{LOOP}\n\nIt ends."),
        ("a.py", LOOP),
    ],
)
def test_code_keeps_its_lines_and_indents(tmp_path, name, text):
    assert f"\n{LOOP}" in shown_of(tmp_path, name, text, "wheel")


def test_an_indented_paragraph_of_full_lines_is_no_code(tmp_path):
    text = (
        "1. Scope\n\n    The wheel of the mill turns in the river, and those of the\n"
        "    carts turn on the road. A further wheel, which is the oldest one, and\n    small, is of oak.\n\n"
        "    turn --wheel oak --speed slow --for '1 hour' --log now\n    turn --wheel elm\n"
    )
    shown = shown_of(tmp_path, "a.txt", text, "wheel")
    assert "The wheel of the mill turns in the river, and those of the carts turn on the road." in shown
    assert "A further wheel, which is the oldest one, and small, is of oak." in shown
    assert "--log now\n    turn --wheel elm" in shown


def test_commands_behind_a_prompt_keep_their_lines_without_an_indent(tmp_path):
    commands = "$ mill start --wheel oak\n$ mill stop\nThe wheel stands"
    text = f"# Mill\n\nThe wheel costs\n$ 5 a day.\n\n{commands}\n\nThe end."
    shown = shown_of(tmp_path, "a.txt", text, "wheel")
    assert f"\n{commands}" in shown
    assert "The wheel costs $ 5 a day." in shown


def test_a_wrapped_paragraph_below_its_name_is_no_code(tmp_path):
    text = (
        "# Mill\n\nWheel:\n  The mill has a wheel that turns in the river by day\n"
        "  and by night, and nobody knows who built it there\n  at first."
    )
    shown = shown_of(tmp_path, "a.txt", text, "wheel")
    assert "Wheel: The mill has a wheel that turns in the river by day and by night, and nobody" in shown


def test_text_does_not_keep_the_lines_of_its_file(tmp_path):
    text = "The wheel of the mill\nturns in the river.\n\n- The wheel of oak\n  lasts longest."
    shown = shown_of(tmp_path, "a.txt", text, "wheel")
    assert "The wheel of the mill turns in the river." in shown
    assert "- The wheel of oak lasts longest." in shown
