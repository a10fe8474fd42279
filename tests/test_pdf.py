"""The reader of PDFs."""

from __future__ import annotations

import io
import re
import zlib

import pytest
from pypdf import PdfReader, PdfWriter
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

from arag import run_ingest
from fakes import HashEmbeddings
from pdf_pages import Pages


def pdf(*pages, title="A Title", author=""):
    """Return a PDF with a page for each text, and only a shape on the page for an empty text.

    Between columns stands a tab; `*` begins a bold line, and each `+` before a line makes its type larger.
    """
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    if title:
        canvas.setTitle(title)
    if author:
        canvas.setAuthor(author)
    for text in pages:
        canvas.rect(100, 100, 200, 200, fill=1)
        for number, line in enumerate(text.split("\n") if text else []):
            larger = len(line) - len(line.lstrip("+"))
            canvas.setFont("Helvetica-Bold" if "*" in line else "Helvetica", 12 + 4 * larger)
            for column, cell in enumerate(line.lstrip("+*").split("\t")):
                canvas.drawString(72 + 120 * column, 700 - 30 * number, cell)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def encrypted(data, user_password):
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(user_password, "owner", algorithm="AES-256")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def pdf_bomb():
    """Return a PDF of 100 KB whose page is a program of 100 MB: PDFium keeps 4 GB of states."""
    data = zlib.compress(b"q " * 50_000_000, 9)
    return (
        b"%%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R>>endobj\n"
        b"4 0 obj<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream endobj\ntrailer<</Root 1 0 R>>"
        % (len(data), data)
    )


def test_pages(read):
    content = read("a.pdf", pdf("First page.\nSecond line.  ", "", "Third page."))
    starts = content.page_starts
    assert content.title == "A Title"
    assert len(starts) == 3
    assert content.text[: starts[1]] == "First page.\nSecond line.\n\n"
    assert content.text[starts[1] : starts[2]] == "\n\n"
    assert content.text[starts[2] :] == "Third page."


@pytest.mark.parametrize(("own", "title"), [("Mills", "Mills: of rye"), ("Of mills", "Of mills")])
def test_the_title_page_may_go_on_after_the_title_that_the_file_has(read, own, title):
    assert read("a.pdf", pdf("++Mills: of rye\n\nThey turn.\nThey grind.", "Text.", title=own)).title == title


def test_author_and_date_become_metadata(read):
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", read("a.pdf", pdf("Text.")).metadata.pop("date"))
    assert read("a.pdf", pdf("Text.", author="Ada Berg")).metadata["author"] == "Ada Berg"
    assert "author" not in read("a.pdf", pdf("Text.")).metadata  # reportlab says "anonymous"


def test_what_stands_on_most_pages_is_read_once(read):
    pages = [f"Harbour Board\nRule {n}.\n{n + 4} | x\nPage {n} of 4" for n in range(1, 5)]
    content = read("a.pdf", pdf(*pages, "Harbour Board"))
    texts = [f"Rule {n}.\n{n + 4} | x" for n in range(1, 5)]
    assert content.text.split("\n\n") == [f"Harbour Board\n{texts[0]}", *texts[1:], ""]
    assert content.text[content.page_starts[3] :].startswith("Rule 4.")


@pytest.mark.parametrize(
    "title",
    [
        "",
        "untitled",
        "Contents",
        "Microsoft Word - plan.doc",
        "scan_20240103",
        "plan.pdf",
        "old.plan.tex",
        "The plan.indd",
    ],
)
def test_a_title_that_a_program_made_up(read, title):
    assert read("a.pdf", pdf("Text.", title=title)).title == ""  # reportlab's own is "untitled"


def test_a_title_that_ends_in_the_name_of_a_file(read):
    title = "The file plan.dtx. It contains the code for plan.cls"
    assert read("a.pdf", pdf("Text.", title=title)).title == title


def test_passwords(read, reason):
    assert read("a.pdf", encrypted(pdf("Text."), "")).text == "Text."
    assert reason("a.pdf", encrypted(pdf("Text."), "secret")) == (
        "the PDF is encrypted and needs a password: open it with its password in a viewer, and save it as a PDF "
        "without one"
    )


def test_scans(reason):
    assert "the PDF has no text; its pages are pictures (scanned?): use --ocr (in" in reason("a.pdf", pdf("", ""))


@pytest.mark.parametrize("data", [pdf("Text.")[:300], bytes(range(256)) * 9])
def test_broken(reason, data):
    assert reason("a.pdf", data).startswith("broken PDF: ")


def test_empty(reason):
    assert reason("a.pdf", b"") == "the file is empty"


def test_a_broken_page_is_named(read):
    data = pdf("One.", "Two.")
    page = PdfReader(io.BytesIO(data)).pages[0].indirect_reference.idnum
    content = read("a.pdf", data.replace(f"\n{page} 0 obj".encode(), f"\n{page} 0 xxx".encode()))
    assert (content.text, content.page_starts) == ("\n\nTwo.", (0, 2))
    assert content.damage == ("page 1: Failed to load page.",)


def test_larger_type_and_bold_numbers_make_headings(read):
    lines = [
        "++Rules of the",
        "++Harbour",
        "It was agreed on these",
        "++rules, as follows",
        "+3 Trade with the isles",
        "All ships pay dues here.",
        "*3.4 Products",
        "*Oil is free.",
        "+34,229",
        "*1. Oil of whales, herrings and",
        "3.5 Lamps of the tower",
    ]
    headings = [line for line in read("a.pdf", pdf("\n".join(lines))).text.split("\n") if line.startswith("#")]
    assert headings == ["# Rules of the Harbour", "## 3 Trade with the isles", "### 3.4 Products"]


def test_a_cover_larger_text_and_lists_of_titles_hold_no_headings(read):
    text = "+Oil\n" + 4 * "It is burnt in all of the lamps.\n" + "+Whales\nThey are hunted."
    contents = "+1 Oil\n+2 Whales\n+3 Ships\nAll of it."
    content = read("a.pdf", pdf("+++Annual Report\nOf the board.", contents, text, text, 9 * "++It is a long text\n"))
    assert re.findall("^#.*", content.text, re.MULTILINE) == ["# 3 Ships", *2 * ["# Oil", "# Whales"]]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("+++Rules of the\n+++Harbour\n++The Board", "++Dues\nShips pay."),  # a cover
        ("Second edition\n+++Rules of the\n+++Harbour\nAll pay.\n++Dues", "Ships pay."),  # above its text
    ],
)
def test_a_file_without_a_title_has_the_one_on_its_first_page(read, first, second):
    third = "++Oil\n" + "It is burnt in all of the lamps.\n" * 4
    content = read("a.pdf", pdf(first, second, third, title=""))
    assert content.title == "Rules of the Harbour"
    headings = re.findall(r"^#+ (.*)", content.text, re.MULTILINE)
    assert [heading for heading in headings if heading != content.title] == ["Dues", "Oil"]


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("+++++Draft\n+++Rules of the Harbour\nShips pay.", "++Oil"),
        ("+++rules of the\n+++Harbour\nShips pay.", "++Oil"),
        ("+++Rules of the Harbour\nShips pay.", "++++Part Two"),
        ("+++Rules of the Harbour\nSecond edition", "+++Oil"),  # a cover, whose type chapters have, too
    ],
)
def test_a_title_in_larger_type_than_the_text(read, first, later):
    others = [f"{later} {chapter}\n" + "It is burnt in all of the lamps.\n" * 12 for chapter in ("one", "two")]
    assert read("a.pdf", pdf(first, *others, title="")).title.lower() == "rules of the harbour"


def draw_noted_title(lines, below=()):
    """Return a PDF with lines of a title, the last of which has the mark of a footnote, and others below them."""
    pages = Pages()
    y = pages.lines(90, 780, lines, size=17, pitch=20)
    end = 90 + pages.canvas.stringWidth(lines[-1], "Helvetica", 17)
    pages.text(end, y + 26, "*", size=8, font="Times-Roman")
    for text, size, *font in below:
        pages.text(90, y, text, size, *font)
        y -= 24
    pages.lines(90, y - 20, ["All of the ships pay their dues to the board."] * 12)
    return pages.finish()


@pytest.mark.parametrize(
    "below", [[], [("Ada Berg", 21)], [("Version 4", 17, "Times-Roman"), ("The board", 17, "Times-Roman")]]
)
@pytest.mark.parametrize("lines", [["Rules of the Harbour"], ["Rules of", "the Harbour"]])
def test_a_title_with_a_footnote_may_have_other_large_lines_below_it(read, lines, below):
    assert read("a.pdf", draw_noted_title(lines, below)).title == "Rules of the Harbour"


@pytest.mark.parametrize(
    "first",
    [
        "+++Rules of the Harbour\n*+++Notes on Its Dues\nShips pay.",  # with a subtitle in another font
        "+++Rules of the Harbour\n\n+++Contents\nDues, lamps and oil.",
        "+++Rules of the Harbour\n+Ada Berg\nShips pay.\n*+++Dues\nAll pay.",  # with headings in another font
        "+++Rules of the Harbour, Parts 1 and 2\nShips pay.",  # of which the heads of pages have a part
    ],
)
def test_lines_as_large_as_the_title_of_a_pdf(read, first):
    second = "+++Rules of the Harbour\n" + "It is burnt in all of the lamps.\n" * 4  # a head of all pages
    title = read("a.pdf", pdf(first, second, second, title="")).title
    assert title.removesuffix(", Parts 1 and 2") == "Rules of the Harbour"


def test_the_first_heading_is_the_title_of_a_pdf_if_others_are_below_it(read):
    first = "+++Rules of the Harbour\nShips pay.\n++Dues\nAll pay."
    second = "+++Later Rules\n" + "It is burnt in all of the lamps.\n" * 4
    assert read("a.pdf", pdf(first, second, title="")).title == "Rules of the Harbour"


@pytest.mark.parametrize(
    "first",
    [
        "Ships pay dues.",
        "+++Dues\nShips pay.\n+++Lamps\nThey burn.",  # two sections
        "++Dues\nShips pay.",  # as large as a later one
        "+++3.3 Dues\nShips pay.",  # of the middle of a book
        "+++Contents\nDues, lamps and oil.",
        "+++Chapter 2\n++Dues",
        "+++Confidential\nShips pay dues.",
        "+++Brouillon\nShips pay dues.",
    ],
)
def test_a_part_of_a_pdf_is_not_its_title(read, first):
    second = "++Oil\n" + "It is burnt in all of the lamps.\n" * 4
    assert read("a.pdf", pdf(first, second, second, title="")).title == ""


def test_a_section_that_begins_on_a_page_of_its_own_is_a_heading(read):
    second = "++2 Oil\n" + "It is burnt in all of the lamps.\n" * 4
    text = read("a.pdf", pdf("++1 Dues", "Ships pay dues.\n" * 4, second, title="")).text
    assert re.findall("^#.*", text, re.MULTILINE) == ["# 1 Dues", "# 2 Oil"]


def test_rows_with_figures_are_cells_and_gaps_in_prose_are_not(read):
    table = "Ships\t1880\t1881\nGull\tin port\t\t40\nPetrel\t—\t(90) %"
    prose = "•\tA sub-class\tis given\n2.\tIt has 3 types"
    assert read("a.pdf", pdf(f"{table}\n{prose}")).text == (
        "Ships | 1880 | 1881 |\nShips: Gull | 1880: in port | 40\nShips: Petrel | 1880: — | 1881: (90) %\n"
        "• A sub-class is given\n2. It has 3 types"
    )


def test_a_cell_of_several_lines_beside_others_stays_one_cell(read):
    rows = [["Gull\nof Orra", "40", "Sold to\nthe board"], ["Petrel", "90", "—"]]
    table = Table(rows, colWidths=100, style=[("VALIGN", (0, 0), (-1, -1), "TOP")])
    SimpleDocTemplate(buffer := io.BytesIO()).build([Paragraph("All ships of the isles.", ParagraphStyle("")), table])
    text = "All ships of the isles.\nGull of Orra | 40 | Sold to the board\nPetrel | 90 | —"
    assert read("a.pdf", buffer.getvalue()).text == text


def test_a_word_that_is_divided_at_the_end_of_a_line_is_whole_again(read):
    assert "never forgotten by A-RAG." in read("a.pdf", pdf("It was never for-\ngotten by A-\nRAG.")).text


@pytest.mark.heavy
def test_a_hostile_file_costs_only_itself(tmp_path):
    for name, data in {"a.pdf": pdf("Before."), "b.pdf": pdf_bomb(), "c.html": b"<p>After."}.items():
        (tmp_path / name).write_bytes(data)
    summary = run_ingest(tmp_path, tmp_path / "index", embedder=HashEmbeddings())
    assert summary.documents == 2
    (problem,) = summary.problems
    assert problem.source == str(tmp_path / "b.pdf")
    assert problem.reason.startswith("cannot be read: it")  # needs too much memory, or takes too long
