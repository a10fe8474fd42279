"""Reads documents, chunks and vectors with SQL that SQLite and PostgreSQL have in common.

Both have the tables `documents`, `chunks` (short fields, which are scanned often), `contents` (texts) and `words` (with
their plain forms). A chunk has a row id as well as an id: the row id names one version of the chunk, and is never used
again.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from arag.errors import IndexFormatError
from arag.retrieval.storage.fingerprints import HASH_LENGTH
from arag.retrieval.storage.metadata import STORED_NAME, parse_fields, parse_reading
from arag.retrieval.storage.records import MAX_COUNT, ChunkText, ChunkVectors, DocumentRecord, Reading, Settings
from arag.retrieval.storage.rows import DOCUMENT_COLUMNS, parse_places, parse_spans
from arag.retrieval.types import Chunk
from arag.text.languages import SAMPLE_CHARACTERS, is_english
from arag.text.normalise import shorten

_T = TypeVar("_T")

DOCUMENT_NAME = "id || ' ' || title"  # SQL for the name that a document is found by
FILE_NAME = "replace(source, rtrim(source, replace(source, '/', '')), '')"  # SQL for `source` after its last slash
_UNSTORABLE = re.compile("[\ud800-\udfff\0]")  # characters that no table holds; a model may send half a surrogate pair

_CHUNK = (
    "chunks.number, chunks.id, chunks.document_id, chunks.ordinal, chunks.tokens, chunks.first_page, chunks.last_page, "
    "chunks.sentences, documents.title, documents.chunks, contents.text, contents.places"
)
_CHUNK_TEXT = (
    "chunks.number, chunks.id, chunks.document_id, chunks.ordinal, documents.title, contents.text, contents.places"
)
# Larger batches take more memory, and smaller ones more queries.
_DOCUMENTS_PER_QUERY = 2_000
_ROWS_LOOKED_UP = 10_000  # for more, it is faster to read all rows
_MAX_SHOWN = 100  # characters of an id in a message


class TableReader(ABC):
    """Reads documents, chunks and vectors. The SQL has a `?` for each value.

    Every method may raise an IndexFormatError (the stored data is damaged) or a StorageError (it cannot be read).
    """

    LOWER: ClassVar[str]  # SQL for a text, `{}`, in lower case
    HOLDS: ClassVar[str]  # SQL for whether a text in lower case, `{}`, holds another one, `?`

    settings: Settings  # with the counts of the rows that this reader sees
    chunks_table = "chunks"  # FROM clause of the visible rows: the table, or a subquery with its name
    documents_table = "documents"  # FROM clause of the visible rows

    @abstractmethod
    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query. A text that no table can hold matches no row."""

    @abstractmethod
    def among(self, column: str, values: Iterable[Any]) -> tuple[str, Any]:
        """Return the SQL for whether a column has one of some values, with one `?`, and the value for it."""

    @abstractmethod
    def damage(self, what: str) -> IndexFormatError:
        """Return the error that reports damage."""

    @abstractmethod
    def vectors(self, row_ids: Collection[int]) -> Iterator[ChunkVectors]:
        """Yield the vectors of chunks' embedded sentences."""

    def query_among(self, select: str, column: str, values: Iterable[Any]) -> list[tuple[Any, ...]]:
        """Return the rows whose column has one of some values, for a query without its WHERE clause."""
        wanted = list(values)
        if not wanted:
            return []
        condition, value = self.among(column, wanted)
        return self.query(f"{select} WHERE {condition}", value)

    # --- chunks; by id, with the names of LangChain's key-value stores ---

    def mget(self, keys: Sequence[str]) -> list[Chunk | None]:
        """Return the chunks with these ids, or None where an id is unknown."""
        chunks = {chunk.id: chunk for chunk in self._chunks_among("chunks.id", keys).values()}
        return [chunks.get(key) for key in keys]

    def yield_keys(self) -> Iterator[str]:
        """Yield the ids of all chunks, in the order of ingestion."""
        for (chunk_id,) in self.query(f"SELECT id FROM {self.chunks_table} ORDER BY number"):
            yield chunk_id

    def row_ids(self, chunk_ids: Collection[str]) -> dict[str, int]:
        """Return the row ids of the chunks with these ids, in this order; unknown ids are left out."""
        row_ids = dict(self.query_among(f"SELECT id, number FROM {self.chunks_table}", "id", chunk_ids))
        return {chunk_id: row_ids[chunk_id] for chunk_id in chunk_ids if chunk_id in row_ids}

    def ordered_row_ids(self) -> list[int]:
        """Return the row ids of all chunks, in the order of their ids."""
        return [row_id for (row_id,) in self.query(f"SELECT number FROM {self.chunks_table} ORDER BY id")]

    def in_text_order(self, row_ids: Collection[int], places: Mapping[str, int] | None = None) -> list[int]:
        """Return the row ids that exist among some, in the order of documents and of the text.

        Args:
            row_ids: The row ids.
            places: The documents' order, by their ids; by default that of the ids.
        """
        if len(row_ids) > _ROWS_LOOKED_UP and places is None:
            wanted = set(row_ids)
            rows = self.query(f"SELECT number FROM {self.chunks_table} ORDER BY document_id, ordinal")
            return [row_id for (row_id,) in rows if row_id in wanted]
        rows = self.query_among(f"SELECT document_id, ordinal, number FROM {self.chunks_table}", "number", row_ids)
        if places is not None:
            rows = [(places.get(document_id, 0), ordinal, row_id) for document_id, ordinal, row_id in rows]
        return [row_id for _, _, row_id in sorted(rows)]

    def text_order(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the row ids of all chunks in the order of documents and of the text, and their documents' numbers."""
        rows = self.query(
            "SELECT number, dense_rank() OVER (ORDER BY document_id) AS document "
            f"FROM {self.chunks_table} ORDER BY document_id, ordinal"
        )
        columns = np.array(rows, dtype=np.int64).reshape(-1, 2)
        return columns[:, 0].copy(), columns[:, 1].copy()

    def first_row_ids(self, document_ids: Collection[str]) -> set[int]:
        """Return the row ids of documents' first chunks."""
        rows = self.query_among(f"SELECT number, ordinal FROM {self.chunks_table}", "document_id", document_ids)
        return {row_id for row_id, ordinal in rows if ordinal == 0}

    def ids(self, row_ids: Collection[int]) -> dict[int, str]:
        """Return the ids of the chunks with these row ids; unknown ones are left out."""
        return dict(self.query_among(f"SELECT number, id FROM {self.chunks_table}", "number", row_ids))

    def chunks_by_row_id(self, row_ids: Collection[int]) -> dict[int, Chunk]:
        """Return the chunks with these row ids, which exist, in this order."""
        return self._take_all(self._chunks_among("chunks.number", row_ids), row_ids)

    def texts_by_row_id(self, row_ids: Collection[int]) -> list[ChunkText]:
        """Return the texts of chunks, which exist, in this order; it is faster than to read the chunks."""
        texts = {text.row_id: text for text in self.texts_among(row_ids)}
        return list(self._take_all(texts, row_ids).values())

    def texts_among(self, row_ids: Collection[int]) -> list[ChunkText]:
        """Return the texts of the chunks that exist among some, in the order of the row ids."""
        rows = self.query_among(self._select(_CHUNK_TEXT), "chunks.number", row_ids)
        return sorted(self._make_chunk_texts(rows), key=attrgetter("row_id"))

    def neighbours(self, chunk: Chunk, reach: int) -> list[Chunk]:
        """Return a chunk and those up to `reach` before and after it in its document, in order."""
        rows = self.query(
            f"{self._select_chunks()} "
            "WHERE chunks.document_id = ? AND chunks.ordinal BETWEEN ? AND ? ORDER BY chunks.ordinal",
            chunk.document_id,
            chunk.ordinal - reach,
            chunk.ordinal + reach,
        )
        return [self._make_chunk(row) for row in rows]

    def chunks_of(self, document_ids: Collection[str]) -> list[Chunk]:
        """Return the chunks of documents, in the order of documents' ids and of the text."""
        chunks = self._chunks_among("chunks.document_id", document_ids).values()
        return sorted(chunks, key=lambda chunk: (chunk.document_id, chunk.ordinal))

    def nearby_ids(self, chunk_id: str, limit: int) -> list[str]:
        """Return the ids that come next after an unknown one in the alphabet, or else the first ones."""
        select = f"SELECT id FROM {self.chunks_table}"
        end = "ORDER BY id LIMIT ?"
        rows = self.query(f"{select} WHERE id >= ? {end}", chunk_id, limit)
        if not rows:
            rows = self.query(f"{select} {end}", limit)
        return [near_id for (near_id,) in rows]

    # --- documents ---

    def document(self, document_id: str) -> DocumentRecord | None:
        """Return a document's entry, or None."""
        return self.entries([document_id]).get(document_id)

    def entries(self, document_ids: Collection[str]) -> dict[str, DocumentRecord]:
        """Return the entries of those documents that exist, by id, in this order."""
        rows = self.query_among(f"SELECT {DOCUMENT_COLUMNS} FROM {self.documents_table}", "id", document_ids)
        entries = {row[0]: self._make_record(row) for row in rows}
        return {document_id: entries[document_id] for document_id in document_ids if document_id in entries}

    def documents(self, *, after: str = "") -> Iterator[DocumentRecord]:
        """Yield all documents' entries, by id, beginning after an id."""
        select = f"SELECT {DOCUMENT_COLUMNS} FROM {self.documents_table} WHERE id > ? ORDER BY id LIMIT ?"
        while rows := self.query(select, after, _DOCUMENTS_PER_QUERY):
            for row in rows:
                yield self._make_record(row)
            after = rows[-1][0]

    def document_ids(self) -> list[str]:
        """Return the ids of all documents, in order."""
        return [document_id for (document_id,) in self.query(f"SELECT id FROM {self.documents_table} ORDER BY id")]

    def files(self) -> dict[str, str]:
        """Return the absolute paths of files by the ids that were made from their paths, in the order of ids."""
        select = f"SELECT id, source FROM {self.documents_table} WHERE length(fingerprint) > ? ORDER BY id"
        return dict(self.query(select, 2 * HASH_LENGTH))

    def titles(self) -> Iterator[tuple[str, ...]]:
        """Yield id and title of all documents, in the order of ids."""
        after = ""
        select = f"SELECT id, title FROM {self.documents_table} WHERE id > ? ORDER BY id LIMIT ?"
        while rows := self.query(select, after, _DOCUMENTS_PER_QUERY):
            yield from rows
            after = rows[-1][0]

    def metadata(self, record: DocumentRecord) -> dict[str, Any]:
        """Return the further fields of a document."""
        try:
            fields = parse_fields(record.metadata)
            to_json(fields)  # refuses values that no ingestion lets through: too deep, or half a surrogate pair
        except (ValueError, RecursionError) as error:
            raise self.damage(f"the metadata of {shown(record.id)}: {error}") from error
        if not isinstance(fields, dict):
            raise self.damage(f"the metadata of {shown(record.id)} is not an object")
        return fields

    def reading(self, record: DocumentRecord) -> Reading:
        """Return how a document's file was read."""
        try:
            return parse_reading(record.metadata)
        except (ValueError, RecursionError) as error:
            raise self.damage(f"the metadata of {shown(record.id)}: {error}") from error

    def incomplete(self) -> dict[str, tuple[str, ...]]:
        """Return the parts of files that were not read, by the ids of their documents, in order."""
        rows = self.query(
            f"SELECT {DOCUMENT_COLUMNS} FROM {self.documents_table} WHERE {self.HOLDS.format('metadata')} ORDER BY id",
            STORED_NAME,
        )
        left_out: dict[str, tuple[str, ...]] = {}
        for row in rows:
            record = self._make_record(row)
            parts = self.reading(record).left_out
            if parts:
                left_out[record.id] = parts
        return left_out

    def fingerprints(self, document_ids: Collection[str]) -> dict[str, str]:
        """Return the fingerprints of those documents that exist, by id."""
        return dict(self.query_among(f"SELECT id, fingerprint FROM {self.documents_table}", "id", document_ids))

    def count_other_languages(self) -> int:
        """Return how many documents are not in English."""
        select = (
            f"SELECT chunks.number, substr(text, 1, {SAMPLE_CHARACTERS}) FROM {self.chunks_table} JOIN contents "
            "ON contents.number = chunks.number WHERE ordinal = 0 AND chunks.number > ? ORDER BY chunks.number LIMIT ?"
        )
        others = 0
        after = 0
        while rows := self.query(select, after, _DOCUMENTS_PER_QUERY):
            for _, text in rows:
                if not is_english(text):
                    others += 1
            after = rows[-1][0]
        return others

    def counted(self, settings: Settings) -> Settings:
        """Return settings with the counts of the rows that this reader sees."""
        ((documents,),) = self.query(f"SELECT count(*) FROM {self.documents_table}")
        ((chunks, sentences, tokens),) = self.query(
            f"SELECT count(*), coalesce(sum(sentences), 0), coalesce(sum(tokens), 0) FROM {self.chunks_table}"
        )
        return replace(
            settings,
            documents=documents,
            chunks=chunks,
            sentences=int(sentences),
            tokens=int(tokens),
        )

    def _chunks_among(self, column: str, values: Iterable[Any]) -> dict[int, Chunk]:
        rows = self.query_among(self._select_chunks(), column, values)
        return {row[0]: self._make_chunk(row) for row in rows}

    def _select_chunks(self) -> str:
        return self._select(_CHUNK)

    def _select(self, columns: str) -> str:
        return (
            f"SELECT {columns} FROM {self.chunks_table} JOIN contents ON contents.number = chunks.number "
            f"JOIN {self.documents_table} ON documents.id = chunks.document_id"
        )

    def _make_chunk(self, row: Sequence[Any]) -> Chunk:
        _, chunk_id, document_id, ordinal, tokens, first, last, embedded, title, chunks, text, places = row
        try:
            sentences = parse_places(places, len(text))
        except (ValueError, LookupError) as error:
            raise self.damage(f"the chunk {shown(chunk_id)}: {error}") from error
        fault = ""
        if not all(0 <= number <= MAX_COUNT for number in (ordinal, tokens, chunks)):
            fault = "its numbers are not possible"
        elif _UNSTORABLE.search(chunk_id):
            fault = "no id has such characters"
        elif (first is None) != (last is None):
            fault = "it has a first page or a last one, and not both"
        elif sum(sentence.embedded for sentence in sentences) != embedded:
            fault = "it has more or fewer sentences than were embedded"
        if fault:
            raise self.damage(f"the chunk {shown(chunk_id)}: {fault}")
        return Chunk(
            id=chunk_id,
            document_id=document_id,
            ordinal=ordinal,
            title=title,
            text=text,
            sentences=sentences,
            tokens=tokens,
            parts=chunks,
            pages=None if first is None else (first, last),
        )

    def _make_chunk_texts(self, rows: Sequence[Sequence[Any]]) -> Iterator[ChunkText]:
        lengths = [len(text) for *_, text, _ in rows]
        try:
            spans_by_row = parse_spans([places for *_, places in rows], lengths)
        except ValueError as error:
            if len(rows) > 1:  # find the damaged one
                for row in rows:
                    yield from self._make_chunk_texts([row])
                return
            raise self.damage(f"the chunk {shown(rows[0][1])}: {error}") from error
        for (row_id, chunk_id, document_id, ordinal, title, text, _), spans in zip(rows, spans_by_row, strict=True):
            yield ChunkText(
                row_id=row_id,
                id=chunk_id,
                document_id=document_id,
                ordinal=ordinal,
                title=title,
                text=text,
                starts=spans.starts,
                ends=spans.ends,
            )

    def _take_all(self, found: Mapping[int, _T], row_ids: Iterable[int]) -> dict[int, _T]:
        """Return what was found for each row id, in this order."""
        for row_id in row_ids:
            if row_id not in found:
                raise self.damage(f"chunk {row_id} has no text or no document")
        return {row_id: found[row_id] for row_id in row_ids}

    def _make_record(self, row: Sequence[Any]) -> DocumentRecord:
        record = DocumentRecord(*row)
        if not 0 <= record.chunks <= MAX_COUNT or _UNSTORABLE.search(record.id):
            raise self.damage(f"the document {shown(record.id)} has an impossible id, or number of chunks")
        return record


def replace_unstorable(values: Iterable[Any], substitute: str) -> list[Any]:
    """Return values with a substitute for each character that no table holds: such texts match no row."""
    return [_UNSTORABLE.sub(substitute, value) if isinstance(value, str) else value for value in values]


def storable(values: Iterable[Any]) -> list[Any]:
    """Return values without the texts that no table holds."""
    kept = []
    for value in values:
        is_unstorable = isinstance(value, str) and _UNSTORABLE.search(value)
        if not is_unstorable:
            kept.append(value)
    return kept


def shown(name: str) -> str:
    """Return an id shortened for a message: the id of a foreign index may be very long."""
    return shorten(name, _MAX_SHOWN)
