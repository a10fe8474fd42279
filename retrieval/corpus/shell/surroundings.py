r"""Patterns that say what is around a match, as `grep -oP` knows them: `(?<=in )\d+`, `\d+(?= marks)`, `in \K\d+`.

They are rewritten as groups, which linear time allows: the match is then one of the groups.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = r"(?:[^()\\]|\\.)*"
_AROUND = re.compile(
    rf"(?P<flags>\(\?[a-z]+\))?(?:\(\?<=(?P<behind>{_PART})\))?(?P<body>.*?)(?:\(\?=(?P<ahead>{_PART})\))?", re.DOTALL
)
_KEEP = re.compile(r"(?P<flags>\(\?[a-z]+\))?(?P<behind>(?:[^\\]|\\[^K])*)\\K(?P<body>.*)", re.DOTALL)
_LOOK = re.compile(r"\(\?<?[=!]|\\K")
_GROUP = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|(\((?!\?)|\(\?P?<(?![=!]))", re.DOTALL)
_NESTED = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\([^()]*\)", re.DOTALL)


@dataclass(frozen=True)
class Surrounded:
    """A pattern without look-arounds.

    Attributes:
        pattern: The pattern.
        group: The number of the group that is the match.
    """

    pattern: str
    group: int


def rewrite(pattern: str) -> Surrounded | None:
    r"""Return a pattern with a look-behind at its start, a look-ahead at its end or a `\K` as groups.

    None if it has none of these, or others.
    """
    found = _KEEP.fullmatch(pattern) or _AROUND.fullmatch(pattern)
    if found is None:
        return None
    parts = found.groupdict()
    behind, body, ahead = parts["behind"] or "", parts["body"], parts.get("ahead") or ""
    rest = behind + body + ahead
    if not (behind or ahead) or _LOOK.search(rest) or _has_choice(behind) or _has_choice(body):
        return None
    groups = sum(1 for match in _GROUP.finditer(behind) if match[1])
    return Surrounded(f"{parts['flags'] or ''}(?:{behind})({body})(?:{ahead})", groups + 1)


def _has_choice(pattern: str) -> bool:
    """Return whether a pattern has alternatives that are not in brackets."""
    shorter = _NESTED.sub("", pattern)
    while shorter != pattern:
        pattern, shorter = shorter, _NESTED.sub("", shorter)
    return "|" in shorter
