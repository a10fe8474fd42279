"""What stands in the way of an index in PostgreSQL: each gets an error that names the index and what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import urlsplit

import psycopg
import pytest

from arag import Scope, open_index
from arag.errors import ARAGError, IndexNotFoundError, StorageError
from arag.ingest.maintenance import remove
from arag.retrieval.postgres import connection
from selection import slow_except
from test_postgres_crash import (
    TextEmbeddings,
    assert_tables_are_whole,
    contents,
    corpus,
    ingest,
    new_place,
    served,
    uninterrupted,
)

pytestmark = pytest.mark.servers

DOCUMENTS = [{"id": f"d{n}", "text": f"The document w{n} has a line."} for n in range(4)]


def schema_of(place):
    return urlsplit(place).query.removeprefix("index=")


def server_url(place):
    return urlsplit(place)._replace(query="").geturl()


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


def test_a_schema_that_an_administrator_made_is_enough(database, postgres_server):
    url = postgres_server.create_role(database)
    made = f"CREATE SCHEMA given AUTHORIZATION {urlsplit(url).username}"
    postgres_server.execute(made, database=urlsplit(database).path[1:])
    place = f"{url}?index=given"
    ingest(DOCUMENTS, place)
    search_all(place)
    assert_tables_are_whole(place)


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
            ingest([{"id": "d1", "text": "Another text."}], place)
        with refused(place, StorageError, "takes no writes"):
            remove("d1", place)
    assert remove("d1", place) == 1


def test_a_search_may_take_too_long(place, postgres_server):
    with (
        setting(postgres_server, place, "statement_timeout", "'1ms'"),
        refused(place, StorageError, "raise statement_timeout"),
        open_index(place, embedder=TextEmbeddings()) as index,
    ):
        for _ in range(200):
            index.keyword_search(["document"] * 50)
    ingest([*DOCUMENTS, {"id": "d9", "text": "Writers have no time-out. " * 5_000}], place)
    assert_tables_are_whole(place)


@pytest.mark.parametrize("table", slow_except("lowered", "state", among=["documents", "chunks", "lowered", "state"]))
def test_a_disk_may_be_full(place, table):
    """A trigger raises the error that a full disk raises."""
    with psycopg.connect(server_url(place), autocommit=True) as connected:
        connected.execute(f"SET search_path TO {schema_of(place)}")
        connected.execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$"
        )
        connected.execute(f"CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON {table} EXECUTE FUNCTION full_disk()")
        with refused(place, StorageError, "no room left .*No space left"):
            ingest([{"id": "d1", "text": "Another text."}], place)
        search_all(place)
        connected.execute(f"DROP TRIGGER full_disk ON {table}")
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
    url = postgres_server.create_role(place, options="CONNECTION LIMIT 4")
    schema, name = schema_of(place), urlsplit(url).username
    for grant in (f"USAGE ON SCHEMA {schema}", f"SELECT ON ALL TABLES IN SCHEMA {schema}"):
        postgres_server.execute(f"GRANT {grant} TO {name}", database=urlsplit(place).path[1:])
    limited = f"{url}?{urlsplit(place).query}"
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


def test_the_extensions_must_be_there_or_be_allowed(postgres_server):
    with postgres_server.database(extensions=False) as database:
        name = urlsplit(database).path[1:]
        url = postgres_server.create_role(database)
        postgres_server.execute(f"CREATE SCHEMA words AUTHORIZATION {urlsplit(url).username}", database=name)
        place = f"{url}?index=words"
        postgres_server.execute("CREATE SCHEMA extensions", database=name)
        postgres_server.execute("GRANT USAGE ON SCHEMA extensions TO public", database=name)
        for extension in ("vector", "pg_trgm"):
            with refused(place, StorageError, f"CREATE EXTENSION {extension}"):
                ingest(DOCUMENTS, place)
            with pytest.raises(IndexNotFoundError):
                open_index(place)
            postgres_server.execute(f"CREATE EXTENSION {extension} SCHEMA extensions", database=name)
        ingest(DOCUMENTS, place)
        search_all(place)


def test_an_index_that_is_dropped_while_it_is_open_is_missed(place):
    with open_index(place, embedder=TextEmbeddings()) as index:
        with psycopg.connect(server_url(place)) as connected:
            connected.execute(f"DROP SCHEMA {schema_of(place)} CASCADE")
        with pytest.raises(IndexNotFoundError, match=schema_of(place)):
            index.keyword_search("document")
        ingest(DOCUMENTS, place)
        assert index.keyword_search("document").total == 4


def test_a_reader_goes_on_after_searches_that_failed(postgres, monkeypatch):
    monkeypatch.setattr(connection, "_POOL_TIMEOUT", 1.5)
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


def test_two_users_of_one_database_see_what_their_scopes_allow(tmp_path, shared_database):
    """Each as if there were nothing but the user's own documents."""
    texts = corpus(3)
    records = [{"id": name, "text": text, "user": f"u{len(text) % 2}"} for name, text in texts.items()]
    place = new_place(shared_database)
    ingest(records, place)
    with open_index(place, embedder=TextEmbeddings()) as shared:
        for user in ("u0", "u1"):
            own = [record for record in records if record["user"] == user]
            ingest(own, tmp_path / user)
            limited = shared.limited_to(Scope(where={"user": user}))
            with open_index(tmp_path / user, embedder=TextEmbeddings()) as alone:
                for index in (limited, alone):
                    assert [document.id for document in index.documents()] == sorted(r["id"] for r in own)
                for keywords in (["line 3", "w7"], ["edition"], ["begnis"]):
                    for by_coverage in (False, True):
                        assert limited.keyword_search(keywords, 9, by_coverage=by_coverage) == alone.keyword_search(
                            keywords, 9, by_coverage=by_coverage
                        )
                query = next(iter(texts.values())).partition(".")[0] + "."
                assert limited.semantic_search(query, 9) == alone.semantic_search(query, 9)
                assert limited.read(["d1:0", "d2:1"], 1) == alone.read(["d1:0", "d2:1"], 1)


ODD = ["'; DROP SCHEMA public CASCADE; --", "back\\slash", "100%", "?", "%s", "%(name)s", "{}", "\\x00", "$tag$", "ﬁ"]
UNSTORABLE = ["nul\0nul", "lone\ud800"]


def test_odd_texts_are_found_as_in_a_folder(tmp_path, shared_database):
    place = new_place(shared_database)
    documents = [
        {"id": f"{text} {n}", "title": text, "text": f"Before {text} and after {text}.", text: text}
        for n, text in enumerate(ODD)
    ]
    said = []
    for target in (tmp_path / "index", place):
        ingest(documents, target)
        assert remove(documents[1]["id"], target) == 1
        with open_index(target, embedder=TextEmbeddings()) as index:
            found = [[index.document(document["id"]) for document in documents]]
            for text in [*ODD, *UNSTORABLE]:
                found.append(index.keyword_search([text, "before"], 50, by_coverage=True))
                found.append([index.find_documents(text, 5), index.get(f"{text} 3:0"), index.read([f"{text} 3:0"], 1)])
            said.append(found)
    assert said[0] == said[1]
    assert_tables_are_whole(place)


@pytest.mark.parametrize("field", ["id", "title", "text", "value"])
@pytest.mark.parametrize("text", UNSTORABLE)
def test_documents_that_no_table_holds_end_as_in_a_folder(tmp_path, shared_database, field, text):
    record = {"id": "d", "title": "t", "text": "A text."} | ({"note": text} if field == "value" else {field: text})
    ends = []
    for target in (tmp_path / "index", new_place(shared_database)):
        try:
            summary = ingest([record, {"id": "other", "text": "Another."}], target)
            ends.append((summary.written, [str(p) for p in summary.problems], served(str(target))))
        except ARAGError as error:
            ends.append((type(error), str(error).replace(str(target), "")))
    assert ends[0] == ends[1]
