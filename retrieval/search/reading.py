"""Finds chunks by id and documents by name in one snapshot of an index; `Index.read` documents it."""

from __future__ import annotations

import json
import string
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath

from arag.retrieval.corpus.moved import find_moved
from arag.retrieval.search.names import MAX_NAME_WORDS, find_moved_named
from arag.retrieval.storage.contract import View
from arag.retrieval.types import Chunk, ReadResults
from arag.text.normalise import name_words, searchable, words
from arag.text.scripts import is_east_asian

_MAX_EXPLAINED = 20  # unknown ids of one read that get the closest ids
_MAX_CLOSEST = 3
_MIN_PART = 3  # letters of a part of a word that may stand for the word
_MAX_DIGITS = 9  # of a chunk's number: a longer one is none
_AROUND_IDS = string.whitespace + "[](){}<>\"'`"  # models wrap ids in these
_BEHIND_IDS = string.whitespace + ",;."
_MAX_AROUND_ID = 4  # pairs that are stripped one by one: the id itself may have the inner ones


def read(view: View, chunk_ids: Sequence[str], adjacent: int) -> ReadResults:
    """Return full chunks."""
    resolved = resolve(view, chunk_ids)
    chunks: dict[str, Chunk] = {}
    for chunk in resolved.values():
        around = [chunk]
        if adjacent:
            around = view.neighbours(chunk, adjacent)
        for each in around:
            chunks.setdefault(each.id, each)

    unknown_ids = [chunk_id for chunk_id in chunk_ids if chunk_id not in resolved]
    unknown: dict[str, tuple[str, ...]] = dict.fromkeys(unknown_ids, ())
    for chunk_id in unknown_ids[:_MAX_EXPLAINED]:
        unknown[chunk_id] = _find_closest_ids(view, chunk_id)
    return ReadResults(
        chunks=tuple(chunks.values()),
        unknown=unknown,
    )


def resolve(view: View, chunk_ids: Sequence[str]) -> dict[str, Chunk]:
    """Return the chunk of each id, which may be in quotes or brackets, or the id of a document with one chunk."""
    candidates_of = {chunk_id: list(_strip(chunk_id)) for chunk_id in chunk_ids}
    chunks = _find_chunks(view, set().union(*candidates_of.values()))
    resolved: dict[str, Chunk] = {}
    for chunk_id, candidates in candidates_of.items():
        known = [candidate for candidate in candidates if candidate in chunks]
        if known:
            resolved[chunk_id] = chunks[known[0]]
    return resolved


def _find_chunks(view: View, ids: set[str]) -> dict[str, Chunk]:
    """Return the chunks with these ids, and those that are the only chunk of a document with one of them."""
    chunks: dict[str, Chunk] = {}
    for chunk in view.mget(list(ids)):
        if chunk is not None:
            chunks[chunk.id] = chunk
    with_one_chunk: list[str] = []
    for document_id, entry in view.entries(ids - chunks.keys()).items():
        if entry.chunks == 1:
            with_one_chunk.append(document_id)
    for chunk in view.chunks_of(with_one_chunk):
        chunks[chunk.document_id] = chunk
    return chunks


def find_documents(view: View, name: str, limit: int) -> list[str]:
    """Find documents by a part of their name."""
    document_id = _find_by_id(view, name)
    if document_id is not None:
        return [document_id]
    named = words(name)[:MAX_NAME_WORDS]
    return view.named(named, limit) or view.of_files_named(named, limit)


def find_meant(view: View, name: str, limit: int) -> list[str]:
    """Find the documents that a name means: the one with this id or at this path, or else those with its words.

    A document whose file was moved is found by its id and by the path where the file is now.
    Words are whole ones if a document has them so. Otherwise numbers, and words of three letters or more, may be parts
    of longer ones: `leaders.de` never means `leaders.en` for the letters in its middle.
    """
    document_id = _find_by_id(view, name)
    if document_id is not None:
        return [document_id]
    wanted = name_words(name)[:MAX_NAME_WORDS]
    most = max(limit, view.settings.documents)
    by_name = view.entries(view.named(wanted, most))
    names = {record.id: f"{record.id} {record.title}" for record in by_name.values()}
    names |= find_moved_named(view, wanted)
    moved = find_moved(view)
    at_path = [record_id for record_id in names if _is_at(moved.get(record_id, record_id), name)]
    meant = at_path or _list_with_words(names, wanted)
    if not meant:
        by_file = view.entries(view.of_files_named(wanted, most))
        files = {record.id: PurePath(record.source).name for record in by_file.values()}
        meant = _list_with_words(files, wanted) or _list_with_words(names, wanted, least=_MIN_PART)
        meant = meant or _list_with_words(files, wanted, least=_MIN_PART)
    return meant[:limit]


def _find_by_id(view: View, name: str) -> str | None:
    """Return the document whose id, or whose chunk's id, is a name."""
    if view.document(name) is not None:
        return name
    chunk = resolve(view, [name]).get(name)
    return chunk.document_id if chunk else None


def _is_at(document_id: str, path: str) -> bool:
    """Return whether an id is a path, or ends with it; a bare word without a dot does not count as a path."""
    path = searchable(path)
    return ("." in path or "/" in path) and f"/{searchable(document_id)}".endswith(f"/{path}")


def _list_with_words(names: Mapping[str, str], wanted: Sequence[str], *, least: int | None = None) -> list[str]:
    """Return the ids of the documents whose names have all wanted words; see `_has_words`."""
    return [document_id for document_id, name in names.items() if _has_words(name, wanted, least)]


def _has_words(text: str, wanted: Sequence[str], least: int | None) -> bool:
    """Return whether a name has all wanted words; numbers, and words of `least` letters, may be parts of its words."""
    in_text = set(name_words(text))
    for word in wanted:
        may_be_part = is_east_asian(word) or (least is not None and (len(word) >= least or word.isdecimal()))
        if word not in in_text and not may_be_part:
            return False
    return True


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
    """Return ids of the documents that an unknown id seems to mean, or else the next ids in the alphabet.

    A document is meant by its id, or else by the words of its file's name; its chunks by their numbers.
    """
    document_id, _, number = chunk_id.rpartition(":")
    chunks = view.chunks_of([chunk_id, document_id])
    if not chunks:
        chunks = view.chunks_of(_find_named_files(view, document_id or chunk_id))
    if not chunks:
        return tuple(view.nearby_ids(chunk_id, _MAX_CLOSEST))
    wanted = int(number[:_MAX_DIGITS]) if number.isdecimal() else 0
    chunks.sort(key=lambda chunk: abs(chunk.ordinal - wanted))
    return tuple(chunk.id for chunk in chunks[:_MAX_CLOSEST])


def _find_named_files(view: View, path: str) -> list[str]:
    """Return the ids of a few documents with the words of a path in their names, or else those of its last part."""
    file = path.rpartition("/")[2]
    for name in (path, file, file.rpartition(".")[0]):
        parts = words(name)[:MAX_NAME_WORDS]
        if parts:
            ids = view.named(parts, _MAX_CLOSEST)
            if ids:
                return ids
    return []
