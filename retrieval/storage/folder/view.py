"""One publication of an index in a folder, open for searching."""

from __future__ import annotations

import heapq
import json
import math
import shlex
import threading
import warnings
import weakref
from bisect import bisect_right
from collections.abc import Collection, Sequence
from contextlib import closing, suppress
from functools import cached_property
from itertools import accumulate, compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arag.errors import IndexFormatError, StorageError
from arag.retrieval.storage import vectors as exact
from arag.retrieval.storage.contract import KeywordRanking, Ranking, SentenceMatch, View, batches
from arag.retrieval.storage.folder.chroma import ChromaGraph, ReadOnlyError
from arag.retrieval.storage.folder.derived import graph_folder, keyword_file
from arag.retrieval.storage.folder.sqlite import INDEX_FILE, Database, connect
from arag.retrieval.storage.keywords import KeywordTexts, format_keywords
from arag.retrieval.storage.vectors import SentenceMatrix

_MARGIN = 1.2  # of sentences that the graph is asked for: it is not exact
_CHUNKS_COMPARED_AT_ONCE = 2_000


class FolderView(Database, View):
    """One publication of an index in a folder, given by its absolute path. Views of its parts share its files."""

    _close: weakref.finalize[..., Any]

    def __init__(self, folder: Path, whole: FolderView | None = None) -> None:
        file = folder / INDEX_FILE
        if whole is None:
            super().__init__(connect(file), file)
            self._close = weakref.finalize(self, self.connection.close)
            self._check_size()
        else:
            super().__init__(whole.connection, file, whole._lock)  # noqa: SLF001 - of the same kind
        self._folder = folder
        self._keywords_lock = threading.Lock()
        self._keywords: KeywordTexts | None = None
        self._sentences_lock = threading.Lock()
        self._sentences: SentenceMatrix | ChromaGraph | None = None
        self._allowed: NDArray[np.int64] | None = None  # the numbers of the chunks that are left, if not all are
        self._asked_for_one = _MARGIN  # sentences that the graph is asked for, for each that is wanted
        self._parts = 0  # limited views so far: each has a number
        self._unused: list[int] = []  # the numbers of those that are gone, and whose tables are not

    def close(self) -> None:
        if isinstance(self._sentences, ChromaGraph):
            self._sentences.close()
        self._sentences = self._keywords = None
        self._close()

    def limited_to(self, document_ids: Collection[str]) -> LimitedView:
        with self._lock:
            while self._unused:
                part = self._unused.pop()
                self.query(f"DROP TABLE IF EXISTS temp.documents_{part}")
                self.query(f"DROP TABLE IF EXISTS temp.chunks_{part}")
            self._parts += 1
            return LimitedView(self, self._folder, self._parts, document_ids)

    # --- keywords ---

    def rank(self, keywords: Sequence[str], top_k: int, *, ranking: Ranking = "paper") -> KeywordRanking:
        return self.keyword_texts().rank(keywords, top_k, ranking=ranking)

    def count_chunks(self, texts: Sequence[str]) -> list[int]:
        return self.keyword_texts().count_chunks(texts)

    def numbers_holding(self, groups: Sequence[Sequence[str]], limit: int) -> list[list[int]]:
        return [self.keyword_texts().holding_all(texts, limit) for texts in groups]

    def words_present(self, words: Collection[str]) -> set[str]:
        return set(filter(self.keyword_texts().holds_word, words))

    def keyword_texts(self) -> KeywordTexts:
        """Open the texts that keywords are searched in."""
        with self._keywords_lock:
            if self._keywords is None:
                self._keywords = self._open_keywords()
            return self._keywords

    def _open_keywords(self) -> KeywordTexts:
        file = keyword_file(self._folder, self.settings.token)
        numbers = self.numbers_by_id()
        with suppress(OSError, ValueError):
            return KeywordTexts(file, numbers)
        self.check_is_published()  # else its file was deleted; another one is lost
        return KeywordTexts(b"".join(format_keywords(text for _, text in self.chunk_texts())), numbers)

    # --- names and words ---

    def named(self, words: Sequence[str], limit: int) -> list[str]:
        if not any(words):
            return super().named(words, limit)
        first, *others = sorted(words, key=len, reverse=True)
        ids, starts, names = self._names
        found: list[str] = []
        at = 0
        while len(found) < limit and (at := names.find(first, at)) >= 0:
            row = bisect_right(starts, at) - 1
            start, at = starts[row], starts[row + 1]
            if all(names.find(word, start, at) >= 0 for word in others):
                found.append(ids[row])
        return found

    @cached_property
    def _names(self) -> tuple[list[str], list[int], str]:
        """The ids of all documents, where their names begin, and all names: a scan for each keyword would be slow."""
        rows = self.query("SELECT id, lower(id || ' ' || title) || char(0) FROM documents ORDER BY id")
        starts = [0, *accumulate(len(name) for _, name in rows)]
        return [document_id for document_id, _ in rows], starts, "".join(name for _, name in rows)

    # --- sentences by their vectors ---

    def nearest(self, vector: NDArray[np.float32], count: int) -> list[SentenceMatch]:
        sentences = self.sentences()
        if isinstance(sentences, SentenceMatrix):
            return sentences.nearest(vector, count, self._allowed)
        count = min(count, self.settings.sentences)
        wanted = math.ceil(count * self._asked_for_one)
        while 0 < wanted <= max(2 * count, exact.MAX_PROPOSED):
            try:
                places = sentences.nearest(vector, wanted)
            except IndexFormatError as error:
                self._give_up(sentences, error)
                return self.nearest(vector, count)
            if self._allowed is not None:
                is_inside = np.isin([number for number, _ in places], self._allowed)
                places = list(compress(places, is_inside))
            if len(places) >= count:
                return self._read_places(places).nearest(vector, count)
            wanted *= 4
        return self._compare_all(vector, count)  # what is nearest lies outside

    def sentences(self) -> SentenceMatrix | ChromaGraph:
        """Open the vectors: as one matrix if they are few, or if there is no graph that can be trusted."""
        with self._sentences_lock:
            if self._sentences is None:
                self._sentences = self._open_sentences()
            return self._sentences

    def _open_sentences(self) -> SentenceMatrix | ChromaGraph:
        graph = None if self.settings.vector_bytes <= exact.MAX_MATRIX_BYTES else self._open_graph()
        return graph or self._make_matrix()

    def _give_up(self, graph: ChromaGraph, error: IndexFormatError) -> None:
        """Compare with every vector from now on, if a graph fails."""
        with self._sentences_lock:
            if self._sentences is graph:
                self._warn_of_graph(error)
                graph.close()
                self._sentences = self._make_matrix()

    def _make_matrix(self) -> SentenceMatrix:
        settings = self.settings
        return SentenceMatrix.build(self.vectors(self.numbers_by_id()), settings.dimension, settings.sentences)

    def _read_places(self, places: Sequence[tuple[int, int]]) -> SentenceMatrix:
        """Read the vectors of sentences, given by their chunks' numbers and their positions, by chunk id."""
        dimension = self.settings.dimension
        size = dimension * np.dtype(np.float16).itemsize
        rows = self.query(
            "SELECT id, number, position, substr(vectors, 1 + position * ?, ?) FROM "
            "(SELECT json_extract(value, '$[0]') AS number, json_extract(value, '$[1]') AS position FROM json_each(?)) "
            f"JOIN {self.chunks_table} USING (number) JOIN vectors USING (number)",
            size,
            size,
            json.dumps(places),
        )
        rows = sorted(row for row in rows if len(row[3]) == size)
        vectors = np.frombuffer(b"".join(row[3] for row in rows), np.float16).reshape(-1, dimension)
        return SentenceMatrix.of([row[1:3] for row in rows], vectors.astype(np.float32))

    def _compare_all(self, vector: NDArray[np.float32], count: int) -> list[SentenceMatch]:
        """Compare a vector with all sentences, those of some chunks at a time."""
        best: list[SentenceMatch] = []
        for numbers in batches(self.numbers_by_id(), _CHUNKS_COMPARED_AT_ONCE):
            best += SentenceMatrix.build(self.vectors(numbers), self.settings.dimension).nearest(vector, count)
            best = heapq.nlargest(count, best, key=lambda match: match.similarity)  # keeps the order of ties
        return best

    def _open_graph(self) -> ChromaGraph | None:
        try:
            return ChromaGraph(graph_folder(self._folder, self.settings.token), self.settings.sentences)
        except IndexFormatError as error:
            self.check_is_published()
            self._warn_of_graph(error)
            return None

    def _warn_of_graph(self, error: IndexFormatError) -> None:
        advice = f". To make it again, run `arag verify --index {shlex.quote(str(self._folder))} --repair`"
        warnings.warn(
            f"semantic search is slow, because the graph of the index in {self._folder} is not used: {error}"
            f"{'' if isinstance(error, ReadOnlyError) else advice}",
            stacklevel=2,
        )

    def _check_size(self) -> None:
        """Refuse settings that count more vectors than the file has room for: memory is reserved for so many."""
        ((size,),) = self.query("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        if self.settings.sentences * self.settings.dimension * np.dtype(np.float16).itemsize > size:
            raise self.damage("its settings count more sentences than it has room for")

    def check_is_published(self) -> None:
        """Raise a StorageError if a newer publication has replaced this one, and deleted its files."""
        with closing(connect(self._file)) as newest:
            token = Database(newest, self._file).settings.token
        if token != self.settings.token:
            raise StorageError(f"the index in {self._folder} has been replaced by a newer one: open it again")


class LimitedView(FolderView):
    """A part of a publication: two temporary tables say which, on the connection of the whole.

    Use `FolderView.limited_to` to get one. Its `part` is a number that no other view of the publication has.
    """

    _allowed: NDArray[np.int64]

    def __init__(self, whole: FolderView, folder: Path, part: int, document_ids: Collection[str]) -> None:
        super().__init__(folder, whole)
        self._whole = whole
        # The next view drops the tables: this may be called by the garbage collector while a query runs.
        self._close = weakref.finalize(self, whole._unused.append, part)  # noqa: SLF001 - of the same kind
        documents, chunks = f"temp.documents_{part}", f"temp.chunks_{part}"
        condition, value = self.among("id", document_ids)
        self.query("PRAGMA temp_store = MEMORY")
        self.query(f"CREATE TABLE {documents} (id TEXT PRIMARY KEY) WITHOUT ROWID")
        self.query(f"INSERT INTO {documents} SELECT id FROM main.documents WHERE {condition}", value)
        self.query(f"CREATE TABLE {chunks} (number INTEGER PRIMARY KEY)")
        self.query(
            f"INSERT INTO {chunks} SELECT number FROM main.chunks WHERE document_id IN (SELECT id FROM {documents})"
        )
        self.documents_table = f"(SELECT * FROM main.documents WHERE +id IN (SELECT id FROM {documents})) AS documents"
        self.chunks_table = f"(SELECT * FROM main.chunks WHERE +number IN (SELECT number FROM {chunks})) AS chunks"
        self.settings = self.counted(whole.settings)
        self._allowed = np.array(self.numbers_by_id(), dtype=np.int64)
        self._asked_for_one = _MARGIN * whole.settings.sentences / max(self.settings.sentences, 1)

    def close(self) -> None:
        """Release what is this view's own."""
        self._sentences = self._keywords = None
        self._close()

    def limited_to(self, document_ids: Collection[str]) -> LimitedView:
        return self._whole.limited_to(self.fingerprints(document_ids))

    def named(self, words: Sequence[str], limit: int) -> list[str]:
        """Search the tables: views of many scopes, each with all names in memory, would take much of it."""
        return View.named(self, words, limit)

    def words_of_length(self, shortest: int, longest: int) -> list[str]:
        """Return the plain forms of words of the whole index; see `View.words_of_length`."""
        return self._whole.words_of_length(shortest, longest)

    def _open_keywords(self) -> KeywordTexts:
        return self._whole.keyword_texts().limited_to(self._allowed)

    def _open_sentences(self) -> SentenceMatrix | ChromaGraph:
        sentences = self._whole.sentences()
        few = self.settings.vector_bytes <= exact.MAX_LIMITED_BYTES
        return self._make_matrix() if few and isinstance(sentences, ChromaGraph) else sentences

    def _give_up(self, graph: ChromaGraph, error: IndexFormatError) -> None:
        self._whole._give_up(graph, error)  # noqa: SLF001 - of the same kind
        with self._sentences_lock:
            self._sentences = None  # and is opened again
