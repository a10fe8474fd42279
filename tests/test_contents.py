"""Tables of contents, indexes and lists of links come behind the chunks that say what they name."""

from __future__ import annotations

import time

import pytest
from docx import Document as WordDocument
from reportlab.pdfgen.canvas import Canvas

from arag.ingest.pipeline import ingest
from arag.retrieval.tools.sets import make_tools
from arag.text.contents import find_lists
from fakes import HashEmbeddings, write_corpus

CHAPTERS = ["Introduction", "The ropewalk", "Lantern oil", "Winter stores", "Tides and tolls", "Pilots", "Wrecks"]
DOTTED = "\n".join(f"{number} {name} {'.' * 20} {7 * number}" for number, name in enumerate(CHAPTERS, 1))
SPACED = "\n".join(f"{number}.1 {name} {'. ' * 12}{7 * number}" for number, name in enumerate(CHAPTERS, 1))
NUMBERED = "\n".join(f"{number // 3 + 1}.{number} {name} {5 * number}" for number, name in enumerate(CHAPTERS, 1))
NAMES = "Anchor, 3, 17\nBarrel, 12\nCapstan, 4-6, 31\nLantern oil, 12, 45-47\nRopewalk, 9\nTide, 2, 5, 8\nWreck, 60"
LINKS = "\n".join(f"- [{name}](#{name.lower().replace(' ', '-')})" for name in CHAPTERS)
COMMANDS = r"""\@ifpackageloaded .
. . . . . . . . 352, 384
## A
\advance . . 268, 283, 336
\anchor@oil 22, 26, 30-33
## L
\lantern . . . . . . . . 91
\lantern oil . . . . . .
22, 26, 30, 33, 196,
200, 204
lantern.sty (Package) . . 3, 12
## T
\tide . . . . . . . 44, 45"""
APPENDICES = "\n\n".join(
    f"{letter}.{n}. {name}" for letter, n, name in zip("AAABBCC", "1231212", CHAPTERS, strict=True)
)
FIRST_SECTIONS = "\n\n".join(f"{n}. {name}: {n}.1. Where is it from?" for n, name in enumerate(CHAPTERS, 1))
LONG_QUESTIONS = "\n\n".join(
    f"{n}.1. The {name.lower()} of this harbour is said to be the best of the whole coast, and it is old. Why is it so?"
    for n, name in enumerate(CHAPTERS, 1)
)
YEARS = "\n\n".join(f"4.{n}. {1800 + n}: {name}" for n, name in enumerate(CHAPTERS, 1))
CHINESE = "目录\n\n引言……3\n绳索……9\n灯油……14\n冬季仓库……20\n潮汐……27\n引航员……31"

CONTENTS = {
    "with dots": DOTTED,
    "with spaced dots": SPACED,
    "with numbers of chapters": NUMBERED,
    "below a heading": "# Contents\n\n" + "\n\n".join(f"{name} {5 * n + 3}" for n, name in enumerate(CHAPTERS)),
    "as a table": "# Contents\n\n" + "\n".join(f"{name} | {5 * n + 3}" for n, name in enumerate(CHAPTERS)),
    "without pages": "## Table of contents\n\n" + "\n".join(f"- {name}" for name in CHAPTERS),
    "an index of names": NAMES,
    "an index with references": f"# Index\n\n{NAMES}\nYawl, see Boat",
    "an index of commands": f"# 4 Index\n\n## Symbols\n{COMMANDS}",
    "the end of an index of commands": COMMANDS,
    "an index of one page each": "# 5 Index\n\n"
    + "\n".join(
        f"\\{name} . . . {9 - n}"
        for n, name in enumerate(["anchor@a", "barrel@b", "capstan@c", "lantern oil", "ropewalk@d", "tide@e"])
    ),
    "links": f"# Manual\n\n{LINKS}",
    "Chinese": CHINESE,
    "sections of a web page": "\n".join(f"- {n // 3 + 1}.{n % 3 + 1}. {name}" for n, name in enumerate(CHAPTERS)),
    "questions of a web page": "\n".join(f"{n // 3 + 1}.{n % 3 + 1}. {name}?" for n, name in enumerate(CHAPTERS)),
    "chapters with their first sections": FIRST_SECTIONS,
    "long questions": LONG_QUESTIONS,
    "appendices": APPENDICES,
    "years": YEARS,
    "questions below a heading": "# Contents\n\n" + "\n\n".join(f"What is {name}?" for name in CHAPTERS),
    "an index of small words": "# Index\n\nA | L | T\n\nanchor | anchoring\n\nbarrel | barrels of oil\n\n"
    "capstan\n\nlantern oil | of whales\n\nropewalk | rope",
}
CONTENT = {
    "prices": "Rye ..... 120\nLantern oil ..... 45\nOats ..... 80\nBarley ..... 95\nHemp ..... 12\nTar ..... 30",
    "prices in order with dots": "Barley ... 95\nHemp ... 12\nLantern oil ... 45\nOats ... 80\nRye ... 120\nTar ... 30",
    "sizes": "Hat ... 52, 54\nBoot ... 38, 40, 42\nLantern oil ... 5, 9\nApron ... 2\nSack ... 7, 8\nMug ... 1, 3",
    "prices in order": "Barley, 95\nHemp, 12\nLantern oil, 45\nOats, 80\nRye, 120\nTar, 30",
    "prices as rows": "Rye | 12\nBarley | 15\nLantern oil | 45\nOats | 80\nHemp | 95\nTar | 130",
    "a glossary": "# Index of terms\n\nBarrel: 120 litres.\n\nHemp: a fibre.\n\nLantern oil: oil of whales.\n\n"
    "Tar: from pine.\n\nTide: water that rises.\n\nYawl: a boat.",
    "a timetable": "Oslo 08:15\nBergen 09:20\nLantern oil pier 10:05\nMole 11:40\nBasin 12:10\nCape 13:45",
    "a bibliography": "\n".join(
        f"Smith, J. ({1900 + n}). Lantern oil and its trade. Journal of Rope {n}, {n}-{n + 9}." for n in range(12, 20)
    ),
    "versions": "2.1 Lantern oil added.\n2.0 Ropes added.\n1.9 Tar added.\n1.8 Hemp added.\n1.7 Oats added.",
    "measures": "1.5 litres of lantern oil\n0.5 litres of tar\n2.5 kilos of hemp\n1.1 litres of ale\n3.2 kilos of oats",
    "rules": "\n".join(f"{n}.1 The keepers burn lantern oil at hour {n}." for n in range(1, 8)),
    "a chronicle": "1. Osric 1811\n2. Bettany 1823\n3. Lantern oil 1840\n4. Orlath 1851\n5. Tamsin 1862\n6. Karel 1877",
    "clauses": "\n\n".join(
        f"{n}.1. The tenant shall keep the lantern oil of cellar {n} dry, and shall pay for what is lost of it, unless "
        "a flood of the river took it away, in which case nobody"
        for n in range(1, 8)
    ),
    "a text with few questions": "The keepers sold what they had. " * 9
    + "\n\n4.1. Who sells lantern oil?\n\n4.2. Who buys it?",
    "a box": "# Contents\n\n- 3 barrels of lantern oil\n- 2 ropes\n- 12 nails\n- 4 hooks\n- 1 lamp\n- 5 wicks",
    "a text": f"# Contents\n\n{DOTTED}\n\n" + "The keepers poured lantern oil from barrels each night. " * 20,
}
TEXT = "The keepers bought lantern oil in barrels each autumn, and lantern oil was dear."


def first_hits(index):
    """Return the first chunk that a search by keywords gives, and that one by meaning."""
    keywords, semantic, _ = make_tools(index, names="paper")
    found = []
    for tool, arguments in ((keywords, {"keywords": ["lantern oil"]}), (semantic, {"queries": ["Lantern oil"]})):
        message = tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": arguments})
        found.append(message.artifact["chunk_ids"][0])
    return found


@pytest.mark.parametrize("text", CONTENTS.values(), ids=CONTENTS)
def test_contents_come_behind_what_they_name(make_index, text):
    word = "灯油" if "灯油" in text else "lantern oil"
    index = make_index({"a.md": text, "b.md": TEXT.replace("lantern oil", word)})
    hits = index.keyword_search([word], ranking="bm25").hits
    assert [hit.chunk_id for hit in hits] == ["b.md:0", "a.md:0"]
    assert [hit.chunk_id for hit in index.semantic_search(word, titles_first=True).hits] == ["b.md:0", "a.md:0"]


@pytest.mark.parametrize("text", CONTENT.values(), ids=CONTENT)
def test_lists_that_say_something_are_no_contents(make_index, text):
    index = make_index({"a.md": f"{text}\n", "b.md": f"{TEXT} And so on. {TEXT}"})
    by_score = [hit.chunk_id for hit in index.semantic_search("lantern oil").hits]
    assert [hit.chunk_id for hit in index.semantic_search("lantern oil", titles_first=True).hits] == by_score
    assert index.keyword_search(["lantern oil", "Lantern"], ranking="bm25").hits


TITLE_PAGE = "# A manual\n\nEverybody may copy this manual, and may pass on its copies. " + "It has no warranty. " * 20


@pytest.mark.parametrize("contents", [f"Table of Contents\n\n{FIRST_SECTIONS}", FIRST_SECTIONS])
def test_contents_below_a_title_page_come_behind_what_they_name(make_index, contents):
    index = make_index({"a.md": f"{TITLE_PAGE}\n\n{contents}", "b.md": TEXT})
    hits = index.keyword_search(["lantern oil"], ranking="bm25").hits
    assert [hit.chunk_id for hit in hits] == ["b.md:0", "a.md:0"]
    assert index.semantic_search("Lantern oil", titles_first=True).hits[0].chunk_id == "b.md:0"
    assert index.semantic_search("May everybody copy it?", titles_first=True).hits[0].chunk_id == "a.md:0"


def test_a_document_whose_title_is_in_the_query_does_not_begin_with_its_contents(make_index):
    contents = f"The Harbour Manual 3\n\n{FIRST_SECTIONS}"
    index = make_index(
        [
            {"id": "a", "title": "Harbour Manual 3", "text": contents},
            {"id": "b", "title": "Prices", "text": TEXT},
        ]
    )
    hits = index.semantic_search("Lantern oil in the Harbour Manual 3", titles_first=True).hits
    assert [hit.document_id for hit in hits] == ["b", "a"]


def test_the_papers_ranking_stays_as_it_is(make_index):
    index = make_index({"a.md": f"{NAMES}\nLantern oil, old, 4\nLantern oil, pure, 9", "b.md": TEXT})
    assert [hit.chunk_id for hit in index.keyword_search("lantern oil").hits] == ["a.md:0", "b.md:0"]


def test_contents_are_found_where_nothing_else_is(make_index):
    index = make_index({"a.md": DOTTED, "b.md": TEXT})
    assert [hit.chunk_id for hit in index.keyword_search(["Winter stores"], ranking="bm25").hits] == ["a.md:0"]
    both = index.keyword_search(["Winter stores", "lantern oil"], ranking="bm25").hits
    assert [hit.chunk_id for hit in both] == ["a.md:0", "b.md:0"]


def test_a_line_to_fill_in_does_not_stop_a_search(make_index):
    index = make_index({"a.md": f"Lantern oil, signed: {'_' * 1_500} (name)", "b.md": TEXT})
    began = time.perf_counter()
    assert len(index.keyword_search(["lantern oil"], ranking="bm25").hits) == 2
    assert time.perf_counter() - began < 5


def test_contents_of_pdf_html_and_word_files(tmp_path):
    corpus = write_corpus(tmp_path / "corpus", {"b.md": TEXT})
    canvas = Canvas(str(corpus / "manual.pdf"))
    for place, line in enumerate(["Contents", *SPACED.split("\n")]):
        canvas.drawString(70, 800 - 20 * place, line)
    canvas.save()
    items = "".join(f"<li><a href='#c{n}'>{name}</a></li>" for n, name in enumerate(CHAPTERS))
    (corpus / "manual.html").write_text(f"<h1>Manual</h1><h2>Contents</h2><ul>{items}</ul>")
    word = WordDocument()
    word.add_heading("Contents", 1)
    for number, name in enumerate(CHAPTERS, 1):
        word.add_paragraph(f"{number} {name}\t{number * 4}")
    word.save(corpus / "manual.docx")
    with ingest(corpus, tmp_path / "index", embedder=HashEmbeddings()) as index:
        assert index.info().documents == 4
        assert first_hits(index) == ["b.md:0", "b.md:0"]


# --- contents beside other text ---

FILLER = "The keepers swept the quay and counted what was left of it. " * 12


def chapters(names, text, contents="Table of Contents", number=4):
    """Return a chapter that begins with its contents, as web pages and e-books have it: number, name, dot."""
    listed = [f"{number}.{n}. {name}" for n, name in enumerate(names, 1)]
    sections = [f"## {entry}\n\n{text.get(name, FILLER)}" for entry, name in zip(listed, names, strict=True)]
    return "\n\n".join([f"# Chapter {number}. The harbour", contents, *listed, *sections])


EVENTS = [
    ["What is a ropewalk?", "How do I keep lantern oil dry in winter?", "Who pays the toll?"],
    ["Juli 1802: Osric stirbt", "November 1802: Feuer zerstört das Lampenhaus", "Mai 1804: Neue Tore"],
    ["灯台とは何ですか?", "冬に灯油を乾いたまま保つにはどうしますか?", "通行料は誰が払いますか?"],
]
SAID = [
    "Close the barrels with tar. Move them up before the frost comes.",
    "Am 20. November brannte es. Niemand kam ums Leben.",
    "樽をタールで閉じます。霜の前に上へ運びます。",
]


@pytest.mark.parametrize(("names", "said"), list(zip(EVENTS, SAID, strict=True)), ids=["English", "German", "Japanese"])
def test_an_entry_of_contents_leads_to_its_section_and_is_not_shown(make_index, names, said):
    heading = "Inhaltsverzeichnis" if "Juli" in names[0] else "Table of Contents"
    text = chapters(names, {names[1]: f"{said}\n\n{FILLER}"}, heading)
    index = make_index({"manual.md": text, "b.md": TEXT}, chunk_tokens=150)
    (chunk_id,) = [chunk.id for chunk in index.read(list(index.chunk_ids())).chunks if said[:12] in chunk.text]
    _, semantic, _ = make_tools(index, names="paper")
    queries = {"queries": [f"4.2. {names[1]}"]}
    message = semantic.invoke({"type": "tool_call", "id": "1", "name": semantic.name, "args": queries})
    first = message.content.partition("\n\n")[2].partition("\n\n")[0]
    assert first.startswith(f"[{chunk_id}] (1.00")
    assert said[:11] in first
    assert names[0] not in message.content


def test_an_entry_that_only_names_the_subject_leads_nowhere(make_index):
    names = ["The lantern oil", "The ropewalk", "The tolls"]
    index = make_index({"manual.md": chapters(names, {}), "b.md": TEXT}, chunk_tokens=150)
    hits = index.semantic_search("In which year did the keepers buy lantern oil in barrels?", titles_first=True).hits
    assert hits[0].chunk_id == "b.md:0"


def test_contents_of_a_book_lead_to_sections_of_other_files_in_its_folder(make_index):
    names = ["What is a ropewalk?", "How do I keep lantern oil dry in winter?", "Who pays the toll?", "Who swims?"]
    listed = "\n\n".join(f"{n}.1. {name}" for n, name in enumerate([*names, "Who rows?"], 1))
    index = make_index(
        {
            "book/index.md": f"# The harbour\n\n{listed}",
            "book/oil.md": f"# Oil\n\n## 2.1. {names[1]}\n\nClose the barrels with tar.",
            "another/oil.md": f"# Oil of others\n\n## 7. {names[1]}\n\nSell all of it.",
        }
    )
    first = index.semantic_search(names[1], titles_first=True).hits[0]
    assert first.chunk_id == "book/oil.md:0"


def test_contents_lead_to_sections_of_their_own_document_among_many_alike(make_index):
    names = ["What does the harbour owe?", "What may happen to the harbour?", "Who swims?"]
    reports = {f"report{n}.md": chapters(names, {names[1]: f"It may burn in {n}. {FILLER}"}) for n in range(1890, 1930)}
    index = make_index(reports, chunk_tokens=150)
    hits = index.semantic_search(names[1], 20, titles_first=True).hits
    said = [hit for hit in hits if "It may burn" in hit.chunk.text]
    assert len(said) == 20


def test_a_chunk_with_contents_and_text_is_found_for_its_text(make_index):
    names = ["Lantern oil", "The ropewalk", "The tolls", "The pilots", "The wrecks"]
    text = f"{chapters(names, {})}\n\n## 4.6. Prices\n\nThe keepers bought lantern oil in barrels."
    index = make_index({"manual.md": text})
    (hit,) = index.semantic_search("Where did the keepers buy lantern oil?", titles_first=True).hits
    texts = [hit.chunk.sentence_text(position) for position in hit.similarities]
    assert "The keepers bought lantern oil in barrels." in texts
    assert not any(name in text for name in names for text in texts if not text.startswith("The keepers"))


def test_the_papers_search_by_meaning_keeps_contents(make_index):
    names = ["What is a ropewalk?", "Who pays the toll?", "Who swims?"]
    index = make_index({"manual.md": chapters(names, {})}, chunk_tokens=150)
    assert index.semantic_search(names[1]).hits[0].chunk_id == "manual.md:0"


@pytest.mark.parametrize(
    "text",
    [
        "The crane has these parts:\n\n1.1 Hook\n\n1.2 Chain\n\n1.3 Lantern oil lamp\n\n1.4 Beam\n\n1.5 Wheel",
        "Contents of the box:\n\n- Hook\n\n- Lantern oil\n\n- Rope",
    ],
)
def test_a_short_list_in_a_text_is_found_as_before(make_index, text):
    index = make_index({"a.md": f"# Stores\n\n{FILLER}\n\n{text}\n\n{FILLER}"})
    (hit,) = index.semantic_search("lantern oil", titles_first=True).hits
    nearest = max(hit.similarities, key=hit.similarities.__getitem__)
    assert "antern oil" in hit.chunk.sentence_text(nearest)


def test_an_index_below_a_text_is_found_with_all_its_letters():
    text = "# 3 Sources\n\nThe keepers wrote all of it down in the book of the harbour.\n\n"
    notice = "# 4 Index\n\nNumbers in italics are those of the pages that say what a command does.\n\n"
    entries = f"## Symbols\n{COMMANDS}"
    (found,) = find_lists(text + notice + entries)
    assert (text + notice + entries)[found.start : found.stop] == entries


def test_contents_that_begin_or_end_with_a_part_of_a_book_are_found_beside_its_text():
    notice = "# Harbour rules\n\nThis is the third edition of the rules, which the harbour board has made.\n\n"
    entries = "\n".join(f"- {n // 3 + 1}.{n}. {name}" for n, name in enumerate(CHAPTERS, 1))
    text = "\n\n# 1. Introduction\n\nThe rules hold for all of the ships that lie in the harbour."
    for part in (notice + entries, entries + text, f"of the board\n{entries}{text}"):
        (found,) = find_lists(part)
        assert entries in part[found.start : found.stop]
    assert find_lists(f"{notice}{entries}\n\nAll of it is said to be in force until the summer.") == ()


def test_the_first_section_below_long_contents_is_not_part_of_them():
    entries = "\n".join(f"{number}.1 {name} {5 * number}" for number, name in enumerate(CHAPTERS * 4, 1))
    section = "1.1 Introduction\n\nThe ropewalk of the harbour is as old as the mole, and both are kept by the guild."
    text = f"{entries}\n\n{section}"
    start = text.index(section)
    assert find_lists(text, "", [(0, "Contents"), (start, "1.1 Introduction")]) == (range(start),)
