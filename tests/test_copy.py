"""A copied index answers as the one it was copied from, wherever both are, and whatever happens on the way."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag import copy_index
from arag.errors import (
    EmbedderError,
    IndexFormatError,
    IndexLockedError,
    IndexNotFoundError,
    InputError,
    StorageError,
)
from arag.ingest import copying
from arag.ingest.maintenance import remove
from arag.ingest.pipeline import ingest
from arag.retrieval.backend import DocumentRecord, Manifest
from arag.retrieval.index import open_index
from arag.retrieval.local.manifest import read_manifest
from arag.retrieval.locations import backend_at
from arag.retrieval.types import Chunk, Section, Sentence
from fakes import DIMENSION, HashEmbeddings
from forked import processes

KINDS = ("folder", "memory", "postgres")
PAIRS = [(one, other) for one in KINDS for other in KINDS]
DOCUMENTS = [
    *(
        {"id": f"d{n}", "text": f"Ship{n} was built in {1500 + n}. It sailed to port {n % 7}.", "year": n}
        for n in range(30)
    ),
    {
        "id": "odd",
        "title": "Ödd Ⅷ",
        "text": "Ça va? İstanbul’da 東京 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 e\u0301 \u202e x%_\\ ''\"\". 北京是首都。",
    },
    {"id": "long", "text": " ".join(f"In {n} nobody of note came to the fair." for n in range(1500, 1560))},
    {"id": "vectorless", "text": "!!! ???"},
]


class Other(HashEmbeddings):
    model = "other"


@pytest.fixture
def new_place(places, tmp_path):
    """A function that returns a new place of a kind."""
    numbers = count()
    return lambda kind="folder": places(kind, tmp_path / f"place-{next(numbers)}")


def write(place, documents=DOCUMENTS, **options):
    options = {"embedder": HashEmbeddings(), "chunk_tokens": 60, "pack": True} | options
    ingest(documents, place, **options).close()
    return place


@pytest.fixture(scope="module")
def sources(places, tmp_path_factory):
    """The same index in a place of each kind."""
    return {kind: write(places(kind, tmp_path_factory.mktemp("source") / "index")) for kind in KINDS}


def contents(place):
    """Everything that an index holds, in order."""
    with closing(backend_at(place).reader()) as reader:
        generation = reader.generation()
        chunks = [
            (chunk, np.asarray(vectors, np.float16).tobytes())
            for _, chunk, vectors in generation.chunks.embedded_chunks()
        ]
        return chunks, list(generation.chunks.documents()), settings(generation.manifest), generation.chunks.counts()


def settings(manifest):
    return {f: getattr(manifest, f) for f in Manifest.__dataclass_fields__ if f != "generation"}


def answers(index, query):
    semantic = index.semantic_search(query, 5).hits
    return (
        index.keyword_search(query.split() or ["x"], 5),
        [(hit.chunk_id, round(hit.score, 3), hit.snippets) for hit in semantic],
        index.find_documents(query, 5),
    )


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_copy_holds_what_its_source_holds(sources, new_place, one, other):
    target = new_place(other)
    summary = copy_index(sources[one], target)
    assert contents(target) == contents(sources[one])
    assert summary.written == summary.chunks == len(contents(target)[0])
    assert copy_index(sources[one], target).written == 0


@pytest.mark.parametrize("kind", ["folder", "postgres"])
def test_a_copy_of_a_copy_is_equal(sources, new_place, kind):
    second = copy_of(sources["memory"], new_place(kind))  # whose vectors have 32 bits
    assert contents(copy_of(second, new_place("memory"))) == contents(second)


@pytest.fixture(scope="module")
def copies(places, sources, tmp_path_factory):
    """The source in the folder, and its copies, all open."""
    made = [sources["folder"]]
    for kind in KINDS:
        made.append(places(kind, tmp_path_factory.mktemp("copy") / "index"))
        copy_index(sources["folder"], made[-1])
    opened = [open_index(place, embedder=HashEmbeddings()) for place in made]
    yield opened
    for index in opened:
        index.close()


@given(
    st.lists(
        st.sampled_from("ship ship7 built 1530 port sailed it İstanbul 東京 北京 fair nobody d1 zzz %".split()),
        min_size=1,
        max_size=3,
    )
)
def test_searches_of_all_kinds_find_the_same_in_a_copy(copies, words):
    expected, *found = [answers(index, " ".join(words)) for index in copies]
    assert found == [expected] * len(found)


def chunk(chunk_id, text, *sentences, documents=("d",), **fields):
    end = len(text)
    sections = tuple(Section(i, f"Title of {i}", 0, end, whole=False) for i in documents)
    found = {"ordinal": 0, "tokens": 1} | fields
    return Chunk(
        chunk_id, documents[0], found["ordinal"], text, sections, sentences, found["tokens"], fields.get("pages")
    )


def make(place, rows, *records):
    """Write an index through its ports."""
    backend = backend_at(place)
    backend.make()
    manifest = Manifest("HashEmbeddings:hash-64", DIMENSION, 77, "o200k_base, estimate", "de", packed=True)
    with backend.lock(), backend.draft(lambda: manifest) as draft:
        draft.chunks.add_embedded(rows)
        draft.chunks.add_documents(records)
        draft.publish(draft.manifest)
    return place


def record(document_id, fingerprint="f", **fields):
    return replace(DocumentRecord(document_id, "", "", "{}", fingerprint, 1), **fields)


@pytest.mark.parametrize(("one", "other"), [("folder", "postgres"), ("postgres", "folder"), ("memory", "postgres")])
def test_unusual_chunks_are_copied_as_they_are(new_place, one, other):
    none = np.zeros((0, DIMENSION), np.float32)
    zero = np.zeros((2, DIMENSION), np.float32)
    zero[1, 3] = -0.0
    rows = [
        (chunk("ready made #1", "A text.", Sentence(0, 7, embedded=True), pages=(3, 4)), zero[:1]),
        (chunk("d:1", "", ordinal=1), none),
        (
            chunk(
                "shared",
                "x y",
                Sentence(0, 1, True),
                Sentence(1, 2, False),
                Sentence(2, 3, True),
                documents=("d", "e"),
                ordinal=2,
            ),
            zero,
        ),
        (chunk("\u0001\u200b𝔘", "\r\n\t\u0001\uffff", documents=("𝔘",)), none),
    ]
    source = make(
        new_place(one), rows, record("d", "", title="\u2028"), record("e", metadata='{"a": [1, null]}'), record("𝔘")
    )
    target = new_place(other)
    copy_index(source, target)
    assert contents(target) == contents(source)
    assert [found for found, _ in contents(target)[0]] == [found for found, _ in rows]


@pytest.mark.parametrize("kind", ["folder", "postgres"])
def test_an_index_without_documents_is_copied(new_place, kind):
    source = write(new_place(), [{"id": "a", "text": "Gone."}])
    remove("a", source)
    target = new_place(kind)
    assert copy_index(source, target).documents == 0
    assert contents(target) == contents(source)


# --- what the target may be ---


@pytest.mark.parametrize(("one", "other"), [("folder", "postgres"), ("memory", "folder")])
def test_an_earlier_copy_is_brought_up_to_date(new_place, one, other):
    source = write(new_place(one))
    target = new_place(other)
    copy_index(source, target)
    news = [*DOCUMENTS[5:], {"id": "d1", "text": "Another text."}, {"id": "new", "text": "News."}]
    news[3] = {**news[3], "year": -1}
    write(source, news)
    copied = copy_index(source, target)
    assert contents(target) == contents(source)
    assert 0 < copied.written < copied.chunks
    remove(["d0", "d2"], source)
    with pytest.raises(InputError, match=r"holds documents that .* does not have: 'd0', 'd2'.*Nothing was copied"):
        copy_index(source, target)
    remove(["d0", "d2"], target)
    copy_index(source, target)
    assert contents(target) == contents(source)


def test_chunks_in_another_order_are_written_again(new_place):
    source = write(new_place("memory"), DOCUMENTS, pack=False)
    target = write(new_place("memory"), DOCUMENTS[::-1], pack=False)
    assert copy_index(source, target).written > 0
    assert contents(target) == contents(source)


@pytest.mark.parametrize("kind", KINDS)
def test_another_corpus_is_never_mixed_in(new_place, sources, kind):
    target = write(new_place(kind), [{"id": "mine", "text": "Mine alone."}])
    before = contents(target)
    with pytest.raises(InputError, match="'mine'"):
        copy_index(sources["folder"], target)
    assert contents(target) == before


@pytest.mark.parametrize("kind", ["folder", "postgres"])
def test_unpublished_documents_of_the_target_are_not_lost(new_place, sources, kind):
    target = copy_of(sources["folder"], new_place(kind))
    with pytest.raises(EmbedderError):
        write(target, [{"id": "unpublished", "text": "A new text."}], embedder=HashEmbeddings(fail_after=0))
    with pytest.raises(InputError, match="unpublished"):
        copy_index(sources["folder"], target)


def copy_of(source, target):
    copy_index(source, target)
    return target


@pytest.mark.parametrize("kind", ["memory", "postgres"])
def test_an_interrupted_ingestion_of_the_same_documents_makes_room(new_place, sources, kind):
    target = copy_of(sources["folder"], new_place(kind))
    with pytest.raises(EmbedderError):
        write(target, [{"id": "d3", "text": "A new text of d3."}], embedder=HashEmbeddings(fail_after=0))
    copy_index(sources["folder"], target)
    assert contents(target) == contents(sources["folder"])


def test_vectors_of_another_embedder_are_refused(new_place, sources):
    target = write(new_place(), DOCUMENTS[:2], embedder=Other())
    with pytest.raises(EmbedderError, match=r"another embedder \(HashEmbeddings:other|Other:other"):
        copy_index(sources["folder"], target)
    remove(["d0", "d1"], target)  # an empty index takes everything over
    copy_index(sources["folder"], target)
    assert contents(target) == contents(sources["folder"])


def test_an_index_is_not_copied_to_itself(sources, monkeypatch):
    monkeypatch.chdir(sources["folder"].parent)
    for place in sources.values():
        with pytest.raises(InputError, match="itself"):
            copy_index(place, place)
    with pytest.raises(InputError, match="itself"):
        copy_index(sources["folder"], "./index")


def test_there_must_be_a_source(new_place):
    target = new_place()
    with pytest.raises(IndexNotFoundError):
        copy_index(new_place(), target)
    assert not target.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_a_locked_target_is_left_alone(new_place, sources, kind):
    target = copy_of(sources["folder"], new_place(kind))
    backend = backend_at(target)
    with backend.lock(), pytest.raises(IndexLockedError):
        copy_index(sources["folder"], target)


def test_a_read_only_source_is_copied(new_place, sources, tmp_path):
    source = shutil.copytree(sources["folder"], tmp_path / "read-only")
    for path in (*source.rglob("*"), source):
        path.chmod(0o555 if path.is_dir() else 0o444)
    target = copy_of(source, new_place())
    assert contents(target) == contents(sources["folder"])


def test_no_embedder_is_loaded_or_named(new_place, monkeypatch):
    source = write(new_place())
    file = source / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"embedder": "openai:some-model@http://example.com/v1"}))
    monkeypatch.setattr("arag.models.embedders.load_embeddings", None)
    target = copy_of(source, new_place())
    assert read_manifest(target).embedder == "openai:some-model@http://example.com/v1"


# --- what goes wrong ---


def test_characters_that_postgres_cannot_store_are_named(new_place):
    source = make(new_place(), [(chunk("d:0", "a\0b"), np.zeros((0, DIMENSION), np.float32))], record("d"))
    copy_index(source, new_place())
    with pytest.raises(InputError, match=r"the chunk 'd:0' holds the character U\+0000"):
        copy_index(source, new_place("postgres"))


@pytest.mark.parametrize("kind", ["folder", "postgres"])
def test_a_damaged_source_is_not_published(new_place, kind):
    source = write(new_place())
    with closing(sqlite3.connect(source / "chunks.sqlite3")) as connection, connection:
        connection.execute("UPDATE contents SET text = text || '!' WHERE number = 3")
    target = new_place(kind)
    with pytest.raises(IndexFormatError, match="checksum"):
        copy_index(source, target)
    with pytest.raises(IndexNotFoundError, match="unfinished copy"):
        open_index(target, embedder=HashEmbeddings())


def test_lost_vectors_are_noticed(new_place):
    source = write(new_place())
    with closing(sqlite3.connect(source / "chunks.sqlite3")) as connection, connection:
        connection.execute("DELETE FROM vectors WHERE number = 3")
    with pytest.raises(StorageError, match="chunks instead of"):
        copy_index(source, new_place())


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_that_differs_is_not_published(new_place, sources, kind, monkeypatch):
    target = copy_of(sources["folder"], new_place(kind))
    newer = copy_of(sources["folder"], new_place("memory"))
    write(newer, [{"id": "d1", "text": "Another text."}])
    before = contents(target)

    def lose(items):
        return (batch[:-1] for batch in batches(items))

    batches = copying._batches
    monkeypatch.setattr(
        copying, "_batches", lambda items: lose(items) if "_find_changes" in str(items) else batches(items)
    )
    with pytest.raises(StorageError, match="differs from"):
        copy_index(newer, target)
    assert contents(target) == before
    monkeypatch.undo()
    copy_index(newer, target)
    assert contents(target) == contents(newer)


@pytest.mark.parametrize("kind", ["folder", "postgres"])
def test_a_source_that_is_written_to_is_followed(new_place, kind, monkeypatch):
    monkeypatch.setattr(copying, "_BATCH", 5)
    source = write(new_place(kind), pack=False)
    versions = iter([DOCUMENTS[20:], [{"id": "new", "text": "News."}]])

    def on_progress(now):
        if now.phase == "copying" and now.done > 10 and (documents := next(versions, None)):
            if "d0" in held(source):
                remove(["d0", "d1", "d2"], source)
            write(source, documents, pack=False)

    target = new_place("memory")
    copy_index(source, target, progress=on_progress)
    assert contents(target) == contents(source)
    assert "new" in held(target)
    assert "d0" not in held(target)


def held(place):
    return {document.id for document in contents(place)[1]}


def test_a_source_that_never_rests_ends_the_copy(new_place, monkeypatch):
    monkeypatch.setattr(copying, "_MAX_PASSES", 2)
    source, numbers = write(new_place("memory")), count()
    target = new_place("memory")

    def on_progress(now):
        if now.phase == "copying":
            write(source, [{"id": "d1", "text": f"Version {next(numbers)}."}])

    with pytest.raises(StorageError, match="again and again"):
        copy_index(source, target, progress=on_progress)
    copy_index(source, target)
    assert contents(target) == contents(source)


# --- interrupted ---


def interrupt(source, target, after):
    """Copy, and be stopped after some chunks."""

    def on_progress(now):
        if now.phase == "copying" and now.done >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_index(source, target, progress=on_progress)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_rest_is_copied(new_place, sources, kind, monkeypatch):
    monkeypatch.setattr(copying, "_BATCH", 5)
    target = new_place(kind)
    interrupt(sources["folder"], target, 10)
    with pytest.raises(IndexNotFoundError, match="unfinished copy: finish it with `arag copy "):
        open_index(target, embedder=HashEmbeddings())
    with pytest.raises(IndexNotFoundError, match="unfinished copy"):
        write(target)
    with pytest.raises(IndexNotFoundError, match="unfinished copy"):
        copy_index(target, new_place())
    with pytest.raises(InputError, match="unfinished copy of"):
        copy_index(sources["postgres"], target)
    summary = copy_index(sources["folder"], target)
    assert summary.chunks - 15 <= summary.written <= summary.chunks - 5
    assert contents(target) == contents(sources["folder"])


def test_what_the_source_has_lost_meanwhile_leaves_an_unfinished_copy(new_place, monkeypatch):
    monkeypatch.setattr(copying, "_BATCH", 5)
    source, target = write(new_place("memory"), pack=False), new_place("postgres")
    interrupt(source, target, 20)
    remove(["d0", "d4"], source)
    summary = copy_index(source, target)
    assert contents(target) == contents(source)
    assert 0 < summary.written < summary.chunks


def copy_until(source, target, step):
    """Copy, and be killed at a step."""
    copying._BATCH = 5
    steps = count(1)

    def on_progress(_):
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    copy_index(source, target, progress=on_progress)


def copy_killed_after(source, target, seconds):
    copying._BATCH = 5
    signal.setitimer(signal.ITIMER_REAL, seconds)  # whose signal ends a process that does not handle it
    copy_index(source, target)


def kill_again_and_again(source, target, *, kills, seed):
    draw = random.Random(seed)
    for _ in range(kills):
        at_step = draw.random() < 0.5
        how = (copy_until, draw.randint(1, 25)) if at_step else (copy_killed_after, draw.uniform(0.01, 0.6))
        process = processes.Process(target=how[0], args=(source, target, how[1]))
        process.start()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL, -signal.SIGALRM)
        if process.exitcode == 0:
            break


@pytest.mark.parametrize(
    ("other", "is_update"), [pytest.param("folder", False, marks=pytest.mark.slow), ("postgres", True)]
)
def test_a_killed_copy_is_finished_by_the_next(new_place, sources, other, is_update):
    killed_and_finished(sources["folder"], new_place(other), new_place, is_update=is_update, kills=2, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("is_update", [False, True])
@pytest.mark.parametrize("other", ["folder", "postgres"])
@pytest.mark.parametrize("seed", range(5))
def test_many_killed_copies_are_finished_by_the_next(new_place, sources, other, is_update, seed):
    killed_and_finished(sources["folder"], new_place(other), new_place, is_update=is_update, kills=4, seed=seed)


def killed_and_finished(source, target, new_place, *, is_update, kills, seed):
    if is_update:
        older = copy_of(source, new_place())
        write(older, [{"id": f"d{n}", "text": f"Ship{n} sank."} for n in range(10)])
        copy_index(older, target)
        before = contents(target)
    kill_again_and_again(source, target, kills=kills, seed=seed)
    if is_update:
        assert contents(target) in (before, contents(source))
    copy_index(source, target)
    assert contents(target) == contents(source)


# --- the command ---


def test_the_command_copies(arag, sources, new_place):
    target = new_place("postgres")
    code, out, err = arag("copy", sources["folder"], target)
    assert (code, err) == (0, "")
    assert out.startswith("Copied 33 documents")
    code, out, err = arag("copy", target, sources["folder"].parent / "back", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["documents"] == 33
    code, out, err = arag("copy", sources["folder"], target, "--json")
    assert json.loads(out)["written"] == 0
    code, out, err = arag("copy", "nowhere", target)
    assert (code, out) == (1, "")
    assert "no index in nowhere" in err


def test_progress_is_told(sources, new_place, capsys):
    told = []
    copy_index(sources["folder"], new_place(), progress=told.append)
    assert list(dict.fromkeys(now.phase for now in told)) == ["copying", "checking", "publishing", "done"]
    assert str(told[-1]).startswith("Done: ")
    assert all(now.done <= now.total for now in told)
    copy_index(sources["folder"], new_place(), progress=True)
    assert capsys.readouterr().err == ""  # it was over at once
