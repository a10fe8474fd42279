"""Worker processes for native code: a crash, a hang or a lack of memory there cannot take down the caller.

A worker serves one module, which lists the functions that may be called from outside:

    SERVED = (read_pages, count_pages)

Arguments and results are JSON values or whole numpy arrays. A request is data: it chooses one of the listed functions,
and cannot bring code of its own.
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
    """A worker gave no answer: it could not start, crashed, took too long, or needed too much memory."""


class RaisedInWorkerError(Exception):
    """A function raised an error in a worker."""


class WorkerProcess:
    """A process that runs a module's functions, one call at a time; threads wait for each other.

    The first call starts the process, and so does the next call after it has ended. It also ends with the process that
    started it. A fork of that process gets a worker of its own.

    Args:
        module: The module's full name.
        memory_bytes: How much memory the process may use, where the system can limit it; by default any amount.

    Attributes:
        is_killed: Whether the process was ended for good.
    """

    def __init__(self, module: str, *, memory_bytes: int | None = None) -> None:
        self._module = module
        self._memory_bytes = memory_bytes or 0
        self._process: subprocess.Popen[bytes] | None = None
        self.is_killed = False
        self._lock = threading.Lock()

    def call(self, name: str, *arguments: Any, seconds: float) -> Any:
        """Call a function of the module.

        Args:
            name: The function's name.
            arguments: JSON values, or arrays of numbers or strings.
            seconds: The time limit. After it, the kernel ends the process, whatever that is doing.

        Returns:
            The function's result. Tuples arrive as lists, arrays read-only.

        Raises:
            RaisedInWorkerError: The function raised an error.
            WorkerError: The process could not be started, or ended without an answer.
        """
        request = _pack([seconds, name, *arguments])
        with self._lock:
            process = self._start()
            if self.is_killed:
                self._end()
                raise WorkerError("it was stopped")
            try:
                _send(self._connection, request)
                has_failed, result = _receive(self._connection)
            except (EOFError, OSError):  # it has ended
                exit_code = process.wait()
                self._end()
                raise WorkerError(self._describe_end(exit_code)) from None
            except BaseException:  # such as Ctrl-C: the next call must not receive the answer of this one
                self._end()
                raise
        if has_failed:
            raise RaisedInWorkerError(result)
        return result

    def kill(self) -> None:
        """End the process for good. A running call fails, and so do later ones."""
        self.is_killed = True
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the process. A running call fails."""
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            self._end()

    def __del__(self) -> None:
        self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        """Return the process; start it if it is not running."""
        # In a fork, `poll` reports the parent's worker as ended.
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._end()
        try:
            self._process, self._connection = self._launch()
        except OSError as error:
            raise WorkerError(f"its process cannot be started: {error.strerror}") from error
        return self._process

    def _launch(self) -> tuple[subprocess.Popen[bytes], Connection]:
        """Start a process, and return it with our end of the connection to it."""
        ours, theirs = Pipe()
        with theirs:
            file_number = theirs.fileno()
            command = [
                sys.executable,
                "-P",  # no file in the current folder is imported
                "-m",
                "arag.system.worker_process",
                self._module,
                str(self._memory_bytes),
                str(file_number),
            ]
            process = subprocess.Popen(  # noqa: S603 - our own program
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # native code may print
                stderr=subprocess.DEVNULL,
                pass_fds=[file_number],
                start_new_session=True,  # Ctrl-C is for the caller only
            )
        return process, ours

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            self._connection.close()
            process.kill()
            process.wait()

    def _describe_end(self, exit_code: int) -> str:
        if exit_code in {-signal.SIGALRM, -signal.SIGPROF}:
            return "it timed out"
        cause = f"exit code {exit_code}"
        if exit_code < 0:
            cause = signal.Signals(-exit_code).name
        description = f"its process crashed ({cause})"
        if self._memory_bytes:
            description += f"; it may use {self._memory_bytes / 1e6:,.0f} MB of memory"
        return description


def serve(module: str, memory_bytes: int, connection: Connection) -> None:
    """Answer calls of a module's functions until the caller's process ends."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the caller may have ignored or blocked it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    if memory_bytes:
        with suppress(ValueError):  # a lower limit holds already
            resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    while True:
        seconds, name, *arguments = _receive(connection)
        signal.setitimer(signal.ITIMER_REAL, seconds)  # also ends a process that hangs after its caller has died
        try:
            functions = {function.__name__: function for function in import_module(module).SERVED}
            reply = _pack([False, functions[name](*arguments)])
        except MemoryError:
            os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does; the next call then starts with empty memory
        except BaseException as error:  # noqa: BLE001 - panics of Rust are not derived from Exception
            reply = _pack([True, str(error)])
        signal.setitimer(signal.ITIMER_REAL, 0)
        _send(connection, reply)


def _pack(values: Sequence[Any]) -> list[bytes]:
    """Return a header in JSON, and the bytes of each array."""
    others: list[Any] = []
    forms = []
    arrays = []
    for position, value in enumerate(values):
        if isinstance(value, np.ndarray):
            others.append(None)
            forms.append([position, value.dtype.str, value.shape])
            arrays.append(value.tobytes())
        else:
            others.append(value)
    header = json.dumps([others, forms]).encode()
    return [header, *arrays]


def _send(connection: Connection, parts: Sequence[bytes]) -> None:
    for part in parts:
        connection.send_bytes(part)


def _receive(connection: Connection) -> list[Any]:
    values: list[Any]
    values, forms = json.loads(connection.recv_bytes())
    for position, dtype, shape in forms:
        array = np.frombuffer(connection.recv_bytes(), dtype)
        values[position] = array.reshape(shape)
    return values


if __name__ == "__main__":
    with suppress(EOFError, ConnectionError):
        serve(sys.argv[1], int(sys.argv[2]), Connection(int(sys.argv[3])))
    os._exit(0)  # native threads cannot delay it
