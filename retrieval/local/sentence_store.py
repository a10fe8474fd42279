"""Sentences in Chroma: vector, text, and the chunk's id. The position is a part of the id.

Every generation of an index has its own folder, which is derived from the chunk store.
`arag.retrieval.local.sentence_writer` writes it.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arag.errors import IndexFormatError
from arag.retrieval.backend import SentenceMatch
from arag.retrieval.exact import make_matches
from arag.retrieval.local.chroma_check import check_database
from arag.retrieval.local.chroma_folder import batches, copy_vectors, is_chroma_error, open_collection
from arag.retrieval.shift import unshift

_ROUNDING = 1e-5  # of similarities of one vector, stored with different shifts
_SAME = 1e-3  # of vectors, rounded to float16, shifted and shifted back
_READ_AT_ONCE = 10_000  # sentences


@dataclass(frozen=True, slots=True)
class SentenceRecord:
    """A sentence to be stored.

    Attributes:
        id: The id of its vector.
        chunk_id: The id of its chunk.
        text: The sentence.
        vector: Its vector, of length one, shape (dimension,).
    """

    id: str
    chunk_id: str
    text: str
    vector: NDArray[np.float32]


class SentenceStore:
    """The sentence vectors of one generation of an index. The files are closed with the last reference to it.

    Chroma writes to the folder that it opens. If that is read-only, it opens a temporary copy.

    Args:
        folder: Chroma's folder.

    Raises:
        IndexFormatError: The folder or its collection is missing or cannot be opened.
    """

    is_exact = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with ExitStack() as stack:
            check_database(folder)
            opened = folder if os.access(folder, os.W_OK) else _copy_aside(folder, stack)
            self._collection = stack.enter_context(open_collection(opened))
            self._finalizer = weakref.finalize(self, stack.pop_all().close)

    def close(self) -> None:
        """Release Chroma's files, which no thread may be searching."""
        self._finalizer()

    def count(self) -> int:
        """Return the number of vectors."""
        with self._name_failures():
            return int(self._collection.count())

    def fault(self, expected: Iterable[SentenceRecord], total: int) -> str:
        """Compare the stored vectors with the expected ones; return the difference, or an empty string.

        Args:
            expected: All sentences, or some of them.
            total: How many sentences there should be.
        """
        if self.count() != total:
            return f"it has {self.count():,} vectors instead of {total:,}"
        wrong = 0
        for sentences in batches(expected):
            found = self._read_rows([s.id for s in sentences])
            wrong += sum(s.id not in found or not _is_as_written(found[s.id], s) for s in sentences)
        return f"{wrong:,} sentences have no vector, or the wrong vector or text" if wrong else ""

    def _read_rows(self, ids: Sequence[str]) -> dict[str, SentenceRecord]:
        """Return the sentences with these ids, as far as they exist."""
        with self._name_failures():
            found = self._collection.get(ids=list(ids), include=["embeddings", "documents", "metadatas"])
        if found["embeddings"] is None or not found["ids"]:
            return {}
        vectors = unshift(found["ids"], found["embeddings"])
        rows = zip(found["ids"], found["metadatas"] or (), found["documents"] or (), vectors, strict=True)
        return {
            # Format 4 has the text as Chroma's document.
            i: SentenceRecord(i, str(kept.get("chunk_id")), str(kept.get("sentence", document)), vector)
            for i, metadata, document, vector in rows
            for kept in [metadata or {}]
        }

    def nearest(self, vector: NDArray[np.float32], count: int) -> list[SentenceMatch]:
        """Return the sentences nearest to a vector; all sentences if the graph finds too few."""
        with self._name_failures():
            found = self._collection.query(
                query_embeddings=vector.reshape(1, -1), n_results=count, include=["embeddings"]
            )
        embeddings = found["embeddings"]
        if not embeddings or len(found["ids"][0]) < count:
            return self._compare(vector)
        return _make_matches(found["ids"][0], embeddings[0], vector)

    def nearest_inside(self, vector: NDArray[np.float32], count: int, chunks: NDArray[np.int64]) -> list[SentenceMatch]:
        """Return those of the sentences nearest to a vector that are in some chunks.

        Only their vectors are read: that takes most of a search's time.

        Args:
            vector: The vector.
            count: How many sentences to look at.
            chunks: The chunks' numbers.
        """
        with self._name_failures():
            (ids,) = self._collection.query(query_embeddings=vector.reshape(1, -1), n_results=count, include=[])["ids"]
            numbers = np.fromiter((int(i.partition("#")[0]) for i in ids), np.int64, len(ids))
            inside = [ids[place] for place in np.flatnonzero(np.isin(numbers, chunks))]
            if not inside:
                return []
            found = self._collection.get(ids=inside, include=["embeddings"])
        if found["embeddings"] is None or len(found["ids"]) < len(inside):
            raise IndexFormatError(f"{self._folder} cannot be searched: a sentence has no vector")
        return _make_matches(found["ids"], found["embeddings"], vector)

    def _compare(self, vector: NDArray[np.float32]) -> list[SentenceMatch]:
        """Compare a vector with every sentence, nearest first: exact, and much slower than the graph."""
        matches: list[SentenceMatch] = []
        for offset in range(0, self.count(), _READ_AT_ONCE):
            with self._name_failures():
                found = self._collection.get(limit=_READ_AT_ONCE, offset=offset, include=["embeddings"])
            if found["embeddings"] is not None:
                matches += _make_matches(found["ids"], found["embeddings"], vector)
        return sorted(matches, key=lambda match: -match.similarity)

    @contextmanager
    def _name_failures(self) -> Iterator[None]:
        """Name the folder in what Chroma raises: it is damaged, or a writer has just deleted it."""
        try:
            yield
        except BaseException as error:
            if is_chroma_error(error):
                raise IndexFormatError(f"{self._folder} cannot be searched: {error}") from error
            raise


def _make_matches(ids: Sequence[str], embeddings: Any, vector: NDArray[np.float32]) -> list[SentenceMatch]:
    if any(embedding is None for embedding in embeddings):
        raise IndexFormatError("a sentence has no vector")
    if not len(ids):
        return []
    vectors = unshift(ids, embeddings)
    places = np.asarray([[int(part) for part in i.split("#")] for i in ids], dtype=np.int64)
    return make_matches(np.arange(len(ids)), places, vectors, vectors @ vector, _are_same, rounding=_ROUNDING)


def _are_same(one: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    return np.allclose(one, other, atol=_SAME)


def _is_as_written(found: SentenceRecord, sentence: SentenceRecord) -> bool:
    is_same = (found.chunk_id, found.text) == (sentence.chunk_id, sentence.text)
    return is_same and np.allclose(found.vector, sentence.vector, atol=_SAME)


def _copy_aside(folder: Path, stack: ExitStack) -> Path:
    """Copy a folder to a temporary one, which is deleted when the stack is closed."""
    copy = Path(stack.enter_context(TemporaryDirectory(prefix="arag-", ignore_cleanup_errors=True)), folder.name)
    try:
        copy_vectors(folder, copy)
    except (OSError, sqlite3.Error) as error:
        raise IndexFormatError(f"{folder} cannot be opened: {error}") from error
    return copy
