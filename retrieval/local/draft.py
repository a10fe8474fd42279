"""The next generation of an index in a folder: its files are made from the chunk store, then readers see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from arag.errors import DamagedFileError, IndexFormatError, StorageError
from arag.files import digest
from arag.retrieval.backend import Manifest
from arag.retrieval.keyword_file import write_keyword_file
from arag.retrieval.local.chunk_store import FILE_NAME as CHUNKS_FILE
from arag.retrieval.local.chunk_store import ChunkStore
from arag.retrieval.local.database import discard_database
from arag.retrieval.local.folder import delete_other_generations, name_storage_failures
from arag.retrieval.local.manifest import (
    FILE_NAME,
    FORMAT_VERSION,
    LocalManifest,
    find_file_faults,
    keyword_file,
    manifest_json,
    parse_manifest,
    read_manifest,
    vectors_folder,
    vocabulary_file,
    write_manifest,
)
from arag.retrieval.local.next_vectors import NextVectors
from arag.retrieval.local.seal import make_seal
from arag.retrieval.local.store_check import renew_store
from arag.retrieval.local.vocabulary import write_vocabulary
from arag.retrieval.shift import vector_id

_MAX_REMOVED = 0.3  # of Chroma's vectors: with more, its folder is rebuilt


class LocalDraft:
    """The next generation of an index in a folder; use `open_draft` to get one.

    Args:
        folder: The index's folder.
        manifest: Its manifest.

    Attributes:
        manifest: The manifest that was published last.
        chunks: The chunk store, as it will be.
        published: The chunk store, as readers see it.
    """

    publishes_early = True

    def __init__(self, folder: Path, manifest: LocalManifest) -> None:
        self._folder = folder
        self._is_whole = not any(find_file_faults(folder, manifest))
        self._vectors: NextVectors | None = None
        self.chunks = ChunkStore(folder)
        self._follow(manifest)
        self.chunks.delete_gone(manifest.generation)  # in case a run was killed before it did

    def close(self) -> None:
        """Close the chunk store, and delete what is not published."""
        try:
            self._take_vectors().close()
        finally:
            self.chunks.close()

    def waits_for_others(self) -> bool:
        """There are none: return false."""
        return False

    def prepare(self, sentences: int) -> None:
        """Write the vectors to Chroma, in a thread; see `Draft.prepare`."""
        if self.manifest.format_version == FORMAT_VERSION:  # an older one is rebuilt
            self._vectors = self._vectors or NextVectors(self._folder, self.manifest)
            self._vectors.go_on(sentences)

    def publish(
        self, manifest: Manifest, *, rebuild: bool = False, on_written: Callable[[int, int], None] | None = None
    ) -> bool:
        """Let readers see what was written; see `Draft.publish`."""
        counts = self.chunks.counts()
        totals = {"documents": counts.documents, "chunks": counts.chunks, "sentences": counts.sentences}
        rebuild = rebuild or self.manifest.format_version != FORMAT_VERSION
        wanted = replace(self.manifest, **_settings(manifest) | totals, format_version=FORMAT_VERSION)
        is_changed = wanted != self.manifest or self.chunks.differs_from(self.manifest.generation)
        if rebuild or is_changed or not self._is_whole:
            self._write_next(replace(wanted, generation=wanted.generation + 1), rebuild=rebuild, on_written=on_written)
        return True

    def renew(self) -> None:
        """Copy the chunk store into a new file, without what was removed."""
        self._take_vectors().close()
        self.chunks.close()
        renew_store(self._folder, self.manifest)
        self.chunks = ChunkStore(self._folder)
        self._follow(self.manifest)

    def _follow(self, manifest: LocalManifest) -> None:
        self.manifest = manifest
        self.chunks.writes = manifest.generation + 1
        self.published = self.chunks.at(manifest.generation)

    def _take_vectors(self) -> NextVectors:
        vectors, self._vectors = self._vectors or NextVectors(self._folder, self.manifest), None
        return vectors

    def _write_next(
        self, manifest: LocalManifest, *, rebuild: bool, on_written: Callable[[int, int], None] | None
    ) -> None:
        """Make the files of the next generation, and let readers see it.

        Readers see it as soon as the manifest is replaced. The previous generation's files are then deleted: a search
        that is still using them notices, and runs again.
        """
        folder, chunks, generation = self._folder, self.chunks, manifest.generation
        files = [keyword_file(folder, generation), vocabulary_file(folder, generation)]
        write_keyword_file(files[0], chunks.texts(), chunks.numbers_by_id())
        write_vocabulary(files[1], chunks.words())
        removed_vectors = 0
        with closing(self._take_vectors()) as vectors:
            if manifest.sentences:
                removed_vectors = self._write_vectors(vectors, manifest, rebuild=rebuild, on_written=on_written)
        if manifest.sentences:
            target = vectors_folder(folder, generation)
            # Whoever opens Chroma's own database writes to it.
            files += [file for file in target.rglob("*") if file.is_file() and file.parent != target]
        manifest = replace(
            manifest,
            removed_vectors=removed_vectors,
            files={file.relative_to(folder).as_posix(): (file.stat().st_size, digest(file)) for file in sorted(files)},
        )
        manifest = replace(manifest, seal=make_seal(manifest))
        chunks.set_state(FILE_NAME, manifest_json(manifest))  # from which it can be restored
        write_manifest(folder, manifest)
        chunks.delete_gone(generation)
        delete_other_generations(folder, generation)
        self._follow(manifest)
        self._is_whole = True

    def _write_vectors(
        self,
        vectors: NextVectors,
        manifest: LocalManifest,
        *,
        rebuild: bool,
        on_written: Callable[[int, int], None] | None,
    ) -> int:
        """Make a generation's Chroma folder: from the previous one if that is intact, otherwise from scratch.

        Returns:
            How many vectors that were removed from the index the new folder still holds.
        """
        removed = [
            vector_id(number, position)
            for number, positions in self.chunks.removed_positions(self.manifest.generation)
            for position in positions
        ]
        added = manifest.sentences - self.manifest.sentences + len(removed)
        with suppress(IndexFormatError, StorageError):
            gone = vectors.stop(self.chunks)
            removed_vectors = manifest.removed_vectors + len(removed) + len(gone)
            if not rebuild and removed_vectors <= _MAX_REMOVED * manifest.sentences:
                on_added = _sum_up(on_written, added + len(gone))
                vectors.finish(self.chunks, [*removed, *gone], manifest.sentences, on_added)
                return removed_vectors
        vectors.close()
        with closing(NextVectors(self._folder, self.manifest, from_scratch=True)) as everything:
            everything.finish(self.chunks, [], manifest.sentences, _sum_up(on_written, manifest.sentences))
        return 0


def _sum_up(on_written: Callable[[int, int], None] | None, total: int) -> Callable[[int], None] | None:
    """Return a function that adds up what was written, and passes it on with the total."""
    if on_written is None:
        return None
    written = 0

    def add(more: int) -> None:
        nonlocal written
        written += more
        on_written(written, total)

    return add


@contextmanager
def open_draft(folder: Path, begin: Callable[[], Manifest]) -> Iterator[LocalDraft]:
    """Open the next generation of an index whose lock the caller holds; see `Backend.draft`."""
    with name_storage_failures(folder):
        manifest = read_manifest(folder) if (folder / FILE_NAME).exists() else _begin_index(folder, begin)
        delete_other_generations(folder, manifest.generation)
        discard_database(folder / f"{CHUNKS_FILE}.new")
        if manifest.format_version != FORMAT_VERSION:
            with suppress(DamagedFileError):  # a repair does it later; vectors of both formats are read
                renew_store(folder, manifest)
        with closing(LocalDraft(folder, manifest)) as draft:
            if manifest.generation < 0:
                draft.publish(manifest, rebuild=True)
            yield draft


def _begin_index(folder: Path, begin: Callable[[], Manifest]) -> LocalManifest:
    """Return the chunk store's copy of the manifest, or the manifest of a new index."""
    with closing(ChunkStore(folder, create=True)) as chunks:
        kept = chunks.state(FILE_NAME)
        is_new = not chunks.differs_from(-1)
    if kept is None and not is_new:  # it is unknown which of its rows readers saw
        raise IndexFormatError(
            f"the manifest of the index in {folder} is lost, and so is its copy: "
            "ingest the documents again into another folder"
        )
    if kept is None:
        return replace(LocalManifest(**_settings(begin())), generation=-1)
    manifest = parse_manifest(kept, chunks.file)  # manifest.json was lost, or a run was killed just before writing it
    write_manifest(folder, manifest)
    return manifest


def _settings(manifest: Manifest) -> dict[str, Any]:
    return {field.name: getattr(manifest, field.name) for field in fields(Manifest)}
