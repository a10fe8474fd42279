"""The values of a table's cells: numbers and dates, as the other cells of the column show how they are written.

`1,234` is a number of thousands, unless the column has numbers such as `1.234,5` or `0,75`. A sign of a currency, `%`
and a unit such as `kg` are left out if all numbers of a column have the same: `45%` is 45. Cells such as `007` make
their column text, since they are codes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Literal, TypeAlias

Value: TypeAlias = "int | float | str | None"
Kind: TypeAlias = Literal["number", "date", "text"]
DecimalMark: TypeAlias = Literal[".", ",", ""]  # empty: the cell does not show it
_DateOrder: TypeAlias = Literal["ymd", "dmy", "mdy"]

_NUMBER_SHARE = 0.5  # of a column's cells: with fewer numbers, a search for the best text would fail
_MAX_DIGITS = 18  # longer integers do not fit into SQLite's
_PHONE_DIGITS = 7  # from so many digits on, a number with a plus sign is a telephone's
_CACHED_CELLS = 65_536  # each cell is read twice: to decide on its column, and to convert it

_NO_VALUE = frozenset(["-", "–", "—", "--", "n/a", "na", "#n/a", "…", "...", ""])  # in columns of numbers and dates
_CURRENCY = r"(?:[A-Z]{1,3})?[$€£¥₹₽₩₪฿₺₴]|(?:USD|EUR|GBP|CHF|JPY|CNY|RMB|AUD|CAD|NZD|HKD|INR|SEK|NOK|DKK|PLN|CZK)\b"
_NUMBER = re.compile(
    rf"(?P<open>\()?(?P<sign>[-−–+])?\s?(?P<before>{_CURRENCY})?\s?(?P<later_sign>[-−–])?"
    rf"(?P<digits>\d[\d.,'’ ]*(?<=\d)|\.\d+)(?P<exponent>[eE][-+]\d{{1,3}})?"
    rf"\s?(?P<after>%|‰|{_CURRENCY}|[^\W\d_]{{1,12}}\.?|°[CF]?|[a-zµ]{{1,3}}[²³]|[a-z]{{1,3}}/[a-z]{{1,3}})?(?P<close>\))?"
)
_CODE = re.compile(r"0\d")
_SPACED_GROUPS = re.compile(r"(\d{1,3}(?:[ '’]\d{3})+)([.,]\d+)?")
_COMMA_GROUPS = re.compile(r"\d{1,3}(?:,\d{2,3})*,\d{3}")
_DOT_GROUPS = re.compile(r"\d{1,3}(?:\.\d{3})+")

_MONTHS = "january february march april may june july august september october november december".split()
_SHORT_MONTHS = [month[:3] for month in _MONTHS]
_MONTH_NAMES = frozenset([*_MONTHS, *_SHORT_MONTHS, "sept"])
_MONTH_NAME = r"(?P<name>[A-Za-z]{3,9})\.?"
_DATES = [
    re.compile(r"(?P<year>\d{4})(?P<mark>[-/.])(?P<second>\d{1,2})(?P=mark)(?P<third>\d{1,2})"),
    re.compile(r"(?P<first>\d{1,2})(?P<mark>[-/.])(?P<second>\d{1,2})(?P=mark)(?P<year>\d{4})"),
    re.compile(rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[ -]{_MONTH_NAME},?[ -](?P<year>\d{{4}})"),
    re.compile(rf"{_MONTH_NAME} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{4}})"),
    re.compile(r"(?P<year>\d{4})年(?P<second>\d{1,2})月(?P<third>\d{1,2})日"),
    re.compile(rf"{_MONTH_NAME} (?P<year>\d{{4}})"),
]


@dataclass(frozen=True, slots=True)
class NumberCell:
    """A cell that holds a number.

    Attributes:
        digits: Its digits with their separators; groups that are set apart by spaces are joined.
        is_negative: Whether it has a minus sign, or is in brackets as accountants write negative amounts.
        exponent: A power of ten, such as `e+20`, or an empty string.
        unit: A currency, `%` or another unit, or an empty string.
        decimal_mark: The mark that it shows to be the decimal one; `1,234` shows none.
    """

    digits: str
    is_negative: bool
    exponent: str
    unit: str
    decimal_mark: DecimalMark

    def value(self, decimal_mark: DecimalMark) -> int | float | None:
        """Return the number, or None if it cannot be written with this decimal mark."""
        if self.decimal_mark and self.decimal_mark != decimal_mark:
            return None
        grouping_mark = "." if decimal_mark == "," else ","
        digits = self.digits.replace(grouping_mark, "").replace(decimal_mark or ".", ".")
        number: int | float
        if "." in digits or self.exponent:
            number = float(digits + self.exponent)
        else:
            number = int(digits)
        return -number if self.is_negative else number


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """How the cells of a column are read.

    Attributes:
        kind: Its kind of values.
        unit: The unit of its numbers, or an empty string.
        decimal_marks: The decimal mark of each document that shows one.
        decimal_mark: The mark of all other documents.
        date_order: The order of day and month in its dates.
    """

    kind: Kind
    unit: str = ""
    decimal_marks: tuple[tuple[str, DecimalMark], ...] = ()
    decimal_mark: DecimalMark = "."
    date_order: _DateOrder = "ymd"

    def read(self, cell: str | None, decimal_mark: DecimalMark) -> Value:
        """Return the value of a cell in a document with this decimal mark."""
        if cell is None or self.kind == "text":
            return cell
        if cell.lower() in _NO_VALUE:
            return None
        if self.kind == "date":
            return read_date(cell).get(self.date_order, cell)
        number = read_number(cell)
        if number is None:
            return cell
        value = number.value(decimal_mark)
        return cell if value is None else value

    def decimal_mark_of(self, document_id: str) -> DecimalMark:
        """Return the decimal mark of a document's numbers."""
        return dict(self.decimal_marks).get(document_id, self.decimal_mark)


def find_format(cells: Iterable[tuple[str, str | None, int]]) -> ColumnFormat:
    """Decide how the cells of a column are read.

    Args:
        cells: Each text in each document, and how many cells have it.
    """
    texts = 0
    has_code = False
    units: Counter[str] = Counter()
    date_orders: set[_DateOrder] = {"ymd", "dmy", "mdy"}
    marks_by_document: dict[str, set[DecimalMark]] = {}
    numbers = 0
    for document_id, cell, times in cells:
        if cell is None or cell.lower() in _NO_VALUE:
            continue
        number = read_number(cell)
        if number is None:
            texts += times
            has_code = has_code or is_code(cell)
        else:
            numbers += times
            units[number.unit] += times
            if number.decimal_mark:
                marks_by_document.setdefault(document_id, set()).add(number.decimal_mark)
        if date_orders:
            date_orders &= read_date(cell).keys()
    if not numbers + texts:
        return ColumnFormat(kind="text")
    if len(date_orders) == 1 or "ymd" in date_orders:
        return ColumnFormat(kind="date", date_order=min(date_orders, key=["ymd", "dmy", "mdy"].index))
    del units[""]
    if has_code or len(units) > 1 or numbers < _NUMBER_SHARE * (numbers + texts):
        return ColumnFormat(kind="text")
    decimal_marks = {document_id: _choose_mark(marks) for document_id, marks in marks_by_document.items()}
    return ColumnFormat(
        kind="number",
        unit=next(iter(units), ""),
        decimal_marks=tuple(decimal_marks.items()),
        decimal_mark=_choose_mark(set(decimal_marks.values())),
    )


def _choose_mark(marks: set[DecimalMark]) -> DecimalMark:
    return "," if marks == {","} else "."


@lru_cache(_CACHED_CELLS)
def read_number(cell: str) -> NumberCell | None:
    """Read a cell that holds a number, or return None. Codes such as `007` and telephone numbers are none."""
    match = _NUMBER.fullmatch(cell)
    if match is None or bool(match["open"]) != bool(match["close"]):
        return None
    before = match["before"] or ""
    after = match["after"] or ""
    if (before and after) or _is_month(after):
        return None
    digits = match["digits"]
    has_plus = match["sign"] == "+"
    spaced = _SPACED_GROUPS.fullmatch(digits)
    if spaced:
        digits = re.sub("[ '’]", "", spaced[1]) + (spaced[2] or "")
        mark: DecimalMark | None = ""
        if spaced[2]:
            mark = "," if spaced[2].startswith(",") else "."
    else:
        mark = _shown_mark(digits)
    length = sum(map(str.isdigit, digits))
    if mark is None or length > _MAX_DIGITS or not digits.isascii():
        return None
    if _CODE.match(digits) or (has_plus and length >= _PHONE_DIGITS and not before + after):
        return None
    return NumberCell(
        digits=digits,
        is_negative=bool(match["open"]) or match["sign"] in {"-", "−", "–"} or match["later_sign"] is not None,
        exponent=match["exponent"] or "",
        unit=before or after,
        decimal_mark=mark,
    )


def is_code(cell: str) -> bool:
    """Return whether a cell has digits that do not make a number: those of a code such as `007`, or of a telephone."""
    if cell[0] not in "0123456789+(":
        return False
    digits = re.sub(r"[\s()/+-]", "", cell)
    if not digits.isdecimal():
        return False
    return digits.startswith("0") or cell.startswith("+") or len(digits) > _MAX_DIGITS


def _shown_mark(digits: str) -> DecimalMark | None:
    """Return the decimal mark that a number shows; None if it is not a number."""
    commas = digits.count(",")
    dots = digits.count(".")
    if not commas + dots:
        return "" if digits.isdecimal() else None
    last = "," if digits.rfind(",") > digits.rfind(".") else "."
    if commas and dots:
        whole, _, _ = digits.rpartition(last)
        groups = _DOT_GROUPS if last == "," else _COMMA_GROUPS
        return last if groups.fullmatch(whole) else None  # type: ignore[return-value]
    groups = _COMMA_GROUPS if commas else _DOT_GROUPS
    if commas + dots > 1:
        if not groups.fullmatch(digits):
            return None
        return "." if commas else ","
    may_be_groups = groups.fullmatch(digits) and not digits.startswith("0")
    if may_be_groups:
        return ""
    return last  # type: ignore[return-value]


@lru_cache(_CACHED_CELLS)
def read_date(cell: str) -> dict[_DateOrder, str]:
    """Return the dates in the form of ISO 8601 that a cell may mean, by the order of its parts."""
    for pattern in _DATES:
        match = pattern.fullmatch(cell)
        if match is not None:
            return _read_parts(match.groupdict())
    return {}


def _read_parts(parts: dict[str, str]) -> dict[_DateOrder, str]:
    year = int(parts["year"])
    if "name" in parts:
        if not _is_month(parts["name"]):
            return {}
        month = 1 + _SHORT_MONTHS.index(parts["name"][:3].lower())
        if "day" not in parts:
            return dict.fromkeys(("ymd", "dmy", "mdy"), f"{year}-{month:02}")
        written = _write_date(year, month, int(parts["day"]))
        return dict.fromkeys(("ymd", "dmy", "mdy"), written) if written else {}
    second = int(parts["second"])
    if "third" in parts:
        written = _write_date(year, second, int(parts["third"]))
        return dict.fromkeys(("ymd", "dmy", "mdy"), written) if written else {}
    first = int(parts["first"])
    by_order: dict[_DateOrder, str] = {"dmy": _write_date(year, second, first)}
    if parts["mark"] != ".":
        by_order["mdy"] = _write_date(year, first, second)
    return {order: written for order, written in by_order.items() if written}


def _is_month(name: str) -> bool:
    return name.lower().rstrip(".") in _MONTH_NAMES


def _write_date(year: int, month: int, day: int) -> str:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return ""
