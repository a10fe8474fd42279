"""Columns, tables and line ends of PDFs."""

from __future__ import annotations

import io
import re

import pytest
from reportlab.lib.styles import ParagraphStyle
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

from arag.ingest.sentences import split_sentences
from arag.text.normalise import split_cells
from pdf_pages import CHINESE, JAPANESE, Pages, in_any_script

LEFT = [
    "The mill stands on the north bank of",
    "the Orrin and was built by two brothers",
    "who had come from the salt marshes. They",
    "ground rye for the whole valley, and",
    "kept a ledger of every sack.",
]
RIGHT = [
    "In the spring the sluice is opened at",
    "dawn, and the wheel turns until the",
    "church bell rings at noon. Nobody may",
    "fish in the race while it turns, on",
    "pain of a fine of two marks.",
]
THIRD = [
    "The ledger of the mill names all those",
    "who brought their rye to it, and those",
    "who did not pay. It was kept until the",
    "flood, when the lower floor was lost",
    "with the stones and the old wheel.",
]


def across(pages, y, columns, size=10):
    """Draw the lines of columns row by row, as many programs write them."""
    for row in zip(*(lines for _, lines in columns), strict=True):
        for (x, _), line in zip(columns, row, strict=True):
            pages.text(x, y, line, size)
        y -= 13
    return y


def flat(text):
    return " ".join(text.split())


# --- columns ---


@pytest.mark.parametrize("right", [251, 265, 320])
def test_columns_that_are_written_row_by_row_are_read_one_after_the_other(read, right):
    pages = Pages()
    across(pages, 700, [(50, LEFT), (right, RIGHT)])
    assert read("a.pdf", pages.finish()).text == "\n".join(LEFT + RIGHT)


def test_three_columns(read):
    pages = Pages()
    across(pages, 700, [(10, LEFT), (207, RIGHT), (400, THIRD)], 9)
    assert read("a.pdf", pages.finish()).text == "\n".join(LEFT + RIGHT + THIRD)


def test_a_heading_across_columns_stays_between_what_is_above_and_below_it(read):
    pages = Pages()
    pages.text(50, 740, "Of the mill, the race and those who had a share in either of them, by the parish clerk", 10)
    y = across(pages, 700, [(50, LEFT), (300, RIGHT)])
    pages.text(50, y - 10, "What the ledger of the mill says about the years before and after the great flood", 10)
    across(pages, y - 40, [(50, THIRD), (300, LEFT)])
    text = flat(read("a.pdf", pages.finish()).text)
    order = [
        "Of the mill, the race",
        "The mill stands",
        "In the spring",
        "What the ledger",
        "The ledger of",
        "The mill stands",
    ]
    place = 0
    for beginning in order:
        place = text.index(beginning, place) + 1


def test_columns_whose_lines_are_not_at_the_same_height(read):
    pages = Pages()
    for number in range(5):
        pages.text(60, 700 - 14 * number, LEFT[number])
        pages.text(300, 694 - 14 * number, RIGHT[number])
    assert read("a.pdf", pages.finish()).text == "\n".join(LEFT + RIGHT)


def test_a_word_that_a_column_divides_is_whole(read):
    left = [LEFT[0], "the Orrin and was built by two breth-", "ren who came from the salt marshes. They", *LEFT[3:]]
    pages = Pages()
    across(pages, 700, [(50, left), (300, RIGHT)])
    assert "two brethren who came" in read("a.pdf", pages.finish()).text


def test_a_footnote_is_not_in_the_sentence_that_goes_on_in_the_next_column(read):
    pages = Pages()
    y = pages.lines(72, 700, [*LEFT[:-1], "kept a ledger of all the Cana-"])
    pages.text(80, y - 20, "1", size=6)
    pages.text(84, y - 24, "It is now in the museum.", size=8)
    pages.lines(320, 700, ["dian sacks.", *RIGHT])
    text = read("a.pdf", pages.finish()).text
    assert "kept a ledger of all the Canadian sacks." in text
    assert text.endswith("It is now in the museum.")


def test_a_footnote_is_not_in_the_sentence_that_goes_on_on_the_next_page(read):
    pages = Pages()
    pages.lines(72, 700, ["The yard holds twelve carts.", "They belong to the mill"])
    pages.text(72, 650, "1 The mill was built in May.", 8)
    pages.show()
    pages.lines(72, 700, ["and to its tenants.", "They pay for them."])
    assert "mill\n\n1 The mill was built in May.\n\nand" in read("a.pdf", pages.finish()).text


def test_a_footnote_with_the_asterisk_of_tex_is_not_in_the_sentence_above_it(read):
    pages = Pages()
    pages.lines(72, 700, ["The yard holds twelve carts.", "They belong to the mill"])
    end = pages.text(72, 664, "∗", 8, "Symbol")
    pages.text(end, 664, "The mill was built in May.", 8)
    pages.show()
    pages.lines(72, 700, ["and to its tenants.", "They pay for them."])
    assert "mill\n\n∗The mill was built in May.\n\nand" in read("a.pdf", pages.finish()).text


def test_a_foot_is_not_in_the_sentence_that_goes_on_on_the_next_page(read):
    pages = Pages()
    pages.lines(72, 700, ["The yard holds twelve carts.", "They belong to the mill"])
    pages.text(72, 40, "The ledger is printed by the harbour board.", 8)
    pages.show()
    pages.lines(72, 700, ["and to its tenants.", "They pay for them."])
    assert "mill\n\nThe ledger is printed by the harbour board.\n\nand" in read("a.pdf", pages.finish()).text


def test_the_number_of_a_footnote_is_apart_from_its_text(read):
    pages = Pages()
    pages.lines(72, 700, ["The yard holds twelve carts. 1", "They belong to the mill.", "It is open to 3 ships."])
    notes = ["1You can see it in May.", "2A ship came.", "3rd of May. 7Up is a name."]
    pages.lines(72, 650, notes, 8)
    text = read("a.pdf", pages.finish()).text
    assert text.endswith("1 You can see it in May.\n2 A ship came.\n3rd of May. 7Up is a name.")


def test_the_raised_number_of_a_footnote_is_in_the_line_of_its_text(read):
    pages = Pages()
    pages.lines(72, 700, ["The yard holds twelve carts.", "They belong to the mill"])
    for number, y in ((1, 650), (2, 638)):
        pages.text(78, y + 4, str(number), 6)
        pages.text(87, y, "e.g. as built in May.", 8)
    pages.show()
    pages.lines(72, 700, ["and to its tenants.", "They pay for them."])
    notes = "1 e.g. as built in May.\n2 e.g. as built in May."
    assert f"mill\n\n{notes}\n\nand" in read("a.pdf", pages.finish()).text


def test_small_type_below_a_whole_sentence_stays_in_its_column(read):
    pages = Pages()
    y = pages.lines(72, 700, LEFT)
    pages.text(72, y - 20, "1 It is now in the museum.", size=8)
    pages.lines(320, 700, RIGHT)
    text = read("a.pdf", pages.finish()).text
    assert text.index("museum") < text.index(RIGHT[0])


LABELS = ["oats The option has a price.", "It is paid in May.", "rye the option is free.", "barley is paid in June."]


@pytest.mark.parametrize("lefts", [(72, 100, 72, 72), (72, 72, 100, 72), (72, 72, 72, 72)])
def test_the_end_of_a_paragraph_ends_a_sentence_though_the_next_one_begins_small(read, lefts):
    pages = Pages()
    gap = 12 if len(set(lefts)) == 1 else 0
    for number, (left, line) in enumerate(zip(lefts, LABELS, strict=True)):
        pages.text(left, 700 - 14 * number - (gap if number > 1 else 0), line)
    text = read("a.pdf", pages.finish()).text
    sentences = [text[sentence.start : sentence.end] for sentence in split_sentences(text)]
    assert "It is paid in May." in sentences


def test_columns_of_an_index_that_are_written_row_by_row(read):
    left = ["barley, 12", "bridge, 3", "carts, 14, 15", "flood of 1861, 22", "marks, 9"]
    right = ["mill, 1, 4", "noon bell, 7", "race, 8", "rye, 11, 12", "sluice, 2"]
    pages = Pages()
    across(pages, 700, [(50, left), (300, right)])
    assert read("a.pdf", pages.finish()).text == "\n".join(left + right)


def test_columns_that_are_written_one_after_the_other_stay(read):
    pages = Pages()
    pages.lines(60, 700, LEFT)
    pages.lines(275, 700, RIGHT)
    assert read("a.pdf", pages.finish()).text == "\n".join(LEFT + RIGHT)


def test_columns_of_chinese_that_are_written_row_by_row(read):
    left = [
        "北岸磨坊建于一八八〇年，由两兄弟共",
        "同修建。磨坊每年春天开放水闸，禁止",
        "在水渠中捕鱼，违者罚款两马克，由村",
    ]
    right = [
        "教堂的钟声在正午响起之前，水轮一直",
        "转动。账簿记录了每一袋黑麦和每一个",
        "欠款的人，直到洪水冲走了下面的一层",
    ]
    pages = Pages()
    for number in range(3):
        pages.text(50, 700 - 20 * number, left[number], 12, CHINESE)
        pages.text(300, 700 - 20 * number, right[number], 12, CHINESE)
    text = read("a.pdf", pages.finish()).text
    assert "".join(text.split()) == "".join(left + right)


# --- tables ---

COLUMNS = (72, 172, 272, 372)


def table(read, rows, columns=COLUMNS, **options):
    pages = Pages()
    pages.rows(700, columns, rows, **options)
    return read("a.pdf", pages.finish()).text.split("\n")


def test_an_empty_cell_is_a_cell(read):
    rows = [
        ("Grain", "1880", "1881", "1882"),
        ("Rye", "120", "130", "n/a"),
        ("Oats", "", "75", "80"),
        ("Barley", "15", "", "22"),
        ("Peas", "3", "4", ""),
    ]
    assert table(read, rows) == [
        "Grain | 1880 | 1881 | 1882",
        "Grain: Rye | 1880: 120 | 1881: 130 | 1882: n/a",
        "Grain: Oats | 1881: 75 | 1882: 80",
        "Grain: Barley | 1880: 15 | 1882: 22",
        "Grain: Peas | 1880: 3 | 1881: 4",
    ]


def test_cells_are_in_the_column_of_figures_that_are_set_to_the_right(read):
    pages = Pages()
    for number, row in enumerate(
        [("Port", "In", "Out", "Dues"), ("Orra", "1,204", "", "90"), ("Vik", "", "7", "1,100")]
    ):
        pages.text(72, 700 - 18 * number, row[0])
        for right, cell in zip((220, 320, 420), row[1:], strict=True):
            width = pages.canvas.stringWidth(cell, "Helvetica", 11)
            if cell:
                pages.text(right - width, 700 - 18 * number, cell)
    lines = read("a.pdf", pages.finish()).text.split("\n")
    assert lines == ["Port | In | Out | Dues", "Port: Orra | In: 1,204 | Dues: 90", "Port: Vik | Out: 7 | Dues: 1,100"]


def test_names_on_the_other_side_of_their_column(read):
    pages = Pages()
    for number, row in enumerate([("Period", "Add", "Due"), ("Weekly", "42.30", "7.10"), ("Daily", "8.50", "")]):
        pages.text(72, 700 - 18 * number, row[0])
        for left, right, cell in zip((200, 320), (290, 410), row[1:], strict=True):
            width = pages.canvas.stringWidth(cell, "Helvetica", 11)
            if cell:
                pages.text(right - width if number else left, 700 - 18 * number, cell)
    lines = read("a.pdf", pages.finish()).text.split("\n")
    assert lines == ["Period | Add | Due", "Period: Weekly | Add: 42.30 | Due: 7.10", "Period: Daily | Add: 8.50"]


def test_sentences_in_cells_are_no_columns(read):
    rows = [
        ("Spouse employed by spouse of", "Withhold, and the dues are taxable if the work is"),
        ("", "done in the course of trade, and not if it is done"),
        ("", "in the house, as the rule of the board says for all"),
        ("Fishing and the like of the coast", "Withhold, and report what was paid to the crew and"),
        ("", "what was paid in fish, by the end of the quarter."),
        ("Foreign states and their envoys", "The board does not ask for dues, but for a note of"),
        ("", "the sum, and of the name of the envoy who is paid."),
    ]
    pages = Pages()
    pages.rows(700, (60, 260), rows, 10, 13)
    text = flat(read("a.pdf", pages.finish()).text)
    assert (
        text.index("Spouse") < text.index("in the house") < text.index("Fishing") < text.index("what was paid in fish")
    )
    assert text.index("what was paid in fish") < text.index("Foreign")


def test_a_line_that_is_spread_over_its_column_is_no_row(read):
    pages = Pages()
    pages.lines(72, 740, ["the number of withholding allowances claimed by the ap-"])
    pages.rows(726, (72, 150, 210, 260, 310, 350), [("propriate", "amount", "from", "table", "5.", "of the")])
    assert "claimed by the appropriate amount from table 5. of the" in read("a.pdf", pages.finish()).text


def test_labels_that_are_set_in_are_in_the_first_column(read):
    pages = Pages()
    pages.rows(700, COLUMNS, [("Goods of the mill", "1880", "1881", "1882")])
    pages.rows(682, (100, *COLUMNS[1:]), [("Rye", "1", "", "2")])
    pages.rows(664, COLUMNS, [("All", "4", "5", "6")])
    assert read("a.pdf", pages.finish()).text.split("\n") == [
        "Goods of the mill | 1880 | 1881 | 1882",
        "Goods of the mill: Rye | 1880: 1 | 1882: 2",
        "Goods of the mill: All | 1880: 4 | 1881: 5 | 1882: 6",
    ]


def test_a_name_above_several_columns_is_part_of_their_names(read):
    pages = Pages()
    pages.text(210, 718, "Dues")
    pages.text(410, 718, "Ships")
    pages.rows(700, (72, 172, 272, 372, 472), [("Port", "1880", "1881", "1880", "1881"), ("Orra", "9", "8", "7", "6")])
    pages.rows(664, (72, 172, 272, 372, 472), [("Vik", "", "3", "2", "1")])
    assert read("a.pdf", pages.finish()).text.split("\n") == [
        "Port | Dues 1880 | Dues 1881 | Ships 1880 | Ships 1881",
        "Port: Orra | Dues 1880: 9 | Dues 1881: 8 | Ships 1880: 7 | Ships 1881: 6",
        "Port: Vik | Dues 1881: 3 | Ships 1880: 2 | Ships 1881: 1",
    ]


def test_one_name_above_two_columns(read):
    pages = Pages()
    pages.text(205, 718, "Dues paid")
    pages.rows(700, COLUMNS[:3], [("Port", "in", "out"), ("Orra", "9", "8"), ("Vik", "", "3")])
    assert read("a.pdf", pages.finish()).text.split("\n") == [
        "Port | Dues paid in | Dues paid out",
        "Port: Orra | Dues paid in: 9 | Dues paid out: 8",
        "Port: Vik | Dues paid out: 3",
    ]


def test_names_of_two_lines(read):
    pages = Pages()
    y = pages.rows(
        700, COLUMNS, [("", "Sacks", "Dues in", "Year of"), ("Grain", "sold", "marks", "the sale")], pitch=13
    )
    pages.rows(y - 8, COLUMNS, [("Rye", "120", "13", "1880"), ("Oats", "", "7", "1881")])
    assert read("a.pdf", pages.finish()).text.split("\n") == [
        "Grain | Sacks sold | Dues in marks | Year of the sale",
        "Grain: Rye | Sacks sold: 120 | Dues in marks: 13 | Year of the sale: 1880",
        "Grain: Oats | Dues in marks: 7 | Year of the sale: 1881",
    ]


def test_further_lines_of_cells_belong_to_their_row(read):
    pages = Pages()
    y = pages.rows(700, COLUMNS, [("Ship", "Tons", "Sold to", "Year")], pitch=22)
    y = pages.rows(y, COLUMNS, [("Gull of", "40", "the board", "1880"), ("Orra", "", "of trade", "")], pitch=13)
    pages.rows(y - 9, COLUMNS, [("Petrel", "", "nobody", "1881")])
    assert read("a.pdf", pages.finish()).text.split("\n") == [
        "Ship | Tons | Sold to | Year",
        "Ship: Gull of Orra | Tons: 40 | Sold to: the board of trade | Year: 1880",
        "Ship: Petrel | Sold to: nobody | Year: 1881",
    ]


def test_rows_that_are_nearer_to_each_other_than_to_their_header_stay_rows(read):
    pages = Pages()
    y = pages.rows(700, (72, 200, 300), [("Quarter", "Ends", "Due date")], pitch=22)
    rows = [("January", "Mar. 31", "Apr. 30"), ("April", "June 30", "July 31"), ("July", "Sept. 30", "Oct. 31")]
    pages.rows(y, (72, 200, 300), rows, pitch=13)
    assert read("a.pdf", pages.finish()).text.split("\n") == [
        "Quarter | Ends | Due date",
        "Quarter: January | Ends: Mar. 31 | Due date: Apr. 30",
        "Quarter: April | Ends: June 30 | Due date: July 31",
        "Quarter: July | Ends: Sept. 30 | Due date: Oct. 31",
    ]


def test_one_cell_that_goes_on_in_the_next_line(read):
    pages = Pages()
    y = pages.rows(700, COLUMNS, [("Ship", "Tons", "Sold to", "Year")], pitch=22)
    y = pages.rows(y, COLUMNS, [("Gull", "40", "the board", "1880"), ("", "", "of trade", "")], pitch=13)
    pages.rows(y - 9, COLUMNS, [("Petrel", "7", "nobody", "1881")])
    assert read("a.pdf", pages.finish()).text.split("\n") == [
        "Ship | Tons | Sold to | Year",
        "Ship: Gull | Tons: 40 | Sold to: the board of trade | Year: 1880",
        "Ship: Petrel | Tons: 7 | Sold to: nobody | Year: 1881",
    ]


def test_a_currency_is_in_the_cell_of_its_amount(read):
    pages = Pages()
    pages.rows(700, (72, 200, 230, 300, 330), [("Dues", "$", "120", "$", "90"), ("Fines", "", "7", "", "")])
    assert read("a.pdf", pages.finish()).text.split("\n") == ["Dues | $ 120 | $ 90", "Fines | 7 |"]


def test_a_table_of_words_alone(read):
    rows = [
        ("Ship", "Master", "Port"),
        ("Gull", "Ada Berg", "Orra"),
        ("Petrel", "Tom Hill", "Vik"),
        ("Auk", "", "Orra"),
    ]
    assert table(read, rows, (72, 200, 330)) == [
        "Ship | Master | Port",
        "Ship: Gull | Master: Ada Berg | Port: Orra",
        "Ship: Petrel | Master: Tom Hill | Port: Vik",
        "Ship: Auk | Port: Orra",
    ]


@pytest.mark.parametrize("draws_rules", [False, True])
def test_a_bar_in_a_cell_is_no_boundary(read, draws_rules):
    pages = Pages()
    rows = [("x & y", "both", "11"), ("x | y", "either", "12"), ("| =", "adds bits", "13"), ("! x", "not", "14")]
    pages.rows(700, (72, 200, 330), rows)
    if draws_rules:
        pages.canvas.grid([65, 190, 320, 400], [714, 696, 678, 660, 642])
    lines = read("a.pdf", pages.finish()).text.split("\n")
    assert [tuple(split_cells(line)) for line in lines] == rows


@pytest.mark.parametrize(
    "rows",
    [
        [("•", "It is burnt in the lamps of the tower."), ("•", "It is sold."), ("•", "It is kept in the cellar.")],
        [("[1]", "A. Berg, Of mills, 1880."), ("[2]", "T. Hill, Of rye."), ("[Hil81]", "T. Hill, Of the race.")],
        [("(a)", "the mill and its wheel;"), ("(b)", "the race;"), ("(c)", "the carts of the yard.")],
        [("Ship:", "Gull"), ("Master:", "Ada Berg"), ("Port:", "Orra")],
    ],
)
def test_lists_and_references_are_no_tables(read, rows):
    assert not any(" | " in line for line in table(read, rows, (72, 110)))


def test_entries_of_an_index_with_leaders_are_no_rows(read):
    entries = [("anchor", "12"), ("delivery, hours of", "41"), ("relay", "ix")]
    pages = Pages()
    pages.text(72, 730, "Index", 16, "Helvetica-Bold")
    y = 700
    for entry, page in entries:
        pages.text(72, y, f"{entry} . . . . . . . . . .")
        pages.text(430, y, page)
        y -= 15
    lines = read("a.pdf", pages.finish()).text.split("\n")[1:]
    assert lines == [f"{entry} . . . . . . . . . . {page}" for entry, page in entries]


@pytest.mark.parametrize("leaders", [". . . . . . . . . .", ". . ."])
def test_an_entry_of_an_index_below_its_letter_in_the_middle_is_no_row(read, leaders):
    pages = Pages()
    pages.text(72, 730, "Index", 16, "Helvetica-Bold")
    pages.text(72, 710, "The numbers are those of pages.")
    pages.text(250, 680, "D")
    pages.rows(665, (72, 180, 400), [("document", leaders, "41, 43")])
    lines = read("a.pdf", pages.finish()).text.split("\n")
    assert lines[-1] == f"document {leaders} 41, 43"


@pytest.mark.parametrize(
    "rows",
    [
        [("41", "\\ifnum", "#1<1"), ("42", "7%", ""), ("43", "\\else", ""), ("44", "9%", ""), ("45", "\\fi", "")],
        [("Gnat", "& per gram", r"& 13.65 \\"), ("Gnu", "& stuffed", r"& 92.50 \\")],
    ],
)
def test_source_code_has_no_cells(read, rows):
    lines = table(read, rows, (72, 110, 200))
    assert lines == [" ".join(cells).strip() for cells in rows]


@pytest.mark.parametrize(
    "rows",
    [
        [
            ("1", "Smith; Jones", "London", "51"),
            ("2", "Hill; Berg", "Vik", "47"),
            ("3", "Rye; Auk", "Orra", "33"),
        ],
        [("R&D", "M&A", "P&L and Q&A", "7"), ("P&G", "AT&T", "H&M and M&S", "8")],
    ],
)
def test_cells_may_have_signs_of_programs(read, rows):
    assert table(read, rows, (72, 110, 240, 400)) == [" | ".join(cells) for cells in rows]


CHAPTERS = [("1", "Of rye", "3"), ("1.1", "Of oats and barley", "4"), ("2", "Of the mill", "11")]


@pytest.mark.parametrize(
    ("title", "columns", "rows"),
    [
        ("Register", (72, 110, 400), CHAPTERS),
        ("Register", (72, 400), [(f"{number} {title}", page) for number, title, page in CHAPTERS]),
        ("Inhaltsverzeichnis", (72, 400), [(title, page) for _, title, page in CHAPTERS]),
        ("Register", (72, 110, 400), [("A", "Of rye . . . . . . . .", "3"), *CHAPTERS[1:]]),
        ("Register", (72, 110, 300, 400), [("1", "Of rye", ". . . . . .", "9"), ("2", "Of oats", ". . . . . .", "4")]),
    ],
)
def test_contents_are_no_table(read, title, columns, rows):
    pages = Pages()
    pages.text(72, 740, title, 16, "Helvetica-Bold")
    pages.rows(700, columns, rows)
    text = read("a.pdf", pages.finish()).text
    assert " | " not in text
    assert text.split("\n")[0].endswith(title)


def test_contents_above_the_first_chapter_and_with_leaders_of_any_length_are_no_table(read):
    pages = Pages()
    pages.text(72, 740, "Contents", 16, "Helvetica-Bold")
    entries = [("1", "Of rye", "3"), ("2", "Of oats", "4"), ("3", "Of the mill", "7"), ("4", "Of tolls", "9")]
    pages.rows(700, (72, 110, 400), entries)
    pages.rows(628, (72, 110, 350, 400), [("4.1", "Of carts", ". .", "9"), ("4.2", "Of all the others", ".", "10")])
    pages.rows(580, (72, 110), [("1", "Of rye")], 16)
    assert " | " not in read("a.pdf", pages.finish()).text


def test_an_index_with_several_pages_of_an_entry_is_no_table(read):
    pages = Pages()
    rows = [("anchor . . . . . . . .", "12, 41,"), ("carts . . . . . . .", "3"), ("delivery", "7, 9, 11")]
    pages.rows(700, (72, 300), rows)
    assert " | " not in read("a.pdf", pages.finish()).text


def test_a_chapter_without_leaders_between_entries_that_have_some(read):
    pages = Pages()
    y = 700
    for title, page in [("1.1 Of rye ", "3"), ("1.2 Of oats ", "4"), ("2 Of the mill", "11"), ("2.1 Its wheel ", "12")]:
        end = pages.text(72, y, title)
        if title.endswith(" "):
            pages.text(end, y, ". " * 60 + page)
        else:
            pages.text(500, y, page)
        y -= 18
    assert " | " not in read("a.pdf", pages.finish()).text


@pytest.mark.parametrize(
    "rows",
    [
        [("1", "Ada Berg", "12"), ("2", "Tom Hill", "13"), ("3", "Ines Moll", "15")],
        [("1.1", "Of rye", "40"), ("1.2", "Of oats", "12"), ("2.1", "Of barley", "33")],
        [("Rye", "Sacks", "3"), ("Oats", "Carts", "4"), ("Hops", "Sacks", "11")],
    ],
)
def test_tables_that_are_like_contents(read, rows):
    assert len(table(read, rows, (72, 110, 400))) == 3
    assert all(line.count(" | ") == 2 for line in table(read, rows, (72, 110, 400)))


def test_leaders_in_a_table(read):
    rows = [["", "1880", "1881"], ["Oil . . . . . .", "12", "14"], ["Rye . . . . . .", "7", "9"]]
    lines = table(read, rows, [72, 250, 350])
    assert lines[-1].endswith("| 1880: 7 | 1881: 9")


def test_a_table_of_words_with_empty_cells(read):
    rows = [("Grain", "Price", "Note"), ("Rye", "4 marks", "good"), ("Oats", "", "wet"), ("Barley", "3 marks", "")]
    assert table(read, rows, (72, 200, 330)) == [
        "Grain | Price | Note",
        "Grain: Rye | Price: 4 marks | Note: good",
        "Grain: Oats | Note: wet",
        "Grain: Barley | Price: 3 marks",
    ]


@pytest.mark.parametrize("corner", ["Duty", ""])
def test_a_roster_with_more_empty_cells_than_names(read, corner):
    rows = [
        (corner, "Monday", "Tuesday", "Friday"),
        ("Bread oven", "Ines", "", ""),
        ("Soup", "", "Bram", "Ines"),
        ("Cellar", "", "", "Kofi"),
    ]
    duty = f"{corner}: " if corner else ""
    assert table(read, rows, (72, 200, 290, 380)) == [
        f"{corner} | Monday | Tuesday | Friday".strip(),
        f"{duty}Bread oven | Monday: Ines",
        f"{duty}Soup | Tuesday: Bram | Friday: Ines",
        f"{duty}Cellar | Friday: Kofi",
    ]


def test_names_in_the_middle_of_their_columns(read):
    rows = [
        ("Monday", "Tuesday", "Wednesday", "Friday"),
        ("Bread oven", "Ines", "", "Kofi", ""),
        ("Cellar", "", "", "", "Bram"),
        ("Soup", "", "Bram", "", "Ines"),
    ]
    middles = (220, 310, 400, 490)
    pages = Pages()
    for number, row in enumerate(rows):
        *label, monday, tuesday, wednesday, friday = row
        y = 700 - 20 * number
        pages.text(72, y, *(label or ["Duty"]))
        for middle, name in zip(middles, (monday, tuesday, wednesday, friday), strict=True):
            pages.canvas.drawCentredString(middle, y, name)
    assert read("a.pdf", pages.finish()).text.split("\n") == [
        "Duty | Monday | Tuesday | Wednesday | Friday",
        "Duty: Bread oven | Monday: Ines | Wednesday: Kofi",
        "Duty: Cellar | Friday: Bram",
        "Duty: Soup | Tuesday: Bram | Friday: Ines",
    ]


@pytest.mark.parametrize("edge", ["TOP", "MIDDLE", "BOTTOM"])
def test_a_table_whose_cells_span_rows_and_columns_and_have_several_lines(read, edge):
    def cell(text):
        return Paragraph(text, ParagraphStyle("", fontSize=10, leading=12))

    dues = [
        ["Port", "Dues", "", "Ships", ""],
        ["", "1880", "1881", "1880", "1881"],
        ["Orra", "9", "", "7", "6"],
        ["Vik", "", "3", "2", ""],
    ]
    spans = [("SPAN", (1, 0), (2, 0)), ("SPAN", (3, 0), (4, 0)), ("SPAN", (0, 0), (0, 1))]
    style = [("ALIGN", (0, 0), (-1, -1), "CENTER"), ("VALIGN", (0, 0), (-1, -1), "MIDDLE"), *spans]
    ships = [
        [cell("Ship"), cell("What was said of it in the year"), cell("Dues")],
        [cell("Gull of Orra and Vik"), cell("It was sold to the board of trade, and then broken up."), cell("12")],
        [cell("Auk"), cell("Lost at sea with all hands in the great storm of the year."), ""],
    ]
    tables = [
        Table(dues, 80, style=style),
        cell("Between them."),
        Table(ships, [90, 180, 60], style=[("VALIGN", (0, 0), (-1, -1), edge)]),
    ]
    said = "What was said of it in the year"
    SimpleDocTemplate(buffer := io.BytesIO()).build(tables)
    assert read("a.pdf", buffer.getvalue()).text.split("\n") == [
        "Port | Dues 1880 | Dues 1881 | Ships 1880 | Ships 1881",
        "Port: Orra | Dues 1880: 9 | Ships 1880: 7 | Ships 1881: 6",
        "Port: Vik | Dues 1881: 3 | Ships 1880: 2",
        "Between them.",
        "Ship | What was said of it in the year | Dues",
        f"Ship: Gull of Orra and Vik | {said}: It was sold to the board of trade, and then broken up. | Dues: 12",
        f"Ship: Auk | {said}: Lost at sea with all hands in the great storm of the year.",
    ]


@pytest.mark.parametrize("pitch", [22, 13])
def test_a_cell_of_several_lines_beside_cells_in_the_middle(read, pitch):
    pages = Pages()
    pages.rows(700, (72, 150, 220, 430), [("Keeper", "From", "Known for", "Pay")])
    pages.rows(660, (72, 150), [("Jory Tamm", "1811")])
    pages.lines(220, 660 + pitch / 2, ["He held the gates in the flood of", "spring"], pitch=pitch)
    pages.text(430, 660, "9")
    pages.rows(620, (72, 150, 220, 430), [("Ilse Wend", "", "Geese", ""), ("Bo Carrick", "1840", "", "14")])
    assert read("a.pdf", pages.finish()).text.split("\n") == [
        "Keeper | From | Known for | Pay",
        "Keeper: Jory Tamm | From: 1811 | Known for: He held the gates in the flood of spring | Pay: 9",
        "Keeper: Ilse Wend | Known for: Geese",
        "Keeper: Bo Carrick | From: 1840 | Pay: 14",
    ]


def test_years_above_the_names_of_their_columns(read):
    pages = Pages()
    pages.text(72, 730, "The inspector counted the children of each school.")
    pages.text(72, 691, "School")
    for left, year in ((192, "1899"), (312, "1900")):
        pages.text(left, 700, year)
    names = ("", "Boys", "Girls", "Boys", "Girls")
    rows = [names, ("Harrow lane", "31", "28", "", "30"), ("Infants", "12", "", "", "17")]
    pages.rows(682, (72, 172, 232, 292, 352), rows)
    assert read("a.pdf", pages.finish()).text.split("\n") == [
        "The inspector counted the children of each school.",
        "School | 1899 Boys | 1899 Girls | 1900 Boys | 1900 Girls",
        "School: Harrow lane | 1899 Boys: 31 | 1899 Girls: 28 | 1900 Girls: 30",
        "School: Infants | 1899 Boys: 12 | 1900 Girls: 17",
    ]


def test_rows_without_clear_columns_keep_their_cells(read):
    pages = Pages()
    pages.rows(700, (72, 200, 300), [("Device", "0 1 2 3", "4 5")])
    pages.rows(682, (72, 130, 190, 250, 320), [("One", "0", "1", "2", "3")])
    pages.rows(664, (72, 160, 225, 290, 350), [("Two", "0", "1", "2", "3")])
    lines = read("a.pdf", pages.finish()).text.split("\n")
    assert lines == ["Device | 0 1 2 3 | 4 5", "One | 0 | 1 | 2 | 3", "Two | 0 | 1 | 2 | 3"]


def test_columns_without_names_keep_their_places(read):
    rows = [("Port", "", "", "Note"), ("Orra", "4", "", "wet"), ("Vik", "", "7", "dry")]
    assert table(read, rows)[1:] == ["Orra | 4 |  | wet", "Vik |  | 7 | dry"]


@pytest.mark.parametrize("formula", ["y = a x + b", "Y ~ N (a, b)", "."])
def test_a_formula_with_its_number_is_no_row(read, formula):
    pages = Pages()
    pages.lines(72, 740, ["The mill turns by the rule", "that follows from its wheel:"])
    pages.rows(700, (150, 400), [(formula, "(3.12)")])
    pages.lines(72, 660, ["It is true of all mills,", "and of most of their wheels."])
    assert f"{formula} (3.12)" in read("a.pdf", pages.finish()).text


def test_losses_in_brackets_are_figures(read):
    pages = Pages()
    pages.rows(700, (72, 200, 300), [("Mill", "1880", "1881"), ("Oak", "20", "(3)"), ("Rye", "4", "(7)")])
    assert "Mill: Rye | 1880: 4 | 1881: (7)" in read("a.pdf", pages.finish()).text


def test_a_reference_with_wide_spaces_and_figures_is_no_row(read):
    pages = Pages()
    pages.rows(700, (72, 110, 240, 290, 340), [("[2]", "J. Kahn, Seattle,", "USA,", "pp.", "17-19")])
    assert " | " not in read("a.pdf", pages.finish()).text


def test_prose_in_close_columns_is_no_table(read):
    pages = Pages()
    across(pages, 700, [(50, LEFT), (270, RIGHT)])
    assert " | " not in read("a.pdf", pages.finish()).text


# --- listings ---


def test_a_listing_keeps_its_columns_and_indents(read):
    prose = [
        "The sluice was measured in two ways, and the program",
        "prints what each of them has found in these years:",
    ]
    printed = [
        "        diff    lwr    upr p adj",
        "oak-rye 3.33  -3.86 10.520 0.608",
        "rye-elm -1.9  -8.84  5.051 0.885",
        "elm-oak -6.57 -13.6  0.495 0.077",
    ]
    code = ["if (sluice) {", "    turn(wheel);", "}"]
    pages = Pages()
    pages.lines(72, 700, prose, 11)
    for number, line in enumerate(printed):
        for place, word in ((match.start(), match[0]) for match in re.finditer(r"\S+", line)):
            pages.text(90 + 6 * place, 660 - 12 * number, word, 10, "Courier")
    pages.lines(72, 600, prose, 11)
    for number, line in enumerate(code):
        pages.text(90 + 6 * (len(line) - len(line.lstrip())), 560 - 12 * number, line.strip(), 10, "Courier")
    text = read("a.pdf", pages.finish()).text
    assert "\n".join(printed) in text
    assert "\n".join(code) in text
    assert "|" not in text


def test_a_table_in_the_only_type_of_a_page_has_cells(read):
    pages = Pages()
    for number, row in enumerate([("Mill", "Dues", "Year"), ("North", "14", "1801"), ("South", "16", "1802")]):
        for x, cell in zip((72, 200, 300), row, strict=True):
            pages.text(x, 700 - 16 * number, cell, 10, "Courier")
    assert "Mill: North | Dues: 14 | Year: 1801" in read("a.pdf", pages.finish()).text


# --- line ends ---


@pytest.mark.parametrize(
    "lines",
    [
        [
            "北岸磨坊建于一八八〇年，由两兄弟共同修",
            "建。磨坊每年春天开放水闸，禁止在水渠中捕",
            "鱼。违者罚款两马克。",
        ],
        [  # the second line is two characters shorter
            "北岸磨坊建于一八八〇年，由两兄弟出钱并且和他们的邻居共同修",
            "建。磨坊每年春天开放水闸，禁止在水渠和它的池塘中捕鱼和",
            "虾。违者罚款两马克。",
        ],
    ],
)
def test_lines_of_chinese_are_joined_without_a_space(read, lines):
    pages = Pages()
    pages.lines(72, 700, lines, 12, CHINESE, 20)
    assert read("a.pdf", pages.finish()).text == "".join(lines)


def test_one_line_that_sticks_out_hides_no_line_ends_of_chinese(read):
    lines = [
        "北岸磨坊建于一八八〇年，由两兄弟出钱并且和邻居",
        "共同修建。磨坊每年春天开放水闸，禁止在水渠和它",
        "的池塘中捕鱼和虾。违者罚款两马克，由村里的书记",
        "收取，写在账簿里。地址如下面这一行所说的那样在",
    ]
    pages = Pages()
    pages.lines(
        72, 700, [*lines, "https://mill.example/a/very/long/address/of/the/mill/and/of/its/weir"], 12, CHINESE, 20
    )
    assert "".join(lines) in read("a.pdf", pages.finish()).text


def test_an_item_of_chinese_goes_on_where_its_text_began(read):
    pages = Pages()
    pages.text(72, 700, "• 北岸磨坊建于一八八〇年，由两兄弟出钱并且和邻居", 12, CHINESE)
    pages.text(96, 680, "共同修建。", 12, CHINESE)
    assert "和邻居共同修建。" in read("a.pdf", pages.finish()).text


def test_entries_of_chinese_contents_stay_apart(read):
    entries = [f"{name} {'.' * 40} {number}" for number, name in enumerate(["北岸磨坊", "西岸磨坊", "水渠池塘"], 1)]
    pages = Pages()
    pages.lines(72, 700, entries, 12, CHINESE, 20)
    text = read("a.pdf", pages.finish()).text
    assert [line[:4] for line in text.split("\n")] == ["北岸磨坊", "西岸磨坊", "水渠池塘"]


def test_a_title_that_is_wider_than_the_lines_below_it(read):
    lines = ["水車小屋は千八百八十年に二人の兄弟が建てた", "もので、その台帳は村の倉庫に保管されている。"]
    pages = Pages()
    pages.text(72, 740, "北の岸辺の水車小屋とその台帳の歴史", 20, JAPANESE)
    pages.lines(72, 700, lines, 12, JAPANESE, 20)
    assert "".join(lines) in read("a.pdf", pages.finish()).text


def test_lines_that_end_between_words_of_a_script_without_spaces(read):
    lines = [
        "โรงสีริมแม่น้ำเปิดทุกวันพฤหัส",
        "บดี ผู้มาเยือนต้องลงทะเบียนที่สำนัก",
        "งาน ห้ามจับปลาในลำคลองที่จะส่ง",
        "น้ำโดยเด็ดขาด ผู้ฝ่าฝืนต้องเสียค่า",
        "ปรับ",
        "ประกาศ ณ วันที่หนึ่งมกราคม",
    ]
    text = read("a.pdf", in_any_script(lines)).text
    assert text == "\n".join(["".join(lines[:5]), lines[5]])


def test_a_list_of_short_words_of_a_script_without_spaces(read):
    lines = ["โรงสีเก่า", "สะพาน", "ประตูน้ำ", "โบสถ์"]
    assert read("a.pdf", in_any_script(lines)).text.split("\n") == lines


def test_lines_of_japanese_and_latin(read):
    lines = [
        "水車小屋は千八百八十年に二人の兄弟が建てたもの",
        "で、PDFに詳しく書かれている。その台帳の名はOrrin",
        "台帳といい、村の倉庫に保管されている。",
    ]
    pages = Pages()
    pages.lines(72, 700, lines, 12, JAPANESE, 20)
    text = read("a.pdf", pages.finish()).text
    assert "建てたもので、PDFに" in text
    assert "名はOrrin台帳といい" in text


def test_lines_that_end_with_a_mark_of_both_scripts(read):
    pages = Pages()
    pages.lines(72, 700, ["It says “the mill”", "and no more of it."])
    assert read("a.pdf", pages.finish()).text == "It says “the mill”\nand no more of it."
    lines = ["账簿记录了每一袋黑麦和每一个欠款的“人”", "直到洪水冲走了下面的一层"]
    pages = Pages()
    pages.lines(72, 700, lines, 12, CHINESE, 20)
    assert read("a.pdf", pages.finish()).text == "".join(lines)


def test_items_and_paragraphs_of_chinese_stay_apart(read):
    lines = [
        "1. 磨坊每年春天开放水闸并且禁止在水渠中捕鱼",
        "2. 违者罚款两马克并由村里的书记员记入账簿",
        "第三条 教堂的钟声在正午响起之前水轮一直转动",
    ]
    pages = Pages()
    pages.lines(72, 700, lines, 12, CHINESE, 20)
    pages.lines(72, 620, ["短行", "另一行"], 12, CHINESE, 20)
    assert read("a.pdf", pages.finish()).text.split("\n") == [*lines, "短行", "另一行"]


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        (["โรงสีตั้งอยู่ทางฝั่งเหนือของแม่", "น้ำและสร้างโดยสองพี่น้อง"], "แม่น้ำและสร้าง"),
        (["ໂຮງສີຕັ້ງຢູ່ຝັ່ງເໜືອຂອງແມ່", "ນ້ຳແລະສ້າງໂດຍສອງພີ່ນ້ອງ"], "ແມ່ນ້ຳແລະ"),
        (["រោងម៉ាស៊ីនស្ថិតនៅច្រាំងខាងជើងនៃ", "ទន្លេនិងសាងសង់ដោយបងប្អូន"], "នៃទន្លេ"),
        (["ဆန်စက်သည်မြစ်၏မြောက်ဘက်ကမ်း", "တွင်တည်ရှိပြီးညီအစ်ကိုနှစ်ဦး"], "ကမ်းတွင်"),
        (["Правление постановило ор-", "ганизовать склад"], "организовать"),
        (["방앗간은 강의 북쪽 기슭에", "있으며 두 형제가 지었다"], "기슭에\n있으며"),
    ],
)
def test_lines_of_other_scripts(read, lines, joined):
    assert joined in read("a.pdf", in_any_script(lines)).text


HARBOURS = [["Harbour", "1880", "1881"], ["Orra", "75", ""], ["Holm", "", "80"], ["Tolk", "61", "64"]]
BY_YEARS = ["Harbour | 1880 | 1881", "Harbour: Orra | 1880: 75", "Harbour: Holm | 1881: 80"]


@pytest.mark.parametrize(("turn", "x", "y"), [(90, 0, -600), (270, -800, 0), (180, -595, -842), (0, 0, 0)])
def test_a_table_on_a_page_that_is_turned(read, turn, x, y):
    pages = Pages()
    pages.canvas.setPageRotation(turn)
    pages.canvas.rotate(turn)
    pages.canvas.translate(x, y)
    pages.text(60, 560, "Catch of the harbours", size=16)
    pages.rows(500, (60, 200, 300), HARBOURS)
    text = read("a.pdf", pages.finish()).text
    assert text.split("\n")[:4] == ["# Catch of the harbours", *BY_YEARS]


def test_a_table_from_right_to_left(read):
    rows = ["80      75      ןמש", "64      61      דיס"]
    text = read("a.pdf", in_any_script(rows)).text
    assert text.split("\n") == ["שמן | 75 | 80", "סיד | 61 | 64"]


def test_what_is_beside_the_visible_part_of_a_page_is_not_read(read):
    pages = Pages()
    pages.text(60, 820, "poster_7.indd 12/03/24 Cyan Magenta")
    pages.text(72, 700, "The cheese fair is on Saturday.")
    pages.canvas.setCropBox((50, 50, 545, 800))
    assert read("a.pdf", pages.finish()).text == "The cheese fair is on Saturday."


@pytest.mark.parametrize("box", [(0, 0, 0, 0), (545, 800, 50, 50), (50, 800, 545, 50), (2000, 2000, 2100, 2100)])
def test_a_visible_part_that_is_empty_or_upside_down_hides_no_text(read, box):
    pages = Pages()
    pages.text(72, 700, "The cheese fair is on Saturday.")
    pages.canvas.setCropBox(box)
    assert read("a.pdf", pages.finish()).text == "The cheese fair is on Saturday."


def test_text_that_runs_off_the_paper_is_read(read):
    pages = Pages()
    pages.text(72, 700, "Bring a knife and a napkin, " + "and a cup, " * 12)
    pages.text(72, -40, "The fair ends at dusk.")
    text = read("a.pdf", pages.finish()).text
    assert text.count("and a cup,") == 12
    assert "ends at dusk" in text


@pytest.mark.parametrize("gap", [8.3, 9, 10])
def test_columns_that_are_near_to_each_other_where_cells_are_full(read, gap):
    pages = Pages()
    x = 60 + pages.canvas.stringWidth("Wednesday", "Helvetica", 10) + gap
    rows = [("Day", "Keeper", "Hours"), ("Wednesday", "Nell", "8"), ("Friday", "Pim", "6"), ("Sunday", "Ines", "7")]
    y = 700
    for row in rows:
        for place, cell in zip((60, x, 300), row, strict=True):
            pages.text(place, y, cell, size=10)
        y -= 20
    text = read("a.pdf", pages.finish()).text
    assert "Day: Wednesday | Keeper: Nell | Hours: 8" in text


def test_a_header_of_two_rows_above_narrow_columns(read):
    pages = Pages()
    pages.rows(700, (60, 120, 220), [("Stop", "Weekdays", "Sundays")], size=10)
    pages.rows(683, (100, 147.5, 196, 243.5), [("Morning", "Evening", "Morning", "Evening")], size=10)
    times = [("6:10", "17:05", "", "18:00"), ("6:25", "17:20", "9:40", ""), ("", "17:41", "10:02", "18:39")]
    for number, (stop, row) in enumerate(zip(["Quarry", "Chapel", "Terminus"], times, strict=True)):
        pages.rows(666 - 17 * number, (60, 109, 153, 206, 250), [(stop, *row)], size=10)
    lines = read("a.pdf", pages.finish()).text.split("\n")
    assert lines[-1] == "Stop: Terminus | Weekdays Evening: 17:41 | Sundays Morning: 10:02 | Sundays Evening: 18:39"


def test_wide_spaces_of_a_text_beside_no_table_divide_nothing(read):
    pages = Pages()
    for number, (first, second) in enumerate([("The mill stands", "on the"), ("The keeper", "of it"), ("It", "burns")]):
        end = pages.text(60, 700 - 14 * number, first, size=10)
        pages.text(end + 8, 700 - 14 * number, second, size=10)
    assert read("a.pdf", pages.finish()).text == "The mill stands on the\nThe keeper of it\nIt burns"


def test_lines_of_code_with_their_numbers_are_no_table(read):
    pages = Pages()
    code = ["while sluice is open:", "grind(rye)", "weigh(flour)", "close()"]
    pages.rows(700, [50, 80], [(str(number), line) for number, line in enumerate(code, 9)], pitch=12)
    found = read("a.pdf", pages.finish()).text.splitlines()
    assert found == ["9 while sluice is open:", "10 grind(rye)", "11 weigh(flour)", "12 close()"]


# --- labels in the margin ---


def test_labels_in_the_margin_do_not_interrupt_sentences(read):
    pages = Pages()
    pages.lines(150, 700, ["The class makes invoices, and their", "head shows the address below them. By de-"])
    pages.text(96, 672, "\\doctype", 9)
    pages.lines(150, 672, ["fault it makes an invoice, but one may"])
    pages.text(107, 658, "\\dated", 9)
    pages.lines(150, 658, ["choose a day on which it was made.", "It is printed at the right."])
    text = read("a.pdf", pages.finish()).text
    assert "default it makes an invoice, but one may\nchoose a day" in text
    assert text.startswith("\\doctype \\dated The class")


def test_notes_in_the_right_margin_do_not_interrupt_sentences(read):
    pages = Pages()
    prose = ["The class makes invoices, and their head shows", "the address that is below them. As a de-"]
    prose += ["fault it makes an invoice, but it may be that", "a day is given on which each one was made."]
    for number, line in enumerate(prose):
        pages.text(400 - pages.canvas.stringWidth(line, "Helvetica", 11), 700 - 14 * number, line)
        if number in {1, 2}:
            pages.text(412, 700 - 14 * number, ["New feature", "2023/02/02"][number - 1], 9)
    text = read("a.pdf", pages.finish()).text
    assert text.startswith("New feature 2023/02/02 The class makes")
    assert "As a default it makes an invoice" in text
