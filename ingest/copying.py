"""Copies an index to another place, without embedding anything again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from arag.errors import IndexLockedError, InputError, ModelError, StorageError
from arag.ingest.progress import Meter, ShowProgress
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.contract import Draft, IndexStore, View
from arag.retrieval.storage.locations import using_store
from arag.retrieval.storage.records import DocumentRecord, EmbeddedDocument

_DOCUMENTS_AT_ONCE = 50


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
    source: str | Path | IndexStore,
    target: str | Path | IndexStore,
    *,
    progress: bool | ShowProgress = False,
) -> CopySummary:
    """Copy an index from one place to another: from a folder to PostgreSQL, back, or between two of a kind.

    Everything is copied as it is stored; no embedder is needed. What the target has already is not written again, so
    the same call continues an interrupted copy, and brings an earlier one up to date. What the source does not have is
    removed. Readers of the target see the copy when it is complete.

    Args:
        source: The folder or the address of the index that is copied, or its store. It is only read.
        target: Where it is copied to, likewise.
        progress: True prints a line about the progress on stderr every few seconds. A function is called with each
            `Progress` instead.

    Raises:
        InputError: The target holds nothing but documents that the source does not have.
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
    with using_store(source) as origin, using_store(target) as place, closing(origin.open()) as view:
        settings = replace(view.settings, token="")
        meter = Meter(progress, settings.chunks)
        with place.draft(lambda: replace(settings, documents=0, chunks=0, sentences=0, tokens=0)) as draft:
            _check_target(place.location, view, draft)
            written = _copy_changed(view, draft, meter)
            meter.report("publishing")
            published = draft.publish(settings)
        meter.end()
        return CopySummary(written, published.documents, published.chunks, published.sentences, meter.seconds)


def _check_target(location: Path | str, view: View, draft: Draft) -> None:
    """Refuse a target with other vectors, or with another corpus, which would be lost."""
    ours, theirs = view.settings, draft.settings
    if (ours.embedder, ours.dimension) != (theirs.embedder, theirs.dimension):
        raise ModelError(
            f"the index in {location} was made with another embedder ({theirs.embedder}, {theirs.dimension} "
            f"dimensions) than {ours.embedder}, {ours.dimension} dimensions: copy to another place"
        )
    first = next(draft.documents(), None)
    if first and not any(view.document(document.id) for document in draft.documents()):
        raise InputError(f"the index in {location} holds another corpus ({first.id}, ...): copy to another place")


def _copy_changed(view: View, draft: Draft, meter: Meter) -> int:
    """Make a draft hold what a view holds; return how many chunks were written."""
    copied = written = 0
    draft.remove({document.id for document in draft.documents()} - {document.id for document in view.documents()})
    for some in batches(view.documents(), _DOCUMENTS_AT_ONCE):
        known = draft.fingerprints([record.id for record in some])
        changed = {record.id: record for record in some if known.get(record.id) != record.fingerprint}
        draft.set_sources({record.id: record.source for record in some if record.id not in changed})
        if draft.claim(changed) != changed.keys():
            raise IndexLockedError("another process is writing the same documents to the target: try again later")
        if taken := draft.put(list(_read(view, changed))):
            raise StorageError(f"documents cannot be copied: others in the target have their chunks ({taken})")
        written += sum(record.chunks for record in changed.values())
        copied += sum(record.chunks for record in some)
        meter.report("copying", copied)
    return written


def _read(view: View, records: dict[str, DocumentRecord]) -> Iterator[EmbeddedDocument]:
    chunks = view.chunks_of(records)
    numbers = view.numbers([chunk.id for chunk in chunks])
    vectors = {number: rows for number, _, rows in view.vectors(numbers.values())}
    none = np.zeros((0, view.settings.dimension), np.float32)
    for document_id, record in records.items():
        own = [chunk for chunk in chunks if chunk.document_id == document_id]
        yield EmbeddedDocument(record, own, [vectors.get(numbers[chunk.id], none) for chunk in own])
