"""Reads record files: JSON and JSON Lines, and the `chunks.json` of the paper's authors."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from io import TextIOWrapper
from pathlib import Path

from arag.ingest.documents import JSON, Document, Position, Problem
from arag.ingest.formats.content import (
    FormatError,
    clean_characters,
    clean_json,
    clean_text,
    decode,
    folded,
    has_control_characters,
    has_utf16_mark,
    problem_at,
)

_TYPE_NAMES = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    type(None): "null",
}
_CHUNKS_FILE = "chunks.json"
_RECORD_LIST_KEYS = ("documents", "records", "data")
_BENCHMARK_KEYS = {"corpus_name": "id", "context": "text"}  # as GraphRAG-Bench's corpora have them


def read_jsonl(path: Path, file_id: str, position: Position) -> Iterator[Document | Problem]:
    """Read a file with one JSON record per line.

    Args:
        path: The file.
        file_id: What the ids of records without one begin with.
        position: Advanced with every line.

    Yields:
        The records, and what is wrong with those that cannot be read.

    Raises:
        FormatError: The file is in another encoding, or holds nothing.
    """
    record_number = 0
    for line_number, line in enumerate(_lines(path), 1):
        position.bytes += len(line)
        if not line.strip():
            continue
        record_number += 1
        source = f"{path}, line {line_number}"
        try:
            value = _load_json(decode(line.rstrip(b"\r\n"), "utf-8"), one_line=True)
            yield read_record(value, f"{file_id}#{record_number}", source)
        except FormatError as error:
            yield problem_at(source, error)
    if not record_number:
        raise FormatError("empty document")


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file in UTF-8, so that invalid bytes spoil only their own line."""
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(0)
        if not has_utf16_mark(start):
            yield from file
            return
        try:
            for line in TextIOWrapper(file, encoding="utf-16"):
                yield line.encode()
        except UnicodeDecodeError as error:
            raise FormatError("not valid UTF-16; convert it to UTF-8") from error


def read_json(path: Path, file_id: str, position: Position) -> Iterator[Document | Problem]:
    """Read a JSON file: a list of records, one record, or the authors' `chunks.json`.

    Args:
        path: The file.
        file_id: The file's own id, and what the ids of records without one begin with.
        position: Advanced with every record.

    Yields:
        The records, or one document made of chunks, and what is wrong with those that cannot be read.

    Raises:
        FormatError: The file is in another encoding, or holds no records.
    """
    data = path.read_bytes()
    text = decode(data)
    if not text.strip():
        raise FormatError("empty document")
    value = _load_json(text, one_line=False)
    items = _record_list(value)
    if items is None:
        position.bytes += len(data)
        yield read_record(value, f"{file_id}#1", str(path))
    elif not items:
        raise FormatError("empty list")
    elif _are_chunks(items, path.name):
        position.bytes += len(data)
        yield from _read_chunks(items, path, file_id)
    else:
        for number, item in enumerate(items, 1):
            source = f"{path}, item {number}"
            position.bytes += len(data) // len(items)
            try:
                yield read_record(item, f"{file_id}#{number}", source)
            except FormatError as error:
                yield problem_at(source, error)


def _load_json(text: str, *, one_line: bool) -> JSON:
    try:
        return clean_json(json.loads(text))
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if one_line else f"line {error.lineno}, column {error.colno}"
        raise FormatError(f"not valid JSON: {error.msg} ({place})") from error
    except RecursionError as error:
        raise FormatError("JSON that is nested too deeply") from error
    except ValueError as error:
        raise FormatError(f"not usable JSON: {error}") from error


def _record_list(value: JSON) -> list[JSON] | None:
    """Return the records in the top level of a JSON file, or None if it is a record itself."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        raise FormatError(f"the top level is {_json_type(value)}; it must be a list of records, or an object")
    if "text" in value or value.keys() >= _BENCHMARK_KEYS.keys():
        return None
    for key in _RECORD_LIST_KEYS:
        records = value.get(key)
        if isinstance(records, list):
            return records
    keys = ", ".join(f'"{key}"' for key in _RECORD_LIST_KEYS)
    raise FormatError(f'the object has neither a "text" nor a list of records under one of {keys}')


def read_record(value: JSON, default_id: str, source: str) -> Document:
    """Read a record.

    Args:
        value: The record.
        default_id: The id of a record without one.
        source: The file and the line or item, for messages.

    Raises:
        FormatError: It is not a record, or has no text.
    """
    if not isinstance(value, dict):
        raise FormatError(f"the record is {_json_type(value)}; it must be an object")
    if value.get("text") is None and value.keys() >= _BENCHMARK_KEYS.keys():
        value = {_BENCHMARK_KEYS.get(key, key): field for key, field in value.items()}
    if value.get("text") is None:
        raise FormatError('the record has no "text"')
    text = clean_text(_string_of(value["text"], "text", str))
    if not text.strip():
        raise FormatError("empty document")
    record_id, title = value.get("id"), value.get("title")
    title = "" if title is None else folded(_string_of(title, "title", str, int, float))
    # The title is part of the text too, unless the text begins with it, as whole words.
    start = text.lstrip()
    begins = start.startswith(title) and not start[len(title) : len(title) + 1].isalnum()
    return Document(
        id=default_id if record_id is None else _string_of(record_id, "id", str, int),
        title=title,
        text=f"{title}\n\n{text}" if title and not begins else text,
        source=clean_characters(source),
        metadata={key: field for key, field in value.items() if key not in {"id", "title", "text"}},
        named_by_path=record_id is None,
    )


def _are_chunks(items: list[JSON], file_name: str) -> bool:
    """Return whether a list is in the format of the authors' `chunks.json`, and not one of records."""
    objects = [item for item in items if isinstance(item, dict)]
    if file_name == _CHUNKS_FILE and any("id" in item and "text" in item for item in objects):
        return all(item.get("title") is None for item in objects)
    return not objects and any(isinstance(item, str) for item in items)


def _read_chunks(items: list[JSON], path: Path, file_id: str) -> Iterator[Document | Problem]:
    chunks: dict[str, str] = {}
    for number, item in enumerate(items, 1):
        try:
            chunk_id, text = _chunk(item, chunks)
        except FormatError as error:
            yield problem_at(f"{path}, item {number}", error)
        else:
            chunks[chunk_id] = text
    if chunks:
        yield Document(
            id=file_id,
            title="",
            text="".join(chunks.values()),
            source=clean_characters(str(path)),
            ready_chunks=tuple(chunks.items()),
            named_by_path=True,
        )


def _chunk(item: JSON, taken: Collection[str]) -> tuple[str, str]:
    if isinstance(item, dict):
        chunk_id = _string_of(item.get("id"), "id", str, int)
        text = _string_of(item.get("text"), "text", str)
    elif isinstance(item, str):
        chunk_id, colon, text = item.partition(":")
        if not colon:
            raise FormatError('the chunk has no colon; it must be "id:text"')
    else:
        raise FormatError(f'the chunk is {_json_type(item)}; it must be a string "id:text"')
    if not chunk_id.strip():
        raise FormatError("empty chunk id")
    if has_control_characters(chunk_id):
        raise FormatError(f"chunk id {chunk_id!r} has control characters in it")
    if not text.strip():
        raise FormatError("empty chunk")
    if chunk_id in taken:
        raise FormatError(f"duplicate chunk id {chunk_id!r}")
    return chunk_id, text


def _string_of(value: JSON, name: str, *types: type) -> str:
    if isinstance(value, types) and not isinstance(value, bool):
        return str(value)
    valid = " or ".join(_TYPE_NAMES[valid] for valid in types)
    raise FormatError(f'"{name}" is {_json_type(value)}; it must be {valid}')


def _json_type(value: JSON) -> str:
    return _TYPE_NAMES[type(value)]
