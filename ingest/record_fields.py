"""Finds the text, the title and the id of a record whose fields have other names, and the turns of a chat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from arag.ingest.formats.content import JSON, FormatError, join_blocks
from arag.ingest.formats.tables import table_lines
from arag.ingest.outline import escape_structure

TEXT_NAMES = (
    "text content contents body page_content pageContent full_text fulltext document article passage markdown "
    "transcript message description abstract summary"
).split()
_TITLE_NAMES = "title headline name subject".split()
_ID_NAMES = "id _id doc_id docid".split()
_CHAT_NAMES = ("messages", "conversations", "conversation", "turns")
_SPEAKERS = ("role", "from", "speaker", "author", "user", "name")
_TIMES = ("ts", "timestamp", "time", "date", "created_at", "sent_at")
_WORDS = ("content", "value", "text", "message")
_MAX_DEPTH = 20
_MAX_SHOWN = 12  # fields in a message


@dataclass(frozen=True, slots=True)
class FieldNames:
    """The names of the fields of records that a user gives, or empty strings. `page.body` is the `body` of `page`."""

    text: str = ""
    title: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found in a record.

    Attributes:
        text: The text.
        title: The title, or None.
        id: The id, or None.
        rest: The other fields.
    """

    text: str
    title: JSON = None
    id: JSON = None
    rest: dict[str, JSON] = field(default_factory=dict)


def find_fields(record: dict[str, JSON], names: FieldNames) -> Found:
    """Find the text of a record, its title and its id.

    The text is in the field that the user names; else in `text` or a field with another common name, also in an object
    within the record; else it is a chat's turns, or everything that a nested record says.

    Raises:
        FormatError: There is no such field; the message lists those that there are.
    """
    path = tuple(names.text.split(".")) if names.text else _find_path(record)
    if path:
        text = _text_of(list(_values_at(record, path)))
    else:
        text = _chat_text(record) or (_nested_text(record) if _is_nested(record) else "")
    if not text.strip():
        raise FormatError(_without_text(record, names.text or "text"))
    around = _object_at(record, path[:-1])
    title_path = _path_of(names.title) or _first_of(around, path[:-1], _TITLE_NAMES)
    id_path = _path_of(names.id) or _first_of(around, path[:-1], _ID_NAMES)
    rest = _rest(record, path)
    for used in (title_path, id_path):
        rest = _without(rest, used)
    return Found(
        text=text,
        title=_value_at(record, title_path),
        id=_plain_id(_value_at(record, id_path)),
        rest=rest,
    )


def _rest(record: dict[str, JSON], path: tuple[str, ...]) -> dict[str, JSON]:
    """Return the fields of a record that are not in its text."""
    if path:
        return _without(record, path)
    turns = _chat_name(record)
    if turns:
        return _without(record, (turns,))
    rest: dict[str, JSON] = {}
    for name, value in record.items():
        if not isinstance(value, dict | list):
            rest[name] = value
    return rest


def find_records(value: dict[str, JSON]) -> list[JSON]:
    """Return the records of an object that holds a list of them, such as `{"articles": [...]}`; none for others."""
    if _find_path(value) or _chat_text(value):
        return []
    found: list[list[JSON]] = []
    for each in [*value.values(), *_inner_values(value)]:
        if isinstance(each, list) and each and all(isinstance(item, dict) and _find_path(item) for item in each):
            found.append(each)
    return found[0] if len(found) == 1 else []


def _inner_values(value: Mapping[str, JSON]) -> Iterator[JSON]:
    for inner in value.values():
        if isinstance(inner, dict):
            yield from inner.values()


def is_chat(items: Sequence[JSON]) -> bool:
    """Return whether all items of a list are turns of a chat."""
    return bool(items) and all(isinstance(item, dict) and "role" in item and "content" in item for item in items)


def _path_of(name: str) -> tuple[str, ...]:
    return tuple(name.split(".")) if name else ()


def _find_path(record: Mapping[str, JSON], depth: int = 0) -> tuple[str, ...]:
    """Return the path of the field with a common name that has a text, also in an object within the record."""
    by_lower_name = {name.lower(): name for name in reversed(list(record))}
    for common in TEXT_NAMES:
        name = common if common in record else by_lower_name.get(common.lower(), "")
        value = record.get(name)
        is_text = isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value))
        if value and is_text:
            return (name,)
    inner = [(name, value) for name, value in record.items() if isinstance(value, dict)]
    paths = [(name, *path) for name, value in inner if depth < _MAX_DEPTH and (path := _find_path(value, depth + 1))]
    return paths[0] if len(paths) == 1 else ()


def _values_at(value: JSON, path: Sequence[str]) -> Iterator[JSON]:
    """Yield the values at a path; one that leads through a list has several."""
    if isinstance(value, list):
        for item in value:
            yield from _values_at(item, path)
    elif not path:
        yield value
    elif isinstance(value, dict):
        whole = ".".join(path)  # a name may have a dot in it
        if whole in value:
            yield from _values_at(value[whole], ())
        else:
            yield from _values_at(value.get(path[0]), path[1:])


def _value_at(value: JSON, path: Sequence[str]) -> JSON:
    return next(_values_at(value, path), None) if path else None


def _object_at(value: JSON, path: Sequence[str]) -> Mapping[str, JSON]:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _first_of(record: Mapping[str, JSON], path: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if isinstance(record.get(name), str | int | float | dict) and record.get(name) != "":
            return (*path, name)
    return ()


def _without(record: dict[str, JSON], path: Sequence[str]) -> dict[str, JSON]:
    """Return a record without the field at a path."""
    if not path:
        return record
    first = path[0]
    inner = record.get(first)
    rest = {name: value for name, value in record.items() if name not in {first, ".".join(path)}}
    if len(path) > 1 and isinstance(inner, dict):
        rest[first] = _without(inner, path[1:])
    return rest


def _plain_id(value: JSON) -> JSON:
    """Return an id without the object that MongoDB puts around it."""
    if isinstance(value, dict) and len(value) == 1:
        return next(iter(value.values()))
    return value


def _text_of(values: Sequence[JSON]) -> str:
    texts: list[str] = []
    for value in values:
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, dict):
            texts.append(_nested_text(value))
        elif value is not None:
            texts.append(_show(value))
    return join_blocks(texts)


def _chat_text(record: Mapping[str, JSON]) -> str:
    """Return the turns of a chat, each with its speaker, and with its time if that is given as text."""
    turns = record.get(_chat_name(record))
    if not isinstance(turns, list):
        return ""
    return join_blocks(_turn_text(turn) for turn in turns if isinstance(turn, dict))


def _chat_name(record: Mapping[str, JSON]) -> str:
    """Return the name of the field that has the turns of a chat, or an empty string."""
    for name in _CHAT_NAMES:
        turns = record.get(name)
        if isinstance(turns, list) and turns and all(isinstance(turn, dict) for turn in turns):
            return name
    return ""


def _turn_text(turn: Mapping[str, JSON]) -> str:
    plain = "\n".join(_words(turn))
    speaker = _first_text(turn, _SPEAKERS)
    time = _first_text(turn, _TIMES)
    before = f"{speaker} ({time})" if speaker and time else speaker or time
    return f"{before}: {plain}" if before and plain.strip() else plain


def _first_text(turn: Mapping[str, JSON], names: Sequence[str]) -> str:
    for name in names:
        value = turn.get(name)
        if isinstance(value, str):
            return value
    return ""


def _words(turn: Mapping[str, JSON]) -> Iterator[str]:
    """Yield what is said in a turn of a chat: one text, or its parts, which may be objects in which the text stands."""
    said = next((turn[name] for name in _WORDS if turn.get(name)), None)
    parts = said if isinstance(said, list) else [said]
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            yield from _words(part)


def _is_nested(record: Mapping[str, JSON]) -> bool:
    for value in record.values():
        if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value)):
            return True
    return False


def _nested_text(record: Mapping[str, JSON], level: int = 1) -> str:
    """Return what a nested record says: a line for each field, a heading for each object, and rows of lists of them."""
    lines: list[str] = []
    blocks: list[str] = []
    for name, value in record.items():
        heading = f"{'#' * min(level, 6)} {name}"
        if isinstance(value, dict) and value:
            blocks += [heading, _nested_text(value, level + 1)]
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            blocks += [heading, _list_text(value, level + 1)]
        elif value not in (None, "", [], {}):
            lines.append(f"{name}: {_show(value)}")
    return join_blocks([escape_structure("\n".join(lines)), *blocks])


def _list_text(items: Sequence[JSON], level: int) -> str:
    """Return the objects of a list as the rows of a table if they have only values, else one after another."""
    objects = [item for item in items if isinstance(item, dict)]
    names = list(dict.fromkeys(name for item in objects for name in item))
    is_table = len(objects) == len(items) and len(names) > 1 and not any(map(_is_nested, objects))
    if is_table:
        rows = [[_show(item.get(name)) for name in names] for item in objects]
        return "\n".join(table_lines([names, *rows], header=True))
    return join_blocks(_nested_text(item, level) if isinstance(item, dict) else _show(item) for item in items)


def _show(value: JSON) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(map(_show, value))
    return str(value)


def _without_text(record: Mapping[str, JSON], name: str) -> str:
    paths = list(dict.fromkeys(_paths(dict(record))))
    shown = ", ".join(paths[:_MAX_SHOWN])
    if len(paths) > _MAX_SHOWN:
        shown += f" and {len(paths) - _MAX_SHOWN:,} more"
    fault = f'the record has no "{name}"'
    if not paths:
        return f"{fault}: it is empty"
    example = next((path for path in paths if path not in {*_ID_NAMES, *_TITLE_NAMES}), paths[0])
    hint = f'name the one with the text, as in --text-field "{example}" (in Python: text_field)'
    return f"{fault}; its fields are {shown}: {hint}"


def _paths(value: JSON, before: str = "", depth: int = 0) -> Iterator[str]:
    if isinstance(value, list):
        for item in value[:_MAX_SHOWN]:
            yield from _paths(item, before, depth + 1)
    if not isinstance(value, dict) or depth > _MAX_DEPTH:
        return
    for name, inner in value.items():
        path = f"{before}.{name}" if before else name
        if isinstance(inner, dict) or (isinstance(inner, list) and any(isinstance(item, dict) for item in inner)):
            yield from _paths(inner, path, depth + 1)
        else:
            yield path
