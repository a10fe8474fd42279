"""Writes the files of an invented maker of flow meters: policies, minutes, mails, workbooks, slides and reports.

    python examples/company/office_files.py FOLDER

`questions.json` asks about them. As in an office, later minutes replace decisions of earlier ones, tables are
longer than a chunk, sheets and reports have the same labels, and abbreviations are explained elsewhere. The texts are
in `office_texts.md`, which says how it is to be read.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from html import escape
from itertools import chain, count, groupby
from pathlib import Path
from random import Random
from typing import Any

from docx import Document
from openpyxl import Workbook
from pptx import Presentation
from pptx.util import Inches
from reportlab.lib.colors import grey
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.pdfmetrics import registerFont
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

COMPANY = "Veldrane Instruments"
SAVED = datetime(2025, 9, 1, 9, tzinfo=UTC)
TEXTS = Path(__file__).with_name("office_texts.md")


def write_files(folder: Path) -> None:
    """Write all files into a folder."""
    for name, text in texts():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        WRITERS[path.suffix](path, text)


# --- the texts ---


def texts() -> Iterator[tuple[str, str]]:
    """Yield the name of each file and its text in Markdown."""
    _, lists_part, *parts = TEXTS.read_text("utf-8").split("\n@ ")
    rows = (line.partition(": ") for line in lists_part.split("\n")[1:] if line)
    lists = {name: items.split(", ") for name, _, items in rows}
    for part in parts:
        head, _, text = part.partition("\n")
        path, _, items = head.partition(" *")
        for n, item in enumerate(lists.get(items, [path]), start=1):
            name = fill(path, item, n, item, lists)
            yield name, fill(repeat_lines(f"{text.strip()}\n", name, lists), item, n, item, lists)


def repeat_lines(text: str, seed: str, lists: Mapping[str, Sequence[str]]) -> str:
    """Repeat lines for each item of a list."""
    tables = count()

    def repeat(match: re.Match[str]) -> str:
        items = lists.get(match[1]) or [str(n) for n in range(int(match[1]))]
        place = f"{seed} {next(tables)}"
        return "".join(fill(match[2], item, n, f"{place} {item}", lists) for n, item in enumerate(items, start=1))

    return re.sub(r"^\*(\S+)\n((?:[^*\n].*\n?)+)\n?", repeat, text, flags=re.MULTILINE)


def fill(template: str, item: str, n: int, seed: str, lists: Mapping[str, Sequence[str]]) -> str:
    """Fill in what stands in braces: the same for the same seed and place."""
    places = count()

    def value(match: re.Match[str]) -> str:
        name, chance = match[1], Random(f"{seed} {next(places)}")  # noqa: S311 - no secret
        if name in {"name", "slug"}:
            return item if name == "name" else re.sub(r"\W+", "-", item.lower())
        if name.startswith("n"):
            return f"{{{name}}}".format(n=n)
        if name in lists:
            return chance.choice(lists[name])
        least, most = (int(end.replace(",", "")) for end in name.split("-"))
        return f"{chance.randint(least, most):{',' if ',' in name else ''}}"

    return re.sub(r"\{(name|slug|n(?::\d+)?|[\w,-]+)\}", value, template)


def blocks(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the kind of each line and its text: a heading, an item, notes or a paragraph; a table as rows of cells."""
    for kind, lines in groupby(filter(None, text.split("\n")), key=lambda line: line.partition(" ")[0]):
        if kind == "|":
            yield kind, [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
        elif kind in {"#", "##", "-", "!"}:
            yield from ((kind, line.partition(" ")[2]) for line in lines)
        else:
            yield from (("", line) for line in lines)


def merged(rows: Sequence[Sequence[str]]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last column of each cell in the first row that covers several."""
    starts = [x for x, cell in enumerate(rows[0]) if cell != "<"]
    ends = [*(x - 1 for x in starts[1:]), len(rows[0]) - 1]
    yield from ((start, end) for start, end in zip(starts, ends, strict=True) if start < end)


def shown(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the cells without the marks of those that continue another."""
    return [["" if cell == "<" else cell for cell in row] for row in rows]


# --- the writers ---


def write_pdf(path: Path, text: str) -> None:
    """Write a PDF with a running header and page numbers; a long table has its header on every page."""
    registerFont(UnicodeCIDFont("STSong-Light"))
    font, wrap = ("Helvetica", None) if path.name.isascii() else ("STSong-Light", "CJK")
    parts: list[Any] = []
    for kind, value in blocks(text):
        if kind == "|":
            style = [("FONT", (0, 0), (-1, -1), font, 9), ("GRID", (0, 0), (-1, -1), 0.5, grey)]
            style += [("SPAN", (start, 0), (end, 0)) for start, end in merged(value)]
            parts.append(Table(shown(value), repeatRows=1, style=style))
        else:
            size = {"#": 18, "##": 13}.get(kind, 10)
            style = ParagraphStyle(kind, fontName=font, fontSize=size, leading=size * 1.4, spaceAfter=6, wordWrap=wrap)
            parts.append(Paragraph(("• " if kind == "-" else "") + escape(value), style))
    title = text.partition("\n")[0].strip("# ")

    def decorate(canvas: Any, _: Any) -> None:
        canvas.setFont(font, 8)
        canvas.drawString(72, 810, f"{COMPANY} · {title}")
        canvas.drawString(280, 30, f"Page {canvas.getPageNumber()}")

    document = SimpleDocTemplate(str(path), title=title, invariant=True)
    document.build(parts, onFirstPage=decorate, onLaterPages=decorate)


def write_docx(path: Path, text: str) -> None:
    word = Document()
    word.core_properties.author, word.core_properties.modified = COMPANY, SAVED
    word.sections[0].header.paragraphs[0].text = f"{COMPANY} · internal"
    for kind, value in blocks(text):
        if kind == "|":
            table = word.add_table(0, len(value[0]), style="Table Grid")
            for row in shown(value):
                for cell, cell_text in zip(table.add_row().cells, row, strict=True):
                    cell.text = cell_text
            for start, end in merged(value):
                cell_text = value[0][start]
                table.cell(0, start).merge(table.cell(0, end)).text = cell_text
        elif kind in {"#", "##"}:
            word.add_heading(value, len(kind))
        else:
            word.add_paragraph(value, style="List Bullet" if kind == "-" else None)
    word.save(str(path))


def write_pptx(path: Path, text: str) -> None:
    """Write slides: each heading begins one."""
    deck = Presentation()
    deck.core_properties.author, deck.core_properties.modified = COMPANY, SAVED
    for kind, value in blocks(text):
        if kind in {"#", "##"}:
            slide = deck.slides.add_slide(deck.slide_layouts[1])
            slide.shapes.title.text = value
        elif kind == "|":
            place = [Inches(n) for n in (1, 2, 8, 4)]
            table = slide.shapes.add_table(len(value), len(value[0]), *place).table
            for cell, cell_text in zip(table.iter_cells(), chain(*value), strict=True):
                cell.text = cell_text
        elif kind == "!":
            slide.notes_slide.notes_text_frame.text = value
        else:
            body = slide.placeholders[1].text_frame
            body.text = f"{body.text}\n{value}".strip()
    deck.save(str(path))


def write_xlsx(path: Path, text: str) -> None:
    """Write a workbook: each heading begins a sheet, and paragraphs stand in the first column."""
    book = Workbook()
    book.properties.creator = COMPANY
    book.remove(book.active)
    for kind, value in blocks(text):
        if kind == "##":
            sheet = book.create_sheet(value)
        elif kind == "|":
            for row in shown(value):
                sheet.append([int(cell) if cell.isdecimal() else cell or None for cell in row])
            top = sheet.max_row - len(value) + 1
            for start, end in merged(value):
                sheet.merge_cells(start_row=top, end_row=top, start_column=start + 1, end_column=end + 1)
        else:
            sheet.append([value])
    book.save(path)


def write_html(path: Path, text: str) -> None:
    """Write a page of the intranet, with the links and the footer that all of them have."""
    title = text.partition("\n")[0].strip("# ")
    parts = []
    for kind, value in blocks(text):
        if kind == "|":
            rows = ("".join(f"<{'td' if y else 'th'}>{escape(cell)}" for cell in row) for y, row in enumerate(value))
            parts.append("<table>" + "".join(f"<tr>{row}" for row in rows) + "</table>")
        else:
            parts.append(f"<{{0}}>{escape(value)}</{{0}}>".format({"#": "h1", "##": "h2", "-": "li"}.get(kind, "p")))
    links = "".join(f'<li><a href="{name}.html">{name}</a>' for name in ("home", "canteen", "forms", "telephone-list"))
    path.write_text(
        f"<!doctype html><meta charset=utf-8><title>{title} - Intranet</title><header>{COMPANY} Intranet</header>"
        f"<nav><ul>{links}</ul></nav><main>{''.join(parts)}</main><footer>Last changed in August. Call 4000.</footer>",
        encoding="utf-8",
    )


def write_eml(path: Path, text: str) -> None:
    head, _, body = text.partition("\n\n")
    mail = EmailMessage()
    for name, _, value in (line.partition(": ") for line in head.split("\n")):
        mail[name] = format_datetime(datetime.fromisoformat(f"{value}+00:00")) if name == "Date" else value
    mail.set_content(body)
    path.write_bytes(mail.as_bytes())


def write_csv(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(row for _, rows in blocks(text) for row in rows)


def write_md(path: Path, text: str) -> None:
    """Write the text, with a line below the header of each table."""
    header = re.compile(r"(?<!\|\n)^\|.*\|$", re.MULTILINE)
    path.write_text(header.sub(lambda row: f"\n{row[0]}\n{'| --- ' * (row[0].count('|') - 1)}|", text), "utf-8")


def write_txt(path: Path, text: str) -> None:
    path.write_text(re.sub(r"^(?:#+|\|) | \|$", "", text, flags=re.MULTILINE), "utf-8")


WRITERS = {
    ".pdf": write_pdf,
    ".docx": write_docx,
    ".pptx": write_pptx,
    ".xlsx": write_xlsx,
    ".html": write_html,
    ".eml": write_eml,
    ".csv": write_csv,
    ".md": write_md,
    ".txt": write_txt,
}

if __name__ == "__main__":
    write_files(Path(sys.argv[1]))
