"""Whenever the power goes, the disk holds the old index or the new one, whole, and the next run goes on from there."""

import shutil

import pytest

from faults import disk
from faults.driver import RENAME, Plan
from faults.jobs import OPERATIONS, WRITING
from selection import slow_except
from stores import trust


class Recording:
    """An operation that ended well, all that it changed, and what the index was like before and after it."""

    def __init__(self, driver, room, name, folder):
        self.driver, self.room, self.operation, self.folder = driver, room, OPERATIONS[name], folder
        self.watched, self.index = folder / "disk", folder / "disk" / "index"
        arguments = room.begin(self.operation, self.index)
        self.disk = disk.Disk(self.watched)
        self.before = self.value("state", self.index)
        self.value("command", arguments, plan=Plan(str(self.watched), log=str(folder / "log")))
        self.changes = disk.read_log(folder / "log")
        self.left = disk.Disk(self.watched).after("all is kept")
        self.after = self.value("state", self.index)

    def value(self, function, *arguments, plan=None):
        ended = self.driver.run(f"faults.jobs:{function}", *arguments, plan=plan)
        assert ended.exit == 0, ended.err
        return ended.value

    def disks(self, every):
        """Yield what the disk may hold after every n-th change and after each rename, once each.

        Each loss is tried there where n is 1, else one of them. Of what differs only in files that have not got their
        names yet, one in twenty is tried.
        """
        seen = set()
        for number, change in enumerate(self.changes, start=1):
            self.disk.make(change)
            last = number == len(self.changes)
            if number % every and change.kind != RENAME and not last:
                continue
            losses = list(disk.LOSSES)
            for loss in losses if every == 1 or last else [losses[number % len(losses)]]:
                found = self.disk.after(loss, seed=number)
                named = {name: content for name, content in found.items() if not _is_hidden(name)}
                key = hash((number // max(every, 20), *sorted(named.items())))
                if key not in seen:
                    seen.add(key)
                    yield number, loss, found

    def check(self, every):
        """Look at each of these disks; return how many there are."""
        tried = 0
        for number, loss, found in self.disks(every):
            tried += 1
            place = f"after change {number} of {len(self.changes)}, {self.changes[number - 1].path}: {loss}"
            index = self.folder / f"lost-{tried}" / "index"
            disk.write(found, index.parent)
            trust(index)
            arguments, target = self.room.finish(self.operation, index)
            looked = self.driver.run("faults.jobs:recovered", index, arguments, target)
            shutil.rmtree(index.parent)
            assert looked.exit == 0, f"{place}\n{looked.err}"
            state, problem = looked.value
            assert not problem, place
            assert state in {self.before, self.after}, place
            assert number < len(self.changes) or state == self.after, f"lost though the command was done, {place}"
        return tried


def _is_hidden(name):
    return any(part.endswith(".new") or "draft" in part for part in name.split("/"))


def test_the_record_of_changes_is_complete(driver, room, tmp_path):
    recording = Recording(driver, room, "ingest, second", tmp_path)
    for change in recording.changes:
        recording.disk.make(change)
    assert recording.disk.after("all is kept") == recording.left


@pytest.mark.parametrize("name", slow_except("ingest, second", among=["ingest, first", "ingest, second"]))
def test_a_power_failure_leaves_the_old_index_or_the_new_one(driver, room, tmp_path, name):
    Recording(driver, room, name, tmp_path).check(every=300)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITING)
def test_a_power_failure_at_any_change_leaves_the_old_index_or_the_new_one(driver, room, tmp_path, name):
    assert Recording(driver, room, name, tmp_path).check(every=1) > 100
