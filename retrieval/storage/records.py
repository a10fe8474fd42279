"""What an index stores, and what searches in it find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter, ValidationError

from arag.errors import IndexFormatError
from arag.models.similarity import MAX_SPREAD, MIN_SPREAD
from arag.retrieval.types import Chunk
from arag.text.normalise import is_title

Vectors = NDArray[np.float32]
ChunkVectors = tuple[int, list[int], Vectors]  # a chunk's row id, positions of its sentences, their vectors
Ranking = Literal["paper", "bm25"]
ShowShare = Callable[[float], None]  # is called with the part of a long task that is finished, 0 to 1

FORMAT_VERSION = 6
MAX_COUNT = 1 << 53  # floats, and so many readers of JSON, hold integers exactly up to here
MAX_DIMENSION = 1 << 20

_Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
_Page = Annotated[int, Field(ge=1, le=MAX_COUNT)]
_Name = Annotated[str, Field(max_length=5_000)]  # far longer than any: messages repeat it


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of an index, and counts of its contents."""

    embedder: _Name  # name of the embedder, as given to `load_embedder`
    dimension: Annotated[int, Field(ge=1, le=MAX_DIMENSION)]  # length of its vectors
    chunk_tokens: Annotated[int, Field(ge=1, le=MAX_COUNT)]  # size of a chunk, in tokens
    tokenizer: _Name  # counted the tokens; several names if documents were counted differently
    spread: Annotated[float, Field(ge=MIN_SPREAD, le=MAX_SPREAD)] = 1.0  # of its embedder's similarities
    token: Annotated[str, Field(pattern=r"^([0-9a-f]{32})?$")] = ""  # the snapshot; empty before the first one
    documents: _Count = 0
    chunks: _Count = 0
    sentences: _Count = 0  # with a vector
    tokens: _Count = 0  # tokens of all chunks
    weights: _Name = ""  # which weights the embedder had, and what was taken out: see `choose_weights`
    folders: tuple[_Name, ...] = ()  # absolute paths of those that were ingested, in order
    version: Annotated[int, Field(ge=FORMAT_VERSION, le=FORMAT_VERSION)] = FORMAT_VERSION

    def to_json(self) -> str:
        """Return the settings as they are stored."""
        return _SETTINGS.dump_json(self).decode()

    @staticmethod
    def from_json(text: str, location: object) -> Settings:
        """Read the settings of the index in a location.

        Args:
            text: The settings as they are stored.
            location: The index's name, for a message.

        Raises:
            IndexFormatError: The text holds something else.
        """
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
class Reading:
    """How a document's file was read."""

    left_out: tuple[str, ...] = ()  # parts that a person sees in the file and the text lacks: "2 charts"
    ocr_pages: tuple[_Page, ...] = ()  # whose text was read by OCR


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document's entry; its text is in its chunks."""

    id: str
    title: str  # its title, or an empty string
    source: str  # where it was read from
    metadata: str  # further fields and how it was read, as a JSON object; see `metadata`
    fingerprint: str  # hashes of the document, with the settings that its chunks depend on, and of its file
    chunks: int  # how many chunks it has


@dataclass(frozen=True, slots=True)
class EmbeddedDocument:
    """A document with its chunks and vectors, ready to be stored."""

    record: DocumentRecord
    chunks: Sequence[Chunk]
    vectors: Sequence[Vectors]  # of each chunk's embedded sentences: of length one, shape (sentences, dimension)


@dataclass(slots=True)  # a frozen one takes twice as long to make
class ChunkText:
    """A chunk's text and where its sentences are: what a search of many chunks needs of each."""

    row_id: int
    id: str
    document_id: str
    ordinal: int
    title: str
    text: str
    starts: NDArray[np.int64]  # of its sentences
    ends: NDArray[np.int64]

    def sentence_text(self, position: int) -> str:
        """Return the text of the sentence at a position."""
        return self.text[self.starts[position] : self.ends[position]]

    def begins_with_title(self) -> bool:
        """Return whether its first sentence is the document's title."""
        if self.ordinal > 0 or not len(self.starts):
            return False
        line = self.sentence_text(0)
        # To look for one word is enough for most chunks, and takes a tenth of the time.
        return all(word in line for word in self.title.split(maxsplit=1)[:1]) and is_title(line, self.title)


@dataclass(frozen=True, slots=True)
class RankedChunk:
    """A chunk and its score."""

    row_id: int
    score: float  # Score(c, K), or the BM25 score
    counts: dict[str, int]  # how often the chunk holds each keyword that it has


@dataclass(frozen=True, slots=True)
class KeywordRanking:
    """Chunks ranked by keywords."""

    chunks: list[RankedChunk]  # the best chunks, best first
    document_frequency: dict[str, int]  # for each keyword, how many chunks hold it
    as_word: dict[str, int]  # for each keyword, how many chunks hold it as a word of its own; only for `bm25`
    total: int  # how many chunks hold any keyword


@dataclass(frozen=True, slots=True)
class SentenceMatch:
    """A sentence found by its vector."""

    row_id: int  # of its chunk
    position: int  # its position among the chunk's sentences
    similarity: float  # cosine similarity to the query, -1 to 1, not rescaled


@dataclass(frozen=True, slots=True)
class Damage:
    """A fault of an index."""

    part: str  # the file, folder or table
    what: str  # the fault
    repairable: bool = True  # whether it is derived from the documents, so that `verify --repair` makes it again

    def __str__(self) -> str:
        return f"{self.part}: {self.what}"
