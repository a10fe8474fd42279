"""Text of PDFs, page by page, as PDFium orders it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.content import JSON, Content, FormatError, join_pages
from arag.ingest.formats.headings import Line, mark_headings
from arag.ingest.formats.pdf_page import page_lines
from arag.ingest.formats.repeats import find_keepers
from arag.text.normalise import collapse_whitespace

_EDGE_LINES = 2  # at the top and at the bottom of a page: more would also take repeated lines of text for headers
_PAGE_NUMBER = re.compile(
    r"(?=.{1,40}$)\W*(?:page|p|seite|第)?\W*(\d{1,5})\W*页?(?:(?:of|von|/)?\W*\d+)?\W*", re.IGNORECASE
)
_DATE = re.compile(r"D:(\d{4})(\d\d)(\d\d)")
# Programs also write file names, numbers and placeholders into a PDF as its title.
_NO_TITLE = re.compile(r"^microsoft \w+ - |^untitled|^\(anonymous\)|\.\w{2,4}$|\d{6}|^[\W\d_]*$", re.IGNORECASE)
_NO_AUTHOR = {"", "anonymous"}


def read_pdf(path: Path) -> Content:
    """Read the text layer of a PDF, with a blank line between pages. A page that cannot be read is empty.

    Lines at the top or the bottom of most pages are left out from the second page on.

    Raises:
        FormatError: The PDF is broken, needs a password or has no text.
    """
    document = _open(path)
    damage: list[str] = []
    lines = _read_pages(document, damage)
    if not _has_text(lines):
        fault = damage[0] if damage else "its pages are probably scanned images: run OCR on it first"
        raise FormatError(f"the PDF has no text; {fault}")
    pages = list(mark_headings(_without_running_lines(lines)))
    text, page_starts = join_pages(pages)
    return Content(
        title=_title(document),
        text=text,
        page_starts=page_starts,
        metadata=_metadata(document),
        damage=tuple(damage),
    )


def _open(path: Path) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(path.read_bytes())
    except pypdfium2.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise FormatError("the PDF is encrypted and needs a password") from error
        raise FormatError(f"broken PDF: {error}") from error


def _read_pages(document: pypdfium2.PdfDocument, damage: list[str]) -> list[list[Line]]:
    """Return the lines of each page; pages that cannot be read are empty and added to `damage`."""
    pages: list[list[Line]] = []
    for index in range(len(document)):
        try:
            lines = page_lines(document[index].get_textpage())
        except pypdfium2.PdfiumError as error:
            lines = []
            damage.append(f"page {index + 1}: {error}")
        pages.append(lines)
    return pages


def _has_text(pages: Sequence[Sequence[Line]]) -> bool:
    return any(line.text for page in pages for line in page)


def _title(document: pypdfium2.PdfDocument) -> str:
    title = collapse_whitespace(document.get_metadata_value("Title"))
    return "" if _NO_TITLE.search(title) else title


def _metadata(document: pypdfium2.PdfDocument) -> dict[str, JSON]:
    metadata: dict[str, JSON] = {}
    author = collapse_whitespace(document.get_metadata_value("Author"))
    if author.strip("()") not in _NO_AUTHOR:
        metadata["author"] = author
    date = _DATE.match(document.get_metadata_value("CreationDate"))
    if date:
        metadata["date"] = "-".join(date.groups())
    return metadata


def _without_running_lines(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Leave out page numbers and lines at the top or the bottom of most pages, except on the first that has them."""
    edges = [_edges(page, number) for number, page in enumerate(pages)]
    most_pages = max(len(pages) // 2, 2) + 1
    keepers = find_keepers({number: edge.values() for number, edge in enumerate(edges)}, most_pages)
    return [_kept_lines(page, number, edges[number], keepers) for number, page in enumerate(pages)]


def _kept_lines(
    page: Sequence[Line],
    page_number: int,
    edges: Mapping[int, str],
    keepers: Mapping[str, int],
) -> list[Line]:
    lines: list[Line] = []
    for position, line in enumerate(page):
        edge_text = edges.get(position, "")
        keeper = keepers.get(edge_text, page_number)
        if keeper == page_number:
            lines.append(line)
    return lines


def _edges(page: Sequence[Line], page_number: int) -> dict[int, str]:
    """Return a page's first and last lines by their position.

    A printed page number becomes its distance from `page_number`, which is the same on all pages.
    """
    lines: list[tuple[int, str]] = []
    for position, line in enumerate(page):
        if line.text:
            lines.append((position, collapse_whitespace(line.text)))
    edges = dict(lines[:_EDGE_LINES] + lines[-_EDGE_LINES:])
    for position, text in edges.items():
        printed = _PAGE_NUMBER.fullmatch(text)
        if printed:
            edges[position] = f"page {int(printed[1]) - page_number}"
    return edges
