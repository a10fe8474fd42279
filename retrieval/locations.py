"""Which backend keeps the index of a location: a new kind of location is recognised here."""

from __future__ import annotations

import re
from pathlib import Path

from arag.errors import InputError
from arag.retrieval.backend import Backend
from arag.retrieval.local.backend import LocalBackend, is_index
from arag.retrieval.postgres.location import SCHEMES, PostgresLocation

__all__ = ["backend_at", "is_address", "is_index", "parse_location"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # of two characters or more: C:// is a drive
# An address behind white space or quotes, or made into a path by `Path`: a folder would be named after a password.
_INSIDE = re.compile(r"postgres(ql)?:/", re.IGNORECASE)
_VALID = "give a folder, or postgresql://user@host:5432/database?index=NAME"


def is_address(text: str) -> bool:
    """Return whether a location is meant as an address, valid or not, and not as a folder."""
    return bool(_SCHEME.match(text) or _INSIDE.search(text))


def parse_location(location: str | Path) -> Path | PostgresLocation:
    """Return a folder, or an address, which shows no password.

    Raises:
        InputError: It is an address that is not valid; the message does not quote it.
    """
    text = str(location)
    if not is_address(text):
        return Path(location)
    if text.startswith(SCHEMES):
        return PostgresLocation.parse(text)
    if found := _SCHEME.match(text):
        raise InputError(f"an index cannot be at an address with {found[0]!r}: {_VALID}")
    raise InputError(
        "the location of the index has the address of a PostgreSQL database in it, but does not begin with "
        f"postgresql://: {_VALID}, as a string, without quotes or white space in front of it"
    )


def backend_at(location: str | Path | Backend) -> Backend:
    """Return the backend of a location; nothing is opened yet.

    Args:
        location: A folder, the address of a PostgreSQL database, or a backend.

    Raises:
        InputError: It is an address that is not valid, or the packages for PostgreSQL are not installed.
    """
    if not isinstance(location, str | Path):
        return location
    parsed = parse_location(location)
    if isinstance(parsed, Path):
        return LocalBackend(parsed)
    try:
        from arag.retrieval.postgres.backend import PostgresBackend
    except ImportError as error:
        # psycopg itself raises one without a name where libpq is missing.
        if (error.name or "psycopg").partition(".")[0] not in {"psycopg", "psycopg_pool", "pgvector"}:
            raise
        raise InputError(
            "an index on PostgreSQL needs the packages psycopg, psycopg-pool and pgvector: "
            "pip install 'langgraph-arag[postgres]'"
        ) from error
    return PostgresBackend(parsed)
