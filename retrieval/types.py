"""The objects that the index stores and returns. All are immutable and hold plain values only.

Example:
    >>> hit = index.keyword_search(["Grey Petrel"]).hits[0]
    >>> hit.chunk_id, hit.score, hit.keyword_counts
    ('ships/grey-petrel-packet-schooner.md:0', 55, {'Grey Petrel': 5})
    >>> hit.chunk.title, hit.chunk.ordinal, len(hit.chunk.sentences)
    ('Grey Petrel (packet schooner)', 0, 15)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a chunk, from character `start` of its text to before `end`."""

    start: int
    end: int
    embedded: bool
    """Whether it has a vector; bare headings have none."""
    heading: str = ""
    """The headings above it, outermost first, joined by " > "; empty if there are none."""
    header: str = ""
    """For a row of a table, its column names as one line; empty if it has them itself."""
    bars_are_text: bool = False
    """Whether it has bars and is not a row of a table."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of about a thousand tokens: the unit that is ranked and read. It belongs to one document."""

    id: str
    """`<document id>:<ordinal>`, or the id that came with a ready-made chunk."""
    document_id: str
    ordinal: int
    """Place in its document, from 0; neighbours are ordinal ± 1."""
    title: str
    """The document's title, or an empty string."""
    text: str
    sentences: tuple[Sentence, ...]
    tokens: int
    parts: int
    """How many chunks its document has."""
    pages: tuple[int, int] | None = None
    """First and last page, for documents that have pages."""

    @property
    def whole(self) -> bool:
        """Whether it is the document's whole text."""
        return self.parts == 1

    def sentence_text(self, position: int) -> str:
        """Return the text of the sentence at a position."""
        sentence = self.sentences[position]
        return self.text[sentence.start : sentence.end]

    def embedded_positions(self) -> list[int]:
        """Return the positions of the sentences that have a vector, in order."""
        return [position for position, sentence in enumerate(self.sentences) if sentence.embedded]

    def embedded_texts(self) -> list[str]:
        """Return the texts of the sentences that have a vector, in order."""
        return list(map(self.sentence_text, self.embedded_positions()))


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found by a search, and why it was found."""

    chunk: Chunk
    score: float
    """The paper's score or BM25's; for a semantic search, the similarity of the best sentence."""
    keyword_counts: dict[str, int] = field(default_factory=dict)
    """For a keyword search, the occurrences of each keyword that the chunk holds."""
    scattered: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Keywords whose words the chunk holds, but not side by side: for each, its words as the corpus spells them."""
    in_name: tuple[str, ...] = ()
    """Keywords whose words are only in the title or the file name of its document."""
    similarities: dict[int, float] = field(default_factory=dict)
    """For a semantic search, the similarity of each sentence that was found, by position."""

    @property
    def chunk_id(self) -> str:
        """The chunk's id."""
        return self.chunk.id

    @property
    def document_id(self) -> str:
        """The id of the chunk's document."""
        return self.chunk.document_id

    @property
    def keywords(self) -> tuple[str, ...]:
        """All keywords that it was found for."""
        return (*self.keyword_counts, *self.scattered, *self.in_name)


@dataclass(frozen=True, slots=True)
class Term:
    """A term as the corpus spells it, and how many chunks hold it."""

    text: str
    chunks: int
    respelled: bool = False
    """Whether it has the keyword's letters: it is meant, not just similar."""


@dataclass(frozen=True, slots=True)
class KeywordReport:
    """How one keyword occurs in the corpus, and how many chunks hold it."""

    keyword: str
    chunks: int
    as_word: int | None = None
    """How many hold it as a word of its own; None if that was not counted."""
    closest: tuple[Term, ...] = ()
    """Terms in the corpus that may be meant, if few or no chunks hold the keyword."""
    searched_as: str | None = None
    """Another spelling of the same letters that was searched for as well."""


@dataclass(frozen=True, slots=True)
class KeywordResults:
    """The result of a keyword search: the best chunks, best first, ties by chunk id."""

    keywords: tuple[KeywordReport, ...]
    """A report for each keyword, in the order given."""
    hits: tuple[Hit, ...]
    total: int
    """How many chunks were found: those that hold a keyword, and those that were found by their names or by words."""
    document_frequency: dict[str, int]
    """How many chunks hold each keyword that was looked for, other spellings included."""


@dataclass(frozen=True, slots=True)
class SemanticResults:
    """The result of a semantic search: the best chunks, best first, ties by chunk id."""

    query: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class ReadResults:
    """The result of reading chunks."""

    chunks: tuple[Chunk, ...]
    """The chunks, in the order asked for, neighbours in text order around theirs; none twice."""
    unknown: dict[str, tuple[str, ...]]
    """Ids that the index does not hold, each with ids of its document, or with examples."""


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """What an index knows about a document apart from its text."""

    id: str
    title: str
    source: str
    """The file that it was read from, or the `source` of its metadata, or an empty string."""
    metadata: dict[str, Any]
    chunks: int
    left_out: tuple[str, ...] = ()
    """Parts that a person sees in its file and its text lacks: `2 charts`."""
    ocr_pages: tuple[int, ...] = ()
    """Pages that were pictures, whose text was read by OCR."""
    file_hash: str = ""
    """Of its file as it was read: the first 32 hexadecimal digits of SHA-256; empty for records with own ids."""


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What an index holds."""

    path: str
    """Its folder, or its address without a password."""
    documents: int
    chunks: int
    sentences: int
    """Number of sentences with a vector."""
    tokens: int
    """Tokens of all chunks."""
    embedder: str
    weights: str
    """The package of the embedder's weights, if they are not those of the model hub; `language-neutral` if the axes of
    languages are taken out of the vectors."""
    dimension: int
    spread: float
    """How far apart the embedder's similarities lie, in proportion to those of all-MiniLM-L6-v2: scores are rescaled by
    it."""
    chunk_tokens: int
    """Size that chunks are cut to, in tokens."""
    tokenizer: str
    """What counted the tokens: `o200k_base`, `estimate`, or both."""
    other_languages: int
    """Documents that are not in English; 0 unless the embedder is known to be for English only."""
    bytes: int
    """Size on disk; 0 for a limited index, whose share of the files is not known."""
    incomplete: int
    """Documents whose text lacks parts of their file; `DocumentInfo.left_out` names these."""
