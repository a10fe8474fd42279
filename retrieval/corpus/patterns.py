"""Patterns to match lines with: regular expressions in RE2's syntax, in time linear in the text.

A pattern says two more things about a text in the form that keywords are searched in (white space collapsed, lower
case), so that few texts have to be read: literals that each match holds, for the keyword index, and a looser pattern
that the text of each match matches. Both may let too much through, and never too little.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, TypeAlias

import re2

from arag.errors import InputError
from arag.retrieval import MAX_CHARACTERS
from arag.text.normalise import searchable, shorten

Case: TypeAlias = Literal["ignore", "match", "smart"]
Literals: TypeAlias = tuple[str, ...]  # a text holds all of them
Alternatives: TypeAlias = tuple[Literals, ...]  # a text holds all literals of one of them

# Letters that RE2 matches with a letter where case is ignored, although their lower case is another one.
RARE_FORMS = {"s": "ſ", "в": "ᲀ", "д": "ᲁ", "о": "ᲂ", "с": "ᲃ", "т": "ᲄᲅ", "ъ": "ᲆ", "ѣ": "ᲇ", "ꙋ": "ᲈ"}
# As above, but both forms are common: no literal has these. "Σ" also has another lower case at the end of a word.
AMBIGUOUS = frozenset("µͅΐβεθικμπρςσφϐϑϕϖϰϱϴϵṡẛ\u1fbe\u1fd3\u03b0\u1fe3\ufb05\ufb06ſᲀᲁᲂᲃᲄᲅᲆᲇᲈ")

_MAX_MEMORY = 8 << 20  # bytes for a compiled pattern and its automaton, RE2's default
_MAX_SHOWN = 100  # characters of a pattern in a message
_MIN_LITERAL_BYTES = 3  # shorter ones are in nearly all texts; one Chinese character has three bytes
_MAX_ALTERNATIVES = 100  # of literals: to look each up takes longer than to read the texts
_MAX_DEPTH = 50  # of brackets, for literals to be looked for in them
_MAX_GROUPS = 20  # that capture: each takes time and memory for every match
_MAX_SPANS = 100  # matches of a line that are listed
_DOTTED_I = "İ"  # its lower case in the index is "i", which it does not match

_WORD_CLASS = r"\p{L}\p{M}\p{Nd}_"  # RE2's own `\w` knows ASCII only
_TOKEN = re.compile(
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
_LINE_ENDS = {"^": "(?m:^)", r"\A": "(?m:^)", "$": "(?m:$)", r"\z": "(?m:$)"}
_NEGATED = re.compile(r"\\[DSWP]|\[\^|\[:\^")  # in a class: what it matches depends on the case
_OPTIONAL = re.compile(r"[*?]|\{0+[,}]")  # at the start of a repetition


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


class Pattern:
    """A compiled pattern. Use `compile_pattern` to get one.

    Attributes:
        text: The pattern as it was given.
        literals: What the searchable text of each match holds, as alternatives; None if nothing is known.
        rare_letters: Letters in whose place a match may have one of the literals' letters.
        groups: How many capture groups it has.
    """

    def __init__(self, text: str, source: str, *, ignore_case: bool, whole_words: bool) -> None:
        tokens = list(_split(source))
        self.text = text
        self.whole_words = whole_words
        self._expression = _compile(_write(tokens), text, ignore_case=ignore_case)
        self._in_block = _compile(_write(tokens, of_block=True), text, ignore_case=ignore_case, never_newline=True)
        self._loose = None if _DOTTED_I in source else _try_to_compile(_loosen(tokens))
        self.groups: int = self._expression.groups
        if self.groups > _MAX_GROUPS:
            raise InputError(f"the pattern has {self.groups} groups: at most {_MAX_GROUPS} are possible; write (?:...)")
        self.literals = _find_literals(tokens)
        may_ignore_case = ignore_case or "(?" in source
        self.rare_letters = _find_rare_letters(self.literals or ()) if may_ignore_case else ""

    def may_match(self, searchable_text: bytes | memoryview) -> bool:
        """Return whether a line in a text may match, given the text's searchable form in UTF-8."""
        return self._loose is None or self._loose.search(searchable_text) is not None

    def find_loosely(self, text: bytes, position: int) -> int | None:
        """Return where the first text that may match starts at or after a position; None if there is none."""
        if self._loose is None:
            return position
        found = self._loose.search(text, position)
        return None if found is None else found.start()

    def matches(self, line: str) -> bool:
        """Return whether a line matches."""
        if self.whole_words:
            return next(self._find(line), None) is not None
        return self._expression.search(line.encode()) is not None

    def find_lines(self, block: bytes) -> Iterator[int]:
        """Yield where each matching line of a block starts; the block has lines in UTF-8, each ended by a newline."""
        end = len(block) - 1  # without the last newline, behind which an empty line would begin
        position = 0
        while position < end and (found := self._in_block.search(block, position, end)):
            start = block.rfind(b"\n", 0, found.start()) + 1
            position = block.index(b"\n", start) + 1
            if not self.whole_words or self.matches(block[start : position - 1].decode()):
                yield start

    def find(self, line: str, limit: int = _MAX_SPANS) -> list[Match]:
        """Return the first matches in a line. Empty ones are left out where there are others."""
        found = list(islice(self._find(line), limit))
        return [match for match in found if match.end > match.start] or found[:1]

    def _find(self, line: str) -> Iterator[Match]:
        for found in self._expression.finditer(line):
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

    `\w` matches letters and digits of all scripts. `\b` knows ASCII's letters only: it is ignored if the
    pattern has others.

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
    if not fixed:
        _compile(source, pattern, ignore_case=True)  # an error names what is wrong before anything is put around it
    if whole_lines:
        source = f"^(?:{source})$"
    ignore_case = case == "ignore" or (case == "smart" and not _has_capital(source))
    return Pattern(pattern, source, ignore_case=ignore_case, whole_words=whole_words)


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
    reason = error.args[0] if error.args else ""
    if isinstance(reason, bytes):
        reason = reason.decode(errors="replace")
    reason = shorten(str(reason), _MAX_SHOWN)
    if re.match(r"invalid perl operator: \(\?<?[=!]", reason):
        return f"{reason} (there is no look-around: match what is around, too)"
    if re.match(r"invalid escape sequence: \\\d", reason):
        return f"{reason} (there are no back-references)"
    if reason.startswith("invalid repetition size"):
        return f"{reason} (the most is 1000, also for repetitions of repetitions)"
    if reason.startswith("pattern too large"):
        return "it is too large: repeat less, or look for a part of it"
    return reason


def _try_to_compile(source: str) -> Any:
    try:
        return _compile(source, source, ignore_case=True)
    except InputError:  # it is longer than the pattern, and may be too large
        return None


def _is_whole(line: str, start: int, end: int) -> bool:
    """Return whether a match is not a part of a longer word."""
    before, after = line[start - 1 : start], line[end : end + 1]
    return end > start and not (_is_of_word(before) or _is_of_word(after))


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _has_capital(source: str) -> bool:
    r"""Return whether a pattern has a capital letter, except in escapes such as `\W`."""
    without_escapes = re.sub(r"\\[pP]\{[^}]*\}|\\.", "", source)
    return any(map(str.isupper, without_escapes))


# --- the pattern's parts ---


def _split(source: str) -> Iterator[_Token]:
    """Yield the tokens of a pattern that RE2 accepts."""
    for found in _TOKEN.finditer(source):
        yield _Token(found.lastgroup or "letter", found[0])


def _write(tokens: Sequence[_Token], *, of_block: bool = False) -> str:
    """Return the pattern to compile, in which words may have letters of all scripts.

    Args:
        tokens: The pattern's tokens.
        of_block: Whether it is for a block of lines, not for a single one.
    """
    has_foreign_letters = any(token.kind == "letter" and not token.text.isascii() for token in tokens)
    pieces: list[str] = []
    for token in tokens:
        if token.kind == "any":
            pieces.append(_widen(token.text))
        elif token.text == r"\C":
            raise InputError(r"the pattern has \C, a single byte: use `.`, a single character")
        elif token.text == r"\b" and has_foreign_letters:
            pieces.append("(?:)")
        elif of_block and token.kind == "open" and ":" not in token.text:
            pieces.append("(?:")  # to find where groups match takes time
        elif of_block:
            pieces.append(_LINE_ENDS.get(token.text, token.text))
        else:
            pieces.append(token.text)
    return "".join(pieces)


def _widen(text: str) -> str:
    if text == r"\W":
        return f"[^{_WORD_CLASS}]"
    if text == r"\w":
        return f"[{_WORD_CLASS}]"
    if not text.startswith("["):
        return text
    return re.sub(r"\\(.)", lambda escape: _WORD_CLASS if escape[1] == "w" else escape[0], text, flags=re.DOTALL)


def _loosen(tokens: Iterable[_Token]) -> str:
    """Return a pattern that matches the searchable text of each match, whatever is around it.

    The case does not matter there, so neither do flags. A negated class may match a letter and not its lower case: here
    it matches everything.
    """
    pieces: list[str] = []
    for token in tokens:
        if token.kind in {"assertion", "flags"}:
            pieces.append("(?:)")
        elif token.kind == "open":
            pieces.append("(?:")
        elif token.kind == "any" and _NEGATED.search(token.text):
            pieces.append("(?s:.)")
        elif token.kind in {"any", "code"}:
            pieces.append(f"(?:{_widen(token.text)}|i)")  # for a capital I with a dot
        else:
            pieces.append(token.text)
    return "".join(pieces)


# --- literals ---


@dataclass
class _Bracket:
    """What is known of the inside of a bracket, or of the whole pattern."""

    branches: list[Alternatives | None] = field(default_factory=list)
    parts: list[Alternatives] = field(default_factory=list)  # of the current branch, which holds all of them
    run: str = ""  # letters, one after another, at the end of the current branch

    def end_run(self) -> None:
        literal = searchable(self.run)
        if len(literal.encode()) >= _MIN_LITERAL_BYTES:
            self.parts.append(((literal,),))
        self.run = ""

    def end_branch(self) -> None:
        self.end_run()
        self.branches.append(_combine(self.parts))
        self.parts = []

    def close(self) -> Alternatives | None:
        self.end_branch()
        found: dict[Literals, None] = {}
        for branch in self.branches:
            if branch is None:
                return None
            found |= dict.fromkeys(branch)
        return tuple(found) if len(found) <= _MAX_ALTERNATIVES else None


def _find_literals(tokens: Sequence[_Token]) -> Alternatives | None:
    """Return the literals that each match holds, as alternatives; None if there are none."""
    open_brackets = [_Bracket()]
    for place, token in enumerate(tokens):
        following = tokens[place + 1] if place + 1 < len(tokens) else _Token("end", "")
        is_repeated = following.kind == "repeat"
        is_optional = is_repeated and _OPTIONAL.match(following.text) is not None
        bracket = open_brackets[-1]
        letter = _letter(token)
        if letter and not is_optional:
            bracket.run += letter
            if is_repeated:
                bracket.end_run()
        elif token.kind == "or":
            bracket.end_branch()
        elif token.kind == "open":
            bracket.end_run()
            open_brackets.append(_Bracket())
            if len(open_brackets) > _MAX_DEPTH:
                return None
        elif token.kind == "close":
            inside = open_brackets.pop().close()
            if inside is not None and not is_optional:
                open_brackets[-1].parts.append(inside)
        else:
            bracket.end_run()
    return open_brackets[0].close()


def _letter(token: _Token) -> str:
    """Return the character that a token stands for, in lower case, or an empty string."""
    if token.kind != "letter":
        return ""
    character = token.text[-1]
    if len(token.text) > 1 and character.isalnum():  # an escape with a meaning of its own
        return ""
    lowered = searchable(character) or character
    return "" if lowered in AMBIGUOUS else lowered


def _combine(parts: Sequence[Alternatives]) -> Alternatives | None:
    """Return the literals of a text that holds all parts: all literals without alternatives, or the longest choice."""
    together: dict[str, None] = {}
    choices: list[Alternatives] = []
    for part in parts:
        if len(part) == 1:
            together |= dict.fromkeys(part[0])
        else:
            choices.append(part)
    if together:
        return (tuple(together),)
    return max(choices, key=_shortest, default=None)


def _shortest(alternatives: Alternatives) -> int:
    """Return the length of the longest literal in the alternative where it is shortest."""
    return min(max(map(len, literals)) for literals in alternatives)


def _find_rare_letters(alternatives: Alternatives) -> str:
    letters: set[str] = set()
    for literals in alternatives:
        for literal in literals:
            letters.update(*(RARE_FORMS.get(letter, "") for letter in literal))
    return "".join(sorted(letters))
