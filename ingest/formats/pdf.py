"""Text of PDFs, page by page, as PDFium orders it."""

from __future__ import annotations

import re
from itertools import accumulate
from pathlib import Path

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.content import Content, FormatError, clean_text

_PAGE_GAP = "\n\n"
# Programs also write file names, numbers and placeholders into a PDF as its title.
_NO_TITLE = re.compile(r"^microsoft \w+ - |^untitled|^\(anonymous\)|\.\w{2,4}$|\d{6}|^[\W\d_]*$", re.IGNORECASE)


def read_pdf(path: Path) -> Content:
    """Read the text layer of a PDF, with a blank line between pages. A page that cannot be read is empty."""
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
    title = document.get_metadata_value("Title")
    starts = accumulate((len(page) + len(_PAGE_GAP) for page in pages[:-1]), initial=0)
    text = _PAGE_GAP.join(pages)
    return Content("" if _NO_TITLE.search(title) else title, text, tuple(starts), left_out=tuple(left_out))


def _page_text(text: str) -> str:
    # PDFium marks a hyphen at the end of a line with U+FFFE: between lower-case letters, it divides a word.
    text = re.sub("(?<=[^\\W\\d_A-Z])\ufffe(?=[^\\W\\d_A-Z])", "", text).replace("\ufffe", "-")
    return "\n".join(line.rstrip() for line in clean_text(text).split("\n"))
