"""Damage is found and mended, and what is removed is gone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

from arag.errors import IndexFormatError, IndexNotFoundError, InputError, StorageError
from arag.ingest.maintenance import compact, remove, verify
from arag.ingest.pipeline import run_ingest
from arag.retrieval.index import open_index
from arag.retrieval.local.chroma_folder import open_collection
from arag.retrieval.local.chunk_store import ChunkStore
from arag.retrieval.local.manifest import read_manifest, vectors_folder
from arag.retrieval.local.store_check import StoreRows
from arag.retrieval.tables.rows import parse_vectors, vectors_blob
from fakes import HashEmbeddings, write_corpus, write_index
from forked import processes
from selection import slow_except

DOCUMENTS = {
    f"d{n}": f"Document {n} tells of ship{n}. It was built in {1500 + n}. Nobody sailed it." for n in range(60)
} | {
    "secret": "The marmoset password is zyzzyva. It opens the quixotic vault.",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return write_index(tmp_path_factory.mktemp("sound"), DOCUMENTS)


@pytest.fixture
def index(sound, tmp_path):
    shutil.copytree(sound, tmp_path / "index")
    return tmp_path / "index"


def contents(folder):
    """What an index answers and holds."""
    with open_index(folder, embedder=HashEmbeddings()) as opened:
        texts = {i: opened.get(i).text for i in opened.chunk_ids()}
        nearest = {
            query: [(hit.chunk_id, round(hit.score, 4)) for hit in opened.semantic_search(query, 5).hits]
            for query in ("ship7 was built", "the quixotic vault", "in 1533")
        }
        found = {word: opened.keyword_search(word, 70).total for word in ("ship", "zyzzyva", "nobody")}
        info = opened.info()
    return texts, nearest, found, (info.documents, info.chunks, info.sentences)


def database(folder):
    return sqlite3.connect(folder / "chunks.sqlite3", isolation_level=None)


def chroma(folder):
    return vectors_folder(folder, read_manifest(folder).generation)


def graph_file(folder, name):
    return next(chroma(folder).rglob(name))


def cut(file, share=0.5):
    os.truncate(file, int(file.stat().st_size * share))


def spoil(file, at=0.5, length=64):
    """Overwrite bytes in the middle of a file, whose size stays."""
    with file.open("r+b") as opened:
        opened.seek(int(file.stat().st_size * at))
        opened.write(b"\x5a" * min(length, file.stat().st_size // 4))


def change_manifest(folder, **values):
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def run_sql(folder, *statements):
    with database(folder) as connection:
        for statement in statements:
            connection.execute(statement)


def patch(folder, old, new):
    file = folder / "chunks.sqlite3"
    assert old in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(old, new))


def change_vectors(folder, change, *, checksum=False):
    """Change the vectors of a chunk; its checksum goes with them where a run has written them so."""
    with database(folder) as connection:
        (blob,) = connection.execute("SELECT vectors FROM vectors WHERE number = 7").fetchone()
        blob = vectors_blob(change(parse_vectors(blob, 3)))
        connection.execute("UPDATE vectors SET vectors = ? WHERE number = 7", (blob,))
        if checksum:
            connection.execute("UPDATE vectors SET checksum = ? WHERE number = 7", (zlib.crc32(blob),))


def delete_vectors(folder):
    with open_collection(chroma(folder)) as collection:
        collection.delete(ids=collection.get(limit=5)["ids"])


def add_a_vector(folder):
    with open_collection(chroma(folder)) as collection:
        collection.upsert(ids=["99999#0"], embeddings=np.ones((1, 64)), metadatas=[{"sentence": "Nobody's."}])


def mix_up_vectors(folder):
    with open_collection(chroma(folder)) as collection:
        ids = collection.get(limit=2)["ids"]
        collection.update(ids=ids, embeddings=np.eye(64, dtype=np.float32)[:2])


def be_killed_at(step, work, *arguments, **options):
    store = StoreRows if hasattr(StoreRows, step) else ChunkStore
    setattr(store, step, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    work(*arguments, **options)


def run_until(step, work, *arguments, **options):
    """Do something in a process that is killed when it comes to a step of the chunk store."""
    process = processes.Process(target=be_killed_at, args=(step, work, *arguments), kwargs=options)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


DAMAGES = {
    "no manifest": lambda f: (f / "manifest.json").unlink(),
    "an empty manifest": lambda f: (f / "manifest.json").write_text(""),
    "half a manifest": lambda f: cut(f / "manifest.json"),
    "a manifest of no sense": lambda f: (f / "manifest.json").write_text('{"format_version": 3, "embedder": 3}'),
    "wrong counts in the manifest": lambda f: change_manifest(f, chunks=7, sentences=8),
    "another dimension in the manifest": lambda f: change_manifest(f, dimension=65),
    "another generation in the manifest": lambda f: change_manifest(f, generation=0),
    "no Chroma folder": lambda f: shutil.rmtree(chroma(f)),
    "no graph folder": lambda f: shutil.rmtree(graph_file(f, "header.bin").parent),
    "no Chroma database": lambda f: (chroma(f) / "chroma.sqlite3").unlink(),
    "an empty Chroma database": lambda f: cut(chroma(f) / "chroma.sqlite3", 0),
    "half a Chroma database": lambda f: cut(chroma(f) / "chroma.sqlite3"),
    "a spoilt Chroma database": lambda f: spoil(chroma(f) / "chroma.sqlite3", at=0, length=4096),
    **{f"no {name}": lambda f, name=name: graph_file(f, name).unlink() for name in ("header.bin", "data_level0.bin")},
    **{
        f"half of {name}": lambda f, name=name: cut(graph_file(f, name))
        for name in ("header.bin", "data_level0.bin", "length.bin", "index_metadata.pickle")
    },
    **{
        f"a spoilt {name}": lambda f, name=name: spoil(graph_file(f, name))
        for name in ("header.bin", "data_level0.bin", "length.bin", "index_metadata.pickle")
    },
    "Chroma lacks vectors": delete_vectors,
    "Chroma has a vector of no chunk": add_a_vector,
    "Chroma has other vectors": mix_up_vectors,
    "Chroma of an older generation": lambda f: change_manifest(f, files={}) or delete_vectors(f),
    "no keyword file": lambda f: (f / "keywords.1").unlink(),
    "an empty keyword file": lambda f: cut(f / "keywords.1", 0),
    "half a keyword file": lambda f: cut(f / "keywords.1"),
    "a spoilt keyword file": lambda f: spoil(f / "keywords.1"),
    "no vocabulary file": lambda f: (f / "words.1").unlink(),
    "a spoilt vocabulary file": lambda f: spoil(f / "words.1"),
    "chunks wait for vectors": lambda f: run_sql(f, "UPDATE chunks SET pending = 1 WHERE number < 9"),
    "chunks without vectors": lambda f: run_sql(f, "DELETE FROM vectors WHERE number BETWEEN 5 AND 9"),
    "vectors cut off": lambda f: run_sql(f, "UPDATE vectors SET vectors = substr(vectors, 1, 100) WHERE number = 3"),
    "vectors that are no numbers": lambda f: run_sql(
        f, "UPDATE vectors SET vectors = x'" + "ff" * (64 * 4 * 3) + "' WHERE number = 3"
    ),
    "words that are not in the texts": lambda f: run_sql(
        f, "INSERT INTO terms (rowid, text) VALUES (3, 'phantom words')"
    ),
    "no table of words": lambda f: run_sql(f, "DROP TABLE vocabulary", "DROP TABLE terms"),
    "no list of words": lambda f: run_sql(f, "DROP TABLE vocabulary"),
    "vectors a hundredth as long": lambda f: change_vectors(f, lambda v: v / 100, checksum=True),
    "vectors of another sentence": lambda f: change_vectors(f, lambda v: v[::-1]),
    "a header that forbids writing": lambda f: patch(f, b"SQLite format 3\0\x10\0\x02", b"SQLite format 3\0\x10\0\x03"),
    "an entry of the schema that cannot be read": lambda f: patch(
        f, b"CREATE INDEX chunks_by_place", b"CREATE \xff\xfeDEX chunks_by_place"
    ),
    "a table of words that is no such table": lambda f: run_sql(f, "UPDATE terms_data SET block = x'00' WHERE id > 10"),
    "a configuration of words of another version": lambda f: run_sql(f, "UPDATE terms_config SET v = 9"),
    "a manifest that was kept is lost": lambda f: run_sql(f, "DELETE FROM state"),
    "a manifest that was kept is of no sense": lambda f: run_sql(f, "UPDATE state SET value = 'xx'"),
    "documents do not know their chunks": lambda f: run_sql(f, "DELETE FROM members WHERE number = 5"),
    "an index of the database lacks rows": lambda f: run_sql(
        f,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = sql || ' WHERE number > 9' WHERE name = 'chunks_by_id'",
        "PRAGMA writable_schema = RESET",
        "REINDEX chunks_by_id",
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = replace(sql, ' WHERE number > 9', '') WHERE name = 'chunks_by_id'",
    ),
}

# What is lost for good: of the document d5, or of the whole index.
CHUNK = "(SELECT number FROM chunks WHERE id = 'd5:0')"
LOSSES = {
    "a byte of a text": f"UPDATE contents SET text = replace(text, 'ship5', 'shop5') WHERE number = {CHUNK}",
    "a text that is no text": f"UPDATE contents SET text = CAST(x'616263ff' AS TEXT) WHERE number = {CHUNK}",
    "a text": f"DELETE FROM contents WHERE number = {CHUNK}",
    "a chunk": "DELETE FROM chunks WHERE id = 'd5:0'",
    "sentences": f"UPDATE contents SET sentences = '[[' WHERE number = {CHUNK}",
    "sections": f"UPDATE contents SET sections = '[]' WHERE number = {CHUNK}",
    "a document": "DELETE FROM documents WHERE id = 'd5'",
}


def test_a_sound_index_is_found_sound(index):
    files = [file for file in index.rglob("*") if file.is_file() and file.suffix not in {".sqlite3", ".lock"}]
    before = {file: file.stat().st_mtime_ns for file in files}
    assert verify(index) == ([], [])
    assert verify(index, repair=True) == ([], [])
    assert {file: file.stat().st_mtime_ns for file in before} == before


# One of each kind of file, and of each way in which it is damaged.
QUICK = (
    "no manifest",
    "half a manifest",
    "another generation in the manifest",
    "no Chroma folder",
    "half a Chroma database",
    "Chroma lacks vectors",
    "Chroma has other vectors",
    "half a keyword file",
    "a spoilt vocabulary file",
    "chunks wait for vectors",
    "vectors cut off",
    "words that are not in the texts",
    "no table of words",
    "a header that forbids writing",
    "documents do not know their chunks",
    "an index of the database lacks rows",
)


@pytest.mark.parametrize("damage", slow_except(*QUICK, among=DAMAGES))
def test_damage_is_found_and_mended(index, sound, damage):
    DAMAGES[damage](index)
    found, left = verify(index, embedder=HashEmbeddings())
    assert found
    assert left == found
    assert verify(index, repair=True, embedder=HashEmbeddings())[1] == []
    assert verify(index) == ([], [])
    assert contents(index) == contents(sound)


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_lost_is_told_until_it_is_ingested_again(index, sound, loss, tmp_path):
    run_sql(index, LOSSES[loss])
    (found, _), (_, left) = verify(index), verify(index, repair=True, embedder=HashEmbeddings())
    assert any("'d5'" in damage.what and damage.repairable for damage in found)
    assert [str(damage) for damage in left] == [
        "chunks.sqlite3: ingest again the documents that have lost a part (1): 'd5'"
    ]
    assert verify(index, repair=True) == (left, left)
    with open_index(index, embedder=HashEmbeddings()) as opened:
        assert len(opened.semantic_search("ship7 was built", 70).hits) in {60, 61}
        assert opened.keyword_search("nobody", 70).total in {59, 60}
    summary = run_ingest(write_corpus(tmp_path / "corpus", DOCUMENTS), index, embedder=HashEmbeddings())
    assert summary.written == 1
    assert verify(index) == ([], [])
    assert contents(index) == contents(sound)


def test_only_documents_of_which_something_is_lost_are_named(index):
    run_sql(index, "UPDATE contents SET text = text || '.' WHERE number <= 20")
    (damage,) = verify(index, repair=True, embedder=HashEmbeddings())[1]
    assert damage.what.startswith("ingest again the documents that have lost a part (20)")
    assert damage.what.endswith("and 10 more")
    assert not damage.repairable


def test_a_damaged_page_costs_no_more_than_what_stands_on_it(index, sound, tmp_path):
    pages = (index / "chunks.sqlite3").stat().st_size // 4096
    for page in range(2, pages, 8):
        folder = tmp_path / f"{page}"
        shutil.copytree(index, folder)
        with (folder / "chunks.sqlite3").open("r+b") as file:
            file.seek(4096 * page)
            file.write(b"\x5a" * 4096)
        found, left = verify(folder, repair=True, embedder=HashEmbeddings())
        assert found
        assert not any(damage.repairable or "arag verify" in damage.what for damage in left)
        assert len(contents(folder)[0]) > 0
        run_ingest(write_corpus(tmp_path / "corpus", DOCUMENTS), folder, embedder=HashEmbeddings())
        assert verify(folder) == ([], [])
        assert contents(folder) == contents(sound)
        shutil.rmtree(folder)


def test_a_manifest_that_is_lost_twice_is_told(index, tmp_path):
    run_sql(index, "DELETE FROM state")
    (index / "manifest.json").unlink()
    with pytest.raises(IndexFormatError, match="ingest the documents again into another folder"):
        run_ingest(write_corpus(tmp_path / "corpus", DOCUMENTS), index, embedder=HashEmbeddings())
    (damage,), left = verify(index, repair=True)
    assert "ingest the documents again into another folder" in damage.what
    assert left == [damage]


def test_an_index_of_another_version_is_told_and_left_alone(index):
    change_manifest(index, format_version=2)
    run_sql(index, """UPDATE state SET value = replace(value, '"format_version": 5', '"format_version": 2')""")
    before = (index / "chunks.sqlite3").read_bytes()
    (damage,), left = verify(index, repair=True)
    assert damage.what.endswith("Ingest the documents again into another folder.")
    assert left == [damage]
    assert (index / "chunks.sqlite3").read_bytes() == before


@pytest.mark.parametrize("damage", ["a spoilt vocabulary file", "no table of words", "wrong counts in the manifest"])
def test_readers_search_on_while_an_index_is_mended(index, damage):
    with open_index(index, embedder=HashEmbeddings()) as reader, ThreadPoolExecutor(1) as pool:
        DAMAGES[damage](index)
        mending = pool.submit(verify, index, repair=True, embedder=HashEmbeddings())
        while not mending.done():
            assert reader.keyword_search("nobody", 70).total == 60
            assert reader.info().documents == 61
        assert mending.result()[1] == []


@pytest.mark.parametrize("step", ["empty_log", "__init__", "delete_gone", "set_state"])
def test_a_mending_that_is_killed_leaves_the_index_as_it_was(index, sound, step):
    DAMAGES["a spoilt vocabulary file"](index)
    DAMAGES["a manifest that was kept is of no sense" if step == "set_state" else "wrong counts in the manifest"](index)
    if step == "empty_log":
        DAMAGES["documents do not know their chunks"](index)
    run_until(step, verify, index, repair=True, embedder=HashEmbeddings())
    with open_index(index, embedder=HashEmbeddings()) as reader:
        assert reader.keyword_search("nobody", 70).total == 60
    assert verify(index, repair=True, embedder=HashEmbeddings())[1] == []
    assert contents(index) == contents(sound)


@pytest.mark.parametrize("damage", ["no Chroma folder", "half of header.bin", "no graph folder", "half a keyword file"])
def test_a_search_names_the_damage_and_the_command_that_mends_it(index, damage, through_chroma):
    DAMAGES[damage](index)
    with open_index(index, embedder=HashEmbeddings()) as opened:
        with pytest.raises(IndexFormatError, match=f"run `arag verify --index {index} --repair`"):
            opened.keyword_search("ship") if "keyword" in damage else opened.semantic_search("ship")
        assert opened.read("d1:0").chunks  # the rest serves on


def test_a_small_index_serves_on_without_chroma(index, sound):
    shutil.rmtree(chroma(index))
    assert contents(index) == contents(sound)


def test_a_search_that_lacks_vectors_names_the_command_that_mends_it(index):
    DAMAGES["chunks without vectors"](index)
    with (
        open_index(index, embedder=HashEmbeddings()) as opened,
        pytest.raises(IndexFormatError, match=f"run `arag verify --index {index} --repair`"),
    ):
        opened.semantic_search("ship")


@pytest.mark.parametrize("damage", ["no Chroma folder", "half of data_level0.bin", "no keyword file", "no manifest"])
def test_an_ingestion_mends_what_it_notices_and_embeds_nothing(index, sound, damage, tmp_path):
    DAMAGES[damage](index)
    summary = run_ingest(write_corpus(tmp_path / "corpus", DOCUMENTS), index, embedder=HashEmbeddings())
    assert (summary.written, summary.embedded) == (0, 0)
    assert verify(index) == ([], [])
    assert contents(index) == contents(sound)


def test_only_vectors_that_are_lost_are_embedded_again(index):
    run_sql(index, "DELETE FROM vectors WHERE number = 5")
    shutil.rmtree(chroma(index))
    embedder = HashEmbeddings()
    assert verify(index, repair=True, embedder=embedder)[1] == []
    assert len(embedder.embedded) == 3


@pytest.mark.parametrize("spoilt", ["gone", "cut", "no database"])
def test_a_lost_chunk_store_is_told(index, spoilt):
    file = index / "chunks.sqlite3"
    if spoilt == "gone":
        file.unlink()
    elif spoilt == "cut":
        cut(file, 0.0)
    else:
        file.write_bytes(b"no database" * 1000)
    for repair in (False, True):
        with pytest.raises(IndexFormatError, match="ingest them again"):
            verify(index, repair=repair)


def test_no_index_is_told(tmp_path):
    for care in (verify, compact, lambda folder: remove("a", folder)):
        with pytest.raises(IndexNotFoundError, match="no index in"):
            care(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_mending_is_finished_by_the_next(index, sound):
    DAMAGES["chunks without vectors"](index)
    with pytest.raises(Exception, match="went away"):
        verify(index, repair=True, embedder=HashEmbeddings(fail_after=0))
    assert verify(index, repair=True, embedder=HashEmbeddings())[1] == []
    assert contents(index) == contents(sound)


# --- removing ---


def files_holding(folder, *words):
    held = {}
    for file in folder.rglob("*"):
        if file.is_file():
            data = file.read_bytes().lower()
            held |= {word: file.name for word in words if word.encode() in data}
    return held


def test_removed_documents_are_in_no_search_and_after_compaction_in_no_file(arag, index):
    with open_index(index, embedder=HashEmbeddings()) as reader:
        assert reader.keyword_search("zyzzyva").total == 1
        assert remove(["secret", "d1"], index) == 2
        assert reader.keyword_search("zyzzyva").total == 0
        assert reader.keyword_search("zyzzyva").keywords[0].closest == ()
        assert all(hit.chunk_id != "secret:0" for hit in reader.semantic_search("the quixotic vault", 60).hits)
        assert reader.read("secret:0").unknown
        assert reader.document("secret") is None
        assert reader.info().documents == 59
    assert b"opens the quixotic" not in (index / "chunks.sqlite3").read_bytes()  # what `compact` reads
    before = open_index(index, embedder=HashEmbeddings()).info().bytes
    assert arag("compact", "-i", index)[0] == 0
    assert open_index(index, embedder=HashEmbeddings()).info().bytes < before
    assert files_holding(index, "zyzzyva", "quixotic", "marmoset", "ship1.") == {}
    assert files_holding(index, "ship7", "nobody")
    assert verify(index) == ([], [])
    with open_index(index, embedder=HashEmbeddings()) as reader:
        assert reader.info().documents == 59
        assert reader.keyword_search("nobody", 60).total == 59


@pytest.fixture
def half_removed(index):
    """An index from which a killed run was about to remove a document."""
    run_until("texts", remove, "secret", index)  # which is where it writes the next generation
    with open_index(index, embedder=HashEmbeddings()) as reader:
        assert reader.keyword_search("zyzzyva").total == 1
    return index


@pytest.mark.parametrize(
    "following",
    [
        lambda f, _: remove("secret", f) == 1,
        lambda f, _: remove("d1", f),
        lambda f, _: compact(f),
        lambda f, source: run_ingest(write_corpus(source, {"d1": DOCUMENTS["d1"]}), f, embedder=HashEmbeddings()),
    ],
    ids=["the same", "another", "compact", "ingest"],
)
def test_a_removal_that_was_killed_is_finished_by_the_next_run(half_removed, following, tmp_path):
    assert following(half_removed, tmp_path / "corpus")
    with open_index(half_removed, embedder=HashEmbeddings()) as reader:
        assert reader.keyword_search("zyzzyva").total == 0
        assert reader.document("secret") is None
    with pytest.raises(InputError, match="no document 'secret'"):
        remove("secret", half_removed)
    assert verify(half_removed) == ([], [])


def test_after_the_compaction_that_follows_a_killed_removal_no_file_holds_the_text(arag, half_removed):
    assert arag("compact", "-i", half_removed)[0] == 0
    assert files_holding(half_removed, "zyzzyva", "quixotic", "marmoset") == {}
    assert verify(half_removed) == ([], [])


# --- files that may not be written to ---


@pytest.fixture
def on_a_disk(tmp_path):
    """A function that copies an index to a disk that nobody may write to."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "none", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine mounts no disk for us")

    def copied(folder):
        shutil.copytree(folder, disk / "index")
        remount(disk, "ro")
        return disk / "index"

    yield copied
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def remount(disk, how):
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


def test_an_index_that_may_not_be_written_to_is_searched_and_looked_through(on_a_disk, sound, through_chroma):
    folder = on_a_disk(sound)
    assert contents(folder) == contents(sound)
    assert verify(folder) == ([], [])
    for write in (lambda: verify(folder, repair=True), lambda: remove("d1", folder), lambda: compact(folder)):
        with pytest.raises(StorageError, match="cannot be written to"):
            write()


@pytest.mark.parametrize("damage", ["Chroma lacks vectors", "documents do not know their chunks", "vectors cut off"])
def test_damage_is_found_where_it_cannot_be_mended(index, on_a_disk, damage):
    DAMAGES[damage](index)
    assert verify(on_a_disk(index))[0] == verify(index)[0] != []


def test_a_reader_who_may_not_write_sees_what_others_write_later(index, on_a_disk):
    folder = on_a_disk(index)
    with open_index(folder, embedder=HashEmbeddings()) as reader:
        assert reader.keyword_search("zyzzyva").total == 1
        remount(folder.parent, "rw")
        remove("secret", folder)
        assert reader.keyword_search("zyzzyva").total == 0
        assert reader.read("secret:0").unknown
        assert reader.info().documents == 60


def test_a_log_that_a_writer_left_is_told_to_who_may_not_read_it(index, on_a_disk):
    with closing(sqlite3.connect(index / "chunks.sqlite3")) as connection:
        connection.execute("UPDATE state SET value = value || ' '")
        connection.commit()
        left = (index / "chunks.sqlite3-wal").read_bytes()
    (index / "chunks.sqlite3-wal").write_bytes(left)
    folder = on_a_disk(index)
    for read in (lambda: open_index(folder, embedder=HashEmbeddings()), lambda: verify(folder)):
        with pytest.raises(StorageError, match=r"cannot be opened .*an interrupted writer left it unfinished"):
            read()


def test_an_unknown_document_is_named_and_nothing_removed(index):
    with pytest.raises(InputError, match=r"no document 'secrets'; similar ids: 'secret'.*Nothing was removed"):
        remove(["d1", "secrets"], index)
    with pytest.raises(InputError, match="no document id given"):
        remove([], index)
    with open_index(index, embedder=HashEmbeddings()) as reader:
        assert reader.info().documents == 61


def test_a_document_of_a_packed_chunk_is_removed_alone(arag, tmp_path):
    folder = tmp_path / "index"
    run_ingest(write_corpus(tmp_path / "corpus", DOCUMENTS), folder, embedder=HashEmbeddings(), pack=True)
    remove("d7", folder)
    assert arag("compact", "-i", folder)[0] == 0
    with open_index(folder, embedder=HashEmbeddings()) as reader:
        assert reader.keyword_search("ship7.").total == 0
        assert reader.keyword_search("ship8.").total == 1
    assert files_holding(folder, "ship7.") == {}


def test_removing_all_leaves_an_empty_index_that_can_be_used(index, tmp_path):
    remove(list(DOCUMENTS), index)
    before, after = compact(index)
    assert after < before
    assert verify(index) == ([], [])
    with open_index(index, embedder=HashEmbeddings()) as reader:
        assert reader.keyword_search("ship").total == 0
        assert reader.semantic_search("ship").hits == ()
        run_ingest(write_corpus(tmp_path / "corpus", DOCUMENTS), index, embedder=HashEmbeddings())
        assert reader.semantic_search("ship").hits


def test_many_removals_make_the_graph_anew(index):
    remove([f"d{n}" for n in range(10)], index)
    assert read_manifest(index).removed_vectors == 30
    remove([f"d{n}" for n in range(10, 30)], index)
    assert read_manifest(index).removed_vectors == 0
    assert verify(index) == ([], [])


# --- the command line ---


def test_the_commands(arag, index):
    assert arag("verify", "-i", index)[1].strip().startswith("No damage found in ")
    (index / "keywords.1").unlink()
    code, out, _ = arag("verify", "-i", index)
    assert code == 1
    assert "Damaged keywords.1: it is missing" in out
    code, out, err = arag("verify", "-i", index, "--repair")
    assert code == 0, err
    assert "Repaired keywords.1: it is missing" in out
    assert json.loads(arag("verify", "-i", index, "--json")[1]) == {"found": [], "left": []}
    assert "Documents removed: 1." in arag("remove", "secret", "-i", index)[1]
    assert arag("remove", "secret", "-i", index)[0] == 1
    assert "MB after" in arag("compact", "-i", index)[1]
    assert files_holding(index, "zyzzyva") == {}


def test_an_update_gives_back_what_the_last_one_left_free(tmp_path):
    corpus, folder = tmp_path / "corpus", tmp_path / "index"
    free = []
    for count in (20, 220, 221):  # documents
        write_corpus(corpus, {f"d{n}": f"Ship {n} sank in a gale off the cape. Nobody saw it." for n in range(count)})
        run_ingest(corpus, folder, embedder=HashEmbeddings())
        with closing(sqlite3.connect(chroma(folder) / "chroma.sqlite3")) as connection:
            free += connection.execute("PRAGMA freelist_count").fetchone()
    assert free[2] < free[1] / 4
