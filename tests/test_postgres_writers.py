"""Whatever ends a process that writes to an index in PostgreSQL, nothing is lost; others write and read meanwhile."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import ExitStack, suppress
from itertools import count
from urllib.parse import urlsplit

import psycopg
import pytest

from arag import open_index
from arag.errors import StorageError
from arag.ingest.maintenance import remove
from arag.retrieval.storage.locations import using_store
from postgres_server import run_sql
from stores import read_all
from versions import (
    Run,
    TextEmbeddings,
    assert_like_uninterrupted,
    corpus,
    ingest,
    served,
    write,
)

pytestmark = pytest.mark.servers


@pytest.fixture
def place(places):
    """The URL of an index that does not exist yet."""
    return places("postgres", None)


def assert_tables_are_whole(place):
    """Every row belongs to a chunk, every chunk has all of its rows, and nothing waits or is there for too long."""
    with using_store(place) as store:
        assert store.find_damage() == []
    ((generation,),) = run_sql(place, "SELECT generation FROM state")
    for table in ("documents", "chunks"):
        assert run_sql(place, f"SELECT id FROM {table} WHERE added > {generation} OR removed < {generation}") == []
    chunks = run_sql(place, "SELECT number FROM chunks ORDER BY number")
    for table in ("contents", "lowered", "sentences"):
        assert run_sql(place, f"SELECT DISTINCT number FROM {table} ORDER BY number") == chunks, table


def assert_finished(place, texts):
    assert_tables_are_whole(place)
    assert_like_uninterrupted(place, texts)


# --- killed or hanging writers; see test_crash.py for those that are alone ---


MOMENTS = {
    "copying": "row of contents (number, text, places)",
    "in a lock": "INSERT INTO documents done",
    "embedding": "embed",
}


def others(texts):
    return {f"other {name}": text for name, text in texts.items()}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_writer_that_hangs_keeps_nobody_from_writing_other_documents(tmp_path, place, moment):
    ingest(write(tmp_path / "one", corpus(1)), place)
    write(tmp_path / "one", corpus(2))
    write(tmp_path / "two", others(corpus(1)))
    with Run(tmp_path / "one", place, moment=(MOMENTS[moment], 2, signal.SIGSTOP)) as hung:
        assert hung.wait_for_moment()
        with Run(tmp_path / "two", place) as other:
            assert isinstance(other.result(), tuple)
        assert others(corpus(1)).items() <= served(place).items()
        remove(["other d3"], place)
        os.kill(hung.process.pid, signal.SIGCONT)
        assert isinstance(hung.result(), tuple | StorageError)
    remove([name for name in served(place) if name.startswith("other")], place)
    ingest(tmp_path / "one", place, prune=True)
    assert_finished(place, corpus(2))


# --- a server that is killed, and connections that are cut ---


def assert_shows_no_password(error, place):
    assert urlsplit(place).password not in f"{error} {error!r} {error.__cause__}"


def test_a_killed_server_loses_nothing_and_readers_go_on(tmp_path, postgres):
    draw = random.Random(2)
    with postgres.database() as place:
        ingest(write(tmp_path, corpus(1)), place)
        with open_index(place, embedder=TextEmbeddings()) as index:
            for version in (2, 3):
                before = served(place)
                write(tmp_path, corpus(version))
                with Run(tmp_path, place, prune=True, moment=("start", 1, 0)) as run:
                    run.wait_for_moment()
                    time.sleep(draw.uniform(0, 1.5))
                    postgres.kill()
                    end = run.result()
                with pytest.raises(StorageError, match="cannot be used") as caught:
                    index.keyword_search("document")
                assert_shows_no_password(caught.value, place)
                postgres.start()
                if isinstance(end, tuple):
                    assert served(place) == corpus(version)
                else:
                    assert isinstance(end, StorageError)
                    assert served(place) in (before, corpus(version))
                assert index.keyword_search("document", 1_000).total
                assert index.semantic_search("Line 3 is of revision", 3).hits
                ingest(tmp_path, place, prune=True)
                assert_finished(place, corpus(version))


class Cuts:
    """Cuts a connection when this process waits for the server for the n-th time from now on, once.

    Attributes:
        left: How many more times; 0 if there is nothing to cut.
    """

    def __init__(self, server, patch):
        self.left = 0
        self._after = False
        wait, lock = psycopg.Connection.wait, threading.Lock()

        def wait_or_cut(connection, *arguments, **options):
            with lock:
                cut = self.left == 1
                self.left = max(0, self.left - 1)
            if cut and not self._after:
                server.execute(f"SELECT pg_terminate_backend({connection.info.backend_pid}, 10000)")
            result = wait(connection, *arguments, **options)
            if cut and self._after:
                connection.pgconn.finish()
                raise psycopg.OperationalError("the connection is lost")
            return result

        patch.setattr(psycopg.Connection, "wait", wait_or_cut)

    def at(self, n, *, after):
        """Cut at the n-th time: before the server works, or after it has, when it answers."""
        self.left, self._after = n, after


@pytest.fixture
def cuts(postgres_server, monkeypatch):
    return Cuts(postgres_server, monkeypatch)


AFTER = pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
SMALL = 8  # documents


@pytest.mark.parametrize("step", [19, pytest.param(1, marks=pytest.mark.slow)])
@AFTER
@pytest.mark.parametrize("is_update", [False, True], ids=["first", "update"])
def test_a_connection_that_is_cut_loses_nothing(tmp_path, places, cuts, is_update, step, after):
    """At any statement: what was said to be done is done, and the next run finishes what was not."""
    place = places("postgres", None)
    for version, n in enumerate(count(1, step), 1):
        if is_update:
            ingest(write(tmp_path, corpus(version, SMALL)), place)
        else:
            place = places("postgres", None)
        before, done = served(place), corpus(version + 1, SMALL)
        write(tmp_path, done)
        error = None
        cuts.at(n, after=after)
        try:
            ingest(tmp_path, place, prune=True)
        except StorageError as caught:
            error = caught
            assert_shows_no_password(error, place)
        is_over = cuts.left > 0
        cuts.at(0, after=False)
        assert served(place) in ([before] if error else []) + [done]
        ingest(tmp_path, place, prune=True)
        assert_tables_are_whole(place)
        assert served(place) == done
        if is_over:
            assert error is None
            assert version > 3
            return


def search_all(index):
    return [
        index.keyword_search(["document", "w7"], 5),
        index.limited_to(["d6", "d7"]).keyword_search(["document", "lime"], 5, ranking="bm25"),
        index.semantic_search("The document w6 has a line", 5),
        index.read(["d6:0", "d7:0", "absent:0"], adjacent=1),
        [*index.documents(), index.find_documents("d6", 3), index.document("d7")],
    ]


@pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.slow)])
@AFTER
def test_a_search_whose_connection_is_cut_goes_on(tmp_path, place, cuts, after, step):
    ingest(write(tmp_path, corpus(1, SMALL)), place)
    with open_index(place, embedder=TextEmbeddings()) as index:
        expected = search_all(index)
        for n in count(1, step):
            cuts.at(n, after=after)
            assert search_all(index) == expected
            if cuts.left > 0:
                assert n > 100
                return


# --- several writers at once ---


def test_several_processes_share_a_run(tmp_path, place):
    write(tmp_path / "one", corpus(1))
    write(tmp_path / "two", others(corpus(2)))
    with Run(tmp_path / "one", place) as a, Run(tmp_path / "one", place) as b, Run(tmp_path / "two", place) as c:
        embedded = [run.result()[0] for run in (a, b, c)]
    assert_finished(place, corpus(1) | others(corpus(2)))
    ((sentences,),) = run_sql(place, "SELECT sum(sentences)::int FROM chunks")
    assert sum(embedded) == sentences


def test_readers_see_whole_documents_while_three_processes_write_the_same(tmp_path, place):
    versions = [{i: f"{text} Edition {n} is of {i}." for i, text in corpus(1).items()} for n in range(4)]
    ingest(write(tmp_path / "0", versions[0]), place)
    searches = 0
    with ExitStack() as stack:
        store = stack.enter_context(using_store(place))
        sources = [write(tmp_path / str(number), texts) for number, texts in enumerate(versions[1:], 1)]
        runs = [stack.enter_context(Run(source, place)) for source in sources]
        while any(run.process.is_alive() for run in runs):
            with store.draft(None) as draft:  # what is stored so far
                draft.publish(draft.settings)
            with suppress(StorageError):  # it may be replaced twice meanwhile
                (documents, chunks, _, _), records, by_id, holding = read_all(store)
                assert (documents, chunks, holding["e"]) == (len(records), len(by_id), len(by_id))
                texts = dict.fromkeys((record.id for record in records), "")
                for chunk, _ in sorted(by_id.values(), key=lambda one: one[0].ordinal):
                    texts[chunk.document_id] += chunk.text.removeprefix(f"Title of {chunk.document_id}\n\n")
                assert all(text in [version.get(i) for version in versions] for i, text in texts.items())
                searches += 1
        assert all(isinstance(run.result(), tuple) for run in runs)
    assert searches > 3
    ingest(tmp_path / "0", place)
    assert_finished(place, versions[0])
