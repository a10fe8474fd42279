"""An index made by somebody else, or changed by chance: nothing of it is run, nothing outside it is touched."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import shutil
import signal
import sqlite3
import struct
import warnings
from contextlib import closing, contextmanager

import pytest
from chromadb.utils.embedding_functions import known_embedding_functions

from arag.errors import ARAGError, IndexFormatError
from arag.files import digest
from arag.ingest.maintenance import compact, remove, verify
from arag.ingest.pipeline import run_ingest
from arag.retrieval.index import open_index
from arag.retrieval.local.manifest import Manifest
from fakes import HashEmbeddings, hash_vector, write_corpus, write_index
from openai_server import embeddings, serve
from selection import slow_except
from test_maintenance import chroma

DOCUMENTS = {
    f"d{n}": f"Document {n} tells of ship{n}. It was built in {1500 + n}. Nobody sailed it." for n in range(60)
}
QUERIES = ("ship7 was built", "nobody sailed in 1533", "document 12")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return write_index(tmp_path_factory.mktemp("sound"), DOCUMENTS)


@pytest.fixture
def index(sound, tmp_path):
    shutil.copytree(sound, tmp_path / "index")
    return tmp_path / "index"


def ranking(folder):
    """What is found by meaning; of those that tie with the last, rounding decides which."""
    with open_index(folder, embedder=HashEmbeddings()) as opened:
        return {query: best(opened.semantic_search(query, 5).hits) for query in QUERIES}


def best(hits):
    return [(h.chunk_id if h.score > hits[-1].score + 1e-3 else "", round(h.score, 4)) for h in hits]


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


@pytest.mark.parametrize("column", slow_except("schema_str", among=["schema_str", "config_json_str"]))
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
    with ended_after(60):
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
    with ended_after(60), error_naming(database):
        {**WRITERS, "verify": verify, "search": search}[command](index)
    assert victim.read_text() == "precious\n"


NAMES = ["manifest.json", "chunks.sqlite3", "keywords", "words", "chroma.sqlite3", "data_level0.bin"]


@pytest.mark.parametrize("kind", slow_except("pipe", among=["pipe", "endless", "folder"]))
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
    with ended_after(60):
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
    with ended_after(60):
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


def spoil_graph(folder, how):
    """Write numbers into Chroma's graph that native code follows out of its memory."""
    level = next(folder.rglob("data_level0.bin"))
    header = level.with_name("header.bin")
    if how == "links":
        _, offset, _, used, size = struct.unpack_from("<iQQQQ", header.read_bytes())
        data = bytearray(level.read_bytes())
        for element in range(used):
            struct.pack_into("<65I", data, element * size + offset, 64, *range(0x7FFFFF00, 0x7FFFFF40))
        level.write_bytes(data)
    else:
        data = bytearray(header.read_bytes())
        struct.pack_into(*{"entry": ("<I", data, 56, 0x7FFFFF00), "offset": ("<Q", data, 4, 1 << 40)}[how])
        header.write_bytes(data)


def fit_checksums(folder):
    """Make an index's checksums those of its files, as whoever has made the files can."""
    file = folder / "manifest.json"
    values = json.loads(file.read_text())
    values["files"] = {name: [(folder / name).stat().st_size, digest(folder / name)] for name in values["files"]}
    text = json.dumps(values)
    file.write_text(text)
    with closing(sqlite3.connect(folder / "chunks.sqlite3", isolation_level=None)) as connection:
        connection.execute("UPDATE state SET value = ? WHERE name = 'manifest.json'", (text,))


def new_user(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another user"))


@pytest.mark.parametrize("how", slow_except("links", among=["links", "entry", "offset"]))
@pytest.mark.parametrize("command", [*WRITERS, "verify", "search"])
@pytest.mark.filterwarnings("ignore:the index in")
def test_a_graph_that_somebody_else_has_made_is_never_opened(index, through_chroma, how, command):
    expected = ranking(index)
    spoil_graph(index, how)
    fit_checksums(index)
    assert any("written by another user" in damage.what for damage in verify(index)[0])
    {**WRITERS, "verify": verify, "search": search}[command](index)
    if command in {"search", "verify", "compact", "repair"}:
        assert ranking(index) == expected
    if command in {"compact", "repair"}:
        assert verify(index) == ([], [])


@pytest.mark.parametrize("how", slow_except("links", among=["links", "entry", "offset"]))
@pytest.mark.parametrize("command", [*WRITERS, "search"])
def test_a_graph_with_another_checksum_is_never_opened(index, through_chroma, how, command):
    expected = ranking(index)
    spoil_graph(index, how)
    if command == "search":
        with pytest.raises(IndexFormatError, match="its checksum is wrong"):
            search(index)
        verify(index, repair=True)
        assert ranking(index) == expected
    else:
        WRITERS[command](index)
    assert verify(index) == ([], [])


def test_words_that_somebody_else_has_hidden_are_found_after_a_repair(index):
    file = next(index.glob("keywords.*"))
    file.write_bytes(file.read_bytes().replace(b"ship7", b"shipx"))
    fit_checksums(index)
    assert verify(index)[0]
    assert verify(index, repair=True)[1] == []
    with open_index(index) as opened:
        assert opened.keyword_search("ship7").total == 1


def test_an_index_of_another_user_is_searched_without_its_graph(index, through_chroma, tmp_path, monkeypatch):
    expected = ranking(index)
    new_user(monkeypatch, tmp_path)
    with pytest.warns(UserWarning, match="verify --index .* --repair") as told:
        assert ranking(index) == expected
    assert len(told) == 1
    verify(index, repair=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ranking(index) == expected
    key = tmp_path / "another user" / "arag" / "seal.key"
    assert key.stat().st_mode & 0o777 == 0o600


def test_users_with_the_same_key_share_graphs(sound, tmp_path, through_chroma, monkeypatch):
    monkeypatch.setenv("ARAG_SEAL_KEY", "a secret of both")
    run_ingest(sound.parent / "corpus", tmp_path / "index", embedder=HashEmbeddings())
    new_user(monkeypatch, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ranking(tmp_path / "index")
    assert verify(tmp_path / "index") == ([], [])


def test_where_no_key_can_be_kept_an_index_is_its_makers_while_the_process_lasts(
    sound, tmp_path, through_chroma, monkeypatch
):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    run_ingest(sound.parent / "corpus", tmp_path / "index", embedder=HashEmbeddings())
    assert verify(tmp_path / "index") == ([], [])


def flip(file, rng):
    data = bytearray(file.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    file.write_bytes(data)


def answers(folder):
    """What a user sees of an index: texts, entries, rankings."""
    with open_index(folder, embedder=HashEmbeddings()) as opened:
        return (
            {i: opened.get(i) for i in opened.chunk_ids()},
            {i: opened.document(i) for i in DOCUMENTS},
            {word: opened.keyword_search(word, 70) for word in ("ship7", "nobody sailed", "1533")},
            {query: best(opened.semantic_search(query, 5).hits) for query in QUERIES},
        )


def flip_and_use(sound, folder, seed, files="*"):
    """Flip a bit in an index, and search, verify and write.

    An answer may differ only where `verify` finds the damage; after a repair and an ingestion none does.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sound, folder)
    expected = answers(folder)
    rng = random.Random(seed)
    flip(rng.choice(sorted(file for file in folder.rglob(files) if file.is_file() and file.stat().st_size)), rng)
    with ended_after(120):
        try:
            searched = answers(folder)
        except ARAGError:
            searched = None
        found, left = verify(folder, repair=bool(seed % 2), embedder=HashEmbeddings())
        try:
            run_ingest(sound.parent / "corpus", folder, embedder=HashEmbeddings())
            after = answers(folder)
        except IndexFormatError:
            after = None
    assert searched == expected or found, seed
    if after is not None:
        assert after == expected or (found and not seed % 2), seed
    elif seed % 2:  # what cannot be repaired is to be ingested into another folder
        assert any("another folder" in damage.what for damage in left), seed
    else:
        assert found, seed


@pytest.mark.parametrize("seed", slow_except(0, 1, among=range(8)))
def test_a_flipped_bit_in_chromas_files_is_noticed(sound, tmp_path, through_chroma, seed):
    flip_and_use(sound, tmp_path / "index", seed, "chroma.*/**/*")


@pytest.mark.slow
def test_a_thousand_flipped_bits_are_noticed(sound, tmp_path, through_chroma):
    for seed in range(1_000, 1_500):
        flip_and_use(sound, tmp_path / "index", seed, "chroma.*/**/*")
    for seed in range(1_500, 2_000):
        flip_and_use(sound, tmp_path / "index", seed)


HOSTILE_VALUES = [
    None,
    -1,
    0,
    2**63,
    10**400,
    1.5,
    True,
    "",
    "\x1b]52;c;aGk=\x07",
    "\ud800",
    "../../victim",
    [],
    {},
    [[1, 2]] * 9,
    "a" * 100_000,
]
HOSTILE_EMBEDDERS = [
    "openai:m@{server}",
    "openai:m@http://user:secret@{host}/v1",
    "ollama:m@{server}",
    "openai:text-embedding-3-small",
    "huggingface:{folder}",
    "huggingface:../victim",
    "huggingface:m@{server}",
    "cohere:m",
    "no-provider",
    ":",
    "HashEmbeddings:other",
]


def hostile_manifests(seed, many, server, folder):
    """Yield changes of a manifest: values that no field has, embedders that nobody has named."""
    rng = random.Random(seed)
    places = {"server": server.url, "host": server.url.split("//")[1].split("/")[0], "folder": folder}
    yield from ({"embedder": name.format(**places)} for name in HOSTILE_EMBEDDERS)
    fields = [f.name for f in dataclasses.fields(Manifest)]
    for _ in range(many - len(HOSTILE_EMBEDDERS)):
        yield {name: rng.choice(HOSTILE_VALUES) for name in rng.sample(fields, rng.randint(1, 3))}


COMMANDS = [
    ["search", "keyword", "ship7", "--index", "INDEX"],
    ["search", "semantic", "ship7", "--index", "INDEX"],
    ["search", "semantic", "ship7", "--index", "INDEX", "--json"],
    ["read", "d7:0", "--index", "INDEX"],
    ["info", "--index", "INDEX"],
    ["ask", "Who sailed ship7?", "--index", "INDEX", "--model", "extractive"],
    ["verify", "--index", "INDEX"],
    ["ingest", "MORE", "--index", "INDEX"],
    ["remove", "d3", "--index", "INDEX"],
    ["compact", "--index", "INDEX"],
    ["verify", "--repair", "--index", "INDEX"],
]


def use_hostile_manifests(sound, tmp_path, arag, monkeypatch, many):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    monkeypatch.chdir(tmp_path)
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("precious\n")
    more = write_corpus(tmp_path / "more", {"new": "A new document tells of a marmoset."})
    with serve(lambda _, request: embeddings([hash_vector(text).tolist() for text in request["input"]])) as server:
        for number, values in enumerate(hostile_manifests(1, many, server, victim)):
            commands = COMMANDS if many > 50 else COMMANDS[number % 5 :: 5]
            for command in commands:
                folder = tmp_path / "index"
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(sound, folder)
                file = folder / "manifest.json"
                file.write_text(json.dumps(json.loads(file.read_text()) | values))
                with ended_after(60):
                    code, out, err = arag(*(str({"INDEX": folder, "MORE": more}.get(a, a)) for a in command))
                case = (values, command, out, err)
                assert code in {0, 1, 3}, case
                assert "Traceback" not in err, case
                assert "\x1b]" not in out + err, case
                assert "secret" not in out + err, case
        assert server.requests == []
    assert [file.name for file in victim.iterdir()] == ["precious"]
    assert (victim / "precious").read_text() == "precious\n"


def test_hostile_manifests_reach_nothing(sound, tmp_path, arag, monkeypatch):
    use_hostile_manifests(sound, tmp_path, arag, monkeypatch, 18)


@pytest.mark.slow
def test_a_hundred_hostile_manifests_reach_nothing_by_any_command(sound, tmp_path, arag, monkeypatch):
    use_hostile_manifests(sound, tmp_path, arag, monkeypatch, 100)
