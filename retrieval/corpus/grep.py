"""Finds all lines of a corpus that match a pattern; `Index.grep` documents it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from arag.errors import IndexFormatError, InputError
from arag.retrieval.corpus.counted_lines import CountedLines, count_lines
from arag.retrieval.corpus.lines import Line, LineBlock
from arag.retrieval.corpus.patterns import Pattern
from arag.retrieval.corpus.titles import find_titles
from arag.retrieval.corpus.types import GrepLine, GrepResults
from arag.retrieval.storage.batches import read_ahead
from arag.retrieval.storage.contract import View
from arag.retrieval.storage.records import ChunkText
from arag.system.stopping import check_stop
from arag.text.normalise import collapse_whitespace

_CHUNKS_AT_ONCE = 200  # that are read: more take more memory, fewer more queries
_TEXTS_AT_ONCE = 100  # that are searched between two looks at the clock
_MAX_SECONDS = 30.0  # for one pattern: three times what a word in all of 100,000 chunks takes


def grep(view: View, pattern: Pattern, start: int, limit: int) -> GrepResults:
    """Find all lines that match; keep `limit` of them, beginning at `start`, and count the others."""
    counted = count_lines(view, pattern, partial(_count_in_texts, view, pattern))
    if counted is None:
        page = _read_all(view, pattern, start, limit)
    else:
        page = _read_page(view, pattern, start, limit, counted)
    return GrepResults(
        pattern=pattern.text,
        lines=tuple(_describe_lines(view, pattern, page.shown)),
        total=page.total,
        chunks=page.chunks,
        documents=page.documents,
        searched=view.settings.documents,
        titles=dict(find_titles(view, pattern)),
    )


@dataclass(frozen=True, slots=True)
class _Page:
    """A part of the lines that match, by their chunks, and how many there are in all."""

    shown: list[MatchingChunk]
    total: int
    chunks: int
    documents: int


def _read_all(view: View, pattern: Pattern, start: int, limit: int) -> _Page:
    """Read all chunks that may match."""
    shown: list[MatchingChunk] = []
    total = chunks = 0
    documents: set[str] = set()
    for found in find_matching_lines(view, [pattern]):
        in_page = found.between(start - total, start + limit - total)
        total += len(found.positions)
        chunks += 1
        documents.add(found.chunk.document_id)
        if in_page.positions:
            shown.append(in_page)
    return _Page(shown, total, chunks, len(documents))


def _read_page(view: View, pattern: Pattern, start: int, limit: int, counted: CountedLines) -> _Page:
    """Read the chunks whose lines are shown."""
    ends = np.cumsum(counted.counts)
    first, after = np.searchsorted(ends, [start, start + limit], side="right").tolist()
    row_ids = counted.row_ids[first : after + 1].tolist()
    before = int(ends[first - 1]) if first else 0
    shown: list[MatchingChunk] = []
    for chunks in read_ahead(view.texts_by_row_id, row_ids, _CHUNKS_AT_ONCE):
        for found in _search(chunks, [pattern]):
            in_page = found.between(start - before, start + limit - before)
            before += len(found.positions)
            if in_page.positions:
                shown.append(in_page)
    total = int(ends[-1]) if len(ends) else 0
    if sum(len(found.positions) for found in shown) != min(limit, max(0, total - start)):
        raise IndexFormatError(
            "the index's list of words counts other lines than there are: run `arag verify --repair`, which makes it "
            "again"
        )
    return _Page(shown, total, len(ends), counted.documents)


def _count_in_texts(view: View, pattern: Pattern, row_ids: Collection[int]) -> dict[int, int]:
    """Count the lines that match in each of some chunks."""
    found = find_matching_lines(view, [pattern], among=row_ids) if row_ids else ()
    return {each.chunk.row_id: len(each.positions) for each in found}


@dataclass(frozen=True, slots=True)
class MatchingChunk:
    """A chunk with lines that match."""

    chunk: ChunkText
    positions: Sequence[int]
    """Of the sentences that match, without the document's title."""

    def between(self, first: int, after: int) -> MatchingChunk:
        """Return it with a part of its lines."""
        return MatchingChunk(self.chunk, self.positions[max(0, first) : max(0, after)])

    @property
    def lines(self) -> list[Line]:
        """The lines that match."""
        lines: list[Line] = []
        for position in self.positions:
            text = collapse_whitespace(self.chunk.sentence_text(position))
            lines.append(Line(self.chunk, position, text))
        return lines


def find_matching_lines(
    view: View,
    patterns: Sequence[Pattern],
    *,
    places: Mapping[str, int] | None = None,
    others: Collection[int] = (),
    among: Collection[int] | None = None,
) -> Iterator[MatchingChunk]:
    """Yield the chunks that have lines that match one of some patterns, in the order of documents and of the text.

    A document's title is not among the lines: `find_titles` finds it.

    Args:
        view: What is searched.
        patterns: The patterns.
        places: The documents' order, by their ids; by default that of the ids.
        others: The row ids of chunks that are yielded, too, if no line of them matches.
        among: The row ids of the only chunks that are searched; None for all.

    Raises:
        InputError: It takes too long.
    """
    deadline = time.thread_time() + _MAX_SECONDS
    wanted = set(others)
    for pattern in patterns:
        wanted.update(_find_candidates(view, pattern, deadline, among))
    for chunks in read_ahead(view.texts_by_row_id, view.in_text_order(wanted, places), _CHUNKS_AT_ONCE):
        _check(deadline)
        for found in _search(chunks, patterns):
            if found.positions or found.chunk.row_id in others:
                yield found


def _search(chunks: Sequence[ChunkText], patterns: Sequence[Pattern]) -> Iterator[MatchingChunk]:
    """Yield chunks with their lines that match; all are searched at once."""
    block = LineBlock.of(chunks)
    numbers = patterns[0].find_lines(block.text)
    for pattern in patterns[1:]:
        numbers = sorted({*numbers, *pattern.find_lines(block.text)})
    bounds = np.searchsorted(numbers, block.first_lines).tolist()
    for place, chunk in enumerate(chunks):
        first_line = block.first_lines[place]
        positions = [number - first_line for number in numbers[bounds[place] : bounds[place + 1]]]
        if positions[:1] == [0] and chunk.begins_with_title():
            del positions[0]
        yield MatchingChunk(chunk, positions)


def _find_candidates(view: View, pattern: Pattern, deadline: float, among: Collection[int] | None) -> list[int]:
    """Return the row ids of all chunks, or of those among some, that may have a matching line, in any order."""
    row_ids = _find_by_literals(view, pattern) if among is None else list(among)
    if among is None and pattern.literals and pattern.is_plain:
        return row_ids
    candidates: list[int] = []
    for number, (row_id, text) in enumerate(view.searchable_texts(row_ids)):
        if number % _TEXTS_AT_ONCE == 0:
            _check(deadline)
        if pattern.may_match(text):
            candidates.append(row_id)
    return candidates


def _find_by_literals(view: View, pattern: Pattern) -> list[int]:
    """Return the row ids of the chunks that hold the literals of each match; of all chunks if there are none."""
    if not pattern.literals:
        return view.ordered_row_ids()
    row_ids: set[int] = set()
    row_ids.update(*view.row_ids_holding(pattern.literals, view.settings.chunks))
    for letter in pattern.rare_letters:
        row_ids.update(view.row_ids_with_letter(letter))
    return list(row_ids)


def _check(deadline: float) -> None:
    check_stop()
    if time.thread_time() > deadline:
        raise InputError(
            f"the pattern takes longer than {_MAX_SECONDS:.0f} seconds here: add a word that each match has, or look "
            "within fewer documents"
        )


def _describe_lines(view: View, pattern: Pattern, found: Sequence[MatchingChunk]) -> Iterator[GrepLine]:
    """Yield lines with their chunks, and what matches in them."""
    chunks = view.chunks_by_row_id([each.chunk.row_id for each in found])
    for each in found:
        for line in each.lines:
            matches = pattern.find(line.text)
            yield GrepLine(
                chunk=chunks[each.chunk.row_id],
                position=line.position or 0,
                text=line.text,
                spans=tuple((match.start, match.end) for match in matches),
                groups=tuple(match.groups for match in matches),
            )
