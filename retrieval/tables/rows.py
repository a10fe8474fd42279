"""The rows of documents and chunks: how they are written and read back, checked.

A database need not notice a changed byte in a text. So each document's entry and each chunk has a checksum over all of
its own fields, which is checked on every read.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from arag.retrieval.backend import DocumentRecord, Vectors
from arag.retrieval.types import Chunk, Section, Sentence

FOR_EVER = 2**63 - 1  # `removed` of a row that is not removed

DOCUMENT_COLUMNS = "id, title, source, metadata, fingerprint, chunks"
ENTRY_COLUMNS = "id, document_id, ordinal, tokens, first_page, last_page, embedded_sentences"
CONTENT_COLUMNS = "sections, sentences, text"


def checksum(values: Sequence[str | int | None]) -> int:
    """Return the checksum of a row's values and their types.

    Raises:
        ValueError: A value has a type that no row has, or a text is not valid Unicode.
    """
    try:
        return zlib.crc32(json.dumps(values, ensure_ascii=False).encode())
    except TypeError as error:
        raise ValueError(str(error)) from error


def check_row(row: Sequence[Any]) -> Sequence[Any]:
    """Return the values of a row, without the checksum at its end.

    Raises:
        ValueError: The checksum is wrong.
    """
    if checksum(row[:-1]) != row[-1]:
        raise ValueError("its checksum is wrong")
    return row[:-1]


def document_row(record: DocumentRecord) -> tuple[str | int, ...]:
    """Return the values of DOCUMENT_COLUMNS."""
    return record.id, record.title, record.source, record.metadata, record.fingerprint, record.chunks


def parse_document(row: Sequence[Any]) -> DocumentRecord:
    """Read the values of DOCUMENT_COLUMNS.

    Raises:
        ValueError: They are not those of a document.
    """
    record = DocumentRecord(*row)
    has_types = all(isinstance(value, str) for value in row[:-1]) and isinstance(record.chunks, int)
    if has_types and isinstance(_load(record.metadata), dict):
        return record
    raise ValueError("a field has the wrong type")


def chunk_rows(chunk: Chunk) -> tuple[tuple[str | int | None, ...], tuple[str, ...]]:
    """Return the values of ENTRY_COLUMNS and of CONTENT_COLUMNS."""
    first_page, last_page = chunk.pages or (None, None)
    embedded = sum(sentence.embedded for sentence in chunk.sentences)
    return (
        (chunk.id, chunk.document_id, chunk.ordinal, chunk.tokens, first_page, last_page, embedded),
        (
            _dump([[s.document_id, s.title, s.start, s.end, s.whole] for s in chunk.sections]),
            _dump([[s.start, s.end, int(s.embedded)] for s in chunk.sentences]),
            chunk.text,
        ),
    )


def parse_chunk(row: Sequence[Any]) -> Chunk:
    """Read the values of ENTRY_COLUMNS and CONTENT_COLUMNS, in this order.

    Raises:
        ValueError: They are not those of a chunk.
    """
    chunk_id, document_id, ordinal, tokens, first_page, last_page, embedded, sections, sentences, text = row
    try:
        chunk = Chunk(
            id=chunk_id,
            document_id=document_id,
            ordinal=ordinal,
            text=text,
            sections=tuple(Section(*values) for values in _load(sections)),
            sentences=tuple(Sentence(start, end, bool(flag)) for start, end, flag in _load(sentences)),
            tokens=tokens,
            pages=None if first_page is None else (first_page, last_page),
        )
        names = [chunk_id, document_id, text, *(name for s in chunk.sections for name in (s.document_id, s.title))]
        places = [(s.start, s.end) for s in chunk.sections] + [(s.start, s.end) for s in chunk.sentences]
        numbers = [ordinal, tokens, embedded, *(chunk.pages or ()), *(offset for place in places for offset in place)]
        fits = (
            chunk.sections
            and chunk.sections[0].document_id == document_id
            and all(isinstance(name, str) for name in names)
            and all(isinstance(number, int) for number in numbers)
            and all(0 <= start <= end <= len(text) for start, end in places)
            and embedded == sum(sentence.embedded for sentence in chunk.sentences)
        )
    except TypeError as error:
        raise ValueError(str(error)) from error
    if not fits:
        raise ValueError("its fields contradict each other")
    return chunk


def read_text(row: Sequence[Any]) -> str:
    """Return a chunk's text, given what `parse_chunk` reads and the checksum; the rest is not parsed, for speed.

    Raises:
        ValueError: The checksum is wrong.
        TypeError: The text is not a string.
    """
    *_, text = check_row(row)
    if not isinstance(text, str):
        raise TypeError("its text is not a string")
    return text


def embedded_positions(sentences: str) -> list[int]:
    """Return the positions of a chunk's embedded sentences, given the sentences as they are stored.

    Raises:
        ValueError: They cannot be read.
    """
    try:
        return [i for i, (_, _, embedded) in enumerate(_load(sentences)) if embedded]
    except TypeError as error:
        raise ValueError(str(error)) from error


def vectors_blob(vectors: Vectors) -> bytes:
    """Return a chunk's vectors, of shape (sentences, dimension), as they are stored: float16, and one more byte.

    That byte makes the length odd. It is even for float32, which format 4 has.
    """
    return np.asarray(vectors, dtype=np.float16).tobytes() + b"\0"


def parse_vectors(blob: bytes, sentences: int) -> Vectors:
    """Read a chunk's stored vectors; the result has the shape (sentences, dimension).

    Raises:
        ValueError: They are not vectors of so many sentences.
    """
    numbers = np.frombuffer(blob[:-1], np.float16) if len(blob) % 2 else np.frombuffer(blob, np.float32)
    return numbers.astype(np.float32).reshape(sentences, -1 if sentences else 0)


def _load(value: str) -> Any:
    try:
        return json.loads(value)
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
