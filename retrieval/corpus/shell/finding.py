"""`find`, for corpora of which not all documents are there as files: else the interpreter's own is used."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import Any

from arag.errors import InputError
from arag.retrieval.corpus.shell.calls import Answer, Call
from arag.retrieval.corpus.shell.corpus import Corpus
from arag.retrieval.corpus.shell.documents import ROOT, compile_glob

FIND_VALID = "-name, -iname, -path, -ipath, -type f, -maxdepth, -not, -o, -print0; pipe to xargs in place of -exec"
_WITH_VALUE = {"-name", "-iname", "-path", "-ipath", "-type", "-maxdepth"}
_IGNORED = {"-print", "(", ")", "-a", "-and"}


@dataclass
class _Test:
    """The test of a pattern."""

    glob: Any
    is_negated: bool

    def holds(self, path: str) -> bool:
        return (self.glob.fullmatch(path) is not None) != self.is_negated


@dataclass
class _Conditions:
    """What `find` looks for: all tests of one of some choices hold."""

    choices: list[list[_Test]] = field(default_factory=lambda: [[]])
    depth: int | None = None
    wants_files: bool = True

    def hold(self, path: str, inside: str) -> bool:
        """Return whether a file is found, given its path from the root and from where the search starts."""
        if not self.wants_files or (self.depth is not None and inside.count("/") >= self.depth):
            return False
        return any(all(test.holds(path) for test in tests) for tests in self.choices)


def find_names(call: Call, corpus: Corpus) -> Answer:
    """Answer a call of `find`."""
    arguments = list(call.arguments)
    starts: list[str] = []
    while arguments and not arguments[0].startswith(("-", "!", "(")):
        starts.append(arguments.pop(0))
    end = "\n"
    if "-print0" in arguments:
        arguments.remove("-print0")
        end = "\0"
    conditions = _read_conditions(arguments)
    pieces: list[str] = []
    errors = ""
    for start in starts or ["."]:
        corpus.check_time()
        paths = corpus.documents.resolve(start, call.folder)
        if paths is None:
            errors += f"find: {start}: {corpus.say_missing(start)}\n"
            continue
        folder = posixpath.normpath(posixpath.join(call.folder, start)).removeprefix(ROOT).strip("/")
        for path in paths:
            inside = path.removeprefix(f"{folder}/") if folder else path
            if conditions.hold(path, inside):
                corpus.print_path(path)
                name = start if path == folder else f"{start.rstrip('/')}/{inside}"
                pieces.append(f"{name}{end}")
    return Answer("".join(pieces), errors, 1 if errors else 0)


def _read_conditions(arguments: list[str]) -> _Conditions:
    conditions = _Conditions()
    is_negated = False
    while arguments:
        option = arguments.pop(0)
        if option in _IGNORED:
            continue
        if option in {"-not", "!"}:
            is_negated = not is_negated
        elif option in {"-o", "-or"}:
            conditions.choices.append([])
        elif option in _WITH_VALUE and arguments:
            _add_condition(conditions, option, arguments.pop(0), is_negated=is_negated)
            is_negated = False
        else:
            raise InputError(f"{option} is not valid here: valid are {FIND_VALID}")
    return conditions


def _add_condition(conditions: _Conditions, option: str, value: str, *, is_negated: bool) -> None:
    if option == "-type":
        conditions.wants_files = value == "f"
        return
    if option == "-maxdepth":
        if not (value.isascii() and value.isdigit()):
            raise InputError(f"{value!r} is not a number, as -maxdepth needs one")
        conditions.depth = int(value[:9])
        return
    pattern = f"**/{value}"
    if "path" in option:  # its `*` crosses folders
        pattern = value.removeprefix("./").replace("*", "**")
    glob = compile_glob(pattern, ignore_case=option.startswith("-i"))
    conditions.choices[-1].append(_Test(glob, is_negated))
