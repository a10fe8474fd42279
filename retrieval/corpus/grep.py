"""Finds all lines of a corpus that match a pattern; `Index.grep` documents it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from arag.errors import InputError
from arag.retrieval.corpus.lines import Line, list_lines
from arag.retrieval.corpus.patterns import Pattern
from arag.retrieval.corpus.titles import find_titles
from arag.retrieval.corpus.types import GrepLine, GrepResults
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.contract import View
from arag.retrieval.types import Chunk

_CHUNKS_AT_ONCE = 200  # that are read: more take more memory, fewer more queries
_TEXTS_AT_ONCE = 2_000  # that are searched between two looks at the clock
_MAX_SECONDS = 30.0  # for one pattern: it is ten times what the slowest useful ones take among 100,000 chunks


def grep(view: View, pattern: Pattern, start: int, limit: int) -> GrepResults:
    """Find all lines that match; keep `limit` of them, beginning at `start`, and count the others."""
    kept: list[GrepLine] = []
    total = chunks = documents = 0
    last_document = None
    for found in find_matching_lines(view, pattern):
        lines = [line for line in found.lines if not line.names_document]
        if not lines:
            continue
        chunks += 1
        if found.chunk.document_id != last_document:
            documents += 1
            last_document = found.chunk.document_id
        for line in lines:
            if start <= total < start + limit:
                kept.append(_describe(line, pattern))
            total += 1
    titles = dict(find_titles(view, pattern))
    return GrepResults(
        pattern=pattern.text,
        lines=tuple(kept),
        total=total,
        chunks=chunks,
        documents=documents,
        titles=titles,
    )


@dataclass(frozen=True, slots=True)
class ChunkLines:
    """The lines of a chunk that match."""

    chunk: Chunk
    lines: Sequence[Line]


def find_matching_lines(view: View, pattern: Pattern) -> Iterator[ChunkLines]:
    """Yield the chunks that have matching lines, in the order of documents' ids and of the text.

    A title that is not in the text is not among the lines: `find_titles` finds it.

    Raises:
        InputError: It takes too long.
    """
    deadline = time.monotonic() + _MAX_SECONDS
    row_ids = _find_candidates(view, pattern, deadline)
    for batch in batches(view.in_text_order(row_ids), _CHUNKS_AT_ONCE):
        for chunk in view.chunks_by_row_id(batch).values():
            _check(deadline)
            lines = [line for line in list_lines(chunk) if line.position is not None and pattern.matches(line.text)]
            if lines:
                yield ChunkLines(chunk, lines)


def _find_candidates(view: View, pattern: Pattern, deadline: float) -> list[int]:
    """Return the row ids of all chunks that may have a matching line, in any order."""
    row_ids = _find_by_literals(view, pattern)
    candidates: list[int] = []
    for batch in batches(row_ids, _TEXTS_AT_ONCE):
        _check(deadline)
        for row_id, text in view.searchable_texts(batch):
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


def _check(deadline: float) -> None:
    if time.monotonic() > deadline:
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
