"""Reads sources into documents, one at a time: files, folders, LangChain documents, dictionaries, iterables of them."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from typing_extensions import TypeIs

from arag.errors import InputError
from arag.ingest.documents import Document, Problem
from arag.ingest.formats import Readers
from arag.ingest.formats.content import clean_characters, clean_text, reason
from arag.ingest.records import MAX_ID_BYTES, Records, is_id, read_json, read_jsonl, read_record, to_json
from arag.retrieval.storage.locations import is_index, looks_like_address
from arag.text.normalise import shorten

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
_SAMPLE_CHARACTERS = 4_096
_MAX_SHOWN = 100  # characters of an id in a message
_MAX_TITLE = 1_000  # characters: every chunk and every result has it
_MAX_PROBLEMS = 100  # of one file that are told one by one
_WRONG_ID = f"is empty, has control characters in it, or has more than {MAX_ID_BYTES:,} bytes"


class _File(NamedTuple):
    path: Path  # as the user names it
    id: str  # relative to the folder that was given
    real_path: str  # absolute, without links

    @property
    def size(self) -> int:
        """Its bytes."""
        try:
            return self.path.stat().st_size
        except OSError:  # reported when it is read
            return 0


class _Object(NamedTuple):
    item: DocumentObject
    place: str  # among the sources, for messages

    @property
    def size(self) -> int:
        """The characters of its text."""
        text = self.item.get("text") if isinstance(self.item, Mapping) else self.item.page_content
        return len(text) if isinstance(text, str) else 0


_Part: TypeAlias = _File | _Object | Problem


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
        if isinstance(sources, str) or _is_object(sources) or not isinstance(sources, Iterable):
            sources = [sources]
        self._parts: Iterable[list[_Part]] = self._list_all(sources)
        if isinstance(sources, Sequence):
            self._parts = list(self._parts)
            self.total = sum(part.size for part in chain.from_iterable(self._parts) if not isinstance(part, Problem))

    def read(self) -> Iterator[Document | Problem]:
        """Yield the documents and, in their place, what was wrong with those that cannot be read."""
        for part in chain.from_iterable(self._parts):
            match part:
                case _File():
                    yield from self._read_file(part)
                case _Object():
                    self.bytes += part.size
                    yield self._finish(self._read_object(part.item, part.place))
                case _:
                    yield self._finish(part)

    def is_gone(self, file: str) -> bool:
        """Return whether a file was below one of the folders and is no longer there."""
        if file in self.files or os.path.lexists(file):  # a disk may take long to tell
            return False
        places = {file, *map(str, Path(file).parents)}
        return self.failures.isdisjoint(places) and not places.isdisjoint(self.folders)

    def _list_all(self, sources: Iterable[Any]) -> Iterator[list[_Part]]:
        """Yield what is to be read of each source."""
        for number, source in enumerate(sources):
            place = f"sources[{number}]"
            try:
                yield [_Object(source, place)] if _is_object(source) else self._list_files(source, place)
            except InputError as error:
                if isinstance(sources, Sequence):
                    raise
                yield [Problem(str(source) if isinstance(source, str | Path) else place, str(error))]

    def _list_files(self, source: Any, place: str) -> list[_Part]:
        """Return the file, or all files of a folder in sorted order, without those that are listed already."""
        if not isinstance(source, str | Path):
            raise InputError(f"{place} is {type(source).__name__}; {_VALID_SOURCES}")
        path, name = Path(source), repr(clean_characters(str(source)))
        try:
            path.stat()
        except (OSError, ValueError) as error:
            if looks_like_address(str(source)):  # which may hold a password
                raise InputError(f"{place} is an address: give files and folders, or documents in Python") from None
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
        new: list[_Part] = [file for file in files if isinstance(file, Problem) or file.real_path not in self.files]
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
            if entry.is_symlink():
                self.skipped[path] = "a link, which is not followed"
            elif entry.is_dir() and is_index(path):
                self.skipped[path] = "an index"
            elif entry.is_dir():
                yield from self._walk(top, f"{name}/")
            elif not entry.is_file():
                self.skipped[path] = "neither a file nor a folder"
            elif self._knows(path):
                yield _File(path, name, _real_path(path))
            else:
                ending = path.suffix.lower()
                hint = f"; to read it as text: --as {ending}=.txt" if _is_text(path) else ""
                self.skipped[path] = f"no reader for {ending}{hint}"

    def _knows(self, path: Path) -> bool:
        return path.suffix.lower() in RECORD_READERS or self._readers.knows(path)

    def _read_file(self, file: _File) -> Iterator[Document | Problem]:
        ending, before = file.path.suffix.lower(), self.bytes
        holds_records = ending in RECORD_READERS and not self._readers.knows(file.path)
        read = RECORD_READERS[ending] if holds_records else self._read_whole
        problems = 0
        try:
            for item, end in read(file.path, file.id):
                self.bytes = before + end
                finished = self._finish(item, file.real_path)
                problems += isinstance(finished, Problem)
                if isinstance(finished, Document) or problems <= _MAX_PROBLEMS:
                    yield finished
        except (OSError, ValueError) as error:
            yield self._finish(Problem(str(file.path), reason(error)), file.real_path)
        if problems > _MAX_PROBLEMS:
            yield self._finish(Problem(str(file.path), f"{problems - _MAX_PROBLEMS:,} more problems"), file.real_path)
        self.bytes = before + file.size

    def _read_whole(self, path: Path, file_id: str) -> Records:
        """Read a file as one document, in the way of `read_jsonl`."""
        content, size = self._readers.read(path), path.stat().st_size
        yield from ((Problem(str(path), part), size) for part in content.left_out)
        title, metadata = content.title or path.stem.replace("_", " "), to_json(dict(content.metadata))
        yield Document(file_id, title, content.text, str(path), metadata, content.page_starts, has_own_id=False), size

    def _read_object(self, item: DocumentObject, place: str) -> Document | Problem:
        fields, own_id = (item, item.get("id")) if isinstance(item, Mapping) else (item.metadata, item.id)
        if own_id is not None or fields.get("source") is not None:
            place += f" (source {_show(str(fields['source']))})" if own_id is None else f" (id {_show(own_id)})"
        # Sets have another order in each process.
        fields = {k: sorted(v, key=str) if isinstance(v, set | frozenset) else v for k, v in fields.items()}
        try:
            metadata = to_json(fields)
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
        return document

    def _make_id(self, document: Document) -> str:
        """Return an id from a document's source and its place in it, with a number if another has it, else a hash."""
        metadata = document.metadata
        source = metadata.get("source")
        if not isinstance(source, str) or not source.strip():
            content = json.dumps([document.title, document.text, dict(metadata)], sort_keys=True)
            return hashlib.sha256(content.encode()).hexdigest()[:_HASH_LENGTH]
        places = [f"{name}={metadata[name]}" for name in _PLACES if isinstance(metadata.get(name), str | int)]
        document_id = place = f"{source}#{'&'.join(places)}" if places else source
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
            if not is_id(document_id):
                item = Problem(source, f"id {_show(document_id)} {_WRONG_ID}")
            elif not item.text.strip():
                item = Problem(source, "empty document")
            else:
                title = shorten(clean_characters(item.title), _MAX_TITLE)
                return replace(item, id=document_id, title=title, source=source, file=file)
        self.failures.add(file)
        return Problem(source, clean_characters(item.reason))


def _is_object(item: object) -> TypeIs[DocumentObject]:
    from langchain_core.documents import Document as LangChainDocument

    return isinstance(item, Mapping | LangChainDocument)


def _show(value: object) -> str:
    return shorten(repr(value), _MAX_SHOWN)


def _real_path(path: Path) -> str:
    r"""Return a path without links, as a text that can be stored: with `\\xff` for what is not UTF-8 in it."""
    return os.fsencode(os.path.realpath(path)).decode("utf-8", "backslashreplace")


def _is_text(path: Path) -> bool:
    """Return whether a file begins with text."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_SAMPLE_CHARACTERS)
    except (OSError, UnicodeDecodeError):
        return False
    return bool(text) and "\0" not in text
