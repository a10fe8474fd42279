"""Chats in records: their turns, each with its speaker and its time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from operator import methodcaller

from arag.ingest.formats.content import JSON, join_blocks

_CHAT_NAMES = ("messages", "chat_messages", "conversations", "conversation", "turns", "mapping")
_SPEAKERS = ("role", "from", "sender", "sender_name", "speaker", "author", "user", "name")
_TIMES = ("ts", "timestamp", "time", "date", "created_at", "sent_at")
_WORDS = ("content", "value", "text", "message", "parts")
_ATTACHED = ("attachments", "blocks", "embeds", "cards", "elements", "fields")  # lists in a message of a program
_ATTACHED_WORDS = ("pretext", "title", "name", "text", "description", "value")
_TURN = {"role", "content"}


def is_chat(items: list[JSON]) -> bool:
    """Return whether all items of a list are turns of a chat."""
    turns = find_objects(items)
    return turns != [] and all(map(_TURN.issubset, turns))


def write_chat(record: Mapping[str, JSON]) -> str:
    """Return the turns of a chat, each with its speaker, and with its time if that is given as text."""
    turns = _find_turns(record.get(find_chat(record)))
    return join_blocks(map(_write_turn, turns))


def find_chat(record: Mapping[str, JSON]) -> str:
    """Return the name of the field that has the turns of a chat, or an empty string. Turns have speakers."""
    for name in _CHAT_NAMES:
        turns = _find_turns(record.get(name))
        if any(_first_text(turn, _SPEAKERS) for turn in turns):
            return name
    return ""


def objects_among(values: Iterable[JSON]) -> list[dict[str, JSON]]:
    """Return those of several values that are objects."""
    return [value for value in values if isinstance(value, dict)]


def find_objects(value: object) -> list[dict[str, JSON]]:
    """Return the items of a list if all are objects; none for other values."""
    items = value if isinstance(value, list) else []
    objects = objects_among(items)
    return objects if len(objects) == len(items) else []


def _find_turns(value: JSON) -> list[dict[str, JSON]]:
    """Return the objects of a list, or the messages of a tree in the order of their times, as ChatGPT exports it."""
    if not isinstance(value, dict):
        return find_objects(value)
    nodes = find_objects(list(value.values()))
    messages = filter(None, map(methodcaller("get", "message"), nodes))
    return sorted(find_objects(list(messages)), key=_time_of_creation)


def _time_of_creation(message: Mapping[str, JSON]) -> float:
    time = message.get("create_time")
    if isinstance(time, float | int):
        return time
    return 0


def _write_turn(turn: Mapping[str, JSON]) -> str:
    words = "\n".join(_find_words(turn))
    if not words.strip():
        words = "\n".join(_find_attached(turn))
    if not words.strip():
        return ""
    speaker = _first_text(turn, _SPEAKERS)
    time = _first_text(turn, _TIMES)
    name = speaker or time
    if speaker and time:
        name = f"{speaker} ({time})"
    said = filter(None, [name, words])
    return ": ".join(said)


def _first_text(turn: Mapping[str, JSON], names: Sequence[str]) -> str:
    """Return the first text of some fields, or of an object in one of them."""
    for name in names:
        value = turn.get(name)
        if isinstance(value, dict):
            value = _first_text(value, names)
        if isinstance(value, str) and value:
            return value
    return ""


def _find_words(turn: Mapping[str, JSON]) -> list[str]:
    """Return the texts of a turn, or of a part of one, and the tools that it calls."""
    said: JSON = None
    for name in _WORDS:
        said = said or turn.get(name)
    parts = said if isinstance(said, list) else [said]
    words = _find_texts(parts)
    calls = [turn, *find_objects(turn.get("tool_calls"))]
    written_calls = map(_write_call, calls)
    return [*words, *filter(None, written_calls)]


def _find_texts(parts: Sequence[JSON]) -> list[str]:
    """Return the texts of parts; those of objects within a text, as Telegram exports it, are joined with the others."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        if isinstance(part, dict):
            texts += _find_words(part)
    kinds = set(map(type, parts))
    is_one_text = kinds == {str, dict}
    if is_one_text:
        return ["".join(texts)]
    return texts


def _find_attached(message: Mapping[str, JSON]) -> list[str]:
    """Return the texts of what is attached to a message without words: a line for each part, as `Severity: high`."""
    lines: list[str] = []
    for name in _ATTACHED:
        for part in find_objects(message.get(name)):
            values = map(part.get, _ATTACHED_WORDS)
            texts = filter(None, map(_text_of, values))
            lines.append(": ".join(texts))
            lines += _find_attached(part)
    return list(filter(None, lines))


def _text_of(value: JSON) -> str:
    """Return a text, or the one in an object, as Slack has them in blocks."""
    if isinstance(value, dict):
        value = value.get("text")
    return value if isinstance(value, str) else ""


def _write_call(part: Mapping[str, JSON]) -> str:
    """Return the call of a tool like a line of code; nothing for a part that is none."""
    call = part.get("function", part)
    if not isinstance(call, dict):
        return ""
    name = call.get("name")
    arguments = call.get("arguments", call.get("input"))
    if not isinstance(name, str) or arguments is None:
        return ""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return f"{name}({arguments})"
