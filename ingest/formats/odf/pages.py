"""The pages of presentations and drawings of OpenDocument."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree

from arag.ingest.formats.content import join_blocks
from arag.ingest.formats.odf.blocks import BlockReader, join_with_lists
from arag.ingest.formats.odf.lines import SHAPES
from arag.ingest.formats.package import attribute, local_name
from arag.ingest.formats.pictures import is_text
from arag.ingest.formats.reading_order import Place, in_reading_order
from arag.text.normalise import collapse_whitespace

_LISTS = frozenset({"outline", "subtitle"})  # classes of shapes whose paragraphs are points
_LENGTH = re.compile(r"(-?[\d.]+)(cm|mm|in|pt|pc|px)?")
_CENTIMETRES = {"cm": 1, "mm": 0.1, "in": 2.54, "pt": 2.54 / 72, "pc": 2.54 / 6, "px": 2.54 / 96}


@dataclass
class _Page:
    """What a page shows, and the speaker's notes."""

    heading: str
    blocks: list[str]
    notes: list[str]
    is_picture: bool  # has nothing but a picture


def read_pages(presentation: etree._Element, reader: BlockReader) -> list[str]:
    """Return the text of each page: its title or number, its shapes, the speaker's notes."""
    document = reader.document
    pages: list[str] = []
    pictures = 0
    for number, element in enumerate(presentation.iterfind("{*}page"), 1):
        page = _read_page(element, reader)
        pictures += page.is_picture
        document.title = document.title or page.heading
        if number == 1:
            page.blocks += _read_footers(presentation)
        if page.notes:
            page.blocks.append("Notes: " + "\n".join(page.notes))
        heading = page.heading or f"Slide {number}"
        pages.append(join_blocks([f"# {heading}", *page.blocks]))
    del document.lost["picture"]  # it may be an ornament
    if pictures:
        document.lost["slide with nothing but a picture"] = pictures
    return pages


def _read_page(page: etree._Element, reader: BlockReader) -> _Page:
    titles: list[etree._Element] = []
    others: list[etree._Element] = []
    for shape in page:
        if attribute(shape, "class") == "title":
            titles.append(shape)
        elif local_name(shape) in SHAPES:
            others.append(shape)
    heading = collapse_whitespace(" ".join(reader.blocks_of(titles)))
    blocks = [_read_shape(shape, reader) for shape in _sort(others)]
    for comment in page.iterfind("{*}annotation"):
        blocks += reader.read_beside(comment)
    has_text = heading != "" or any(map(is_text, blocks))
    has_image = page.find(".//{*}image") is not None
    return _Page(
        heading=heading,
        blocks=blocks,
        notes=reader.blocks_of(page.iterfind("{*}notes")),
        is_picture=has_image and not has_text,
    )


def _read_shape(shape: etree._Element, reader: BlockReader) -> str:
    blocks = [*reader.read_beside(shape), *reader.take_beside()]
    texts = list(filter(None, blocks))
    is_list = attribute(shape, "class") in _LISTS and len(texts) > 1
    if is_list:
        texts = [f"- {text.removeprefix('- ')}" for text in texts]
    return join_with_lists(texts)


def _read_footers(presentation: etree._Element) -> Iterator[str]:
    for element in presentation.iter("{*}footer-decl"):
        text = collapse_whitespace("".join(element.itertext()))
        if text:
            yield f"Footer: {text}"


def _sort(shapes: list[etree._Element]) -> list[etree._Element]:
    """Return shapes in the order in which a person reads them; as they are if the place of one is unknown."""
    places: dict[etree._Element, Place] = {}
    for shape in shapes:
        left = _length(shape, "x")
        top = _length(shape, "y")
        if left is None or top is None:
            return shapes
        height = _length(shape, "height") or 0
        places[shape] = Place(left, top, height)
    return in_reading_order(places)


def _length(shape: etree._Element, name: str) -> float | None:
    """Return a length in centimetres."""
    match = _LENGTH.fullmatch(attribute(shape, name))
    if match is None:
        return None
    unit = match[2] or "cm"
    return float(match[1]) * _CENTIMETRES[unit]
