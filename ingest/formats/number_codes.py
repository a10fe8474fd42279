"""The codes of a workbook's number formats, such as `#,##0.00 "kg"`, and what they consist of."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

_CACHED_CODES = 1_000
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?'
    r"|\\(?P<escaped>.)"
    r"|\[\$(?P<currency>[^\]-]*)[^\]]*\]"
    r"|\[(?P<condition>(?:<=|>=|<>|[<>=])-?\d*\.?\d+)\]"
    r"|\[[^\]]*\]"  # a colour or a language
    r"|[_*](?P<space>.)"
    r"|(?P<general>General|@)"
    r"|(?P<exponent>E[+-]0+)"
    r"|(?P<digit>[0#?])"
    r"|(?P<mark>[.,%/])"
    r"|(?P<end>;)"
    r"|(?P<literal>.)",
    re.IGNORECASE | re.DOTALL,
)
_LITERALS = frozenset({"quoted", "escaped", "currency", "literal"})
_CONDITION = re.compile(r"([<>=]+)(.*)")
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}


class Part(NamedTuple):
    """A part of a code.

    Attributes:
        kind: `digit` for the place of one, `literal`, `mark`, or `general` for a number as it is.
        text: The part in the code; of a literal what it shows.
    """

    kind: str
    text: str


POINT = Part("mark", ".")
COMMA = Part("mark", ",")
PERCENT = Part("mark", "%")
SLASH = Part("mark", "/")


@dataclass
class Section:
    """One of the parts of a code, for positive or negative numbers or zero.

    Attributes:
        parts: Its parts.
        condition: Of the numbers that it is for, such as `>=100`; empty for all.
        exponent: How it shows the exponent, such as `E+00`; empty if it shows none.
    """

    parts: list[Part] = field(default_factory=list)
    condition: str = ""
    exponent: str = ""

    def fits(self, value: float) -> bool:
        """Return whether the section's condition holds for a number."""
        match = _CONDITION.fullmatch(self.condition)
        if match is None:
            return True
        holds = _COMPARISONS[match[1]]
        return holds(value, float(match[2]))

    @cached_property
    def is_general(self) -> bool:
        """Whether it shows a number as it is."""
        return any(part.kind == "general" for part in self.parts)

    @cached_property
    def has_digits(self) -> bool:
        """Whether it shows digits. Places that only align numbers do not count: a dash for zero has them, too."""
        return digit_places(self.parts).strip("?") != ""

    def split_at_point(self) -> tuple[list[Part], list[Part]]:
        """Return the parts before the decimal point and after it."""
        if POINT not in self.parts:
            return self.parts, []
        point = self.parts.index(POINT)
        return self.parts[:point], self.parts[point + 1 :]


def literals(parts: Iterable[Part]) -> str:
    """Return what parts show beside the number."""
    return _texts_of_kind(parts, "literal")


def digit_places(parts: Iterable[Part]) -> str:
    """Return the places of digits: `0` for one that is always shown, `#` or `?` for others."""
    return _texts_of_kind(parts, "digit")


def _texts_of_kind(parts: Iterable[Part], kind: str) -> str:
    return "".join(part.text for part in parts if part.kind == kind)


@lru_cache(_CACHED_CODES)
def read_code(code: str) -> tuple[Section, ...]:
    """Return the sections of a code."""
    sections = [Section()]
    for token in _TOKEN.finditer(code):
        kind = token.lastgroup
        if kind is None:
            continue
        section = sections[-1]
        text = token[kind]
        if kind == "end":
            sections.append(Section())
        elif kind == "condition":
            section.condition = text
        elif kind == "exponent":
            section.exponent = text
        elif kind == "space":
            section.parts.append(Part("literal", " "))
        elif kind in _LITERALS:
            section.parts.append(Part("literal", text))
        else:
            section.parts.append(Part(kind, text))
    return tuple(sections)
