"""Tables of PDFs whose cells are between rules."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from reportlab.lib.styles import ParagraphStyle
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

from pdf_pages import Pages

LEFTS = [60, 140, 200, 260, 320, 500]
TOPS = [700, 680, 660, 625, 605]
NOTE = "No carts with more than two horses on the old bridge, nor after dark"


def thin_boxes(canvas, lefts, tops):
    """Draw the borders of each cell as thin filled boxes, as browsers do."""
    for top, bottom in pairwise(tops):
        for left, right in pairwise(lefts):
            canvas.rect(left, top, right - left + 0.75, 0.75, stroke=0, fill=1)
            canvas.rect(left, bottom, right - left + 0.75, 0.75, stroke=0, fill=1)
            canvas.rect(left, bottom, 0.75, top - bottom, stroke=0, fill=1)
            canvas.rect(right, bottom, 0.75, top - bottom, stroke=0, fill=1)


def lines(canvas, lefts, tops):
    """Draw lines from edge to edge, as LaTeX does."""
    canvas.grid(lefts, tops)


def stroked_boxes(canvas, lefts, tops):
    """Draw a box around each cell."""
    for top, bottom in pairwise(tops):
        for left, right in pairwise(lefts):
            canvas.rect(left, bottom, right - left, top - bottom)


def one_path(canvas, lefts, tops):
    """Draw all boxes as one path that is filled, as some offices do."""
    path = canvas.beginPath()
    for x in lefts:
        path.rect(x, tops[-1], 0.5, tops[0] - tops[-1])
    for y in tops:
        path.rect(lefts[0], y, lefts[-1] - lefts[0], 0.5)
    canvas.drawPath(path, stroke=0, fill=1)


def without_outer_rules(canvas, lefts, tops):
    """Draw only the rules between cells."""
    for x in lefts[1:-1]:
        canvas.line(x, tops[-1], x, tops[0])
    for y in tops[1:-1]:
        canvas.line(lefts[0], y, lefts[-1], y)


STYLES = [thin_boxes, lines, stroked_boxes, one_path, without_outer_rules]


@pytest.mark.parametrize("draw_rules", STYLES)
def test_rules_say_which_cell_a_word_is_in(read, draw_rules):
    pages = Pages()
    pages.text(60, 730, "Carts that cross the Orrin", 16, "Helvetica-Bold")
    draw_rules(pages.canvas, LEFTS, TOPS)
    rows = [
        ("Day", "Hour", "North", "South", "Note"),
        ("Monday", "Dawn", "6", "", "Toll"),
        ("Tuesday", "Noon", "", "17", ""),
        ("Friday", "Dusk", "8", "9", ""),
    ]
    for top, row in zip(TOPS, rows, strict=False):
        for left, right, text in zip(LEFTS, LEFTS[1:], row, strict=False):
            is_number = text.isdigit()
            x = right - 3 - pages.canvas.stringWidth(text, "Helvetica", 11) if is_number else left + 3
            if text:
                pages.text(x, top - 14, text)
        if row[0] == "Tuesday":
            pages.lines(323, top - 14, ["No carts with more than two", "horses on the old bridge"])
    pages.text(60, 580, "The bridge is closed on Sundays.")
    assert read("a.pdf", pages.finish()).text.splitlines() == [
        "# Carts that cross the Orrin",
        "Day | Hour | North | South | Note",
        "Day: Monday | Hour: Dawn | North: 6 | Note: Toll",
        "Day: Tuesday | Hour: Noon | South: 17 | Note: No carts with more than two horses on the old bridge",
        "Day: Friday | Hour: Dusk | North: 8 | South: 9",
        "The bridge is closed on Sundays.",
    ]


def platypus(rows, style, widths):
    """Return a PDF of a table that a library lays out."""
    paragraph = ParagraphStyle("cell", fontName="Helvetica", fontSize=10, leading=12)
    cells = [[Paragraph(text, paragraph) if len(text) > 12 else text for text in row] for row in rows]
    buffer = io.BytesIO()
    SimpleDocTemplate(buffer).build(
        [Table(cells, colWidths=widths, style=[("GRID", (0, 0), (-1, -1), 0.5, 0), *style])]
    )
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["dimensione", "tamanhos"])
def test_a_word_that_is_wider_than_its_cell_ends_where_the_text_of_the_next_cell_begins(read, name):
    pages = Pages()
    lefts = [60, 120, 166, 300]
    pages.canvas.grid(lefts, [700, 680, 660, 640, 620])
    rows = [("pacchetto", name, "descrizione"), ("vim", "12", "Editor"), ("mc", "7", "Gestore"), ("w3m", "3", "Web")]
    pages.rows(685, [left + 4 for left in lefts[:3]], rows, pitch=20)
    assert read("a.pdf", pages.finish()).text.splitlines()[0] == f"pacchetto | {name} | descrizione"


def test_cells_that_span_rows_and_columns(read):
    rows = [
        ["Farm", "Crop", "Sacks", "", "Remark"],
        ["", "", "1880", "1881", ""],
        ["Holm", "Rye", "12", "", NOTE],
        ["", "Oats", "", "31", ""],
        ["", "Barley", "40", "7", "Late"],
        ["Skarn", "Rye", "5", "", ""],
    ]
    spans = [("SPAN", (column, 0), (column, 1)) for column in (0, 1, 4)]
    spans += [("SPAN", (2, 0), (3, 0)), ("SPAN", (0, 2), (0, 4)), ("VALIGN", (0, 0), (-1, -1), "TOP")]
    text = read("a.pdf", platypus(rows, spans, [60, 60, 45, 45, 180])).text
    assert text.splitlines()[2:] == [
        f"Farm: Holm | Crop: Rye | Sacks 1880: 12 | Remark: {NOTE}",
        "Farm: Holm | Crop: Oats | Sacks 1881: 31",
        "Farm: Holm | Crop: Barley | Sacks 1880: 40 | Sacks 1881: 7 | Remark: Late",
        "Farm: Skarn | Crop: Rye | Sacks 1880: 5",
    ]


def test_a_title_across_a_table_is_a_line(read):
    rows = [["Dues of the yard", ""], ["Holm", "In the first week of May"], ["Skarn", NOTE], ["Orrin", "None"]]
    text = read("a.pdf", platypus(rows, [("SPAN", (0, 0), (1, 0))], [80, 150])).text
    assert text.splitlines() == [
        "Dues of the yard",
        "Holm | In the first week of May",
        f"Skarn | {NOTE}",
        "Orrin | None",
    ]


def test_rows_without_rules_between_them_stay_apart(read):
    pages = Pages()
    lines(pages.canvas, [60, 200, 260], [700, 680, 600])
    pages.rows(686, [63, 203], [("Farm", "Sacks"), ("Holm", "12"), ("Skarn", "31"), ("Orrin", "7")])
    found = read("a.pdf", pages.finish()).text.splitlines()
    assert found == ["Farm | Sacks", "Holm | 12", "Skarn | 31", "Orrin | 7"]


def test_rules_of_a_chart_and_of_a_frame_are_no_table(read):
    pages = Pages()
    lines(pages.canvas, [100, 200, 300, 400], [500, 450, 400, 350])
    pages.canvas.rect(40, 40, 515, 760)
    for number, y in enumerate([500, 450, 400, 350]):
        pages.text(80, y - 4, str(40 - 10 * number), 9)
    pages.text(230, 470, "Sacks of rye", 9)
    pages.lines(60, 700, ["The yard holds twelve carts of the mill", "and of its tenants."])
    assert " | " not in read("a.pdf", pages.finish()).text


def test_connected_boxes_of_a_drawing_are_no_table(read):
    pages = Pages()
    for x in (100, 250, 400):
        for y in (500, 400):
            pages.canvas.rect(x, y, 80, 30)
            pages.text(x + 5, y + 10, "Mill race")
            pages.canvas.line(x + 80, y + 15, x + 150, y + 15)
        pages.canvas.line(x + 40, 430, x + 40, 500)
    assert " | " not in read("a.pdf", pages.finish()).text


def test_two_tables_on_a_page(read):
    pages = Pages()
    for y, names in [(700, ("Farm", "Sacks", "Dues")), (500, ("Ship", "Masts", "Crew"))]:
        lines(pages.canvas, [60, 140, 200, 260], [y, y - 20, y - 40])
        pages.rows(y - 14, [63, 143, 203], [names, ("Holm", "12", "")], pitch=20)
        pages.text(60, y - 70, f"Written by the clerk of the {names[0].lower()}s.")
    assert read("a.pdf", pages.finish()).text.splitlines() == [
        "Farm | Sacks | Dues",
        "Farm: Holm | Sacks: 12",
        "Written by the clerk of the farms.",
        "Ship | Masts | Crew",
        "Ship: Holm | Masts: 12",
        "Written by the clerk of the ships.",
    ]


COMMANDS = [("Command", "Purpose"), ("chmod", "Change permissions"), ("chown", "Change the owner"), ("dd", "Copy")]


def draw_commands(pages, bold_rows):
    """Draw a table of two columns of words, with some rows in bold type."""
    for number, (command, purpose) in enumerate(COMMANDS):
        font = "Times-Bold" if number in bold_rows else "Times-Roman"
        y = 690 - 18 * number
        pages.text(63, y, command, font=font)
        pages.text(203, y, purpose, font=font)


@pytest.mark.parametrize("has_rules", [True, False])
@pytest.mark.parametrize(("bold_rows", "is_named"), [({0}, True), ({0, 1, 2, 3}, False), (set(), False)])
def test_a_bold_row_above_others_gives_names(read, has_rules, bold_rows, is_named):
    pages = Pages()
    draw_commands(pages, bold_rows)
    if has_rules:
        lines(pages.canvas, [60, 200, 340], [704, 686, 668, 650, 632])
    found = read("a.pdf", pages.finish()).text.splitlines()
    row = "Command: chmod | Purpose: Change permissions" if is_named else "chmod | Change permissions"
    assert found[:2] == ["Command | Purpose", row]


def test_an_edge_of_colour_divides_rows(read):
    pages = Pages()
    canvas = pages.canvas
    lefts, tops = [60, 160, 260, 340], [700, 680, 660, 640]
    canvas.setFillGray(0.6)
    for left, right in pairwise(lefts):
        canvas.rect(left, tops[1], right - left, tops[0] - tops[1], stroke=0, fill=1)
    canvas.setFillGray(0)
    for left in lefts:
        canvas.line(left, tops[0], left, tops[-1])
    for top in (tops[0], tops[2], tops[3]):  # no rule below the names
        canvas.line(lefts[0], top, lefts[-1], top)
    pages.rows(686, [63, 163, 263], [["Item", "Count", "Price"], ["Desk", "2", "100"], ["Chair", "4", "50"]], pitch=20)
    assert read("a.pdf", pages.finish()).text.splitlines() == [
        "Item | Count | Price",
        "Item: Desk | Count: 2 | Price: 100",
        "Item: Chair | Count: 4 | Price: 50",
    ]


def test_frames_around_links_in_lines_of_prose_are_no_table(read):
    pages = Pages()
    lines = [
        ["The harbour has", "two piers", "and", "one crane", "that the board"],
        ["keeps for the", "whale oil", "and its", "ash ships", "of the north."],
    ]
    for y, line in zip([700, 686], lines, strict=True):
        x = 70
        for number, part in enumerate(line):
            end = pages.text(x, y, part)
            if number % 2:
                pages.canvas.rect(x - 1, y - 3, end - x + 2, 14)
            x = end + 3
    assert read("a.pdf", pages.finish()).text == "\n".join(map(" ".join, lines))
