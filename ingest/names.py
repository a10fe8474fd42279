"""The ids of documents in an index: which document of the index a document that was read is.

A document with an id of its own is the document with that id. A file keeps the id that it was given first, whatever
path leads to it later. A new file gets its path relative to what was ingested; where another file has that id, with as
many of the folders above it as make it unique.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from arag.ingest.documents import Document, Problem, file_of
from arag.retrieval.storage import DocumentRecord, Draft

_NUMBER = re.compile(r"#\d+$")  # of a record without an id of its own


class Names:
    """Gives the documents of one run their ids.

    Args:
        draft: What the index holds.
        fingerprint: Returns the fingerprint that the index keeps of a document.
        folders: The folders that were given so far.
    """

    def __init__(self, draft: Draft, fingerprint: Callable[[Document], str], folders: Sequence[Path]) -> None:
        self._draft = draft
        self._fingerprint = fingerprint
        self._folders = folders
        self._used: dict[str, str] = {}  # ids of this run: where each document came from
        self._known: dict[str, str] | None = None  # ids of the index's files by their places
        self._files: set[str] = set()  # where the files of this run's documents really are
        self._last = ""  # of them, as it was written

    def __contains__(self, document_id: str) -> bool:
        """Return whether a document of this run has the id."""
        return document_id in self._used

    def is_gone(self, record: DocumentRecord) -> bool:
        """Return whether a document of the index, which is none of this run, is not in the given sources any more.

        Its file was read without it, or is not there although a folder above it was given. A file that is there but was
        not read says nothing: it may be hidden, or have no reader this time.
        """
        file = file_of(record.source)
        if os.path.realpath(file) in self._files:
            return True
        return not os.path.lexists(file) and self._is_below_given(file)

    def _is_below_given(self, file: Path) -> bool:
        parents = {str(parent) for parent in file.parents}
        return any(not parents.isdisjoint((os.path.abspath(f), os.path.realpath(f))) for f in self._folders)  # noqa: PTH100

    def name(self, document: Document) -> Document | Problem:
        """Return a document with its id in the index, or the problem that another document of this run has it."""
        if document.origin is None:
            self._add_file(document.source)
        if document.named_by_path:
            document = self._name_file(document)
        if (other := self._used.get(document.id)) is not None:
            return Problem(document.source, f"duplicate id {document.id!r}, already used by {other}")
        self._used[document.id] = document.source
        return document

    def _add_file(self, source: str) -> None:
        file = _file(source)
        if file != self._last:  # a file may have many records
            self._files.add(os.path.realpath(file))
            self._last = file

    def _name_file(self, document: Document) -> Document:
        there = self._record(document.id)
        if there is not None and _is_same_file(there, document):
            return _keep(document, there)
        known = self._record(self._find(document) or "")
        if known is not None:
            return _keep(document, known)
        for document_id in _list_ids(document):
            if document_id not in self._used:
                if document_id != document.id:
                    there = self._record(document_id)
                named = replace(document, id=document_id)
                if there is None or self._is_moved(there, named):
                    return named
                if _is_same_file(there, document):
                    return _keep(document, there)
        return document

    def may_replace(self, known: DocumentRecord, document: Document) -> bool:
        """Return whether a document that was named is the one that the index has under this id now.

        Another process may have given the id to another file meanwhile.
        """
        return not document.named_by_path or _is_same_file(known, document) or self._is_moved(known, document)

    def _is_moved(self, known: DocumentRecord, document: Document) -> bool:
        """Return whether a document may have the id of one whose file is gone: that file may only be out of reach."""
        if not known.source or os.path.lexists(file := file_of(known.source)):
            return False
        return known.fingerprint == self._fingerprint(document) or self._is_below_given(file)

    def _record(self, document_id: str) -> DocumentRecord | None:
        """Return what the index has of an id that is still free in this run."""
        return None if not document_id or document_id in self._used else self._draft.document(document_id)

    def _find(self, document: Document) -> str | None:
        """Return the id that the index has for a file, whatever path led to it."""
        if self._known is None:
            self._known = {}
            for record in self._draft.documents():
                if _is_named_by_path(record):
                    self._known.setdefault(_place(record.id, record.source), record.id)
        return self._known.get(_place(document.id, document.kept_source))


def _keep(document: Document, known: DocumentRecord) -> Document:
    """Return a document as the one that the index knows: with the path that its id was made from."""
    file, known_file = file_of(document.kept_source), file_of(known.source)
    place = document.kept_source.removeprefix(str(file))
    title = known_file.stem if document.title == file.stem else document.title
    return replace(document, id=known.id, title=title, origin=f"{known_file}{place}")


def _list_ids(document: Document) -> Iterator[str]:
    """Yield the ids that a file may have: its own one, then with more and more of the folders above it."""
    yield document.id
    number = _number(document.id)
    parts = file_of(document.kept_source).parts
    for start in range(len(parts) - 2 - document.id.count("/"), 0, -1):
        yield "/".join(parts[start:]) + number


def _is_same_file(known: DocumentRecord, document: Document) -> bool:
    if not known.source or _number(known.id) != _number(document.id):
        return False
    one, other = _file(known.source), _file(document.kept_source)
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def _is_named_by_path(record: DocumentRecord) -> bool:
    file = _file(record.source) if record.source else ""
    return bool(file) and os.path.basename(file) == _NUMBER.sub("", record.id).rpartition("/")[2]  # noqa: PTH119


def _place(document_id: str, source: str) -> str:
    """Return what identifies a file, or a record in it that has no id of its own, however its path is written."""
    return os.path.realpath(_file(source)) + _number(document_id)


def _number(document_id: str) -> str:
    found = _NUMBER.search(document_id)
    return found[0] if found else ""


def _file(source: str) -> str:
    return str(file_of(source))
