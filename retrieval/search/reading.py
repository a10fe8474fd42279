"""Finds chunks by id and documents by name in one snapshot of an index; `Index.read` documents it."""

from __future__ import annotations

import json
import string
from collections.abc import Iterator, Sequence
from contextlib import suppress

from arag.retrieval.search.names import MAX_NAME_WORDS
from arag.retrieval.storage.contract import View
from arag.retrieval.types import Chunk, ReadResults
from arag.text.normalise import words

_MAX_EXPLAINED = 20  # unknown ids of one read that get the closest ids
_MAX_CLOSEST = 3
_AROUND_IDS = string.whitespace + "[](){}<>\"'`"  # models wrap ids in these
_BEHIND_IDS = string.whitespace + ",;."
_MAX_AROUND_ID = 4  # pairs that are stripped one by one: the id itself may have the inner ones


def read(view: View, chunk_ids: Sequence[str], adjacent: int) -> ReadResults:
    """Return full chunks."""
    resolved = resolve(view, chunk_ids)
    chunks: dict[str, Chunk] = {}
    for chunk in resolved.values():
        around = view.neighbours(chunk, adjacent) if adjacent else [chunk]
        for each in around:
            chunks.setdefault(each.id, each)
    unknown: dict[str, tuple[str, ...]] = {}
    for chunk_id in chunk_ids:
        if chunk_id not in resolved:
            is_explained = len(unknown) < _MAX_EXPLAINED
            unknown[chunk_id] = _find_closest_ids(view, chunk_id) if is_explained else ()
    return ReadResults(tuple(chunks.values()), unknown)


def resolve(view: View, chunk_ids: Sequence[str]) -> dict[str, Chunk]:
    """Return the chunk of each id, which may be in quotes or brackets, or the id of a document with one chunk."""
    spellings = {chunk_id: list(_strip(chunk_id)) for chunk_id in chunk_ids}
    candidates: dict[str, None] = {}
    for some in spellings.values():
        candidates |= dict.fromkeys(some)
    chunks = {chunk.id: chunk for chunk in view.mget(list(candidates)) if chunk is not None}
    documents = view.entries([candidate for candidate in candidates if candidate not in chunks])
    with_one_chunk = [document_id for document_id, entry in documents.items() if entry.chunks == 1]
    for chunk in view.chunks_of(with_one_chunk):
        chunks[chunk.document_id] = chunk

    resolved: dict[str, Chunk] = {}
    for chunk_id, some in spellings.items():
        for candidate in some:
            if candidate in chunks:
                resolved[chunk_id] = chunks[candidate]
                break
    return resolved


def find_documents(view: View, name: str, limit: int) -> list[str]:
    """Find documents by a part of their name."""
    if view.document(name) is not None:
        return [name]
    chunk = resolve(view, [name]).get(name)
    if chunk is not None:
        return [chunk.document_id]
    named = words(name)[:MAX_NAME_WORDS]
    return view.named(named, limit) or view.of_files_named(named, limit)


def _strip(chunk_id: str) -> Iterator[str]:
    """Yield an id as given, then with its wrapping stripped step by step."""
    yield chunk_id
    unmarked = chunk_id.strip().removeprefix("[").removesuffix("]")
    if unmarked.startswith('"'):
        with suppress(ValueError):  # marks write unusual ids as JSON strings
            yield str(json.loads(unmarked))
    inner = chunk_id
    for _ in range(_MAX_AROUND_ID):
        inner = inner.lstrip().rstrip(_BEHIND_IDS)
        yield inner
        if inner[:1] in _AROUND_IDS:
            inner = inner[1:]
        if inner[-1:] in _AROUND_IDS:
            inner = inner[:-1]
    yield chunk_id.lstrip(_AROUND_IDS).rstrip(_AROUND_IDS + _BEHIND_IDS)


def _find_closest_ids(view: View, chunk_id: str) -> tuple[str, ...]:
    """Return ids of the document that an unknown id seems to mean, or else the next ids in the alphabet."""
    document_id = chunk_id.rpartition(":")[0]
    of_document = view.chunks_of([chunk_id, document_id])
    if of_document:
        return tuple(chunk.id for chunk in of_document[:_MAX_CLOSEST])
    return tuple(view.nearby_ids(chunk_id, _MAX_CLOSEST))
