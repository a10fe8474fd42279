"""A part of a chunk store: some of its documents, as if it held no others."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from operator import itemgetter

import numpy as np

from arag.retrieval.backend import Counts, Phrase, Vectors
from arag.retrieval.packing import keep_documents
from arag.retrieval.tables.chunks import TableChunks
from arag.retrieval.tables.terms import Terms
from arag.retrieval.tokens import load_token_counter
from arag.retrieval.types import Chunk


class ChunkPart(TableChunks):
    """The chunks of some documents, in one generation; it shares the store's connection.

    A store's own part is a subclass of this class and of the store's, in this order.

    Chunks that hold these documents only are selected by SQL. Packed chunks that hold others, too, are cut when the
    part is opened, and kept in memory.

    Args:
        store: The chunk store, at the generation.
        document_ids: The documents.

    Attributes:
        inside: The numbers of the chunks in this part, in order, shape (chunks,).
        cut: The packed chunks that are cut, as they are in this part, by their numbers.
        kept: For each of these, the positions of its sentences in the whole chunk.
    """

    def __init__(self, store: TableChunks, document_ids: Collection[str]) -> None:
        self.__dict__ |= store.__dict__
        self._store = store
        allowed = list(document_ids)
        rows = self._each("SELECT number FROM documents WHERE id IN ({marks})", allowed, self._documents_seen)
        self._documents = self.number_set([row[0] for row in rows])
        inside = store.numbers_of(allowed)
        self.inside = np.asarray(inside, dtype=np.int64)
        self.cut: dict[int, Chunk] = {}
        self.kept: dict[int, list[int]] = {}
        self._cut_shared(store, inside, frozenset(allowed))
        self._whole = self.number_set([number for number in inside if number not in self.cut])
        self._cut_ids = {chunk.id: number for number, chunk in self.cut.items()}
        self._documents_seen += f" AND {self._documents.holds('documents.number')}"
        self._seen += f" AND {self._whole.holds('chunks.number')}"

    def _cut_shared(self, store: TableChunks, numbers: Sequence[int], allowed: Collection[str]) -> None:
        """Cut the chunks that hold other documents, too."""
        rows = store._query(  # noqa: SLF001 - its own
            "SELECT number FROM members GROUP BY number HAVING count(*) > 1"
        )
        shared = {row[0] for row in rows}.intersection(numbers)
        for number, chunk in sorted(store.numbered(list(shared)).items()):
            kept = {section.document_id for section in chunk.sections}.intersection(allowed)
            if len(kept) < len(chunk.sections):
                cut = keep_documents(chunk, kept, count=load_token_counter().count_batch)
                if cut is not None:
                    self.cut[number] = cut
                    sections = [section for section in chunk.sections if section.document_id in kept]
                    self.kept[number] = [
                        i for i, s in enumerate(chunk.sentences) if any(c.start <= s.start < c.end for c in sections)
                    ]

    def mget(self, keys: Sequence[str]) -> list[Chunk | None]:
        """Return the chunks with these ids, or None where an id is unknown."""
        cut = (self.cut[self._cut_ids[key]] if key in self._cut_ids else None for key in keys)
        return [chunk or other for chunk, other in zip(super().mget(keys), cut, strict=True)]

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yield the ids of all chunks, or of those that begin with a prefix, in the order of ingestion."""
        whole = self._query(f"SELECT number, CAST(id AS TEXT) FROM chunks WHERE {self._seen} ORDER BY number")
        cut = ((number, chunk.id) for number, chunk in self.cut.items())
        for _, chunk_id in heapq.merge(whole, cut):
            if prefix is None or chunk_id.startswith(prefix):
                yield chunk_id

    def near_ids(self, chunk_id: str) -> list[str]:
        """Return ids to compare with an unknown one."""
        return [*super().near_ids(chunk_id), *self._cut_ids]

    def numbered(self, numbers: Sequence[int]) -> dict[int, Chunk]:
        """Return the chunks with these numbers that this part has."""
        return super().numbered(numbers) | {n: self.cut[n] for n in numbers if n in self.cut}

    def ids(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the ids of the chunks with these numbers that this part has."""
        return super().ids(numbers) | {n: self.cut[n].id for n in numbers if n in self.cut}

    def numbers(self, keys: Sequence[str]) -> list[int]:
        """Return the numbers of the chunks with these ids, as far as they exist."""
        return super().numbers(keys) + [self._cut_ids[key] for key in dict.fromkeys(keys) if key in self._cut_ids]

    def numbers_by_id(self) -> list[int]:
        """Return the numbers of all chunks, in the order of their ids."""
        whole = self._query(f"SELECT CAST(id AS TEXT), number FROM chunks WHERE {self._seen} ORDER BY id")
        return [number for _, number in heapq.merge(whole, sorted(self._cut_ids.items()))]

    def neighbours(self, chunk: Chunk, reach: int) -> list[Chunk]:
        """Return a chunk and those up to `reach` before and after it in its document, in order."""
        return [chunk] if chunk.id in self._cut_ids else super().neighbours(chunk, reach)

    def chunks_in_documents(self, document_ids: Iterable[str]) -> dict[str, int]:
        """Return how many chunks start in each of some documents."""
        return {i: count + self._starts[i] for i, count in super().chunks_in_documents(document_ids).items()}

    def chunks_of(self, document_ids: Sequence[str]) -> list[Chunk]:
        """Return every chunk that holds a part of one of these documents, each once, in order."""
        found = self.numbered(self.numbers_of(document_ids))
        return [found[number] for number in sorted(found)]

    def numbers_of(self, document_ids: Sequence[str]) -> list[int]:
        """Return the numbers of the chunks that hold a part of one of these documents, in order."""
        wanted = set(document_ids)
        cut = [n for n, chunk in self.cut.items() if any(s.document_id in wanted for s in chunk.sections)]
        return sorted([*super().numbers_of(document_ids), *cut])

    def counts(self) -> Counts:
        """Count documents, chunks, sentences and tokens."""
        whole, cut = super().counts(), self.cut.values()
        return Counts(
            whole.documents,
            whole.chunks + len(cut),
            whole.sentences + sum(len(chunk.embedded_texts()) for chunk in cut),
            whole.tokens + sum(chunk.tokens for chunk in cut),
        )

    def holds_word(self, word: str) -> bool:
        """Return whether a word (lower case, without diacritics) is in the part."""
        return any(self._spelled([Phrase((word,))], 1))

    def _spelled(self, phrases: Sequence[Phrase], limit: int) -> list[list[tuple[int, list[str]]]]:
        """Return each phrase's spellings in the first chunks that hold it, with the chunks' numbers."""
        whole = super()._spelled(phrases, limit)
        if not self.cut:
            return whole
        cut = (self._cut_terms.spelled(phrase, limit) for phrase in phrases)
        return [sorted([*one, *other])[:limit] for one, other in zip(whole, cut, strict=True)]

    def holding_all(
        self, groups: Sequence[Collection[str]], limit: int, within: Collection[int] | None = None
    ) -> list[list[int]]:
        """Return the numbers of the chunks that hold all words of each of some groups; see `Words.holding_all`."""
        whole = super().holding_all(groups, limit, within)
        if not self.cut:
            return whole
        inside = self.cut.keys() if within is None else set(within)
        cut = ([n for n in self._cut_terms.holding_all(words) if n in inside] for words in groups)
        return [sorted([*one, *other])[:limit] for one, other in zip(whole, cut, strict=True)]

    def placed_vectors(self, numbers: Collection[int] | None = None) -> Iterator[tuple[int, list[int], Vectors]]:
        """Yield the vectors of all chunks, or of these; see `TableChunks.placed_vectors`."""
        cut = self.cut.keys() if numbers is None else self.cut.keys() & set(numbers)
        whole = None if numbers is None else [number for number in numbers if number not in cut]
        if whole is None or whole:
            yield from super().placed_vectors(whole)
        for number, positions, vectors in self._store.placed_vectors(list(cut)) if cut else ():
            new = {position: place for place, position in enumerate(self.kept[number])}
            kept = [row for row, position in enumerate(positions) if position in new]
            yield number, [new[positions[row]] for row in kept], vectors[kept]

    def embedded_chunks(self, since: int = -1, *, after: int = -1) -> Iterator[tuple[int, Chunk, Vectors]]:
        """Yield number, chunk and vectors of all chunks; see `Chunks.embedded_chunks`."""
        whole = super().embedded_chunks(since, after=after)
        numbers = sorted(number for number in self.cut if number > after)
        cut = ((number, self.cut[number], vectors) for number, _, vectors in self.placed_vectors(numbers))
        yield from heapq.merge(whole, cut, key=itemgetter(0))

    @cached_property
    def _starts(self) -> Counter[str]:
        """How many of the cut chunks start in each document."""
        return Counter(chunk.document_id for chunk in self.cut.values())

    @cached_property
    def _cut_terms(self) -> Terms:
        """The words of the cut chunks, as the store has those of the whole ones."""
        return Terms((number, chunk.text) for number, chunk in self.cut.items())
