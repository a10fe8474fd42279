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
class Table:
    """The table that a row stands in.

    Attributes:
        name: Its caption, or the name of its sheet; empty if it has none.
        header: Its column names as one line; empty if it has none.
    """

    name: str
    header: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a chunk, by its place.

    Attributes:
        start: Character offset in the chunk's text.
        end: Offset after its last character, white space not included.
        embedded: Whether it has a vector; bare headings have none.
        heading: The headings that it stands under, outermost first, joined by " > "; empty if there are none.
        table: The table that it is a row of, or None.
    """

    start: int
    end: int
    embedded: bool
    heading: str = ""
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of about a thousand tokens: the unit that is ranked and read. It belongs to one document.

    Attributes:
        id: `<document id>:<ordinal>`, or the id that came with a ready-made chunk.
        document_id: The document.
        ordinal: Place in its document, from 0; neighbours are ordinal ± 1.
        title: The document's title, or an empty string.
        text: The full text.
        sentences: The sentences, in order.
        tokens: Tokens of the text.
        whole: Whether it is the document's whole text.
        pages: First and last page, for documents that have pages.
    """

    id: str
    document_id: str
    ordinal: int
    title: str
    text: str
    sentences: tuple[Sentence, ...]
    tokens: int
    whole: bool
    pages: tuple[int, int] | None = None

    def sentence_text(self, position: int) -> str:
        """Return the text of the sentence at a position."""
        sentence = self.sentences[position]
        return self.text[sentence.start : sentence.end]

    def embedded_texts(self) -> list[str]:
        """Return the texts of the sentences that have a vector, in order."""
        return [self.text[s.start : s.end] for s in self.sentences if s.embedded]


@dataclass(frozen=True, slots=True)
class ShownSentence:
    """A sentence shown in a search result.

    Attributes:
        position: Its place among the chunk's sentences, from 0.
        text: What is shown of it, on one line.
        matched: Whether it matched, or is shown as context.
        similarity: Cosine similarity to the query, for matched sentences of a semantic search.
        cut: Whether the text is only a part of the sentence; `…` stands for what is left out.
    """

    position: int
    text: str
    matched: bool
    similarity: float | None = None
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What a search result shows of a chunk.

    Attributes:
        title: The document's title, or an empty string.
        heading: The nearest heading above the first sentence; empty for a document in one chunk.
        sentences: The sentences shown, in the order of the text.
        begins: Whether the first one is the chunk's first, a title aside.
        ends: Whether the last one is the chunk's last.
        whole: Whether this is the document's whole text.
    """

    title: str
    heading: str
    sentences: tuple[ShownSentence, ...]
    begins: bool
    ends: bool
    whole: bool


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found by a search.

    Attributes:
        chunk_id: The chunk.
        document_id: Its document.
        score: The paper's score, or the coverage; for a semantic search, the similarity of the best sentence.
        excerpt: What is shown of it.
        more: How many further sentences matched and are not shown.
        tokens: Tokens of the full chunk.
        keyword_counts: For a keyword search, the occurrences of each keyword that the chunk holds.
        apart: Keywords whose words the chunk holds, but apart from each other.
        matches: For a semantic search, the positions of all sentences that were found, shown or not.
    """

    chunk_id: str
    document_id: str
    score: float
    excerpt: Excerpt
    more: int
    tokens: int
    keyword_counts: dict[str, int] = field(default_factory=dict)
    apart: tuple[str, ...] = ()
    matches: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Term:
    """A term that the corpus holds.

    Attributes:
        text: As it is spelled in the corpus.
        chunks: How many chunks hold it.
        respelled: Whether it has the keyword's letters: it is meant, not just similar.
    """

    text: str
    chunks: int
    respelled: bool = False


@dataclass(frozen=True, slots=True)
class KeywordReport:
    """How one keyword occurs in the corpus.

    Attributes:
        keyword: The keyword as given.
        chunks: How many chunks hold it.
        as_word: How many hold it as a word of its own, as far as that was counted; None without coverage.
        closest: Terms in the corpus that may be meant, if few or no chunks hold the keyword.
        searched_as: The spelling that the tool searched for instead, if it did.
        apart: Ids of the few chunks that hold all words of the keyword, but apart from each other.
    """

    keyword: str
    chunks: int
    as_word: int | None = None
    closest: tuple[Term, ...] = ()
    searched_as: str | None = None
    apart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeywordResults:
    """The result of a keyword search.

    Attributes:
        keywords: A report for each keyword, in the order given.
        hits: The best chunks, best first; ties by chunk id.
        total: How many chunks hold at least one keyword.
    """

    keywords: tuple[KeywordReport, ...]
    hits: tuple[Hit, ...]
    total: int


@dataclass(frozen=True, slots=True)
class SemanticResults:
    """The result of a semantic search.

    Attributes:
        query: The query.
        hits: The best chunks, best first; ties by chunk id.
    """

    query: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class ReadResults:
    """The result of reading chunks.

    Attributes:
        chunks: The chunks, in the order asked for, neighbours in text order around theirs; none twice.
        unknown: Ids that the index does not hold, each with ids that may be meant or serve as examples.
        parts: For each document, how many chunks it has, to show "part 2 of 9".
    """

    chunks: tuple[Chunk, ...]
    unknown: dict[str, tuple[str, ...]]
    parts: dict[str, int]


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """What an index knows about a document apart from its text.

    Attributes:
        id: The document's id.
        title: Its title, or an empty string.
        source: The file that it was read from, or the `source` of its metadata, or an empty string.
        metadata: Further fields, as they were.
        chunks: How many chunks it has.
    """

    id: str
    title: str
    source: str
    metadata: dict[str, Any]
    chunks: int


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What an index holds.

    Attributes:
        path: Its folder, or its address without a password.
        documents: Number of documents.
        chunks: Number of chunks.
        sentences: Number of sentences with a vector.
        tokens: Tokens of all chunks.
        embedder: Name of the embedder.
        dimension: Length of its vectors.
        distance: Distance function of the vectors.
        chunk_tokens: Size that chunks are cut to, in tokens.
        tokenizer: What counted the tokens: `o200k_base`, `estimate`, or both.
        language: Language of the sentence rules, or `auto`.
        bytes: Size on disk; 0 for a limited index, whose share of the files is not known.
    """

    path: str
    documents: int
    chunks: int
    sentences: int
    tokens: int
    embedder: str
    dimension: int
    distance: str
    chunk_tokens: int
    tokenizer: str
    language: str
    bytes: int
