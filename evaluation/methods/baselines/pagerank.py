"""Personalised PageRank on an undirected graph with weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

_PRECISION = 1e-12  # of the sum of all changes in a round


def pagerank(
    sources: ArrayLike, targets: ArrayLike, weights: ArrayLike, reset: ArrayLike, damping: float = 0.5
) -> NDArray[np.float64]:
    """Rank the nodes of an undirected graph by random walks that start again at the reset vector.

    Args:
        sources: The edges' first ends: numbers of nodes, shape (edges,).
        targets: Their second ends, shape (edges,).
        weights: Their weights, above 0, shape (edges,). Several edges between two nodes add up.
        reset: How likely a walk starts at each node, shape (nodes,). It need not sum to 1; negative numbers and NaN
            count as 0.
        damping: How likely a walk goes on at each step, from 0 to below 1. A walk that has reached a node without
            edges starts again.

    Returns:
        Scores that sum to 1, shape (nodes,); all 0 if the reset vector is, because no walk starts then.

    Example:
        >>> from arag.evaluation.methods.baselines.pagerank import pagerank
        >>> pagerank([0, 1], [1, 2], [1.0, 1.0], reset=[1.0, 0.0, 0.0]).round(3).tolist()
        [0.583, 0.333, 0.083]
    """
    given = np.asarray(reset, dtype=np.float64)
    start: NDArray[np.float64] = np.where(given > 0, given, 0.0)
    if not start.any():
        return start
    start /= start.sum()
    nodes = len(start)
    tails = np.concatenate([np.asarray(sources, dtype=np.int64), np.asarray(targets, dtype=np.int64)])
    heads = np.concatenate([tails[len(tails) // 2 :], tails[: len(tails) // 2]])
    steps = np.tile(np.asarray(weights, dtype=np.float64), 2)
    steps *= damping / np.bincount(tails, steps, nodes)[tails]

    # Nodes without edges need no term of their own: walks that end there start again at the reset vector, which scales
    # all scores alike. On an undirected graph the steps have real eigenvalues, so Chebyshev's semi-iterative method
    # applies: it needs half the rounds of plain iteration.
    before, scores, pace = np.zeros(nodes), start, 2.0
    while np.abs(scores - before).sum() > _PRECISION:
        pace = 1 / (1 - pace * damping**2 / 4)
        after = pace * (start + np.bincount(heads, scores[tails] * steps, nodes) - before) + before
        before, scores = scores, after
    scores = np.maximum(scores, 0)  # rounding
    normalised: NDArray[np.float64] = scores / scores.sum()
    return normalised
