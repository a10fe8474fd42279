"""Reads calls that stand in a text: JSON objects that name a tool, and names of tools with arguments behind them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from arag.models.replies.arguments import KnownTool, read_value, repair_arguments, resolve_name
from arag.models.replies.forms import ARGUMENT_KEYS, BETWEEN, CALL_KEYS, COMMANDS, NAME_KEYS, PARAMETERS
from arag.models.replies.thinking import is_quoted

_FLAGS = re.IGNORECASE | re.DOTALL
_BETWEEN = re.compile(rf"(?:{'|'.join(BETWEEN)})*", re.IGNORECASE)
_BEFORE_TAG = re.compile(
    r"(?:\s|[\"'/]?>|</?(?:parameters|arguments|args|input|params|tool_name|name)>|[\"'])*",
)
_COMMAND = "command"
_COMMANDS = [re.compile(form, _FLAGS | re.MULTILINE) for form in COMMANDS]
_CONSTANTS = {"true": True, "false": False, "null": None}  # of JSON, in expressions of Python
_MOST_DEPTH = 3  # of objects that hold calls


@dataclass(frozen=True)
class WrittenCall:
    """A call in a text."""

    name: str
    arguments: dict[str, Any]
    start: int
    end: int


@dataclass(frozen=True)
class _Held:
    """A call in a value of JSON."""

    name: str
    arguments: dict[str, Any]


def list_written_calls(text: str, tools: Mapping[str, KnownTool]) -> list[WrittenCall]:
    """Return the calls in a text, in order, each once. Those that are quoted do not count."""
    calls: dict[str, WrittenCall] = {}
    for call in [*_scan(text, tools), *_list_commands(text, tools)]:
        if is_quoted(text, call.start, call.end):
            continue
        key = json.dumps([call.name, call.arguments], sort_keys=True, default=str)
        calls.setdefault(key, replace(call, start=_before_brackets(text, call.start)))
    return list(calls.values())


def _scan(text: str, tools: Mapping[str, KnownTool]) -> Iterator[WrittenCall]:
    if not tools:
        return
    places = _compile_places(tools)
    place = places.search(text)
    while place:
        end = place.end()
        for call in _read_place(text, place, tools):
            end = max(end, call.end)
            yield call
        place = places.search(text, end)


def _compile_places(names: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for where calls may begin: a bracket, or the name of a tool in any spelling."""
    spellings = []
    for name in sorted(names, key=len, reverse=True):
        spellings.append("[_-]?".join(map(re.escape, re.split("[_-]", name))))
    return re.compile(rf"(?<![\w-])(?:{'|'.join(spellings)})(?![\w-])|{{", re.IGNORECASE)


def _read_place(text: str, place: re.Match[str], tools: Mapping[str, KnownTool]) -> list[WrittenCall]:
    if place[0] == "{":
        return _read_object(text, place.start(), tools)
    tool = resolve_name(place[0], tools)
    if tool is None:
        return []
    call = _read_named(text, place, tool)
    return [call] if call is not None else []


def _before_brackets(text: str, start: int) -> int:
    """Return where the tag or list begins whose first word is at a place."""
    while start and text[start - 1] in "<[":
        start -= 1
    return start


def _list_commands(text: str, tools: Mapping[str, KnownTool]) -> list[WrittenCall]:
    """Return the commands that a text has for a shell, if the model has one."""
    shells = [tool.name for tool in tools.values() if list(tool.parameters) == [_COMMAND]]
    if len(shells) != 1:
        return []
    calls = []
    for form in _COMMANDS:
        for match in form.finditer(text):
            command = match[_COMMAND].strip()
            if command:
                calls.append(WrittenCall(shells[0], {_COMMAND: command}, match.start(), match.end()))
    return calls


# --- objects ---


def _read_object(text: str, start: int, tools: Mapping[str, KnownTool]) -> list[WrittenCall]:
    """Return the calls that a JSON object holds."""
    read = read_value(text, start, may_be_cut=True)
    if read is None:
        return []
    calls = []
    for held in _list_held(read.value, tools, _MOST_DEPTH):
        calls.append(
            WrittenCall(
                held.name,
                held.arguments,
                start=start,
                end=read.end,
            )
        )
    return calls


def _list_held(value: Any, tools: Mapping[str, KnownTool], depth: int) -> list[_Held]:
    """Return the calls in a value of JSON."""
    if isinstance(value, list):
        return _list_in_all(value, tools, depth)
    if not isinstance(value, dict):
        return []
    for key in NAME_KEYS:
        tool = resolve_name(value.get(key), tools)
        if tool is not None:
            arguments = _find_arguments(value, key, tool)
            return [_Held(tool.name, arguments)] if arguments is not None else []
    keyed = _read_keyed(value, tools)
    if keyed is not None:
        return [keyed]
    inner = [value[key] for key in CALL_KEYS if isinstance(value.get(key), dict | list)]
    return _list_in_all(inner, tools, depth)


def _list_in_all(values: list[Any], tools: Mapping[str, KnownTool], depth: int) -> list[_Held]:
    held: list[_Held] = []
    if depth:
        for value in values:
            held += _list_held(value, tools, depth - 1)
    return held


def _read_keyed(value: dict[str, Any], tools: Mapping[str, KnownTool]) -> _Held | None:
    """Return the call in an object whose only key is the name of a tool."""
    if len(value) != 1:
        return None
    [(key, inner)] = value.items()
    tool = resolve_name(key, tools)
    if tool is None or not isinstance(inner, dict):
        return None
    return _Held(tool.name, inner)


def _find_arguments(value: dict[str, Any], name_key: str, tool: KnownTool) -> dict[str, Any] | None:
    """Return the arguments in an object that names a tool: under a key of their own, or beside the name."""
    for key in ARGUMENT_KEYS:
        if key in value:
            return repair_arguments(value[key], tool)
    beside = {key: value[key] for key in tool.parameters if key in value and key != name_key}
    return beside or None


# --- names with arguments behind them ---


def _read_named(text: str, place: re.Match[str], tool: KnownTool) -> WrittenCall | None:
    """Return the call of a tool's name with arguments behind it: JSON, tags, or an expression of Python."""
    start = place.end()
    if text.startswith("(", start):
        call = _read_expression(text, place, tool)
        start += 1
    else:
        call = _read_tags(text, place, tool)
        between = _BETWEEN.match(text, start)
        start = between.end() if between else start
    if call is not None:
        return call
    read = read_value(text, start, may_be_cut=True)
    arguments = repair_arguments(read.value, tool) if read is not None else None
    if read is None or arguments is None:
        return None
    return WrittenCall(tool.name, arguments, place.start(), read.end)


def _read_expression(text: str, place: re.Match[str], tool: KnownTool) -> WrittenCall | None:
    """Return a call as Python writes it: `name(key=value)`; also with an object in the brackets."""
    for closing in re.finditer(r"\)", text[place.end() :]):
        end = place.end() + closing.end()
        try:
            tree = ast.parse(f"f{text[place.end() : end]}".strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        arguments = _evaluate(tree, tool) if isinstance(tree, ast.Call) else None
        if arguments is None:
            return None
        return WrittenCall(tool.name, arguments, place.start(), end)
    return None


def _evaluate(tree: ast.Call, tool: KnownTool) -> dict[str, Any] | None:
    """Return the arguments of an expression; None if their values are not literals."""
    nodes: dict[str | None, ast.expr] = dict(zip(tool.parameters, tree.args, strict=False))
    for word in tree.keywords:
        nodes[word.arg] = word.value
    arguments: dict[str, Any] = {}
    for name, node in nodes.items():
        if name is None:  # `**others`
            return None
        try:
            arguments[name] = _evaluate_value(node)
        except (ValueError, TypeError, MemoryError, RecursionError):
            return None
    values = list(arguments.values())
    if len(values) == 1 and isinstance(values[0], dict):
        return values[0]
    return arguments


def _evaluate_value(node: ast.expr) -> Any:
    if isinstance(node, ast.Name) and node.id in _CONSTANTS:
        return _CONSTANTS[node.id]
    return ast.literal_eval(node)


def _read_tags(text: str, place: re.Match[str], tool: KnownTool) -> WrittenCall | None:
    """Return a call whose arguments are tags behind the tool's name."""
    names = "|".join(map(re.escape, tool.parameters)) or "arguments"
    for form in PARAMETERS:
        pattern = re.compile(rf"{_BEFORE_TAG.pattern}(?:{form.replace('{names}', names)})", _FLAGS)
        arguments: dict[str, Any] = {}
        end = place.end()
        match = pattern.match(text, end)
        while match:
            arguments[match["key"]] = _read_tag_value(match["value"].strip())
            end = match.end()
            match = pattern.match(text, end)
        if arguments:
            return WrittenCall(tool.name, arguments, place.start(), end)
    return None


def _read_tag_value(text: str) -> Any:
    read = read_value(text, 0)
    if read is not None and not text[read.end :].strip():
        return read.value
    try:
        return json.loads(text)
    except ValueError:
        return text
