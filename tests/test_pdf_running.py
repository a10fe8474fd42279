"""Heads, feet and page numbers of PDFs, which are left out, and text at the same places, which is not."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pdf_pages import CHINESE, Pages

BODY = ["The miller ground rye", "and kept a ledger of", "every sack that came."]
ROMAN = ["i", "ii", "iii", "iv", "v", "vi"]


def read_pages(read, pages):
    """Return the lines of each page."""
    content = read("a.pdf", pages.finish())
    bounds = [*content.page_starts, len(content.text)]
    return [content.text[start:end].split() for start, end in pairwise(bounds)]


def book(heads, feet, size=9):
    """Return pages with a head, a body that differs, and a foot."""
    pages = Pages()
    for number, (head, foot) in enumerate(zip(heads, feet, strict=True)):
        if head:
            pages.text(72, 800, head, size)
        pages.lines(72, 740, [f"{line} {chr(97 + number)}" for line in BODY])
        if foot:
            pages.text(290, 40, foot, size)
        pages.show()
    return pages


def count_pages(read, pages, word):
    return sum(word in page for page in read_pages(read, pages))


@pytest.mark.parametrize(
    "feet",
    [
        [f"Page {n} of 12" for n in range(1, 7)],
        [f"- {n} -" for n in range(3, 9)],
        [f"{n} / 12" for n in range(1, 7)],
        [f"— {n} —" for n in range(11, 17)],
        [f"Seite {n}" for n in range(1, 7)],
        [f"[{n}]" for n in range(1, 7)],
        ROMAN,
    ],
)
def test_numbers_of_pages(read, feet):
    pages = read_pages(read, book([""] * 6, feet))
    for number, page in enumerate(pages):
        assert page == [word for line in BODY for word in [*line.split(), chr(97 + number)]]


@pytest.mark.parametrize(
    "number",
    [
        "Seite {} von 6",
        "Page {} sur 6",
        "Página {} de 6",
        "Pagina {} di 6",
        "Pag. {} van 6",
        "Strona {} z 6",
        "Sida {} av 6",
        "Page {}/6",
        "Page {} / 6",
    ],
)
@pytest.mark.parametrize("foot", ["{} Orra Laboratory", "Orra Laboratory at Mill 2 {}", "Orra Laboratory {} at Mill 2"])
def test_a_foot_with_the_number_of_its_page_and_of_all_pages(read, number, foot):
    feet = [foot.format(number.format(page)) for page in range(1, 7)]
    words = read_pages(read, book([""] * 6, feet))
    assert "Laboratory" in words[0]
    assert [page[-1] for page in words[1:]] == ["b", "c", "d", "e", "f"]


@pytest.mark.parametrize("pages", [2, 6])
@pytest.mark.parametrize(
    "foot",
    [
        "Annals of the Mill 7 (1881) {}",
        "{} Annals of the Mill",
        "Orra Mill - Page {} of 9",
        "Orra Mill | {} | 7 May 1881",
    ],
)
def test_a_number_after_the_words_of_a_foot(read, pages, foot):
    words = read_pages(read, book([""] * pages, [foot.format(page) for page in range(1, pages + 1)]))
    assert "Mill" in words[0]
    assert [page[-1] for page in words[1:]] == ["b", "c", "d", "e", "f"][: pages - 1]


def test_a_foot_of_both_pages_of_a_letter(read):
    words = read_pages(read, book(["", ""], ["Payable to the Orra Mill"] * 2))
    assert ["Payable" in page for page in words] == [True, False]


@pytest.mark.parametrize("pages", [1, 2])
@pytest.mark.parametrize("foot", ["{}", "- {} -"])
def test_numbers_in_the_middle_below_a_short_document(read, pages, foot):
    document = Pages()
    for number in range(1, pages + 1):
        end = document.text(72, 740, "The miller ground rye and kept a ledger of all sacks")
        document.text(72, 726, "that came.")
        document.text((72 + end) / 2, 40, foot.format(number), 9)
        document.show()
    for words in read_pages(read, document):
        assert words[-1] == "came."


@pytest.mark.parametrize(
    ("x", "y", "number"),
    [
        (72, 40, "Seite 2"),
        (480, 800, "Page 2 of 2"),
        (480, 40, "–2"),
        (72, 40, "2"),
        (190, 40, "– 2 –"),
    ],
)
def test_the_head_and_the_number_of_the_second_page_of_a_letter(read, x, y, number):
    pages = Pages()
    pages.text(400, 760, "Orra Mill Ltd", 7)
    pages.lines(72, 740, BODY)
    pages.show()
    pages.text(x, y, number, 9)
    pages.text(400, 760, "Orra Mill Ltd", 7)
    pages.lines(72, 740, ["He sold the rye", "in autumn."])
    pages.show()
    first, second = read_pages(read, pages)
    assert first[:3] == ["Orra", "Mill", "Ltd"]
    assert second == ["He", "sold", "the", "rye", "in", "autumn."]


@pytest.mark.parametrize(("x", "number"), [(72, "1"), (190, "2"), (190, "(1)")])
def test_other_numbers_below_a_short_document(read, x, number):
    pages = Pages()
    pages.text(72, 740, "The miller ground rye and kept a ledger of all sacks")
    pages.text(x, 40, number, 9)
    assert read_pages(read, pages)[0][-1] == number


def test_numbers_at_the_end_of_pages_that_are_no_numbers_of_pages(read):
    words = read_pages(read, book([""] * 6, [f"Figure {number}" for number in range(1, 7)]))
    assert [page[-2:] for page in words] == [["Figure", str(number)] for number in range(1, 7)]
    pages = Pages()
    for number in range(1, 7):
        pages.lines(72, 740, [*BODY, f"as the ledger says of house {number}"])
        pages.show()
    assert [page[-1] for page in read_pages(read, pages)] == ["1", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize("foot", ["https://mill.example/rye.html {}/6", "file:///rye.html | {} / 6"])
def test_the_foot_that_a_browser_prints(read, foot):
    words = read_pages(read, book([""] * 6, [foot.format(page) for page in range(1, 7)]))
    assert "rye.html" in " ".join(words[0])
    assert [page[-1] for page in words[1:]] == ["b", "c", "d", "e", "f"]


@pytest.mark.parametrize("foot", ["水质报告 第{}页 共6页", "水质报告第 {} 页，共 6 页", "水质报告 第{}页"])
def test_a_foot_in_chinese_with_the_number_of_its_page(read, foot):
    pages = Pages()
    for number in range(1, 7):
        pages.lines(72, 740, [f"{line} {chr(96 + number)}" for line in BODY])
        pages.text(290, 40, foot.format(number), 9, CHINESE)
        pages.show()
    assert [page[-1] for page in read_pages(read, pages)[1:]] == ["b", "c", "d", "e", "f"]


def test_the_number_of_an_equation_is_no_page_number(read):
    pages = Pages()
    for number in range(1, 7):
        pages.lines(72, 740, [f"{line} {chr(97 + number)}" for line in BODY])
        if number == 3:
            pages.text(500, 690, "(3)")
        pages.text(290, 40, str(number), 9)
        pages.show()
    words = read_pages(read, pages)
    assert "(3)" in words[2]
    assert not any(str(number) in page for number, page in enumerate(words, 1))


def test_heads_on_the_left_and_on_the_right(read):
    heads = ["Harbour Board", "Annual Report"] * 3
    assert count_pages(read, book(heads, [""] * 6), "Harbour") == 1
    assert count_pages(read, book(heads, [""] * 6), "Annual") == 1


def test_a_head_with_the_number_of_its_page(read):
    pages = Pages()
    for number in range(6):
        pages.text(72, 800, "Harbour Board" if number % 2 else str(10 + number), 9)
        pages.text(480, 800, str(10 + number) if number % 2 else "Annual Report", 9)
        pages.lines(72, 740, [f"{line} {chr(97 + number)}" for line in BODY])
        pages.show()
    words = read_pages(read, pages)
    assert sum("Harbour" in page for page in words) == 1
    assert not any(str(10 + number) in words[number] for number in range(2, 6))


def test_the_only_roman_number_before_page_1(read):
    feet = ["", "i", *(str(number) for number in range(1, 5))]
    pages = read_pages(read, book([""] * len(feet), feet))
    assert all(page[-1] == chr(97 + number) for number, page in enumerate(pages))


@pytest.mark.parametrize(
    "numbers", [["", *ROMAN[1:4], "| 1", "| 2", "| 3", "| 4"], [*ROMAN[:3], "1 / 4", "2 / 4", "3 / 4", "4 / 4"]]
)
def test_a_head_with_roman_numerals_in_the_front_matter(read, numbers):
    heads = [f"Rules of the Harbour {number}" if number else "" for number in numbers]
    pages = book(heads, [""] * len(heads))
    assert count_pages(read, pages, "Harbour") == 1


def test_a_head_that_changes_with_the_chapter(read):
    pages = Pages()
    chapters = ["The Mill", "The Race", "The Yard"]
    for number in range(9):
        chapter = chapters[number // 3]
        if number % 3:
            pages.text(72, 800, chapter.upper(), 9)
        else:
            pages.text(72, 770, chapter, 18, "Helvetica-Bold")
        pages.lines(72, 740, [f"{line} {chr(97 + number)}" for line in BODY])
        pages.show()
    words = read_pages(read, pages)
    assert [sum(word in page for page in words) for word in ("MILL", "RACE", "YARD")] == [0, 0, 0]


def test_a_head_with_the_chapter_that_only_one_page_has(read):
    pages = Pages()
    for number, chapter in enumerate(["Mill", "Mill", "Mill", "Mill", "Race", "Yard", "Yard", "Yard"]):
        pages.text(72, 816, "Ledger", 12)
        pages.text(300, 800, chapter.upper(), 9)
        pages.lines(72, 740, [f"{line} {chr(97 + number)}" for line in BODY])
        pages.text(72, 600, chapter, 18, "Helvetica-Bold")
        pages.lines(72, 570, [f"{line} {chr(110 + number)}" for line in BODY])
        pages.show()
    words = read_pages(read, pages)
    assert [sum(word in page for page in words) for word in ("MILL", "RACE", "YARD")] == [0, 0, 0]


def test_a_head_that_two_pages_do_not_have(read):
    heads = ["Harbour Board", "", "Harbour Board", "Harbour Board", "", "Harbour Board"]
    assert count_pages(read, book(heads, [""] * 6), "Harbour") == 1


@pytest.mark.parametrize(
    "answers", [["Approved"] * 4 + ["Rejected"], ["Approved", "Rejected", "Approved", "Approved", "Approved"]]
)
@pytest.mark.parametrize("y", [780, 60])
def test_an_answer_at_the_edge_of_most_pages(read, answers, y):
    pages = Pages()
    for number, answer in enumerate(answers):
        if y > 700:
            pages.text(72, y, answer)
        pages.lines(72, 740, [f"{line} {number}" for line in BODY])
        if y < 700:
            pages.text(72, y, answer)
        pages.show()
    assert [page[0] if y > 700 else page[-1] for page in read_pages(read, pages)] == answers


def test_a_line_under_its_heading(read):
    pages = Pages()
    for number in range(5):
        pages.lines(72, 760, [f"Decision {chr(97 + number)}", "of the board"])
        pages.text(72, 100, "Result:")
        pages.text(72, 86, "Approved")
        pages.show()
    assert [page[-2:] for page in read_pages(read, pages)] == [["Result:", "Approved"]] * 5


def test_a_larger_head_above_the_name_of_the_chapter(read):
    pages = Pages()
    for number in range(8):
        pages.text(72, 805, "Ledger", 15)
        pages.text(72, 780, f"Chapter{number}", 9)
        pages.lines(72, 700, [f"{line} {chr(97 + number)}" for line in BODY], 9)
        pages.show()
    assert count_pages(read, pages, "Ledger") == 1


def test_a_heading_with_its_text_below_it(read):
    pages = Pages()
    for number in range(5):
        pages.text(72, 780, "Result", 14, "Helvetica-Bold")
        pages.text(72, 762, "Rejected" if number == 3 else "Approved")
        pages.lines(72, 740, [f"{line} {number}" for line in BODY])
        pages.show()
    words = read_pages(read, pages)
    assert all("Result" in page for page in words)
    assert [word for page in words for word in page if word in {"Approved", "Rejected"}] == [
        "Approved", "Approved", "Approved", "Rejected", "Approved",
    ]  # fmt: skip


def test_numbered_records(read):
    pages = Pages()
    for number in range(5):
        pages.text(72, 780, f"Decision {number + 1}")
        pages.lines(72, 740, BODY)
        pages.show()
    assert [page[:2] for page in read_pages(read, pages)] == [["Decision", str(number + 1)] for number in range(5)]


def test_the_names_of_columns_above_the_rows_of_each_page(read):
    pages = Pages()
    for number in range(4):
        rows = [
            ("Ship", "Tons", "Year"),
            *((f"Gull {number}{row}", str(row + 40), str(1880 + row)) for row in range(3)),
        ]
        pages.rows(780, (72, 200, 300), rows)
        pages.show()
    content = read("a.pdf", pages.finish())
    assert content.text.count("Ship | Tons | Year") == 4


@pytest.mark.parametrize("is_at_top", [True, False])
def test_text_of_each_page_next_to_a_head_or_a_foot(read, is_at_top):
    pages = Pages()
    for number in range(1, 6):
        pages.text(72, 805, "Orra Laboratory" if is_at_top else str(number), 9)
        if is_at_top:
            pages.text(72, 765, "Nothing found")
        pages.lines(72, 700, [f"{line} {number}" for line in BODY])
        if not is_at_top:
            pages.text(72, 80, "Nothing found")
        pages.text(72, 45, f"Seite {number} von 5", 9)
        pages.show()
    assert count_pages(read, pages, "Nothing") == 5


def test_a_foot_of_two_lines_in_two_sizes(read):
    pages = Pages()
    for number in range(1, 6):
        pages.lines(72, 740, [f"{line} {number}" for line in BODY])
        pages.text(72, 57, "Orra Laboratory", 10)
        pages.text(72, 45, f"Seite {number} von 5", 9)
        pages.show()
    assert count_pages(read, pages, "Laboratory") == 1


ENTRIES = ["Aal", "Abend", "Acker", "Adel", "Affe", "Ahorn", "Alm", "Amsel", "Anker", "Apfel", "Arm", "Ast"]


@pytest.mark.parametrize("form", ["{} – {}", "{}   {}", "{}-{}"])
def test_guide_words_that_the_page_has(read, form):
    pages = Pages()
    for number in range(4):
        entries = ENTRIES[3 * number : 3 * number + 3]
        pages.text(72, 800, form.format(entries[0], entries[-1]) if "  " not in form else entries[0])
        if "  " in form:
            pages.text(480, 800, entries[-1])
        pages.lines(72, 740, [f"{entry}: what the miller called it" for entry in entries])
        pages.show()
    text = read("a.pdf", pages.finish()).text
    assert [text.count(entry) for entry in ENTRIES] == [1] * len(ENTRIES)


def test_heads_with_the_short_title_that_the_outline_has(read):
    pages = Pages()
    chapters = ["The Mill", "The Race", "The Yard"]
    for number in range(9):
        chapter = chapters[number // 3]
        if number % 3:
            pages.text(72, 800, chapter.upper(), 9)
        else:
            pages.canvas.bookmarkPage(chapter)
            pages.canvas.addOutlineEntry(chapter, chapter, 0)
            pages.lines(72, 790, [chapter, "and its tenants"], 18, "Helvetica-Bold", pitch=20)
        pages.lines(72, 740, [f"{line} {chr(97 + number)}" for line in BODY])
        pages.show()
    text = read("a.pdf", pages.finish()).text
    assert [text.count(head) for head in ("THE MILL", "THE RACE", "THE YARD")] == [0, 0, 0]
    assert "# The Race and its tenants" in text


def test_heads_with_the_chapter_and_the_section(read):
    pages = Pages()
    sections = ["Grinding rye", "Grinding oats", "Keeping the race", "Mending the wheel"]
    for number, section in enumerate(sections):
        chapter = "The mill" if number < 2 else "The water"
        if number % 2 == 0:
            pages.text(72, 770, chapter, 18, "Helvetica-Bold")
        pages.text(72, 800, chapter, 9)
        pages.text(400, 800, section, 9)
        pages.text(72, 745, section, 14, "Helvetica-Bold")
        pages.lines(72, 720, [f"{line} {chr(97 + number)}" for line in BODY])
        pages.show()
    text = read("a.pdf", pages.finish()).text
    lines = [line for line in text.split("\n") if line.startswith("#")]
    assert lines == [
        "# The mill",
        "## Grinding rye",
        "## Grinding oats",
        "# The water",
        "## Keeping the race",
        "## Mending the wheel",
    ]
    assert "The mill Grinding" not in text


def test_a_chapter_beside_the_number_of_its_page_after_front_matter(read):
    pages = Pages()
    for numeral in ROMAN[:3]:
        pages.text(500, 800, numeral, 9)
        pages.lines(72, 740, [f"{line} {numeral}" for line in BODY])
        pages.show()
    for number, chapter in enumerate(["Mill", "Mill", "Race", "Race", "Yard", "Yard"], 1):
        pages.text(72, 800, f"Chapter {(number + 1) // 2}: {chapter}", 9)
        pages.text(500, 800, str(number), 9)
        if number % 2:
            pages.text(72, 760, f"{(number + 1) // 2} {chapter}", 16, "Helvetica-Bold")
        pages.lines(72, 730, [f"{line} {number}" for line in BODY])
        pages.show()
    text = read("a.pdf", pages.finish()).text
    assert "Chapter" not in text
    assert [line for line in text.split("\n") if line.startswith("#")] == ["# 1 Mill", "# 2 Race", "# 3 Yard"]


@pytest.mark.parametrize("word", ["CHAPTER", "Kapitola"])
def test_heads_with_the_numbers_of_the_chapter_and_of_the_section(read, word):
    pages = Pages()
    for number, section in enumerate(["Grinding rye", "Grinding oats and barley", "Mending the wheel"], 1):
        head = section if len(section) < 20 else f"{section[:14].rstrip()}..."
        pages.text(72, 800, f"{word} 1. THE MILL", 9)
        pages.text(300, 800, f"1.{number}. {head.upper()}", 9)
        if number == 1:
            pages.text(72, 770, "The mill", 18, "Helvetica-Bold")
        pages.text(72, 745, f"1.{number} {section}", 14, "Helvetica-Bold")
        pages.lines(72, 720, [f"{line} {chr(97 + number)}" for line in BODY])
        pages.show()
    text = read("a.pdf", pages.finish()).text
    assert "MILL" not in text


@pytest.mark.parametrize("is_title_first", [True, False])
def test_heads_with_the_chapter_and_the_title_of_the_book(read, is_title_first):
    pages = Pages()
    for number, chapter in enumerate(["Rye", "Oats", "Barley", "Hops"]):
        texts = ["The mill, volume 2", chapter]
        left, right = texts if is_title_first else texts[::-1]
        pages.text(72, 800, left, 9)
        pages.text(400, 800, right, 9)
        pages.text(72, 760, chapter, 16, "Helvetica-Bold")
        pages.lines(72, 730, [f"{line} {chr(97 + number)}" for line in BODY])
        pages.show()
    assert read("a.pdf", pages.finish()).text.count("volume 2") == 1


def test_a_head_of_two_lines_in_some_chapters(read):
    pages = Pages()
    chapters = [["Rye"]] * 3 + [["The carts that stand", "in the yard"]] * 3 + [["Oats"]] * 3
    for number, chapter in enumerate(chapters):
        pages.lines(72, 800, chapter, 9, pitch=11)
        if number % 3 == 0:
            pages.text(72, 770, " ".join(chapter), 16, "Helvetica-Bold")
        pages.lines(72, 730, [f"{line} {chr(97 + number)}" for line in BODY])
        pages.show()
    assert count_pages(read, pages, "yard") == 1


def test_a_head_that_changes_on_every_page_beside_its_number(read):
    pages = Pages()
    for number, section in enumerate(["Rye", "Oats", "Barley", "Hops", "Malt"], 11):
        pages.text(72, 800, f"1.{number} {section.upper()}", 9)
        pages.text(400, 800, str(number), 9)
        pages.text(72, 760, section, 16, "Helvetica-Bold")
        pages.lines(72, 730, [f"{line} {chr(97 + number)}" for line in BODY])
        pages.show()
    text = read("a.pdf", pages.finish()).text
    assert "OATS" not in text
    assert "# Oats" in text


def test_the_first_words_of_a_page_are_no_guide(read):
    pages = Pages()
    for number in range(4):
        pages.text(72, 800, f"Berth {number} - Odvar Felisk")
        pages.lines(72, 740, [f"Berth {number}", *BODY])
        pages.show()
    assert count_pages(read, pages, "Felisk") == 4


@pytest.mark.parametrize("head", ["Files of the mill", "2 Carts of the yard", "Chapter 3. Dues"])
def test_a_head_that_stays_has_no_page_number(read, head):
    pages = Pages()
    for number in range(1, 5):
        pages.text(72, 800, head, 9, "Helvetica-Oblique")
        pages.text(515, 800, str(number), 9, "Helvetica-Oblique")
        pages.lines(72, 740, [f"The yard holds carts {chr(96 + number)}.", "Its tenants pay for them in May."])
        pages.show()
    text = read("a.pdf", pages.finish()).text
    assert text.count(head) == 1
    assert text.splitlines()[0] == head


@pytest.mark.parametrize(
    "chapters", [["1 Bryggan"] * 3 + ["2 Båtarna"] * 2, ["1 Bryggan"] * 2 + ["2 Båtarna"] * 3 + ["3 Kranen"] * 2]
)
@pytest.mark.parametrize("is_first", [True, False])
def test_the_number_of_a_chapter_is_no_page_number(read, chapters, is_first):
    pages = Pages()
    for number, chapter in enumerate(chapters):
        if is_first:
            pages.text(189, 800, chapter, 8)
        y = 750
        if chapter not in chapters[:number]:
            pages.text(57, y, chapter, 15, "Helvetica-Bold")
            y -= 25
        pages.lines(57, y, [f"{line} {chr(97 + number)}" for line in BODY])
        if not is_first:
            pages.text(189, 800, chapter, 8)
        pages.text(201, 26, f"– {number + 1} –", 8)
        pages.show()
    lines = read("a.pdf", pages.finish()).text.splitlines()
    for chapter in set(chapters):
        assert [line for line in lines if chapter in line] == [f"# {chapter}"]


def test_a_large_word_aslant_across_the_text_is_left_out_and_a_small_one_is_not(read):
    pages = book(["The mill"] * 2, [""] * 2)
    for x, y, turn, word, size in [
        (150, 250, 45, "DRAFT COPY", 60),
        (72, 600, 30, "sacks", 9),
        (40, 250, 90, "Rye", 40),
    ]:
        pages.canvas.saveState()
        pages.canvas.translate(x, y)
        pages.canvas.rotate(turn)
        pages.text(0, 0, word, size)
        pages.canvas.restoreState()
    pages.lines(72, 740, BODY)
    *_, last = read_pages(read, pages)
    assert {"sacks", "Rye"} < set(last)
    assert {"DRAFT", "COPY"}.isdisjoint(last)


def test_numbers_of_lines_of_code_are_no_page_numbers(read):
    pages = Pages()
    for number in range(1, 13):
        if number % 2:
            pages.text(72, 800, "4.1 Carea Class Reference", 9)
            pages.text(480, 800, str(number), 9)
        else:
            pages.text(72, 800, f"{number} Class Documentation", 9)
        pages.lines(72, 740, [f"{line} {chr(96 + number)}" for line in BODY])
        if number > 8:
            pages.text(72, 40, f"{number + 90}", 9)  # the last line of a listing
        pages.show()
    assert count_pages(read, pages, "Class") == 2  # one on the left and one on the right


def test_scanned_pages_do_not_count_for_a_foot(read):
    pages = Pages()
    for number in range(1, 13):
        if number > 8:
            pages.lines(72, 740, [f"{line} {chr(96 + number)}" for line in BODY])
            pages.text(72, 40, "Addendum of the guild", 9)
        pages.show()
    assert count_pages(read, pages, "Addendum") == 1
