"""Similarities are on one scale for all embedders: what is found, shown and said of it does not depend on the model."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from arag.errors import IndexFormatError
from arag.ingest.copying import copy_index
from arag.ingest.pipeline import ingest, run_ingest
from arag.models.similarity import SAMPLE_SENTENCES
from arag.retrieval.index import open_index
from arag.retrieval.tools.sets import make_tools
from fakes import HashEmbeddings, change_settings, hash_vector, write_corpus

QUERY = "Who kept the lamp of the tower in the year 1821?"
HARBOUR = {
    f"place{n}": f"# Place {n}\n\nThe tower of place {n} has a lamp. Number {n} kept the lamp in 18{n:02}. "
    f"Nobody was hurt. {'The sea is cold there. ' * (n % 5)}A year later, the keeper left the tower."
    for n in range(10, 40)
}


class Squeezed(HashEmbeddings):
    """Vectors of HashEmbeddings that all have a large part in common: the cosines lie between 0.7 and 1."""

    model = "squeezed"

    def embed_documents(self, texts):
        return [squeeze(vector) for vector in super().embed_documents(texts)]

    def embed_query(self, text):
        return squeeze(super().embed_query(text))


def squeeze(vector):
    return [math.sqrt(0.7), *(math.sqrt(0.3) * np.array(vector))]


@pytest.mark.parametrize("backend", ["folder", "postgres"], indirect=True)
def test_what_a_search_finds_and_shows_does_not_depend_on_how_close_the_cosines_lie(make_index):
    wide, close = make_index(HARBOUR), make_index(HARBOUR, embedder=Squeezed())
    assert close.info().spread == pytest.approx(0.3 * wide.info().spread, abs=0.005)
    hits, same = wide.semantic_search(QUERY, 10).hits, close.semantic_search(QUERY, 10).hits
    assert [hit.chunk_id for hit in same] == [hit.chunk_id for hit in hits]
    for hit, other in zip(hits, same, strict=True):
        assert other.similarities == pytest.approx(hit.similarities, abs=0.02)
    rated, others = (index.rate_sentences(QUERY, ["place12:0"])["place12:0"] for index in (wide, close))
    assert others == pytest.approx(rated, abs=0.02)
    assert show(close) == show(wide)


def show(index):
    """What the tools print for a search by meaning and for a reading, without the numbers of similarities."""
    searched, read, shell = (make_tools(index, names=[name])[0] for name in ("semantic_search", "chunk_read", "shell"))
    texts = [
        searched.invoke({"query": QUERY, "top_k": 10}),
        read.invoke({"chunk_ids": ["place12:0", "place31:0"], "about": QUERY}),
        shell.invoke({"command": f'meaning "{QUERY}"'}),
    ]
    return [re.sub(r"\(-?\d\.\d\d", "(", text) for text in texts]


def test_an_index_without_a_spread_has_the_cosines_as_scores(make_index):
    index = make_index(HARBOUR)
    path, settings = index.path, read_settings(index.path)
    del settings["spread"]
    with closing(sqlite3.connect(path / "index.sqlite3")) as connection, connection:
        connection.execute("UPDATE settings SET value = ?", [json.dumps(settings)])
    with open_index(path, embedder=HashEmbeddings()) as old:
        assert old.info().spread == 1
        for hit in old.semantic_search(QUERY, 10).hits:
            for position, similarity in hit.similarities.items():
                cosine = hash_vector(hit.chunk.sentence_text(position)) @ hash_vector(QUERY)
                assert similarity == pytest.approx(cosine, abs=1e-4)
    run_ingest(write_corpus(path.parent / "more", {"b": "Two."}), path, embedder=HashEmbeddings())
    assert read_settings(path)["spread"] == 1  # it has vectors that were compared so


def read_settings(folder):
    with closing(sqlite3.connect(folder / "index.sqlite3")) as connection:
        return json.loads(connection.execute("SELECT value FROM settings").fetchone()[0])


def test_later_ingestions_and_copies_keep_the_spread_and_do_not_embed_the_sample_again(make_index, tmp_path):
    index, embedder = make_index({"a": "One."}, embedder=Squeezed()), Squeezed()
    run_ingest(write_corpus(tmp_path / "more", {"b": "Two."}), index.path, embedder=embedder)
    assert embedder.embedded == ["Two."]
    copy_index(index.path, tmp_path / "copy")
    spread = index.info().spread
    assert read_settings(index.path)["spread"] == read_settings(tmp_path / "copy")["spread"] == spread != 1


class Alike(HashEmbeddings):
    """Gives all texts the same vector."""

    def embed_documents(self, texts):
        return [[1.0, 2.0]] * len(texts)

    def embed_query(self, text):
        return [1.0, 2.0]


class Apart(HashEmbeddings):
    """Gives every text of the sample, and no other, a direction of its own."""

    def embed_documents(self, texts):
        rows = [SAMPLE_SENTENCES.index(text) if text in SAMPLE_SENTENCES else 0 for text in texts]
        return np.eye(len(SAMPLE_SENTENCES))[rows].tolist()

    def embed_query(self, text):
        return self.embed_documents([text])[0]


class Zero(Alike):
    """Gives a vector without a direction."""

    def embed_documents(self, texts):
        return [[0.0, 0.0]] * len(texts)

    def embed_query(self, text):
        return [0.0, 0.0]


@pytest.mark.parametrize("kind", [Alike, Apart, Zero])
def test_an_embedder_without_a_scale_has_its_cosines_as_scores(tmp_path, kind):
    with ingest(write_corpus(tmp_path / "corpus", HARBOUR), tmp_path / "index", embedder=kind()) as index:
        assert index.info().spread == 1
        scores = [hit.score for hit in index.semantic_search(QUERY, 40).hits]
        assert len(scores) == 30
        assert scores == pytest.approx([0.0 if kind is Zero else 1.0] * 30, abs=1e-3)
        assert "place10" in show(index)[0]


@pytest.mark.parametrize("spread", [0, -1, 0.01, 1e9, "wide", None])
def test_a_spread_that_no_embedder_has_is_damage(make_index, spread):
    index = make_index({"a": "One."})
    change_settings(index.path, spread=spread)
    with pytest.raises(IndexFormatError, match="settings"):
        open_index(index.path, embedder=HashEmbeddings())
