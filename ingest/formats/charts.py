"""The values of charts of Office's files, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import TypeAlias

from lxml import etree

from arag.ingest.formats.number_formats import is_time
from arag.ingest.formats.package import to_int
from arag.text.normalise import collapse_whitespace

_VALUES = ("{*}val//{*}pt", "{*}yVal//{*}pt")
_LABELS = ("{*}cat//{*}pt", "{*}xVal//{*}pt")
_NEW_VALUES = "{*}numDim/{*}lvl/{*}pt"
_NEW_LABELS = "{*}strDim/{*}lvl/{*}pt"
_FIRST_DAY = datetime(1899, 12, 30)  # noqa: DTZ001 - files have no time zone
_Key: TypeAlias = "tuple[str, str]"  # the number and the label of a category: two categories may have one label


@dataclass(frozen=True)
class _Series:
    """The values of a series of a chart, by category."""

    name: str
    values: dict[_Key, str]


def chart_rows(root: etree._Element) -> Iterator[list[str]]:
    """Yield a chart as a table: a column for each series, and a row for each category that any of them has."""
    all_series = _read_all_series(root)
    if not all_series:
        return
    yield ["Category", *(series.name for series in all_series)]
    categories: dict[_Key, None] = {}  # in order
    for series in all_series:
        categories.update(dict.fromkeys(series.values))
    for category in categories:
        _, label = category
        yield [label, *(series.values.get(category, "") for series in all_series)]


def _read_all_series(root: etree._Element) -> list[_Series]:
    found: list[_Series] = []
    for number, element in enumerate(root.iter("{*}ser"), 1):
        series = _make_series(
            element,
            number,
            labels=_labels_by_number(element),
            values=_texts_by_number(element, _VALUES),
        )
        found.append(series)
    for number, element in enumerate(root.iter("{*}series"), 1):
        found.append(_read_new_series(element, root, number))
    return found


def _texts_by_number(series: etree._Element, paths: Sequence[str]) -> dict[str, str]:
    """Return the texts of points by their numbers."""
    points = chain.from_iterable(map(series.iterfind, paths))
    return {point.get("idx", ""): point.findtext("{*}v", "") for point in points}


def _labels_by_number(series: etree._Element) -> dict[str, str]:
    """Return the labels of points by their numbers; of categories with several levels, the outermost first.

    Only the first point of a group has the label of the group.
    """
    texts = _texts_by_number(series, _LABELS)
    levels = series.findall("{*}cat//{*}lvl")
    if levels:
        texts = _texts_by_number(levels[0], ["{*}pt"])
    for level in levels[1:]:
        groups = _texts_by_number(level, ["{*}pt"])
        group = ""
        for number in sorted(texts, key=_place):
            group = groups.get(number, group)
            texts[number] = f"{group} {texts[number]}".strip()
    code = series.findtext("{*}cat//{*}formatCode") or series.findtext("{*}xVal//{*}formatCode", "")
    if not code:  # they are texts
        return texts
    show = _shown_date if is_time(code) else _shown_value
    return {number: show(text) for number, text in texts.items()}


def _read_new_series(element: etree._Element, root: etree._Element, number: int) -> _Series:
    """Read a series of a kind of chart that Office has had since 2016, such as a waterfall."""
    labels: dict[str, str] = {}
    values: dict[str, str] = {}
    reference = element.find("{*}dataId")
    data_id = "" if reference is None else reference.get("val")
    for data in root.iterfind("{*}chartData/{*}data"):
        if data.get("id") != data_id:
            continue
        for point in data.iterfind(_NEW_LABELS):
            labels.setdefault(point.get("idx", ""), point.text or "")
        for point in data.iterfind(_NEW_VALUES):
            values[point.get("idx", "")] = point.text or ""
    return _make_series(element, number, labels, values)


def _make_series(
    element: etree._Element,
    number: int,
    labels: Mapping[str, str],
    values: Mapping[str, str],
) -> _Series:
    name = collapse_whitespace(element.findtext("{*}tx//{*}v", ""))
    shown: dict[_Key, str] = {}
    for point, value in values.items():
        label = labels.get(point, point)
        shown[point, label] = _shown_value(value)
    return _Series(name or f"Series {number}", shown)


def _shown_value(value: str) -> str:
    try:
        return f"{float(value):.15g}"  # as many digits as Excel shows
    except ValueError:  # such as #N/A
        return value


def _place(number: str) -> int:
    return to_int(number, 0)


def _shown_date(value: str) -> str:
    """Return the date of a number of days, or of days and a part of one; another text as it is."""
    try:
        date = _FIRST_DAY + timedelta(days=float(value))
    except (ValueError, OverflowError):
        return value
    return date.isoformat(" ", "minutes").removesuffix(" 00:00")
