"""Literals that each match of a pattern holds: for the keyword index, so that few texts are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TypeAlias

from arag.retrieval.corpus.pattern_parts import Part
from arag.text.normalise import lower, searchable

Literals: TypeAlias = tuple[str, ...]  # a text holds all of them
Alternatives: TypeAlias = tuple[Literals, ...]  # a text holds all literals of one of them

# Letters that RE2 matches with a letter where case is ignored, although their lower case is another one.
RARE_FORMS = {"s": "ſ", "в": "ᲀ", "д": "ᲁ", "о": "ᲂ", "с": "ᲃ", "т": "ᲄᲅ", "ъ": "ᲆ", "ѣ": "ᲇ", "ꙋ": "ᲈ"}
# As above, but both forms are common: no literal has these. "Σ" also has another lower case at the end of a word.
AMBIGUOUS = frozenset("µͅΐβεθικμπρςσφϐϑϕϖϰϱϴϵṡẛ\u1fbe\u1fd3\u03b0\u1fe3\ufb05\ufb06ſᲀᲁᲂᲃᲄᲅᲆᲇᲈ")

_MIN_LITERAL_BYTES = 3  # shorter ones are in nearly all texts; one Chinese character has three bytes
_MAX_ALTERNATIVES = 100  # of literals: to look each up takes longer than to read the texts
_MAX_DEPTH = 50  # of brackets, for literals to be looked for in them
_END = Part("end", "")


@dataclass
class _Bracket:
    """The literals inside a bracket, or in the whole pattern, as far as it was read."""

    branches: list[Alternatives] = field(default_factory=list)  # the alternatives of a branch without literals: none
    parts: list[Alternatives] = field(default_factory=list)  # of the current branch, which holds all of them
    run: str = ""  # letters, one after another, at the end of the current branch

    def add_letter(self, letter: str) -> None:
        self.run += letter

    def end_run(self) -> None:
        literal = searchable(self.run)
        if len(literal.encode()) >= _MIN_LITERAL_BYTES:
            self.parts.append(((literal,),))
        self.run = ""

    def end_branch(self) -> None:
        self.end_run()
        self.branches.append(_combine(self.parts))
        self.parts = []

    def close(self) -> Alternatives:
        """Return the alternatives of all branches; none if one branch has no literals."""
        self.end_branch()
        found: dict[Literals, None] = {}
        for branch in self.branches:
            found |= dict.fromkeys(branch)
        is_known = all(self.branches) and len(found) <= _MAX_ALTERNATIVES
        return tuple(found) if is_known else ()


def find_literals(parts: Sequence[Part]) -> Alternatives:
    """Return the literals of a pattern as alternatives: each match holds all of one of them; none if nothing is known.

    They are in the form that keywords are searched in: white space collapsed, in lower case.
    """
    brackets = [_Bracket()]
    for part, following in pairwise([*parts, _END]):
        bracket = brackets[-1]
        letter = _find_letter(part)
        if following.is_optional and part.kind != "close":
            bracket.end_run()
        elif letter:
            bracket.add_letter(letter)
            if following.kind == "repeat":
                bracket.end_run()
        elif part.kind == "or":
            bracket.end_branch()
        elif part.kind == "open":
            bracket.end_run()
            brackets.append(_Bracket())
        elif part.kind == "close":
            _close(brackets, is_optional=following.is_optional)
        else:
            bracket.end_run()
    return brackets[0].close()


def _close(brackets: list[_Bracket], *, is_optional: bool) -> None:
    """Close the last bracket; each match holds its literals, unless it is optional."""
    inside = brackets.pop().close()
    if inside and not is_optional:
        brackets[-1].parts.append(inside)


def _find_letter(part: Part) -> str:
    """Return the character that a part matches, in lower case, if all its forms have the same; else an empty string."""
    letter = lower(part.letter)
    return "" if letter in AMBIGUOUS else letter


def _combine(parts: Sequence[Alternatives]) -> Alternatives:
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
    return max(choices, key=_shortest, default=())


def _shortest(alternatives: Alternatives) -> int:
    """Return the length of the longest literal in the alternative where it is shortest."""
    return min(max(map(len, literals)) for literals in alternatives)


def find_rare_letters(alternatives: Alternatives) -> str:
    """Return the letters that a match may have in place of the literals' letters."""
    letters = set(chain.from_iterable(chain.from_iterable(alternatives)))
    return "".join(RARE_FORMS.get(letter, "") for letter in sorted(letters))
