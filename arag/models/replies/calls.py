"""Finds calls that a model writes into its text, and tells them from an answer that talks about calls."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from arag.models.replies.arguments import FENCE, KnownTool, read_value
from arag.models.replies.forms import ARGUMENT_KEYS, CALL_MARKS, INVENTED_RESULTS, NAME_KEYS, QUOTES
from arag.models.replies.thinking import is_quoted
from arag.models.replies.written import WrittenCall, list_written_calls

_FLAGS = re.IGNORECASE | re.MULTILINE
_MARK = re.compile("|".join(CALL_MARKS), _FLAGS)
_INVENTED = re.compile("|".join(INVENTED_RESULTS), _FLAGS)
_QUOTED = re.compile(rf"(?P<quote>{'|'.join(QUOTES)})(?P<said>.*?)(?P=quote)", re.DOTALL)
_CLOSINGS = re.compile(r"(?:\s|[\])},;|`*]|</[^<>\n]{0,80}>|<[｜|][^<>\n]{0,80}>|\[/?[A-Z_]+\]|<end_\w+>|\bcall\b)*\Z")
_OPENINGS = re.compile(
    r"(?:[\s\[({*`@]|[^\w\s\"'“‘.,;:!?)\]}<>|]|```\w*|\b(?:print|json|tool_code|functions?|default_api|tools|await|call|xml)\b[.:]?|<[^<>\n]{1,80}>)*\Z"
)
_CITATION = re.compile(r"[\[【(][^\[\]【】()\n]*:\d+[^\[\]【】()\n]*[\]】)]")
_GOES_ON = re.compile(r"[^\S\n]+[a-z]+[^\S\n]")  # prose behind a tag, on its line
_MOST_BEFORE = 400  # characters of prose before a call that has no mark; an answer is longer, or cites
_MOST_BEHIND = 250  # and behind it


@dataclass(frozen=True)
class CallsInText:
    """The calls in a text, and what stands before them."""

    before: str
    calls: list[WrittenCall] = field(default_factory=list)
    is_unread: bool = False
    """Whether the text has the form of a call that cannot be carried out."""


def find_calls(text: str, tools: Mapping[str, KnownTool], *, marked_only: bool = False) -> CallsInText:
    """Find the calls in a text.

    A text that cites chunks, quotes a call or talks about one at length is an answer: nothing in it is a call.

    Args:
        text: A reply without its thinking.
        tools: The tools that the model has, by name.
        marked_only: Whether a call counts only with a mark of its own, as for calls in thinking.
    """
    text = _drop_invented(text)
    mark = find_mark(text)
    if mark is None and marked_only:
        return CallsInText(text)
    if mark is not None:
        text = text[:mark] + _write_quotes(text[mark:])
    calls = list_written_calls(text, tools)
    if mark is None and not calls:
        return CallsInText(text, is_unread=_is_like_a_call(text))
    before = text[: _find_start(mark, calls)]
    behind = text[calls[-1].end :] if calls else ""
    is_meant = mark is not None or _stands_alone(before, behind)
    is_answer = _cites(before) or _cites(_CLOSINGS.sub("", behind))
    if is_answer or not is_meant:
        return CallsInText(text)
    return CallsInText(
        before=_OPENINGS.sub("", before).strip(),
        calls=calls,
        is_unread=not calls,
    )


def _drop_invented(text: str) -> str:
    """Return a text up to the result that a model has invented."""
    invented = _INVENTED.search(text)
    if invented is None or invented.start() == 0:
        return text
    return text[: invented.start()]


def _find_start(mark: int | None, calls: Sequence[WrittenCall]) -> int:
    starts = [call.start for call in calls]
    if mark is not None:
        starts.append(mark)
    return min(starts)


def _write_quotes(text: str) -> str:
    """Return a text with quotes in the place of tokens for them."""
    return _QUOTED.sub(lambda quoted: json.dumps(quoted["said"], ensure_ascii=False), text)


def find_mark(text: str) -> int | None:
    """Return where the first mark of a call begins that is not quoted or mentioned."""
    for mark in _MARK.finditer(text):
        if not is_quoted(text, mark.start(), mark.end()) and not _is_in_words(text, mark):
            return mark.start()
    return None


def _is_in_words(text: str, mark: re.Match[str]) -> bool:
    """Return whether prose goes on behind a tag on its line: the text mentions it."""
    is_plain_tag = mark[0].startswith("<") and "=" not in mark[0]
    if not is_plain_tag:
        return False
    line_start = text.rfind("\n", 0, mark.start()) + 1
    before = text[line_start : mark.start()].strip()
    return before != "" and _GOES_ON.match(text, mark.end()) is not None


def _cites(text: str) -> bool:
    return _CITATION.search(text) is not None


def _stands_alone(before: str, behind: str) -> bool:
    """Return whether the texts around a call without a mark leave no doubt that it is meant as one."""
    prose = _OPENINGS.sub("", before)
    between = before[len(prose.rstrip()) :]
    begins_line = not prose.strip() or "\n" in between
    rest = _CLOSINGS.sub("", behind).strip()
    return begins_line and len(prose) <= _MOST_BEFORE and len(rest) <= _MOST_BEHIND


def _is_like_a_call(text: str) -> bool:
    """Return whether a whole text is JSON that names a tool and its arguments."""
    bare = FENCE.sub("", text).strip()
    read = read_value(bare, 0)
    if read is None or bare[read.end :].strip():
        return False
    values = read.value if isinstance(read.value, list) else [read.value]
    return any(_names_tool(value) for value in values)


def _names_tool(value: object) -> bool:
    """Return whether a value of JSON has a key for a tool and one for its arguments."""
    if not isinstance(value, dict):
        return False
    has_name = not value.keys().isdisjoint(NAME_KEYS)
    has_arguments = not value.keys().isdisjoint(ARGUMENT_KEYS)
    return has_name and has_arguments
