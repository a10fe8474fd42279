"""The values of a table's cells: numbers and dates, as the other cells of the column show how they are written.

`1,234` is a number of thousands, unless the column has numbers such as `1.234,5` or `0,75`. A sign of a currency, `%`
and a unit such as `kg` are left out if all numbers of a column have the same: `45%` is 45. Cells such as `007` make
their column text, since they are codes; so do versions, and designations such as `2A`. `1.234` is a number of thousands
if other columns of the table show decimal commas alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from typing import Literal, TypeAlias

from arag.retrieval.corpus.versions import are_versions

Value: TypeAlias = "int | float | str | None"
Kind: TypeAlias = Literal["number", "date", "text"]
DecimalMark: TypeAlias = Literal[".", ",", ""]  # empty: the cell does not show it
_DateOrder: TypeAlias = Literal["ymd", "dmy", "mdy"]

_DATE_ORDERS: tuple[_DateOrder, ...] = ("ymd", "dmy", "mdy")
_NUMBER_SHARE = 0.5  # of a column's cells: with fewer numbers, a search for the best text would fail
_MAX_DIGITS = 18  # longer integers do not fit into SQLite's
_CACHED_CELLS = 65_536  # each cell is read twice: to decide on its column, and to convert it

_NO_VALUE = frozenset(["-", "–", "—", "--", "n/a", "na", "#n/a", "…", "...", ""])  # in columns of numbers and dates
_CURRENCY = r"(?:[A-Z]{1,3})?[$€£¥₹₽₩₪฿₺₴]|(?:USD|EUR|GBP|CHF|JPY|CNY|RMB|AUD|CAD|NZD|HKD|INR|SEK|NOK|DKK|PLN|CZK)\b"
_UNIT = rf"%|‰|{_CURRENCY}|[^\W\d_]{{1,12}}\.?|°[CF]?|[a-zµ]{{1,3}}[²³]|[a-z]{{1,3}}/[a-z]{{1,3}}"
_NUMBER = re.compile(
    rf"(?P<bracket>\()?(?P<sign>[-−–+])?\s?(?P<before>{_CURRENCY})?\s?(?P<later_sign>[-−–])?"
    r"(?P<digits>(?!0[0-9])[0-9][0-9.,'’ ]*(?<=[0-9])|\.[0-9]+)(?P<exponent>[eE][-+][0-9]{1,3})?"
    rf"\s?(?(before)|(?P<after>{_UNIT})?)(?(bracket)\))"
)
_CODE = re.compile(
    r"[+(]?0[\s()/+-]*\d[\d\s()/+-]*"  # such as 007, or (030) 123 456
    r"|\+[\s(]*\d(?:[\s()/-]*\d){6,}"  # a telephone's
    rf"|\(?\d(?:[\s()/-]*\d){{{_MAX_DIGITS},}}"
)
# A whole number with a letter that is no unit, such as the class 2A; units are volts, watts, metres, thousands.
_DESIGNATION = re.compile(r"\d+(?![KLMVWdghklmstx])[A-Za-z]")
_MINUS = re.compile(r"[-−–(]")
_SPACED_GROUPS = re.compile(r"\d{1,3}(?:[ '’]\d{3})+(?:[.,]\d+)?")
_WRITTEN_NUMBERS: list[tuple[re.Pattern[str], DecimalMark]] = [  # the first that fits shows the decimal mark
    (re.compile(r"\d+"), ""),
    (re.compile(r"[1-9]\d{0,2}[.,]\d{3}"), ""),  # it may be a decimal mark, or set groups apart
    (re.compile(r"\d*\.\d+"), "."),
    (re.compile(r"\d+,\d+"), ","),
    (re.compile(r"\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?"), "."),  # groups of two are India's
    (re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?"), ","),
]

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t|tember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_MONTH_NAME = re.compile(_MONTH, re.IGNORECASE)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})"
_DATES: list[tuple[re.Pattern[str], Sequence[_DateOrder]]] = [
    (re.compile(rf"{_YEAR}(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark)(?P<day>\d{{1,2}})"), _DATE_ORDERS),
    (re.compile(rf"{_YEAR}年(?P<month>\d{{1,2}})月(?P<day>\d{{1,2}})日"), _DATE_ORDERS),
    (re.compile(rf"(?P<day>\d{{1,2}})(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark){_YEAR}"), ["dmy"]),
    (re.compile(rf"(?P<month>\d{{1,2}})(?P<mark>[-/])(?P<day>\d{{1,2}})(?P=mark){_YEAR}"), ["mdy"]),
    (re.compile(rf"{_DAY}[ -]{_MONTH},?[ -]{_YEAR}", re.IGNORECASE), _DATE_ORDERS),
    (re.compile(rf"{_MONTH} {_DAY},? {_YEAR}", re.IGNORECASE), _DATE_ORDERS),
    (re.compile(rf"{_MONTH} {_YEAR}", re.IGNORECASE), _DATE_ORDERS),
]


@dataclass(frozen=True, slots=True)
class NumberCell:
    """A cell that holds a number.

    Attributes:
        digits: Its digits with their separators; groups that are set apart by spaces are joined. They begin with `-` if
            it has a minus sign, or is in brackets as accountants write negative amounts.
        exponent: A power of ten, such as `e+20`, or an empty string.
        unit: A currency, `%` or another unit, or an empty string.
        decimal_mark: The mark that it shows to be the decimal one; `1,234` shows none.
    """

    digits: str
    exponent: str
    unit: str
    decimal_mark: DecimalMark

    def value(self, decimal_mark: DecimalMark) -> int | float | None:
        """Return the number, or None if it cannot be written with this decimal mark."""
        if self.decimal_mark not in {"", decimal_mark}:
            return None
        if decimal_mark == ",":
            digits = self.digits.replace(".", "").replace(",", ".")
        else:
            digits = self.digits.replace(",", "")
        if "." in digits or self.exponent or len(digits) > _MAX_DIGITS:
            return float(digits + self.exponent)
        return int(digits)


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """How the cells of a column are read.

    Attributes:
        kind: Its kind of values.
        unit: The unit of its numbers, or an empty string.
        decimal_marks: The decimal mark of each document that shows one, by the document's id.
        decimal_mark: The mark of all other documents.
        date_order: The order of day and month in its dates.
        unclear_points: The documents whose numbers, such as `1.234`, show no decimal mark, and have no commas.
    """

    kind: Kind
    unit: str = ""
    decimal_marks: dict[str, DecimalMark] = field(default_factory=dict)
    decimal_mark: DecimalMark = "."
    date_order: _DateOrder = "ymd"
    unclear_points: frozenset[str] = frozenset()

    def read(self, cell: str | None, document_id: str) -> Value:
        """Return the value of a cell of a document."""
        if cell is None or self.kind == "text":
            return cell
        if cell.lower() in _NO_VALUE:
            return None
        if self.kind == "date":
            return read_date(cell).get(self.date_order, cell)
        number = read_number(cell)
        if number is None:
            return cell
        decimal_mark = self.decimal_marks.get(document_id, self.decimal_mark)
        value = number.value(decimal_mark)
        return cell if value is None else value


@dataclass
class _Evidence:
    """What the cells of a column show."""

    numbers: int = 0
    texts: int = 0
    has_code: bool = False
    written: set[str] = field(default_factory=set)  # numbers
    units: set[str] = field(default_factory=set)
    date_orders: set[_DateOrder] = field(default_factory=lambda: set(_DATE_ORDERS))  # in which all cells are dates
    marks_by_document: dict[str, set[DecimalMark]] = field(default_factory=dict)
    unclear_by_document: dict[str, set[str]] = field(default_factory=dict)  # points and commas

    def add(self, document_id: str, cell: str, times: int) -> None:
        """Add equal cells of a document."""
        if self.date_orders:
            self.date_orders &= read_date(cell).keys()
        number = read_number(cell)
        if number is None:
            self.texts += times
            self.has_code = self.has_code or is_code(cell)
            return
        self.numbers += times
        self.written.add(cell)
        self.units.add(number.unit)
        if number.decimal_mark:
            self.marks_by_document.setdefault(document_id, set()).add(number.decimal_mark)
        else:
            unclear = set(".,").intersection(number.digits)
            self.unclear_by_document.setdefault(document_id, set()).update(unclear)

    def are_dates(self) -> bool:
        """Return whether all cells are dates, and in one order of day and month only."""
        has_cells = self.numbers + self.texts > 0
        return has_cells and ("ymd" in self.date_orders or len(self.date_orders) == 1)

    def are_numbers(self) -> bool:
        """Return whether the column is one of numbers: most cells are, none is a code, and all have the same unit."""
        if self.has_code or len(self.units - {""}) > 1 or _are_designations(self.written):
            return False
        return self.numbers > 0 and self.numbers >= _NUMBER_SHARE * (self.numbers + self.texts)


def _are_designations(numbers: set[str]) -> bool:
    """Return whether numbers are whole, and some have a letter: grades 3A and 2A, but not currents of 3.5A and 2A."""
    with_letter = set(filter(_DESIGNATION.fullmatch, numbers))
    return bool(with_letter) and all(map(str.isdecimal, numbers - with_letter))


def find_format(cells: Iterable[tuple[str, str | None, int]], name: str = "") -> ColumnFormat:
    """Decide how the cells of a column are read.

    Args:
        cells: Each text in each document, and how many cells have it.
        name: The column's name in the documents.
    """
    evidence = _Evidence()
    for document_id, cell, times in cells:
        if cell is not None and cell.lower() not in _NO_VALUE:
            evidence.add(document_id, cell, times)
    if evidence.are_dates():
        order = max(evidence.date_orders)  # with several, all of them read the cells in the same way
        return ColumnFormat(kind="date", date_order=order)
    if not evidence.are_numbers() or are_versions(name, evidence.written):
        return ColumnFormat(kind="text")
    decimal_marks: dict[str, DecimalMark] = {}
    for document_id, marks in evidence.marks_by_document.items():
        decimal_marks[document_id] = _choose_mark(marks)
    with_points = {document_id for document_id, unclear in evidence.unclear_by_document.items() if unclear == {"."}}
    return ColumnFormat(
        kind="number",
        unit=max(evidence.units),
        decimal_marks=decimal_marks,
        decimal_mark=_choose_mark(set(decimal_marks.values())),
        unclear_points=frozenset(with_points - decimal_marks.keys()),
    )


def share_marks(formats: Sequence[ColumnFormat]) -> list[ColumnFormat]:
    """Return the formats of a table's columns; where other columns have decimal commas, points set groups apart.

    Commas stay as they are: `3,4` may be two numbers of notes beside `1,234`.
    """
    marks_by_document: dict[str, set[DecimalMark]] = {}
    for column in formats:
        for document_id, mark in column.decimal_marks.items():
            marks_by_document.setdefault(document_id, set()).add(mark)
    shared: list[ColumnFormat] = []
    for column in formats:
        decimal_marks = dict(column.decimal_marks)
        for document_id in column.unclear_points:
            if marks_by_document.get(document_id) == {","}:
                decimal_marks[document_id] = ","
        shared.append(replace(column, decimal_marks=decimal_marks))
    return shared


def _choose_mark(marks: set[DecimalMark]) -> DecimalMark:
    return "," if marks == {","} else "."


@lru_cache(_CACHED_CELLS)
def read_number(cell: str) -> NumberCell | None:
    """Read a cell that holds a number, or return None. Codes such as `007` and telephone numbers are none."""
    match = _NUMBER.fullmatch(cell)
    if match is None or is_code(cell):
        return None
    parts = match.groupdict("")
    digits = parts["digits"]
    if _SPACED_GROUPS.fullmatch(digits):
        digits = re.sub("[ '’]", "", digits)
    mark = _shown_mark(digits)
    unit = parts["before"] or parts["after"]
    if mark is None or _MONTH_NAME.fullmatch(unit):
        return None
    signs = parts["sign"] + parts["later_sign"] + parts["bracket"]
    if _MINUS.search(signs):
        digits = f"-{digits}"
    return NumberCell(
        digits=digits,
        exponent=parts["exponent"],
        unit=unit,
        decimal_mark=mark,
    )


def is_code(cell: str) -> bool:
    """Return whether a cell has digits that do not make a number: those of a code such as `007`, or of a telephone."""
    return _CODE.fullmatch(cell) is not None


def _shown_mark(digits: str) -> DecimalMark | None:
    """Return the decimal mark that a number shows; None if it is not a number."""
    for pattern, mark in _WRITTEN_NUMBERS:
        if pattern.fullmatch(digits):
            return mark
    return None


@lru_cache(_CACHED_CELLS)
def read_date(cell: str) -> dict[_DateOrder, str]:
    """Return the dates in the form of ISO 8601 that a cell may mean, by the order of its parts."""
    dates: dict[_DateOrder, str] = {}
    for pattern, orders in _DATES:
        match = pattern.fullmatch(cell)
        if match is None:
            continue
        parts = match.groupdict()
        written = _write_date(parts["year"], parts["month"], parts.get("day"))
        if written:
            dates.update(dict.fromkeys(orders, written))
    return dates


def _write_date(year: str, month: str, day: str | None) -> str:
    if month.isalpha():
        month_number = 1 + _MONTHS.index(month[:3].lower())
    else:
        month_number = int(month)
    try:
        first = date(int(year), month_number, int(day or 1))
    except ValueError:
        return ""
    if day is None:
        return f"{first:%Y-%m}"
    return first.isoformat()
