"""The objects that the index stores and returns. All are immutable and hold plain values only.

Example:
    >>> hit = index.keyword_search(["Grey Petrel"]).hits[0]
    >>> hit.chunk_id, hit.score, hit.keyword_counts
    ('ships/grey-petrel-packet-schooner.md:0', 55, {'Grey Petrel': 5})
    >>> hit.excerpt.title, [sentence.matched for sentence in hit.excerpt.sentences][:2]
    ('Grey Petrel (packet schooner)', [True, True])
    >>> chunk = index.get(hit.chunk_id)
    >>> chunk.document_id, chunk.ordinal, len(chunk.sentences)
    ('ships/grey-petrel-packet-schooner.md', 0, 15)
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
    """The headings that it stands under, outermost first, joined by " > "; empty if there are none."""
    header: str = ""
    """For a row of a table, its column names as one line; empty if it has them itself."""


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
class ShownSentence:
    """A sentence shown in a search result, on one line."""

    position: int
    """Its place among the chunk's sentences, from 0."""
    text: str
    matched: bool
    """Whether it matched, or is shown as context."""
    similarity: float | None = None
    """Cosine similarity to the query, for matched sentences of a semantic search."""
    cut: bool = False
    """Whether the text is only a part of the sentence; `…` stands for what is left out."""
    under: tuple[str, ...] = ()
    """Headings, outermost first, and a table's header that it stands under."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What a search result shows of a chunk."""

    title: str
    sentences: tuple[ShownSentence, ...]
    begins: bool
    """Whether the first one is the chunk's first, a title aside."""
    ends: bool
    """Whether the last one is the chunk's last."""
    whole: bool
    """Whether this is the document's whole text."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found by a search."""

    chunk_id: str
    document_id: str
    score: float
    """The paper's score, or the coverage; for a semantic search, the similarity of the best sentence."""
    excerpt: Excerpt
    tokens: int
    """Tokens of the full chunk."""
    keyword_counts: dict[str, int] = field(default_factory=dict)
    """For a keyword search, the occurrences of each keyword that the chunk holds."""
    apart: tuple[str, ...] = ()
    """Keywords whose words the chunk holds, but apart from each other."""
    named: tuple[str, ...] = ()
    """Keywords whose words are in the title or the file name of its document only."""
    matches: tuple[int, ...] = ()
    """For a semantic search, the positions of all sentences that were found, shown or not."""

    @property
    def keywords(self) -> tuple[str, ...]:
        """All keywords that it was found for."""
        return (*self.keyword_counts, *self.apart, *self.named)


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
    """How many hold it as a word of its own, as far as that was counted; None without coverage."""
    closest: tuple[Term, ...] = ()
    """Terms in the corpus that may be meant, if few or no chunks hold the keyword."""
    searched_as: str | None = None
    """Another spelling of the same letters that was looked for, too."""


@dataclass(frozen=True, slots=True)
class KeywordResults:
    """The result of a keyword search: the best chunks, best first, ties by chunk id."""

    keywords: tuple[KeywordReport, ...]
    """A report for each keyword, in the order given."""
    hits: tuple[Hit, ...]
    total: int
    """How many chunks hold at least one keyword."""


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
    dimension: int
    chunk_tokens: int
    """Size that chunks are cut to, in tokens."""
    tokenizer: str
    """What counted the tokens: `o200k_base`, `estimate`, or both."""
    other_scripts: int
    """Documents that begin in another script than the embedder knows; 0 unless it is the default one, for English."""
    bytes: int
    """Size on disk; 0 for a limited index, whose share of the files is not known."""
