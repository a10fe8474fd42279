"""Reads files and folders into documents, one at a time."""

from __future__ import annotations

import dataclasses
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path, PurePath

from arag.errors import InputError
from arag.ingest.documents import DEFAULT_LIMITS, Document, Limits, Position, Problem
from arag.ingest.formats import (
    Content,
    FormatError,
    clean_characters,
    folded,
    has_control_characters,
    problem_at,
    read_text,
)
from arag.ingest.html import read_html
from arag.ingest.markdown import read_markdown
from arag.ingest.pdf import PdfReader
from arag.ingest.records import read_json, read_jsonl
from arag.retrieval.locations import is_index

_TEXT_READERS = {".txt": read_text, ".md": read_markdown, ".html": read_html, ".htm": read_html}
_RECORD_READERS = {".json": read_json, ".jsonl": read_jsonl}
READABLE_SUFFIXES: tuple[str, ...] = (*_TEXT_READERS, ".pdf", *_RECORD_READERS)

_MAX_BYTES_PER_CHARACTER = 4  # in UTF-8 and UTF-16


def read_documents(
    paths: Sequence[str | Path],
    *,
    index: str | Path | None = None,
    limits: Limits = DEFAULT_LIMITS,
    position: Position | None = None,
) -> Iterator[Document | Problem]:
    """Read the documents in files and folders, one at a time.

    Folders are walked in sorted order. Hidden entries (a name that starts with "."), links to folders, indexes, and
    files with other endings than `READABLE_SUFFIXES` are skipped. A file that is given twice, as itself and in its
    folder, is read once.

    Args:
        paths: The files and folders.
        index: The folder that the documents are for, which is not walked, whatever it holds.
        limits: How much of a document is read.
        position: Advanced with every document, up to what `count_bytes` returns.

    Returns:
        An iterator over the documents and, in their place, what was wrong with those that cannot be read.

    Raises:
        InputError: A path does not exist or has an unknown ending, or a folder is an index or has nothing to
            read. Raised by the call itself, before anything is read.
    """
    # A string is a sequence of strings too: each character would be taken for a path.
    given = [paths] if isinstance(paths, str) else list(paths)
    if not given or "" in given:
        raise InputError("an empty path was given" if given else "no file or folder was given")
    checked = [Path(path) for path in given]
    target = _real(index)
    for path in checked:
        _check_path(path, target)
    return _read_paths(checked, target, limits, position or Position())


def _check_path(path: Path, index: str) -> None:
    shown = clean_characters(str(path))
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise InputError(f"{shown} does not exist") from error
    except OSError as error:
        raise InputError(f"{shown} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(f"{str(path)!r} has a character that a file name cannot have") from error
    valid = f"valid endings are {' '.join(READABLE_SUFFIXES)}"
    if stat.S_ISDIR(mode):
        if _is_index(path):
            raise InputError(f"{shown} is an index: give the documents that it was made from")
        found_other = False
        for _, reason in _walk(path, index):
            if not isinstance(reason, str):
                return
            found_other = True
        found = "only links to folders or files with other endings" if found_other else "no files"
        raise InputError(f"{shown} contains {found}; {valid}")
    if not stat.S_ISREG(mode):
        raise InputError(f"{shown} is neither a file nor a folder")
    if not _is_readable(path):
        raise InputError(f"{shown} has an unknown ending, {clean_characters(path.suffix)!r}; {valid}")


def find_skipped(paths: Sequence[str | Path], *, index: str | Path | None = None) -> tuple[Problem, ...]:
    """Return what is skipped in folders: files without a reader, and links to folders.

    Hidden entries and indexes are not included.

    Args:
        paths: The files and folders, as for `read_documents`.
        index: The folder that the documents are for.
    """
    target = _real(index)
    skipped = {
        _place(path): problem_at(path, reason)
        for folder in map(Path, paths)
        if folder.is_dir()
        for path, reason in _walk(folder, target)
        if isinstance(reason, str)
    }
    return tuple(skipped.values())


def count_bytes(paths: Sequence[str | Path], *, index: str | Path | None = None) -> int:
    """Return the bytes of all files that `read_documents` reads, readable or not.

    Args:
        paths: The files and folders, as for `read_documents`.
        index: The folder that the documents are for.
    """
    return sum(_size(file) for _, file, reason in _find_files(map(Path, paths), _real(index)) if reason is None)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except (OSError, ValueError):  # reported when it is read
        return 0


def _real(path: str | Path | None) -> str:
    try:
        return "" if path is None else os.path.realpath(path)
    except ValueError:  # a name that no folder can have: reported when the index is made
        return ""


def _is_readable(path: Path) -> bool:
    return path.suffix.lower() in READABLE_SUFFIXES


def _is_index(folder: Path) -> bool:
    """Return whether a folder is an index, whose manifest would be taken for a document."""
    try:
        return is_index(folder)
    except OSError:  # reported when the folder is walked
        return False


def _walk(folder: Path, index: str, root: Path | None = None) -> Iterator[tuple[Path, Exception | str | None]]:
    """Find what is in a folder, in sorted order.

    Args:
        folder: The folder.
        index: The real path of a folder that is not walked, like any index.
        root: The folder that links may not lead out of; the folder itself by default.

    Yields:
        Paths. With each, what is wrong with it, or why it is skipped; None for a readable file.
    """
    root = root or folder
    try:
        with os.scandir(folder) as entries:
            visible = sorted((e for e in entries if not e.name.startswith(".")), key=lambda e: e.name)
    except OSError as error:
        yield folder, error
        return
    for entry in visible:
        path = folder / entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                if not _is_index(path) and os.path.realpath(path) != index:
                    yield from _walk(path, index, root)
            else:
                yield path, _why_unread(path, root)
        except OSError as error:
            yield path, error


def _why_unread(path: Path, root: Path) -> FormatError | str | None:
    if path.is_dir():
        return "a link to a folder"
    # A broken link counts as a file, so that it is reported and not skipped.
    if not path.is_file() and path.exists():
        return "neither a file nor a folder"
    if not _is_readable(path):
        return f"no reader for {path.suffix.lower()}" if path.suffix else "no reader for names without an ending"
    if path.is_symlink() and not PurePath(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        return FormatError("a link that leads outside the folder; not followed")
    return None


def _find_files(paths: Iterable[Path], index: str) -> Iterator[tuple[Path, Path, Exception | str | None]]:
    """Find what is given and what is in folders, each readable file once.

    Yields:
        The path that was given, a path, and what `_walk` says about it.
    """
    places: set[str] = set()
    for given in paths:
        for file, reason in _walk(given, index) if given.is_dir() else [(given, None)]:
            if reason is not None:
                yield given, file, reason
            elif (place := _place(file)) not in places:
                places.add(place)
                yield given, file, None


def _read_paths(paths: list[Path], index: str, limits: Limits, position: Position) -> Iterator[Document | Problem]:
    sources: dict[str, str] = {}
    with closing(PdfReader(limits)) as pdfs:
        for given, file, reason in _find_files(paths, index):
            if isinstance(reason, Exception):
                yield problem_at(file, reason)
            elif reason is None:
                end = position.bytes + _size(file)
                file_id = file.name if file == given else file.relative_to(given).as_posix()
                for item in _read_file(file, file_id, limits, pdfs, position):
                    position.bytes = min(position.bytes, end)
                    yield _admit(item, sources, limits) if isinstance(item, Document) else item
                position.bytes = end


def _place(file: Path) -> str:
    """Return where a file really is, however its path is written; a link to a file counts as a file of its own."""
    return str(PurePath(os.path.realpath(file.parent), file.name))


def _admit(document: Document, sources: dict[str, str], limits: Limits) -> Document | Problem:
    """Return the document if its id is usable and new and its text is not too long, and record the id."""
    document_id = clean_characters(document.id).strip()
    reason = ""
    if not document_id:
        reason = "empty id"
    elif has_control_characters(document_id):
        reason = f"id {document_id!r} has control characters in it"
    elif document_id in sources:
        reason = f"duplicate id {document_id!r}, already used by {sources[document_id]}"
    elif not document.text.strip():
        reason = "empty document"
    elif document.ready_chunks is None and len(document.text) > limits.max_characters:
        reason = limits.exceeded("max_characters")
    if reason:
        return Problem(document.source, reason)
    sources[document_id] = document.source
    return dataclasses.replace(document, id=document_id, title=folded(clean_characters(document.title)))


def _read_file(
    path: Path, file_id: str, limits: Limits, pdfs: PdfReader, position: Position
) -> Iterator[Document | Problem]:
    suffix = path.suffix.lower()
    try:
        if suffix in _RECORD_READERS:
            yield from _RECORD_READERS[suffix](path, file_id, position)
            return
        size = path.stat().st_size
        position.bytes += size
        if suffix == ".pdf":
            content = pdfs.read(path)
            for number, reason in content.bad_pages:
                yield problem_at(f"{path}, page {number}", reason)
            yield _document(path, file_id, content)
        # A file with more bytes than its text may have is not read into memory.
        elif size > _MAX_BYTES_PER_CHARACTER * limits.max_characters:
            yield problem_at(path, limits.exceeded("max_characters"))
        else:
            yield _document(path, file_id, _TEXT_READERS[suffix](path.read_bytes()))
    except (FormatError, OSError) as error:
        yield problem_at(path, error)


def _document(path: Path, file_id: str, content: Content) -> Document:
    return Document(
        id=file_id,
        title=content.title if content.title.strip() else path.stem,
        text=content.text,
        source=clean_characters(str(path)),
        metadata=content.metadata,
        page_starts=content.page_starts,
    )
