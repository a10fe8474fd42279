"""Arguments of calls, as weak models and servers write them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

from arag.models.replies.forms import ARGUMENT_KEYS

FENCE = re.compile(r"\A\s*```\w*\s*|\s*```\s*\Z")
_OPENERS = {"{": "}", "[": "]"}
_BRACKETS = "{}[]"
# Brackets and strings.
_TOKEN = re.compile(r"""[{}\[\]]|"(?:\\.|[^"\\])*(?:"|\Z)|'(?:\\.|[^'\\])*(?:'|\Z)""", re.DOTALL)
_CONSTANTS = {"true": "True", "false": "False", "null": "None"}  # of JSON, as Python writes them
_CONSTANT = re.compile(r"\b(?:true|false|null)\b")
_BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_]\w*)\s*:")  # as JavaScript has them
_CLOSING = re.compile(r"\s*(?:</|<\||```|\[/)")  # of a tag or a fence
_VALUE_ENDS = '"]}0123456789el'
_MOST_ENCODED = 2  # times as JSON
_SEGMENT = re.compile(r"[./:|<>\s]|__")
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class KnownTool:
    """A tool that the model has."""

    name: str
    parameters: Sequence[str] = ()
    lists: Sequence[str] = field(default=())
    """The parameters that are lists."""

    @classmethod
    def from_schema(cls, function: Mapping[str, Any]) -> KnownTool:
        """Read a function's schema, as OpenAI has it."""
        properties = function.get("parameters", {}).get("properties", {})
        lists = []
        for name, schema in properties.items():
            kinds = [schema, *schema.get("anyOf", ())]
            if any(kind.get("type") == "array" for kind in kinds):
                lists.append(name)
        return cls(function["name"], tuple(properties), tuple(lists))


def resolve_name(written: object, tools: Mapping[str, KnownTool]) -> KnownTool | None:
    """Return the tool that a name means: in another spelling, with a prefix (`functions.`), or several times."""
    if not isinstance(written, str):
        return None
    if written in tools:
        return tools[written]
    meant: dict[str, KnownTool] = {}
    for part in (written, *_SEGMENT.split(written)):
        spelled = _plain(part)
        for name, tool in tools.items():
            plain = _plain(name)
            times = len(spelled) // len(plain)
            if times and spelled == plain * times:  # some servers repeat the name in each piece of a stream
                meant[name] = tool
    if len(meant) != 1:
        return None
    [tool] = meant.values()
    return tool


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def repair_arguments(written: object, tool: KnownTool) -> dict[str, Any] | None:
    """Return arguments that were written as a text, twice as JSON, or as a list; None if they are not clear."""
    value = written
    for _ in range(_MOST_ENCODED):
        if isinstance(value, str):
            value = read_whole_value(value)
    if isinstance(value, list):
        value = _name_list(value, tool)
    if not isinstance(value, dict):
        return None
    return _unwrap(value, tool)


def _name_list(values: list[Any], tool: KnownTool) -> Any:
    """Return a list as the tool's first list, or the only object in it."""
    if len(values) == 1 and isinstance(values[0], dict):
        return values[0]
    are_texts = all(isinstance(value, str) for value in values)
    if tool.lists and values and are_texts:
        return {tool.lists[0]: values}
    return None


def _unwrap(arguments: dict[str, Any], tool: KnownTool) -> dict[str, Any]:
    """Return the arguments inside an object that has them under a key such as `arguments`."""
    if not arguments.keys().isdisjoint(tool.parameters):
        return arguments
    for key in ARGUMENT_KEYS:
        inner = arguments.get(key)
        if isinstance(inner, dict) and not inner.keys().isdisjoint(tool.parameters):
            return inner
    return arguments


@dataclass(frozen=True)
class ReadValue:
    """A value in a text."""

    value: Any
    end: int


def read_whole_value(text: str) -> Any:
    """Return the value at the beginning of a text, behind which nothing but prose or closings stands; else None."""
    bare = FENCE.sub("", text).strip()
    if bare.startswith('"'):
        return _read_string(bare)
    read = read_value(bare, 0)
    if read is None:
        return None
    rest = bare[read.end :].lstrip()
    has_second = rest.startswith(tuple(_OPENERS))
    if has_second and rest != bare[: read.end]:  # which of two is meant?
        return None
    return read.value


def _read_string(text: str) -> Any:
    try:
        value, _ = _DECODER.raw_decode(text)
    except ValueError:
        return None
    return value


def read_value(text: str, start: int, *, may_be_cut: bool = False) -> ReadValue | None:
    """Read the object or list at a place: JSON, with Python's quotes and constants, too.

    Args:
        text: The text.
        start: Where the value begins.
        may_be_cut: Whether its last brackets may be missing.
    """
    if text[start : start + 1] not in _OPENERS:
        return None
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        pass
    else:
        return ReadValue(value, end)
    closed = _find_end(text, start)
    if closed is not None:
        return _read_python(text, start, closed)
    return _read_cut(text, start) if may_be_cut else None


def _read_python(text: str, start: int, end: int) -> ReadValue | None:
    """Read a value with Python's quotes, also with the constants of JSON and keys without quotes."""
    pieces = []
    position = start
    for token in _TOKEN.finditer(text, start, end):
        if token[0] in _BRACKETS:
            continue
        pieces += [_as_python(text[position : token.start()]), token[0]]
        position = token.end()
    pieces.append(_as_python(text[position:end]))
    try:
        value = ast.literal_eval("".join(pieces))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return ReadValue(value, end) if isinstance(value, dict | list) else None


def _as_python(text: str) -> str:
    """Return what stands between two strings as Python writes it."""
    literal = _CONSTANT.sub(lambda match: _CONSTANTS[match[0]], text)
    return _BARE_KEY.sub(r'\1"\2":', literal)


def _read_cut(text: str, start: int) -> ReadValue | None:
    """Read a value whose last brackets are missing; a string that is cut off is not clear."""
    rest = _CLOSING.split(text[start:])[0].rstrip()
    try:
        value = from_json(rest, allow_partial=True)
    except ValueError:
        return None
    if not value or rest[-1] not in _VALUE_ENDS:
        return None
    return ReadValue(value, start + len(rest))


def _find_end(text: str, start: int) -> int | None:
    """Return where brackets are closed again; brackets in strings do not count."""
    closers: list[str] = []
    for token in _TOKEN.finditer(text, start):
        character = token[0]
        if character in _OPENERS:
            closers.append(_OPENERS[character])
        elif character == closers[-1]:
            closers.pop()
        if not closers:
            return token.end()
    return None
