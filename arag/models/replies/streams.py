"""What of a streamed reply may be shown while it comes: no thinking, and nothing that may be a call."""

from __future__ import annotations

import re
from collections.abc import Collection

from arag.models.replies.calls import find_mark
from arag.models.replies.thinking import separate_thinking

_MAY_BE_CALL = re.compile(r"\A\s*(?:```|[{\[]|<)|^\s*(?:```(?:json|tool|xml|python)?|\{|\[\s*\{)", re.MULTILINE)
_MAY_BEGIN_MARK = re.compile(
    r"(?:[<\[【◁`{(]|\b(?:to=|Action|Thought|Final|analysis|>>>))[^\s\]>】)]{0,40}[ \t]?\Z|\s+\Z", re.IGNORECASE
)
_HELD = 60  # characters of a line's beginning that may become a name of a tool


def showable(text: str, names: Collection[str], *, begins_with_thinking: bool = False) -> str:
    """Return the beginning of a reply that is text for sure, whatever comes behind it.

    Args:
        text: The reply so far.
        names: The names of the model's tools.
        begins_with_thinking: Whether thinking is expected that is only closed.
    """
    separated = separate_thinking(text)
    if begins_with_thinking and not separated.thinking:
        return ""
    shown = separated.text
    stops = [len(shown)]
    mark = find_mark(shown)
    if mark is not None:
        stops.append(mark)
    candidate = _MAY_BE_CALL.search(shown)
    if candidate:
        stops.append(candidate.start())
    if names:
        named = re.search(rf"^\W*(?:\w+\.)?(?:{'|'.join(map(re.escape, names))})\b", shown, re.MULTILINE)
        if named:
            stops.append(named.start())
    shown = shown[: min(stops)]
    tail = _MAY_BEGIN_MARK.search(shown)
    if tail:
        shown = shown[: tail.start()]
    return _without_begun_name(shown, names)


def _without_begun_name(shown: str, names: Collection[str]) -> str:
    """Drop a last line that may become the name of a tool."""
    start = shown.rfind("\n") + 1
    line = shown[start:].strip().casefold()
    if line and len(line) < _HELD and any(name.casefold().startswith(line) for name in names):
        return shown[:start]
    return shown
