"""Worker processes for native code: what crashes, hangs or eats memory there ends no other process.

A child serves one module, which lists the functions that may be called from outside:

    SERVED = (read_pages, count_pages)

Arguments and results are JSON values or whole numpy arrays. What a child receives is data: it chooses among the listed
functions, and never decides what code runs.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import numpy as np


class WorkerError(Exception):
    """A child process gave no answer: it could not start, crashed, took too long, or needed too much memory."""


class RaisedInWorkerError(Exception):
    """A function raised an error in a child process."""


class WorkerProcess:
    """A process that runs a module's functions, one call at a time; threads wait for each other.

    It is started by the first call, and by the next one after it has ended. It also ends with the process that started
    it. A fork of that process gets a child of its own.

    Args:
        module: The module's full name.
        memory_bytes: How much memory the process may use, where the system can limit it; by default any amount.
    """

    def __init__(self, module: str, *, memory_bytes: int | None = None) -> None:
        self._module = module
        self._memory_bytes = memory_bytes or 0
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def call(self, name: str, *arguments: Any, seconds: float) -> Any:
        """Call a function of the module.

        Args:
            name: The function's name.
            arguments: JSON values, or arrays of numbers or strings.
            seconds: How long it may take. The kernel then ends the process, whatever it is doing.

        Returns:
            The function's result. Tuples arrive as lists, arrays read-only.

        Raises:
            RaisedInWorkerError: The function raised an error.
            WorkerError: The process could not be started, or ended without an answer.
        """
        request = _pack([seconds, name, *arguments])
        with self._lock:
            process = self._start()
            try:
                _send(self._connection, request)
                has_failed, result = _receive(self._connection)
            except (EOFError, OSError):  # it has ended
                code = process.wait()
                self._end()
                raise WorkerError(self._describe_end(code)) from None
            except BaseException:  # such as Ctrl-C: the answer would be taken for that of the next call
                self._end()
                raise
        if has_failed:
            raise RaisedInWorkerError(result)
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
        """Return the process, started if there is none. In a fork, `poll` takes the other process's child for ended."""
        if self._process is None or self._process.poll() is not None:
            self._end()
            # -P: no file in the current folder is imported. A session of its own: Ctrl-C is for this process only.
            command = [sys.executable, "-P", "-m", "arag.system.worker_process", self._module, str(self._memory_bytes)]
            try:
                self._connection, theirs = Pipe()
                with theirs:
                    self._process = subprocess.Popen(  # noqa: S603 - our own program
                        [*command, str(theirs.fileno())],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,  # native code prints at will
                        stderr=subprocess.DEVNULL,
                        pass_fds=[theirs.fileno()],
                        start_new_session=True,
                    )
            except OSError as error:
                raise WorkerError(f"its process cannot be started: {error.strerror}") from error
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            self._connection.close()
            process.kill()
            process.wait()

    def _describe_end(self, code: int) -> str:
        if code in {-signal.SIGALRM, -signal.SIGPROF}:
            return "it took longer than it may"
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        limit = f"; it may use {self._memory_bytes / 1e6:,.0f} MB of memory" if self._memory_bytes else ""
        return f"its process crashed ({how}){limit}"


def serve(module: str, memory_bytes: int, connection: Connection) -> None:
    """Answer calls of a module's functions, until the other process ends."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the other process may have ignored or blocked it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    if memory_bytes:
        with suppress(ValueError):  # the limit is lower already
            resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    while True:
        seconds, name, *arguments = _receive(connection)
        signal.setitimer(signal.ITIMER_REAL, seconds)  # also ends this process if it hangs and the other has died
        try:
            functions = {function.__name__: function for function in import_module(module).SERVED}
            reply = _pack([False, functions[name](*arguments)])
        except MemoryError:
            os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does it; the next call starts with empty memory
        except BaseException as error:  # noqa: BLE001 - panics of Rust are not derived from Exception
            reply = _pack([True, str(error)])
        signal.setitimer(signal.ITIMER_REAL, 0)
        _send(connection, reply)


def _pack(values: Sequence[Any]) -> list[bytes]:
    """Return a header in JSON, and the bytes of each array."""
    arrays = {place: value for place, value in enumerate(values) if isinstance(value, np.ndarray)}
    others = [None if place in arrays else value for place, value in enumerate(values)]
    forms = [[place, array.dtype.str, array.shape] for place, array in arrays.items()]
    return [json.dumps([others, forms]).encode(), *(array.tobytes() for array in arrays.values())]


def _send(connection: Connection, parts: Sequence[bytes]) -> None:
    for part in parts:
        connection.send_bytes(part)


def _receive(connection: Connection) -> list[Any]:
    values: list[Any]
    values, forms = json.loads(connection.recv_bytes())
    for place, dtype, shape in forms:
        values[place] = np.frombuffer(connection.recv_bytes(), dtype).reshape(shape)
    return values


if __name__ == "__main__":
    with suppress(EOFError, ConnectionError):
        serve(sys.argv[1], int(sys.argv[2]), Connection(int(sys.argv[3])))
    os._exit(0)  # native threads do not keep it
