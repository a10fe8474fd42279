"""Text of PDFs, page by page, as PDFium orders it."""

from __future__ import annotations

import re
from itertools import accumulate
from pathlib import Path

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.content import MAX_CHARACTERS, Content, FormatError, clean_text

_PAGE_GAP = "\n\n"
# Programs also write file names, numbers and stopgaps into a PDF as its title.
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
    bad_pages: list[str] = []
    characters = 0
    for index in range(len(document)):
        try:
            page = document[index]
            text_page = page.get_textpage()
        except pypdfium2.PdfiumError as error:
            pages.append("")
            bad_pages.append(f"page {index + 1}: {error}")
            continue
        characters += text_page.count_chars()
        if characters > MAX_CHARACTERS:
            raise FormatError(f"more than {MAX_CHARACTERS:,} characters of text")
        pages.append(_page_text(text_page))
        text_page.close()
        page.close()
    title = document.get_metadata_value("Title")
    document.close()
    if not any(page.strip() for page in pages):
        if bad_pages:
            raise FormatError(f"broken PDF: no page can be read; {bad_pages[0]}")
        raise FormatError(
            "no text could be found in the PDF; its pages are probably scanned images: run OCR on it first"
        )
    starts = accumulate((len(page) + len(_PAGE_GAP) for page in pages[:-1]), initial=0)
    return Content(
        "" if _NO_TITLE.search(title) else title, _PAGE_GAP.join(pages), tuple(starts), left_out=tuple(bad_pages)
    )


def _page_text(page: pypdfium2.PdfTextPage) -> str:
    # PDFium marks a hyphen at the end of a line with U+FFFE: between lower-case letters, it divides a word.
    text = re.sub("(?<=[^\\W\\d_A-Z])\ufffe(?=[^\\W\\d_A-Z])", "", page.get_text_range()).replace("\ufffe", "-")
    return "\n".join(line.rstrip() for line in clean_text(text).split("\n"))
