"""What an entry of contents names: instead of the entry, a search by meaning finds the section with this heading.

A heading has no vector. Its entry in the contents has nearly the same words, so its similarity is the heading's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from arag.retrieval.search.contents import find_listed, is_in_contents, name_entry
from arag.retrieval.storage.contract import View
from arag.retrieval.types import Chunk, Hit
from arag.text.contents import name_section
from arag.text.normalise import is_title

_MIN_SIMILARITY = 0.68  # of an entry: less similar ones only name what the query is about, as "The harbour" does
_MAX_NAMES = 3  # that are looked up, the nearest to the query: each takes some milliseconds
_CHUNKS_WITH_NAME = 1_000  # that are looked at: where more have it, one of another document is hardly meant
_CHUNKS_READ = 60  # of these, to find one with such a heading; they take some milliseconds


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line of contents, and how similar it is to the query."""

    name: str
    document_id: str
    similarity: float


@dataclass(frozen=True, slots=True)
class _Heading:
    """The heading of a section: its chunk, and its place among the chunk's sentences."""

    row_id: int
    chunk: Chunk
    position: int


def follow_contents(view: View, hits: Mapping[int, Hit]) -> dict[int, Hit]:
    """Return hits, by row id, with the sections that entries of contents name instead of these entries.

    A chunk in which nothing but contents was found stays as it is.
    """
    followed: dict[int, Hit] = {}
    entries: list[_Entry] = []
    for row_id, hit in hits.items():
        listed = find_listed(hit.chunk).intersection(hit.similarities)
        followed[row_id] = leave_out_contents(hit)
        best = max(listed, key=lambda position: (hit.similarities[position], -position), default=None)
        if best is not None and hit.similarities[best] >= _MIN_SIMILARITY:
            entries.append(_Entry(name_entry(hit.chunk, best), hit.document_id, hit.similarities[best]))
    for heading, similarity in _find_headings(view, entries):
        known = followed.get(heading.row_id)
        similarities = {heading.position: similarity}
        if known is not None and not is_in_contents(known):
            similarities |= known.similarities
        followed[heading.row_id] = Hit(heading.chunk, max(similarities.values()), similarities=similarities)
    return followed


def leave_out_contents(hit: Hit) -> Hit:
    """Return a hit without its sentences in contents, if it has others."""
    listed = find_listed(hit.chunk)
    kept = {position: similarity for position, similarity in hit.similarities.items() if position not in listed}
    if not kept or len(kept) == len(hit.similarities):
        return hit
    return replace(hit, score=max(kept.values()), similarities=kept)


def _find_headings(view: View, entries: Iterable[_Entry]) -> list[tuple[_Heading, float]]:
    """Return the headings that the nearest entries name, with the similarities of these."""
    nearest = sorted(entries, key=lambda entry: -entry.similarity)
    names = list(dict.fromkeys(entry.name for entry in nearest if entry.name))[:_MAX_NAMES]
    chunks_by_name = _read_chunks(view, names, nearest)
    found: list[tuple[_Heading, float]] = []
    for entry in nearest:
        heading = _choose_heading(entry, chunks_by_name.get(entry.name, {}))
        if heading is not None:
            found.append((heading, entry.similarity))
    return found


def _read_chunks(view: View, names: Sequence[str], entries: Iterable[_Entry]) -> dict[str, dict[int, Chunk]]:
    """Return chunks that hold each name, by row id: those of the documents with such an entry come first."""
    documents: dict[str, set[str]] = {}
    for entry in entries:
        documents.setdefault(entry.name, set()).add(entry.document_id)
    row_ids_by_name: dict[str, list[int]] = {}
    holding = view.row_ids_holding([[name] for name in names], _CHUNKS_WITH_NAME)
    for name, row_ids in zip(names, holding, strict=True):
        row_ids_by_name[name] = _put_first(documents[name], view.ids(row_ids))[:_CHUNKS_READ]
    chunks = view.chunks_by_row_id(set().union(*row_ids_by_name.values()))
    chunks_by_name: dict[str, dict[int, Chunk]] = {}
    for name, row_ids in row_ids_by_name.items():
        chunks_by_name[name] = {row_id: chunks[row_id] for row_id in row_ids}
    return chunks_by_name


def _put_first(documents: Collection[str], ids: Mapping[int, str]) -> list[int]:
    """Return the row ids of chunks, those of some documents first; of a very common name only those."""
    own: list[int] = []
    others: list[int] = []
    for row_id, chunk_id in ids.items():
        document_id, _, _ = chunk_id.rpartition(":")
        if document_id in documents:
            own.append(row_id)
        elif len(ids) < _CHUNKS_WITH_NAME:
            others.append(row_id)
    return [*sorted(own, key=ids.__getitem__), *sorted(others, key=ids.__getitem__)]


def _choose_heading(entry: _Entry, chunks: Mapping[int, Chunk]) -> _Heading | None:
    """Return the heading that an entry names: one of its document, or else one of a document in the same folder."""
    folder = entry.document_id.rpartition("/")[0]
    nearby: _Heading | None = None
    for row_id, chunk in chunks.items():
        position = _find_heading(chunk, entry.name)
        if position is None:
            continue
        heading = _Heading(row_id, chunk, position)
        if chunk.document_id == entry.document_id:
            return heading
        if nearby is None and chunk.document_id.rpartition("/")[0] == folder:
            nearby = heading
    return nearby


def _find_heading(chunk: Chunk, name: str) -> int | None:
    """Return the position of a section's heading in a chunk, or None if it has no such heading.

    The document's title is none: documents are found by their titles in other ways.
    """
    for position, sentence in enumerate(chunk.sentences):
        text = chunk.sentence_text(position)
        if not sentence.embedded and name_section(text) == name and not is_title(text, chunk.title):
            return position
    return None
