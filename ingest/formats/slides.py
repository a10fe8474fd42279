"""Presentations of PowerPoint, opened by python-pptx."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import ZipFile

from lxml import etree

from arag.ingest.formats.content import Content, join_blocks, join_pages, name_lost
from arag.ingest.formats.drawings import bullets, drawing_texts, paragraphs, text_on_one_line
from arag.ingest.formats.package import attribute, local_name, parse_xml
from arag.ingest.formats.reading_order import Place, in_reading_order
from arag.ingest.formats.tables import table_lines
from arag.ingest.outline import escape_structure
from arag.text.normalise import collapse_whitespace, count

_TITLES = ("title", "ctrTitle")
_FOOTERS = ("dt", "ftr")
# The title is the heading of its slide already; the others are on every slide.
_LEFT_OUT = (*_TITLES, *_FOOTERS, "sldNum")
_TYPES = "[Content_Types].xml"
_OTHER_KINDS = re.compile(rb"(presentationml\.|powerpoint\.)(?:template|slideshow)(\.main|\.macroEnabled)")
_NO_SHAPES = frozenset({"nvGrpSpPr", "grpSpPr", "extLst"})


_Places: TypeAlias = "dict[str, Place]"  # by the kind or the number of a placeholder


@dataclass
class _Presentation:
    """What the slides of a presentation share."""

    authors: dict[str, str] = field(default_factory=dict)  # of comments, by their ids
    footers: set[str] = field(default_factory=set)  # that have been read
    lost: Counter[str] = field(default_factory=Counter)
    _places: dict[str, _Places] = field(default_factory=dict)  # of the placeholders of each layout

    def places_of(self, layout: Any) -> _Places:
        """Return where a layout puts its placeholders."""
        name = str(layout.part.partname)
        if name not in self._places:
            places: _Places = {}
            for shapes in (layout.slide_master.element, layout.element):  # the layout's own come last
                for shape in shapes.iter("{*}sp"):
                    place = _place(shape)
                    if _placeholder(shape) and place is not None:
                        places[_placeholder(shape)] = place
                        if _placeholder_number(shape):
                            places[_placeholder_number(shape)] = place
            self._places[name] = places
        return self._places[name]


def read_slides(path: Path) -> Content:
    """Read a presentation. A slide is a page: it begins with its title or its number, and ends with the notes."""
    from pptx import Presentation

    title = ""
    pages: list[str] = []
    pictures = 0
    opened = Presentation(BytesIO(_as_presentation(path.read_bytes())))
    shared = _Presentation(authors=_read_authors(opened.part))
    for number, slide in enumerate(opened.slides, 1):
        heading = " ".join(_placeholder_texts(slide, _TITLES))
        title = title or heading
        blocks = [block for block in _slide_blocks(slide, shared) if block]
        if not heading and not blocks and slide.element.find(".//{*}pic") is not None:
            pictures += 1
        pages.append(join_blocks([f"# {heading or f'Slide {number}'}", *blocks]))
    text, page_starts = join_pages(pages)
    left_out = list(name_lost(shared.lost))
    if pictures:
        left_out.append(f"{count(pictures, 'slide')} with nothing but pictures")
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
        copy = BytesIO()
        with ZipFile(copy, "w") as changed:
            for name in archive.namelist():
                part = archive.read(name)
                changed.writestr(name, _OTHER_KINDS.sub(rb"\1presentation\2", part) if name == _TYPES else part)
    return copy.getvalue()


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
        yield f"Notes: {notes}" if notes else ""


def _placeholder_texts(slide: Any, placeholders: tuple[str, ...]) -> Iterator[str]:
    for shape in slide.element.iter("{*}sp"):
        is_counted = shape.find(".//{*}fld") is not None and _placeholder(shape) in _FOOTERS  # such as today's date
        if _placeholder(shape) in placeholders and not is_counted:
            yield from paragraphs(shape)


def _placeholder(shape: Any) -> str:
    """Return which part of the slide's layout a shape fills, such as `title`; an empty string for a free shape."""
    placeholder = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
    if placeholder is None:
        return ""
    kind: str = placeholder.get("type", "body")
    return kind


def _placeholder_number(shape: Any) -> str:
    """Return the number that connects a placeholder with the one of the layout; an empty string if it has none."""
    placeholder = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
    number: str = "" if placeholder is None else placeholder.get("idx", "")
    return number


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


def _first_alternative(
    block: Any,
    part: Any,
    inherited: _Places,
    lost: Counter[str],
) -> Iterator[str]:
    """Yield the texts of the first alternative that has any: programs differ in what they can show."""
    for alternative in block.iterchildren(tag=etree.Element):
        texts = [text for text in _shape_texts(alternative, part, inherited, lost) if text]
        if texts:
            yield from texts
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
        properties = table.find("{*}tblPr")
        has_header = properties is not None and properties.get("firstRow") in {"1", "true"}
        yield "\n".join(table_lines(_table_rows(table), sheet=has_header))
    for reference in frame.iter("{*}chart", "{*}relIds"):
        root = _open_drawing(reference, part)
        if root is None:
            lost["chart" if local_name(reference) == "chart" else "diagram"] += 1
        else:
            yield from drawing_texts(root)
    if frame.find(".//{*}oleObj") is not None:
        lost["embedded document"] += 1


def _table_rows(table: Any) -> Iterator[list[str]]:
    """Yield the cells of each row; a cell that spans several rows has its text in each of them."""
    above: dict[int, str] = {}
    for row in table.iter("{*}tr"):
        cells: list[str] = []
        for column, cell in enumerate(row.iter("{*}tc")):
            text = text_on_one_line(cell)
            if cell.get("vMerge") in {"1", "true"}:
                text = above.get(column, "")
            above[column] = text
            cells.append(text)
        yield cells


def _open_drawing(reference: Any, part: Any) -> Any:
    """Return the XML of a chart or a diagram, which is in another part of the file; None if it is missing."""
    relation_id = attribute(reference, "id") or attribute(reference, "dm")
    try:
        data = part.related_part(relation_id).blob
    except KeyError:
        return None
    return parse_xml(data)


# --- comments ---


def _related(part: Any, ends: Iterable[str]) -> Iterator[Any]:
    """Yield the XML of the parts that a part refers to, of some kinds."""
    for relation in part.rels.values():
        if not relation.is_external and relation.reltype.endswith(tuple(ends)):
            yield parse_xml(relation.target_part.blob)


def _read_authors(part: Any) -> dict[str, str]:
    authors: dict[str, str] = {}
    for root in _related(part, ["/commentAuthors", "/authors"]):
        for author in root:
            authors[author.get("id", "")] = author.get("name", "")
    return authors


def _comments(part: Any, authors: dict[str, str]) -> Iterator[str]:
    """Yield the comments on a slide, and the replies to them."""
    for root in _related(part, ["/comments"]):
        for comment in root.iter("{*}cm", "{*}reply"):
            own = comment.find("{*}txBody")
            text = comment.findtext("{*}text", "") if own is None else text_on_one_line(own)
            author = authors.get(comment.get("authorId", ""), "") or "an unknown author"
            yield f"Comment by {author}: {collapse_whitespace(text)}"
