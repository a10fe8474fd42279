"""Real corpora go in without loss; they are not part of the repository."""

import json

import pytest

from arag.ingest.pipeline import run_ingest
from arag.retrieval.index import open_index
from fakes import HashEmbeddings, write_corpus


@pytest.mark.parametrize(("name", "pack"), [("musique", False), ("hotpotqa", True), ("medical", False)])
@pytest.mark.parametrize(
    ("most", "longest"),
    [pytest.param(300, 200_000, id="a part"), pytest.param(None, None, id="all", marks=pytest.mark.slow)],
)
def test_nothing_is_lost(real_corpora, tmp_path, name, pack, most, longest):
    lines = (real_corpora / name / "corpus.jsonl").read_text(encoding="utf-8").splitlines()[:most]
    records = [record | {"text": record["text"][:longest]} for record in map(json.loads, lines)]
    embedder = HashEmbeddings()
    summary = run_ingest(write_corpus(tmp_path / "corpus", records), tmp_path / "index", embedder=embedder, pack=pack)
    assert summary.problems == ()
    assert summary.documents == len(records)
    held = {}
    with open_index(tmp_path / "index", embedder=embedder) as index:
        sizes = []
        for chunk_id in index.chunk_ids():
            chunk = index.get(chunk_id)
            sizes.append(chunk.tokens)
            for section in chunk.sections:
                held[section.document_id] = held.get(section.document_id, "") + chunk.text[section.start : section.end]
    for record in records:
        assert held[record["id"]].endswith(record["text"])
        assert record["title"] in held[record["id"]]
    assert max(sizes) <= 1_010  # a token or two come from the seams between documents
