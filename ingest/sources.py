"""Reads sources into documents, one at a time: files, folders, LangChain documents, dictionaries, iterables of them."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from typing_extensions import TypeIs

from arag.errors import InputError
from arag.ingest.documents import Document, Problem
from arag.ingest.formats import Readers
from arag.ingest.formats.content import clean_characters, clean_text, folded, reason
from arag.ingest.records import Records, has_control_characters, read_json, read_jsonl, read_record, to_json
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
RECORD_READERS = {".json": read_json, ".jsonl": read_jsonl, ".ndjson": read_jsonl}
# What loaders and text splitters say of where in its source a document is.
_PLACES = ("page", "page_number", "row", "seq_num", "start_index")
_HASH_LENGTH = 16
_SAMPLE_BYTES = 4_096


class _File(NamedTuple):
    path: Path  # as the user names it
    id: str  # relative to the folder that was given
    real_path: str  # absolute, without links


class SourceReader:
    """Reads the sources of one ingestion.

    Hidden entries (a name that starts with ".") and the index itself are passed over. Links below a folder, other
    indexes and files without a reader are skipped and named. A file that is named twice is read once.

    Everything in a sequence is checked at once; of another iterable, each item when it is its turn.

    Attributes:
        bytes: Bytes of the files read so far; of objects given in Python, the characters of their texts.
        total: What `bytes` will be in the end; None if the sources can be gone through only once.
        folders: The absolute paths of the folders, without links.
        files: The absolute paths of all files, without links.
        failures: The absolute paths of the files and folders that could not be read, or only in part.
        skipped: What was skipped in the folders, and why.

    Raises:
        InputError: A path does not exist or has an unknown ending, a folder is an index or has nothing to read, or
            something else is a source.
    """

    def __init__(self, sources: Sources, readers: Readers, target: Path | None = None) -> None:
        self.bytes = 0
        self.total: int | None = None
        self.folders: list[str] = []
        self.files: set[str] = set()
        self.failures: set[str] = set()
        self.skipped: dict[Path, str] = {}
        self._readers = readers
        self._target = target.absolute() if target else None
        self._places = Counter[str]()  # ids made from metadata
        self._items = _list_sources(sources)
        self._checked: list[DocumentObject | list[_File | Problem]] = []  # those of a sequence
        if isinstance(self._items, Sequence):
            if not self._items:
                raise InputError("no file, folder or document was given")
            self._checked = [self._check(item, number) for number, item in enumerate(self._items)]
            files = [file for part in self._checked if isinstance(part, list) for file in part]
            self.total = sum(_size(file.path) for file in files if isinstance(file, _File))
            self.total += sum(_count_characters(part) for part in self._checked if not isinstance(part, list))

    def read(self) -> Iterator[Document | Problem]:
        """Yield the documents and, in their place, what was wrong with those that cannot be read."""
        for number, item in enumerate(self._items):
            try:
                part = self._checked[number] if self._checked else self._check(item, number)
            except InputError as error:
                yield Problem(str(item) if isinstance(item, str | Path) else f"sources[{number}]", str(error))
                continue
            if not isinstance(part, list):
                yield self._read_object(part, f"sources[{number}]")
                continue
            for file in part:
                if isinstance(file, Problem):
                    yield self._finish(file)
                else:
                    yield from self._read_file(file)

    def is_gone(self, file: str) -> bool:
        """Return whether a file was below one of the folders and is no longer there."""
        if file in self.files or os.path.lexists(file):  # a disk may take long to tell
            return False
        places = {file, *map(str, Path(file).parents)}
        return self.failures.isdisjoint(places) and not places.isdisjoint(self.folders)

    def _check(self, item: Any, number: int) -> DocumentObject | list[_File | Problem]:
        """Return an object that was given, or the files of a path."""
        if isinstance(item, str | Path):
            return self._list_files(item)
        if _is_object(item):
            return item
        raise InputError(f"sources[{number}] is {type(item).__name__}; {_VALID_SOURCES}")

    def _list_files(self, source: str | Path) -> list[_File | Problem]:
        """Return the file, or all files of a folder in sorted order, without those that are listed already."""
        path, name = Path(source), repr(clean_characters(str(source)))
        try:
            path.stat()
        except (OSError, ValueError) as error:
            raise InputError(f"{name} cannot be read: {reason(error)}") from error
        if source == "":
            raise InputError("a source is an empty path")
        if path.is_dir():
            if is_index(path):
                raise InputError(f"{name} is an index: give the documents that it was made from")
            self.folders.append(_real_path(path))
            files = list(self._walk(path))
        elif not path.is_file():
            raise InputError(f"{name} is neither a file nor a folder")
        else:
            files = [_File(path, path.name, _real_path(path))] if self._knows(path) else []
        if not files:
            fault = "contains no files that can be read" if path.is_dir() else f"has an unknown ending, {path.suffix!r}"
            raise InputError(
                f"{name} {fault}; valid endings are {' '.join([*self._readers.endings, *RECORD_READERS])}, and those "
                'of programs; to read another as text: --as .ENDING=.txt (in Python: readers={".ENDING": ".txt"})'
            )
        new = [file for file in files if isinstance(file, Problem) or file.real_path not in self.files]
        self.files |= {file.real_path for file in new if isinstance(file, _File)}
        return new

    def _walk(self, top: Path, below: str = "") -> Iterator[_File | Problem]:
        """Yield the files of a folder, or of one that is somewhere below it."""
        folder = top / below
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            self.failures.add(_real_path(folder))
            yield Problem(str(folder), reason(error))
            return
        for entry in entries:
            path, name = folder / entry.name, below + entry.name
            if entry.name.startswith(".") or path.absolute() == self._target:
                continue
            if why := self._why_skipped(entry):
                self.skipped[path] = why
            elif entry.is_dir():
                yield from self._walk(top, f"{name}/")
            else:
                yield _File(path, name, _real_path(path))

    def _why_skipped(self, entry: os.DirEntry[str]) -> str:
        """Return why an entry of a folder is skipped, or an empty string."""
        if entry.is_symlink():
            return "a link, which is not followed"
        if entry.is_dir():
            return "an index" if is_index(Path(entry)) else ""
        if not entry.is_file():
            return "neither a file nor a folder"
        path = Path(entry)
        if self._knows(path):
            return ""
        ending = path.suffix.lower()
        return f"no reader for {ending}" + (f"; to read it as text: --as {ending}=.txt" if _is_text(path) else "")

    def _knows(self, path: Path) -> bool:
        return path.suffix.lower() in RECORD_READERS or self._readers.knows(path)

    def _read_file(self, file: _File) -> Iterator[Document | Problem]:
        ending, before = file.path.suffix.lower(), self.bytes
        holds_records = ending in RECORD_READERS and not self._readers.knows(file.path)
        read = RECORD_READERS[ending] if holds_records else self._read_whole
        try:
            for item, end in read(file.path, file.id):
                self.bytes = before + end
                yield self._finish(item, file.real_path)
        except (OSError, ValueError) as error:
            yield self._finish(Problem(str(file.path), reason(error)), file.real_path)
        self.bytes = before + _size(file.path)

    def _read_whole(self, path: Path, file_id: str) -> Records:
        """Read a file as one document, in the way of `read_jsonl`."""
        content, size = self._readers.read(path), _size(path)
        yield from ((Problem(str(path), part), size) for part in content.left_out)
        title, metadata = content.title or path.stem.replace("_", " "), to_json(dict(content.metadata))
        yield Document(file_id, title, content.text, str(path), metadata, content.page_starts, has_own_id=False), size

    def _read_object(self, item: DocumentObject, place: str) -> Document | Problem:
        self.bytes += _count_characters(item)
        fields, own_id = (item, item.get("id")) if isinstance(item, Mapping) else (item.metadata, item.id)
        if own_id is not None or fields.get("source") is not None:
            place += f" (source {str(fields['source'])!r})" if own_id is None else f" (id {own_id!r})"
        try:
            # Sets have another order in each process.
            metadata = to_json(
                {k: sorted(v, key=str) if isinstance(v, set | frozenset) else v for k, v in fields.items()}
            )
            if isinstance(item, Mapping):
                document = read_record(metadata, "", place)
            else:
                title = metadata.get("title")
                title = title if isinstance(title, str) else ""
                text = clean_text(item.page_content)
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
                return replace(item, id=document_id, title=title, source=source, file=file)
        self.failures.add(file)
        return Problem(source, clean_characters(item.reason))


def _list_sources(sources: Sources) -> Iterable[Source]:
    """Return the sources as an iterable, which is a sequence if it can be gone through several times."""
    if isinstance(sources, str | Path) or _is_object(sources):
        return [sources]
    if isinstance(sources, Iterable):
        return sources
    raise InputError(f"the sources are {type(sources).__name__}; {_VALID_SOURCES}")


def _is_object(item: object) -> TypeIs[DocumentObject]:
    from langchain_core.documents import Document as LangChainDocument

    return isinstance(item, Mapping | LangChainDocument)


def _count_characters(item: DocumentObject) -> int:
    text = item.get("text") if isinstance(item, Mapping) else item.page_content
    return len(text) if isinstance(text, str) else 0


def _real_path(path: Path) -> str:
    r"""Return a path without links, as a text that can be stored: with `\\xff` for what is not UTF-8 in it."""
    return os.fsencode(os.path.realpath(path)).decode("utf-8", "backslashreplace")


def _is_text(path: Path) -> bool:
    """Return whether a file begins with text."""
    try:
        with path.open("rb") as file:
            text = codecs.getincrementaldecoder("utf-8")().decode(file.read(_SAMPLE_BYTES))
    except (OSError, UnicodeDecodeError):
        return False
    return bool(text) and "\0" not in text


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # reported when it is read
        return 0
