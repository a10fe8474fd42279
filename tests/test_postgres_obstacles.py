"""What stands in the way of an index in PostgreSQL: each gets an error that names the index and what to do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import quote, urlsplit

import psycopg
import pytest

from arag.errors import ARAGError, IndexFormatError, IndexNotFoundError, InputError, StorageError
from arag.ingest.maintenance import compact, remove
from arag.retrieval.index import open_index
from arag.retrieval.postgres import connections
from selection import slow_except
from test_crash import TextEmbeddings, write
from test_postgres_crash import (
    assert_tables_are_whole,
    contents,
    ingest,
    new_place,
    served,
    small_corpus,
    uninterrupted,
)

DOCUMENTS = [{"id": f"d{n}", "text": f"The document w{n} has a line."} for n in range(4)]


def schema_of(place):
    return urlsplit(place).query.removeprefix("index=")


def server_url(place):
    return urlsplit(place)._replace(query="").geturl()


def place_of(url, place):
    """Return an index's URL with another user's login."""
    return f"{url}?{urlsplit(place).query}"


@contextmanager
def refused(place, kind, match):
    """Expect an error that names the index, and no password."""
    with pytest.raises(kind, match=match) as caught:
        yield
    url = urlsplit(place)
    assert schema_of(place) in str(caught.value)
    error = caught.value
    while error is not None:
        assert url.password not in f"{error} {error!r}"
        error = error.__cause__
    assert type(caught.value) is kind


@pytest.fixture
def place(shared_database):
    """The URL of an index with four documents."""
    place = new_place(shared_database)
    ingest(DOCUMENTS, place)
    return place


def search_all(place):
    with open_index(place, embedder=TextEmbeddings()) as index:
        assert index.keyword_search("document").total == 4
        assert index.keyword_search("documemt").keywords[0].closest[0].text == "document"
        assert len(index.semantic_search("The document w2 has a line.", 2).hits) == 2
        assert index.read(["d1:0"]).chunks
        assert index.info().documents == 4


def test_a_role_that_may_only_read_searches_and_is_told_what_it_may_not_do(place, postgres_server):
    schema = schema_of(place)
    url = postgres_server.create_role(place, password="p:@/ %'s")
    reader = place_of(url, place)
    with refused(reader, StorageError, "USAGE ON SCHEMA"):
        open_index(reader, embedder=TextEmbeddings())
    name = urlsplit(url).username
    execute = postgres_server.execute
    database = urlsplit(place).path[1:]
    execute(f"GRANT USAGE ON SCHEMA {schema} TO {name}", database=database)
    with refused(reader, StorageError, "permission denied for table state"):
        open_index(reader, embedder=TextEmbeddings())
    execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {name}", database=database)
    search_all(reader)
    for change in (
        lambda: ingest(DOCUMENTS, reader),
        lambda: remove("d1", reader),
        lambda: compact(reader),
        lambda: ingest(DOCUMENTS, f"{url}?index=not_there"),
    ):
        with pytest.raises(StorageError, match=r"permission denied for (table workers|database)") as caught:
            change()
        assert "p:@" not in str(caught.value)
        assert "p%3A" not in str(caught.value)
    assert served(place) == {d["id"]: d["text"] for d in DOCUMENTS}


def test_a_schema_that_an_administrator_made_is_enough(database, postgres_server):
    url = postgres_server.create_role(database)
    postgres_server.execute(
        f"CREATE SCHEMA given AUTHORIZATION {urlsplit(url).username}", database=urlsplit(database).path[1:]
    )
    place = f"{url}?index=given"
    ingest(DOCUMENTS, place)
    search_all(place)
    assert_tables_are_whole(place)


@pytest.mark.parametrize("setting", slow_except("'serializable'", among=["'repeatable read'", "'serializable'"]))
def test_a_role_may_have_another_isolation_level(database, postgres_server, tmp_path, setting):
    postgres_server.execute(
        f"ALTER DATABASE {urlsplit(database).path[1:]} SET default_transaction_isolation = {setting}"
    )
    place = f"{database}?index=isolated"
    for version in (1, 2):
        write(tmp_path, small_corpus(version))
        ingest(tmp_path, place, prune=True)
    assert_tables_are_whole(place)
    assert contents(place) == uninterrupted(tmp_path)


@contextmanager
def setting(postgres_server, place, name, value):
    database = urlsplit(place).path[1:]
    postgres_server.execute(f"ALTER DATABASE {database} SET {name} = {value}")
    try:
        yield
    finally:
        postgres_server.execute(f"ALTER DATABASE {database} RESET {name}")


def test_a_server_that_takes_no_writes_is_searched(place, postgres_server):
    with setting(postgres_server, place, "default_transaction_read_only", "on"):
        search_all(place)
        with refused(place, StorageError, "takes no writes .*standby"):
            ingest(DOCUMENTS[:2], place)
        with refused(place, StorageError, "takes no writes"):
            remove("d1", place)
    assert remove("d1", place) == 1


def test_a_statement_may_take_too_long(place, postgres_server):
    with (
        setting(postgres_server, place, "statement_timeout", "'1ms'"),
        refused(place, StorageError, "raise statement_timeout"),
    ):
        for version in range(20):
            ingest([{"id": "d1", "text": f"{version} " * 30_000}], place)
    ingest(DOCUMENTS, place)
    assert_tables_are_whole(place)
    search_all(place)


def test_a_transaction_may_be_idle_for_too_long(place, postgres_server, monkeypatch):
    from arag.retrieval.postgres.draft import DraftChunks

    insert = DraftChunks._insert_texts

    def slowly(self, texts):
        self._session.query("SELECT 1")
        connections.threading.Event().wait(0.3)
        insert(self, texts)

    monkeypatch.setattr(DraftChunks, "_insert_texts", slowly)
    with (
        setting(postgres_server, place, "idle_in_transaction_session_timeout", "'50ms'"),
        refused(place, StorageError, "cannot be used .*idle-in-transaction timeout"),
    ):
        ingest([{"id": "d1", "text": "Another text."}], place)
    monkeypatch.undo()
    ingest(DOCUMENTS, place)
    assert_tables_are_whole(place)
    search_all(place)


@pytest.mark.parametrize(
    "table", slow_except("contents", "state", among=["documents", "chunks", "contents", "vectors", "lowered", "state"])
)
def test_a_disk_may_be_full(place, table):
    """A trigger raises the error that a full disk raises."""
    with psycopg.connect(server_url(place), autocommit=True) as connection:
        connection.execute(f"SET search_path TO {schema_of(place)}")
        connection.execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$"
        )
        connection.execute(f"CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON {table} EXECUTE FUNCTION full_disk()")
        with refused(place, StorageError, "no room left .*No space left"):
            ingest([{"id": "d1", "text": "Another text."}], place)
        search_all(place)
        connection.execute(f"DROP TRIGGER full_disk ON {table}")
        connection.execute("DROP FUNCTION full_disk")
    ingest(DOCUMENTS, place)
    assert_tables_are_whole(place)
    search_all(place)


@contextmanager
def small_disk(server):
    """Mount a small file system with a tablespace, and yield its folder and the URL of a database there."""
    folder = Path(mkdtemp())
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], check=False)
    if mounted.returncode:
        folder.rmdir()
        pytest.skip("no file system may be mounted here")
    try:
        owner = (server.log.parent / "data").stat()
        os.chown(folder, owner.st_uid, owner.st_gid)
        server.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
        server.execute("CREATE DATABASE small OWNER owner TEMPLATE prepared TABLESPACE small STRATEGY file_copy")
        try:
            yield folder, server.url("small", "owner")
        finally:
            server.execute("DROP DATABASE small WITH (FORCE)")
            server.execute("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", folder], check=True)
        folder.rmdir()


@pytest.mark.slow
@pytest.mark.parametrize("free", [0, 50_000, 200_000, 500_000, 1_000_000])
def test_a_disk_is_full(postgres_server, free):
    """Of a disk, so many bytes are left when a run begins."""
    documents = [
        {"id": f"d{n}", "text": f"The document w{n} has {' '.join(f'a{n}b{i}' for i in range(200))}."}
        for n in range(80)
    ]
    with small_disk(postgres_server) as (disk, url):
        place = f"{url}?index=full"
        ingest(documents[:4], place)
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(max(0, shutil.disk_usage(disk).free - free)))
        with refused(place, StorageError, "no room left .*No space left"):
            ingest(documents, place)
        search_all(place)
        ballast.unlink()
        ingest(documents, place)
        assert_tables_are_whole(place)
        assert contents(place) == uninterrupted(documents)


def test_a_server_may_have_no_connection_left(place, postgres_server):
    url = postgres_server.create_role(place, options="CONNECTION LIMIT 6")
    schema = schema_of(place)
    name = urlsplit(url).username
    for grant in (f"USAGE ON SCHEMA {schema}", f"SELECT ON ALL TABLES IN SCHEMA {schema}"):
        postgres_server.execute(f"GRANT {grant} TO {name}", database=urlsplit(place).path[1:])
    limited = place_of(url, place)
    search_all(limited)
    with ExitStack() as others:
        with suppress(psycopg.OperationalError):
            while True:
                others.enter_context(psycopg.connect(url))
        with refused(limited, StorageError, "too many connections for role"):
            open_index(limited, embedder=TextEmbeddings())


def test_a_database_must_be_in_utf8(postgres_server):
    postgres_server.execute(
        "CREATE DATABASE latin OWNER owner TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'"
    )
    try:
        place = f"{postgres_server.url('latin', 'owner')}?index=latin"
        for use in (lambda: ingest(DOCUMENTS, place), lambda: open_index(place)):
            with refused(place, StorageError, "ENCODING 'UTF8'"):
                use()
    finally:
        postgres_server.execute("DROP DATABASE latin WITH (FORCE)")


def test_the_extension_must_be_there_or_be_allowed(postgres_server):
    with postgres_server.database(extensions=False) as database:
        name = urlsplit(database).path[1:]
        url = postgres_server.create_role(database)
        postgres_server.execute(f"CREATE SCHEMA words AUTHORIZATION {urlsplit(url).username}", database=name)
        place = f"{url}?index=words"
        with refused(place, StorageError, "CREATE EXTENSION pg_trgm"):
            ingest(DOCUMENTS, place)
        with pytest.raises(IndexNotFoundError):
            open_index(place)
        postgres_server.execute("CREATE SCHEMA extensions", database=name)
        postgres_server.execute("GRANT USAGE ON SCHEMA extensions TO public", database=name)
        postgres_server.execute("CREATE EXTENSION pg_trgm SCHEMA extensions", database=name)
        ingest(DOCUMENTS, place)
        search_all(place)


def test_an_index_of_a_newer_version_is_refused(place):
    with psycopg.connect(server_url(place)) as connection:
        state = f"{schema_of(place)}.state"
        ((text,),) = connection.execute(f"SELECT value FROM {state} WHERE name = 'manifest'").fetchall()
        newer = json.dumps(json.loads(text) | {"format_version": 99, "more": 1})
        connection.execute(f"UPDATE {state} SET value = %s WHERE name = 'manifest'", [newer])
    for use in (
        lambda: open_index(place),
        lambda: ingest(DOCUMENTS[:1], place),
        lambda: remove("d1", place),
        lambda: compact(place),
    ):
        with refused(place, IndexFormatError, "has format version 99; .* install a newer one"):
            use()


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"generation": 1}', "[" * 5_000])
def test_a_damaged_manifest_is_told(place, text):
    with psycopg.connect(server_url(place)) as connection:
        connection.execute(f"UPDATE {schema_of(place)}.state SET value = %s WHERE name = 'manifest'", [text])
    for use in (lambda: open_index(place), lambda: ingest(DOCUMENTS[:1], place)):
        with pytest.raises(IndexFormatError, match="manifest"):
            use()


def test_a_schema_of_something_else_is_left_alone(shared_database):
    place = new_place(shared_database)
    with psycopg.connect(server_url(place)) as connection:
        connection.execute(f"CREATE SCHEMA {schema_of(place)} CREATE TABLE orders (n int)")
    with refused(place, InputError, r"holds other tables \(orders\): name another one"):
        ingest(DOCUMENTS, place)
    with refused(place, IndexNotFoundError, "no index in"):
        open_index(place)
    with psycopg.connect(server_url(place)) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema_of(place)])
        assert tables.fetchall() == [("orders",)]


def test_an_index_that_is_dropped_while_it_is_open_is_missed(place):
    with open_index(place, embedder=TextEmbeddings()) as index:
        with psycopg.connect(server_url(place)) as connection:
            connection.execute(f"DROP SCHEMA {schema_of(place)} CASCADE")
        with pytest.raises(ARAGError, match=schema_of(place)):
            index.keyword_search("document")
        ingest(DOCUMENTS, place)
        assert index.keyword_search("document").total == 4


def test_a_reader_goes_on_after_searches_that_failed(postgres, monkeypatch):
    monkeypatch.setattr(connections, "_POOL_TIMEOUT", 1.5)
    with postgres.database() as database:
        place = f"{database}?index=gone"
        ingest(DOCUMENTS, place)
        with open_index(place, embedder=TextEmbeddings()) as index:
            assert index.keyword_search("document").total == 4
            postgres.kill()
            for _ in range(2):
                with refused(place, StorageError, "no connection was free|cannot be used"):
                    index.keyword_search("document")
            with refused(place, StorageError, "refused"):
                open_index(place)
            postgres.start()
            assert index.keyword_search("document").total == 4


# --- texts that mean something in SQL ---

ODD = [
    "'; DROP SCHEMA public CASCADE; --",
    'a"b',
    "back\\slash",
    "100%",
    "under_score",
    "?",
    "%s",
    "%(name)s",
    "$1",
    "{}",
    "{0}",
    "{column}",
    "\\x00",
    "$$",
    "$tag$",
    "E'\\''",
    "ünï_çødé%",
    "漢字%_",
    "x" * 3_000,
    "tab\tand\nline",
    "\u2028",
    "İI",
    "ﬁ",
    "\u0301a",
]
ODDER = ["nul\0nul", "lone\ud800", "\udfff", "\0"]


def odd_documents():
    for n, text in enumerate(ODD):
        yield {"id": f"{text[:300]} {n}", "title": text, "text": f"Before {text} and after {text}.", text[:50]: text}


def everything_odd(place):
    """Search for odd texts in every way."""
    found = []
    with open_index(place, embedder=TextEmbeddings()) as index:
        ids = [record.id for record in index.documents()]
        found.append(ids)
        found += [index.document(i).metadata for i in ids]
        for text in [*ODD, *ODDER]:
            for options in ({}, {"by_coverage": True}, {"within": [*ids[:7], text]}):
                found.append(index.keyword_search([text, "before"], 50, **options) if text.strip() else None)
            found.append(index.find_documents(text, 5))
            found.append([index.document(text), index.get(f"{text}:0")])
            results = index.read([f"{text}:0", f"{text} 3:0", text], adjacent=1)
            found.append((results.chunks, [(u.chunk_id, u.closest) for u in results.unknown]))
            hits = index.semantic_search(f"{text} and", 3).hits if not re.search("[\ud800-\udfff]", text) else ()
            found.append([(hit.chunk_id, round(hit.score, 5)) for hit in hits])
    return found


def test_odd_texts_are_found_as_in_a_folder(tmp_path, shared_database):
    place = new_place(shared_database)
    documents = list(odd_documents())
    for target in (tmp_path / "index", place):
        ingest(documents, target)
    assert everything_odd(place) == everything_odd(tmp_path / "index")
    assert_tables_are_whole(place)
    for target in (tmp_path / "index", place):
        assert remove([documents[0]["id"], documents[5]["id"]], target) == 2
        for text in ODDER:
            with pytest.raises(InputError):
                remove(text, target)
    assert everything_odd(place) == everything_odd(tmp_path / "index")


@pytest.mark.parametrize("field", slow_except("id", "value", among=["id", "title", "text", "key", "value"]))
@pytest.mark.parametrize("text", ODDER)
def test_documents_that_no_table_holds_end_as_in_a_folder(tmp_path, shared_database, field, text):
    record = {"id": "d", "title": "t", "text": "A text."}
    record |= {"key": {text: 1}, "value": {"note": text}}.get(field, {field: f"a{text}"})
    place = new_place(shared_database)
    ends = []
    for target in (tmp_path / "index", place):
        try:
            summary = ingest([record, {"id": "other", "text": "Another."}], target)
            ends.append((summary.written, [str(p) for p in summary.problems], contents(target)))
        except ARAGError as error:
            ends.append((type(error), str(error).replace(str(target), "")))
    assert ends[0] == ends[1]


NAMES = ["a b", 'q"q', "o'o", "semi;--", "per%cent", "UPPER", "ä", "{}", "%s", "$1", "\\"]


@pytest.mark.parametrize("name", slow_except('q"q', "per%cent", "\\", among=NAMES))
def test_any_name_is_a_schema(shared_database, name):
    place = f"{shared_database}?index={quote(name, safe='')}"
    ingest(DOCUMENTS, place)
    search_all(place)
    assert remove("d1", place) == 1
    compact(place)
    with psycopg.connect(server_url(place)) as connection:
        held = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = %s", [name]).fetchone()
    assert held[0] >= 10
