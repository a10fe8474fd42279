"""Writes the lines of a command's output for a model: each mark, title, heading and column name once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from arag.retrieval.corpus.lines import places_by_text
from arag.retrieval.corpus.shell.corpus import TableRow
from arag.retrieval.corpus.shell.reading import MIN_TEXT
from arag.retrieval.search.suggestions import FUNCTION_WORDS
from arag.retrieval.types import Chunk
from arag.text.marks import list_marks, mark, without_marks
from arag.text.normalise import HEADING_BOUNDARY, collapse_whitespace, is_title, name_words, with_colon

MAX_MARKS = 2  # of the chunks of one row
NUMBER = re.compile(r"\s*\d+(?:[:\t]| +)")  # as `uniq -c`, `nl` and `grep -n` put in front of lines

_GAP = "--"  # between lines with others around them
_MIN_REPEATED = 160  # characters of a line that is not shown twice: the place of a shorter one costs more to look up
_MANY = 3  # equal lines side by side: fewer are shown
_APOSTROPHE = re.compile("['’]")
_RULE = re.compile(r"(?=[^-]*-)[|:\s-]*+")
_HEADER = re.compile(r"==> .+ <==")


@dataclass
class OutputLine:
    """A line of the output."""

    text: str
    chunk: Chunk | None = None  # that it is marked with
    named: Chunk | None = None  # that it names in another way
    row: TableRow | None = None  # of a query


def write_lines(lines: Sequence[OutputLine]) -> list[str | None]:
    """Return each line as it is shown: the first one of a chunk has its mark, further ones a space.

    None is for a line that says nothing (a name that `head` prints above a file, the rule below a table's header), or
    that follows equal ones: these are counted, as in `The whistle is blown. (×24)`.
    """
    pieces: list[str | None] = []
    writer = _Writer()
    for _, group in groupby(enumerate(lines), lambda entry: _key(entry[1])):
        equal = list(group)
        first_place, first = equal[0]
        is_long = first.chunk is not None and len(first.text) >= MIN_TEXT
        if len(equal) >= _MANY and is_long and not _says_nothing(lines, first_place):
            pieces.append(f"{writer.write(first)} (×{len(equal)})")
            pieces += [None] * (len(equal) - 1)
            continue
        for place, line in equal:
            pieces.append(None if _says_nothing(lines, place) else writer.write(line))
    return pieces


def _key(line: OutputLine) -> tuple[str, str]:
    """Return what equal lines of a document have in common."""
    return (line.chunk.document_id if line.chunk is not None else "", line.text)


class _Writer:
    """Writes lines, and knows what the ones before say."""

    def __init__(self) -> None:
        self._last = ""  # marks of the line before
        self._has_marks = False  # of any line
        self._names = ""  # of the columns of the row before
        self._titled: set[str] = set()  # documents whose titles were shown
        self._headings: dict[str, str] = {}  # the last one that was shown of each document
        self._headers: dict[str, set[str]] = {}  # of tables, by chunk id
        self._long: dict[str, str] = {}  # the chunk that each long line was shown of
        self._places: dict[str, dict[str, list[int]]] = {}  # of the lines' sentences, by chunk id and text

    def write(self, line: OutputLine) -> str:
        """Write a line."""
        if line.row is not None:
            return self.write_row(line.row)
        if line.chunk is None:
            return self.write_other(line.text)
        return self.write_line(line.text, line.chunk)

    def write_line(self, text: str, chunk: Chunk) -> str:
        """Write a line of a chunk."""
        start = self._start(mark(chunk.id))
        if start != " ":
            start += _introduce(chunk, text, self._titled)
        heading, header = self._find_context(chunk, text)
        start += self._write_heading(chunk, text, heading)
        seen = self._headers.setdefault(chunk.id, set())
        seen.add(text.strip("| "))
        if header and header not in seen:
            seen.add(header)
            start += f"{without_marks(header)}\n "
        self._names = ""
        if len(text) >= _MIN_REPEATED:
            first = self._long.setdefault(text, chunk.id)
            if first != chunk.id:
                return f"{start}(the same line as in {mark(first)})"
        return start + without_marks(text).lstrip()

    def _write_heading(self, chunk: Chunk, text: str, heading: str) -> str:
        """Return the heading above a line, unless it is the title or the one that was shown last."""
        own = text.strip("# ")
        if text.startswith("#"):
            self._headings[chunk.document_id] = own
            return ""
        if not heading or heading == self._headings.get(chunk.document_id) or is_title(heading, chunk.title):
            return ""
        self._headings[chunk.document_id] = heading
        return f"{with_colon(without_marks(heading))} "

    def _find_context(self, chunk: Chunk, text: str) -> tuple[str, str]:
        """Return the heading above a line, and the column names of a row that does not have them.

        The heading is empty for a line that is under several.
        """
        if chunk.id not in self._places:
            self._places[chunk.id] = places_by_text(chunk)
        sentences = [chunk.sentences[place] for place in self._places[chunk.id].get(text, ())]
        if not sentences:
            return "", ""
        headings = {sentence.heading for sentence in sentences}
        heading = headings.pop() if len(headings) == 1 else ""
        return heading.rpartition(HEADING_BOUNDARY)[2], sentences[0].header

    def write_row(self, row: TableRow) -> str:
        """Write a row of a query; above the first one, the names of the columns."""
        marks = list_marks(list(row.chunk_ids)[:MAX_MARKS])
        more = len(row.chunk_ids) - MAX_MARKS
        if more > 0:
            marks += f" and {more:,} more:"
        names = ""
        if row.names != self._names:
            names = f"{without_marks(row.names)}\n"
            self._last = ""
        self._names = row.names
        return f"{names}{self._start(marks)}{without_marks(row.text).lstrip()}"

    def write_other(self, text: str) -> str:
        """Write a line that is not known to be from a chunk. It must not look like a further line of one."""
        if text == _GAP:
            return text
        text = without_marks(text)
        if self._has_marks or NUMBER.match(text):
            text = text.lstrip()
        self._last = ""
        self._names = ""
        return text

    def _start(self, marks: str) -> str:
        """Return what begins a line: its marks, or a space if the line before has the same."""
        is_same = marks == self._last
        self._last = marks
        if not marks:
            return ""
        self._has_marks = True
        return " " if is_same else f"{marks} "


def _says_nothing(lines: Sequence[OutputLine], place: int) -> bool:
    line = lines[place]
    if line.chunk is not None:
        return _RULE.fullmatch(line.text) is not None
    return _is_header(lines, place) or (not line.text and _is_header(lines, place + 1))


def _is_header(lines: Sequence[OutputLine], place: int) -> bool:
    """Return whether a line is a file's name above a line with a mark, as `head` and `tail` write it."""
    if place + 1 >= len(lines):
        return False
    return _HEADER.fullmatch(lines[place].text) is not None and lines[place + 1].chunk is not None


def _introduce(chunk: Chunk, text: str, named: set[str]) -> str:
    """Return a document's title, if it is not said otherwise, and the chunk's pages."""
    parts: list[str] = []
    title = collapse_whitespace(chunk.title)
    is_said = chunk.document_id in named or is_title(text, title) or text.startswith(title)
    if title and not is_said and not _is_said(title, chunk.document_id):
        parts.append(without_marks(title))
    named.add(chunk.document_id)
    if chunk.pages:
        first, last = chunk.pages
        parts.append(f"page {first}" if first == last else f"pages {first}-{last}")
    return f"{with_colon(', '.join(parts))} " if parts else ""


def _is_said(title: str, document_id: str) -> bool:
    """Return whether an id has all words of a title, apart from words such as "the"."""
    words = set(name_words(_APOSTROPHE.sub("", title))) - FUNCTION_WORDS
    return words <= set(name_words(_APOSTROPHE.sub("", document_id)))
