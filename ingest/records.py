"""Records: dictionaries, JSON and JSON Lines files of them, and the `chunks.json` of the paper's authors."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
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
)
from arag.text.normalise import collapse_whitespace

# Records, or what is wrong with them; with each, how many bytes of the file end with it.
Records: TypeAlias = Iterator[tuple[Document | Problem, int]]

MAX_ID_BYTES = 1_900  # a database's own index of ids has room for little more, and every result repeats ids
_MAX_JSON_VALUES = 5_000_000  # that are read at once: they take about a gigabyte
_MAX_VALUE = 40  # characters of a value in a message
_BENCHMARK_KEYS = {"corpus_name": "id", "context": "text"}  # as GraphRAG-Bench's corpora have them


def read_jsonl(path: Path, file_id: str) -> Records:
    """Read a file of any size with one record per line; the ids of records without one begin with the file's."""
    number = end = 0
    with path.open("rb") as file:
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
        limit = f"more than {MAX_FILE_BYTES // 1_000_000} MB"
        raise FormatError(f"{limit}; convert it to JSON Lines, which may have any size")
    items = _load(path.read_bytes())
    if not isinstance(items, list):
        yield read_record(items, f"{file_id}#1", str(path)), size
    elif not items:
        raise FormatError("empty list")
    elif _is_chunk(items[0], path.name):
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
    title = "" if value.get("title") is None else collapse_whitespace(_string(value, "title", str, int, float))
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


def to_json(value: Any) -> Any:
    """Return a value as JSON has it, with clean characters, and with null for numbers that are not finite.

    Dates, paths, UUIDs, decimals and members of enums become text, sets and numpy's arrays lists.

    Raises:
        FormatError: There is no common way to write it in JSON.
    """
    try:
        return _clean(to_jsonable_python(value, inf_nan_mode="null", fallback=lambda other: other.tolist()))
    except (AttributeError, ValueError) as error:
        raise FormatError(f"JSON cannot hold it: {error}") from error


def is_id(text: str) -> bool:
    """Return whether a text may be an id: short, not blank, and without line ends or other control characters."""
    has_controls = any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in text)
    return bool(text.strip()) and len(text.encode()) <= MAX_ID_BYTES and not has_controls


def _clean(value: JSON) -> JSON:
    match value:
        case str():
            return clean_characters(value)
        case dict():
            return {clean_characters(key): _clean(field) for key, field in value.items()}
        case list():
            return [_clean(item) for item in value]
    return value


def _load(data: bytes) -> JSON:
    text = decode(data).strip()
    # No text has more values than these characters, and those in strings are few: counting takes no memory.
    if sum(map(text.count, ",[{")) > _MAX_JSON_VALUES:
        raise FormatError(f"more than {_MAX_JSON_VALUES:,} values at once; JSON Lines are read one by one")
    try:
        value: JSON = to_json(json.loads(text))
    except (RecursionError, ValueError) as error:
        raise FormatError(f"not valid JSON: {error}") from error
    return value


def _read_item(item: bytes | JSON, default_id: str, source: str) -> Document | Problem:
    """Read a line of a file, or an item of a list."""
    try:
        return read_record(_load(item) if isinstance(item, bytes) else item, default_id, source)
    except FormatError as error:
        return Problem(source, str(error))


def _is_chunk(item: JSON, file_name: str) -> bool:
    """Return whether the first item of a list shows that it is in the format of the authors' `chunks.json`."""
    if isinstance(item, dict):
        return file_name == "chunks.json" and "id" in item and item.get("title") is None
    return isinstance(item, str)


def _read_chunks(items: list[JSON], path: Path, file_id: str) -> Iterator[Document | Problem]:
    """Yield one document of all chunks, after what is wrong with those that it lacks."""
    chunks: dict[str, str] = {}
    for number, item in enumerate(items, 1):
        if isinstance(item, dict):
            chunk_id, text = item.get("id"), item.get("text")
            chunk_id = str(chunk_id) if isinstance(chunk_id, int) else chunk_id
        else:
            chunk_id, _, text = item.partition(":") if isinstance(item, str) else ("", "", "")
        if not isinstance(chunk_id, str) or not is_id(chunk_id) or not isinstance(text, str) or not text.strip():
            reason = f'the chunk is {_show(item)}; it must be a string "id:text", or an object with "id" and "text"'
        elif chunk_id in chunks:
            reason = f"duplicate chunk id {chunk_id!r}"
        else:
            chunks[chunk_id] = text
            continue
        yield Problem(f"{path}, item {number}", reason)
    if chunks:
        text = "".join(chunks.values())
        yield Document(file_id, "", text, str(path), ready_chunks=tuple(chunks.items()), has_own_id=False)


def _string(record: dict[str, JSON], name: str, *types: type) -> str:
    value = record.get(name)
    if isinstance(value, types or str) and not isinstance(value, bool):
        return str(value)
    raise FormatError(f'"{name}" is {_show(value)}; it must be a string{" or a number" if types else ""}')


def _show(value: JSON) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}..."
