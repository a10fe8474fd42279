"""Charts and SmartArt of Office's files, and the paragraphs of their drawings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lxml import etree

from arag.ingest.formats.charts import chart_rows
from arag.ingest.formats.package import attribute, local_name, unescape
from arag.ingest.formats.tables import table_lines
from arag.text.normalise import collapse_whitespace

_PARAGRAPH = "{http://schemas.openxmlformats.org/drawingml/2006/main}p"
_STRICT_PARAGRAPH = "{http://purl.oclc.org/ooxml/drawingml/main}p"

_AXES = ("{*}catAx", "{*}dateAx", "{*}valAx", "{*}serAx")
_APART = frozenset(["", " ", "\n", "\t", "\u00a0", "[", "("])  # digits after these, or nothing, stand apart already
_NUMBER = re.compile(r"-?\d+")
_TEN = re.compile(r"(?<!\d)10\Z")
_RAISED = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def drawing_texts(root: etree._Element, *, with_values: bool = True) -> Iterator[str]:
    """Yield the title of a chart, its axes and its values, or the points of a diagram; some may be empty.

    Args:
        root: The XML of the chart or the diagram.
        with_values: Whether to yield the values of a chart. A workbook has them in its sheets, too.
    """
    for title in root.iterfind("{*}chart/{*}title"):
        yield _titled("Chart", title)
    yield bullets(map(text_on_one_line, root.iter("{*}pt")))
    for title in _axis_titles(root):
        yield _titled("Axis", title)
    if with_values:
        yield "\n".join(table_lines(chart_rows(root), header=True))


def drawing_reference(element: etree._Element) -> str:
    """Return the id with which an element refers to its chart or its diagram."""
    return attribute(element, "id") or attribute(element, "dm")


def drawing_noun(element: etree._Element) -> str:
    """Return what an element is that refers to a drawing: a chart or a diagram."""
    if local_name(element) == "chart":
        return "chart"
    return "diagram"


def _axis_titles(root: etree._Element) -> Iterator[etree._Element]:
    for axis in root.iter(*_AXES):
        yield from axis.iterfind("{*}title")


def _titled(kind: str, title: etree._Element) -> str:
    text = text_on_one_line(title)
    if not text:
        return ""
    return f"{kind}: {text}"


def bullets(texts: Iterable[str]) -> str:
    """Return the texts that are not empty as a list."""
    return "\n".join(map("- {}".format, filter(None, texts)))


def text_on_one_line(shape: etree._Element) -> str:
    """Return the text of a shape on one line."""
    return " ".join(paragraphs(shape))


def paragraphs(shape: etree._Element) -> Iterator[str]:
    """Yield the paragraphs with text, each on a line."""
    for paragraph in shape.iter(_PARAGRAPH, _STRICT_PARAGRAPH):
        text = _paragraph_text(paragraph)
        line = collapse_whitespace(text)
        if line:
            yield line


def _paragraph_text(paragraph: etree._Element) -> str:
    text = ""
    for part in paragraph.iter("{*}t", "{*}br", "{*}tab"):
        if part.tag.endswith("}t"):
            text += raised(unescape(part.text or ""), _baseline(part), text)
        else:
            text += " "
    return text


def _baseline(text: etree._Element) -> int:
    """Return how far a text stands above the line, in thousandths of its size; below it, the number is negative."""
    properties = text.getparent().find("{*}rPr")
    if properties is None:
        return 0
    baseline: str = properties.get("baseline", "0")
    number = _NUMBER.match(baseline)
    if number is None:
        return 0
    return int(number[0])


def raised(text: str, baseline: int, before: str) -> str:
    """Return a text that may stand above or below the line so that its digits keep apart from those before it.

    `10` and a raised `6` are `10^6`, `1880` and a raised `3`, which is a note's number, are `1880³`.

    Args:
        text: The text.
        baseline: More than 0 above the line, less below it.
        before: The text before it.
    """
    last = before[-1:]
    has_digits = any(map(str.isdigit, text))
    is_apart = last in _APART
    if is_apart or not has_digits:
        return text
    if baseline == 0:
        return text
    if baseline < 0:
        is_after_digit = last.isdigit()
        return text.translate(_LOWERED) if is_after_digit else text
    if _TEN.search(before[-3:]):
        return f"^{text}"
    return text.translate(_RAISED)
