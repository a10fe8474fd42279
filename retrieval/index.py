"""The index: three retrieval functions over one corpus (paper, section 3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arag.errors import InputError, ModelError
from arag.models.embedders import Embedder
from arag.retrieval.corpus.documents import list_documents
from arag.retrieval.corpus.grep import grep
from arag.retrieval.corpus.patterns import compile_pattern
from arag.retrieval.corpus.sql import TableResults, query_tables
from arag.retrieval.corpus.types import DocumentList, GrepResults
from arag.retrieval.index_reader import IndexReader
from arag.retrieval.search.keyword import distinct, keyword_search
from arag.retrieval.search.reading import read
from arag.retrieval.search.semantic import rate, rate_openings, semantic_search
from arag.retrieval.snapshots import Snapshots
from arag.retrieval.storage.contract import IndexStore
from arag.retrieval.storage.locations import store_at
from arag.retrieval.storage.records import Ranking
from arag.retrieval.types import KeywordResults, ReadResults, SemanticResults
from arag.text.normalise import without_division_signs

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from arag.retrieval.tools.retriever import IndexRetriever, Search

MAX_ADJACENT = 2


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


def ensure_open(index: Index | str | Path) -> Index:
    """Return an index as it is, or open the one at a location; then it stays open as long as it is used."""
    return index if isinstance(index, Index) else open_index(index)


class Index(IndexReader):
    """A corpus that can be searched, and read as an `IndexReader`.

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
        return self.with_view(keyword_search, wanted, top_k, ranking=ranking)

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
        query = without_division_signs(query)
        vector = self._embed(query)
        return self.with_view(semantic_search, query, vector, top_k, titles_first=titles_first)

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
        return self.with_view(rate, vector, chunk_ids)

    def rate_openings(
        self, query: str, chunk_ids: Sequence[str], ignored: Mapping[str, Collection[int]] | None = None
    ) -> dict[str, float]:
        """Compare the beginnings of chunks with a query: they often say what a text is about.

        Args:
            query: The query.
            chunk_ids: Chunk ids.
            ignored: By chunk id, the positions of sentences that do not count, unless the chunk has few others.

        Returns:
            For each chunk that the index holds, the similarity of the mean of its first three vectors, on the scale of
            `semantic_search`; chunks of bare headings have none.

        Raises:
            InputError: The query is blank.
            ModelError: The query cannot be embedded, or its vector does not fit the index.
        """
        vector = self._embed(query)
        return self.with_view(rate_openings, vector, chunk_ids, ignored or {})

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
        return self.with_view(read, distinct_ids, adjacent)

    def grep(
        self, pattern: str, *, within: str = "", ignore_case: bool = True, start: int = 0, limit: int = 1_000
    ) -> GrepResults:
        r"""Find all lines that match a pattern: complete, counted, and in the order of documents' ids and of the text.

        A line is a sentence, a heading, or a row of a table, with each run of white space as one space.

        Args:
            pattern: A regular expression in RE2's syntax. Its time is linear: there are no back-references and no
                look-around. `\w` matches letters and digits of all scripts.
            within: Look only in documents that this names, as in `find_meant`.
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
        pattern = without_division_signs(pattern)
        compiled = compile_pattern(pattern, case="ignore" if ignore_case else "match")
        return self.within(within).with_view(grep, compiled, start, limit)

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
            within: Only documents that this names, as in `find_meant`.
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
        return limited.with_view(list_documents, where, sort, start, limit)

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
        return self.with_view(query_tables, sql, within)

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

    def _embed(self, query: str) -> NDArray[np.float32]:
        query = without_division_signs(query)
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


def _check_page(start: int, limit: int) -> None:
    if start < 0:
        raise InputError(f"start is {start}: it must be at least 0")
    if limit < 0:
        raise InputError(f"limit is {limit}: it must be at least 0")


def _check_top_k(top_k: int) -> None:
    if top_k < 1:
        raise InputError(f"top_k is {top_k}: it must be at least 1")
