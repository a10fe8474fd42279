"""What is written into a store is read from it, in a folder and in PostgreSQL; how a folder keeps what it holds."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import chromadb
import numpy as np
import pytest

from arag.errors import IndexFormatError, IndexLockedError, IndexNotFoundError, StorageError
from arag.retrieval.locations import using_store
from arag.retrieval.store import chroma
from arag.retrieval.store.chroma import ChromaGraph
from arag.retrieval.store.folder import FolderStore, is_index
from selection import EVERYWHERE
from stores import DIMENSION, begin, document, held, vector_of, write

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


@pytest.fixture
def store(tmp_path):
    """An index in a folder."""
    store = FolderStore(tmp_path / "index")
    write(store, *DOCUMENTS)
    return store


@pytest.fixture
def view(any_store):
    with closing(any_store.open()) as view:
        yield view


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- reading what was written ---


def test_chunks_documents_and_vectors_are_read_as_they_were_written(view):
    chunks = {chunk.id: chunk for document in DOCUMENTS for chunk in document.chunks}
    assert list(view.yield_keys()) == list(chunks)
    assert view.mget([*chunks, "e:0"]) == [*chunks.values(), None]
    assert list(view.documents()) == [document.record for document in DOCUMENTS]
    assert list(view.documents(after="b")) == [DOCUMENTS[2].record, DOCUMENTS[3].record]
    counts = {"documents": 4, "chunks": 5, "sentences": 7, "tokens": sum(c.tokens for c in chunks.values())}
    assert view.settings == replace(begin(), token=view.settings.token, **counts)
    for number, positions, vectors in view.vectors(list(view.numbers(list(chunks)).values())):
        chunk = chunks[view.ids([number])[number]]
        assert positions == [i for i, sentence in enumerate(chunk.sentences) if sentence.embedded]
        assert vectors.tolist() == [vector_of(text).tolist() for text in chunk.embedded_texts()]


def test_odd_ids_are_not_there(view):
    for key in ("", "\ud800", "a:0\udfff", "'; DROP TABLE chunks; --", "a:0\x00", "x" * 100_000):
        assert view.mget([key, "a:0"]) == [None, DOCUMENTS[0].chunks[0]]
        assert view.document(key) is None
        assert view.numbers([key]) == view.fingerprints([key]) == {}
        assert list(view.limited_to([key]).yield_keys()) == []
        assert view.nearby_ids(key, 2)
        assert view.named([key], 2) == (["a", "b"] if key == "" else [])


def test_ids_of_more_than_a_statement_takes_are_looked_up_at_once(view):
    found = view.mget([f"x{n}" for n in range(100_000)] + ["b:0"])
    assert [chunk.id for chunk in found if chunk] == ["b:0"]


def test_neighbours_are_those_of_the_document(view):
    first = DOCUMENTS[0].chunks[0]
    assert [chunk.id for chunk in view.neighbours(first, 1)] == ["a:0", "a:1"]
    assert [chunk.id for chunk in view.neighbours(DOCUMENTS[0].chunks[1], 0)] == ["a:1"]
    assert [chunk.id for chunk in view.chunks_of(["b", "a", "x"])] == ["a:0", "a:1", "b:0"]


def test_words_are_found_by_their_plain_forms_and_lengths(view):
    assert view.words_spelled(["izmir", "nothing", "absent"]) == {"izmir": ["izmir"], "nothing": ["nothing"]}
    assert view.words_of_length(5, 5) == ["about", "again", "izmir", "sails", "ships"]
    assert view.holds_word("ship")
    assert not view.holds_word("shi")
    assert not view.limited_to(["c/ü:1"]).holds_word("ship")


def test_many_threads_share_a_view(view):
    def look(n):
        found = view.mget(["a:0", "b:0"]), view.rank(["ship"], 3), view.nearest(vector_of("The ship sails."), 3)
        return found, list(view.limited_to(["a"]).yield_keys())

    with ThreadPoolExecutor(8) as pool:
        assert len({str(found) for found in pool.map(look, range(64))}) == 1


# --- writing ---


def test_a_new_version_takes_the_place_of_the_old_one(any_store):
    write(any_store, document("b", "Another line.", "And one more.", fingerprint="2"), remove=["a"])
    counts, documents, chunks, _ = held(any_store)
    assert counts[:3] == (3, 4, 3)
    assert [record.id for record in documents] == ["b", "c/ü:1", "d"]
    assert sorted(chunks) == ["b:0", "b:1", "c/ü:1:0", "d:0"]
    assert any_store.find_damage() == []


@pytest.mark.parametrize("way", ["update", "repair"])
def test_a_number_is_never_used_again(any_store, way):
    with closing(any_store.open()) as view:
        last = max(view.numbers(list(view.yield_keys())).values())
    write(any_store, remove=["d", "c/ü:1"])
    if way == "repair":
        any_store.repair()
    write(any_store, document("new", "A lighthouse was built."))
    with closing(any_store.open()) as view:
        assert view.numbers(["new:0"])["new:0"] > last


def test_a_document_with_a_taken_chunk_id_is_refused_and_the_others_are_stored(any_store):
    with any_store.draft(begin) as draft:
        y, z = (document(name, "Two.", ids=["n:1"]) for name in "yz")
        assert draft.put([document("x", "One.", ids=["b:0"]), y, z]) == {"x": "b:0", "z": "n:1"}
        assert draft.put([document("a", "One.", ids=["b:0"]), y]) == {"a": "b:0"}
        draft.publish(draft.settings)
    assert sorted(held(any_store)[2]) == ["a:0", "a:1", "b:0", "c/ü:1:0", "d:0", "n:1"]


def test_vectors_are_found_by_the_texts_of_their_sentences(any_store):
    with any_store.draft(begin) as draft:
        known = draft.vectors_by_text(["a", "x"])
        assert sorted(known) == ["A second line.", "It is late.", "The ship again.", "The ship sails."]
        assert all(np.array_equal(vector, vector_of(text)) for text, vector in known.items())


def test_what_changes_nothing_publishes_nothing(any_store):
    stamp = any_store.stamp()
    before = files(any_store.location) if isinstance(any_store, FolderStore) else None
    with any_store.draft(begin) as draft:
        draft.put([])
        draft.remove(["x"])
        draft.set_sources({"a": "a.txt", "x": "x.txt"})
        assert draft.put([document("x", "One.", ids=["b:0"])])
        assert draft.publish(draft.settings) == draft.settings
        if before is not None:  # and copies nothing
            assert files(any_store.location).keys() == before.keys()
    assert any_store.stamp() == stamp


def test_settings_and_sources_alone_are_published(any_store):
    with any_store.draft(begin) as draft:
        draft.set_sources({"a": "moved/a.txt"})
        draft.publish(draft.settings)
    with any_store.draft(begin) as draft:
        published = draft.publish(replace(draft.settings, chunk_tokens=500))
    assert any_store.settings() == published
    assert published.chunk_tokens == 500
    with closing(any_store.open()) as view:
        assert view.document("a").source == "moved/a.txt"


def test_an_index_without_documents_is_one(any_store):
    write(any_store, remove=[document.record.id for document in DOCUMENTS])
    with closing(any_store.open()) as view:
        assert view.settings.token
        assert view.rank(["a"], 3).total == 0
        assert view.nearest(vector_of("a"), 3) == []
    assert any_store.find_damage() == []
    assert any_store.stamp()


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
    assert [name for name, *_ in published] == ["draft.sqlite3", "keywords", "chroma", "index.sqlite3"] * 2
    assert all(unsynced == [] and renamed == synced for _, unsynced, renamed, synced in published)


def test_a_transaction_that_fails_changes_nothing(store):
    before = held(store)
    bad = document("b", "Other.")
    with pytest.raises(ValueError, match="shape"), store.draft(begin) as draft:
        draft.put([document("e", "Fine."), replace(bad, vectors=[np.ones((3, DIMENSION), dtype=np.float32)])])
    with store.draft(begin) as draft:  # continues
        assert draft.document("e") is None
        draft.publish(draft.settings)
    assert held(store) == before


def test_removed_text_is_in_no_file_of_ours(tmp_path):
    """Chroma pads its graph's files with what was in the memory of the process that wrote them."""

    def all_files():
        return b"".join(path.read_bytes() for path in store.location.iterdir() if path.is_file()).lower()

    store = FolderStore(tmp_path / "index")
    secret = document("s", "Very secretive.\n" * 900)
    write(store, *(document(f"d{n}", f"Ordinary line {n}.") for n in range(50)), secret)
    assert b"very secretive" in all_files()
    size = (store.location / "index.sqlite3").stat().st_size
    write(store, document("d1", "Another line."), remove=["s"])
    assert b"very secretive" not in all_files()
    write(store, remove=["d2"])  # copies the file without its free pages
    assert (store.location / "index.sqlite3").stat().st_size < size
    assert b"secretive" in all_files()  # as a word
    store.repair()
    assert b"secretive" not in all_files()


# --- Chroma's folder ---


def in_chroma(store):
    """The chunk's id and the text of each sentence in Chroma's folder."""
    (folder,) = store.location.glob("chroma-*")
    with closing(ChromaGraph(folder)) as opened:
        return sorted((chunk_id, text) for _, chunk_id, text in opened.read())


@pytest.fixture
def begun(monkeypatch):
    """Which folders Chroma's were made from."""
    begun = []
    made = chroma.ChromaWriter.__init__

    def record(self, working, previous):
        begun.append(previous and previous.name)
        made(self, working, previous)

    monkeypatch.setattr(chroma.ChromaWriter, "__init__", record)
    return begun


def test_chromas_folder_is_made_from_the_last_one_or_from_scratch(tmp_path, begun, monkeypatch):
    monkeypatch.setattr(chroma, "_SENTENCES_PER_CALL", 7)
    store = FolderStore(tmp_path)
    write(store, *(document(f"d{n}", f"Line {n}.\nLine {n} again.") for n in range(20)))
    tokens = [store.settings().token]
    for change in (range(4), range(4), range(16), range(1)):  # 8, 16 and 48 of 40 sentences are replaced in all
        tokens.append(write(store, *(document(f"d{n}", f"{len(tokens)} new {n}.\nAnd {n}.") for n in change)).token)
        assert store.find_damage() == []
        assert len(in_chroma(store)) == 40
    previous = [token and f"chroma-{token}" for token in tokens[:-1]]
    # Of what has been removed since it was built, 16 of 40 are too many; the third starts again after a copy.
    assert begun[:3] == [None, previous[0], previous[1]]
    assert begun[3:] == [None, previous[2], None, previous[3]]


def test_what_a_run_adds_and_changes_again_is_published_once(store, begun):
    with store.draft(begin) as draft:
        for n in range(5):
            draft.put([document("e", f"Version {n} of it.")])
        draft.publish(draft.settings)
    assert ("e:0", "Version 4 of it.") in in_chroma(store)
    assert store.find_damage() == []


@pytest.mark.parametrize("failing", ["add", "publish"])
def test_a_failure_of_chroma_while_others_are_embedded_costs_time_and_nothing_else(store, failing, monkeypatch, begun):
    original = getattr(chroma.ChromaWriter, failing)
    calls = []

    def fail(self, *arguments, **options):
        calls.append(failing)
        if len(calls) == 1:
            raise StorageError("no room")
        return original(self, *arguments, **options)

    monkeypatch.setattr(chroma.ChromaWriter, failing, fail)
    write(store, document("e", "A new line."))
    assert begun[-1] is None
    assert store.find_damage() == []


FAILING = """
import ctypes, os, signal
from arag.retrieval.store import chroma_process

def hang(*_):
    ctypes.PyDLL(None).sleep(600)  # with the interpreter's lock

def crash(*_):
    os.kill(os.getpid(), signal.SIGSEGV)

hang.__name__ = crash.__name__ = FUNCTION
SERVED = (*chroma_process.SERVED, FAILURE)  # the last of a name counts
"""


@pytest.fixture
def failing_chroma(tmp_path, monkeypatch):
    """A function after which a function of Chroma's process hangs or crashes."""

    def fail(function, how):
        name = f"{how}_in_{function}"
        (tmp_path / f"{name}.py").write_text(FAILING.replace("FUNCTION", repr(function)).replace("FAILURE", how))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setattr(chroma, "_PROCESS", name)
        for limit in ("SEARCH_SECONDS", "WRITE_SECONDS", "CLOSE_SECONDS"):
            monkeypatch.setattr(chroma, limit, 2.0)

    return fail


@pytest.mark.parametrize(("function", "how"), [("close", "hang"), ("add", "crash"), ("count_lost", "crash")])
def test_an_index_is_published_without_its_graph_where_chroma_hangs_or_crashes(
    store, function, how, failing_chroma, monkeypatch
):
    with monkeypatch.context() as patch:
        failing_chroma(function, how)
        for write_again in (lambda: write(store, document("x", "A line.")), store.repair):
            with pytest.warns(UserWarning, match="has no graph now.*Chroma failed.*verify --repair"):
                write_again()
        patch.setattr("arag.retrieval.vectors.MAX_MATRIX_BYTES", 0)
        with closing(store.open()) as view, pytest.warns(UserWarning, match="it is missing"):
            assert view.nearest(vector_of("A line."), 1)[0].similarity > 0.99
        assert [damage.what for damage in store.find_damage()] == ["it is missing"]
        assert not list(store.location.glob("chroma-*"))
    monkeypatch.undo()
    store.repair()
    assert store.find_damage() == []


USER = """
import sys, warnings
from arag import ingest
from arag.ingest.maintenance import verify
from arag.retrieval.store import chroma
from fakes import HashEmbeddings

chroma._PROCESS, chroma.CLOSE_SECONDS = sys.argv[1], 1.0
warnings.simplefilter("always")
index = ingest({"id": "a", "text": "The ship sails."}, sys.argv[2], embedder=HashEmbeddings())
print(index.semantic_search("The ship sails.").hits[0].chunk_id)
print([damage.what for damage in verify(sys.argv[2], repair=True)[1]])
index.close()
print("closed")
"""


def test_a_program_ends_by_itself_where_chroma_never_closes(tmp_path, failing_chroma):
    failing_chroma("close", "hang")
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parent)])
    program = subprocess.run(
        [sys.executable, "-c", USER, "hang_in_close", tmp_path / "new"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (program.returncode, program.stdout) == (0, "a:0\n['it is missing']\nclosed\n"), program.stderr
    assert program.stderr.count("has no graph now") == 2  # said by the ingestion, and by the repair
    assert is_index(tmp_path / "new")


@pytest.mark.parametrize("how", ["hang", "crash"])
def test_a_search_in_which_chroma_hangs_or_crashes_compares_every_vector(
    store, how, failing_chroma, through_chroma, monkeypatch
):
    monkeypatch.setattr("arag.retrieval.store.view._MAX_LIMITED_BYTES", 0)
    failing_chroma("nearest", how)
    with closing(store.open()) as view, warnings.catch_warnings():
        limited = view.limited_to(["a", "b"])
        with pytest.warns(UserWarning, match="is not used.*verify --index .* --repair"):
            assert limited.nearest(vector_of("It is late."), 1)[0].similarity > 0.99
        warnings.simplefilter("error")
        for searched in (view, limited, view):
            assert searched.nearest(vector_of("It is late."), 1)[0].similarity > 0.99


def test_a_graph_that_crashes_chroma_is_found_damaged(store, failing_chroma):
    failing_chroma("read", "crash")
    (damage,) = store.find_damage()
    assert damage.part.startswith("chroma-")
    assert damage.repairable


def test_a_graph_that_crashes_chroma_when_it_is_changed_is_built_again(store, begun, monkeypatch, failing_chroma):
    made = chroma.ChromaWriter.__init__

    def made_from_last(self, working, previous):
        with monkeypatch.context() as patch:
            if previous is None:
                patch.setattr(chroma, "_PROCESS", "arag.retrieval.store.chroma_process")
            made(self, working, previous)

    failing_chroma("add", "crash")
    monkeypatch.setattr(chroma.ChromaWriter, "__init__", made_from_last)
    write(store, document("x", "A line."))
    assert begun[-1] is None
    assert ("x:0", "A line.") in in_chroma(store)


def test_chromas_own_package_reads_the_sentences(store):
    (folder,) = store.location.glob("chroma-*")
    collection = chromadb.PersistentClient(str(folder)).get_collection("sentences", embedding_function=None)
    expected = [(c.id, text) for document in DOCUMENTS for c in document.chunks for text in c.embedded_texts()]
    assert sorted((m["chunk_id"], m["sentence"]) for m in collection.get()["metadatas"]) == sorted(expected)
    nearest = collection.query(query_embeddings=vector_of("It is late.")[np.newaxis], n_results=1)
    assert nearest["metadatas"] == [[{"chunk_id": "a:0", "sentence": "It is late."}]]


# --- what is missing or damaged ---


def test_a_read_only_index_is_searched(store, monkeypatch):
    (file,) = store.location.glob("keywords-*")
    file.unlink()
    before = files(store.location)
    monkeypatch.setattr("arag.retrieval.vectors.MAX_MATRIX_BYTES", 0)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with closing(store.open()) as view:
        assert view.rank(["ship"], 9).total == 3
        with pytest.warns(UserWarning, match="is read-only"):
            assert view.nearest(vector_of("It is late."), 1)[0].similarity == pytest.approx(1, abs=1e-3)
    assert files(store.location) == before


CHANGES = {
    "a document is gone": "DELETE FROM documents WHERE id = 'a'",
    "a chunk is gone": "DELETE FROM chunks WHERE id = 'a:1'",
    "a text is gone": "DELETE FROM contents WHERE number = 2",
    "places are others": (
        'UPDATE contents SET places = \'{"sentences": [], "headings": [], "tables": []}\' WHERE number = 2'
    ),
    "a count is wrong": "UPDATE settings SET value = replace(value, '\"chunks\":5', '\"chunks\":6')",
    "settings are gone": "DELETE FROM settings",
    "a token is a path": 'UPDATE settings SET value = replace(value, \'"token":"\', \'"token":"../\')',
    "another version": "UPDATE settings SET value = replace(value, '\"version\":6', '\"version\":7')",
    "bytes that are no text": "UPDATE contents SET text = CAST(x'ff41fe' AS TEXT) WHERE number = 2",
}


@pytest.mark.parametrize("change", CHANGES)
def test_damage_to_the_documents_is_found_and_not_repaired(store, change):
    file = store.location / "index.sqlite3"
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        assert connection.execute(CHANGES[change]).rowcount == 1
    before = files(store.location)
    with suppress(IndexFormatError):  # the settings cannot be read, or it cannot be opened
        found = store.find_damage()
        assert found
        assert not any(damage.repairable for damage in found)
    with pytest.raises(IndexFormatError, match="ingest the documents again"):
        store.repair()
    assert files(store.location) == before


# --- places ---


@pytest.mark.parametrize("way", ["open", "settings", "find_damage", "repair"])
def test_where_there_is_no_index_the_error_says_so(tmp_path, way):
    for folder in (tmp_path, tmp_path / "not there", tmp_path / "x" / "y"):
        with pytest.raises(IndexNotFoundError, match=r"no index in .*arag ingest"):
            getattr(FolderStore(folder), way)()
    assert FolderStore(tmp_path).stamp() is None
    assert not FolderStore(tmp_path / ("x" * 5_000)).exists()
    assert not is_index(tmp_path)


def test_files_of_others_are_left_alone(tmp_path):
    names = {".DS_Store", "notes.txt", "keywords-of-mine", "chroma-x"}
    for name in names:
        (tmp_path / name).write_text("mine")
    store = FolderStore(tmp_path)
    write(store, *DOCUMENTS)
    write(store, remove=["a"])
    assert {path.name for path in tmp_path.iterdir() if path.is_file() and path.read_bytes() == b"mine"} == names


def test_an_embedder_that_cannot_be_loaded_leaves_no_folder(tmp_path):
    def fail():
        raise OSError("no weights")

    with pytest.raises(OSError, match="no weights"), FolderStore(tmp_path / "index").draft(fail):
        pass
    assert list(tmp_path.iterdir()) == []


# --- one writer, many readers ---


def test_a_second_writer_is_told_that_another_one_writes(store):
    with store.draft(begin), pytest.raises(IndexLockedError), FolderStore(store.location).draft(begin):
        pass
    write(store, document("e", "Again."))


def test_a_view_keeps_what_it_has_opened_and_says_when_the_rest_is_gone(store):
    with closing(store.open()) as old, closing(store.open()) as untouched:
        limited = old.limited_to(["a"])

        def search():
            near = old.nearest(vector_of("It is late."), 3)
            return old.rank(["ship"], 9), near, old.mget(["a:1"]), limited.rank(["ship"], 9)

        before = search()
        write(store, document("a", "Something else."))
        assert search() == before
        for use in (lambda: untouched.rank(["ship"], 9), lambda: untouched.limited_to(["a"])):
            with pytest.raises(StorageError, match="replaced by a newer one"):
                use()
        (match,) = untouched.nearest(vector_of("It is late."), 1)  # its file is still open
        assert match.similarity == pytest.approx(1, abs=1e-3)


def test_a_keyword_search_does_not_wait_for_vectors(store, monkeypatch):
    release = threading.Event()
    with closing(store.open()) as view, ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(view, "_open_sentences", release.wait)
        pool.submit(view.sentences)
        assert view.rank(["ship"], 9).total == 3
        assert view.mget(["a:0"]) != [None]
        release.set()


# --- drafts that a killed run left ---


def left_by_a_killed_run(store):
    """Write without publishing, as a run does that is killed."""
    with store.draft(begin) as draft:
        draft.put([document("e", "A fifth line."), document("a", "A new line.")])


def test_a_draft_of_an_older_publication_is_dropped(store, tmp_path):
    left_by_a_killed_run(store)
    kept = tmp_path / "kept"
    shutil.move(store.location / "draft.sqlite3", kept)
    write(store, document("f", "Published meanwhile."))
    shutil.move(kept, store.location / "draft.sqlite3")
    with store.draft(begin) as draft:
        assert draft.fingerprints(["e", "f"]).keys() == {"f"}
    assert not (store.location / "draft.sqlite3").exists()


def test_a_first_run_that_was_killed_keeps_its_settings(tmp_path):
    store = FolderStore(tmp_path / "index")
    left_by_a_killed_run(store)
    with pytest.raises(IndexNotFoundError):
        store.open()
    assert store.exists()
    with store.draft(lambda: replace(begin(), embedder="another")) as draft:
        assert draft.settings.embedder == begin().embedder
        draft.publish(draft.settings)
    assert sorted(held(store)[2]) == ["a:0", "e:0"]


@pytest.mark.parametrize("damage", ["no database", "link", "hostile journal", "pipe"])
def test_a_draft_that_cannot_be_continued_is_dropped(store, damage):
    left_by_a_killed_run(store)
    draft, before = store.location / "draft.sqlite3", held(store)
    draft.unlink()
    match damage:
        case "link":
            draft.symlink_to(store.location / "index.sqlite3")
        case "pipe":
            os.mkfifo(draft)
        case _:
            draft.write_bytes(b"x" * 5_000)
    if damage == "hostile journal":
        draft.with_name("draft.sqlite3-journal").symlink_to(store.location / "index.sqlite3")
    with store.draft(begin) as again:
        assert again.document("e") is None
        again.publish(again.settings)
    assert held(store) == before
    write(store, document("e", "At last."))
    assert store.find_damage() == []
