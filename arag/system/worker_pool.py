"""Worker processes of one module, for calls at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from arag.system.stopping import check_stop, ended_by_stop
from arag.system.worker_process import WorkerProcess


class WorkerPool:
    """Lends worker processes of a module, and keeps some for later calls. A fork gets processes of its own.

    Args:
        module: The module's full name; see `worker_process`.
        memory_bytes: How much memory each process may use.
        running: How many may be lent at once; further callers wait.
        idle: How many are kept.
    """

    def __init__(self, module: str, *, memory_bytes: int, running: int, idle: int) -> None:
        self._module = module
        self._memory_bytes = memory_bytes
        self._most_running = running
        self._most_idle = idle
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Begin without processes: those of the process that forked this one are not ours."""
        self._idle: list[WorkerProcess] = []
        self._running = threading.BoundedSemaphore(self._most_running)

    @contextmanager
    def worker(self) -> Iterator[WorkerProcess]:
        """Lend a process. It is not used again if an error leaves the block, and is ended if the work is stopped.

        Raises:
            StoppedError: The work was stopped before its turn came.
        """
        with self._running:
            check_stop()
            try:
                worker = self._idle.pop()
            except IndexError:
                worker = WorkerProcess(self._module, memory_bytes=self._memory_bytes)
            with ended_by_stop(worker.kill):
                yield worker
            if len(self._idle) < self._most_idle and not worker.is_killed:
                self._idle.append(worker)
            else:
                worker.close()
