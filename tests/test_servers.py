"""The servers that tests run against: PostgreSQL, Chroma, and a proxy that loses connections."""

from __future__ import annotations

import time
from itertools import count
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from loopback_proxy import proxy_http, proxy_postgres


@pytest.fixture
def table(database):
    """The URL of a database with an empty table `notes`."""
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE notes (note text)")
    return database


def _notes(url):
    with psycopg.connect(url) as connection:
        return [note for (note,) in connection.execute("SELECT note FROM notes ORDER BY note")]


def _write(url):
    """Write three notes in one transaction, and one in another."""
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO notes VALUES ('a')")
        connection.execute("INSERT INTO notes VALUES (%s)", ["b"])
        with connection.cursor().copy("COPY notes FROM STDIN") as copy:
            copy.write_row(["c"])
        connection.commit()
        connection.execute("INSERT INTO notes VALUES (%s)", ["d"])


def _write_in_pipeline(url):
    """Write notes in one transaction, and read what the last statement returns before the pipeline ends."""
    with psycopg.connect(url) as connection, connection.pipeline():
        for note in "abc":
            cursor = connection.execute("INSERT INTO notes VALUES (%s) RETURNING note", [note])
        return cursor.fetchone()


def test_a_database_is_empty_and_has_the_extensions(database, postgres_server):
    with psycopg.connect(database) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
        distance = connection.execute(
            "SELECT '[1,2]'::vector <-> '[1,4]'::vector, similarity('word', 'words')"
        ).fetchone()
        superuser = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
    assert (tables, distance[0], superuser) == ((0,), 2.0, (False,))
    assert 0 < distance[1] < 1


def test_extensions_can_be_created_where_there_are_none(postgres_server):
    with postgres_server.database(extensions=False) as url:
        name = urlsplit(url).path[1:]
        with psycopg.connect(postgres_server.url(name)) as connection:
            connection.execute("CREATE EXTENSION vector")
            connection.execute("CREATE EXTENSION pg_trgm")
            extensions = connection.execute("SELECT extname FROM pg_extension").fetchall()
    assert {"vector", "pg_trgm"} < {extension for (extension,) in extensions}


def test_a_wrong_password_is_refused(postgres_server):
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres_server.url(password="wrong"))


def test_a_role_may_do_what_it_is_granted(table, postgres_server):
    reader = postgres_server.create_role(table, "SELECT ON notes", password="p:@/ %'s")
    assert _notes(reader) == []
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        _write(reader)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_server_that_starts_again_has_what_was_committed(table, postgres, end):
    postgres.restart({"fsync": "on"})
    with psycopg.connect(table) as connection:
        connection.execute("INSERT INTO notes VALUES ('committed')")
        connection.commit()
        connection.execute("INSERT INTO notes VALUES ('not committed')")
        getattr(postgres, end)()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(table)
    postgres.start()
    assert _notes(table) == ["committed"]
    assert postgres.execute("SHOW fsync") == [("on",)]


def test_a_server_runs_again_with_its_usual_settings_after_a_test(postgres_server):
    assert postgres_server.execute("SHOW fsync") == [("off",)]


@pytest.mark.parametrize("after", [False, True])
def test_a_connection_is_cut_at_each_statement(table, postgres_server, after):
    left = []
    with proxy_postgres(postgres_server.port) as proxy:
        for n in count(1):
            proxy.cut_at(n, after=after)
            try:
                _write(proxy.url(table))
            except psycopg.OperationalError:
                assert proxy.was_cut
            else:
                assert not proxy.was_cut
                break
            left.append("".join(_notes(table)))
            with psycopg.connect(table) as connection:
                connection.execute("TRUNCATE notes")
    statements = ["BEGIN", "INSERT INTO notes VALUES ('a')", "INSERT INTO notes VALUES ($1)", "COPY notes FROM STDIN"]
    statements += ["COPY data", "COPY end", "COMMIT", "BEGIN", "INSERT INTO notes VALUES ($1)", "COMMIT"]
    assert proxy.statements[-10:] == statements
    assert left == ([""] * 6 + ["abc"] * 3 + ["abcd"] if after else [""] * 7 + ["abc"] * 3)


def test_a_connection_is_cut_where_a_statement_contains_a_text(table, postgres_server):
    with proxy_postgres(postgres_server.port) as proxy:
        proxy.cut_at(2, containing="COMMIT", after=True, refuse=True)
        with pytest.raises(psycopg.OperationalError):
            _write(proxy.url(table))
        assert len(proxy.statements) == 10
        with pytest.raises(psycopg.OperationalError, match="refused"):
            psycopg.connect(proxy.url(table))
        proxy.accept()
        assert _notes(proxy.url(table)) == ["a", "b", "c", "d"]
        assert proxy.connections == 2


@pytest.mark.parametrize("after", [False, True])
def test_a_pipeline_is_cut(table, postgres_server, after):
    with proxy_postgres(postgres_server.port) as proxy:
        proxy.cut_at(3, containing="INSERT", after=after)
        with pytest.raises(psycopg.OperationalError):
            _write_in_pipeline(proxy.url(table))
        assert proxy.was_cut
        proxy.cut_at(2, containing="INSERT", after=after)
        with pytest.raises(psycopg.OperationalError), psycopg.connect(proxy.url(table), autocommit=True) as connection:
            connection.cursor().executemany("INSERT INTO notes VALUES (%s)", [["d"], ["e"]])
        assert proxy.was_cut
    assert _notes(table) == (["d", "e"] if after else [])


def test_all_connections_are_cut(table, postgres_server):
    with proxy_postgres(postgres_server.port) as proxy:
        one, other = psycopg.connect(proxy.url(table)), psycopg.connect(proxy.url(table))
        one.execute("INSERT INTO notes VALUES ('lost')")
        proxy.cut()
        for connection in (one, other):
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
    assert _notes(table) == []


def test_statements_wait(table, postgres_server):
    with (
        proxy_postgres(postgres_server.port) as proxy,
        psycopg.connect(proxy.url(table), autocommit=True) as connection,
    ):
        proxy.delay = 0.2
        began = time.monotonic()
        connection.execute("SELECT 1")
        assert time.monotonic() - began >= 0.2


def test_chroma_has_what_it_stored_after_a_kill(chroma):
    databases = f"{chroma.url}/api/v2/tenants/default_tenant/databases"
    assert httpx.get(f"{chroma.url}/api/v2/heartbeat").json()
    assert httpx.post(databases, json={"name": "kept"}).status_code == 200
    chroma.kill()
    with pytest.raises(httpx.ConnectError):
        httpx.get(databases)
    chroma.start()
    assert httpx.get(f"{databases}/kept").json()["name"] == "kept"


@pytest.mark.parametrize("after", [False, True])
def test_a_request_is_cut(chroma, after):
    databases = f"{chroma.url}/api/v2/tenants/default_tenant/databases"
    name = f"cut_{after}"
    with proxy_http(urlsplit(chroma.url).port) as proxy, httpx.Client() as client:
        proxy.cut_at(1, containing="POST", after=after)
        assert client.get(proxy.url(databases)).status_code == 200
        with pytest.raises(httpx.TransportError):
            client.post(proxy.url(databases), json={"name": name})
        assert [statement.split()[0] for statement in proxy.statements] == ["GET", "POST"]
    assert httpx.get(f"{databases}/{name}").status_code == (200 if after else 404)
