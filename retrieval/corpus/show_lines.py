"""The lines that match a pattern as text for a language model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from arag.retrieval.corpus.patterns import Pattern
from arag.retrieval.corpus.types import GrepLine, GrepResults
from arag.retrieval.index import Index
from arag.retrieval.presentation.places import name_pages_of
from arag.retrieval.presentation.retrieve import Retrieved
from arag.text.marks import list_marks, mark, without_marks
from arag.text.normalise import CELL_BOUNDARY, CUT, collapse_whitespace, count, name_words, with_colon
from arag.text.tokens import count_tokens

MAX_TOKENS = 1_500  # of a result

_LINES_READ = 400  # of a result: more do not fit into its tokens
_MAX_LINE = 300  # characters of a line that is shown whole
_BEFORE_MATCH = 120  # characters of a long line in front of its first match
_MAX_LABEL = 60  # characters of the first cell of a long row, which is kept
_MAX_TITLES = 10  # that match and are named
_AROUND = " .,;:-*•"  # lines that differ in these are the same
_LIST_ITEM = re.compile(r"[-*•–]\s|\d+[.)]\s")
_YEAR = re.compile(r"(?:1\d|20)\d\d")


def show_matching_lines(
    index: Index, pattern: str, *, within: str = "", only_match: bool = False, start: int = 0
) -> Retrieved:
    """Show all lines that match a pattern, as many as fit, from one of them on.

    Args:
        index: The index.
        pattern: A regular expression in RE2's syntax; case is ignored.
        within: Look only in documents that this names.
        only_match: Whether to show only what matches, or the pattern's groups if it has some.
        start: How many matching lines to leave out at the start.
    """
    results = index.grep(pattern, within=within, start=start, limit=_LINES_READ)
    head = _write_head(results, start)
    page = _Page(only_match=only_match, tokens=MAX_TOKENS - count_tokens(head))
    for line in results.lines:
        if not page.add(line):
            break
    rows = [head, *page.rows()]
    following = start + page.lines
    if following < results.total:
        rows.append(f"{results.total - following:,} more: start={following}")
    shown = replace(results, lines=results.lines[: page.lines], titles=_first_titles(results))
    return Retrieved(
        text="\n".join(rows),
        chunk_ids=list(page.sentences),
        results=describe_lines(shown),
        sentences=page.sentences,
        evidence=["\n".join(entry.text for entry in page.entries)],
    )


def describe_lines(results: GrepResults) -> dict[str, object]:
    """Return lines that match as plain values."""
    lines = [
        {
            "chunk_id": line.chunk_id,
            "document_id": line.document_id,
            "title": line.chunk.title,
            "pages": line.chunk.pages,
            "position": line.position,
            "text": line.text,
            "matches": line.matches,
            "groups": [list(groups) for groups in line.groups],
        }
        for line in results.lines
    ]
    return {
        "pattern": results.pattern,
        "total": results.total,
        "chunks": results.chunks,
        "documents": results.documents,
        "searched": results.searched,
        "titles": dict(results.titles),
        "lines": lines,
    }


def write_matches(line: GrepLine) -> str:
    """Return what matches in a line, or what the groups matched as columns; each only once."""
    return _write_columns(line.matches, line.groups)


def write_title_matches(title: str, pattern: Pattern) -> str:
    """Return what a pattern matches in a title, in the form of `write_matches`."""
    found = pattern.find(title)
    matches = [title[match.start : match.end] for match in found]
    return _write_columns(matches, [match.groups for match in found])


def _write_columns(matches: Sequence[str], groups_of_all: Sequence[Sequence[str]]) -> str:
    columns: list[str] = []
    for match, groups in zip(matches, groups_of_all, strict=True):
        columns.append(CELL_BOUNDARY.join(groups) if groups else match)
    return "; ".join(dict.fromkeys(columns))


def _write_head(results: GrepResults, start: int) -> str:
    """Say how much matches in all, titles included."""
    head = _write_total(results)
    if start and results.total:
        head += f", from {start} on"
    if results.titles and not start:
        return f"{head}. {_write_titles(results)}"
    return f"{head}:" if results.total else f"{head}."


def _write_total(results: GrepResults) -> str:
    if not results.total:
        return f"No line of {count(results.searched, 'document')} matches"
    verb = "matches" if results.total == 1 else "match"
    return f"{count(results.total, 'line')} in {count(results.documents, 'document')} {verb}"


def _write_titles(results: GrepResults) -> str:
    """Say how many titles match, and name the first ones."""
    named = [_write_title(*title) for title in _first_titles(results).items()]
    further = len(results.titles) - len(named)
    if further:
        named.append(f"{further:,} more")
    return f"{count(len(results.titles), 'title')}: {'; '.join(named)}"


def _first_titles(results: GrepResults) -> dict[str, str]:
    return dict(islice(results.titles.items(), _MAX_TITLES))


def _write_title(document_id: str, title: str) -> str:
    if _says(document_id, title):
        return without_marks(document_id)
    return f"{without_marks(title)} ({without_marks(document_id)})"


def _says(chunk_id: str, title: str) -> bool:
    """Return whether an id has all words of a title."""
    return set(name_words(title)) <= set(name_words(chunk_id))


@dataclass
class _Entry:
    """A line that is shown, and its copies in other places."""

    head: str  # the chunk's mark, and its document's title if that is new; empty within a chunk
    label: str  # the headings and columns of its table; empty if they are those of the line before
    text: str
    chunk_id: str
    times: int = 1
    copies: list[str] = field(default_factory=list)  # other chunks with the same line

    def write(self) -> list[str]:
        """Return it as rows; all but the first of a chunk are indented."""
        text = without_marks(self.text)
        notes: list[str] = []
        if self.times > 1 + len(self.copies):
            notes.append(f"{self.times:,} times")
        if self.copies:
            notes.append(f"also in {list_marks(self.copies)}")
        if notes:
            text += f" ({', '.join(notes)})"
        below = [f" {without_marks(self.label)}"] if self.label else []
        if not self.head:
            return [*below, f" {text}"]
        if below:
            return [self.head, *below, f" {text}"]
        return [f"{self.head} {text}"]


@dataclass
class _Page:
    """As many lines as fit."""

    only_match: bool
    tokens: int  # that are left
    lines: int = 0  # that are shown
    entries: list[_Entry] = field(default_factory=list)
    sentences: dict[str, set[int]] = field(default_factory=dict)  # that are shown whole, by chunk id
    _by_text: dict[str, _Entry] = field(default_factory=dict)
    _named: set[str] = field(default_factory=set)  # documents whose title is shown
    _last: tuple[str, str] = ("", "")  # the chunk id and the label of the last line

    def add(self, line: GrepLine) -> bool:
        """Add a line, and return whether it fits. The first one always does."""
        text = _shorten(write_matches(line), 0) if self.only_match else line.text
        key = text.lower().strip(_AROUND)
        same = self._by_text.get(key)
        fits = self._add_copy(line, same) if same else self._add_new(line, key)
        if fits:
            self.lines += 1
            positions = self.sentences.setdefault(line.chunk_id, set())
            if not self.only_match and len(line.text) <= _MAX_LINE:
                positions.add(line.position)
        return fits

    def rows(self) -> list[str]:
        """Return all lines as rows."""
        return [row for entry in self.entries for row in entry.write()]

    def _add_new(self, line: GrepLine, key: str) -> bool:
        label = "" if self.only_match else _label(line)
        place = (line.chunk_id, label)
        entry = _Entry(
            head=self._new_head(line),
            label="" if place == self._last else label,
            text=_shorten(write_matches(line), 0) if self.only_match else _cut_to_match(line),
            chunk_id=line.chunk_id,
        )
        if not self._spend(count_tokens("\n".join(entry.write())) + 1):
            return False
        self.entries.append(entry)
        self._by_text[key] = entry
        self._named.add(line.document_id)
        self._last = place
        return True

    def _add_copy(self, line: GrepLine, same: _Entry) -> bool:
        """Count a line that is shown already, and name its chunk there."""
        new = [line.chunk_id]
        if line.chunk_id in {same.chunk_id, *same.copies}:
            new = []
        if not self._spend(count_tokens(list_marks(new))):
            return False
        same.times += 1
        same.copies += new
        return True

    def _spend(self, tokens: int) -> bool:
        """Take tokens for a line, and return whether there are so many."""
        if tokens > self.tokens and self.lines:
            return False
        self.tokens -= tokens
        return True

    def _new_head(self, line: GrepLine) -> str:
        """Return the mark of a line's chunk, its pages, and the title if nothing has said it; empty within a chunk."""
        last_chunk_id, _ = self._last
        if line.chunk_id == last_chunk_id:
            return ""
        pages = name_pages_of(line.chunk)
        head = f"{mark(line.chunk_id)} ({pages})" if pages else mark(line.chunk_id)
        title = collapse_whitespace(line.chunk.title)
        if not title or line.document_id in self._named or _says(line.chunk_id, title):
            return head
        return f"{head} {with_colon(without_marks(title))}"


def _label(line: GrepLine) -> str:
    """Return the headings above a row or an item, and the columns of a row that does not name them."""
    is_row = CELL_BOUNDARY in line.text
    if not is_row and not _LIST_ITEM.match(line.text):
        return ""
    sentence = line.chunk.sentences[line.position]
    columns = sentence.header if is_row and not _is_data(sentence.header) else ""
    heading = collapse_whitespace(sentence.heading)
    return f"{with_colon(heading)} {columns}".rstrip() if heading else columns


def _is_data(header: str) -> bool:
    """Return whether what was taken for the header of a table is a row of data: most cells have numbers, not years."""
    cells = [cell.strip() for cell in header.split(CELL_BOUNDARY) if cell.strip()]
    with_numbers = [cell for cell in cells if any(map(str.isdigit, _YEAR.sub("", cell)))]
    return 2 * len(with_numbers) > len(cells)


def _cut_to_match(line: GrepLine) -> str:
    """Return a line, cut around its first match if it is long; a long row keeps its first cell."""
    if len(line.text) <= _MAX_LINE:
        return line.text
    start = line.spans[0][0]
    label, boundary, _ = line.text.partition(CELL_BOUNDARY)
    text = _shorten(line.text, start)
    is_cut_off = text.startswith(CUT)
    if boundary and is_cut_off and len(label) <= _MAX_LABEL:
        return f"{label}{CELL_BOUNDARY}{text}"
    return text


def _shorten(text: str, start: int) -> str:
    """Cut a long text around a place, between words where there are some."""
    if len(text) <= _MAX_LINE:
        return text
    first = max(0, start - _BEFORE_MATCH)
    first = min(first, len(text) - _MAX_LINE)
    last = first + _MAX_LINE
    piece = text[first:last]
    if first:
        half_word = piece[:_BEFORE_MATCH].find(" ")
        piece = CUT + piece[half_word + 1 :]
    if last < len(text):
        piece = piece.rstrip() + CUT
    return piece
