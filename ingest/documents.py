"""What a reader passes to the pipeline: documents, and problems with those that could not be read."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeAlias

from arag.errors import InputError

MAX_LIMIT = 1_000_000_000

JSON: TypeAlias = "str | int | float | bool | list[JSON] | dict[str, JSON] | None"


@dataclass(frozen=True, slots=True)
class Document:
    """One document, ready to be cut into chunks.

    Attributes:
        id: Its own id, else one made from the file's path relative to what was ingested; see `Names`.
        title: The title, or an empty string where the source gives none.
        text: The whole text, never blank.
        source: The file it came from, with the line or item of a record, as given by the user; or which of the given
            documents it is. For messages.
        metadata: Further fields of a record, kept as they are.
        page_starts: For paged sources, the character offset at which each page starts, the first being page 1;
            empty for others.
        ready_chunks: Chunks that are kept unchanged, as (chunk id, text) in order; None when the pipeline
            cuts the text itself. Their concatenation is `text`.
        named_by_path: Whether the id is made from the file's path.
        origin: What the index keeps as the source: empty for a document that was given in Python. None stands for the
            absolute path of `source`.
    """

    id: str
    title: str
    text: str
    source: str
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    page_starts: tuple[int, ...] = ()
    ready_chunks: tuple[tuple[str, str], ...] | None = None
    named_by_path: bool = False
    origin: str | None = None

    @property
    def kept_source(self) -> str:
        """What the index keeps as the source, so that the file is found again from anywhere."""
        return os.path.abspath(self.source) if self.origin is None else self.origin  # noqa: PTH100 - see file_of


@dataclass(slots=True)
class Position:
    """How far the sources have been read, and what was met on the way.

    Attributes:
        bytes: Bytes of the files read so far, with that of the document that was read last; of documents given in
            Python, their characters.
        paths: How many paths were given.
        folders: Those of them that are folders.
        skipped: What was skipped in the folders, and why.
    """

    bytes: int = 0
    paths: int = 0
    folders: list[Path] = field(default_factory=list)
    skipped: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of what is read; a document that exceeds one is left out.

    Attributes:
        max_characters: Characters of text in a document.
        max_pages: Pages of a PDF.
        max_seconds: Seconds that reading a PDF may take.
        max_bytes: Bytes that are read of an email or a notebook, or unpacked from a packed file (docx, xlsx, ...).

    Example:
        >>> from arag import Limits
        >>> Limits(max_pages=200)
        Limits(max_characters=10000000, max_pages=200, max_seconds=120.0, max_bytes=200000000)
        >>> Limits(max_pages=0)
        Traceback (most recent call last):
            ...
        arag.errors.InputError: max_pages is 0: it must be above 0, and at most 1,000,000,000
    """

    max_characters: int = 10_000_000
    max_pages: int = 10_000
    max_seconds: float = 120.0
    max_bytes: int = 200_000_000

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not 0 < value <= MAX_LIMIT:
                raise InputError(f"{name} is {value}: it must be above 0, and at most {MAX_LIMIT:,}")

    def exceeded(self, name: str) -> str:
        """Return a message that a limit was exceeded, and how to raise it."""
        reason = {
            "max_characters": f"more than {self.max_characters:,} characters of text",
            "max_pages": f"more than {self.max_pages:,} pages",
            "max_seconds": f"not read within {self.max_seconds:,g} seconds",
            "max_bytes": f"more than {self.max_bytes:,} bytes to read or unpack",
        }[name]
        return f"{reason}; raise the limit with --{name.replace('_', '-')} (in Python: limits=Limits({name}=...))"


DEFAULT_LIMITS = Limits()

_PLACE = re.compile(r", (?:line|item|page) \d+$")


def file_of(source: str) -> Path:
    """Return the absolute path of the file in a source, without the line, item or page after it."""
    if (place := _PLACE.search(source)) and not os.path.lexists(source):  # a file's name may end like that, too
        source = source[: place.start()]
    return Path(os.path.abspath(source))  # noqa: PTH100 - links stay what they are


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not in the index, and why.

    Attributes:
        source: The file, with the line or the record where there is one (`notes.jsonl, line 3`).
        reason: What was wrong, for a person.
    """

    source: str
    reason: str

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"
