"""An index in a folder, behind the ports of `arag.retrieval.backend`."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from arag.errors import IndexFormatError
from arag.retrieval.backend import Damage, Draft, Manifest, Sentences
from arag.retrieval.exact import MAX_BYTES, ExactVectors
from arag.retrieval.keyword_file import KeywordMatcher
from arag.retrieval.local.chunk_store import FILE_NAME as CHUNKS_FILE
from arag.retrieval.local.chunk_store import ChunkStore, LocalChunkPart
from arag.retrieval.local.manifest import (
    FILE_NAME,
    LocalManifest,
    check_files,
    keyword_file,
    read_manifest,
    vectors_folder,
)
from arag.retrieval.local.seal import KEY_VARIABLE, is_sealed
from arag.retrieval.local.sentence_graph import SentenceGraph
from arag.retrieval.local.sentence_store import SentenceStore
from arag.retrieval.local.vocabulary import read_vocabulary
from arag.retrieval.tables.words import TableWords

LocalSentences: TypeAlias = "ExactVectors | SentenceGraph"


class LocalBackend:
    """An index in a folder: SQLite for documents and chunks, Chroma for sentence vectors, a file for keywords.

    Modules that only writers need are imported when writing, so searching starts sooner.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        self.location = folder
        self._folder = folder.absolute()  # in case the process changes its working directory

    def exists(self) -> bool:
        """Return whether the folder holds a manifest or a chunk store."""
        # Not Path.exists, which raises an error for a name that is too long.
        return any(os.path.exists(self.location / name) for name in (FILE_NAME, CHUNKS_FILE))  # noqa: PTH110

    def manifest(self) -> LocalManifest:
        """Read the manifest."""
        return read_manifest(self.location)

    def size(self) -> int:
        """Return the bytes of all files in the folder."""
        return sum(_size(Path(folder, name)) for folder, _, names in os.walk(self._folder) for name in names)

    def reader(self) -> LocalReader:
        """Open the index for searching."""
        return LocalReader(self._folder, self.location)

    def make(self) -> None:
        """Create the folder, or check that it is empty or holds an index."""
        from arag.retrieval.local.folder import prepare_folder

        prepare_folder(self.location)

    def lock(self, *, shared: bool = False) -> AbstractContextManager[None]:  # noqa: ARG002 - only one writes here
        """Keep other writers out, with a lock that the operating system releases when its holder dies."""
        from arag.retrieval.local.folder import write_lock

        return write_lock(self.location)

    def draft(self, begin: Callable[[], Manifest]) -> AbstractContextManager[Draft]:
        """Open the next generation for writing; the caller holds the lock."""
        from arag.retrieval.local.draft import open_draft

        return open_draft(self.location, begin)

    def find_damage(self, *, locked: bool = True) -> list[Damage]:
        """Look for damage in all files."""
        from arag.retrieval.local.verify import find_damage

        return find_damage(self.location, locked=locked)

    def repair(self, found: Sequence[Damage]) -> int:
        """Repair the chunk store and the manifest."""
        from arag.retrieval.local.folder import name_storage_failures
        from arag.retrieval.local.verify import repair_store

        with name_storage_failures(self.location):
            return repair_store(self.location, found)


class LocalReader:
    """An index in a folder, open for searching.

    Args:
        folder: The folder's absolute path.
        location: The folder as it was given, for messages.
    """

    def __init__(self, folder: Path, location: Path) -> None:
        self._folder = folder
        self._location = location
        self._chunks: ChunkStore | None = None

    def stamp(self) -> tuple[int, int] | None:
        """Return a value that changes when the manifest is replaced."""
        try:
            status = (self._folder / FILE_NAME).stat()
        except (OSError, ValueError):
            return None
        return status.st_mtime_ns, status.st_ino

    def generation(self) -> LocalGeneration:
        """Open the generation that the manifest describes; all generations share one connection."""
        manifest = read_manifest(self._folder)
        if self._chunks is not None and self._chunks.was_replaced():
            self.close()
        if self._chunks is None:
            self._chunks = ChunkStore(self._folder)
        return LocalGeneration(self._folder, self._location, manifest, self._chunks.at(manifest.generation))

    def close(self) -> None:
        """Close the chunk store."""
        if self._chunks is not None:
            self._chunks.close()
            self._chunks = None


class LocalGeneration:
    """One generation of an index in a folder. Its files are opened by the first search that needs them.

    Args:
        folder: The folder's absolute path.
        location: The folder as it was given, for messages.
        manifest: The generation's manifest.
        chunks: The chunk store, at that generation.
    """

    def __init__(self, folder: Path, location: Path, manifest: LocalManifest, chunks: ChunkStore) -> None:
        self.manifest = manifest
        self.chunks = chunks
        self._folder = folder
        self._location = location
        self._lock = threading.Lock()
        self._keywords: KeywordMatcher | None = None
        self._words = TableWords(chunks, partial(read_vocabulary, folder, manifest))
        self._sentences: LocalSentences | None = None

    def keywords(self) -> KeywordMatcher:
        """Open the keyword file."""
        with self._lock:
            if self._keywords is None:
                file = keyword_file(self._folder, self.manifest.generation)
                check_files(self._folder, self.manifest, file)
                self._keywords = KeywordMatcher(file)
            return self._keywords

    def words(self) -> TableWords:
        """Return the words of the chunk store, and of the vocabulary file."""
        return self._words

    def sentences(self) -> LocalSentences:
        """Open the vectors: as one matrix if they are few, or if Chroma's graph cannot be trusted."""
        with self._lock:
            if self._sentences is None:
                few = 4 * self.manifest.sentences * self.manifest.dimension <= MAX_BYTES
                if few or not self._has_own_graph():
                    self._sentences = ExactVectors(self.chunks.placed_vectors(), self.manifest, self._location)
                else:
                    self._sentences = self._open_graph()
            return self._sentences

    def part(self, document_ids: Collection[str]) -> LocalPart:
        """Return the generation limited to some documents; see `Generation.part`."""
        return LocalPart(self, document_ids)

    def _open_graph(self) -> LocalSentences:
        folder = vectors_folder(self._folder, self.manifest.generation)
        # A flipped bit in its graph can crash the process, or make Chroma run forever.
        check_files(self._folder, self.manifest, folder, contents=True)
        store = SentenceStore(folder)
        if store.count() != self.manifest.sentences:
            raise IndexFormatError(
                f"{folder} has {store.count():,} vectors instead of {self.manifest.sentences:,}: "
                f"run `arag verify --index {self._location} --repair`"
            )
        return SentenceGraph(store, self.chunks, self.manifest, self._location)

    def _has_own_graph(self) -> bool:
        if is_sealed(self.manifest):
            return True
        warnings.warn(
            f"the index in {self._location} was written by another user or on another machine: semantic search "
            "compares with every vector instead of using its graph. To rebuild the graph here, run "
            f"`arag verify --index {self._location} --repair`; to share indexes, set {KEY_VARIABLE} to the same "
            "secret wherever they are written and read",
            stacklevel=2,
        )
        return False


class LocalPart:
    """A part of a generation; it shares the generation's open files.

    Args:
        whole: The generation.
        document_ids: The documents that are left.
    """

    def __init__(self, whole: LocalGeneration, document_ids: Collection[str]) -> None:
        self._whole = whole
        self.chunks = LocalChunkPart(whole.chunks, document_ids)
        counts = self.chunks.counts()
        self.manifest = replace(
            whole.manifest, documents=counts.documents, chunks=counts.chunks, sentences=counts.sentences
        )
        self._words = whole.words().part(self.chunks)
        self._lock = threading.Lock()
        self._keywords: KeywordMatcher | None = None
        self._sentences: Sentences | None = None

    def keywords(self) -> KeywordMatcher:
        """Open the keyword file."""
        with self._lock:
            if self._keywords is None:
                cut = {number: chunk.text for number, chunk in self.chunks.cut.items()}
                by_id = self.chunks.numbers_by_id() if cut else ()
                self._keywords = self._whole.keywords().part(self.chunks.inside, cut, by_id)
            return self._keywords

    def words(self) -> TableWords:
        """Return the words of the chunks."""
        return self._words

    def sentences(self) -> Sentences:
        """Open the vectors."""
        with self._lock:
            if self._sentences is None:
                self._sentences = self._whole.sentences().part(self.chunks.inside, self.chunks.kept)
            return self._sentences

    def part(self, document_ids: Collection[str]) -> LocalPart:
        """Return the generation limited to some of these documents."""
        return self._whole.part(document_ids)


def is_index(folder: Path) -> bool:
    """Return whether a folder is an index."""
    return (folder / FILE_NAME).is_file() and (folder / CHUNKS_FILE).is_file()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # a writer has just removed it
        return 0
