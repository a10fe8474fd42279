"""Presentations of PowerPoint, opened by python-pptx."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from lxml import etree

from arag.ingest.formats.content import Content, join_blocks, join_pages
from arag.ingest.formats.tables import table_lines
from arag.text.normalise import collapse_whitespace

_TITLES = ("title", "ctrTitle")
# The title is the heading of its slide already; date, footer and number are on every slide.
_LEFT_OUT = (*_TITLES, "dt", "ftr", "sldNum")
_PARAGRAPH = "{http://schemas.openxmlformats.org/drawingml/2006/main}p"

_VALUES = ("{*}val//{*}pt", "{*}yVal//{*}pt")
_LABELS = ("{*}cat//{*}pt", "{*}xVal//{*}pt")
_Key: TypeAlias = "tuple[str, str]"  # the number and the label of a category: two categories may have one label


def read_slides(path: Path) -> Content:
    """Read a presentation. A slide is a page: it begins with its title or its number, and ends with the notes."""
    from pptx import Presentation

    title = ""
    pages: list[str] = []
    for number, slide in enumerate(Presentation(str(path)).slides, 1):
        heading = " ".join(_placeholder_texts(slide, _TITLES))
        title = title or heading
        pages.append(_slide_text(slide, heading or f"Slide {number}"))
    text, page_starts = join_pages(pages)
    return Content(
        title=title,
        text=text,
        page_starts=page_starts,
    )


def _slide_text(slide: Any, heading: str) -> str:
    blocks = [f"# {heading}", *_shape_texts(slide.shapes.element, slide.part)]
    if slide.has_notes_slide:
        notes = "\n".join(_placeholder_texts(slide.notes_slide, ("body",)))
        if notes:
            blocks.append(f"Notes: {notes}")
    return join_blocks(blocks)


def _placeholder_texts(slide: Any, placeholders: tuple[str, ...]) -> Iterator[str]:
    for shape in slide.element.iter("{*}sp"):
        if _placeholder(shape) in placeholders:
            yield from _paragraphs(shape)


def _placeholder(shape: Any) -> str:
    """Return which part of the slide's layout a shape fills, such as `title`; an empty string for a free shape."""
    placeholder = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
    if placeholder is None:
        return ""
    kind: str = placeholder.get("type", "body")
    return kind


def _shape_texts(shapes: Any, part: Any) -> Iterator[str]:
    """Yield the text of the shapes on a slide or in a group; some may be empty."""
    for shape in shapes.iterchildren(tag=etree.Element):
        match etree.QName(shape).localname:
            case "sp":
                yield _text_of_shape(shape)
            case "grpSp" | "AlternateContent" | "Choice":
                yield from _shape_texts(shape, part)
            case "graphicFrame":
                yield from _frame_texts(shape, part)


def _text_of_shape(shape: Any) -> str:
    """Return a shape's text, as a list if the layout shows one there."""
    placeholder = _placeholder(shape)
    if placeholder in _LEFT_OUT:
        return ""
    texts = list(_paragraphs(shape))
    if placeholder == "body" and len(texts) > 1:
        return _list(texts)
    return join_blocks(texts)


def _list(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts if text)


def _frame_texts(frame: Any, part: Any) -> Iterator[str]:
    """Yield the text of a frame's tables, charts and diagrams."""
    for table in frame.iter("{*}tbl"):
        yield "\n".join(table_lines(_table_rows(table)))
    for reference in frame.iter("{*}chart", "{*}relIds"):
        yield from _drawing_texts(_open_drawing(reference, part))


def _table_rows(table: Any) -> Iterator[list[str]]:
    for row in table.iter("{*}tr"):
        yield [_text_on_one_line(cell) for cell in row.iter("{*}tc")]


def _open_drawing(reference: Any, part: Any) -> Any:
    """Return the XML of a chart or a diagram, which is in another part of the file."""
    ids = [value for name, value in reference.attrib.items() if name.endswith(("}id", "}dm"))]
    data = part.related_part(ids[0]).blob
    return etree.fromstring(data, etree.XMLParser(resolve_entities=False))


def _drawing_texts(root: Any) -> Iterator[str]:
    """Yield the title of a chart, the points of a diagram, and the values of a chart; some may be empty."""
    for title in root.iterfind("{*}chart/{*}title"):
        yield _text_on_one_line(title)
    yield _list(map(_text_on_one_line, root.iter("{*}pt")))
    series = [_read_series(element, number) for number, element in enumerate(root.iter("{*}ser"), 1)]
    if series:
        yield "\n".join(table_lines(_chart_rows(series), header=True))


@dataclass(frozen=True)
class _Series:
    """The values of a series of a chart, by category."""

    name: str
    values: dict[_Key, str]


def _read_series(element: Any, number: int) -> _Series:
    labels = _texts_by_number(element, _LABELS)
    values: dict[_Key, str] = {}
    for point, value in _texts_by_number(element, _VALUES).items():
        key = (point, labels.get(point, point))
        values[key] = _shown_value(value)
    return _Series(
        name=element.findtext("{*}tx//{*}v") or f"Series {number}",
        values=values,
    )


def _texts_by_number(series: Any, paths: Sequence[str]) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for path in paths:
        for point in series.iterfind(path):
            number = point.get("idx", "")
            texts[number] = point.findtext("{*}v", "")
    return texts


def _shown_value(value: str) -> str:
    try:
        return f"{float(value):.15g}"  # as many digits as Excel shows
    except ValueError:  # such as #N/A
        return value


def _chart_rows(series: Sequence[_Series]) -> Iterator[list[str]]:
    """Yield a chart as a table: a column for each series, and a row for each category that any of them has."""
    yield ["Category", *(each.name for each in series)]
    categories: dict[_Key, None] = {}  # in order
    for each in series:
        categories.update(dict.fromkeys(each.values))
    for category in categories:
        _, label = category
        yield [label, *(each.values.get(category, "") for each in series)]


def _text_on_one_line(shape: Any) -> str:
    return " ".join(_paragraphs(shape))


def _paragraphs(shape: Any) -> Iterator[str]:
    """Yield the paragraphs with text, each on a line."""
    for paragraph in shape.iter(_PARAGRAPH):
        text = ""
        for part in paragraph.iter("{*}t", "{*}br", "{*}tab"):
            if part.tag.endswith("}t"):
                text += part.text or ""
            else:
                text += " "
        line = collapse_whitespace(text)
        if line:
            yield line
