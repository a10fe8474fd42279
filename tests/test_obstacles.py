"""What stands where an index's files are written: links, pipes, folders. Nothing hangs, and nothing outside changes."""

import os
import shutil

import pytest

from arag.errors import IndexLockedError, StorageError
from arag.retrieval.local.folder import HOLDER_FILE, LOCK_FILE, write_lock
from faults.jobs import OPERATIONS

OPERATION = OPERATIONS["ingest, second"]
HALF_WRITTEN = ["manifest.json.new", "keywords.2.new", "words.2.new", "chroma.2.new", f"{HOLDER_FILE}.new"]
OTHERS = ["keywords.2", "words.2", "chroma.2", HOLDER_FILE, LOCK_FILE]
OTHERS += [f"chunks.sqlite3-{ending}" for ending in ("wal", "shm", "journal")]


def link_to_file(place, outside):
    place.symlink_to(outside / "file")


def link_to_folder(place, outside):
    place.symlink_to(outside)


def link_to_nothing(place, outside):
    place.symlink_to(outside / "not there")


def pipe(place, outside):
    os.mkfifo(place)


def folder(place, outside):
    place.mkdir()
    (place / "file").write_text("something")


def tree(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def run_with(driver, room, tmp_path, obstacle, names):
    """Run an operation with something in the way; return its end, after a check that nothing outside has changed."""
    index, outside = tmp_path / "index", tmp_path / "outside"
    shutil.rmtree(outside, ignore_errors=True)
    (outside / "inside").mkdir(parents=True)
    (outside / "file").write_text("precious")
    (outside / "inside" / "chroma.sqlite3").write_text("precious, too")
    before = tree(outside)
    arguments = room.begin(OPERATION, index)
    for name in names:
        (index / name).unlink(missing_ok=True)
        obstacle(index / name, outside)
    ended = driver.run("faults.jobs:command", arguments)
    assert tree(outside) == before, names
    return ended


def check_next(driver, room, index):
    looked = driver.run("faults.jobs:recovered", index, *room.finish(OPERATION, index))
    assert (looked.exit, looked.value and looked.value[1]) == (0, ""), looked.err


@pytest.mark.parametrize("obstacle", [link_to_file, link_to_folder, link_to_nothing, pipe])
def test_what_a_killed_run_may_have_left_is_replaced_whatever_it_is(driver, room, tmp_path, obstacle):
    assert run_with(driver, room, tmp_path, obstacle, HALF_WRITTEN).exit == 0
    check_next(driver, room, tmp_path / "index")


@pytest.mark.slow
@pytest.mark.parametrize("name", HALF_WRITTEN + OTHERS)
@pytest.mark.parametrize("obstacle", [link_to_file, link_to_folder, link_to_nothing, pipe, folder])
def test_what_stands_in_the_way_is_replaced_or_named(driver, room, tmp_path, obstacle, name):
    ended = run_with(driver, room, tmp_path, obstacle, [name])
    assert ended.exit == 0 or (ended.exit == 1 and "Error: " in ended.err), ended.err
    assert "Traceback" not in ended.err
    if ended.exit:
        place = tmp_path / "index" / name
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
    check_next(driver, room, tmp_path / "index")


def test_a_holder_that_is_a_pipe_is_not_waited_for(tmp_path):
    with write_lock(tmp_path):
        (tmp_path / HOLDER_FILE).unlink()
        os.mkfifo(tmp_path / HOLDER_FILE)
        with pytest.raises(IndexLockedError, match="another process"), write_lock(tmp_path):
            pass
    assert not (tmp_path / HOLDER_FILE).exists()


def test_a_holder_that_cannot_be_deleted_leaves_no_lock(tmp_path):
    with write_lock(tmp_path):
        (tmp_path / HOLDER_FILE).unlink()
        (tmp_path / HOLDER_FILE).mkdir()
    with pytest.raises(StorageError, match="cannot be written to"), write_lock(tmp_path):
        pass
    (tmp_path / HOLDER_FILE).rmdir()
    with write_lock(tmp_path):
        pass
