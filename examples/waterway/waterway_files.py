"""Writes documents as files: Markdown, HTML, text, CSV, Word, Excel, PowerPoint, PDF and email.

The same document gives the same bytes each time: files that are zip archives get fixed dates.
"""

from __future__ import annotations

import csv
import datetime as dt
import re
import zipfile
from dataclasses import dataclass, field
from html import escape
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from docx import Document as WordDocument
from openpyxl import Workbook
from pptx import Presentation
from pptx.util import Inches
from reportlab.lib.colors import grey
from reportlab.lib.styles import ParagraphStyle
from reportlab.platypus import Flowable, Paragraph, SimpleDocTemplate, Spacer
from reportlab.platypus import Table as PdfTable

Cell = str | int | float


@dataclass(frozen=True)
class Heading:
    """A heading; in a workbook it begins a sheet, in a presentation a slide."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Table:
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class Notes:
    """What the speaker of a slide says."""

    text: str


Block = str | Heading | Table | Notes


@dataclass(frozen=True)
class Document:
    """A document of the archive. The suffix of its path is its format.

    Attributes:
        fields: Head fields of an email.
    """

    path: str
    title: str
    date: dt.date
    author: str
    blocks: tuple[Block, ...]
    fields: tuple[tuple[str, str], ...] = field(default=())


def write_documents(documents: list[Document], folder: Path) -> None:
    """Write documents into a folder."""
    for document in documents:
        path = folder / document.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_WRITERS[path.suffix](document))


# --- text formats ---


def _markdown(document: Document) -> bytes:
    parts = [f"# {document.title}", f"*{document.author}, {_long_date(document.date)}*"]
    for block in document.blocks:
        if isinstance(block, Heading):
            parts.append(f"{'#' * block.level} {block.text}")
        elif isinstance(block, Table):
            if block.caption:
                parts.append(block.caption)
            lines = [_markdown_row(block.columns), _markdown_row(("---",) * len(block.columns))]
            for row in block.rows:
                lines.append(_markdown_row(row))
            parts.append("\n".join(lines))
        elif isinstance(block, str):
            parts.append(block)
    return ("\n\n".join(parts) + "\n").encode()


def _markdown_row(cells: tuple[Cell, ...]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _html(document: Document) -> bytes:
    lines = [
        "<!DOCTYPE html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(document.title)}</title>',
        f'<meta name="author" content="{escape(document.author)}">',
        f'<meta name="date" content="{document.date.isoformat()}"></head><body>',
        '<nav><a href="/">Home</a> <a href="/locks">Locks</a> <a href="/boats">Boats</a></nav>',
        f"<main><h1>{escape(document.title)}</h1>",
    ]
    for block in document.blocks:
        if isinstance(block, Heading):
            lines.append(f"<h{block.level}>{escape(block.text)}</h{block.level}>")
        elif isinstance(block, Table):
            lines.append(_html_table(block))
        elif isinstance(block, str):
            lines.append(f"<p>{escape(block)}</p>")
    lines.append(f"</main><footer>Page of {_long_date(document.date)}</footer></body></html>")
    return ("\n".join(lines) + "\n").encode()


def _html_table(table: Table) -> str:
    lines = ["<table>"]
    if table.caption:
        lines.append(f"<caption>{escape(table.caption)}</caption>")
    lines.append("<tr>" + "".join(f"<th>{escape(name)}</th>" for name in table.columns) + "</tr>")
    for row in table.rows:
        lines.append("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>")
    lines.append("</table>")
    return "\n".join(lines)


def _text(document: Document) -> bytes:
    parts = [block.text if isinstance(block, Heading | Notes) else block for block in document.blocks]
    texts = [part for part in parts if isinstance(part, str)]
    return ("\n\n".join([document.title, *texts]) + "\n").encode()


def _csv(document: Document) -> bytes:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for block in document.blocks:
        if isinstance(block, Table):
            writer.writerow(block.columns)
            writer.writerows(block.rows)
    return text.getvalue().encode()


def _email(document: Document) -> bytes:
    number = sum(document.path.encode())
    head = [
        *(f"{name}: {value}" for name, value in document.fields),
        f"Subject: {document.title}",
        f"Date: {document.date:%a, %d %b %Y} {8 + number % 10:02}:{number % 60:02}:00 +0000",
        f"Message-ID: <{Path(document.path).stem}@sarn-waterway.example>",
        "MIME-Version: 1.0",
    ]
    texts = [block for block in document.blocks if isinstance(block, str)]
    tables = [block for block in document.blocks if isinstance(block, Table)]
    if not tables:
        head += ["Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: 8bit"]
        return ("\n".join(head) + "\n\n" + "\n\n".join(texts) + "\n").encode()
    head += ["Content-Type: text/html; charset=utf-8", "Content-Transfer-Encoding: 8bit"]
    parts = []
    for block in document.blocks:
        if isinstance(block, Table):
            parts.append(_html_table(block))
        elif isinstance(block, str):
            parts.append(f"<p>{escape(block)}</p>")
    body = "\n".join(parts)
    return ("\n".join(head) + f"\n\n<html><body>\n{body}\n</body></html>\n").encode()


def _long_date(date: dt.date) -> str:
    return f"{date.day} {date:%B} {date.year}"


# --- office formats ---


def _word(document: Document) -> bytes:
    word = WordDocument()
    word.core_properties.author = document.author
    word.core_properties.title = document.title
    word.core_properties.created = _moment(document.date)
    word.core_properties.modified = _moment(document.date)
    word.add_heading(document.title, 0)
    for block in document.blocks:
        if isinstance(block, Heading):
            word.add_heading(block.text, block.level - 1)
        elif isinstance(block, Table):
            if block.caption:
                word.add_paragraph(block.caption)
            table = word.add_table(rows=1, cols=len(block.columns))
            table.style = "Table Grid"
            _fill(table.rows[0].cells, block.columns)
            for row in block.rows:
                _fill(table.add_row().cells, row)
        elif isinstance(block, str):
            word.add_paragraph(block)
    stream = BytesIO()
    word.save(stream)
    return _with_fixed_dates(stream.getvalue(), document.date)


def _fill(cells: Any, values: tuple[Cell, ...]) -> None:
    for cell, value in zip(cells, values, strict=True):
        cell.text = str(value)


def _excel(document: Document) -> bytes:
    workbook = Workbook()
    workbook.remove(workbook.active)
    workbook.properties.creator = document.author
    workbook.properties.title = document.title
    workbook.properties.created = _moment(document.date)
    sheet: Any = None
    for block in document.blocks:
        if isinstance(block, Heading):
            sheet = workbook.create_sheet(block.text)
        elif isinstance(block, Table):
            sheet.append(block.columns)
            for row in block.rows:
                sheet.append(row)
        elif isinstance(block, str):
            sheet.append([block])
            sheet.append([])
    stream = BytesIO()
    workbook.save(stream)
    return _with_fixed_dates(stream.getvalue(), document.date)


def _powerpoint(document: Document) -> bytes:
    slides = Presentation()
    slides.core_properties.author = document.author
    slides.core_properties.title = document.title
    slides.core_properties.created = _moment(document.date)
    slides.core_properties.modified = _moment(document.date)
    cover = slides.slides.add_slide(slides.slide_layouts[0])
    cover.shapes.title.text = document.title
    cover.placeholders[1].text = f"{document.author}, {_long_date(document.date)}"
    slide: Any = cover
    for block in document.blocks:
        if isinstance(block, Heading):
            slide = slides.slides.add_slide(slides.slide_layouts[1])
            slide.shapes.title.text = block.text
        elif isinstance(block, Table):
            height = Inches(0.35 * (len(block.rows) + 1))
            shape = slide.shapes.add_table(
                len(block.rows) + 1, len(block.columns), Inches(0.5), Inches(3.6), Inches(9), height
            )
            for place, row in enumerate((block.columns, *block.rows)):
                _fill(shape.table.rows[place].cells, row)
        elif isinstance(block, Notes):
            slide.notes_slide.notes_text_frame.text = block.text
        else:
            frame = slide.placeholders[1].text_frame
            paragraph = frame.add_paragraph() if frame.text else frame.paragraphs[0]
            paragraph.text = block
    stream = BytesIO()
    slides.save(stream)
    return _with_fixed_dates(stream.getvalue(), document.date)


def _moment(date: dt.date) -> dt.datetime:
    return dt.datetime(date.year, date.month, date.day, 9, tzinfo=dt.UTC).replace(tzinfo=None)


def _with_fixed_dates(data: bytes, date: dt.date) -> bytes:
    """Return a zip archive whose members, and the properties among them, all have one date."""
    stamp = f"{date.isoformat()}T09:00:00Z".encode()
    stream = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as source, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "docProps/core.xml":
                content = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", stamp, content)
            target.writestr(
                zipfile.ZipInfo(name, (date.year, date.month, date.day, 9, 0, 0)), content, zipfile.ZIP_DEFLATED
            )
    return stream.getvalue()


# --- PDF ---

_PLAIN = ParagraphStyle("plain", fontName="Helvetica", fontSize=10, leading=13, spaceAfter=6)
_CELL = ParagraphStyle("cell", fontName="Helvetica", fontSize=9, leading=11)
_PAGE_WIDTH = 440.0  # points between the margins
_HEADINGS = {
    1: ParagraphStyle("h1", fontName="Helvetica-Bold", fontSize=17, leading=22, spaceAfter=10),
    2: ParagraphStyle("h2", fontName="Helvetica-Bold", fontSize=13, leading=17, spaceBefore=10, spaceAfter=6),
    3: ParagraphStyle("h3", fontName="Helvetica-Bold", fontSize=11, leading=15, spaceBefore=8, spaceAfter=4),
}


def _pdf(document: Document) -> bytes:
    flow: list[Flowable] = [
        Paragraph(escape(document.title), _HEADINGS[1]),
        Paragraph(f"{escape(document.author)}, {_long_date(document.date)}", _PLAIN),
    ]
    for block in document.blocks:
        if isinstance(block, Heading):
            flow.append(Paragraph(escape(block.text), _HEADINGS[block.level]))
        elif isinstance(block, Table):
            if block.caption:
                flow.append(Paragraph(escape(block.caption), _PLAIN))
            rows = [[Paragraph(escape(str(cell)), _CELL) for cell in row] for row in (block.columns, *block.rows)]
            style = [("GRID", (0, 0), (-1, -1), 0.5, grey), ("VALIGN", (0, 0), (-1, -1), "TOP")]
            flow.append(PdfTable(rows, colWidths=_column_widths(block), repeatRows=1, style=style))
            flow.append(Spacer(1, 8))
        elif isinstance(block, str):
            flow.append(Paragraph(escape(block), _PLAIN))
    stream = BytesIO()
    # `invariant` leaves out the time of writing and a random id.
    template = SimpleDocTemplate(stream, title=document.title, author=document.author, invariant=1)
    template.build(flow)
    return stream.getvalue()


def _column_widths(table: Table) -> list[float]:
    """Return widths in points that share the page by the longest text of each column."""
    lengths = []
    for column in zip(table.columns, *table.rows, strict=True):
        longest = max(len(str(cell)) for cell in column)
        lengths.append(longest + 4)
    return [_PAGE_WIDTH * length / sum(lengths) for length in lengths]


_WRITERS = {
    ".md": _markdown,
    ".html": _html,
    ".txt": _text,
    ".csv": _csv,
    ".eml": _email,
    ".docx": _word,
    ".xlsx": _excel,
    ".pptx": _powerpoint,
    ".pdf": _pdf,
}
