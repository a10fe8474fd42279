"""Real corpora go in without loss; they are not part of the repository."""

import json

import pytest

from arag.ingest.pipeline import run_ingest
from arag.retrieval.index import open_index
from fakes import HashEmbeddings, write_corpus


@pytest.mark.parametrize("name", ["musique", "hotpotqa", "medical"])
@pytest.mark.parametrize(
    ("most", "longest"),
    [pytest.param(300, 200_000, id="a part"), pytest.param(None, None, id="all", marks=pytest.mark.slow)],
)
def test_nothing_is_lost(real_corpora, tmp_path, name, most, longest):
    lines = (real_corpora / name / "corpus.jsonl").read_text(encoding="utf-8").splitlines()[:most]
    records = [record | {"text": record["text"][:longest]} for record in map(json.loads, lines)]
    embedder = HashEmbeddings()
    summary = run_ingest(write_corpus(tmp_path / "corpus", records), tmp_path / "index", embedder=embedder)
    assert summary.problems == ()
    assert summary.documents == len(records)
    held = {}
    with open_index(tmp_path / "index", embedder=embedder) as index:
        sizes = []
        for chunk_id in index.chunk_ids():
            chunk = index.get(chunk_id)
            sizes.append(chunk.tokens)
            held[chunk.document_id] = held.get(chunk.document_id, "") + chunk.text
    for record in records:
        assert held[record["id"]].endswith(record["text"])
        assert record["title"] in held[record["id"]]
    assert max(sizes) <= 1_010  # estimates of parts are rounded
