"""Which files below a folder are left out: built-in rules, `.aragignore` files and --ignore, in gitignore's syntax.

The last rule that fits decides: those of inner folders come after those of outer ones, and --ignore comes last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from arag.errors import InputError
from arag.ingest.formats.content import clean_characters, decode_text

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE = ".aragignore"

# Parts of web pages and of builds.
_BUILT_IN = (
    "*.css",
    "*.min.js",
    "jquery*.js",
    "searchindex.js",
    "search/*.js",
    "_static/",
    "_sources/",
    "internals.pl",  # of LaTeX2HTML, as the next two
    "labels.pl",
    "WARNINGS",
    "Makefile",
    "GNUmakefile",
    "node_modules/",
    "__pycache__/",
)
_BUILT_IN_REASON = "a part of web pages or of a build; --ignore '!NAME' reads them"


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules of one place."""

    base: str  # the folder that they are for: empty, or relative to the top folder, with `/` at its end
    spec: GitIgnoreSpec
    reason: str  # why a file that fits is left out


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules for the entries of a folder; `make_ignore_rules` makes those of the first one.

    Attributes:
        files: Those that are built in, then those of `.aragignore` files, outer ones first.
        own: Those of --ignore.
    """

    files: tuple[_Rules, ...]
    own: _Rules

    def enter(self, top: Path, below: str) -> IgnoreRules:
        """Return the rules for a folder, with those of its `.aragignore`.

        Args:
            top: The folder that is ingested.
            below: The path from it to the folder; empty, or with `/` at its end.
        """
        file = top / below / IGNORE_FILE
        if not file.is_file():
            return self
        lines = decode_text(file.read_bytes()).splitlines()
        rules = _read_rules(lines, below, f"ignored by {below}{IGNORE_FILE}")
        return replace(self, files=(*self.files, rules))

    def why_ignored(self, path: str) -> str:
        """Return why an entry is left out, or an empty string.

        Args:
            path: Its path from the top folder, with `/` at its end if it is a folder.
        """
        path = clean_characters(path)
        reason = ""
        for rules in (*self.files, self.own):
            fits = rules.spec.check_file(path.removeprefix(rules.base)).include
            if fits is not None:
                reason = rules.reason if fits else ""
        return reason


def make_ignore_rules(patterns: Iterable[str] = ()) -> IgnoreRules:
    """Return the rules for a folder that is ingested.

    Args:
        patterns: Those of --ignore.

    Raises:
        InputError: A pattern is not valid.
    """
    built_in = _read_rules(_BUILT_IN, "", _BUILT_IN_REASON)
    return IgnoreRules((built_in,), _read_rules(patterns, "", "ignored by --ignore"))


def _read_rules(lines: Iterable[str], base: str, reason: str) -> _Rules:
    from pathspec import GitIgnoreSpec

    try:
        return _Rules(base, GitIgnoreSpec.from_lines(lines), reason)
    except ValueError as error:
        raise InputError(f"{reason.removeprefix('ignored by ')}: {error}") from error
