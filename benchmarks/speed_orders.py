"""Processes that carry out orders: JSON on stdin, an answer for each on stdout. What is compared runs in one each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self


class Side:
    """One side of a comparison, in a process of its own.

    Args:
        name: What the table calls it.
        command: Starts the process.
        environment: Further variables.
    """

    def __init__(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self._process = subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1", **(environment or {})},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def ask(self, order: str, **values: Any) -> dict[str, Any]:
        """Send an order and wait for the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"order": order, **values}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line or '{"error": "the process has ended"}')
        if "error" in answer:
            raise RuntimeError(f"{self.name} failed at {order}:\n{answer['error']}")
        return answer


def carry_out(orders: object) -> None:
    """Carry out the orders on stdin, each by the method of its name, until there are no more."""
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        values = json.loads(line)
        try:
            answer = getattr(orders, values.pop("order"))(**values)
        except Exception:  # noqa: BLE001 - the benchmark says what it was
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def timed(function: Callable[..., object], *values: Any) -> float:
    """Call a function and return how many seconds it took."""
    began = time.perf_counter()
    function(*values)
    return time.perf_counter() - began


def memory() -> dict[str, float]:
    """Return this process's memory in MB, now and at its highest; empty where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    values = dict(line.split(":", 1) for line in lines)
    names = {"own": "RssAnon", "files": "RssFile", "now": "VmRSS", "peak": "VmHWM"}
    return {name: int(values[there].split()[0]) / 1_024 for name, there in names.items()}
