"""Headings of PDFs: by their type, by their numbers, and by the outline of the document."""

from __future__ import annotations

import re

import pytest
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, NumberObject, TextStringObject

from arag.ingest.formats.title_texts import is_code_font
from arag.ingest.preview import preview
from arag.ingest.sentences import split_sentences
from pdf_pages import Pages, change

TEXT = [
    "The yard holds twelve carts of the mill",
    "and of its tenants, who pay for them",
    "in the first week of each month.",
]


def sections(titles, subtitles=()):
    """Return pages with a title and a text each; subtitles are in another type."""
    pages = Pages()
    for number, title in enumerate(titles):
        pages.text(72, 740, title, 16, "Helvetica-Bold")
        if subtitles:
            pages.text(72, 715, subtitles[number], 13, "Helvetica-Bold")
        pages.lines(72, 690, [f"{line} {chr(97 + number)}" for line in TEXT])
        pages.show()
    return pages


def headings(read, pages):
    return re.findall("^#.*", read("a.pdf", pages.finish()).text, re.MULTILINE)


def test_titles_begin_with_any_character(read):
    titles = [
        "3.4 /bin",
        '3.5 "Old" mill',
        "3.6 ~user",
        "“Quoted” words",
        "3.7 malloc",
        "¿Qué es?",
        "/usr/share",
        "C++",
    ]
    assert headings(read, sections(titles)) == [f"# {title}" for title in titles]


def test_a_name_that_begins_with_a_sign_after_its_number(read):
    titles = ["2.1 --force and its dangers", "2.2 *args", "2.3 <title>", "2.4 +x"]
    no_titles = ["2.5 - Scope", "2.6 • Oil", "-v is none"]
    assert headings(read, sections([*titles, *no_titles])) == [f"# {title}" for title in titles]


def test_what_is_no_title(read):
    titles = [
        "34,229",
        "• Oil",
        "— and so on —",
        "and so on",
        "Introduction . . . . . . 23",
        "Sales ........ 4",
        "Why;",
        "1880",
    ]
    assert headings(read, sections(titles)) == []


@pytest.mark.parametrize("section", ["§ 1", "§ 12a", "Art. 3", "Article 4", "ARTIKEL 5", "Article 3 bis"])
@pytest.mark.parametrize("size", [11, 15])
@pytest.mark.parametrize("is_one_line", [True, False])
def test_a_section_with_its_name(read, section, size, is_one_line):
    pages = Pages()
    pages.lines(72, 760, TEXT)
    lines = [f"{section} Name und Sitz"] if is_one_line else [section, "Name und Sitz"]
    y = pages.lines(72, 700, lines, size, "Helvetica-Bold", pitch=17)
    pages.lines(72, y - 10, TEXT)
    assert headings(read, pages) == [f"# {section} Name und Sitz"]


@pytest.mark.parametrize("name", [".register files", "/etc and its files", '"Quiet" rooms', "„Stille“ Räume"])
@pytest.mark.parametrize("size", [11, 15])
def test_the_name_of_a_section_may_begin_with_a_sign(read, name, size):
    pages = Pages()
    pages.lines(72, 760, TEXT)
    y = pages.lines(72, 700, [f"§ 2 {name}"], size, "Helvetica-Bold", pitch=17)
    pages.lines(72, y - 10, TEXT)
    assert headings(read, pages) == [f"# § 2 {name}"]


@pytest.mark.parametrize(
    "title", ["Article 1er – Dénomination", "Artículo 7.- De los socios", "Art. 5: Soci", "Artigo 2º - Da sede"]
)
def test_a_sign_between_a_section_and_its_name(read, title):
    pages = Pages()
    pages.lines(72, 760, TEXT)
    pages.text(72, 700, title, 11, "Helvetica-Bold")
    pages.lines(72, 680, TEXT)
    assert headings(read, pages) == [f"# {title}"]


def test_sections_that_a_text_mentions(read):
    pages = Pages()
    pages.lines(72, 760, ["§ 7", "Carts of the yard", *TEXT])
    pages.lines(72, 650, ["§ 8 gilt auch hier", "§ 9", "(1) The yard is open."], font="Helvetica-Bold")
    assert headings(read, pages) == []


def test_numbers_nest_as_they_count(read):
    pages = Pages()
    for number, (title, size) in enumerate(
        [("5.5.4 Carts", 16), ("5.5.4.1 Wheels", 14), ("5.6.1 Horses", 12.5), ("5.6.1.1 Hay", 16), ("6 Ships", 12.5)]
    ):
        for page in range(2):
            y = 740 if not page else 500
            pages.text(72, y, title if not page else f"{title} again", size, "Helvetica-Bold")
            pages.lines(72, y - 25, [f"{line} {number} {page}" for line in TEXT])
        pages.show()
    levels = {}
    for heading in headings(read, pages):
        marks, title = heading.split(" ", 1)
        if not title.endswith("again"):
            levels[title.split()[0]] = len(marks)
    assert levels["5.5.4"] < levels["5.5.4.1"]
    assert levels["5.6.1"] <= levels["5.5.4"]
    assert levels["5.6.1"] < levels["5.6.1.1"]
    assert levels["6"] <= levels["5.6.1"]


def test_each_part_of_a_number_is_one_level(read):
    titles = ["5 Files", "5.5 Carts", "5.5.4 Wheels", "5.5.4.1 Spokes", "5.5.4.1.1 Nails", "5.6.1 Horses", "6 Ships"]
    pages = Pages()
    for number, title in enumerate(titles):
        pages.text(72, 740, title, 16 if len(title.split()[0]) < 2 else 11.5, "Helvetica-Bold")
        pages.lines(72, 715, [f"{line} {number}" for line in TEXT])
        pages.show()
    levels = [line.index(" ") for line in headings(read, pages)]
    assert levels == [1, 2, 3, 4, 5, 2, 1]


def test_larger_numbers_below_smaller_ones(read):
    titles = ["3.3 The cart yard", "3.4 /race: the mill race", '3.5 "Old" mill']
    pages = Pages()
    for number, title in enumerate(titles):
        pages.text(72, 740, title, 11, "Helvetica-Bold")
        pages.text(72, 715, f"{title.split()[0]}.1 Purpose", 14, "Helvetica-Bold")
        pages.lines(72, 690, [f"{line} {number}" for line in TEXT])
        pages.show()
    lines = headings(read, pages)
    assert [line.lstrip("# ") for line in lines] == [
        text for title in titles for text in (title, f"{title.split()[0]}.1 Purpose")
    ]
    assert [line.index(" ") for line in lines] == [lines[0].index(" "), lines[0].index(" ") + 1] * 3


# --- the document's own outline ---


def outlined(entries, shown=True):
    """Return pages with a line for each entry of an outline, in the type of the text."""
    pages = Pages()
    for number, (title, level) in enumerate(entries):
        pages.canvas.bookmarkPage(str(number))
        if shown:
            pages.canvas.addOutlineEntry(title, str(number), level)
        pages.text(72, 740, title)
        pages.text(72, 715, "A larger line", 18)
        pages.lines(72, 690, [f"{line} {number}" for line in TEXT])
        pages.show()
    return pages


ENTRIES = [("The mill", 0), ("Its wheel", 1), ("its stones", 1), ("1880. A year", 0)]


def test_the_outline_names_the_headings(read):
    assert headings(read, outlined(ENTRIES)) == ["# The mill", "## Its wheel", "## its stones", "# 1880. A year"]
    assert "# The mill" not in headings(read, outlined(ENTRIES, shown=False))


def test_an_outline_whose_entries_are_no_lines_of_the_pages_is_left_aside(read):
    pages = Pages()
    for number in range(4):
        pages.canvas.bookmarkPage(str(number))
        pages.canvas.addOutlineEntry(f"Slide {number}", str(number), 0)
        pages.text(72, 740, f"Of ships {chr(97 + number)}", 18, "Helvetica-Bold")
        pages.lines(72, 690, [f"{line} {number}" for line in TEXT])
        pages.show()
    assert headings(read, pages) == [f"# Of ships {letter}" for letter in "abcd"]


def test_an_outline_of_appended_pages_does_not_hide_the_other_headings(read):
    pages = Pages()
    for name in ["Wheels", "Stones", "Weirs", "Dues"]:
        pages.text(72, 760, name, 18, "Helvetica-Bold")
        pages.lines(72, 730, ["The miller ground rye,", "and kept a ledger of it."])
        pages.show()
    for name in ["Warranty", "Licence"]:
        pages.canvas.bookmarkPage(name, fit="XYZ", top=770)
        pages.canvas.addOutlineEntry(name, name, 0)
        pages.text(72, 760, name, 18, "Helvetica-Bold")
        pages.lines(72, 730, ["The guild gives none."])
        pages.show()
    text = read("a.pdf", pages.finish()).text
    assert re.findall("^# (.*)", text, re.MULTILINE) == ["Wheels", "Stones", "Weirs", "Dues", "Warranty", "Licence"]


def test_where_the_outline_names_the_headings_a_numbered_item_is_none(read):
    pages = outlined(ENTRIES)
    pages.lines(72, 740, ["1. Oil of herrings, which the keeper", "3.2 Lamps"], font="Helvetica-Bold", pitch=40)
    pages.show()
    *_, last_of_outline, numbered = headings(read, pages)
    assert (last_of_outline, numbered) == ("# 1880. A year", "#### 3.2 Lamps")


def test_items_in_the_font_of_a_text_with_code_in_most_lines_are_no_headings(read):
    pages = Pages()
    pages.text(72, 760, "2 Faults", font="Helvetica-Bold")
    for number in range(9):
        x = pages.text(72, 730 - 14 * number, f"The wheel of yard {number} is turned by the command ")
        pages.text(x, 730 - 14 * number, f"turn -{number}", font="Courier")
    y = pages.lines(84, 590, ["1. Ask the keeper whether the wheel or its sluice", "has been mended in this year."])
    pages.lines(84, y - 8, ["2. Write to the owner, and say what the wheel does", "in the first hour of the day."])
    assert headings(read, pages) == ["# 2 Faults"]


@pytest.mark.parametrize("line", ["Abbildung 3. The wheel", "Table 2-1: Dues", "TWENTY ONE"])
def test_captions_and_numbers_in_words_are_no_headings(read, line):
    titles = ["The mill and its wheel", line, "The yard and its carts"]
    assert headings(read, sections(titles)) == ["# The mill and its wheel", "# The yard and its carts"]


def test_a_title_of_the_outline_with_wide_gaps_has_no_cells(read):
    pages = outlined(ENTRIES)
    pages.canvas.bookmarkPage("last")
    pages.canvas.addOutlineEntry("4.2 Of carts 12", "last", 0)
    pages.rows(740, (72, 110, 200), [("4.2", "Of carts", "12"), ("Rye", "3", "4"), ("Oats", "7", "9")])
    pages.lines(72, 640, TEXT)
    pages.show()
    assert headings(read, pages)[-1] == "# 4.2 Of carts 12"


def test_a_short_title_of_the_outline_is_the_whole_one_of_the_page(read):
    pages = outlined(ENTRIES)
    pages.canvas.bookmarkPage("last", fit="XYZ", top=752)
    pages.canvas.addOutlineEntry("Carts", "last", 0)
    pages.text(72, 740, "4 Carts [1, “Of carts”]", 11, "Helvetica-Bold")
    pages.lines(72, 690, TEXT)
    pages.show()
    assert headings(read, pages)[-1] == "# 4 Carts [1, “Of carts”]"


def test_chapters_below_the_contents_in_the_outline_are_not_part_of_them(read):
    pages = Pages()
    for level, title in enumerate(["Table of Contents", "Of rye", "Of carts"]):
        pages.canvas.bookmarkPage(title)
        pages.canvas.addOutlineEntry(title, title, level)
        pages.text(72, 740, title, 16, "Helvetica-Bold")
        pages.lines(72, 690, TEXT * 4)
        pages.show()
    assert headings(read, pages) == ["# Table of Contents", "# Of rye", "## Of carts"]


def test_the_heading_of_the_contents_in_larger_type_than_chapters_has_none_below_it(read):
    pages = Pages()
    pages.text(72, 740, "Contents", 24, "Helvetica-Bold")
    pages.lines(72, 690, TEXT)
    pages.show()
    for title in ("Of rye", "Of carts", "Of oats"):
        pages.text(72, 740, title, 16, "Helvetica-Bold")
        pages.lines(72, 690, TEXT * 4)
        pages.show()
    assert headings(read, pages) == ["# Contents", "# Of rye", "# Of carts", "# Of oats"]


@pytest.mark.parametrize("labels", [("Chapter 1", "Appendix B"), ("Kapitel 2", "Teil II")])
def test_the_number_of_a_chapter_in_a_line_above_its_title_belongs_to_it(read, labels):
    pages = Pages()
    titles = ["gmill - an overview", "The wheel and its axle"]
    for label, title in zip(labels, titles, strict=True):
        pages.text(72, 740, label, 20, "Helvetica-Bold")
        pages.text(72, 695, title, 24, "Helvetica-Bold")
        pages.lines(72, 640, TEXT * 4)
        pages.show()
    assert headings(read, pages) == [f"# {label} {title}" for label, title in zip(labels, titles, strict=True)]


def test_authors_in_the_type_of_sections_between_title_and_first_chapter_are_no_heading(read):
    pages = Pages()
    pages.text(72, 760, "The mill and its wheel", 20, "Helvetica-Bold")
    pages.text(72, 730, "Ann Lee, Odvar Felisk", 13, "Helvetica-Bold")
    y = 700
    for title, size in (("1 Of rye", 16), ("1.1 Of carts", 13), ("2 Of oats", 16), ("2.1 Of carriers", 13)):
        pages.text(72, y, title, size, "Helvetica-Bold")
        pages.lines(72, y - 30, TEXT * 2)
        y -= 350
        if y < 400:
            pages.show()
            y = 740
    assert headings(read, pages) == ["# 1 Of rye", "## 1.1 Of carts", "# 2 Of oats", "## 2.1 Of carriers"]


def test_an_entry_of_the_outline_that_is_there_twice(read):
    pages = outlined(ENTRIES)
    for level in (1, 2):
        pages.canvas.bookmarkPage(f"last{level}", fit="XYZ", left=72, top=752)
        pages.canvas.addOutlineEntry("Of carts", f"last{level}", level)
    pages.text(72, 740, "5.1 Of carts", 13, "Helvetica-Bold")
    pages.lines(72, 690, TEXT)
    pages.show()
    assert headings(read, pages)[-2:] == ["# 1880. A year", "## 5.1 Of carts"]


def test_a_title_whose_first_line_alone_is_in_the_outline(read):
    pages = outlined(ENTRIES)
    pages.canvas.bookmarkPage("last")
    pages.canvas.addOutlineEntry("Of carts", "last", 0)
    pages.lines(72, 740, ["Of carts", "and of all who draw them"], 16, "Helvetica-Bold", pitch=18)
    pages.lines(72, 690, TEXT)
    pages.show()
    assert headings(read, pages)[-1] == "# Of carts and of all who draw them"


@pytest.mark.parametrize("font", ["Helvetica-Bold", "Helvetica"])
@pytest.mark.parametrize("rest", ["the races in the valley", ""])
def test_the_first_line_of_an_entry_of_contents_is_no_heading(read, font, rest):
    pages = Pages()
    pages.text(72, 740, "Contents", 20, "Helvetica-Bold")
    leaders = " . . . . . . . . . . ."
    pages.text(72, 700, "5 Of all the mills and of", 15, "Helvetica-Bold")
    end = pages.text(88, 682, rest, 15, "Helvetica-Bold")
    pages.text(end, 682, leaders, 15, font)
    pages.text(430, 682, "11", 15, "Helvetica-Bold")
    pages.rows(664, (88, 430), [(f"5.1 Of the wheel{leaders}", "12"), (f"5.2 Of the stones{leaders}", "14")])
    pages.show()
    pages.text(72, 740, "4 Of the carts", 15, "Helvetica-Bold")
    pages.lines(72, 700, TEXT * 8)
    assert headings(read, pages) == ["# 4 Of the carts"]


def test_a_title_of_the_outline_that_a_hyphen_divides(read):
    pages = outlined(ENTRIES)
    pages.canvas.bookmarkPage("last")
    pages.canvas.addOutlineEntry("Of the mill and its surroundings", "last", 0)
    pages.lines(72, 740, ["Of the mill and its surround-", "ings"])
    pages.lines(72, 690, TEXT)
    pages.show()
    assert headings(read, pages)[-1] == "# Of the mill and its surroundings"


def test_entries_of_contents_are_no_headings(read):
    pages = Pages()
    pages.text(72, 760, "Contents", 18, "Helvetica-Bold")
    y = 730
    for number, chapter in enumerate(["Rye", "Oats"], 1):
        pages.text(72, y, f"{number} {chapter}", 14, "Helvetica-Bold")
        pages.text(400, y, str(number), 14, "Helvetica-Bold")
        pages.text(72, y - 20, f"{number}.1 Of the mill")
        pages.text(400, y - 20, str(number))
        y -= 50
    pages.show()
    for chapter in ("1 Rye", "2 Oats"):
        pages.text(72, 760, chapter, 14, "Helvetica-Bold")
        pages.lines(72, 730, [f"{line} {chapter}" for line in TEXT])
        pages.show()
    assert headings(read, pages) == ["# 1 Rye", "# 2 Oats"]


def test_names_on_a_cover_with_a_few_small_lines_are_no_headings(read):
    pages = Pages()
    pages.text(72, 600, "Rules of the Harbour", 24, "Helvetica-Bold")
    pages.lines(300, 560, ["Second edition", "May 1880"])
    pages.text(72, 100, "Ada Berg, Tom Hill", 16, "Helvetica-Bold")
    pages.show()
    for chapter in "abc":
        pages.text(72, 760, f"Of rye {chapter}", 16, "Helvetica-Bold")
        pages.lines(72, 730, [f"{line} {chapter}" for line in TEXT * 6])
        pages.show()
    assert headings(read, pages) == ["# Of rye a", "# Of rye b", "# Of rye c"]


LICENCE = "HOLDERS OF THE MILL BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY"


@pytest.mark.parametrize(("entries", "names_all"), [(ENTRIES, True), (ENTRIES[:2], False)])
def test_where_the_outline_names_the_headings_a_plain_line_in_capitals_is_none(tmp_path, entries, names_all):
    pages = outlined(entries)
    pages.lines(72, 740, ["The mill is lent as it is, and in no event shall the", LICENCE, "Its wheel is lent, too."])
    pages.show()
    for number in range(0 if names_all else 4):
        pages.lines(72, 690, [f"{line} {number} more" for line in TEXT])
        pages.show()
    (tmp_path / "a.pdf").write_bytes(pages.finish())
    shown = preview([str(tmp_path / "a.pdf")])
    (document,) = shown.documents
    assert ("The mill" in str(document), LICENCE in str(document)) == (True, not names_all)


def test_a_title_of_the_outline_on_two_lines_and_with_another_number(read):
    pages = Pages()
    for number, (entry, lines) in enumerate(
        [
            ("Of the mill and its wheel", ["Of the mill", "and its wheel"]),
            ("The race", ["2. The race"]),
            ("Dues", ["DUES"]),
            ("Of copies", ["Appendix A: Of copies"]),
            ("2 September 1666", ["4.1 2 September 1666"]),
            ("1880 The flood", ["4.2 1880 The flood"]),
            ("2.3 12 oxen", ["12 oxen"]),
            ("A Sample of rye", ["Appendix A", "Sample of rye"]),
            ("Execution de l'ouvrage", ["Exécution de l’ouvrage"]),
            ("Grosse Projekte", ["3 Große Projekte"]),
            ("Rules of Debian", ["Rules of De-", "bian"]),
            ("Where is the wing-half?", ["4.3 Where is the wing-", "half?"]),
        ]
    ):
        pages.canvas.bookmarkPage(str(number))
        pages.canvas.addOutlineEntry(entry, str(number), 0)
        pages.lines(72, 740, lines, 11, "Helvetica-Bold")
        pages.lines(72, 690, [f"{line} {number}" for line in TEXT])
        pages.show()
    titles = [heading.removeprefix("# ") for heading in headings(read, pages)]
    assert titles == [
        "Of the mill and its wheel",
        "2. The race",
        "DUES",
        "Appendix A: Of copies",
        "4.1 2 September 1666",
        "4.2 1880 The flood",
        "12 oxen",
        "Appendix A Sample of rye",
        "Exécution de l’ouvrage",
        "3 Große Projekte",
        "Rules of Debian",
        "4.3 Where is the wing-half?",
    ]


def test_the_number_of_a_chapter_above_its_title_of_the_outline_is_in_the_heading(read):
    pages = Pages()
    for entry, label, size in [
        ("Of mills", ["Chapter 1"], 16),
        ("Of dues", ["Anhang A"], 16),
        ("Of carts", ["CHAPTER", "TWO"], 16),
        ("Rye", ["Chapter 3"], 11),
    ]:
        pages.canvas.bookmarkPage(entry)
        pages.canvas.addOutlineEntry(entry, entry, 0)
        pages.lines(72, 760, label, size, pitch=20)
        pages.text(72, 710, entry, 20)
        pages.lines(72, 670, [f"{line} {entry}" for line in TEXT])
        pages.show()
    assert headings(read, pages) == ["# Chapter 1 Of mills", "# Anhang A Of dues", "# CHAPTER TWO Of carts", "# Rye"]


def test_the_end_of_a_paragraph_that_names_an_appendix_is_no_part_of_the_next_title(read):
    pages = Pages()
    titles = ["4.1 Of the mill", "4.2 Of the wheel", "4.3 Of the weir"]
    for title in titles:
        pages.lines(72, 760, [f"All stones, and what is said {title}, are in", "Appendix A."])
        pages.text(72, 690, title, 16, "Helvetica-Bold")
        pages.lines(72, 660, [f"{line} {title}" for line in TEXT])
        pages.show()
    assert headings(read, pages) == [f"# {title}" for title in titles]


@pytest.mark.parametrize("top", [715, None])
def test_an_entry_of_the_outline_that_is_no_line_of_its_page_ends_the_section_above_it(read, top):
    pages = outlined(ENTRIES)
    for key, title, level in [("last", "Of copies", 0), ("inner", "Its wheel again", 1)]:
        pages.canvas.bookmarkPage(key, fit="XYZ" if top else "Fit", top=top)
        pages.canvas.addOutlineEntry(title, key, level)
    pages.lines(72, 740, ["The year ends.", "Who copies pays."], pitch=40)
    pages.show()
    content = read("a.pdf", pages.finish())
    assert re.findall("^#.*", content.text, re.MULTILINE)[-2:] == ["# Of copies", "## Its wheel again"]
    above, _, below = content.text.partition("# Of copies")
    assert ("The year ends." in above, "Who copies pays." in below) == (top is not None, True)


def test_an_entry_of_the_outline_that_opens_another_file_is_no_heading(read):
    def lead_to_other_file(writer):
        entry = writer.add_outline_item("The other book", page_number=None).get_object()
        where = ArrayObject([NumberObject(0), NameObject("/Fit")])
        names = {"/S": NameObject("/GoToR"), "/F": TextStringObject("other.pdf"), "/D": where}
        entry[NameObject("/A")] = DictionaryObject({NameObject(name): value for name, value in names.items()})

    content = read("a.pdf", change(outlined(ENTRIES).finish(), lead_to_other_file))
    assert "# The mill" in content.text
    assert "The other book" not in content.text


def test_an_entry_of_the_outline_that_is_only_a_running_head_ends_the_section_above_it(read):
    pages = Pages()
    for number, (title, level) in enumerate([*ENTRIES, ("Of copies", 0), ("Of rye", 1)]):
        pages.canvas.bookmarkPage(str(number))
        pages.canvas.addOutlineEntry(title, str(number), level)
        pages.text(72, 800, "Of copies", 9)
        if title != "Of copies":
            pages.text(72, 740, title)
        pages.lines(72, 690, [f"{line} {number}" for line in TEXT])
        pages.show()
    assert headings(read, pages)[-2:] == ["# Of copies", "## Of rye"]


def test_a_title_that_the_outline_lacks_is_in_the_type_of_its_headings(read):
    pages = Pages()
    for number in range(6):
        pages.canvas.bookmarkPage(str(number))
        if number != 3:
            pages.canvas.addOutlineEntry(f"Ships {number}", str(number), 0)
        pages.text(72, 740, f"Ships {number}", 18)
        pages.lines(72, 690, [f"{line} {number}" for line in TEXT])
        pages.show()
    assert headings(read, pages) == [f"# Ships {number}" for number in range(6)]


@pytest.mark.parametrize(
    "listing", [["# rm -r /srv/old", "mill --all"], ["```", "mill --all", "```"], ["Oats", "===="]]
)
@pytest.mark.parametrize("font", ["Helvetica", "Courier-Bold"])
def test_signs_of_markdown_are_text(read, listing, font):
    pages = Pages()
    pages.text(72, 760, "Care of the mill", 16, "Helvetica-Bold")
    pages.lines(72, 730, TEXT)
    pages.lines(72, 680, listing, 9, font)
    pages.lines(72, 620, ["Then the gate is shut."])
    content = read("a.pdf", pages.finish())
    found = {content.text[s.start : s.end]: s.heading for s in split_sentences(content.text)}
    last = next(sentence for sentence in found if "the gate is shut" in sentence)
    assert found[last] == "Care of the mill"
    assert listing[0].strip("`") in content.text


# --- bold titles in a size that text has, too ---


def bold_titles(size, pitch_above, titles):
    """Return a page whose sections have bold titles."""
    pages = Pages()
    pages.text(72, 780, "News of the Orrin", 20, "Helvetica-Bold")
    y = 740
    for number, title in enumerate(titles):
        pages.text(72, y, title, size, "Helvetica-Bold")
        y = pages.lines(72, y - 15, [f"{line} {chr(97 + number)}" for line in TEXT], 10, pitch=13)
        y -= pitch_above - 13
    return pages


@pytest.mark.parametrize("size", [10, 11])
@pytest.mark.parametrize("titles", [("Bridge closed", "The library"), ("Öffnungszeiten", "Übung"), ("Prices", "FAIR")])
def test_bold_titles_with_space_above_them(read, size, titles):
    pages = bold_titles(size, 24, titles)
    assert headings(read, pages) == ["# News of the Orrin", *(f"## {title}" for title in titles)]


TITLES_IN_COLUMNS = [
    "Bridge closed",
    "Bridge closed again",
    "The library",
    "The library again",
    "Autumn fair",
    "Autumn fair again",
]


def test_bold_titles_in_columns(read):
    pages = Pages()
    for x, title in [(50, "Bridge closed"), (230, "The library"), (410, "Autumn fair")]:
        pages.text(x, 740, title, 10.5, "Times-Bold")
        y = pages.lines(x, 725, ["The yard holds twelve carts", "of the mill and of all its", "tenants, who pay."], 10)
        pages.text(x, y - 12, f"{title} again", 10.5, "Times-Bold")
        pages.lines(x, y - 27, ["They pay for them in spring", "or in the first week of", "each month."], 10)
    assert headings(read, pages) == [f"# {name}" for name in TITLES_IN_COLUMNS]


@pytest.mark.parametrize("size", [11.5, 14])
@pytest.mark.parametrize("x", [72, 300])
def test_bold_titles_in_a_size_that_a_line_of_text_has_too(read, size, x):
    pages = bold_titles(size, 30, ["Bridge closed", "The library"])
    note = "Number 318, of the first of September in the year after the flood. Price: two pence."
    pages.text(x, 560, note, size)
    assert headings(read, pages) == ["# News of the Orrin", "## Bridge closed", "## The library"]


@pytest.mark.parametrize("outline", [False, True])
def test_the_title_of_an_abstract_in_small_type_is_apart_from_its_text(read, outline):
    pages = Pages()
    pages.text(72, 780, "News of the Orrin", 20, "Helvetica-Bold")
    pages.text(272, 740, "Abstract", 9, "Helvetica-Bold")
    y = pages.lines(100, 725, TEXT, 9, pitch=11)
    for number, title in enumerate(["Bridge closed", "The library"]):
        pages.canvas.bookmarkPage(title)
        if outline:
            pages.canvas.addOutlineEntry(title, title, 0)
        pages.text(72, y - 20, title, 15, "Helvetica-Bold")
        y = pages.lines(72, y - 44, [f"{line} {chr(97 + number)}" for line in TEXT * 2])
    text = read("a.pdf", pages.finish()).text
    assert f"Abstract\n\n{TEXT[0]}" in text or f"## Abstract\n{TEXT[0]}" in text


def test_bold_lines_that_are_no_titles(read):
    pages = Pages()
    pages.lines(72, 780, TEXT)
    pages.text(72, 710, "Carts of the mill and of its tenants", 11, "Helvetica-Bold")
    pages.lines(72, 696, ["are held in the yard until", "the dues are paid."])  # the sentence goes on
    for y, label, value in [(650, "Name", "Orsolya Holm"), (610, "Place", "Skarn"), (570, "Notes", "None")]:
        pages.text(72, y, label, 11, "Helvetica-Bold")
        pages.text(72, y - 14, value)
    pages.lines(72, 520, ["The dues are paid in May.", "Late dues are doubled."])
    pages.text(72, 492, "No space above this line", 11, "Helvetica-Bold")
    pages.lines(72, 478, TEXT)
    pages.text(72, 410, "This is a sentence in bold type.", 11, "Helvetica-Bold")
    pages.lines(72, 396, TEXT)
    for number, item in enumerate(["• Oats", "• Rye", "• Barley"]):
        pages.text(72, 330 - 30 * number, item, 11, "Helvetica-Bold")
        pages.lines(72, 316 - 30 * number, ["The yard holds twelve carts of the mill."])
    assert headings(read, pages) == []


def test_bold_titles_of_one_type_are_all_titles_whatever_is_below_them(read):
    pages = Pages()
    titles = ["Overview", "Loading", "Basic commands", "Styles", "Options"]
    pages.text(72, 765, "It has these parts.")
    for number, title in enumerate(titles):
        y = 740 - 90 * number
        pages.text(72, y, title, 11, "Helvetica-Bold")
        pages.lines(
            72 + 30 * number, y - 14 - 5 * number, ["the yard holds twelve carts", "of the mill and of its tenants"]
        )
        pages.text(72, y - 76, "The dues are paid in May.")
    assert headings(read, pages) == [f"# {title}" for title in titles]


def test_bold_titles_on_two_lines_and_with_a_name_in_another_font(read):
    pages = Pages()
    pages.lines(72, 780, TEXT)
    pages.text(72, 710, "1 Scope", 11, "Helvetica-Bold")
    pages.lines(72, 690, TEXT)
    pages.lines(72, 620, ["1.1 Dues of the mill and", "of its tenants"], 11, "Helvetica-Bold")
    pages.lines(72, 586, TEXT)
    x = pages.text(72, 516, "1.2 Using the command ", 11, "Helvetica-Bold")
    pages.text(x, 516, "dues", 11, "Courier-Bold")
    pages.lines(72, 496, TEXT)
    assert headings(read, pages) == [
        "# 1 Scope",
        "## 1.1 Dues of the mill and of its tenants",
        "## 1.2 Using the command dues",
    ]


def test_names_on_the_first_page_in_the_size_of_titles_are_no_headings(read):
    pages = Pages()
    pages.text(72, 760, "Carts", 20)
    pages.text(72, 730, "Orsolya Holm", 14)
    pages.text(72, 710, "Copyright 2020, 2021 The Mill", 14)
    for title in ("Scope", "Dues", "Tolls"):
        pages.text(72, 680, title, 14, "Helvetica-Bold")
        pages.lines(72, 660, [f"{line} {title}" for line in TEXT])
        pages.show()
    assert headings(read, pages) == ["# Scope", "# Dues", "# Tolls"]


@pytest.mark.parametrize(
    "below",
    [
        ["Leslie Lamport", "1994/08/09"],
        ["The Guild", "Leslie Lamport", "Version v1.2c, 1994/08/09"],
        ["Released 2023-01-16"],
        ["Last updated: 2023-01-16"],
    ],
)
def test_an_author_and_a_date_below_a_title_are_no_heading(read, below):
    pages = Pages()
    pages.text(72, 740, "Graph paper", 18)
    y = pages.lines(72, 715, below, 14, pitch=17)
    pages.lines(72, y - 10, TEXT)
    assert headings(read, pages) == ["# Graph paper"]


def test_centred_names_below_the_title_of_a_short_text_are_no_headings(read):
    pages = Pages()
    pages.text(260, 760, "Graph paper", 18)
    pages.text(265, 730, "Denis Roegel", 14)
    pages.text(260, 715, "roegel@example.org", 14, "Courier")
    pages.text(262, 695, "2 August 2003", 14)
    y = pages.lines(72, 660, TEXT)
    pages.text(72, y - 10, "Dues", 14, "Helvetica-Bold")
    pages.lines(72, y - 30, TEXT)
    assert headings(read, pages) == ["# Graph paper", "## Dues"]


def test_a_heading_between_the_title_and_the_text_of_a_short_text(read):
    pages = Pages()
    pages.text(72, 760, "Graph paper", 18)
    pages.text(72, 730, "Summary", 14, "Helvetica-Bold")
    pages.lines(72, 710, TEXT)
    assert headings(read, pages) == ["# Graph paper", "## Summary"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (r"\psfig \epsfig 5 \def\psfig#1{%", []),
        (r"\epsfbox 31 \newdimen\epsfxsize", []),
        (r"Using \psfig and \epsfig", [r"# Using \psfig and \epsfig"]),
        (r"\epsfbox", [r"# \epsfbox"]),
        ("Release notes 2023-01-16", ["# Release notes 2023-01-16"]),
    ],
)
def test_code_is_no_heading_but_names_in_titles_may_have_its_signs(read, line, found):
    pages = Pages()
    pages.text(72, 740, line, 16)
    pages.lines(72, 690, TEXT)
    assert headings(read, pages) == found


@pytest.mark.parametrize(
    ("line", "font", "found"),
    [
        ("Mill --all --oats", "Courier", []),
        (r"\mill{oats}{rye}", "Courier", []),
        ("The mill and its oats", "Helvetica", ["# The mill and its oats"]),
    ],
)
def test_a_line_of_code_in_larger_type_than_the_text_is_no_heading(read, line, font, found):
    pages = Pages()
    pages.lines(72, 740, TEXT)
    pages.text(72, 690, line, 14, font)
    pages.lines(72, 670, TEXT)
    assert headings(read, pages) == found


@pytest.mark.parametrize(
    ("name", "is_code"),
    [
        ("MonotypeCorsiva", False),
        ("Monotype-Garamond-Bold", False),
        ("Courgette-Regular", False),
        ("Harcourt", False),
        ("Simonotta", False),
        ("XCMBTT+Times-Roman", False),
        ("ABCDEF+CMTT10", True),
        ("CMSLTT10", True),
        ("CourierNewPSMT", True),
        ("DejaVuSansMono-Bold", True),
        ("LMMono10-Regular", True),
        ("Monospace", True),
        ("liberation mono", True),
    ],
)
def test_fonts_of_code(name, is_code):
    assert is_code_font(name) == is_code


def test_where_the_outline_names_the_headings_larger_lines_in_the_font_of_the_text_are_none(read):
    pages = Pages()
    for number in range(4):
        pages.canvas.bookmarkPage(str(number))
        pages.canvas.addOutlineEntry(f"Ships {number}", str(number), 0)
        pages.text(72, 740, f"Ships {number}", 18, "Helvetica-Bold")
        pages.lines(72, 690, [f"{line} {number}" for line in TEXT])
        pages.text(72, 600, f"Oil of herrings {number}", 14)
        pages.lines(72, 500, TEXT)
        pages.show()
    assert headings(read, pages) == [f"# Ships {number}" for number in range(4)]


@pytest.mark.parametrize("x", [72, 160])
def test_where_the_outline_names_chapters_alone_sections_in_the_font_of_the_text_are_headings(read, x):
    pages = Pages()
    found = []
    for number, name in enumerate(["Harbour", "Lamp", "Mill", "Yard"]):
        pages.canvas.bookmarkPage(name)
        pages.canvas.addOutlineEntry(name, name, 0)
        pages.text(72, 740, name, 18)
        pages.lines(72, 710, [f"{line} {number}" for line in TEXT])
        pages.text(x, 640, f"Section of {name}", 14)
        pages.lines(72, 615, [f"{line} {name}" for line in TEXT])
        found += [f"# {name}", f"## Section of {name}"]
        pages.show()
    assert headings(read, pages) == found


def test_authors_below_titles_of_the_outline_are_no_headings(read):
    pages = Pages()
    names = ["Ada Berg", "Tom Hill", "Eva Lind", "Jon Rye"]
    for number, name in enumerate(names):
        pages.canvas.bookmarkPage(name)
        pages.canvas.addOutlineEntry(f"Ships {number}", name, 0)
        pages.text(220, 740, f"Ships {number}", 18, "Helvetica-Bold")
        pages.text(230, 715, name, 14)
        pages.text(200, 700, f"The University of {name[4:]}")
        pages.text(225, 686, f"mail of {name[:3]}")
        pages.lines(72, 640, [f"{line} {name}" for line in TEXT])
        pages.show()
    assert headings(read, pages) == [f"# Ships {number}" for number in range(4)]


def test_larger_lines_far_below_each_other_are_not_one_title(read):
    pages = Pages()
    pages.text(72, 740, "Oats", 16)
    pages.text(72, 640, "Of ships", 16)
    pages.lines(72, 610, TEXT)
    assert headings(read, pages) == ["# Of ships"]


@pytest.mark.parametrize("pitch", [24, 44, 48])
def test_two_widely_spaced_lines_are_one_title(read, pitch):
    pages = Pages()
    pages.lines(72, 740, ["The Long History of", "the Harbour of Orra"], 20, "Helvetica-Bold", pitch)
    pages.lines(72, 640, TEXT)
    assert headings(read, pages) == ["# The Long History of the Harbour of Orra"]


def test_an_entry_of_the_outline_is_the_line_to_which_it_points(read):
    pages = Pages()
    for number, title in enumerate(["Ships", "Oats", "Rye"]):
        pages.text(72, 800, "Oats", 18)
        pages.text(72, 760, "The yard holds carts and")
        pages.text(72, 746, f"{title.lower()}:")
        pages.lines(72, 690, [f"{line} {number}" for line in TEXT])
        pages.text(72, 600, title, 13, "Helvetica-Bold")
        pages.canvas.bookmarkHorizontalAbsolute(title, 615)
        pages.canvas.addOutlineEntry(title, title, 0)
        pages.lines(72, 580, [f"{line} {number}" for line in TEXT])
        pages.show()
    text = read("a.pdf", pages.finish()).text
    assert re.findall("^#.*\n.*", text, re.MULTILINE) == [
        f"# {title}\nThe yard holds twelve carts of the mill {number}"
        for number, title in enumerate(["Ships", "Oats", "Rye"])
    ]


def test_a_word_that_ends_a_sentence_is_no_entry_of_the_outline(read):
    pages = Pages()
    entries = [("1 Ships", "1 Ships of the mill"), ("2 Oats", "2 Oats"), ("3 Rye", "3 Rye")]
    for entry, title in entries:
        pages.canvas.bookmarkPage(entry)
        pages.canvas.addOutlineEntry(entry, entry, 0)
        pages.text(72, 740, title, 13, "Helvetica-Bold")
        pages.lines(72, 690, ["The yard of the mill is open to all its", "ships:", *TEXT])
        pages.show()
    assert "# ships:" not in headings(read, pages)


def test_a_heading_that_begins_small_is_an_entry_that_begins_large(read):
    pages = Pages()
    entries = [("1 Ships", "1 Ships"), ("The Keeper", "the keeper"), ("3 IPhone setup", "iPhone setup")]
    for entry, title in entries:
        pages.canvas.bookmarkPage(entry)
        pages.canvas.addOutlineEntry(entry, entry, 0)
        pages.text(72, 740, title, 18, "Helvetica-Bold")
        pages.lines(72, 690, ["The yard of the mill is open to all its", *TEXT])
        pages.show()
    assert headings(read, pages) == [f"# {title}" for _, title in entries]


def test_an_entry_in_other_words_than_its_title_leaves_the_titles_of_other_entries_and_has_all_lines_of_its_own(read):
    pages = outlined(ENTRIES)
    for entry, printed in [("Strings", ["PDF strings"]), ("PDF strings", []), ("Of mills", ["Of mills and", "carts"])]:
        pages.canvas.bookmarkHorizontalAbsolute(entry, 725)
        pages.canvas.addOutlineEntry(entry, entry, 0)
        if printed:
            pages.lines(72, 720, printed, 18, "Helvetica-Bold", 22)
        if entry != "Strings":
            pages.lines(72, 660, TEXT)
            pages.show()
    text = read("a.pdf", pages.finish()).text
    assert "# Strings\n# PDF strings\nThe yard" in text
    assert "# Of mills and carts\nThe yard" in text


@pytest.mark.parametrize(
    ("entry", "printed", "heading"),
    [
        ("Of dues", [("A", "Courier"), ("OF DUES", "Helvetica-Bold")], "# OF DUES"),
        ("Of dues", [("A. Of dues", "Helvetica-Bold")], "# A. Of dues"),
        ("Of {tt dues} and debts", [("4 Of dues and debts", "Helvetica-Bold")], "# 4 Of dues and debts"),
    ],
)
def test_a_title_with_an_ornament_or_the_letter_of_an_appendix_or_in_other_words(read, entry, printed, heading):
    pages = outlined(ENTRIES)
    pages.lines(72, 740, ["The year ends."])
    pages.canvas.bookmarkHorizontalAbsolute("last", 715)
    pages.canvas.addOutlineEntry(entry, "last", 0)
    x = 72
    for text, font in printed:
        x = pages.text(x, 700, text, 18, font) + 5
    pages.lines(72, 680, TEXT)
    pages.show()
    _, _, after = read("a.pdf", pages.finish()).text.partition("The year ends.\n")
    assert after.startswith(f"{heading}\n{TEXT[0]}")


def test_an_entry_that_is_no_line_of_its_page_stands_at_its_place_and_not_before_what_the_file_has_first(read):
    pages = outlined(ENTRIES)
    pages.lines(72, 200, ["A note at the foot."])
    pages.lines(72, 740, ["The year ends."])
    pages.canvas.bookmarkHorizontalAbsolute("last", 715)
    pages.canvas.addOutlineEntry("Of copies", "last", 0)
    pages.lines(72, 700, ["Who copies pays."])
    pages.show()
    text = read("a.pdf", pages.finish()).text
    assert text.index("The year ends.") < text.index("# Of copies") < text.index("Who copies pays.")
