"""Text of PDFs, page by page, as PDFium orders it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.content import JSON, Content, FormatError, clean_text, folded

_PAGE_GAP = "\n\n"
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
    pages: list[str] = []
    left_out: list[str] = []
    for index in range(len(document)):
        try:
            pages.append(_page_text(document[index].get_textpage().get_text_range()))
        except pypdfium2.PdfiumError as error:
            pages.append("")
            left_out.append(f"page {index + 1}: {error}")
    if not any(page.strip() for page in pages):
        if left_out:
            raise FormatError(f"broken PDF: no page can be read; {left_out[0]}")
        raise FormatError("the PDF has no text; its pages are probably scanned images: run OCR on it first")
    title, author = (folded(document.get_metadata_value(name)) for name in ("Title", "Author"))
    date = _DATE.match(document.get_metadata_value("CreationDate"))
    metadata: dict[str, JSON] = {"author": author} if author.strip("()") not in {"", "anonymous"} else {}
    metadata |= {"date": "-".join(date.groups())} if date else {}
    pages = _without_running_lines(pages)
    starts = accumulate((len(page) + len(_PAGE_GAP) for page in pages[:-1]), initial=0)
    text = _PAGE_GAP.join(pages)
    return Content("" if _NO_TITLE.search(title) else title, text, tuple(starts), metadata, tuple(left_out))


def _without_running_lines(pages: Sequence[str]) -> list[str]:
    """Leave out lines that stand at the top or the bottom of most pages, and page numbers, except the first."""
    edges = [_edges(page, number) for number, page in enumerate(pages)]
    counts = Counter(line for lines in edges for line in set(lines.values()))
    repeated = {line for line, number in counts.items() if number > max(len(pages) / 2, 2)}
    shown: set[str] = set()
    texts: list[str] = []
    for page, edge in zip(pages, edges, strict=True):
        lines = page.split("\n")
        texts.append("\n".join(line for n, line in enumerate(lines) if edge.get(n) not in shown & repeated))
        shown.update(edge.values())
    return texts


def _edges(page: str, number: int) -> dict[int, str]:
    """Return a page's first and last lines by their place; in place of a page number, how far it is from ours."""
    lines = [(n, folded(line)) for n, line in enumerate(page.split("\n")) if line.strip()]
    edges = dict(lines[:_EDGE_LINES] + lines[-_EDGE_LINES:])
    numbers = {n: _PAGE_NUMBER.fullmatch(line) for n, line in edges.items()}
    return {n: f"page {int(match[1]) - number}" if (match := numbers[n]) else line for n, line in edges.items()}


def _page_text(text: str) -> str:
    # PDFium marks a hyphen at the end of a line with U+FFFE: between lower-case letters, it divides a word.
    text = re.sub("(?<=[^\\W\\d_A-Z])\ufffe(?=[^\\W\\d_A-Z])", "", text).replace("\ufffe", "-")
    return "\n".join(line.rstrip() for line in clean_text(text).split("\n"))
