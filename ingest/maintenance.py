"""Care for an index: removing documents, finding and mending damage, taking removed text out of the files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from rapidfuzz import process

from arag.errors import DamagedFileError, InputError, StorageError
from arag.ingest.writer import open_writer
from arag.models.embedders import Embedder
from arag.retrieval.backend import Backend, Damage
from arag.retrieval.locations import backend_at

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_INGEST_ANEW = "ingest the documents again into another folder"


def remove(document_ids: Sequence[str] | str, index: str | Path | Backend) -> int:
    """Remove documents from an index; open readers stop to see them at their next search.

    The texts stay in the files, out of every search, until `compact` rewrites them.

    Args:
        document_ids: The documents' ids.
        index: The index's folder, or its backend.

    Returns:
        How many documents were removed.

    Raises:
        InputError: The index does not hold one of the documents; none is removed then.
        IndexNotFoundError: There is no index in the folder.
        IndexLockedError: Another process is writing to the index.
        StorageError: The files cannot be written.
    """
    backend = backend_at(index)
    backend.manifest()  # a folder without an index is not made one
    wanted = list(dict.fromkeys([document_ids] if isinstance(document_ids, str) else document_ids))
    if not wanted:
        raise InputError("no document id given: remove needs at least one")
    with open_writer(backend) as writer:
        absent = writer.find_absent(wanted)
        if absent:
            similar = process.extract(absent[0][:200], list(writer.document_sources()), score_cutoff=60, limit=3)
            hint = f"; similar ids: {', '.join(repr(match[0]) for match in similar)}" if similar else ""
            named = ", ".join(map(repr, absent[:5]))
            raise InputError(f"the index in {backend.location} holds no document {named}{hint}. Nothing was removed.")
        writer.remove(wanted)
        writer.commit()
    return len(wanted)


def compact(index: str | Path | Backend, *, embedder: str | Embeddings | Embedder | None = None) -> tuple[int, int]:
    """Rewrite all files of an index, so that none holds text or vectors that were removed.

    Chroma pads its graph files with whatever stood in the memory of the process that wrote them. `arag compact` runs in
    a process of its own, which reads no removed text. A process that has searched or removed the text itself, and
    then calls this function, may leave pieces of it there.

    Args:
        index: The index's folder, or its backend.
        embedder: Needed only where an interrupted run has left sentences without vectors, and the index was made
            with an `Embeddings` object rather than by name.

    Returns:
        The bytes on disk before and after.

    Raises:
        IndexNotFoundError: There is no index in the folder.
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
    """Look for damage in every part of an index, and mend it.

    The documents, their chunks and vectors in the chunk store are the truth: the manifest is restored from it, the
    keyword file and Chroma's folder are made again from it. What is lost there is dropped. Vectors that are lost are
    embedded again; documents of which text is lost are named, and written by the next ingestion that reads them.

    Readers go on searching meanwhile. An index that may not be written to is looked through without its lock.

    Args:
        index: The index's folder, or its backend.
        repair: Mend what is found.
        embedder: Needed only where sentences must be embedded again and the index was made with an `Embeddings`
            object rather than by name.

    Returns:
        What was found, and what of it is left: all of it, unless `repair` is set.

    Raises:
        IndexNotFoundError: There is no index in the folder.
        IndexLockedError: Another process is writing to the index.
        IndexFormatError: The chunk store is lost.
        EmbedderError: Sentences must be embedded again, and that fails.
        StorageError: The files cannot be written, or opened.
    """
    backend = backend_at(index)
    if not backend.exists():
        backend.manifest()  # which says so
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
        if not any(damage.mendable for damage in found):
            return found, found
        try:
            unnamed = backend.repair(found)
            with open_writer(backend, embedder=embedder, locked=True) as writer:
                writer.commit(anew=True)
        except DamagedFileError as error:
            what = f"it cannot be mended ({error.reason}): {_INGEST_ANEW}"
            return found, [*found, Damage(error.part, what, mendable=False)]
        left = backend.find_damage()
        if any(damage.mendable for damage in left):
            left.append(Damage("documents", f"not all of them can be mended: {_INGEST_ANEW}", mendable=False))
        if unnamed:
            what = f"{unnamed:,} are lost, and so are their ids: ingest all files again"
            left.append(Damage("documents", what, mendable=False))
        return found, left
