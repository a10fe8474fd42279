"""What an index needs from the place that it is stored in: a folder (`store`) or PostgreSQL (`postgres`).

An index is published as a whole. A publication has a random token; what it holds never changes. A chunk has a number as
well as an id: the number names one version of the chunk, and is never used again. Both places have the SQL tables
`documents`, `chunks` (short fields, scanned often), `contents` (texts) and `words` (with their plain forms).
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import to_json

from arag.errors import IndexFormatError
from arag.retrieval.storage.rows import DOCUMENT_COLUMNS, parse_places
from arag.retrieval.types import Chunk
from arag.text.normalise import count, shorten
from arag.text.scripts import SAMPLE_CHARACTERS, is_latin

Vectors = NDArray[np.float32]
ChunkVectors = tuple[int, list[int], Vectors]  # a chunk's number, positions of its sentences, their vectors

FORMAT_VERSION = 6
Ranking = Literal["paper", "bm25"]

_CHUNK = (
    "chunks.number, chunks.id, chunks.document_id, chunks.ordinal, chunks.tokens, chunks.first_page, chunks.last_page, "
    "chunks.sentences, documents.title, documents.chunks, contents.text, contents.places"
)
NAME = "id || ' ' || title"  # of a document
_DOCUMENTS_PER_QUERY = 2_000
_CHUNKS_PER_QUERY = 200
_MAX_NAMED = 10  # documents in a message
_MAX_SHOWN = 100  # characters of an id
UNSTORABLE = re.compile("[\ud800-\udfff\0]")  # what no text in the tables holds: a model may send half a pair

_MAX_COUNT = 1 << 53
_Count = Annotated[int, Field(ge=0, le=_MAX_COUNT)]
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Settings:
    """What an index was made with, and what it holds."""

    embedder: str  # name of the embedder, as given to `load_embedder`
    dimension: Annotated[int, Field(ge=1, le=1 << 20)]  # length of its vectors
    chunk_tokens: Annotated[int, Field(ge=1, le=_MAX_COUNT)]  # size that chunks are cut to, in tokens
    tokenizer: str  # what counted the tokens; several names if it was not the same for all documents
    token: Annotated[str, Field(pattern=r"^([0-9a-f]{32})?$")] = ""  # the publication; empty before the first one
    documents: _Count = 0
    chunks: _Count = 0
    sentences: _Count = 0  # with a vector
    tokens: _Count = 0  # tokens of all chunks
    version: Annotated[int, Field(ge=FORMAT_VERSION, le=FORMAT_VERSION)] = FORMAT_VERSION

    def to_json(self) -> str:
        """Return the settings as they are stored."""
        return _SETTINGS.dump_json(self).decode()

    @staticmethod
    def from_json(text: str, location: object) -> Settings:
        """Read the settings of the index in a location."""
        try:
            return _SETTINGS.validate_json(text)
        except ValidationError as error:
            raise IndexFormatError(
                f"the settings of the index in {location} are damaged or of another format: ingest the documents again"
            ) from error

    @property
    def vector_bytes(self) -> int:
        """The memory that all vectors take up in float32."""
        return 4 * self.sentences * self.dimension


_SETTINGS = TypeAdapter(Settings)


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document's entry; its text is in its chunks."""

    id: str
    title: str  # its title, or an empty string
    source: str  # where it was read from
    metadata: str  # further fields, as a JSON object
    fingerprint: str  # changes when the document, or a setting that its chunks depend on, changes
    chunks: int  # how many chunks it has


@dataclass(frozen=True, slots=True)
class EmbeddedDocument:
    """A document as it is stored."""

    record: DocumentRecord
    chunks: Sequence[Chunk]
    vectors: Sequence[Vectors]  # of each chunk's embedded sentences: of length one, shape (sentences, dimension)


@dataclass(frozen=True, slots=True)
class RankedChunk:
    """A chunk and its score."""

    number: int
    score: float  # Score(c, K), or the coverage
    counts: dict[str, int]  # occurrences of each keyword that the chunk holds


@dataclass(frozen=True, slots=True)
class KeywordRanking:
    """Chunks ranked by keywords."""

    chunks: list[RankedChunk]  # the best chunks, best first
    document_frequency: dict[str, int]  # for each keyword, how many chunks hold it
    as_word: dict[str, int]  # likewise, as a word of its own; only for a ranking by coverage
    total: int  # how many chunks hold any keyword


@dataclass(frozen=True, slots=True)
class SentenceMatch:
    """A sentence found by its vector."""

    chunk: int  # its chunk's number
    position: int  # its place among the chunk's sentences
    similarity: float  # cosine similarity to the query, -1 to 1


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that is wrong with an index."""

    part: str  # the file, folder or table
    what: str  # what is wrong with it
    repairable: bool = True  # whether it is derived from the documents, so that `verify --repair` makes it again

    def __str__(self) -> str:
        return f"{self.part}: {self.what}"


class TableReader(ABC):
    """Reads documents, chunks and vectors. The SQL has a `?` for each value.

    Every method may raise an IndexFormatError (what is stored is damaged) or a StorageError (it cannot be read).
    """

    LOWER: ClassVar[str]  # the SQL for a text, `{}`, in lower case
    HOLDS: ClassVar[str]  # the SQL that tells whether a text in lower case, `{}`, holds another one, `?`

    settings: Settings  # with the counts of what is there
    chunks_table = "chunks"  # those that are there, as SQL for a FROM clause: the table, or a part of it with its name
    documents_table = "documents"  # likewise

    @abstractmethod
    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Texts that the tables cannot hold stand for texts that no row has."""

    @abstractmethod
    def among(self, column: str, values: Iterable[Any]) -> tuple[str, Any]:
        """Return the SQL that tells whether a column has one of some values, with one `?`, and the value for it."""

    @abstractmethod
    def damage(self, what: str) -> IndexFormatError:
        """Return the error that reports damage."""

    @abstractmethod
    def vectors(self, numbers: Collection[int]) -> Iterator[ChunkVectors]:
        """Yield the vectors of chunks' embedded sentences."""

    def query_among(self, select: str, column: str, values: Iterable[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a query, given without its WHERE clause, whose column has one of some values."""
        some = list(values)
        condition, value = self.among(column, some)
        return self.query(f"{select} WHERE {condition}", value) if some else []

    # --- chunks; by id, with the names of LangChain's key-value stores ---

    def mget(self, keys: Sequence[str]) -> list[Chunk | None]:
        """Return the chunks with these ids, or None where an id is unknown."""
        chunks = {chunk.id: chunk for chunk in self._chunks_among("chunks.id", keys).values()}
        return [chunks.get(key) for key in keys]

    def yield_keys(self) -> Iterator[str]:
        """Yield the ids of all chunks, in the order of ingestion."""
        yield from (chunk_id for (chunk_id,) in self.query(f"SELECT id FROM {self.chunks_table} ORDER BY number"))

    def numbers(self, chunk_ids: Collection[str]) -> dict[str, int]:
        """Return the numbers of the chunks with these ids, as far as they exist, in this order."""
        numbers = dict(self.query_among(f"SELECT id, number FROM {self.chunks_table}", "id", chunk_ids))
        return {chunk_id: numbers[chunk_id] for chunk_id in chunk_ids if chunk_id in numbers}

    def numbers_by_id(self) -> list[int]:
        """Return the numbers of all chunks, in the order of their ids."""
        return [number for (number,) in self.query(f"SELECT number FROM {self.chunks_table} ORDER BY id")]

    def ids(self, numbers: Collection[int]) -> dict[int, str]:
        """Return the ids of the chunks with these numbers, as far as they exist."""
        return dict(self.query_among(f"SELECT number, id FROM {self.chunks_table}", "number", numbers))

    def numbered(self, numbers: Collection[int]) -> dict[int, Chunk]:
        """Return the chunks with these numbers, which exist, in this order."""
        chunks = self._chunks_among("chunks.number", numbers)
        for number in numbers:
            if number not in chunks:
                raise self.damage(f"chunk {number} has no text or no document")
        return {number: chunks[number] for number in numbers}

    def neighbours(self, chunk: Chunk, reach: int) -> list[Chunk]:
        """Return a chunk and those up to `reach` before and after it in its document, in order."""
        condition = "chunks.document_id = ? AND chunks.ordinal BETWEEN ? AND ? ORDER BY chunks.ordinal"
        place = chunk.document_id, chunk.ordinal - reach, chunk.ordinal + reach
        return [self._make_chunk(row) for row in self.query(f"{self._select_chunks()} WHERE {condition}", *place)]

    def chunks_of(self, document_ids: Collection[str]) -> list[Chunk]:
        """Return the chunks of documents, in the order of documents' ids and of the text."""
        chunks = self._chunks_among("chunks.document_id", document_ids).values()
        return sorted(chunks, key=lambda chunk: (chunk.document_id, chunk.ordinal))

    def nearby_ids(self, chunk_id: str, limit: int) -> list[str]:
        """Return the ids that come next after an unknown one in the alphabet, or else the first ones."""
        select, last = f"SELECT id FROM {self.chunks_table}", "ORDER BY id LIMIT ?"
        rows = self.query(f"{select} WHERE id >= ? {last}", chunk_id, limit) or self.query(f"{select} {last}", limit)
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
            yield from map(self._make_record, rows)
            after = rows[-1][0]

    def metadata(self, record: DocumentRecord) -> dict[str, Any]:
        """Return the further fields of a document."""
        try:
            fields = json.loads(record.metadata)
            to_json(fields)  # refuses what no ingestion lets through: too deep, or half a character
        except (ValueError, RecursionError) as error:
            raise self.damage(f"the metadata of {_shown(record.id)}: {error}") from error
        if not isinstance(fields, dict):
            raise self.damage(f"the metadata of {_shown(record.id)} is not an object")
        return fields

    def fingerprints(self, document_ids: Collection[str]) -> dict[str, str]:
        """Return the fingerprints of those documents that exist, by id."""
        return dict(self.query_among(f"SELECT id, fingerprint FROM {self.documents_table}", "id", document_ids))

    def count_other_scripts(self) -> int:
        """Return how many documents begin in another script than Latin."""
        select = (
            f"SELECT chunks.number, substr(text, 1, {SAMPLE_CHARACTERS}) FROM {self.chunks_table} JOIN contents "
            "ON contents.number = chunks.number WHERE ordinal = 0 AND chunks.number > ? ORDER BY chunks.number LIMIT ?"
        )
        others = after = 0
        while rows := self.query(select, after, _DOCUMENTS_PER_QUERY):
            others += sum(not is_latin(text) for _, text in rows)
            after = rows[-1][0]
        return others

    def counted(self, settings: Settings) -> Settings:
        """Return settings with the counts of what is there."""
        ((documents,),) = self.query(f"SELECT count(*) FROM {self.documents_table}")
        ((chunks, sentences, tokens),) = self.query(
            f"SELECT count(*), coalesce(sum(sentences), 0), coalesce(sum(tokens), 0) FROM {self.chunks_table}"
        )
        return replace(settings, documents=documents, chunks=chunks, sentences=int(sentences), tokens=int(tokens))

    def check_documents(self) -> None:
        """Read all documents, chunks and vectors, which everything else is derived from.

        Raises:
            IndexFormatError: Some are damaged, or documents lack a part.
        """
        counts = dict(self.query(f"SELECT document_id, count(*) FROM {self.chunks_table} GROUP BY document_id"))
        lost = {r.id for r in self.documents() if counts.pop(r.id, 0) != r.chunks or not self._has_metadata(r)}
        lost |= counts.keys()  # chunks without a document
        documents = dict(self.query(f"SELECT number, document_id FROM {self.chunks_table}"))
        for some in batches(documents, _CHUNKS_PER_QUERY):
            chunks = self.numbered(some)
            stored = {number: positions for number, positions, v in self.vectors(some) if np.isfinite(v).all()}
            lost |= {documents[n] for n in some if chunks[n].embedded_positions() != stored.get(n)}
        if lost:
            named = ", ".join(map(_shown, sorted(lost)[:_MAX_NAMED]))
            raise self.damage(f"{count(len(lost), 'document')} lost a part: {named}")

    def _chunks_among(self, column: str, values: Iterable[Any]) -> dict[int, Chunk]:
        return {row[0]: self._make_chunk(row) for row in self.query_among(self._select_chunks(), column, values)}

    def _select_chunks(self) -> str:
        return (
            f"SELECT {_CHUNK} FROM {self.chunks_table} JOIN contents ON contents.number = chunks.number "
            f"JOIN {self.documents_table} ON documents.id = chunks.document_id"
        )

    def _make_chunk(self, row: Sequence[Any]) -> Chunk:
        _, chunk_id, document_id, ordinal, tokens, first, last, embedded, title, chunks, text, places = row
        try:
            sentences = parse_places(places, len(text))
            if not all(0 <= number <= _MAX_COUNT for number in (ordinal, tokens, chunks)):
                raise ValueError("its numbers are not possible")  # noqa: TRY301
            if (first is None) != (last is None):
                raise ValueError("it has a first page or a last one, and not both")  # noqa: TRY301
            if sum(sentence.embedded for sentence in sentences) != embedded:
                raise ValueError("it has more or fewer sentences than were embedded")  # noqa: TRY301
        except (ValueError, LookupError) as error:
            raise self.damage(f"the chunk {_shown(chunk_id)}: {error}") from error
        pages = None if first is None else (first, last)
        return Chunk(chunk_id, document_id, ordinal, title, text, sentences, tokens, chunks, pages)

    def _make_record(self, row: Sequence[Any]) -> DocumentRecord:
        record = DocumentRecord(*row)
        if not 0 <= record.chunks <= _MAX_COUNT:
            raise self.damage(f"the document {_shown(record.id)} has {record.chunks} chunks")
        return record

    def _has_metadata(self, record: DocumentRecord) -> bool:
        try:
            self.metadata(record)
        except IndexFormatError:
            return False
        return True


class View(TableReader):
    """One publication of an index, whole or limited to some documents: everything else is as if it were not there.

    Several threads may use it at once. What a kind of search needs is opened at its first use. A StorageError may also
    mean that the publication was replaced by a newer one, which is then to be opened.
    """

    @abstractmethod
    def close(self) -> None:
        """Release what is open."""

    @abstractmethod
    def limited_to(self, document_ids: Collection[str]) -> View:
        """Return this view limited to some of its documents; it shares what is open."""

    def named(self, words: Sequence[str], limit: int) -> list[str]:
        """Return ids of documents whose id and title together hold all of these words, in lower case, in order."""
        return self._find_named(NAME, words, limit)

    def of_files_named(self, words: Sequence[str], limit: int) -> list[str]:
        """Return, likewise, ids of documents by their files' names: a file that was renamed keeps its id."""
        return self._find_named("replace(source, rtrim(source, replace(source, '/', '')), '')", words, limit)

    def _find_named(self, name: str, words: Sequence[str], limit: int) -> list[str]:
        holds = " AND ".join(self.HOLDS.format(self.LOWER.format(name)) for _ in words) or "TRUE"
        rows = self.query(f"SELECT id FROM {self.documents_table} WHERE {holds} ORDER BY id LIMIT ?", *words, limit)
        return [document_id for (document_id,) in rows]

    # --- keywords: exact, in lower case, white space folded (paper, section 3.2) ---

    @abstractmethod
    def rank(self, keywords: Sequence[str], top_k: int, *, ranking: Ranking = "paper") -> KeywordRanking:
        """Rank the chunks by keywords, of which none is blank and none there twice; return at most `top_k`.

        The score is Score(c, K) = sum over k in K of count(k, T_c) * |k|, or the coverage (see `keywords.rank_chunks`),
        for which occurrences inside longer words do not count if a keyword occurs as a word. Ties by chunk id.
        """

    @abstractmethod
    def count_chunks(self, texts: Sequence[str]) -> list[int]:
        """Count the chunks that hold each of some texts."""

    @abstractmethod
    def numbers_holding(self, groups: Sequence[Sequence[str]], limit: int) -> list[list[int]]:
        """Return, for each group of texts, the numbers of the first `limit` chunks by id that hold all of them."""

    def chunks_holding(self, groups: Sequence[Sequence[str]], limit: int) -> list[dict[int, Chunk]]:
        """Return these chunks, by number."""
        numbers = self.numbers_holding(groups, limit)
        chunks = self.numbered(set(chain.from_iterable(numbers)))
        return [{number: chunks[number] for number in some} for some in numbers]

    # --- words, for spelling: the plain form of a word has no diacritics, width or case (`text.plain`) ---

    @abstractmethod
    def words_present(self, words: Collection[str]) -> set[str]:
        """Return which of some words, in lower case, a text of this view has as whole words."""

    def words_spelled(self, plain: Collection[str]) -> dict[str, list[str]]:
        """Return the words of the corpus, in lower case, that have these plain forms; the others are left out.

        Words of other documents, or of removed ones, may be among them: ask `words_present`.
        """
        spelled: dict[str, list[str]] = {}
        for form, word in sorted(self.query_among("SELECT plain, word FROM words", "plain", plain)):
            spelled.setdefault(form, []).append(word)
        return spelled

    def words_of_length(self, shortest: int, longest: int) -> list[str]:
        """Return the plain forms, likewise, whose lengths in characters lie between two bounds, both included."""
        lengths = range(shortest, longest + 1)
        return list(chain.from_iterable(self._plain_words.get(length, ()) for length in lengths))

    @cached_property
    def _plain_words(self) -> dict[int, list[str]]:
        """The plain forms of all words, by their lengths: a scan for each misspelt word would be slow."""
        forms: dict[int, list[str]] = {}
        for (form,) in self.query("SELECT DISTINCT plain FROM words"):
            forms.setdefault(len(form), []).append(form)
        return forms

    # --- sentences by their vectors ---

    @abstractmethod
    def nearest(self, vector: NDArray[np.float32], count: int) -> list[SentenceMatch]:
        """Return the `count` sentences nearest to a vector of length one, nearest first; fewer only if there are fewer.

        Equal vectors have equal similarities.
        """


class Draft(TableReader):
    """The next publication of an index, being written. What it holds is seen by no reader before it is published.

    Its settings are those that were published last, or that it began with.
    """

    def claim(self, document_ids: Collection[str]) -> set[str]:
        """Return which of some documents this writer may write, before it ends: all, if it is the only one."""
        return set(document_ids)

    def put(self, documents: Sequence[EmbeddedDocument]) -> dict[str, str]:
        """Store documents that were claimed, with their chunks and vectors, in place of those with the same ids.

        Returns:
            The documents that were not stored, each with the id of a chunk that another document has already.
        """
        taken = self._find_taken(documents)
        if left := [document for document in documents if document.record.id not in taken]:
            self._store(left)
        return taken

    @abstractmethod
    def _store(self, documents: Sequence[EmbeddedDocument]) -> None:
        """Store documents in one transaction."""

    @abstractmethod
    def remove(self, document_ids: Collection[str]) -> None:
        """Remove documents with their chunks."""

    def unpublished(self) -> set[str]:
        """Return the ids of documents that were stored and not published; none where other runs may be at work."""
        return set()

    @abstractmethod
    def publish(self, settings: Settings) -> Settings:
        """Let readers see what was written, if anything has changed; return the settings with token and counts.

        It is the last call: what comes next is written to another draft.
        """

    @abstractmethod
    def _update_sources(self, sources: Mapping[str, str]) -> None: ...

    def set_sources(self, sources: Mapping[str, str]) -> None:
        """Record where documents were read from, by their ids, as far as that has changed."""
        stored = self.query_among(f"SELECT id, source FROM {self.documents_table}", "id", sources)
        if changed := {name: sources[name] for name, source in stored if sources[name] != source}:
            self._update_sources(changed)

    def vectors_by_text(self, document_ids: Collection[str]) -> dict[str, NDArray[np.float32]]:
        """Return the vectors of these documents' sentences, as they are stored now, by the sentences' texts."""
        chunks = self._chunks_among("chunks.document_id", document_ids)
        return {
            chunks[number].sentence_text(position): vector
            for number, positions, vectors in self.vectors(chunks)
            for position, vector in zip(positions, vectors, strict=True)
        }

    def _find_taken(self, documents: Sequence[EmbeddedDocument]) -> dict[str, str]:
        ids = [chunk.id for document in documents for chunk in document.chunks]
        owners = dict(self.query_among(f"SELECT id, document_id FROM {self.chunks_table}", "id", ids))
        taken: dict[str, str] = {}
        for document in documents:
            name = document.record.id
            for chunk in document.chunks:
                if owners.setdefault(chunk.id, name) != name:
                    taken.setdefault(name, chunk.id)
        return taken


class IndexStore(Protocol):
    """A place that holds an index, or where one can be made."""

    @property
    def location(self) -> Path | str:
        """Its name, for messages: a folder, or an address without a password."""

    def settings(self) -> Settings:
        """Read the settings of what was published last."""

    def stamp(self) -> Hashable:
        """Return a value that changes with every publication. It is cheap: every search asks for it."""

    def open(self) -> View:
        """Open what was published last.

        Raises:
            IndexNotFoundError: There is no index, or nothing was published yet.
            IndexFormatError, InputError, StorageError: It is damaged, of another format, or cannot be read.
        """

    def close(self) -> None:
        """Close what all views share; what is asked of the store later opens it again."""

    def size(self) -> int:
        """Return the bytes that the index takes up."""

    def draft(self, begin: Callable[[], Settings]) -> AbstractContextManager[Draft]:
        """Open the next publication for writing; `begin` makes the settings of an index that is not there yet.

        A folder has one writer at a time; a database may have many.

        Raises:
            IndexLockedError: Another process is writing.
            InputError: The place cannot be made, or something else is there.
            IndexFormatError, StorageError: The index is damaged, of another format, or cannot be written to.
        """

    def find_damage(self) -> list[Damage]:
        """Look for damage in all parts of the index; nothing is locked or written."""

    def repair(self) -> None:
        """Make everything again that is derived from the documents, unless these are damaged."""


def _shown(name: str) -> str:
    """Return an id as it stands in a message: somebody else's may be endless."""
    return shorten(name, _MAX_SHOWN)


def storable(values: Iterable[Any]) -> list[Any]:
    """Return values without the texts that no table holds."""
    return [value for value in values if not (isinstance(value, str) and UNSTORABLE.search(value))]


def batches(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """Yield items some at a time."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
