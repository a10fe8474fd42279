"""Code that several methods share: JSON replies, ratings, lists, the reader's prompt, dense retrieval, PageRank."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import AfterValidator, BaseModel, Field, StringConstraints
from pydantic_core import from_json, to_json

from arag.models.embedders import Embedder
from arag.retrieval.types import Chunk

# PageRank stops when all scores together change by less than this in a round. The tests compare the scores with those
# of igraph, to 1e-12 for each node.
_MAX_CHANGE = 1e-13
_MIN_RATING, _MAX_RATING = 0.0, 10.0  # the scale that the prompts ask for

Form = TypeVar("Form", bound=BaseModel)


def _limit_rating(value: float) -> float:
    return min(max(value, _MIN_RATING), _MAX_RATING)


def _drop_empty(texts: list[str]) -> list[str]:
    return [text for text in texts if text]


# A rating outside the scale is clear enough. The reply has been paid for, so the model is not asked again.
Rating: TypeAlias = Annotated[float, Field(allow_inf_nan=False), AfterValidator(_limit_rating)]
"""A finite number from 0 to 10; values outside this range are moved to its nearest end."""
Text: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True)]
"""A text without surrounding white space."""
Texts: TypeAlias = Annotated[list[Text], AfterValidator(_drop_empty)]
"""Texts without surrounding white space; empty ones are dropped."""

READER = """You answer a question from passages of a corpus. Each passage has its id in brackets above it.

First say in a few sentences which passages matter and what follows from them. Then end with one line that begins with
"Answer:" and gives the answer in its shortest form: a name, a date, a number, yes or no. If the passages do not hold
the answer, give the most likely one."""
_ANSWER = re.compile(r"^[ \t*_#>-]*answer[ \t*_]*[:：][ \t*_]*", re.IGNORECASE | re.MULTILINE)


def read_json(text: str, form: type[Form], *, cut_off: bool = False) -> Form:
    """Read the JSON object in a reply.

    Args:
        text: The reply, which may have other text around the object.
        form: The form of the object.
        cut_off: Whether the reply was cut off. Its complete parts are then read.

    Returns:
        The object.

    Raises:
        ValidationError: The reply has no such object, or the object does not fit the form.
    """
    if cut_off:
        begin = max(text.find("{"), 0)
        with suppress(ValueError):
            complete_parts = from_json(text[begin:], allow_partial=True)
            text = to_json(complete_parts).decode()
    begin = text.find("{")
    end = text.rfind("}") + 1
    return form.model_validate_json(text[begin:end])


def read_answer(text: str) -> str:
    """Return the answer in a reply: everything after the last "Answer:" at the start of a line.

    Without such a line, or with nothing after it, the whole reply is the answer.
    """
    answer = ""
    labels = list(_ANSWER.finditer(text))
    if labels:
        after_last = text[labels[-1].end() :]
        answer = after_last.strip().rstrip("*_ \n")
    return answer or text.strip()


def list_numbered(texts: Iterable[str]) -> str:
    """Return texts as a list whose items are numbered from 1."""
    return "\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1))


def list_bullets(texts: Iterable[str]) -> str:
    """Return texts as a list with bullets."""
    return "\n".join(f"- {text}" for text in texts)


class Passages(NamedTuple):
    """Chunks that can be ranked by the cosine similarity of their vectors to a question.

    Attributes:
        chunks: The chunks.
        vectors: Their vectors of length one, shape (chunks, dimension).
        embedder: Embeds the questions.
    """

    chunks: Sequence[Chunk]
    vectors: NDArray[np.float32]
    embedder: Embedder

    def best(self, scores: NDArray[Any], k: int) -> list[Chunk]:
        """Return the k chunks with the highest scores, best first; ties keep the order of the index."""
        return [self.chunks[position] for position in best_first(scores, k)]

    def top(self, question: str, k: int) -> list[Chunk]:
        """Return the k chunks nearest to a question, nearest first; ties keep the order of the index."""
        similarities = self.vectors @ self.embedder.embed_query(question)
        return self.best(similarities, k)


def best_first(scores: NDArray[Any], k: int) -> list[int]:
    """Return the positions of the k highest scores, highest first; ties keep their order."""
    positions: list[int] = np.argsort(-scores, kind="stable")[:k].tolist()
    return positions


def minmax(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale values to the range 0 to 1; if all are equal, each becomes 1."""
    least = values.min(initial=np.inf)
    most = values.max(initial=-np.inf)
    if most > least:
        scaled: NDArray[np.float32] = (values - least) / (most - least)
        return scaled
    return np.ones_like(values)


def pagerank(edges: ArrayLike, reset: ArrayLike, damping: float = 0.5) -> NDArray[np.float64]:
    """Rank the nodes of an undirected graph by random walks that restart at the nodes of the reset vector.

    Args:
        edges: Two nodes and a weight above 0, shape (edges, 3); several edges between two nodes add up.
        reset: How likely a walk is to start at each node, shape (nodes,); negative numbers count as 0.
        damping: The probability that a walk continues at each step, below 1. At a node without edges it restarts.

    Returns:
        Scores that sum to 1, shape (nodes,); all 0 if the reset vector is all 0, because no walk starts then.
    """
    start: NDArray[np.float64] = np.maximum(np.asarray(reset, dtype=np.float64), 0)
    if not start.any():
        return start
    start /= start.sum()
    nodes = len(start)

    # Each undirected edge is two directed ones.
    edge_rows = np.asarray(edges, dtype=np.float64).reshape(-1, 3)
    first = edge_rows[:, 0].astype(np.int64)
    second = edge_rows[:, 1].astype(np.int64)
    weights = np.tile(edge_rows[:, 2], 2)
    sources = np.concatenate([first, second])
    targets = np.concatenate([second, first])
    out_weights = np.bincount(sources, weights, nodes)
    transition = weights * (damping / out_weights[sources])

    restart = (1 - damping) * start
    scores = start
    previous = np.zeros_like(start)
    while np.abs(scores - previous).sum() > _MAX_CHANGE:
        previous = scores
        scores = np.bincount(targets, scores[sources] * transition, nodes) + restart
    normalised: NDArray[np.float64] = scores / scores.sum()
    return normalised
