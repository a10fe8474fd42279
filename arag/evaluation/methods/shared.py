"""What several methods use: dense passages, PageRank, ratings, and a reader's prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import AfterValidator, Field

from arag.models.embedders import Embedder
from arag.retrieval.types import Chunk

By: TypeAlias = Literal["chunk", "sentence"]
_PRECISION = 1e-13  # of the sum of all changes in a round

# A number out of range says enough: the reply has been paid for, and is not asked for again.
Rating: TypeAlias = Annotated[
    float, Field(allow_inf_nan=False), AfterValidator(lambda value: min(max(value, 0.0), 10.0))
]
"""A finite number; one below 0 counts as 0, and one above 10 as 10."""

READER = """You answer a question from passages of a corpus. Each passage has its id in brackets above it.

First say in a few sentences which passages matter and what follows from them. Then end with one line that begins with
"Answer:" and gives the answer in its shortest form: a name, a date, a number, yes or no. If the passages do not hold
the answer, give the most likely one."""
_ANSWER = re.compile(r"^[ \t*_#>-]*answer[ \t*_]*[:：][ \t*_]*", re.IGNORECASE | re.MULTILINE)


def read_answer(text: str) -> str:
    """Return what follows the last line that begins with "Answer:", or the whole text if there is none."""
    marks = list(_ANSWER.finditer(text))
    answer = text[marks[-1].end() :].strip().rstrip("*_ \n") if marks else ""
    return answer or text.strip()


class Passages:
    """Chunks, ranked by the cosine similarity of their vectors to a question.

    Args:
        embedder: Embeds the questions.
        chunks: The chunks.
        vectors: For each chunk the vectors of length one that are compared with a question, of which the nearest
            counts: shape (vectors, dimension), at least one.
    """

    def __init__(self, embedder: Embedder, chunks: Sequence[Chunk], vectors: Sequence[NDArray[np.float32]]) -> None:
        self.chunks = list(chunks)
        self._embedder = embedder
        self._vectors = np.concatenate(vectors) if vectors else np.empty((0, 0), dtype=np.float32)
        self._firsts = np.cumsum([0, *map(len, vectors)])[:-1]

    def scores(self, question: str) -> NDArray[np.float32]:
        """Return the similarity of every chunk to a question, shape (chunks,).

        Raises:
            ModelError: The embedder fails.
        """
        return self.compare(self._embedder.embed_query(question))

    def compare(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the similarity of every chunk to a question's vector, shape (chunks,)."""
        if not self.chunks:
            return np.empty(0, dtype=np.float32)
        nearest: NDArray[np.float32] = np.maximum.reduceat(self._vectors @ vector, self._firsts)
        return nearest

    def best(self, scores: NDArray[Any], k: int) -> list[Chunk]:
        """Return the chunks with the highest scores, best first; ties in the order of the index."""
        return [self.chunks[place] for place in np.argsort(-scores, kind="stable")[:k]]

    def top(self, question: str, k: int) -> list[Chunk]:
        """Return the chunks nearest to a question, nearest first; ties in the order of the index."""
        return self.best(self.scores(question), k)


def minmax(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale values to 0 to 1; equal ones become 1."""
    least, most = values.min(initial=np.inf), values.max(initial=-np.inf)
    scaled: NDArray[np.float32] = (values - least) / (most - least) if most > least else np.ones_like(values)
    return scaled


def pagerank(edges: ArrayLike, reset: ArrayLike, damping: float = 0.5) -> NDArray[np.float64]:
    """Rank the nodes of an undirected graph by random walks that start again at the reset vector.

    Args:
        edges: Two nodes and a weight above 0, shape (edges, 3); several edges between two nodes add up.
        reset: How likely a walk starts at each node, shape (nodes,); negative numbers and NaN count as 0.
        damping: How likely a walk goes on at each step, below 1. At a node without edges it starts again.

    Returns:
        Scores that sum to 1, shape (nodes,); all 0 if the reset vector is, because no walk starts then.

    Example:
        >>> from arag.evaluation.methods.shared import pagerank
        >>> pagerank([[0, 1, 1.0], [1, 2, 1.0]], reset=[1.0, 0.0, 0.0]).round(3).tolist()
        [0.583, 0.333, 0.083]
    """
    ends = np.asarray(edges, dtype=np.float64).reshape(-1, 3)
    weight = np.asarray(reset, dtype=np.float64)
    start: NDArray[np.float64] = np.where(weight > 0, weight, 0.0)
    if not start.any():
        return start
    start /= start.sum()
    tails, heads = (np.concatenate([ends[:, column], ends[:, 1 - column]]).astype(np.int64) for column in (0, 1))
    steps = np.tile(ends[:, 2], 2)
    steps *= damping / np.bincount(tails, steps, len(start))[tails]
    scores, before = start, np.zeros_like(start)
    while np.abs(scores - before).sum() > _PRECISION:
        walked = np.bincount(heads, scores[tails] * steps, len(start))
        scores, before = walked + (1 - damping) * start, scores
    normalised: NDArray[np.float64] = scores / scores.sum()
    return normalised
