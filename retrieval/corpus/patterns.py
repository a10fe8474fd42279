"""Patterns to match lines with: regular expressions in RE2's syntax, in time linear in the text.

A pattern says two more things about a text in the form that keywords are searched in (white space collapsed, lower
case), so that few texts have to be read: literals that each match holds, for the keyword index, and a looser pattern
that the text of each match matches. Both may let too much through, and never too little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal, TypeAlias

import numpy as np
import re2
from numpy.typing import NDArray

from arag.errors import InputError
from arag.retrieval import MAX_CHARACTERS
from arag.retrieval.corpus.literals import find_literals, find_rare_letters
from arag.retrieval.corpus.pattern_parts import is_in_word, loosen, split_pattern, write_for_block, write_for_line
from arag.retrieval.corpus.plain_texts import find_plain_texts
from arag.text.normalise import shorten

Case: TypeAlias = Literal["ignore", "match", "smart"]

# Parts of plain patterns. In a block, a match of a plain pattern is a run of matching lines: to find a word that is in
# most lines takes a third less time. A match of another pattern is the rest of a line: its parts may match a newline.
_PLAIN = {"letter", "or", "open", "close"}
_MAX_MEMORY = 8 << 20  # bytes for a compiled pattern and its automaton, RE2's default
_MAX_SHOWN = 100  # characters of a pattern in a message
_MAX_GROUPS = 20  # that capture: each takes time and memory for every match
_MAX_SPANS = 100  # matches of a line that are listed
_DOTTED_I = "İ"  # its lower case in the index is "i", which it does not match
_WORD_CHARACTER = re.compile(r"\w")
_ESCAPE = re.compile(r"\\[pP]\{[^}]*\}|\\.")
# What to do about errors of RE2, by their beginning.
_ADVICE = {
    r"invalid perl operator: \(\?<?[=!]": "there is no look-around: match what is around, too",
    r"invalid escape sequence: \\\d": "there are no back-references",
    "invalid repetition size": "the most is 1000, also for repetitions of repetitions",
}


class Pattern:
    """A compiled pattern. Use `compile_pattern` to get one.

    Attributes:
        text: The pattern as it was given.
        literals: What the searchable text of each match holds, as alternatives; empty if nothing is known.
        rare_letters: Letters in whose place a match may have one of the literals' letters.
        is_in_word: Whether each match is inside a word of the word index, and depends on that word alone.
        groups: How many capture groups it has.
    """

    def __init__(self, text: str, source: str, *, ignore_case: bool, whole_words: bool) -> None:
        parts = split_pattern(source)
        if any(part.text == r"\C" for part in parts):
            raise InputError(r"the pattern has \C, a single byte: use `.`, a single character")
        self.text = text
        self.whole_words = whole_words
        self._in_line = _compile(write_for_line(parts), text, ignore_case=ignore_case)
        in_block = write_for_block(parts)
        is_plain = all(part.kind in _PLAIN for part in parts) and "\n" not in source
        in_block = f"(?:.*(?:{in_block}).*\n)+" if is_plain else f"(?:{in_block}).*"
        self._in_block = _compile(in_block, text, ignore_case=ignore_case, never_newline=not is_plain)
        self._loose = None if _DOTTED_I in source else _try_to_compile(loosen(parts))
        self.groups: int = self._in_line.groups
        if self.groups > _MAX_GROUPS:
            raise InputError(f"the pattern has {self.groups} groups: at most {_MAX_GROUPS} are possible; write (?:...)")
        self._plain_texts = find_plain_texts(parts, ignore_case=ignore_case)
        self.literals = find_literals(parts)
        self.is_in_word = bool(self.literals) and is_in_word(parts)
        may_ignore_case = ignore_case or "(?" in source
        self.rare_letters = find_rare_letters(self.literals) if may_ignore_case else ""

    @property
    def is_plain(self) -> bool:
        """Whether it is alternatives of plain texts."""
        return self._plain_texts is not None

    def may_match(self, searchable_text: bytes | memoryview) -> bool:
        """Return whether a line in a text may match, given the text's searchable form in UTF-8."""
        return self._loose is None or self._loose.search(searchable_text) is not None

    def matches(self, line: str) -> bool:
        """Return whether a line matches."""
        if self.whole_words:
            return next(self._find(line), None) is not None
        return self._in_line.search(line.encode()) is not None

    def find_lines(self, block: bytes) -> list[int]:
        """Return the numbers of a block's lines that match; it has lines in UTF-8, each ended by a newline."""
        newlines = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
        if self._plain_texts is not None and self._plain_texts.knows(block):
            numbers = self._plain_texts.find_lines(block, newlines)
        else:
            numbers = self._find_lines(block, newlines)
        if not self.whole_words:
            return numbers
        lines = block.split(b"\n")
        return [number for number in numbers if self.matches(lines[number].decode())]

    def _find_lines(self, block: bytes, newlines: NDArray[np.int64]) -> list[int]:
        spans = [match.span() for match in self._in_block.finditer(block)]
        if not spans:
            return []
        starts, ends = np.transpose(spans)
        first_lines = np.searchsorted(newlines, starts).tolist()
        next_lines = (np.searchsorted(newlines, ends - 1) + 1).tolist()
        found = set(chain.from_iterable(map(range, first_lines, next_lines)))
        found.discard(len(newlines))  # of an empty match behind the last newline
        return sorted(found)

    def find(self, line: str, limit: int = _MAX_SPANS) -> list[Match]:
        """Return the first matches in a line. Empty ones are left out where there are others."""
        found = list(islice(self._find(line), limit))
        return [match for match in found if match.end > match.start] or found[:1]

    def _find(self, line: str) -> Iterator[Match]:
        for found in self._in_line.finditer(line):
            start, end = found.span()
            if not self.whole_words or _is_whole(line, start, end):
                yield Match(start, end, tuple(group or "" for group in found.groups()))


@dataclass(frozen=True, slots=True)
class Match:
    """A match in a line, from character `start` to before `end`."""

    start: int
    end: int
    groups: tuple[str, ...]
    """What each capture group matched; empty for groups that took no part."""


def compile_pattern(
    pattern: str,
    *,
    case: Case = "ignore",
    fixed: bool = False,
    whole_words: bool = False,
    whole_lines: bool = False,
) -> Pattern:
    r"""Compile a pattern.

    `\w` matches letters and digits of all scripts. `\b` knows ASCII's letters only: it is ignored beside another
    letter of the pattern.

    Args:
        pattern: A regular expression in RE2's syntax.
        case: Whether to `ignore` or to `match` case; `smart` ignores it if the pattern has no capital letter.
        fixed: Whether the pattern is a plain text.
        whole_words: Whether a match must not be a part of a longer word.
        whole_lines: Whether a match must be the whole line.

    Raises:
        InputError: The pattern is not valid, too long, or too large.
    """
    if len(pattern) > MAX_CHARACTERS:
        raise InputError(f"the pattern has {len(pattern):,} characters: give at most {MAX_CHARACTERS:,}")
    if not pattern:
        raise InputError("the pattern is empty: give a regular expression, such as `harbou?r|port`")
    try:
        pattern.encode()
    except UnicodeEncodeError as error:
        raise InputError("the pattern has half a surrogate pair, which no text has") from error
    source = re2.escape(pattern) if fixed else pattern
    _compile(source, pattern, ignore_case=True)  # an error names what is wrong before anything is put around it
    if whole_lines:
        source = f"^(?:{source})$"
    if case == "smart":
        case = "match" if _has_capital(source) else "ignore"
    return Pattern(pattern, source, ignore_case=case == "ignore", whole_words=whole_words)


def _compile(source: str, shown: str, *, ignore_case: bool, never_newline: bool = False) -> Any:
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.never_nl = never_newline
    options.max_mem = _MAX_MEMORY
    options.log_errors = False
    try:
        return re2.compile(source, options)
    except re2.error as error:
        raise InputError(f"the pattern {shorten(repr(shown), _MAX_SHOWN)} is not valid: {_explain(error)}") from error
    finally:
        re2.purge()  # it keeps the last 128, with their automatons


def _explain(error: Exception) -> str:
    """Return why a pattern is not valid, as RE2 says it, and what to do."""
    reason = shorten(error.args[0].decode(errors="replace"), _MAX_SHOWN)
    if reason.startswith("pattern too large"):
        return "it is too large: repeat less, or look for a part of it"
    for beginning, advice in _ADVICE.items():
        if re.match(beginning, reason):
            return f"{reason} ({advice})"
    return reason


def _try_to_compile(source: str) -> Any:
    try:
        return _compile(source, source, ignore_case=True)
    except InputError:  # it is longer than the pattern, and may be too large
        return None


def _is_whole(line: str, start: int, end: int) -> bool:
    """Return whether a match is not a part of a longer word."""
    around = line[max(0, start - 1) : start] + line[end : end + 1]
    return end > start and _WORD_CHARACTER.search(around) is None


def _has_capital(source: str) -> bool:
    r"""Return whether a pattern has a capital letter, except in escapes such as `\W`."""
    without_escapes = _ESCAPE.sub("", source)
    return any(map(str.isupper, without_escapes))
