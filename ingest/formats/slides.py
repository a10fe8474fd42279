"""Presentations of PowerPoint, opened by python-pptx."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import ZipFile

from lxml import etree

from arag.ingest.formats.content import Content, join_blocks, join_pages, name_lost
from arag.ingest.formats.drawings import (
    bullets,
    drawing_noun,
    drawing_reference,
    drawing_texts,
    paragraphs,
    text_on_one_line,
)
from arag.ingest.formats.package import as_transitional, local_name, parse_xml, with_parts
from arag.ingest.formats.pictures import describe, is_text
from arag.ingest.formats.reading_order import Place, in_reading_order
from arag.ingest.formats.tables import table_lines
from arag.ingest.outline import escape_structure
from arag.text.normalise import collapse_whitespace, count

_TITLES = ("title", "ctrTitle")
_FOOTERS = ("dt", "ftr")
# The title is the heading of its slide already; the others are on every slide.
_LEFT_OUT = (*_TITLES, *_FOOTERS, "sldNum")
_PLACEHOLDER = "{*}nvSpPr/{*}nvPr/{*}ph"
_TYPES = "[Content_Types].xml"
_OTHER_KINDS = re.compile(rb"(presentationml\.|powerpoint\.)(?:template|slideshow)(\.main|\.macroEnabled)")
_NO_SHAPES = frozenset({"nvGrpSpPr", "grpSpPr", "extLst"})
_TRUE = {"1", "true"}


_Places: TypeAlias = "dict[str, Place]"  # by the kind or the number of a placeholder


@dataclass
class _Presentation:
    """What the slides of a presentation share."""

    authors: dict[str, str] = field(default_factory=dict)  # of comments, by their ids
    footers: set[str] = field(default_factory=set)  # that have been read
    lost: Counter[str] = field(default_factory=Counter)
    _places: dict[str, _Places] = field(default_factory=dict)  # by the name of a layout's part

    def places_of(self, layout: Any) -> _Places:
        """Return where a layout puts its placeholders."""
        name = str(layout.part.partname)
        if name not in self._places:
            self._places[name] = _read_places(layout)
        return self._places[name]


def _read_places(layout: Any) -> _Places:
    places: _Places = {}
    for shapes in (layout.slide_master.element, layout.element):  # the layout's own come last
        for shape in shapes.iter("{*}sp"):
            place = _place(shape)
            kind = _placeholder(shape)
            if not kind or place is None:
                continue
            places[kind] = place
            places[_placeholder_number(shape)] = place
    places.pop("", None)  # of placeholders without a number
    return places


def read_slides(path: Path) -> Content:
    """Read a presentation. A slide is a page: it begins with its title or its number, and ends with the notes."""
    from pptx import Presentation

    opened = Presentation(BytesIO(_as_presentation(as_transitional(path.read_bytes()))))
    shared = _Presentation(authors=_read_authors(opened.part))
    title = ""
    pages: list[str] = []
    only_pictures = 0
    for number, slide in enumerate(opened.slides, 1):
        heading = " ".join(_placeholder_texts(slide, _TITLES))
        title = title or heading
        blocks = list(_slide_blocks(slide, shared))
        body = join_blocks(blocks)
        has_picture = slide.element.find(".//{*}pic") is not None
        has_text = heading or any(map(is_text, blocks))
        if has_picture and not has_text:
            only_pictures += 1
        heading = heading or f"Slide {number}"
        pages.append(join_blocks([f"# {heading}", body]))
    text, page_starts = join_pages(pages)
    left_out = list(name_lost(shared.lost))
    if only_pictures:
        left_out.append(f"{count(only_pictures, 'slide')} with nothing but pictures")
    return Content(
        title=title,
        text=text,
        page_starts=page_starts,
        left_out=tuple(left_out),
    )


def _as_presentation(data: bytes) -> bytes:
    """Return a template or a show as a presentation, which is all that python-pptx opens."""
    with ZipFile(BytesIO(data)) as archive:
        types = archive.read(_TYPES)
    if not _OTHER_KINDS.search(types):
        return data
    return with_parts(data, {_TYPES: _OTHER_KINDS.sub(rb"\1presentation\2", types)})


def _slide_blocks(slide: Any, shared: _Presentation) -> Iterator[str]:
    """Yield the texts of a slide below its title; some may be empty."""
    inherited = shared.places_of(slide.slide_layout)
    yield from _shape_texts(slide.shapes.element, slide.part, inherited, shared.lost)
    for footer in _placeholder_texts(slide, _FOOTERS):
        if footer not in shared.footers:
            shared.footers.add(footer)
            yield f"Footer: {footer}"
    yield from _comments(slide.part, shared.authors)
    if slide.has_notes_slide:
        notes = "\n".join(_placeholder_texts(slide.notes_slide, ("body",)))
        if notes:
            yield f"Notes: {notes}"


def _placeholder_texts(slide: Any, placeholders: tuple[str, ...]) -> Iterator[str]:
    for shape in slide.element.iter("{*}sp"):
        kind = _placeholder(shape)
        if kind not in placeholders:
            continue
        has_field = shape.find(".//{*}fld") is not None
        is_counted = has_field and kind in _FOOTERS  # such as today's date
        if not is_counted:
            yield from paragraphs(shape)


def _placeholder(shape: Any) -> str:
    """Return which part of the slide's layout a shape fills, such as `title`; an empty string for a free shape."""
    return _placeholder_attribute(shape, "type", "body")


def _placeholder_number(shape: Any) -> str:
    """Return the number that connects a placeholder with the one of the layout; an empty string if it has none."""
    return _placeholder_attribute(shape, "idx", "")


def _placeholder_attribute(shape: Any, name: str, default: str) -> str:
    placeholder = shape.find(_PLACEHOLDER)
    if placeholder is None:
        return ""
    value: str = placeholder.get(name, default)
    return value


# --- shapes ---


def _shape_texts(
    shapes: Any,
    part: Any,
    inherited: _Places,
    lost: Counter[str],
) -> Iterator[str]:
    """Yield the text of the shapes on a slide or in a group, as a person reads them; some may be empty."""
    for shape in _sort(list(shapes.iterchildren(tag=etree.Element)), inherited):
        match local_name(shape):
            case "sp" | "cxnSp":
                yield _text_of_shape(shape)
            case "grpSp" | "Choice" | "Fallback":
                yield from _shape_texts(shape, part, inherited, lost)
            case "AlternateContent":
                yield from _first_alternative(shape, part, inherited, lost)
            case "graphicFrame":
                yield from _frame_texts(shape, part, lost)
            case "pic":
                properties = shape.find(".//{*}cNvPr")
                yield "" if properties is None else describe(properties.get("descr", ""))


def _first_alternative(
    block: Any,
    part: Any,
    inherited: _Places,
    lost: Counter[str],
) -> Iterator[str]:
    """Yield the texts of the first alternative that has any: programs differ in what they can show."""
    for alternative in block.iterchildren(tag=etree.Element):
        text = join_blocks(_shape_texts(alternative, part, inherited, lost))
        if text:
            yield text
            return


def _sort(shapes: Sequence[Any], inherited: _Places) -> list[Any]:
    """Return shapes in the order in which a person reads them; as they are if the place of one is unknown."""
    places: dict[Any, Place] = {}
    for shape in shapes:
        if local_name(shape) in _NO_SHAPES:
            continue
        place = _place(shape) or _inherited_place(shape, inherited)
        if place is None:
            return list(shapes)
        places[shape] = place
    return in_reading_order(places)


def _inherited_place(shape: Any, inherited: _Places) -> Place | None:
    kind = _placeholder(shape)
    if not kind:
        return None
    return inherited.get(_placeholder_number(shape)) or inherited.get(kind)


def _place(shape: Any) -> Place | None:
    """Return the place that a shape itself gives."""
    offset = shape.find(".//{*}xfrm/{*}off")
    size = shape.find(".//{*}xfrm/{*}ext")
    if offset is None or size is None:
        return None
    try:
        return Place(int(offset.get("x")), int(offset.get("y")), int(size.get("cy")))
    except (TypeError, ValueError):
        return None


def _text_of_shape(shape: Any) -> str:
    """Return a shape's text, as a list if the layout shows one there."""
    placeholder = _placeholder(shape)
    if placeholder in _LEFT_OUT:
        return ""
    texts = list(paragraphs(shape))
    if placeholder == "body" and len(texts) > 1:
        return bullets(texts)
    return join_blocks(map(escape_structure, texts))


def _frame_texts(frame: Any, part: Any, lost: Counter[str]) -> Iterator[str]:
    """Yield the text of a frame's tables, charts and diagrams."""
    for table in frame.iter("{*}tbl"):
        rows = _table_rows(table)
        yield "\n".join(table_lines(rows, sheet=_has_header(table)))
    for reference in frame.iter("{*}chart", "{*}relIds"):
        root = _open_drawing(reference, part)
        if root is None:
            lost[drawing_noun(reference)] += 1
        else:
            yield from drawing_texts(root)
    if frame.find(".//{*}oleObj") is not None:
        lost["embedded document"] += 1


def _has_header(table: Any) -> bool:
    """Return whether the first row looks like a header, which most tables have by default."""
    properties = table.find("{*}tblPr")
    if properties is None:
        return False
    return properties.get("firstRow") in _TRUE


def _table_rows(table: Any) -> Iterator[list[str]]:
    """Yield the cells of each row; a cell that spans several rows has its text in each of them."""
    above: list[str] = []
    for row in table.iter("{*}tr"):
        cells: list[str] = []
        for column, cell in enumerate(row.iter("{*}tc")):
            goes_on = cell.get("vMerge") in _TRUE
            if goes_on and column < len(above):
                cells.append(above[column])
            else:
                cells.append(text_on_one_line(cell))
        yield cells
        above = cells


def _open_drawing(reference: Any, part: Any) -> Any:
    """Return the XML of a chart or a diagram, which is in another part of the file; None if it is missing."""
    try:
        data = part.related_part(drawing_reference(reference)).blob
    except KeyError:
        return None
    return parse_xml(data)


# --- comments ---


def _related(part: Any, ends: tuple[str, ...]) -> Iterator[Any]:
    """Yield the XML of the parts that a part refers to, of some kinds."""
    for relation in part.rels.values():
        if relation.is_external:
            continue
        if relation.reltype.endswith(ends):
            yield parse_xml(relation.target_part.blob)


def _read_authors(part: Any) -> dict[str, str]:
    authors: dict[str, str] = {}
    for root in _related(part, ("/commentAuthors", "/authors")):
        for author in root:
            authors[author.get("id", "")] = author.get("name", "")
    return authors


def _comments(part: Any, authors: dict[str, str]) -> Iterator[str]:
    """Yield the comments on a slide, and the replies to them."""
    for root in _related(part, ("/comments",)):
        for comment in root.iter("{*}cm", "{*}reply"):
            author = authors.get(comment.get("authorId", ""), "") or "an unknown author"
            yield f"Comment by {author}: {_comment_text(comment)}"


def _comment_text(comment: Any) -> str:
    body = comment.find("{*}txBody")
    if body is not None:
        return text_on_one_line(body)
    return collapse_whitespace(comment.findtext("{*}text", ""))
