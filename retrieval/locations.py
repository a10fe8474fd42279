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

__all__ = ["is_address", "is_index", "parse_location", "store_at", "using_store"]

# A scheme has two characters or more: C:// is a drive. An address behind something else, or made into a path by `Path`,
# would be the name of a folder, password and all.
_ADDRESS = re.compile(
    r"^[\s\"'`“”‘’]*(?:postgresql|postgres):/|^\s*(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+://)|(?:postgresql|postgres)://",
    re.IGNORECASE,
)
_VALID = "give a folder, or postgresql://user@host:5432/database?index=NAME"


def is_address(text: str) -> bool:
    """Return whether a location is meant as an address, valid or not, and not as a folder."""
    return _ADDRESS.search(text) is not None


def parse_location(location: str | Path) -> Path | PostgresLocation:
    """Return a folder, or an address, which shows no password.

    Raises:
        InputError: It is an address that is not valid; the message does not quote it.
    """
    text = str(location)
    address = _ADDRESS.search(text)
    if address is None:
        return Path(location)
    if text.startswith(SCHEMES):
        return PostgresLocation.parse(text)
    if address["scheme"]:
        raise InputError(f"an index cannot be at an address with {address['scheme']!r}: {_VALID}")
    raise InputError(
        "the location of the index has the address of a PostgreSQL database in it, but does not begin with "
        "postgresql://: give it as a string, without quotes or white space in front of it"
    )


def store_at(location: str | Path | IndexStore) -> IndexStore:
    """Return the store of a folder, of the address of a PostgreSQL database, or itself; nothing is opened yet.

    Raises:
        InputError: It is an address that is not valid, or the packages for PostgreSQL are not installed.
    """
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
