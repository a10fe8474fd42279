"""What several methods use: replies as JSON, ratings, a reader's prompt, dense passages and PageRank."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import AfterValidator, BaseModel, Field, StringConstraints
from pydantic_core import from_json, to_json

from arag.models.embedders import Embedder
from arag.retrieval.types import Chunk

_PRECISION = 1e-13  # of the sum of all changes in a round
Form = TypeVar("Form", bound=BaseModel)

# A number out of range says enough: the reply has been paid for, and is not asked for again.
Rating: TypeAlias = Annotated[
    float, Field(allow_inf_nan=False), AfterValidator(lambda value: min(max(value, 0.0), 10.0))
]
"""A finite number; one below 0 counts as 0, and one above 10 as 10."""
Text: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True)]
"""A text, of which surrounding white space is dropped."""
Texts: TypeAlias = Annotated[list[Text], AfterValidator(lambda texts: list(filter(None, texts)))]
"""Such texts, of which empty ones are left out."""

READER = """You answer a question from passages of a corpus. Each passage has its id in brackets above it.

First say in a few sentences which passages matter and what follows from them. Then end with one line that begins with
"Answer:" and gives the answer in its shortest form: a name, a date, a number, yes or no. If the passages do not hold
the answer, give the most likely one."""
_ANSWER = re.compile(r"^[ \t*_#>-]*answer[ \t*_]*[:：][ \t*_]*", re.IGNORECASE | re.MULTILINE)


def read_json(text: str, form: type[Form], *, cut_off: bool = False) -> Form:
    """Return the JSON object in a reply. The complete parts of one that was cut off count.

    Raises:
        ValidationError: There is none, or it does not fit the form.
    """
    if cut_off:
        with suppress(ValueError):
            text = to_json(from_json(text[max(text.find("{"), 0) :], allow_partial=True)).decode()
    return form.model_validate_json(text[text.find("{") : text.rfind("}") + 1])


def read_answer(text: str) -> str:
    """Return what follows the last line that begins with "Answer:", or the whole text if there is none."""
    marks = list(_ANSWER.finditer(text))
    answer = text[marks[-1].end() :].strip().rstrip("*_ \n") if marks else ""
    return answer or text.strip()


class Passages(NamedTuple):
    """Chunks, ranked by the cosine similarity of their vectors to a question.

    Attributes:
        chunks: The chunks.
        vectors: Their vectors of length one, shape (chunks, dimension).
        embedder: Embeds the questions.
    """

    chunks: Sequence[Chunk]
    vectors: NDArray[np.float32]
    embedder: Embedder

    def best(self, scores: NDArray[Any], k: int) -> list[Chunk]:
        """Return the chunks with the highest scores, best first; ties in the order of the index."""
        return [self.chunks[place] for place in np.argsort(-scores, kind="stable")[:k]]

    def top(self, question: str, k: int) -> list[Chunk]:
        """Return the chunks nearest to a question, nearest first; ties in the order of the index."""
        return self.best(self.vectors @ self.embedder.embed_query(question), k)


def minmax(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale values to 0 to 1; equal ones become 1."""
    least, most = values.min(initial=np.inf), values.max(initial=-np.inf)
    scaled: NDArray[np.float32] = (values - least) / (most - least) if most > least else np.ones_like(values)
    return scaled


def pagerank(edges: ArrayLike, reset: ArrayLike, damping: float = 0.5) -> NDArray[np.float64]:
    """Rank the nodes of an undirected graph by random walks that start again at the reset vector.

    Args:
        edges: Two nodes and a weight above 0, shape (edges, 3); several edges between two nodes add up.
        reset: How likely a walk starts at each node, shape (nodes,); negative numbers count as 0.
        damping: How likely a walk goes on at each step, below 1. At a node without edges it starts again.

    Returns:
        Scores that sum to 1, shape (nodes,); all 0 if the reset vector is, because no walk starts then.
    """
    ends = np.asarray(edges, dtype=np.float64).reshape(-1, 3)
    start: NDArray[np.float64] = np.maximum(np.asarray(reset, dtype=np.float64), 0)
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
