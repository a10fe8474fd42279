"""Copies an index to another place, without embedding anything again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from os.path import realpath
from pathlib import Path

import numpy as np

from arag.errors import IndexLockedError, InputError, ModelError, StorageError
from arag.ingest.progress import Meter, ShowProgress
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.contract import Draft, IndexStore, View
from arag.retrieval.storage.locations import using_store
from arag.retrieval.storage.records import DocumentRecord, EmbeddedDocument, Vectors
from arag.retrieval.types import Chunk

_DOCUMENTS_AT_ONCE = 20  # whose chunks and vectors are in memory together


@dataclass(frozen=True, slots=True)
class CopySummary:
    """The result of a copy.

    Attributes:
        written: Chunks that were written; the target had the others.
        documents: Documents in the target now, as in the source.
        chunks: Chunks in the target now.
        sentences: Sentences with a vector in the target now.
        seconds: The time that it took.
    """

    written: int
    documents: int
    chunks: int
    sentences: int
    seconds: float


def copy_index(
    source: str | Path | IndexStore,
    target: str | Path | IndexStore,
    *,
    progress: bool | ShowProgress = False,
) -> CopySummary:
    """Copy an index from one place to another: from a folder to PostgreSQL, back, or between two of a kind.

    Everything is copied as it is stored; no embedder is needed. Documents that the target has already are not written
    again, so the same call continues an interrupted copy and brings an earlier one up to date. Documents that the
    source does not have are removed. Readers of the target see the copy when it is complete.

    Args:
        source: The index to copy: a folder, an address or a store. It is only read.
        target: The place to copy it to: a folder, an address or a store.
        progress: True prints a line about the progress on stderr every few seconds. A function is called with each
            `Progress` instead.

    Returns:
        How much was written, and what the target has now.

    Raises:
        InputError: The target is the source, or holds nothing but documents that the source does not have.
        ModelError: The target was made with another embedder.
        IndexNotFoundError, IndexLockedError, IndexFormatError, StorageError: One of them cannot be read or written.

    Example:
        >>> from arag import copy_index, open_index
        >>> copy_index("my-index", "second").documents
        25
        >>> with open_index("second") as second:
        ...     second.keyword_search("Vellin Light").hits[0].chunk_id
        'places/vellin-light.md:0'
    """
    with (
        using_store(source) as origin,
        using_store(target) as place,
        closing(origin.open()) as view,
    ):
        settings = replace(view.settings, token="")
        empty = replace(settings, documents=0, chunks=0, sentences=0, tokens=0)
        meter = Meter(progress, settings.chunks)
        if realpath(origin.location) == realpath(place.location):  # different addresses stay different
            raise InputError(f"{place.location} cannot be copied to itself: name another place")
        with place.draft(lambda: empty) as draft:
            _check_target(place.location, view, draft)
            written = _copy_changed(view, draft, meter)
            meter.report("publishing")
            published = draft.publish(settings)
        meter.end()
        return CopySummary(
            written=written,
            documents=published.documents,
            chunks=published.chunks,
            sentences=published.sentences,
            seconds=meter.seconds,
        )


def _check_target(location: Path | str, view: View, draft: Draft) -> None:
    """Refuse a target with other vectors, or with another corpus, which would be lost."""
    ours = view.settings
    theirs = draft.settings
    if (ours.embedder, ours.dimension) != (theirs.embedder, theirs.dimension):
        raise ModelError(
            f"the index in {location} was made with another embedder ({theirs.embedder}, {theirs.dimension} "
            f"dimensions) than {ours.embedder}, {ours.dimension} dimensions: copy to another place"
        )
    first = next(draft.documents(), None)
    if first is None:
        return
    if not any(view.document(document.id) for document in draft.documents()):
        raise InputError(f"the index in {location} holds another corpus ({first.id}, ...): copy to another place")


def _copy_changed(view: View, draft: Draft, meter: Meter) -> int:
    """Make a draft equal to a view; return how many chunks were written."""
    copied = 0
    written = 0
    meter.report("copying")
    _remove_absent(view, draft)
    for records in batches(view.documents(), _DOCUMENTS_AT_ONCE):
        changed = _find_changed(records, draft)
        unchanged = [record for record in records if record.id not in changed]
        draft.set_sources({record.id: record.source for record in unchanged})
        if draft.claim(changed) != changed.keys():
            raise IndexLockedError("another process is writing the same documents to the target: try again later")
        taken = draft.put(_read(view, changed))
        if taken:
            raise StorageError(f"documents cannot be copied: others in the target have their chunks ({taken})")
        for record in records:
            copied += record.chunks
            if record.id in changed:
                written += record.chunks
        meter.report("copying", copied, documents=len(records))
    return written


def _remove_absent(view: View, draft: Draft) -> None:
    """Remove documents that the view does not have."""
    ours = {document.id for document in view.documents()}
    theirs = {document.id for document in draft.documents()}
    draft.remove(theirs - ours)


def _find_changed(records: Sequence[DocumentRecord], draft: Draft) -> dict[str, DocumentRecord]:
    """Return the documents that the draft does not have in this version, by id."""
    known = draft.fingerprints([record.id for record in records])
    return {record.id: record for record in records if known.get(record.id) != record.fingerprint}


def _read(view: View, records: Mapping[str, DocumentRecord]) -> list[EmbeddedDocument]:
    """Read documents with their chunks and vectors."""
    chunks = view.chunks_of(records)
    row_ids = view.row_ids([chunk.id for chunk in chunks])
    vectors = {row_id: rows for row_id, _, rows in view.vectors(row_ids.values())}
    no_vectors = np.zeros((0, view.settings.dimension), np.float32)
    own_chunks = defaultdict[str, list[Chunk]](list)
    own_vectors = defaultdict[str, list[Vectors]](list)
    for chunk in chunks:
        own_chunks[chunk.document_id].append(chunk)
        own_vectors[chunk.document_id].append(vectors.get(row_ids[chunk.id], no_vectors))
    return [
        EmbeddedDocument(record, own_chunks[document_id], own_vectors[document_id])
        for document_id, record in records.items()
    ]
