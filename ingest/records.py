"""Records: dictionaries, JSON and JSON Lines files of them, and the `chunks.json` of the paper's authors."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from pydantic_core import to_jsonable_python

from arag.ingest.documents import Document, Problem
from arag.ingest.formats.content import (
    JSON,
    MAX_FILE_BYTES,
    FormatError,
    clean_characters,
    clean_text,
    decode,
    folded,
    has_utf16_mark,
)

# Records, or what is wrong with them; with each, how many bytes of the file end with it.
Records: TypeAlias = Iterator[tuple[Document | Problem, int]]

_MAX_DEPTH = 100  # lists and objects inside each other
_MAX_INTEGER = 10**300  # larger ones are no floats, and become text
_MAX_VALUE = 40  # characters of a value in a message
_LIST_KEYS = ("documents", "records", "data")
_BENCHMARK_KEYS = {"corpus_name": "id", "context": "text"}  # as GraphRAG-Bench's corpora have them


def read_jsonl(path: Path, file_id: str) -> Records:
    """Read a file of any size with one record per line; the ids of records without one begin with the file's."""
    number = end = 0
    with path.open("rb") as file:
        if has_utf16_mark(file.read(4)):
            raise FormatError("in UTF-16; convert it to UTF-8")
        file.seek(0)
        for line_number, line in enumerate(iter(partial(file.readline, MAX_FILE_BYTES), b""), 1):
            end += len(line)
            if line.strip():
                number += 1
                yield _read_item(line, f"{file_id}#{number}", f"{path}, line {line_number}"), end
    if not number:
        raise FormatError("empty document")


def read_json(path: Path, file_id: str) -> Records:
    """Read a list of records, one record, or the authors' `chunks.json`, in the way of `read_jsonl`."""
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        limit = f"{MAX_FILE_BYTES / 1e6:,.0f} MB"
        raise FormatError(f"more than {limit}; convert it to JSON Lines, which may have any size")
    value = _load(path.read_bytes())
    items = _list_records(value)
    if items is None:
        yield read_record(value, f"{file_id}#1", str(path)), size
    elif not items:
        raise FormatError("empty list")
    elif _are_chunks(items, path.name):
        yield from ((item, size) for item in _read_chunks(items, path, file_id))
    else:
        for number, item in enumerate(items, 1):
            yield _read_item(item, f"{file_id}#{number}", f"{path}, item {number}"), size * number // len(items)


def read_record(value: JSON, default_id: str, source: str) -> Document:
    """Make a document of a record, with an id for one that has none.

    Raises:
        FormatError: It is not a record, or has no text.
    """
    if not isinstance(value, dict):
        raise FormatError(f"the record is {_show(value)}; it must be an object")
    if value.get("text") is None and value.keys() >= _BENCHMARK_KEYS.keys():
        value = {_BENCHMARK_KEYS.get(key, key): field for key, field in value.items()}
    if value.get("text") is None:
        raise FormatError('the record has no "text"')
    text = clean_text(_string(value, "text"))
    title = "" if value.get("title") is None else folded(_string(value, "title", str, int, float))
    # The title is part of the text too, unless the text begins with it, as whole words.
    start = text.lstrip()
    begins = start.startswith(title) and not start[len(title) : len(title) + 1].isalnum()
    has_own_id = value.get("id") is not None
    return Document(
        id=_string(value, "id", str, int) if has_own_id else default_id,
        title=title,
        text=f"{title}\n\n{text}" if title and start and not begins else text,
        source=source,
        metadata={key: field for key, field in value.items() if key not in {"id", "title", "text"}},
        has_own_id=has_own_id,
    )


def to_metadata(fields: Mapping[str, Any]) -> dict[str, JSON]:
    """Return fields as JSON has them, with clean characters, and with null for numbers that are not finite.

    Dates, paths, UUIDs, decimals, members of enums and integers that are too large for a float become text, sets
    become sorted lists, numpy's arrays lists.

    Raises:
        ValueError: There is no common way to write one in JSON; the message has its name.
    """
    return {clean_characters(str(name)): _to_json(value, str(name)) for name, value in fields.items()}


def has_control_characters(text: str) -> bool:
    """Return whether there are line ends or other control characters in the text."""
    return any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in text)


def _to_json(value: Any, name: str = "", depth: int = 0) -> JSON:  # noqa: PLR0911 - a case for each kind
    if depth > _MAX_DEPTH:
        raise FormatError("nested too deeply")
    match value:
        case int() if abs(value) > _MAX_INTEGER:
            return str(value)
        case None | bool() | int():
            return value
        case str():
            return clean_characters(value)
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {clean_characters(str(key)): _to_json(value[key], f"{name}.{key}", depth + 1) for key in value}
        case list() | tuple():
            return [_to_json(item, name, depth + 1) for item in value]
        case set() | frozenset():  # in the same order in every process
            return sorted((_to_json(item, name, depth + 1) for item in value), key=json.dumps)
        case _ if hasattr(value, "tolist"):
            return _to_json(value.tolist(), name, depth + 1)
    try:
        plain: JSON = to_jsonable_python(value)
    except ValueError as error:
        kind = type(value).__name__
        raise FormatError(f'"{name}" is {kind}, which JSON cannot hold; convert it first') from error
    return _to_json(plain, name, depth + 1) if isinstance(plain, str | list | dict) else plain


def _load(data: bytes) -> JSON:
    text = decode(data).strip()
    if not text:
        raise FormatError("empty document")
    try:
        return _to_json(json.loads(text))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}" if "\n" in text else f"column {error.colno}"
        raise FormatError(f"not valid JSON: {error.msg} ({place})") from error
    except (RecursionError, ValueError) as error:
        raise FormatError(f"not usable JSON: {error}") from error


def _read_item(item: bytes | JSON, default_id: str, source: str) -> Document | Problem:
    """Read a line of a file, or an item of a list."""
    try:
        return read_record(_load(item) if isinstance(item, bytes) else item, default_id, source)
    except FormatError as error:
        return Problem(source, str(error))


def _list_records(value: JSON) -> list[JSON] | None:
    """Return the records in the top level of a JSON file, or None if it is a record itself."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        raise FormatError(f"the top level is {_show(value)}; it must be a list of records, or an object")
    if "text" in value or value.keys() >= _BENCHMARK_KEYS.keys():
        return None
    for key in _LIST_KEYS:
        if isinstance(records := value.get(key), list):
            return records
    raise FormatError(f'the object has neither a "text" nor a list of records under one of {", ".join(_LIST_KEYS)}')


def _are_chunks(items: list[JSON], file_name: str) -> bool:
    """Return whether a list is in the format of the authors' `chunks.json`, and not one of records."""
    objects = [item for item in items if isinstance(item, dict)]
    if file_name == "chunks.json" and any("id" in item and "text" in item for item in objects):
        return all(item.get("title") is None for item in objects)
    return not objects and any(isinstance(item, str) for item in items)


def _read_chunks(items: list[JSON], path: Path, file_id: str) -> Iterator[Document | Problem]:
    """Yield one document of all chunks, after what is wrong with those that it lacks."""
    chunks: dict[str, str] = {}
    for number, item in enumerate(items, 1):
        try:
            chunk_id, text = _read_chunk(item, chunks)
        except FormatError as error:
            yield Problem(f"{path}, item {number}", str(error))
        else:
            chunks[chunk_id] = text
    if chunks:
        text = "".join(chunks.values())
        yield Document(file_id, "", text, str(path), ready_chunks=tuple(chunks.items()), has_own_id=False)


def _read_chunk(item: JSON, earlier: Collection[str]) -> tuple[str, str]:
    if isinstance(item, dict):
        chunk_id, text = _string(item, "id", str, int), _string(item, "text")
    elif isinstance(item, str) and ":" in item:
        chunk_id, _, text = item.partition(":")
    else:
        raise FormatError(f'the chunk is {_show(item)}; it must be a string "id:text"')
    if not chunk_id.strip() or has_control_characters(chunk_id):
        raise FormatError(f"chunk id {chunk_id!r} is empty or has control characters in it")
    if not text.strip():
        raise FormatError("empty chunk")
    if chunk_id in earlier:
        raise FormatError(f"duplicate chunk id {chunk_id!r}")
    return chunk_id, text


def _string(record: dict[str, JSON], name: str, *types: type) -> str:
    value = record.get(name)
    if isinstance(value, types or str) and not isinstance(value, bool):
        return str(value)
    raise FormatError(f'"{name}" is {_show(value)}; it must be a string{" or a number" if types else ""}')


def _show(value: JSON) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}..."
