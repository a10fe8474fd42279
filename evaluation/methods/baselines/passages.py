"""Passages by their vectors: what the systems call dense retrieval."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arag.errors import InputError
from arag.evaluation.store import Store
from arag.retrieval.index import Index
from arag.retrieval.types import Chunk

By: TypeAlias = Literal["chunk", "sentence"]
_PAGE = 500  # chunks that are read at a time


def minmax(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale values to 0 to 1; equal ones become 1.

    Args:
        values: Shape (n,).
    """
    least, most = values.min(initial=np.inf), values.max(initial=-np.inf)
    scaled: NDArray[np.float32] = (values - least) / (most - least) if most > least else np.ones_like(values)
    return scaled


class Passages:
    """The chunks of an index as passages, ranked by cosine similarity to a question.

    The chunks are those that the index holds at the first use. It may be used in several threads.

    Args:
        index: The index.
        store: Keeps the vectors of whole chunks.
        by: What is compared with the question: the whole `chunk`, of which an embedder sees only its first few hundred
            tokens, or its nearest `sentence`, as Naive RAG does.
    """

    def __init__(self, index: Index, store: Store, by: By = "chunk") -> None:
        self._index = index
        self._store = store
        self._by = by
        self._lock = threading.Lock()
        self._ids: list[str] | None = None
        self._vectors = np.empty((0, 0), dtype=np.float32)
        self._firsts = np.empty(0, dtype=np.int64)  # of each chunk among the sentences

    @property
    def ids(self) -> list[str]:
        """The ids of the chunks, in the order of the index."""
        self.prepare()
        return self._ids or []

    def prepare(self, on_embedded: Callable[[int], None] = lambda _: None) -> None:
        """Embed what is not embedded yet.

        Args:
            on_embedded: Called with the number of chunks embedded so far.

        Raises:
            EmbedderError: The embedder fails.
            StorageError: The vectors cannot be read or kept.
        """
        with self._lock:
            if self._ids is not None:
                return
            ids = list(self._index.chunk_ids())
            if self._by == "chunk":
                texts = [chunk.text for chunk in self.chunks(ids)]
                self._vectors = self._store.vectors(texts, self._index.embedder, on_embedded=on_embedded)
            else:
                placed = list(self._index.sentence_vectors())
                ids = [chunk.id for chunk, _, vectors in placed if len(vectors)]
                groups = [vectors for _, _, vectors in placed if len(vectors)]
                self._vectors = np.concatenate(groups) if groups else self._vectors
                self._firsts = np.cumsum([0, *map(len, groups)])[:-1]
            self._ids = ids

    def scores(self, question: str) -> NDArray[np.float32]:
        """Return the cosine similarity of every chunk to a question, shape (chunks,), in the order of `ids`.

        Raises:
            InputError: The question is blank.
            EmbedderError: The embedder fails.
        """
        if not question.strip():
            raise InputError("the question is blank")
        return self.compare(self._index.embedder.embed_query(question))

    def compare(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine similarity of every chunk to a question's vector; see `scores`."""
        if not self.ids:
            return np.empty(0, dtype=np.float32)
        similarities: NDArray[np.float32] = self._vectors @ vector
        return similarities if self._by == "chunk" else np.maximum.reduceat(similarities, self._firsts)

    def top(self, question: str, k: int) -> list[str]:
        """Return the ids of the chunks nearest to a question, nearest first; ties in the order of the index."""
        order = np.argsort(-self.scores(question), kind="stable")[:k]
        return [self.ids[place] for place in order]

    def chunks(self, ids: Iterable[str]) -> list[Chunk]:
        """Return chunks by their ids, in this order, as far as the index has them."""
        wanted = list(ids)
        found: dict[str, Chunk] = {}
        for begin in range(0, len(wanted), _PAGE):
            found |= {chunk.id: chunk for chunk in self._index.read(wanted[begin : begin + _PAGE]).chunks}
        return [found[chunk_id] for chunk_id in wanted if chunk_id in found]
