"""Says which part of its document a chunk is: its number, its pages, slides or sheets."""

from __future__ import annotations

import re
from collections.abc import Sequence

from arag.retrieval.types import Chunk
from arag.text.marks import without_marks
from arag.text.normalise import HEADING_BOUNDARY

_PRESENTATIONS = (".pptx", ".pptm", ".ppt", ".odp")
_SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
_COPY = re.compile(r"~\d+$")  # of an id that several files would have
_MAX_SHEETS = 3  # that are named: a chunk of more has their names in its text


def name_part(chunk: Chunk) -> str:
    """Return which part a chunk is, as in "part 2 of 11"; empty if it is a whole document."""
    if chunk.whole:
        return ""
    return f"part {chunk.ordinal + 1} of {chunk.parts}"


def name_pages_of(chunk: Chunk) -> str:
    """Return the pages of a chunk, or its slides if it is of a presentation; empty if there are none."""
    return _name_pages(chunk.document_id, chunk.pages)


def _name_pages(document_id: str, pages: Sequence[int] | None) -> str:
    """Return pages as in "pages 16-23", or "slides 2-3" of a presentation; empty if there are none."""
    if not pages:
        return ""
    noun = "slide" if _is_kind(document_id, _PRESENTATIONS) else "page"
    first, last = pages[0], pages[-1]
    if first == last:
        return f"{noun} {first}"
    return f"{noun}s {first}-{last}"


def _is_kind(document_id: str, extensions: tuple[str, ...]) -> bool:
    return _COPY.sub("", document_id).lower().endswith(extensions)


def name_cited_pages(chunk_id: str, pages: Sequence[int] | None, ocr_pages: Sequence[int]) -> str:
    """Return the pages of a citation, and that they were read by OCR, as in "page 3, read by OCR"."""
    document_id, _, _ = chunk_id.rpartition(":")
    named = _name_pages(document_id, pages)
    if not ocr_pages:
        return named
    if pages and len(ocr_pages) == pages[-1] - pages[0] + 1:
        return f"{named}, read by OCR"
    return f"{named} (read by OCR: {', '.join(map(str, ocr_pages))})"


def name_place(chunk: Chunk, *, with_sheets: bool = True) -> str:
    """Return all that says which part of its document a chunk is, as in "part 2 of 11, pages 3-4".

    The headings of a spreadsheet begin with its sheets: beside a heading, these need no name.
    """
    places = [name_part(chunk), name_pages_of(chunk)]
    if with_sheets:
        places.append(_name_sheets(chunk))
    return ", ".join(filter(None, places))


def _name_sheets(chunk: Chunk) -> str:
    """Return the sheets of a chunk of a spreadsheet, as in "sheet Stock"; they are its outermost headings."""
    if not _is_kind(chunk.document_id, _SPREADSHEETS):
        return ""
    sheets: dict[str, None] = {}
    for sentence in chunk.sentences:
        sheet, _, _ = sentence.heading.partition(HEADING_BOUNDARY)
        if sheet:
            sheets[sheet] = None
    if not sheets or len(sheets) > _MAX_SHEETS:
        return ""
    noun = "sheet"
    if len(sheets) > 1:
        noun = "sheets"
    return without_marks(f"{noun} {', '.join(sheets)}")
