"""An index made by somebody else, or changed by chance: nothing of it is run, nothing outside it is touched."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import struct
from contextlib import closing, contextmanager

import pytest
from chromadb.utils.embedding_functions import known_embedding_functions

from arag.ingest.maintenance import compact, remove, verify
from arag.ingest.pipeline import run_ingest
from arag.retrieval.errors import ARAGError, IndexFormatError
from arag.retrieval.index import open_index
from arag.retrieval.manifest import read_manifest, vectors_folder
from fakes import HashEmbeddings, write_corpus

DOCUMENTS = {
    f"d{n}": f"Document {n} tells of ship{n}. It was built in {1500 + n}. Nobody sailed it." for n in range(60)
}
QUERIES = ("ship7 was built", "nobody sailed in 1533", "document 12")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    run_ingest(write_corpus(folder / "corpus", DOCUMENTS), folder / "index", embedder=HashEmbeddings())
    return folder / "index"


@pytest.fixture
def index(sound, tmp_path):
    shutil.copytree(sound, tmp_path / "index")
    return tmp_path / "index"


def chroma(folder):
    return vectors_folder(folder, read_manifest(folder).generation)


def ranking(folder):
    with open_index(folder, embedder=HashEmbeddings()) as opened:
        return {q: [(h.chunk_id, round(h.score, 4)) for h in opened.semantic_search(q, 5).hits] for q in QUERIES}


def ingest_more(folder):
    corpus = write_corpus(folder.parent / "more", {"new": "A new document tells of a marmoset. It is late."})
    return run_ingest(corpus, folder, embedder=HashEmbeddings())


def search(folder):
    return ranking(folder)


WRITERS = {
    "ingest": ingest_more,
    "remove": lambda folder: remove("d3", folder),
    "compact": compact,
    "repair": lambda folder: verify(folder, repair=True, embedder=HashEmbeddings()),
}


@contextmanager
def ended_after(seconds):
    """Fail where something waits for ever."""

    def fail(*_):
        raise AssertionError(f"not done after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def error_naming(name):
    """Let errors of ours pass that name a file; no other may come."""
    try:
        yield
    except ARAGError as error:
        if name not in str(error):
            raise


def change_chroma(folder, *statements):
    with closing(sqlite3.connect(chroma(folder) / "chroma.sqlite3", isolation_level=None)) as connection:
        for statement, *values in statements:
            connection.execute(statement, values)


def name_function(folder, column):
    """Name an embedding function in Chroma's database, as one that loads a model's own code."""
    function = {
        "type": "known",
        "name": "sentence_transformer",
        "config": {"model_name": str(folder), "kwargs": {"trust_remote_code": True}},
    }
    with closing(sqlite3.connect(chroma(folder) / "chroma.sqlite3")) as connection:
        (text,) = connection.execute(f"SELECT {column} FROM collections").fetchone()
    settings = json.loads(text)
    if column == "schema_str":
        settings["keys"]["#embedding"]["float_list"]["vector_index"]["config"]["embedding_function"] = function
    else:
        settings["embedding_function"] = function
    change_chroma(folder, (f"UPDATE collections SET {column} = ?", json.dumps(settings)))


@pytest.fixture
def built(monkeypatch):
    """The embedding functions that Chroma builds."""
    built = []

    class Recorder:
        @staticmethod
        def build_from_config(config):
            built.append(config)
            raise ValueError("not here")

    monkeypatch.setitem(known_embedding_functions, "sentence_transformer", Recorder)
    return built


@pytest.mark.parametrize("column", ["schema_str", "config_json_str"])
@pytest.mark.parametrize("command", WRITERS)
def test_an_embedding_function_that_chroma_names_is_never_built(index, built, column, command):
    name_function(index, column)
    found, _ = verify(index)
    assert any("it names an embedding function" in damage.what for damage in found)
    expected = ranking(index)
    WRITERS[command](index)
    assert built == []
    assert verify(index) == ([], [])
    if command in {"compact", "repair"}:
        assert ranking(index) == expected


@pytest.mark.parametrize("column", ["schema_str", "config_json_str"])
def test_no_reader_opens_a_folder_that_names_an_embedding_function(index, through_chroma, built, column):
    name_function(index, column)
    with pytest.raises(IndexFormatError, match="embedding function"):
        search(index)
    assert built == []


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON embeddings BEGIN DELETE FROM embeddings; END",
        "CREATE VIEW v AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
        "CREATE VIRTUAL TABLE f USING fts5(x)",
        "INSERT INTO collections (id, name, database_id) SELECT 'other', 'other', database_id FROM collections",
        "UPDATE segments SET type = 'urn:chroma:segment/other'",
        "UPDATE collections SET schema_str = '[[['",
    ],
)
def test_a_database_of_chromas_with_more_in_it_is_made_again(index, through_chroma, statement):
    expected = ranking(index)
    change_chroma(index, (statement,))
    with ended_after(20):
        with pytest.raises(IndexFormatError, match="not written by arag"):
            search(index)
        assert verify(index)[0]
        ingest_more(index)
        remove("new", index)
    assert verify(index) == ([], [])
    assert ranking(index) == expected


def hostile_journal(file, victim):
    """Write a journal that makes SQLite delete a file when it opens the database."""
    name = os.fsencode(victim)
    total = sum(struct.unpack(f"{len(name)}b", name)) & 0xFFFFFFFF
    with closing(sqlite3.connect(file)) as connection:
        (page,) = connection.execute("PRAGMA page_size").fetchone()
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
    magic = bytes.fromhex("d9d505f920a163d7")
    header = struct.pack(">8sIIIII", magic, 0, 1, pages, 512, page).ljust(512, b"\0")
    lock_page = struct.pack(">I", (1 << 30) // page + 1)
    end = lock_page + name + struct.pack(">II", len(name), total) + magic
    file.with_name(f"{file.name}-journal").write_bytes(header + end)


def test_the_journal_of_these_tests_does_delete(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    with closing(sqlite3.connect(tmp_path / "plain.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (a)")
    hostile_journal(tmp_path / "plain.db", victim)
    with closing(sqlite3.connect(tmp_path / "plain.db")) as connection:
        connection.execute("SELECT * FROM t").fetchall()
    assert not victim.exists()


@pytest.mark.parametrize("database", ["chunks.sqlite3", "chroma.sqlite3"])
@pytest.mark.parametrize("command", [*WRITERS, "verify", "search"])
def test_no_journal_makes_sqlite_delete_another_file(index, through_chroma, database, command):
    victim = index.parent / "victim"
    victim.write_text("precious\n")
    file = index / database if database == "chunks.sqlite3" else chroma(index) / database
    hostile_journal(file, victim)
    with ended_after(20), error_naming(database):
        {**WRITERS, "verify": verify, "search": search}[command](index)
    assert victim.read_text() == "precious\n"


NAMES = ["manifest.json", "chunks.sqlite3", "keywords", "words", "chroma.sqlite3", "data_level0.bin"]


@pytest.mark.parametrize("kind", ["pipe", "endless", "folder"])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_file_is_an_error_and_no_hang(index, through_chroma, name, kind):
    file = next(index.rglob(f"{name}*"))
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "endless":
        file.symlink_to("/dev/zero")
    else:
        file.mkdir()
    with ended_after(20):
        with error_naming(name), open_index(index, embedder=HashEmbeddings()) as opened:
            opened.keyword_search("ship7")
            opened.keyword_search("shp7")
            opened.semantic_search("ship7")
        for command in (verify, *WRITERS.values()):
            with error_naming(name):
                command(index)


def test_a_folder_that_leads_elsewhere_is_not_used(index, through_chroma):
    elsewhere = index.parent / "elsewhere"
    folder = chroma(index)
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    before = {file: file.read_bytes() for file in elsewhere.rglob("*") if file.is_file()}
    with pytest.raises(IndexFormatError):
        search(index)
    ingest_more(index)
    assert verify(index) == ([], [])
    assert {file: file.read_bytes() for file in elsewhere.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize(
    "values",
    [
        {"sentences": -1},
        {"sentences": 10**30},
        {"sentences": 3.5},
        {"sentences": "3"},
        {"chunks": True},
        {"dimension": 0},
        {"dimension": 10**9},
        {"generation": -2},
        {"generation": 10**400},
        {"chunk_tokens": 0},
        {"files": {"../outside": [1, 1]}},
        {"files": {"/etc/passwd": [1, 1]}},
        {"files": {"chroma.0/../../outside": [1, 1]}},
        {"files": {"keywords.0": [-1, 0]}},
        {"files": {"keywords.0": [1]}},
        {"files": []},
        {"embedder": 3},
        {"embedder": "\ud800"},
        {"packed": "yes"},
    ],
)
def test_a_manifest_says_only_what_can_be(index, values):
    file = index / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))
    with ended_after(20):
        with pytest.raises(IndexFormatError, match=r"manifest\.json"):
            open_index(index)
        found, left = verify(index, repair=True, embedder=HashEmbeddings())
    assert found
    assert left == []
    assert ranking(index)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{" + " " * 2_000_000 + "}", "[]", "null", '{"format_version": 1e999}']
)
def test_a_manifest_of_another_shape_is_an_error(index, text):
    (index / "manifest.json").write_text(text)
    with pytest.raises(IndexFormatError, match=r"manifest\.json"):
        open_index(index)


def flip(file, rng):
    data = bytearray(file.read_bytes())
    at = rng.randrange(len(data))
    data[at] ^= 1 << rng.randrange(8)
    file.write_bytes(data)


def flip_and_use(sound, folder, seed):
    """Flip a bit in Chroma's files, and search, verify and write: all is as it was, or an error says what is wrong."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sound, folder)
    expected = ranking(folder)
    rng = random.Random(seed)
    files = sorted(file for file in chroma(folder).rglob("*") if file.is_file())
    flip(rng.choice(files), rng)
    with ended_after(60):
        try:
            searched = search(folder)
        except IndexFormatError:
            searched = expected
        found, _ = verify(folder)
        ingest_more(folder)
        remove("new", folder)
        after = ranking(folder)
    assert searched == expected, seed
    assert after == expected, seed
    return bool(found)


@pytest.mark.parametrize("seed", range(12))
def test_a_flipped_bit_in_chromas_files_is_noticed(sound, tmp_path, through_chroma, seed):
    flip_and_use(sound, tmp_path / "index", seed)


@pytest.mark.slow
def test_many_flipped_bits_in_chromas_files_are_noticed(sound, tmp_path, through_chroma):
    for seed in range(1_000, 1_300):
        flip_and_use(sound, tmp_path / "index", seed)
