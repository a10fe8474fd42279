"""Documents and full chunks in SQL tables, as one generation of an index has them: a LangChain key-value store.

The SQL is the same for SQLite and PostgreSQL. Rows are never changed. Each records the generation that added it and the
one that removed it, so a reader sees one complete generation while the next is being written. A removed row is deleted
once readers see the generation that removed it.
"""

from __future__ import annotations

import copy
import re
import zlib
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Protocol, Self

import numpy as np
from langchain_core.stores import BaseStore
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

from arag.errors import IndexFormatError
from arag.retrieval.backend import Counts, DocumentRecord, Phrase, Vectors
from arag.retrieval.tables.rows import (
    CONTENT_COLUMNS,
    DOCUMENT_COLUMNS,
    ENTRY_COLUMNS,
    FOR_EVER,
    check_row,
    checksum,
    document_row,
    embedded_positions,
    parse_chunk,
    parse_document,
    parse_vectors,
    read_text,
    vectors_blob,
)
from arag.retrieval.types import Chunk

LATEST = 2**62  # the generation that a writer sees: everything added, nothing removed

_COLUMNS = f"chunks.number, {ENTRY_COLUMNS}, {CONTENT_COLUMNS}, contents.checksum"
_FULL = "chunks JOIN contents ON contents.number = chunks.number"
_EMBEDDED = f"{_FULL} JOIN vectors ON vectors.number = chunks.number"
_WORD = re.compile(r"\w+")
_IDS_COMPARED = 500  # of each kind, with an unknown one
_MAX_ID_WORDS = 10
_SIMILAR = 60  # rapidfuzz ratio, 0 to 100
_DOCUMENTS_PER_QUERY = 2_000
_MAX_NUMBER = 1 << 31  # of a row: an index from somebody else may have any
_VALUES_PER_QUERY = 500  # SQLite limits the variables of a statement
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


class NumberCondition(Protocol):
    """A set of row numbers, which SQL can ask for as long as the object exists."""

    def holds(self, column: str) -> str:
        """Return the SQL that tells whether the set has a column's number."""


class TableChunks(BaseStore[str, Chunk]):
    """Documents and chunks in SQL tables, as one generation of the index has them.

    A subclass says how statements are run. In these, `?` stands for a value.

    Attributes:
        writes: The generation that additions and removals belong to; set by the writer.
    """

    FIND = "instr"  # the SQL function that finds a text in another one
    UNSTORABLE = re.compile("[\ud800-\udfff\0]")  # what no text in the tables holds: a model may send half a pair

    def __init__(self, generation: int = LATEST) -> None:
        self.writes = 0
        self._see(generation)

    @abstractmethod
    def _query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""

    @abstractmethod
    def _execute(self, sql: str, rows: Iterable[Sequence[Any]] = ((),)) -> None:
        """Run a statement for each of some rows of values; the caller has begun a transaction."""

    @abstractmethod
    def _insert(self, chunks: Sequence[Chunk]) -> list[int]:
        """Insert the rows of new chunks, which wait for their vectors; return their numbers."""

    def _spelled(self, phrases: Sequence[Phrase], limit: int) -> list[list[tuple[int, list[str]]]]:
        """Return each phrase's spellings in the first chunks that hold it, with the chunks' numbers."""
        raise NotImplementedError

    @abstractmethod
    def holds_word(self, word: str) -> bool:
        """Return whether a word (lower case, without diacritics) is in the corpus."""

    @abstractmethod
    def listed_words(self, words: Collection[str]) -> set[str]:
        """Return which of some words the corpus may hold; see `Words.listed`."""

    def holding_all(
        self, groups: Sequence[Collection[str]], limit: int, within: Collection[int] | None = None
    ) -> list[list[int]]:
        """Return the numbers of the chunks that hold all words of each of some groups; see `Words.holding_all`."""
        raise NotImplementedError  # not abstract: a part calls it of whichever store it is a part of

    @abstractmethod
    def titled(self, titles: Sequence[str], limit: int) -> Iterable[list[tuple[str, str]]]:
        """Return id and title of documents by each of some titles; see `Chunks.titled`."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Run all writes inside as one transaction: either all are kept, or none."""

    @abstractmethod
    def number_set(self, numbers: Collection[int]) -> NumberCondition:
        """Return a set of row numbers for conditions."""

    @abstractmethod
    def _damage(self, what: str) -> IndexFormatError:
        """Return the error that reports damage."""

    def at(self, generation: int) -> Self:
        """Return this store as another generation has it; both share one connection."""
        other = copy.copy(self)
        other._see(generation)  # noqa: SLF001 - its own
        return other

    def _see(self, generation: int) -> None:
        """Read a generation's rows only."""
        self._seen = self._documents_seen = f"added <= {generation} AND removed > {generation}"

    # --- LangChain's key-value interface ---

    def mget(self, keys: Sequence[str]) -> list[Chunk | None]:
        """Return the chunks with these ids, or None where an id is unknown."""
        found = {chunk.id: chunk for _, chunk in self._chunks_where("id IN ({marks})", keys)}
        return [found.get(key) for key in keys]

    def mset(self, key_value_pairs: Sequence[tuple[str, Chunk]]) -> None:
        """Add chunks, replacing those with the same ids; their vectors are still pending.

        Raises:
            ValueError: A key is not its chunk's id.
        """
        pairs = dict(key_value_pairs)
        for key, chunk in pairs.items():
            if key != chunk.id:
                raise ValueError(f"the key {key!r} is not the id of its chunk, {chunk.id!r}")
        with self.transaction():
            self.mdelete(list(pairs))
            self._insert(list(pairs.values()))

    def mdelete(self, keys: Sequence[str]) -> None:
        """Remove the chunks with these ids."""
        with self.transaction():
            self._execute(
                f"UPDATE chunks SET removed = {self.writes} WHERE id = ? AND removed = {FOR_EVER}",
                [(key,) for key in keys],
            )

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yield the ids of all chunks, or of those that begin with a prefix, in the order of ingestion."""
        for (chunk_id,) in self._query(f"SELECT CAST(id AS TEXT) FROM chunks WHERE {self._seen} ORDER BY number"):
            if prefix is None or chunk_id.startswith(prefix):
                yield chunk_id

    # --- reading ---

    def similar_ids(self, chunk_id: str, limit: int) -> list[str]:
        """Return ids spelled like an unknown one; see `Chunks.similar_ids`."""
        wanted = self.UNSTORABLE.sub("", chunk_id)
        near = list(dict.fromkeys(self.near_ids(wanted)))
        found = process.extract(
            wanted, near, processor=str.lower, scorer=fuzz.ratio, score_cutoff=_SIMILAR, limit=limit
        )
        return [match[0] for match in found] or near[:limit]

    def near_ids(self, chunk_id: str) -> list[str]:
        """Return ids to compare with an unknown one: those that share the most words, and the next by alphabet."""
        words = list(dict.fromkeys(_WORD.findall(chunk_id.lower())))[:_MAX_ID_WORDS]
        shared = " + ".join(["number * 0", *[f"CAST({self.FIND}(lower(id), ?) > 0 AS INTEGER)"] * len(words)])
        ids = "SELECT CAST(id AS TEXT) FROM chunks WHERE " + self._seen
        rows = [
            *self._query(f"{ids} ORDER BY {shared} DESC, number LIMIT {_IDS_COMPARED}", words),
            *self._query(f"{ids} AND id >= ? ORDER BY id LIMIT {_IDS_COMPARED}", (chunk_id,)),
            *self._query(f"{ids} AND id < ? ORDER BY id DESC LIMIT {_IDS_COMPARED}", (chunk_id,)),
        ]
        return [row[0] for row in rows]

    def numbered(self, numbers: Sequence[int]) -> dict[int, Chunk]:
        """Return the chunks with these numbers that this generation has."""
        return dict(self._chunks_where("chunks.number IN ({marks})", numbers))

    def ids(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the ids of the chunks with these numbers that this generation has."""
        return dict(self._each("SELECT number, CAST(id AS TEXT) FROM chunks WHERE number IN ({marks})", numbers))

    def numbers(self, keys: Sequence[str]) -> list[int]:
        """Return the numbers of the chunks with these ids, as far as they exist."""
        return [row[0] for row in self._each("SELECT number FROM chunks WHERE id IN ({marks})", keys)]

    def numbers_by_id(self) -> list[int]:
        """Return the numbers of all chunks, in the order of their ids."""
        return [row[0] for row in self._query(f"SELECT number FROM chunks WHERE {self._seen} ORDER BY id")]

    def texts(self) -> Iterator[tuple[int, str]]:
        """Yield number and text of every chunk, by number."""
        for row in self._pages(f"SELECT {_COLUMNS} FROM {_FULL} WHERE {self._seen}", size=2_000):
            with self._name_damage(f"the chunk {row[1]!r}"):
                text = read_text(row[1:12])
            yield row[0], text

    def neighbours(self, chunk: Chunk, reach: int) -> list[Chunk]:
        """Return a chunk and those up to `reach` before and after it in its document, in order."""
        if reach == 0:
            return [chunk]
        rows = self._query(
            f"SELECT {_COLUMNS} FROM {_FULL} WHERE document_id = ? AND ordinal BETWEEN ? AND ? AND {self._seen} "
            "ORDER BY ordinal",
            (chunk.document_id, chunk.ordinal - reach, chunk.ordinal + reach),
        )
        return [self._chunk(row) for row in rows]

    def chunks_in_documents(self, document_ids: Iterable[str]) -> dict[str, int]:
        """Return how many chunks start in each of some documents."""
        sql = "SELECT document_id, count(*) FROM chunks WHERE document_id IN ({marks})"
        counts = dict.fromkeys(document_ids, 0)
        return counts | dict(self._each(sql, list(counts), f"{self._seen} GROUP BY document_id"))

    def documents(self, *, after: str = "") -> Iterator[DocumentRecord]:
        """Yield all documents, by id, beginning after an id."""
        after = self.UNSTORABLE.sub("", after)
        select = f"SELECT {DOCUMENT_COLUMNS}, checksum FROM documents WHERE {self._documents_seen} AND id > ?"
        while rows := self._query(f"{select} ORDER BY id LIMIT ?", (after, _DOCUMENTS_PER_QUERY)):
            yield from map(self._record, rows)
            after = rows[-1][0]

    def document(self, document_id: str) -> DocumentRecord | None:
        """Return a document's entry, or None."""
        return next(self._records([document_id]), None)

    def fingerprints(self, document_ids: Sequence[str]) -> dict[str, str]:
        """Return the fingerprints of those documents that exist."""
        sql = "SELECT id, fingerprint FROM documents WHERE id IN ({marks})"
        return dict(self._each(sql, document_ids, self._documents_seen))

    def chunks_of(self, document_ids: Sequence[str]) -> list[Chunk]:
        """Return every chunk that holds a part of one of these documents, each once, in order."""
        parts = "chunks.number IN (SELECT number FROM members WHERE document_id IN ({marks}))"
        found = dict(self._chunks_where(parts, document_ids))
        return [found[number] for number in sorted(found)]

    def numbers_of(self, document_ids: Sequence[str]) -> list[int]:
        """Return the numbers of the chunks that hold a part of one of these documents, in order."""
        parts = "SELECT number FROM chunks WHERE number IN (SELECT number FROM members WHERE document_id IN ({marks}))"
        return sorted({row[0] for row in self._each(parts, document_ids)})

    def named(self, words: Sequence[str], limit: int) -> list[str]:
        """Return ids of documents whose id and title together hold all of these words, ignoring case, in order."""
        holds = " AND ".join([f"{self.FIND}(lower(id || ' ' || title), ?) > 0"] * len(words))
        rows = self._query(
            f"SELECT CAST(id AS TEXT) FROM documents WHERE {self._documents_seen} AND {holds or 'FALSE'} "
            "ORDER BY id LIMIT ?",
            (*(ascii_lower(self.UNSTORABLE.sub("", word)) for word in words), limit),
        )
        return [row[0] for row in rows]

    def in_shared_chunks(self, document_ids: Sequence[str]) -> set[str]:
        """Return which of these documents share a chunk with another one."""
        rows = self._each(
            "SELECT DISTINCT one.document_id FROM members one JOIN members other ON other.number = one.number "
            "AND other.document_id <> one.document_id JOIN chunks ON chunks.number = one.number "
            "WHERE one.document_id IN ({marks})",
            document_ids,
        )
        return {row[0] for row in rows}

    def counts(self) -> Counts:
        """Count documents, chunks, sentences and tokens."""
        documents = self._query(f"SELECT count(*) FROM documents WHERE {self._documents_seen}")[0][0]
        chunks, sentences, tokens = self._query(
            "SELECT count(*), CAST(coalesce(sum(embedded_sentences), 0) AS BIGINT), "
            "CAST(coalesce(sum(tokens), 0) AS BIGINT) FROM chunks "
            f"WHERE {self._seen}"
        )[0]
        return Counts(documents, chunks, sentences, tokens)

    def spellings(self, phrases: Sequence[Phrase], limit: int) -> list[list[str]]:
        """Return the spellings of phrases in the chunks; see `Words.spellings`."""
        return [[spelled for _, found in one for spelled in found] for one in self._spelled(phrases, limit)]

    # --- writing ---

    def add_documents(self, documents: Iterable[DocumentRecord]) -> None:
        """Add documents' entries."""
        with self.transaction():
            rows = [document_row(document) for document in documents]
            self._execute(
                f"INSERT INTO documents ({DOCUMENT_COLUMNS}, checksum, added) "
                f"VALUES (?, ?, ?, ?, ?, ?, ?, {self.writes})",
                [(*row, checksum(row)) for row in rows],
            )

    def set_sources(self, sources: Mapping[str, str]) -> None:
        """Record where documents were read from, by their ids."""
        with self.transaction():
            moved = [
                replace(r, source=sources[r.id]) for r in self._records(list(sources)) if r.source != sources[r.id]
            ]
            self._execute(
                f"UPDATE documents SET source = ?, checksum = ? WHERE id = ? AND {self._documents_seen}",
                [(record.source, checksum(document_row(record)), record.id) for record in moved],
            )

    def remove_documents(self, document_ids: Iterable[str]) -> None:
        """Remove documents' entries; the caller removes or rewrites their chunks."""
        with self.transaction():
            self._execute(
                f"UPDATE documents SET removed = {self.writes} WHERE id = ? AND removed = {FOR_EVER}",
                [(i,) for i in document_ids],
            )

    def claim(self, limit: int, after: int = -1) -> list[tuple[int, Chunk]]:
        """Return chunks whose vectors are not written yet, with their numbers, in order, starting after a number."""
        rows = self._query(
            f"SELECT {_COLUMNS} FROM {_FULL} WHERE pending AND {self._seen} AND chunks.number > ? "
            "ORDER BY chunks.number LIMIT ?",
            (after, limit),
        )
        return [(row[0], self._chunk(row)) for row in rows]

    def set_vectors(self, vectors: Iterable[tuple[int, Vectors]]) -> None:
        """Write the vectors of chunks; see `WritableChunks.set_vectors`."""
        rows = vector_rows(vectors)
        with self.transaction():
            self._execute(
                "INSERT INTO vectors (number, vectors, checksum) VALUES (?, ?, ?) "
                "ON CONFLICT (number) DO UPDATE SET vectors = excluded.vectors, checksum = excluded.checksum",
                rows,
            )
            self._execute("UPDATE chunks SET pending = FALSE WHERE number = ?", [(number,) for number, _, _ in rows])

    def add_embedded(self, chunks: Sequence[tuple[Chunk, Vectors]]) -> None:
        """Add chunks whose ids are new, together with their vectors."""
        with self.transaction():
            numbers = self._insert([chunk for chunk, _ in chunks])
            self.set_vectors(zip(numbers, (vectors for _, vectors in chunks), strict=True))

    def embedded_chunks(self, since: int = -1, *, after: int = -1) -> Iterator[tuple[int, Chunk, Vectors]]:
        """Yield number, chunk and vectors of the embedded chunks that were added after a generation, in order.

        Args:
            since: The generation.
            after: The number after which to start.
        """
        rows = self._pages(
            f"SELECT {_COLUMNS}, vectors FROM {_EMBEDDED} WHERE {self._seen} AND NOT pending AND added > {since}",
            size=200,
            after=after,
        )
        for row in rows:
            chunk = self._chunk(row)
            yield row[0], chunk, self._vectors(row[-1], row[0], len(chunk.embedded_texts()))

    def placed_vectors(self, numbers: Collection[int] | None = None) -> Iterator[tuple[int, list[int], Vectors]]:
        """Yield for every chunk, or for these, its number, the positions of its embedded sentences, and their vectors.

        Args:
            numbers: The chunks' numbers, or None for all.
        """
        select = f"SELECT chunks.number, sentences, vectors FROM {_EMBEDDED} WHERE "
        if numbers is None:
            rows = self._pages(f"{select} {self._seen} AND NOT pending", size=500)
        else:
            rows = self._each(f"{select} chunks.number IN ({{marks}}) AND NOT pending", list(numbers))
        for number, sentences, blob in rows:
            positions = self._positions(number, sentences)
            yield number, positions, self._vectors(blob, number, len(positions))

    def former_vectors(self, document_ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return the vectors of former versions of these documents' chunks, by the sentences' texts."""
        rows = self._each(
            f"SELECT {_COLUMNS}, vectors FROM {_EMBEDDED} WHERE removed < {FOR_EVER} "
            "AND chunks.number IN (SELECT number FROM members WHERE document_id IN ({marks}))",
            document_ids,
            "TRUE",
        )
        found: dict[str, NDArray[np.float32]] = {}
        for row in rows:
            chunk = self._chunk(row)
            texts = chunk.embedded_texts()
            found.update(zip(texts, self._vectors(row[-1], row[0], len(texts)), strict=True))
        return found

    def removed_positions(self, since: int) -> Iterator[tuple[int, list[int]]]:
        """Yield the chunks that a generation has and this one does not: number and positions of embedded sentences."""
        rows = self._query(
            f"SELECT chunks.number, sentences FROM {_FULL} "
            f"WHERE added <= {since} AND removed > {since} AND removed < {FOR_EVER}"
        )
        for number, sentences in rows:
            yield number, self._positions(number, sentences)

    def differs_from(self, generation: int) -> bool:
        """Return whether anything was added or removed after a generation."""
        return any(
            self._query(
                f"SELECT 1 FROM {table} WHERE added > {generation} "
                f"OR (removed > {generation} AND removed < {FOR_EVER}) LIMIT 1"
            )
            for table in ("documents", "chunks")
        )

    def state(self, name: str) -> str | None:
        """Return a value that was set, or None."""
        rows = self._query("SELECT value FROM state WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def set_state(self, name: str, value: str) -> None:
        """Store a value beside the documents."""
        with self.transaction():
            self._execute(
                "INSERT INTO state (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                [(name, value)],
            )

    def _records(self, document_ids: Sequence[str]) -> Iterator[DocumentRecord]:
        sql = f"SELECT {DOCUMENT_COLUMNS}, checksum FROM documents WHERE id IN ({{marks}})"
        yield from map(self._record, self._each(sql, document_ids, self._documents_seen))

    def _record(self, row: Sequence[Any]) -> DocumentRecord:
        with self._name_damage(f"the entry of the document {row[0]!r}"):
            return parse_document(check_row(row))

    def _chunk(self, row: Sequence[Any]) -> Chunk:
        with self._name_damage(f"the chunk {row[1]!r}"):
            return parse_chunk(check_row(row[1:12]))

    def _positions(self, number: int, sentences: str) -> list[int]:
        """Return the positions of a chunk's embedded sentences."""
        with self._name_damage(f"the chunk {number}"):
            return embedded_positions(sentences)

    def _vectors(self, blob: bytes, number: int, sentences: int) -> Vectors:
        with self._name_damage(f"the vectors of the chunk {number}"):
            return parse_vectors(blob, sentences)

    @contextmanager
    def _name_damage(self, what: str) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError) as error:
            raise self._damage(f"{what}: {error}") from error

    def _each(self, sql: str, values: Sequence[Any], seen: str | None = None) -> Iterator[tuple[Any, ...]]:
        """Run a query with `{marks}` in batches of values; by default on the chunks of this generation."""
        # A model may send half a surrogate pair: no id holds one, and SQLite refuses it.
        unique = [v for v in dict.fromkeys(values) if not (isinstance(v, str) and self.UNSTORABLE.search(v))]
        for start in range(0, len(unique), _VALUES_PER_QUERY):
            some = unique[start : start + _VALUES_PER_QUERY]
            filled = sql.replace("{marks}", ",".join("?" * len(some)))
            yield from self._query(f"{filled} AND {seen or self._seen}", some)

    def _chunks_where(self, condition: str, values: Sequence[Any]) -> Iterator[tuple[int, Chunk]]:
        for row in self._each(f"SELECT {_COLUMNS} FROM {_FULL} WHERE {condition}", values):
            yield row[0], self._chunk(row)

    def _pages(self, select: str, *, size: int, after: int = -1) -> Iterator[tuple[Any, ...]]:
        """Yield rows by number, page by page, so that no cursor stays open while the caller works."""
        while rows := self._query(f"{select} AND chunks.number > ? ORDER BY chunks.number LIMIT ?", (after, size)):
            yield from rows
            after = rows[-1][0]


def vector_rows(vectors: Iterable[tuple[int, Vectors]]) -> list[tuple[int, bytes, int]]:
    """Return the rows of table `vectors`, given numbers of chunks and the vectors of their sentences."""
    return [(number, blob, zlib.crc32(blob)) for number, array in vectors for blob in (vectors_blob(array),)]


def row_numbers(numbers: Collection[int]) -> NDArray[np.int64]:
    """Return row numbers as an array.

    Raises:
        IndexFormatError: One is impossible.
    """
    found = np.fromiter(numbers, np.int64, len(numbers))
    if found.min(initial=0) < 0 or found.max(initial=0) >= _MAX_NUMBER:
        raise IndexFormatError("a row has an impossible number")
    return found


def ascii_lower(text: str) -> str:
    """Return a text with its ASCII letters in lower case: what SQL's lower() does to text in byte order."""
    return text.translate(_LOWER)
