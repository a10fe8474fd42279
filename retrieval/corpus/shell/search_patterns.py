"""What a search looks for: the patterns of `rg` and `grep` as they are meant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import re2

from arag.errors import InputError
from arag.retrieval import MAX_CHARACTERS
from arag.retrieval.corpus.patterns import Case, Match, Pattern, compile_pattern
from arag.retrieval.corpus.shell.options import Parsed
from arag.retrieval.corpus.shell.surroundings import rewrite

_MAX_MATCHES = 100_000  # in one line: each takes 200 bytes or more
_BASIC_PART = re.compile(r"\\.|\[\^?\]?[^\]]*\]|[|(){}+?]", re.DOTALL)
_SPECIAL = frozenset("|(){}+?")
_BAR = re.compile(r"(?<!\\)\|")
_WORD_END = re.compile(r"\\[<>]")


@dataclass(frozen=True)
class Reading:
    """A way to read the patterns of a call; later ones are tried if the earlier ones match nothing."""

    patterns: list[str]
    note: str = ""


@dataclass
class Matcher:
    """What a search looks for.

    Attributes:
        patterns: A line matches if one of them does.
        invert: Whether the lines are wanted that do not match.
        group: The group that is the match, where the pattern also says what is around it.
    """

    patterns: list[Pattern]
    invert: bool
    group: int = 0

    def matches(self, text: str) -> bool:
        """Return whether a line is wanted."""
        return any(pattern.matches(text) for pattern in self.patterns) != self.invert

    def find(self, text: str) -> list[Match]:
        """Return the matches in a text, in order, none over another.

        Raises:
            InputError: There are too many.
        """
        if self.invert:
            return []
        found: list[Match] = []
        for pattern in self.patterns:
            found += pattern.find(text, _MAX_MATCHES + 1)
            if len(found) > _MAX_MATCHES:
                raise InputError(f"a line has more than {_MAX_MATCHES:,} matches: give shorter lines")
        found.sort(key=lambda match: (match.start, -match.end))
        apart: list[Match] = []
        end = 0
        for match in found:
            if match.start >= end:
                apart.append(match)
                end = match.end
        return apart

    def find_first(self, text: str) -> Match | None:
        """Return the first match in a text."""
        if self.invert:
            return None
        found: list[Match] = []
        for pattern in self.patterns:
            found += pattern.find(text)
        return min(found, key=lambda match: match.start, default=None)


def list_readings(command: str, parsed: Parsed, patterns: list[str]) -> list[Reading]:
    """Return how the patterns of a call may be read: models mix up how commands write alternatives."""
    if parsed.has("fixed"):
        return [Reading(patterns)]
    patterns = [_WORD_END.sub(r"\\b", pattern) for pattern in patterns]
    if command == "grep" and not parsed.has("extended"):
        readings = [Reading([_read_basic(pattern) for pattern in patterns])]
        if any(_are_alternatives(_BAR.split(pattern)) for pattern in patterns):
            readings.append(Reading(patterns, "nothing matches as a basic expression: read as with -E"))
        return readings
    readings = [Reading(patterns)]
    if any(_are_alternatives(pattern.split(r"\|")) for pattern in patterns):
        alternatives = [pattern.replace(r"\|", "|") for pattern in patterns]
        readings.append(Reading(alternatives, r"nothing matches \| (a bar): read as |, the alternative"))
    return readings


def _are_alternatives(parts: Sequence[str]) -> bool:
    """Return whether the parts between bars may be alternatives: there are several, each with a letter or digit."""
    return len(parts) > 1 and all(re.search(r"\w", part) for part in parts)


def _read_basic(pattern: str) -> str:
    """Return a basic regular expression of grep as an extended one."""
    return _BASIC_PART.sub(_swap_escape, pattern)


def _swap_escape(match: re.Match[str]) -> str:
    part = match[0]
    if part in _SPECIAL:
        return f"\\{part}"
    if len(part) == 2 and part[0] == "\\" and part[1] in _SPECIAL:
        return part[1]
    return part


def make_matcher(patterns: Sequence[str], parsed: Parsed) -> Matcher:
    """Compile patterns as the options say.

    Raises:
        InputError: A pattern is not valid.
    """
    is_fixed = parsed.has("fixed")
    group = 0
    if len(patterns) == 1 and not is_fixed:
        surrounded = rewrite(patterns[0])
        if surrounded is not None:
            patterns = [surrounded.pattern]
            group = surrounded.group
    compiled: list[Pattern] = []
    for source in _join(patterns, is_fixed=is_fixed):
        pattern = compile_pattern(
            source,
            case=_choose_case(parsed),
            whole_words=parsed.has("words"),
            whole_lines=parsed.has("whole_lines"),
        )
        compiled.append(pattern)
    return Matcher(compiled, invert=parsed.has("invert"), group=group)


def _choose_case(parsed: Parsed) -> Case:
    if parsed.has("ignore_case"):
        return "ignore"
    return "smart" if parsed.has("smart_case") else "match"


def _join(patterns: Sequence[str], *, is_fixed: bool) -> list[str]:
    """Return patterns as alternatives in few expressions, none longer than one may be."""
    sources = [re2.escape(pattern) if is_fixed else pattern for pattern in patterns]
    if len(sources) == 1:
        return [sources[0] or "(?:)"]
    joined: list[str] = []
    for source in sources:
        alternative = f"(?:{source})"
        if joined and len(joined[-1]) + len(alternative) < MAX_CHARACTERS:
            joined[-1] += f"|{alternative}"
        else:
            joined.append(alternative)
    return joined
