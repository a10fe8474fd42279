"""The index: three retrieval functions over one corpus (paper, section 3)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from arag.errors import IndexFormatError, InputError, ModelError, StorageError
from arag.models.embedders import Embedder
from arag.models.names import knows_only_english
from arag.retrieval.corpus.documents import list_documents
from arag.retrieval.corpus.grep import grep
from arag.retrieval.corpus.overview import find_overview
from arag.retrieval.corpus.patterns import compile_pattern
from arag.retrieval.corpus.sql import TableResults, query_tables
from arag.retrieval.corpus.types import DocumentList, GrepResults
from arag.retrieval.scope import Scope
from arag.retrieval.search.keyword import distinct, keyword_search
from arag.retrieval.search.reading import find_documents, read
from arag.retrieval.search.semantic import rate, semantic_search
from arag.retrieval.snapshots import Snapshot, Snapshots
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.contract import IndexStore, View
from arag.retrieval.storage.locations import store_at
from arag.retrieval.storage.records import DocumentRecord, Ranking, Settings, Vectors
from arag.retrieval.types import Chunk, DocumentInfo, IndexInfo, KeywordResults, ReadResults, SemanticResults
from arag.text.normalise import shorten

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from arag.retrieval.tools.retriever import IndexRetriever, Search

MAX_ADJACENT = 2
_PAGE = 500  # documents or chunks that are read at a time: more take more memory, fewer more queries
_MAX_SHOWN = 100  # characters of a wrong value in a message

P = ParamSpec("P")
T = TypeVar("T")
_Limit: TypeAlias = Scope | frozenset[str]


def open_index(path: str | Path | IndexStore, *, embedder: str | Embeddings | Embedder | None = None) -> Index:
    """Open an index for searching.

    Args:
        path: Where the index is: a folder, the address of a PostgreSQL database, or its store.
        embedder: By default, the index's own. It is needed if the index was made with an `Embeddings` object, or if
            only the index's files name an embedder that sends texts to a service or loads a folder: then semantic
            searches raise a ModelError, unless the user has named it here or in the environment variable
            ARAG_EMBEDDER.

    Returns:
        The index; a context manager.

    Raises:
        IndexNotFoundError: There is no index there, or its first ingestion is not complete.
        IndexFormatError: The index is damaged or of another format.
        InputError: The folder cannot be read, or the address is not valid.
        StorageError: The index cannot be read, or its database cannot be reached.
        ModelError: The embedder is not the one that the index was made with.

    Example:
        >>> from arag import open_index
        >>> with open_index("my-index") as corpus:
        ...     corpus.info().documents
        25
    """
    return Index(Snapshots(store_at(path), embedder))


class Index:
    """A corpus that can be searched and read.

    Use `open_index` to get one. Searches may run in several threads at once. If another process writes to the
    index, the next search sees the changes.

    Attributes:
        path: Where the index is: a folder, or an address without a password.

    Example:
        >>> from arag import open_index
        >>> with open_index("my-index") as corpus:
        ...     corpus.keyword_search("Vellin Light").hits[0].chunk_id
        'places/vellin-light.md:0'
        >>> index.semantic_search("When was the Vellin Light first lit?", top_k=1).hits[0].chunk_id
        'places/vellin-light.md:0'
        >>> results = index.read(["places/vellin-light.md:0", "no-such-chunk"])
        >>> [chunk.title for chunk in results.chunks], list(results.unknown)
        (['Vellin Light'], ['no-such-chunk'])
    """

    def __init__(self, snapshots: Snapshots, parent: Index | None = None, limit: _Limit | None = None) -> None:
        self.path = snapshots.store.location
        self._snapshots = snapshots
        self._parent = parent  # the index that this one is a part of
        self._limit = limit
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return the index itself: copies of a tool share its open files."""
        return self

    def __repr__(self) -> str:
        if self._parent is not None:
            return f"{self._parent!r}.limited_to({self._limit!r})"
        settings = self._snapshots.settings
        return (
            f"Index({str(self.path)!r}, documents={settings.documents}, chunks={settings.chunks}, "
            f"embedder={settings.embedder!r})"
        )

    def close(self) -> None:
        """Close the index's files, and the indexes that were limited from it. On a limited index, do nothing."""
        if self._parent is None:
            self._snapshots.close()

    def limited_to(self, limit: Scope | Collection[str]) -> Index:
        """Return this index limited to some documents.

        Everything else is as if the index did not hold it: results, counts, scores, suggestions, neighbours and error
        messages equal those of an index of these documents. The limit is applied again whenever a writer publishes.

        Args:
            limit: A scope, or ids of documents. On an index that is limited already, both limits apply.
        """
        if isinstance(limit, str):
            shown = shorten(repr(limit), _MAX_SHOWN)
            raise InputError(f"{shown} is a string: give a scope, or a list of documents' ids")
        if not isinstance(limit, Scope):
            limit = frozenset(limit)
        return Index(self._snapshots, parent=self, limit=limit)

    @property
    def store(self) -> IndexStore:
        """Where the index is kept."""
        return self._snapshots.store

    @property
    def embedder(self) -> Embedder:
        """The embedder of the index, for texts to compare with its sentences. `load()` loads it."""
        return self._snapshots.embedder

    def keyword_search(
        self, keywords: str | Sequence[str], top_k: int = 5, *, ranking: Ranking = "paper"
    ) -> KeywordResults:
        """Find the chunks that hold keywords, exactly and case-insensitively (paper, section 3.2).

        Score(c, K) = sum over k in K of count(k, T_c) * |k|: non-overlapping occurrences in the chunk's text,
        times the keyword's length in characters. Runs of white space count as one space, in the texts and in the
        keywords, so words on two lines are found too. Ties are broken by chunk id.

        Args:
            keywords: Keywords; surrounding white space and repetitions (ignoring case) are dropped.
            top_k: How many chunks to return, at least 1.
            ranking: `paper` for Score(c, K). `bm25` ranks as the tools do: by how many of the keywords a chunk holds,
                and how rare they are (BM25's term weight; repetitions add little). It also returns each keyword's best
                chunk, so that there may be more than `top_k`. Occurrences inside longer words do not count for a
                keyword that occurs as a word. Of a keyword that no chunk holds, chunks with all of its words are
                returned, if they are few; other spellings of the same letters that the corpus has are looked for, too.
                Tables of contents come behind other chunks with the same keywords.

        Returns:
            The best chunks, and for every keyword how many chunks hold it.

        Raises:
            InputError: No keyword is given, or `top_k` is below 1.
        """
        _check_top_k(top_k)
        if isinstance(keywords, str):
            keywords = [keywords]
        wanted = distinct(keywords)
        if not wanted:
            raise InputError("no keyword given: keyword_search needs at least one that is not blank")
        return self._search(keyword_search, wanted, top_k, ranking=ranking)

    def semantic_search(self, query: str, top_k: int = 5, *, titles_first: bool = False) -> SemanticResults:
        """Find the chunks with the sentences nearest to a query (paper, section 3.2).

        A chunk's score is the similarity of its best sentence: the cosine of the vectors, on a scale that is the same
        for all embedders (see "How it works"). Ties are broken by chunk id. More sentences are fetched until there are
        `top_k` chunks, or no sentences are left.

        Args:
            query: The query.
            top_k: How many chunks to return, at least 1.
            titles_first: Rank as the tools do: return in front, in addition, up to two chunks of documents whose titles
                stand in the query or are nearly all of it; and tables of contents behind the others of the 20 nearest.

        Returns:
            The best chunks with their nearest sentences.

        Raises:
            InputError: The query is blank, or `top_k` is below 1.
            ModelError: The query cannot be embedded, or its vector does not fit the index.
        """
        _check_top_k(top_k)
        vector = self._embed(query)
        return self._search(semantic_search, query, vector, top_k, titles_first=titles_first)

    def rate_sentences(self, query: str, chunk_ids: Sequence[str]) -> dict[str, dict[int, float]]:
        """Compare the sentences of chunks with a query.

        Returns:
            For each chunk that the index holds, the similarity of its sentences by their positions, on the scale of
            `semantic_search`; bare headings have none.

        Raises:
            InputError: The query is blank.
            ModelError: The query cannot be embedded, or its vector does not fit the index.
        """
        vector = self._embed(query)
        return self._search(rate, vector, chunk_ids)

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
        """
        if not 0 <= adjacent <= MAX_ADJACENT:
            raise InputError(f"adjacent is {adjacent}: valid are 0 to {MAX_ADJACENT}")
        if isinstance(chunk_ids, str):
            chunk_ids = [chunk_ids]
        distinct_ids = list(dict.fromkeys(chunk_ids))
        return self._search(read, distinct_ids, adjacent)

    def get(self, chunk_id: str) -> Chunk | None:
        """Return the chunk with exactly this id, or None."""
        return self.mget([chunk_id])[0]

    def mget(self, chunk_ids: Sequence[str]) -> list[Chunk | None]:
        """Return the chunks with exactly these ids, in this order, and None for those that the index does not hold."""
        return self._search(lambda view: view.mget(chunk_ids))

    def chunk_ids(self) -> Iterator[str]:
        """Yield the ids of all chunks, in the order of ingestion."""
        return iter(self._search(lambda view: list(view.yield_keys())))

    def sentence_vectors(self) -> Iterator[tuple[Chunk, list[int], Vectors]]:
        """Yield every chunk with the vectors of its sentences, in the order of ingestion.

        If a writer publishes meanwhile, the chunks that it removes are left out. Vectors have 16 bits a number.

        Yields:
            The chunk, the positions of its embedded sentences (bare headings have no vector), and their vectors of
            length one, shape (positions, dimension).
        """
        for ids in batches(self.chunk_ids(), _PAGE):
            yield from self._search(_read_vectors, ids)

    def find_documents(self, name: str, limit: int = 100) -> list[str]:
        """Find documents by a part of their name.

        Args:
            name: A document's id, a chunk's id, or words that all occur in the id or the title, or else
                in the file's name, in any order; case does not matter.
            limit: How many ids of documents to return at most, at least 1.
        """
        return self._search(find_documents, name, limit)

    def document(self, document_id: str) -> DocumentInfo | None:
        """Return a description of a document, without its text, or None if the index does not hold it."""
        return self._search(_find_document, document_id)

    def documents(self, *, after: str = "") -> Iterator[DocumentInfo]:
        """Yield a description of each document, without its text, in the order of ids.

        If a writer publishes meanwhile, the rest is as it is then.

        Args:
            after: Begin after this id.
        """
        while page := self._search(_list_documents, after):
            yield from page
            after = page[-1].id

    def overview(self) -> str:
        """Return the names of all documents, or the largest folders with how many documents they hold, on one line."""
        return self._search(find_overview)

    def grep(
        self, pattern: str, *, within: str = "", ignore_case: bool = True, start: int = 0, limit: int = 1_000
    ) -> GrepResults:
        r"""Find all lines that match a pattern: complete, counted, and in the order of documents' ids and of the text.

        A line is a sentence, a heading, or a row of a table, with each run of white space as one space.

        Args:
            pattern: A regular expression in RE2's syntax. Its time is linear: there are no back-references and no
                look-around. `\w` matches letters and digits of all scripts.
            within: Look only in documents that this names, as in `find_documents`.
            ignore_case: Whether case does not matter.
            start: How many matching lines to leave out at the start.
            limit: How many lines to return at most; all are counted.

        Returns:
            The lines with their chunks, the numbers of all lines, chunks and documents, and the titles that match.

        Raises:
            InputError: The pattern is not valid, or takes too long; no document is named so; a number is below 0.

        Example:
            >>> results = index.grep(r"between (\d{4}) and (\d{4})")
            >>> results.total, results.lines[0].chunk_id, results.lines[0].groups
            (1, 'people/orlath-tamsin.md:0', (('1791', '1803'),))
        """
        _check_page(start, limit)
        compiled = compile_pattern(pattern, case="ignore" if ignore_case else "match")
        return self.within(within)._search(grep, compiled, start, limit)  # noqa: SLF001 - of this class

    def list_documents(
        self,
        *,
        within: str = "",
        where: Mapping[str, Any] | None = None,
        sort: str = "id",
        start: int = 0,
        limit: int = 1_000,
    ) -> DocumentList:
        """List documents with what is known of them, and the values of their metadata.

        Dates and authors that only tell which library has made an office file are left out.

        Args:
            within: Only documents that this names, as in `find_documents`.
            where: Conditions on their metadata, as a `Scope` has them.
            sort: `id`, `title`, `date`, `author`, `kind`, `chunks`, or a field of their metadata; with `-` in front,
                the highest comes first. Documents without a value come last.
            start: How many documents to leave out at the start.
            limit: How many documents to return at most; all are counted.

        Raises:
            InputError: A condition or a number is not valid, no document is named so, or none can be sorted so.

        Example:
            >>> listed = index.list_documents(where={"year": {"$lt": 1800}}, sort="-year")
            >>> listed.total, [document.id for document in listed.documents]
            (2, ['notice-1775-relief', 'notice-1763-ropewalk'])
        """
        _check_page(start, limit)
        limited = self.within(within)
        return limited._search(list_documents, where, sort, start, limit)  # noqa: SLF001 - of this class

    def within(self, name: str) -> Index:
        """Return this index limited to the documents that a name means, as in `find_documents`; a blank one means all.

        Raises:
            InputError: There is no such document.
        """
        if not name.strip():
            return self
        documents = self.find_documents(name, limit=max(1, self._settings().documents))
        if not documents:
            shown = shorten(repr(name), _MAX_SHOWN)
            raise InputError(f"no document has {shown} in its title, its id or its file's name")
        return self.limited_to(documents)

    def query_tables(self, sql: str = "", *, within: str = "") -> TableResults:
        """Query the tables of all documents with SQL.

        Tables with the same columns are one table, whose rows also have `chunk_id`, `document` and `sheet` (the
        headings above the row). Columns have their names in lower case with `_` between words. Cells of a column of
        numbers are numbers, without units: `45%` is 45. Dates are in the form of ISO 8601. The tables are read at the
        first call and kept.

        Args:
            sql: One SELECT statement in SQLite's language. Without it, the tables are listed.
            within: Only tables of the documents with these words in their title or id.

        Returns:
            The rows, or the tables.

        Raises:
            InputError: The statement is not valid, is not allowed, or takes too much time or memory; or no document is
                named by `within`.

        Example:
            >>> index.query_tables("SELECT name FROM tables").total
            0
        """
        return self._search(query_tables, sql, within)

    def as_retriever(
        self,
        search: Search = "semantic",
        *,
        k: int = 5,
        search_kwargs: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> IndexRetriever:
        """Return a LangChain retriever of chunks.

        Its documents have the chunk's id as `id`, the text as `page_content`, and as `metadata` the document's own
        fields and `chunk_id`, `document_id`, `title`, `source`, `score`, and `pages` (first and last) if the document
        has pages. Own fields with one of these names are left out.

        Args:
            search: `semantic` compares the query with the sentences; the score is their similarity. `keyword` looks
                for the words of the query, without common English ones; words in double quotes are one
                keyword. It ranks as `keyword_search(..., ranking="bm25")`.
            k: How many chunks to return, at least 1. A call may ask for another number: `retriever.invoke(query, k=3)`.
            search_kwargs: `{"k": ...}`, as LangChain's vector stores take it.
            tags: Tags of its runs in traces.
            metadata: Metadata of its runs in traces.

        Raises:
            InputError: `search_kwargs` has a key other than `k`.
        """
        from arag.retrieval.tools.retriever import IndexRetriever

        options = {"k": k, **(search_kwargs or {})}
        unknown = sorted(options.keys() - {"k"})
        if unknown:
            raise InputError(f"search_kwargs has unknown keys: {', '.join(unknown)}. Valid key: k")
        return IndexRetriever(
            index=self,
            search=search,
            k=options["k"],
            tags=list(tags or ()),
            metadata=dict(metadata or {}),
        )

    def info(self) -> IndexInfo:
        """Return what the index holds, and the settings that it was made with."""
        settings = asdict(self._settings())
        del settings["token"], settings["version"]
        other_languages = 0
        if knows_only_english(settings["embedder"]):
            other_languages = self._search(lambda view: view.count_other_languages())
        size = 0
        if self._parent is None:
            size = self._snapshots.store.size()
        return IndexInfo(
            path=str(self.path),
            bytes=size,
            other_languages=other_languages,
            incomplete=len(self.incomplete()),
            **settings,
        )

    def incomplete(self) -> dict[str, tuple[str, ...]]:
        """Return what the texts of documents lack of their files, such as `2 charts`, by the documents' ids."""
        return self._search(lambda view: view.incomplete())

    def _settings(self) -> Settings:
        return self._search(lambda view: view.settings)

    def _embed(self, query: str) -> NDArray[np.float32]:
        if not query.strip():
            raise InputError("the query is blank: give words to search for")
        dimension = self._settings().dimension
        vector = self.embedder.embed_query(query)
        if vector.shape != (dimension,):
            raise ModelError(
                f"the embedder {self.embedder.name} returns vectors of {vector.shape[0]} dimensions, but the "
                f"index in {self.path} has {dimension}"
            )
        return vector

    def _search(self, function: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function with a view of the last snapshot; if it fails and there is a newer one, try that."""
        while True:
            snapshot = self._snapshots.newest()
            try:
                return function(self._view(snapshot), *args, **kwargs)
            except (IndexFormatError, StorageError):
                if self._snapshots.newest() is snapshot:
                    raise

    def _view(self, snapshot: Snapshot) -> View:
        """Return the view of a snapshot, or the part of it that this index is limited to."""
        if self._parent is None or self._limit is None:
            return snapshot.view
        with self._lock:
            view = snapshot.limited.get(self)
            if view is None:
                allowed = _list_allowed(self._parent._view(snapshot), self._limit)  # noqa: SLF001 - of this class
                view = snapshot.view.limited_to(allowed)
                snapshot.limited[self] = view
            return view


def _list_allowed(view: View, limit: _Limit) -> list[str]:
    """Return the ids of a view's documents that a limit allows."""
    if not isinstance(limit, Scope):
        return list(view.fingerprints(limit))
    allows = limit.compile()
    return [record.id for record in view.documents() if allows(record.id, view.metadata(record))]


def _read_vectors(view: View, chunk_ids: Sequence[str]) -> list[tuple[Chunk, list[int], Vectors]]:
    row_ids = sorted(view.row_ids(chunk_ids).values())
    chunks = view.chunks_by_row_id(row_ids)
    in_order = sorted(view.vectors(row_ids), key=lambda entry: entry[0])
    return [(chunks[row_id], positions, vectors) for row_id, positions, vectors in in_order]


def _find_document(view: View, document_id: str) -> DocumentInfo | None:
    record = view.document(document_id)
    return None if record is None else _describe_document(view, record)


def _list_documents(view: View, after: str) -> list[DocumentInfo]:
    """Return a page of documents, beginning after an id."""
    page = islice(view.documents(after=after), _PAGE)
    return [_describe_document(view, record) for record in page]


def _describe_document(view: View, record: DocumentRecord) -> DocumentInfo:
    metadata = view.metadata(record)
    source = record.source or metadata.get("source")
    if not isinstance(source, str):
        source = ""
    reading = view.reading(record)
    return DocumentInfo(
        id=record.id,
        title=record.title,
        source=source,
        metadata=metadata,
        chunks=record.chunks,
        left_out=reading.left_out,
        ocr_pages=reading.ocr_pages,
    )


def _check_page(start: int, limit: int) -> None:
    if start < 0:
        raise InputError(f"start is {start}: it must be at least 0")
    if limit < 0:
        raise InputError(f"limit is {limit}: it must be at least 0")


def _check_top_k(top_k: int) -> None:
    if top_k < 1:
        raise InputError(f"top_k is {top_k}: it must be at least 1")
