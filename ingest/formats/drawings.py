"""Charts and SmartArt of Office's files, and the paragraphs of their drawings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lxml import etree

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
    for title in root.iterfind("{*}chart/{*}title"):
        yield f"Chart: {text_on_one_line(title)}" if text_on_one_line(title) else ""
    yield bullets(map(text_on_one_line, root.iter("{*}pt")))
    yield from _axis_titles(root)
    if with_values:
        yield "\n".join(table_lines(_chart_rows(root), header=True))


def _axis_titles(root: etree._Element) -> Iterator[str]:
    for axis in root.iter(*_AXES):
        title = axis.find("{*}title")
        text = "" if title is None else text_on_one_line(title)
        if text:
            yield f"Axis: {text}"


@dataclass(frozen=True)
class _Series:
    """The values of a series of a chart, by category."""

    name: str
    values: dict[_Key, str]


def _chart_rows(root: etree._Element) -> Iterator[list[str]]:
    """Yield a chart as a table: a column for each series, and a row for each category that any of them has."""
    series = [_read_series(element, number) for number, element in enumerate(root.iter("{*}ser"), 1)]
    series += [_read_new_series(element, root, number) for number, element in enumerate(root.iter("{*}series"), 1)]
    if not series:
        return
    yield ["Category", *(each.name for each in series)]
    categories: dict[_Key, None] = {}  # in order
    for each in series:
        categories.update(dict.fromkeys(each.values))
    for category in categories:
        _, label = category
        yield [label, *(each.values.get(category, "") for each in series)]


def _read_series(element: etree._Element, number: int) -> _Series:
    labels = _texts_by_number(element, _LABELS)
    values: dict[_Key, str] = {}
    for point, value in _texts_by_number(element, _VALUES).items():
        key = (point, labels.get(point, point))
        values[key] = _shown_value(value)
    return _Series(
        name=collapse_whitespace(element.findtext("{*}tx//{*}v", "")) or f"Series {number}",
        values=values,
    )


def _texts_by_number(series: etree._Element, paths: Sequence[str]) -> Mapping[str, str]:
    """Return the texts of points by their numbers; of categories with several levels, the outermost first."""
    texts: dict[str, str] = {}
    for path in paths:
        for point in series.iterfind(path):
            number = point.get("idx", "")
            text = point.findtext("{*}v", "")
            is_above = number in texts
            texts[number] = f"{text} {texts[number]}" if is_above else text
    return texts


def _read_new_series(element: etree._Element, root: etree._Element, number: int) -> _Series:
    """Read a series of a kind of chart that Office has had since 2016, such as a waterfall."""
    reference = element.find("{*}dataId")
    data_id = "" if reference is None else reference.get("val")
    labels: dict[str, str] = {}
    values: dict[_Key, str] = {}
    for data in root.iterfind("{*}chartData/{*}data"):
        if data.get("id") != data_id:
            continue
        for point in data.iterfind("{*}strDim/{*}lvl/{*}pt"):
            labels.setdefault(point.get("idx", ""), point.text or "")
        for point in data.iterfind("{*}numDim/{*}lvl/{*}pt"):
            index = point.get("idx", "")
            values[(index, labels.get(index, index))] = _shown_value(point.text or "")
    return _Series(
        name=collapse_whitespace(element.findtext("{*}tx//{*}v", "")) or f"Series {number}",
        values=values,
    )


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
    run = text.getparent()
    properties = None if run is None else run.find("{*}rPr")
    value = "0" if properties is None else properties.get("baseline", "0")
    try:
        return int(value.rstrip("%"))
    except ValueError:
        return 0


_APART = " \n\t\u00a0[("  # digits after these stand apart already
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
    if baseline == 0 or not before or before[-1] in _APART or not any(map(str.isdigit, text)):
        return text
    if baseline < 0:
        return text.translate(_LOWERED) if before[-1].isdigit() else text
    if before.endswith("10") and not before[:-2][-1:].isdigit():
        return f"^{text}"
    return text.translate(_RAISED)
