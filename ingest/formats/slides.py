"""Presentations of PowerPoint, opened by python-pptx."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from lxml import etree

from arag.ingest.formats.content import Content
from arag.ingest.formats.tables import table_lines
from arag.text.normalise import collapse_whitespace

_TITLES = ("title", "ctrTitle")
_LEFT_OUT = (*_TITLES, "dt", "ftr", "sldNum")  # the title is there already; date, footer and number are on every slide
_PARAGRAPH = "{http://schemas.openxmlformats.org/drawingml/2006/main}p"
_GAP = "\n\n"


def read_slides(path: Path) -> Content:
    """Read a presentation. A slide is a page: it begins with its title or its number, and ends with the notes."""
    from pptx import Presentation

    title, pages = "", []
    for number, slide in enumerate(Presentation(str(path)).slides, 1):
        heading = " ".join(_placed(slide, _TITLES))
        title = title or heading
        notes = "\n".join(_placed(slide.notes_slide, ("body",))) if slide.has_notes_slide else ""
        blocks = [f"# {heading or f'Slide {number}'}", *_blocks(slide.shapes.element, slide.part)]
        pages.append(_GAP.join(filter(None, [*blocks, notes and f"Notes: {notes}"])))
    starts = accumulate((len(page) + len(_GAP) for page in pages[:-1]), initial=0)
    return Content(title, _GAP.join(pages), page_starts=tuple(starts) if pages else ())


def _placed(slide: Any, places: tuple[str, ...]) -> Iterator[str]:
    return (text for shape in slide.element.iter("{*}sp") if _place(shape) in places for text in _paragraphs(shape))


def _place(shape: Any) -> str:
    """Return what a shape holds on the slide's layout, such as `title`; an empty string for a free shape."""
    place = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
    return "" if place is None else place.get("type", "body")


def _blocks(shapes: Any, part: Any) -> Iterator[str]:
    """Yield the text of the shapes on a slide or in a group."""
    for shape in shapes.iterchildren(tag=etree.Element):
        kind = etree.QName(shape).localname
        if kind == "sp" and _place(shape) not in _LEFT_OUT:
            texts = list(_paragraphs(shape))
            is_list = len(texts) > 1 and _place(shape) == "body"
            yield "\n".join(f"- {text}" for text in texts) if is_list else _GAP.join(texts)
        elif kind in {"grpSp", "AlternateContent", "Choice"}:
            yield from _blocks(shape, part)
        elif kind == "graphicFrame":
            for table in shape.iter("{*}tbl"):
                rows = ([" ".join(_paragraphs(cell)) for cell in row.iter("{*}tc")] for row in table.iter("{*}tr"))
                yield "\n".join(table_lines(rows))
            for reference in shape.iter("{*}chart", "{*}relIds"):
                yield from _drawing(reference, part)


def _drawing(reference: Any, part: Any) -> Iterator[str]:
    """Yield the text of a chart or a diagram."""
    name = next(value for key, value in reference.attrib.items() if key.endswith(("}id", "}dm")))
    root = etree.fromstring(part.related_part(name).blob, etree.XMLParser(resolve_entities=False))
    yield from (" ".join(_paragraphs(title)) for title in root.iterfind("{*}chart/{*}title"))
    yield "\n".join(f"- {text}" for point in root.iter("{*}pt") if (text := " ".join(_paragraphs(point))))
    series = list(root.iter("{*}ser"))
    columns = [dict(_points(each)) for each in series]
    names = [each.findtext("{*}tx//{*}v") or f"Series {number}" for number, each in enumerate(series, 1)]
    rows = ([key[1], *(column.get(key, "") for column in columns)] for key in dict.fromkeys(chain(*columns)))
    yield "\n".join(table_lines(chain([["Category", *names]], rows), header=True)) if series else ""


def _points(series: Any) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the values of a series, by their number and label."""
    values, labels = (
        {point.get("idx", ""): point.findtext("{*}v") or "" for kind in kinds for point in series.iterfind(kind)}
        for kinds in (("{*}val//{*}pt", "{*}yVal//{*}pt"), ("{*}cat//{*}pt", "{*}xVal//{*}pt"))
    )
    for number, value in values.items():
        with suppress(ValueError):  # such as #N/A
            value = f"{float(value):.15g}"  # noqa: PLW2901 - as many digits as Excel has
        yield (number, labels.get(number, number)), value


def _paragraphs(shape: Any) -> Iterator[str]:
    """Yield the paragraphs with text, each on a line."""
    for paragraph in shape.iter(_PARAGRAPH):
        parts = paragraph.iter("{*}t", "{*}br", "{*}tab")
        if line := collapse_whitespace("".join(part.text or "" if part.tag.endswith("}t") else " " for part in parts)):
            yield line
