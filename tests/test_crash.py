"""Whatever ends an ingestion, readers see what was complete, and the next run ends like one that nothing ended."""

from __future__ import annotations

import random
import resource

import pytest

from arag.errors import StorageError
from selection import EVERYWHERE
from versions import (
    Run,
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


@pytest.mark.parametrize(
    ("before", "after", "fraction"),
    [(None, corpus(1), 0.4), (corpus(1), corpus(2), 0.1), (corpus(1), dict([*corpus(1).items()][9:]), 0.04)],
    ids=["first", "update", "removal"],
)
def test_files_that_cannot_grow_end_a_run_that_the_next_finishes(tmp_path, before, after, fraction):
    """No file grows beyond a fraction of the largest that is needed."""
    source, index, target = tmp_path / "corpus", tmp_path / "index", tmp_path / "target"
    if before is not None:
        ingest(write(source, before), index)
    ingest(write(source, after), target)
    largest = max(file.stat().st_size for file in target.rglob("*") if file.is_file())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(fraction * largest), limits[1]))
    try:
        with pytest.raises(StorageError):
            ingest(source, index, prune=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert served(index) == before
    ingest(source, index, prune=True)
    assert_like_uninterrupted(index, after)
