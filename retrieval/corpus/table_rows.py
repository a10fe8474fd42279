"""Finds the tables in a document's text, row by row.

Files are read into a line of names, `Name | Year`, and lines such as `Name: Ada | Year: 1843`, in which empty cells are
left out; or into lines such as `Ada | 1843` if the columns have no names. Markdown keeps its own tables. A table may go
on in the next chunk.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from arag.retrieval.corpus.values import read_date, read_number
from arag.retrieval.types import Chunk, Sentence
from arag.text.normalise import CELL_BOUNDARY, collapse_whitespace

LABEL = "label"  # the name of a first column that has none
UNNAMED = "unnamed"  # the name of any other column that has none

_MAX_NAME = 100  # characters of a column's name, as where rows are written
_MIN_ROWS = 2  # of one document's rows without names: a single line with a bar may be anything
_YEAR = re.compile(r"(?:19|20)\d\d")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?")
_BAR = re.compile(r"(?<!\\)\|")
_EMPHASIS = "*`"
_DIVIDED_ROWS = 2  # that name the columns together


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


class _Header:
    """The line of names above the rows of a table, which repeat the names.

    Attributes:
        columns: The names of the columns, none of them empty or twice.
    """

    def __init__(self, cells: Sequence[str]) -> None:
        self._names = [cell.rstrip(":") for cell in cells]
        self.columns = _distinct(self._names)
        longest_first = sorted({name for name in self._names if name}, key=len, reverse=True)
        names = "|".join(map(re.escape, longest_first))
        self._name = re.compile(rf" \| ({names}): ")

    def split(self, text: str) -> dict[str, str] | None:
        """Return the cells of a row by their columns, or None if no column's name is in it.

        Any text may be in a cell, also one with bars. Empty cells are left out, but cells are in order.
        """
        line = f"{CELL_BOUNDARY}{text}"
        cells: dict[str, str] = {}
        place = -1  # of the column whose cell ends next
        start = len(CELL_BOUNDARY)
        has_names = False
        for match in self._name.finditer(line):
            column = self._find(match[1], place + 1)
            if column is None:  # the name is a part of the text
                continue
            has_names = True
            self._add(cells, line[start : match.start()], place, column)
            place = column
            start = match.end()
        self._add(cells, line[start:], place, len(self._names))
        return cells if has_names else None

    def _find(self, name: str, first: int) -> int | None:
        """Return the place of the next column with a name."""
        for place in range(first, len(self._names)):
            if self._names[place] == name:
                return place
        return None

    def _add(self, cells: dict[str, str], text: str, place: int, following: int) -> None:
        """Add the cell of a column, and cells of columns without names that are between it and the next named one."""
        if not text:
            return
        if place >= 0 and CELL_BOUNDARY not in text:
            cells[self.columns[place]] = text
            return
        without_name = [other for other in range(place + 1, following) if not self._names[other]]
        parts = text.split(CELL_BOUNDARY)
        if place < 0:
            for other, part in zip(without_name, parts, strict=False):
                cells[self.columns[other]] = part
            return
        is_last = following == len(self._names)
        if len(parts) > 1 and (without_name or (is_last and _is_complete(parts[0]))):
            cells[self.columns[place]] = parts[0]
            rest = iter(parts[1:])
            for other, part in zip(without_name, rest, strict=False):
                cells[self.columns[other]] = part
            for part in rest:
                cells[_free_name(UNNAMED, cells)] = part
        else:
            cells[self.columns[place]] = text


@dataclass(slots=True)
class SourceTable:
    """A table of one document.

    Attributes:
        columns: The names of its columns, in order; `c1`, `c2` and so on if they have none.
        rows: Its rows.
        is_named: Whether its columns have names.
        header: The line of names above its rows, if there is one.
    """

    columns: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    is_named: bool = True
    header: _Header | None = None
    known: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.known = set(self.columns)

    def add(self, row: Row) -> None:
        """Add a row, and its columns if they are new."""
        self.rows.append(row)
        if self.known.issuperset(row.cells):
            return
        before = -1
        for name in row.cells:
            if name in self.columns:
                before = self.columns.index(name)
            else:  # empty in the rows so far
                before += 1
                self.columns.insert(before, name)
        self.known.update(row.cells)


@dataclass(slots=True)
class _Line:
    """A line of a document's text."""

    text: str
    chunk: Chunk
    sentence: Sentence | None  # that it begins with, or that it is in


def find_tables(chunks: Sequence[Chunk]) -> list[SourceTable]:
    """Return the tables of a document.

    Args:
        chunks: Its chunks, in order.
    """
    finder = _Finder()
    lines = list(_list_lines(chunks))
    finder.read(lines)
    return finder.finish()


def _list_lines(chunks: Iterable[Chunk]) -> Iterator[_Line]:
    """Yield the lines of a document. A line that a chunk cuts is one line, of the chunk that it begins in."""
    cut: _Line | None = None
    for chunk in chunks:
        starts = [sentence.start for sentence in chunk.sentences]
        goes_on = chunk.id == f"{chunk.document_id}:{chunk.ordinal}"  # ready-made chunks are whole by themselves
        start = 0
        for text in chunk.text.splitlines(keepends=True):
            line = _Line(text, chunk, _sentence_at(chunk, starts, start, start + len(text)))
            start += len(text)
            is_cut = text.splitlines()[0] == text  # it has no end
            if cut is not None and goes_on:
                line = _Line(cut.text + text, cut.chunk, cut.sentence)
            elif cut is not None:
                yield cut
            cut = line if is_cut else None
            if not is_cut:
                yield line
    if cut is not None:
        yield cut


def _sentence_at(chunk: Chunk, starts: Sequence[int], start: int, end: int) -> Sentence | None:
    """Return the first sentence that begins in a line, or else the one that the line is in."""
    position = bisect_left(starts, start)
    if position < len(starts) and starts[position] < end:
        return chunk.sentences[position]
    return chunk.sentences[position - 1] if position else None


class _Finder:
    """Collects the tables of a document, line by line."""

    def __init__(self) -> None:
        self._tables: list[SourceTable] = []
        self._current: SourceTable | None = None  # a table whose rows have the names of their columns
        self._is_apart = False  # whether something is between the current table's last row and this line
        self._bare: defaultdict[int, SourceTable] = defaultdict(_unnamed_table)  # by the number of cells
        self._headed: defaultdict[str, SourceTable] = defaultdict(SourceTable)  # by the line of their names
        self._markdown: SourceTable | None = None
        self._last_bare: list[list[str]] = []  # the cells of the lines without names just above this line
        self._is_fenced = False

    def finish(self) -> list[SourceTable]:
        """Return the tables."""
        headers = self._headed.keys()
        for table in self._bare.values():  # a line of names was read before the rows that it names
            table.rows = [row for row in table.rows if CELL_BOUNDARY.join(row.cells.values()) not in headers]
        bare = [table for table in self._bare.values() if len(table.rows) >= _MIN_ROWS]
        return [table for table in [*self._tables, *self._headed.values(), *bare] if table.rows]

    def read(self, lines: Sequence[_Line]) -> None:
        """Read a document's lines."""
        texts = [line.text.strip() for line in lines]
        following = ""  # the next line that is not blank
        following_texts: list[str] = []
        for text in reversed(texts):
            following_texts.append(following)
            following = text or following
        following_texts.reverse()
        for line, text, next_text in zip(lines, texts, following_texts, strict=True):
            if _FENCE.match(text):
                self._is_fenced = not self._is_fenced
            elif not self._is_fenced:
                self._read_line(line, text, next_text)

    def _read_line(self, line: _Line, text: str, following: str) -> None:
        is_row = CELL_BOUNDARY in text or text.startswith("|")
        if not is_row:
            self._markdown = None
            self._read_text(line, text)
        elif _is_rule(text):
            return
        elif _is_rule(following):
            self._current = None
            self._markdown = SourceTable(_distinct(_split_markdown(text)))
            self._tables.append(self._markdown)
        elif self._markdown is not None:
            cells = _name_cells(_split_markdown(text), self._markdown.columns)
            self._markdown.add(_make_row(line, cells))
        else:
            self._read_row(line, text, following)

    def _read_text(self, line: _Line, text: str) -> None:
        """Read a line without bars: the only cell of a row, a heading, or a text that may be between two rows."""
        self._last_bare.clear()
        self._is_apart = True
        if _HEADING.match(text):
            self._current = None
        if self._current is None or ": " not in text:
            return
        if self._current.header:
            cells = self._current.header.split(text)
        else:
            name, _, value = text.partition(": ")
            cells = {name: collapse_whitespace(value)} if name in self._current.columns else None
        if cells:
            self._current.add(_make_row(line, cells))

    def _read_row(self, line: _Line, text: str, following: str) -> None:
        current = self._current
        if current is not None and current.header:
            cells = current.header.split(text)
            if cells is not None:
                self._add(current, line, cells)
                return
        names = _split_bare(text)
        if _has_name(following, names):
            header = _Header(names)
            self._begin(SourceTable(columns=header.columns, header=header))
            return
        cells = _split_named(text, current)
        if cells is None:
            self._read_bare_row(line, text)
            return
        if len(self._last_bare) == _DIVIDED_ROWS and cells.keys() <= _names_of_two_rows(*self._last_bare):
            self._drop_last_bare()
            self._begin(SourceTable())
        elif current is None or current.header or not self._goes_on(cells, current):
            self._begin(SourceTable())
        self._add(self._tables[-1], line, cells)

    def _begin(self, table: SourceTable) -> None:
        self._tables.append(table)
        self._current = table
        self._last_bare.clear()

    def _add(self, table: SourceTable, line: _Line, cells: dict[str, str]) -> None:
        table.add(_make_row(line, cells))
        self._is_apart = False
        self._last_bare.clear()

    def _goes_on(self, cells: dict[str, str], table: SourceTable) -> bool:
        """Return whether a row belongs to a table. After a gap, a row with other columns begins another table."""
        names = cells.keys()
        known = table.known
        if self._is_apart:
            return names <= known or names >= known
        return not names.isdisjoint(known)

    def _read_bare_row(self, line: _Line, text: str) -> None:
        self._current = None
        values = _split_bare(text)
        header = line.sentence.header if line.sentence else ""
        names = _fit_names(header, len(values))
        if names:
            self._headed[header].add(_make_row(line, _name_cells(values, names)))
            self._last_bare.clear()
            return
        numbered = {f"c{number}": value for number, value in enumerate(values, 1)}
        self._bare[len(values)].add(_make_row(line, numbered))
        self._last_bare = [*self._last_bare[-1:], values]

    def _drop_last_bare(self) -> None:
        """Drop the last lines without names: they are names themselves."""
        for values in reversed(self._last_bare):
            self._bare[len(values)].rows.pop()


def _is_rule(text: str) -> bool:
    """Return whether a line is the one below the names of a table in Markdown."""
    return "-" in text and "|" in text and _RULE.fullmatch(text) is not None


def _unnamed_table() -> SourceTable:
    return SourceTable(is_named=False)


def _make_row(line: _Line, cells: dict[str, str]) -> Row:
    heading = line.sentence.heading if line.sentence else ""
    return Row(
        chunk_id=line.chunk.id,
        heading=heading,
        cells={name: value for name, value in cells.items() if value},
    )


def _has_name(text: str, names: Sequence[str]) -> bool:
    """Return whether a cell of a row begins with one of some names."""
    line = f"{CELL_BOUNDARY}{text}"
    return any(name and f"{CELL_BOUNDARY}{name.rstrip(':')}: " in line for name in names)


def _names_of_two_rows(above: Sequence[str], below: Sequence[str]) -> set[str]:
    """Return the names that two rows of names may give together, such as `Dues 1920`."""
    names = {cell.rstrip(":") for cell in [*above, *below]}
    for group in above:
        names |= {f"{group} {name}".strip().rstrip(":") for name in below}
    return names


def _is_complete(cell: str) -> bool:
    """Return whether a cell is a number or a date, so that nothing can follow in it."""
    return bool(read_number(cell) or read_date(cell))


def _split_bare(text: str) -> list[str]:
    """Return the cells of a row without names; the empty ones, too, which keep the others in their columns."""
    return [collapse_whitespace(cell) for cell in f" {text} ".split(CELL_BOUNDARY)]


def _split_named(text: str, table: SourceTable | None) -> dict[str, str] | None:
    """Return the cells of a row by the names in it, or None if it has no names."""
    known = table.known if table is not None else set()
    cells: dict[str, str] = {}
    named = 0
    last = ""
    for part in text.split(CELL_BOUNDARY):
        name, colon, value = part.partition(": ")
        name = name.strip()
        if colon and (name in known or _is_name(name)):
            named += 1
            last = _free_name(name, cells)
            cells[last] = collapse_whitespace(value)
        elif not last:
            last = _free_name(LABEL, cells)
            cells[last] = collapse_whitespace(part)
        elif _is_complete(cells[last]):
            last = _free_name(UNNAMED, cells)
            cells[last] = collapse_whitespace(part)
        else:  # a text with a bar in it
            cells[last] = f"{cells[last]}{CELL_BOUNDARY}{collapse_whitespace(part)}"
    is_named = named > 1 or not known.isdisjoint(cells.keys() - {LABEL, UNNAMED})
    return cells if is_named else None


def _is_name(text: str) -> bool:
    if not text or len(text) > _MAX_NAME:
        return False
    return _YEAR.fullmatch(text) is not None or any(map(str.isalpha, text))


def _free_name(name: str, taken: dict[str, str]) -> str:
    """Return a name, with a number if a cell of the row has the name already."""
    if name not in taken and name.casefold() not in taken:
        return name
    number = 2
    while f"{name} {number}" in taken or f"{name} {number}".casefold() in taken:
        number += 1
    return f"{name} {number}"


def _split_markdown(text: str) -> list[str]:
    inner = text.removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    cells: list[str] = []
    for cell in _BAR.split(inner):
        plain = collapse_whitespace(cell.replace("\\|", "|"))
        cells.append(plain.strip(_EMPHASIS).strip())
    return cells


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names of columns, none of them empty, or twice if case is ignored."""
    distinct: list[str] = []
    taken: dict[str, str] = {}
    for number, name in enumerate(names):
        missing = UNNAMED if number else LABEL
        free = _free_name(name or missing, taken)
        taken[free.casefold()] = free
        distinct.append(free)
    return distinct


def _name_cells(values: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return a row's values by the names of their columns; further ones have no names."""
    cells = dict(zip(names, values, strict=False))
    for value in values[len(names) :]:
        if value:
            cells[_free_name(UNNAMED, cells)] = value
    return cells


def _fit_names(header: str, size: int) -> list[str]:
    """Return the names in a table's header, if they fit to a row of this size; the first column may have none."""
    if not header:
        return []
    names = [collapse_whitespace(name) for name in header.split(CELL_BOUNDARY)]
    if len(names) == size - 1:
        names = [LABEL, *names]
    if len(names) != size:
        return []
    return _distinct(names)
