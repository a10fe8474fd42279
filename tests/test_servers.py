"""What the tests of PostgreSQL run against: a server, and a proxy that loses connections."""

from __future__ import annotations

from itertools import count

import psycopg
import pytest

from loopback_proxy import proxy_postgres

pytestmark = pytest.mark.servers


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
