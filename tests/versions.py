"""A corpus in versions whose every sentence says which one it is of, what an index holds of it, and runs that end."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import sys
import time
import zlib
from collections import Counter
from contextlib import closing, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from arag.errors import ARAGError, IndexNotFoundError
from arag.ingest import pipeline
from arag.ingest.pipeline import run_ingest
from arag.models.embedders import Embedder
from arag.retrieval.index import open_index
from arag.retrieval.storage.folder import chroma
from arag.retrieval.storage.locations import using_store
from arag.retrieval.storage.postgres import connection
from arag.system.worker_process import WorkerProcess
from fakes import DIMENSION, HashEmbeddings, write_corpus
from forked import processes
from stores import read_all

EMBEDDER = "TextEmbeddings:text-64"
HANGING = 1.5  # seconds after which a writer to PostgreSQL that hangs loses its locks, in these tests


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


def corpus(version, documents=40):
    """The texts by id. A version changes a sixth of the documents, every fourth all; some go, and others come back."""
    texts = {}
    for n in range(documents):
        if (n + version) % 8:
            r = max(v for v in range(version - 6, version + 1) if v % 4 == 0 or v % 6 == n % 6)
            lines = [f"Line {k} is of revision {r} of document w{n}." for k in range(4 + (n + r) % 6)]
            texts[f"d{n}"] = " ".join([f"The document w{n} begins.", *lines])
    return texts


def write(source, texts):
    return write_corpus(source, [{"id": i, "title": f"Title of {i}", "text": text} for i, text in texts.items()])


def ingest(source, place, **options):
    return run_ingest(source, place, **({"embedder": TextEmbeddings(), "chunk_tokens": 50} | options))


# --- what an index holds ---


def served(place):
    """The documents' texts that readers see, None without an index. What they find must belong together."""
    try:
        index = open_index(place, embedder=TextEmbeddings())
    except IndexNotFoundError:
        return None
    with index:
        chunks = sorted(map(index.get, index.chunk_ids()), key=lambda chunk: (chunk.document_id, chunk.ordinal))
        texts = {}
        for chunk in chunks:
            texts[chunk.document_id] = texts.get(chunk.document_id, "") + chunk.text
        info = index.info()
        assert (info.documents, info.chunks) == (len(texts), len(chunks))
        for r in {*re.findall(r"revision \d+", " ".join(texts.values())), "revision 99"}:
            hits = index.keyword_search(f"{r} of", top_k=1_000).hits
            assert {hit.chunk_id for hit in hits} == {chunk.id for chunk in chunks if f"{r} of" in chunk.text}
        vectors = {}
        for chunk, positions, rows in index.sentence_vectors():
            vectors |= {(chunk.id, chunk.sentence_text(p)): row for p, row in zip(positions, rows, strict=True)}
        assert len(vectors) == info.sentences
        assert all(np.allclose(v, text_vector(text), atol=1e-3) for (_, text), v in vectors.items())  # as float16
        for _, text in list(vectors)[::50]:
            assert index.semantic_search(text, 1).hits[0].score == pytest.approx(1.0, abs=1e-5)
    return {i: text.removeprefix(f"Title of {i}\n\n") for i, text in texts.items()}


def contents(place):
    """All that an index holds, but for the numbers of its chunks and the places that the documents were read from.

    It has no damage, and Chroma finds every sentence.
    """
    with using_store(place) as store, closing(store.open()) as view:
        assert [str(damage) for damage in store.find_damage()] == []
        counts, documents, chunks, _ = read_all(store)
        for folder in place.glob("chroma-*") if isinstance(place, Path) else ():
            with closing(chroma.VectorIndex(folder, view.settings.sentences)) as graph:
                for number, positions, vectors in view.vectors(view.ordered_row_ids()):
                    for position, vector in zip(positions, vectors, strict=True):
                        assert (number, position) in graph.nearest(vector, 2)
    return counts, [replace(document, source="") for document in documents], chunks


def file_names(folder):
    return sorted(re.sub("[0-9a-f]{32}", "", file.name) for file in folder.iterdir())


@cache
def made_in_one_go(texts):
    """What an index of these texts, given as pairs, holds, and the names of its files."""
    with TemporaryDirectory() as folder:
        index = Path(folder, "index")
        ingest(write(Path(folder, "corpus"), dict(texts)), index)
        return contents(index), file_names(index)


def assert_like_uninterrupted(place, texts):
    """Compare an index with one that was made of these texts in one go; nothing else is left in its folder."""
    expected, names = made_in_one_go(tuple(texts.items()))
    assert contents(place) == expected
    if isinstance(place, Path):
        assert file_names(place) == names


# --- runs in processes of their own ---


def work_in_pieces():
    """Ingest in the way of a large corpus, in many batches, and notice soon who hangs."""
    connection._WRITER_SETTINGS["idle_in_transaction_session_timeout"] = f"{HANGING}s"
    pipeline._BATCH_DOCUMENTS = 12
    chroma._SENTENCES_PER_CALL = 50
    chroma._ADDED_PER_CALL = 50
    chroma._CHANGES_PER_SYNC = 60


def watch(step, place):
    """Tell of everything that is done to an index: to its files by SQL, Python and Chroma, or to its server."""

    def on_event(event, arguments):
        of_index = event == "open" and str(place) in str(arguments[0])
        if of_index or event.startswith("shutil.") or event in {"os.rename", "os.remove", "os.rmdir", "os.mkdir"}:
            step(event)

    def connect(*arguments, **options):
        connected = connect_to(*arguments, **options)
        connected.set_trace_callback(lambda sql: step(sql.split(maxsplit=1)[0]))
        return connected

    def announce(owner, method, name):
        original = getattr(owner, method)

        def call(*arguments, **options):
            step(announced := name(*arguments))
            result = original(*arguments, **options)
            step(f"{announced} done")
            return result

        setattr(owner, method, call)

    def copy(self, table, types, rows):
        def told():
            for row in rows:
                step(f"row of {table}")
                yield row

        copy_rows(self, table, types, told())

    sys.addaudithook(on_event)
    connect_to, sqlite3.connect = sqlite3.connect, connect
    announce(os, "fsync", lambda *_: "fsync")
    announce(WorkerProcess, "call", lambda _, name, *rest: name)
    for method in ("query", "execute"):
        announce(connection.Session, method, lambda _, sql, *rest: " ".join(sql.split()[:3])[:40])
    copy_rows, connection.Session.copy = connection.Session.copy, copy


def ingest_until(moment, news, source, place, options):
    """Ingest; tell when the n-th step of a kind comes, and send this process a signal, if there is one."""
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
    watch(step, place)
    began = time.monotonic()
    step("start")
    try:
        embedder = Embedder(EMBEDDER, Watched, batch=40, concurrency=2)
        summary = ingest(source, place, embedder=embedder, **options)
        news.send((summary.embedded, steps, time.monotonic() - began))
    except ARAGError as error:
        news.send(error)


class Run:
    """A process that ingests; it is killed where the `with` statement ends.

    Args:
        source: What it ingests.
        place: Where.
        moment: At which step it tells so, and gets which signal: kind, number, signal or 0.
        options: Further options of the ingestion.
    """

    def __init__(self, source, place, *, moment=("none", 0, 0), **options):
        self.news, teller = processes.Pipe(duplex=False)
        self.process = processes.Process(target=ingest_until, args=(moment, teller, source, place, options))
        self.process.start()
        teller.close()
        self._last = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()

    def wait_for_moment(self):
        """Wait until it comes to its step; tell whether it does."""
        with suppress(EOFError):
            assert self.news.poll(120)
            self._last = self.news.recv()
        return self._last == "now"

    def result(self):
        """Return what the run embedded, its steps and its seconds; or its error; or None if it was killed."""
        with suppress(EOFError):
            while self._last in (None, "now"):
                assert self.news.poll(120), "it does not end"
                self._last = self.news.recv()
        self.process.join(120)
        killed = self._last in (None, "now")
        assert self.process.exitcode == -signal.SIGKILL or (self.process.exitcode == 0 and not killed)
        return None if killed else self._last


def kill_somewhere(draw, usual, source, place):
    """Ingest, and kill the run at a step of any kind or at any time; return its result, None if it was killed."""
    _, steps, seconds = usual
    kind = draw.choice(sorted(steps))
    at_step = kind, draw.randint(1, steps[kind]), signal.SIGKILL
    moment, delay = draw.choice([(at_step, 0), (at_step, 0), (("start", 1, 0), draw.uniform(0, seconds))])
    with Run(source, place, moment=moment, prune=True) as run:
        if delay and run.wait_for_moment():
            time.sleep(delay)
            run.process.kill()
        return run.result()
