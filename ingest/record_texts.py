"""The text of records without a field for it: the turns of a chat, or everything that a nested record says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from arag.ingest.chats import find_objects, objects_among, write_chat
from arag.ingest.formats.content import JSON, join_blocks
from arag.ingest.formats.tables import table_lines
from arag.ingest.outline import escape_structure
from arag.ingest.record_markup import show_markup

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
    return _write_items(list(values), level=1)


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
    lines: list[str] = []
    blocks: list[str] = []
    for name, value in record.items():
        if value in _EMPTY:
            continue
        if not has_objects(value):
            lines.append(f"{name}: {_show(value)}")
            continue
        blocks.append(f"{_marks(level)} {name}")
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
    return _write_items(items, level)


def _write_items(items: Sequence[JSON], level: int) -> str:
    """Return items one after another; where objects have headings inside, each has its number above it."""
    objects = objects_among(items)
    have_numbers = len(objects) > 1 and any(map(_is_nested, objects))
    inner_level = level + have_numbers
    blocks: list[str] = []
    for number, item in enumerate(items, 1):
        text = _write_nested(item, inner_level) if isinstance(item, dict) else _show(item)
        if have_numbers and text:
            blocks.append(f"{_marks(level)} {number}")
        blocks.append(text)
    return join_blocks(blocks)


def _marks(level: int) -> str:
    """Return the marks of a heading; the deepest ones stand beside each other."""
    return "#" * min(level, _MAX_HEADING)


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
    return show_markup(str(value))
