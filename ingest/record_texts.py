"""The text of records without a field for it: the turns of a chat, or everything that a nested record says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from arag.ingest.formats.content import JSON, join_blocks
from arag.ingest.formats.tables import table_lines
from arag.ingest.outline import escape_structure

_CHAT_NAMES = ("messages", "conversations", "conversation", "turns")
_SPEAKERS = ("role", "from", "speaker", "author", "user", "name")
_TIMES = ("ts", "timestamp", "time", "date", "created_at", "sent_at")
_WORDS = ("content", "value", "text", "message")
_TURN = {"role", "content"}
_EMPTY: tuple[JSON, ...] = (None, "", [], {})
_MAX_HEADING = 6  # the deepest heading of Markdown
_MAX_CELLS_PER_VALUE = 4  # of a table of records: one with more empty cells is hard to read, and may be huge


def write_record(record: Mapping[str, JSON]) -> str:
    """Return what a record says without a field for its text; nothing if it is neither a chat nor nested."""
    chat = write_chat(record)
    if chat:
        return chat
    if _is_nested(record):
        return _write_nested(record)
    return ""


def write_values(values: Iterable[JSON]) -> str:
    """Return the values of a field one after another."""
    texts: list[str] = []
    for value in values:
        if isinstance(value, dict):
            texts.append(_write_nested(value))
        else:
            texts.append(_show(value))
    return join_blocks(texts)


# --- chats ---


def is_chat(items: Sequence[JSON]) -> bool:
    """Return whether all items of a list are turns of a chat."""
    for item in items:
        if not isinstance(item, dict):
            return False
        if not item.keys() >= _TURN:
            return False
    return bool(items)


def write_chat(record: Mapping[str, JSON]) -> str:
    """Return the turns of a chat, each with its speaker, and with its time if that is given as text."""
    turns = find_objects(record.get(find_chat(record)))
    return join_blocks(map(_write_turn, turns))


def find_chat(record: Mapping[str, JSON]) -> str:
    """Return the name of the field that has the turns of a chat, or an empty string."""
    for name in _CHAT_NAMES:
        if find_objects(record.get(name)):
            return name
    return ""


def find_objects(value: object) -> list[dict[str, JSON]]:
    """Return the items of a list if all are objects; none for other values."""
    if not isinstance(value, list):
        return []
    objects: list[dict[str, JSON]] = []
    for item in value:
        if not isinstance(item, dict):
            return []
        objects.append(item)
    return objects


def _write_turn(turn: Mapping[str, JSON]) -> str:
    words = "\n".join(_find_words(turn))
    if not words.strip():
        return words
    speaker = _first_text(turn, _SPEAKERS)
    time = _first_text(turn, _TIMES)
    name = speaker or time
    if speaker and time:
        name = f"{speaker} ({time})"
    if not name:
        return words
    return f"{name}: {words}"


def _first_text(turn: Mapping[str, JSON], names: Sequence[str]) -> str:
    for name in names:
        value = turn.get(name)
        if isinstance(value, str):
            return value
    return ""


def _find_words(turn: Mapping[str, JSON]) -> list[str]:
    """Return the texts of a turn: it has one, or several parts, which may be objects with a text."""
    said: JSON = None
    for name in _WORDS:
        said = said or turn.get(name)
    parts = [said]
    if isinstance(said, list):
        parts = said
    words: list[str] = []
    for part in parts:
        if isinstance(part, str):
            words.append(part)
        if isinstance(part, dict):
            words += _find_words(part)
    return words


# --- nested records ---


def has_objects(value: JSON) -> bool:
    """Return whether a value is an object or a list with one in it."""
    if isinstance(value, list):
        return any(isinstance(item, dict) for item in value)
    return isinstance(value, dict)


def _is_nested(record: Mapping[str, JSON]) -> bool:
    return any(map(has_objects, record.values()))


def _write_nested(record: Mapping[str, JSON], level: int = 1) -> str:
    """Return what a nested record says: a line for each field, a heading for each object, and rows of lists of them."""
    marks = "#" * min(level, _MAX_HEADING)
    lines: list[str] = []
    blocks: list[str] = []
    for name, value in record.items():
        if value in _EMPTY:
            continue
        if not has_objects(value):
            lines.append(f"{name}: {_show(value)}")
            continue
        blocks.append(f"{marks} {name}")
        if isinstance(value, dict):
            blocks.append(_write_nested(value, level + 1))
        if isinstance(value, list):
            blocks.append(_write_list(value, level + 1))
    plain = escape_structure("\n".join(lines))
    return join_blocks([plain, *blocks])


def _write_list(items: Sequence[JSON], level: int) -> str:
    """Return the objects of a list as the rows of a table, if they have only values, most of them the same fields.

    Others stand one after another.
    """
    rows = find_objects(items)
    all_names = chain.from_iterable(rows)
    names = list(dict.fromkeys(all_names))
    are_nested = any(map(_is_nested, rows))
    filled = sum(map(len, rows))
    is_sparse = len(names) * len(rows) > _MAX_CELLS_PER_VALUE * filled
    if len(names) > 1 and not are_nested and not is_sparse:
        return _write_table(names, rows)
    blocks: list[str] = []
    for item in items:
        if isinstance(item, dict):
            blocks.append(_write_nested(item, level))
        else:
            blocks.append(_show(item))
    return join_blocks(blocks)


def _write_table(names: list[str], rows: Sequence[Mapping[str, JSON]]) -> str:
    table = [names]
    for row in rows:
        cells = [_show(row.get(name)) for name in names]
        table.append(cells)
    lines = table_lines(table, header=True)
    return "\n".join(lines)


def _show(value: JSON) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(map(_show, value))
    return str(value)
