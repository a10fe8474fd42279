"""The child process's part of the shell: an interpreter without files, network or processes of the machine.

A command runs in a thread. When it needs something of the index, `begin` or `resume` return a request, and the next
`resume` brings the answer:

- `command`: one of our commands was called, with its arguments and what a pipe gives it
- `read`: a command reads a document's file
- `end`: the command has ended
- `failed`: the interpreter cannot go on, and neither can this process be trusted
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any

from bashkit import Bash, BuiltinContext, BuiltinResult

from arag.retrieval.corpus.shell.documents import ROOT
from arag.retrieval.corpus.shell.pipes import PIPED

_MAX_BYTES = 64 << 20  # of variables, files that a command writes, and texts in pipes
_MAX_COMMANDS = 200_000
_MAX_LOOP_ITERATIONS = 1_000_000
_MAX_READ_BYTES = 8 << 20  # of a file that a command has written: more is not sent to our commands

# The interpreter's own `wc` counts nothing if one of its files is a folder or missing.
_WC = """
wc() {
  local name kept=() found=0 faults=0
  for name in "$@"; do
    if [ -f "$name" ]; then found=1; fi
    if [ -d "$name" ] || ! [[ -e $name || $name = -* ]]; then faults=1; else kept+=("$name"); fi
  done
  if [ $found$faults != 11 ]; then command wc "$@"; return; fi
  for name in "$@"; do
    if [ -d "$name" ]; then echo "wc: $name: Is a directory" >&2
    elif ! [[ -e $name || $name = -* ]]; then echo "wc: $name: No such file or directory" >&2; fi
  done
  command wc "${kept[@]}"
  return 1
}
"""

_current: _Run | None = None


def begin(
    script: str, paths: Sequence[str], parts: Sequence[str], commands: Sequence[str], seconds: float
) -> dict[str, Any]:
    """Start a command.

    Args:
        script: The command.
        paths: The documents' paths below the root.
        parts: Paths of chunks.
        commands: The names of our commands.
        seconds: The time limit.

    Returns:
        Its first request, or its end.
    """
    global _current  # noqa: PLW0603 - this process runs one command at a time
    _current = _Run(script, paths, parts, commands, seconds)
    return _current.go_on()


def resume(answer: dict[str, Any]) -> dict[str, Any]:
    """Answer a request, and return the next one."""
    if _current is None:
        raise RuntimeError("no command is running")
    _current.answers.put(answer)
    return _current.go_on()


SERVED = (begin, resume)


class _Run:
    """A command that runs in a thread."""

    def __init__(
        self, script: str, paths: Sequence[str], parts: Sequence[str], commands: Sequence[str], seconds: float
    ) -> None:
        self.answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._requests: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._script = script
        self._documents = {f"{ROOT}/{path}" for path in paths}
        self._paths = [*paths, *parts]
        self._commands = commands
        self._seconds = seconds
        self._texts: dict[str, str] = {}  # of files that were sent before they were asked for
        Thread(target=self._run, daemon=True).start()

    def go_on(self) -> dict[str, Any]:
        """Wait for the next request."""
        return self._requests.get()

    def _run(self) -> None:
        try:
            end = self._execute()
        except BaseException as error:  # noqa: BLE001 - panics of Rust are not derived from Exception
            end = {"kind": "failed", "error": f"{type(error).__name__}: {error}"}
        self._requests.put(end)

    def _execute(self) -> dict[str, Any]:
        shell = Bash(
            files={f"{ROOT}/{path}": self._reader(path) for path in self._paths},
            cwd=ROOT,
            custom_builtins=dict.fromkeys(self._commands, self._call),
            timeout_seconds=self._seconds,
            max_memory=_MAX_BYTES,
            max_commands=_MAX_COMMANDS,
            max_loop_iterations=_MAX_LOOP_ITERATIONS,
        )
        shell.execute_sync("shopt -s globstar")
        if "wc" in self._script:
            shell.execute_sync(_WC)
        result = shell.execute_sync(self._script)
        return {
            "kind": "end",
            "stdout": result.stdout,
            "stderr": result.stderr or result.error or "",
            "exit_code": result.exit_code,
            "is_cut": bool(result.stdout_truncated),
        }

    def _reader(self, path: str) -> Any:
        """Return a function that reads a document's file."""

        def read() -> str:
            if path not in self._texts:
                self._texts.update(self._ask({"kind": "read", "path": path})["texts"])
            return self._texts.pop(path, "")

        return read

    def _call(self, context: BuiltinContext) -> BuiltinResult:
        name = context.name
        # Where a loop reads its lines from is no input of `meaning "..."` in it.
        is_piped = name.startswith(PIPED) or not context.argv
        request = {
            "kind": "command",
            "name": name.removeprefix(PIPED),
            "arguments": context.argv,
            "stdin": (context.stdin or "") if is_piped else None,
            "folder": context.cwd,
            "files": self._read_others(context),
        }
        answer = self._ask(request)
        return BuiltinResult(answer["stdout"], answer["stderr"], answer["exit_code"])

    def _read_others(self, context: BuiltinContext) -> dict[str, str]:
        """Return the texts of the files among a command's arguments that are not documents."""
        texts: dict[str, str] = {}
        for argument in context.argv:
            if argument.startswith("-"):
                continue
            place = posixpath.normpath(posixpath.join(context.cwd, argument))
            if place in self._documents or not self._is_file(context, place):
                continue
            data = context.fs.read_file(place)
            texts[argument] = data[:_MAX_READ_BYTES].decode(errors="replace")
        return texts

    def _is_file(self, context: BuiltinContext, place: str) -> bool:
        if not context.fs.exists(place):
            return False
        return bool(context.fs.stat(place)["file_type"] == "file")

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self._requests.put(request)
        return self.answers.get()
