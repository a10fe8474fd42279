"""Maintenance of an index: removing documents, repairing damage, taking removed text out of the files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from rapidfuzz import process

from arag.errors import DamageError, InputError, StorageError
from arag.ingest.writer import open_writer
from arag.models.embedders import Embedder
from arag.retrieval.backend import Backend, Damage
from arag.retrieval.locations import backend_at

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_INGEST_ANEW = "ingest the documents again into another index"


def remove(document_ids: Sequence[str] | str, index: str | Path | Backend) -> int:
    """Remove documents from an index; open readers stop seeing them at their next search.

    The texts stay in the files, but are not searched, until `compact` rewrites them.

    Args:
        document_ids: The documents' ids.
        index: Where the index is: a folder, the address of a PostgreSQL database, or its backend.

    Returns:
        How many documents were removed.

    Raises:
        InputError: The index does not hold one of the documents; none is removed then.
        IndexNotFoundError: There is no index there.
        IndexLockedError: Another process is writing to the index.
        StorageError: The files cannot be written.
    """
    backend = backend_at(index)
    backend.manifest()  # a place without an index does not become one
    wanted = list(dict.fromkeys([document_ids] if isinstance(document_ids, str) else document_ids))
    if not wanted:
        raise InputError("no document id given: remove needs at least one")
    with open_writer(backend) as writer:
        absent = writer.find_absent(wanted)
        if absent:
            ids = (document.id for document in writer.chunks.documents())
            similar = process.extract(absent[0][:200], ids, score_cutoff=60, limit=3)
            hint = f"; similar ids: {', '.join(repr(match[0]) for match in similar)}" if similar else ""
            named = ", ".join(map(repr, absent[:5]))
            raise InputError(f"the index in {backend.location} holds no document {named}{hint}. Nothing was removed.")
        writer.remove(wanted)
        writer.commit()
    return len(wanted)


def compact(index: str | Path | Backend, *, embedder: str | Embeddings | Embedder | None = None) -> tuple[int, int]:
    """Rewrite all files of an index, so that none holds text or vectors that were removed.

    Chroma pads its graph files with whatever was in the memory of the process that wrote them. `arag compact` runs in
    its own process, which reads no removed text. A process that has searched or removed the text itself, and then
    calls this function, may leave pieces of it there.

    Args:
        index: Where the index is: a folder, the address of a PostgreSQL database, or its backend.
        embedder: Needed only if an interrupted run has left sentences without vectors, and the index was made
            with an `Embeddings` object rather than by name.

    Returns:
        The bytes on disk before and after.

    Raises:
        IndexNotFoundError: There is no index there.
        IndexLockedError: Another process is writing to the index.
        StorageError: The files cannot be written.
    """
    backend = backend_at(index)
    backend.manifest()
    before = backend.size()
    with open_writer(backend, embedder=embedder) as writer:
        writer.compact()
    return before, backend.size()


def verify(
    index: str | Path | Backend, *, repair: bool = False, embedder: str | Embeddings | Embedder | None = None
) -> tuple[list[Damage], list[Damage]]:
    """Look for damage in every part of an index, and repair it if asked to.

    The chunk store, with documents, chunks and vectors, is the source of truth: the manifest is restored from it, and
    the keyword file and Chroma's folder are rebuilt from it. What is lost there is dropped. Lost vectors are embedded
    again; documents that have lost text are named, and the next ingestion that reads them writes them again.

    Readers can keep searching meanwhile. A read-only index is checked without its lock.

    Args:
        index: Where the index is: a folder, the address of a PostgreSQL database, or its backend.
        repair: Repair what is found.
        embedder: Needed only if sentences must be embedded again and the index was made with an `Embeddings`
            object rather than by name.

    Returns:
        The damage that was found, and the damage that is left: the same, unless `repair` is set.

    Raises:
        IndexNotFoundError: There is no index there.
        IndexLockedError: Another process is writing to the index.
        IndexFormatError: The chunk store is lost.
        EmbedderError: Sentences must be embedded again, and that fails.
        StorageError: The files cannot be written, or opened.
    """
    backend = backend_at(index)
    if not backend.exists():
        backend.manifest()  # raises the error
    if not repair:
        with ExitStack() as lock:
            is_locked = True
            try:
                lock.enter_context(backend.lock())
            except StorageError:
                is_locked = False
            found = backend.find_damage(locked=is_locked)
            return found, found
    with backend.lock():
        found = backend.find_damage()
        if not any(damage.repairable for damage in found):
            return found, found
        try:
            unnamed = backend.repair(found)
            with open_writer(backend, embedder=embedder, locked=True) as writer:
                writer.commit(rebuild=True)
        except DamageError as error:
            what = f"it cannot be repaired ({error.reason}): {_INGEST_ANEW}"
            return found, [*found, Damage(error.part, what, repairable=False)]
        left = backend.find_damage()
        if any(damage.repairable for damage in left):
            left.append(Damage("documents", f"not all of them can be repaired: {_INGEST_ANEW}", repairable=False))
        if unnamed:
            what = f"{unnamed:,} are lost together with their ids: ingest all files again"
            left.append(Damage("documents", what, repairable=False))
        return found, left
