"""The ports of storage: what an index needs from the place that it is stored in, for searching and for writing.

`arag.retrieval.local` implements them with a folder. Nothing else in the project knows files, tables or vector stores.

An index is written in generations. A writer prepares the next one while readers see all of the last published one.
Chunks have numbers as well as ids: a number names one version of a chunk and is never reused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from arag.retrieval.types import Chunk

Vectors = NDArray[np.float32]

_Count = Annotated[int, Field(ge=0, le=1 << 53)]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What must be known about an index before it can be opened.

    Attributes:
        embedder: Name of the embedder, as given to `load_embedder`.
        dimension: Length of its vectors.
        chunk_tokens: Size that chunks are cut to, in tokens.
        tokenizer: What counted the tokens; several names if it was not the same for all documents.
        language: Language of the sentence rules, or `auto`.
        packed: Whether consecutive short documents share chunks.
        documents: Number of documents, as of the last publication.
        chunks: Number of chunks.
        sentences: Number of sentences with a vector.
        generation: The generation that readers see; grows with each publication.
        distance: Distance function of the vectors.
        copy_of: The location that a copy was begun from and is not finished yet; empty for a whole index.
    """

    embedder: str
    dimension: Annotated[int, Field(ge=1, le=1 << 20)]
    chunk_tokens: Annotated[int, Field(ge=1, le=1 << 53)]
    tokenizer: str
    language: str
    packed: bool
    documents: _Count = 0
    chunks: _Count = 0
    sentences: _Count = 0
    generation: Annotated[int, Field(ge=-1, le=1 << 53)] = 0
    distance: str = "cosine"
    copy_of: str = ""


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document's entry; its text is in its chunks.

    Attributes:
        id: The document's id.
        title: Its title, or an empty string.
        source: Where it was read from.
        metadata: Further fields, as a JSON object.
        fingerprint: Changes when the document, or a setting that its chunks depend on, changes. Empty when a part of
            the document was lost, so that the next ingestion writes it again.
        chunks: How many chunks hold a part of it.
    """

    id: str
    title: str
    source: str
    metadata: str
    fingerprint: str
    chunks: int


@dataclass(frozen=True, slots=True)
class Counts:
    """Totals over an index.

    Attributes:
        documents: Number of documents.
        chunks: Number of chunks.
        sentences: Number of sentences that have a vector, or will have.
        tokens: Tokens of all chunks.
    """

    documents: int
    chunks: int
    sentences: int
    tokens: int


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
class Phrase:
    """Consecutive words.

    Attributes:
        words: The words, in lower case and without diacritics.
        is_prefix: Whether the last word may be longer.
    """

    words: tuple[str, ...]
    is_prefix: bool = False


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that is wrong with an index.

    Attributes:
        part: The file, folder or table.
        what: What is wrong with it.
        repairable: Whether `verify` can repair it.
    """

    part: str
    what: str
    repairable: bool = True

    def __str__(self) -> str:
        return f"{self.part}: {self.what}"


class Chunks(Protocol):
    """Full chunks by id (a key-value store, with LangChain's names), and their documents, in one generation.

    Every method may raise an IndexFormatError (what is stored is damaged) or a StorageError (it cannot be read).
    """

    def mget(self, keys: Sequence[str]) -> list[Chunk | None]:
        """Return the chunks with these ids, or None where an id is unknown."""

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yield the ids of all chunks, or of those that begin with a prefix, in the order of ingestion."""

    def numbered(self, numbers: Sequence[int]) -> dict[int, Chunk]:
        """Return the chunks with these numbers, as far as they exist."""

    def ids(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the ids of the chunks with these numbers, as far as they exist."""

    def numbers(self, keys: Sequence[str]) -> list[int]:
        """Return the numbers of the chunks with these ids, as far as they exist."""

    def similar_ids(self, chunk_id: str, limit: int) -> list[str]:
        """Return ids spelled like an unknown one, the most similar first; any ids if none is similar."""

    def neighbours(self, chunk: Chunk, reach: int) -> list[Chunk]:
        """Return a chunk and those up to `reach` before and after it in its document, in order."""

    def chunks_in_documents(self, document_ids: Iterable[str]) -> dict[str, int]:
        """Return how many chunks start in each of some documents."""

    def chunks_of(self, document_ids: Sequence[str]) -> list[Chunk]:
        """Return every chunk that holds a part of one of these documents, each once, in order."""

    def documents(self, *, after: str = "") -> Iterator[DocumentRecord]:
        """Yield all documents' entries, by id, beginning after an id."""

    def document(self, document_id: str) -> DocumentRecord | None:
        """Return a document's entry, or None."""

    def numbers_of(self, document_ids: Sequence[str]) -> list[int]:
        """Return the numbers of the chunks that hold a part of one of these documents, in order."""

    def named(self, words: Sequence[str], limit: int) -> list[str]:
        """Return ids of documents whose id and title together hold all of these words, ignoring case, in order."""

    def titled(self, titles: Sequence[str], limit: int) -> Iterable[list[tuple[str, str]]]:
        """Find the documents with each of some titles, ignoring case, or with that title and a note in brackets.

        Args:
            titles: The titles.
            limit: How many documents to return at most for each.

        Returns:
            For each title, ids and titles of documents.
        """

    def fingerprints(self, document_ids: Sequence[str]) -> dict[str, str]:
        """Return the fingerprints of those documents that exist, by id."""

    def counts(self) -> Counts:
        """Count documents, chunks, sentences and tokens."""

    def placed_vectors(self, numbers: Collection[int]) -> Iterator[tuple[int, list[int], Vectors]]:
        """Yield the vectors of chunks: a chunk's number, the positions of its embedded sentences, and their vectors.

        Args:
            numbers: The chunks' numbers.
        """

    def embedded_chunks(self) -> Iterator[tuple[int, Chunk, Vectors]]:
        """Yield all chunks that have their vectors, in the order of ingestion: a chunk's number, the chunk, vectors."""


class Keywords(Protocol):
    """Exact keywords in the chunks' texts (paper, section 3.2): in lower case, white space folded."""

    def __len__(self) -> int:
        """Return the number of chunks."""

    def rank(
        self, keywords: Sequence[str], top_k: int, *, within: Collection[int] | None = None, by_coverage: bool = False
    ) -> KeywordRanking:
        """Rank the chunks by Score(c, K) = sum over k in K of count(k, T_c) * |k|, ties by chunk id.

        Args:
            keywords: Keywords, none blank and none twice.
            top_k: How many chunks to return at most.
            within: Numbers of the chunks to search in; everything else is as if it were not there.
            by_coverage: Rank by the sum of `keyword_weight` instead, and return each keyword's best chunk too.
                Occurrences inside longer words do not count for a keyword that occurs as a word.

        Raises:
            IndexFormatError: The keyword data is damaged.
        """

    def chunks_holding(self, keywords: Sequence[str]) -> list[int]:
        """Count the chunks that hold each of some keywords."""


class Sentences(Protocol):
    """Sentences by their vectors.

    Attributes:
        is_exact: Whether `nearest` compares with every vector, so that ties cost nothing.
    """

    @property
    def is_exact(self) -> bool: ...  # noqa: D102 - see the class

    def nearest(
        self, vector: NDArray[np.float32], count: int, *, within: Collection[int] | None = None
    ) -> list[SentenceMatch]:
        """Return the sentences nearest to a vector, nearest first. Equal sentences have equal similarities.

        Args:
            vector: The query's vector, of length one, shape (dimension,).
            count: How many, at most the number of sentences; more may be returned, but never fewer unless there are
                fewer in `within`.
            within: Numbers of the chunks to search in; everything else is as if it were not there.

        Raises:
            IndexFormatError: The vectors are damaged.
        """


class Words(Protocol):
    """The words of the corpus (lower case, without diacritics), for suggestions."""

    def holds(self, word: str) -> bool:
        """Return whether the corpus holds a word."""

    def listed(self, words: Collection[str]) -> set[str]:
        """Return which of some words the corpus may hold; it holds no others.

        Of a part of an index, words that only other documents have may be among them: ask `holds`.
        """

    def of_length(self, shortest: int, longest: int) -> list[str]:
        """Return the listed words whose lengths, in characters, lie between two bounds, both included."""

    def holding_all(
        self, groups: Sequence[Collection[str]], limit: int, within: Collection[int] | None = None
    ) -> list[list[int]]:
        """Return the numbers of the chunks that hold all words of each of some groups.

        Args:
            groups: The groups of words.
            limit: How many chunks to return at most for each.
            within: Numbers of the chunks to search in; by default all.
        """

    def spellings(self, phrases: Sequence[Phrase], limit: int) -> list[list[str]]:
        """Return the spellings of each of some phrases in the corpus.

        Case, diacritics, hyphens, spaces and punctuation are ignored.

        Args:
            phrases: The phrases.
            limit: How many chunks to look at for each.
        """


class Generation(Protocol):
    """One generation of an index. Several threads may search it at once.

    The methods open what a kind of search needs at its first use, and may raise an IndexFormatError.

    Attributes:
        manifest: The generation's manifest.
        chunks: Its chunks.
    """

    @property
    def manifest(self) -> Manifest: ...  # noqa: D102 - see the class

    @property
    def chunks(self) -> Chunks: ...  # noqa: D102

    def keywords(self) -> Keywords:
        """Return the keyword search."""

    def sentences(self) -> Sentences:
        """Return the sentences' vectors."""

    def words(self) -> Words:
        """Return the corpus's words."""

    def part(self, document_ids: Collection[str]) -> Generation:
        """Return the generation limited to some documents; everything else is as if it were not there.

        Of a packed chunk only these documents are left, and its id is made from the first of them.

        Args:
            document_ids: Ids of documents that the generation has.
        """


class Reader(Protocol):
    """An index that is open for searching."""

    def stamp(self) -> Hashable:
        """Return a value that changes with every publication. It is cheap: every search asks for it twice."""

    def generation(self) -> Generation:
        """Open the generation that was published last.

        Raises:
            IndexNotFoundError: The index is gone.
            IndexFormatError: It is damaged or incomplete.
            StorageError: It cannot be opened.
        """

    def close(self) -> None:
        """Close everything that is open."""


class WritableChunks(Chunks, Protocol):
    """The chunks of the next generation. Readers see what is written here once it is published."""

    def transaction(self) -> AbstractContextManager[None]:
        """Run all writes inside as one transaction: either all are kept, or none."""

    def mset(self, key_value_pairs: Sequence[tuple[str, Chunk]]) -> None:
        """Add chunks, replacing those with the same ids; their vectors are still pending."""

    def mdelete(self, keys: Sequence[str]) -> None:
        """Remove the chunks with these ids."""

    def in_shared_chunks(self, document_ids: Sequence[str]) -> set[str]:
        """Return which of these documents share a chunk with another one."""

    def add_documents(self, documents: Iterable[DocumentRecord]) -> None:
        """Add documents' entries."""

    def set_sources(self, sources: Mapping[str, str]) -> None:
        """Record where documents were read from, by their ids."""

    def remove_documents(self, document_ids: Iterable[str]) -> None:
        """Remove documents' entries; the caller removes or rewrites their chunks."""

    def claim(self, limit: int, after: int) -> list[tuple[int, Chunk]]:
        """Return chunks whose vectors are not written yet, with their numbers, in order, starting after a number.

        No other writer gets them as long as this one is alive.
        """

    def set_vectors(self, vectors: Iterable[tuple[int, Vectors]]) -> None:
        """Write the vectors of chunks, which are then no longer pending.

        Args:
            vectors: Numbers of chunks, and the vectors of their embedded sentences, shape (sentences, dimension).
        """

    def add_embedded(self, chunks: Sequence[tuple[Chunk, Vectors]]) -> None:
        """Add chunks whose ids are new, together with the vectors of their embedded sentences."""

    def former_vectors(self, document_ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return the vectors of former versions of these documents' chunks, by the sentences' texts."""


class Draft(Protocol):
    """The next generation of an index, being written.

    Attributes:
        manifest: The manifest that was published last.
        chunks: The chunks of the next generation.
        published: The chunks that readers see.
        publishes_early: Whether a long run may let readers see a part of what it writes.
    """

    @property
    def manifest(self) -> Manifest: ...  # noqa: D102 - see the class

    @property
    def chunks(self) -> WritableChunks: ...  # noqa: D102

    @property
    def published(self) -> Chunks: ...  # noqa: D102

    @property
    def publishes_early(self) -> bool: ...  # noqa: D102

    def waits_for_others(self) -> bool:
        """Say that this writer has nothing left to do; wait a moment, if others have. Return whether it waited.

        Then there may be chunks to embed that others had claimed, and left.
        """

    def prepare(self, sentences: int) -> None:
        """So many more sentences have their vectors: do what can be done for the next publication. Returns at once."""

    def publish(
        self, manifest: Manifest, *, rebuild: bool = False, on_written: Callable[[int, int], None] | None = None
    ) -> bool:
        """Let readers see what was written, and delete what it replaces; do nothing if nothing has changed.

        Args:
            manifest: The settings to publish; its counts and its generation are set here.
            rebuild: Rebuild everything that is derived from the chunks, even if nothing was written.
            on_written: Called with the number of sentences written to the vector store so far, and of all that are to
                be written, each time some are.

        Returns:
            False if another writer has added chunks that are not embedded yet: then nothing was published.

        Raises:
            StorageError: It cannot be written.
        """

    def renew(self) -> None:
        """Copy the chunks to a new place, without what was removed."""


class Backend(Protocol):
    """A place that holds an index, or where one can be made.

    Attributes:
        location: Its name, for messages: a folder, or an address without a password.
    """

    @property
    def location(self) -> Path | str: ...  # noqa: D102 - see the class

    def exists(self) -> bool:
        """Return whether there is an index, or a part of one."""

    def manifest(self) -> Manifest:
        """Read the manifest.

        Raises:
            IndexNotFoundError: There is no index.
            IndexFormatError: The manifest is damaged, or of another format.
            InputError: The place cannot be read.
        """

    def size(self) -> int:
        """Return the bytes that the index takes up."""

    def reader(self) -> Reader:
        """Open the index for searching.

        Raises:
            IndexFormatError: The index is damaged or incomplete.
            StorageError: It cannot be opened.
        """

    def make(self) -> None:
        """Create the place for an index if it does not exist.

        Raises:
            InputError: It cannot be created, or something else is there.
        """

    def lock(self, *, shared: bool = False) -> AbstractContextManager[None]:
        """Keep other writers out.

        Args:
            shared: Let those in that share the lock, too, if several can write at once here.

        Raises:
            IndexLockedError: Another process is writing; the message says which, and since when.
            StorageError: The lock cannot be taken.
        """

    def draft(self, begin: Callable[[], Manifest]) -> AbstractContextManager[Draft]:
        """Open the next generation for writing; the caller holds the lock. Errors inside name the index.

        Args:
            begin: Makes the manifest of an index that does not exist yet.

        Raises:
            IndexFormatError: The index is damaged, or of another format.
            StorageError: The index cannot be written to.
        """

    def find_damage(self, *, locked: bool = True) -> list[Damage]:
        """Look for damage in all parts of the index.

        Args:
            locked: Whether the caller holds the lock. Without it nothing is written, not even for a moment.

        Raises:
            IndexFormatError: The documents are lost.
            StorageError: The index cannot be checked.
        """

    def repair(self, found: Sequence[Damage]) -> int:
        """Repair the chunks and the manifest; the next publication rebuilds what is derived from them.

        Args:
            found: What `find_damage` found.

        Returns:
            How many documents are lost together with their ids.

        Raises:
            IndexFormatError: It cannot be repaired.
            StorageError: It cannot be written.
        """
