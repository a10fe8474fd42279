"""A child process that runs functions: what goes in and out, and all the ways in which it ends."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest

from arag.child import Child, ChildError, RaisedInChildError

SERVED_FUNCTIONS = """
import ctypes
import os
import signal
import sys
import time

import numpy as np


def echo(*values):
    return values[0] if len(values) == 1 else values

def process_id():
    return os.getpid()

def double(array):
    return array * 2

def fail(message):
    raise LookupError(message)

def panic():
    class PanicException(BaseException):
        pass
    raise PanicException("index out of bounds")

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
        file.write(str(os.getpid()))
    time.sleep(60)

SERVED = (echo, process_id, double, fail, panic, die, die_in_the_answer, hang_with_the_interpreters_lock, use_memory,
          use_memory_natively, print_natively, write_and_hang)
"""


@pytest.fixture(autouse=True)
def _served(tmp_path, monkeypatch):
    (tmp_path / "served_functions.py").write_text(SERVED_FUNCTIONS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


@pytest.fixture
def child():
    made = Child("served_functions")
    yield made
    made.close()


def is_running(process_id):
    try:
        return psutil.Process(process_id).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for_end(process_id):
    until = time.monotonic() + 30
    while is_running(process_id):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_values_and_arrays_go_both_ways(child):
    for value in (None, True, 1, 0.1, float("inf"), "é\ud800\0", [1, "two"], [[0, "|O", [1]]]):
        assert child.call("echo", value, seconds=30) == value
    assert child.call("echo", 1, (2, 3), seconds=30) == [1, [2, 3]]
    for array in (
        np.arange(6, dtype="f4").reshape(2, 3).T,
        np.array([-1, 2], dtype=">i8"),
        np.array(["a", "längere"]),
        np.empty((0, 384), dtype="f4"),
        np.ones(3_000_000),
    ):
        result = child.call("echo", array, seconds=30)
        np.testing.assert_array_equal(result, array)
        assert (result.dtype, result.shape) == (array.dtype, array.shape)


@pytest.mark.parametrize(
    ("call", "said"),
    [(("fail", "no"), "no"), (("panic",), "index out of bounds"), (("unserved",), "unserved"), (("os",), "os")],
)
def test_after_an_error_the_process_goes_on_and_only_listed_functions_are_called(child, call, said):
    before = child.call("process_id", seconds=30)
    with pytest.raises(RaisedInChildError, match=said):
        child.call(*call, seconds=30)
    assert child.call("process_id", seconds=30) == before


def test_a_crash_is_named_and_the_next_call_starts_another_process(child):
    with pytest.raises(ChildError, match=r"its process crashed \(SIGSEGV\)"):
        child.call("die", int(signal.SIGSEGV), seconds=30)
    with pytest.raises(ChildError, match=r"its process crashed \(SIGKILL\)"):
        child.call("die_in_the_answer", seconds=30)
    process_id = child.call("process_id", seconds=30)
    os.kill(process_id, signal.SIGKILL)  # between two calls
    wait_for_end(process_id)
    assert child.call("echo", "again", seconds=30) == "again"


def test_a_call_that_hangs_with_the_interpreters_lock_is_ended(child):
    with pytest.raises(ChildError, match=r"took longer than 1 seconds"):
        child.call("hang_with_the_interpreters_lock", seconds=1)


def test_a_time_limit_holds_where_the_alarm_is_blocked(child):
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        child.call("echo", 1, seconds=30)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    with pytest.raises(ChildError, match="took longer than 1 seconds"):
        child.call("hang_with_the_interpreters_lock", seconds=1)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems limit no memory")
@pytest.mark.parametrize("name", ["use_memory", "use_memory_natively"])
def test_memory_is_limited(name):
    child = Child("served_functions", memory_bytes=400_000_000)
    with pytest.raises(ChildError, match="may use 400 MB of memory"):
        child.call(name, 500, seconds=30)
    assert child.call("use_memory", 100, seconds=30) == 100 << 20
    child.close()


def test_what_native_code_prints_and_reads_is_not_taken_for_messages(child, capfd):
    assert child.call("print_natively", seconds=30) == ""
    assert child.call("echo", 1, seconds=30) == 1
    assert capfd.readouterr() == ("", "")


def test_threads_get_their_own_answers(child):
    arrays = [np.full(100_000, number) for number in range(20)]
    with ThreadPoolExecutor(4) as threads:
        results = threads.map(lambda array: child.call("double", array, seconds=30), arrays)
        assert all((result == 2 * array).all() for result, array in zip(results, arrays, strict=True))


def test_close_ends_a_call_of_another_thread(child, tmp_path):
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(child.call, "write_and_hang", str(tmp_path / "started"), seconds=60)
        wait_for_file(tmp_path / "started")
        child.close()
        assert isinstance(call.exception(), ChildError)


def wait_for_file(path):
    until = time.monotonic() + 30
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < until
        time.sleep(0.01)
    return int(path.read_text())


def test_a_fork_has_a_process_of_its_own(child):
    ours = child.call("process_id", seconds=30)
    reader, writer = os.pipe()
    if not (fork := os.fork()):
        theirs = child.call("process_id", seconds=30)
        os.write(writer, str(theirs).encode())
        child.close()
        os._exit(0)
    os.waitpid(fork, 0)
    theirs = int(os.read(reader, 100))
    os.close(reader)
    os.close(writer)
    assert theirs != ours
    assert not is_running(theirs)
    assert child.call("process_id", seconds=30) == ours


# --- other programs ---

PROGRAM = """
import sys
from arag.child import Child
child = Child("served_functions")
print(child.call("process_id", seconds=30), flush=True)
"""


def run(program, *arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + program, *map(str, arguments)], stdout=subprocess.PIPE, text=True, **options
    )


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_child_ends_with_its_parent(is_killed):
    with run("sys.stdin.read()" if is_killed else "", stdin=subprocess.PIPE) as program:
        process_id = int(program.stdout.readline())
        if is_killed:
            program.kill()
        program.wait(timeout=30)
    wait_for_end(process_id)


def test_a_child_that_hangs_ends_at_its_time_limit_when_its_parent_is_killed():
    with run("child.call('hang_with_the_interpreters_lock', seconds=2)") as program:
        process_id = int(program.stdout.readline())
        program.kill()
    wait_for_end(process_id)


def test_ctrl_c_ends_the_call_and_leaves_the_next_one_its_answer(tmp_path):
    program = """
try:
    child.call("write_and_hang", sys.argv[1], seconds=60)
except KeyboardInterrupt:
    print(child.call("echo", "mine", seconds=30), flush=True)
"""
    with run(program, tmp_path / "started", start_new_session=True) as running:
        first = int(running.stdout.readline())
        wait_for_file(tmp_path / "started")
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does it: to the whole group
        assert running.stdout.readline() == "mine\n"
    assert not is_running(first)


def test_a_file_in_the_current_folder_is_not_imported(child, tmp_path, monkeypatch):
    shadows = tmp_path / "shadows"
    shadows.mkdir()
    (shadows / "json.py").write_text("1 / 0")
    monkeypatch.chdir(shadows)
    assert child.call("echo", 1, seconds=30) == 1
