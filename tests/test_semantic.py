"""Chunks are ranked by their sentence that is nearest to a query; what embedders must deliver."""

from __future__ import annotations

import math

import numpy as np
import pytest

from arag.errors import InputError, ModelError
from arag.ingest.pipeline import ingest
from arag.models.embedders import load_embedder
from arag.retrieval.index import open_index
from fakes import DIMENSION, HashEmbeddings, hash_vector, write_corpus

ROUNDING = 1e-4  # of similarities: an index keeps vectors as float16


def pytest_generate_tests(metafunc):
    """Both ways find the same: exactly, as in small indexes, and in Chroma's graph, as in large ones."""
    both = {"make_index", "example_index"} & set(metafunc.fixturenames)
    metafunc.parametrize("way", ["exact", "chroma"] if both else ["exact"], indirect=True)


@pytest.fixture(autouse=True)
def way(request):
    if request.param == "chroma":
        request.getfixturevalue("through_chroma")
    return request.param


WORDS = [f"w{n}" for n in range(60)]


def corpus(seed, *, documents, sentences):
    """Documents of random sentences."""
    rng = np.random.default_rng(seed)

    def sentence():
        return f"The {' '.join(rng.choice(WORDS, size=int(rng.integers(1, 12))))}."

    return {f"d{n:03}": " ".join(sentence() for _ in range(rng.integers(1, sentences + 1))) for n in range(documents)}


def reference(index, query):
    """Score of every chunk: the similarity of its nearest sentence, from the cosine and the embedder's spread."""
    vector = hash_vector(query)
    spread = index.info().spread
    scores = {}
    for chunk in map(index.get, index.chunk_ids()):
        texts = [chunk.sentence_text(n) for n, s in enumerate(chunk.sentences) if s.embedded]
        scores[chunk.id] = 1 - (1 - max(float(hash_vector(text) @ vector) for text in texts)) / spread
    return scores


def assert_ranked_as(scores, hits, top_k):
    expected = sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))[:top_k]
    assert len(hits) == len(expected)
    assert len({hit.chunk_id for hit in hits}) == len(hits)
    for hit, (_, score) in zip(hits, expected, strict=True):
        assert hit.score == pytest.approx(score, abs=ROUNDING)
        assert scores[hit.chunk_id] == pytest.approx(hit.score, abs=ROUNDING)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_ranks_chunks_by_their_nearest_sentence(make_index):
    index = make_index(corpus(3, documents=150, sentences=12), chunk_tokens=120)
    rng = np.random.default_rng(3)
    for top_k in (1, 5, 20, 500):
        query = " ".join(rng.choice(WORDS, size=4))
        assert_ranked_as(reference(index, query), index.semantic_search(query, top_k).hits, top_k)


def test_returns_top_k_chunks_though_one_holds_all_the_nearest_sentences(make_index):
    near = " ".join("The ship sank." for _ in range(700))
    others = {f"far{n}": f"Nobody saw number {n}." for n in range(4)}
    index = make_index({"near": near, **others}, chunk_tokens=100_000)
    hits = index.semantic_search("The ship sank", top_k=5).hits
    assert hits[0].chunk_id == "near:0"
    assert {hit.chunk_id for hit in hits} == {"near:0", *(f"{name}:0" for name in others)}


def test_ties_beyond_the_first_sentences_fetched_go_by_chunk_id(make_index):
    index = make_index({f"d{(37 * n) % 100:02}": f"The ship sank. Nobody saw {n}." for n in range(100)})
    for top_k in (1, 20):
        hits = index.semantic_search("ship sank", top_k).hits
        assert [hit.chunk_id for hit in hits] == [f"d{n:02}:0" for n in range(top_k)]


def test_a_blank_query_and_no_result_are_input_errors(make_index):
    index = make_index({"a": "One."})
    for query in ("", "\n\t"):
        with pytest.raises(InputError, match="blank"):
            index.semantic_search(query)
    with pytest.raises(InputError, match="top_k"):
        index.semantic_search("one", 0)


class Broken(HashEmbeddings):
    """Gives one and the same in place of every vector."""

    def __init__(self, vector):
        super().__init__()
        self.vector = vector

    def embed_documents(self, texts):
        return [self.vector for _ in texts]

    def embed_query(self, text):
        return self.vector


Broken.__name__ = "HashEmbeddings"  # so that its name in an index is the same


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("vector", [[0.5] * 32, [], [math.nan] * DIMENSION, [1e300] * DIMENSION, [None] * DIMENSION])
def test_a_vector_that_does_not_fit_is_an_embedder_error(make_index, tmp_path, vector):
    index, source = make_index({"a": "One."}), write_corpus(tmp_path / "corpus", {"b": "Two."})
    with open_index(index.path, embedder=Broken(vector)) as again, pytest.raises(ModelError):
        again.semantic_search("one")
    with pytest.raises(ModelError):
        ingest(source, index.path, embedder=Broken(vector))


def test_vectors_have_length_one():
    class Long(HashEmbeddings):
        def embed_documents(self, texts):
            return [[3.0, 4.0] for _ in texts]

        def embed_query(self, text):
            return [30.0, 40.0]

    embedder = load_embedder(Long())
    assert embedder.embed_documents(["a", "b"]).tolist() == pytest.approx(np.array([[0.6, 0.8]] * 2))
    assert embedder.embed_query("a").tolist() == pytest.approx([0.6, 0.8])
