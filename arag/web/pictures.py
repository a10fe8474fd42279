"""The worker process's part: finds sentences on the pages of a PDF, and draws a page with them marked."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import groupby

import numpy as np
import pypdfium2
from numpy.typing import NDArray
from pypdfium2 import raw
from rapidfuzz.fuzz import partial_ratio_alignment

from arag.ingest.formats.pdf_words import Word, read_lines
from arag.text.normalise import plain

_WIDTH, _HEIGHT = 1_400, 2_000  # pixels of a picture at most
_MIN_ALIKE = 75  # percent of the letters: the index has hyphens, headings and tables in another form
_MARK = (255, 226, 110)
_MARGIN = 3  # pixels around a marked line
_FAST = 1  # compression that takes little time: the picture is not sent over a network


def find_page(path: str, texts: Sequence[str], first: int, last: int) -> tuple[int, bool]:
    """Return the page between two pages, counted from 1, that has most of some sentences, and whether it has any."""
    document = _open(path)
    best, best_score = first, 0.0
    for number in range(first, min(last, len(document)) + 1):
        letters = "".join(_letters(word) for word, _ in _list_words(document[number - 1]))
        score = sum(_score(text, letters) for text in texts)
        if score > best_score:
            best, best_score = number, score
    return best, best_score > 0


def count_pages(path: str) -> int:
    """Return how many pages a PDF has."""
    return len(_open(path))


def draw_page(path: str, number: int, texts: Sequence[str]) -> NDArray[np.uint8]:
    """Return a page as a picture, with sentences marked: the bytes of a PNG file."""
    from PIL import Image

    page = _open(path)[number - 1]
    width, height = page.get_size()
    bitmap = page.render(scale=min(_WIDTH / width, _HEIGHT / height), rev_byteorder=True)
    pixels = np.array(bitmap.to_numpy()[..., :3])
    for words in _find_marked(page, texts):
        left, top, right, bottom = _to_pixels(page, words, bitmap.width, bitmap.height)
        part = pixels[top:bottom, left:right]
        part[:] = part.astype(np.uint16) * _MARK // 255
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=_FAST)
    return np.frombuffer(file.getvalue(), np.uint8)


def _open(path: str) -> pypdfium2.PdfDocument:
    document = pypdfium2.PdfDocument(path)
    if document.get_formtype():
        document.init_forms()  # or the values in its fields are not drawn
    return document


def _find_marked(page: pypdfium2.PdfPage, texts: Sequence[str]) -> list[list[Word]]:
    """Return the words of sentences on a page, line by line."""
    if not texts:
        return []
    owners: list[tuple[Word, int]] = []  # of each letter of the page: its word and line
    letters = ""
    for word, line in _list_words(page):
        in_word = _letters(word)
        letters += in_word
        owners += [(word, line)] * len(in_word)
    marked: list[list[Word]] = []
    for text in texts:
        found = partial_ratio_alignment(_letters(text), letters, score_cutoff=_MIN_ALIKE)
        if found is None:
            continue
        for _, in_line in groupby(owners[found.dest_start : found.dest_end], key=lambda owner: owner[1]):
            marked.append([word for word, _ in in_line])
    return marked


def _list_words(page: pypdfium2.PdfPage) -> list[tuple[Word, int]]:
    """Return the words of a page in order, each with the number of its line."""
    words: list[tuple[Word, int]] = []
    for number, line in enumerate(read_lines(page.get_textpage())):
        words += [(word, number) for word in line]
    return words


def _score(text: str, letters: str) -> float:
    """Return how many letters of a sentence a page has, where it has most of them in a row."""
    wanted = _letters(text)
    found = partial_ratio_alignment(wanted, letters, score_cutoff=_MIN_ALIKE)
    return 0.0 if found is None else found.score * min(len(wanted), found.dest_end - found.dest_start)


def _letters(text: str | Word) -> str:
    if isinstance(text, Word):
        text = text.text
    return "".join(filter(str.isalnum, plain(text)))


def _to_pixels(page: pypdfium2.PdfPage, words: Sequence[Word], width: int, height: int) -> tuple[int, int, int, int]:
    """Return the box around words in a picture of their page: left, top, right, bottom."""
    import ctypes

    xs: list[int] = []
    ys: list[int] = []
    for word in words:
        for x, y in ((word.left, word.bottom), (word.right, word.top)):
            column, row = ctypes.c_int(), ctypes.c_int()
            raw.FPDF_PageToDevice(page, 0, 0, width, height, 0, x, y, column, row)
            xs.append(column.value)
            ys.append(row.value)
    return (
        max(0, min(xs) - _MARGIN),
        max(0, min(ys) - _MARGIN),
        max(0, max(xs) + _MARGIN),
        max(0, max(ys) + _MARGIN),
    )


SERVED = (find_page, count_pages, draw_page)
