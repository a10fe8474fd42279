"""Which documents of an index came from the given files and folders, and are no longer there."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing, suppress

from arag.errors import IndexNotFoundError
from arag.ingest.reading import SourceReader
from arag.retrieval.storage.contract import Draft, IndexStore
from arag.retrieval.storage.sql import TableReader


def find_gone(known: TableReader, used: Collection[str], reader: SourceReader) -> list[str]:
    """Return the ids of the documents that are gone.

    They are from a file that was read without problems, or their file was below a folder. The documents of a file that
    is there but was not read are kept: it may be hidden, or have no reader this time.

    Args:
        known: The index.
        used: The ids of the documents that were read.
        reader: What has read them.
    """
    read = reader.files - reader.failures
    gone: list[str] = []
    for document in known.documents():
        if not document.source or document.id in used:
            continue
        if document.source in read or reader.is_gone(document.source):
            gone.append(document.id)
    return gone


def drop_unfinished(draft: Draft, store: IndexStore, used: Collection[str], reader: SourceReader) -> set[str]:
    """Remove what a run that did not finish has left of files that are gone or ignored now.

    What readers see already is kept, as `find_gone` decides about it.

    Args:
        draft: The index that is being written.
        store: Where it is.
        used: The ids of the documents that were read.
        reader: What has read them.

    Returns:
        The ids of the other documents that such a run has left.
    """
    left = draft.unpublished().difference(used)
    gone = left.intersection(find_gone(draft, used, reader)) if left else set()
    if gone:
        with suppress(IndexNotFoundError), closing(store.open()) as view:
            gone.difference_update(view.fingerprints(gone))
        draft.remove(gone)
    return left - gone
