"""What an index needs from the place that it is stored in: a folder (`store`) or PostgreSQL (`postgres`).

An index is published as a whole. A publication has a random token; what it holds never changes. A chunk has a number as
well as an id: the number names one version of the chunk, and is never used again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from arag.retrieval.types import Chunk

Vectors = NDArray[np.float32]

FORMAT_VERSION = 6

_Count = Annotated[int, Field(ge=0, le=1 << 53)]


@dataclass(frozen=True, slots=True)
class Settings:
    """What an index was made with, and what it holds.

    Attributes:
        embedder: Name of the embedder, as given to `load_embedder`.
        dimension: Length of its vectors.
        chunk_tokens: Size that chunks are cut to, in tokens.
        tokenizer: What counted the tokens; several names if it was not the same for all documents.
        language: Language of the sentence rules, or `auto`.
        token: The publication; empty before the first one.
        documents: Number of documents.
        chunks: Number of chunks.
        sentences: Number of sentences with a vector.
        tokens: Tokens of all chunks.
        version: Version of the format.
    """

    embedder: str
    dimension: Annotated[int, Field(ge=1, le=1 << 20)]
    chunk_tokens: Annotated[int, Field(ge=1, le=1 << 53)]
    tokenizer: str
    language: str
    token: Annotated[str, Field(pattern=r"^([0-9a-f]{32})?$")] = ""
    documents: _Count = 0
    chunks: _Count = 0
    sentences: _Count = 0
    tokens: _Count = 0
    version: int = FORMAT_VERSION


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document's entry; its text is in its chunks.

    Attributes:
        id: The document's id.
        title: Its title, or an empty string.
        source: Where it was read from.
        metadata: Further fields, as a JSON object.
        fingerprint: Changes when the document, or a setting that its chunks depend on, changes.
        chunks: How many chunks it has.
    """

    id: str
    title: str
    source: str
    metadata: str
    fingerprint: str
    chunks: int


@dataclass(frozen=True, slots=True)
class EmbeddedDocument:
    """A document as it is stored.

    Attributes:
        record: Its entry.
        chunks: Its chunks, in order.
        vectors: For each chunk, the vectors of its embedded sentences, of length one, shape (sentences, dimension).
    """

    record: DocumentRecord
    chunks: Sequence[Chunk]
    vectors: Sequence[Vectors]


@dataclass(frozen=True, slots=True)
class RankedChunk:
    """A chunk and its score.

    Attributes:
        number: The chunk's number.
        score: Score(c, K), or the coverage.
        counts: Occurrences of each keyword that the chunk holds.
    """

    number: int
    score: float
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class KeywordRanking:
    """Chunks ranked by keywords.

    Attributes:
        chunks: The best chunks, best first.
        holding: For each keyword, how many chunks hold it.
        as_word: For each keyword, how many chunks hold it as a word of its own; only for a ranking by coverage.
        total: How many chunks hold any keyword.
    """

    chunks: list[RankedChunk]
    holding: dict[str, int]
    as_word: dict[str, int]
    total: int


@dataclass(frozen=True, slots=True)
class SentenceMatch:
    """A sentence found by its vector.

    Attributes:
        chunk: Its chunk's number.
        position: Its place among the chunk's sentences.
        similarity: Cosine similarity to the query, -1 to 1.
    """

    chunk: int
    position: int
    similarity: float


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that is wrong with an index.

    Attributes:
        part: The file, folder or table.
        what: What is wrong with it.
        repairable: Whether it is derived from the documents, so that `verify --repair` makes it again.
    """

    part: str
    what: str
    repairable: bool = True

    def __str__(self) -> str:
        return f"{self.part}: {self.what}"


class View(Protocol):
    """One publication of an index, whole or limited to some documents: everything else is as if it were not there.

    Several threads may use it at once. What a kind of search needs is opened at its first use. Every method may raise
    an IndexFormatError (what is stored is damaged) or a StorageError (it cannot be read, or was replaced by a newer
    publication: then a newer view is to be opened).
    """

    @property
    def settings(self) -> Settings:
        """The index's settings, with the counts of this view."""

    def close(self) -> None:
        """Release what is open."""

    def limited_to(self, document_ids: Collection[str]) -> View:
        """Return this view limited to some of its documents; it shares what is open, and ends with this view."""

    # --- full chunks by id: a key-value store, with LangChain's names ---

    def mget(self, keys: Sequence[str]) -> list[Chunk | None]:
        """Return the chunks with these ids, or None where an id is unknown."""

    def yield_keys(self, *, prefix: str = "") -> Iterator[str]:
        """Yield the ids of all chunks, or of those that begin with a prefix, in the order of ingestion."""

    def numbers(self, chunk_ids: Collection[str]) -> dict[str, int]:
        """Return the numbers of the chunks with these ids, as far as they exist."""

    def ids(self, numbers: Collection[int]) -> dict[int, str]:
        """Return the ids of the chunks with these numbers, as far as they exist."""

    def numbered(self, numbers: Collection[int]) -> dict[int, Chunk]:
        """Return the chunks with these numbers, as far as they exist."""

    def neighbours(self, chunk: Chunk, reach: int) -> list[Chunk]:
        """Return a chunk and those up to `reach` before and after it in its document, in order."""

    def similar_ids(self, chunk_id: str, limit: int) -> list[str]:
        """Return ids spelled like an unknown one, the most similar first; any ids if none is similar."""

    # --- documents ---

    def document(self, document_id: str) -> DocumentRecord | None:
        """Return a document's entry, or None."""

    def documents(self, *, after: str = "") -> Iterator[DocumentRecord]:
        """Yield all documents' entries, by id, beginning after an id."""

    def fingerprints(self, document_ids: Collection[str]) -> dict[str, str]:
        """Return the fingerprints of those documents that exist, by id."""

    def named(self, words: Sequence[str], limit: int) -> list[str]:
        """Return ids of documents whose id and title together hold all of these words, ignoring case, in order."""

    def chunks_of(self, document_ids: Collection[str]) -> list[Chunk]:
        """Return the chunks of documents, in the order of documents' ids and of the text."""

    # --- keywords: exact, in lower case, white space folded (paper, section 3.2) ---

    def rank(self, keywords: Sequence[str], top_k: int, *, by_coverage: bool = False) -> KeywordRanking:
        """Rank the chunks by Score(c, K) = sum over k in K of count(k, T_c) * |k|, ties by chunk id.

        Args:
            keywords: Keywords, none blank and none twice.
            top_k: How many chunks to return at most.
            by_coverage: Rank by the sum of `keyword_weight` instead, and return each keyword's best chunk too.
                Occurrences inside longer words do not count for a keyword that occurs as a word.
        """

    def count_chunks(self, texts: Sequence[str]) -> list[int]:
        """Count the chunks that hold each of some texts."""

    def holding_all(self, texts: Sequence[str], limit: int) -> list[int]:
        """Return the numbers of the chunks that hold all of some texts, at most `limit` of them, by chunk id."""

    # --- words, for spelling: the plain form of a word has no diacritics, width or case (`text.plain`) ---

    def words_spelled(self, plain: Collection[str]) -> dict[str, list[str]]:
        """Return the words of the corpus, in lower case, that have these plain forms; the others are left out.

        Words of other documents, or of removed ones, may be among them: ask `holds_word`.
        """

    def words_of_length(self, shortest: int, longest: int) -> list[str]:
        """Return the plain forms, likewise, whose lengths in characters lie between two bounds, both included."""

    def holds_word(self, word: str) -> bool:
        """Return whether a text of this view has this word, as a whole word in lower case."""

    # --- sentences by their vectors ---

    def nearest(self, vector: NDArray[np.float32], count: int) -> list[SentenceMatch]:
        """Return the sentences nearest to a vector, nearest first; equal vectors have equal similarities.

        Args:
            vector: The query's vector, of length one, shape (dimension,).
            count: How many; fewer only if there are fewer.
        """

    def vectors(self, numbers: Collection[int]) -> Iterator[tuple[int, list[int], Vectors]]:
        """Yield the vectors of chunks: a chunk's number, the positions of its embedded sentences, their vectors."""


class Draft(Protocol):
    """The next publication of an index, being written. What it holds is seen by no reader before it is published."""

    @property
    def settings(self) -> Settings:
        """The settings that were published last, or those that the draft began with."""

    def document(self, document_id: str) -> DocumentRecord | None:
        """Return a document's entry, or None."""

    def documents(self, *, after: str = "") -> Iterator[DocumentRecord]:
        """Yield all documents' entries, by id, beginning after an id."""

    def fingerprints(self, document_ids: Collection[str]) -> dict[str, str]:
        """Return the fingerprints of those documents that exist, by id."""

    def claim(self, document_ids: Collection[str]) -> set[str]:
        """Return which of some documents this writer may write: no other one gets them before this one ends.

        A folder has one writer, which gets all. Documents that others have claimed are to be looked at again later.
        """

    def vectors_by_text(self, document_ids: Collection[str]) -> dict[str, NDArray[np.float32]]:
        """Return the vectors of these documents' sentences, as they are stored now, by the sentences' texts."""

    def put(self, documents: Sequence[EmbeddedDocument]) -> dict[str, str]:
        """Store documents, their chunks and vectors in one transaction, in place of those with the same ids.

        Returns:
            The documents that were not stored because another document has a chunk with the id of one of theirs: for
            each, that chunk's id.
        """

    def set_sources(self, sources: Mapping[str, str]) -> None:
        """Record where documents were read from, by their ids, as far as that has changed."""

    def remove(self, document_ids: Collection[str]) -> None:
        """Remove documents with their chunks."""

    def publish(self, settings: Settings, on_written: Callable[[int, int], None] | None = None) -> Settings:
        """Let readers see what was written; do nothing if nothing has changed.

        Args:
            settings: The settings to publish; token and counts are set here.
            on_written: Called with how many sentences are in the derived vector store so far, and with how many there
                will be, each time some were written.

        Returns:
            The settings as published.
        """


class IndexStore(Protocol):
    """A place that holds an index, or where one can be made."""

    @property
    def location(self) -> Path | str:
        """Its name, for messages: a folder, or an address without a password."""

    def exists(self) -> bool:
        """Return whether there is an index, or a part of one."""

    def settings(self) -> Settings:
        """Read the settings of what was published last.

        Raises:
            IndexNotFoundError: There is no index, or nothing was published yet.
            IndexFormatError: It is damaged, or of another format.
            InputError: The place cannot be read.
        """

    def stamp(self) -> Hashable:
        """Return a value that changes with every publication. It is cheap: every search asks for it."""

    def open(self) -> View:
        """Open what was published last.

        Raises:
            IndexNotFoundError, IndexFormatError, StorageError: See `settings`.
        """

    def close(self) -> None:
        """Close what all views share; what is asked of the store later opens it again."""

    def size(self) -> int:
        """Return the bytes that the index takes up."""

    def draft(self, begin: Callable[[], Settings]) -> AbstractContextManager[Draft]:
        """Open the next publication for writing, and make the index if there is none. Errors inside name the index.

        A folder has one writer at a time; a database may have many.

        Args:
            begin: Makes the settings of an index that does not exist yet.

        Raises:
            IndexLockedError: Another process is writing; the message says which, and since when.
            InputError: The place cannot be made, or something else is there.
            IndexFormatError: The index is damaged, or of another format.
            StorageError: It cannot be written to.
        """

    def find_damage(self) -> list[Damage]:
        """Look for damage in all parts of the index; nothing is locked or written."""

    def repair(self, on_written: Callable[[int, int], None] | None = None) -> None:
        """Make everything again that is derived from the documents.

        Raises:
            IndexFormatError: The documents themselves are damaged: they must be ingested again.
        """


def keyword_weight(occurrences: NDArray[np.int64], holding: int, chunks: int) -> NDArray[np.float64]:
    """Return what a keyword adds to chunks' coverage: more for a rare keyword, and little more for repetitions.

    This is BM25's term weight with k1 = 0.5 and b = 0 (chunks have about the same length).

    Args:
        occurrences: How often each chunk holds the keyword, shape (n,).
        holding: How many chunks hold it.
        chunks: How many chunks there are.

    Returns:
        The weights, shape (n,).
    """
    weights: NDArray[np.float64] = np.log1p(chunks / holding) * occurrences / (occurrences + 0.5)
    return weights
