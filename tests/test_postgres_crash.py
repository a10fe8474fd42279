"""Whatever ends a process that writes to an index in PostgreSQL, nothing is lost, and the next run ends as usual."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from arag.errors import ARAGError, IndexNotFoundError, InputError, StorageError
from arag.ingest import pipeline, writer
from arag.ingest.maintenance import compact, remove
from arag.ingest.pipeline import run_ingest
from arag.models.embedders import Embedder
from arag.retrieval.index import open_index
from arag.retrieval.postgres import draft, workers
from arag.retrieval.postgres.connections import Session
from arag.retrieval.scope import Scope
from arag.retrieval.tables.rows import FOR_EVER
from arag.retrieval.text import fold
from forked import processes
from loopback_proxy import proxy_postgres
from selection import slow_except
from test_crash import EMBEDDER, TextEmbeddings, corpus, write

LEASE = 2.0  # seconds, in these tests
_NUMBERS = count()


def new_place(database):
    """Return the URL of an index that does not exist yet."""
    return f"{database}?index=crash_{next(_NUMBERS)}"


# --- what an index holds ---


def contents(place):
    """Return all that an index holds and finds, but for numbers and the order in which chunks were written."""
    with open_index(place, embedder=TextEmbeddings()) as index:
        held = index._snapshot.chunks
        documents = [(r.id, r.title, r.source, r.metadata, r.fingerprint, r.chunks) for r in held.documents()]
        chunks = {i: index.get(i) for i in index.chunk_ids()}
        assert len(chunks) == len(list(index.chunk_ids())) == index.info().chunks
        ids = held.ids(held.numbers(list(chunks)))
        vectors = {ids[n]: (positions, rows.tobytes()) for n, positions, rows in held.placed_vectors(list(ids))}
        words = [index.keyword_search(k, 1_000) for k in ("revision", ["w7", "line 3"], "begnis", "absent")]
        sentences = [chunk.sentence_text(0) for chunk in chunks.values()]
        found = []
        for query in sorted(sentences)[::40]:
            hits = index.semantic_search(query, 3).hits
            found.append([(hit.chunk_id, round(hit.score, 5), hit.snippets[0].sentences[0].text) for hit in hits])
        info = index.info()
    return documents, chunks, vectors, words, found, (info.documents, info.chunks, info.sentences)


def served(place):
    """Return the documents' texts that readers see, or None if there is no index."""
    try:
        index = open_index(place, embedder=TextEmbeddings())
    except IndexNotFoundError:
        return None
    with index:
        while True:  # each call sees the newest generation: what was read across a commit is read again
            before = refreshed_generation(index)
            chunks = [index.get(i) for i in index.chunk_ids()]
            if refreshed_generation(index) == before:
                break
    texts = {}
    for chunk in chunks:
        for section in chunk.sections:
            text = chunk.text[section.start : section.end]
            texts[section.document_id] = texts.get(section.document_id, "") + text
    return {i: text.removeprefix(f"Title of {i}\n\n") for i, text in texts.items()}


def refreshed_generation(index):
    index.info()
    return index._snapshot.manifest.generation


def ingest(source, place, **options):
    return run_ingest(source, place, embedder=TextEmbeddings(), chunk_tokens=50, **options)


def uninterrupted(source):
    """Return the contents of an index in a folder that was made of a source in one go."""
    with TemporaryDirectory() as folder:
        ingest(source, Path(folder) / "index")
        return contents(Path(folder) / "index")


def assert_tables_are_whole(place):
    """Every row belongs to a chunk, every chunk has all of its rows, and nothing is there twice."""
    url = urlsplit(place)
    schema = parse_qs(url.query)["index"][0]
    with psycopg.connect(url._replace(query="").geturl(), autocommit=True) as connection:
        connection.execute("SELECT set_config('search_path', quote_ident(%s), false)", [schema])

        def numbers(table):
            return [n for (n,) in connection.execute(f"SELECT number FROM {table} ORDER BY number")]

        state = dict(connection.execute("SELECT name, value FROM state").fetchall())
        assert set(state) == {"tables", "change", "manifest"}
        chunks = numbers("chunks")
        for table in ("contents", "lowered", "terms", "vectors"):
            assert numbers(table) == chunks, table
        assert sorted(set(numbers("members"))) == chunks
        for table in ("chunks", "documents"):
            assert not connection.execute(f"SELECT id FROM {table} WHERE removed <> {FOR_EVER}").fetchall()
            assert not connection.execute(f"SELECT id FROM {table} GROUP BY id HAVING count(*) > 1").fetchall()
        assert not connection.execute("SELECT id FROM chunks WHERE pending").fetchall()
        parts = "SELECT count(*) FROM members WHERE document_id = documents.id"
        assert not connection.execute(f"SELECT id FROM documents WHERE chunks <> ({parts})").fetchall()
        members = "SELECT document_id FROM members"
        assert not connection.execute(f"{members} EXCEPT SELECT id FROM documents").fetchall()
        texts = "SELECT text, lowered, words FROM contents JOIN lowered USING (number) JOIN terms USING (number)"
        vocabulary = {word for (word,) in connection.execute("SELECT word FROM vocabulary")}
        for text, lowered, words in connection.execute(texts):
            assert lowered == fold(text).lower()
            assert vocabulary.issuperset(word for word in words.split() if len(word) <= 200)


# --- processes ---


def work_in_pieces():
    """Ingest in the way of a large corpus, and notice soon who is gone."""
    pieces = [
        (pipeline, "_BATCH_DOCUMENTS", 12),
        (writer, "_CHUNKS_PER_READ", 16),
        (draft, "_DELETED_AT_ONCE", 7),
        (draft, "_PAUSE", 0.05),
        (workers, "LEASE", LEASE),
        (workers, "HEARTBEAT", 0.1),
    ]
    for module, name, value in pieces:
        assert hasattr(module, name)
        setattr(module, name, value)


def watch(step):
    """Tell of every statement, before and after it, and of each row that is copied."""

    def announced(name, function):
        def call(self, statement, *arguments):
            words = str(statement).split()
            step(kind := f"{name} {words[0]} {words[-1] if name == 'execute' and words[0] == 'DELETE' else ''}".strip())
            result = function(self, statement, *arguments)
            step(f"{kind} done")
            return result

        return call

    def copy(self, table, columns, types, rows):
        def told():
            for row in rows:
                step(f"row of {table}")
                yield row

        copy_rows(self, table, columns, types, told())
        step(f"copied {table}")

    copy_rows, Session.copy = Session.copy, copy
    for name in ("query", "execute", "execute_each"):
        setattr(Session, name, announced(name, getattr(Session, name)))


def run_with_steps(step, source, place, **options):
    work_in_pieces()
    watch(step)

    class Watched(TextEmbeddings):
        def embed_documents(self, texts):
            step("embed")
            return super().embed_documents(texts)

    step("start")
    embedder = Embedder(EMBEDDER, Watched, batch=40, concurrency=2)
    summary = run_ingest(source, place, embedder=embedder, chunk_tokens=50, **options)
    step("end")
    return summary


def ingest_until(moment, news, source, place, options):
    """Ingest; at the n-th step of a kind, send the process a signal."""
    kind, number, signal_number = moment
    seen = Counter()

    def step(name):
        seen[name] += 1
        if (name, seen[name]) == (kind, number):
            news.send("now")
            if signal_number:
                os.kill(os.getpid(), signal_number)

    try:
        summary = run_with_steps(step, source, place, **options)
        news.send((summary.embedded, seen))
    except ARAGError as error:
        news.send(error)


class Run:
    """A process that ingests.

    Args:
        moment: At which step it gets which signal: kind, number, signal.
        source: What it ingests.
        place: Where.
        options: Further options.
    """

    def __init__(self, source, place, *, moment=("none", 0, 0), **options):
        self.news, teller = processes.Pipe(duplex=False)
        self.process = processes.Process(target=ingest_until, args=(moment, teller, source, place, options))
        self.process.start()
        teller.close()

    def wait_for_signal(self):
        """Return whether it came to the step."""
        assert self.news.poll(60)
        told = self.news.recv()
        self._told = None if told == "now" else told
        return self._told is None

    def result(self):
        """Return what the run embedded and its steps; or its error; or None if it was killed."""
        told = getattr(self, "_told", None)
        with suppress(EOFError):
            while told is None or told == "now":
                assert self.news.poll(60), "it does not end"
                told = self.news.recv()
        self.process.join(60)
        assert self.process.exitcode == (-signal.SIGKILL if told in (None, "now") else 0)
        return None if told == "now" else told

    def end(self):
        self.process.kill()
        self.process.join()


@contextmanager
def running(*arguments, **options):
    run = Run(*arguments, **options)
    try:
        yield run
    finally:
        run.end()


# --- killed workers ---


@pytest.fixture(scope="module")
def usual(tmp_path_factory, shared_database):
    """How many steps of each kind an ingestion takes that nothing ends."""
    source, place = tmp_path_factory.mktemp("usual"), new_place(shared_database)
    for version in (1, 2):
        write(source, corpus(version))
        with running(source, place, prune=True) as run:
            _, steps = run.result()
    assert_tables_are_whole(place)
    assert contents(place) == uninterrupted(source)
    return steps


def kill_again_and_again(source, place, usual, *, seed, kills, company):
    """Ingest version after version, and kill each run once.

    Args:
        source: The folder of the documents.
        place: The index.
        usual: The steps of a run.
        seed: Decides about the moments.
        kills: How many.
        company: Whether another process ingests the same at the same time, which is not killed.
    """
    draw = random.Random(seed)
    write(source, corpus(10))
    ingest(source, place)
    killed = Counter()
    for version in range(11, 11 + kills):
        before = served(place)
        write(source, corpus(version))
        kind = draw.choice(sorted(usual))
        moment = (kind, draw.randint(1, usual[kind]), signal.SIGKILL)
        with running(source, place, moment=moment, prune=True) as victim:
            if company:
                with running(source, place, prune=True) as other:
                    told = victim.result()
                    since = time.monotonic()
                    assert isinstance(other.result(), tuple)
                    assert time.monotonic() - since < LEASE + 20
                assert served(place) == corpus(version)
                assert told is None or isinstance(told, tuple), told
            else:
                told = victim.result()
        killed[kind] += told is None
        assert served(place) in (before, corpus(version))
        ingest(source, place, prune=True)
        assert_tables_are_whole(place)
        assert contents(place) == uninterrupted(source)
        assert ingest(source, place, prune=True).embedded == 0
    return killed


@pytest.mark.parametrize(
    "company", [pytest.param(False, id="alone", marks=pytest.mark.slow), pytest.param(True, id="in company")]
)
def test_a_killed_ingestion_is_finished_by_the_next(tmp_path, shared_database, usual, company):
    assert kill_again_and_again(tmp_path, new_place(shared_database), usual, seed=1, kills=3, company=company)


@pytest.mark.slow
@pytest.mark.parametrize("company", [False, True], ids=["alone", "in company"])
@pytest.mark.parametrize("seed", range(100, 105))
def test_many_killed_ingestions_are_finished_by_the_next(tmp_path, shared_database, usual, seed, company):
    killed = kill_again_and_again(tmp_path, new_place(shared_database), usual, seed=seed, kills=10, company=company)
    assert killed.total() >= 4  # in company, the other process may do all of a kind of steps


# --- a worker that hangs ---


MOMENTS = {
    "inserting": "copied chunks",
    "copying": "row of contents",
    "embedding": "embed",
    "claiming": "query UPDATE done",
    "writing vectors": "execute_each INSERT done",
}


@pytest.mark.parametrize("moment", slow_except("inserting", among=["inserting", "embedding"]))
def test_a_worker_that_hangs_stops_nobody(tmp_path, shared_database, moment):
    hang(tmp_path, new_place(shared_database), moment)


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_worker_that_hangs_stops_nobody_at_any_moment(tmp_path, shared_database, moment, number):
    hang(tmp_path, new_place(shared_database), moment, number)


def hang(source, place, moment, number=2):
    write(source, corpus(1))
    ingest(source, place)
    write(source, corpus(2))
    with running(source, place, moment=(MOMENTS[moment], number, signal.SIGSTOP), prune=True) as hung:
        assert hung.wait_for_signal()
        with running(source, place, prune=True) as other:
            assert isinstance(other.result(), tuple)
        assert served(place) == corpus(2)
        with pieces_here():
            remove("d3", place)  # alone: the other one is ended, if it has not been
        assert "d3" not in served(place)
        os.kill(hung.process.pid, signal.SIGCONT)
        assert isinstance(hung.result(), tuple | StorageError)
    ingest(source, place, prune=True)
    assert_tables_are_whole(place)
    assert contents(place) == uninterrupted(source)


@contextmanager
def pieces_here():
    """Notice soon who is gone, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "LEASE", LEASE)
        patch.setattr(workers, "HEARTBEAT", 0.1)
        patch.setattr(draft, "_PAUSE", 0.05)
        yield


# --- a killed server ---


def kill_the_server(source, place, server, *, seed, kills):
    draw = random.Random(seed)
    write(source, corpus(10))
    ingest(source, place)
    acknowledged = corpus(10)
    with open_index(place, embedder=TextEmbeddings()) as index:
        for version in range(11, 11 + kills):
            write(source, corpus(version))
            with running(source, place, prune=True, moment=("start", 1, 0)) as run:
                run.wait_for_signal()
                time.sleep(draw.uniform(0, 1.5))
                server.kill()
                told = run.result()
            server.start()
            if isinstance(told, tuple):
                acknowledged = corpus(version)
            else:
                assert isinstance(told, StorageError)
                assert "password" not in str(told).lower()
            found = {hit.chunk_id for hit in index.keyword_search("document", 1_000).hits}
            assert {i.rpartition(":")[0] for i in found} in (set(acknowledged), set(corpus(version)))
            assert index.semantic_search("Line 3 is of a revision", 3).hits
            assert served(place) in (acknowledged, corpus(version))
            ingest(source, place, prune=True)
            acknowledged = corpus(version)
            assert_tables_are_whole(place)
            assert contents(place) == uninterrupted(source)


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_killed_server_loses_nothing_and_readers_go_on(tmp_path, postgres, kills):
    postgres.restart({"fsync": "on", "full_page_writes": "on"})
    with postgres.database() as database:
        kill_the_server(tmp_path, new_place(database), postgres, seed=kills, kills=kills)


# --- cut connections ---


def small_corpus(version):
    """Each version changes a half of the documents, drops one, and brings one back."""
    texts = {
        f"d{n}": f"The document w{n} is of revision {version // 2 * 2 if n % 2 else version}. It has a line {n}."
        for n in range(8)
    }
    del texts[f"d{version % 8}"]
    return texts


def cut_everywhere(proxy, operation, check, *, step, after):
    """Run an operation again and again, and cut its connection at another statement each time.

    Args:
        proxy: The proxy.
        operation: Called with the number of the round; it goes through the proxy.
        check: Called after each with its number and its error, or None.
        step: How many statements lie between two cuts.
        after: Whether the server runs the statement where the connection is cut.
    """
    for turn, n in enumerate(count(1, step)):
        proxy.cut_at(n, after=after)
        error = None
        try:
            operation(turn)
        except StorageError as caught:
            error = caught
        was_cut = proxy.was_cut
        if error is not None:
            assert was_cut, error
            assert proxy.password not in f"{error} {error!r} {error.__cause__}"
        proxy.cut_at(0)
        check(turn, error)
        if not was_cut:
            return turn
    raise AssertionError


@pytest.fixture
def cut_place(shared_database, postgres_server, monkeypatch):
    """A function that returns a new index, as its owner sees it and through a proxy; the proxy; and all passwords."""
    monkeypatch.setattr(workers, "HEARTBEAT", 600.0)
    monkeypatch.setattr(draft, "_PAUSE", 0.01)
    with proxy_postgres(postgres_server.port) as proxy:
        proxy.password = urlsplit(shared_database).password
        yield proxy, lambda: (place := new_place(shared_database), proxy.url(place))


EVERY = pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.slow)])
AFTER = pytest.mark.parametrize(
    "after", [pytest.param(False, id="before"), pytest.param(True, id="after", marks=pytest.mark.slow)]
)


@EVERY
@AFTER
def test_a_first_ingestion_is_cut(tmp_path, cut_place, step, after):
    proxy, make = cut_place
    places = []
    write(tmp_path, small_corpus(1))
    expected = uninterrupted(tmp_path)

    def operate(_):
        places.append(make())
        ingest(tmp_path, places[-1][1])

    def check(_, error):
        place = places[-1][0]
        assert served(place) in (small_corpus(1), *([None] if error else []))
        ingest(tmp_path, place)
        assert_tables_are_whole(place)
        assert contents(place) == expected

    assert cut_everywhere(proxy, operate, check, step=step, after=after) >= 60 // step


@EVERY
@AFTER
def test_an_update_is_cut(tmp_path, cut_place, step, after):
    proxy, make = cut_place
    place, through = make()
    write(tmp_path, small_corpus(9))
    ingest(tmp_path, place)

    def operate(turn):
        write(tmp_path, small_corpus(10 + turn))
        ingest(tmp_path, through, prune=True)

    def check(turn, error):
        assert served(place) in ([small_corpus(9 + turn)] if error else []) + [small_corpus(10 + turn)]
        ingest(tmp_path, place, prune=True)
        assert_tables_are_whole(place)
        assert contents(place) == uninterrupted(tmp_path)

    assert cut_everywhere(proxy, operate, check, step=step, after=after) >= 60 // step


@EVERY
@AFTER
def test_a_removal_is_cut(tmp_path, cut_place, step, after):
    proxy, make = cut_place
    place, through = make()
    write(tmp_path / "all", small_corpus(8))
    less = small_corpus(8)
    del less["d3"], less["d5"]
    write(tmp_path / "less", less)
    expected = uninterrupted(tmp_path / "less")[1:]
    ingest(tmp_path / "all", place)

    def check(_, error):
        assert served(place) in (less, *([small_corpus(8)] if error else []))
        with suppress(InputError):  # it was done
            remove(["d3", "d5"], place)
        ingest(tmp_path / "less", place)  # deletes what is gone
        assert_tables_are_whole(place)
        assert contents(place)[1:] == expected
        ingest(tmp_path / "all", place)

    assert cut_everywhere(proxy, lambda _: remove(["d3", "d5"], through), check, step=step, after=after) >= 60 // step


@EVERY
@AFTER
def test_a_compaction_is_cut(tmp_path, cut_place, step, after):
    proxy, make = cut_place
    place, through = make()
    write(tmp_path, small_corpus(1))
    ingest(tmp_path, place)
    expected = contents(place)

    def check(_, error):
        assert contents(place) == expected
        assert_tables_are_whole(place)

    assert cut_everywhere(proxy, lambda _: compact(through), check, step=step, after=after) >= 60 // step
    compact(place)
    assert contents(place) == expected


SEARCHES = {
    "keyword": lambda index: index.keyword_search(["document", "w7"], 5),
    "coverage": lambda index: index.keyword_search(
        ["document", "w7", "lime"], 5, by_coverage=True, within=["d6", "d7"]
    ),
    "meaning": lambda index: index.semantic_search("The document w6 has a line", 5),
    "read": lambda index: index.read(["d6:0", "d7:0", "absent:0"], adjacent=1),
    "documents": lambda index: [list(index.documents()), index.find_documents("d6", 3), index.document("d7")],
    "scoped": lambda index: index.scoped(Scope(documents=["d5", "d7"])).keyword_search("line", 9),
}


@AFTER
@pytest.mark.parametrize("kind", slow_except("coverage", "meaning", among=list(SEARCHES)))
def test_a_search_is_cut(tmp_path, cut_place, shared_small, kind, after):
    proxy, _ = cut_place
    search = SEARCHES[kind]
    with open_index(shared_small, embedder=TextEmbeddings()) as index:
        expected = search(index)
    for n in count(1):
        with open_index(proxy.url(shared_small), embedder=TextEmbeddings()) as index:
            proxy.cut_at(n, after=after)
            assert search(index) == expected
            was_cut = proxy.was_cut
            proxy.cut_at(0)
        if not was_cut:
            return


@AFTER
def test_opening_is_cut(cut_place, shared_small, after):
    proxy, _ = cut_place

    def operate(_):
        with open_index(proxy.url(shared_small), embedder=TextEmbeddings()) as index:
            assert index.info().documents == 7

    assert cut_everywhere(proxy, operate, lambda *_: None, step=1, after=after) > 5


@pytest.fixture(scope="module")
def shared_small(tmp_path_factory, shared_database):
    """An index for searches."""
    source, place = tmp_path_factory.mktemp("small"), new_place(shared_database)
    write(source, small_corpus(1))
    ingest(source, place)
    return place
