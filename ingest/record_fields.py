"""Finds the text, the title and the id of a record whose fields have other names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, filterfalse

from arag.ingest.chats import find_chat, find_objects, objects_among, write_chat
from arag.ingest.formats.content import JSON, FormatError, join_blocks
from arag.ingest.record_texts import has_objects, write_record, write_values

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
    within the record, and in a chat's turns; else it is everything that a nested record says.

    Raises:
        FormatError: There is no such field; the message lists those that there are.
    """
    path = _path_of(names.text) or _find_path(record)
    is_inside = len(path) > 1 and not names.text
    if is_inside and says_more(record):  # a profile may be inside, too
        path = ()
    if path:
        text = write_values(_values_at(record, path))
        rest = _without(record, path)
        chat = "" if names.text else write_chat(record)
        if chat:  # the other text is often a summary of it
            text = join_blocks([text, chat])
            rest = _without(rest, (find_chat(record),))
    else:
        text = write_record(record)
        rest = _fields_beside_text(record)
    if not text.strip():
        raise FormatError(_without_text(record, names.text or "text"))
    inside = path[:-1]
    around = _object_at(record, inside)
    common_id = _first_of(around, inside, _ID_NAMES)
    if not path:
        inside = _way_to_fields(record)
    common_title = _first_of(_object_at(record, inside), inside, _TITLE_NAMES)
    title_path = _path_of(names.title) or common_title
    id_path = _path_of(names.id) or common_id
    rest = _without(rest, title_path)
    rest = _without(rest, id_path)
    return Found(
        text=text,
        title=_value_at(record, title_path),
        id=_plain_id(_value_at(record, id_path)),
        rest=rest,
    )


def says_more(record: dict[str, JSON]) -> bool:
    """Return whether a record says something though its text is blank, as a message of a program with attachments."""
    texts = map(record.get, TEXT_NAMES)
    has_blank_text = any(map(is_blank, texts))
    return has_blank_text and _holds_text(record)


def is_blank(value: JSON) -> bool:
    """Return whether a value is a text without a character that is seen."""
    return isinstance(value, str) and not value.strip()


def _holds_text(value: JSON) -> bool:
    """Return whether a value has a list of objects, or an object with a text."""
    if isinstance(value, list):
        return has_objects(value)
    if not isinstance(value, dict):
        return False
    return bool(_find_name(value)) or any(map(_holds_text, value.values()))


def find_records(value: dict[str, JSON]) -> list[JSON]:
    """Return the records of an object that holds a list of them, such as `{"articles": [...]}`; none for others."""
    is_record = _find_path(value) or write_chat(value)
    if is_record:
        return []
    objects = objects_among(value.values())
    candidates = [*value.values(), *chain.from_iterable(map(dict.values, objects))]
    found: list[list[JSON]] = []
    for candidate in candidates:
        records = find_objects(candidate)
        have_texts = all(map(_find_path, records))
        if records and have_texts:
            found.append([*records])
    is_clear = len(found) == 1
    return found[0] if is_clear else []


def _path_of(name: str) -> tuple[str, ...]:
    """Return the path that a user writes with dots; an empty one for no name."""
    if not name:
        return ()
    return tuple(name.split("."))


def _find_path(record: Mapping[str, JSON], depth: int = 0) -> tuple[str, ...]:
    """Return the path of the field with a common name that has a text, also in an object within the record."""
    name = _find_name(record)
    if name:
        return (name,)
    if depth == _MAX_DEPTH:
        return ()
    paths: list[tuple[str, ...]] = []
    for outer, value in record.items():
        if not isinstance(value, dict):
            continue
        path = _find_path(value, depth + 1)
        if path:
            paths.append((outer, *path))
    is_clear = len(paths) == 1
    return paths[0] if is_clear else ()


def _find_name(record: Mapping[str, JSON]) -> str:
    """Return the name of the field with a common name that has a text, or an empty string; case does not count."""
    by_lower_name: dict[str, str] = {}
    for name in record:
        by_lower_name.setdefault(name.lower(), name)
    for common in TEXT_NAMES:
        lower_name = common.lower()
        name = by_lower_name.get(lower_name, "")
        if common in record:
            name = common
        if _is_text(record.get(name)):
            return name
    return ""


def _is_text(value: JSON) -> bool:
    """Return whether a value is a text, or a list of texts."""
    if isinstance(value, list):
        types = set(map(type, value))
        return types == {str}
    return isinstance(value, str) and not is_blank(value)


def _values_at(value: JSON, path: Sequence[str]) -> Iterator[JSON]:
    """Yield the values at a path; one that leads through a list has several."""
    if isinstance(value, list):
        for item in value:
            yield from _values_at(item, path)
        return
    if not path:
        yield value
        return
    if not isinstance(value, dict):
        return
    whole = ".".join(path)  # a name may have a dot in it
    if whole in value:
        yield from _values_at(value[whole], ())
        return
    inner = value.get(path[0])
    further_path = path[1:]
    yield from _values_at(inner, further_path)


def _value_at(value: JSON, path: Sequence[str]) -> JSON:
    """Return the first value at a path; None for an empty path, or if there is none."""
    if not path:
        return None
    values = _values_at(value, path)
    return next(values, None)


def _object_at(value: JSON, path: Sequence[str]) -> Mapping[str, JSON]:
    """Return the object at a path, or an empty one if there is none."""
    for name in path:
        if not isinstance(value, dict):
            return {}
        value = value.get(name)
    if not isinstance(value, dict):
        return {}
    return value


def _way_to_fields(record: Mapping[str, JSON]) -> tuple[str, ...]:
    """Return the path through objects that are all that the object around them holds, as in `{"mill": {...}}`."""
    way: tuple[str, ...] = ()
    while len(record) == 1:
        ((name, inner),) = record.items()
        if not isinstance(inner, dict):
            break
        way = (*way, name)
        record = inner
    return way


def _first_of(record: Mapping[str, JSON], path: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the path of the first of some fields that has a value."""
    for name in names:
        value = record.get(name)
        can_be_shown = isinstance(value, str | int | float | dict)
        if can_be_shown and value != "":
            return (*path, name)
    return ()


def _without(record: dict[str, JSON], path: Sequence[str]) -> dict[str, JSON]:
    """Return a record without the field at a path."""
    if not path:
        return record
    first = path[0]
    further_path = path[1:]
    whole = ".".join(path)
    rest = dict(record)
    inner = rest.pop(first, None)
    rest.pop(whole, None)
    if further_path and isinstance(inner, dict):
        rest[first] = _without(inner, further_path)
    return rest


def _fields_beside_text(record: dict[str, JSON]) -> dict[str, JSON]:
    """Return the fields of a record that are not in its text, which has no field of its own."""
    chat = find_chat(record)
    if chat:
        return _without(record, (chat,))
    plain: dict[str, JSON] = {}
    for name, value in record.items():
        if not isinstance(value, dict | list):
            plain[name] = value
    return plain


def _plain_id(value: JSON) -> JSON:
    """Return an id without the object that MongoDB puts around it."""
    if not isinstance(value, dict) or len(value) > 1:
        return value
    (inner,) = value.values()
    return inner


def _without_text(record: Mapping[str, JSON], name: str) -> str:
    """Return that a record has no text, with the names of its fields and a hint."""
    fault = f'the record has no "{name}"'
    all_paths = _paths(dict(record))
    paths = list(dict.fromkeys(all_paths))
    if not paths:
        return f"{fault}: it is empty"
    shown = ", ".join(paths[:_MAX_SHOWN])
    others = len(paths) - _MAX_SHOWN
    if others > 0:
        shown += f" and {others:,} more"
    example = _likeliest(paths)
    hint = f'name the one with the text, as in --text-field "{example}" (in Python: text_field)'
    return f"{fault}; its fields are {shown}: {hint}"


def _likeliest(paths: Sequence[str]) -> str:
    """Return the first path that is neither a title's nor an id's."""
    others = filterfalse([*_ID_NAMES, *_TITLE_NAMES].__contains__, paths)
    return next(others, paths[0])


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
