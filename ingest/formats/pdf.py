"""Text of PDFs, page by page, as PDFium orders it."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import NamedTuple

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.content import JSON, Content, FormatError, clean_text
from arag.ingest.formats.headings import Line, mark_headings
from arag.ingest.formats.repeats import find_keepers
from arag.text.normalise import CELL_BOUNDARY, collapse_whitespace

_PAGE_GAP = "\n\n"
_MAX_CELL_LINES = 5  # of the first cell of a row
_LINE = re.compile(r"\S(?:.*\S)?")
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
        fault = left_out[0] if left_out else "its pages are probably scanned images: run OCR on it first"
        raise FormatError(f"the PDF has no text; {fault}")
    title, author = (collapse_whitespace(document.get_metadata_value(name)) for name in ("Title", "Author"))
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
    parts: list[tuple[str, int, int]] = []
    at = 0
    for start, end, line in [*_rows(text, _pieces(page.raw, text, places)), (len(text), len(text), "")]:
        parts += [(match[0], *match.span()) for match in _LINE.finditer(text, at, start)]
        parts.append((line, start, end))
        at = end
    lines: list[Line] = []
    for part, start, end in parts[:-1]:
        size, font = _type(page.raw, places[start])
        last_size, last_font = _type(page.raw, places[end - 1])
        # PDFium marks a hyphen at the end of a line with U+FFFE: between lower-case letters, it divides a word.
        line = re.sub("(?<=[^\\W\\d_A-Z])\ufffe(?=[^\\W\\d_A-Z])", "", clean_text(part)).replace("\ufffe", "-")
        lines.append(Line(line, min(size, last_size), font if font == last_font else ""))
    return lines


class _Piece(NamedTuple):
    """A part of a line, between wide gaps."""

    start: int  # in the text of the page
    end: int
    left: float
    right: float
    bottom: float
    top: float

    def overlaps(self, other: _Piece) -> bool:
        """Return whether another piece stands beside it, at least in part."""
        return min(self.top, other.top) - max(self.bottom, other.bottom) > (self.top - self.bottom) / 4


def _pieces(page: raw.FPDF_TEXTPAGE, text: str, places: Sequence[int]) -> Iterator[_Piece]:
    first, before, after = raw.FS_RECTF(), raw.FS_RECTF(), raw.FS_RECTF()
    start = len(text) - len(text.lstrip())
    raw.FPDFText_GetLooseCharBox(page, places[start], first)
    for match in re.finditer(r"(?<=\S)\s+(?=\S)|(?<=\S)\s*\Z", text):
        raw.FPDFText_GetLooseCharBox(page, places[match.start() - 1], before)
        raw.FPDFText_GetLooseCharBox(page, places[match.end()], after)
        if "\n" in match[0] or match.end() == len(text) or after.left - before.right > after.top - after.bottom:
            yield _Piece(start, match.start(), first.left, before.right, first.bottom, first.top)
            start = match.end()
            first, after = after, first


def _rows(text: str, pieces: Iterator[_Piece]) -> Iterator[tuple[int, int, str]]:
    """Yield the rows of tables that have a figure after their first cell: start, end and text.

    A cell may have several lines if they stand beside lines of others.
    """
    row: list[list[_Piece]] = []
    for piece in chain(pieces, [_Piece(0, 0, *[math.nan] * 4)]):  # which stands nowhere
        cell = row[-1] if row else []
        # What stands above a row is not of its first cell.
        beside = next((n for n, line in enumerate(cell) if len(row) > 1 or line.overlaps(piece)), len(cell))
        right = max((line.right for line in cell[beside:]), default=math.inf)
        if piece.left - right > piece.top - piece.bottom and any(map(piece.overlaps, chain(*row))):
            row[-1:] = [cell[beside:], [piece]]
        elif (
            cell
            and piece.left < cell[-1].right
            and cell[-1].left < piece.right
            and (len(row) == 1 or any(map(piece.overlaps, chain(*row[:-1]))))
        ):
            cell.append(piece)
            if len(row) == 1:
                del cell[:-_MAX_CELL_LINES]
        else:
            cells = [" ".join(text[line.start : line.end] for line in cell) for cell in row]
            if any(map(_FIGURE.fullmatch, cells[1:])):
                yield row[0][0].start, row[-1][-1].end, CELL_BOUNDARY.join(cells)
            row = [[piece]]


def _type(page: raw.FPDF_TEXTPAGE, character: int) -> tuple[float, str]:
    """Return the size and the font of a character."""
    matrix, name, flags = raw.FS_MATRIX(), ctypes.create_string_buffer(100), ctypes.c_int()
    raw.FPDFText_GetMatrix(page, character, matrix)
    raw.FPDFText_GetFontInfo(page, character, name, len(name), flags)
    size = raw.FPDFText_GetFontSize(page, character) * math.hypot(matrix.b, matrix.d)
    return round(2 * size) / 2, name.value.decode("latin-1").rpartition("+")[2]


def _without_running_lines(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """Leave out lines that stand at the top or the bottom of most pages, and page numbers, except the first."""
    edges = {number: _edges(page, number) for number, page in enumerate(pages)}
    keepers = find_keepers({n: edge.values() for n, edge in edges.items()}, max(len(pages) // 2, 2) + 1)
    return [
        [line for place, line in enumerate(page) if keepers.get(edges[number].get(place, ""), number) == number]
        for number, page in enumerate(pages)
    ]


def _edges(page: Sequence[Line], number: int) -> dict[int, str]:
    """Return a page's first and last lines by their place; in place of a page number, how far it is from ours."""
    lines = [(n, collapse_whitespace(line.text)) for n, line in enumerate(page) if line.text]
    edges = dict(lines[:_EDGE_LINES] + lines[-_EDGE_LINES:])
    numbers = {n: _PAGE_NUMBER.fullmatch(line) for n, line in edges.items()}
    return {n: f"page {int(match[1]) - number}" if (match := numbers[n]) else line for n, line in edges.items()}
