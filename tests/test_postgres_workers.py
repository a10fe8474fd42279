"""Several processes write to one index in PostgreSQL at once, and others read it meanwhile."""

from __future__ import annotations

import random
import re
import threading
import time
from contextlib import ExitStack

import psycopg
import pytest

from arag.errors import ARAGError
from arag.ingest.pipeline import run_ingest
from arag.ingest.writer import open_writer
from arag.models.embedders import Embedder
from arag.retrieval.index import open_index
from arag.retrieval.locations import backend_at
from fakes import write_corpus
from forked import processes
from test_crash import EMBEDDER, TextEmbeddings, corpus, write
from test_postgres_crash import (
    assert_tables_are_whole,
    contents,
    ingest,
    new_place,
    running,
    served,
    uninterrupted,
    work_in_pieces,
)

# --- several processes share a run ---


def poll(place, seen, ended):
    """Note every state of an index that readers see."""
    while not ended.wait(0.2):
        texts = served(place)
        if texts not in seen:
            seen.append(texts)


def share(source, place, others, *, processes_at_once):
    """Ingest a source in several processes at once; return what each of them embedded."""
    seen, ended = [served(place)], threading.Event()
    reader = threading.Thread(target=poll, args=(place, seen, ended))
    reader.start()
    runs = [running(each, place, prune=True) for each in ([source] * processes_at_once + list(others))]
    try:
        started = [run.__enter__() for run in runs]
        told = [run.result() for run in started]
    finally:
        ended.set()
        reader.join()
        for run in runs:
            run.__exit__(None, None, None)
    last = served(place)
    return told, seen if last in seen else [*seen, last]


def test_several_processes_share_a_run(tmp_path, shared_database):
    one, other, both = (tmp_path / name for name in ("one", "other", "both"))
    first = corpus(1)
    more = {f"other {i}": text.replace("document", "paper") for i, text in corpus(2).items()}
    write(one, first)
    write(other, more)
    write(both / "one", first)
    write(both / "other", more)
    place = new_place(shared_database)
    told, seen = share(one, place, [other], processes_at_once=2)
    embedded = [result[0] for result in told]
    assert_tables_are_whole(place)
    assert sorted(text for text in served(place).items()) == sorted((first | more).items())
    with open_index(place, embedder=TextEmbeddings()) as index:
        texts = [text for i in index.chunk_ids() for text in index.get(i).embedded_texts()]
        assert index._snapshot.manifest.generation == 1
    assert len(set(texts)) <= sum(embedded) <= len(texts)
    assert seen == [None, first | more]
    single = uninterrupted(both)
    shared = contents(place)
    assert [(r[0], r[1], *r[3:]) for r in shared[0]] == [(r[0], r[1], *r[3:]) for r in single[0]]  # not the sources
    assert shared[1:] == single[1:]
    write(one, corpus(2))
    told, seen = share(one, place, [], processes_at_once=3)
    assert seen == [first | more, corpus(2) | more]
    assert_tables_are_whole(place)


def test_files_of_one_name_do_not_replace_each_other(tmp_path, shared_database):
    """Another process gives a file's id to its own file after it was named here."""
    place = new_place(shared_database)
    for folder in ("left", "right"):
        write_corpus(tmp_path / folder, {"note.md": f"The {folder} note.", f"{folder}.md": f"Only {folder}."})

    def files():
        yield tmp_path / "left" / "note.md"
        other = others.enter_context(running(tmp_path / "right", place))
        wait_for_documents(place, 2)
        yield tmp_path / "left" / "left.md"
        ended.append(other)

    ended = []
    with ExitStack() as others:
        summary = run_ingest(files(), place, embedder=TextEmbeddings(), chunk_tokens=50)
        assert isinstance(ended[0].result(), tuple)
    assert [str(problem) for problem in summary.problems] == [
        f"{tmp_path}/left/note.md: its id 'note.md' has just been given to {tmp_path}/right/note.md: ingest it again"
    ]
    assert "note.md" in served(place)
    ingest(tmp_path / "left", place)
    ingest(tmp_path / "right", place)
    assert sorted(served(place).values()) == ["Only left.", "Only right.", "The left note.", "The right note."]
    assert_tables_are_whole(place)


def wait_for_documents(place, number):
    """Wait until a process has inserted documents, which readers do not see yet."""
    schema = place.partition("?index=")[2]
    with psycopg.connect(place.partition("?")[0], autocommit=True) as connection:
        for _ in range(3_000):
            if connection.execute(f"SELECT count(*) FROM {schema}.documents").fetchone() == (number,):
                return
            time.sleep(0.01)
    raise AssertionError


# --- races ---


def edition(n, version):
    return " ".join(f"Edition {version} has document w{n} with its line {k}." for k in range(3))


def churn(place, seed, rounds, news):
    """Write and remove the same documents as others do, in an order of its own."""
    work_in_pieces()
    draw = random.Random(seed)
    try:
        for turn in range(rounds):
            ids = draw.sample(range(12), draw.randint(1, 12))
            if draw.random() < 0.3:
                with open_writer(backend_at(place), embedder=TextEmbeddings(), shared=True) as writer:
                    writer.remove([f"d{n}" for n in ids[:4]])
                    if draw.random() < 0.5:
                        writer.commit()
            else:
                documents = [{"id": f"d{n}", "text": edition(n, 1_000 * seed + turn)} for n in ids]
                embedder = Embedder(EMBEDDER, TextEmbeddings, batch=4, concurrency=2)
                run_ingest(documents, place, embedder=embedder, chunk_tokens=50)
        news.send(None)
    except ARAGError as error:
        news.send(error)


def race(place, *, writers, rounds):
    ingest([{"id": f"d{n}", "text": edition(n, 0)} for n in range(12)], place)
    news = []
    started = []
    for seed in range(1, writers + 1):
        receiver, teller = processes.Pipe(duplex=False)
        process = processes.Process(target=churn, args=(place, seed, rounds, teller))
        process.start()
        teller.close()
        started.append(process)
        news.append(receiver)
    searches = 0
    with open_index(place, embedder=TextEmbeddings()) as index:
        while any(process.is_alive() for process in started):
            searches += 1
            # A document's chunks are all of one edition, and all are there.
            found = index.keyword_search("edition", 1_000)
            editions = {}
            for hit in found.hits:
                for sentence in (s for snippet in hit.snippets for s in snippet.sentences):
                    editions.setdefault(hit.chunk_id.split(":")[0], set()).update(
                        re.findall(r"Edition (\d+)", sentence.text)
                    )
            assert all(len(each) == 1 for each in editions.values())
            assert found.total == len(found.hits)
            for hit in index.semantic_search("Which document has a line?", 5).hits:
                assert "Edition" in hit.snippets[0].sentences[0].text
            for chunk in index.read(["d3:0"], adjacent=2).chunks:
                assert len(set(re.findall(r"Edition (\d+)", chunk.text))) == 1
    assert [receiver.recv() for receiver in news] == [None] * writers
    for process in started:
        process.join()
    documents = [{"id": f"d{n}", "text": edition(n, 9)} for n in range(12)]
    ingest(documents, place)
    assert_tables_are_whole(place)
    assert served(place) == {f"d{n}": edition(n, 9) for n in range(12)}
    return searches


def test_processes_that_change_the_same_documents_never_wait_for_each_other(shared_database):
    assert race(new_place(shared_database), writers=2, rounds=8) > 3


@pytest.mark.slow
def test_processes_that_change_the_same_documents_for_long(shared_database):
    assert race(new_place(shared_database), writers=3, rounds=120) > 100
