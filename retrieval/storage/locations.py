"""The location of an index: a folder, or the address of a PostgreSQL database."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from arag.errors import InputError
from arag.retrieval.storage.contract import IndexStore
from arag.retrieval.storage.folder.store import FolderStore, is_index
from arag.retrieval.storage.postgres.location import SCHEMES, PostgresLocation

__all__ = ["is_index", "looks_like_address", "parse_location", "store_at", "using_store"]

# Texts that may hold a password, however they are written. As a folder's name, the password would be shown, and the
# folder made. A scheme has two characters or more: C:// is a drive. `Path` makes one slash of two.
_ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]+\s*:\s*/\s*/"
    r"|^\W*postgres(ql)?\s*(:\s*/|[:/].*@)"
    r"|^(?![a-z]:[/\\]).*:.*(@|%40|＠)"  # user:password@host, whatever the password has; no drive of Windows
    r"|^\W*(jdbc|pgsql|postg\w+)\W.*[@%＠]"
    r"|passw\w*\s*[=: ]|\b(pass|pwd)\s*[=:]"  # for libpq and other drivers
    r"|^\W*(host|hostaddr|port|user|dbname|service|sslmode)\s*=",
    re.IGNORECASE,
)


def looks_like_address(text: str) -> bool:
    """Return whether a text is a database's address, or meant to be one: no message may quote it."""
    return _ADDRESS.search(text) is not None


def parse_location(location: str | Path) -> Path | PostgresLocation:
    """Parse the location of an index.

    Args:
        location: A folder, or an address.

    Returns:
        The folder, or the address in a form that shows no password.

    Raises:
        InputError: It is an address that is not valid; the message does not quote it.
    """
    text = str(location)
    if not looks_like_address(text):
        return Path(location)
    if text.startswith(SCHEMES):
        return PostgresLocation.parse(text)
    raise InputError(
        "the location of the index looks like an address, and does not begin with postgresql://: give a folder, or "
        "postgresql://user@host:5432/database?index=NAME as a string, without quotes or white space around it"
    )


def store_at(location: str | Path | IndexStore) -> IndexStore:
    """Return the store of a location. Nothing is opened yet.

    Args:
        location: A folder, the address of a PostgreSQL database, or a store, which is returned.

    Returns:
        The store.

    Raises:
        InputError: It is of another type or an address that is not valid, or the packages for PostgreSQL are not
            installed.
    """
    if location is None:
        raise InputError("no location of the index is given: it is None")
    if isinstance(location, IndexStore):
        return location
    if not isinstance(location, str | Path):
        kind = type(location).__name__
        raise InputError(f"the location of the index is of the type {kind}: give a folder, an address or a store")
    parsed = parse_location(location)
    if isinstance(parsed, Path):
        return FolderStore(parsed)
    from arag.retrieval.storage.postgres.store import PostgresStore

    return PostgresStore(parsed)


@contextmanager
def using_store(location: str | Path | IndexStore) -> Iterator[IndexStore]:
    """Yield the store of a location, and close it at the end unless it was given; see `store_at`."""
    store = store_at(location)
    try:
        yield store
    finally:
        if store is not location:
            store.close()
