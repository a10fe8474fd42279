"""Runs a command of the shell over an index."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import Any

from arag.errors import ARAGError, InputError, ModelError
from arag.retrieval.corpus.lines import list_lines
from arag.retrieval.corpus.shell.asking import find_meaning, query_tables
from arag.retrieval.corpus.shell.calls import Answer, Call
from arag.retrieval.corpus.shell.corpus import Corpus
from arag.retrieval.corpus.shell.documents import GLOB, ROOT
from arag.retrieval.corpus.shell.finding import find_names
from arag.retrieval.corpus.shell.helping import show_help
from arag.retrieval.corpus.shell.listing import list_names, refuse_sizes
from arag.retrieval.corpus.shell.output import Ended, ShellResult, compose
from arag.retrieval.corpus.shell.pipes import PIPED, SEARCHERS, blank_quoted, mark_piped
from arag.retrieval.corpus.shell.search import search
from arag.retrieval.index import Index
from arag.retrieval.types import Chunk
from arag.system.worker_pool import WorkerPool
from arag.system.worker_process import RaisedInWorkerError, WorkerError
from arag.text.surrogates import replace_surrogates

SECONDS = 10.0  # for one command: enough for loops over thousands of lines

_SHELL_SECONDS = 9.0  # after which the interpreter ends it; it may hang, which SECONDS is for
_MAX_SCRIPT = 20_000  # characters
_FEW_FILES = 200  # documents that are always there as files: the interpreter needs 3 ms for so many
_MAX_FILES = 2_000  # that are there if a command may read any: it needs 0.1 s, and much more for more
_MAX_IDLE = 4  # interpreters that wait for the next command
_MAX_RUNNING = 8
_MEMORY_BYTES = 1 << 30  # of an interpreter

_POOL = WorkerPool(
    "arag.retrieval.corpus.shell.worker", memory_bytes=_MEMORY_BYTES, running=_MAX_RUNNING, idle=_MAX_IDLE
)
_MAX_ARGUMENTS = 10_000  # of one of our commands
_MAX_ARGUMENT = 20_000  # characters
_MAX_PARTS = 100  # chunks that a command may name
_MAX_READ_AHEAD = 64  # documents that are sent before they are asked for
_TIMED_OUT = "resource limit exceeded: execution timeout"  # the interpreter's words; it then drops its output
_TOO_LONG = "the command took longer than {:.0f} seconds, and its output is lost; make it do less\n"
_FILE_IS_MISSING = "No such file or directory"
_NAMES_OTHERS = re.compile(r"[*?\[`{]|\b(?:xargs|find|tree|read|mapfile|readarray|cd|du|eval|source|exec|sh|bash)\b")
_RUNS_TEXTS = re.compile(r"\b(?:sh|bash|eval)\b")
_VARIABLE = re.compile(r"\$[\w({@*]")
# In front of a command: the start, a sign that ends another command, or a word that runs one.
_RUNS_COMMAND = (
    r"(?:^|[\n;|&(`{!]|\b(?:then|do|else|elif|if|while|until|time|command|builtin|env|nice|exec|eval|timeout\s+\S+)\s"
    r"|\bxargs\s[^\n;|&]*\s|\b(?:sh|bash)\s+-c\s+.)[ \t]*+"
)
_CALLS_MEANING = re.compile(rf"{_RUNS_COMMAND}['\"]?meaning\b(?![\w.:/=-])")
_CALLS_SQL = re.compile(rf"{_RUNS_COMMAND}['\"]?sql\b(?![\w.:/=-])")
# Not what redirects: a sign like it may compare numbers or be a text, and a file that only this command reads is meant.
_WRITES = re.compile(
    r"(?:^|[\n;|&({]|\b(?:then|do|else)\s)[ \t]*"
    r"(?:rm|rmdir|mv|cp|touch|mkdir|chmod|ln|truncate|sed[ \t]+-i)(?![\w.:/=-])"
)
_READ_ONLY = "the documents are read-only: none was changed, and files that a command writes are gone at its end\n"
_FENCED = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
_PROMPT = re.compile(r"^\s*[$>]\s+")
_QUOTED_NAME = re.compile(r"['\"]([^'\"\n]+)['\"]")
_CHUNK_NAME = re.compile(r"\[?(.+):(\d{1,6})\]?")
_NAME = re.compile(r"[^\s'\"|;&()<>$`]+")

_COMMANDS: dict[str, Callable[[Call, Corpus], Answer]] = {
    **dict.fromkeys(SEARCHERS, search),
    "ls": list_names,
    "find": find_names,
    "meaning": find_meaning,
    "sql": query_tables,
    "help": show_help,
    **dict.fromkeys(("du", "stat"), refuse_sizes),
}


def run_shell(index: Index, command: str, *, names_lines: bool = False) -> ShellResult:
    """Run a command of a shell in which the index's documents are files, and `rg`, `ls`, `meaning` know the index.

    Each command has a fresh shell. It cannot reach anything but the index; what it writes is gone at its end.

    Args:
        index: The index; the command sees nothing but its documents.
        command: The command.
        names_lines: Whether each line of a file begins with its chunk, as when commands were recorded.

    Returns:
        Its output for a model.

    Raises:
        InputError: The command is blank or too long.
    """
    command = _without_prompt(command.replace("\r\n", "\n"))
    if not command.strip():
        raise InputError("the command is blank: give one, such as `rg -i harbour`")
    if len(command) > _MAX_SCRIPT:
        raise InputError(f"the command has {len(command):,} characters: give at most {_MAX_SCRIPT:,}")
    script = mark_piped(replace_surrogates(command).replace("\0", ""))
    _prepare(script, index)
    corpus = Corpus(index, names_lines=names_lines)
    paths = corpus.documents.paths
    if len(paths) <= _FEW_FILES or (len(paths) <= _MAX_FILES and _may_read_any(script)):
        return compose(_execute(script, paths, corpus), corpus)
    files = _find_named(script, corpus)
    ended = _execute(script, files, corpus)
    printed = [path for path in corpus.printed_paths if path not in set(files)]
    if _FILE_IS_MISSING in ended.stderr and printed:  # a command has read names that another one printed
        corpus = Corpus(index, names_lines=names_lines)
        ended = _execute(script, [*files, *printed][:_MAX_FILES], corpus)
    return compose(ended, corpus)


def _prepare(script: str, index: Index) -> None:
    """Load what a command may need: the first time may take longer than a command is given."""
    code = script if _RUNS_TEXTS.search(script) else blank_quoted(script)
    with suppress(ARAGError):  # the command itself tells of it
        if _CALLS_MEANING.search(code):
            index.embedder.load()
    with suppress(ARAGError):
        if _CALLS_SQL.search(code):
            index.query_tables()


def _without_prompt(command: str) -> str:
    """Return a command without what models put around it: a code block's fences, a prompt."""
    fenced = _FENCED.fullmatch(command.strip())
    return _PROMPT.sub("", fenced[1] if fenced else command)


def _may_read_any(script: str) -> bool:
    """Return whether a command may read files that it does not name: by patterns, or names from elsewhere."""
    return _NAMES_OTHERS.search(blank_quoted(script)) is not None or _VARIABLE.search(script) is not None


def _find_named(script: str, corpus: Corpus) -> list[str]:
    """Return the paths of documents whose names, or patterns of them, are in a command."""
    found: dict[str, None] = {}
    # A shell does not expand what is quoted, and to compare it with all paths takes long.
    expanded = script if _RUNS_TEXTS.search(script) else blank_quoted(script)
    patterns = set(_NAME.findall(expanded))
    for name in dict.fromkeys(_NAME.findall(script)):
        if GLOB.search(name) and name not in patterns:
            continue
        paths = corpus.documents.resolve(name.removesuffix("/"), ROOT) if name.strip("./*") else None
        found.update(dict.fromkeys(paths or ()))
    for path in corpus.documents.paths:  # names with spaces
        if " " in path and path in script:
            found[path] = None
    return list(found)[:_MAX_FILES]


def _find_parts(script: str, corpus: Corpus) -> dict[str, Chunk]:
    """Return the chunks whose ids are in a command: it may read them as files, too."""
    parts: dict[str, Chunk] = {}
    chunks: dict[str, dict[int, Chunk]] = {}  # by path
    for name in dict.fromkeys([*_NAME.findall(script), *_QUOTED_NAME.findall(script)]):
        match = _CHUNK_NAME.fullmatch(name)
        paths = corpus.documents.resolve(match[1], ROOT) if match else None
        if match and paths and len(paths) == 1 and len(parts) < _MAX_PARTS:
            (path,) = paths
            if path not in chunks:
                chunks[path] = corpus.read_parts(path)
            chunk = chunks[path].get(int(match[2]))
            if chunk is not None:
                parts[posixpath.normpath(name).lstrip("/")] = chunk
    return parts


def _execute(script: str, paths: Collection[str], corpus: Corpus) -> Ended:
    """Run a command in an interpreter, and answer what it asks for."""
    end = monotonic() + SECONDS
    corpus.deadline = end
    commands = [name for name in _COMMANDS if name != "find" or len(paths) < len(corpus.documents.paths)]
    commands += [f"{PIPED}{name}" for name in SEARCHERS]
    parts = _find_parts(script, corpus)
    reader = _Reader(corpus, parts)
    with _POOL.worker() as worker:
        try:
            request = worker.call("begin", script, list(paths), list(parts), commands, _SHELL_SECONDS, seconds=SECONDS)
            while request["kind"] in {"command", "read"}:
                answer = _answer(request, corpus, reader)
                request = worker.call("resume", answer, seconds=max(0.1, end - monotonic()))
        except (WorkerError, RaisedInWorkerError) as error:
            worker.close()
            if "timed out" in str(error):
                return Ended(stderr=_TOO_LONG.format(SECONDS))
            return Ended(stderr="the shell crashed on this command; write it another way\n")
        except BaseException:
            worker.close()
            raise
        if request["kind"] == "failed":
            worker.close()
            return Ended(stderr="the shell failed on this command; write it another way\n")
    if _TIMED_OUT in request["stderr"]:
        return Ended(stderr=_TOO_LONG.format(SECONDS))
    ended = Ended(request["stdout"], request["stderr"], request["exit_code"], request["is_cut"])
    only_writes = not ended.stdout.strip() and _WRITES.search(blank_quoted(script)) is not None
    return replace(ended, stderr=f"{ended.stderr}{_READ_ONLY}") if only_writes else ended


def _answer(request: Mapping[str, Any], corpus: Corpus, reader: _Reader) -> dict[str, Any]:
    if request["kind"] == "read":
        return {"texts": reader.read(request["path"])}
    arguments = request["arguments"]
    if len(arguments) > _MAX_ARGUMENTS or max(map(len, arguments), default=0) > _MAX_ARGUMENT:
        return {"stdout": "", "stderr": f"{request['name']}: Argument list too long\n", "exit_code": 126}
    call = Call(
        name=request["name"],
        arguments=arguments,
        stdin=request["stdin"],
        folder=request["folder"],
        files=request["files"],
    )
    try:
        answer = _COMMANDS[call.name](call, corpus)
    except (InputError, ModelError) as error:
        answer = Answer("", f"{call.name}: {error}\n", 2)
    return {"stdout": answer.stdout, "stderr": answer.stderr, "exit_code": answer.exit_code}


class _Reader:
    """Reads documents' files; where commands read one after another, several at once."""

    def __init__(self, corpus: Corpus, parts: Mapping[str, Chunk]) -> None:
        self._corpus = corpus
        self._parts = parts
        self._next = ""  # the path that comes next after those that were sent
        self._ahead = 1

    def read(self, path: str) -> dict[str, str]:
        if path in self._parts:
            return {path: self._corpus.read_lines(list_lines(self._parts[path]))}
        paths = self._corpus.documents.paths
        self._ahead = min(4 * self._ahead, _MAX_READ_AHEAD) if path == self._next else 1
        start = self._corpus.documents.place(path)
        end = start + self._ahead
        self._next = paths[end] if end < len(paths) else ""
        return self._corpus.read_files(paths[start:end])
