"""The files that documents were read from, and pictures of the pages of those that are PDFs."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from arag.errors import InputError
from arag.ingest.records import RECORD_READERS
from arag.retrieval.types import DocumentInfo
from arag.system.worker_pool import WorkerPool
from arag.system.worker_process import RaisedInWorkerError, WorkerError

_MEMORY_BYTES = 1_000_000_000  # as readers of PDFs have
_SECONDS = 20


def find_original(document: DocumentInfo) -> Path | None:
    """Return the file that a document was read from, if it still lies there and holds this document alone.

    A file of records or emails holds documents, too, that the scope may hide. A record's own field `source` may name
    any file.
    """
    path = Path(document.source)
    is_its_own = document.source != document.metadata.get("source")
    if not path.is_absolute() or not is_its_own or path.suffix.lower() in RECORD_READERS:
        return None
    if f"{path.name}#" in document.id:  # one email of many
        return None
    try:
        is_file = stat.S_ISREG(path.lstat().st_mode)  # neither a link nor a pipe that somebody has put there
    except (OSError, ValueError):
        return None
    return path if is_file and os.path.realpath(path) == str(path) else None


def is_pdf(path: Path | None) -> bool:
    """Return whether pictures of a file's pages can be drawn."""
    return path is not None and path.suffix.lower() == ".pdf"


def find_page(path: Path, texts: Sequence[str], pages: tuple[int, int]) -> tuple[int, bool]:
    """Return the page of a PDF that has most of some sentences, and whether they were found there."""
    number, is_found = _call("find_page", str(path), list(texts), *pages)
    return number, is_found


def count_pages(path: Path) -> int:
    """Return how many pages a PDF has."""
    number: int = _call("count_pages", str(path))
    return number


def draw_page(path: Path, number: int, texts: Sequence[str]) -> bytes:
    """Return a page of a PDF with sentences marked, as a PNG file."""
    picture: bytes = _call("draw_page", str(path), number, list(texts)).tobytes()
    return picture


def _call(function: str, *arguments: Any) -> Any:
    """Call a function of the worker process.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        with _make_pool().worker() as worker:
            return worker.call(function, *arguments, seconds=_SECONDS)
    except (RaisedInWorkerError, WorkerError) as error:
        raise InputError(f"the page cannot be drawn: {error}") from error


@cache
def _make_pool() -> WorkerPool:
    return WorkerPool("arag.web.pictures", memory_bytes=_MEMORY_BYTES, running=2, idle=2)
