"""Runs the bash commands of a model in a sandbox: bubblewrap, with a read-only folder and without network."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from arag.errors import InputError

SandboxKind: TypeAlias = Literal["bwrap", "none"]

_FOLDER = "/corpus"  # where a command sees the folder in the sandbox
_PROGRAMS = "/programs"  # programs that are outside of /usr
_MEMORY_KB = 4_000_000  # of each process; ripgrep reserves about 1 GB of addresses for its threads
_PROCESSES = 2_000  # of the user; older kernels also count those outside of the sandbox
_BYTES_PER_CHARACTER = 4  # at most, in UTF-8
_TIMED_OUT = {137, -9}  # exit codes of `timeout --signal=KILL`: in bubblewrap, and without it
# The output passes through `head`, which ends a command that prints without end.
_RUN = """ulimit -v {memory} -u {processes} -t {seconds} -c 0 2>/dev/null
bash -c "$1" 2>&1 | head -c {output}"""
# ripgrep searches with several threads, and prints files as they are done. Prompts must be the same each time.
_RIPGREP_SETTINGS = "--sort=path\n"
_HOW_TO_INSTALL = "install bubblewrap (`apt install bubblewrap`)"


@dataclass(frozen=True, slots=True)
class Output:
    """The output of a command.

    Attributes:
        text: Everything that it printed, also its errors.
        is_cut: Whether it printed more.
        has_timed_out: Whether it was stopped; what it had printed may be lost.
    """

    text: str
    is_cut: bool = False
    has_timed_out: bool = False


class Sandbox:
    """Runs bash commands that can read a folder and the system's programs, and nothing else.

    A command has no network, cannot write anywhere, and sees no other processes. Each of its processes has limited
    memory, and all of them end after the time limit. Without a sandbox (`kind` is "none"), only the limits hold: a
    command can do everything that the user can do.

    Args:
        folder: The folder.
        kind: `bwrap` for bubblewrap, or `none`.
        seconds: The time limit of a command.
        characters: How much output of a command is kept.

    Raises:
        InputError: bubblewrap is not installed, or does not work on this system.
    """

    def __init__(self, folder: Path, *, kind: SandboxKind, seconds: int, characters: int) -> None:
        self._folder = folder
        self._seconds = seconds
        self._characters = characters
        settings = folder.with_name("ripgreprc")
        settings.write_text(_RIPGREP_SETTINGS)
        if kind == "bwrap":
            self._prefix = _bubblewrap(folder, settings)
            # Not our own variables, which hold keys: a command can read those that bubblewrap itself is started with.
            self._variables = {
                "PATH": f"{_PROGRAMS}:/usr/local/bin:/usr/bin:/bin",
                "HOME": _FOLDER,
                "LANG": "C.UTF-8",
                "RIPGREP_CONFIG_PATH": f"{_PROGRAMS}/{settings.name}",
            }
        else:
            self._prefix = []
            self._variables = {**os.environ, "LANG": "C.UTF-8", "RIPGREP_CONFIG_PATH": str(settings)}
        self._check()

    def run(self, command: str) -> Output:
        """Run a bash command in the folder.

        Raises:
            RuntimeError: The sandbox itself failed.
        """
        ended = self._execute(command)
        if ended.returncode in _TIMED_OUT:
            return Output("", has_timed_out=True)
        if ended.returncode != 0:
            errors = ended.stderr.decode(errors="replace").strip()
            raise RuntimeError(f"the sandbox failed: {errors or f'exit code {ended.returncode}'}")
        text = ended.stdout.decode(errors="replace")
        return Output(text[: self._characters], is_cut=len(text) > self._characters)

    def _execute(self, command: str) -> subprocess.CompletedProcess[bytes]:
        run = _RUN.format(
            memory=_MEMORY_KB,
            processes=_PROCESSES,
            seconds=self._seconds,
            output=(self._characters + 1) * _BYTES_PER_CHARACTER,
        )
        limited = ["timeout", "--signal=KILL", str(self._seconds), "bash", "-c", run, "bash", command]
        return subprocess.run(  # noqa: S603 - a model's command, in the sandbox
            [*self._prefix, *limited],
            cwd=self._folder,
            env=self._variables,
            stdin=subprocess.DEVNULL,  # without a file or a pipe there, ripgrep searches the folder
            capture_output=True,
            check=False,
        )

    def _check(self) -> None:
        try:
            self.run("true")
        except RuntimeError as error:
            raise InputError(
                f"bubblewrap does not work here ({error}): the system must allow users to create namespaces"
            ) from error


def find_search_program() -> str:
    """Return the best program for searching files that is installed: `rg`, else `grep`."""
    return "rg" if shutil.which("rg") else "grep"


def _bubblewrap(folder: Path, settings: Path) -> list[str]:
    """Return the command that runs what follows it in bubblewrap."""
    program = shutil.which("bwrap")
    if program is None:
        raise InputError(f"a model's bash commands need a sandbox: {_HOW_TO_INSTALL}")
    mounts: list[Sequence[str]] = [
        ("--ro-bind", "/usr", "/usr"),
        # On most systems, these are links to folders of /usr.
        ("--ro-bind-try", "/bin", "/bin"),
        ("--ro-bind-try", "/lib", "/lib"),
        ("--ro-bind-try", "/lib64", "/lib64"),
        ("--ro-bind-try", "/etc/alternatives", "/etc/alternatives"),  # says which awk is `awk`
        ("--ro-bind", str(folder), _FOLDER),
        ("--ro-bind", str(settings), f"{_PROGRAMS}/{settings.name}"),
        ("--proc", "/proc"),
        ("--dev", "/dev"),
    ]
    ripgrep = shutil.which("rg")
    if ripgrep is not None:
        mounts.append(("--ro-bind", str(Path(ripgrep).resolve()), f"{_PROGRAMS}/rg"))
    prefix = [program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    for mount in mounts:
        prefix += mount
    for read_only in ("/proc", "/dev", "/"):  # bubblewrap's own file systems are writable
        prefix += ["--remount-ro", read_only]
    return [*prefix, "--chdir", _FOLDER]
