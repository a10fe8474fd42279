"""The parts of a regular expression in RE2's syntax: letters, classes, brackets, repetitions..."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from arag.retrieval.storage.words.spans import is_in_word as is_in_one_word

_WORD_CLASS = r"\p{L}\p{M}\p{Nd}_"  # RE2's own `\w` knows ASCII only
_PART = re.compile(
    r"""
    (?P<quote>\\Q.*?(?:\\E|\Z))
    |(?P<assertion>[\^$]|\\[AzbB])
    |(?P<any>\.|\\[dDsSwW]|\\[pP](?:\{[^}]*\}|.)|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\])
    |(?P<code>\\x(?:\{[^}]*\}|..)|\\[0-7]{1,3}|\\[aftnrv])
    |(?P<flags>\(\?[a-zA-Z-]*\))
    |(?P<open>\((?:\?(?:P?<[^>]*>|[a-zA-Z-]*:))?)
    |(?P<close>\))
    |(?P<or>\|)
    |(?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})\??)
    |(?P<letter>\\.|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_WIDE = {r"\w": f"[{_WORD_CLASS}]", r"\W": f"[^{_WORD_CLASS}]"}
_LINE_ENDS = {"^": "(?m:^)", r"\A": "(?m:^)", "$": "(?m:$)", r"\z": "(?m:$)"}
_NOTHING = "(?:)"  # a pattern that matches everywhere
_OPEN = "(?:"
_NEGATED = re.compile(r"\\[DSP]|\[\^|\[:\^")  # in a class: what it matches depends on the case
_OPTIONAL = re.compile(r"[*?]|\{0+[,}]")  # at the start of a repetition


_WORD_RANGES = "0-9|A-Z|a-z|[0-9A-Za-z_]|" + re.escape(_WORD_CLASS)
# What matches a character of a word of the word index, or says what is beside it in the word.
_IN_WORD = re.compile(
    rf"\\d|\\p(?:[LMN]|\{{[LMN][a-z&]?\}})|\[(?:{_WORD_RANGES})+\]|\\[bB]|" + re.escape(_NOTHING),
)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a pattern. Its kind is the name of a group of `_PART`."""

    kind: str
    text: str

    @property
    def is_optional(self) -> bool:
        """Whether it is a repetition that lets what it repeats be left out."""
        return self.kind == "repeat" and _OPTIONAL.match(self.text) is not None

    @property
    def is_capturing(self) -> bool:
        """Whether it opens a group that captures."""
        return self.kind == "open" and ":" not in self.text

    @property
    def letter(self) -> str:
        r"""The character that it matches, or an empty string; `\.` is a letter, and other escapes are not."""
        character = self.text[-1]
        is_escape = len(self.text) > 1
        if self.kind != "letter" or (is_escape and character.isalnum()):
            return ""
        return character


def is_in_word(parts: Iterable[Part]) -> bool:
    """Return whether each match of a pattern is inside a word of the word index, and depends on that word alone."""
    for part in parts:
        if part.kind in {"any", "assertion"}:
            is_inside = _IN_WORD.fullmatch(part.text) is not None
        elif part.kind == "letter":
            is_inside = is_in_one_word(part.letter)
        else:
            is_inside = part.kind not in {"quote", "code"}
        if not is_inside:
            return False
    return True


def split_pattern(source: str) -> list[Part]:
    """Return the parts of a pattern that RE2 accepts; its words may have letters of all scripts."""
    parts: list[Part] = []
    for found in _PART.finditer(source):
        kind = found.lastgroup or ""
        text = found[0]
        if kind == "any":
            text = _widen(text)
        place = len(parts)
        # RE2 repeats what is in front of flags: `a(?i)*` is `a*(?i)`.
        while kind == "repeat" and place > 0 and parts[place - 1].kind == "flags":
            place -= 1
        parts.insert(place, Part(kind, text))
    return [_without_boundary(parts, place) for place in range(len(parts))]


def _without_boundary(parts: Sequence[Part], place: int) -> Part:
    r"""Return a part, or one that matches everywhere for a `\b` beside a letter that is not ASCII's.

    RE2's `\b` knows ASCII's letters only.
    """
    part = parts[place]
    beside = parts[max(0, place - 1) : place + 2]
    if part.text != r"\b" or all(each.text.isascii() for each in beside):
        return part
    return Part(part.kind, _NOTHING)


def _widen(text: str) -> str:
    r"""Return a class in which `\w` has the letters and digits of all scripts."""
    if text in _WIDE:
        return _WIDE[text]
    if text.startswith("["):
        return re.sub(r"\\(.)", _widen_escape, text, flags=re.DOTALL)
    return text


def _widen_escape(escape: re.Match[str]) -> str:
    return _WORD_CLASS if escape[1] == "w" else escape[0]


def write_for_line(parts: Iterable[Part]) -> str:
    """Return the pattern to match a single line with."""
    return "".join(part.text for part in parts)


def write_for_block(parts: Iterable[Part]) -> str:
    """Return the pattern to match many lines with: without groups, since to find where they match takes time."""
    pieces: list[str] = []
    for part in parts:
        piece = _OPEN if part.is_capturing else part.text
        pieces.append(_LINE_ENDS.get(piece, piece))
    return "".join(pieces)


def loosen(parts: Iterable[Part]) -> str:
    """Return a pattern that matches the searchable text of each match, whatever is around it.

    The case does not matter there, so neither do flags.
    """
    return "".join(map(_loosen, parts))


def _loosen(part: Part) -> str:
    if part.kind in {"assertion", "flags"}:
        return _NOTHING
    if part.kind == "open":
        return _OPEN
    if part.kind not in {"any", "code"}:
        return part.text
    if _NEGATED.search(part.text):  # it may match a letter and not its lower case
        return "(?s:.)"
    return f"(?:{part.text}|i)"  # for a capital I with a dot
