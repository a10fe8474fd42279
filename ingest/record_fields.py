"""Finds the text, the title and the id of a record whose fields have other names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from arag.ingest.formats.content import JSON, FormatError
from arag.ingest.record_texts import find_chat, find_objects, has_objects, write_chat, write_record, write_values

TEXT_NAMES = (
    "text content contents body page_content pageContent full_text fulltext document article passage markdown "
    "transcript message description abstract summary"
).split()
_TITLE_NAMES = "title headline name subject".split()
_ID_NAMES = "id _id doc_id docid".split()
_MAX_DEPTH = 20  # objects within each other: deeper ones are not searched
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
    path = _path_of(names.text) or _find_path(record)
    if path:
        text = write_values(_values_at(record, path))
        rest = _without(record, path)
    else:
        text = write_record(record)
        rest = _fields_beside_text(record)
    if not text.strip():
        raise FormatError(_without_text(record, names.text or "text"))
    inside = path[:-1]
    around = _object_at(record, inside)
    title_path = _path_of(names.title) or _first_of(around, inside, _TITLE_NAMES)
    id_path = _path_of(names.id) or _first_of(around, inside, _ID_NAMES)
    rest = _without(rest, title_path)
    rest = _without(rest, id_path)
    return Found(
        text=text,
        title=_value_at(record, title_path),
        id=_plain_id(_value_at(record, id_path)),
        rest=rest,
    )


def find_records(value: dict[str, JSON]) -> list[JSON]:
    """Return the records of an object that holds a list of them, such as `{"articles": [...]}`; none for others."""
    if _find_path(value) or write_chat(value):
        return []
    candidates = list(value.values())
    for inner in value.values():
        if isinstance(inner, dict):
            candidates += inner.values()
    found: list[list[JSON]] = []
    for candidate in candidates:
        records = find_objects(candidate)
        if records and all(map(_find_path, records)):
            found.append([*records])
    return found[0] if len(found) == 1 else []


def _path_of(name: str) -> tuple[str, ...]:
    return tuple(name.split(".")) if name else ()


def _find_path(record: Mapping[str, JSON], depth: int = 0) -> tuple[str, ...]:
    """Return the path of the field with a common name that has a text, also in an object within the record."""
    name = _find_name(record)
    if name:
        return (name,)
    if depth == _MAX_DEPTH:
        return ()
    paths: list[tuple[str, ...]] = []
    for outer, value in record.items():
        path = _find_path(value, depth + 1) if isinstance(value, dict) else ()
        if path:
            paths.append((outer, *path))
    return paths[0] if len(paths) == 1 else ()


def _find_name(record: Mapping[str, JSON]) -> str:
    """Return the name of the field with a common name that has a text, or an empty string; case does not count."""
    by_lower_name = {name.lower(): name for name in reversed(list(record))}
    for common in TEXT_NAMES:
        name = common
        if common not in record:
            name = by_lower_name.get(common.lower(), "")
        if _is_text(record.get(name)):
            return name
    return ""


def _is_text(value: JSON) -> bool:
    """Return whether a value is a text, or a list of texts."""
    if isinstance(value, list):
        return {type(item) for item in value} == {str}
    return isinstance(value, str) and value != ""


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
    if not path:
        return None
    return next(_values_at(value, path), None)


def _object_at(value: JSON, path: Sequence[str]) -> Mapping[str, JSON]:
    for name in path:
        if not isinstance(value, dict):
            return {}
        value = value.get(name)
    return value if isinstance(value, dict) else {}


def _first_of(record: Mapping[str, JSON], path: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the path of the first of some fields that has a value."""
    for name in names:
        value = record.get(name)
        if isinstance(value, str | int | float | dict) and value != "":
            return (*path, name)
    return ()


def _without(record: dict[str, JSON], path: Sequence[str]) -> dict[str, JSON]:
    """Return a record without the field at a path."""
    if not path:
        return record
    first = path[0]
    rest = dict(record)
    inner = rest.pop(first, None)
    rest.pop(".".join(path), None)
    if len(path) > 1 and isinstance(inner, dict):
        rest[first] = _without(inner, path[1:])
    return rest


def _fields_beside_text(record: dict[str, JSON]) -> dict[str, JSON]:
    """Return the fields of a record that are not in its text, which has no field of its own."""
    chat = find_chat(record)
    if chat:
        return _without(record, (chat,))
    return {name: value for name, value in record.items() if not isinstance(value, dict | list)}


def _plain_id(value: JSON) -> JSON:
    """Return an id without the object that MongoDB puts around it."""
    if isinstance(value, dict) and len(value) == 1:
        return next(iter(value.values()))
    return value


def _without_text(record: Mapping[str, JSON], name: str) -> str:
    """Return that a record has no text, with the names of its fields and a hint."""
    fault = f'the record has no "{name}"'
    paths = list(dict.fromkeys(_paths(dict(record))))
    if not paths:
        return f"{fault}: it is empty"
    shown = ", ".join(paths[:_MAX_SHOWN])
    if len(paths) > _MAX_SHOWN:
        shown += f" and {len(paths) - _MAX_SHOWN:,} more"
    example = _likeliest(paths)
    hint = f'name the one with the text, as in --text-field "{example}" (in Python: text_field)'
    return f"{fault}; its fields are {shown}: {hint}"


def _likeliest(paths: Sequence[str]) -> str:
    """Return the first path that is neither a title's nor an id's."""
    for path in paths:
        if path not in _ID_NAMES and path not in _TITLE_NAMES:
            return path
    return paths[0]


def _paths(value: JSON, before: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the paths of all fields that have plain values, also of objects in lists."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value[:_MAX_SHOWN]:
            yield from _paths(item, before, depth + 1)
    if not isinstance(value, dict):
        return
    for name, inner in value.items():
        path = f"{before}.{name}" if before else name
        if has_objects(inner):
            yield from _paths(inner, path, depth + 1)
        else:
            yield path
