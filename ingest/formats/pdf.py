"""Text of PDFs, page by page, as PDFium orders it."""

from __future__ import annotations

import ctypes
import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.content import JSON, Content, FormatError, clean_text, folded
from arag.ingest.formats.headings import Line, mark_headings
from arag.ingest.formats.tables import CELL_BORDER

_PAGE_GAP = "\n\n"
_GAP = "\ue000"  # of private use
_FIGURE = re.compile(r"[\W\d]*\d[\W\d]*|[-–—]+")
_EDGE_LINES = 2  # at the top and at the bottom of a page, that may be the same on others
_PAGE_NUMBER = re.compile(
    r"(?=.{1,40}$)\W*(?:page|p|seite|第)?\W*(\d{1,5})\W*页?(?:(?:of|von|/)?\W*\d+)?\W*", re.IGNORECASE
)
_DATE = re.compile(r"D:(\d{4})(\d\d)(\d\d)")
# Programs also write file names, numbers and placeholders into a PDF as its title.
_NO_TITLE = re.compile(r"^microsoft \w+ - |^untitled|^\(anonymous\)|\.\w{2,4}$|\d{6}|^[\W\d_]*$", re.IGNORECASE)


def read_pdf(path: Path) -> Content:
    """Read the text layer of a PDF, with a blank line between pages. A page that cannot be read is empty.

    What stands at the top or the bottom of most pages is left out from the second page on.
    """
    try:
        document = pypdfium2.PdfDocument(path.read_bytes())
    except pypdfium2.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise FormatError("the PDF is encrypted and needs a password") from error
        raise FormatError(f"broken PDF: {error}") from error
    lines: list[list[Line]] = []
    left_out: list[str] = []
    for index in range(len(document)):
        try:
            lines.append(_page_lines(document[index].get_textpage()))
        except pypdfium2.PdfiumError as error:
            lines.append([])
            left_out.append(f"page {index + 1}: {error}")
    if not any(line.text for page in lines for line in page):
        if left_out:
            raise FormatError(f"broken PDF: no page can be read; {left_out[0]}")
        raise FormatError("the PDF has no text; its pages are probably scanned images: run OCR on it first")
    title, author = (folded(document.get_metadata_value(name)) for name in ("Title", "Author"))
    date = _DATE.match(document.get_metadata_value("CreationDate"))
    metadata: dict[str, JSON] = {"author": author} if author.strip("()") not in {"", "anonymous"} else {}
    metadata |= {"date": "-".join(date.groups())} if date else {}
    pages = list(mark_headings(_without_running_lines(lines)))
    starts = accumulate((len(page) + len(_PAGE_GAP) for page in pages[:-1]), initial=0)
    text = _PAGE_GAP.join(pages)
    return Content("" if _NO_TITLE.search(title) else title, text, tuple(starts), metadata, tuple(left_out))


def _page_lines(page: pypdfium2.PdfTextPage) -> list[Line]:
    """Return the lines of a page as PDFium orders them, with the cells of tables set apart."""
    text = page.get_text_range()
    # The place of each character: PDFium counts in UTF-16, and also those that are not in the text.
    places: Sequence[int] = range(len(text) + 1)
    if len(text) != page.count_chars():
        units = accumulate((1 + (character > "\uffff") for character in text), initial=0)
        places = [raw.FPDFText_GetCharIndexFromTextIndex(page, unit) for unit in units]
    characters = list(text)
    for start, end in _cell_borders(page.raw, text, places):
        characters[start:end] = (end - start) * _GAP
    lines: list[Line] = []
    for match in re.finditer(r"\S(?:.*\S)?", "".join(characters)):
        size, font = _type(page.raw, places[match.start()])
        last_size, last_font = _type(page.raw, places[match.end() - 1])
        line = re.sub(f"{_GAP}+", CELL_BORDER, clean_text(match[0]))
        # PDFium marks a hyphen at the end of a line with U+FFFE: between lower-case letters, it divides a word.
        line = re.sub("(?<=[^\\W\\d_A-Z])\ufffe(?=[^\\W\\d_A-Z])", "", line).replace("\ufffe", "-")
        lines.append(Line(line, min(size, last_size), font if font == last_font else ""))
    return lines


def _cell_borders(page: raw.FPDF_TEXTPAGE, text: str, places: Sequence[int]) -> list[tuple[int, int]]:
    """Return the gaps between the cells of tables: the wide ones of lines that have a figure between or after them."""
    before, after = raw.FS_RECTF(), raw.FS_RECTF()
    borders: list[tuple[int, int]] = []
    gaps: list[tuple[int, int]] = []  # of one line, which PDFium may have divided
    for match in re.finditer(r"(?<=\S)\s+(?=\S)|\s*$", text):
        raw.FPDFText_GetLooseCharBox(page, places[match.start() - 1], before)
        raw.FPDFText_GetLooseCharBox(page, places[match.end()], after)
        height = after.top - after.bottom
        is_one_line = min(before.top, after.top) - max(before.bottom, after.bottom) > height / 2 > 0
        if is_one_line and after.left - before.right > height:
            gaps.append(match.span())
        elif gaps and ("\n" in match[0] or match.end() == len(text)):
            ends = [start for start, _ in gaps[1:]] + [match.start()]
            if any(_FIGURE.fullmatch(text[gap[1] : end]) for gap, end in zip(gaps, ends, strict=True)):
                borders += gaps
            gaps = []
    return borders


def _type(page: raw.FPDF_TEXTPAGE, character: int) -> tuple[float, str]:
    """Return the size and the font of a character."""
    matrix, name, flags = raw.FS_MATRIX(), ctypes.create_string_buffer(100), ctypes.c_int()
    raw.FPDFText_GetMatrix(page, character, matrix)
    raw.FPDFText_GetFontInfo(page, character, name, len(name), flags)
    size = raw.FPDFText_GetFontSize(page, character) * math.hypot(matrix.b, matrix.d)
    return round(2 * size) / 2, name.value.decode("latin-1").rpartition("+")[2]


def _without_running_lines(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """Leave out lines that stand at the top or the bottom of most pages, and page numbers, except the first."""
    edges = [_edges(page, number) for number, page in enumerate(pages)]
    counts = Counter(line for lines in edges for line in set(lines.values()))
    repeated = {line for line, number in counts.items() if number > max(len(pages) / 2, 2)}
    shown: set[str] = set()
    kept: list[list[Line]] = []
    for page, edge in zip(pages, edges, strict=True):
        kept.append([line for n, line in enumerate(page) if edge.get(n) not in shown & repeated])
        shown.update(edge.values())
    return kept


def _edges(page: Sequence[Line], number: int) -> dict[int, str]:
    """Return a page's first and last lines by their place; in place of a page number, how far it is from ours."""
    lines = [(n, folded(line.text)) for n, line in enumerate(page) if line.text]
    edges = dict(lines[:_EDGE_LINES] + lines[-_EDGE_LINES:])
    numbers = {n: _PAGE_NUMBER.fullmatch(line) for n, line in edges.items()}
    return {n: f"page {int(match[1]) - number}" if (match := numbers[n]) else line for n, line in edges.items()}
