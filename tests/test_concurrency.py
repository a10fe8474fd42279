"""One process writes an index at a time; any number of others, and of threads, see one version of it whole."""

import os
import random
import re
import shutil
import signal
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from functools import cache
from itertools import cycle, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from arag.errors import ARAGError, IndexLockedError, ModelError
from arag.ingest.pipeline import run_ingest
from arag.models.embedders import Embedder
from arag.retrieval import vectors
from arag.retrieval.index import open_index
from arag.retrieval.store.view import FolderView
from fakes import write_corpus
from forked import processes
from stores import trust
from test_crash import (
    EMBEDDER,
    FAILURES,
    FailingEmbeddings,
    TextEmbeddings,
    contents,
    ingest,
    run_until,
    text_vector,
)

SECONDS = 120  # more than anything here takes
THREADS = 8

# --- a corpus of which every sentence says its version, and that has another size in every version ---


def size(version):
    return 30 + version


def corpus(version):
    return {
        f"d{n}": " ".join(f"Edition {version} has document w{n} with its line {k}." for k in range(6))
        for n in range(size(version))
    }


def write(folder, version):
    records = [{"id": i, "text": text, "edition": version} for i, text in corpus(version).items()]
    write_corpus(folder / "corpus", records)


def ingest_version(folder, version):
    write(folder, version)
    ingest(folder / "corpus", folder / "index", prune=True)


@pytest.fixture(scope="module")
def first_version(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    ingest_version(folder, 1)
    return folder


@pytest.fixture
def folder(first_version, tmp_path):
    shutil.copytree(first_version, tmp_path, dirs_exist_ok=True)
    trust(tmp_path / "index")
    return tmp_path


def opened(folder):
    return open_index(folder / "index", embedder=TextEmbeddings())


@pytest.fixture(params=[True, False], ids=["chroma", "exact"])
def chroma(request):
    """Whether searches by meaning go through Chroma, as in a large index, or are exact."""
    if request.param:
        request.getfixturevalue("through_chroma")
    return request.param


def assert_like_uninterrupted(folder, version):
    ingest_version(folder, version)  # deletes folders that a reader was opening while they were deleted
    assert contents(folder / "index") == uninterrupted(version)


@cache
def uninterrupted(version):
    with TemporaryDirectory() as folder:
        ingest_version(Path(folder), version)
        return contents(Path(folder) / "index")


# --- searches that return the version that all they have found is of ---


def the_version(texts):
    (version,) = {int(version) for text in texts for version in re.findall(r"Edition (\d+)", text)}
    return version


def shown(hits):
    return [sentence.text for hit in hits for sentence in hit.excerpt.sentences]


def by_keyword(index):
    results = index.keyword_search(["edition", "document w7 with", "absent"], top_k=500)
    version = the_version(shown(results.hits))
    ids = {hit.chunk_id for hit in results.hits}
    assert {i.split(":")[0] for i in ids} == set(corpus(version))
    assert [report.chunks for report in results.keywords] == [len(ids), sum(i.startswith("d7:") for i in ids), 0]
    assert results.total == len(ids) == len(results.hits)
    return version


def by_meaning(index):
    query = "Which document has a line?"
    results = index.semantic_search(query, top_k=10)
    assert len(results.hits) == 10
    for sentence in (sentence for hit in results.hits for sentence in hit.excerpt.sentences):
        if sentence.matched:
            assert sentence.similarity == pytest.approx(text_vector(query) @ text_vector(sentence.text), abs=1e-4)
    return the_version(shown(results.hits))


def by_reading(index):
    results = index.read(["d0:0", "d29:0", "nothing:0"], adjacent=2)
    version = the_version(chunk.text for chunk in results.chunks)
    texts = dict.fromkeys(("d0", "d29"), "")
    for chunk in results.chunks:
        texts[chunk.document_id] += chunk.text
    assert all(text == corpus(version)[i] for i, text in texts.items())
    assert sum(results.parts.values()) == len(results.chunks)
    assert list(results.unknown) == ["nothing:0"]
    return version


def by_document(index):
    return int(index.document("d3").metadata["edition"])


def by_info(index):
    info = index.info()
    assert info.sentences == 6 * info.documents
    return info.documents - 30


SEARCHES = [by_keyword, by_meaning, by_reading, by_document, by_info]


# --- one writer ---


class WaitingEmbeddings(TextEmbeddings):
    """Says that it was called, and waits."""

    def __init__(self, called):
        super().__init__()
        self.called = called

    def embed_documents(self, texts):
        self.called.set()
        threading.Event().wait(SECONDS)
        return super().embed_documents(texts)


def write_for_ever(folder, called):
    run_ingest(
        folder / "corpus", folder / "index", embedder=Embedder(EMBEDDER, lambda: WaitingEmbeddings(called)), prune=True
    )


@contextmanager
def another_writer(folder):
    """A process in the middle of an ingestion."""
    write_corpus(folder / "corpus", {"other": "Another text."})
    called = processes.Event()
    process = processes.Process(target=write_for_ever, args=(folder, called))
    process.start()
    try:
        assert called.wait(SECONDS)
        yield process
    finally:
        process.kill()
        process.join()


def test_a_second_writer_is_told_who_writes(folder):
    with another_writer(folder) as process:
        with pytest.raises(IndexLockedError, match=rf"process {process.pid}\b"):
            ingest(folder / "corpus", folder / "index")
        with opened(folder) as index:
            assert {search(index) for search in SEARCHES} == {1}


def test_a_killed_writer_leaves_no_lock(folder):
    with another_writer(folder) as process:
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        ingest_version(folder, 2)
    assert_like_uninterrupted(folder, 2)


def test_a_writer_that_fails_leaves_no_lock(folder):
    write_corpus(folder / "corpus", {"other": "Another text."})
    failing = Embedder(EMBEDDER, lambda: FailingEmbeddings(1, FAILURES["connection"]))
    with pytest.raises(ModelError):
        run_ingest(folder / "corpus", folder / "index", embedder=failing)
    process = processes.Process(target=ingest_version, args=(folder, 2))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert_like_uninterrupted(folder, 2)


def test_a_second_writer_in_the_same_process_is_told_so(folder):
    write_corpus(folder / "corpus", {"other": "Another text."})
    called = threading.Event()
    release = threading.Event()

    class Waiting(TextEmbeddings):
        def embed_documents(self, texts):
            called.set()
            assert release.wait(SECONDS)
            return super().embed_documents(texts)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(run_ingest, folder / "corpus", folder / "index", embedder=Embedder(EMBEDDER, Waiting))
        try:
            assert called.wait(SECONDS)
            with pytest.raises(IndexLockedError, match=rf"process {os.getpid()}\b"):
                ingest(folder / "corpus", folder / "index")
        finally:
            release.set()
        assert first.result().written == 1


def ingest_or_be_refused(folder, together, news):
    together.wait(SECONDS)
    try:
        ingest(folder / "corpus", folder / "index", prune=True)
        news.send("written")
    except IndexLockedError as error:
        news.send(str(error))


def test_of_writers_that_begin_together_one_writes_at_a_time(tmp_path):
    write_corpus(tmp_path / "corpus", corpus(1))
    together = processes.Barrier(4)
    pipes = [processes.Pipe(duplex=False) for _ in range(4)]
    started = [processes.Process(target=ingest_or_be_refused, args=(tmp_path, together, teller)) for _, teller in pipes]
    for process, (_, teller) in zip(started, pipes, strict=True):
        process.start()
        teller.close()
    told = [news.recv() for news, _ in pipes]
    for process in started:
        process.join()
    assert "written" in told
    assert all(re.search("is being written to by", answer) for answer in told if answer != "written")
    with opened(tmp_path) as index:
        assert index.info().documents == size(1)


# --- many readers ---


class Versions:
    """Which versions other processes may see: shared by all."""

    def __init__(self):
        self.begun = processes.Value("i", 1)
        self.published = processes.Value("i", 1)
        self.last = processes.Event()

    def ingest(self, folder, versions, disturb=lambda version: None):
        for version in versions:
            self.begun.value = version
            disturb(version)
            ingest_version(folder, version)
            self.published.value = version
        self.last.set()

    def check(self, search, index):
        """Search, and be sure to see what was published before, and nothing that was not begun."""
        least = self.published.value
        version = search(index)
        assert least <= version <= self.begun.value
        return version


def search_again_and_again(folder, versions, news, *, reopen):
    """Search until the last version is there, and once more; tell which were seen, or what went wrong."""
    seen = []
    ways = cycle([0, vectors.MAX_MATRIX_BYTES])  # in Chroma's graph, and exactly
    index = opened(folder)
    try:
        last = False
        while not last:
            last = versions.last.is_set()
            for search in SEARCHES:
                vectors.MAX_MATRIX_BYTES = next(ways)
                if reopen:
                    index.close()
                    index = opened(folder)
                seen.append(versions.check(search, index))
        news.send(seen)
    except BaseException:  # whatever it is, the test is told
        news.send(traceback.format_exc())
        raise
    finally:
        index.close()


def read_beside_a_writer(folder, last, readers, disturb=lambda version: None):
    versions = Versions()
    started = []
    for reopen in readers:
        news, teller = processes.Pipe(duplex=False)
        process = processes.Process(
            target=search_again_and_again, args=(folder, versions, teller), kwargs={"reopen": reopen}
        )
        process.start()
        teller.close()
        started.append((process, news))
    try:
        versions.ingest(folder, range(2, last + 1), disturb)
    finally:
        versions.last.set()
        told = []
        for process, news in started:
            with suppress(EOFError):
                told.append(news.recv())
            process.join()
    for seen in told:
        assert isinstance(seen, list), seen
        assert seen == sorted(seen)
        assert seen[-1] == last
    assert len(told) == len(readers)
    assert len({version for seen in told for version in seen}) > 2
    assert_like_uninterrupted(folder, last)


def test_readers_in_other_processes_see_one_version_whole_and_the_new_one_at_once(folder):
    read_beside_a_writer(folder, 7, (False, True))


@pytest.mark.slow
def test_readers_in_other_processes_see_each_of_many_versions_whole(folder):
    read_beside_a_writer(folder, 60, (False, False, True, True))


def open_again_and_again(folder):
    vectors.MAX_MATRIX_BYTES = 0
    while True:
        with opened(folder) as index:
            by_meaning(index)


@pytest.mark.slow
def test_readers_do_not_mind_writers_and_other_readers_that_are_killed(folder):
    draw = random.Random(3)

    def kill(version):
        write(folder, version)
        reader = processes.Process(target=open_again_and_again, args=(folder,))
        reader.start()
        moment = {"delay": draw.uniform(0, 0.6), "prune": True}
        run_until(("start", 1, False), folder / "corpus", folder / "index", **moment)
        reader.kill()
        reader.join()
        assert reader.exitcode == -signal.SIGKILL

    read_beside_a_writer(folder, 30, (False, True), kill)


@pytest.mark.parametrize(
    ("overtaken", "search"),
    [
        ("keyword_texts", by_keyword),
        ("_open_keywords", by_keyword),
        ("sentences", by_meaning),
        ("_open_graph", by_meaning),
    ],
)
def test_a_search_that_writers_overtake_sees_one_version(folder, monkeypatch, through_chroma, overtaken, search):
    versions = [3, 2]
    original = getattr(FolderView, overtaken)

    def overtake(*arguments):
        if versions:
            ingest_version(folder, versions.pop())
        return original(*arguments)

    monkeypatch.setattr(FolderView, overtaken, overtake)
    with opened(folder) as index:
        assert search(index) in {1, 2, 3}
        assert search(index) == 3


# --- many threads ---


def all_results(index):
    return [
        index.keyword_search(["edition", "w7", "line 3"], 7),
        index.keyword_search("w12 wiht"),
        index.semantic_search("Which edition has document w5?", 4),
        index.semantic_search("line 2", 60),
        index.read(["d3:0", "d4:1", "d99:0"], adjacent=1),
        index.document("d9"),
        index.info(),
    ]


@pytest.mark.parametrize("backend", ["folder", "postgres"], indirect=True)
def test_threads_see_one_version_whole_while_another_thread_writes(tmp_path, backend, places):
    place = places(backend, tmp_path / "index")

    def write_version(version):
        write(tmp_path, version)
        run_ingest(tmp_path / "corpus", place, embedder=TextEmbeddings(), prune=True)
        return version

    write_version(1)
    with open_index(place, embedder=TextEmbeddings()) as index, ThreadPoolExecutor(THREADS) as pool:
        writing = pool.submit(lambda: [write_version(version) for version in range(2, 5)])
        seen = []
        while not writing.done():
            seen.append([pool.submit(search, index) for search in SEARCHES])
            wait(seen[-1])
        assert writing.result() == [2, 3, 4]
        versions = [sorted(search.result() for search in searches) for searches in seen]
        assert all(earlier[0] <= later[-1] for earlier, later in pairwise(versions))
        assert {search(index) for search in SEARCHES} == {4}


def test_threads_find_what_one_thread_finds(folder, chroma):
    with opened(folder) as index:
        alone = all_results(index)
    with opened(folder) as index, ThreadPoolExecutor(THREADS) as pool:
        assert all(results == alone for results in pool.map(all_results, [index] * 40))


def threads_beside_a_writer(folder, last):
    versions = Versions()
    process = processes.Process(target=versions.ingest, args=(folder, range(2, last + 1)))
    process.start()
    written = threading.Event()  # the process itself may be asked by one thread only

    def work(number):
        seen = []
        ended = False
        while not ended:
            ended = written.is_set()
            seen += [versions.check(SEARCHES[(number + n) % len(SEARCHES)], index) for n in range(len(SEARCHES))]
        assert seen == sorted(seen)
        return seen[-1]

    with opened(folder) as index, ThreadPoolExecutor(THREADS) as pool:
        found = [pool.submit(work, number) for number in range(THREADS)]
        process.join()
        written.set()
        assert {search.result() for search in found} == {last}
    assert process.exitcode == 0
    assert_like_uninterrupted(folder, last)


def test_threads_see_one_version_whole_while_another_process_writes(folder, chroma):
    threads_beside_a_writer(folder, 4)


@pytest.mark.slow
def test_threads_see_each_of_many_versions_whole(folder, chroma):
    threads_beside_a_writer(folder, 40)


@pytest.mark.parametrize("searches", [0, 1, 30])
def test_threads_are_told_that_an_index_was_closed(folder, chroma, searches):
    for _ in range(3):
        index = opened(folder)
        done = threading.Semaphore(0)

        def work(number, index=index, done=done):
            while True:
                SEARCHES[number % len(SEARCHES)](index)
                done.release()

        with ThreadPoolExecutor(THREADS) as pool:
            with closing(index):
                found = [pool.submit(work, number) for number in range(THREADS)]
                for _ in range(searches):
                    assert done.acquire(timeout=SECONDS)
            assert {type(search.exception()) for search in found} == {ARAGError}
