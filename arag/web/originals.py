"""The files that documents were read from, and pictures of the pages of PDFs: if none can be drawn, an InputError."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from arag.errors import InputError
from arag.ingest.reading import hash_file
from arag.ingest.records import RECORD_READERS
from arag.retrieval.types import DocumentInfo
from arag.system.worker_pool import WorkerPool
from arag.system.worker_process import RaisedInWorkerError, WorkerError

_SECONDS = 20  # for a page
_POOL = WorkerPool("arag.web.pictures", memory_bytes=1_000_000_000, running=2, idle=2)


def find_original(document: DocumentInfo) -> tuple[Path | None, str]:
    """Return the file that a document was read from, if it is the same and holds this document alone; else a note."""
    path = Path(document.source)
    # A file of records or emails may hold documents that the scope hides. It may have been renamed.
    is_unmoved = document.source.endswith(document.id)
    holds_others = path.suffix.lower() in RECORD_READERS or ("#" in document.id and not is_unmoved)
    if document.source == document.metadata.get("source", ""):  # a record's own may name any file
        return None, ""
    if not os.path.lexists(path):
        return None, "The file is not where it was when it was read: only its text can be shown."
    if holds_others or path.is_symlink() or not path.is_file():
        return None, ""
    try:
        has_changed = document.file_hash != "" and hash_file(path) != document.file_hash
    except OSError:  # it may not be read, or has just gone
        return None, "The file cannot be read: only its text can be shown."
    if has_changed:
        return None, "The file has changed since it was read: only the text from before can be shown."
    return path, ""


def start_drawing() -> None:
    """Start the process that draws pages, so that the first picture does not wait for it."""
    with suppress(WorkerError, RaisedInWorkerError), _POOL.worker() as worker:
        worker.call("get_ready", seconds=_SECONDS)


def find_page(path: Path, text: str, spans: Sequence[tuple[int, int]], pages: tuple[int, int]) -> tuple[int, int, int]:
    """Return the page of a PDF, between two, with the first of a text's sentences, its place in percent, the last."""
    return tuple(_call_worker("find_page", str(path), text, list(spans), *pages))


def draw_page(path: Path, text: str, spans: Sequence[tuple[int, int]], page: int) -> bytes:
    """Draw a page of a PDF with some sentences of a text marked: a PNG file."""
    return bytes(_call_worker("draw_page", str(path), text, list(spans), page))


def _call_worker(name: str, *arguments: Any) -> Any:
    try:
        with _POOL.worker() as worker:
            return worker.call(name, *arguments, seconds=_SECONDS)
    except (RaisedInWorkerError, WorkerError) as error:
        raise InputError(f"the page cannot be drawn: {error}") from error
