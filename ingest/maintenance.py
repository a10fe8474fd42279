"""Maintenance of an index: removing documents, finding and repairing damage."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path

from arag.errors import IndexLockedError, InputError
from arag.ingest.progress import Meter, ShowProgress
from arag.retrieval.scope import compile_pattern
from arag.retrieval.storage.contract import IndexStore, View
from arag.retrieval.storage.locations import using_store
from arag.retrieval.storage.records import Damage

_MAX_NAMED = 5  # documents in a message


def remove(document_ids: Sequence[str] | str, index: str | Path | IndexStore) -> int:
    """Remove documents from an index; open readers stop seeing them at their next search.

    Args:
        document_ids: The documents' ids; `*` in an id matches any characters.
        index: Where the index is: a folder, the address of a PostgreSQL database, or its store.

    Returns:
        How many documents were removed.

    Raises:
        InputError: The index does not hold one of the documents; none is removed then.
        IndexNotFoundError, IndexLockedError, StorageError: The index cannot be written.
    """
    names = [document_ids] if isinstance(document_ids, str) else document_ids
    with (
        using_store(index) as store,
        closing(store.open()) as view,
        store.draft(lambda: view.settings) as draft,
    ):
        wanted = _expand_patterns(names, view)
        # A killed run may have removed some of them; that is published now.
        known = view.fingerprints(wanted) | draft.fingerprints(wanted)
        _check_known(wanted, known, store.location)
        if draft.claim(wanted) != set(wanted):
            raise IndexLockedError(f"another process is writing these documents to {store.location}: try again later")
        draft.remove(wanted)
        draft.publish(draft.settings)
    return len(wanted)


def _check_known(wanted: Sequence[str], known: Collection[str], location: Path | str) -> None:
    absent = [document_id for document_id in wanted if document_id not in known]
    if not absent:
        return
    named = ", ".join(map(repr, absent[:_MAX_NAMED]))
    raise InputError(f"the index in {location} holds no document {named}. Nothing was removed.")


def _expand_patterns(names: Sequence[str], view: View) -> list[str]:
    """Return the ids that match each name, without repeats. A name that matches nothing stays as it is."""
    expanded: list[str] = []
    for name in names:
        if "*" not in name:
            expanded.append(name)
            continue
        pattern = compile_pattern(name)
        ids = [record.id for record in view.documents() if pattern.match(record.id)]
        expanded += ids or [name]
    return list(dict.fromkeys(expanded))


def verify(
    index: str | Path | IndexStore, *, repair: bool = False, progress: bool | ShowProgress = False
) -> tuple[list[Damage], list[Damage]]:
    """Look for damage in every part of an index, and repair it if asked to.

    Documents, chunks and vectors are the source of truth: if they are damaged, the documents must be ingested again.
    Everything else can be rebuilt from them while readers keep searching.

    Args:
        index: Where the index is: a folder, the address of a PostgreSQL database, or its store.
        repair: Whether to repair the damage.
        progress: True prints a line about the progress on stderr every few seconds. A function is called with each
            `Progress` instead.

    Returns:
        The damage that was found, and the damage that is left: the same, unless `repair` is set.

    Raises:
        IndexNotFoundError, IndexLockedError, StorageError: The index cannot be opened or written.
    """
    with using_store(index) as store:
        found = store.find_damage(Meter(progress, phase="checking").report_share)
        can_repair = all(damage.repairable for damage in found)
        if not (repair and found and can_repair):
            return found, found
        store.repair(Meter(progress, phase="repairing").report_share)
        return found, store.find_damage(Meter(progress, phase="checking").report_share)
