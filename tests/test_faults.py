"""Whatever call on an index's files fails, is cut short or is the last: a sentence, nothing lost, and the next run."""

import errno
import random
import zlib

import pytest

from faults.driver import (
    CHANGES,
    EVERYTHING,
    FAIL,
    FOR_EVER,
    GROWTH,
    KILL,
    READ,
    SHORTEN,
    WRITE,
    Plan,
)
from faults.jobs import OPERATIONS, WRITING
from selection import slow_except

# The calls that a fault may hit, what it does to them, and whether it lasts.
FAULTS = {
    "EIO, once": (EVERYTHING, FAIL, errno.EIO, False),
    "EIO from then on": (EVERYTHING, FAIL, errno.EIO, True),
    "full from then on": (GROWTH, FAIL, errno.ENOSPC, True),
    "full, once": (GROWTH, FAIL, errno.ENOSPC, False),
    "read-only from then on": (CHANGES, FAIL, errno.EROFS, True),
    "short reads": (READ, SHORTEN, 0, True),
    "short writes": (WRITE, SHORTEN, 0, True),
    "a short read": (READ, SHORTEN, 0, False),
    "a short write": (WRITE, SHORTEN, 0, False),
}
KILLED = {"killed": (EVERYTHING, KILL, 0, False)}


class Usual:
    """What an operation does when nothing fails: its output, its states, and how many calls of some kinds it makes."""

    def __init__(self, driver, room, name, folder):
        self.driver, self.room, self.name, self.operation = driver, room, name, OPERATIONS[name]
        self.index = folder / "disk" / "index"
        room.begin(self.operation, self.index)
        self.before = self.state()
        ended = self.run(Plan(str(self.index)))
        assert ended.exit == 0, ended.err
        self.out, self.counts = ended.out, ended.counts
        self.after = self.state()

    def state(self):
        ended = self.driver.run("faults.jobs:state", self.index)
        assert ended.exit == 0, ended.err
        return ended.value

    def run(self, plan):
        arguments = self.room.begin(self.operation, self.index)
        return self.driver.run("faults.jobs:command_then_lock", arguments, self.operation.graph, self.index, plan=plan)

    def calls(self, kinds):
        return sum(count for kind, count in enumerate(self.counts) if kinds & 1 << kind)

    def wrong(self, fault, draw):
        """Let one of its calls be faulty; return what is wrong then, or nothing."""
        kinds, action, error, lasting = fault
        number = draw.randint(1, max(1, self.calls(kinds)))
        plan = Plan(str(self.index), kinds, number, FOR_EVER if lasting else number, action, error)
        ended = self.run(plan)
        problem = self._badly_ended(ended, killed=action == KILL) or self._badly_left(ended)
        return problem and f"{problem}\ncall {number} of {self.calls(kinds)}\n{ended.out}{ended.err}"

    def _badly_ended(self, ended, *, killed):
        if ended.exit is None:
            return "hung"
        if ended.exit < 0:
            return "" if killed and ended.exit == -9 else f"raw: signal {-ended.exit}"
        if "Traceback" in ended.err or ended.exit not in (0, 1):
            return "raw: a traceback"
        if ended.exit == 1 and "Error: " not in ended.err and "Damaged " not in ended.out:
            return "raw: no sentence"
        if ended.exit == 0 and self.operation.command[0] in ("search", "ask") and ended.out != self.out:
            return "wrong: another answer"
        return ""

    def _badly_left(self, ended):
        if self.name not in WRITING:
            state = self.state()
            return "" if state == self.before else f"lost: the index is {state}"
        arguments, target = self.room.finish(self.operation, self.index)
        looked = self.driver.run("faults.jobs:recovered", self.index, arguments, target)
        if looked.exit != 0:
            return f"lost: {looked.err}"
        state, problem = looked.value
        if problem:
            return f"lost: {problem} {looked.err}"
        if ended.exit == 0 and state != self.after:
            return f"lost: it is said to be done, and the index is {state}"
        if state not in {self.before, self.after}:
            return f"lost: the index is {state}"
        return ""


def try_faults(driver, room, folder, name, faults, *, seed, count):
    """Try faults of some kinds, each once in turn; return what was wrong."""
    usual = Usual(driver, room, name, folder)
    draw = random.Random(zlib.crc32(f"{name} {seed}".encode()))
    wrong = []
    for number in range(count):
        fault = sorted(faults)[(number + seed) % len(faults)]
        problem = usual.wrong(faults[fault], draw)
        if problem:
            wrong.append(f"{name}: {fault}: {problem}")
    return wrong


@pytest.mark.parametrize("name", slow_except("ingest, second", "verify --repair", "ask", among=OPERATIONS))
def test_a_fault_ends_an_operation_with_a_sentence_and_loses_nothing(driver, room, tmp_path, name):
    assert try_faults(driver, room, tmp_path, name, FAULTS, seed=list(OPERATIONS).index(name), count=2) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", OPERATIONS)
def test_many_faults(driver, room, tmp_path, name, seed):
    count = 30 if name in WRITING else 10
    assert try_faults(driver, room, tmp_path, name, FAULTS, seed=100 + seed, count=count) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", WRITING)
def test_many_kills(driver, room, tmp_path, name, seed):
    assert try_faults(driver, room, tmp_path, name, KILLED, seed=100 + seed, count=20) == []
