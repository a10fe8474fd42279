"""Where an index is: a folder, or the address of a PostgreSQL database."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from arag.errors import InputError
from arag.retrieval.postgres.location import SCHEMES, PostgresLocation
from arag.retrieval.storage import IndexStore
from arag.retrieval.store.folder import FolderStore, is_index

__all__ = ["is_index", "parse_location", "store_at", "using_store"]

# A scheme has two characters or more: C:// is a drive. `Path` makes one slash of two.
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://|^\W*postgres(ql)?:/", re.IGNORECASE)


def parse_location(location: str | Path) -> Path | PostgresLocation:
    """Return a folder, or an address, which shows no password.

    Raises:
        InputError: It is an address that is not valid; the message does not quote it.
    """
    text = str(location)
    if _ADDRESS.search(text) is None:
        return Path(location)
    if text.startswith(SCHEMES):
        return PostgresLocation.parse(text)
    raise InputError(
        "the location of the index looks like an address, and does not begin with postgresql://: give a folder, or "
        "postgresql://user@host:5432/database?index=NAME as a string, without quotes or white space around it"
    )


def store_at(location: str | Path | IndexStore) -> IndexStore:
    """Return the store of a folder, of the address of a PostgreSQL database, or itself; nothing is opened yet.

    Raises:
        InputError: It is an address that is not valid, or the packages for PostgreSQL are not installed.
    """
    if location is None:
        raise InputError("no location of the index is given: it is None")
    if not isinstance(location, str | Path):
        return location
    parsed = parse_location(location)
    if isinstance(parsed, Path):
        return FolderStore(parsed)
    from arag.retrieval.postgres.store import PostgresStore

    return PostgresStore(parsed)


@contextmanager
def using_store(location: str | Path | IndexStore) -> Iterator[IndexStore]:
    """Give the store of a location, as `store_at`, and close it in the end unless it was given."""
    store = store_at(location)
    try:
        yield store
    finally:
        if store is not location:
            store.close()
