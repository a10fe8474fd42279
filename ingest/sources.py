"""Reads sources into documents, one at a time: files, folders, LangChain documents, dictionaries, iterables of them."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from typing_extensions import TypeIs

from arag.errors import InputError
from arag.ingest.documents import Document, Problem
from arag.ingest.formats import Readers
from arag.ingest.formats.content import JSON, clean_characters, clean_text, folded
from arag.ingest.records import has_control_characters, read_json, read_jsonl, read_record, to_json
from arag.retrieval.locations import is_index

if TYPE_CHECKING:
    from langchain_core.documents import Document as LangChainDocument

    DocumentObject: TypeAlias = LangChainDocument | Mapping[str, Any]
    Source: TypeAlias = str | Path | DocumentObject
    Sources: TypeAlias = Source | Iterable[Source]

_VALID_SOURCES = (
    "sources must be paths, LangChain documents, dictionaries such as "
    '{"id": "1", "title": "A title", "text": "A text."}, or an iterable of them'
)
_RECORD_READERS = {".json": read_json, ".jsonl": read_jsonl, ".ndjson": read_jsonl}
# What loaders and text splitters say of where in its source a document is.
_PLACES = ("page", "page_number", "row", "seq_num", "start_index")
_HASH_LENGTH = 16


@dataclass(slots=True)
class Scan:
    """What was met while sources were read.

    Attributes:
        bytes: Bytes of the files read so far; of objects given in Python, the characters of their texts.
        folders: The absolute paths of the folders.
        files: The absolute paths of all files read, without links.
        failures: The absolute paths of the files and folders that could not be read, or only in part.
        skipped: What was skipped in the folders, and why.
    """

    bytes: int = 0
    folders: list[str] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    failures: set[str] = field(default_factory=set)
    skipped: dict[Path, str] = field(default_factory=dict)


class SourceReader:
    """Reads the sources of one ingestion.

    Hidden entries (a name that starts with ".") and the index itself are passed over. Links below a folder, other
    indexes and files without a reader are skipped and named. A file that is named twice is read once.

    Args:
        sources: A file, a folder, a LangChain document, a dictionary, or an iterable of them. Everything in a sequence
            is checked at once; of another iterable, each item when it is its turn.
        readers: How files are read, by their endings.
        target: The folder that the documents are for, which is not walked.

    Attributes:
        scan: What was met so far.

    Raises:
        InputError: A path does not exist or has an unknown ending, a folder is an index or has nothing to read, or
            something else is a source.
    """

    def __init__(self, sources: Sources, readers: Readers, target: Path | None = None) -> None:
        self.scan = Scan()
        self._readers = readers
        self._target = ""
        with suppress(ValueError):  # no folder can have such a name: opening the index says so
            self._target = _real_path(target) if target else ""
        self._items = _list_sources(sources)
        self._places = Counter[str]()  # ids made from metadata
        if not isinstance(self._items, Sequence):
            return
        if not self._items:
            raise InputError("no file, folder or document was given")
        for number, item in enumerate(self._items):
            if isinstance(item, str | Path):
                if fault := self._find_fault(item):
                    raise InputError(f"{clean_characters(str(item))!r} {fault}")
            elif not _is_object(item):
                raise InputError(f"sources[{number}] is {type(item).__name__}; {_VALID_SOURCES}")

    def count_bytes(self) -> int | None:
        """Return what `scan.bytes` will be in the end, or None if the sources can be gone through only once."""
        if not isinstance(self._items, Sequence):
            return None
        scan = Scan()
        for item in self._items:
            if isinstance(item, str | Path):
                scan.bytes += sum(_size(path) for path in self._find_files(Path(item), scan) if isinstance(path, Path))
            else:
                scan.bytes += _count_characters(item)
        return scan.bytes

    def read(self) -> Iterator[Document | Problem]:
        """Yield the documents and, in their place, what was wrong with those that cannot be read."""
        for number, item in enumerate(self._items):
            if not isinstance(item, str | Path):
                yield self._read_object(item, f"sources[{number}]")
                continue
            if not isinstance(self._items, Sequence) and (fault := self._find_fault(item)):
                yield self._finish(Problem(str(item), fault))
                continue
            path = Path(item)
            if path.is_dir():
                self.scan.folders.append(_real_path(path))
            for file in self._find_files(path, self.scan):
                if isinstance(file, Problem):
                    yield self._finish(file)
                else:
                    yield from self._read_file(file, file.name if file == path else file.relative_to(path).as_posix())

    def _find_fault(self, source: str | Path) -> str:  # noqa: PLR0911
        """Return why a path leads to nothing that can be read, or an empty string."""
        path, scan = Path(source), Scan()
        valid = (
            f"valid endings are {' '.join([*self._readers.endings, *_RECORD_READERS])}, and those of programs; to read "
            'another as text: --as .ENDING=.txt (in Python: readers={".ENDING": ".txt"})'
        )
        try:
            path.stat()
        except (OSError, ValueError) as error:
            return f"cannot be read: {getattr(error, 'strerror', None) or error}"
        if source == "":
            return "is an empty path"
        if path.is_dir():
            if is_index(path):
                return "is an index: give the documents that it was made from"
            if next(self._find_files(path, scan), None) is None:
                return f"contains {'only links and files with other endings' if scan.skipped else 'no files'}; {valid}"
        elif not path.is_file():
            return "is neither a file nor a folder"
        elif not self._knows(path):
            return f"has an unknown ending, {path.suffix!r}; {valid}"
        return ""

    def _knows(self, path: Path) -> bool:
        return path.suffix.lower() in _RECORD_READERS or self._readers.knows(path)

    def _find_files(self, path: Path, scan: Scan) -> Iterator[Path | Problem]:
        """Yield a file, or all files of a folder in sorted order, each one once."""
        if path.is_dir():
            yield from self._walk(path, _real_path(path), scan)
        elif (file := _real_path(path)) not in scan.files:
            scan.files.add(file)
            yield path

    def _walk(self, folder: Path, real: str, scan: Scan) -> Iterator[Path | Problem]:
        try:
            with os.scandir(folder) as entries:
                visible = sorted((e for e in entries if not e.name.startswith(".")), key=lambda e: e.name)
        except OSError as error:
            scan.failures.add(real)
            yield Problem(str(folder), error.strerror or str(error))
            return
        for entry in visible:
            path, file = folder / entry.name, f"{real.rstrip(os.sep)}{os.sep}{_storable(entry.name)}"
            if entry.is_symlink():
                scan.skipped[path] = "a link, which is not followed"
            elif entry.is_dir(follow_symlinks=False):
                if file == self._target:
                    continue
                if is_index(path):
                    scan.skipped[path] = "an index"
                else:
                    yield from self._walk(path, file, scan)
            elif not entry.is_file(follow_symlinks=False):
                scan.skipped[path] = "neither a file nor a folder"
            elif not self._knows(path):
                scan.skipped[path] = f"no reader for {path.suffix.lower()}"
            elif file not in scan.files:
                scan.files.add(file)
                yield path

    def _read_file(self, path: Path, file_id: str) -> Iterator[Document | Problem]:
        before = self.scan.bytes
        end = before + _size(path)
        ending, file = path.suffix.lower(), _real_path(path)
        try:
            if ending in _RECORD_READERS and ending not in self._readers.own:
                for item, place in _RECORD_READERS[ending](path, file_id):
                    self.scan.bytes = before + place
                    yield self._finish(item, file)
            else:
                content = self._readers.read(path)
                self.scan.bytes = end
                yield from (self._finish(Problem(str(path), part)) for part in content.left_out)
                document = Document(
                    id=file_id,
                    title=content.title or path.stem.replace("_", " "),
                    text=content.text,
                    source=str(path),
                    metadata=_to_metadata(content.metadata),
                    page_starts=content.page_starts,
                    has_own_id=False,
                )
                yield self._finish(document, file)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            yield self._finish(Problem(str(path), reason), file)
        self.scan.bytes = end

    def _read_object(self, item: object, place: str) -> Document | Problem:
        if not _is_object(item):
            return Problem(place, f"it is {type(item).__name__}; {_VALID_SOURCES}")
        self.scan.bytes += _count_characters(item)
        fields, own_id = (item, item.get("id")) if isinstance(item, Mapping) else (item.metadata, item.id)
        if own_id is not None or fields.get("source") is not None:
            place += f" (source {str(fields['source'])!r})" if own_id is None else f" (id {own_id!r})"
        try:
            metadata = _to_metadata(fields)
            if isinstance(item, Mapping):
                document = read_record(metadata, "", place)
            else:
                title, text = metadata.get("title"), clean_text(item.page_content)
                title = title if isinstance(title, str) else ""
                document = Document(own_id or "", title, text, place, metadata, has_own_id=own_id is not None)
        except ValueError as error:
            return Problem(place, str(error))
        if not document.has_own_id:
            document = replace(document, id=self._make_id(document), has_own_id=True)
        return self._finish(document)

    def _make_id(self, document: Document) -> str:
        """Return an id from a document's source and its place in it, with a number if another has it, else a hash."""
        metadata = document.metadata
        source = metadata.get("source")
        if not isinstance(source, str) or not source.strip():
            content = json.dumps([document.title, document.text, dict(metadata)], sort_keys=True)
            return hashlib.sha256(content.encode()).hexdigest()[:_HASH_LENGTH]
        places = [f"{name}={metadata[name]}" for name in _PLACES if isinstance(metadata.get(name), str | int)]
        document_id = place = "#".join([source, *(["&".join(places)] if places else [])])
        while document_id in self._places:  # also as the name of another source
            self._places[place] += 1
            document_id = f"{place}#{self._places[place]}"
        self._places[document_id] = 1
        return document_id

    def _finish(self, item: Document | Problem, file: str = "") -> Document | Problem:
        """Return a document as it is stored, or what is wrong with it."""
        source = clean_characters(item.source)
        if isinstance(item, Document):
            document_id = clean_characters(item.id).strip()
            if not document_id or has_control_characters(document_id):
                item = Problem(source, f"id {document_id!r} is empty or has control characters in it")
            elif not item.text.strip():
                item = Problem(source, "empty document")
            else:
                title = folded(clean_characters(item.title))
                return replace(item, id=document_id, title=title, source=source, file=file, end=self.scan.bytes)
        self.scan.failures.add(file)
        return Problem(source, clean_characters(item.reason))


def _list_sources(sources: Sources) -> Iterable[Source]:
    """Return the sources as an iterable, which is a sequence if it can be gone through several times."""
    if isinstance(sources, str | Path) or _is_object(sources):
        return [sources]
    if isinstance(sources, Iterable):
        return sources
    hints = {"lazy_load": ": pass its lazy_load()", "__aiter__": ": only aingest takes asynchronous iterables"}
    hint = next((hints[name] for name in hints if hasattr(sources, name)), "")
    raise InputError(f"the sources are {type(sources).__name__}{hint}; {_VALID_SOURCES}")


def _is_object(item: object) -> TypeIs[DocumentObject]:
    from langchain_core.documents import Document as LangChainDocument

    return isinstance(item, Mapping | LangChainDocument)


def _count_characters(item: DocumentObject) -> int:
    text = item.get("text") if isinstance(item, Mapping) else item.page_content
    return len(text) if isinstance(text, str) else 0


def _to_metadata(fields: Mapping[str, Any]) -> dict[str, JSON]:
    return {clean_characters(str(name)): to_json(value, str(name)) for name, value in fields.items()}


def _real_path(path: Path) -> str:
    """Return a path without links, as a text that can be stored."""
    return _storable(os.path.realpath(path))


def _storable(name: str) -> str:
    r"""Return a name with `\\xff` for what is not UTF-8 in it."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # reported when it is read
        return 0
