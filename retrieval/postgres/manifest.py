"""The manifest of an index in PostgreSQL: one row, whose replacement publishes a generation."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from secrets import token_hex
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from arag.errors import DamageError, IndexFormatError, IndexNotFoundError
from arag.models.names import drop_credentials
from arag.retrieval.backend import Manifest
from arag.retrieval.postgres.connections import Statements
from arag.retrieval.postgres.location import PostgresLocation
from arag.retrieval.postgres.schema import FORMAT_VERSION

# Rows of table `state`.
NAME = "manifest"
CHANGE = "change"  # counts insertions and removals


_Publication = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
_KEPT = 20  # publications


@dataclass(frozen=True, slots=True)
class PostgresManifest(Manifest):
    """The manifest of an index in PostgreSQL.

    Attributes:
        publications: A random text for each of the last publications, the newest first. A copy of the database has
            others from its next publication on.
        change: The last change that is published: each insertion or removal has a number.
        graph: Where the graph of the vectors is; empty if there is none, as they are few.
        format_version: Version of the tables.
    """

    publications: Annotated[tuple[_Publication, ...], Field(min_length=1)] = field(kw_only=True)
    change: Annotated[int, Field(ge=0)] = 0
    graph: Literal["", "pgvector", "chroma"] = ""
    format_version: int = FORMAT_VERSION


_MANIFEST = TypeAdapter(PostgresManifest)


def publish_again(before: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the publications of an index with a new one."""
    return (token_hex(16), *before)[:_KEPT]


def parse_manifest(text: str, location: PostgresLocation) -> PostgresManifest:
    """Read the text of a manifest.

    Raises:
        IndexFormatError: It is damaged or of another format version.
    """
    try:
        values = json.loads(text)
        version = values.get("format_version") if isinstance(values, dict) else None
        if isinstance(version, int) and version > FORMAT_VERSION:
            raise IndexFormatError(
                f"the index {location} has format version {version}; this version of arag reads up to "
                f"{FORMAT_VERSION}: install a newer one"
            )
        manifest = _MANIFEST.validate_json(text, strict=True)
    except (ValueError, RecursionError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise DamageError(f"the manifest of the index {location}", NAME, reason, str(location)) from error
    return replace(manifest, embedder=drop_credentials(manifest.embedder))


def manifest_json(manifest: PostgresManifest) -> str:
    """Return a manifest as text."""
    return json.dumps(asdict(manifest), ensure_ascii=False)


def read_manifest(statements: Statements) -> PostgresManifest:
    """Read the manifest of an index.

    Raises:
        IndexNotFoundError: There is none.
        IndexFormatError: It is damaged or of another format version.
    """
    rows = statements.query("SELECT value FROM state WHERE name = %s", (NAME,))
    if not rows:
        raise no_index(statements.location)
    return parse_manifest(rows[0][0], statements.location)


def no_index(location: PostgresLocation) -> IndexNotFoundError:
    """Return the error that there is no index."""
    return IndexNotFoundError(f"no index in {location}: make one with `arag ingest PATH... --index {location}`")
