"""Documents and full chunks in SQL tables: what a folder's SQLite file and a PostgreSQL schema have in common.

Both have the tables `documents`, `chunks` (short fields, scanned often), `contents` (texts, by the chunks' numbers) and
`words` (each word of the corpus with its plain form). Rows are never changed, apart from a document's source.
"""

from __future__ import annotations

import json
import re
import string
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import TypeAdapter, ValidationError
from rapidfuzz import fuzz, process

from arag.errors import IndexFormatError
from arag.retrieval.storage import FORMAT_VERSION, DocumentRecord, EmbeddedDocument, Settings
from arag.retrieval.text import plain, words
from arag.retrieval.types import Chunk, Sentence, Table

DOCUMENT_COLUMNS = "id, title, source, metadata, fingerprint, chunks"
CHUNK_COLUMNS = "id, document_id, ordinal, tokens, first_page, last_page, sentences"
MAX_WORD_CHARACTERS = 100  # of a word that is suggested for a misspelt one

_CHUNK = (
    "chunks.number, chunks.id, chunks.document_id, chunks.ordinal, chunks.tokens, chunks.first_page, chunks.last_page, "
    "documents.title, documents.chunks, contents.text, contents.places"
)
_DOCUMENTS_PER_QUERY = 2_000
_CHUNKS_PER_QUERY = 200
_IDS_COMPARED = 500  # of each kind, with an unknown one
_MAX_ID_WORDS = 10
_SIMILAR = 60  # rapidfuzz ratio, 0 to 100
_WORD = re.compile(r"\w+")
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_SETTINGS = TypeAdapter(Settings)


class TableReader(ABC):
    """Reads documents and chunks from SQL tables.

    A subclass says how statements are run, in which `?` stands for a value.

    Attributes:
        chunks_table: The chunks that are there, as SQL for a FROM clause: the table, or a part of it.
        documents_table: The documents that are there, likewise.
    """

    FIND: ClassVar[str]  # the SQL function that finds a text in another one

    chunks_table = "chunks"
    documents_table = "documents"

    @abstractmethod
    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Texts that the tables cannot hold stand for texts that no row has."""

    @abstractmethod
    def among(self, column: str, values: Iterable[Any]) -> tuple[str, Any]:
        """Return the SQL that tells whether a column has one of some values, with one `?`, and the value for it."""

    @abstractmethod
    def damage(self, what: str) -> IndexFormatError:
        """Return the error that reports damage."""

    # --- chunks ---

    def mget(self, keys: Sequence[str]) -> list[Chunk | None]:
        """Return the chunks with these ids, or None where an id is unknown."""
        found = {chunk.id: chunk for chunk in self._chunks_where(*self.among("chunks.id", keys)).values()}
        return [found.get(key) for key in keys]

    def yield_keys(self, *, prefix: str = "") -> Iterator[str]:
        """Yield the ids of all chunks, or of those that begin with a prefix, in the order of ingestion."""
        for (chunk_id,) in self.query(f"SELECT id FROM {self._chunks} ORDER BY number"):
            if chunk_id.startswith(prefix):
                yield chunk_id

    def numbers(self, chunk_ids: Collection[str]) -> dict[str, int]:
        """Return the numbers of the chunks with these ids, as far as they exist."""
        condition, value = self.among("id", chunk_ids)
        return dict(self.query(f"SELECT id, number FROM {self._chunks} WHERE {condition}", value))

    def ids(self, numbers: Collection[int]) -> dict[int, str]:
        """Return the ids of the chunks with these numbers, as far as they exist."""
        condition, value = self.among("number", numbers)
        return dict(self.query(f"SELECT number, id FROM {self._chunks} WHERE {condition}", value))

    def numbered(self, numbers: Collection[int]) -> dict[int, Chunk]:
        """Return the chunks with these numbers, as far as they exist."""
        return self._chunks_where(*self.among("chunks.number", numbers))

    def neighbours(self, chunk: Chunk, reach: int) -> list[Chunk]:
        """Return a chunk and those up to `reach` before and after it in its document, in order."""
        found = self._chunks_where(
            "chunks.document_id = ? AND chunks.ordinal BETWEEN ? AND ?",
            chunk.document_id,
            chunk.ordinal - reach,
            chunk.ordinal + reach,
        )
        return sorted(found.values(), key=lambda other: other.ordinal)

    def chunks_of(self, document_ids: Collection[str]) -> list[Chunk]:
        """Return the chunks of documents, in the order of documents' ids and of the text."""
        found = self._chunks_where(*self.among("chunks.document_id", document_ids)).values()
        return sorted(found, key=lambda chunk: (chunk.document_id, chunk.ordinal))

    def similar_ids(self, chunk_id: str, limit: int) -> list[str]:
        """Return ids spelled like an unknown one, the most similar first; any ids if none is similar.

        It is compared with the ids that share the most words with it, and with the next ones by alphabet.
        """
        shared = " + ".join(f"CAST({self.FIND}(lower(id), ?) > 0 AS INTEGER)" for _ in self._id_words(chunk_id))
        near = [
            *self.query(
                f"SELECT id FROM {self._chunks} ORDER BY {f'{shared} DESC, ' if shared else ''}number LIMIT ?",
                *self._id_words(chunk_id),
                _IDS_COMPARED,
            ),
            *self.query(f"SELECT id FROM {self._chunks} WHERE id >= ? ORDER BY id LIMIT ?", chunk_id, _IDS_COMPARED),
            *self.query(
                f"SELECT id FROM {self._chunks} WHERE id < ? ORDER BY id DESC LIMIT ?", chunk_id, _IDS_COMPARED
            ),
        ]
        ids = list(dict.fromkeys(found for (found,) in near))
        similar = process.extract(
            chunk_id, ids, processor=str.lower, scorer=fuzz.ratio, score_cutoff=_SIMILAR, limit=limit
        )
        return [match[0] for match in similar] or ids[:limit]

    def chunk_texts(self) -> Iterator[tuple[int, str]]:
        """Yield number and text of every chunk, in the order of the chunks' ids."""
        numbers = [number for (number,) in self.query(f"SELECT number FROM {self._chunks} ORDER BY id")]
        for start in range(0, len(numbers), _CHUNKS_PER_QUERY):
            some = numbers[start : start + _CHUNKS_PER_QUERY]
            condition, value = self.among("number", some)
            texts = dict(self.query(f"SELECT number, text FROM contents WHERE {condition}", value))
            yield from ((number, texts[number]) for number in some)

    # --- documents ---

    def document(self, document_id: str) -> DocumentRecord | None:
        """Return a document's entry, or None."""
        rows = self.query(f"SELECT {DOCUMENT_COLUMNS} FROM {self._documents} WHERE id = ?", document_id)
        return DocumentRecord(*rows[0]) if rows else None

    def documents(self, *, after: str = "") -> Iterator[DocumentRecord]:
        """Yield all documents' entries, by id, beginning after an id."""
        select = f"SELECT {DOCUMENT_COLUMNS} FROM {self._documents} WHERE id > ? ORDER BY id LIMIT ?"
        while rows := self.query(select, after, _DOCUMENTS_PER_QUERY):
            yield from (DocumentRecord(*row) for row in rows)
            after = rows[-1][0]

    def fingerprints(self, document_ids: Collection[str]) -> dict[str, str]:
        """Return the fingerprints of those documents that exist, by id."""
        condition, value = self.among("id", document_ids)
        return dict(self.query(f"SELECT id, fingerprint FROM {self._documents} WHERE {condition}", value))

    def named(self, words: Sequence[str], limit: int) -> list[str]:
        """Return ids of documents whose id and title together hold all of these words, ignoring case, in order."""
        # Databases lower ASCII's letters only, PostgreSQL not those of values.
        lowered = [word.translate(_ASCII_LOWER) for word in words]
        holds = " AND ".join(f"{self.FIND}(lower(id || ' ' || title), ?) > 0" for _ in words) or "TRUE"
        rows = self.query(f"SELECT id FROM {self._documents} WHERE {holds} ORDER BY id LIMIT ?", *lowered, limit)
        return [document_id for (document_id,) in rows]

    def find_taken(self, documents: Sequence[EmbeddedDocument]) -> dict[str, str]:
        """Return the documents with a chunk whose id another document's chunk has: for each, that id."""
        condition, value = self.among("id", [chunk.id for document in documents for chunk in document.chunks])
        stored = self.query(f"SELECT id, document_id FROM {self._chunks} WHERE {condition}", value)
        taken: dict[str, str] = {}
        while True:
            going = {document.record.id for document in documents} - taken.keys()
            owners = {chunk_id: owner for chunk_id, owner in stored if owner not in going}
            known = len(taken)
            for document in documents:
                name = document.record.id
                others = [chunk.id for chunk in document.chunks if owners.get(chunk.id, name) != name]
                if name in going and others:
                    taken[name] = others[0]
                elif name in going:
                    owners |= dict.fromkeys((chunk.id for chunk in document.chunks), name)
            if len(taken) == known:  # one that is not stored keeps its old chunks, whose ids are then not free
                return taken

    # --- words ---

    def words_spelled(self, plain: Collection[str]) -> dict[str, list[str]]:
        """Return the words of the corpus, in lower case, that have these plain forms; the others are left out."""
        condition, value = self.among("plain", plain)
        found: dict[str, list[str]] = {}
        for form, word in self.query(f"SELECT plain, word FROM words WHERE {condition} ORDER BY plain, word", value):
            found.setdefault(form, []).append(word)
        return found

    def words_of_length(self, shortest: int, longest: int) -> list[str]:
        """Return the plain forms of words whose lengths lie between two bounds, both included, in order."""
        rows = self.query(
            "SELECT DISTINCT plain FROM words WHERE length(plain) BETWEEN ? AND ? ORDER BY plain", shortest, longest
        )
        return [form for (form,) in rows]

    # --- counts ---

    def counted(self, settings: Settings) -> Settings:
        """Return settings with the counts of what is there."""
        ((documents,),) = self.query(f"SELECT count(*) FROM {self._documents}")
        ((chunks, sentences, tokens),) = self.query(
            f"SELECT count(*), coalesce(sum(sentences), 0), coalesce(sum(tokens), 0) FROM {self._chunks}"
        )
        return replace(settings, documents=documents, chunks=chunks, sentences=int(sentences), tokens=int(tokens))

    @property
    def _chunks(self) -> str:
        return f"{self.chunks_table} AS chunks"

    @property
    def _documents(self) -> str:
        return f"{self.documents_table} AS documents"

    def _chunks_where(self, condition: str, *values: Any) -> dict[int, Chunk]:
        rows = self.query(
            f"SELECT {_CHUNK} FROM {self._chunks} JOIN contents ON contents.number = chunks.number "
            f"JOIN {self._documents} ON documents.id = chunks.document_id WHERE {condition}",
            *values,
        )
        return {row[0]: self._make_chunk(row) for row in rows}

    def _make_chunk(self, row: Sequence[Any]) -> Chunk:
        _, chunk_id, document_id, ordinal, tokens, first_page, last_page, title, parts, text, places = row
        try:
            sentences = parse_places(places)
        except (ValueError, TypeError, LookupError) as error:
            raise self.damage(f"the chunk {chunk_id!r}: {error}") from error
        pages = None if first_page is None else (first_page, last_page)
        return Chunk(chunk_id, document_id, ordinal, title, text, sentences, tokens, parts == 1, pages)

    def _id_words(self, chunk_id: str) -> list[str]:
        return list(dict.fromkeys(_WORD.findall(chunk_id.lower())))[:_MAX_ID_WORDS]


def document_row(record: DocumentRecord) -> tuple[str | int, ...]:
    """Return the values of DOCUMENT_COLUMNS."""
    return record.id, record.title, record.source, record.metadata, record.fingerprint, record.chunks


def chunk_row(chunk: Chunk) -> tuple[str | int | None, ...]:
    """Return the values of CHUNK_COLUMNS."""
    first_page, last_page = chunk.pages or (None, None)
    embedded = sum(sentence.embedded for sentence in chunk.sentences)
    return chunk.id, chunk.document_id, chunk.ordinal, chunk.tokens, first_page, last_page, embedded


def format_places(sentences: Sequence[Sentence]) -> str:
    """Return sentences as they are stored: JSON, with each heading and each table once."""
    headings = {heading: place for place, heading in enumerate(dict.fromkeys(s.heading for s in sentences))}
    tables = {table: place for place, table in enumerate(dict.fromkeys(s.table for s in sentences if s.table))}
    places = [
        [s.start, s.end, int(s.embedded), headings[s.heading], tables[s.table] if s.table else -1] for s in sentences
    ]
    value = {"sentences": places, "headings": list(headings), "tables": [[t.name, t.header] for t in tables]}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parse_places(text: str) -> tuple[Sentence, ...]:
    """Read what `format_places` wrote.

    Raises:
        ValueError, TypeError, LookupError: It is something else.
    """
    stored: Mapping[str, Any] = json.loads(text)
    headings, tables = stored["headings"], [Table(name, header) for name, header in stored["tables"]]
    return tuple(
        Sentence(start, end, bool(embedded), headings[heading], tables[table] if table >= 0 else None)
        for start, end, embedded, heading, table in stored["sentences"]
    )


def list_words(texts: Iterable[str]) -> set[tuple[str, str]]:
    """Return the rows of table `words` for texts: each word and its plain form."""
    found = {word for text in texts for word in words(text) if len(word) <= MAX_WORD_CHARACTERS}
    return {(word, plain(word)) for word in found}


def format_settings(settings: Settings) -> str:
    """Return settings as they are stored."""
    return _SETTINGS.dump_json(settings).decode()


def parse_settings(text: str, location: object) -> Settings:
    """Read what `format_settings` wrote.

    Args:
        text: The text.
        location: The index, for messages.

    Raises:
        IndexFormatError: It is damaged, or of another format.
    """
    try:
        settings = _SETTINGS.validate_json(text)
    except ValidationError as error:
        raise IndexFormatError(
            f"the settings of the index in {location} are damaged or of another format: ingest the documents again"
        ) from error
    if settings.version != FORMAT_VERSION:
        raise IndexFormatError(
            f"the index in {location} has format {settings.version}, and this version of arag reads format "
            f"{FORMAT_VERSION}: ingest the documents again"
        )
    return settings
