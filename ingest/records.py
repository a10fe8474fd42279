"""Records: dictionaries, JSON and JSON Lines files of them, and the `chunks.json` of the paper's authors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import to_jsonable_python

from arag.ingest.chats import is_chat
from arag.ingest.documents import Document, Problem, title_of_file
from arag.ingest.formats.content import JSON, MAX_FILE_BYTES, FormatError, clean_characters, clean_text, decode
from arag.ingest.formats.kinds import MAILBOX
from arag.ingest.record_fields import FieldNames, find_fields, find_records, is_blank, says_more
from arag.ingest.record_markup import is_markup, show_markup
from arag.text.normalise import collapse_whitespace

MAX_ID_BYTES = 1_900  # a database's own index of ids has room for little more, and every result repeats ids
_MAX_JSON_VALUES = 5_000_000  # in one file or line: they take about a gigabyte of memory
_MAX_VALUE = 40  # characters of a value in a message
_CHUNK = re.compile(r"[^\s:]+:")  # the id of a chunk, and a colon before its text
_CONTROL_CHARACTER = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # the last two separate lines and paragraphs
NO_NAMES = FieldNames()
_OUR_NAMES = {"id", "title", "text"}
_BENCHMARK_NAMES = {"corpus_name": "id", "context": "text"}  # the names in GraphRAG-Bench's corpora, and ours


class ReadItem(NamedTuple):
    """A document of a file, or a problem with one, and the bytes of the file up to its end."""

    item: Document | Problem
    end: int


def read_jsonl(path: Path, file_id: str, names: FieldNames = NO_NAMES) -> Iterator[ReadItem]:
    """Read a file of any size with one record per line; the ids of records without one begin with the file's."""
    with path.open("rb") as file:
        first = file.readline(MAX_FILE_BYTES).strip()
    if first in {b"[", b"{"}:  # a record or a list over several lines
        yield from read_json(path, file_id, names)
        return
    record_number = 0
    end = 0
    with path.open("rb") as file:
        lines = iter(lambda: file.readline(MAX_FILE_BYTES), b"")
        for line_number, line in enumerate(lines, 1):
            end += len(line)
            if not line.strip():
                continue
            record_number += 1
            item = _read_item(
                line,
                default_id=f"{file_id}#{record_number}",
                source=f"{path}, line {line_number}",
                names=names,
            )
            yield ReadItem(item, end)
    if record_number == 0:
        raise FormatError("empty document")


def read_json(path: Path, file_id: str, names: FieldNames = NO_NAMES) -> Iterator[ReadItem]:
    """Read a list of records, one record, or the authors' `chunks.json`, in the way of `read_jsonl`."""
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        limit = f"more than {MAX_FILE_BYTES // 1_000_000} MB"
        raise FormatError(f"{limit}; convert it to JSON Lines, which may have any size")
    data = path.read_bytes()
    if _has_records_on_lines(data):
        yield from read_jsonl(path, file_id, names)
        return
    value = _load(data)
    if not names.text:
        value = _find_records(value)
    if not isinstance(value, list):
        document = read_record(
            value,
            default_id=f"{file_id}#1",
            source=str(path),
            names=names,
        )
        if not document.title and not document.has_own_id:
            document = replace(document, title=title_of_file(str(path)))
        yield ReadItem(document, size)
        return
    if not value:
        raise FormatError("empty list")
    if _is_chunk(value[0], path.name):
        for chunk in _read_chunks(value, path, file_id):
            yield ReadItem(chunk, size)
        return
    for number, entry in enumerate(value, 1):
        item = _read_item(
            entry,
            default_id=f"{file_id}#{number}",
            source=f"{path}, item {number}",
            names=names,
        )
        share_read = size * number // len(value)
        yield ReadItem(item, share_read)


def _find_records(value: JSON) -> JSON:
    """Return the records in an object that holds a list of them, or a chat as one record; other values as they are."""
    if isinstance(value, dict):
        value = find_records(value) or value
    if isinstance(value, list) and is_chat(value):
        return {"messages": value}
    return value


def _has_records_on_lines(data: bytes) -> bool:
    """Return whether a file has a whole record in each of its first two lines."""
    lines = data.lstrip().split(b"\n", 2)[:2]
    if len(lines) < 2:
        return False
    try:
        first, second = map(json.loads, lines)
    except (RecursionError, ValueError):
        return False
    return isinstance(first, dict) and isinstance(second, dict)


RECORD_READERS = {".json": read_json, ".jsonl": read_jsonl, ".ndjson": read_jsonl}  # by extension
EXTENSIONS_OF_MANY = (*RECORD_READERS, MAILBOX)  # of files that hold many documents


def read_record(value: JSON, default_id: str, source: str, names: FieldNames = NO_NAMES) -> Document:
    """Make a document from a record.

    Args:
        value: The record.
        default_id: The document's id if the record has none.
        source: The record's origin, for messages.
        names: The names of its fields, if the user gives them.

    Returns:
        The document.

    Raises:
        FormatError: The value is not a record, or has no text.
    """
    if not isinstance(value, dict):
        raise FormatError(f"the record is {_show(value)}; it must be an object")
    record = _with_our_names(value, names)
    text = show_markup(clean_text(_string(record, "text")))
    title = ""
    if record.get("title") is not None:
        title = collapse_whitespace(_string(record, "title", str, int, float))
        if any(map(is_markup, value.values())):  # its title has entities, too
            title = unescape(title)
    document_id = default_id
    has_own_id = record.get("id") is not None
    if has_own_id:
        document_id = _string(record, "id", str, int)
    metadata: dict[str, JSON] = {}
    for name, field in record.items():
        if name not in _OUR_NAMES:
            metadata[name] = field
    return Document(
        id=document_id,
        title=title,
        text=_with_title(text, title),
        source=source,
        metadata=metadata,
        has_own_id=has_own_id,
    )


def _with_our_names(record: dict[str, JSON], names: FieldNames) -> dict[str, JSON]:
    """Return a record whose text, title and id are in the fields of these names."""
    has_text = record.get("text") is not None
    has_benchmark_names = record.keys() >= _BENCHMARK_NAMES.keys()
    if has_benchmark_names and not has_text:
        record = {_BENCHMARK_NAMES.get(name, name): field for name, field in record.items()}
        has_text = record["text"] is not None
    is_empty_message = is_blank(record.get("text")) and says_more(record)
    if has_text and names == NO_NAMES and not is_empty_message:
        return record
    found = find_fields(record, names)
    return {
        **found.rest,
        "id": found.id,
        "title": found.title,
        "text": found.text,
    }


def _with_title(text: str, title: str) -> str:
    """Put the title above a text, unless the text is blank or begins with the title as whole words."""
    start = text.lstrip()
    if not title or not start:
        return text
    begins_with_title = start.startswith(title)
    following = start[len(title) : len(title) + 1]
    if begins_with_title and not following.isalnum():
        return text
    return f"{title}\n\n{text}"


def to_json(value: Any) -> Any:
    """Convert a value to JSON, with clean characters, and with null for numbers that are not finite.

    Dates, paths, UUIDs, decimals and members of enums become text. Sets and numpy's arrays become lists.

    Raises:
        FormatError: JSON has no common form for it.
    """
    try:
        converted = to_jsonable_python(
            value,
            inf_nan_mode="null",
            fallback=lambda other: other.tolist(),
        )
        return _clean(converted)
    except (AttributeError, ValueError) as error:
        raise FormatError(f"JSON cannot hold it: {error}") from error


def find_fault_of_id(text: str) -> str:
    """Return why a text cannot be an id, or an empty string if it can."""
    if not text.strip():
        return "is empty"
    if len(text.encode()) > MAX_ID_BYTES:
        return f"has more than {MAX_ID_BYTES:,} bytes"
    if _CONTROL_CHARACTER.search(text):
        return "has a line end or another control character in it"
    return ""


def _clean(value: JSON) -> JSON:
    if isinstance(value, str):
        return clean_characters(value)
    if isinstance(value, list):
        return list(map(_clean, value))
    if not isinstance(value, dict):
        return value
    cleaned: dict[str, JSON] = {}
    for name, field in value.items():
        clean_name = clean_characters(name)
        cleaned[clean_name] = _clean(field)
    return cleaned


def _load(data: bytes) -> JSON:
    text = decode(data).strip()
    # A text has at most one value for each of these characters. Counting them takes no memory.
    values = text.count(",") + text.count("[") + text.count("{")
    if values > _MAX_JSON_VALUES:
        raise FormatError(f"more than {_MAX_JSON_VALUES:,} values at once; JSON Lines are read one by one")
    try:
        value: JSON = to_json(json.loads(text))
    except (RecursionError, ValueError) as error:
        raise FormatError(f"not valid JSON: {error}") from error
    return value


def _read_item(item: bytes | JSON, default_id: str, source: str, names: FieldNames) -> Document | Problem:
    """Read a line of a file, or an item of a list."""
    try:
        value = _load(item) if isinstance(item, bytes) else item
        if isinstance(value, str):  # a list of texts
            value = {"text": value}
        return read_record(value, default_id, source, names)
    except FormatError as error:
        return Problem(source, str(error))


def _is_chunk(item: JSON, file_name: str) -> bool:
    """Return whether the first item of a list shows that it is in the format of the authors' `chunks.json`."""
    if isinstance(item, dict):
        return file_name == "chunks.json" and "id" in item and item.get("title") is None
    return isinstance(item, str) and _CHUNK.match(item) is not None


def _read_chunks(items: list[JSON], path: Path, file_id: str) -> Iterator[Document | Problem]:
    """Yield one document of all chunks, after the problems with those that it lacks."""
    chunks: dict[str, str] = {}
    for number, item in enumerate(items, 1):
        place = f"{path}, item {number}"
        chunk_id, text = _read_chunk(item)
        has_text = text.strip() != ""
        if not has_text or find_fault_of_id(chunk_id):
            expected = 'it must be a string "id:text", or an object with "id" and "text"'
            yield Problem(place, f"the chunk is {_show(item)}; {expected}")
        elif chunk_id in chunks:
            yield Problem(place, f"duplicate chunk id {chunk_id!r}")
        else:
            chunks[chunk_id] = text
    if chunks:
        yield Document(
            id=file_id,
            title="",
            text="".join(chunks.values()),
            source=str(path),
            ready_chunks=tuple(chunks.items()),
            has_own_id=False,
        )


def _read_chunk(item: JSON) -> tuple[str, str]:
    """Return a chunk's id and text; each is empty if it is missing or of another type."""
    if isinstance(item, str):
        chunk_id, _, text = item.partition(":")
        return chunk_id, text
    if not isinstance(item, dict):
        return "", ""
    given_id = item.get("id")
    given_text = item.get("text")
    chunk_id = str(given_id) if isinstance(given_id, str | int) else ""
    text = given_text if isinstance(given_text, str) else ""
    return chunk_id, text


def _string(record: dict[str, JSON], name: str, *types: type) -> str:
    """Return a field as text; it must be a string, or of one of the types."""
    value = record.get(name)
    if isinstance(value, types or str) and not isinstance(value, bool):
        return str(value)
    expected = "a string or a number" if types else "a string"
    raise FormatError(f'"{name}" is {_show(value)}; it must be {expected}')


def _show(value: JSON) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= _MAX_VALUE:
        return text
    return f"{text[:_MAX_VALUE]}..."
