"""Rows of an index's tables, which a folder's SQLite file and a PostgreSQL schema have in common.

Rows are never changed, apart from a document's source.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from arag.retrieval.types import Chunk, Sentence

DOCUMENT_COLUMNS = "id, title, source, metadata, fingerprint, chunks"  # as the fields of a DocumentRecord
CHUNK_COLUMNS = "id, document_id, ordinal, tokens, first_page, last_page, sentences"
MAX_WORD_CHARACTERS = 100  # of a word that is suggested for a misspelt one

_NO_TABLE = -1  # the place of a header, for a sentence without one
_BARS_ARE_TEXT = -2  # for one that is no row of a table although it has bars


@dataclass
class _Places:
    sentences: list[tuple[int, int, int, int, int]]  # start, end, whether embedded, place of heading, place of header
    headings: list[str]
    tables: list[tuple[str]]  # each with its header


_PLACES = TypeAdapter(_Places)
_BEFORE_SENTENCES = '{"sentences":['
_AFTER_SENTENCES = '],"headings"'
_PLACE_NUMBERS = 5  # of each sentence
_UNREADABLE = "the places of its sentences cannot be read"
_OUTSIDE = "sentences overlap, or lie outside of its text"


def chunk_row(chunk: Chunk) -> tuple[str | int | None, ...]:
    """Return the values of CHUNK_COLUMNS."""
    first_page, last_page = chunk.pages or (None, None)
    embedded = len(chunk.embedded_positions())
    return chunk.id, chunk.document_id, chunk.ordinal, chunk.tokens, first_page, last_page, embedded


def format_places(sentences: Sequence[Sentence]) -> str:
    """Return sentences as they are stored: JSON that has each heading and each table's header once."""
    headings: dict[str, int] = {}
    headers: dict[str, int] = {}
    places = []
    for sentence in sentences:
        heading = headings.setdefault(sentence.heading, len(headings))
        table = _BARS_ARE_TEXT if sentence.bars_are_text else _NO_TABLE
        if sentence.header:
            table = headers.setdefault(sentence.header, len(headers))
        places.append([sentence.start, sentence.end, int(sentence.embedded), heading, table])
    tables = [[header] for header in headers]
    value = {"sentences": places, "headings": list(headings), "tables": tables}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parse_places(text: str, length: int) -> tuple[Sentence, ...]:
    """Read the sentences that `format_places` wrote about a chunk.

    Args:
        text: The stored JSON.
        length: The length of the chunk's text, in characters.

    Raises:
        ValueError, LookupError: It is something else.
    """
    stored = _read_places(text, length)
    sentences = []
    for start, end, embedded, heading, table in stored.sentences:
        header = stored.tables[table][0] if table >= 0 else ""
        sentence = Sentence(
            start,
            end,
            bool(embedded),
            stored.headings[heading],
            header,
            bars_are_text=table == _BARS_ARE_TEXT,
        )
        sentences.append(sentence)
    return tuple(sentences)


@dataclass(frozen=True, slots=True)
class Spans:
    """Where the sentences of a chunk start and end in its text."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def parse_spans(texts: Sequence[str], lengths: Sequence[int]) -> list[Spans]:
    """Read where the sentences of several chunks are: less than `parse_places` reads, and in a fraction of its time.

    Args:
        texts: What `format_places` wrote about each chunk.
        lengths: The length of each chunk's text, in characters.

    Raises:
        ValueError: It is something else.
    """
    written: list[str] = []
    for text in texts:
        end = text.find(_AFTER_SENTENCES, len(_BEFORE_SENTENCES))
        if end < 0:
            raise ValueError(_UNREADABLE)
        written.append(text[len(_BEFORE_SENTENCES) + 1 : end - 1])
    counts = [0 if not numbers else numbers.count("[") + 1 for numbers in written]
    values = _read_numbers("],[".join(filter(None, written)).replace("],[", ","))
    if len(values) != _PLACE_NUMBERS * sum(counts):
        raise ValueError(_UNREADABLE)
    starts = values[::_PLACE_NUMBERS]
    ends = values[1::_PLACE_NUMBERS]
    bounds = np.cumsum([0, *counts])
    last_ends = np.roll(ends, 1)  # of the sentences before
    last_ends[bounds[:-1][np.array(counts) > 0]] = 0
    limits = np.repeat(np.array(lengths, np.int64), counts)
    if np.any(starts < last_ends) or np.any(ends < starts) or np.any(ends > limits):
        raise ValueError(_OUTSIDE)
    return [Spans(starts[first:after], ends[first:after]) for first, after in pairwise(bounds.tolist())]


def _read_numbers(text: str) -> NDArray[np.int64]:
    """Return the numbers in a text, with commas between them; fewer, or an error, if it has something else."""
    if not text:
        return np.empty(0, np.int64)
    try:
        return np.fromstring(text, np.int64, sep=",")
    except (ValueError, DeprecationWarning) as error:  # NumPy warns, and will raise an error one day
        raise ValueError(_UNREADABLE) from error


def _read_places(text: str, length: int) -> _Places:
    try:
        stored = _PLACES.validate_json(text, strict=True)
    except ValidationError as error:
        raise ValueError(_UNREADABLE) from error
    end_before = 0
    for start, end, _, _, _ in stored.sentences:
        if not end_before <= start <= end <= length:
            raise ValueError(_OUTSIDE)
        end_before = end
    return stored
