"""A copied index answers as the one it was copied from, wherever both are, and whatever happens on the way."""

from __future__ import annotations

import os
import re
import signal
from dataclasses import replace
from itertools import count

import pytest

from arag import copy_index
from arag.errors import IndexLockedError, IndexNotFoundError, InputError, ModelError
from arag.ingest import copying
from arag.ingest.maintenance import remove, verify
from arag.ingest.pipeline import ingest
from arag.retrieval.index import open_index
from arag.retrieval.storage.locations import using_store
from fakes import HashEmbeddings, write_index
from forked import processes
from selection import EVERYWHERE
from stores import read_all

DOCUMENTS = [
    *({"id": f"d{n}", "text": f"Ship{n} was built in {1500 + n}. It sailed to port 7.", "year": n} for n in range(30)),
    {"id": "odd", "title": "Ödd Ⅷ", "text": "Ça va? İstanbul’da 東京 e\u0301 \u202e x%_\\ ''\"\". 北京是首都。"},
    {"id": "long", "text": " ".join(f"In {n} nobody of note came to the fair." for n in range(1500, 1560))},
    {"id": "vectorless", "text": "!!! ???"},
]

in_every_place = pytest.mark.parametrize("kind", EVERYWHERE)


@pytest.fixture
def new_place(places, tmp_path):
    """A function that returns a new place of a kind."""
    numbers = count()
    return lambda kind="folder": places(kind, tmp_path / f"place-{next(numbers)}")


def write(place, documents=DOCUMENTS, **options):
    ingest(documents, place, **({"embedder": HashEmbeddings(), "chunk_tokens": 60} | options)).close()
    return place


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write(tmp_path_factory.mktemp("source") / "index")


def copy_of(source, target):
    copy_index(source, target)
    return target


def contents(place):
    """Everything that an index holds."""
    with using_store(place) as store:
        return *read_all(store), replace(store.settings(), token="")


@in_every_place
def test_a_copy_and_a_copy_of_it_hold_what_the_source_holds(source, new_place, kind):
    for target in (copied := new_place(kind), new_place(kind), new_place()):
        summary = copy_index(source, target)
        assert contents(target) == contents(source)
        assert summary.written == summary.chunks == len(contents(target)[2])
        assert copy_index(source, target).written == 0
        assert verify(target) == ([], [])
        source = copied


# --- what the target may be ---


@in_every_place
def test_an_earlier_copy_is_brought_up_to_date(new_place, kind):
    source = write(new_place())
    target = copy_of(source, new_place(kind))
    write(source, [{"id": "d1", "text": "Another text."}, {"id": "new", "text": "News."}, {**DOCUMENTS[8], "year": -1}])
    remove(["d0", "d2"], source)
    with open_index(target, embedder=HashEmbeddings()) as reader:
        assert reader.keyword_search("ship0").total == 1
        assert copy_index(source, target).written == 3
        assert reader.keyword_search("ship0").total == 0
        assert reader.keyword_search("news").total == 1
    assert contents(target) == contents(source)


def test_what_may_not_be_replaced_is_left_alone(new_place, source):
    class Other(HashEmbeddings):
        model = "other"

    others = [
        (write(new_place(), [{"id": "mine", "text": "Mine alone."}]), InputError, r"another corpus \(mine, \.\.\.\)"),
        (write(new_place(), DOCUMENTS[:2], embedder=Other()), ModelError, r"another embedder \(Other:other"),
    ]
    for target, kind, match in others:
        before = contents(target)
        with pytest.raises(kind, match=match):
            copy_index(source, target)
        assert contents(target) == before
    target = copy_of(source, new_place())
    with using_store(target) as store, store.draft(store.settings), pytest.raises(IndexLockedError):
        copy_index(source, target)
    for itself in (source, source.parent / ".." / source.parent.name / source.name):
        with pytest.raises(InputError, match="cannot be copied to itself"):
            copy_index(source, itself)
    with pytest.raises(IndexNotFoundError):
        copy_index(new_place(), absent := new_place())
    assert not absent.exists()


@pytest.mark.servers
def test_documents_that_another_process_writes_are_left_to_it(new_place, source):
    target = copy_of(source, new_place("postgres"))
    remove("d3", target)
    with using_store(target) as store, store.draft(store.settings) as draft:
        assert draft.claim({"d3"}) == {"d3"}
        with pytest.raises(IndexLockedError, match="another process is writing the same documents"):
            copy_index(source, target)
    assert copy_index(source, target).written == 1


def test_the_progress_counts_documents_at_the_end(tmp_path):
    source = write_index(tmp_path, [{"id": f"r{n}", "text": "The mill turned. " * 900} for n in range(3)])
    shown = []
    summary = copy_index(source, tmp_path / "copy", progress=shown.append)
    assert summary.chunks > 3
    assert str(shown[-1]) == "Done: 100%, 3 documents"


# --- interrupted ---


def copy_until(source, target, step):
    """Copy, and be killed at a step."""
    copying._DOCUMENTS_AT_ONCE = 3
    steps = count(1)

    def on_progress(_):
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    copy_index(source, target, progress=on_progress)


@in_every_place
def test_a_killed_copy_is_finished_by_the_next_and_seen_as_a_whole(new_place, source, kind):
    older = copy_of(source, new_place())
    write(older, [{"id": f"d{n}", "text": f"Ship{n} sank."} for n in range(10)])
    for target in (new_place(kind), copy_of(older, new_place(kind))):
        with using_store(target) as store:
            before = contents(target) if store.stamp() else None
        for step in (3, 6):
            process = processes.Process(target=copy_until, args=(source, target, step))
            process.start()
            process.join()
            assert process.exitcode == -signal.SIGKILL
            if before is None:
                with pytest.raises(IndexNotFoundError):
                    contents(target)
            else:
                assert contents(target) == before
        summary = copy_index(source, target)
        assert 0 < summary.written < (10 if before else summary.chunks)  # only the rest
        assert contents(target) == contents(source)


# --- the command ---


def test_the_command_copies(arag, source, new_place):
    code, out, err = arag("copy", source, new_place())
    assert (code, err, out.startswith("Copied 33 documents")) == (0, "", True)


def test_one_of_each_is_named_as_one(arag, make_index, tmp_path):
    index = make_index({"mill.md": "The mill turns."})
    copied = r"Copied 1 document, 1 chunk and 1 sentence in \d\.\d s; already there: "
    for there in ("0 chunks", "1 chunk"):
        assert re.fullmatch(f"{copied}{there}\\.\n", arag("copy", index.path, tmp_path / "copy")[1])
