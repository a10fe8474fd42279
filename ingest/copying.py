"""Copies an index to another place, without embedding anything again.

The target's chunks end in the source's order. New chunks can only be appended, so what the target keeps is the longest
beginning of the source's chunks that it has in their order; everything after it is written again. For an interrupted
copy, and for a copy of an earlier generation, that is all that both have.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, fields, replace
from heapq import merge
from itertools import chain, groupby, islice, repeat
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from arag.errors import EmbedderError, IndexFormatError, InputError, StorageError
from arag.ingest.progress import CopyMeter, ShowCopyProgress, showing
from arag.retrieval.backend import Backend, Chunks, DocumentRecord, Draft, Manifest, Reader, Vectors, WritableChunks
from arag.retrieval.index import check_finished
from arag.retrieval.locations import backend_at
from arag.retrieval.types import Chunk, Section, Sentence

_BATCH = 200  # chunks or documents that are read or written at once
_MAX_PASSES = 10  # over a source that is published again meanwhile
_MAX_NAMED = 5
_EMBEDDING = ("embedder", "dimension", "distance")
_SETTINGS = (*_EMBEDDING, "chunk_tokens", "tokenizer", "language", "packed")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CopySummary:
    """What a copy did.

    Attributes:
        written: Chunks that were written; the target had the others.
        documents: Documents in the target now, as in the source.
        chunks: Chunks in the target now.
        sentences: Sentences with a vector in the target now.
        seconds: How long it took.
    """

    written: int
    documents: int
    chunks: int
    sentences: int
    seconds: float


def copy_index(
    source: str | Path | Backend,
    target: str | Path | Backend,
    *,
    progress: bool | ShowCopyProgress = False,
) -> CopySummary:
    """Copy an index from one place to another: from a folder to PostgreSQL, back, or between two of a kind.

    Documents, chunks, vectors and settings are copied as they are stored; nothing is embedded, and no embedder is
    needed. At the end the target is compared with the source, and only then do its readers see the copy. If the source
    is written to meanwhile, the copy follows it.

    The target may be:

    - new or empty. If the copy is interrupted, the same call continues it. Until then, the target cannot be opened, and
      nobody else can write to it.
    - an index with the same embedder, all of whose documents the source has, such as an earlier copy. It is brought up
      to date in one transaction: it becomes equal to the source, or stays as it was.

    Args:
        source: The folder or the address of the index that is copied, or its backend. It is only read.
        target: Where it is copied to.
        progress: True prints a line about the progress on stderr every few seconds. A function is called with each
            `CopyProgress` instead.

    Returns:
        What was done.

    Raises:
        InputError: The target holds documents that the source does not have, or is an unfinished copy of another index.
        EmbedderError: The target holds documents, and was made with another embedder.
        IndexNotFoundError: There is no index in the source, or only an unfinished one.
        IndexLockedError: Another process is writing to the target.
        IndexFormatError: The source or the target is damaged.
        StorageError: The source cannot be read or the target cannot be written, or they differ after copying.

    Example:
        >>> from arag import copy_index, open_index
        >>> copy_index("my-index", "second").documents
        25
        >>> with open_index("second") as second:
        ...     second.keyword_search("Vellin Light").hits[0].chunk_id
        'places/vellin-light.md:0'
    """
    origin, place = backend_at(source), backend_at(target)
    if _name(origin) == _name(place):
        raise InputError(f"the index in {origin.location} cannot be copied to itself: name another place")
    check_finished(origin.manifest(), origin.location)
    with showing(progress) as show, closing(origin.reader()) as reader:
        return _Copy(origin, place, reader, CopyMeter(show)).run()


class _Copy:
    """One copy.

    Args:
        source: Where the index is.
        target: Where it is copied to.
        reader: Reads the source.
        meter: Is told how far it is.
    """

    def __init__(self, source: Backend, target: Backend, reader: Reader, meter: CopyMeter) -> None:
        self._source = source
        self._target = target
        self._reader = reader
        self._meter = meter
        self._written = 0

    def run(self) -> CopySummary:
        """Copy, compare, publish."""
        settings = _settings(self._source.manifest())
        unfinished = Manifest(**settings, copy_of=_name(self._source))
        self._target.make()
        with self._target.lock(), self._target.draft(lambda: unfinished) as draft:
            self._begin(draft, unfinished)
            # A first copy is written piece by piece, as nobody uses the target before it is finished.
            with nullcontext() if draft.manifest.copy_of else draft.chunks.transaction():
                settings = self._follow_source(draft)
            finished = replace(draft.manifest, **settings, copy_of="")
            self._meter.enter("publishing", draft.chunks.counts().sentences)
            draft.publish(finished, on_written=self._meter.publish)
            manifest = draft.manifest
        self._meter.finish(manifest.chunks)
        counts = (manifest.documents, manifest.chunks, manifest.sentences)
        return CopySummary(self._written, *counts, self._meter.seconds)

    def _begin(self, draft: Draft, unfinished: Manifest) -> None:
        """Mark an empty target as an unfinished copy; refuse one that holds something else."""
        found = draft.manifest
        if found.copy_of:
            if found.copy_of != unfinished.copy_of:
                raise InputError(
                    f"{self._target.location} holds an unfinished copy of {found.copy_of}, not of "
                    f"{unfinished.copy_of}: delete it, or name another place"
                )
        elif next(chain(draft.published.documents(), draft.chunks.documents()), None) is None:
            settings = {name: getattr(unfinished, name) for name in (*_SETTINGS, "copy_of")}
            draft.publish(replace(found, **settings))
            return
        self._check_embedder(draft, unfinished)
        if not found.copy_of:
            self._check_documents(draft)

    def _check_embedder(self, draft: Draft, source: Manifest) -> None:
        differing = [name for name in _EMBEDDING if getattr(draft.manifest, name) != getattr(source, name)]
        if differing:
            theirs, ours = (", ".join(str(getattr(m, n)) for n in differing) for m in (draft.manifest, source))
            raise EmbedderError(
                f"{self._target.location} has another {' and '.join(differing)} ({theirs}) than "
                f"{self._source.location} ({ours}): copy into another place"
            )

    def _check_documents(self, draft: Draft) -> None:
        """Refuse a target with documents that the source does not have: two corpora are never mixed, nor one lost."""
        source = self._reader.generation().chunks
        for target in (draft.published, draft.chunks):
            paired = _pair(source.documents(), target.documents())
            foreign = list(islice((theirs.id for ours, theirs in paired if theirs and not ours), _MAX_NAMED))
            if foreign:
                raise InputError(
                    f"{self._target.location} holds documents that {self._source.location} does not have: "
                    f"{', '.join(map(repr, foreign))}. Nothing was copied. Remove them with `arag remove`, or copy to "
                    "another place"
                )

    def _follow_source(self, draft: Draft) -> dict[str, Any]:
        """Make the next generation equal to the source's; return the source's settings.

        A source that was published again meanwhile is read again: some of what it held may have been deleted.
        """
        for _ in range(_MAX_PASSES):
            stamp = self._reader.stamp()
            try:
                generation = self._reader.generation()
                self._check_embedder(draft, generation.manifest)
                self._meter.enter("copying", generation.manifest.chunks)
                expected = self._copy(generation.chunks, draft.chunks, stamp)
            except _MovedOnError:
                continue
            if self._reader.stamp() == stamp:
                self._compare(expected, draft.chunks, generation.manifest)
                return _settings(generation.manifest)
        raise StorageError(
            f"{self._source.location} was written to again and again while it was copied. Nothing was published: copy "
            "it again when nobody writes to it"
        )

    def _copy(self, source: Chunks, target: WritableChunks, stamp: Hashable) -> bytes:
        """Make the target equal to the source; return the source's digest."""
        while pending := target.claim(_BATCH, -1):  # of an interrupted ingestion
            target.mdelete([chunk.id for _, chunk in pending])
        digest = _Digest()
        ours = self._count(digest.rows(self._watch(_read_rows(source), stamp)))
        for changes in _batches(_find_changes(ours, _read_rows(target))):
            added = [row for row, is_ours in changes if is_ours]
            with target.transaction():
                target.mdelete([row.chunk.id for row, is_ours in changes if not is_ours])
                target.add_embedded([(row.chunk, row.vectors) for row in added])
            self._written += len(added)
        entries = digest.documents(self._watch(source.documents(), stamp))
        differing = ((ours, theirs) for ours, theirs in _pair(entries, target.documents()) if ours != theirs)
        for pairs in _batches(differing):
            with target.transaction():
                target.remove_documents([theirs.id for _, theirs in pairs if theirs])
                target.add_documents([ours for ours, _ in pairs if ours])
        return digest.value()

    def _compare(self, expected: bytes, target: Chunks, source: Manifest) -> None:
        """Read the target again, and compare it with the source.

        Raises:
            StorageError: They differ.
        """
        self._meter.enter("checking", source.chunks)
        counts = target.counts()
        totals = [(name, getattr(counts, name), getattr(source, name)) for name in ("documents", "chunks", "sentences")]
        differing = [f"{found:,} {name} instead of {wanted:,}" for name, found, wanted in totals if found != wanted]
        digest = _Digest()
        for rows in (self._count(digest.rows(_read_rows(target))), digest.documents(target.documents())):
            deque(rows, maxlen=0)
        if differing or digest.value() != expected:
            what = ", ".join(differing) or "the checksum of all documents, chunks and vectors"
            raise StorageError(
                f"{self._target.location} differs from {self._source.location} after copying ({what}). Nothing was "
                "published: check both with `arag verify`, and copy again"
            )

    def _watch(self, items: Iterable[T], stamp: Hashable) -> Iterator[T]:
        """Yield what the source holds; an error that its next publication has caused is not one of the source."""
        try:
            yield from items
        except (IndexFormatError, StorageError):
            if self._reader.stamp() == stamp:
                raise
            raise _MovedOnError from None

    def _count(self, rows: Iterable[_Row]) -> Iterator[_Row]:
        """Pass on rows, and tell how many."""
        for batch in _batches(rows):
            yield from batch
            self._meter.add(len(batch))


class _MovedOnError(Exception):
    """The source was published again while it was read."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A chunk with its vectors.

    Attributes:
        chunk: The chunk.
        vectors: The vectors of its embedded sentences.
        content: All of it as it is stored, to compare.
    """

    chunk: Chunk
    vectors: Vectors
    content: bytes


class _Digest:
    """The digest of everything that an index holds, in order."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b()

    def rows(self, rows: Iterable[_Row]) -> Iterator[_Row]:
        """Add rows, and pass them on."""
        for row in rows:
            self._hash.update(row.content)
            yield row

    def documents(self, documents: Iterable[DocumentRecord]) -> Iterator[DocumentRecord]:
        """Add documents' entries, and pass them on."""
        for document in documents:
            self._hash.update(repr(document).encode())
            yield document

    def value(self) -> bytes:
        """Return the digest."""
        return self._hash.digest()


def _get_fields(kind: type, *others: str) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns the values of a dataclass's fields, without some others."""
    return attrgetter(*(field.name for field in fields(kind) if field.name not in others))


_chunk_values = _get_fields(Chunk, "sections", "sentences")
_section_values = _get_fields(Section)
_sentence_values = _get_fields(Sentence)


def _read_rows(chunks: Chunks) -> Iterator[_Row]:
    for _, chunk, vectors in chunks.embedded_chunks():
        values = (
            _chunk_values(chunk),
            [_section_values(section) for section in chunk.sections],
            [_sentence_values(sentence) for sentence in chunk.sentences],
        )
        yield _Row(chunk, vectors, repr(values).encode() + np.asarray(vectors, dtype=np.float16).tobytes())


def _find_changes(ours: Iterable[_Row], theirs: Iterator[_Row]) -> Iterator[tuple[_Row, bool]]:
    """Yield the target's rows that have to go, and after them the source's rows that have to be added.

    Args:
        ours: The source's rows.
        theirs: The target's rows, not those that are added meanwhile.

    Yields:
        A row, and whether it is the source's.
    """
    for row in ours:
        for other in theirs:
            if other.content == row.content:
                break
            yield other, False
        else:
            yield row, True
    for other in theirs:
        yield other, False


def _pair(
    ours: Iterable[DocumentRecord], theirs: Iterable[DocumentRecord]
) -> Iterator[tuple[DocumentRecord | None, DocumentRecord | None]]:
    """Yield documents by id as the source and the target have them; both are in the order of their ids."""
    tagged = (zip(repeat(side), records, strict=False) for side, records in enumerate((ours, theirs)))
    for _, found in groupby(merge(*tagged, key=lambda entry: (entry[1].id, entry[0])), key=lambda entry: entry[1].id):
        by_side = dict(found)
        yield by_side.get(0), by_side.get(1)


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, _BATCH)):
        yield batch


def _settings(manifest: Manifest) -> dict[str, Any]:
    return {name: getattr(manifest, name) for name in _SETTINGS}


def _name(backend: Backend) -> str:
    """Return the name by which a place is known again."""
    location = backend.location
    return str(location.resolve() if isinstance(location, Path) else location)
