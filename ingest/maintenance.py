"""Maintenance of an index: removing documents, finding and repairing damage."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from arag.errors import IndexLockedError, InputError
from arag.retrieval.scope import compile_pattern
from arag.retrieval.storage.contract import IndexStore
from arag.retrieval.storage.locations import using_store
from arag.retrieval.storage.records import Damage


def remove(document_ids: Sequence[str] | str, index: str | Path | IndexStore) -> int:
    """Remove documents from an index; open readers stop seeing them at their next search.

    Args:
        document_ids: The documents' ids; in each, `*` may stand for any characters.
        index: Where the index is: a folder, the address of a PostgreSQL database, or its store.

    Returns:
        How many documents were removed.

    Raises:
        InputError: The index does not hold one of the documents; none is removed then.
        IndexNotFoundError, IndexLockedError, StorageError: It cannot be written.
    """
    names = [document_ids] if isinstance(document_ids, str) else document_ids
    wanted: dict[str, None] = {}
    with using_store(index) as store, closing(store.open()) as view, store.draft(lambda: view.settings) as draft:
        for name in names:
            like = compile_pattern(name)
            ids = [record.id for record in view.documents() if like.match(record.id)] if "*" in name else []
            wanted |= dict.fromkeys(ids or [name])
        # A killed run may have removed some of them, which is published now.
        known = view.fingerprints(wanted) | draft.fingerprints(wanted)
        absent = [document_id for document_id in wanted if document_id not in known]
        if absent:
            named = ", ".join(map(repr, absent[:5]))
            raise InputError(f"the index in {store.location} holds no document {named}. Nothing was removed.")
        if draft.claim(wanted) != wanted.keys():
            raise IndexLockedError(f"another process is writing these documents to {store.location}: try again later")
        draft.remove(wanted)
        draft.publish(draft.settings)
    return len(wanted)


def verify(index: str | Path | IndexStore, *, repair: bool = False) -> tuple[list[Damage], list[Damage]]:
    """Look for damage in every part of an index, and repair it if asked to.

    Documents, chunks and vectors are the source of truth: if they are damaged, the documents must be ingested again.
    Everything else is made from them again, while readers keep searching.

    Args:
        index: Where the index is: a folder, the address of a PostgreSQL database, or its store.
        repair: Repair what is found.

    Returns:
        The damage that was found, and the damage that is left: the same, unless `repair` is set.

    Raises:
        IndexNotFoundError, IndexLockedError, StorageError: It cannot be opened, or written.
    """
    with using_store(index) as store:
        before = store.find_damage()
        if not (repair and before and all(damage.repairable for damage in before)):
            return before, before
        store.repair()
        return before, store.find_damage()
