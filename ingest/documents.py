"""What a reader hands to the pipeline: documents, and problems with those that could not be read."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

JSON: TypeAlias = "str | int | float | bool | list[JSON] | dict[str, JSON] | None"


@dataclass(frozen=True, slots=True)
class Document:
    """One document, ready to be cut into chunks.

    Attributes:
        id: Unique in the index: a record's own id, else the path relative to what was ingested.
        title: The title, or an empty string where the source gives none.
        text: The whole text, never blank.
        source: The file it came from, as given by the user; for messages.
        metadata: Further fields of a record, kept as they are.
        page_starts: For paged sources, the character offset at which each page starts, the first being page 1;
            empty for others.
        ready_chunks: Chunks that are taken over unchanged, as (chunk id, text) in order; None when the pipeline
            cuts the text itself. Their concatenation is `text`.
    """

    id: str
    title: str
    text: str
    source: str
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    page_starts: tuple[int, ...] = ()
    ready_chunks: tuple[tuple[str, str], ...] | None = None


_PLACE = re.compile(r", (?:line|item|page) \d+$")


def file_of(source: str) -> Path:
    """Return the absolute path of the file in a source, without the line or the item behind it."""
    source = _PLACE.sub("", source)
    return Path(os.path.abspath(source))  # noqa: PTH100 - links stay what they are


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was left out of the index, and why.

    Attributes:
        source: The file, with the line or the record where there is one (`notes.jsonl, line 3`).
        reason: What was wrong, for a person.
    """

    source: str
    reason: str

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"
