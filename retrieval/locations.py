"""Which backend keeps the index of a location: a new kind of location is recognised here."""

from __future__ import annotations

from pathlib import Path

from arag.retrieval.backend import Backend
from arag.retrieval.local.backend import LocalBackend, is_index

__all__ = ["backend_at", "is_index"]


def backend_at(location: str | Path | Backend) -> Backend:
    """Return the backend of a location.

    Args:
        location: A folder, or a backend.
    """
    if isinstance(location, str) and location.startswith("postgres"):
        from arag.retrieval.postgres.backend import PostgresBackend
        from arag.retrieval.postgres.location import PostgresLocation

        return PostgresBackend(PostgresLocation.parse(location))
    return LocalBackend(Path(location)) if isinstance(location, str | Path) else location
