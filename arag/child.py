"""Child processes for native code: what crashes, hangs or eats memory there ends no other process.

A child serves one module, which lists the functions that may be called from outside:

    SERVED = (read_pages, count_pages)

Arguments and results are JSON values or whole numpy arrays. What a child receives is data: it chooses among the listed
functions, and never decides what code runs.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import threading
import traceback
import weakref
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import IO, Any, cast

import numpy as np


class ChildError(Exception):
    """A child process gave no answer: it could not start, crashed, took too long, or needed too much memory."""


class RaisedInChildError(Exception):
    """A function raised an error in a child process.

    Attributes:
        kind: The name of the error's type.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Child:
    """A process that runs a module's functions, one call at a time; threads wait for each other.

    It is started by the first call, and by the next one after it has ended. It also ends with the process that started
    it. A fork of that process gets a child of its own.

    Args:
        module: The module's full name.
        memory_bytes: How much memory the process may use, where the system can limit it; by default any amount.
    """

    def __init__(self, module: str, *, memory_bytes: int | None = None) -> None:
        self._module = module
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        _children.add(self)

    def call(self, name: str, *arguments: Any, seconds: float) -> Any:
        """Call a function of the module.

        Args:
            name: The function's name.
            arguments: JSON values, or arrays of numbers or strings.
            seconds: How long it may take. The kernel then ends the process, whatever it is doing.

        Returns:
            The function's result. Tuples arrive as lists.

        Raises:
            RaisedInChildError: The function raised an error.
            ChildError: The process could not be started, or ended without an answer.
        """
        request = _pack([seconds, name, *arguments])
        with self._lock:
            process = self._start()
            try:
                with suppress(BrokenPipeError):  # the process has ended: there is no answer either
                    _write(cast("IO[bytes]", process.stdin), request)
                kind, result = _receive(cast("IO[bytes]", process.stdout))
            except EOFError:
                code = process.wait()
                self._end()
                raise ChildError(self._describe_end(code, seconds)) from None
            except BaseException:  # such as Ctrl-C: the answer would be taken for that of the next call
                self._end()
                raise
        if kind == "MemoryError":
            raise ChildError(self._describe_memory())
        if kind:
            raise RaisedInChildError(kind, result)
        return result

    def close(self) -> None:
        """End the process. A call that is under way fails."""
        if process := self._process:
            process.kill()
        with self._lock:
            self._end()

    def __del__(self) -> None:
        self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        """Return the process, started if there is none."""
        if self._process is None or self._process.poll() is not None:
            self._end()
            # -P: no file in the current folder is imported. A session of its own: Ctrl-C is for this process only.
            try:
                self._process = subprocess.Popen(  # noqa: S603 - our own program
                    [sys.executable, "-P", "-m", "arag.child", self._module, str(self._memory_bytes or "")],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    bufsize=0,  # a fork must not write what this process has in a buffer
                    start_new_session=True,
                )
            except OSError as error:
                raise ChildError(f"its process cannot be started: {error.strerror}") from error
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with process:  # closes its pipes and waits for it
                pass

    def _leave_to_parent(self) -> None:
        """Forget the process, in a fork of the one that started it."""
        process, self._process = self._process, None
        self._lock = threading.Lock()
        if process is not None:
            process.returncode = 0  # it is not this process's to wait for
            for pipe in (process.stdin, process.stdout):
                cast("IO[bytes]", pipe).close()

    def _describe_end(self, code: int, seconds: float) -> str:
        if code == -signal.SIGALRM:
            return f"it took longer than {seconds:g} seconds"
        if code == -signal.SIGPROF:
            return "it took more processor time than it may use"
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"its process crashed ({how})" + (f"; {self._describe_memory()}" if self._memory_bytes else "")

    def _describe_memory(self) -> str:
        if self._memory_bytes is None:
            return "there is not enough memory"
        return f"it may use {self._memory_bytes / 1e6:,.0f} MB of memory"


_children: weakref.WeakSet[Child] = weakref.WeakSet()


def _leave_children() -> None:
    for child in list(_children):
        child._leave_to_parent()  # noqa: SLF001


os.register_at_fork(after_in_child=_leave_children)


def serve(module: str, memory_bytes: int | None) -> None:
    """Answer calls of a module's functions, until the other process ends."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the other process may have ignored or blocked it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    if memory_bytes:
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        limit = memory_bytes if most == resource.RLIM_INFINITY else min(memory_bytes, most)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    requests, replies = (
        os.fdopen(fcntl.fcntl(number, fcntl.F_DUPFD, 3), mode, 0) for number, mode in ((0, "rb"), (1, "wb"))
    )
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):  # native code prints at will
        os.dup2(nowhere, descriptor)
    while True:
        seconds, name, *arguments = _receive(requests)
        signal.setitimer(signal.ITIMER_REAL, seconds)  # also ends this process if it hangs and the other has died
        try:
            functions = {function.__name__: function for function in import_module(module).SERVED}
            reply = _pack(["", functions[name](*arguments)])
        except BaseException as error:  # noqa: BLE001 - panics of Rust are not derived from Exception
            reply = _pack([type(error).__name__, str(error)])
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write(replies, reply)


def _pack(values: Sequence[Any]) -> bytes:
    """Put values into one message: the length of a header, the header in JSON, and the arrays' bytes."""
    arrays = {place: value for place, value in enumerate(values) if isinstance(value, np.ndarray)}
    if any(array.dtype.hasobject for array in arrays.values()):
        raise TypeError("arrays of Python objects cannot be sent to another process")
    header = {
        "values": [None if place in arrays else value for place, value in enumerate(values)],
        "arrays": [[place, array.dtype.str, array.shape] for place, array in arrays.items()],
    }
    text = json.dumps(header).encode()
    return b"".join([struct.pack("<Q", len(text)), text, *(array.tobytes() for array in arrays.values())])


def _receive(file: IO[bytes]) -> list[Any]:
    """Read the values of one message."""
    (length,) = struct.unpack("<Q", _read(file, 8))
    header = json.loads(_read(file, length))
    values: list[Any] = header["values"]
    for place, dtype, shape in header["arrays"]:
        size = np.dtype(dtype).itemsize * int(np.prod(shape))
        values[place] = np.frombuffer(_read(file, size), dtype).reshape(shape)
    return values


def _read(file: IO[bytes], size: int) -> bytearray:
    data = bytearray(size)
    rest = memoryview(data)
    while rest:
        count = file.readinto(rest)  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        rest = rest[count:]
    return data


def _write(file: IO[bytes], data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


if __name__ == "__main__":
    try:
        serve(sys.argv[1], int(sys.argv[2] or 0))
    except EOFError:
        pass
    except BaseException:  # noqa: BLE001 - the exit code says it, too
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # native threads do not keep it
