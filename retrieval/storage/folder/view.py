"""One snapshot of an index in a folder, open for searching."""

from __future__ import annotations

import heapq
import json
import math
import shlex
import threading
import warnings
import weakref
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arag.errors import IndexFormatError, StorageError
from arag.retrieval.storage import vectors as exact
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.contract import View
from arag.retrieval.storage.folder.chroma import ReadOnlyError, VectorIndex
from arag.retrieval.storage.folder.derived import keyword_file, vector_index_folder, words_file
from arag.retrieval.storage.folder.sqlite import INDEX_FILE, Database, connect
from arag.retrieval.storage.folder.words import read_words
from arag.retrieval.storage.keywords import KeywordTexts, format_keywords
from arag.retrieval.storage.records import KeywordRanking, Ranking, SentenceMatch
from arag.retrieval.storage.sql import DOCUMENT_NAME
from arag.retrieval.storage.vectors import SentenceMatrix
from arag.retrieval.storage.words.index import WordIndex
from arag.text.visible import visible_line

_MARGIN = 1.2  # the graph is asked for so many times the sentences that are wanted: it is not exact
# A graph looks at as many sentences as it is asked for, and misses fewer the more these are. Of the 15 nearest among
# 58,550 sentences of manuals in ten languages, it finds 90.0% if asked for 72 to 200, 98.7% for 400, 98.9% for 800,
# 99.6% for 1,600, and 99.8% for 3,200, which takes twice as long.
_LEAST_ASKED = 1_600
_MORE = 4  # if too few are in a limited view, the graph is asked again for so many times as many
_CHUNKS_COMPARED_AT_ONCE = 2_000  # more take more memory, fewer more queries
_FLOAT16_BYTES = np.dtype(np.float16).itemsize


class FolderView(Database, View):
    """One snapshot of an index in a folder, given by its absolute path. Views of its parts share its files."""

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
        # Each kind of search has its own lock: keywords do not wait for vectors to load.
        self._keywords_lock = threading.Lock()
        self._keywords: KeywordTexts | None = None
        self._sentences_lock = threading.Lock()
        self._sentences: SentenceMatrix | VectorIndex | None = None
        self._allowed: NDArray[np.int64] | None = None  # in a limited view, those of its chunks
        self._asked_for_each = _MARGIN  # sentences that the graph is asked for, for each one that is wanted
        self._last_part = 0  # the number of the limited view that was made last
        self._unused: list[int] = []  # the numbers of limited views that are gone, but whose tables are not

    def close(self) -> None:
        if isinstance(self._sentences, VectorIndex):
            self._sentences.close()
        self._sentences = None
        self._keywords = None
        self._close()

    def limited_to(self, document_ids: Collection[str]) -> LimitedView:
        with self._lock:
            while self._unused:
                part = self._unused.pop()
                self.query(f"DROP TABLE IF EXISTS temp.documents_{part}")
                self.query(f"DROP TABLE IF EXISTS temp.chunks_{part}")
            self._last_part += 1
            return LimitedView(self, self._folder, self._last_part, document_ids)

    # --- keywords ---

    def rank(self, keywords: Sequence[str], top_k: int, *, ranking: Ranking = "paper") -> KeywordRanking:
        return self.keyword_texts().rank(keywords, top_k, ranking=ranking)

    def count_chunks(self, texts: Sequence[str]) -> list[int]:
        return self.keyword_texts().count_chunks(texts)

    def row_ids_holding(self, groups: Sequence[Sequence[str]], limit: int) -> list[list[int]]:
        return [self.keyword_texts().holding_all(texts, limit) for texts in groups]

    def searchable_texts(self, row_ids: Sequence[int]) -> Iterator[tuple[int, memoryview]]:
        return self.keyword_texts().texts(row_ids)

    def word_index(self) -> WordIndex | None:
        return self.keyword_texts().words.index

    def words_present(self, words: Collection[str]) -> set[str]:
        return {word for word in words if self.keyword_texts().holds_word(word)}

    def keyword_texts(self) -> KeywordTexts:
        """Open the texts that keywords are searched in."""
        with self._keywords_lock:
            if self._keywords is None:
                self._keywords = self._open_keywords()
            return self._keywords

    def _open_keywords(self) -> KeywordTexts:
        file = keyword_file(self._folder, self.settings.token)
        words = read_words(words_file(self._folder, self.settings.token))
        row_ids = self.ordered_row_ids()
        with suppress(OSError, ValueError):
            return KeywordTexts(file, row_ids, words)
        # The file is missing or damaged. If a writer deleted it, the whole snapshot is gone.
        self.check_is_published()
        pieces = format_keywords(text for _, text in self.chunk_texts())
        return KeywordTexts(b"".join(pieces), row_ids, words)

    # --- names and words ---

    def named(self, words: Sequence[str], limit: int) -> list[str]:
        if not any(words):
            return super().named(words, limit)
        longest, *others = sorted(words, key=len, reverse=True)
        names = self._names
        found: list[str] = []
        position = 0
        while len(found) < limit:
            position = names.text.find(longest, position)
            if position < 0:
                break
            row = bisect_right(names.starts, position) - 1
            start, end = names.starts[row], names.starts[row + 1]
            if all(names.text.find(word, start, end) >= 0 for word in others):
                found.append(names.ids[row])
            position = end
        return found

    @cached_property
    def _names(self) -> _Names:
        """The names of all documents: a scan of the table for each keyword would be slow."""
        rows = self.query(f"SELECT id, lower({DOCUMENT_NAME}) || char(0) FROM documents ORDER BY id")
        ids: list[str] = []
        starts = [0]
        for document_id, name in rows:
            ids.append(document_id)
            starts.append(starts[-1] + len(name))
        return _Names(ids, starts, "".join(name for _, name in rows))

    # --- sentences by their vectors ---

    def nearest(self, vector: NDArray[np.float32], count: int) -> list[SentenceMatch]:
        sentences = self.sentences()
        if isinstance(sentences, SentenceMatrix):
            return sentences.nearest(vector, count, self._allowed)
        count = min(count, self.settings.sentences)
        asked = max(math.ceil(count * self._asked_for_each), _LEAST_ASKED)
        while 0 < asked <= max(2 * count, exact.MAX_PROPOSED):
            try:
                places = sentences.nearest(vector, asked)
            except IndexFormatError as error:
                self._give_up(sentences, error)
                return self.nearest(vector, count)
            places = self._keep_allowed(places)
            if len(places) >= count:
                return self._read_places(places[: math.ceil(count * _MARGIN)]).nearest(vector, count)
            asked *= _MORE
        # Most of the nearest sentences are in chunks outside of this view.
        return self._compare_all(vector, count)

    def _keep_allowed(self, places: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the places (a chunk's row id and a sentence's position) in the chunks of this view."""
        if self._allowed is None:
            return places
        is_allowed = np.isin([row_id for row_id, _ in places], self._allowed)
        return [place for place, is_kept in zip(places, is_allowed, strict=True) if is_kept]

    def sentences(self) -> SentenceMatrix | VectorIndex:
        """Open the vectors: as one matrix if they are few, or if there is no graph that can be trusted."""
        with self._sentences_lock:
            if self._sentences is None:
                self._sentences = self._open_sentences()
            return self._sentences

    def _open_sentences(self) -> SentenceMatrix | VectorIndex:
        if self.settings.vector_bytes > exact.MAX_MATRIX_BYTES:
            vector_index = self._open_vector_index()
            if vector_index is not None:
                return vector_index
        return self._make_matrix()

    def _give_up(self, vector_index: VectorIndex, error: IndexFormatError) -> None:
        """After a failure of the graph, compare with every vector from now on."""
        with self._sentences_lock:
            if self._sentences is vector_index:
                self._warn_of_vector_index(error)
                vector_index.close()
                self._sentences = self._make_matrix()

    def _make_matrix(self) -> SentenceMatrix:
        settings = self.settings
        return SentenceMatrix.build(self.vectors(self.ordered_row_ids()), settings.dimension, settings.sentences)

    def _read_places(self, places: Sequence[tuple[int, int]]) -> SentenceMatrix:
        """Read the vectors of sentences (their chunks' row ids and their positions), in the order of chunk ids."""
        dimension = self.settings.dimension
        size = dimension * _FLOAT16_BYTES
        rows = self.query(
            "SELECT id, number, position, substr(vectors, 1 + position * ?, ?) FROM "
            "(SELECT json_extract(value, '$[0]') AS number, json_extract(value, '$[1]') AS position FROM json_each(?)) "
            f"JOIN {self.chunks_table} USING (number) JOIN vectors USING (number)",
            size,
            size,
            json.dumps(places),
        )
        found: list[tuple[int, int]] = []
        blobs: list[bytes] = []
        for _, row_id, position, blob in sorted(rows):
            if len(blob) == size:
                found.append((row_id, position))
                blobs.append(blob)
        vectors = np.frombuffer(b"".join(blobs), np.float16).reshape(-1, dimension)
        return SentenceMatrix.of(found, vectors.astype(np.float32))

    def _compare_all(self, vector: NDArray[np.float32], count: int) -> list[SentenceMatch]:
        """Compare a vector with all sentences, batch by batch."""
        best: list[SentenceMatch] = []
        for row_ids in batches(self.ordered_row_ids(), _CHUNKS_COMPARED_AT_ONCE):
            matrix = SentenceMatrix.build(self.vectors(row_ids), self.settings.dimension)
            best += matrix.nearest(vector, count)
            best = heapq.nlargest(count, best, key=lambda match: match.similarity)  # keeps the order of ties
        return best

    def _open_vector_index(self) -> VectorIndex | None:
        try:
            return VectorIndex(vector_index_folder(self._folder, self.settings.token), self.settings.sentences)
        except IndexFormatError as error:
            self.check_is_published()
            self._warn_of_vector_index(error)
            return None

    def _warn_of_vector_index(self, error: IndexFormatError) -> None:
        message = f"semantic search is slow, because the vector index of {self._folder} is not used: {error}"
        if not isinstance(error, ReadOnlyError):
            command = f"arag verify --index {shlex.quote(str(self._folder))} --repair"
            message += f". To make it again, run `{command}`"
        warnings.warn(visible_line(message), stacklevel=2)

    def _check_size(self) -> None:
        """Refuse settings that count more vectors than the file has room for: that much memory would be reserved."""
        ((size,),) = self.query("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        vector_bytes = self.settings.sentences * self.settings.dimension * _FLOAT16_BYTES
        if vector_bytes > size:
            raise self.damage("its settings count more sentences than it has room for")

    def check_is_published(self) -> None:
        """Raise a StorageError if a newer snapshot has replaced this one, and deleted its files."""
        with closing(connect(self._file)) as newest:
            token = Database(newest, self._file).settings.token
        if token != self.settings.token:
            raise StorageError(f"the index in {self._folder} has been replaced by a newer one: open it again")


class _Names(NamedTuple):
    """The names of all documents, one after another."""

    ids: list[str]  # of the documents
    starts: list[int]  # where each name starts in the text, and then the text's length
    text: str


class LimitedView(FolderView):
    """A part of a snapshot. Two temporary tables on the connection of the whole list its documents and chunks.

    Use `FolderView.limited_to` to get one.

    Args:
        whole: The view of the whole snapshot.
        folder: The index's folder.
        part: A number that no other limited view of the snapshot has.
        document_ids: The documents that it is limited to.
    """

    _allowed: NDArray[np.int64]

    def __init__(self, whole: FolderView, folder: Path, part: int, document_ids: Collection[str]) -> None:
        super().__init__(folder, whole)
        self._whole = whole
        # The next limited view drops the tables: the garbage collector may call this while a query runs.
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
        self._allowed = np.array(self.ordered_row_ids(), dtype=np.int64)
        # The graph has the sentences of the whole: enough of them must be in this part.
        self._asked_for_each = _MARGIN * whole.settings.sentences / max(self.settings.sentences, 1)

    def close(self) -> None:
        """Release this view's own memory; the files belong to the whole."""
        self._sentences = None
        self._keywords = None
        self._close()

    def limited_to(self, document_ids: Collection[str]) -> LimitedView:
        return self._whole.limited_to(self.fingerprints(document_ids))

    def named(self, words: Sequence[str], limit: int) -> list[str]:
        """Search the tables: if views of many scopes each had all names in memory, they would take much of it."""
        return View.named(self, words, limit)

    def words_of_length(self, shortest: int, longest: int) -> list[str]:
        """Return the plain forms of words of the whole index; see `View.words_of_length`."""
        return self._whole.words_of_length(shortest, longest)

    def _open_keywords(self) -> KeywordTexts:
        return self._whole.keyword_texts().limited_to(self._allowed)

    def _open_sentences(self) -> SentenceMatrix | VectorIndex:
        sentences = self._whole.sentences()
        is_small = self.settings.vector_bytes <= exact.MAX_LIMITED_BYTES
        if is_small and isinstance(sentences, VectorIndex):
            return self._make_matrix()
        return sentences

    def _give_up(self, vector_index: VectorIndex, error: IndexFormatError) -> None:
        self._whole._give_up(vector_index, error)  # noqa: SLF001 - of the same kind
        with self._sentences_lock:
            self._sentences = None  # the next search opens them again
