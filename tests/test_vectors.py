"""Sentences by their vectors: compared one by one, or proposed by Chroma's graph and then compared."""

from __future__ import annotations

import warnings
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag.retrieval.storage.folder.chroma import VectorIndex
from arag.retrieval.storage.folder.store import FolderStore
from arag.retrieval.storage.records import DocumentRecord, EmbeddedDocument, Settings
from arag.retrieval.storage.vectors import SentenceMatrix
from arag.retrieval.types import Chunk, Sentence


def random_vectors(count, dimension, *, topics=0, apart=1.5, seed=1):
    """Vectors of length one, around some topics, which stand more or less apart, as embeddings are."""
    rng = np.random.default_rng(seed)
    made = rng.standard_normal((count, dimension))
    if topics:
        made += apart * rng.standard_normal((topics, dimension))[rng.integers(topics, size=count)]
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def nearest(rows, vector, count):
    """The nearest sentences and their similarities by the plainest way, ties in the order of the rows."""
    found = []
    for number, positions, vectors in rows:
        for position, row in zip(positions, vectors.astype(np.float64), strict=True):
            if np.isfinite(row).all():
                found.append((number, position, row @ vector / (np.linalg.norm(row) or 1)))
    return sorted(found, key=lambda one: -round(one[2], 9))[:count]


ROWS = st.lists(st.lists(st.sampled_from([0, 1, 2, 3, 4, 5]), max_size=5), max_size=6)
SOME = np.array([[1, 0, 0], [1, 0, 0.01], [0, 1, 0], [-1, 0, 0], [0, 0, 0], [np.nan, 1, 0]], dtype=np.float32)


@given(ROWS, st.integers(1, 12), st.none() | st.sets(st.integers(0, 6)))
def test_the_nearest_sentences_are_those_of_the_plainest_way(chosen, count, numbers):
    rows = [(10 * n, list(range(0, 2 * len(some), 2)), SOME[some]) for n, some in enumerate(chosen)]
    vector = np.array([0.8, 0.6, 0], dtype=np.float32)
    matrix = SentenceMatrix.build(rows, 3)
    inside = None if numbers is None else {10 * n for n in numbers}
    found = matrix.nearest(vector, count, None if inside is None else np.array(sorted(inside), dtype=np.int64))
    expected = nearest([row for row in rows if inside is None or row[0] in inside], vector, count)
    assert [(m.row_id, m.position) for m in found] == [(number, position) for number, position, _ in expected]
    assert [m.similarity for m in found] == pytest.approx([s for *_, s in expected], abs=1e-6)


def test_damaged_vectors_are_never_among_the_nearest():
    vectors = np.array([[1, 0], [np.nan, 0], [0, np.inf], [0, 1]], dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = SentenceMatrix.build([(7, [0, 1, 2, 3], vectors)], 2).nearest(np.array([1, 0], dtype=np.float32), 4)
    assert [(m.position, m.similarity) for m in found] == [(0, 1), (3, 0)]


# --- an index in a folder ---


def make_index(folder, vectors, size=4):
    """An index of these vectors, some to a chunk, whose every other sentence is embedded."""
    store = FolderStore(folder)
    chunks = [vectors[start : start + size] for start in range(0, len(vectors), size)]
    documents = []
    for n, rows in enumerate(chunks):
        sentences = tuple(Sentence(i, i + 1, embedded=i % 2 == 1) for i in range(2 * len(rows)))
        chunk = Chunk(f"d{n:05}:0", f"d{n:05}", 0, "", "x" * 2 * len(rows), sentences, 1, parts=1)
        documents.append(EmbeddedDocument(DocumentRecord(f"d{n:05}", "", "", "{}", "", 1), [chunk], [rows]))
    with store.draft(lambda: Settings("Random:1", vectors.shape[1], 1_000, "")) as draft:
        draft.put(documents)
        draft.publish(draft.settings)
    return store


@pytest.fixture(scope="module")
def vectors():
    return random_vectors(1_200, 32)


@pytest.fixture(scope="module")
def store(tmp_path_factory, vectors):
    return make_index(tmp_path_factory.mktemp("vectors") / "index", vectors)


@pytest.fixture
def view(store, through_chroma):
    with closing(store.open()) as view:
        assert isinstance(view.sentences(), VectorIndex)
        yield view


def recall(view, query, count, documents=None):
    """The share of the nearest sentences that is found, after a check of their similarities."""
    limited = view if documents is None else view.limited_to(documents)
    rows = list(limited.vectors(limited.ordered_row_ids()))
    expected = nearest(rows, query, count)
    found = limited.nearest(query, count)
    assert len(found) == len(expected)
    exact = {(number, position): s for number, position, s in nearest(rows, query, 10**6)}
    assert [m.similarity for m in found] == pytest.approx([exact[m.row_id, m.position] for m in found], abs=1e-6)
    assert [m.similarity for m in found] == sorted((m.similarity for m in found), reverse=True)
    wanted = {(number, position) for number, position, _ in expected}
    return len(wanted & {(m.row_id, m.position) for m in found}) / max(len(wanted), 1)


@pytest.mark.parametrize("kept", [0, 20_000_000], ids=["proposed", "compared"])
def test_the_graph_finds_the_nearest_whatever_share_of_them_a_limit_leaves(view, kept, monkeypatch):
    monkeypatch.setattr("arag.retrieval.storage.vectors.MAX_LIMITED_BYTES", kept)
    queries = random_vectors(6, 32, seed=0)
    for part in (None, 2, 50):
        documents = part and [f"d{n:05}" for n in range(0, 300, part)]
        for count in (1, 15, 200):
            assert np.mean([recall(view, query, count, documents) for query in queries]) >= 0.99
    assert recall(view, queries[0], 15, ["d00003"]) == 1
    assert view.limited_to([]).nearest(queries[0], 15) == []


def test_a_question_of_none_of_the_topics_finds_what_is_nearest(tmp_path, through_chroma):
    vectors = random_vectors(6_000, 64, topics=60, apart=20)
    queries = random_vectors(15, 64, seed=2)
    with closing(make_index(tmp_path / "index", vectors, size=50).open()) as view:
        assert np.mean([recall(view, query, 15) for query in queries]) >= 0.99


def test_a_sentence_that_stands_a_thousand_times_hides_no_other(tmp_path, through_chroma):
    copied, *others = random_vectors(61, 48, topics=1)
    with closing(make_index(tmp_path / "index", np.array([copied] * 1_000 + others)).open()) as view:
        assert np.mean([recall(view, other, 1) for other in others]) >= 0.98
        assert len({m.similarity for m in view.nearest(copied, 200)}) == 1
