"""Finds all lines of a corpus that match a pattern; `Index.grep` documents it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from arag.errors import InputError
from arag.retrieval.corpus.lines import Line, list_lines, make_block
from arag.retrieval.corpus.patterns import Pattern
from arag.retrieval.corpus.titles import find_titles
from arag.retrieval.corpus.types import GrepLine, GrepResults
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.contract import View
from arag.retrieval.storage.records import ChunkText
from arag.retrieval.types import Chunk
from arag.text.normalise import is_title

_CHUNKS_AT_ONCE = 200  # that are read: more take more memory, fewer more queries
_TEXTS_AT_ONCE = 100  # that are searched between two looks at the clock
_MAX_SECONDS = 30.0  # for one pattern: three times what a word in all of 100,000 chunks takes


def grep(view: View, pattern: Pattern, start: int, limit: int) -> GrepResults:
    """Find all lines that match; keep `limit` of them, beginning at `start`, and count the others."""
    kept: list[MatchingChunk] = []
    skipped = 0  # lines of the first chunk that is kept
    total = chunks = documents = 0
    last_document = None
    for found in find_matching_chunks(view, pattern):
        if not found.positions:
            continue
        if not kept:
            skipped = start - total
        chunks += 1
        documents += found.document_id != last_document
        last_document = found.document_id
        total += len(found.positions)
        if start < total and total - len(found.positions) < start + limit:
            kept.append(found)
    lines: list[GrepLine] = []
    for some in batches(kept, _CHUNKS_AT_ONCE):
        for each in _read_lines(view, some):
            lines += [_describe(line, pattern) for line in each.lines]
    first = max(0, skipped)
    return GrepResults(
        pattern=pattern.text,
        lines=tuple(lines[first : first + limit]),
        total=total,
        chunks=chunks,
        documents=documents,
        searched=view.settings.documents,
        titles=dict(find_titles(view, pattern)),
    )


@dataclass(frozen=True, slots=True)
class MatchingChunk:
    """A chunk with lines that match."""

    row_id: int
    document_id: str
    positions: Sequence[int]
    """Of the sentences that match, without the document's title."""


@dataclass(frozen=True, slots=True)
class ChunkLines:
    """A chunk, and its lines that match."""

    chunk: Chunk
    lines: Sequence[Line]


def find_matching_lines(view: View, pattern: Pattern) -> Iterator[ChunkLines]:
    """Yield the chunks that have matching lines, in the order of documents' ids and of the text.

    A document's title is not among the lines: `find_titles` finds it.

    Raises:
        InputError: It takes too long.
    """
    for some in batches(find_matching_chunks(view, pattern), _CHUNKS_AT_ONCE):
        yield from _read_lines(view, [each for each in some if each.positions])


def find_matching_chunks(view: View, pattern: Pattern) -> Iterator[MatchingChunk]:
    """Yield what `find_matching_lines` does, without the texts: to count lines, it is faster."""
    deadline = time.thread_time() + _MAX_SECONDS
    candidates = _find_candidates(view, pattern, deadline)
    for batch in batches(view.in_text_order(candidates), _CHUNKS_AT_ONCE):
        for chunk in view.texts_by_row_id(batch):
            _check(deadline)
            positions = _find_positions(chunk, pattern)
            if positions:
                yield MatchingChunk(chunk.row_id, chunk.document_id, positions)


def _find_positions(chunk: ChunkText, pattern: Pattern) -> list[int]:
    """Return the positions of the sentences that match, without the document's title."""
    block = make_block(chunk)
    positions: list[int] = []
    position = counted = 0
    for start in pattern.find_lines(block):
        position += block.count(b"\n", counted, start)
        counted = start
        positions.append(position)
    if positions[:1] == [0] and chunk.ordinal == 0:
        first_start, first_end = chunk.spans[0]
        if is_title(chunk.text[first_start:first_end], chunk.title):
            del positions[0]
    return positions


def _find_candidates(view: View, pattern: Pattern, deadline: float) -> list[int]:
    """Return the row ids of all chunks that may have a matching line, in any order."""
    row_ids = _find_by_literals(view, pattern)
    candidates: list[int] = []
    for number, (row_id, text) in enumerate(view.searchable_texts(row_ids)):
        if number % _TEXTS_AT_ONCE == 0:
            _check(deadline)
        if pattern.may_match(text):
            candidates.append(row_id)
    return candidates


def _find_by_literals(view: View, pattern: Pattern) -> list[int]:
    """Return the row ids of the chunks that hold what each match holds; of all chunks if that is not known."""
    if pattern.literals is None:
        return view.ordered_row_ids()
    row_ids: set[int] = set()
    row_ids.update(*view.row_ids_holding(pattern.literals, view.settings.chunks))
    for letter in pattern.rare_letters:
        row_ids.update(view.row_ids_with_letter(letter))
    return list(row_ids)


def _read_lines(view: View, found: Sequence[MatchingChunk]) -> Iterator[ChunkLines]:
    chunks = view.chunks_by_row_id([each.row_id for each in found])
    for each in found:
        positions = set(each.positions)
        chunk = chunks[each.row_id]
        yield ChunkLines(chunk, [line for line in list_lines(chunk) if line.position in positions])


def _check(deadline: float) -> None:
    if time.thread_time() > deadline:
        raise InputError(
            f"the pattern takes longer than {_MAX_SECONDS:.0f} seconds here: add a word that each match has, or look "
            "in fewer documents with `within`"
        )


def _describe(line: Line, pattern: Pattern) -> GrepLine:
    matches = pattern.find(line.text)
    return GrepLine(
        chunk=line.chunk,
        position=line.position or 0,
        text=line.text,
        spans=tuple((match.start, match.end) for match in matches),
        groups=tuple(match.groups for match in matches),
    )
