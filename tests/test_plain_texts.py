"""Plain texts, Markdown and reStructuredText: their lines, pages and headings; e-books."""

from __future__ import annotations

import gzip
import time
import zipfile

import pytest

from arag.ingest.formats import Readers
from arag.ingest.sentences import split_sentences


def headings(text, title="", **options):
    """Return the path of headings above each sentence, by the sentence."""
    sentences = split_sentences(text, title=title, **options)
    return {text[s.start : s.end]: s.heading for s in sentences if s.embedded}


@pytest.mark.parametrize("name", ["a.txt", "a.md"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("这座桥由两个村庄共同\n修建，已经一百年了。\n", "这座桥由两个村庄共同修建，已经一百年了。\n"),
        ("灯台守は毎朝、霧の中で鐘を鳴\nらした。", "灯台守は毎朝、霧の中で鐘を鳴らした。"),
        ("ผู้ดูแลประภาคารตีระฆังทุก\nเช้า", "ผู้ดูแลประภาคารตีระฆังทุกเช้า"),
        ("- 船长带来煤\n  油和面粉。\n", "- 船长带来煤油和面粉。\n"),
        ("> 这座桥由两个村庄共同\n> 修建，已经一百年了。\n", "> 这座桥由两个村庄共同修建，已经一百年了。\n"),
        ("> 床前明月光\n> 疑是地上霜\n", "> 床前明月光\n> 疑是地上霜\n"),
        ("床前明月光\n疑是地上霜\n", "床前明月光\n疑是地上霜\n"),  # the lines of a poem
        ("第一个村庄修建了这座桥。\n第二个村庄修建了水车。\n", "第一个村庄修建了这座桥。\n第二个村庄修建了水车。\n"),
        ("등대지기는 매일 아침 종을\n울렸다.", "등대지기는 매일 아침 종을\n울렸다."),
        ("The harbourmaster and the har-\nbourmaster's dog.", "The harbourmaster and the harbourmaster's\ndog."),
        ("A well-\nknown mill.", "A well-\nknown mill."),
        ("The kee-\n  per is\na keeper.", "The keeper\n  is\na keeper."),
        ("The kee-\n  per\nis a keeper.", "The keeper\nis a keeper."),
        ("  ways to con‐\n  nect to the mill.", "  ways to connect\n  to the mill."),
        ("jeu de carac\u00ad\n  tères, oui", "jeu de caractères,\n  oui"),
        ("It is wind‐\nmade, wind‐made.", "It is wind‐made,\nwind‐made."),
        ("Give --dry‐\nrun or /usr/mes‐\nsages.", "Give --dry‐\nrun or /usr/mes‐\nsages."),
        ("A --kee-\nper of the keeper.", "A --kee-\nper of the keeper."),
        ("Conver-\nsation speci-\nfied.", "Conver-\nsation speci-\nfied."),
    ],
)  # fmt: skip
def test_line_ends_do_not_divide_words(read, name, text, expected):
    assert read(name, text).text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Conver-\nsation speci-\nfied.", "Conversation\nspecified."),
        ("A well-\nmade, long, made well.", "A well-\nmade, long, made well."),
        ("A non-\nzero number.", "A non-\nzero number."),
        ("Buch-\nund Seite.", "Buch-\nund Seite."),
        ("The --kee-\nrand option.", "The --kee-\nrand option."),
    ],
)
def test_a_text_that_divides_words_at_line_ends_divides_others(read, text, expected):
    divided = "The mil-\nls of kee-\npers, keepers of mills.\n\n"
    assert read("a.txt", text).text == text
    assert read("a.txt", f"{divided}{text}").text.strip().endswith(f"\n\n{expected}")


def test_form_feeds_divide_pages(read):
    content = read("a.txt", "Title\n\nOne.\n\fTwo.\n\f\nThree.")
    assert content.text == "Title\n\nOne.\n\nTwo.\n\nThree."
    assert [content.text[start:][:4] for start in content.page_starts] == ["Titl", "Two.", "Thre"]


@pytest.mark.parametrize(
    "line",
    [
        "# rm -r /srv/sluice/old",
        "# 12 on the list of the guild",
        "Buy one which does :)",
        "Never trust a goose with a lantern",
        "Lamps I saw there",
        "# Stand: Sommer, vom Wirt zu prüfen",
        "    # Rye",
        "#Rye",
        "Stand: Sommer, vom Wirt zu prüfen",
        "État: provisoire",
        "Status: closed until spring",
        "We are closed",
        "See the note (below",
    ],
)
def test_a_line_that_is_no_heading_in_a_plain_text(read, line):
    text = read(
        "a.txt", f"Lamps of the coast\n\nFirst text of the page.\n\n{line}\n\nThen the keeper waits for a whole hour."
    ).text
    assert headings(text)["Then the keeper waits for a whole hour."] in {"", "Lamps of the coast"}


LICENCE = """Terms of the Mill

The miller grinds for all.

EXCEPT WHEN OTHERWISE STATED IN WRITING
THE IMPLIED WARRANTIES OF MERCHANTABILITY
ARE NONE.

He grinds no oats.
"""


@pytest.mark.parametrize("name", ["a.txt", "LICENCE", "a.md"])
def test_lines_of_a_paragraph_are_no_headings(read, name):
    content = read(name, LICENCE)
    assert content.headings_apart
    found = headings(content.text, headings_apart=True)
    assert found["He grinds no oats."] in {"", "Terms of the Mill"}


def test_a_section_right_above_its_text_is_a_heading(read):
    text = read("a.txt", "3.5 Grinding by Night\nThe miller grinds by lamp.\n\nHe grinds no oats.\n").text
    assert headings(text, headings_apart=True)["He grinds no oats."] == "3.5 Grinding by Night"


def test_lines_of_a_mail_are_no_headings(read):
    text = "The oats are here.\n\nKind regards\nAnn Lee\nOrra Mill Board\n\nPS: The rye is late.\n"
    content = read("a.eml", f"From: a@b.example\nSubject: Oats\n\n{text}")
    assert content.headings_apart
    assert headings(content.text, headings_apart=True)["PS: The rye is late."] == "Oats"


@pytest.mark.parametrize("line", ["NOBODY", "The Third Man", "He laughed until the mugs rang"])
def test_a_line_apart_in_the_middle_of_a_sentence_is_no_heading(read, line):
    last = "saw him again until all the hay of the whole long and wet month of May was in."
    text = f"The Miller's Debt\n\nIt was Ada who saw him first. Then\n\n{line}\n\n{last}"
    assert headings(read("a.txt", text).text, headings_apart=True)[last] == "The Miller's Debt"


def test_the_index_has_no_such_headings(make_index):
    (chunk,) = make_index({"terms.txt": LICENCE}).mget(["terms.txt:0"])
    assert {sentence.heading for sentence in chunk.sentences} <= {"", "Terms of the Mill"}


def test_numbered_headings_of_a_plain_text():
    text = (
        "1.  Introduction\n\nThe mole shows lamps by night.\n\n2.  Lamps\n\n2.1.  Colours\n\nRed means shut.\n\n"
        "      1. the red one first\n      2. then the green one\n\n3.  Balls\n\nTwo balls: wait.\n\n"
    )
    found = headings(text)
    assert found == headings(text, headings_apart=True)
    assert found["The mole shows lamps by night."] == "1. Introduction"
    assert found["Red means shut."] == "2.1. Colours"
    assert found["2. then the green one"] == "2.1. Colours"
    assert found["Two balls: wait."] == "3. Balls"


@pytest.mark.parametrize("heading", ["4.2 Oats", "4.1.1 Oats", "5.1 Oats"])
@pytest.mark.parametrize("short", ["Sold out :)", "We are closed (for now)", "sold out today"])
def test_a_section_with_the_next_number_is_a_heading_also_above_a_short_line(heading, short):
    before = "5. Rye\n\n" if heading.startswith("5") else "4. Wares\n\n4.1 Rye\n\n"
    text = f"{before}Rye is ground on Mondays.\n\n{heading}\n\n{short}\n\nOats are ground on Fridays."
    assert headings(text, headings_apart=True)["Oats are ground on Fridays."].endswith(heading)
    assert headings(text, headings_apart=True)[short].endswith(heading)


@pytest.mark.parametrize("line", ["4.3 Oats", "4.2 tons of oats", "2.5 Oats", "4.2 Oats are 12 marks"])
def test_a_line_with_another_number_above_a_short_line_is_text(line):
    text = f"4. Wares\n\n4.1 Rye\n\nRye is ground on Mondays.\n\n{line}\n\nSold out :)\n\nThey are ground again."
    assert headings(text, headings_apart=True)[line] == "4.1 Rye"


def test_short_clauses_with_numbers_are_text():
    text = "4. Wares\n\nThe mill sells these.\n\n4.1 Rye\n\n4.2 Oats\n\n4.3 Hemp\n\nAsk us :)"
    found = headings(text, headings_apart=True)
    assert found == dict.fromkeys(found, "4. Wares")


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("1. Way\n\nUp.\n\nFares\n-----\n\n9 marks.\n\n2. Oats\n\nThey are late.", "2. Oats"),
        ("2.9 Way\n\nUp.\n\nFares\n=====\n\n9 marks.\n\n2.10 Oats\n\nThey are late.", "2.10 Oats"),
        ("Food\n====\n\n1. Way\n\nUp.\n\nFares\n-----\n\n9 marks.\n\n1.1 Oats\n\nThey are late.", "Food > 1.1 Oats"),
        ("East\n----\n\n1. Way\n\nUp.\n\nWest\n----\n\nDown.\n\n2. Oats\n\nThey are late.", "West > 2. Oats"),
        ("3. Way\n\nUp.\n\nAnnex\n=====\n\nDown.\n\n1. Oats\n\nThey are late.", "Annex > 1. Oats"),
    ],
)
def test_an_underlined_heading_between_two_numbers_is_not_above_the_second(read, text, heading):
    content = read("a.txt", f"Orra Mill\n\nThe mill has rules.\n\n{text}\n")
    assert headings(content.text, headings_apart=True)["They are late."] == heading


@pytest.mark.parametrize(
    "items",
    ["1. Rye\n2. Oats", "1. Rye\n\n2. Oats", "1. Rye is ground\n\n2. Oats are sold", "- Rye\n\n2. Oats"],
)
def test_items_of_a_list_are_no_headings(items):
    found = headings(f"Wares of the mill\n\nThe mill has two wares.\n\n{items}\n\nThey are sold on the quay.\n")
    assert found["They are sold on the quay."] == "Wares of the mill"


@pytest.mark.parametrize(
    "line",
    [
        "History of the mill",
        "3.4 Products",
        "THE KEEPERS",
        "How we light the lamp",
        "Copyright and Licence",
        "I. The mule",
        "Part I",
        "The Keep I",
    ],
)
def test_a_line_that_is_certainly_a_heading(line):
    text = f"First text of the page.\n\n{line}\n\nThen the keeper waits for a whole hour."
    assert headings(text)["Then the keeper waits for a whole hour."] == line


@pytest.mark.parametrize(
    "line",
    [
        "Northfold, 3 May 1880",
        "by o.felisk, 12:30",
        "we are closed",
        "Copyright © 1999 Ann Lee, Odvar Felisk",
        "Copyright 1999 Ann Lee",
        "(C) Ann Lee",
        "All rights reserved",
        "(c) 1999 Ann Lee",
    ],
)
def test_a_line_above_a_text_that_is_no_heading_is_a_sentence(line):
    text = f"# Motion\n\n{line}\n\nThen the keeper waits for a whole hour at the gate."
    assert headings(text)[line] == "Motion"


@pytest.mark.parametrize("line", ["Part (c) of the Dues", "Copyright in Northfold"])
def test_a_title_that_is_no_notice_of_rights(read, line):
    text = read(
        "a.txt", f"Laws of the coast\n\nFirst text of the page.\n\n{line}\n\nThen the keeper waits an hour."
    ).text
    assert headings(text)["Then the keeper waits an hour."] == line


def test_a_plain_text_with_markdown_keeps_its_headings(read):
    text = read("a.txt", "# Lamps\n\nText of it.\n\n## Oil\n\nThe oil costs six marks.\n").text
    assert headings(text)["The oil costs six marks."] == "Lamps > Oil"


@pytest.mark.parametrize("name", ["a.md", "a.txt"])
def test_underlined_headings(read, name):
    text = read(name, "Lamps\n=====\n\nText of it.\n\nOil\n---\n\nThe oil costs six marks.\n").text
    assert headings(text)["The oil costs six marks."] == "Lamps > Oil"


@pytest.mark.parametrize(
    "top",
    [
        "Lamps of Orlath\n---------------",
        "Lamps of Orlath\n===============",
        "***************\nLamps of Orlath\n***************",
        "\n\n      Lamps of Orlath\n      ===============",
        "\n                Lamps of Orlath\n",
    ],
)
def test_the_title_of_a_plain_text_is_its_first_line_also_if_that_is_underlined(read, top):
    content = read("a.txt", f"{top}\n\nThe oil costs six marks.\n")
    assert content.title == "Lamps of Orlath"
    sentences = split_sentences(content.text, title=content.title)
    assert {sentence.heading for sentence in sentences} == {""}


@pytest.mark.parametrize(
    "top",
    [
        ">\n\n",
        "The oil costs six marks.\n\n",
        "The oil costs\nsix marks.\n",
        "----\n\nOil\n",
        "DESCRIPTION\n\nThe oil costs six marks.\n\n",
    ],
)
def test_other_first_lines_of_a_plain_text_are_no_title(read, top):
    assert read("a.txt", f"{top}\nThey sail.\n").title == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", "<h1>Lamps</h1><pre>{}</pre><p>The oil costs six marks."),
        ("a.eml", "Subject: Lamps\n\n{}\n\nThe oil costs six marks."),
        ("a.yaml", "{}\n\n# The oil costs six marks."),
        ("a.txt", "Lamps\n\n* {}\n\nThe oil costs six marks."),
    ],
)
@pytest.mark.parametrize("listing", ["Night 31\n=====\nhorn", "night: 31\n---\nhorn: 2"])
def test_an_underlined_line_is_no_heading_in_other_texts(read, name, text, listing):
    content = read(name, text.format(listing))
    first, _, last = listing.split("\n")
    sentences = split_sentences(content.text, title=content.title, is_code=content.is_code)
    shown = [content.text[s.start : s.end] for s in sentences if s.embedded]
    assert any(first in sentence for sentence in shown)
    assert not any("ight" in sentence.heading for sentence in sentences)
    assert last in content.text


def test_comments_and_code_of_markdown(read):
    code = "```html\n<!-- kept -->\n# no heading\n```"
    text = read(
        "a.md", f"# Lamps\n\n<!-- todo:\nsecret -->\nText of it.\n\n{code}\n\n\t# tab\n\nThe end of it all."
    ).text
    assert "secret" not in text
    assert code in text
    assert headings(text)["The end of it all."] == "Lamps"


def test_a_line_between_two_rules_is_a_heading(read):
    text = read(
        "a.txt", "=====\nLamps\n=====\n\nText of it.\n\n-----\n [oil]\n-----\n\nThe oil costs six marks.\n"
    ).text
    assert headings(text)["The oil costs six marks."] == "Lamps > [oil]"
    table = read(
        "a.txt", "==========\nRye   Oats\n==========\n4     5\n\n==========\nTea   Salt\n==========\n6     7\n"
    ).text
    assert "#" not in table


def test_where_many_headings_are_underlined_other_short_lines_are_none(read):
    sections = "\n".join(f"{name}\n=====\n\nIt is long and has a full stop.\n" for name in ["Lamps", "Wicks", "Ships"])
    names = "Thanks\n======\n\nThanks to all.\n\nOdvar Felisk for the lamps\n\nThey helped us in all these years.\n"
    content = read("a.txt", f"{sections}\n{names}")
    found = headings(content.text, guess_headings=not content.marks_headings)
    assert found["They helped us in all these years."] == "Thanks"


def test_a_text_that_is_restructured_though_its_name_does_not_say_so(read):
    source = ".. include:: head.txt\n\n======\n Oil_\n======\n\n.. note:: Ask first.\n\nWicks\n-----\n\nOf cotton.\n"
    content = read("a.txt", source)
    assert content.title == "Oil"
    assert headings(content.text)["Of cotton."] == "Oil > Wicks"
    assert "Note: Ask first." in content.text
    numbered = read("pep-0001.txt", f"PEP: 1\nTitle: Lamps of Orlath\n\nAbstract\n========\n\n.. _a: b\n\n{source}")
    assert numbered.title == "Lamps of Orlath"


def test_titles_of_restructured_text(read):
    text = read(
        "a.rst",
        "=====\nLamps\n=====\n\nText of it.\n\nOil\n~~~\n\nThe oil costs six marks.\n\n.. note:: Ask first.\n\n"
        "Wicks\n^^^^^\n\nThey are of cotton.\n\nShips\n~~~~~\n\nThey sail.\n\n"
        "====  ====\nRye   Oats\n====  ====\n4     5\n====  ====\n\n::\n\n  # sell --all\n\nThey are sold.\n",
    ).text
    found = headings(text)
    assert found["The oil costs six marks."] == "Lamps > Oil"
    assert found["They are of cotton."] == "Lamps > Oil > Wicks"
    assert found["They sail."] == "Lamps > Ships"
    assert found["They are sold."] == "Lamps > Ships"
    assert "\n\nNote: Ask first.\n\n" in text


@pytest.mark.parametrize(
    "table",
    [
        '.. csv-table::\n   :header: "Oil", "|Old| price"\n   :widths: auto\n\n   "A", "``$two``"\n   B, 3',
        ".. csv-table::\n   :header-rows: 1\n\n   Oil, Old price\n   A, $two\n   B, 3",
        ".. list-table::\n :header-rows: 1\n\n * - Oil\n   - Old\n     price\n * - A\n   - $two\n * - B\n   - 3",
        "===  =====\nOil  Old\n     price\n===  =====\nA    $two\nB    3\n===  =====",
        "+---+-----+\n|Oil|Old  |\n|   |price|\n+===+=====+\n| A |$two |\n+---+-----+\n| B | *3* |\n+---+-----+",
    ],
)
@pytest.mark.parametrize("margin", ["", "   "])
def test_tables_of_restructured_text(make_index, table, margin):
    text = "\n".join(f"{margin}{line}" for line in table.split("\n"))
    index = make_index({"a.rst": f"Lamps\n=====\n\nThey burn.\n\n{text}\n\nThey shine.\n"})
    (chunk,) = index.mget(["a.rst:0"])
    sentences = [chunk.text[s.start : s.end] for s in chunk.sentences]
    rows = ["Oil | Old price", "Oil: A | Old price: $two", "Oil: B | Old price: 3"]
    assert sentences == ["# Lamps", "They burn.", *rows, "They shine."]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (".. warning::\n\n   It is hot.", "Warning:\n   It is hot."),
        (".. code-block:: sh\n   :linenos:\n\n   sell --all", "   sell --all"),
        (".. image:: lamp.png\n   :width: 9\n   :alt: A lamp", "A lamp"),
        (".. toctree::\n   :maxdepth: 2\n\n   oil\n   wicks", ""),
        (".. versionadded:: 3.2", "New in version 3.2."),
        (".. versionchanged:: 3.2 It is bright.", "Changed in version 3.2: It is bright."),
        (".. keel:: oak\n   :size: 4", ".. keel:: oak\n   :size: 4"),
        ("Write::\n\n   .. note:: Oil", "Write::\n\n   .. note:: Oil"),
        ("== ==\nA  B", "== ==\nA  B"),
    ],
)
def test_directives_of_restructured_text(read, source, shown):
    text = read("a.rst", f"They burn.\n\n{source}\n\nThey shine.\n").text
    assert text.removeprefix("They burn.").removesuffix("They shine.\n").strip("\n") == shown


OPF = (
    "<package xmlns='http://www.idpf.org/2007/opf'><metadata xmlns:dc='http://purl.org/dc/elements/1.1/'>"
    "<dc:title>Lamps</dc:title><dc:creator>Ann Lee</dc:creator><dc:date>1880-05-03</dc:date></metadata><manifest>"
    "<item id='n' href='nav.xhtml' media-type='application/xhtml+xml' properties='nav'/>"
    "<item id='b' href='text/b%20b.xhtml' media-type='application/xhtml+xml'/>"
    "<item id='a' href='text/a.xhtml' media-type='application/xhtml+xml'/></manifest>"
    "<spine><itemref idref='n'/><itemref idref='b'/><itemref idref='a'/></spine></package>"
)


def book(path, first, second, **more):
    files = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": "<container><rootfiles><rootfile full-path='O/c.opf'/></rootfiles></container>",
        "O/c.opf": OPF,
        "O/nav.xhtml": "<html><body><nav>Contents</nav></body></html>",
        "O/text/b b.xhtml": f"<?xml version='1.0'?><html><head><title/></head><body>{first}</body></html>",
        "O/text/a.xhtml": f"<html><body>{second}</body></html>",
        **more,
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_an_ebook_is_read_chapter_by_chapter_like_web_pages(readers, tmp_path):
    path = book(
        tmp_path / "a.epub",
        "<h1>One</h1><p hidden='hidden'>Secret</p><p>10<sup>6</sup> grains.</p><a id='x'/><pre># rm -r old</pre>",
        "<h1>Two</h1><aside>A note at the edge.</aside><img alt='A mill in snow'/>",
    )
    content = readers.read(path)
    assert content.text == "# One\n\n10^6 grains.\n\n    # rm -r old\n\n# Two\n\nA note at the edge.\n\nA mill in snow"
    assert (content.title, dict(content.metadata)) == ("Lamps", {"author": "Ann Lee", "date": "1880-05-03"})


def test_a_file_whose_places_are_chapters_of_an_ebook_is_read_once(readers, tmp_path):
    items = "<item id='{0}' href='text/a.xhtml#{0}' media-type='application/xhtml+xml'/>"
    package = OPF.replace("</manifest>", f"{items.format('c')}{items.format('d')}</manifest>")
    package = package.replace("</spine>", "<itemref idref='c'/><itemref idref='d'/></spine>")
    content = readers.read(book(tmp_path / "a.epub", "<p>One.</p>", "<p>Two.</p>", **{"O/c.opf": package}))
    assert (content.text, content.damage) == ("One.\n\nTwo.", ())


@pytest.mark.parametrize(("start", "title"), [("<h1>All our lamps</h1>", "All our lamps"), ("<p>x</p>", "")])
def test_the_name_of_its_file_is_no_title_of_an_ebook(readers, tmp_path, start, title):
    assert readers.read(book(tmp_path / "Lamps.epub", start, "<p>The mill stands.</p>")).title == title


@pytest.mark.parametrize(
    ("note", "seen"),
    [("Ibid.", "Ibid."), ("Only since 1911", "Only since 1911"), ("<a href='#n'>1</a> See above", "1 See above")],
)
def test_a_short_note_of_an_ebook(readers, tmp_path, note, seen):
    path = book(
        tmp_path / "a.epub", f"<p>One flash means fog.</p><aside>{note}</aside>", "<footer>Bergen, 1912</footer>"
    )
    text = readers.read(path).text
    assert text == f"One flash means fog.\n\n{seen}\n\nBergen, 1912"


@pytest.mark.parametrize("picture", ["<img src='p.jpg' alt=''/>", "<svg><image href='p.jpg'/></svg>"])
def test_a_chapter_that_is_a_picture_is_named(readers, tmp_path, picture):
    path = book(tmp_path / "a.epub", "<p>The mill stands.</p>", f"<div>{picture}</div>")
    assert readers.read(path).left_out == ("1 of 2 chapters, which is a picture (scanned?)",)
    scanned = book(tmp_path / "b.epub", picture, picture)
    assert readers.read(scanned).left_out == ("2 of 2 chapters, which are pictures (scanned?)",)


def test_a_cover_and_a_picture_beside_text_are_not_named(readers, tmp_path):
    picture = "<img src='p.jpg' alt=''/>"
    path = book(tmp_path / "a.epub", picture, f"<p>The mill stands.</p>{picture}")
    assert readers.read(path).left_out == ()


def test_an_ebook_that_is_protected_says_so(readers, tmp_path):
    encryption = "<encryption><CipherData><CipherReference URI='O/text/a.xhtml'/></CipherData></encryption>"
    path = book(tmp_path / "a.epub", "<p>x", "<p>y", **{"META-INF/encryption.xml": encryption})
    with pytest.raises(ValueError, match="protected against copying"):
        readers.read(path)


def test_comments_without_an_end_and_comments_before_a_page_cost_no_more_than_they_are_long(read):
    """The time of patterns that try all ways to read these would double with each comment, or grow with the square."""
    open_comments = "<!-- a\n" * 200_000
    assert read("a.md", f"# Lamps\n\n{open_comments}").text.count("<!-- a") == 200_000
    assert read("b.txt", f"{'<!---->' * 60}The oil costs six marks.").text.endswith("six marks.")


def test_attributes_of_headings_and_comments_of_notes_and_sites_are_not_shown(read):
    text = read(
        "a.md",
        "# Weather station {#station .wide}\n\nIt stands.\n\n## Reading it {: .no_toc data-x='a b' }\n{:.lead}\n"
        "\nRead it.\n\nIncome {#sec:income .unnumbered}\n======\n\nAll of it.\n\n%% ask Odo %%\n\n"
        "%%\nstill\nhidden\n%%\n"
        "\n{% comment %} later {% endcomment %}\n\n{% highlight sh %}\n# wind it\nwind\n{% endhighlight %}\n"
        "\n## GET /gates/{no}\n\nReturns 100%% of it, or 5%% more.\n",
    ).text  # fmt: skip
    above = headings(text)
    assert above["It stands."] == "Weather station"
    assert above["Read it."] == "Weather station > Reading it"
    assert above["All of it."] == "Income"
    assert above["Returns 100%% of it, or 5%% more."] == "Income > GET /gates/{no}"
    assert "# wind it\nwind" in text
    for unseen in ("lead", "Odo", "hidden", "later", "highlight"):
        assert unseen not in text


@pytest.mark.parametrize(
    "code",
    ["```\n# Old {#old}\n%% a %%\n<h1>b</h1>\n```", "~~~ruby\n{:.lead}\n{% comment %} c {% endcomment %}\n~~~"],
)
def test_code_of_markdown_stays(read, code):
    assert code in read("a.md", f"# Gauge {{#gauge}}\n\n{code}\n").text


@pytest.mark.parametrize(
    ("heading", "shown"),
    [
        ("## 3\\. Oats \\& rye\\_flour", "3. Oats & rye_flour"),
        ("### \\[Draft\\] C\\#", "[Draft] C#"),
        ("## \\#3 and C#", "#3 and C#"),
        ("## Oats ##", "Oats"),
        ("Rye \\*raw\\*\n-----------", "Rye *raw*"),
        ("## Set `a\\_b` to C:\\mill", "Set `a\\_b` to C:\\mill"),
        ("## **Oats**", "Oats"),
        ("## **Oats** (raw), **Rye `a.b`**", "Oats (raw), Rye `a.b`"),
        ("## [2.1](https://mill.example/2.1) - 1881-05-02", "2.1 - 1881-05-02"),
        ("**[Oats](oats.md)**\n-------------------", "Oats"),
        ("## Set `[a](b)` and `**c**`", "Set `[a](b)` and `**c**`"),
        ("## [![Oats](oats.svg)](https://mill.example) of Orra", "Oats of Orra"),
        ("## [<img src='oats.svg' alt='Oats'>](https://mill.example)", "Oats"),
        ("## 2 ** 3 and 4 ** 5", "2 ** 3 and 4 ** 5"),
    ],
)
def test_headings_of_markdown_have_no_marks(read, heading, shown):
    text = read("a.md", f"# Mill\n\nFirst text.\n\n{heading}\n\nThey cost 5\\* marks.\n").text
    assert headings(text, title="Mill")["They cost 5\\* marks."] == shown


@pytest.mark.parametrize("anchor", ['<a id="oats"></a>', '<a name="oats"/>', "<span id='oats'></span>"])
def test_an_anchor_of_markdown_shows_nothing(read, anchor):
    content = read("a.md", f"# Mill {anchor}\n\n## Oats  {anchor}\n\nUse `{anchor}` and <a href='b'>this</a>.\n")
    assert content.title == "Mill"
    assert content.text.strip() == f"# Mill\n\n## Oats\n\nUse `{anchor}` and <a href='b'>this</a>."


def test_news_in_outline_mode_has_headings_and_items(read):
    text = (
        "Mill NEWS   -*- outline -*-\n\n* Changes in 2.1\n\n** Bug fixes\n\n  The wheel turns again.\n\n"
        "* Changes in 2.0\n\n** The sluice opens at night\n\n** Oats are milled\n\n* Changes in 1.0\n\n** Rye\n"
    )
    found = headings(read("NEWS", text).text)
    assert found["The wheel turns again."] == "Changes in 2.1 > Bug fixes"
    assert found["** The sluice opens at night"] == "Changes in 2.0"
    assert found["** Oats are milled"] == "Changes in 2.0"
    assert found["** Rye"] == "Changes in 1.0"
    items = "* The first\n\nIt goes on.\n\n* The second\n\nSo does it.\n"
    assert headings(read("a.txt", items).text)["It goes on."] == ""


def test_a_title_of_a_text_has_no_colon_at_its_end(read):
    assert (
        read("a.txt", "Mill release history:\n=====================\n\nIt turns again.\n").title
        == "Mill release history"
    )


def test_a_setting_is_no_heading(read):
    text = read("a.txt", "The file of settings:\n\nUSE_SYSLOG=y\n\nIt writes what the mill does.\n").text
    assert headings(text)["It writes what the mill does."] == ""


def test_a_title_of_markdown_has_no_escapes(read):
    assert read("a.md", "# Oats \\& rye\n\nText.\n").title == "Oats & rye"


def test_headings_of_markdown_in_html_or_with_a_short_line_below(read):
    content = read(
        "a.md",
        '<h1 align="center">\n  <img src="l.svg" alt="Logo"><br>\n  Weir <b>watch</b>\n</h1>\n\nOpen.\n\n'
        "A long title of a part\n---\n\nShut.\n\nThis is the end.\n---\n\n- An item\n---\n\n<h2><img src='x'></h2>\n",
    )
    assert content.title == "Weir watch"
    above = headings(content.text)
    assert above["Open."] == "Weir watch"
    assert above["Shut."] == "Weir watch > A long title of a part"
    assert above["This is the end."] == "Weir watch > A long title of a part"
    assert above["- An item"] == "Weir watch > A long title of a part"


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("N\bNA\bAM\bME\bE\n     The _\bw_\bi_\bc_\bk is +\bo red.", "NAME\n     The wick is o red."),
        ("\x1b[1mNAME\x1b[0m\n     The \x1b[4mwick\x1b[24m is red.", "NAME\n     The wick is red."),
        ("\x1b]8;;man:wick(1)\x1b\\wick(1)\x1b]8;;\x1b\\ is read.", "wick(1) is read."),
    ],
)
def test_letters_printed_twice_and_colours_of_a_terminal(read, printed, shown):
    assert read("a.txt", printed).text == shown


@pytest.mark.parametrize("number", ["[Page {}]", "Page {}", "| {}", "Seite {} von 4"])
def test_heads_and_feet_of_a_plain_text_are_read_once(read, number):
    pages = []
    for page, line in enumerate(["The lamp is lit.", "It is trimmed.", "Status: open", "Oil is dear."], 1):
        foot = f"Garrow        Memo        {number.format(page)}"
        pages.append(f"Lanterns across the Sound        April\n\n{line}\nStatus: open\n\n{foot}\n")
    text = read("a.txt", "\n\f\n".join(pages)).text
    assert text.count("Lanterns across") == 1
    assert text.count("Garrow") == 1
    assert text.count("Status: open") == 5  # an answer on each page
    assert "Oil is dear." in text


def test_records_between_form_feeds_keep_the_lines_that_they_have_in_common(read):
    names = ["Odvar", "Orsolya", "Ann", "Tamsin"]
    records = [f"Ward: North\nPatient: {name}\n\n{name} has a cough.\n\nSigned: Dr. Felisk\n" for name in names]
    text = read("a.txt", "\f".join(records)).text
    assert text.count("Ward: North") == text.count("Signed: Dr. Felisk") == 4


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", 3 * ("Head" + 200_000 * "," + "\n\nText.\n\f")),
        ("a.md", 40_000 * "{% highlight sh %}\n"),
        ("a.md", "# " + 200_000 * "\\" + "\n\n# " + 200_000 * "`" + "\n" + 200_000 * "\\" + "\n--"),
        ("a.md", "{% highlight" + 200_000 * " " + "\n\nText."),
    ],
)
def test_marks_without_an_end_are_read_at_once(read, name, text):
    began = time.process_time()
    assert read(name, text).text
    assert time.process_time() - began < 20  # trying each mark from each other one takes minutes


def test_marks_of_a_site_in_a_sentence_are_text(read):
    sentence = "Put `{% comment %}` before a note and `{% endcomment %}` after it."
    assert read("a.md", sentence).text == sentence


@pytest.mark.parametrize(
    "comment",
    [".. seen by nobody\n", "..\n   seen by nobody\n\n   nor seen\n", ".. note: seen\n   nobody\n", ".. seen"],
)
def test_comments_of_restructured_text_are_not_shown(read, comment):
    text = read("a.rst", f"Kites\n=====\n\nLet go.\n\n{comment}").text
    assert text.strip() == "# Kites\n\nLet go."


@pytest.mark.parametrize(
    "shown",
    [
        ".. |speed| replace:: twelve knots",
        ".. [1] He saw it.",
        ".. _kites: https://kites.example",
        "An example::\n\n    .. a comment in it",
        "..\n\n    A quotation.",
    ],
)
def test_parts_of_restructured_text_that_are_no_comments(read, shown):
    assert shown in read("a.rst", f"Kites\n=====\n\n{shown}\n\nEnd.\n").text


@pytest.mark.parametrize("name", ["a.rst", "a.rst.txt"])
@pytest.mark.parametrize(
    ("title", "shown"),
    [
        (":mod:`kites` --- Ways to fly", "kites --- Ways to fly"),
        ("The :py:class:`~wind.Kite` and :ref:`its line <line>`", "The wind.Kite and its line"),
        ("At 10:30:`now`", "At 10:30:`now`"),
    ],
)
def test_roles_in_titles_of_restructured_text(read, name, title, shown):
    content = read(name, f"{title}\n{80 * '='}\n\nLet go.\n")
    assert (content.title, content.text.strip()) == (shown, f"# {shown}\n\nLet go.")


@pytest.mark.parametrize(
    ("directive", "shown"),
    [
        (".. exception:: NoWind", "exception NoWind"),
        (".. py:function:: stop(now)", "function stop(now)"),
        ("An example::\n\n    .. class:: Kite", "    .. class:: Kite"),
    ],
)
def test_what_restructured_text_describes(read, directive, shown):
    text = read("a.rst", f"Kites\n=====\n\n{directive}\n\n   Let go.\n").text
    assert shown in text.split("\n")


def test_titles_of_a_manual_page_stand_right_above_text_that_is_set_in(read):
    page = "WICK(1)\n\nNAME\n       wick - trims\n\nEXIT STATUS\n       It is 0.\n\nRETURN VALUE\n    Read oil(1).\n\n"
    above = headings(read("a.txt", page).text)
    assert above["It is 0."] == "EXIT STATUS"
    assert above["Read oil(1)."] == "RETURN VALUE"


@pytest.mark.parametrize("middle", ["User Commands", "Commandes de l'utilisateur", "Dienstprogramme für Benutzer", ""])
def test_headings_of_a_printed_manual_page_are_at_the_edge_in_any_language(read, middle):
    page = (
        f"WICK(1)\t\t{middle}\t\tWICK(1)\n\n名前\n       wick - trims\n\n"
        "ÜBERSICHT (SYNOPSIS)\n   Kürzen\n       wick -t\n\n       Oil comes first.\n\n# wick\n\n"
        "SEE ALSO\n       It names oil(1).\n\nwick 2.1\t\t1881\t\tWICK(1)\n"
    )
    content = read("a.txt", page)
    above = headings(content.text, content.title, guess_headings=not content.marks_headings)
    assert content.title == "wick(1)"
    assert above == {
        "wick - trims": "名前",
        "wick -t": "ÜBERSICHT (SYNOPSIS) > Kürzen",
        "Oil comes first.": "ÜBERSICHT (SYNOPSIS) > Kürzen",
        "# wick": "ÜBERSICHT (SYNOPSIS) > Kürzen",
        "It names oil(1).": "SEE ALSO",
    }


ASCIIDOC = (
    "Content-type: text/asciidoc\nAbstract: How the lamp is kept,\n in all weathers.\n\nKeeping the lamp\n"
    "================\n\nIt burns by night.\n\n[[oil]]\nOil\n---\n\nTrim it first.\n\nPrices\n~~~~~~\n\nSix marks.\n\n"
    "-----------\nfill\n\nlamp --all\n-----------\n\nCash only.\n\nWicks\n^^^^^\n\n"
    "[NOTE]\n====\nThey are of cotton.\n====\n"
)


@pytest.mark.parametrize(
    ("directive", "shown"),
    [
        (
            ".. list-table::\n   :header-rows: 1\n\n   - - Name\n     - Price\n   - - Oats\n     - 12",
            "Name: Oats | Price: 12",
        ),
        (".. math:: E = mc^2", "E = mc^2"),
        (".. code-block:: python\n   :caption: Settings\n\n   x = 1", "Settings"),
    ],
)
def test_no_argument_of_a_directive_is_lost(read, directive, shown):
    assert shown in read("a.rst", f"Kites\n=====\n\n{directive}\n\nLet go.\n").text.split("\n")


@pytest.mark.parametrize(
    "part",
    [
        "== ==\nx\n",
        "+-+\n\n",
        '.. csv-table::\n\n   "' + "x" * 140_000 + "\n\n",
        ".. csv-table::\n   :header-rows: " + "9" * 5_000 + "\n\n   a,b\n\n",
    ],
)
def test_damaged_tables_of_restructured_text_are_text(read, part):
    assert "The lamp burns." in read("a.rst", f"Lamps\n=====\n\nThe lamp burns.\n\n{4 * part}").text


@pytest.mark.parametrize("line", ["Alice: this is what I say\n", "1. Lamps" + 200 * " " + "x\n"])
def test_lines_of_a_talk_or_of_columns_are_read_at_once(read, line):
    assert read("talk.txt", 60 * line).text.count(line.strip()) == 60  # each line once took twice as long as the last


def test_titles_of_asciidoc_are_headings_and_the_lines_around_code_are_not(read):
    content = read("a.txt", ASCIIDOC)
    assert content.title == "Keeping the lamp"
    found = headings(content.text, content.title, headings_apart=True)
    assert found["Trim it first."] == "Oil"
    assert found["Cash only."] == "Oil > Prices"
    assert found["They are of cotton."] == "Oil > Prices > Wicks"


def test_characters_of_asciidoc_stand_for_their_names_and_anchors_are_not_shown(read):
    text = "lamp{litdd}oil(1)\n=================\n\n[verse]\n'lamp {startsb}-n{endsb}' HEAD{caret} \\{plus}\n\n"
    content = read("a.txt", f"{text}OPTIONS[[OPTIONS]]\n------------------\nIt burns.\n\n-n::\n\tNo oil.\n")
    assert content.title == "lamp--oil(1)"
    assert "'lamp [-n]' HEAD^ \\{plus}" in content.text
    assert headings(content.text, content.title)["It burns."] == "OPTIONS"
    assert "{plus}" in read("b.txt", "A price {plus} tax.\n").text


@pytest.mark.parametrize("rule", ["------------", "....", "[listing]\n----"])
def test_lines_in_a_listing_of_asciidoc_are_no_headings(read, rule):
    start, end = rule, rule.rpartition("\n")[2]
    listing = f"{start}\n Keep the lamp\n\n Oil is kept\n in the two jars. Trim it.\n{end}\n"
    content = read("a.txt", f"The Lamp\n========\n\nOil\n---\n\nIt says:\n\n{listing}\nCash only.\n")
    assert set(headings(content.text, content.title, headings_apart=True).values()) == {"Oil"}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (f"{'Lamp ' * 19}Houses of Orlath", f"{'Lamp ' * 19}".strip() + "…"),
        ("灯" * 101, "灯" * 99 + "…"),
        (f"2.1 {'灯' * 101}", f"2.1 {'灯' * 95}…"),
        ("L" * 100, "L" * 100),
    ],
)
def test_a_heading_that_is_too_long_ends_after_a_word(name, shown):
    assert headings(f"# {name}\n\nIt burns.")["It burns."] == shown


@pytest.mark.parametrize("sent", ["", "Message-ID: <1@mill.example>\n"])
def test_a_text_with_a_markup_and_a_sender_is_no_email(read, sent):
    content = read("a.txt", f"From: Ann Lee <a@mill.example>\nSubject: Re: lamps\n{sent}{ASCIIDOC}")
    assert content.title == "Keeping the lamp"
    assert headings(content.text, content.title)["Cash only."] == "Oil > Prices"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("= The Lamp\n\n== Oil\n\nSix marks.\n", "The Lamp"),
        ("Format: complete\nTitle: The Lamp\n\nOil\n---\n\nSix marks.\n", "The Lamp"),
        ("Subject: The Lamp\nDate: 3 May 1880\n\nOil is dear.\n\nSix marks.\n", "The Lamp"),
        ("Subject: Oil\n\nThe Lamp\n--------\n\nSix marks.\n", "The Lamp"),
        ("The Lamp\n=-=-=-=-\n\nSix marks.\n", "The Lamp"),
        ("The Lamp: A History\n\nSix marks.\n", "The Lamp: A History"),
        ("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQGiBDyl5ZwR\nBACk\n", ""),
        ("1880-05-03  Ann Lee <a@mill.example>\n\n* The lamp burns.\n", ""),
        ("See https://mill.example/lamp\n\nSix marks.\n", ""),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "README"])
def test_the_title_of_a_plain_text_may_be_marked_or_named_above_it(read, name, text, title):
    assert read(name, text).title == title


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("====== Lamps ======\n\nThey burn.", "# Lamps\n\nThey burn."),
        ("====== Lamps =======\n\nThey burn.\n\n===== Oil =====", "# Lamps\n\nThey burn.\n\n## Oil"),
        ("====== Lamps ======\n\n===== Oil =====\n\n==== Old ====", "# Lamps\n\n## Oil\n\n### Old"),
        ("= Lamps =\n\n== Oil ==\n\nIt burns.", "# Lamps\n\n## Oil\n\nIt burns."),
    ],
)
def test_titles_of_a_wiki(read, text, marked):
    content = read("a.txt", f"Content-Type: text/x-wiki\n\n{text}\n")
    assert content.text.strip() == marked
    assert content.metadata == {"Content-Type": "text/x-wiki"}
    assert content.title == "Lamps"


@pytest.mark.parametrize("sign", "*~^")
def test_titles_of_a_plain_text_may_be_underlined_with_any_sign(read, sign):
    lamps = f"1. Lamps\n{sign * 8}\n\nText of it.\n\n\n1.1. Oil\n========\n\nSix marks."
    text = f"Orra Mill\n\n\n{lamps}\n\n\n2. Rye\n{sign * 6}\n\nNone.\n"
    content = read("a.txt", text)
    found = headings(content.text, content.title)
    assert (found["Six marks."], found["None."]) == ("1. Lamps > 1.1. Oil", "2. Rye")


def test_copies_of_sources_beside_pages_are_read_as_these(read):
    content = read("a.rst.txt", ".. _lamps:\n\nLamps\n*****\n\nText of it.\n\nOil\n~~~\n\nSix marks.\n")
    assert content.title == "Lamps"
    assert headings(content.text, content.title)["Six marks."] == "Oil"


def test_titles_of_restructured_text_have_no_escapes(read):
    content = read("a.rst", "mill\\_wheel package\n====================\n\nIt turns.\n")
    assert content.title == "mill_wheel package"


CONTENTS = (
    "Orra Mill\n\n\nContents\n\n1. Grain\n    1.1. What is ground here?\n"
    "    1.2. Which grains are not ground by the mill\n    at all?\n    1.3. rye\n2. The wheel, and who may turn it\n\n"
    "{chapter} 1. Grain\n\nContents\n\n1.1. What is ground here?\n\nOats are.\n\nNot here\n\nHemp is not.\n\n"
    "1.2. Which grains are not ground by the mill\nat all?\n\nStones are not.\n\n1. Bring a sack.\n\n2. Fill it\n\n"
    "Wait for it.\n\n1.3. rye\n\nIt is late.\n\n1.3.1. Old rye\n\nIt is dear.\n\n"
    "{chapter} 2. The wheel, and who may turn it\n\nAnn may.\n"
)


@pytest.mark.parametrize("chapter", ["Chapter", "Hoofdstuk", "Глава"])
def test_all_sections_that_the_contents_name_are_headings(read, chapter):
    found = headings(read("a.txt", CONTENTS.format(chapter=chapter)).text, headings_apart=True)
    first = f"{chapter} 1. Grain"
    assert found["Oats are."] == f"{first} > 1.1. What is ground here?"
    assert found["Stones are not."].startswith(f"{first} > 1.2. Which grains are not ground by the mill at all?")
    assert found["Wait for it."] == found["Stones are not."]
    assert found["It is late."] == f"{first} > 1.3. rye"
    assert found["It is dear."] == f"{first} > 1.3. rye > 1.3.1. Old rye"
    assert found["Ann may."] == f"{chapter} 2. The wheel, and who may turn it"


@pytest.mark.parametrize("chapter", ["Kapitel 2. apt", "第2章 apt", "Chapitre\xa02.\xa0Apt"])
def test_a_chapter_goes_on_below_its_own_contents(read, chapter):
    name = chapter[-3:]
    contents = f"Inhaltsverzeichnis\n\n1. Korn\n2. {name}\n    2.1. Hafer\n    2.2. Roggen\n\n"
    own = f"{chapter}\n\nInhaltsverzeichnis\n\n2.1. Hafer\n2.2. Roggen\n\nOats are ground.\n\n"
    text = (
        f"Mill\n\n\n{contents}1. Korn\n\nIt is dear.\n\n{own}2.1. Hafer\n\nIt is late.\n\n2.2. Roggen\n\nIt is wet.\n"
    )
    found = headings(read("a.txt", text).text, headings_apart=True)
    shown = chapter.replace("\xa0", " ")
    assert (found["Oats are ground."], found["It is late."]) == (shown, f"{shown} > 2.1. Hafer")


@pytest.mark.parametrize("last", ["2.3. Who may turn the wheel of the mill after dark", "第3章风车"])
def test_many_sections_that_follow_each_other_are_headings(read, last):
    names = ["Oats and who grinds the rest of them", "Rye is late", "Hemp", "Wheels", "Ponds", "Sluices"]
    numbers = ["1.1", "1.2", "1.3", "1.3.1", "2.1", "2.2"]
    sections = [f"{number} {name}\n\nText of {name}.\n\n" for number, name in zip(numbers, names, strict=True)]
    found = headings(read("a.txt", f"Mill\n\n\n{''.join(sections)}{last}\n\nAnn may.\n").text, headings_apart=True)
    assert found["Text of Rye is late."] == "1.2 Rye is late"
    assert found["Text of Ponds."] == "2.1 Ponds"
    assert found["Ann may."] == last


def test_sections_are_below_their_own_chapters_only(read):
    titles = ["1. Grain", "1.1. Oats", "2. Wheels", "Rationale", "2.1. Of oak", "3.1. Of stone", "B. Use of words"]
    contents = "\n".join(title for title in titles if title[0].isdigit())
    names = ["Ann", "Bob", "Cara", "Dan", "Eva", "Finn", "Gus"]
    sections = "".join(f"{title}\n\nIt is {name} who tells.\n\n" for title, name in zip(titles, names, strict=True))
    found = headings(read("a.txt", f"Mill\n\n\nContents\n\n{contents}\n\n{sections}").text, headings_apart=True)
    assert [found[f"It is {name} who tells."] for name in names] == [
        "1. Grain",
        "1. Grain > 1.1. Oats",
        "2. Wheels",
        "2. Wheels > Rationale",
        "2. Wheels > 2.1. Of oak",
        "3.1. Of stone",
        "B. Use of words",
    ]


def test_a_heading_ends_above_what_may_be_the_next_section(read):
    text = (
        "4.1 Rye\n\nRye is ground on Mondays.\n\n4.2 Der Hafer, den wir nicht selbst mahlen\n\nDer Hafer kommt spät.\n"
    )
    found = headings(read("a.txt", f"Mill\n\n\n{text}").text, headings_apart=True)
    assert found["Rye is ground on Mondays."] == "4.1 Rye"
    assert found["Der Hafer kommt spät."] == ""


def test_a_text_whose_file_has_a_common_name_is_called_as_its_first_heading(make_index):
    documents = {
        "babel/README.md": "## Babel 3.84\n\nIt hyphenates.",
        "geometry/README.md": "Geometry v5.9\n-----------------\nPages have margins.\n\nAbstract:\nMore.",
        "lamps/index.html": "<h2>Lamps</h2><p>They burn oil.</p>",
        "oil/README.md": "Oil is sold.\n\n## Prices\n\nFour marks.",
        "tower.md": "## Stairs\n\nThere are ninety.",
        "wicks/README.md": "# General\n\nThey are of cotton.\n\n# To do\n\nTrim them.",
        "yard/README.txt": "# bring the oil in the evening:\n\nIt is heavy.\n",
    }
    titles = [document.title for document in make_index(documents).documents()]
    assert titles == ["Babel 3.84", "Geometry v5.9", "Lamps", "README", "tower", "README", "README"]


@pytest.mark.parametrize(
    ("name", "top", "title"),
    [
        ("a.md", "# Introduction\n\nOil.\n\n# Lamps", ""),
        ("a.md", "# Introduction\n\nOil.\n\n## Lamps", "Introduction"),
        ("a.md", "# Lamps\n\nOil.\n\n# Usage", "Lamps"),
        ("a.md", "## Lamps\n\nOil.\n\n## Wicks\n\nCotton.\n\n# Changes", "Lamps"),
        ("a.md", "## News\n\nOil.\n\n# Lamps\n\nCotton.\n\n## Wicks", "Lamps"),
        ("a.txt", "v1.5 Sun Oct 16 16:32:32 CEST 2005", ""),
        ("a.txt", "v1.5 2005/10/16", ""),
        ("a.txt", "v1.4 : 15/05/2014", ""),
        ("a.txt", "- The sluice is new", ""),
        ("a.txt", "水車の形式は、", ""),
        ("a.txt", "rye.xiz is a mill with the new feature of version 1. First built in Orra 4", ""),
        ("a.txt", "Public domain. (Written by Ann Lee, 2004.)", ""),
        ("a.txt", "#!/bin/sh", ""),
    ],
)
def test_a_section_a_version_or_a_sentence_is_no_title(read, name, top, title):
    assert read(name, f"{top}\n\nIt burns.\n").title == title


@pytest.mark.parametrize(
    "line",
    [
        "Rather, do",
        "可以在设置文件中添加下列内容",
        "LIBS = -lrye",
        "NEWS",
    ],
)
def test_a_line_set_in_below_a_numbered_section_is_its_text(read, line):
    contents = "1. Mills\n2. Rye\n3. Oats\n"
    sections = (
        f"1. Mills\n\n    They turn.\n\n2. Rye\n\n    {line}\n\n    It is ground on Mondays.\n\n3. Oats\n\n    Late.\n"
    )
    found = headings(read("a.txt", f"The mill\n\n{contents}\n{sections}").text, headings_apart=True)
    assert found[line] == found["It is ground on Mondays."] == "2. Rye"


def test_rules_between_sections_are_no_ends_of_code(read):
    rule = "-" * 60
    parts = [f"mill-1.{number} (released 19{number:02}-05-06)\n\n* The sluice {number} is new." for number in range(9)]
    found = headings(read("NEWS", f"\n\n{rule}\n".join(["Mills", *parts]) + "\n").text, headings_apart=True)
    for number in range(9):
        assert found[f"* The sluice {number} is new."] == f"mill-1.{number} (released 19{number:02}-05-06)"


def test_a_manual_with_a_history_at_its_beginning_is_no_changelog(read):
    history = "mill 0.2 2004-02-09\n\nIt is faster.\n\nmill 0.1 2003-06-19\n\nIt is slow."
    text = "is made of oak and of iron, and turns as long as there is wind or water, which is most of the year."
    wheels = [f"Of the {kind} wheel\n\nThe {kind} {text}" for kind in ("large", "small", "old", "new", "red", "blue")]
    found = headings(read("a.txt", "\n\n".join(["The mill", history, *wheels]) + "\n").text, headings_apart=True)
    assert found[f"The new {text}"] == "Of the new wheel"


@pytest.mark.parametrize(
    ("lead", "heading"), [("The mill prints this line:", ""), ("The mill stops.", "PASS OLD wheel")]
)
def test_a_line_that_a_colon_announces_is_no_heading(read, lead, heading):
    text = f"{lead}\n\n    PASS OLD wheel\n\nThen it goes on with the rye that is left, and it stops at noon.\n"
    found = headings(read("a.txt", text).text, headings_apart=True)
    assert found["Then it goes on with the rye that is left, and it stops at noon."] == heading


def test_chapters_without_contents_have_headings_beside_their_sections(read):
    parts = []
    for chapter in range(1, 4):
        parts += [f"{chapter}.  Of mill {chapter}", f"Mill {chapter} turns.", f"1. Oil mill {chapter}"]
        for section in range(1, 3):
            parts += [f"{chapter}.{section}. Of its wheel {section}", f"Wheel {chapter}{section} is of oak."]
    licence = ["0. Preamble", "1. Definitions", "Anyone may copy the mill."]
    found = headings(read("a.txt", "The mill\n\n" + "\n\n".join([*parts, *licence]) + "\n").text, headings_apart=True)
    assert found["Mill 2 turns."] == "2. Of mill 2"
    assert found["Wheel 22 is of oak."].endswith("2.2. Of its wheel 2")
    assert not {"1. Oil mill 2", "1. Definitions"} & set(found.values())


def test_a_sentence_in_chinese_on_two_lines_is_no_heading(read):
    lines = [
        "添加到您的设置文件中请确保配置了日志文件的周期性",
        "滚动如果您使用轮换程序您可以创建下列文件来进行滚动并且保存",
    ]
    text = "磨坊\n\n" + "\n".join(lines) + "\n\n    它在星期一磨黑麦。\n"
    assert headings(read("a.txt", text).text, headings_apart=True)["它在星期一磨黑麦。"] == "磨坊"


@pytest.mark.parametrize("middle", ["General Commands Manual", "4", "", "用户命令"])
@pytest.mark.parametrize(("page", "title"), [("LAMP(1)", "lamp(1)"), ("Lamp.conf(5)", "Lamp.conf(5)")])
def test_the_head_and_foot_of_a_manual_page_are_no_text(read, middle, page, title):
    content = read("a.txt", f"{page}  {middle}\t{page}\n\nNAME\n       lamp - light\n\nOrra 2\t May 1880  {page}\n")
    assert (content.title, content.text) == (title, "# NAME\n       lamp - light\n")
    assert content.metadata == {"edition": "Orra 2, May 1880"}


@pytest.mark.parametrize("name", ["a.sh", "a.py", "a.conf", "a.tex", "CMakeLists.txt"])
def test_comments_of_programs_and_settings_are_no_headings(make_index, name):
    text = (
        "# Rye\n#\n# grind until\n# before terminating\n\nSpeed 12 turns\n\nMill Board\n==========\n\ngrind the oats\n"
    )
    chunks = make_index({name: text}).mget([f"{name}:0"])
    assert chunks[0].text == text
    assert {sentence.heading for sentence in chunks[0].sentences} == {""}


def test_a_command_is_no_title_of_a_program_in_cmake(read):
    content = read("CMakeLists.txt", "cmake_minimum_required(VERSION 3.16)\n\nproject(mill)\n")
    assert content.title == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mills", "# Where the mill is\n#\n# and when it turns\n\nSpeed 12\n\nMill Board\n\nIt grinds oats."),
        ("mills", "# Where it is\nplace = Vellin\n"),
        ("Dockerfile", "# Build\n\nFROM mill\n"),
        ("millrc", "# Build\n\nset oil\n"),
        ("mills", "#!/bin/mill\n\n# Build\n\ngrind\n"),
    ],
)
def test_a_program_or_settings_without_an_extension_have_no_headings(read, name, text):
    content = read(name, text)
    assert set(headings(content.text, is_code=content.is_code).values()) == {""}


def test_a_note_without_an_extension_has_headings(read):
    content = read("mills", "# Oil\n\nIt costs 4 marks.\n\n# Rye\n\nIt costs 6 marks.\n")
    assert list(headings(content.text, is_code=content.is_code).values()) == ["Oil", "Rye"]


@pytest.mark.parametrize(
    ("name", "entries", "title"),
    [
        ("changelog.txt", ["mill (1:2.1-3) orra; urgency=low", "mill (2.0-1) orra; urgency=high"], "mill changelog"),
        ("NEWS", ["Version 2.1 (1881-05-06)", "Version 2.0"], ""),
        ("CHANGES", ["v2.1", "v2.0"], ""),
        ("NEWS", ["mill-2.1.3 (released 1981-05-06, 4 sluices):", "Mill 2.0 [1980/01/02]"], ""),
        ("CHANGES", ["2.1.0 - 6 May 1981", "2.0.10 (1980-01-02):"], ""),
        ("ChangeLog", ["1881-05-06  Ann Lee  <ann@mill.example>", "1880-01-02  Ada  <ada@mill.example>"], ""),
    ],
)
def test_the_entries_of_a_changelog_have_headings(read, name, entries, title):
    first, second = entries
    text = f"{first}\n\n  * The sluice is new.\n\n -- Ann\n\n{second}\n\n  * Rye is ground.\n"
    content = read(name, text)
    assert content.title == title
    found = headings(content.text, content.title, headings_apart=True)
    assert " ".join(found["* The sluice is new."].split()) == " ".join(first.split())
    assert " ".join(found["* Rye is ground."].split()) == " ".join(second.split())


def test_the_newest_version_is_no_title_of_news_in_markdown(read):
    text = "# mill 1.2.0\n\n* It is new.\n\n# mill 1.1.0\n\n* It was new.\n"
    assert read("NEWS.md", text).title == "NEWS"
    assert read("mill.md", text).title == "mill 1.2.0"


def test_short_lines_of_a_changelog_are_no_headings(read):
    change = "The sluice is new, and it opens as soon as the rye is ground and the wheel has stopped."
    text = f"Mill 2\n\nM sluice.c\n\n{change}\n"
    assert headings(read("NEWS", text).text, headings_apart=True)[change] == "M sluice.c"
    assert read("changelog", text).marks_headings


def test_a_sentence_is_no_title(read):
    rule = "=" * 50
    text = f"All of this is only a part of the mill in the next year.\n{rule}\n\nRye is ground.\n"
    assert read("a.txt", text).title == ""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Erstellt und betreut: Ada Berg (2005-2010)", ""),
        ("Written and kept: Ada Berg", ""),
        ("Author: Ada Berg", ""),
        ("Upstream Author: The Mill Project", ""),
        ("License: MIT-like", ""),
        ("Copyright Ada Berg, 1997 2002", ""),
        ("Copyright various dates Mill Foundation", ""),
        ("The mills consist of", ""),
        ("License Terms", "License Terms"),
        ("Copyright and Porting", "Copyright and Porting"),
        ("Copyright Act of 1976", "Copyright Act of 1976"),
        ("Epilogue: The Return", "Epilogue: The Return"),
        ("The Long Winter: A Chronicle", "The Long Winter: A Chronicle"),
    ],
)
def test_who_made_a_text_is_no_heading(line, expected):
    below = "The lamp burns by night, and the keeper trims its wick with care each morning."
    text = f"The lamp is kept in all weathers by two keepers.\n\n{line}\n\n{below}\n"
    assert headings(text, headings_apart=True)[below] == expected


def test_a_table_that_a_browser_printed_has_its_rows_and_columns(read):
    table = (
        "    +----------------------+\n"
        "    | mill |    place of   |\n"
        "    |      |   the sluice  |\n"
        "    |------+---------------|\n"
        "    |Vellin|above the old  |\n"
        "    |      |bridge         |\n"
        "    |------+---------------|\n"
        "\u00a0\u00a0\u00a0 |水車村|川の近くにある |\n"
        "    |      |池             |\n"
        "    +----------------------+\n"
    )
    text = read("a.txt", f"Mills\n\nThese are the mills.\n\n{table}\nRye is ground.\n").text
    assert "mill: Vellin | place of the sluice: above the old bridge\n" in text
    assert "mill: 水車村 | place of the sluice: 川の近くにある池\n" in text
    assert "|---" not in text


def test_printed_tables_have_frames_of_many_signs(read):
    rule = "+--------+---------+\n"
    printed = (
        f"{rule}| mill   | price   |\n|========|=========|\n| Orra   | 9 marks |\n{rule}| Vellin | 8 marks |\n{rule}"
    )
    line = "├──────┼───────┤\n"
    names = "┌──────┬───────┐\n│ mill │ price │\n"
    drawn = f"{names}{line}│Orra  │9 marks│\n{line}│Vellin│8 marks│\n"
    plain = f"{drawn}└──────┴───────┘\n"
    noted = f"{drawn}├──────┴───────┤\n│[a] of last   │\n│year          │\n└──────────────┘\n"
    rows = "mill: Orra | price: 9 marks\nmill: Vellin | price: 8 marks\n"
    assert f"{rows}\nRye" in read("a.txt", f"Mills\n\n{printed}\nRye is ground.\n").text
    assert f"{rows}\nRye" in read("b.txt", f"Mills\n\n{plain}\nRye is ground.\n").text
    assert f"{rows}\n[a] of last year\n" in read("c.txt", f"Mills\n\n{noted}\nRye is ground.\n").text


def test_each_line_below_the_only_rule_of_a_printed_table_is_a_row(read):
    names = "┌────────┬───────┐\n│  mill  │ price │\n├────────┼───────┤\n"
    rows = "│ Orra   │ 9     │\n│        │ marks │\n│ Vellin │ 8     │\n│ Hesper │ 7     │\n"
    end = "└────────┴───────┘\n"
    noted = "├────────┴───────┤\n│ 3 rows         │\n└────────────────┘\n"
    shown = "mill: Orra | price: 9 marks\nmill: Vellin | price: 8\nmill: Hesper | price: 7\n"
    assert f"{shown}\nRye" in read("a.txt", f"Mills\n\n{names}{rows}{end}\nRye is ground.\n").text
    assert f"{shown}\n3 rows\n" in read("b.txt", f"Mills\n\n{names}{rows}{noted}\nRye is ground.\n").text


def test_the_only_row_of_a_table_that_a_browser_printed_may_take_several_lines(read):
    table = (
        "┌──────┬───────┐\n│ mill │ place │\n├──────┼───────┤\n│Old   │above  │\n│Vellin│Orra   │\n└──────┴───────┘\n"
    )
    assert "mill: Old Vellin | place: above Orra\n" in read("a.txt", f"Mills\n\n{table}\nRye is ground.\n").text


def test_the_first_row_of_a_printed_table_is_no_header_if_it_is_not_centred(read):
    frame = "┌───┬────────────┐\n│sda│First disk  │\n├───┼────────────┤\n│sdb│Second disk │\n└───┴────────────┘\n"
    assert "sda | First disk\nsdb | Second disk\n" in read("a.txt", f"Mills\n\n{frame}\nRye is ground.\n").text


@pytest.mark.parametrize("row", ["|Vellin|----+----|", "| Vellin | and all |"])
def test_a_drawing_or_an_uneven_frame_stays_as_it_is(read, row):
    frame = f"+----------------+\n|mill  |place    |\n|------+---------|\n{row}\n+----------------+\n"
    assert frame in read("a.txt", f"Mills\n\n{frame}\nRye is ground.\n").text


def test_a_label_of_restructured_text_is_not_shown(read):
    links = ".. _old: https://mill.example\n.. _new:\n   https://new.example\n"
    text = f".. _mills:\n\nMills\n=====\n\nRye is ground.\n\n{links}"
    shown = read("a.rst", text).text
    assert ".. _mills" not in shown
    assert ".. _old: https://mill.example\n.. _new:\n" in shown


def test_rows_of_a_printed_table_stay_lines_in_scripts_without_spaces(read):
    rule = "├──────┼──────┤\n"
    table = f"┌──────┬──────┐\n│ 水車 │ 場所 │\n{rule}│水車村│池    │\n{rule}│川村  │川    │\n└──────┴──────┘\n"
    text = read("a.txt", f"水車\n\n{table}\n川の近くにある。\n").text
    assert "水車: 水車村 | 場所: 池\n水車: 川村 | 場所: 川\n" in text


def test_a_line_with_a_bar_is_no_row_below_a_table_with_other_names(read):
    table = "mill | price\nmill: Orra | price: 9 marks\nmill: Vellin | price: 8 marks\n"
    text = read("a.txt", f"Mills\n\n{table}\nList them with\nmills | sort now, and then\nread on.\n").text
    sentences = headings(text, "Mills", is_plain=True)
    assert "mill: Orra | price: 9 marks" in sentences
    assert "List them with\nmills | sort now, and then\nread on." in sentences


def test_a_printed_table_with_groups_of_rows_stays_as_it_is(read):
    frame = "┌────┬─────┐\n│mill│price│\n├────┼─────┤\n│Old │     │\n├────┼─────┤\n│Orra│9    │\n└────┴─────┘\n"
    assert frame in read("a.txt", f"Mills\n\n{frame}\nRye is ground.\n").text


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        (r"\title{The \LaTeX3 Sources}", "The LaTeX3 Sources"),
        (r"  \title[Oil]{The Lamp:\\ Oil and~Wick}", "The Lamp: Oil and Wick"),
        (r"\title{The \texttt{lamp} package}", ""),
        (r"\title{\TITLE}", ""),
        (r"% \title{The Lamp}", ""),
    ],
)
def test_the_title_of_a_document_in_tex(read, title, shown):
    assert read("a.tex", f"\\documentclass{{article}}\n{title}\n\\begin{{document}}\nIt burns.\n").title == shown


SECTIONS = "Charset\n~~~~~~~~\nSet the locale.\n\nKeys\n~~~~~~~~\nMake one.\n"


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("README.Debian", SECTIONS, "README"),
        ("README.Debian", SECTIONS.replace("~", "-"), "README"),
        ("lamp_oil.txt", SECTIONS.replace("~", "="), "lamp oil"),
        ("guide.txt", SECTIONS.replace("Keys", "1. Keys"), "Charset"),
        ("guide.txt", SECTIONS.replace("Set the locale.\n", ""), "Charset"),
        ("NEWS", "Changes in 5.4\n\nThe lamp is lit.\n", "NEWS"),
        ("Changelog.txt", "Lamp 5.4 - May 1881\n\nThe lamp is lit.\n", "Changelog"),
        ("NEWS", "Lamp NEWS -*- outline -*-\n\nThe lamp is lit.\n", "Lamp NEWS"),
        ("FAQ", "*** About lamps ***\n\nThey are lit.\n", "About lamps"),
        ("AUTHORS", "Odvar o@lanthry.example\n\nBela b@lanthry.example\n", ""),
    ],
)
def test_the_first_of_sections_or_news_is_no_title_of_the_whole(read, name, text, title):
    assert read(name, text).title == title


def test_a_first_heading_that_names_the_folder_is_the_title(tmp_path):
    path = tmp_path / "lamp" / "README.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(SECTIONS.replace("Charset", "Lamp set").encode()))
    with Readers() as readers:
        assert readers.read(path).title == "Lamp set"


def test_a_line_above_an_address_is_no_heading():
    address = f"https://lanthry.example/lamps/{'oil' * 30}"
    shown = headings(f"The lamp is lit.\n\n    Alternatively, visit\n\n        {address}\n", headings_apart=True)
    assert set(shown.values()) == {""}
