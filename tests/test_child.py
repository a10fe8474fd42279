"""A child process that runs functions: what goes in and out, and all the ways in which it ends."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from arag.system.worker_process import RaisedInWorkerError, WorkerError, WorkerProcess

SERVED_FUNCTIONS = """
import ctypes
import os
import signal
import sys
import time

def echo(*values):
    return values[0] if len(values) == 1 else values

def process_id():
    return os.getpid()

def panic(message):
    class PanicException(BaseException):
        pass
    raise PanicException(message)

def die(number):
    os.kill(os.getpid(), number)
    time.sleep(60)

def die_in_the_answer():
    os.write(int(sys.argv[3]), b"\\0\\0\\1\\0the first of 256 bytes")
    die(signal.SIGKILL)

def hang_with_the_interpreters_lock():
    ctypes.PyDLL(None).sleep(60)

def use_memory(megabytes):
    return len(bytearray(megabytes << 20))

def use_memory_natively(megabytes):
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    block = libc.malloc(ctypes.c_size_t(megabytes << 20))
    if not block:
        libc.abort()
    ctypes.memset(block, 1, megabytes << 20)

def print_natively():
    os.write(1, b"from native code")
    os.write(2, b"from native code")
    print("from Python", flush=True)
    return os.read(0, 10).decode()

def unserved():
    return "called"

def write_and_hang(path):
    with open(path, "w") as file:
        file.write("started")
    time.sleep(60)

SERVED = (echo, process_id, panic, die, die_in_the_answer, hang_with_the_interpreters_lock, use_memory,
          use_memory_natively, print_natively, write_and_hang)
"""
SECONDS = 30  # that nothing takes here


@pytest.fixture(autouse=True)
def _served(tmp_path, monkeypatch):
    (tmp_path / "served_functions.py").write_text(SERVED_FUNCTIONS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


@pytest.fixture
def child():
    made = WorkerProcess("served_functions")
    yield made
    made.close()


@pytest.fixture
def call(child):
    return lambda *values, seconds=SECONDS: child.call(*values, seconds=seconds)


def is_running(process_id):
    try:
        return psutil.Process(process_id).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(is_so):
    until = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_values_and_arrays_go_both_ways(call):
    for value in (None, 0.1, float("inf"), "é\ud800\0", [1, "two"], [[0, "|O", [1]]]):
        assert call("echo", value) == value
    assert call("echo", 1, (2, 3)) == [1, [2, 3]]
    numbers = np.arange(6, dtype="f4").reshape(2, 3).T
    for array in (numbers, np.array(["a", "längere"]), np.empty((0, 384), dtype="f4"), np.ones(3_000_000)):
        result = call("echo", array)
        np.testing.assert_array_equal(result, array)
        assert (result.dtype, result.shape) == (array.dtype, array.shape)


@pytest.mark.parametrize("called", [("panic", "index out of bounds"), ("unserved",), ("os",)])
def test_after_an_error_the_process_goes_on_and_only_listed_functions_are_called(call, called):
    before = call("process_id")
    with pytest.raises(RaisedInWorkerError, match=called[-1]):
        call(*called)
    assert call("process_id") == before


def test_a_crash_is_named_and_the_next_call_starts_another_process(call):
    with pytest.raises(WorkerError, match=r"its process crashed \(SIGSEGV\)"):
        call("die", int(signal.SIGSEGV))
    with pytest.raises(WorkerError, match=r"its process crashed \(SIGKILL\)"):
        call("die_in_the_answer")
    process_id = call("process_id")
    os.kill(process_id, signal.SIGKILL)  # between two calls
    os.waitid(os.P_PID, process_id, os.WEXITED | os.WNOWAIT)  # all its threads have ended
    assert call("echo", "again") == "again"


def test_a_call_that_hangs_with_the_interpreters_lock_is_ended_also_where_the_alarm_is_blocked(call):
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        call("echo", 1)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    with pytest.raises(WorkerError, match="it timed out"):
        call("hang_with_the_interpreters_lock", seconds=1)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems limit no memory")
@pytest.mark.parametrize("name", ["use_memory", "use_memory_natively"])
def test_memory_is_limited(name):
    child = WorkerProcess("served_functions", memory_bytes=400_000_000)
    with pytest.raises(WorkerError, match="may use 400 MB of memory"):
        child.call(name, 500, seconds=SECONDS)
    assert child.call("use_memory", 100, seconds=SECONDS) == 100 << 20
    child.close()


def test_what_native_code_prints_and_reads_is_not_taken_for_messages(call, capfd):
    assert call("print_natively") == ""
    assert call("echo", 1) == 1
    assert capfd.readouterr() == ("", "")


def test_a_fork_has_a_process_of_its_own(child, call):
    ours = call("process_id")
    reader, writer = os.pipe()
    if not (fork := os.fork()):
        os.write(writer, str(call("process_id")).encode())
        child.close()
        os._exit(0)
    os.waitpid(fork, 0)
    theirs = int(os.read(reader, 100))
    os.close(reader)
    os.close(writer)
    assert theirs != ours
    assert not is_running(theirs)
    assert call("process_id") == ours


def test_a_file_in_the_current_folder_is_not_imported(call, tmp_path, monkeypatch):
    shadows = tmp_path / "shadows"
    shadows.mkdir()
    (shadows / "json.py").write_text("1 / 0")
    monkeypatch.chdir(shadows)
    assert call("echo", 1) == 1


# --- other programs ---

PROGRAM = """
import sys
from arag.system.worker_process import WorkerProcess
child = WorkerProcess("served_functions")
print(child.call("process_id", seconds=30), flush=True)
"""


def run(program, *arguments):
    command = [sys.executable, "-c", PROGRAM + program, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.parametrize(
    ("program", "is_killed"),
    [("", False), ("sys.stdin.read()", True), ("child.call('hang_with_the_interpreters_lock', seconds=2)", True)],
)
def test_a_child_ends_with_its_parent_or_at_its_time_limit(program, is_killed):
    with run(program) as running:
        process_id = int(running.stdout.readline())
        if is_killed:
            running.kill()
        running.wait(timeout=SECONDS)
    wait_until(lambda: not is_running(process_id))


def test_ctrl_c_ends_the_call_and_leaves_the_next_one_its_answer(tmp_path):
    program = """
try:
    child.call("write_and_hang", sys.argv[1], seconds=60)
except KeyboardInterrupt:
    print(child.call("echo", "mine", seconds=30), flush=True)
"""
    with run(program, tmp_path / "started") as running:
        first = int(running.stdout.readline())
        wait_until((tmp_path / "started").exists)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does it: to the whole group
        assert running.stdout.readline() == "mine\n"
    assert not is_running(first)
