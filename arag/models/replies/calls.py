"""Finds calls that a model writes into its text, in any of the usual forms."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from arag.models.replies.arguments import KnownTool, read_value, repair_arguments, resolve_name
from arag.models.replies.forms import (
    ARGUMENT_KEYS,
    CALL_KEYS,
    CALL_MARKS,
    INVENTED_RESULTS,
    NAME_KEYS,
    PARAMETERS,
)
from arag.models.replies.thinking import is_quoted

_FLAGS = re.IGNORECASE | re.MULTILINE
_MARK = re.compile("|".join(CALL_MARKS), _FLAGS)
_INVENTED = re.compile("|".join(INVENTED_RESULTS), _FLAGS)
# What may stand between a tool's name and its arguments: tags, tokens, words for arguments.
_GLUE = re.compile(
    r"(?:\s|</?[^<>\n]{0,80}>|[<|｜▁]+[\w▁｜|:/]*[|｜>]+|\[/?[A-Z_]+\]|```\w*|:\d+|[:=,*_`\"'>|-]"
    r"|action[ _]input|arguments?|args|inputs?|parameters|params|json|commentary|code|call_id\w*|with|the)*",
    re.IGNORECASE,
)
_CLOSINGS = re.compile(r"(?:\s|[\])},;|`*]|</[^<>\n]{0,80}>|<[｜|][^<>\n]{0,80}>|\[/?[A-Z_]+\]|<end_\w+>|\bcall\b)*\Z")
_OPENINGS = re.compile(
    r"(?:[\s\[({*`]|```\w*|\b(?:print|json|tool_code|functions?|default_api|tools|await|call|xml)\b[.:]?|<[^<>\n]{1,80}>)*\Z"
)
_CITATION = re.compile(r"[\[【(][^\[\]【】()\n]*:\d+[^\[\]【】()\n]*[\]】)]")
_MOST_BEFORE = 400  # characters of prose before a call that has no mark; an answer is longer, or cites
_MOST_BEHIND = 250  # and behind it
_MOST_DEPTH = 3  # of objects that hold calls


@dataclass(frozen=True)
class WrittenCall:
    """A call in a text."""

    name: str
    arguments: dict[str, Any]
    start: int
    end: int


@dataclass(frozen=True)
class CallsInText:
    """The calls in a text, and what stands before them."""

    before: str
    calls: list[WrittenCall]
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
    invented = _INVENTED.search(text)
    if invented and invented.start():
        text = text[: invented.start()]
    mark = _find_mark(text)
    calls = _drop_repeats(_scan(text, tools))
    if mark is None and (marked_only or not calls):
        return CallsInText(text, [], is_unread=not marked_only and _is_like_a_call(text))
    start = min([call.start for call in calls] + ([mark.start()] if mark else []))
    before = text[:start]
    behind = text[calls[-1].end :] if calls else ""
    if _CITATION.search(before) or _CITATION.search(_CLOSINGS.sub("", behind)):
        return CallsInText(text, [])
    if mark is None and not _stands_alone(before, behind):
        return CallsInText(text, [])
    said = _OPENINGS.sub("", before).strip()
    return CallsInText(said, calls, is_unread=not calls)


def find_mark(text: str) -> int | None:
    """Return where the first mark of a call begins."""
    mark = _find_mark(text)
    return mark.start() if mark else None


def _find_mark(text: str) -> re.Match[str] | None:
    for mark in _MARK.finditer(text):
        if not is_quoted(text, mark.start(), mark.end()) and not _is_in_words(text, mark):
            return mark
    return None


def _is_in_words(text: str, mark: re.Match[str]) -> bool:
    """Return whether prose goes on behind a tag on its line: the text mentions it."""
    line_end = text.find("\n", mark.end())
    behind = text[mark.end() : line_end if line_end >= 0 else len(text)]
    before = text[text.rfind("\n", 0, mark.start()) + 1 : mark.start()]
    is_inside = bool(before.strip()) and re.match(r"\s+[a-z]+\s", behind) is not None
    return is_inside and mark[0].startswith("<") and "=" not in mark[0]


def _stands_alone(before: str, behind: str) -> bool:
    """Return whether the texts around a call without a mark leave no doubt that it is meant as one."""
    prose = _OPENINGS.sub("", before)
    begins_line = not prose.strip() or "\n" in before[len(prose.rstrip()) :]
    rest = _CLOSINGS.sub("", behind).strip()
    return begins_line and len(prose) <= _MOST_BEFORE and len(rest) <= _MOST_BEHIND


def _drop_repeats(calls: Iterator[WrittenCall]) -> list[WrittenCall]:
    kept: dict[str, WrittenCall] = {}
    for call in calls:
        key = json.dumps([call.name, call.arguments], sort_keys=True, default=str)
        kept.setdefault(key, call)
    return list(kept.values())


def _is_like_a_call(text: str) -> bool:
    """Return whether a whole text is JSON that names a tool and its arguments."""
    bare = re.sub(r"\A\s*```\w*\s*|\s*```\s*\Z", "", text).strip()
    read = read_value(bare, 0)
    if read is None or bare[read.end :].strip():
        return False
    values = read.value if isinstance(read.value, list) else [read.value]
    for value in values:
        if isinstance(value, dict) and set(NAME_KEYS) & value.keys() and set(ARGUMENT_KEYS) & value.keys():
            return True
    return False


# --- the forms ---


def _scan(text: str, tools: Mapping[str, KnownTool]) -> Iterator[WrittenCall]:
    """Yield the calls in a text, in order: JSON objects that name a tool, and names with arguments behind them."""
    if not tools:
        return
    spellings = [re.sub(r"[_-]", "[_-]?", re.escape(name).replace(r"\-", "-")) for name in tools]
    names = "|".join(sorted(spellings, key=len, reverse=True))
    places = re.compile(rf"(?<![\w-])(?:{names})(?![\w-])|{{", re.IGNORECASE)
    position = 0
    place = places.search(text, position)
    while place:
        if place[0] == "{":
            found = list(_read_object(text, place.start(), tools))
        else:
            found = list(_read_named(text, place, tools))
        for call in found:
            if not is_quoted(text, call.start, call.end):
                yield replace(call, start=_before_brackets(text, call.start))
        position = max([place.end(), *(call.end for call in found)])
        place = places.search(text, position)


def _before_brackets(text: str, start: int) -> int:
    """Return where the tag or list begins whose first word is at a place."""
    while start and text[start - 1] in "<[":
        start -= 1
    return start


def _read_object(text: str, start: int, tools: Mapping[str, KnownTool]) -> Iterator[WrittenCall]:
    """Yield the calls that a JSON object holds."""
    read = read_value(text, start, may_be_cut=True)
    if read is None:
        return
    for name, arguments in _list_held(read.value, tools, _MOST_DEPTH):
        yield WrittenCall(name, arguments, start, read.end)


def _list_held(value: Any, tools: Mapping[str, KnownTool], depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the names and arguments of the calls in a value of JSON."""
    if isinstance(value, list) and depth:
        for item in value:
            yield from _list_held(item, tools, depth - 1)
    if not isinstance(value, dict):
        return
    for key in NAME_KEYS:
        tool = resolve_name(value.get(key), tools)
        if tool is None:
            continue
        arguments = _find_arguments(value, key, tool)
        if arguments is not None:
            yield tool.name, arguments
        return
    if len(value) == 1:
        [(key, inner)] = value.items()
        tool = resolve_name(key, tools)
        if tool is not None and isinstance(inner, dict):
            yield tool.name, inner
            return
    for key in CALL_KEYS:
        if depth and isinstance(value.get(key), dict | list):
            yield from _list_held(value[key], tools, depth - 1)


def _find_arguments(value: dict[str, Any], name_key: str, tool: KnownTool) -> dict[str, Any] | None:
    """Return the arguments in an object that names a tool: under a key of their own, or beside the name."""
    for key in ARGUMENT_KEYS:
        if key in value:
            return repair_arguments(value[key], tool)
    beside = {key: each for key, each in value.items() if key in tool.parameters and key != name_key}
    return beside or None


def _read_named(text: str, place: re.Match[str], tools: Mapping[str, KnownTool]) -> Iterator[WrittenCall]:
    """Yield the call of a tool's name with arguments behind it: JSON, tags, or an expression of Python."""
    tool = resolve_name(place[0], tools)
    if tool is None:
        return
    if text[place.end() : place.end() + 1] == "(":
        yield from _read_expression(text, place, tool)
        return
    tags = _read_tags(text, place.end(), tool)
    if tags is not None:
        yield WrittenCall(tool.name, tags.arguments, place.start(), tags.end)
        return
    glue = _GLUE.match(text, place.end())
    start = glue.end() if glue else place.end()
    read = read_value(text, start, may_be_cut=True)
    if read is None:
        return
    arguments = repair_arguments(read.value, tool)
    if arguments is not None:
        yield WrittenCall(tool.name, arguments, place.start(), read.end)


def _read_expression(text: str, place: re.Match[str], tool: KnownTool) -> Iterator[WrittenCall]:
    """Yield a call as Python writes it: `name(key=value)`; also with an object in the brackets."""
    for closing in re.finditer(r"\)", text[place.end() :]):
        end = place.end() + closing.end()
        try:
            tree = ast.parse(f"f{text[place.end() : end]}".strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        if isinstance(tree, ast.Call):
            arguments = _evaluate(tree, tool)
            if arguments is not None:
                yield WrittenCall(tool.name, arguments, place.start(), end)
        return


def _evaluate(tree: ast.Call, tool: KnownTool) -> dict[str, Any] | None:
    """Return the arguments of an expression whose values are literals."""
    constants = {"true": True, "false": False, "null": None}
    arguments: dict[str, Any] = {}
    named = [*zip(tool.parameters, tree.args, strict=False), *((word.arg, word.value) for word in tree.keywords)]
    for name, node in named:
        if name is None:
            return None
        try:
            is_word = isinstance(node, ast.Name) and node.id in constants
            arguments[name] = constants[node.id] if is_word else ast.literal_eval(node)  # type: ignore[attr-defined]
        except (ValueError, TypeError):
            return None
    [first] = list(arguments.values())[:1] or [None]
    if len(arguments) == 1 and isinstance(first, dict):
        return first
    return arguments


@dataclass(frozen=True)
class _Tags:
    arguments: dict[str, Any]
    end: int


def _read_tags(text: str, start: int, tool: KnownTool) -> _Tags | None:
    """Read arguments that are tags behind a tool's name."""
    glue = re.compile(r"(?:\s|[\"'/]?>|</?(?:parameters|arguments|args|input|params|tool_name|name)>|[\"'])*")
    names = "|".join(map(re.escape, tool.parameters)) or "arguments"
    for form in PARAMETERS:
        pattern = re.compile(form.replace("{names}", names), re.IGNORECASE | re.DOTALL)
        arguments: dict[str, Any] = {}
        end = start
        before = glue.match(text, end)
        match = pattern.match(text, before.end() if before else end)
        while match:
            arguments[match["key"]] = _read_tag_value(match["value"].strip())
            end = match.end()
            before = glue.match(text, end)
            match = pattern.match(text, before.end() if before else end)
        if arguments:
            return _Tags(arguments, end)
    return None


def _read_tag_value(text: str) -> Any:
    read = read_value(text, 0)
    if read is not None and not text[read.end :].strip():
        return read.value
    try:
        return json.loads(text)
    except ValueError:
        return text
