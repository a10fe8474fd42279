"""What is written into a store is read from it, in a folder and in PostgreSQL; how a folder keeps what it holds."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import warnings
from collections import Counter
from contextlib import closing, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from arag.errors import IndexFormatError, StorageError
from arag.retrieval.storage.folder.sqlite import SCHEMA
from arag.retrieval.storage.folder.store import FolderStore
from arag.retrieval.storage.locations import using_store
from arag.retrieval.storage.records import FORMAT_VERSION
from arag.system.worker_process import WorkerError, WorkerProcess
from selection import EVERYWHERE
from stores import begin, document, read_all, trust, vector_of, write

DOCUMENTS = [
    document("a", "# Ships\nThe ship sails.\nIt is late.", "A second line.\nThe ship again.", title="Ships"),
    document("b", "A line about İzmir.\nThe ship sails."),
    document("c/ü:1", "Nothing of it."),
    document("d", "# Only a heading"),
]


@pytest.fixture(params=EVERYWHERE)
def any_store(request, places, tmp_path):
    """An index in a folder, or in PostgreSQL."""
    with using_store(places(request.param, tmp_path / "index")) as store:
        write(store, *DOCUMENTS)
        yield store


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    store = FolderStore(tmp_path_factory.mktemp("written"))
    write(store, *DOCUMENTS)
    return store.location


@pytest.fixture
def store(written, tmp_path):
    """An index in a folder."""
    shutil.copytree(written, tmp_path / "index")
    trust(tmp_path / "index")
    return FolderStore(tmp_path / "index")


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- reading and writing ---


def test_chunks_documents_and_vectors_are_read_as_they_were_written(any_store):
    chunks = {chunk.id: chunk for document in DOCUMENTS for chunk in document.chunks}
    counts = {"documents": 4, "chunks": 5, "sentences": 7, "tokens": sum(c.tokens for c in chunks.values())}
    with closing(any_store.open()) as view:
        assert list(view.yield_keys()) == list(chunks)
        assert view.mget([*chunks, "e:0"]) == [*chunks.values(), None]
        assert list(view.documents()) == [document.record for document in DOCUMENTS]
        assert view.settings == replace(begin(), token=view.settings.token, **counts)
        for number, positions, vectors in view.vectors(list(view.row_ids(list(chunks)).values())):
            chunk = chunks[view.ids([number])[number]]
            assert positions == [i for i, sentence in enumerate(chunk.sentences) if sentence.embedded]
            assert vectors.tolist() == [vector_of(text).tolist() for text in chunk.embedded_texts()]


@pytest.mark.parametrize("way", ["update", "repair"])
def test_a_number_is_never_used_again(any_store, way):
    with closing(any_store.open()) as view:
        last = max(view.row_ids(list(view.yield_keys())).values())
    write(any_store, remove=["d", "c/ü:1"])
    if way == "repair":
        any_store.repair()
    write(any_store, document("new", "A lighthouse was built."))
    with closing(any_store.open()) as view:
        assert view.row_ids(["new:0"])["new:0"] > last


def test_what_changes_nothing_publishes_nothing_and_settings_and_sources_alone_are_published(any_store):
    stamp = any_store.stamp()
    with any_store.draft(begin) as draft:
        draft.remove(["x"])
        draft.set_sources({"a": "a.txt", "x": "x.txt"})
        assert draft.put([document("x", "One.", ids=["b:0"])])
        assert draft.publish(draft.settings) == draft.settings
    assert any_store.stamp() == stamp
    with any_store.draft(begin) as draft:
        draft.set_sources({"a": "moved/a.txt"})
        published = draft.publish(replace(draft.settings, chunk_tokens=500))
    assert any_store.settings() == published
    assert published.chunk_tokens == 500
    with closing(any_store.open()) as view:
        assert view.document("a").source == "moved/a.txt"


# --- writing into a folder ---


def test_what_gets_its_name_was_synced_before_and_the_name_is_synced_after_it(tmp_path, monkeypatch):
    """So a power failure leaves the old index or the new one, whole."""
    index, done = tmp_path / "new" / "index", []
    fsync, replace = os.fsync, os.replace

    def state(path):
        return os.stat(path).st_ino, os.stat(path).st_mtime_ns  # noqa: PTH116 - of a descriptor, too

    def sync(opened):
        fsync(opened)
        done.append(state(opened))

    def rename(source, target):
        unsynced = [path for path in (source, *source.rglob("*")) if state(path) not in done]
        replace(source, target)
        if Path(target).parent == index:
            done.append((Path(target).name.partition("-")[0], unsynced, state(index)))

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    write(FolderStore(index), *DOCUMENTS)
    assert state(tmp_path) in done
    assert state(index.parent) in done
    write(FolderStore(index), document("e", "A new line."), remove=["b"])
    published = [(*entry, after) for entry, after in pairwise(done) if len(entry) == 3]
    assert [name for name, *_ in published] == ["draft.sqlite3", "keywords", "words", "chroma", "index.sqlite3"] * 2
    assert all(unsynced == [] and renamed == synced for _, unsynced, renamed, synced in published)


def test_removed_text_is_in_no_file_but_what_chroma_pads_its_graph_with(tmp_path):
    def all_files():
        files = [path for path in store.location.rglob("*") if path.is_file() and path.suffix != ".bin"]
        return b"".join(path.read_bytes() for path in files).lower()

    store = FolderStore(tmp_path / "index")
    secret = document("s", "Very secretive.\n" * 900)
    write(store, *(document(f"d{n}", f"Ordinary line {n}.") for n in range(50)), secret)
    assert b"very secretive" in all_files()
    size = (store.location / "index.sqlite3").stat().st_size
    write(store, document("d1", "Another line."), remove=["s"])
    assert b"very secretive" not in all_files()
    write(store, remove=["d2"])  # copies the file without its free pages
    assert (store.location / "index.sqlite3").stat().st_size < size


def test_files_of_others_are_left_alone(tmp_path):
    names = {".DS_Store", "notes.txt", "keywords-of-mine", "chroma-x"}
    store = FolderStore(tmp_path)
    write(store, *DOCUMENTS)
    for name in names:
        (tmp_path / name).write_text("mine")
    write(store, remove=["a"])
    assert {path.name for path in tmp_path.iterdir() if path.is_file() and path.read_bytes() == b"mine"} == names


# --- Chroma's folder ---


def test_chroma_has_a_record_for_each_sentence_with_its_text_and_its_chunk(store):
    import chromadb

    client = chromadb.PersistentClient(next(store.location.glob("chroma-*")))
    records = client.get_collection("sentences", embedding_function=None).get()["metadatas"]
    expected = [(c.id, text) for document in DOCUMENTS for c in document.chunks for text in c.embedded_texts()]
    assert sorted((record["chunk_id"], record["sentence"]) for record in records) == sorted(expected)


@pytest.fixture
def failing_chroma(monkeypatch):
    """A function after which a function of Chroma's process crashes, or hangs for too long, so many times."""
    original = WorkerProcess.call
    left = Counter()

    def call(self, name, *arguments, **options):
        if left[name]:
            left[name] -= 1
            raise WorkerError("it crashed")
        return original(self, name, *arguments, **options)

    monkeypatch.setattr(WorkerProcess, "call", call)
    return lambda name, times=1_000: left.update({name: times})


@pytest.mark.parametrize("function", ["add", "close", "count_lost"])
def test_a_graph_that_cannot_be_changed_is_built_again_and_if_that_fails_an_index_has_none(
    store, function, failing_chroma, monkeypatch
):
    failing_chroma(function, times=1)
    write(store, document("e", "A new line."))
    assert store.find_damage() == []
    failing_chroma(function)
    with pytest.warns(UserWarning, match="has no vector index now"):
        write(store, document("x", "A line."))
    assert [damage.repairable for damage in store.find_damage()] == [True]
    monkeypatch.setattr("arag.retrieval.storage.vectors.MAX_MATRIX_BYTES", 0)
    with closing(store.open()) as view, pytest.warns(UserWarning, match="it is missing"):
        assert view.nearest(vector_of("A line."), 1)[0].similarity > 0.99


def test_a_graph_that_lacks_sentences_is_not_published(store, monkeypatch):
    before, original = read_all(store), WorkerProcess.call
    monkeypatch.setattr(
        WorkerProcess,
        "call",
        lambda self, name, *rest, **options: name == "count_lost" or original(self, name, *rest, **options),
    )
    with pytest.raises(StorageError, match="sentences are lost"):
        write(store, document("e", "A new line."))
    assert read_all(store) == before


def test_a_search_in_which_chroma_fails_compares_every_vector(store, failing_chroma, through_chroma, monkeypatch):
    monkeypatch.setattr("arag.retrieval.storage.vectors.MAX_LIMITED_BYTES", 0)
    failing_chroma("nearest")
    with closing(store.open()) as view, warnings.catch_warnings():
        limited = view.limited_to(["a", "b"])
        with pytest.warns(UserWarning, match="is not used.*verify --index .* --repair"):
            assert limited.nearest(vector_of("It is late."), 1)[0].similarity > 0.99
        warnings.simplefilter("error")
        for searched in (view, limited, view):
            assert searched.nearest(vector_of("It is late."), 1)[0].similarity > 0.99
    assert [damage.repairable for damage in store.find_damage()] == [True]


# --- what is missing or damaged ---


def test_a_read_only_index_is_searched(store, through_chroma, monkeypatch):
    next(store.location.glob("keywords-*")).unlink()
    before = files(store.location)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with closing(store.open()) as view:
        assert view.rank(["ship"], 9).total == 3
        with pytest.warns(UserWarning, match="is read-only"):
            assert view.nearest(vector_of("It is late."), 1)[0].similarity == pytest.approx(1, abs=1e-3)
    assert files(store.location) == before


CHANGES = {
    "a document is gone": "DELETE FROM documents WHERE id = 'a'",
    "a text is gone": "DELETE FROM contents WHERE number = 2",
    "places are others": (
        'UPDATE contents SET places = \'{"sentences": [], "headings": [], "tables": []}\' WHERE number = 2'
    ),
    "a token is a path": 'UPDATE settings SET value = replace(value, \'"token":"\', \'"token":"../\')',
    "another version": "UPDATE settings SET value = replace(value, '\"version\":6', '\"version\":7')",
    "bytes that are no text": "UPDATE contents SET text = CAST(x'ff41fe' AS TEXT) WHERE number = 2",
}


@pytest.mark.parametrize("change", CHANGES)
def test_damage_to_the_documents_is_found_and_not_repaired(store, change):
    with closing(sqlite3.connect(store.location / "index.sqlite3", isolation_level=None)) as connection:
        assert connection.execute(CHANGES[change]).rowcount == 1
    before = files(store.location)
    with suppress(IndexFormatError):  # the settings cannot be read, or it cannot be opened
        damages = store.find_damage()
        assert damages
        assert not any(damage.repairable for damage in damages)
    with pytest.raises(IndexFormatError, match="ingest the documents again"):
        store.repair()
    assert files(store.location) == before


# --- drafts that a killed run left ---


@pytest.mark.parametrize("damage", ["older", "no database", "link", "hostile journal", "pipe"])
def test_a_draft_that_cannot_be_continued_is_dropped(store, damage):
    with store.draft(begin) as unpublished:
        unpublished.put([document("e", "A fifth line."), document("a", "A new line.")])
    draft = store.location / "draft.sqlite3"
    kept = draft.rename(draft.with_name("kept"))
    match damage:
        case "older":
            write(store, document("f", "Published meanwhile."))
            shutil.copy(kept, draft)
        case "link":
            draft.symlink_to(store.location / "index.sqlite3")
        case "pipe":
            os.mkfifo(draft)
        case _:
            draft.write_bytes(b"x" * 5_000)
    if damage == "hostile journal":
        draft.with_name("draft.sqlite3-journal").symlink_to(store.location / "index.sqlite3")
    before = read_all(store)
    with store.draft(begin) as again:
        assert again.document("e") is None
        again.publish(again.settings)
    assert read_all(store) == before
    write(store, document("e", "At last."))
    assert store.find_damage() == []


def test_the_schema_changes_only_with_the_format():
    """Opening an index compares the text of its tables: any other text, even of a comment, refuses all indexes."""
    digest = hashlib.sha256(SCHEMA.encode()).hexdigest()[:16]
    assert (FORMAT_VERSION, digest) == (6, "61f8b7da615f13da")
