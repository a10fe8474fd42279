"""The ids of documents: which document of the index a document is that was read.

1. A record or an object with an id of its own is the document with that id.
2. A file whose path the index records keeps its id, whatever folder it is ingested with.
3. A new file gets its path relative to the folder that is ingested. If another file has that id already, this is a
   problem, unless that file is gone: then the folder was moved, and the new file takes its place.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import cached_property

from arag.ingest.documents import Document, Problem
from arag.ingest.writer import IndexWriter

_RECORD_NUMBER = re.compile(r"#\d+$")  # of a record without an id of its own


class Ids:
    """Gives the documents of one ingestion their ids; `used` has those given, with where each document came from."""

    def __init__(self, writer: IndexWriter) -> None:
        self.used: dict[str, str] = {}
        self._writer = writer

    def assign(self, document: Document) -> Document | Problem:
        """Return a document with its id in the index, or the problem that another one has it."""
        if not document.has_own_id:
            number = _number(document.id)
            file_id = self._files.setdefault(document.file, document.id.removesuffix(number))
            document = replace(document, id=file_id + number)
        if document.id in self.used:
            hint = "" if document.has_own_id else ": ingest the folder above both"
            reason = f"duplicate id {document.id!r}, already used by {self.used[document.id]}{hint}"
            return Problem(document.source, reason)
        if reason := self._writer.find_conflict(document):
            return Problem(document.source, reason)
        self.used[document.id] = document.source
        return document

    @cached_property
    def _files(self) -> dict[str, str]:
        """The ids of the index's files, by their paths."""
        ids: dict[str, str] = {}
        for record in self._writer.draft.documents():
            file_id = record.id.removesuffix(_number(record.id))
            if os.path.basename(record.source) == os.path.basename(file_id):  # noqa: PTH119 - else the id is its own
                ids.setdefault(record.source, file_id)
        return ids


def _number(document_id: str) -> str:
    match = _RECORD_NUMBER.search(document_id)
    return match[0] if match else ""
