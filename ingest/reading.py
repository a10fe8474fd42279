"""Reads sources into documents, one at a time: files, folders, LangChain documents, dictionaries, iterables of them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arag.ingest.documents import Document, Problem, title_of_file
from arag.ingest.formats import Readers
from arag.ingest.formats.content import JSON, Content, FormatError, clean_characters, clean_text, reason
from arag.ingest.formats.mailbox import find_mails
from arag.ingest.formats.plain_titles import opening_heading
from arag.ingest.listing import ListedFile, ListedObject, Listing
from arag.ingest.record_fields import FieldNames
from arag.ingest.records import NO_NAMES, RECORD_READERS, ReadItem, find_fault_of_id, read_record, to_json
from arag.ingest.sentences import split_sentences
from arag.ingest.workload import Workload
from arag.text.normalise import count, shorten

if TYPE_CHECKING:
    from langchain_core.documents import Document as LangChainDocument

    from arag.ingest.listing import Sources

# Metadata in which loaders and text splitters say where in its source a document is.
_PLACES = ("page", "page_number", "row", "seq_num", "start_index")
_HASH_LENGTH = 16  # hexadecimal digits, 64 bits: enough to tell the documents of a corpus apart
_FILE_HASH_LENGTH = 32  # hexadecimal digits: 128 bits: two files never share a hash by chance
_MAX_SHOWN = 100  # characters of an id in a message
_MAX_TITLE = 1_000  # characters: every chunk and every result repeats the title
_MAX_AHEAD = 20_000_000  # characters of files that are read before their turn: they are held in memory
_SECONDS_AHEAD = 10.0  # for files that are read before their turn, beyond a sample
_SAMPLE_CHARACTERS = 6_000  # of each of these: they tell how many sentences a text has
_LARGE = 1_000_000  # bytes: such a file may take seconds to read
MAX_PROBLEMS = 100  # of one file that are named one by one
_COMMON_NAME = re.compile(
    r"(?:readme|read me|index|main|default|home|intro(?:duction)?|overview)(?:[-. ]\w+)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Ahead:
    """The content of a file that was read before its turn."""

    content: Content
    changed: int  # when the file was changed last, in nanoseconds


class SourceReader:
    """Reads the sources of one ingestion; `Listing` says which files are read.

    Attributes:
        bytes: Bytes of the files read so far; for objects given in Python, the characters of their texts.
        total: The value of `bytes` at the end; None if the sources can be iterated only once.
        workload: The work of the ingestion, for its progress.
        show_large_file: Called with the name of each large file before it is read.
        show_file_read: Called when everything of a file was read.
        folders: The absolute paths of the folders, without links.
        files: The absolute paths of all files, without links.
        failures: The absolute paths of the files and folders that could not be read, or only in part.
        failed: The absolute paths of those files, by the names in their problems.
        skipped: The entries of folders that were skipped, and why.

    Raises:
        InputError: A source is not valid; see `Listing`.
    """

    def __init__(
        self,
        sources: Sources,
        readers: Readers,
        target: Path | None = None,
        names: FieldNames = NO_NAMES,
        ignore: Iterable[str] = (),
        show_found: Callable[[int], None] = lambda _files: None,
    ) -> None:
        self._names = names
        self._listing = Listing(sources, readers, target, ignore, show_found)
        self._readers = readers
        self._ids_made = Counter[str]()  # the ids made from metadata, with the last number after each
        self.bytes = 0
        self._resumed = 0.0  # when the reading of a file went on, by a clock
        sizes = self._listing.sizes
        self.total = None if sizes is None else sum(sizes.values())
        self.workload = Workload(sizes or {})
        self.show_large_file: Callable[[str], None] = lambda _name: None
        self.show_file_read: Callable[[], None] = lambda: None
        self.folders = self._listing.folders
        self.files = self._listing.files
        self.failures = self._listing.failures
        self.failed: dict[str, str] = {}
        self.skipped = self._listing.skipped
        self._ahead: dict[Path, _Ahead] = {}

    def read_sample(self, show: Callable[[], None]) -> None:
        """Read some new files before their turn, for a few seconds: they show how long the others will take.

        With OCR, none: its pages take far longer than all else.

        Args:
            show: Called before each of them.
        """
        sample, others = self.workload.choose_sample()
        if not sample or self._readers.scans is not None:  # the sources may be an iterable
            return
        files = {listed.real_path: listed for listed in self._listing if isinstance(listed, ListedFile)}
        began = time.monotonic()
        characters = 0
        for place, path in enumerate([*sample, *others]):
            is_long = place >= len(sample) and time.monotonic() - began > _SECONDS_AHEAD
            if is_long or characters > _MAX_AHEAD:
                return
            show()
            content = self._read_ahead(files[path])
            characters += len(content.text)
            if place < len(sample):
                self._count_sentences(content)

    def _read_ahead(self, file: ListedFile) -> Content:
        """Read a file, hold its content until its turn, and return it.

        If it cannot be read, that is said when its turn comes.
        """
        if file.size >= _LARGE:
            self.show_large_file(file.path.name)
        began = time.monotonic()
        with suppress(OSError, ValueError):
            if not self._readers.knows(file.path) or self._readers.is_mailbox(file.path):
                return Content("", "")
            changed = file.path.stat().st_mtime_ns
            content = self._readers.read(file.path)
            self._ahead[file.path] = _Ahead(content, changed)
            ahead = self._readers.take_seconds_ahead()
            self.workload.read_ahead(ahead)
            self.workload.sample(file.real_path, len(content.text), time.monotonic() - began - ahead)
            return content
        return Content("", "")

    def _count_sentences(self, content: Content) -> None:
        """Count the sentences at the beginning of a text: most texts are no longer."""
        part = content.text[:_SAMPLE_CHARACTERS]
        sentences = split_sentences(part, guess_headings=not content.marks_headings, is_code=content.is_code)
        self.workload.sample_sentences(len(part), sum(sentence.embedded for sentence in sentences))

    def read(self) -> Iterator[Document | Problem]:
        """Yield the documents and, in the place of those that cannot be read, problems."""
        for listed in self._listing:
            if isinstance(listed, ListedFile):
                yield from self._read_file(listed)
                self.workload.finish_file()
                self.show_file_read()
            elif isinstance(listed, ListedObject):
                self.bytes += listed.size
                self.workload.read("", listed.size, listed.size, 0.0)
                yield self._finish(self._read_object(listed))
            else:
                yield self._finish(listed)

    def list_skipped(self) -> tuple[Problem, ...]:
        """Return the entries of folders that were skipped, and why."""
        return tuple(Problem(str(path), why) for path, why in sorted(self.skipped.items()))

    def list_read_as(self) -> tuple[Problem, ...]:
        """Return the files that were read as something else than their names say."""
        found = sorted(self._readers.read_as.items())
        return tuple(Problem(str(path), f"{kind}, by its content") for path, kind in found)

    def is_gone(self, file: str) -> bool:
        """Return whether a file was below one of the folders and is no longer there, or left out by a rule."""
        if file in self.files:
            return False
        paths = {file, *map(str, Path(file).parents)}
        if not paths.isdisjoint(self._listing.ignored):
            return True
        if os.path.lexists(file):  # a disk may take long to tell
            return False
        is_below = not paths.isdisjoint(self.folders)
        was_read = paths.isdisjoint(self.failures)
        return is_below and was_read

    def _read_file(self, file: ListedFile) -> Iterator[Document | Problem]:
        start = self.bytes
        problems = 0
        self._resumed = time.monotonic()
        if file.size >= _LARGE:
            self.show_large_file(file.path.name)
        try:
            for item, end in _with_file_hash(self._read_items(file), file.path):
                self._count_read(file, start + end, len(item.text) if isinstance(item, Document) else 0)
                finished = self._finish(item, file.real_path)
                if isinstance(finished, Problem):
                    problems += 1
                    if problems > MAX_PROBLEMS:
                        continue
                yield finished
                self._resumed = time.monotonic()
        except (OSError, ValueError) as error:
            yield self._finish(Problem(str(file.path), reason(error)), file.real_path)
        if problems > MAX_PROBLEMS:
            more = problems - MAX_PROBLEMS
            rest = Problem(str(file.path), count(more, "more problem"), more)
            yield self._finish(rest, file.real_path)
        self._count_read(file, start + file.size)

    def _count_read(self, file: ListedFile, end: int, characters: int = 0) -> None:
        """Count what was read up to an offset, with the time that it took."""
        seconds = time.monotonic() - self._resumed
        ahead = self._readers.take_seconds_ahead()
        self.workload.read_ahead(ahead)
        self.workload.read(file.real_path, end - self.bytes, characters, seconds - ahead)
        self.bytes = end
        self._resumed = time.monotonic()

    def _read_items(self, file: ListedFile) -> Iterator[ReadItem]:
        """Read one document, or several records. A reader that the user gives for an extension comes first."""
        if self._readers.is_mailbox(file.path):
            return self._read_mailbox(file.path, file.id)
        if self._readers.knows(file.path):
            return self._read_whole(file.path, file.id)
        if file.size == 0:
            raise FormatError("the file is empty")
        read = RECORD_READERS.get(file.path.suffix.lower())
        if read is None:
            raise FormatError("it has changed since it was found")
        return read(file.path, file.id, self._names)

    def _read_whole(self, path: Path, file_id: str) -> Iterator[ReadItem]:
        """Read a file as one document, after the problems with parts of it."""
        ahead = self._ahead.pop(path, None)
        if ahead is not None and ahead.changed == path.stat().st_mtime_ns:
            content = ahead.content
        else:
            content = self._readers.read(path)
        if content.why_skipped:
            self.skipped[path] = content.why_skipped
            return
        size = path.stat().st_size
        for part in content.damage:
            yield ReadItem(Problem(str(path), part), size)
        yield ReadItem(_to_document(content, file_id, path), size)

    def _read_mailbox(self, path: Path, file_id: str) -> Iterator[ReadItem]:
        """Read each email of a mailbox; its id ends in its `Message-ID`, or in its number if it has none of its own."""
        used: set[str] = set()
        for number, (start, end, message_id) in enumerate(find_mails(path), 1):
            own_id = message_id or str(number)
            if own_id in used:  # a copy of the same email
                own_id = f"{own_id}~{number}"
            used.add(own_id)
            place = f"{path}, email {number}"
            try:
                content = self._readers.read_mail_at(path, start, end)
            except FormatError as error:
                yield ReadItem(Problem(place, str(error)), end)
                continue
            document = _to_document(content, f"{file_id}#{own_id}", path)
            yield ReadItem(replace(document, source=place), end)
        if not used:
            raise FormatError("a mailbox without emails")

    def _read_object(self, listed: ListedObject) -> Document | Problem:
        item = listed.item
        place = _describe_place(listed)
        try:
            if isinstance(item, Mapping):
                document = read_record(_to_metadata(item), "", place, self._names)
            else:
                document = _from_langchain(item, place)
        except ValueError as error:
            return Problem(place, str(error))
        if document.has_own_id:
            return document
        return replace(document, id=self._make_id(document), has_own_id=True)

    def _make_id(self, document: Document) -> str:
        """Make an id from a document's source and its place in it, with a number if another has it, else a hash."""
        metadata = document.metadata
        source = metadata.get("source")
        if not isinstance(source, str) or not source.strip():
            return _hash_of(document)
        places = [f"{name}={metadata[name]}" for name in _PLACES if isinstance(metadata.get(name), str | int)]
        base = f"{source}#{'&'.join(places)}" if places else source
        document_id = base
        while document_id in self._ids_made:  # it may also be the name of another source
            self._ids_made[base] += 1
            document_id = f"{base}#{self._ids_made[base]}"
        self._ids_made[document_id] = 1
        return document_id

    def _finish(self, item: Document | Problem, file: str = "") -> Document | Problem:
        """Return a document with clean fields, or the problem with it."""
        source = clean_characters(item.source)
        if isinstance(item, Problem):
            self.failures.add(file)
            self.failed[source] = file
            return replace(item, source=source, reason=clean_characters(item.reason))
        document_id = clean_characters(item.id).strip()
        fault = find_fault_of_id(document_id)
        if fault:
            return self._fail(file, source, clean_characters(f"id {_show(document_id)} {fault}"))
        if not item.text.strip():
            lost = f"; not read: {', '.join(item.left_out)}" if item.left_out else ""
            return self._fail(file, source, f"empty document{lost}")
        return replace(
            item,
            id=document_id,
            title=shorten(clean_characters(item.title), _MAX_TITLE),
            source=source,
            file=file,
            end=self.bytes,
        )

    def _fail(self, file: str, source: str, fault: str) -> Problem:
        self.failures.add(file)
        self.failed[source] = file
        return Problem(source, fault)


def _title_without_own(text: str, path: Path) -> str:
    """Return the heading with which a text begins if its file has a name that many have, such as README; else this."""
    name = title_of_file(str(path))
    if _COMMON_NAME.fullmatch(name):
        return opening_heading(text) or name
    return name


def _to_document(content: Content, document_id: str, path: Path) -> Document:
    return Document(
        id=document_id,
        title=content.title or _title_without_own(content.text, path),
        text=content.text,
        source=str(path),
        metadata=to_json(dict(content.metadata)),
        page_starts=content.page_starts,
        has_own_id=False,
        left_out=content.left_out,
        ocr_pages=content.ocr_pages,
        marks_headings=content.marks_headings,
        headings_apart=content.headings_apart,
        is_plain=content.is_plain,
        is_code=content.is_code,
        barred_lines=content.barred_lines,
    )


def _describe_place(listed: ListedObject) -> str:
    """Return an object's place among the sources, with its id or its source if it has one."""
    item = listed.item
    if isinstance(item, Mapping):
        own_id = item.get("id")
        source = item.get("source")
    else:
        own_id = item.id
        source = item.metadata.get("source")
    if own_id is not None:
        return f"{listed.place} (id {_show(own_id)})"
    if source is not None:
        return f"{listed.place} (source {_show(str(source))})"
    return listed.place


def _from_langchain(item: LangChainDocument, place: str) -> Document:
    metadata = _to_metadata(item.metadata)
    title = metadata.get("title")
    return Document(
        id=item.id or "",
        title=title if isinstance(title, str) else "",
        text=clean_text(item.page_content),
        source=place,
        metadata=metadata,
        has_own_id=item.id is not None,
    )


def _to_metadata(fields: Mapping[str, Any]) -> dict[str, JSON]:
    """Convert fields to JSON. Sets are sorted, because their order differs between processes."""
    converted: dict[str, Any] = {}
    for name, value in fields.items():
        converted[name] = sorted(value, key=str) if isinstance(value, set | frozenset) else value
    metadata: dict[str, JSON] = to_json(converted)
    return metadata


def _hash_of(document: Document) -> str:
    content = json.dumps([document.title, document.text, dict(document.metadata)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:_HASH_LENGTH]


def _with_file_hash(items: Iterable[ReadItem], path: Path) -> Iterator[ReadItem]:
    """Give the documents whose ids are made from their file's path the hash of the file."""
    file_hash = ""
    for item, end in items:
        if isinstance(item, Problem) or item.has_own_id:
            yield ReadItem(item, end)
            continue
        file_hash = file_hash or hash_file(path)
        yield ReadItem(replace(item, file_hash=file_hash), end)


def hash_file(path: Path) -> str:
    """Return the hash of a file's bytes, as an index keeps it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_FILE_HASH_LENGTH]


def _show(value: object) -> str:
    return shorten(repr(value), _MAX_SHOWN)
