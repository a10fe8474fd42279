"""The objects that the index stores and returns. All are immutable and hold plain values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Section:
    """The part of a chunk that comes from one document.

    A chunk has one section; a packed chunk has one for each document in it.

    Attributes:
        document_id: The document.
        title: Its title, or an empty string.
        start: Character offset in the chunk's text at which the section starts.
        end: Offset after its last character.
        whole: Whether the section is the document's whole text.

    Example:
        >>> index.get("places/skellavy.md:0").sections[0].title
        'Skellavy'
    """

    document_id: str
    title: str
    start: int
    end: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a chunk, by its place.

    Attributes:
        start: Character offset in the chunk's text.
        end: Offset after its last character, white space not included.
        embedded: Whether it has a vector; bare headings have none.

    Example:
        >>> chunk = index.get("places/skellavy.md:0")
        >>> first = chunk.sentences[1]
        >>> chunk.text[first.start : first.end]
        'Skellavy is the northernmost and hardest of the seven inhabited Lanthry Isles...'
    """

    start: int
    end: int
    embedded: bool


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of about a thousand tokens: the unit that is ranked and read.

    Attributes:
        id: `<document id>:<ordinal>`, or the id that came with a ready-made chunk.
        document_id: The document, the first one of a packed chunk.
        ordinal: Place in its document, from 0; neighbours are ordinal ± 1.
        text: The full text.
        sections: What comes from which document, in order, covering the text.
        sentences: The sentences, in order.
        tokens: Tokens of the text.
        pages: First and last page, for documents that have pages.

    Example:
        >>> chunk = index.get("places/skellavy.md:0")
        >>> chunk.document_id, chunk.ordinal, len(chunk.sentences)
        ('places/skellavy.md', 0, 14)
    """

    id: str
    document_id: str
    ordinal: int
    text: str
    sections: tuple[Section, ...]
    sentences: tuple[Sentence, ...]
    tokens: int
    pages: tuple[int, int] | None = None

    def section_at(self, offset: int) -> Section:
        """Return the section that holds a character offset."""
        for section in self.sections:
            if offset < section.end:
                return section
        return self.sections[-1]

    def sentence_text(self, position: int) -> str:
        """Return the text of the sentence at a position."""
        sentence = self.sentences[position]
        return self.text[sentence.start : sentence.end]

    def embedded_texts(self) -> list[str]:
        """Return the texts of the sentences that have a vector, in order."""
        return [self.text[s.start : s.end] for s in self.sentences if s.embedded]


@dataclass(frozen=True, slots=True)
class SnippetSentence:
    """A sentence shown in a search result.

    Attributes:
        position: Its place among the chunk's sentences, from 0.
        text: What is shown of it; `…` stands for what was cut from a very long sentence.
        matched: Whether it matched, or is shown as context.
        similarity: Cosine similarity to the query, for matched sentences of a semantic search.

    Example:
        >>> hit = index.keyword_search(["lens"]).hits[0]
        >>> [sentence.matched for sentence in hit.snippets[0].sentences]
        [True, False]
    """

    position: int
    text: str
    matched: bool
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Snippet:
    """What a search result shows of one document in a chunk.

    Attributes:
        document_id: The document.
        title: Its title, or an empty string.
        sentences: The sentences shown, in the order of the text.
        begins: Whether the first one is the first that the chunk holds of the document, a title aside.
        ends: Whether the last one is the last that the chunk holds of it.
        whole: Whether this is the document's whole text.
        heading: The nearest heading above the first one, if it is in the chunk; empty for a document in one chunk.
        topics: Words that tell a part of a long document without headings from the rest, as the tools show them.

    Example:
        >>> hit = index.keyword_search(["Grey Petrel"]).hits[0]
        >>> hit.snippets[0].title
        'Grey Petrel (packet schooner)'
    """

    document_id: str
    title: str
    sentences: tuple[SnippetSentence, ...]
    begins: bool
    ends: bool
    whole: bool
    heading: str = ""
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found by a search.

    Attributes:
        chunk_id: The chunk.
        document_ids: The documents in it.
        score: The paper's score: for keywords the sum of count times length, for a semantic search the cosine
            similarity of the best sentence. In a ranking by coverage, the coverage.
        keyword_counts: For a keyword search, the occurrences of each keyword that the chunk holds; 0 if it only holds
            the keyword's words, apart from each other.
        matches: For a semantic search, the positions of all its sentences that were found, also of those not shown.
        snippets: What is shown, by document.
        more: How many further sentences matched and are not shown.
        tokens: Tokens of the full chunk.

    Example:
        >>> hit = index.keyword_search(["Grey Petrel"]).hits[0]
        >>> hit.chunk_id, hit.score, hit.keyword_counts
        ('ships/grey-petrel-packet-schooner.md:0', 55, {'Grey Petrel': 5})
    """

    chunk_id: str
    document_ids: tuple[str, ...]
    score: float
    snippets: tuple[Snippet, ...]
    more: int
    tokens: int
    keyword_counts: dict[str, int] = field(default_factory=dict)
    matches: tuple[int, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether the snippets show the chunk's whole text."""
        return len(self.snippets) == len(self.document_ids) and all(snippet.whole for snippet in self.snippets)


@dataclass(frozen=True, slots=True)
class Term:
    """A term that the corpus holds.

    Attributes:
        text: As it is spelled in the corpus, line breaks included.
        chunks: How many chunks hold it.
        respelled: Whether it is the keyword with other diacritics, spaces, dashes, commas, brackets or
            quotation marks: meant, not just similar.

    Example:
        >>> index.keyword_search(["Grey Petral"]).keywords[0].closest[0].text
        'Grey Petrel'
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
        as_word: How many of them hold it as a word of its own, not only inside longer words, as far as that was
            counted; None if the ranking is not by coverage.
        closest: Terms in the corpus that may be meant, if few or no chunks hold the keyword.
        searched_as: The spelling that the tool searched for instead, if it did.
        apart: Ids of chunks that hold all words of the keyword, but apart from each other: for a ranking by coverage,
            if no chunk holds the keyword, and there are no more than two.

    Example:
        >>> report = index.keyword_search(["Grey Petrel"]).keywords[0]
        >>> report.keyword, report.chunks
        ('Grey Petrel', 3)
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

    Example:
        >>> results = index.keyword_search(["Grey Petrel", "Vellin"], top_k=2)
        >>> len(results.hits), results.total
        (2, 11)
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

    Example:
        >>> results = index.semantic_search("Which ship carried letters?", top_k=2)
        >>> results.query, len(results.hits)
        ('Which ship carried letters?', 2)
    """

    query: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class UnknownChunk:
    """A chunk id that the index does not hold.

    Attributes:
        chunk_id: The id asked for.
        closest: Ids in the index that may be meant, or else some of its ids as examples. Only
            the first 20 unknown ids of a read have them.

    Example:
        >>> index.read("places/skelavy.md:0").unknown[0].closest[0]
        'places/skellavy.md:0'
    """

    chunk_id: str
    closest: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadResults:
    """The result of reading chunks.

    Attributes:
        chunks: The chunks, in the order asked for, neighbours in text order around theirs; none twice.
        unknown: Ids that the index does not hold.
        chunks_in_document: For each document, how many chunks it has, to show "part 2 of 9".

    Example:
        >>> results = index.read(["places/skellavy.md:0", "nowhere:0"])
        >>> len(results.chunks), results.unknown[0].chunk_id
        (1, 'nowhere:0')
    """

    chunks: tuple[Chunk, ...]
    unknown: tuple[UnknownChunk, ...]
    chunks_in_document: dict[str, int]


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """What an index knows about a document apart from its text.

    Attributes:
        id: The document's id.
        title: Its title, or an empty string.
        source: The file that it was read from, with the line or item for records. For a document that was given in
            Python, the `source` of its metadata, or an empty string.
        metadata: Further fields, as they were.
        chunks: How many chunks hold a part of it.

    Example:
        >>> found = index.document("places/skellavy.md")
        >>> found.title, found.chunks
        ('Skellavy', 1)
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
        distance: Distance function of the vector store.
        chunk_tokens: Size that chunks are cut to, in tokens.
        tokenizer: What counted the tokens: `o200k_base`, `estimate`, or both, for different documents.
        language: Language of the sentence rules, or `auto`.
        packed: Whether consecutive short documents share chunks.
        bytes: Size on disk; 0 for a scoped index, whose share of the files is not known.

    Example:
        >>> info = index.info()
        >>> info.documents, info.chunks, info.dimension
        (25, 26, 384)
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
    packed: bool
    bytes: int
