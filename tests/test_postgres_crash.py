"""Whatever ends a process that writes to an index in PostgreSQL, nothing is lost; others write and read meanwhile."""

from __future__ import annotations

import os
import random
import re
import signal
import time
import zlib
from collections import Counter
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import numpy as np
import psycopg
import pytest

from arag import open_index
from arag.errors import ARAGError, IndexNotFoundError, InputError, StorageError
from arag.ingest.maintenance import remove
from arag.ingest.pipeline import run_ingest
from arag.models.embedders import Embedder
from arag.retrieval.locations import store_at
from arag.retrieval.postgres import connection, draft
from arag.retrieval.postgres.connection import Session
from arag.retrieval.text import fold
from fakes import DIMENSION, HashEmbeddings, write_corpus
from forked import processes
from loopback_proxy import proxy_postgres
from selection import slow_except

pytestmark = pytest.mark.servers

_NUMBERS = count()
_HANGING = 1.5  # seconds after which a writer that hangs loses its locks, in these tests
_DOCUMENTS = 30


class TextEmbeddings(HashEmbeddings):
    """Every text has a direction of its own, far from all others."""

    model = "text-64"

    def embed_documents(self, texts):
        super().embed_documents(texts)
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        vector = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(DIMENSION)
        return (vector / np.linalg.norm(vector)).tolist()


def new_place(database):
    """Return the URL of an index that does not exist yet."""
    return f"{database}?index=crash{next(_NUMBERS)}"


def corpus(version, number=_DOCUMENTS):
    """The texts by id. Each version changes a third of the documents, drops some, and brings others back."""
    texts = {}
    for n in range(number):
        if (n + version) % 8:
            edition = version - (n + version) % 3
            lines = [f"Line {k} is of edition {edition} of document w{n}." for k in range(4 + (n + edition) % 6)]
            texts[f"d{n}"] = " ".join([f"The document w{n} begins.", *lines])
    return texts


def write(source, texts):
    write_corpus(source, [{"id": name, "title": f"Title of {name}", "text": text} for name, text in texts.items()])


def ingest(source, place, **options):
    return run_ingest(source, place, embedder=TextEmbeddings(), chunk_tokens=50, **options)


# --- what an index holds ---


def contents(place):
    """Return all that an index holds and finds, but for numbers and the order in which chunks were written."""
    with open_index(place, embedder=TextEmbeddings()) as index:
        documents = list(index.documents())
        chunks = {i: index.get(i) for i in index.chunk_ids()}
        vectors = {i: (positions, rows.tobytes()) for i, positions, rows in index.sentence_vectors()}
        words = [index.keyword_search(k, 1_000) for k in ("edition", ["w7", "line 3"], "begnis", "absent")]
        queries = sorted(chunk.sentence_text(0) for chunk in chunks.values())[::20]
        found = [[(h.chunk_id, h.score, h.matches) for h in index.semantic_search(q, 3).hits] for q in queries]
        info = index.info()
    return documents, chunks, vectors, words, found, (info.documents, info.chunks, info.sentences)


def uninterrupted(source):
    """Return the contents of an index in a folder that was made of a source in one go."""
    with TemporaryDirectory() as folder:
        ingest(source, Path(folder) / "index")
        return contents(Path(folder) / "index")


def served(place):
    """Return the documents' texts that readers see, all of one publication, or None if there is no index."""
    with closing(store_at(place)) as store:
        for _ in range(20):
            with suppress(IndexNotFoundError, StorageError), closing(store.open()) as view:  # it may be replaced
                texts = {}
                chunks = view.mget(list(view.yield_keys()))
                for chunk in sorted(chunks, key=lambda chunk: (chunk.document_id, chunk.ordinal)):
                    texts[chunk.document_id] = texts.get(chunk.document_id, "") + f" {chunk.text}"
                return {name: fold(text.replace(f"Title of {name}", "")) for name, text in texts.items()}
    return None


def query(place, statement, *values):
    """Run a statement in the schema of an index."""
    url = urlsplit(place)
    with psycopg.connect(url._replace(query="").geturl(), autocommit=True) as connected:
        connected.execute("SELECT set_config('search_path', %s, false)", [url.query.removeprefix("index=")])
        return connected.execute(statement, values or None).fetchall()


def assert_tables_are_whole(place):
    """Every row belongs to a chunk, every chunk has all of its rows, and nothing waits or is there for too long."""
    with closing(store_at(place)) as store:
        assert store.find_damage() == []
    ((generation,),) = query(place, "SELECT generation FROM state")
    for table in ("documents", "chunks"):
        assert query(place, f"SELECT id FROM {table} WHERE added > {generation} OR removed < {generation}") == []
    chunks = query(place, "SELECT number FROM chunks ORDER BY number")
    for table in ("contents", "lowered", "sentences"):
        assert query(place, f"SELECT DISTINCT number FROM {table} ORDER BY number") == chunks, table


# --- processes ---


def work_in_pieces():
    """Ingest in the way of a large corpus, and notice soon who hangs."""
    draft._DELETED_AT_ONCE = 7
    connection._WRITER_SETTINGS["idle_in_transaction_session_timeout"] = f"{_HANGING}s"


def watch(step):
    """Tell of every statement of a writer, before and after it, and of each row that is copied."""

    def announced(name):
        run = getattr(Session, name)

        def call(self, statement, *values):
            step(kind := f"{name} {' '.join(statement.split()[:3])[:40]}")
            result = run(self, statement, *values)
            step(f"{kind} done")
            return result

        setattr(Session, name, call)

    def copy(self, table, types, rows):
        def told():
            for row in rows:
                step(f"row of {table}")
                yield row

        copy_rows(self, table, types, told())
        step(f"copied {table}")

    copy_rows, Session.copy = Session.copy, copy
    announced("query")
    announced("execute")


def ingest_until(moment, news, source, place, options):
    """Ingest; at the n-th step of a kind, send this process a signal."""
    kind, number, signal_number = moment
    steps = Counter()

    def step(name):
        steps[name] += 1
        if (name, steps[name]) == (kind, number):
            news.send("now")
            if signal_number:
                os.kill(os.getpid(), signal_number)

    class Watched(TextEmbeddings):
        def embed_documents(self, texts):
            step("embed")
            return super().embed_documents(texts)

    work_in_pieces()
    watch(step)
    step("start")
    try:
        embedder = Embedder("TextEmbeddings:text-64", Watched, batch=40, concurrency=2)
        summary = run_ingest(source, place, embedder=embedder, chunk_tokens=50, **options)
        news.send((summary.embedded, steps))
    except ARAGError as error:
        news.send(error)


class Run:
    """A process that ingests.

    Args:
        source: What it ingests.
        place: Where.
        moment: At which step it gets which signal: kind, number, signal.
        options: Further options.
    """

    def __init__(self, source, place, *, moment=("none", 0, 0), **options):
        self.news, teller = processes.Pipe(duplex=False)
        self.process = processes.Process(target=ingest_until, args=(moment, teller, source, place, options))
        self.process.start()
        teller.close()
        self._last = None

    def wait_for_signal(self):
        """Wait until it comes to its step."""
        assert self.news.poll(120)
        self._last = self.news.recv()
        return self._last == "now"

    def result(self):
        """Return what the run embedded and its steps; or its error; or None if it was killed."""
        with suppress(EOFError):
            while self._last in (None, "now"):
                assert self.news.poll(120), "it does not end"
                self._last = self.news.recv()
        self.process.join(120)
        assert self.process.exitcode == (-signal.SIGKILL if self._last in (None, "now") else 0)
        return None if self._last == "now" else self._last

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


# --- killed writers ---


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
                    end = victim.result()
                    assert isinstance(other.result(), tuple)
                assert served(place) == corpus(version)
            else:
                end = victim.result()
                assert served(place) in (before, corpus(version))
            assert end is None or isinstance(end, tuple), end
        killed[kind] += end is None
        ingest(source, place, prune=True)
        assert_tables_are_whole(place)
        assert contents(place) == uninterrupted(source)
        assert ingest(source, place, prune=True).embedded == 0
    return killed


@pytest.mark.parametrize("company", [False, True], ids=["alone", "in company"])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 105))])
def test_killed_ingestions_are_finished_by_the_next(tmp_path, shared_database, usual, seed, company):
    kills = 3 if seed == 1 else 10
    assert kill_again_and_again(tmp_path, new_place(shared_database), usual, seed=seed, kills=kills, company=company)


def test_what_a_killed_writer_stored_is_published_by_the_next_and_not_embedded_again(tmp_path, shared_database):
    place = new_place(shared_database)
    write(tmp_path, corpus(1))
    with running(
        tmp_path, place, moment=("row of sentences (number, position, embedding)", 100, signal.SIGKILL)
    ) as run:
        assert run.result() is None
    assert served(place) is None
    ((stored,),) = query(place, "SELECT sum(sentences)::int FROM chunks")
    embedder = TextEmbeddings()
    run_ingest(tmp_path, place, embedder=embedder, chunk_tokens=50)
    assert stored > 0
    assert_tables_are_whole(place)
    assert contents(place) == uninterrupted(tmp_path)
    ((sentences,),) = query(place, "SELECT sum(sentences)::int FROM chunks")
    assert len(embedder.embedded) == sentences - stored


# --- a writer that hangs ---

MOMENTS = {
    "copying": "row of contents (number, text, places)",
    "in a lock": "execute INSERT INTO documents done",
    "embedding": "embed",
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_writer_that_hangs_keeps_nobody_from_writing_other_documents(tmp_path, shared_database, moment):
    place = new_place(shared_database)
    write(tmp_path / "one", corpus(1))
    ingest(tmp_path / "one", place)
    write(tmp_path / "one", corpus(2))
    write(tmp_path / "two", {f"other {name}": text for name, text in corpus(1).items()})
    with running(tmp_path / "one", place, moment=(MOMENTS[moment], 2, signal.SIGSTOP)) as hung:
        assert hung.wait_for_signal()
        with running(tmp_path / "two", place) as other:
            assert isinstance(other.result(), tuple)
        assert {name for name in served(place) if name.startswith("other")}
        remove(["other d3"], place)
        os.kill(hung.process.pid, signal.SIGCONT)
        assert isinstance(hung.result(), tuple | StorageError)
    remove([name for name in served(place) if name.startswith("other")], place)
    ingest(tmp_path / "one", place, prune=True)
    assert_tables_are_whole(place)
    assert served(place) == corpus(2)


# --- a killed server ---


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_killed_server_loses_nothing_and_readers_go_on(tmp_path, postgres, kills):
    postgres.restart({"fsync": "on", "full_page_writes": "on"})
    draw = random.Random(kills)
    write(tmp_path, corpus(10))
    with postgres.database() as database:
        place = new_place(database)
        ingest(tmp_path, place)
        with open_index(place, embedder=TextEmbeddings()) as index:
            for version in range(11, 11 + kills):
                before = served(place)
                write(tmp_path, corpus(version))
                with running(tmp_path, place, prune=True, moment=("start", 1, 0)) as run:
                    run.wait_for_signal()
                    time.sleep(draw.uniform(0, 1.5))
                    postgres.kill()
                    end = run.result()
                postgres.start()
                if isinstance(end, tuple):
                    assert served(place) == corpus(version)
                else:
                    assert isinstance(end, StorageError)
                    assert urlsplit(place).password not in f"{end} {end!r} {end.__cause__}"
                    assert served(place) in (before, corpus(version))
                assert index.keyword_search("document", 1_000).total
                assert index.semantic_search("Line 3 is of an edition", 3).hits
                ingest(tmp_path, place, prune=True)
                assert_tables_are_whole(place)
                assert contents(place) == uninterrupted(tmp_path)


# --- cut connections ---


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
def cut_place(shared_database, postgres_server):
    """A proxy, and a function that returns a new index as its owner sees it, and through the proxy."""
    with proxy_postgres(postgres_server.port) as proxy:
        proxy.password = urlsplit(shared_database).password
        yield proxy, lambda: (place := new_place(shared_database), proxy.url(place))


EVERY = pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.slow)])
AFTER = pytest.mark.parametrize(
    "after", [pytest.param(False, id="before"), pytest.param(True, id="after", marks=pytest.mark.slow)]
)
SMALL = 8  # documents


@EVERY
@AFTER
def test_a_first_ingestion_is_cut(tmp_path, cut_place, step, after):
    proxy, make = cut_place
    places = []
    write(tmp_path, corpus(1, SMALL))
    expected = uninterrupted(tmp_path)

    def operate(_):
        places.append(make())
        ingest(tmp_path, places[-1][1])

    def check(_, error):
        place = places[-1][0]
        assert served(place) in (corpus(1, SMALL), *([None] if error else []))
        ingest(tmp_path, place)
        assert_tables_are_whole(place)
        assert contents(place) == expected

    assert cut_everywhere(proxy, operate, check, step=step, after=after) >= 60 // step


@EVERY
@AFTER
def test_an_update_is_cut(tmp_path, cut_place, step, after):
    proxy, make = cut_place
    place, through = make()
    write(tmp_path, corpus(9, SMALL))
    ingest(tmp_path, place)

    def operate(turn):
        write(tmp_path, corpus(10 + turn, SMALL))
        ingest(tmp_path, through, prune=True)

    def check(turn, error):
        assert served(place) in ([corpus(9 + turn, SMALL)] if error else []) + [corpus(10 + turn, SMALL)]
        ingest(tmp_path, place, prune=True)
        assert_tables_are_whole(place)
        assert contents(place) == uninterrupted(tmp_path)

    assert cut_everywhere(proxy, operate, check, step=step, after=after) >= 50 // step


@EVERY
@AFTER
def test_a_removal_is_cut(tmp_path, cut_place, step, after):
    proxy, make = cut_place
    place, through = make()
    everything = corpus(8, SMALL)
    less = {name: text for name, text in everything.items() if name not in {"d3", "d5"}}
    write(tmp_path, everything)
    ingest(tmp_path, place)

    def check(_, error):
        assert served(place) in (less, *([everything] if error else []))
        with suppress(InputError):  # it was done
            remove(["d3", "d5"], place)
        assert served(place) == less
        ingest(tmp_path, place)
        assert_tables_are_whole(place)

    assert cut_everywhere(proxy, lambda _: remove(["d3", "d5"], through), check, step=step, after=after) >= 40 // step


SEARCHES = {
    "keyword": lambda index: index.keyword_search(["document", "w7"], 5),
    "coverage": lambda index: index.limited_to(["d6", "d7"]).keyword_search(["document", "lime"], 5, by_coverage=True),
    "meaning": lambda index: index.semantic_search("The document w6 has a line", 5),
    "read": lambda index: index.read(["d6:0", "d7:0", "absent:0"], adjacent=1),
    "documents": lambda index: [list(index.documents()), index.find_documents("d6", 3), index.document("d7")],
}


@AFTER
@pytest.mark.parametrize("kind", slow_except("coverage", "meaning", among=list(SEARCHES)))
def test_a_search_is_cut_and_goes_on(tmp_path, cut_place, kind, after):
    proxy, make = cut_place
    place, through = make()
    write(tmp_path, corpus(1, SMALL))
    ingest(tmp_path, place)
    with open_index(place, embedder=TextEmbeddings()) as index:
        expected = SEARCHES[kind](index)
    for n in count(1):
        with open_index(through, embedder=TextEmbeddings()) as index:
            proxy.cut_at(n, after=after)
            assert SEARCHES[kind](index) == expected
            was_cut = proxy.was_cut
            proxy.cut_at(0)
        if not was_cut:
            return


# --- several writers at once ---


def test_several_processes_share_a_run(tmp_path, shared_database):
    write(tmp_path / "one", corpus(1))
    write(tmp_path / "two", {f"other {name}": text for name, text in corpus(2).items()})
    both = corpus(1) | {f"other {name}": text for name, text in corpus(2).items()}
    place = new_place(shared_database)
    with (
        running(tmp_path / "one", place) as a,
        running(tmp_path / "one", place) as b,
        running(tmp_path / "two", place) as c,
    ):
        embedded = [run.result()[0] for run in (a, b, c)]
    assert_tables_are_whole(place)
    assert served(place) == both
    ((sentences,),) = query(place, "SELECT sum(sentences)::int FROM chunks")
    assert sum(embedded) == sentences
    write(tmp_path / "one", corpus(4))
    with running(tmp_path / "one", place) as a, running(tmp_path / "one", place) as b:
        assert all(isinstance(run.result(), tuple) for run in (a, b))
    assert {name: text for name, text in served(place).items() if name in corpus(4)} == corpus(4)
    assert_tables_are_whole(place)


def test_files_of_one_name_do_not_replace_each_other(tmp_path, shared_database):
    """Another process gives a file's id to its own file after it was named here."""
    place = new_place(shared_database)
    for folder in ("left", "right"):
        write_corpus(tmp_path / folder, {"note.md": f"The {folder} note.", f"{folder}.md": f"Only {folder}."})

    def files():
        yield tmp_path / "left" / "note.md"
        ingest(tmp_path / "right", place)
        yield tmp_path / "left" / "left.md"

    summary = ingest(files(), place)
    assert [str(problem) for problem in summary.problems] == [
        f"{tmp_path}/left/note.md: its id 'note.md' belongs to {tmp_path}/right/note.md: ingest the folder above both"
    ]
    ingest(tmp_path, place)
    assert sorted(served(place).values()) == ["Only left.", "Only right.", "The left note.", "The right note."]


def edition(n, version):
    return " ".join(f"Edition {version} has document w{n} with its line {k}." for k in range(9))


def churn(place, seed, rounds, news):
    """Write, remove and publish the same documents as others do, in an order of its own."""
    work_in_pieces()
    draw = random.Random(seed)
    try:
        for turn in range(rounds):
            ids = draw.sample(range(12), draw.randint(1, 12))
            if draw.random() < 0.3:
                with closing(store_at(place)) as store, store.draft(None) as writing:
                    writing.remove([f"d{n}" for n in ids[:4]])
                    if draw.random() < 0.5:
                        writing.publish(writing.settings)
            else:
                documents = [{"id": f"d{n}", "text": edition(n, 1_000 * seed + turn)} for n in ids]
                embedder = Embedder("TextEmbeddings:text-64", TextEmbeddings, batch=4, concurrency=2)
                run_ingest(documents, place, embedder=embedder, chunk_tokens=50)
        news.send(None)
    except ARAGError as error:
        news.send(error)


@pytest.mark.parametrize("rounds", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_readers_see_whole_documents_while_three_processes_write_the_same(shared_database, rounds):
    place = new_place(shared_database)
    ingest([{"id": f"d{n}", "text": edition(n, 0)} for n in range(12)], place)
    started = []
    for seed in range(1, 4):
        news, teller = processes.Pipe(duplex=False)
        process = processes.Process(target=churn, args=(place, seed, rounds, teller))
        process.start()
        teller.close()
        started.append((process, news))
    searches = 0
    with closing(store_at(place)) as store:
        while any(process.is_alive() for process, _ in started):
            with suppress(StorageError), closing(store.open()) as view:  # it may be replaced twice meanwhile
                chunks = view.mget(list(view.yield_keys()))
                ranking = view.rank(["edition"], 1_000)
                parts = Counter(chunk.document_id for chunk in chunks)
                editions = {(c.document_id, e) for c in chunks for e in re.findall(r"Edition (\d+)", c.text)}
                assert len(editions) == len(parts)  # a document's chunks are all of one edition
                assert all(view.document(name).chunks == number for name, number in parts.items())
                assert ranking.total == len(chunks) == view.settings.chunks
                searches += 1
    assert [news.recv() for _, news in started] == [None] * 3
    for process, _ in started:
        process.join()
    documents = [{"id": f"d{n}", "text": edition(n, 9)} for n in range(12)]
    ingest(documents, place)
    assert_tables_are_whole(place)
    assert served(place) == {f"d{n}": edition(n, 9) for n in range(12)}
    assert searches > 3
