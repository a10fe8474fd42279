"""Finds damage in an index, and repairs the manifest and the chunk store, which all other files are made from.

A repair makes every derived file again. So these are only checked for being intact: by the checksums in the manifest,
by SQLite's own checks, and by reading the vectors back from Chroma.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import fields
from pathlib import Path

from arag.errors import ARAGError, DamagedFileError, IndexFormatError, IndexNotFoundError, StorageError
from arag.retrieval.backend import Damage
from arag.retrieval.local.chroma_check import check_database
from arag.retrieval.local.chunk_store import FILE_NAME as CHUNKS_FILE
from arag.retrieval.local.chunk_store import ChunkStore
from arag.retrieval.local.manifest import (
    FILE_NAME,
    LocalManifest,
    find_file_faults,
    read_manifest,
    vectors_folder,
    write_manifest,
)
from arag.retrieval.local.next_vectors import read_sentences
from arag.retrieval.local.seal import is_sealed
from arag.retrieval.local.sentence_store import SentenceStore
from arag.retrieval.local.store_check import StoreCheck, StoreRows, find_table_faults, renew_store
from arag.retrieval.tables.check import list_ids

_INGEST_ANEW = "ingest the documents again into another folder"
_UNFINISHED = "the first ingestion was interrupted: run the same `arag ingest` again to finish it"


def find_damage(folder: Path, *, locked: bool = True) -> list[Damage]:
    """Look for damage in every part of an index; see `Backend.find_damage`.

    Without the lock nothing is written, and not everything can be checked.
    """
    try:
        with closing(StoreRows(folder)) as rows:
            return list(_find_all(folder, rows, locked=locked))
    except (sqlite3.Error, OSError) as error:
        if isinstance(error, ARAGError):
            raise
        raise StorageError(f"the index in {folder} cannot be checked: {error}") from error


def repair_store(folder: Path, found: Sequence[Damage]) -> int:
    """Repair the manifest and the chunk store of an index whose lock the caller holds; see `Backend.repair`."""
    with closing(StoreRows(folder)) as rows:
        manifest = _mend_manifest(folder, rows.kept_manifest())
    sound = not any(damage.part == CHUNKS_FILE and damage.repairable for damage in found)
    return 0 if sound else renew_store(folder, manifest, salvage=True)


def _find_all(folder: Path, rows: StoreRows, *, locked: bool) -> Iterator[Damage]:
    kept = rows.kept_manifest()
    try:
        manifest = read_manifest(folder)
    except (IndexFormatError, IndexNotFoundError) as error:
        what = "it is missing" if isinstance(error, IndexNotFoundError) else getattr(error, "reason", str(error))
        if kept is None and isinstance(error, DamagedFileError | IndexNotFoundError):  # not of another version
            copy_lost = f"{what}, and its copy cannot be read: {_INGEST_ANEW}"
            what = _UNFINISHED if rows.is_empty() else copy_lost
        yield Damage(FILE_NAME, what, repairable=kept is not None)
        if kept is not None:
            yield from _check_store(rows, kept, locked=locked)
        return
    if manifest.generation == 0 and manifest.documents == 0:
        yield Damage(FILE_NAME, _UNFINISHED, repairable=False)
    if kept is None:
        yield Damage(CHUNKS_FILE, "its copy of the manifest cannot be read")
    # A run that was killed just before it replaced the manifest has saved the next one already.
    elif kept.generation != manifest.generation + 1 and kept != manifest:
        changed = [
            field.name for field in fields(manifest) if getattr(manifest, field.name) != getattr(kept, field.name)
        ]
        yield Damage(FILE_NAME, f"it has changed since it was written: {', '.join(changed)} differ")
    found = [*_check_store(rows, manifest, locked=locked), *_check_derived_files(folder, manifest)]
    yield from found
    # Chroma may crash the process when its files are damaged.
    if manifest.sentences and not any(damage.repairable for damage in found):
        yield from _check_chroma(folder, manifest, locked=locked)


def _mend_manifest(folder: Path, kept: LocalManifest | None) -> LocalManifest:
    """Return the manifest, restored from its copy if it is not what was written."""
    try:
        manifest = read_manifest(folder)
    except (IndexFormatError, IndexNotFoundError):
        if kept is None:
            raise
    else:
        next_is_unfinished = kept and kept.generation == manifest.generation + 1 and any(find_file_faults(folder, kept))
        if kept is None or kept == manifest or next_is_unfinished:
            return manifest
    write_manifest(folder, kept)
    return kept


def _check_store(rows: StoreRows, manifest: LocalManifest, *, locked: bool) -> Iterator[Damage]:
    check = StoreCheck(rows, manifest)
    for what in check.faults:
        yield Damage(CHUNKS_FILE, what)
    try:
        for what in find_table_faults(rows.file, check.parts, may_write=locked):
            yield Damage(CHUNKS_FILE, what)
    except DamagedFileError as error:
        yield Damage(CHUNKS_FILE, error.reason)
    for name, there in check.counts.items():
        if not check.faults and there != getattr(manifest, name):
            yield Damage(FILE_NAME, f"it lists {getattr(manifest, name):,} {name}, the chunk store holds {there:,}")
    if check.to_ingest_again:
        again = check.to_ingest_again
        what = f"ingest again the documents that have lost a part ({len(again):,}): {list_ids(again)}"
        yield Damage(CHUNKS_FILE, what, repairable=False)


def _check_derived_files(folder: Path, manifest: LocalManifest) -> Iterator[Damage]:
    for name, fault in find_file_faults(folder, manifest, contents=True):
        yield Damage(name, fault)
    if not is_sealed(manifest):
        yield Damage(
            FILE_NAME,
            "the derived files were written by another user or on another machine: the vector graph is not used",
        )
    elif manifest.sentences:
        try:
            check_database(vectors_folder(folder, manifest.generation), pages=True)
        except IndexFormatError as error:
            yield Damage(vectors_folder(folder, manifest.generation).name, str(error))


def _check_chroma(folder: Path, manifest: LocalManifest, *, locked: bool) -> Iterator[Damage]:
    vectors = vectors_folder(folder, manifest.generation)
    try:
        with (
            closing(ChunkStore(folder, generation=manifest.generation)) as chunks,
            closing(SentenceStore(vectors)) as store,
        ):
            fault = store.fault(read_sentences(chunks, -1), manifest.sentences)
    except DamagedFileError:  # of the chunk store
        raise
    except IndexFormatError as error:
        if not locked:  # Chroma writes when it opens
            raise StorageError(f"the index in {folder} cannot be checked: {error}") from error
        fault = str(error)
    if fault:
        yield Damage(vectors.name, fault)
