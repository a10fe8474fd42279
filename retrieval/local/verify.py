"""Finds what is damaged in an index, and repairs what all of its files are made from."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from arag.errors import (
    ARAGError,
    DamagedFileError,
    IndexFormatError,
    IndexNotFoundError,
    StorageError,
)
from arag.files import digest
from arag.retrieval.backend import Damage
from arag.retrieval.local.chroma_check import check_database
from arag.retrieval.local.chunk_store import FILE_NAME as CHUNKS_FILE
from arag.retrieval.local.chunk_store import ChunkStore
from arag.retrieval.local.draft import sentences_of
from arag.retrieval.local.manifest import (
    FILE_NAME,
    FORMAT_VERSION,
    LocalManifest,
    file_size,
    is_whole,
    parse_manifest,
    read_manifest,
    vectors_folder,
    write_manifest,
)
from arag.retrieval.local.seal import is_sealed
from arag.retrieval.local.sentence_store import SentenceStore
from arag.retrieval.local.store_check import CheckedStore, StoreCheck, StoreRows, named, renew_store

_INGEST_ANEW = "ingest the documents again into another folder"
_UNFINISHED = "the first ingestion was interrupted: run the same `arag ingest` again to finish it"


def find_damage(folder: Path, *, locked: bool = True) -> list[Damage]:
    """Look through an index; the caller holds its lock, or cannot."""
    try:
        with closing(_store_rows(folder)) as rows:
            return list(_damages(folder, rows, locked=locked))
    except (sqlite3.Error, OSError) as error:
        if isinstance(error, ARAGError):
            raise
        raise StorageError(f"the index in {folder} cannot be looked through: {error}") from error


def _store_rows(folder: Path) -> StoreRows:
    try:
        return StoreRows(folder)
    except IndexFormatError as error:
        reason = error.reason if isinstance(error, DamagedFileError) else "the file is missing"
        raise IndexFormatError(
            f"the documents of the index in {folder} are lost ({CHUNKS_FILE}: {reason}): "
            "ingest them again into another folder"
        ) from error


def _damages(folder: Path, rows: StoreRows, *, locked: bool) -> Iterator[Damage]:
    kept = _kept_manifest(rows)
    manifest = None
    try:
        manifest = read_manifest(folder, to_upgrade=True)
    except (IndexFormatError, IndexNotFoundError) as error:
        yield _lost_manifest(error, rows, kept)
    else:
        if manifest.format_version != FORMAT_VERSION:
            yield Damage(FILE_NAME, f"it has format version {manifest.format_version} and can be brought up to date")
        if manifest.generation == 0 and manifest.documents == 0:
            yield Damage(FILE_NAME, _UNFINISHED, mendable=False)
    known = manifest or kept
    if known is None or rows.is_old:
        return
    found = list(_store_damages(folder, rows, known, locked=locked))
    yield from found
    if manifest is None:
        return
    if kept is None:
        yield Damage(CHUNKS_FILE, "its copy of the manifest cannot be read")
    # A run that was killed just before it replaced the manifest has kept the next one already.
    elif kept.generation != manifest.generation + 1 and kept != manifest:
        differing = [k for k in manifest.__dataclass_fields__ if getattr(kept, k) != getattr(manifest, k)]
        yield Damage(FILE_NAME, f"it is not the one that was written: {', '.join(differing)} differ")
    files = list(_file_damages(folder, manifest))
    yield from files
    # Chroma may take the process down with it when its files are damaged.
    if manifest.sentences and not any(damage.mendable for damage in [*found, *files]):
        with closing(ChunkStore(folder)) as chunks:
            yield from _chroma_damages(folder, manifest, chunks.at(manifest.generation), locked=locked)


def _lost_manifest(error: Exception, rows: StoreRows, kept: LocalManifest | None) -> Damage:
    if not isinstance(error, DamagedFileError | IndexNotFoundError):  # an index of another version
        return Damage(FILE_NAME, str(error), mendable=kept is not None)
    reason = error.reason if isinstance(error, DamagedFileError) else "it is missing"
    if kept is not None:
        return Damage(FILE_NAME, reason)
    if rows.is_empty():
        return Damage(FILE_NAME, _UNFINISHED, mendable=False)
    return Damage(FILE_NAME, f"{reason}; there is no copy of it that can be read: {_INGEST_ANEW}", mendable=False)


def _kept_manifest(rows: StoreRows) -> LocalManifest | None:
    """Return the copy of the manifest in the chunk store; None where it is lost."""
    kept = rows.kept_manifest()
    try:
        return None if kept is None else parse_manifest(kept, rows.file, to_upgrade=True)
    except IndexFormatError:
        return None


def _store_damages(folder: Path, rows: StoreRows, manifest: LocalManifest, *, locked: bool) -> Iterator[Damage]:
    check = StoreCheck(rows, manifest)
    try:
        with closing(CheckedStore(folder)) as chunks:
            for what in chunks.table_faults(may_write=locked):
                yield Damage(CHUNKS_FILE, what)
            counts = chunks.at(manifest.generation).counts()
            for name in ("documents", "chunks", "sentences"):
                told, there = getattr(manifest, name), getattr(counts, name)
                if told != there:
                    yield Damage(FILE_NAME, f"it tells of {told:,} {name}, the index holds {there:,}")
    except DamagedFileError as error:
        yield Damage(CHUNKS_FILE, error.reason)
    for what in check.faults:
        yield Damage(CHUNKS_FILE, what)
    if check.to_ingest_again:
        again = check.to_ingest_again
        what = f"of {len(again):,} documents a part was lost: ingest them again: {named(again)}"
        yield Damage(CHUNKS_FILE, what, mendable=False)


def _file_damages(folder: Path, manifest: LocalManifest) -> Iterator[Damage]:
    for name, (size, expected) in manifest.files.items():
        found = file_size(folder, name)
        if found < 0:
            yield Damage(name, "it is missing")
        elif found != size:
            yield Damage(name, f"it has {found:,} bytes in place of {size:,}")
        elif digest(folder / name) != expected:
            yield Damage(name, "its checksum is wrong")
    if not is_sealed(manifest):
        yield Damage(
            FILE_NAME,
            "somebody else has written the files that are derived from the documents, or on another machine: the graph "
            "of vectors is not used",
        )
    elif manifest.sentences:
        try:
            check_database(vectors_folder(folder, manifest.generation), pages=True)
        except IndexFormatError as error:
            yield Damage(vectors_folder(folder, manifest.generation).name, str(error))


def _chroma_damages(folder: Path, manifest: LocalManifest, chunks: ChunkStore, *, locked: bool) -> Iterator[Damage]:
    name = vectors_folder(folder, manifest.generation).name
    try:
        with closing(SentenceStore(vectors_folder(folder, manifest.generation))) as store:
            found = store.differences(sentences_of(chunks, -1))
    except DamagedFileError:  # of the chunk store
        raise
    except IndexFormatError as error:
        if not locked:  # Chroma writes when it opens
            raise StorageError(f"the index in {folder} cannot be looked through: {error}") from error
        yield Damage(name, str(error))
        return
    for count, what in (
        (found.missing, "sentences have no vector"),
        (found.wrong, "vectors or texts are not those of their sentences"),
        (found.strange, "vectors belong to no chunk"),
    ):
        if count:
            yield Damage(name, f"{count:,} {what}")


def repair_store(folder: Path, found: Sequence[Damage]) -> int:
    """Mend what all files are made from, the manifest and the chunk store; return how many ids are lost."""
    with closing(_store_rows(folder)) as rows:
        manifest = _mended_manifest(folder, _kept_manifest(rows))
        sound = not rows.is_old and not any(damage.part == CHUNKS_FILE and damage.mendable for damage in found)
    return 0 if sound else renew_store(folder, manifest, salvage=True)


def _mended_manifest(folder: Path, kept: LocalManifest | None) -> LocalManifest:
    """Return the manifest, and put the one that was kept in its place where it is not the one that was written."""
    if kept is None:
        return read_manifest(folder, to_upgrade=True)
    try:
        manifest = read_manifest(folder, to_upgrade=True)
    except (IndexFormatError, IndexNotFoundError):
        pass
    else:
        if kept == manifest or (kept.generation == manifest.generation + 1 and not is_whole(folder, kept)):
            return manifest
    write_manifest(folder, kept)
    return kept
