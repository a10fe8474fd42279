"""Makes the files of the index's next generation from the chunk store, and lets readers see it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from sqlite3 import Error as SQLiteError

import numpy as np
from filelock import Timeout

from arag.errors import ARAGError, DamagedFileError, IndexFormatError, StorageError
from arag.files import delete, digest
from arag.retrieval.local.chunk_store import FILE_NAME as CHUNKS_FILE
from arag.retrieval.local.chunk_store import ChunkStore
from arag.retrieval.local.database import is_damage
from arag.retrieval.local.keywords import write_keyword_file
from arag.retrieval.local.manifest import (
    FILE_NAME,
    Manifest,
    check_files,
    keyword_file,
    manifest_json,
    vectors_folder,
    vocabulary_file,
    write_manifest,
)
from arag.retrieval.local.seal import is_sealed, make_seal
from arag.retrieval.local.sentence_store import SentenceRecord, Vectors, vector_id, write_sentences
from arag.retrieval.local.vocabulary import write_vocabulary
from arag.retrieval.types import Chunk

_MOST_REMOVED = 0.3  # of Chroma's vectors: with more, its folder is made anew
_SENTENCES_AT_ONCE = 2_000
_GENERATION_FILE = re.compile(
    "|".join(rf"{kind(Path(), 0).stem}\.[0-9]+(?:\.new)?" for kind in (keyword_file, vocabulary_file, vectors_folder))
)


def publish(
    folder: Path,
    chunks: ChunkStore,
    manifest: Manifest,
    *,
    anew: bool = False,
    on_written: Callable[[int], None] | None = None,
) -> Manifest:
    """Make all that the chunk store holds the index's next generation, and let readers see it.

    The keyword file is written, and Chroma's folder: a copy of the one before, with what has changed. Readers see
    the new generation from the moment that the manifest is replaced. What the one before had is deleted then: who
    is searching in it notices, and searches again.

    Args:
        folder: The index's folder.
        chunks: Its chunk store, opened for writing; every chunk has its vectors.
        manifest: What the manifest is to say; the numbers of documents, chunks and sentences are counted here.
        anew: Make Chroma's folder from nothing.
        on_written: Told how many sentences are written to Chroma, each time some are.

    Returns:
        The manifest of the new generation.

    Raises:
        StorageError: The files cannot be written.
    """
    before = manifest.generation
    counts = chunks.counts()
    manifest = replace(
        manifest,
        documents=counts.documents,
        chunks=counts.chunks,
        sentences=counts.sentences,
        generation=before + 1,
    )
    files = [keyword_file(folder, manifest.generation), vocabulary_file(folder, manifest.generation)]
    write_keyword_file(files[0], chunks.texts(), chunks.numbers_by_id())
    write_vocabulary(files[1], chunks.words())
    removed_vectors = 0
    if counts.sentences:
        target = vectors_folder(folder, manifest.generation)
        removed = [vector_id(number, i) for number, places in chunks.removed_positions(before) for i in places]
        removed_vectors = manifest.removed_vectors + len(removed)
        previous = None if anew else _previous(folder, manifest, before, removed_vectors)
        if previous is None or not _succeeds(folder, chunks, manifest, previous, removed, on_written):
            removed_vectors = 0
            write_sentences(target, None, [], lambda: sentences_of(chunks, -1), counts.sentences, on_written)
        # Chroma's own database is written to by whoever opens it.
        files += [file for file in target.rglob("*") if file.is_file() and file.parent != target]
    manifest = replace(
        manifest,
        removed_vectors=removed_vectors,
        files={file.relative_to(folder).as_posix(): (file.stat().st_size, digest(file)) for file in sorted(files)},
    )
    manifest = replace(manifest, seal=make_seal(manifest))
    chunks.set_state(FILE_NAME, manifest_json(manifest))  # from which it can be restored
    write_manifest(folder, manifest)
    chunks.delete_gone(manifest.generation)
    delete_other_generations(folder, manifest.generation)
    return manifest


def delete_other_generations(folder: Path, generation: int) -> None:
    """Delete the files of generations that readers do not see, and what a killed run has not renamed."""
    for name in (FILE_NAME, CHUNKS_FILE):
        delete(folder / f"{name}.new")
    seen = {kind(folder, generation) for kind in (keyword_file, vocabulary_file, vectors_folder)}
    for path in list(folder.iterdir()):
        if path not in seen and is_of_generation(path.name):
            delete(path)


def is_of_generation(name: str) -> bool:
    """Tell whether a name is one that the file or folder of a generation has, complete or not."""
    return _GENERATION_FILE.fullmatch(name) is not None


@contextmanager
def storage_failures(folder: Path) -> Iterator[None]:
    """Name the index in what goes wrong while its files are written, or read by who writes.

    Raises:
        DamagedFileError: The chunk store is damaged.
        StorageError: The files cannot be written.
    """
    try:
        yield
    except (SQLiteError, OSError) as error:
        if isinstance(error, ARAGError | Timeout):  # which are OSErrors, too: of a missing index, and of the lock
            raise
        if isinstance(error, SQLiteError) and is_damage(error):
            raise DamagedFileError(folder / CHUNKS_FILE, str(error)) from error
        raise StorageError(
            f"the index in {folder} cannot be written to ({error}); its disk has {_free(folder) / 1e6:,.0f} MB left. "
            "What was written stays, and the next run goes on from there."
        ) from error


def _free(folder: Path) -> int:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def _previous(folder: Path, manifest: Manifest, generation: int, removed_vectors: int) -> Path | None:
    """Return Chroma's folder of the generation before, where the new one is best made from it."""
    previous = vectors_folder(folder, generation)
    if not is_sealed(manifest) or not previous.is_dir() or removed_vectors > _MOST_REMOVED * manifest.sentences:
        return None
    try:
        check_files(folder, manifest, previous, contents=True)
    except (IndexFormatError, StorageError):
        return None
    return previous


def _succeeds(
    folder: Path,
    chunks: ChunkStore,
    manifest: Manifest,
    previous: Path,
    removed: Sequence[str],
    on_written: Callable[[int], None] | None,
) -> bool:
    """Make Chroma's folder from the one before, and tell whether that went well: it may have been damaged."""
    generation = manifest.generation - 1
    target = vectors_folder(folder, manifest.generation)
    try:
        write_sentences(
            target, previous, removed, lambda: sentences_of(chunks, generation), manifest.sentences, on_written
        )
    except StorageError:
        return False
    return True


def sentences_of(chunks: ChunkStore, since: int) -> Iterator[tuple[list[SentenceRecord], Vectors]]:
    """Yield the sentences of chunks that were added after a generation, and their vectors."""
    records: list[SentenceRecord] = []
    arrays: list[Vectors] = []
    for number, chunk, vectors in chunks.embedded_chunks(since):
        if len(vectors):
            records += _records(number, chunk)
            arrays.append(vectors)
        if len(records) >= _SENTENCES_AT_ONCE:
            yield records, np.concatenate(arrays)
            records, arrays = [], []
    if records:
        yield records, np.concatenate(arrays)


def _records(number: int, chunk: Chunk) -> list[SentenceRecord]:
    found = []
    for position, sentence in enumerate(chunk.sentences):
        if sentence.embedded:
            section = chunk.section_at(sentence.start)
            found.append(
                SentenceRecord(
                    id=vector_id(number, position),
                    chunk_id=chunk.id,
                    document_id=section.document_id,
                    position=position,
                    title=section.title,
                    text=chunk.sentence_text(position),
                )
            )
    return found
