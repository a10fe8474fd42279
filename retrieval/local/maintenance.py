"""Care for an index: removing documents, finding and mending damage, taking removed text out of the files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from rapidfuzz import process

from arag.errors import (
    DamagedFileError,
    InputError,
    StorageError,
)
from arag.models.embedders import Embedder, load_embedder
from arag.retrieval.local.chunk_store import FILE_NAME as CHUNKS_FILE
from arag.retrieval.local.locking import write_lock
from arag.retrieval.local.manifest import (
    FILE_NAME,
    read_manifest,
)
from arag.retrieval.local.publishing import storage_failures
from arag.retrieval.local.verify import ELSEWHERE, Damage, find_damage, repair_store
from arag.retrieval.local.writer import locked_writer, open_writer

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


def remove(document_ids: Sequence[str] | str, index: str | Path) -> int:
    """Remove documents from an index; open readers stop to see them at their next search.

    The texts stay in the files, out of every search, until `compact` rewrites them.

    Args:
        document_ids: The documents' ids.
        index: The index's folder.

    Returns:
        How many documents were removed.

    Raises:
        InputError: The index does not hold one of the documents; none is removed then.
        IndexNotFoundError: There is no index in the folder.
        IndexLockedError: Another process is writing to the index.
        StorageError: The files cannot be written.
    """
    folder = Path(index)
    read_manifest(folder)  # a folder without an index is not made one
    wanted = list(dict.fromkeys([document_ids] if isinstance(document_ids, str) else document_ids))
    if not wanted:
        raise InputError("no document id given: remove needs at least one")
    with open_writer(folder) as writer:
        absent = writer.absent(wanted)
        if absent:
            similar = process.extract(absent[0][:200], list(writer.document_sources()), score_cutoff=60, limit=3)
            hint = f"; similar ids: {', '.join(repr(match[0]) for match in similar)}" if similar else ""
            named = ", ".join(map(repr, absent[:5]))
            raise InputError(f"the index in {folder} holds no document {named}{hint}. Nothing was removed.")
        writer.remove(wanted)
        writer.commit()
    return len(wanted)


def compact(index: str | Path, *, embedder: str | Embeddings | Embedder | None = None) -> tuple[int, int]:
    """Rewrite all files of an index, so that none holds text or vectors that were removed.

    Chroma pads its graph files with whatever stood in the memory of the process that wrote them. `arag compact` runs in
    a process of its own, which reads no removed text. A process that has searched or removed the text itself, and
    then calls this function, may leave pieces of it there.

    Args:
        index: The index's folder.
        embedder: Needed only where an interrupted run has left sentences without vectors, and the index was made
            with an `Embeddings` object rather than by name.

    Returns:
        The bytes on disk before and after.

    Raises:
        IndexNotFoundError: There is no index in the folder.
        IndexLockedError: Another process is writing to the index.
        StorageError: The files cannot be written.
    """
    folder = Path(index)
    read_manifest(folder)
    before = _bytes(folder)
    with open_writer(folder, embedder=None if embedder is None else load_embedder(embedder)) as writer:
        writer.compact()
    return before, _bytes(folder)


def verify(
    index: str | Path, *, repair: bool = False, embedder: str | Embeddings | Embedder | None = None
) -> tuple[list[Damage], list[Damage]]:
    """Look for damage in every part of an index, and mend it.

    The documents, their chunks and vectors in the chunk store are the truth: the manifest is restored from it, the
    keyword file and Chroma's folder are made again from it. What is lost there is dropped. Vectors that are lost are
    embedded again; documents of which text is lost are named, and written by the next ingestion that reads them.

    Readers go on searching meanwhile. An index that may not be written to is looked through without its lock.

    Args:
        index: The index's folder.
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
    folder = Path(index)
    if not (folder / FILE_NAME).exists() and not (folder / CHUNKS_FILE).exists():
        read_manifest(folder)  # which says so
    if not repair:
        with ExitStack() as lock:
            try:
                lock.enter_context(write_lock(folder))
            except StorageError:
                found = find_damage(folder, locked=False)
            else:
                found = find_damage(folder)
            return found, found
    with write_lock(folder):
        found = find_damage(folder)
        if not any(damage.mendable for damage in found):
            return found, found
        try:
            with storage_failures(folder):
                unnamed = repair_store(folder, found)
            with locked_writer(folder, embedder=None if embedder is None else load_embedder(embedder)) as writer:
                writer.commit(anew=True)
        except DamagedFileError as error:
            return found, [
                *found,
                Damage(CHUNKS_FILE, f"it cannot be mended ({error.reason}): {ELSEWHERE}", mendable=False),
            ]
        left = find_damage(folder)
        if any(damage.mendable for damage in left):
            left.append(Damage(CHUNKS_FILE, f"not all of it can be mended: {ELSEWHERE}", mendable=False))
        if unnamed:
            what = f"{unnamed:,} documents are lost, and so are their ids: ingest all files again"
            left.append(Damage(CHUNKS_FILE, what, mendable=False))
        return found, left


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
