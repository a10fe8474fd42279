"""The ids of documents: which document of the index a document is that was read.

1. A record or an object with an id of its own is the document with that id.
2. A file whose path the index records keeps its id, whatever folder it is ingested with.
3. A new file with the content of one that is gone from the folders is that file, moved: it keeps the other's id. Of
   several that are gone, it is the first by id. Files of records must have kept their names.
4. Any other new file gets its path relative to the folder that is ingested, with `~2` after it if another file has
   that id. If that one is gone, the folder was moved, and the new file takes its place.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import cached_property
from itertools import chain, count

from arag.ingest.documents import Document, Problem
from arag.ingest.sources import RECORD_READERS, SourceReader
from arag.ingest.writer import IndexWriter, content_of

_RECORD_NUMBER = re.compile(r"#\d+$")  # of a record without an id of its own
_COPY_NUMBER = re.compile(r"~\d+$")  # of a file whose path below its folder is another file's id


class Ids:
    """Gives the documents of one ingestion their ids; `used` has those given, with where each document came from."""

    def __init__(self, writer: IndexWriter, reader: SourceReader) -> None:
        self.used: dict[str, str] = {}
        self._writer = writer
        self._reader = reader

    def assign(self, document: Document) -> Document | Problem:
        """Return a document with its id in the index, or the problem that another one of this run has it."""
        if not document.has_own_id:
            number = _record_number(document.id)
            if document.file not in self._files:
                file_id = self._find_moved(document) or self._make_id(document.id.removesuffix(number))
                self._files[document.file] = file_id
                self._owners[file_id] = document.file
            document = replace(document, id=self._files[document.file] + number)
        if document.id in self.used:
            return Problem(document.source, f"duplicate id {document.id!r}, already used by {self.used[document.id]}")
        self.used[document.id] = document.source
        return document

    def _find_moved(self, document: Document) -> str | None:
        """Return the id of a file that is gone and had this content."""
        if not self._gone:
            return None
        key = _content_key(self._writer.fingerprint(document), document.id, document.file)
        ids = self._gone.get(key, [])
        while ids:
            if not os.path.lexists(self._owners[file_id := ids.pop(0)]):  # no other file has taken it
                return file_id
        return None

    def _make_id(self, path: str) -> str:
        """Return an id for a new file: its path, with a number if a file that is there has it."""
        names = chain([path], (f"{path}~{number}" for number in count(2)))
        return next(name for name in names if not os.path.lexists(self._owners.get(name, "")))

    @cached_property
    def _files(self) -> dict[str, str]:
        """The ids of the index's files, by their paths."""
        ids: dict[str, str] = {}
        for record in self._writer.draft.documents():
            file_id = record.id.removesuffix(_record_number(record.id))
            path = _COPY_NUMBER.sub("", file_id)
            # A record's id may be its own.
            if record.source and (not _holds_records(record.source) or _name(path) == _name(record.source)):
                ids.setdefault(record.source, file_id)
        return ids

    @cached_property
    def _owners(self) -> dict[str, str]:
        """The paths of the files, by their ids."""
        return {file_id: path for path, file_id in self._files.items()}

    @cached_property
    def _gone(self) -> dict[tuple[str, ...], list[str]]:
        """The ids of files that are gone from the folders, by the content of each document in them."""
        ids: dict[tuple[str, ...], list[str]] = {}
        for record in self._writer.draft.documents():
            if record.source in self._files and self._reader.is_gone(record.source):
                key = _content_key(record.fingerprint, record.id, record.source)
                ids.setdefault(key, []).append(self._files[record.source])
        return ids


def _content_key(fingerprint: str, document_id: str, file: str) -> tuple[str, ...]:
    return content_of(fingerprint), _record_number(document_id), _name(file) if _holds_records(file) else ""


def _holds_records(file: str) -> bool:
    return file.lower().endswith(tuple(RECORD_READERS))


def _name(file: str) -> str:
    return os.path.basename(file)  # noqa: PTH119 - of many files, a Path would be slow


def _record_number(document_id: str) -> str:
    match = _RECORD_NUMBER.search(document_id)
    return match[0] if match else ""
