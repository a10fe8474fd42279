"""Runs commands and functions in processes whose files fail, each forked from one that has everything imported.

`Driver` starts that process with the shim, and asks it for one job at a time. This file is also its program.
"""

from __future__ import annotations

import ctypes
import errno
import faulthandler
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

# What is done to a file; shim.c has the same list.
OPEN, CREATE, READ, WRITE, RESIZE, SYNC, RENAME, UNLINK, MKDIR = (1 << n for n in range(9))
CHANGES = CREATE | WRITE | RESIZE | RENAME | UNLINK | MKDIR
GROWTH = CREATE | WRITE | RESIZE | MKDIR
EVERYTHING = CHANGES | OPEN | READ | SYNC
FAIL, SHORTEN, KILL = 1, 2, 3
FOR_EVER = 2**62
SECONDS = 60  # a job that takes longer hangs


@dataclass(frozen=True)
class Plan:
    """What happens to the calls of some kinds, from one to another, on the files below a folder."""

    folder: str
    kinds: int = 0
    first: int = FOR_EVER
    last: int = FOR_EVER
    action: int = FAIL
    error: int = errno.EIO
    log: str = ""  # a file that every change is recorded in


@dataclass(frozen=True)
class Outcome:
    """How a job ended; `exit` is None for one that hung, and below zero for one that a signal ended."""

    exit: int | None
    out: str
    err: str
    value: object
    counts: list[int]  # of the calls of each kind


class Driver:
    """A process that jobs are forked from, with the shim; use it as a context manager."""

    def __init__(self, *modules):  # each with a function `prepare`
        self._folder = tempfile.TemporaryDirectory(prefix="arag-driver-")
        self._shim = Path(self._folder.name, "shim.so")
        compiler = shutil.which("cc")
        made = [compiler, "-O1", "-shared", "-fPIC", "-o", self._shim, HERE / "shim.c"]
        subprocess.run(made, check=True)
        self._server = subprocess.Popen(
            [sys.executable, __file__, *modules],
            env=os.environ | {"LD_PRELOAD": str(self._shim), "COLUMNS": "300", "ARAG_MODEL": "extractive"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.stdin.close()
        self._server.wait()
        self._folder.cleanup()

    def run(self, function, *arguments, plan=None):
        """Call a function, named `module:function`, in a process of its own; its value must be JSON's."""
        job = {"function": function, "arguments": arguments, "plan": asdict(plan) if plan else None}
        print(json.dumps(job, default=str), file=self._server.stdin, flush=True)
        return Outcome(**json.loads(self._server.stdout.readline()))


def possible():
    """Tell whether the shim can be compiled and preloaded here."""
    return sys.platform == "linux" and sys.maxsize > 2**32 and shutil.which("cc") is not None


def _serve(modules):
    faulthandler.enable()
    sys.modules["faults.driver"] = sys.modules["__main__"]
    for module in modules:
        importlib.import_module(module).prepare()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        job = json.loads(line)
        with tempfile.TemporaryDirectory(prefix="arag-job-") as folder:
            print(json.dumps(_forked(Path(folder), **job)), file=answers, flush=True)


def _forked(folder, function, arguments, plan):
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _child(folder, function, arguments, plan)
    hung = False
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        if time.monotonic() - began > SECONDS and not hung:
            hung = True
            os.kill(pid, signal.SIGABRT)  # says where it hangs
        if time.monotonic() - began > SECONDS + 5:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
    result = folder / "result"
    value, counts = json.loads(result.read_text()) if result.exists() else (None, [])
    return {
        "exit": None if hung else os.waitstatus_to_exitcode(status),
        "out": (folder / "out").read_text(errors="replace"),
        "err": (folder / "err").read_text(errors="replace"),
        "value": value,
        "counts": counts,
    }


def _child(folder, function, arguments, plan):
    for name, descriptor in (("out", 1), ("err", 2)):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT), descriptor)
    module, _, name = function.partition(":")
    call = getattr(sys.modules[module], name)
    shim = ctypes.CDLL(None)
    counts = (ctypes.c_long * 9)()
    if plan is not None:
        (folder / "counts").write_bytes(bytes(10 * 8))
        if plan["log"]:
            Path(plan["log"]).touch()
        numbers = " ".join(str(plan[name]) for name in ("kinds", "first", "last", "action", "error"))
        os.environ["SHIM_PLAN"] = "\n".join([plan["folder"], str(folder / "counts"), plan["log"], numbers])
        shim.shim_arm()
    value, code = None, 0
    try:
        value = call(*arguments)
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001 - what the interpreter would do
        sys.excepthook(*sys.exc_info())
        code = 70
    shim.shim_disarm(counts)
    (folder / "result").write_text(json.dumps([value, list(counts)]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    _serve(sys.argv[1:])
