"""Chunk stores that others made, or that were hardly begun."""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from arag.errors import DamagedFileError, IndexFormatError, IndexNotFoundError, StorageError
from arag.ingest.maintenance import remove, verify
from arag.ingest.pipeline import ingest, run_ingest
from arag.retrieval.index import open_index
from arag.retrieval.tables.rows import FOR_EVER
from fakes import HashEmbeddings, write_corpus, write_index

RECORDS = [
    {"id": f"d{n}", "title": f"The Ship {n}", "text": f"Ship{n} was built. Nobody sailed it.", "year": 1500 + n}
    for n in range(9)
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return write_index(tmp_path_factory.mktemp("sound"), RECORDS)


@pytest.fixture
def index(sound, tmp_path):
    shutil.copytree(sound, tmp_path / "index")
    return tmp_path / "index"


def run_sql(folder, script):
    with closing(sqlite3.connect(folder / "chunks.sqlite3", isolation_level=None)) as connection:
        connection.executescript(script)


def contents(folder):
    with open_index(folder, embedder=HashEmbeddings()) as opened:
        chunks = {i: opened.get(i) for i in opened.chunk_ids()}
        documents = [opened.document(record["id"]) for record in RECORDS]
        return chunks, documents, opened.keyword_search("nobody", 20), opened.semantic_search("ship7 was built", 20)


# --- files that others made ---

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"
HOSTILE = {
    "an endless view": "CREATE VIEW more AS SELECT 1",
    "an endless view in place of a table": f"""
        DROP TABLE documents;
        CREATE VIEW documents AS {ENDLESS} i AS number, '' AS id, '' AS title, '' AS source, '{{}}' AS metadata,
        '' AS fingerprint, 1 AS chunks, 0 AS checksum, 0 AS added, {FOR_EVER} AS removed FROM n""",
    "a trigger": "CREATE TRIGGER gone AFTER INSERT ON chunks BEGIN DELETE FROM documents; END",
    "a generated column": "ALTER TABLE state ADD COLUMN more TEXT AS (hex(zeroblob(99999999)))",
    "another table of that name": "DROP TABLE members; CREATE TABLE members (document_id TEXT, number INTEGER)",
    "no table": "DROP TABLE chunks",
    "a table too many": "CREATE TABLE more (number INTEGER)",
    "an index on an expression": "CREATE INDEX slow ON chunks (hex(zeroblob(99)))",
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_tables_that_are_not_ours_are_refused_before_anything_is_read(index, hostile, tmp_path):
    run_sql(index, HOSTILE[hostile])
    for use in (
        lambda: open_index(index, embedder=HashEmbeddings()),
        lambda: remove("d1", index),
        lambda: run_ingest(tmp_path, index, embedder=HashEmbeddings()),
    ):
        write_corpus(tmp_path, RECORDS)
        with pytest.raises(DamagedFileError, match="its tables are not those of an index"):
            use()
    assert any("its tables are not" in damage.what for damage in verify(index)[0])
    left = verify(index, repair=True, embedder=HashEmbeddings())[1]
    assert not any(damage.repairable for damage in left)
    run_ingest(write_corpus(tmp_path / "corpus", RECORDS), index, embedder=HashEmbeddings())
    assert verify(index) == ([], [])


SPECIAL = {
    "a pipe": os.mkfifo,
    "a folder": lambda file: file.mkdir(),
    "a device": lambda file: file.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
def test_what_is_not_a_file_is_refused(index, special, ending, tmp_path):
    file = index / f"chunks.sqlite3{ending}"
    file.unlink(missing_ok=True)
    SPECIAL[special](file)
    write_corpus(tmp_path / "corpus", RECORDS)
    for use in (
        lambda: open_index(index, embedder=HashEmbeddings()),
        lambda: verify(index),
        lambda: verify(index, repair=True),
        lambda: run_ingest(tmp_path / "corpus", index, embedder=HashEmbeddings()),
    ):
        with pytest.raises(IndexFormatError, match=r"is not a file|an index has no chunks\.sqlite3-journal"):
            use()


def test_a_log_that_is_a_link_is_not_written_through(index, tmp_path):
    (tmp_path / "precious").write_text("Keep this.")
    (index / "chunks.sqlite3-wal").symlink_to(tmp_path / "precious")
    with pytest.raises(DamagedFileError, match=r"chunks\.sqlite3-wal is damaged"):
        remove("d1", index)
    assert (tmp_path / "precious").read_text() == "Keep this."


def test_an_error_of_sqlite_that_quotes_damaged_bytes_is_ours(index):
    file = index / "chunks.sqlite3"
    file.write_bytes(
        file.read_bytes().replace(b"CREATE TABLE documents (", b"CREATE TABLE \xff\xfe\xfd\xfc\xfb\xfants (")
    )
    with pytest.raises(DamagedFileError):
        open_index(index, embedder=HashEmbeddings())
    assert any(damage.repairable for damage in verify(index)[0])


# --- fields that were not checked ---

FIELDS = {
    "an entry without chunks": "INSERT INTO documents SELECT 99, 'ghost', title, source, metadata, fingerprint, 1, "
    f"checksum, 0, {FOR_EVER} FROM documents WHERE id = 'd5'",
    "metadata": """UPDATE documents SET metadata = '{"year": 1}' WHERE id = 'd5'""",
    "the source": "UPDATE documents SET source = 'elsewhere' WHERE id = 'd5'",
    "a title's case": "UPDATE documents SET title = lower(title) WHERE id = 'd5'",
    "a title that is no text": "UPDATE documents SET title = CAST(title AS BLOB) WHERE id = 'd5'",
    "a document's id": "UPDATE documents SET id = 'e5' WHERE id = 'd5'",
    "tokens": "UPDATE chunks SET tokens = tokens + 1 WHERE id = 'd5:0'",
    "pages": "UPDATE chunks SET first_page = 1, last_page = 2 WHERE id = 'd5:0'",
    "an ordinal": "UPDATE chunks SET ordinal = 1 WHERE id = 'd5:0'",
    "a chunk's id": "UPDATE chunks SET id = 'd5:1' WHERE id = 'd5:0'",
    "a chunk's document": "UPDATE chunks SET document_id = 'e5' WHERE id = 'd5:0'",
    "a removal": "UPDATE chunks SET removed = 1 WHERE id = 'd5:0'",
}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_that_changed_is_found_and_the_document_named(index, sound, field, tmp_path):
    run_sql(index, FIELDS[field])
    assert verify(index)[0]
    left = verify(index, repair=True, embedder=HashEmbeddings())[1]
    if field == "an entry without chunks":
        assert left == []
    else:
        assert [damage.what for damage in left] == ["ingest again the documents that have lost a part (1): 'd5'"]
    corpus = sound.parent / "corpus"
    assert run_ingest(corpus, index, embedder=HashEmbeddings()).written == len(left)
    assert verify(index) == ([], [])
    assert contents(index) == contents(sound)


def test_a_lost_chunk_of_several_is_noticed(tmp_path):
    corpus = write_corpus(tmp_path / "corpus", {"long": "A sentence of the long text. " * 100})
    run_ingest(corpus, tmp_path / "index", embedder=HashEmbeddings(), chunk_tokens=60)
    last = "(SELECT max(number) FROM chunks)"
    run_sql(tmp_path / "index", "".join(f"DELETE FROM {t} WHERE number = {last};" for t in ("members", "contents")))
    run_sql(tmp_path / "index", f"DELETE FROM vectors WHERE number = {last}; DELETE FROM chunks WHERE number = {last}")
    assert any("incomplete or changed documents (1): 'long'" in damage.what for damage in verify(tmp_path / "index")[0])


def test_a_document_whose_source_moved_stays_sound(index, tmp_path):
    run_ingest(write_corpus(tmp_path / "moved", RECORDS), index, embedder=HashEmbeddings())
    assert verify(index) == ([], [])
    with open_index(index, embedder=HashEmbeddings()) as opened:
        assert str(tmp_path / "moved") in opened.document("d5").source


# --- indexes that were hardly begun ---


def test_a_first_ingestion_that_was_interrupted_is_told_and_finished_by_the_next(tmp_path, sound, monkeypatch):
    index, corpus = tmp_path / "index", sound.parent / "corpus"
    with monkeypatch.context() as patched:
        patched.setattr("arag.retrieval.local.draft.LocalDraft._write_next", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_ingest(corpus, index, embedder=HashEmbeddings())
    (damage,), left = verify(index)
    assert "run the same `arag ingest` again" in damage.what
    assert left == verify(index, repair=True)[1] == [damage]
    assert ingest(corpus, index, embedder=HashEmbeddings()).info().documents == 9


@pytest.mark.parametrize("command", [("search", "keyword"), ("search", "semantic"), ("ask",), ("read",)])
def test_an_index_without_documents_yet_is_told(tmp_path, sound, arag, command):
    index, corpus = tmp_path / "index", sound.parent / "corpus"
    with pytest.raises(Exception, match="went away"):
        run_ingest(corpus, index, embedder=HashEmbeddings(fail_after=1))
    with pytest.raises(IndexNotFoundError, match="holds no documents yet: run `arag ingest"):
        open_index(index, embedder=HashEmbeddings())
    code, _, err = arag(*command, "ship", "--index", index)
    assert (code, "holds no documents yet" in err) == (1, True)
    run_ingest(corpus, index, embedder=HashEmbeddings())
    assert contents(index) == contents(sound)


def test_errors_of_the_disk_while_searching_are_ours(index, monkeypatch):
    with open_index(index, embedder=HashEmbeddings()) as opened:
        real = opened._reader._chunks._opened.connection

        class Failing:
            def execute(self, *_):
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR
                raise error

        monkeypatch.setattr(opened._reader._chunks._opened, "connection", Failing())
        with pytest.raises(StorageError, match="disk I/O error"):
            opened.read("d1:0")
        monkeypatch.setattr(opened._reader._chunks._opened, "connection", real)
