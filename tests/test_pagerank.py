"""Personalised PageRank against igraph's own."""

from __future__ import annotations

import igraph
import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from arag.evaluation.methods.shared import pagerank

NODES = 12
node = st.integers(0, NODES - 1)
edges = st.lists(st.tuples(node, node, st.floats(1e-3, 1e3)), max_size=40)
resets = st.lists(st.floats(0, 1), min_size=NODES, max_size=NODES).filter(lambda reset: sum(reset) > 1e-3)


@given(edges, resets, st.sampled_from([0.5, 0.15, 0.85]))
@example([], [1.0] * NODES, 0.5)
@example([(0, 1, 1.0), (1, 0, 2.0), (0, 1, 4.0)], [0.5, *[0.1] * (NODES - 1)], 0.5)  # parallel edges, lone nodes
@example([(0, 0, 1.0), (0, 1, 2.0)], [1.0, *[0.0] * (NODES - 1)], 0.5)  # an edge from a node to itself
def test_the_scores_are_those_of_igraph(edges, reset, damping):
    graph = igraph.Graph(n=NODES, edges=[edge[:2] for edge in edges])
    expected = graph.personalized_pagerank(
        damping=damping, reset=reset, weights=[edge[2] for edge in edges], implementation="prpack"
    )
    assert np.abs(pagerank(edges, reset, damping) - expected).max() <= 1e-12


def test_negative_numbers_in_the_reset_vector_count_as_zero():
    assert pagerank([(0, 1, 1.0)], [-1.0, 0.0]).tolist() == [0, 0]
