"""An index made by somebody else, or changed by chance: nothing of it is run, nothing outside it is touched."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import struct
import subprocess
import uuid
import warnings
from contextlib import closing, suppress
from pathlib import Path

import pytest

from arag import Scope, copy_index, create_arag_agent, make_tools
from arag.errors import ARAGError, IndexFormatError
from arag.ingest.maintenance import remove, verify
from arag.ingest.pipeline import run_ingest
from arag.retrieval.index import open_index
from arag.retrieval.storage.folder.store import FolderStore
from arag.system.worker_process import WorkerError, WorkerProcess
from fakes import DIMENSION, HashEmbeddings, write_corpus, write_index
from selection import slow_except
from stores import trust

pytestmark = pytest.mark.timeout(120)  # nothing waits for ever

DOCUMENTS = {
    f"d{n}": f"Document {n} tells of ship{n}. It was built in {1500 + n}. Nobody sailed it." for n in range(60)
}
QUERIES = ("ship7 was built", "nobody sailed in 1533", "document 12")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return write_index(tmp_path_factory.mktemp("sound"), DOCUMENTS)


@pytest.fixture
def index(sound, tmp_path):
    """A copy: somebody else's index."""
    shutil.copytree(sound, tmp_path / "index")
    return tmp_path / "index"


def search(folder):
    """What is found by keywords, and by meaning; of those that tie with the last, the graph decides which."""
    with open_index(folder, embedder=HashEmbeddings()) as opened:
        near = []
        for query in QUERIES:
            hits = opened.semantic_search(query, 5).hits
            near.append([(hit.score > hits[-1].score and hit.chunk_id, hit.score) for hit in hits])
        return near, opened.keyword_search("ship7 was"), opened.keyword_search("shp7"), opened.get("d7:0")


def ingest_more(folder):
    corpus = write_corpus(folder.parent / "more", {"new": "A new document tells of a marmoset. It is late."})
    return run_ingest(corpus, folder, embedder=HashEmbeddings())


USES = {
    "search": search,
    "verify": verify,
    "ingest": ingest_more,
    "remove": lambda folder: remove("d3", folder),
    "repair": lambda folder: verify(folder, repair=True),
}


def graph_of(folder):
    return folder / f"chroma-{FolderStore(folder).settings().token}"


def run_script(file, script):
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.executescript(script)


# --- Chroma's folder, which native code opens ---


@pytest.fixture
def opened(monkeypatch):
    """The folders that Chroma opens."""
    opened = []
    original = WorkerProcess.call

    def record(self, name, *arguments, **options):
        opened.extend(Path(folder).name for folder in arguments[:1])
        return original(self, name, *arguments, **options)

    monkeypatch.setattr(WorkerProcess, "call", record)
    return opened


def spoil_graph(folder):
    """Write numbers into Chroma's graph that native code follows out of its memory."""
    level = next(folder.rglob("data_level0.bin"))
    _, offset, _, used, size = struct.unpack_from("<iQQQQ", level.with_name("header.bin").read_bytes())
    data = bytearray(level.read_bytes())
    for element in range(used):
        struct.pack_into("<65I", data, element * size + offset, 64, *range(0x7FFFFF00, 0x7FFFFF40))
    level.write_bytes(data)


@pytest.mark.parametrize(
    ("how", "use"),
    [*(("copied", use) for use in USES), ("renamed", "search"), ("linked", "repair"), ("of another user", "ingest")],
)
@pytest.mark.filterwarnings("ignore:semantic search is slow")
def test_a_graph_that_somebody_else_has_made_is_never_opened(
    sound, index, through_chroma, opened, how, use, tmp_path, monkeypatch
):
    expected = search(sound)
    graph = graph_of(index)
    if how == "renamed":  # ours, of another index
        own = write_index(tmp_path / "own", {"x": "A line. Another line."})
        shutil.rmtree(graph)
        shutil.copytree(graph_of(own), graph)
    elif how == "linked":
        graph.rename(tmp_path / "elsewhere")
        graph.symlink_to(tmp_path / "elsewhere")
    elif how == "of another user":
        trust(index)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    spoil_graph(graph)
    opened.clear()
    USES[use](index)
    assert graph.name not in opened
    if use == "verify":
        assert [damage.part for damage in verify(index)[0]] == [graph.name]
    elif use != "search":
        assert verify(index) == ([], [])
    if use in {"search", "verify", "repair"}:
        assert search(index) == expected


def test_an_index_of_another_user_is_searched_without_its_graph_until_it_is_repaired(
    index, through_chroma, opened, monkeypatch
):
    with pytest.warns(UserWarning, match=r"another user.*ARAG_TRUST_INDEX=1.*verify --index .* --repair") as told:
        expected = search(index)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with monkeypatch.context() as patch:
            patch.setenv("ARAG_TRUST_INDEX", "1")
            assert search(index) == expected
            assert opened.pop() == graph_of(index).name
        verify(index, repair=True)
        assert search(index) == expected
    assert opened.pop() == graph_of(index).name


# --- whether Chroma's folder is still the user's own ---


@pytest.fixture
def own(tmp_path, monkeypatch):
    """An index that this user has written, whose receipts are the only ones."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return write_index(tmp_path / "own", DOCUMENTS)


@pytest.fixture
def foreign(own, tmp_path):
    """A folder of Chroma with files of the same names, sizes and times as those of `own`, written by somebody else."""
    foreign = shutil.copytree(graph_of(own), tmp_path / "foreign")
    spoil_graph(foreign)
    for file in foreign.rglob("*"):
        copy_times(graph_of(own) / file.relative_to(foreign), file)
    return foreign


def receipts(tmp_path):
    return {file.name for file in (tmp_path / "state" / "arag" / "graphs").iterdir()}


def copy_times(source, target):
    status = source.stat()
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def run_tar(graph, foreign):
    archive = foreign.with_suffix(".tar")
    subprocess.run(["tar", "-C", foreign, "-cf", archive, "."], check=True)
    subprocess.run(["tar", "-C", graph, "-xf", archive], check=True)


def run_copy(graph, foreign):
    inode = (graph / "chroma.sqlite3").stat().st_ino
    subprocess.run(["cp", "-rp", f"{foreign}/.", graph], check=True)
    assert (graph / "chroma.sqlite3").stat().st_ino == inode  # written in place


def delete_and_copy(graph, foreign):
    """Until the database has its inode again, where the file system hands inodes out again."""
    database = graph / "chroma.sqlite3"
    inode = database.stat().st_ino
    for _ in range(20):
        database.unlink()
        subprocess.run(["cp", "-p", foreign / database.name, database], check=True)
        if database.stat().st_ino == inode:
            break


def flip_bit(graph, foreign):
    (metadata,) = graph.rglob("index_metadata.pickle")
    data = bytearray(metadata.read_bytes())
    data[50] ^= 1
    metadata.write_bytes(data)
    copy_times(foreign / metadata.relative_to(graph), metadata)


def rename_segment(graph, foreign):
    """The folder has a name of Chroma's, and all files stay as they are."""
    (segment,) = (path for path in graph.iterdir() if path.is_dir())
    segment.rename(graph / str(uuid.uuid4()))


def link_file(graph, foreign):
    (level,) = graph.rglob("data_level0.bin")
    level.unlink()
    level.symlink_to(foreign / level.relative_to(graph))


def put_pipe(graph, foreign):
    (level,) = graph.rglob("data_level0.bin")
    level.unlink()
    os.mkfifo(level)


ATTACKS = {
    "tar -x": run_tar,
    "cp -rp": run_copy,
    "rm and cp": delete_and_copy,
    "a bit of the pickle": flip_bit,
    "a journal more": lambda graph, _: (graph / "chroma.sqlite3-journal").touch(),
    "a file more in the graph": lambda graph, _: next(graph.rglob("header.bin")).with_name("more.bin").touch(),
    "a folder in the graph": lambda graph, _: next(graph.rglob("header.bin")).with_name("more").mkdir(),
    "a file less": lambda graph, _: next(graph.rglob("index_metadata.pickle")).unlink(),
    "another name of the graph": rename_segment,
    "a link": link_file,
    "a hard link": lambda graph, foreign: (foreign / "link").hardlink_to(graph / "chroma.sqlite3"),
    "a pipe": put_pipe,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_folder_with_files_of_somebody_else_is_not_opened_and_made_again(
    own, foreign, through_chroma, opened, attack
):
    expected = search(own)
    graph = graph_of(own)
    assert opened.pop() == graph.name
    ATTACKS[attack](graph, foreign)
    opened.clear()
    with pytest.warns(UserWarning, match=r"is slow, .* copied or changed.*verify --index .* --repair") as told:
        assert search(own) == expected
    assert len(told) == 1
    assert [damage.part for damage in verify(own, repair=True)[0]] == [graph.name]
    assert graph.name not in opened
    with warnings.catch_warnings(action="error"):
        assert search(own) == expected
    assert opened.pop() == graph_of(own).name


def test_folders_of_two_own_indexes_that_were_swapped_are_not_opened(own, through_chroma, opened, tmp_path):
    other = write_index(tmp_path / "other", {"x": "A line. Another line."})
    first, second = graph_of(own), graph_of(other)
    expected = search(own)
    opened.clear()
    first.rename(tmp_path / "kept")
    second.rename(first)
    (tmp_path / "kept").rename(second)
    with pytest.warns(UserWarning, match="copied or changed"):
        assert search(own) == expected
    with pytest.warns(UserWarning, match="copied or changed"):
        search(other)
    assert opened == []


@pytest.mark.slow
def test_reading_changes_no_file_whatever_becomes_of_the_readers(own, through_chroma):
    def changes():
        return {file: (file.lstat().st_mtime_ns, file.lstat().st_ctime_ns) for file in graph_of(own).rglob("*")}

    ingest_more(own)
    remove("d3", own)
    before = changes()
    with open_index(own, embedder=HashEmbeddings()) as first, open_index(own, embedder=HashEmbeddings()) as second:
        for opened in (first, second, first):
            opened.semantic_search("ship7", 5)
        reader = WorkerProcess("arag.retrieval.storage.folder.chroma_worker")
        for milliseconds in range(1, 200, 10):  # the kernel then kills it
            with suppress(WorkerError):
                reader.call("count", str(graph_of(own)), seconds=milliseconds / 1000)
            reader.close()
    assert verify(own) == ([], [])
    assert changes() == before
    with warnings.catch_warnings(action="error"):
        search(own)


def test_a_moved_index_stays_the_users_own_and_a_copy_takes_nothing_from_it(own, through_chroma, opened, tmp_path):
    expected = search(own)
    moved = own.rename(tmp_path / "moved")
    copy = shutil.copytree(moved, tmp_path / "copy")
    ingest_more(copy)
    opened.clear()
    with warnings.catch_warnings(action="error"):
        assert search(moved) == expected
        assert opened.pop() == graph_of(moved).name
        ingest_more(moved)
        search(moved)
    assert receipts(tmp_path) == {graph_of(moved).name, graph_of(copy).name}


def test_receipts_of_deleted_indexes_go(own, through_chroma, tmp_path):
    documents = {"x": "A line. Another line."}
    moved = write_index(tmp_path / "other", documents).rename(tmp_path / "moved")
    deleted = write_index(tmp_path / "third", documents)
    just_deleted = write_index(tmp_path / "fourth", documents)
    left = {graph_of(own).name, graph_of(moved).name, graph_of(just_deleted).name}
    for file in (tmp_path / "state" / "arag" / "graphs").iterdir():
        if file.name != graph_of(just_deleted).name:
            os.utime(file, (0, 0))
    shutil.rmtree(deleted)
    shutil.rmtree(just_deleted)
    search(moved)
    new = write_index(tmp_path / "fifth", documents)
    assert receipts(tmp_path) == {*left, graph_of(new).name}


def test_a_copied_index_says_on_one_line_why_it_is_slow_and_a_small_one_says_nothing(
    arag, quick_embedder, tmp_path, monkeypatch
):
    corpus = write_corpus(tmp_path / "corpus", {"x": "A line. Another line."})
    assert arag("ingest", corpus, "--index", tmp_path / "own")[0] == 0
    copy = shutil.copytree(tmp_path / "own", tmp_path / "a copy")
    assert arag("search", "semantic", "line", "--index", copy)[2] == ""
    monkeypatch.setattr("arag.retrieval.storage.vectors.MAX_MATRIX_BYTES", 0)
    code, out, err = arag("search", "semantic", "line", "--index", copy)
    assert code == 0
    assert "A line." in out
    assert err.startswith(f"Note: semantic search is slow, because the vector index of {copy} is not used: ")
    assert err.strip().endswith(f"run `arag verify --index '{copy}' --repair`")


@pytest.mark.usefixtures("through_chroma")
def test_a_read_only_graph_is_not_called_damaged(arag, own, monkeypatch):
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    code, out, err = arag("verify", "--index", own)
    assert (code, out.strip()) == (0, f"No damage found in {own}.")
    assert f"{graph_of(own)} was not checked: its folder is read-only" in err
    with pytest.warns(UserWarning, match="is read-only") as told:
        search(own)
    assert "--repair" not in str(told[0].message)  # it could not


# --- SQLite's files ---

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"
HOSTILE = {
    "an endless view in place of a table": f"""
        DROP TABLE documents;
        CREATE VIEW documents AS {ENDLESS} '' AS id, '' AS title, '' AS source, '{{}}' AS metadata,
        '' AS fingerprint, 1 AS chunks FROM n""",
    "a trigger": "CREATE TRIGGER gone AFTER INSERT ON chunks BEGIN DELETE FROM documents; END",
    "another table of that name": "DROP TABLE words; CREATE TABLE words (word TEXT, plain TEXT)",
    "no table": "DROP TABLE chunks",
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_tables_that_are_not_ours_are_refused_before_anything_is_read_and_such_a_draft_is_dropped(index, hostile):
    shutil.copy(index / "index.sqlite3", index / "draft.sqlite3")
    run_script(index / "draft.sqlite3", HOSTILE[hostile])
    ingest_more(index)
    assert verify(index) == ([], [])
    run_script(index / "index.sqlite3", HOSTILE[hostile])
    for name in ("search", "ingest", "remove"):
        with pytest.raises(IndexFormatError, match=r"not those of an index"):
            USES[name](index)
    damages, left = verify(index, repair=True)
    assert damages == left
    assert not any(damage.repairable for damage in damages)


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


@pytest.mark.parametrize("name", ["index.sqlite3", "draft.sqlite3", "draft.sqlite3.new"])
def test_no_journal_makes_sqlite_delete_another_file(index, tmp_path, name):
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    run_script(tmp_path / "plain.db", "CREATE TABLE t (a)")
    hostile_journal(tmp_path / "plain.db", victim)
    run_script(tmp_path / "plain.db", "SELECT * FROM t")
    assert not victim.exists()  # SQLite by itself does it
    victim.write_text("precious\n")
    if name != "index.sqlite3":
        shutil.copy(index / "index.sqlite3", index / name)
    hostile_journal(index / name, victim)
    search(index)
    ingest_more(index)
    assert victim.read_text() == "precious\n"


def test_a_log_beside_an_index_is_not_read(sound, index):
    expected = search(sound)
    with closing(sqlite3.connect(index / "index.sqlite3", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("DELETE FROM chunks")
        shutil.copytree(index, index.parent / "taken")  # with its log
    index = index.parent / "taken"
    assert (index / "index.sqlite3-wal").stat().st_size
    for use in (search, ingest_more):
        use(index)
        assert search(index)[1:] == expected[1:]


# --- rows that the tables take, and no writer writes ---

DEEP = "[" * 100_000
DIGITS = "9" * 5_000
ONE = f"x'{'003c' * DIMENSION}'"  # a vector
NONE = f"x'{'007e' * 9 * DIMENSION}'"  # as of nine sentences without one
NOTHING = '"headings": [""], "tables": []}'
TWICE = "[0, 3, 1, 0, -1], [0, 3, 1, 0, -1]"
ROWS = {
    "metadata: a list": "UPDATE documents SET metadata = '[1]'",
    "metadata: a number": "UPDATE documents SET metadata = '1'",
    "metadata: a text": "UPDATE documents SET metadata = '\"a\"'",
    "metadata: null": "UPDATE documents SET metadata = 'null'",
    "metadata: endless lists": f"UPDATE documents SET metadata = '{DEEP}'",
    "metadata: deep": f"""UPDATE documents SET metadata = '{{"a": {"[" * 400}{"]" * 400}}}'""",
    "metadata: many digits": f"""UPDATE documents SET metadata = '{{"a": {DIGITS}}}'""",
    "metadata: half a character": """UPDATE documents SET metadata = '{"a": "\\ud800"}'""",
    "metadata: bytes": "UPDATE documents SET metadata = CAST(x'fffe' AS TEXT)",
    "a document's chunks: -1": "UPDATE documents SET chunks = -1",
    "a document's chunks: many": f"UPDATE documents SET chunks = {2**63 - 1}",
    "a chunk's id: NUL": "UPDATE chunks SET id = 'd7' || char(0) WHERE id = 'd7:0'",
    "a document's id: NUL": "UPDATE documents SET id = 'd7' || char(0) WHERE id = 'd7'",
    "a document is gone": "DELETE FROM documents WHERE id = 'd7'",
    "places: endless lists": f"UPDATE contents SET places = '{DEEP}'",
    "places: deep": f"""UPDATE contents SET places = '{{"sentences": {DEEP}{"]" * 100_000}, {NOTHING}'""",
    "places: many digits": f"""UPDATE contents SET places = '{{"sentences": [[0, {DIGITS}, 1, 0, -1]], {NOTHING}'""",
    "places: outside": f"""UPDATE contents SET places = '{{"sentences": [[0, 999, 1, 0, -1]], {NOTHING}'""",
    "places: overlap": f"""UPDATE contents SET places = '{{"sentences": [{TWICE}], {NOTHING}'""",
    "places: negative": f"""UPDATE contents SET places = '{{"sentences": [[-5, 3, 1, 0, -1]], {NOTHING}'""",
    "places: fractions": f"""UPDATE contents SET places = '{{"sentences": [[0.5, 3, 1, 0, -1]], {NOTHING}'""",
    "places: no heading": f"""UPDATE contents SET places = '{{"sentences": [[0, 3, 1, 7, -1]], {NOTHING}'""",
    "places: others": f"""UPDATE contents SET places = '{{"sentences": [[0, 3, 1, 0, -1]], {NOTHING}'""",
    "a text is gone": "DELETE FROM contents WHERE number = 7",
    "ordinal: -1": "UPDATE chunks SET ordinal = -1",
    "ordinal: many": f"UPDATE chunks SET ordinal = {2**63 - 1}",
    "tokens: many": f"UPDATE chunks SET tokens = {2**63 - 1}",
    "one page": "UPDATE chunks SET first_page = 3",
    "embedded: -1": "UPDATE chunks SET sentences = -1",
    "embedded: many": f"UPDATE chunks SET sentences = {2**63 - 1}",
    "vectors: none": "UPDATE vectors SET vectors = x''",
    "vectors: an odd number of bytes": "UPDATE vectors SET vectors = x'616263'",
    "vectors: of more sentences": f"UPDATE vectors SET vectors = CAST({ONE} || vectors AS BLOB)",
    "vectors: of other sentences": f"UPDATE vectors SET vectors = CAST({NONE} || vectors AS BLOB)",
    "vectors are gone": "DELETE FROM vectors",
    "settings: sentences": "UPDATE settings SET value = json_set(value, '$.sentences', 1000000000000)",
    "settings: dimension": "UPDATE settings SET value = json_set(value, '$.dimension', 1000000)",
    "settings: an endless name": "UPDATE settings SET value = json_set(value, '$.embedder', hex(zeroblob(1000000)))",
    "settings: deep": f"UPDATE settings SET value = '{DEEP}'",
    "settings: many digits": f"""UPDATE settings SET value = '{{"sentences": {DIGITS}}}'""",
}


WRITERS = {"ingest", "remove", "repair"}


def read_all(folder):
    with open_index(folder, embedder=HashEmbeddings()) as opened:
        opened.info()
        opened.read(["d7:0", "d7"], adjacent=2)
        opened.find_documents("d7")
        list(opened.sentence_vectors())
        limited = opened.limited_to(Scope(where={"year": {"$ne": 7}}))
        limited.keyword_search(["ship7", "shp7"], ranking="bm25")
        limited.semantic_search("ship7", titles_first=True)
        for tool in make_tools(opened, names="paper"):
            names = tool.args.keys() & {"keywords", "queries", "chunk_ids"}
            tool.invoke({name: ["ship7", "d7:0"] for name in names})


def list_all(folder):
    with open_index(folder, embedder=HashEmbeddings()) as opened:
        list(opened.documents())
        opened.document("d7")


def ask(folder):
    with open_index(folder, embedder=HashEmbeddings()) as opened:
        create_arag_agent("extractive", opened).invoke({"messages": [("user", "When was ship7 built?")]})


ALL_USES = {
    **USES,
    "read": read_all,
    "list": list_all,
    "ask": ask,
    "copy": lambda folder: copy_index(folder, folder.parent / "copy"),
}


QUICK = ("metadata: a list", "metadata: deep", "metadata: many digits", "places: deep", "places: outside")
QUICK += (
    "places: overlap",
    "ordinal: many",
    "a text is gone",
    "vectors: of other sentences",
    "settings: sentences",
    "settings: deep",
)


@pytest.mark.parametrize("row", slow_except(*QUICK, among=ROWS.keys()))
@pytest.mark.filterwarnings("ignore:the vector index of")
def test_impossible_rows_are_named_in_one_sentence_and_found(index, arag, row):
    run_script(index / "index.sqlite3", ROWS[row])
    (damage,) = [damage for damage in verify(index)[0] if damage.part == "index.sqlite3"]
    assert len(str(damage)) < 500
    messages = []
    for name, use in ALL_USES.items():
        folder = shutil.copytree(index, index.parent / name) if name in WRITERS else index
        try:
            use(folder)
        except ARAGError as error:
            messages.append(str(error))
            assert str(folder) in str(error)  # noqa: PT017 - it may also succeed
    assert messages
    for command in (["list"], ["info"], ["read", "d7:0"], ["search", "keyword", "ship7"], ["verify"]):
        code, _, error = arag(*command, "--index", index)
        assert code in {0, 1}
        messages.append(error)
    assert all(len(message) < 500 for message in messages)
    assert not any("Traceback" in message for message in messages)


@pytest.mark.timeout(30)
def test_an_endless_title_is_not_looked_for_in_a_query(index):
    title = "replace(hex(zeroblob(2000000)), '00', 'x y ')"
    run_script(index / "index.sqlite3", f"UPDATE documents SET title = {title} WHERE id = 'd12'")
    with open_index(index, embedder=HashEmbeddings()) as opened:
        assert opened.semantic_search("Document 12 tells of ship12", titles_first=True).hits[0].chunk_id == "d12:0"


def test_a_keyword_file_of_other_texts_changes_no_text_and_is_found(sound, index, arag):
    (file,) = index.glob("keywords-*")
    file.write_bytes(file.read_bytes().replace(b"ship7.", b"shipx."))
    next(index.glob("words-*")).unlink()  # which does not have the word
    with open_index(index, embedder=HashEmbeddings()) as opened:
        (hit,) = opened.keyword_search("shipx").hits
        assert "of ship7." in opened.get(hit.chunk_id).text
        assert opened.keyword_search("shipx", ranking="bm25").hits
    code, out, _ = arag("verify", "--index", index)
    assert (code, "does not have the texts" in out) == (1, True)
    assert arag("verify", "--index", index, "--repair")[0] == 0
    assert search(index)[1:] == search(sound)[1:]


# --- what is no file, and changes by chance ---

NAMES = "index.sqlite3 draft.sqlite3 keywords- chroma-draft draft.sqlite3-wal write.lock words-".split()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "pipe") for name in NAMES),
        *((name, "folder") for name in NAMES[:4]),
        *((name, "endless") for name in NAMES[1:4]),
    ],
)
def test_what_is_no_file_is_an_error_or_replaced_and_no_hang(index, name, kind):
    file = next(index.glob(f"{name}*"), index / name)
    file.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "endless":
        file.symlink_to("/dev/zero")
    else:
        file.mkdir()
        (file / "file").write_text("something")
    for use in USES.values():
        try:
            use(index)
        except ARAGError as error:
            assert str(index) in str(error)  # noqa: PT017 - it may also succeed


@pytest.mark.parametrize("seed", slow_except(*range(8), among=range(400)))
@pytest.mark.filterwarnings("ignore:semantic search is slow")
def test_a_flipped_bit_is_found_or_repaired_or_changes_a_letter(index, seed):
    rng = random.Random(seed)
    file = rng.choice(sorted(file for file in index.glob("*") if file.is_file() and file.stat().st_size))
    data = bytearray(file.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    file.write_bytes(data)
    damages, left = verify(index, repair=True)
    if any(not damage.repairable for damage in damages):
        assert damages == left
    else:
        assert left == []
        assert len(search(index)) == 4
        run_ingest(write_corpus(index.parent / "corpus", DOCUMENTS), index, embedder=HashEmbeddings())
        assert verify(index) == ([], [])
