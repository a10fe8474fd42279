"""An ingestion that is killed at any moment leaves an index that opens, and that the next run completes."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from arag.ingest.pipeline import run_ingest
from arag.retrieval.errors import IndexNotFoundError
from arag.retrieval.index import open_index
from arag.retrieval.manifest import read_manifest, vectors_folder
from arag.retrieval.sentence_store import SentenceStore
from fakes import HashEmbeddings, write_corpus

KILLS = 10

PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
from arag.ingest.pipeline import run_ingest
from fakes import HashEmbeddings
run_ingest({source!r}, {index!r}, embedder=HashEmbeddings(), prune=True)
"""


def corpus(version):
    """About a thousand documents; each version changes, drops and adds some."""
    words = random.Random(version)
    return [
        {
            "id": f"d{n}",
            "title": f"Title {n}",
            "text": " ".join(f"Sentence {k} of version {version if n % 3 == 0 else 0} says w{n}." for k in range(6)),
        }
        for n in range(1_000)
        if words.random() > 0.1
    ]


def contents(folder):
    """Everything that the index holds: documents, chunks, and the sentences in Chroma."""
    with open_index(folder, embedder=HashEmbeddings()) as index:
        store = index._chunks
        documents = {record.id: record.fingerprint for record in store.documents()}
        chunks = {i: index.get(i) for i in index.chunk_ids()}
        assert store.pending_chunks(1) == []
        generation = read_manifest(folder).generation
        assert not store.differs_from(generation)
    sentences = SentenceStore(vectors_folder(folder, generation))
    found = sentences._collection.get(include=["documents", "metadatas"])
    vectors = sentences.vectors(found["ids"])
    sentences.close()
    rows = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
    return (
        documents,
        chunks,
        {(m["chunk_id"], m["position"]): (text, m, np.round(vectors[i], 4).tolist()) for i, text, m in rows},
    )


def kill_during(program, seconds):
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    time.sleep(seconds)  # the moment of the kill, which is what is tested
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    return process.returncode, errors.decode()


def test_a_killed_ingestion_is_completed_by_the_next(tmp_path):
    moments = random.Random(7)
    source, index = tmp_path / "corpus", tmp_path / "index"
    program = PROGRAM.format(tests=str(Path(__file__).parent), source=str(source), index=str(index))
    killed = 0
    for version in range(1, KILLS + 1):
        write_corpus(source, corpus(version))
        code, errors = kill_during(program, moments.uniform(0.8, 3.5))
        assert code in {0, -signal.SIGKILL}, errors
        killed += code != 0
        try:
            with open_index(index, embedder=HashEmbeddings()) as opened:
                for result in (opened.keyword_search("w7").hits, opened.semantic_search("version says w7", 3).hits):
                    assert all(opened.get(hit.chunk_id) is not None for hit in result)
        except IndexNotFoundError:
            assert version == 1
    assert killed >= KILLS // 2
    run_ingest(source, index, embedder=HashEmbeddings(), prune=True)
    run_ingest(source, tmp_path / "fresh", embedder=HashEmbeddings())
    assert contents(index) == contents(tmp_path / "fresh")
    with open_index(index, embedder=HashEmbeddings()) as opened:
        for chunk_id in list(opened.chunk_ids())[::100]:
            text = opened.get(chunk_id).sentence_text(2)
            assert opened.semantic_search(text, 1).hits[0].score == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("left", [0, 3_000])
def test_a_failing_embedder_leaves_what_was_complete_and_the_next_run_finishes(tmp_path, left):
    write_corpus(tmp_path / "corpus", corpus(1))
    with pytest.raises(Exception, match="went away"):
        run_ingest(tmp_path / "corpus", tmp_path / "index", embedder=HashEmbeddings(fail_after=left + 1))
    run_ingest(tmp_path / "corpus", tmp_path / "index", embedder=HashEmbeddings())
    run_ingest(tmp_path / "corpus", tmp_path / "fresh", embedder=HashEmbeddings())
    assert contents(tmp_path / "index") == contents(tmp_path / "fresh")
