"""Finds the tables in a document's text, row by row.

Files are read into a line of names, `Name | Year`, and lines such as `Name: Ada | Year: 1843`, in which empty cells are
left out; or into lines such as `Ada | 1843` if the columns have no names. Markdown keeps its own tables. A table may go
on in the next chunk.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from arag.retrieval.corpus.values import read_date, read_number
from arag.retrieval.types import Chunk
from arag.text.normalise import CELL_BOUNDARY, collapse_whitespace, split_cells
from arag.text.units import is_unit_note

# A first column without a name, beside columns that have names, is `label`; others are `c2`, `c3`...
LABEL = "label"
NAMELESS = re.compile(rf"{LABEL}|c\d+")  # the names of such columns

_MIN_ROWS = 2  # of one document's rows without names, two of which follow each other: else a bar may be anything
_FENCE = re.compile(r"\s*(?:```|~~~)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_RULE = re.compile(r"(?=.*\|)\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?")
_BORDER = re.compile(r"\+[-=+]+\+")  # between the rows of a table that is drawn
_BAR = re.compile(r"(?<!\\)\|")
_BAR_OF_EMPTY_CELL = re.compile(r"\|(?= \|)")  # in a header, which has no two spaces
_OUTER_BAR = re.compile(r"^\||(?<!\\)\|$")
_LEADERS = re.compile(r"(?:\. ?){4,}|(?:… ?){2,}")  # from a title to its page
_EMPHASIS = "*`"


@dataclass(slots=True)
class Row:
    """A row of a table.

    Attributes:
        chunk_id: The chunk that it begins in.
        heading: The headings above it.
        cells: The text of each cell that has some, by its column's name.
    """

    chunk_id: str
    heading: str
    cells: dict[str, str]


@dataclass(slots=True)
class SourceTable:
    """The rows of one document that have the same columns.

    Attributes:
        columns: The names of its columns, in order, as keys; `c1`, `c2` and so on if they have none.
        rows: Its rows.
        is_named: Whether its columns have names.
    """

    columns: dict[str, None]
    rows: list[Row] = field(default_factory=list)
    is_named: bool = True

    def add(self, line: _Line, cells: dict[str, str]) -> None:
        """Add a row, and new columns for cells that are in none."""
        with_text = {name: cell for name, cell in cells.items() if cell}
        self.rows.append(Row(line.chunk_id, line.heading, with_text))
        self.columns |= dict.fromkeys(with_text)


@dataclass(slots=True)
class _Line:
    """A line of a document's text."""

    text: str
    chunk_id: str
    heading: str
    header: str  # the line of names above a row that does not repeat them
    is_block: bool = False  # whether its sentences are in no other line, as those of a row, and may be of one


def find_tables(chunks: Sequence[Chunk]) -> list[SourceTable]:
    """Return the tables of a document.

    Args:
        chunks: Its chunks, in order.
    """
    lines = _list_lines(chunks)
    for line in lines:
        line.text = line.text.strip()
    finder = _Finder()
    finder.read(lines)
    return finder.finish()


def _list_lines(chunks: Iterable[Chunk]) -> list[_Line]:
    """Return the lines of a document. A line that a chunk cuts is one line, of the chunk that it begins in."""
    lines: list[_Line] = []
    is_cut = False
    for chunk in chunks:
        goes_on = chunk.id == f"{chunk.document_id}:{chunk.ordinal}"  # ready-made chunks are whole by themselves
        starts = [sentence.start for sentence in chunk.sentences]
        end = 0
        for text in chunk.text.splitlines(keepends=True):
            end += len(text)
            if is_cut and goes_on:
                lines[-1].text += text
            else:
                lines.append(_make_line(text, chunk, starts, end))
            is_cut = text.splitlines() == [text]  # it has no line break
    return lines


def _make_line(text: str, chunk: Chunk, starts: Sequence[int], end: int) -> _Line:
    """Return a line that ends at a place of a chunk, with what its last sentence says about it."""
    after_last = bisect_left(starts, end)
    if after_last == 0:
        return _Line(text, chunk.id, heading="", header="")
    first_character = end - len(text.lstrip())
    begins_sentence = first_character in starts[bisect_left(starts, first_character) : after_last]
    sentence = chunk.sentences[after_last - 1]
    return _Line(
        text,
        chunk.id,
        sentence.heading,
        sentence.header,
        is_block=begins_sentence and sentence.end <= end and not sentence.bars_are_text,
    )


# --- rows that repeat the names of their columns ---


class _Header:
    """The line of names above the rows of a table, which repeat the names.

    Attributes:
        columns: The names of the columns, none of them empty or twice.
    """

    def __init__(self, cells: Sequence[str]) -> None:
        self._names = [cell.rstrip(":：") for cell in cells]
        self.columns = _distinct(self._names)
        if is_unit_note(self._names[0]):
            self._names[0] = ""  # the labels below it do not repeat it
        longest_first = sorted([name for name in self._names if name], key=len, reverse=True)
        names = "|".join(map(re.escape, longest_first))
        self._name = re.compile(rf" \| ({names}): ")

    def split(self, text: str) -> dict[str, str]:
        """Return the cells of a row by their columns, or none if no column's name is in it.

        Any text may be in a cell, also one with bars. Empty cells are left out, but cells are in order.
        """
        line = f"{CELL_BOUNDARY}{text}"
        cells: dict[str, str] = {}
        place = -1  # of the column whose cell ends next
        start = len(CELL_BOUNDARY)
        for match in self._name.finditer(line):
            following = self._find(match[1], place + 1)
            if following is None:  # the name is a part of the text
                continue
            self._add(cells, line[start : match.start()], place, following)
            place = following
            start = match.end()
        if place < 0:
            return {}
        self._add(cells, line[start:], place, len(self._names))
        return cells

    def _find(self, name: str, first: int) -> int | None:
        """Return the place of the next column with a name."""
        try:
            return self._names.index(name, first)
        except ValueError:
            return None

    def _add(self, cells: dict[str, str], text: str, place: int, following: int) -> None:
        """Add the cell of a column, and cells of columns without names that are between it and the next named one."""
        if place >= 0 and CELL_BOUNDARY not in text:  # the usual cell: skip the work below
            cells[self.columns[place]] = text
            return
        columns = [self.columns[other] for other in range(place + 1, following) if not self._names[other]]
        values = split_cells(text)
        may_be_longer = following == len(self._names) and _is_complete(values[0])
        if place >= 0 and not columns and not may_be_longer:
            values = [text]  # with bars in it
        if place >= 0:
            columns.insert(0, self.columns[place])
        _name_cells(cells, values, columns, len(self.columns))


def _is_complete(cell: str) -> bool:
    """Return whether a cell is a number or a date, so that nothing can follow in it."""
    return bool(read_number(cell) or read_date(cell))


def _find_header(above: Sequence[str], names: Sequence[str], following: str) -> tuple[Sequence[str], bool]:
    """Return the names of columns that a line gives, and whether the line above gives them together with it.

    There are none if the row that follows does not repeat them.
    """
    divided = _divide(above, names)
    named = _count_names(names, following)
    if _count_names(divided, following) > named:
        return divided, True
    if named:
        return names, False
    return [], False


def _divide(above: Sequence[str], below: Sequence[str]) -> list[str]:
    """Return the names that two lines give together, such as `Dues 1920`."""
    names: list[str] = []
    group = ""
    for first, second in zip_longest(above, below, fillvalue=""):
        group = first or group
        if second in {"", first}:
            names.append(first)
        else:
            names.append(f"{group} {second}".strip())
    return names


def _count_names(names: Sequence[str], row: str) -> int:
    """Return how many cells of a row begin with one of some names."""
    line = f"{CELL_BOUNDARY}{row}".replace(f":{CELL_BOUNDARY}", CELL_BOUNDARY)  # `Notes:` alone is a cell
    found = 0
    for name in names:
        if name and f"{CELL_BOUNDARY}{name.rstrip(':：')}: " in line:
            found += 1
    return found


# --- all tables of a document ---


class _Finder:
    """Collects the tables of a document, line by line."""

    def __init__(self) -> None:
        self._tables: dict[tuple[str, ...], SourceTable] = {}  # by their columns
        self._unnamed: dict[int, SourceTable] = {}  # by the number of cells
        self._header: _Header | None = None  # whose rows may follow
        self._headers: dict[str, _Header] = {}  # the last one with each name
        self._markdown: SourceTable | None = None
        self._above: list[str] = []  # the cells of the row just above, which repeats no names
        self._table_above = SourceTable({})  # that has this row
        self._beside: set[int] = set()  # the numbers of cells of rows that follow another one
        self._is_fenced = False

    def finish(self) -> list[SourceTable]:
        """Return the tables."""
        found = [table for table in self._tables.values() if table.rows]
        for number, table in self._unnamed.items():
            if number in self._beside and len(table.rows) >= _MIN_ROWS:
                found.append(table)
        return found

    def read(self, lines: Sequence[_Line]) -> None:
        """Read a document's lines."""
        for line, following in zip(lines, _following(lines), strict=True):
            if _FENCE.match(line.text):
                self._is_fenced = not self._is_fenced
            elif not self._is_fenced:
                self._read_line(line, following)

    def _read_line(self, line: _Line, following: _Line) -> None:
        has_bars = CELL_BOUNDARY in line.text or line.text.startswith("|")
        is_row = has_bars and line.is_block
        if not is_row and _BORDER.fullmatch(line.text):
            return
        if not is_row:
            self._read_text(line)
        elif _RULE.fullmatch(line.text):
            return
        elif _RULE.fullmatch(following.text):
            self._header = None
            self._markdown = self._table(_distinct(_split_markdown(line.text)))
        elif self._markdown is not None:
            cells: dict[str, str] = {}
            names = list(self._markdown.columns)
            _name_cells(cells, _split_markdown(line.text), names, len(names))
            self._markdown.add(line, cells)
        else:
            self._read_row(line, following)

    def _read_text(self, line: _Line) -> None:
        """Read a line without bars: the only cell of a row, a heading, or a text that may be between two rows."""
        self._markdown = None
        self._above = []
        if _HEADING.match(line.text):
            self._header = None
        if self._header is not None:
            self._add_named(line, self._header)

    def _read_row(self, line: _Line, following: _Line) -> None:
        first_name, _, _ = line.text.partition(": ")
        for header in (self._header, self._headers.get(first_name)):
            if header is not None and self._add_named(line, header):
                return
        values = split_cells(line.text)
        names, is_divided = _find_header(self._above, values, following.text)
        if is_divided:
            del self._table_above.rows[-1:]
        if names:
            self._begin(_Header(names))
        elif following.header != collapse_whitespace(line.text).strip("| "):
            self._read_unnamed_row(line, values)
        else:  # a second line of names may follow, as below years
            self._above = values
            self._table_above = SourceTable({})

    def _begin(self, header: _Header) -> None:
        self._header = header
        self._headers.update(dict.fromkeys(header.columns, header))
        self._above = []

    def _add_named(self, line: _Line, header: _Header) -> bool:
        """Add a row that repeats the names of a header; return whether it is one."""
        cells = header.split(line.text)
        if not cells:
            return False
        self._table(header.columns).add(line, cells)
        self._header = header
        self._above = []
        return True

    def _read_unnamed_row(self, line: _Line, values: list[str]) -> None:
        names = _fit_names(line.header, len(values))
        if not names and (len(values) == 1 or any(map(_LEADERS.search, values))):
            self._read_text(line)  # in a frame, or of a table of contents
            return
        if names:
            table = self._table(names)
        else:
            names = [_number_name(number) for number in range(1, len(values) + 1)]
            table = self._unnamed.setdefault(len(values), SourceTable(dict.fromkeys(names), is_named=False))
        table.add(line, dict(zip(names, values, strict=True)))
        if self._above:
            self._beside |= {len(self._above), len(values)}
        self._header = None
        self._above = values
        self._table_above = table

    def _table(self, columns: list[str]) -> SourceTable:
        return self._tables.setdefault(tuple(columns), SourceTable(dict.fromkeys(columns)))


def _following(lines: Sequence[_Line]) -> list[_Line]:
    """Return the next line that is not blank, for each line."""
    following: list[_Line] = []
    last = _Line("", chunk_id="", heading="", header="")
    for line in reversed(lines):
        following.append(last)
        if line.text:
            last = line
    following.reverse()
    return following


# --- cells ---


def _split_markdown(text: str) -> list[str]:
    cells: list[str] = []
    for cell in _BAR.split(_OUTER_BAR.sub("", text)):
        plain = collapse_whitespace(cell.replace("\\|", "|"))
        cells.append(plain.strip(_EMPHASIS).strip())
    return cells


def _name_cells(cells: dict[str, str], values: Sequence[str], names: Sequence[str], columns: int) -> None:
    """Add a row's values by the names of their columns; further ones are behind all columns of the table."""
    cells.update(zip(names, values, strict=False))
    further = [value for value in values[len(names) :] if value]
    for number, value in enumerate(further, columns + 1):
        cells[_free_name(_number_name(number), cells)] = value


def _number_name(number: int) -> str:
    """Return the name of a column that has none, by its number."""
    return f"c{number}"


def _free_name(name: str, taken: Container[str]) -> str:
    """Return a name, with a number if it is taken already."""
    free = name
    number = 1
    while free.casefold() in taken:
        number += 1
        free = f"{name} {number}"
    return free


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names of columns, none of them empty, or twice if case is ignored."""
    distinct: list[str] = []
    taken: set[str] = set()
    for number, name in enumerate(names, 1):
        missing = LABEL if number == 1 else _number_name(number)
        free = _free_name(name or missing, taken)
        taken.add(free.casefold())
        distinct.append(free)
    return distinct


def _fit_names(header: str, size: int) -> list[str]:
    """Return the names in a table's header, if they fit to a row of this size; the first column may have none."""
    if not header:
        return []
    names = split_cells(_BAR_OF_EMPTY_CELL.sub("| ", header))
    if len(names) == size - 1:
        names = [LABEL, *names]
    if len(names) != size:
        return []
    return _distinct(names)
