"""Checks Chroma's folder before Chroma opens it.

A folder may come from somebody else, and Chroma does what its database says: it imports and calls the embedding
function that a collection names, with the arguments given there. So a database with anything in it that
`arag.retrieval.local.sentence_writer` never writes is not opened.
"""

from __future__ import annotations

import json
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

from arag.errors import IndexFormatError
from arag.retrieval.local.database import check_surroundings

COLLECTION = "sentences"
DATABASE = "chroma.sqlite3"

_NO_FUNCTION = ({"type": "legacy"}, {"type": "unknown"})  # what Chroma writes where a collection has none
_SEGMENTS = {"urn:chroma:segment/vector/hnsw-local-persisted", "urn:chroma:segment/metadata/sqlite"}
_WORD_TABLE = "embedding_fulltext_search"  # Chroma's only virtual table


def check_database(folder: Path, *, pages: bool = False) -> None:
    """Check that a folder's database holds only what arag writes, before Chroma opens it.

    Args:
        folder: Chroma's folder.
        pages: Also let SQLite check the whole file.

    Raises:
        IndexFormatError: It is damaged, or has something in it that arag never writes, such as the name of an
            embedding function, which Chroma would import.
    """
    database = folder / DATABASE
    if folder.is_symlink() or not folder.is_dir():
        raise IndexFormatError(f"{folder} is missing, or not a folder")
    try:
        inside = list(folder.rglob("*"))
    except FileNotFoundError as error:  # a writer deletes what its generation replaces
        raise IndexFormatError(f"{folder} is being deleted") from error
    for path in inside:
        try:
            kind = path.lstat().st_mode
        except FileNotFoundError:  # the journal of another reader
            continue
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            raise IndexFormatError(f"{path} is neither a file nor a folder")
    check_surroundings(database)
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=rw", uri=True, timeout=30)) as connection:
            reason = _find_strangeness(connection, pages=pages)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        reason = str(error)
    if reason:
        raise IndexFormatError(f"{database} is damaged, or not written by arag: {reason}")


def _find_strangeness(connection: sqlite3.Connection, *, pages: bool) -> str:
    """Return what a Chroma database holds that arag never writes, or an empty string."""
    connection.execute("PRAGMA trusted_schema = OFF")
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master"):
        if kind not in {"table", "index"} or (name != _WORD_TABLE and "virtual" in str(sql).lower()[:20]):
            return f"it has a {kind} {name}"
    settings = connection.execute("SELECT 1 FROM collection_metadata UNION SELECT 1 FROM segment_metadata").fetchone()
    segments = {kind for (kind,) in connection.execute("SELECT type FROM segments")}
    collections = connection.execute("SELECT name, config_json_str, schema_str FROM collections").fetchall()
    if settings or segments != _SEGMENTS or [name for name, _, _ in collections] != [COLLECTION]:
        return "it has other collections or other settings"
    try:
        if any(_names_function(json.loads(text or "null")) for text in collections[0][1:]):
            return "it names an embedding function"
    except (ValueError, TypeError, RecursionError) as error:
        return f"the settings of its collection cannot be read: {error}"
    faults = [row[0] for row in connection.execute("PRAGMA quick_check")] if pages else []
    return "; ".join(str(fault) for fault in faults[:3] if fault != "ok")


def _names_function(settings: Any) -> bool:
    """Return whether a collection's settings, or a part of them, name an embedding function."""
    if isinstance(settings, dict):
        return any(
            (value is not None and value not in _NO_FUNCTION) if "function" in key else _names_function(value)
            for key, value in settings.items()
        )
    return isinstance(settings, list) and any(map(_names_function, settings))
