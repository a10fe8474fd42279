"""Reads files and folders into documents, and takes documents that are given as objects, one at a time."""

from __future__ import annotations

import dataclasses
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import accumulate, pairwise
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from arag.errors import InputError
from arag.ingest.documents import DEFAULT_LIMITS, Document, Limits, Position, Problem
from arag.ingest.formats.content import (
    Content,
    FormatError,
    clean_characters,
    clean_text,
    folded,
    has_control_characters,
    problem_at,
)
from arag.ingest.formats.package import Package
from arag.ingest.formats.pdf import PdfReader
from arag.ingest.given import VALID_SOURCES, GivenReader, count_characters, is_document, list_sources, to_json_object
from arag.ingest.records import read_json, read_jsonl
from arag.ingest.registry import Format, Readers
from arag.retrieval.locations import is_index

if TYPE_CHECKING:
    from arag.ingest.given import Source, Sources

_RECORD_READERS = {"json": read_json, "jsonl": read_jsonl}

_MAX_BYTES_PER_CHARACTER = 4  # in UTF-8 and UTF-16
_LONE_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # others stand for bytes that are not UTF-8


def read_documents(
    sources: Sources,
    *,
    index: str | Path | None = None,
    readers: Readers | None = None,
    limits: Limits = DEFAULT_LIMITS,
    position: Position | None = None,
) -> Iterator[Document | Problem]:
    """Read the documents in files and folders, and take those that are given as objects, one at a time.

    Folders are walked in sorted order, links to files last. Hidden entries (a name that starts with ".") and the index
    itself are passed over. Links to folders, other indexes, and files without a reader are skipped. A file that is
    given twice, as itself and in its folder, is read once.

    Args:
        sources: A file, a folder, a LangChain document, a record, or an iterable of them. Everything in a sequence is
            checked at once; of another iterable, each item when it is its turn.
        index: The folder that the documents are for, which is not walked, whatever it holds.
        readers: How files are read, by their endings.
        limits: How much of a document is read.
        position: Advanced with every document, up to what `count_bytes` returns.

    Returns:
        An iterator over the documents and, in their place, what was wrong with those that cannot be read.

    Raises:
        InputError: A path does not exist or has an unknown ending, a folder is an index or has nothing to read, or
            something else is given. Raised by the call itself, before anything is read.
    """
    items = list_sources(sources)
    target, readers = _real(index), readers or Readers()
    if isinstance(items, Sequence):
        if not items:
            raise InputError("no file, folder or document was given")
        for number, item in enumerate(items):
            if isinstance(item, str | Path):
                try:
                    _check_path(item, target, readers)
                except FormatError as error:
                    raise InputError(f"{_show(item)} {error}") from error
            elif not is_document(item):
                raise InputError(f"sources[{number}] is {type(item).__name__}; {VALID_SOURCES}")
    return _read_sources(items, target, readers, limits, position or Position())


def _check_path(given: str | Path, index: str, readers: Readers) -> None:
    """Check that a path leads to something that can be read.

    Raises:
        FormatError: It does not; the message is to follow the path.
    """
    if given == "":
        raise FormatError("is an empty path")
    path = Path(given)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise FormatError("does not exist") from error
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise FormatError("has a character that a file name cannot have") from error
    if stat.S_ISDIR(mode):
        if _is_index(path):
            raise FormatError("is an index: give the documents that it was made from")
        found_other = False
        for _, reason in _walk(path, index, readers):
            if not isinstance(reason, str):
                return
            found_other = True
        found = "only links to folders or files with other endings" if found_other else "no files"
        raise FormatError(f"contains {found}; {_valid(readers)}")
    if not stat.S_ISREG(mode):
        raise FormatError("is neither a file nor a folder")
    if not readers.knows(path):
        raise FormatError(f"has an unknown ending, {clean_characters(path.suffix)!r}; {_valid(readers)}")


def _valid(readers: Readers) -> str:
    endings = clean_characters(" ".join(readers.endings()))
    return (
        f"valid endings are {endings}, and those of programs; to read another as text: --as text:.ENDING "
        '(in Python: readers={".ENDING": "text"})'
    )


def _show(path: str | Path) -> str:
    """Return a path for messages, as Python writes it if no file can have it."""
    text = str(path)
    is_possible = text and "\0" not in text and not _LONE_SURROGATE.search(text)
    return clean_characters(text) if is_possible else repr(text)


def count_bytes(sources: Sources, *, index: str | Path | None = None, readers: Readers | None = None) -> int | None:
    """Return how far `read_documents` advances a position: the bytes of all files, readable or not.

    Documents given as objects count with their characters.

    Args:
        sources: What is given, as for `read_documents`.
        index: The folder that the documents are for.
        readers: As for `read_documents`.

    Returns:
        The number, or None if the sources can be gone through only once.
    """
    items = list_sources(sources)
    if not isinstance(items, Sequence):
        return None
    places: set[str] = set()
    files = (
        _size(file)
        for item in items
        if isinstance(item, str | Path)
        for file, reason in _find_files(Path(item), _real(index), readers or Readers(), places)
        if reason is None
    )
    return sum(files) + sum(count_characters(item) for item in items if not isinstance(item, str | Path))


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


def _is_index(folder: Path) -> bool:
    """Return whether a folder is an index, whose manifest would be taken for a document."""
    try:
        return is_index(folder)
    except OSError:  # reported when the folder is walked
        return False


def _walk(
    folder: Path, index: str, readers: Readers, root: Path | None = None
) -> Iterator[tuple[Path, Exception | str | None]]:
    """Find what is in a folder, in sorted order.

    Args:
        folder: The folder.
        index: The real path of a folder that is passed over.
        readers: Which files are readable.
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
            if not entry.is_dir(follow_symlinks=False):
                yield path, _why_unread(path, root, readers)
            elif os.path.realpath(path) != index:
                if _is_index(path):
                    yield path, "an index"
                else:
                    yield from _walk(path, index, readers, root)
        except OSError as error:
            yield path, error


def _why_unread(path: Path, root: Path, readers: Readers) -> FormatError | str | None:
    if path.is_dir():
        return "a link to a folder"
    # A broken link counts as a file, so that it is reported and not skipped.
    if not path.is_file() and path.exists():
        return "neither a file nor a folder"
    if not readers.knows(path):
        return f"no reader for {path.suffix.lower()}"
    if path.is_symlink() and not PurePath(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        return FormatError("a link that leads outside the folder; not followed")
    return None


def _find_files(
    given: Path, index: str, readers: Readers, places: set[str]
) -> Iterator[tuple[Path, Exception | str | None]]:
    """Find a given file, or what is in a given folder, each readable file once.

    Args:
        given: The file or folder.
        index: See `_walk`.
        readers: See `_walk`.
        places: Where the files that were found before really are; added to.

    Yields:
        Paths, and what `_walk` says about them.
    """
    if not given.is_dir():
        if _add(places, os.path.realpath(given)):
            yield given, None
        return
    links = []
    for file, reason in _walk(given, index, readers):
        if reason is None and file.is_symlink():
            links.append(file)  # so that a file is found by its own name first
        elif reason is not None or _add(places, os.path.realpath(file)):
            yield file, reason
    for file in links:
        place = os.path.realpath(file)
        yield file, None if _add(places, place) else f"a link to {PurePath(place).name}, which is read anyway"


def _add(places: set[str], place: str) -> bool:
    """Add a place; return whether it is new."""
    is_new = place not in places
    places.add(place)
    return is_new


def _read_sources(
    items: Iterable[Source], index: str, readers: Readers, limits: Limits, position: Position
) -> Iterator[Document | Problem]:
    is_checked = isinstance(items, Sequence)
    places: set[str] = set()
    objects = GivenReader(position)
    with closing(PdfReader(limits)) as pdfs:
        for number, item in enumerate(items):
            if not isinstance(item, str | Path):
                read = objects.read(item, f"sources[{number}]")
                yield _check(read, limits) if isinstance(read, Document) else read
                continue
            try:
                if not is_checked:
                    _check_path(item, index, readers)
            except FormatError as error:
                yield Problem(_show(item), str(error))
            else:
                position.paths += 1
                if os.path.isdir(item):  # noqa: PTH112
                    position.folders.append(Path(item))
                yield from _read_path(Path(item), index, readers, limits, pdfs, places, position)


def _read_path(
    given: Path,
    index: str,
    readers: Readers,
    limits: Limits,
    pdfs: PdfReader,
    places: set[str],
    position: Position,
) -> Iterator[Document | Problem]:
    for file, reason in _find_files(given, index, readers, places):
        if isinstance(reason, Exception):
            yield problem_at(file, reason)
        elif reason is not None:
            if _add(places, os.path.join(os.path.realpath(file.parent), file.name)):  # noqa: PTH118 - named once
                position.skipped.append(problem_at(file, reason))
        else:
            end = position.bytes + _size(file)
            file_id = file.name if file == given else file.relative_to(given).as_posix()
            for item in _read_file(file, file_id, readers, limits, pdfs, position):
                position.bytes = min(position.bytes, end)
                yield _check(item, limits) if isinstance(item, Document) else item
            position.bytes = end


def _check(document: Document, limits: Limits) -> Document | Problem:
    """Return the document if its id is usable and its text is neither blank nor too long."""
    document_id = clean_characters(document.id).strip()
    reason = ""
    if not document_id:
        reason = "empty id"
    elif has_control_characters(document_id):
        reason = f"id {document_id!r} has control characters in it"
    elif not document.text.strip():
        reason = "empty document"
    elif document.ready_chunks is None and len(document.text) > limits.max_characters:
        reason = limits.exceeded("max_characters")
    if reason:
        return Problem(document.source, reason)
    return dataclasses.replace(document, id=document_id, title=folded(clean_characters(document.title)))


def _read_file(
    path: Path, file_id: str, readers: Readers, limits: Limits, pdfs: PdfReader, position: Position
) -> Iterator[Document | Problem]:
    try:
        format_ = readers.find(path)
        if format_.name in _RECORD_READERS:
            yield from _RECORD_READERS[format_.name](path, file_id, position)
            return
        position.bytes += path.stat().st_size
        if format_.unpack is not None:
            with Package(path, limits) as package:
                content = _whole(format_.unpack(package), limits)
        else:
            content = _read_content(path, format_, limits, pdfs)
        for place, reason in content.left_out:
            yield problem_at(f"{path}, {place}", reason)
        yield _document(path, file_id, content)
    except (FormatError, OSError) as error:
        yield problem_at(path, error)
    except (ArithmeticError, LookupError, RecursionError, ValueError) as error:
        # A file can be damaged in more ways than its reader foresees; the others must still be read.
        yield problem_at(path, f"damaged, or of an unknown kind: {type(error).__name__}: {error}")


def _read_content(path: Path, format_: Format, limits: Limits, pdfs: PdfReader) -> Content:
    if format_.read is None:
        return pdfs.read(path)
    # A file with more bytes than it may have is not read into memory.
    size = path.stat().st_size
    if format_.all_text and size > _MAX_BYTES_PER_CHARACTER * limits.max_characters:
        raise FormatError(limits.exceeded("max_characters"))
    if not format_.all_text and size > limits.max_bytes:
        raise FormatError(limits.exceeded("max_bytes"))
    return _whole(format_.read(path.read_bytes()), limits)


def _whole(found: Content | str | Iterable[str], limits: Limits) -> Content:
    """Return what a reader returned as content; rows can have many more characters than the bytes they come from."""
    if isinstance(found, Content):
        return found
    pieces: list[str] = []
    left = limits.max_characters
    for piece in [found] if isinstance(found, str) else found:
        left -= len(piece)
        if left < 0:
            raise FormatError(limits.exceeded("max_characters"))
        pieces.append(piece)
    return Content("", "".join(pieces).strip("\r\n"))


def _document(path: Path, file_id: str, content: Content) -> Document:
    # Page by page, because what is cleaned can become shorter.
    bounds = pairwise([0, *content.page_starts, len(content.text)])
    pages = [clean_text(content.text[start:end]) for start, end in bounds]
    return Document(
        id=file_id,
        title=content.title if content.title.strip() else path.stem,
        text="".join(pages),
        source=clean_characters(str(path)),
        metadata=to_json_object(content.metadata),
        page_starts=tuple(accumulate(map(len, pages[:-1]))),
        named_by_path=True,
    )
