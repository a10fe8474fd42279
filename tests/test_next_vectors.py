"""Vectors are written to Chroma while others are being embedded."""

from __future__ import annotations

import shutil
import sqlite3
import threading
import time
from contextlib import closing, suppress

import pytest

from arag.errors import EmbedderError, StorageError
from arag.ingest import writer as writing
from arag.ingest.documents import Document
from arag.ingest.pipeline import run_ingest
from arag.ingest.writer import open_writer
from arag.models.embedders import Embedder
from arag.retrieval.index import open_index
from arag.retrieval.local import chroma_folder, next_vectors
from arag.retrieval.local.backend import LocalBackend
from arag.retrieval.local.manifest import read_manifest, vectors_folder
from arag.retrieval.local.sentence_store import SentenceStore
from arag.retrieval.local.sentence_writer import SentenceWriter
from fakes import HashEmbeddings, write_corpus

SENTENCES = 10  # of a document
WAIT = 60  # seconds, for a thread


def texts(*numbers, version=1):
    return {
        f"boat-{n}": " ".join(f"In {1500 + i} the boat {n} had rower {n * i * version}." for i in range(SENTENCES))
        for n in numbers
    }


def documents(*numbers, version=1):
    return [[Document(i, "", text, i)] for i, text in texts(*numbers, version=version).items()]


@pytest.fixture
def small_steps(monkeypatch):
    """The thread begins with a few sentences, and the embedder gets a few at a time."""
    monkeypatch.setattr(next_vectors, "_ENOUGH", 20)
    monkeypatch.setattr(chroma_folder, "_SENTENCES_PER_CALL", 15)
    monkeypatch.setattr(writing, "_CHUNKS_PER_READ", 4)


def embedder(embeddings=None):
    return Embedder("HashEmbeddings:hash-64", lambda: embeddings or HashEmbeddings(), batch=20, concurrency=1)


@pytest.fixture
def opened(tmp_path, small_steps):
    with open_writer(LocalBackend(tmp_path / "index"), embedder=embedder()) as writer:
        yield writer


def rows_in(folder):
    """How many sentences Chroma's database has, while somebody else writes to it."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{folder / 'chroma.sqlite3'}?mode=ro", uri=True)) as db:
        return db.execute("SELECT count(*) FROM embeddings").fetchone()[0]
    return 0


def wait_for_rows(folder, least):
    until = time.monotonic() + WAIT
    while (found := rows_in(folder)) < least:
        assert time.monotonic() < until, f"{found} of {least} sentences were written"
        time.sleep(0.01)


def put(writer, groups):
    """Write documents and their vectors, and wait for the thread that writes most of these to Chroma."""
    writer.put(groups)
    writer.flush()
    vectors = writer._draft._vectors
    while vectors is not None and vectors._ahead is not None and not vectors._ahead.done():
        time.sleep(0.01)


def stored(folder):
    """Chunk and text of every sentence in Chroma."""
    with closing(SentenceStore(vectors_folder(folder, read_manifest(folder).generation))) as store:
        rows = store._read_rows(store._collection.get(include=[])["ids"]).values()
        return sorted((row.chunk_id, row.text) for row in rows)


def expected(**by_id):
    return sorted(
        (f"{document_id}:0", f"{sentence}.")
        for document_id, text in by_id.items()
        for sentence in text.removesuffix(".").split(". ")
    )


def test_vectors_are_written_while_others_are_embedded(tmp_path, small_steps):
    class Waiting(HashEmbeddings):
        """Before it embeds the last sentences, it waits until most of the others are in Chroma."""

        def embed_documents(self, texts):
            if len(self.embedded) > 200:
                wait_for_rows(tmp_path / "index" / "chroma.1.new", 100)
                self.waited = True
            return super().embed_documents(texts)

    embeddings = Waiting()
    source = write_corpus(tmp_path / "corpus", texts(*range(30)))
    said = []
    run_ingest(source, tmp_path / "index", embedder=embedder(embeddings), progress=said.append)
    assert embeddings.waited
    assert stored(tmp_path / "index") == expected(**texts(*range(30)))
    published = [(p.published, p.to_publish) for p in said if p.phase == "publishing"]
    assert published[0][0] >= 100
    assert next(p for p in said if p.phase == "publishing").seconds_left is None  # nothing is known of the speed yet
    assert published[-1] == (300, 300)
    assert [written for written, _ in published] == sorted(written for written, _ in published)


def test_what_a_run_adds_and_changes_again_is_published_once(tmp_path, opened):
    put(opened, documents(*range(1, 11)))
    assert rows_in(tmp_path / "index" / "chroma.1.new") >= 20
    put(opened, documents(1, version=5))
    opened.remove(["boat-2"])
    opened.commit()
    kept = texts(*range(1, 11)) | texts(1, version=5)
    del kept["boat-2"]
    assert stored(tmp_path / "index") == expected(**kept)
    assert read_manifest(tmp_path / "index").removed_vectors == 2 * SENTENCES  # still in Chroma's graph
    assert LocalBackend(tmp_path / "index").find_damage() == []


def test_a_later_generation_starts_from_a_copy(tmp_path, opened):
    put(opened, documents(*range(10)))
    opened.commit()
    put(opened, documents(1, *range(10, 16), version=2))
    opened.remove(["boat-4", "boat-10"])
    opened.commit()
    kept = texts(*range(10)) | texts(1, *range(10, 16), version=2)
    del kept["boat-4"], kept["boat-10"]
    assert stored(tmp_path / "index") == expected(**kept)
    assert read_manifest(tmp_path / "index").removed_vectors == 3 * SENTENCES  # boats 1, 4 and 10
    assert LocalBackend(tmp_path / "index").find_damage() == []


def test_when_too_many_are_removed_all_are_written_anew(tmp_path, opened):
    put(opened, documents(*range(10)))
    opened.commit()
    put(opened, documents(*range(10, 14)))
    opened.remove([f"boat-{n}" for n in range(8)])
    opened.commit()
    assert stored(tmp_path / "index") == expected(**texts(*range(8, 14)))
    assert read_manifest(tmp_path / "index").removed_vectors == 0


def test_nothing_is_left_of_what_was_removed_again(tmp_path, opened):
    put(opened, documents(*range(10)))
    opened.remove([f"boat-{n}" for n in range(10)])
    opened.commit()
    assert read_manifest(tmp_path / "index").sentences == 0
    assert list((tmp_path / "index").glob("chroma.*")) == []
    put(opened, documents(*range(5)))
    opened.commit()
    assert stored(tmp_path / "index") == expected(**texts(*range(5)))


def test_a_failure_in_the_thread_costs_time_and_nothing_else(tmp_path, small_steps, monkeypatch):
    add, failed = SentenceWriter.add, []

    def fail_once(self, sentences, on_written=None):
        if not failed:
            failed.append(next(iter(sentences)).id)  # lost
            raise StorageError("the disk was full for a moment")
        add(self, sentences, on_written)

    monkeypatch.setattr(SentenceWriter, "add", fail_once)
    source = write_corpus(tmp_path / "corpus", texts(*range(30)))
    run_ingest(source, tmp_path / "index", embedder=embedder())
    assert failed
    assert stored(tmp_path / "index") == expected(**texts(*range(30)))
    assert list((tmp_path / "index").glob("*.new")) == []


def test_a_run_that_changes_most_of_what_it_added_starts_again(tmp_path, opened):
    put(opened, documents(*range(10)))
    put(opened, documents(*range(5), version=3))
    opened.commit()
    assert stored(tmp_path / "index") == expected(**texts(*range(10)) | texts(*range(5), version=3))
    assert read_manifest(tmp_path / "index").removed_vectors == 0


def test_an_interruption_waits_for_the_thread_and_leaves_nothing(tmp_path, small_steps, monkeypatch):
    add = SentenceWriter.add
    running, interrupted = threading.Event(), threading.Event()

    def slowly(self, sentences, on_written=None):
        running.set()
        assert interrupted.wait(WAIT)
        time.sleep(0.2)  # the writer is being closed meanwhile
        add(self, sentences, on_written)

    monkeypatch.setattr(SentenceWriter, "add", slowly)
    opening = open_writer(LocalBackend(tmp_path / "index"), embedder=embedder())
    with pytest.raises(KeyboardInterrupt), opening as writer:  # noqa: PT012 - it is pressed in the middle
        writer.put(documents(*range(10)))
        writer.flush()
        assert running.wait(WAIT)
        interrupted.set()
        raise KeyboardInterrupt
    assert not any(thread.name.startswith("publish") for thread in threading.enumerate())
    assert list((tmp_path / "index").glob("chroma.*")) == []


def test_a_fault_of_the_program_is_not_hidden(tmp_path, opened, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(SentenceWriter, "add", fail)
    put(opened, documents(*range(10)))
    with pytest.raises(ZeroDivisionError):
        opened.commit()


def test_a_run_that_fails_leaves_nothing_but_what_was_embedded(tmp_path, small_steps):
    source = write_corpus(tmp_path / "corpus", texts(*range(30)))
    with pytest.raises(EmbedderError, match="went away"):
        run_ingest(source, tmp_path / "index", embedder=embedder(HashEmbeddings(fail_after=200)))
    assert list((tmp_path / "index").glob("chroma.*")) == []
    again = HashEmbeddings()
    run_ingest(source, tmp_path / "index", embedder=embedder(again))
    assert len(again.embedded) < 150
    assert stored(tmp_path / "index") == expected(**texts(*range(30)))


def test_an_index_of_somebody_else_is_written_anew(tmp_path, small_steps, monkeypatch):
    monkeypatch.setenv("ARAG_SEAL_KEY", "theirs")
    run_ingest(write_corpus(tmp_path / "corpus", texts(*range(10))), tmp_path / "index", embedder=embedder())
    monkeypatch.setenv("ARAG_SEAL_KEY", "ours")
    shutil.rmtree(tmp_path / "corpus")
    run_ingest(write_corpus(tmp_path / "corpus", texts(*range(10, 20))), tmp_path / "index", embedder=embedder())
    assert stored(tmp_path / "index") == expected(**texts(*range(20)))
    with open_index(tmp_path / "index", embedder=HashEmbeddings()) as index:
        assert index.semantic_search("In 1503 the boat 12 had rower 36.").hits[0].chunk_id == "boat-12:0"
