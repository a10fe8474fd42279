"""Care for an index: removing documents, finding and mending damage, taking removed text out of the files."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rapidfuzz import process

from arag.ingest.locking import write_lock
from arag.ingest.publishing import checksum
from arag.ingest.writer import open_writer
from arag.retrieval.chunk_store import FILE_NAME as CHUNKS_FILE
from arag.retrieval.chunk_store import ChunkStore
from arag.retrieval.embedders import Embedder, load_embedder
from arag.retrieval.errors import IndexFormatError, IndexNotFoundError, InputError
from arag.retrieval.manifest import FILE_NAME, Manifest, parse_manifest, read_manifest, vectors_folder
from arag.retrieval.sentence_store import SentenceStore, vector_id

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_SAME = 1e-4  # vectors are stored in Chroma shifted, and shifted back


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that is wrong with an index.

    Attributes:
        part: The file or folder.
        what: What is wrong with it.
    """

    part: str
    what: str

    def __str__(self) -> str:
        return f"{self.part}: {self.what}"


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
    keyword file and Chroma's folder are made again from it. Vectors that are not in it are embedded again.

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
        IndexFormatError: The index is of another format version, or the chunk store is lost.
        StorageError: The files cannot be written.
    """
    folder = Path(index)
    try:
        read_manifest(folder)
    except IndexFormatError:
        pass  # which is damage
    except IndexNotFoundError:
        if not (folder / CHUNKS_FILE).exists():
            raise
    with write_lock(folder):
        found = list(_damages(folder))
        if not found or not repair:
            return found, found
        _prepare_mending(folder)
    with open_writer(folder, embedder=None if embedder is None else load_embedder(embedder)) as writer:
        writer.commit(anew=True)
        return found, list(_damages(folder))


def _damages(folder: Path) -> Iterator[Damage]:
    """Look through an index; the caller holds its lock."""
    chunks = _chunk_store(folder)
    with closing(chunks):
        for fault in chunks.faults():
            yield Damage(CHUNKS_FILE, fault)
        try:
            manifest = read_manifest(folder)
        except (IndexFormatError, IndexNotFoundError) as error:
            yield Damage(FILE_NAME, str(error))
            return
        at = chunks.at(manifest.generation)
        yield from _manifest_damages(folder, manifest, at)
        derived = [*_vector_damages(manifest, at), *_file_damages(folder, manifest)]
        yield from derived
        if not derived and manifest.sentences:  # Chroma may take the process down with it when its files are damaged
            yield from _chroma_damages(folder, manifest, at)


def _chunk_store(folder: Path) -> ChunkStore:
    try:
        return ChunkStore(folder)
    except IndexFormatError as error:
        raise IndexFormatError(
            f"the documents of the index in {folder} are lost ({error}): ingest them again into another folder"
        ) from error


def _manifest_damages(folder: Path, manifest: Manifest, chunks: ChunkStore) -> Iterator[Damage]:
    counts = chunks.counts()
    for name, told, there in (
        ("documents", manifest.documents, counts.documents),
        ("chunks", manifest.chunks, counts.chunks),
        ("sentences", manifest.sentences, counts.sentences),
    ):
        if told != there:
            yield Damage(FILE_NAME, f"it tells of {told:,} {name}, the index holds {there:,}")
    kept = _kept_manifest(chunks, folder)
    # A run that was killed just before it replaced the manifest has kept the next one already.
    if kept is not None and kept.generation != manifest.generation + 1 and kept != manifest:
        differing = [k for k in manifest.__dataclass_fields__ if getattr(kept, k) != getattr(manifest, k)]
        yield Damage(FILE_NAME, f"it is not the one that was written: {', '.join(differing)} differ")


def _kept_manifest(chunks: ChunkStore, folder: Path) -> Manifest | None:
    kept = chunks.state(FILE_NAME)
    return None if kept is None else parse_manifest(kept, folder / CHUNKS_FILE)


def _vector_damages(manifest: Manifest, chunks: ChunkStore) -> Iterator[Damage]:
    waiting = chunks.without_vectors()
    if waiting:
        yield Damage(CHUNKS_FILE, f"{len(waiting):,} chunks have no vectors")
    spoilt = list(_spoilt_vectors(manifest, chunks))
    if spoilt:
        yield Damage(CHUNKS_FILE, f"the vectors of {len(spoilt):,} chunks are damaged")


def _spoilt_vectors(manifest: Manifest, chunks: ChunkStore) -> Iterator[int]:
    for number, sentences, blob in chunks.vector_blobs():
        size = 4 * manifest.dimension * sentences
        if len(blob) != size or not np.isfinite(np.frombuffer(blob, dtype=np.float32)).all():
            yield number


def _file_damages(folder: Path, manifest: Manifest) -> Iterator[Damage]:
    for name, (size, expected) in manifest.files.items():
        file = folder / name
        if not file.is_file():
            yield Damage(name, "it is missing")
        elif file.stat().st_size != size:
            yield Damage(name, f"it has {file.stat().st_size:,} bytes in place of {size:,}")
        elif checksum(file) != expected:
            yield Damage(name, "its checksum is wrong")
    if manifest.sentences:
        database = vectors_folder(folder, manifest.generation) / "chroma.sqlite3"
        name = database.relative_to(folder).as_posix()
        if not database.is_file():
            yield Damage(name, "it is missing")
            return
        try:
            with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                faults = [row[0] for row in connection.execute("PRAGMA quick_check")]
        except sqlite3.DatabaseError as error:
            faults = [str(error)]
        if faults != ["ok"]:
            yield Damage(name, "; ".join(faults[:3]))


def _chroma_damages(folder: Path, manifest: Manifest, chunks: ChunkStore) -> Iterator[Damage]:
    name = vectors_folder(folder, manifest.generation).name
    try:
        store = SentenceStore(vectors_folder(folder, manifest.generation))
    except IndexFormatError as error:
        yield Damage(name, str(error))
        return
    with closing(store):
        strangers = set(store.ids())
        lacking = wrong = 0
        for number, chunk, vectors in chunks.embedded_chunks():
            ids = [vector_id(number, position) for position, s in enumerate(chunk.sentences) if s.embedded]
            held = store.vectors(ids)
            strangers -= held.keys()
            lacking += len(ids) - len(held)
            wrong += sum(
                not np.allclose(held[i], v, atol=_SAME) for i, v in zip(ids, vectors, strict=True) if i in held
            )
        if lacking:
            yield Damage(name, f"{lacking:,} sentences have no vector")
        if wrong:
            yield Damage(name, f"{wrong:,} vectors are not those of their sentences")
        if strangers:
            yield Damage(name, f"{len(strangers):,} vectors belong to no chunk")


def _prepare_mending(folder: Path) -> None:
    """Mend what the files are made from: the manifest, the table of words, the vectors in the chunk store."""
    with closing(_chunk_store(folder)) as chunks:
        kept = _kept_manifest(chunks, folder)
        if kept is None:
            manifest = read_manifest(folder)
        else:
            manifest = kept
            (folder / FILE_NAME).unlink(missing_ok=True)  # the writer puts the kept one in its place
        chunks.rebuild_terms()
        chunks.forget_vectors([*_spoilt_vectors(manifest, chunks), *chunks.without_vectors()])


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
