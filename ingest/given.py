"""Documents that are given as objects: LangChain documents and records."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

import numpy as np
from typing_extensions import TypeIs

from arag.errors import InputError
from arag.ingest.documents import JSON, Document, Position, Problem
from arag.ingest.formats.content import FormatError, clean_characters, clean_json, clean_text, problem_at
from arag.ingest.records import read_record

if TYPE_CHECKING:
    from langchain_core.documents import Document as LangChainDocument

    GivenDocument: TypeAlias = LangChainDocument | Mapping[str, Any]
    Source: TypeAlias = str | Path | GivenDocument
    Sources: TypeAlias = Source | Iterable[Source]

VALID_SOURCES = (
    "sources must be paths, LangChain documents, dictionaries such as "
    '{"id": "1", "title": "A title", "text": "A text."}, or an iterable of them'
)
# What loaders and text splitters say of where in its source a document is.
_PLACES = ("page", "page_number", "row", "seq_num", "start_index")
_HASH_LENGTH = 16


def list_sources(sources: Sources) -> Iterable[Source]:
    """Return what is given as an iterable, which is a sequence if it can be gone through several times.

    Raises:
        InputError: It is none.
    """
    if isinstance(sources, str | Path | Mapping):
        return [sources]
    if isinstance(sources, Sequence):
        return sources
    if is_document(sources):
        return [sources]
    if isinstance(sources, Iterable):
        return sources
    hint = {"lazy_load": ": give its lazy_load()", "__aiter__": ": only aingest takes asynchronous iterables"}
    found = next((hint[name] for name in hint if hasattr(sources, name)), "")
    raise InputError(f"the sources are {type(sources).__name__}{found}; {VALID_SOURCES}")


def is_document(item: object) -> TypeIs[GivenDocument]:
    """Return whether something is a LangChain document or a record."""
    from langchain_core.documents import Document as LangChainDocument

    return isinstance(item, Mapping | LangChainDocument)


def count_characters(item: GivenDocument) -> int:
    """Return the characters of a document's text."""
    text = item.get("text") if isinstance(item, Mapping) else item.page_content
    return len(text) if isinstance(text, str) else 0


class GivenReader:
    """Makes documents of what is given.

    A document without an id gets one from its metadata: the source, with the page, the row or the start index that
    a loader gave it, and a number if another one has the same. Without a source, its id is a hash of its content.

    Args:
        position: Advanced with every document.
    """

    def __init__(self, position: Position) -> None:
        self._position = position
        self._sources = Counter[str]()  # how many documents there are of each

    def read(self, item: object, place: str) -> Document | Problem:
        """Make a document, or say what is wrong.

        Args:
            item: What is given.
            place: Where it stands among the sources.
        """
        if not is_document(item):
            return Problem(place, f"it is {type(item).__name__}; {VALID_SOURCES}")
        self._position.bytes += count_characters(item)
        place += _describe(item)
        try:
            document, has_id = _from_record(item, place) if isinstance(item, Mapping) else _from_langchain(item, place)
        except FormatError as error:
            return problem_at(place, error)
        return document if has_id else replace(document, id=self._make_id(document))

    def _make_id(self, document: Document) -> str:
        metadata = document.metadata
        source = metadata.get("source")
        if not isinstance(source, str) or not source.strip():
            content = json.dumps([document.title, document.text, dict(metadata)], sort_keys=True)
            return hashlib.sha256(content.encode()).hexdigest()[:_HASH_LENGTH]
        places = [f"{name}={metadata[name]}" for name in _PLACES if isinstance(metadata.get(name), str | int)]
        document_id = "#".join([source, *(["&".join(places)] if places else [])])
        made = document_id
        while made in self._sources:  # also as the name of another source
            self._sources[document_id] += 1
            made = f"{document_id}#{self._sources[document_id]}"
        self._sources[made] = 1
        return made


def _describe(item: GivenDocument) -> str:
    """Return what tells a document from others, for messages."""
    document_id = item.get("id") if isinstance(item, Mapping) else item.id
    source = item.get("source") if isinstance(item, Mapping) else item.metadata.get("source")
    if document_id is not None:
        return f" (id {document_id!r})"
    return "" if source is None else f" (source {str(source)!r})"


def _from_langchain(item: LangChainDocument, place: str) -> tuple[Document, bool]:
    """Return a LangChain document as a document, and whether it has an id."""
    text = clean_text(item.page_content)
    if not text.strip():
        raise FormatError("empty document")
    metadata = to_json_object(item.metadata)
    title = metadata.get("title")
    made = Document(item.id or "", title if isinstance(title, str) else "", text, place, metadata, origin="")
    return made, item.id is not None


def _from_record(item: Mapping[str, Any], place: str) -> tuple[Document, bool]:
    """Return a record as a document, and whether it has an id."""
    value = to_json_object(item)
    made = read_record(value, "", place)
    return replace(made, named_by_path=False, origin=""), not made.named_by_path


def to_json_object(fields: Mapping[str, Any]) -> dict[str, JSON]:
    """Return metadata as JSON has it, with clean characters.

    Raises:
        FormatError: There is no common way to write it in JSON.
    """
    try:
        return {clean_characters(str(name)): clean_json(_to_json(value, str(name))) for name, value in fields.items()}
    except RecursionError as error:
        raise FormatError("metadata is nested too deeply") from error


def _to_json(value: object, name: str) -> JSON:  # noqa: PLR0911 - one for each kind
    """Return a value as JSON has it.

    Raises:
        FormatError: There is no common way to write it in JSON.
    """
    match value:
        case Enum():
            return _to_json(value.value, name)
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(key): _to_json(field, f"{name}.{key}") for key, field in value.items()}
        case list() | tuple():
            return [_to_json(item, name) for item in value]
        case set() | frozenset():  # in the same order in every process
            return sorted((_to_json(item, name) for item in value), key=json.dumps)
        case datetime() | date() | time():
            return value.isoformat()
        case PurePath() | UUID() | Decimal():
            return str(value)
        case np.generic() | np.ndarray():
            return _to_json(value.tolist(), name)
        case _:
            raise FormatError(f'"{name}" is {type(value).__name__}, which JSON cannot hold; convert it first')
