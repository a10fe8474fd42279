"""Drawings of Word: boxes, charts, diagrams, and what stands in for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree

from arag.ingest.formats.drawings import text_on_one_line
from arag.ingest.formats.package import attribute, find_child, local_name
from arag.ingest.formats.pictures import describe

_KINDS = {
    "txbxContent": "box",
    "txBody": "text",
    "textpath": "text",
    "chart": "chart",
    "relIds": "diagram",
    "pic": "picture",
    "imagedata": "picture",
    "OLEObject": "embedded document",
}
_ATTRIBUTES = {"textpath": "string", "chart": "id", "relIds": "dm"}  # that have the text or the reference
_READ_WHOLE = frozenset({"txbxContent", "txBody"})  # what is in them is no further drawing


@dataclass(frozen=True)
class Drawing:
    """Something that stands beside the text.

    Attributes:
        kind: `box` with paragraphs, `text`, `chart`, `diagram` or `picture`; or a noun for what is not read.
        element: The box's content.
        text: The text, the id of the reference to a chart or diagram, or what is read out for a picture.
    """

    kind: str
    element: etree._Element
    text: str = ""


def find_drawings(element: etree._Element) -> Iterator[Drawing]:
    """Yield what a drawing has: all boxes of a group, also those of groups in groups."""
    name = local_name(element)
    if name == "AlternateContent":
        yield from _first_alternative(element)
        return
    drawing = _make_drawing(element, name)
    if drawing is not None:
        yield drawing
    if name in _READ_WHOLE:
        return
    for child in element:
        yield from find_drawings(child)


def _first_alternative(block: etree._Element) -> list[Drawing]:
    """Return the drawings of the first alternative that has any."""
    drawings = map(list, map(find_drawings, block))
    return next(filter(None, drawings), [])


def _make_drawing(element: etree._Element, name: str) -> Drawing | None:
    """Return the drawing that an element stands for, if it does for any."""
    kind = _KINDS.get(name)
    if kind is None:
        return None
    if attribute(element, "ProgID").startswith("Equation"):
        kind = "equation"
    if name == "txBody":
        text = text_on_one_line(element)
    elif kind == "picture":
        text = describe(_description(element))
    else:
        text = attribute(element, _ATTRIBUTES.get(name, ""))
    return Drawing(kind, element, text)


def _description(picture: etree._Element) -> str:
    """Return the description of a picture, or of the place in the text where it stands alone."""
    own = find_child(picture, "{*}nvPicPr/{*}cNvPr")
    place = next(picture.iterancestors("{*}inline", "{*}anchor"), None)
    properties = find_child(place, "{*}docPr")
    for element in (properties, own):
        if element is not None and attribute(element, "descr"):
            return attribute(element, "descr")
    shape = picture.getparent()
    return "" if shape is None else attribute(shape, "alt")
