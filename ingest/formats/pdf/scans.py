"""Finds the pages of a PDF that are pictures, and puts in what OCR read on them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.content import join_blocks, name_pages, name_pictures
from arag.text.normalise import plain

# A scanned page may have a page number, a stamp or a line of its archive as text.
_MAX_CHARACTERS = 200
_MAX_PAGE_NUMBER = 10  # characters: such as Page 12 of 30
_MIN_SHARE = 0.5  # of such a page that pictures cover
_MIN_SHARE_WITHOUT_TEXT = 0.05
_MIN_SHAPES = 50  # of a page without text whose letters are drawn as shapes


def find_scans(path: Path) -> list[int]:
    """Return the numbers of the pages that are pictures, from 1.

    Raises:
        pypdfium2.PdfiumError: The PDF cannot be opened.
    """
    document = pypdfium2.PdfDocument(path)
    texts: list[str] = []
    for index in range(len(document)):
        try:
            texts.append(document[index].get_textpage().get_text_range())
        except pypdfium2.PdfiumError:
            texts.append("")
    return list_scans(document, texts)


def list_scans(document: pypdfium2.PdfDocument, texts: Sequence[str]) -> list[int]:
    """Return the numbers of the pages that are pictures, from 1, given the text of each page.

    Pages that cannot be read are none.
    """
    numbers: list[int] = []
    for index, text in enumerate(texts):
        characters = len("".join(text.split()))
        if characters > _MAX_CHARACTERS:
            continue
        try:
            if _is_picture(document[index], characters):
                numbers.append(index + 1)
        except pypdfium2.PdfiumError:
            continue
    return numbers


def _is_picture(page: pypdfium2.PdfPage, characters: int) -> bool:
    """Return whether pictures cover much of a page, given how many characters it has."""
    share = 0.0
    shapes = 0
    for item in page.get_objects(max_depth=1):
        if _holds_picture(item):
            share += _share(item, page)
        elif item.type == raw.FPDF_PAGEOBJ_PATH:
            shapes += 1
    if characters > _MAX_PAGE_NUMBER:
        return share >= _MIN_SHARE
    has_shapes = not characters and shapes >= _MIN_SHAPES
    return has_shapes or share >= _MIN_SHARE_WITHOUT_TEXT


def _share(item: pypdfium2.PdfObject, page: pypdfium2.PdfPage) -> float:
    """Return how much of a page an object covers."""
    left, bottom, right, top = page.get_bbox()
    item_left, item_bottom, item_right, item_top = item.get_bounds()
    width: float = min(right, item_right) - max(left, item_left)
    height: float = min(top, item_top) - max(bottom, item_bottom)
    area: float = (right - left) * (top - bottom)
    return max(width, 0) * max(height, 0) / max(area, 1)


def _holds_picture(item: pypdfium2.PdfObject) -> bool:
    """Return whether an object of a page is a picture, or a form that has one."""
    if item.type != raw.FPDF_PAGEOBJ_FORM:
        return bool(item.type == raw.FPDF_PAGEOBJ_IMAGE)
    for index in range(raw.FPDFFormObj_CountObjects(item)):
        part = raw.FPDFFormObj_GetObject(item, index)
        if raw.FPDFPageObj_GetType(part) == raw.FPDF_PAGEOBJ_IMAGE:
            return True
    return False


def parse_ocr_texts(ocr_texts: str) -> dict[int, str]:
    """Return the texts that OCR read by the numbers of pages, given as JSON, or an empty string for none."""
    texts: dict[int, str] = {}
    for number, text in json.loads(ocr_texts or "{}").items():
        texts[int(number)] = text
    return texts


def name_scans(scans: Sequence[int]) -> tuple[str, ...]:
    """Return a phrase for the pages that are pictures without text; nothing if there are none."""
    if not scans:
        return ()
    return (f"{name_pictures(name_pages(scans), len(scans))} (scanned? try --ocr)",)


def add_ocr_text(page: str, ocr_text: str) -> str:
    """Return what OCR read on a page, and the page's own lines that OCR has not read, such as a stamp."""
    if not ocr_text:
        return page
    read = _letters(ocr_text)
    own: list[str] = []
    for line in page.split("\n"):
        if line.strip() and _letters(line) not in read:
            own.append(line)
    return join_blocks([ocr_text, "\n".join(own)])


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, plain(text)))
