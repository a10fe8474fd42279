"""Text of Excel workbooks (xlsx).

Read with lxml, row by row: openpyxl fails on styles that it does not know, and calamine gives no number formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from lxml import etree

from arag.ingest.formats.content import FormatError, folded, whole_number
from arag.ingest.formats.package import Package
from arag.ingest.formats.tables import sheet_lines

_COLUMNS = 16_384
_REFERENCE = re.compile(r"([A-Z]{1,3})\d+$")
_NOT_CODE = re.compile(r'"[^"]*"|\\.|_.|\[[^\]]*\]')  # of a number format: literal text, colours, conditions
_DURATION = re.compile(r"\[(?:h+|m+|s+)\]")
_DATE_FORMATS = {*range(14, 18), 22, *range(27, 32), 36, *range(50, 59)}  # built in
_TIME_FORMATS = {18, 19, 20, 21, 32, 33, 34, 35, 45, 47}
_DURATION_FORMATS = {46}
_PERCENT_FORMATS = {9, 10}
_MAX_DATE = 2_958_466  # the day after 9999-12-31


def read_xlsx(package: Package) -> Iterator[str]:
    """Yield the text of a workbook, sheet by sheet; see `sheet_lines` for its rows.

    A sheet begins with its name as a heading. Values are those that Excel saved last; dates are written as
    2024-03-31, durations as 37:30 (hours and minutes), percentages as 15.3%. Empty cells and errors are left out.
    Macros are ignored.

    Raises:
        FormatError: It is not a workbook, or a sheet is damaged.
    """
    yield from _Workbook(package).lines()


class _Workbook:
    def __init__(self, package: Package) -> None:
        self._package = package
        main = package.main_part()
        self._root = package.xml(main)
        self._relations = package.relations(main)
        parts = {kind: part for kind, part in self._relations.values() if part in package}
        texts = package.stream(parts["sharedStrings"], "si") if "sharedStrings" in parts else ()
        self._texts = [folded(_text(item)) for item in texts]
        self._formats = list(_formats(package.xml(parts["styles"]))) if "styles" in parts else []
        properties = self._root.find("{*}workbookPr")
        from_1904 = properties is not None and properties.get("date1904") in {"1", "true"}
        self._epoch = datetime(1904, 1, 1) if from_1904 else datetime(1899, 12, 30)  # noqa: DTZ001 - local times

    def lines(self) -> Iterator[str]:
        sheets = self._root.find("{*}sheets")
        if sheets is None:
            raise FormatError("not a workbook")
        for sheet in sheets:
            relation = next((str(value) for key, value in sheet.attrib.items() if key.endswith("}id")), "")
            kind, part = self._relations.get(relation, ("", ""))
            if kind == "worksheet" and part in self._package:
                yield from self._sheet_lines(sheet.get("name", ""), part)

    def _sheet_lines(self, name: str, part: str) -> Iterator[str]:
        lines = sheet_lines(self._rows(part))
        first = next(lines, None)
        if first is not None:  # a sheet without text is left out
            yield f"# {name}\n\n{first}"
            yield from lines
            yield "\n"

    def _rows(self, part: str) -> Iterator[dict[int, str]]:
        """Yield the cells of each row by their columns, of which there may be thousands with none in between."""
        last = 0
        for row in self._package.stream(part, "row"):
            at = whole_number(row.get("r", "")) or last + 1
            if at > last + 1:
                yield {}  # rows without cells are not in the file
            last = at
            cells: dict[int, str] = {}
            column, left = -1, self._package.limits.max_characters
            for cell in row.iterchildren("{*}c"):
                column = max(_column(cell.get("r", "")), column + 1)
                cells[column] = self._value(cell)
                left -= len(cells[column])
                if left < 0:  # many cells can have the same long text
                    raise FormatError(self._package.limits.exceeded("max_characters"))
            yield cells

    def _value(self, cell: etree._Element) -> str:
        kind = cell.get("t", "n")
        if kind == "inlineStr":
            return "".join(_text(inline) for inline in cell.iterchildren("{*}is"))
        value = next(cell.iterchildren("{*}v"), None)
        text = "" if value is None else (value.text or "").strip()
        if kind == "s":
            return _at(self._texts, text)
        if kind == "b":
            return {"0": "FALSE", "1": "TRUE"}.get(text, text)
        if kind == "e":
            return ""
        return self._number(text, cell.get("s", "0")) if kind == "n" else text

    def _number(self, text: str, style: str) -> str:
        try:
            number = float(text)
        except ValueError:
            return text
        shown = _at(self._formats, style)
        if shown == "duration" and abs(number) < _MAX_DATE:
            return _duration(number)
        if shown in {"date", "time"} and 0 <= number < _MAX_DATE:
            with suppress(OverflowError):  # it can be after the year 9999 when it is rounded, or counted from 1904
                return self._moment(number, time_only=shown == "time" and number < 1)
        if shown == "percent":
            return f"{number * 100:.10g}%"
        return f"{number:.15g}"  # as many digits as Excel has

    def _moment(self, days: float, *, time_only: bool) -> str:
        # Rounded to seconds: a time is a fraction of a day, which has no exact value.
        moment = self._epoch + timedelta(days=int(days), seconds=round(days % 1 * 86_400))
        if time_only:
            return moment.strftime("%H:%M:%S").removesuffix(":00")
        return moment.isoformat(" ").removesuffix(":00").removesuffix(" 00:00")


def _at(texts: list[str], index: str) -> str:
    number = whole_number(index)
    return texts[number] if number is not None and number < len(texts) else ""


def _duration(days: float) -> str:
    minutes, seconds = divmod(round(abs(days) * 86_400), 60)
    shown = f"{minutes // 60}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")
    return f"-{shown}" if days < 0 else shown


def _column(reference: str) -> int:
    """Return the number of the column of a cell such as `AB12`, from 0; -1 where it is not given."""
    found = _REFERENCE.match(reference)
    number = 0
    for letter in found[1] if found else "":
        number = number * 26 + ord(letter) - ord("A") + 1
    return min(number, _COLUMNS) - 1


def _text(item: etree._Element) -> str:
    """Return a text, without the phonetic guides of East Asian ones."""
    return "".join(
        text.text or "" for text in item.iter("{*}t") if not str(getattr(text.getparent(), "tag", "")).endswith("}rPh")
    )


def _formats(styles: etree._Element) -> Iterator[str]:
    """Yield for each style whether it shows a number as a `date`, a `time`, a `duration`, a `percent` or else."""
    codes = {each.get("numFmtId", ""): each.get("formatCode", "") for each in styles.iter("{*}numFmt")}
    for style in styles.iterfind("{*}cellXfs/{*}xf"):
        number = style.get("numFmtId", "0")
        if number in codes:
            yield _kind(codes[number].split(";")[0].lower())
            continue
        built_in = whole_number(number)
        kinds = {
            "date": _DATE_FORMATS,
            "time": _TIME_FORMATS,
            "duration": _DURATION_FORMATS,
            "percent": _PERCENT_FORMATS,
        }
        yield next((kind for kind, numbers in kinds.items() if built_in in numbers), "")


def _kind(code: str) -> str:
    if _DURATION.search(code):
        return "duration"
    code = _NOT_CODE.sub("", code)
    if "general" in code:
        return ""
    if "%" in code:
        return "percent"
    if "y" in code or "d" in code:
        return "date"
    if "h" in code or "s" in code:
        return "time"
    return "date" if "m" in code else ""
