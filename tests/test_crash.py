"""Whatever ends an ingestion, readers see what was complete, and the next run ends like one that nothing ended."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import warnings
from contextlib import contextmanager, suppress
from functools import cache

import numpy as np
import pytest

from arag.errors import StorageError
from arag.ingest.maintenance import remove, verify
from arag.retrieval.index import open_index
from selection import EVERYWHERE
from stores import trust
from versions import (
    Run,
    TextEmbeddings,
    assert_like_uninterrupted,
    corpus,
    ingest,
    kill_somewhere,
    served,
    write,
)

# --- killed ---


@pytest.fixture(scope="module", params=EVERYWHERE)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def usual(tmp_path_factory, places, kind):
    """What a run that nothing ends embeds, how many steps of each kind it takes, and how long."""
    folder = tmp_path_factory.mktemp("usual")
    place = places(kind, folder / "index")
    for version in (1, 2):
        with Run(write(folder / "corpus", corpus(version)), place, prune=True) as run:
            result = run.result()
    assert_like_uninterrupted(place, corpus(2))
    return result


@pytest.mark.parametrize(
    ("seed", "kills"), [(1, 4), *(pytest.param(seed, 8, marks=pytest.mark.slow) for seed in range(100, 110))]
)
def test_a_killed_ingestion_is_finished_by_the_next_or_by_a_later_one(tmp_path, places, kind, usual, seed, kills):
    draw = random.Random(seed)
    source, place = tmp_path / "corpus", places(kind, tmp_path / "index")
    now, killed = None, 0
    for version in range(1, 1 + kills):
        write(source, corpus(version))
        killed += kill_somewhere(draw, usual, source, place) is None
        before, now = now, served(place)
        assert now in (before, corpus(version))
        if draw.random() < 0.5 or version == kills:
            ingest(source, place, prune=True)
            now = corpus(version)
            assert_like_uninterrupted(place, now)
            assert ingest(source, place, prune=True).embedded == 0
    assert killed


# --- no room ---

CHANGES = {
    "first": (None, corpus(1)),
    "a few": (corpus(1), corpus(2)),
    "all": (corpus(3), corpus(4)),
    "removals": (corpus(1), dict(list(corpus(1).items())[9:])),
}


class Change:
    """An index, the documents that it gets next, and how large it then is."""

    def __init__(self, folder, name):
        self.before, self.after = CHANGES[name]
        self.source, self.start = folder / "corpus", folder / "start"
        if self.before is not None:
            ingest(write(self.source, self.before), self.start)
        ingest(write(self.source, self.after), folder / "target")
        self.sizes = [file.stat().st_size for file in (folder / "target").rglob("*") if file.is_file()]

    def begin(self, index):
        """Put the index into a folder as it was before."""
        if self.before is not None:
            shutil.copytree(self.start, index)
            trust(index)

    def ingest(self, index):
        """Ingest if there is room; return whether there was."""
        with suppress(StorageError):
            ingest(self.source, index, prune=True)
            return True
        return False

    def check(self, index, *, done):
        """See that readers have the old index or the new one, and that the next run finishes it."""
        assert served(index) in ([] if done else [self.before]) + [self.after]
        ingest(self.source, index, prune=True)
        assert_like_uninterrupted(index, self.after)


@pytest.fixture(scope="module")
def change(tmp_path_factory):
    """A function that returns a change, which the tests share."""
    return cache(lambda name: Change(tmp_path_factory.mktemp("change"), name))


SLOW_CHANGES = [
    pytest.param(name, size, marks=pytest.mark.slow) for name in CHANGES for size in np.linspace(0.05, 1.1, 8)
]


@pytest.mark.parametrize(("name", "fraction"), [("first", 0.6), ("a few", 0.1), ("removals", 0.04), *SLOW_CHANGES])
def test_files_that_cannot_grow_end_a_run_that_the_next_finishes(change, tmp_path, name, fraction):
    """No file grows beyond a fraction of the largest that is needed."""
    change, index = change(name), tmp_path / "index"
    change.begin(index)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(fraction * max(change.sizes)), before[1]))
    try:
        done = change.ingest(index)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not done or fraction > 0.5
    change.check(index, done=done)


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine mounts no disk for us")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@contextmanager
def filled(disk, change, fraction):
    """Fill a disk, but for a fraction of the space that an index takes."""
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4_096))
    os.truncate(ballast, max(0, ballast.stat().st_size - int(fraction * sum(change.sizes))))
    yield
    ballast.unlink()


SLOW_DISKS = [pytest.param(name, size, marks=pytest.mark.slow) for name in CHANGES for size in np.linspace(0, 2, 15)]


@pytest.mark.parametrize(("name", "fraction"), [("first", 0.2), ("a few", 0), ("a few", 0.7), *SLOW_DISKS])
def test_a_full_disk_ends_a_run_that_the_next_finishes(change, disk, name, fraction):
    change, index = change(name), disk / "index"
    change.begin(index)
    with filled(disk, change, fraction):
        done = change.ingest(index)
    assert not done or fraction > 0.5
    change.check(index, done=done)


def test_an_index_on_a_full_disk_is_searched_and_cared_for_when_there_is_room(change, disk, through_chroma):
    change, index = change("a few"), disk / "index"
    change.begin(index)
    with filled(disk, change, 0), open_index(index, embedder=TextEmbeddings()) as opened:
        assert opened.keyword_search("revision 1").hits
        with pytest.warns(UserWarning, match="is not used"):  # Chroma writes where it opens a graph
            hits = opened.semantic_search("revision 1").hits
        for care in (
            lambda: ingest(change.source, index, prune=True),
            lambda: verify(index, repair=True),
            lambda: remove("d1", index),
        ):
            with pytest.raises(StorageError, match=r"cannot be written to|full"):
                care()
        assert opened.semantic_search("revision 1").hits == hits
    with open_index(index, embedder=TextEmbeddings()) as opened, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert opened.semantic_search("revision 1").hits == hits
    for fraction in (0.6, 0.05):
        next(index.glob("keywords-*")).unlink()
        with filled(disk, change, fraction), pytest.raises(StorageError):
            verify(index, repair=True)
        assert served(index) == change.before
    assert verify(index, repair=True)[1] == []
    change.check(index, done=False)
