"""Whatever ends an ingestion, readers see what was complete, and the next run ends like one that nothing ended."""

import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
import zlib
from collections import Counter
from contextlib import closing, suppress
from copy import copy
from functools import cache

import numpy as np
import pytest
from openai import OpenAIError

from arag.child import Child
from arag.cli import main
from arag.errors import IndexNotFoundError, ModelError, StorageError
from arag.ingest import pipeline
from arag.ingest.maintenance import remove, verify
from arag.ingest.pipeline import run_ingest
from arag.models import embedders
from arag.models.embedders import Embedder
from arag.retrieval.index import open_index
from arag.retrieval.storage import batches
from arag.retrieval.store import chroma
from arag.retrieval.store.chroma import ChromaGraph
from arag.retrieval.store.folder import FolderStore
from fakes import DIMENSION, HashEmbeddings, write_corpus
from forked import processes
from stores import trust

DOCUMENTS = 60
EMBEDDER = "TextEmbeddings:text-64"


class TextEmbeddings(HashEmbeddings):
    """Every text has a direction of its own, far from all others."""

    model = "text-64"

    def embed_documents(self, texts):
        super().embed_documents(texts)
        return [text_vector(text).tolist() for text in texts]

    def embed_query(self, text):
        return text_vector(text).tolist()


def text_vector(text):
    vector = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(DIMENSION)
    return vector / np.linalg.norm(vector)


# --- a corpus whose every sentence says which version it is of ---


def revision(n, version):
    """Every fourth version changes all documents, the others a sixth of them."""
    return max(v for v in range(version - 6, version + 1) if v % 4 == 0 or v % 6 == n % 6)


def corpus(version):
    """The texts by id; each version also drops some documents and brings others back."""
    texts = {}
    for n in range(DOCUMENTS):
        if (n + version) % 8:
            r = revision(n, version)
            lines = [f"Line {k} is of revision {r} of document w{n}." for k in range(4 + (n + r) % 6)]
            texts[f"d{n}"] = " ".join([f"The document w{n} begins.", *lines])
    return texts


def write(source, texts):
    write_corpus(source, [{"id": i, "title": f"Title of {i}", "text": text} for i, text in texts.items()])


def ingest(source, index, **options):
    return run_ingest(source, index, embedder=TextEmbeddings(), chunk_tokens=50, **options)


# --- what an index holds ---


def served(folder):
    """What readers of an index see: the documents' texts, or None without an index. Its parts must belong together."""
    try:
        index = open_index(folder, embedder=TextEmbeddings())
    except IndexNotFoundError:
        return None
    with index:
        chunks = {i: index.get(i) for i in index.chunk_ids()}
        texts = {}
        for chunk in chunks.values():
            texts[chunk.document_id] = texts.get(chunk.document_id, "") + chunk.text
        texts = {i: text.removeprefix(f"Title of {i}\n\n") for i, text in texts.items()}
        info = index.info()
        assert (info.documents, info.chunks) == (len(texts), len(chunks))
        for n in {int(r) for text in texts.values() for r in re.findall(r"revision (\d+)", text)} | {99}:
            found = index.keyword_search(f"revision {n} of document", top_k=1_000)
            holding = {i for i, chunk in chunks.items() if f"revision {n} of document" in chunk.text}
            assert {hit.chunk_id for hit in found.hits} == holding
        expected = {}  # the texts of sentences with a vector, and their vectors
        for chunk, positions, vectors in index.sentence_vectors():
            for position, vector in zip(positions, vectors, strict=True):
                expected[chunk.id, chunk.sentence_text(position)] = vector
        assert len(expected) == info.sentences
        for (_, sentence), vector in expected.items():
            assert np.allclose(vector, text_vector(sentence), atol=1e-3)  # kept as float16
        for _, sentence in list(expected)[::50]:
            (hit,) = index.semantic_search(sentence, 1).hits
            assert hit.score == pytest.approx(1.0, abs=1e-5)
            assert index.read(hit.chunk_id).chunks == (chunks[hit.chunk_id],)
    if expected:
        assert_every_sentence_is_in_chroma(folder, expected)
    return texts


def assert_every_sentence_is_in_chroma(folder, expected):
    (graph,) = [
        path for path in folder.glob("chroma-*") if path.name == f"chroma-{FolderStore(folder).settings().token}"
    ]
    with closing(ChromaGraph(graph)) as opened:
        stored = list(opened.read())
        assert sorted((chunk_id, text) for _, chunk_id, text in stored) == sorted(expected)
        for some in batches(stored, 500):
            vectors = np.stack([text_vector(text) for *_, text in some])
            assert opened._call("count_lost", [i for i, *_ in some], vectors) == 0
        for i, _, text in stored:
            assert i in [f"{number}#{position}" for number, position in opened.nearest(text_vector(text), 2)]


def contents(folder):
    """Everything that an index holds, but for the numbers of chunks and the publication's token."""
    store = FolderStore(folder)
    assert [str(damage) for damage in store.find_damage()] == []
    token = store.settings().token
    with closing(store.open()) as view:
        documents = [(r.id, r.title, r.metadata, r.fingerprint) for r in view.documents()]
        chunks = {chunk.id: chunk for chunk in view.mget(list(view.yield_keys()))}
        sentences = {
            (chunk_id, positions[0])
            for n, positions, _ in view.vectors(view.numbers_by_id())
            for chunk_id in view.ids([n]).values()
            if positions
        }
    return documents, chunks, sentences, {file.name.replace(token, "") for file in folder.iterdir()}


def assert_like_uninterrupted(index, texts, folder):
    """Compare an index with one that was made of these texts in one go."""
    write(folder / "corpus", texts)
    ingest(folder / "corpus", folder / "index")
    assert contents(index) == contents(folder / "index")
    shutil.rmtree(folder)


# --- killed ---


def ingest_in_pieces(source, index, **options):
    """Ingest in the way of a large corpus, in many batches."""
    pieces = [
        (pipeline, "_BATCH_DOCUMENTS", 12),
        (chroma, "_SENTENCES_PER_CALL", 50),
        (chroma, "_CHANGES_PER_SYNC", 60),
    ]
    for module, name, value in pieces:
        assert hasattr(module, name)
        setattr(module, name, value)
    embedder = Embedder(EMBEDDER, TextEmbeddings, batch=40, concurrency=2)
    run_ingest(source, index, embedder=embedder, chunk_tokens=50, **options)


def watch(step, folder):
    """Tell of everything that is done to an index's files: by SQL, by Python, and by Chroma."""

    def on_event(event, arguments):
        of_index = event == "open" and str(folder) in str(arguments[0])
        if of_index or event.startswith("shutil.") or event in {"os.rename", "os.remove", "os.rmdir", "os.mkdir"}:
            step(event)

    def connect(*arguments, **options):
        connection = connect_to(*arguments, **options)
        connection.set_trace_callback(lambda sql: step(sql.split(maxsplit=1)[0]))
        return connection

    def announced(name, function):
        def call(*arguments, **options):
            step(name)
            result = function(*arguments, **options)
            step(f"{name} done")
            return result

        return call

    connect_to, sqlite3.connect = sqlite3.connect, connect
    sys.addaudithook(on_event)
    os.fsync = announced("fsync", os.fsync)
    original = Child.call
    Child.call = lambda self, name, *rest, **limit: announced(name, original)(self, name, *rest, **limit)


def ingest_until(moment, news, source, index, **options):
    """Ingest, and at the n-th step of a kind be killed at once, or tell whoever is going to do it."""
    kind, number, at_once = moment
    seen = Counter()

    def step(name):
        seen[name] += 1
        if (name, seen[name]) == (kind, number):
            if at_once:
                os.kill(os.getpid(), signal.SIGKILL)
            news.send(None)

    watch(step, index)
    began = time.monotonic()
    step("start")
    ingest_in_pieces(source, index, **options)
    news.send((seen, time.monotonic() - began))


def run_until(moment, source, index, *, delay=0.0, **options):
    """Ingest in a process that is killed at a moment; return what it tells when it was faster."""
    news, teller = processes.Pipe(duplex=False)
    process = processes.Process(target=ingest_until, args=(moment, teller, source, index), kwargs=options)
    process.start()
    teller.close()
    told = None
    with suppress(EOFError):
        told = news.recv()
        if told is None:
            time.sleep(delay)  # the moment is that long after the step
            process.kill()
        told = news.recv()
    process.join()
    assert process.exitcode == -signal.SIGKILL or (process.exitcode == 0 and told is not None)
    return told


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """How many steps of each kind an ingestion takes that nothing ends, and how long."""
    folder = tmp_path_factory.mktemp("usual")
    for version in (1, 2):
        write(folder / "corpus", corpus(version))
        told = run_until(("none", 0, False), folder / "corpus", folder / "index", prune=True)
    assert served(folder / "index") == corpus(2)
    return told


def a_moment(draw, usual):
    """Choose a step of any kind, the time after one, or just a time."""
    steps, seconds = usual
    kind = draw.choice(sorted(steps))
    number = draw.randint(1, steps[kind])
    return draw.choice(
        [((kind, number, True), 0.0), ((kind, number, False), draw.uniform(0, 0.1))] * 2
        + [(("start", 1, False), draw.uniform(0, seconds))]
    )


def kill_again_and_again(folder, usual, *, seed, kills):
    """Ingest version after version; kill most runs, let some be finished by the next, and others by one of later."""
    draw = random.Random(seed)
    source, index = folder / "corpus", folder / "index"
    finished = {}  # what the last run left that was not killed; None when one was since
    versions = [{}]
    now = None
    while kills:
        versions.append(corpus(len(versions)))
        prune = finished is None or draw.random() < 0.7
        target = versions[-1] if prune else finished | versions[-1]
        write(source, versions[-1])
        moment, delay = a_moment(draw, usual)
        told = run_until(moment, source, index, delay=delay, prune=prune)
        before, now = now, served(index)
        if told is not None:
            assert now == target
            finished = now
            continue
        kills -= 1
        finished = None
        assert now in (before, target)
        if not prune or draw.random() < 0.5:
            ingest(source, index, prune=prune)
            finished = now = served(index)
            assert finished == target
            assert_like_uninterrupted(index, target, folder / "uninterrupted")
    ingest(source, index, prune=True)
    assert served(index) == versions[-1]
    assert_like_uninterrupted(index, versions[-1], folder / "uninterrupted")


@pytest.mark.parametrize("seed", [1])
def test_a_killed_ingestion_is_finished_by_the_next(tmp_path, usual, seed):
    kill_again_and_again(tmp_path, usual, seed=seed, kills=3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(99, 112))
def test_many_killed_ingestions_are_finished_by_the_next(tmp_path, usual, seed):
    kill_again_and_again(tmp_path, usual, seed=seed, kills=5)


# --- a full disk ---


def command_with_small_files(output, limit, arguments):
    """Run a command line, no file growing beyond a limit, and write what it prints to two files."""
    sys.dont_write_bytecode = True  # what has no room would be written in part
    for number, file in enumerate(output, 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    embedders._load_service = lambda *_: TextEmbeddings()
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    sys.argv = ["arag", *arguments]
    main()


CHANGES = {
    "first": (None, corpus(1)),
    "a few": (corpus(1), corpus(2)),
    "all": (corpus(3), corpus(4)),
    "removals": (corpus(1), dict(list(corpus(1).items())[9:])),
}


class Run:
    """An index, the documents that it gets next, and what it then must be like."""

    def __init__(self, folder, change):
        self.before, self.after = CHANGES[change]
        self.folder = folder
        self.source, self.start = folder / "corpus", folder / "start"
        self.index = folder / "index"
        if self.before is not None:
            write(self.source, self.before)
            ingest(self.source, self.start)
        write(self.source, self.after)
        ingest(self.source, folder / "target")
        self.expected = contents(folder / "target")
        self.sizes = [file.stat().st_size for file in (folder / "target").rglob("*") if file.is_file()]

    def at(self, folder):
        """Return the same run, with its index in another folder."""
        run = copy(self)
        run.index = folder / "index"
        return run

    def begin(self):
        shutil.rmtree(self.index, ignore_errors=True)
        if self.before is not None:
            shutil.copytree(self.start, self.index)
            trust(self.index)

    def ingest(self, limit=resource.RLIM_INFINITY):
        """Ingest by the command line, no file growing beyond a limit; tell whether it was done."""
        arguments = ["ingest", self.source, "--index", self.index, "--embedder", EMBEDDER, "--chunk-tokens", 50]
        output = self.folder / "out", self.folder / "err"
        process = processes.Process(
            target=command_with_small_files, args=(output, limit, [*map(str, arguments), "--prune"])
        )
        process.start()
        process.join()
        out, err = (file.read_text(encoding="utf-8") for file in output)
        if process.exitcode != 0:
            assert (process.exitcode, out) == (1, ""), err
            lines = r"((Note|Reading|Embedding|Publishing): [^\n]*\n|Loading the embedder\n|Removing \d+ doc[^\n]*\n)*"
            assert re.fullmatch(rf"{lines}Error: [^\n]* cannot be written[^\n]*\n", err), err
        return process.exitcode == 0

    def check_served(self, *, done):
        found = served(self.index)
        if not done and found != self.after:  # only the deletion of what was replaced may still have failed
            assert found == self.before
        assert not done or found == self.after

    def finish(self):
        ingest(self.source, self.index, prune=True)
        assert served(self.index) == self.after
        assert contents(self.index) == self.expected


@pytest.fixture(scope="module")
def run_of(tmp_path_factory):
    """A function that returns the run of a change, which the tests share."""
    return cache(lambda change: Run(tmp_path_factory.mktemp("run"), change))


def run_with_small_files(run, fractions):
    """Let no file grow beyond some fractions of the largest that is needed."""
    for fraction in fractions:
        run.begin()
        done = run.ingest(limit=int(fraction * max(run.sizes)))
        assert not done or fraction > 0.5
        run.check_served(done=done)
        run.finish()


@pytest.mark.parametrize(("change", "fraction"), [("first", 0.6), ("a few", 0.1), ("removals", 0.04)])
def test_files_that_cannot_grow_end_a_run_that_the_next_finishes(run_of, change, fraction):
    run_with_small_files(run_of(change), [fraction])


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_files_that_cannot_grow_to_any_size_end_a_run_that_the_next_finishes(run_of, change):
    run_with_small_files(run_of(change), np.linspace(0.05, 1.1, 8))


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine mounts no disk for us")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk, leave):
    """Fill a disk but for some bytes; return the file that fills it."""
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4_096))
    os.truncate(ballast, max(0, ballast.stat().st_size - leave))
    return ballast


def run_on_a_small_disk(run, disk, fractions):
    """Leave some fractions of the space that the index takes."""
    run = run.at(disk)
    for fraction in fractions:
        run.begin()
        ballast = fill(disk, int(fraction * sum(run.sizes)))
        done = run.ingest()
        ballast.unlink()
        assert not done or fraction > 0.5
        run.check_served(done=done)
        run.finish()


@pytest.mark.parametrize(("change", "fractions"), [("first", [0.2]), ("a few", [0, 0.7])])
def test_a_full_disk_ends_a_run_that_the_next_finishes(run_of, small_disk, change, fractions):
    run_on_a_small_disk(run_of(change), small_disk, fractions)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_a_disk_with_any_room_ends_a_run_that_the_next_finishes(run_of, small_disk, change):
    run_on_a_small_disk(run_of(change), small_disk, np.linspace(0, 2, 15))


def test_an_open_reader_does_not_mind_a_full_disk(run_of, small_disk):
    run = run_of("a few").at(small_disk)
    run.begin()
    with open_index(run.index, embedder=TextEmbeddings()) as index:
        results = index.keyword_search("revision 1"), index.semantic_search("revision 1")
        ballast = fill(small_disk, 0)
        assert not run.ingest()
        assert (index.keyword_search("revision 1"), index.semantic_search("revision 1")) == results
        ballast.unlink()
        assert run.ingest()
        assert index.keyword_search("revision 2").total > 0
    assert contents(run.index) == run.expected


def test_a_sound_index_on_a_full_disk_is_opened_and_cared_for_when_there_is_room(run_of, small_disk):
    run = run_of("a few").at(small_disk)
    run.begin()
    ballast = fill(small_disk, 0)
    with open_index(run.index, embedder=TextEmbeddings()) as index:
        assert index.keyword_search("revision 1").hits
        assert index.semantic_search("revision 1").hits
        for care in (lambda: verify(run.index, repair=True), lambda: remove("d1", run.index)):
            with pytest.raises(StorageError, match="cannot be written to"):
                care()
        ballast.unlink()
        run.finish()
        assert index.keyword_search("revision 2").hits


def test_a_repair_that_has_no_room_leaves_the_index_as_it_was(run_of, small_disk):
    run = run_of("a few").at(small_disk)
    for fraction in (0.05, 0.6):
        run.begin()
        next(run.index.glob("keywords-*")).unlink()
        ballast = fill(small_disk, int(fraction * sum(run.sizes)))
        with pytest.raises(StorageError):
            verify(run.index, repair=True)
        ballast.unlink()
        assert served(run.index) == run.before
        assert verify(run.index, repair=True)[1] == []
        assert served(run.index) == run.before


@pytest.mark.parametrize("change", ["first", "all"])
def test_a_process_that_had_no_room_goes_on_when_there_is_some(run_of, small_disk, change):
    run = run_of(change).at(small_disk)
    for fraction in (0, 0.2, 0.4):
        run.begin()
        ballast = fill(small_disk, int(fraction * sum(run.sizes)))
        with pytest.raises(StorageError):
            ingest(run.source, run.index, prune=True)
        ballast.unlink()
        run.finish()


def test_a_reader_that_has_no_room_to_open_the_graph_compares_every_vector(run_of, small_disk, through_chroma):
    run = run_of("a few").at(small_disk)
    run.begin()
    ballast = fill(small_disk, 0)
    with open_index(run.index, embedder=TextEmbeddings()) as index, pytest.warns(UserWarning, match="is not used"):
        found = index.semantic_search("revision 1")
    ballast.unlink()
    with open_index(run.index, embedder=TextEmbeddings()) as index, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [hit.chunk_id for hit in index.semantic_search("revision 1").hits] == [
            hit.chunk_id for hit in found.hits
        ]


# --- a failing embedder ---


class FailingEmbeddings(TextEmbeddings):
    """Fails at one call, by what an answer to it is made by."""

    def __init__(self, number, failure):
        super().__init__()
        self.calls = 0
        self.number, self.failure = number, failure

    def embed_documents(self, texts):
        self.calls += 1
        return self.failure(texts) if self.calls == self.number else super().embed_documents(texts)


def raising(error):
    def fail(texts):
        raise error

    return fail


FAILURES = {
    "connection": raising(ConnectionError("the service went away")),
    "service": raising(OpenAIError("too many requests")),
    "answer": raising(ValueError("no data in the answer")),
    "one too few": lambda texts: TextEmbeddings().embed_documents(texts[1:]),
    "not a number": lambda texts: np.full((len(texts), 64), np.nan).tolist(),
    "another length": lambda texts: np.ones((len(texts), 65)).tolist(),
}


@pytest.mark.parametrize(
    ("number", "failure", "concurrency"), [(1 + n % 5, name, 1 + n % 2 * 3) for n, name in enumerate(FAILURES)]
)
def test_a_failing_embedder_ends_a_run_that_the_next_finishes(tmp_path, run_of, number, failure, concurrency):
    run = run_of("all").at(tmp_path)
    run.begin()
    failing = FailingEmbeddings(number, FAILURES[failure])
    with pytest.raises(ModelError, match=EMBEDDER):
        run_ingest(
            run.source, run.index, embedder=Embedder(EMBEDDER, lambda: failing, batch=40, concurrency=concurrency)
        )
    assert served(run.index) == run.before
    again = TextEmbeddings()
    run_ingest(run.source, run.index, embedder=again, prune=True)
    if concurrency == 1:
        assert len(failing.embedded) >= 30 * (number - 1)
        # What was embedded after the call that failed is lost with it.
        assert set(failing.embedded[: 30 * (number - 1)]).isdisjoint(again.embedded)
    assert served(run.index) == run.after
    assert contents(run.index) == run.expected


@pytest.mark.parametrize("number", [1, 2])
def test_an_embedder_that_fails_at_a_first_ingestion_leaves_no_index(tmp_path, number):
    source, index = tmp_path / "corpus", tmp_path / "index"
    write(source, corpus(1))
    failing = FailingEmbeddings(number, FAILURES["service"])
    with pytest.raises(ModelError, match="too many requests"):
        run_ingest(source, index, embedder=Embedder(EMBEDDER, lambda: failing))
    assert served(index) is None
    ingest(source, index)
    assert served(index) == corpus(1)
    assert_like_uninterrupted(index, corpus(1), tmp_path / "uninterrupted")
