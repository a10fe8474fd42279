"""Charts and SmartArt of Office's files, and the paragraphs of their drawings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lxml import etree

from arag.ingest.formats.package import attribute, find_child, local_name, value_of
from arag.ingest.formats.tables import table_lines
from arag.text.normalise import collapse_whitespace

_PARAGRAPH = "{http://schemas.openxmlformats.org/drawingml/2006/main}p"
_STRICT_PARAGRAPH = "{http://purl.oclc.org/ooxml/drawingml/main}p"

_VALUES = ("{*}val//{*}pt", "{*}yVal//{*}pt")
_LABELS = ("{*}cat//{*}pt", "{*}xVal//{*}pt")
_AXES = ("{*}catAx", "{*}dateAx", "{*}valAx", "{*}serAx")
_Key: TypeAlias = "tuple[str, str]"  # the number and the label of a category: two categories may have one label


def drawing_texts(root: etree._Element, *, with_values: bool = True) -> Iterator[str]:
    """Yield the title of a chart, its axes and its values, or the points of a diagram; some may be empty.

    Args:
        root: The XML of the chart or the diagram.
        with_values: Whether to yield the values of a chart. A workbook has them in its sheets, too.
    """
    yield from _named_titles("Chart", root.iterfind("{*}chart/{*}title"))
    yield bullets(map(text_on_one_line, root.iter("{*}pt")))
    yield from _named_titles("Axis", _axis_titles(root))
    if with_values:
        yield "\n".join(table_lines(_chart_rows(root), header=True))


def drawing_reference(element: etree._Element) -> str:
    """Return the id with which an element refers to its chart or its diagram."""
    return attribute(element, "id") or attribute(element, "dm")


def drawing_noun(element: etree._Element) -> str:
    """Return what an element is that refers to a drawing: a chart or a diagram."""
    return "chart" if local_name(element) == "chart" else "diagram"


def _axis_titles(root: etree._Element) -> Iterator[etree._Element]:
    for axis in root.iter(*_AXES):
        yield from axis.iterfind("{*}title")


def _named_titles(name: str, titles: Iterable[etree._Element]) -> Iterator[str]:
    for title in titles:
        text = text_on_one_line(title)
        if text:
            yield f"{name}: {text}"


@dataclass(frozen=True)
class _Series:
    """The values of a series of a chart, by category."""

    name: str
    values: dict[_Key, str]


def _chart_rows(root: etree._Element) -> Iterator[list[str]]:
    """Yield a chart as a table: a column for each series, and a row for each category that any of them has."""
    all_series: list[_Series] = []
    for number, element in enumerate(root.iter("{*}ser"), 1):
        all_series.append(_Series(_series_name(element, number), _read_values(element)))
    for number, element in enumerate(root.iter("{*}series"), 1):
        all_series.append(_Series(_series_name(element, number), _read_new_values(element, root)))
    if not all_series:
        return
    header = ["Category"]
    categories: dict[_Key, None] = {}  # in order
    for series in all_series:
        header.append(series.name)
        categories.update(dict.fromkeys(series.values))
    yield header
    for category in categories:
        _, label = category
        row = [label]
        for series in all_series:
            row.append(series.values.get(category, ""))
        yield row


def _series_name(element: etree._Element, number: int) -> str:
    name = collapse_whitespace(element.findtext("{*}tx//{*}v", ""))
    return name or f"Series {number}"


def _read_values(element: etree._Element) -> dict[_Key, str]:
    """Read the values of a series."""
    labels = _texts_by_number(element, _LABELS)
    values: dict[_Key, str] = {}
    for point, value in _texts_by_number(element, _VALUES).items():
        label = labels.get(point, point)
        values[(point, label)] = _shown_value(value)
    return values


def _texts_by_number(series: etree._Element, paths: Sequence[str]) -> Mapping[str, str]:
    """Return the texts of points by their numbers; of categories with several levels, the outermost first."""
    texts: dict[str, str] = {}
    for path in paths:
        for point in series.iterfind(path):
            number = point.get("idx", "")
            text = point.findtext("{*}v", "")
            if number in texts:
                text = f"{text} {texts[number]}"
            texts[number] = text
    return texts


def _read_new_values(element: etree._Element, root: etree._Element) -> dict[_Key, str]:
    """Read the values of a series of a kind of chart that Office has had since 2016, such as a waterfall."""
    values: dict[_Key, str] = {}
    for data in root.iterfind("{*}chartData/{*}data"):
        if data.get("id") != value_of(element, "{*}dataId"):
            continue
        labels: dict[str, str] = {}
        for point in data.iterfind("{*}strDim/{*}lvl/{*}pt"):
            labels.setdefault(point.get("idx", ""), point.text or "")
        for point in data.iterfind("{*}numDim/{*}lvl/{*}pt"):
            number = point.get("idx", "")
            label = labels.get(number, number)
            values[(number, label)] = _shown_value(point.text or "")
    return values


def _shown_value(value: str) -> str:
    try:
        return f"{float(value):.15g}"  # as many digits as Excel shows
    except ValueError:  # such as #N/A
        return value


def bullets(texts: Iterable[str]) -> str:
    """Return the texts that are not empty as a list."""
    return "\n".join(f"- {text}" for text in texts if text)


def text_on_one_line(shape: etree._Element) -> str:
    """Return the text of a shape on one line."""
    return " ".join(paragraphs(shape))


def paragraphs(shape: etree._Element) -> Iterator[str]:
    """Yield the paragraphs with text, each on a line."""
    for paragraph in shape.iter(_PARAGRAPH, _STRICT_PARAGRAPH):
        line = collapse_whitespace(_paragraph_text(paragraph))
        if line:
            yield line


def _paragraph_text(paragraph: etree._Element) -> str:
    text = ""
    for part in paragraph.iter("{*}t", "{*}br", "{*}tab"):
        if part.tag.endswith("}t"):
            text += raised(part.text or "", _baseline(part), text)
        else:
            text += " "
    return text


def _baseline(text: etree._Element) -> int:
    """Return how far a text stands above the line, in thousandths of its size; below it, the number is negative."""
    properties = find_child(text.getparent(), "{*}rPr")
    if properties is None:
        return 0
    try:
        return int(properties.get("baseline", "0").rstrip("%"))
    except ValueError:
        return 0


_APART = " \n\t\u00a0[("  # digits after these stand apart already
_TEN = re.compile(r"(?<!\d)10\Z")
_RAISED = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def raised(text: str, baseline: int, before: str) -> str:
    """Return a text that may stand above or below the line so that its digits keep apart from those before it.

    `10` and a raised `6` are `10^6`, `1880` and a raised `3`, which is a note's number, are `1880³`.

    Args:
        text: The text.
        baseline: More than 0 above the line, less below it.
        before: The text before it.
    """
    if baseline == 0 or not before:
        return text
    stands_apart = before[-1] in _APART
    has_digit = any(map(str.isdigit, text))
    if stands_apart or not has_digit:
        return text
    if baseline > 0:
        is_power = _TEN.search(before) is not None
        return f"^{text}" if is_power else text.translate(_RAISED)
    is_after_digit = before[-1].isdigit()
    return text.translate(_LOWERED) if is_after_digit else text
