"""The worker process's part: finds sentences on the pages of a PDF, and draws a page with them marked."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence

import numpy as np
import pypdfium2
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw

from arag.ingest.formats.compressed import read_packed
from arag.ingest.formats.pdf.finding import find_sentences
from arag.ingest.formats.pdf.words import Word

_WIDTH, _HEIGHT = 1_400, 2_000  # pixels of a picture at most
_MARK = (255, 226, 110)
_MARGIN = 3  # pixels around a marked word
_PERCENT = 100
_FAST = 1  # compression that takes little time: the picture is not sent over a network


def find_page(path: str, text: str, spans: Sequence[Sequence[int]], first: int, last: int) -> list[int]:
    """Return the page that has the first sentence best that any has, how far down in percent, and the last page."""
    document = pypdfium2.PdfDocument(read_packed(path))
    numbers = range(first, last + 1)
    for span in spans:
        found = {number: find_sentences(document[number - 1], text, [span])[0] for number in numbers}
        best = max(numbers, key=lambda number: found[number].alike)
        percent = 0
        if found[best].words:
            places = pypdfium2.PdfPosConv(document[best - 1], (0, 0, _PERCENT, _PERCENT, 0))
            _, percent = places.to_bitmap(found[best].words[0].left, found[best].words[0].top)
        if found[best].alike:
            return [best, percent, len(document)]
    return [first, 0, len(document)]


def draw_page(path: str, text: str, spans: Sequence[Sequence[int]], number: int) -> NDArray[np.uint8]:
    """Draw a page, counted from 1, with some sentences marked: the bytes of a PNG file."""
    document = pypdfium2.PdfDocument(read_packed(path))
    if document.get_formtype():
        document.init_forms()  # or the values in its fields are not drawn
    page = document[number - 1]
    file = io.BytesIO()
    words: set[Word] = set()
    for found in find_sentences(page, text, spans):
        words.update(found.words)
    _draw(page, words).save(file, "PNG", compress_level=_FAST)
    return np.frombuffer(file.getvalue(), np.uint8)


def _draw(page: pypdfium2.PdfPage, words: Collection[Word]) -> Image.Image:
    """Draw a page with words marked as if with a pen."""
    width, height = page.get_size()
    bitmap = page.render(scale=min(_WIDTH / width, _HEIGHT / height))
    places = bitmap.get_posconv(page)
    picture = bitmap.to_pil().convert("RGB")
    paper = Image.new("RGB", picture.size, "white")
    pen = ImageDraw.Draw(paper)
    for word in words:
        corners = places.to_bitmap(word.left, word.bottom), places.to_bitmap(word.right, word.top)
        xs, ys = zip(*corners, strict=True)  # in any order: a page may be turned
        pen.rectangle((min(xs) - _MARGIN, min(ys) - _MARGIN, max(xs) + _MARGIN, max(ys) + _MARGIN), fill=_MARK)
    return ImageChops.multiply(picture, paper)


def get_ready() -> None:
    """Draw an empty page: then everything that this module needs is loaded."""
    document = pypdfium2.PdfDocument.new()
    page = document.new_page(10, 10)
    find_sentences(page, "a", [(0, 1)])
    _draw(page, ()).save(io.BytesIO(), "PNG", compress_level=_FAST)


SERVED = (find_page, draw_page, get_ready)
