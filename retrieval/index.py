"""The index: three retrieval functions over one corpus (paper, section 3)."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from arag.errors import (
    EmbedderError,
    IndexClosedError,
    IndexFormatError,
    IndexNotFoundError,
    InputError,
    StorageError,
)
from arag.models.embedders import Embedder
from arag.retrieval.backend import Backend, DocumentRecord, Manifest
from arag.retrieval.locations import backend_at
from arag.retrieval.scope import Scope
from arag.retrieval.snapshot import Snapshot
from arag.retrieval.text import fold
from arag.retrieval.trust import choose_embedder
from arag.retrieval.types import Chunk, DocumentInfo, IndexInfo, KeywordResults, ReadResults, SemanticResults

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from arag.retrieval.retriever import Granularity, IndexRetriever, Search

MAX_ADJACENT = 2
_PAGE = 500  # documents that are listed at a time
_MAX_TRIES = 10  # of a search while a writer publishes; generations are seconds apart

T = TypeVar("T")


def check_finished(manifest: Manifest, location: Path | str) -> None:
    """Refuse an index that is an unfinished copy: it would seem to hold few documents, or none.

    Args:
        manifest: Its manifest.
        location: The index, for messages.

    Raises:
        IndexNotFoundError: It is one.
    """
    if manifest.copy_of:
        command = shlex.join(["arag", "copy", manifest.copy_of, str(location)])
        raise IndexNotFoundError(f"the index in {location} is an unfinished copy: finish it with `{command}`")


class Index:
    """A corpus that can be searched and read.

    Use `open_index` to get one. Searches may run in several threads at once. If another process writes to the
    index, the next search sees what was written.

    Args:
        path: Where the index is: a folder, the address of a PostgreSQL database, or its backend.
        embedder: Embeds the queries. By default it is the one that the manifest names; if that sends texts or
            loads a folder, it is used only if the user has named it too (see `open_index`).

    Raises:
        IndexNotFoundError: There is no index there, or its first ingestion is not complete.
        IndexFormatError: The index is damaged, incomplete or of another format.
        InputError: The folder cannot be read, or the address is not valid.
        EmbedderError: The embedder is not the one that the index was made with.

    Example:
        >>> from arag import open_index
        >>> with open_index("my-index") as corpus:
        ...     corpus.keyword_search("Vellin Light").hits[0].chunk_id
        'places/vellin-light.md:0'
    """

    def __init__(self, path: str | Path | Backend, *, embedder: str | Embeddings | Embedder | None = None) -> None:
        self._backend = backend_at(path)
        self.path = self._backend.location
        self._lock = threading.Lock()
        manifest = self._backend.manifest()
        check_finished(manifest, self.path)
        if manifest.generation == 0 and manifest.documents == 0:  # the state at the start of a first ingestion
            raise IndexNotFoundError(
                f"the index in {self.path} holds no documents yet: run `arag ingest PATH... --index "
                f"{shlex.quote(str(self.path))}`; the same command finishes an ingestion that was interrupted"
            )
        self._embedder = choose_embedder(embedder, manifest.embedder, self.path)
        self._reader = self._backend.reader()
        self._stamp = self._reader.stamp()
        generation = self._reader.generation()
        self._manifest = generation.manifest
        self._snapshot: Snapshot | None = Snapshot(generation)  # None when closed
        self._scoped: WeakValueDictionary[Scope, ScopedIndex] = WeakValueDictionary()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return the index itself: copies of a tool share its open files."""
        return self

    def __repr__(self) -> str:
        m = self._manifest
        return f"Index({str(self.path)!r}, documents={m.documents}, chunks={m.chunks}, embedder={m.embedder!r})"

    def close(self) -> None:
        """Close the index's files.

        Example:
            >>> from arag import open_index
            >>> other = open_index("my-index")
            >>> other.close()
            >>> other.get("places/vellin-light.md:0")
            Traceback (most recent call last):
                ...
            arag.errors.IndexClosedError: the index in my-index is closed: open it again with open_index
        """
        with self._lock:
            self._reader.close()
            self._snapshot = None  # releases the files

    def scoped(self, scope: Scope) -> Index:
        """Return this index limited to the documents that a scope allows.

        Everything else is as if the index did not hold it: results, counts, scores, suggestions, neighbours and error
        messages equal those of an index of these documents. Of a packed chunk only their parts are left, and its id is
        made from the first of them. The scope is applied again whenever a writer publishes.

        Closing this index closes the scoped ones, too.

        Args:
            scope: The scope; on an index that is scoped already, both apply.

        Example:
            >>> from arag import Scope
            >>> ships = index.scoped(Scope(documents=["ships/*"]))
            >>> ships.keyword_search("Vellin Light", top_k=2).total, ships.get("places/vellin-light.md:0")
            (0, None)
        """
        with self._lock:
            found = self._scoped.get(scope)
            if found is None:
                found = self._scoped[scope] = ScopedIndex(self, scope)
            return found

    @property
    def embedder(self) -> Embedder:
        """The embedder of the index, for texts that are to be compared with its sentences.

        Example:
            >>> index.embedder.embed_documents(["The light was lit."]).shape
            (1, 384)
        """
        return self._embedder

    def load_embedder(self) -> None:
        """Load the embedder now; otherwise the first semantic search does, and takes longer.

        Raises:
            EmbedderError: It cannot be loaded.

        Example:
            >>> index.load_embedder()
            >>> index.semantic_search("When was the Vellin Light first lit?", top_k=1).hits[0].chunk_id
            'places/vellin-light.md:0'
        """
        self._embedder.load()

    def keyword_search(
        self,
        keywords: str | Sequence[str],
        top_k: int = 5,
        *,
        within: Sequence[str] | None = None,
        by_coverage: bool = False,
    ) -> KeywordResults:
        """Find the chunks that hold keywords, exactly and case-insensitively (paper, section 3.2).

        Score(c, K) = sum over k in K of count(k, T_c) * |k|: non-overlapping occurrences in the chunk's text,
        times the keyword's length in characters. Runs of white space count as one space, in the texts and in the
        keywords, so words on two lines are found too. Ties are broken by chunk id.

        Args:
            keywords: Keywords; surrounding white space and repetitions (ignoring case) are dropped.
            top_k: How many chunks to return, at least 1.
            within: Ids of the documents to search in; by default all.
            by_coverage: Rank as the tools do, by how many of the keywords a chunk holds and how rare they are
                (BM25's term weight; repetitions add little), and return each keyword's best chunk too, so that there
                may be more than `top_k`. Occurrences inside longer words do not count for a keyword that occurs as a
                word.

        Returns:
            The best chunks with the sentences that hold the keywords, and for every keyword how many chunks
            hold it.

        Raises:
            InputError: No keyword is given, or `top_k` is below 1.

        Example:
            >>> found = index.keyword_search(["Grey Petrel", "Oddvar"], top_k=2)
            >>> [(hit.chunk_id, hit.keyword_counts) for hit in found.hits]
            [('ships/grey-petrel-packet-schooner.md:0', {'Grey Petrel': 5}),
             ('ships/grey-petrel-mail-steamer.md:0', {'Grey Petrel': 3})]
            >>> [term.text for term in found.keywords[1].closest]
            ['Odvár']
        """
        _check_top_k(top_k)
        wanted = _drop_repetitions([keywords] if isinstance(keywords, str) else keywords)
        if not wanted:
            raise InputError("no keyword given: keyword_search needs at least one that is not blank")
        return self._search(lambda snapshot: snapshot.keyword_search(wanted, top_k, within, by_coverage=by_coverage))

    def semantic_search(
        self, query: str, top_k: int = 5, *, within: Sequence[str] | None = None, subjects: bool = False
    ) -> SemanticResults:
        """Find the chunks with the sentences nearest to a query (paper, section 3.2).

        Sentences are ranked by cosine similarity; a chunk's score is that of its best sentence. Ties are broken by
        chunk id. More sentences are fetched until there are `top_k` chunks, or no sentences are left.

        Args:
            query: The query.
            top_k: How many chunks to return, at least 1.
            within: Ids of the documents to search in; by default all.
            subjects: Also return, in front, up to two documents whose titles the query names.

        Returns:
            The best chunks with their nearest sentences.

        Raises:
            InputError: The query is blank, or `top_k` is below 1.
            EmbedderError: The query cannot be embedded, or its vector does not fit the index.

        Example:
            >>> found = index.semantic_search("When was the Vellin Light first lit?", top_k=3)
            >>> len(found.hits), found.hits[0].chunk_id
            (3, 'places/vellin-light.md:0')
        """
        _check_top_k(top_k)
        vector = self._embed(query)
        return self._search(lambda snapshot: snapshot.semantic_search(query, vector, top_k, within, subjects=subjects))

    def rate_sentences(self, query: str, chunk_ids: Sequence[str]) -> dict[str, dict[int, float]]:
        """Compare the sentences of chunks with a query.

        Args:
            query: The query.
            chunk_ids: Ids of chunks; unknown ones are left out.

        Returns:
            For each chunk, the cosine similarity of its sentences by their positions; bare headings have none.

        Raises:
            InputError: The query is blank.
            EmbedderError: The query cannot be embedded, or its vector does not fit the index.

        Example:
            >>> rated = index.rate_sentences("Who built it?", ["places/vellin-light.md:0"])
            >>> len(rated["places/vellin-light.md:0"])
            13
        """
        vector = self._embed(query)
        return self._search(lambda snapshot: snapshot.rate_sentences(vector, chunk_ids))

    def find_documents(self, name: str, limit: int = 100) -> list[str]:
        """Find documents by a part of their name.

        Args:
            name: A document's id, a chunk's id, or words that all occur in the id or the title, in any order; the
                case of ASCII letters does not matter.
            limit: How many documents to return at most, at least 1.

        Returns:
            Ids of documents.

        Example:
            >>> index.find_documents("grey petrel steamer")
            ['ships/grey-petrel-mail-steamer.md']
        """
        return self._search(lambda snapshot: snapshot.find_documents(name, limit))

    def find_topics(self, chunk_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Find words that tell parts of long documents from the rest of these.

        A word tells the more, the more often the part and those beside it have it, and the fewer other parts of the
        document do (tf-idf).

        Args:
            chunk_ids: Ids of chunks.

        Returns:
            Up to three words by chunk id, the most telling first, in Latin, Greek or Cyrillic letters. Chunks of
            documents with fewer than ten are left out.

        Example:
            >>> index.find_topics(["places/vellin-light.md:0"])  # the document's only chunk
            {}
        """
        return self._search(lambda snapshot: snapshot.find_topics(chunk_ids))

    def _embed(self, query: str) -> NDArray[np.float32]:
        if not query.strip():
            raise InputError("the query is blank: give words to search for")
        vector = self._embedder.embed_query(query)
        dimension = self._search(lambda snapshot: snapshot.manifest.dimension)
        if vector.shape != (dimension,):
            raise EmbedderError(
                f"the embedder {self._embedder.name} returns vectors of {vector.shape[0]} dimensions, but the "
                f"index in {self.path} has {dimension}"
            )
        return vector

    def read(self, chunk_ids: str | Sequence[str], adjacent: int = 0) -> ReadResults:
        """Return full chunks (paper, section 3.2).

        An id is also found in brackets or quotes, or if it is the id of a document that has only one chunk.

        Args:
            chunk_ids: Chunk ids.
            adjacent: How many chunks before and after each to return as well, 0 to 2.

        Returns:
            The chunks, each once, and the ids that the index does not hold.

        Raises:
            InputError: `adjacent` is out of bounds.

        Example:
            >>> found = index.read(["places/vellin-light.md:0", "no-such-chunk"])
            >>> [chunk.id for chunk in found.chunks], [unknown.chunk_id for unknown in found.unknown]
            (['places/vellin-light.md:0'], ['no-such-chunk'])
        """
        if not 0 <= adjacent <= MAX_ADJACENT:
            raise InputError(f"adjacent is {adjacent}: valid are 0 to {MAX_ADJACENT}")
        wanted = [chunk_ids] if isinstance(chunk_ids, str) else list(dict.fromkeys(chunk_ids))
        return self._search(lambda snapshot: snapshot.read(wanted, adjacent))

    def get(self, chunk_id: str) -> Chunk | None:
        """Return the chunk with exactly this id, or None.

        Example:
            >>> index.get("places/vellin-light.md:0").text[:14]
            '# Vellin Light'
            >>> index.get("places/vellin-light.md") is None
            True
        """
        return self._search(lambda snapshot: snapshot.chunks.mget([chunk_id])[0])

    def chunk_ids(self) -> Iterator[str]:
        """Yield the ids of all chunks, in the order of ingestion.

        Example:
            >>> next(index.chunk_ids())
            'events/chronicle-of-the-lanthry-isles.md:0'
        """
        return iter(self._search(lambda snapshot: list(snapshot.chunks.yield_keys())))

    def sentence_vectors(self) -> Iterator[tuple[Chunk, list[int], NDArray[np.float32]]]:
        """Yield every chunk with the vectors of its sentences, in the order of ingestion.

        The chunks are read a few hundred at a time. If a writer publishes meanwhile, those that it removes are left
        out. The vectors are stored with 16 bits a number.

        Yields:
            The chunk, the positions of its embedded sentences (bare headings have no vector), and their vectors of
            length one, shape (positions, dimension).

        Example:
            >>> chunk, positions, vectors = next(index.sentence_vectors())
            >>> chunk.sentence_text(positions[0])[:28], vectors.shape == (len(positions), 384)
            ('*Compiled for the use of sch', True)
        """
        ids = list(self.chunk_ids())
        for begin in range(0, len(ids), _PAGE):
            yield from self._search(lambda snapshot: snapshot.sentence_vectors(ids[begin : begin + _PAGE]))  # noqa: B023

    def document(self, document_id: str) -> DocumentInfo | None:
        """Return what is known about a document apart from its text, or None if the index does not hold it.

        Example:
            >>> found = index.document("notice-1763-ropewalk")
            >>> found.title, found.metadata
            ('Notice: apprentice wanted at the ropewalk', {'year': 1763})
        """
        record = self._search(lambda snapshot: snapshot.chunks.document(document_id))
        return None if record is None else _describe_document(record)

    def documents(self, after: str = "") -> Iterator[DocumentInfo]:
        """Yield what is known about each document apart from its text, in the order of their ids.

        The documents are read a few hundred at a time. If a writer publishes meanwhile, the rest is as it is then.

        Args:
            after: Yield only documents with ids after this one, which need not exist.

        Example:
            >>> from itertools import islice
            >>> page = list(islice(index.documents(), 2))
            >>> [found.id for found in page]
            ['events/chronicle-of-the-lanthry-isles.md', 'events/sorrelock-flooding.html']
            >>> next(index.documents(after=page[-1].id)).title
            "St. Ebbery's Gale"
        """
        last = after
        while page := self._search(lambda snapshot: list(islice(snapshot.chunks.documents(after=last), _PAGE))):  # noqa: B023 - called at once
            yield from map(_describe_document, page)
            last = page[-1].id

    def document_text(self, document_id: str) -> str | None:
        """Return a document's whole text, or None if the index does not hold it.

        Example:
            >>> index.document_text("places/skellavy.md")[:10]
            '# Skellavy'
        """
        chunks = self._search(lambda snapshot: snapshot.chunks.chunks_of([document_id]))
        parts = [c.text[s.start : s.end] for c in chunks for s in c.sections if s.document_id == document_id]
        return "".join(parts) if parts else None

    def as_retriever(
        self, search: Search = "semantic", *, k: int = 5, granularity: Granularity = "chunk"
    ) -> IndexRetriever:
        """Return a LangChain retriever.

        Its documents have the chunk's id (and `#` with the position, for a sentence) as `id`, the text as
        `page_content`, and as `metadata`: `chunk_id`, `document_ids`, `title`, `source`, `score`, `pages` (first and
        last) if the document has pages, and the document's own fields. An own field with one of these names gets
        `document_` in front of its name. Chunks of several documents have no own fields, and titles and sources are
        joined by semicolons.

        Args:
            search: `semantic` compares the query with the sentences; the score is the cosine similarity. `keyword`
                looks for the words of the query exactly, without common English ones; words in double quotes are one
                keyword. It ranks as `keyword_search(..., by_coverage=True)`.
            k: How many documents to return, at least 1.
            granularity: `chunk` for chunks, or `sentence` for the best sentences of the best `k` chunks. By meaning
                these are the nearest ones of all. By keywords their score is the paper's, of the sentence.

        Raises:
            InputError: A setting is not valid.

        Example:
            >>> retriever = index.as_retriever(k=2, granularity="sentence")
            >>> found = retriever.invoke("When was the Vellin Light first lit?")
            >>> found[0].metadata["chunk_id"], found[0].page_content
            ('places/vellin-light.md:0', '...')
        """
        from arag.retrieval.retriever import IndexRetriever

        return IndexRetriever.make(index=self, search=search, k=k, granularity=granularity)

    def info(self) -> IndexInfo:
        """Return what the index holds, and the settings that it was made with.

        Example:
            >>> found = index.info()
            >>> found.documents, found.chunk_tokens, found.language
            (25, 1000, 'auto')
        """
        return replace(self._describe(), bytes=self._backend.size())

    def _describe(self) -> IndexInfo:
        counts, manifest = self._search(lambda snapshot: (snapshot.chunks.counts(), snapshot.manifest))
        return IndexInfo(
            path=str(self.path),
            documents=counts.documents,
            chunks=counts.chunks,
            sentences=counts.sentences,
            tokens=counts.tokens,
            embedder=manifest.embedder,
            dimension=manifest.dimension,
            distance=manifest.distance,
            chunk_tokens=manifest.chunk_tokens,
            tokenizer=manifest.tokenizer,
            language=manifest.language,
            packed=manifest.packed,
            bytes=0,
        )

    def _search(self, search: Callable[[Snapshot], T]) -> T:
        """Search the index as it is now, and again if a writer has replaced it meanwhile.

        Raises:
            IndexClosedError: The index is closed.
        """
        for _ in range(_MAX_TRIES - 1):
            snapshot = self._refresh()
            try:
                result = search(snapshot)
            except (IndexFormatError, StorageError):
                if self._refresh() is snapshot:
                    raise
            else:
                if self._refresh() is snapshot:
                    return result
        return search(self._refresh())

    def _refresh(self) -> Snapshot:
        """Return the generation that the manifest describes."""
        with self._lock:
            if self._snapshot is None:
                raise IndexClosedError(f"the index in {self.path} is closed: open it again with open_index")
            stamp = self._reader.stamp()
            if stamp != self._stamp:
                generation = self._reader.generation()
                self._embedder = choose_embedder(self._embedder, generation.manifest.embedder, self.path)
                self._snapshot = Snapshot(generation)
                self._manifest = generation.manifest
                self._stamp = stamp
            return self._snapshot


class ScopedIndex(Index):
    """An index limited to a scope; see `Index.scoped`.

    Args:
        whole: The index, which may be scoped itself.
        scope: The scope.
    """

    def __init__(self, whole: Index, scope: Scope) -> None:
        self.path = whole.path
        self._whole = whole
        self._scope = scope
        self._lock = threading.Lock()
        self._scoped = WeakValueDictionary()

    def __repr__(self) -> str:
        return f"Index({str(self.path)!r}).scoped({self._scope!r})"

    def close(self) -> None:
        """Do nothing: the files belong to the whole index."""

    @property
    def embedder(self) -> Embedder:
        """The embedder of the index; see `Index.embedder`."""
        return self._whole.embedder

    def load_embedder(self) -> None:
        """Load the embedder now; see `Index.load_embedder`."""
        self._whole.load_embedder()

    def info(self) -> IndexInfo:
        """Return what the scope holds; see `Index.info`."""
        return self._describe()

    def _embed(self, query: str) -> NDArray[np.float32]:
        return self._whole._embed(query)  # noqa: SLF001 - its own

    def _refresh(self) -> Snapshot:
        """Return the scope's part of the generation that the manifest describes."""
        while True:
            whole = self._whole._refresh()  # noqa: SLF001 - its own
            with self._lock:
                try:
                    return whole.parts.get(self) or whole.parts.setdefault(self, whole.part(self._scope))
                except (IndexFormatError, StorageError):
                    if self._whole._refresh() is whole:  # noqa: SLF001 - else it was replaced meanwhile
                        raise


def open_index(path: str | Path | Backend, *, embedder: str | Embeddings | Embedder | None = None) -> Index:
    """Open an index for searching.

    Args:
        path: Where the index is: a folder, the address of a PostgreSQL database, or its backend.
        embedder: By default, the index's own. It is needed if the index was made with an `Embeddings` object, or if
            only the index's files name an embedder that sends texts to a service or loads a folder: then semantic
            searches raise an EmbedderError, unless the user has named it in the environment variable ARAG_EMBEDDER,
            by making an index with it, or by answering yes to the command line's question.

    Returns:
        The index; a context manager.

    Raises:
        IndexNotFoundError: There is no index there, or its first ingestion is not complete.
        IndexFormatError: The index is damaged, incomplete or of another format.
        InputError: The folder cannot be read, or the address is not valid.
        EmbedderError: The embedder is not the one that the index was made with.

    Example:
        >>> from arag import open_index
        >>> with open_index("my-index") as corpus:
        ...     corpus.info().documents
        25
    """
    return Index(path, embedder=embedder)


def _describe_document(record: DocumentRecord) -> DocumentInfo:
    metadata = json.loads(record.metadata)
    source = record.source or metadata.get("source")
    return DocumentInfo(record.id, record.title, source if isinstance(source, str) else "", metadata, record.chunks)


def _check_top_k(top_k: int) -> None:
    if top_k < 1:
        raise InputError(f"top_k is {top_k}: it must be at least 1")


def _drop_repetitions(texts: Iterable[str]) -> list[str]:
    """Fold white space, and drop blank texts and repetitions, ignoring case."""
    found: dict[str, str] = {}
    for text in map(fold, texts):
        if text:
            found.setdefault(text.lower(), text)
    return list(found.values())
