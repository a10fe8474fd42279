"""Text of PowerPoint presentations (pptx).

Read with lxml: python-pptx brings two more packages, loads all pictures and leaves out diagrams.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, chain

from lxml import etree

from arag.ingest.formats.blocks import Blocks
from arag.ingest.formats.content import Content, FormatError, whole_number
from arag.ingest.formats.package import Package

_TITLES = frozenset({"title", "ctrTitle"})
_FURNITURE = frozenset({"dt", "ftr", "sldNum", "hdr", "sldImg"})  # on every slide
_GAP = "\n\n"


def read_pptx(package: Package) -> Content:
    """Read a presentation, slide by slide; a slide counts as a page.

    A slide begins with its title as a heading, or with its number. Tables, charts, diagrams and the speaker's notes
    are part of it.

    Raises:
        FormatError: It is not a presentation.
    """
    main = package.main_part()
    relations = package.relations(main)
    listed = package.xml(main).find("{*}sldIdLst")
    if listed is None:
        raise FormatError("not a presentation, or one without slides")
    slides, title = [], ""
    for number, entry in enumerate(listed, 1):
        part = relations.get(_relation(entry), ("", ""))[1]
        slide = _Slide(package, part, number) if part in package else None
        slides.append(slide.blocks.text if slide else "")
        title = title or (slide.title if slide else "")
    starts = accumulate((len(slide) + len(_GAP) for slide in slides[:-1]), initial=0)
    return Content(title, _GAP.join(slides), page_starts=tuple(starts) if slides else ())


class _Slide:
    """One slide.

    Attributes:
        title: Its title, or an empty string.
        blocks: Its text.
    """

    def __init__(self, package: Package, part: str, number: int) -> None:
        self.blocks = Blocks(package.limits)
        self._package = package
        self._relations = package.relations(part)
        root = package.xml(part)
        titles = [shape for shape in root.iter("{*}sp") if _placeholder(shape) in _TITLES]
        self.title = " ".join(_line(paragraph) for shape in titles for paragraph in _paragraphs(shape)).strip()
        self.blocks.heading(self.title or f"Slide {number}", 1)
        for tree in root.iterfind("{*}cSld/{*}spTree"):
            self._add(tree)
        for kind, notes in self._relations.values():
            if kind == "notesSlide" and notes in package:
                self._add_notes(package.xml(notes))

    def _add(self, parent: etree._Element) -> None:
        """Add the shapes in a slide or a group."""
        for element in parent:
            tag = etree.QName(element).localname if isinstance(element.tag, str) else ""
            if tag == "sp" and _placeholder(element) not in _TITLES | _FURNITURE:
                add = self.blocks.item if _is_list(element) else self.blocks.paragraph
                for paragraph in _paragraphs(element):
                    add(_line(paragraph))
            elif tag == "graphicFrame":
                self._add_graphic(element)
            elif tag in {"grpSp", "AlternateContent", "Choice"}:
                self._add(element)

    def _add_graphic(self, frame: etree._Element) -> None:
        for table in frame.iter("{*}tbl"):
            rows = (
                [" ".join(map(_line, _paragraphs(cell))) for cell in row.iter("{*}tc")] for row in table.iter("{*}tr")
            )
            self.blocks.table(rows)
        for chart in frame.iter("{*}chart"):
            _, part = self._relations.get(_relation(chart), ("", ""))
            if part in self._package:
                self._add_chart(self._package.xml(part))
        for diagram in frame.iter("{*}relIds"):
            _, part = self._relations.get(_relation(diagram, "dm"), ("", ""))
            if part in self._package:
                for point in self._package.xml(part).iter("{*}pt"):
                    self.blocks.item(" ".join(map(_line, _paragraphs(point))))

    def _add_chart(self, chart: etree._Element) -> None:
        """Add a chart as its title and a table with a column for each series."""
        for title in chart.iterfind("{*}chart/{*}title"):
            self.blocks.paragraph(" ".join(map(_line, _paragraphs(title))))
        rows: dict[tuple[int, str], dict[int, str]] = {}  # two can have the same label
        names = []
        for column, series in enumerate(chart.iter("{*}ser")):
            names.append(next(series.iterfind("{*}tx//{*}v"), etree.Element("v")).text or f"Series {column + 1}")
            labels = _points(series, "cat", "xVal")
            for index, value in _points(series, "val", "yVal").items():
                rows.setdefault((index, labels.get(index, str(index + 1))), {})[column] = value
        if rows:
            table = (
                [label, *(values.get(column, "") for column in range(len(names)))]
                for (_, label), values in rows.items()
            )
            self.blocks.table(chain([["Category", *names]], table), header=True)

    def _add_notes(self, notes: etree._Element) -> None:
        for shape in notes.iter("{*}sp"):
            if _placeholder(shape) == "body":
                text = "\n".join(map(_line, _paragraphs(shape))).strip()
                self.blocks.paragraph(f"Notes: {text}" if text else "")


def _relation(element: etree._Element, name: str = "id") -> str:
    """Return the id of a relation, which is in a namespace; a slide has another id in none."""
    return next((str(value) for key, value in element.attrib.items() if key.endswith(f"}}{name}")), "")


def _placeholder(shape: etree._Element) -> str:
    """Return what a shape holds on the slide's layout (`title`, `body`, ...), or an empty string for a free shape."""
    found = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
    return "" if found is None else found.get("type", "body")


def _is_list(shape: etree._Element) -> bool:
    return _placeholder(shape) == "body" and sum(bool(_line(paragraph).strip()) for paragraph in _paragraphs(shape)) > 1


def _paragraphs(element: etree._Element) -> Iterator[etree._Element]:
    """Yield the paragraphs of the drawing language that are inside an element."""
    return (paragraph for paragraph in element.iter("{*}p") if paragraph.tag.endswith("/main}p"))


def _line(paragraph: etree._Element) -> str:
    texts = paragraph.iter("{*}t", "{*}br", "{*}tab")
    return "".join(text.text or "" if text.tag.endswith("}t") else " " for text in texts)


def _points(series: etree._Element, *tags: str) -> dict[int, str]:
    """Return the values of a series, or the labels, by their index."""
    found: dict[int, str] = {}
    for tag in tags:
        for point in series.iterfind(f"{{*}}{tag}//{{*}}pt"):
            index, value = whole_number(point.get("idx", "")), point.find("{*}v")
            if index is not None and value is not None:
                found.setdefault(index, _number(value.text or ""))
    return found


def _number(text: str) -> str:
    """Return a number with as many digits as Excel has: 8.2 for 8.1999999999999993."""
    try:
        return f"{float(text):.15g}"
    except ValueError:
        return text
