"""Rows of an index's tables, which a folder's SQLite file and a PostgreSQL schema have in common.

Rows are never changed, apart from a document's source.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from arag.retrieval.types import Chunk, Sentence

DOCUMENT_COLUMNS = "id, title, source, metadata, fingerprint, chunks"  # as the fields of a DocumentRecord
CHUNK_COLUMNS = "id, document_id, ordinal, tokens, first_page, last_page, sentences"
MAX_WORD_CHARACTERS = 100  # of a word that is suggested for a misspelt one


@dataclass
class _Places:
    sentences: list[tuple[int, int, int, int, int]]
    headings: list[str]
    tables: list[tuple[str]]


_PLACES = TypeAdapter(_Places)


def chunk_row(chunk: Chunk) -> tuple[str | int | None, ...]:
    """Return the values of CHUNK_COLUMNS."""
    first_page, last_page = chunk.pages or (None, None)
    embedded = sum(sentence.embedded for sentence in chunk.sentences)
    return chunk.id, chunk.document_id, chunk.ordinal, chunk.tokens, first_page, last_page, embedded


def format_places(sentences: Sequence[Sentence]) -> str:
    """Return sentences as they are stored: JSON, with each heading and each table, a list with its header, once."""
    headings = {heading: place for place, heading in enumerate(dict.fromkeys(s.heading for s in sentences))}
    headers = {header: place for place, header in enumerate(dict.fromkeys(s.header for s in sentences if s.header))}
    places = [[s.start, s.end, int(s.embedded), headings[s.heading], headers.get(s.header, -1)] for s in sentences]
    value = {"sentences": places, "headings": list(headings), "tables": [[header] for header in headers]}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parse_places(text: str, length: int) -> tuple[Sentence, ...]:
    """Read what `format_places` wrote about a chunk's text, which has so many characters.

    Raises:
        ValueError, LookupError: It is something else.
    """
    try:
        stored = _PLACES.validate_json(text, strict=True)
    except ValidationError as error:
        raise ValueError("the places of its sentences cannot be read") from error
    if not all(0 <= start <= end <= length for start, end, *_ in stored.sentences):
        raise ValueError("sentences lie outside of its text")
    headings, headers = stored.headings, [header for (header,) in stored.tables]
    return tuple(
        Sentence(start, end, bool(embedded), headings[heading], headers[table] if table >= 0 else "")
        for start, end, embedded, heading, table in stored.sentences
    )
