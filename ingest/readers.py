"""Reading of files and folders into documents, one at a time."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path, PurePath

from arag.ingest.documents import JSON, Document, Problem
from arag.ingest.formats import (
    FormatError,
    clean_characters,
    clean_text,
    decode,
    decode_file,
    has_utf16_mark,
    read_html,
    read_markdown,
    read_pdf,
    read_text,
)
from arag.retrieval.chunk_store import FILE_NAME as DATABASE_FILE
from arag.retrieval.errors import InputError
from arag.retrieval.manifest import FILE_NAME as MANIFEST_FILE

_WHOLE_FILE_READERS = {
    ".txt": read_text,
    ".md": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".pdf": read_pdf,
}
READABLE_SUFFIXES: tuple[str, ...] = (*_WHOLE_FILE_READERS, ".json", ".jsonl")

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
_DEEPEST_JSON = 100
_RECORD_LIST_KEYS = ("documents", "records", "data")
_BENCHMARK_KEYS = {"corpus_name": "id", "context": "text"}  # as GraphRAG-Bench's corpora have them


def read_documents(paths: Sequence[str | Path], *, index: str | Path | None = None) -> Iterator[Document | Problem]:
    """Read the documents in files and folders, one at a time.

    Folders are walked in sorted order, without what is hidden (a name that starts with "."), without links to
    folders, without indexes, and without files of other endings than `READABLE_SUFFIXES`. A file that is given twice,
    as itself and in its folder, is read once.

    Args:
        paths: The files and folders.
        index: The folder that the documents are for, which is not walked, whatever it holds by now.

    Returns:
        An iterator over the documents and, in their place, what was wrong with those that cannot be read.

    Raises:
        InputError: A path does not exist or is not readable by its ending, or a folder is an index or has nothing to
            read. Raised by the call itself, before anything is read.
    """
    # A string is a sequence of strings too, of which each character would be taken for a path.
    given = [paths] if isinstance(paths, str) else list(paths)
    if not given or "" in given:
        raise InputError("an empty path was given" if given else "no file or folder was given")
    checked = [Path(path) for path in given]
    target = _real(index)
    for path in checked:
        _check_path(path, target)
    return _read_paths(checked, target)


def _check_path(path: Path, index: str) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    valid = f"valid endings are {' '.join(READABLE_SUFFIXES)}"
    if stat.S_ISDIR(mode):
        if _is_index(path):
            raise InputError(f"{path} is an index: give the documents that it was made from")
        found_other = False
        for entry in _walk(path, index):
            if entry is not None:
                return
            found_other = True
        found = "only files of other endings, or links to folders," if found_other else "no file"
        raise InputError(f"{path} has {found} in it; {valid}")
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} is neither a file nor a folder")
    if not _is_readable(path):
        raise InputError(f"{path} has an unknown ending, {path.suffix!r}; {valid}")


def count_skipped(paths: Sequence[str | Path], *, index: str | Path | None = None) -> int:
    """Count what is passed over in folders: files because of their endings, and links to folders."""
    target = _real(index)
    return sum(entry is None for path in map(Path, paths) if path.is_dir() for entry in _walk(path, target))


def _real(path: str | Path | None) -> str:
    try:
        return "" if path is None else os.path.realpath(path)
    except ValueError:  # a name that no folder can have: said by whoever makes the index
        return ""


def _is_readable(path: Path) -> bool:
    return path.suffix.lower() in READABLE_SUFFIXES


def _is_index(folder: Path) -> bool:
    """Say whether a folder is an index, whose manifest would be taken for a document."""
    try:
        return all((folder / name).is_file() for name in (MANIFEST_FILE, DATABASE_FILE))
    except OSError:  # which is told where the folder is walked
        return False


def _walk(folder: Path, index: str) -> Iterator[Path | Problem | None]:
    """Yield the readable files in a folder, in sorted order.

    Args:
        folder: The folder.
        index: The real path of a folder that is not walked, besides those that are an index.

    Yields:
        The files; a problem for what cannot be looked into; None for what is passed over.
    """
    try:
        with os.scandir(folder) as entries:
            visible = sorted((e for e in entries if not e.name.startswith(".")), key=lambda e: e.name)
    except OSError as error:
        yield _problem(folder, error)
        return
    for entry in visible:
        path = folder / entry.name
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            is_link_to_folder = not is_folder and path.is_dir()
            # A broken link counts as a file, so that it is reported and not passed over.
            is_file = path.is_file() or (entry.is_symlink() and not path.exists())
        except OSError as error:
            yield _problem(path, error)
            continue
        if is_folder:
            if not _is_index(path) and os.path.realpath(path) != index:
                yield from _walk(path, index)
        elif is_link_to_folder:
            yield None
        elif is_file:
            yield path if _is_readable(path) else None


def _read_paths(paths: list[Path], index: str) -> Iterator[Document | Problem]:
    sources: dict[str, str] = {}
    places: set[str] = set()
    for given in paths:
        for entry in _walk(given, index) if given.is_dir() else [given]:
            if isinstance(entry, Problem):
                yield entry
            elif entry is not None and (place := _place(entry)) not in places:
                places.add(place)
                for item in _read_given(entry, given):
                    yield _admit(item, sources) if isinstance(item, Document) else item


def _place(file: Path) -> str:
    """Return where a file really is, however its path is written; a link to a file is a file of its own."""
    return str(PurePath(os.path.realpath(file.parent), file.name))


def _read_given(file: Path, given: Path) -> Iterator[Document | Problem]:
    """Read a file that was given itself, or in a folder."""
    if file == given:
        yield from _read_file(file, file.name)
    elif file.is_symlink() and not PurePath(os.path.realpath(file)).is_relative_to(os.path.realpath(given)):
        yield _problem(file, "a link that leads outside the folder; not followed")
    else:
        yield from _read_file(file, file.relative_to(given).as_posix())


def _admit(document: Document, sources: dict[str, str]) -> Document | Problem:
    """Return the document if its id is usable and new, and take note of the id."""
    document_id = clean_characters(document.id).strip()
    if not document_id:
        return Problem(document.source, "empty id")
    if _has_control_characters(document_id):
        return Problem(document.source, f"id {document_id!r} has control characters in it")
    if document_id in sources:
        reason = f"duplicate id {document_id!r}, already used by {sources[document_id]}"
        return Problem(document.source, reason)
    if not document.text.strip():
        return Problem(document.source, "empty document")
    sources[document_id] = document.source
    return dataclasses.replace(document, id=document_id)


def _has_control_characters(text: str) -> bool:
    return any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in text)


def _problem(source: PurePath | str, reason: Exception | str) -> Problem:
    if isinstance(reason, OSError):
        reason = reason.strerror or str(reason)
    return Problem(clean_characters(str(source)), str(reason))


def _read_file(path: Path, file_id: str) -> Iterator[Document | Problem]:
    suffix = path.suffix.lower()
    try:
        if suffix == ".jsonl":
            yield from _read_jsonl(path, file_id)
        elif suffix == ".json":
            yield from _read_json(path, file_id)
        else:
            yield from _read_whole_file(path, file_id)
    except (FormatError, OSError) as error:
        yield _problem(path, error)


def _read_whole_file(path: Path, file_id: str) -> Iterator[Document | Problem]:
    content = _WHOLE_FILE_READERS[path.suffix.lower()](path.read_bytes())
    for number, reason in content.bad_pages:
        yield _problem(f"{path}, page {number}", reason)
    yield Document(
        id=file_id,
        title=content.title or clean_characters(path.stem),
        text=content.text,
        source=clean_characters(str(path)),
        metadata=content.metadata,
        page_starts=content.page_starts,
    )


def _read_jsonl(path: Path, file_id: str) -> Iterator[Document | Problem]:
    record_number = 0
    for line_number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        record_number += 1
        source = f"{path}, line {line_number}"
        try:
            value = _load_json(decode(line.rstrip(b"\r\n")), one_line=True)
            yield _record(value, f"{file_id}#{record_number}", source)
        except FormatError as error:
            yield _problem(source, error)
    if not record_number:
        raise FormatError("empty document")


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file in UTF-8, so that bytes which are not only spoil their own line."""
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


def _read_json(path: Path, file_id: str) -> Iterator[Document | Problem]:
    text = decode_file(path.read_bytes())
    if not text.strip():
        raise FormatError("empty document")
    value = _load_json(text, one_line=False)
    items = _record_list(value)
    if items is None:
        yield _record(value, f"{file_id}#1", str(path))
    elif not items:
        raise FormatError("empty list")
    elif _are_chunks(items, path.name):
        yield from _read_chunks(items, path, file_id)
    else:
        for number, item in enumerate(items, 1):
            source = f"{path}, item {number}"
            try:
                yield _record(item, f"{file_id}#{number}", source)
            except FormatError as error:
                yield _problem(source, error)


def _load_json(text: str, *, one_line: bool) -> JSON:
    try:
        return _cleaned(json.loads(text))
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if one_line else f"line {error.lineno}, column {error.colno}"
        raise FormatError(f"not valid JSON: {error.msg} ({place})") from error
    except RecursionError as error:
        raise FormatError("JSON that is nested too deeply") from error
    except ValueError as error:
        raise FormatError(f"not usable JSON: {error}") from error


def _cleaned(value: JSON, depth: int = 0) -> JSON:
    """Return the value with clean characters, and not nested deeper than `json` can write metadata.

    NaN and Infinity are no JSON, but pandas and others write them for what is missing.
    """
    if depth > _DEEPEST_JSON:
        raise RecursionError
    if isinstance(value, str):
        return clean_characters(value)
    if isinstance(value, list):
        return [_cleaned(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean_characters(key): _cleaned(item, depth + 1) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _record_list(value: JSON) -> list[JSON] | None:
    """Return the records in the top level of a JSON file, or None if it is a record itself."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        if "text" in value or value.keys() >= _BENCHMARK_KEYS.keys():
            return None
        for key in _RECORD_LIST_KEYS:
            records = value.get(key)
            if isinstance(records, list):
                return records
        keys = ", ".join(f'"{key}"' for key in _RECORD_LIST_KEYS)
        raise FormatError(f'the object has neither a "text" nor a list of records under one of {keys}')
    raise FormatError(f"the top level is {_json_type(value)}; it must be a list of records, or an object")


def _record(value: JSON, default_id: str, source: str) -> Document:
    if not isinstance(value, dict):
        raise FormatError(f"the record is {_json_type(value)}; it must be an object")
    if value.get("text") is None and value.keys() >= _BENCHMARK_KEYS.keys():
        value = {_BENCHMARK_KEYS.get(key, key): field for key, field in value.items()}
    if value.get("text") is None:
        raise FormatError('the record has no "text"')
    text = clean_text(_string_of(value["text"], "text", (str,)))
    if not text.strip():
        raise FormatError("empty document")
    record_id, title = value.get("id"), value.get("title")
    title = "" if title is None else " ".join(_string_of(title, "title", (str, int, float)).split())
    return Document(
        id=default_id if record_id is None else _string_of(record_id, "id", (str, int)),
        title=title,
        text=f"{title}\n\n{text}" if title and not _starts_with(text, title) else text,
        source=clean_characters(source),
        metadata={key: field for key, field in value.items() if key not in {"id", "title", "text"}},
    )


def _starts_with(text: str, title: str) -> bool:
    """Say whether the text starts with the title, as whole words."""
    text = text.lstrip()
    return text.startswith(title) and not text[len(title) : len(title) + 1].isalnum()


def _are_chunks(items: list[JSON], file_name: str) -> bool:
    """Say whether a list is in the format of the authors' `chunks.json`, and not one of records."""
    objects = [item for item in items if isinstance(item, dict)]
    if file_name == _CHUNKS_FILE and any("id" in item and "text" in item for item in objects):
        return all(item.get("title") is None for item in objects)
    return not objects and any(isinstance(item, str) for item in items)


def _read_chunks(items: list[JSON], path: Path, file_id: str) -> Iterator[Document | Problem]:
    chunks: dict[str, str] = {}
    for number, item in enumerate(items, 1):
        source = f"{path}, item {number}"
        try:
            chunk_id, text = _chunk(item)
        except FormatError as error:
            yield _problem(source, error)
            continue
        if chunk_id in chunks:
            yield _problem(source, f"duplicate chunk id {chunk_id!r}")
        else:
            chunks[chunk_id] = text
    if chunks:
        yield Document(
            id=file_id,
            title="",
            text="".join(chunks.values()),
            source=clean_characters(str(path)),
            ready_chunks=tuple(chunks.items()),
        )


def _chunk(item: JSON) -> tuple[str, str]:
    if isinstance(item, dict):
        chunk_id = _string_of(item.get("id"), "id", (str, int))
        text = _string_of(item.get("text"), "text", (str,))
    elif isinstance(item, str):
        chunk_id, colon, text = item.partition(":")
        if not colon:
            raise FormatError('the chunk has no colon; it must be "id:text"')
    else:
        raise FormatError(f'the chunk is {_json_type(item)}; it must be a string "id:text"')
    if not chunk_id.strip():
        raise FormatError("empty chunk id")
    if _has_control_characters(chunk_id):
        raise FormatError(f"chunk id {chunk_id!r} has control characters in it")
    if not text.strip():
        raise FormatError("empty chunk")
    return chunk_id, text


def _string_of(value: JSON, name: str, types: tuple[type, ...]) -> str:
    if isinstance(value, types) and not isinstance(value, bool):
        return str(value)
    valid = " or ".join(_TYPE_NAMES[valid] for valid in types)
    raise FormatError(f'"{name}" is {_json_type(value)}; it must be {valid}')


def _json_type(value: JSON) -> str:
    return _TYPE_NAMES[type(value)]
