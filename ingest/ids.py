"""Matches the documents that are read to those of the index, and gives them their ids.

1. A record or an object with its own id is the document with that id.
2. A file whose path is in the index keeps its id, whatever folder it is ingested with.
3. A new file that is equal to one that is gone from the folders, or has its content, is that file, moved: it keeps the
   other's id. If several such files are gone, it gets the first of their ids. A file of many documents has the other's
   content if its name and its first document are the same.
4. Any other new file gets its path relative to the folder that is ingested, with `~2` after it if another file has
   that id. If that other file is gone, the folder was moved, and the new file takes its place.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property

from arag.ingest.documents import Document, Problem, title_of_file
from arag.ingest.reading import SourceReader
from arag.ingest.records import EXTENSIONS_OF_MANY
from arag.ingest.writer import fingerprint_of
from arag.retrieval.storage.file_ids import path_of, split_id
from arag.retrieval.storage.fingerprints import content_of, file_hash_of
from arag.retrieval.storage.records import Settings
from arag.retrieval.storage.sql import TableReader


@dataclass(frozen=True, slots=True)
class _MovedKey:
    """Equal for two documents if one may be the other, moved."""

    sameness: str  # the hash of the file, or the part of the fingerprint for the content
    part: str  # `#2` for the second record of a file; empty for a file that is one document
    file_name: str  # of a file of many documents whose hash differs; empty for others, which may be renamed


class IdAssigner:
    """Gives the documents of one ingestion their ids.

    Args:
        known: The index.
        settings: The settings that the documents are cut with.
        reader: What reads them.

    Attributes:
        used: The sources of the documents so far, by id.
    """

    def __init__(self, known: TableReader, settings: Settings, reader: SourceReader) -> None:
        self.used: dict[str, str] = {}
        self._known = known
        self._settings = settings
        self._reader = reader

    def assign(self, document: Document) -> Document | Problem:
        """Return a document with its id in the index, or a problem if another document of this run has that id."""
        if not document.has_own_id:
            document = self._assign_by_file(document)
        if document.id in self.used:
            return Problem(document.source, f"duplicate id {document.id!r}, already used by {self.used[document.id]}")
        self.used[document.id] = document.source
        return document

    def _assign_by_file(self, document: Document) -> Document:
        path_below_folder, part = split_id(document.id, document.file)
        file_id = self._ids_by_path.get(document.file)
        if file_id is None:
            file_id = self._find_moved(document) or self._make_id(path_below_folder)
            self._ids_by_path[document.file] = file_id
            self._paths_by_id[file_id] = document.file
        document = replace(document, id=file_id + part)
        if document.title == title_of_file(document.file):  # a file that was renamed keeps its id
            return replace(document, title=title_of_file(path_of(file_id)))
        return document

    def _find_moved(self, document: Document) -> str | None:
        """Return the id of a file that is gone, and was equal or had this content."""
        if not self._gone_ids:
            return None
        for key in _moved_keys(fingerprint_of(document, self._settings), document.id, document.file):
            ids = self._gone_ids.get(key, [])
            while ids:
                file_id = ids.pop(0)
                if not self._is_taken(file_id):
                    return file_id
        return None

    def _make_id(self, path: str) -> str:
        """Return an id for a new file: its path, with a number if an existing file has that id."""
        file_id = path
        number = 1
        while self._is_taken(file_id):
            number += 1
            file_id = f"{path}~{number}"
        return file_id

    def _is_taken(self, file_id: str) -> bool:
        """Return whether the file with an id exists."""
        return os.path.lexists(self._paths_by_id.get(file_id, ""))

    @cached_property
    def _ids_by_path(self) -> dict[str, str]:
        """The ids of the index's files."""
        ids: dict[str, str] = {}
        for record in self._known.documents():
            if not record.source:
                continue
            file_id, _ = split_id(record.id, record.source)
            # A record may have its own id, which says nothing about its file's.
            is_of_file = _file_name(path_of(file_id)) == _file_name(record.source)
            if is_of_file or file_hash_of(record.fingerprint) or not _holds_records(record.source):
                ids.setdefault(record.source, file_id)
        return ids

    @cached_property
    def _paths_by_id(self) -> dict[str, str]:
        return {file_id: path for path, file_id in self._ids_by_path.items()}

    @cached_property
    def _gone_ids(self) -> dict[_MovedKey, list[str]]:
        """The ids of files that are gone from the folders, by all that a moved file may have in common with them."""
        ids: dict[_MovedKey, list[str]] = {}
        for record in self._known.documents():
            if record.source in self._ids_by_path and self._reader.is_gone(record.source):
                for key in _moved_keys(record.fingerprint, record.id, record.source):
                    ids.setdefault(key, []).append(self._ids_by_path[record.source])
        return ids


def _moved_keys(fingerprint: str, document_id: str, file: str) -> list[_MovedKey]:
    """Return the keys of a document, the surest first."""
    _, part = split_id(document_id, file)
    file_hash = file_hash_of(fingerprint)
    by_content = _MovedKey(content_of(fingerprint), part, _file_name(file) if part else "")
    return [_MovedKey(file_hash, part, ""), by_content] if file_hash else [by_content]


def _holds_records(file: str) -> bool:
    return file.lower().endswith(EXTENSIONS_OF_MANY)


def _file_name(file: str) -> str:
    return os.path.basename(file)  # noqa: PTH119 - a Path would be slow for many files
