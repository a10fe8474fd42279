"""Writes documents into an index: chunks, then their vectors, both to the chunk store; then for readers to see.

All that a run writes belongs to the index's next generation. Chunks wait in the store, marked as pending, until
their vectors are written. `commit` makes them the generation that readers see. Whatever interrupts a run, readers go
on seeing the generation that was committed last, and the next run finishes the work.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arag.errors import EmbedderError, InputError
from arag.files import make_folder
from arag.ingest.chunking import CountBatch, can_be_packed, chunk_document, pack_documents, without_documents
from arag.ingest.documents import Document, Problem, file_of
from arag.ingest.sentences import AUTO, RULES_VERSION
from arag.models.embedders import Embedder, Vectors, load_embedder
from arag.retrieval.local.chunk_rows import DocumentRecord
from arag.retrieval.local.chunk_store import FILE_NAME as CHUNKS_FILE_NAME
from arag.retrieval.local.chunk_store import ChunkStore
from arag.retrieval.local.database import discard_database
from arag.retrieval.local.locking import HOLDER_FILE, LOCK_FILE, write_lock
from arag.retrieval.local.manifest import (
    FILE_NAME,
    FORMAT_VERSION,
    Manifest,
    is_whole,
    parse_manifest,
    read_manifest,
    write_manifest,
)
from arag.retrieval.local.publishing import delete_other_generations, is_of_generation, publish, storage_failures
from arag.retrieval.local.store_check import renew_store, upgrade_store
from arag.retrieval.tokens import TokenCounter, token_counter
from arag.retrieval.trust import embedder_of_index
from arag.retrieval.types import Chunk

CHUNK_TOKENS = 1_000

_CHUNKS_PER_READ = 128
_BETWEEN_COMMITS = 10.0  # seconds, at least
_COMMIT_SHARE = 0.2  # of the sentences that readers see, at least, are new


class IndexWriter:
    """An index that is being written to; use `open_writer` to get one.

    Args:
        folder: The index's folder.
        manifest: Its manifest.
        embedder: Embeds the sentences.
        counter: Counts the tokens of texts.

    Attributes:
        folder: The index's folder.
        manifest: Its manifest.
        embedded: Sentences embedded so far.
        on_indexed: Told how many sentences are written to Chroma, each time some are.
    """

    def __init__(self, folder: Path, manifest: Manifest, embedder: Embedder, counter: TokenCounter) -> None:
        self.folder = folder
        self.manifest = replace(manifest, format_version=FORMAT_VERSION)
        self.embedded = 0
        self.on_indexed: Callable[[int], None] | None = None
        self._embedder = embedder
        self._counter = counter
        self._count: CountBatch = counter.count_batch
        self._counted: set[str] = set()  # documents whose tokens this writer has counted
        self._chunks = ChunkStore(folder)
        self._chunks.writes = manifest.generation + 1
        self._chunks.delete_gone(manifest.generation)  # in case a run was killed before it did
        self._pool = ThreadPoolExecutor(embedder.concurrency, thread_name_prefix="embed")
        self._embedding: deque[tuple[list[tuple[int, Chunk]], Future[tuple[Vectors, int]]]] = deque()
        self._committed = time.monotonic()
        self._uncommitted = 0  # sentences
        self._outdated = manifest != self.manifest or not is_whole(folder, manifest)  # what readers use
        self._submitted = -1  # chunks up to this number are embedded, or being so

    def close(self) -> None:
        """Close the index's files; sentences that are still being embedded are embedded in vain."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._chunks.close()

    def absent(self, document_ids: Sequence[str]) -> list[str]:
        """Return those ids that no document has, in the index as it is written nor as readers still see it."""
        known = self._chunks.fingerprints(document_ids)
        known |= self._chunks.at(self.manifest.generation).fingerprints(document_ids)
        return [document_id for document_id in document_ids if document_id not in known]

    def compact(self) -> None:
        """Make all files anew, without what was removed."""
        self.commit()  # what a killed run has removed leaves the chunk store only with a commit
        self._chunks.close()
        renew_store(self.folder, self.manifest)
        self._chunks = ChunkStore(self.folder)
        self._chunks.writes = self.manifest.generation + 1
        self.commit(anew=True)

    def document_sources(self) -> dict[str, str]:
        """Return the source of every document in the index, by id."""
        return {record.id: record.source for record in self._chunks.documents()}

    def holds(self, document_id: str, source: str) -> bool:
        """Tell whether the index has a document of that id, and not because another file has the same one."""
        record = self._chunks.document(document_id)
        return record is not None and (
            _is_record(source) or _is_record(record.source) or file_of(record.source) == file_of(source)
        )

    def put(self, groups: Sequence[list[Document]]) -> tuple[set[str], list[Problem]]:
        """Write those documents that are new or have changed.

        Args:
            groups: Documents; those of a group share a chunk.

        Returns:
            The ids of the documents that were written, and what could not be.
        """
        fingerprints = {d.id: self._fingerprint(d) for group in groups for d in group}
        known = self._chunks.fingerprints(list(fingerprints))
        problems = [
            p for group in groups for d in group if (p := self._taken(d, fingerprints[d.id], known)) is not None
        ]
        others = {problem.source for problem in problems}
        ours = [kept for group in groups if (kept := [d for d in group if d.source not in others])]
        shared = self._chunks.in_shared_chunks(list(known))
        changed = [group for group in ours if not self._unchanged(group, fingerprints, known, shared)]
        with self._chunks.transaction():
            cut, refused = self._free([(group, self._cut(group)) for group in changed])
            problems += refused
            failed = {problem.source for problem in refused}
            ours = [group for group in ours if group[0].source not in failed]
            written = {document.id for group, _ in cut for document in group}
            self._remove(written)
            for group, chunks in cut:
                self._insert(group, chunks, fingerprints)
            self._counted |= written
            self._chunks.set_sources({d.id: _absolute(d.source) for group in ours for d in group})
        return written, problems

    def remove(self, document_ids: Sequence[str]) -> None:
        """Remove documents; other documents of a packed chunk stay."""
        with self._chunks.transaction():
            self._remove(set(document_ids))

    def flush(self, on_written: Callable[[int], None] | None = None, *, wait: bool = True) -> None:
        """Write the vectors of all pending chunks.

        Args:
            on_written: Told the number of characters whose vectors are written, each time some are.
            wait: Return when all are written; otherwise the last ones are still being embedded.

        Raises:
            EmbedderError: The embedder fails; what was written stays, and the next run does the rest.
        """
        for batch in self._pending_batches():
            texts = [text for _, chunk in batch for text in chunk.embedded_texts()]
            known = self._chunks.former_vectors([s.document_id for _, chunk in batch for s in chunk.sections])
            self._embedding.append((batch, self._pool.submit(self._vectors, texts, known)))
            while len(self._embedding) > self._embedder.concurrency:
                self._write_next(on_written)
        while wait and self._embedding:
            self._write_next(on_written)

    def commit_if_due(self) -> None:
        """Let readers see what was written, when that is worth its time: a part of the index is copied."""
        enough = self._uncommitted >= _COMMIT_SHARE * self.manifest.sentences
        if enough and time.monotonic() - self._committed > _BETWEEN_COMMITS:
            self.commit()

    def commit(self, *, anew: bool = False) -> None:
        """Let readers see what was written, and delete what it replaces.

        Args:
            anew: Make all files that are derived from the chunk store anew, whether or not anything was written.

        Raises:
            EmbedderError: The embedder fails.
            StorageError: The files cannot be written.
        """
        self.flush()
        counts = self._chunks.counts()
        manifest = replace(
            self.manifest,
            tokenizer=self._tokenizer(counts.documents),
            documents=counts.documents,
            chunks=counts.chunks,
            sentences=counts.sentences,
        )
        if (
            anew
            or self._outdated
            or manifest != read_manifest(self.folder)
            or self._chunks.differs_from(manifest.generation)
        ):
            self.manifest = publish(self.folder, self._chunks, manifest, anew=anew, on_written=self.on_indexed)
            self._chunks.writes = self.manifest.generation + 1
            self._outdated = False
        self._committed = time.monotonic()
        self._uncommitted = 0

    def _tokenizer(self, documents: int) -> str:
        """Name what has counted the tokens of the index's documents: `o200k_base, estimate` where both have."""
        before = self.manifest.tokenizer.split(", ") if self.manifest.tokenizer else []
        if not self._counted and before:
            return self.manifest.tokenizer
        if len(self._counted) >= documents:
            return self._counter.name
        return ", ".join(dict.fromkeys([*before, self._counter.name]))

    def _taken(self, document: Document, new: str, known: dict[str, str]) -> Problem | None:
        """Tell whether an id that was made from a path belongs to another file, which is still there.

        Files of the same name in two folders are two documents; a record's id is the same document wherever it is.
        """
        if known.get(document.id, new) in (new, "") or _is_record(document.source):  # without one, it was damaged
            return None
        record = self._chunks.document(document.id)
        if record is None or _is_record(record.source):
            return None
        other = file_of(record.source)
        if other == file_of(document.source) or not other.exists():
            return None
        return Problem(
            document.source,
            f"its id {document.id!r} is already used by {other}; ingest a folder that holds both, so that their paths "
            "differ, or use an index for each",
        )

    def _unchanged(
        self, group: Sequence[Document], new: Mapping[str, str], known: Mapping[str, str], shared: Collection[str]
    ) -> bool:
        """Tell whether a group is in the index as it is, its documents together and no other with them."""
        if any(known.get(document.id) != new[document.id] for document in group):
            return False
        ids = [document.id for document in group]
        if len(ids) == 1:
            return ids[0] not in shared
        together = self._chunks.chunks_of(ids[:1])
        return all(list(dict.fromkeys(s.document_id for s in chunk.sections)) == ids for chunk in together)

    def _remove(self, gone: set[str]) -> None:
        chunks = self._chunks.chunks_of(list(gone))
        if chunks:
            rest = [r for chunk in chunks if (r := without_documents(chunk, gone, count=self._count)) is not None]
            self._counted |= {section.document_id for chunk in rest for section in chunk.sections}
            self._chunks.mdelete([chunk.id for chunk in chunks])
            self._chunks.mset([(chunk.id, chunk) for chunk in rest])
        self._chunks.remove_documents(gone)
        self._counted -= gone

    def _cut(self, group: list[Document]) -> list[Chunk]:
        settings = self.manifest
        if len(group) > 1 or (settings.packed and _short(group[0], settings.chunk_tokens, self._count)):
            return [pack_documents(group, count=self._count, language=settings.language)]
        return chunk_document(
            group[0], chunk_tokens=settings.chunk_tokens, count=self._count, language=settings.language
        )

    def _free(
        self, cut: list[tuple[list[Document], list[Chunk]]]
    ) -> tuple[list[tuple[list[Document], list[Chunk]]], list[Problem]]:
        """Tell groups whose chunk ids are free, or become free with them, from those that cannot be written."""
        problems: list[Problem] = []
        while True:
            going = {document.id for group, _ in cut for document in group}
            claimed: dict[str, str] = {}  # chunk ids of this batch, and whose they are
            kept = []
            for group, chunks in cut:
                owner = self._owner(chunks, going, claimed)
                if owner is None:
                    kept.append((group, chunks))
                    claimed.update((chunk.id, group[0].id) for chunk in chunks)
                else:
                    reason = f"its chunk id {owner[0]!r} is already used by the document {owner[1]!r}"
                    problems += [Problem(document.source, reason) for document in group]
            if len(kept) == len(cut):  # a group that is refused keeps its old chunks, whose ids are then not free
                return kept, problems
            cut = kept

    def _owner(self, chunks: Sequence[Chunk], going: set[str], claimed: Mapping[str, str]) -> tuple[str, str] | None:
        """Return a chunk id that is another document's already, and that document."""
        ids = [chunk.id for chunk in chunks]
        for found in self._chunks.mget(ids):
            if found is not None and found.document_id not in going:
                return found.id, found.document_id
        return next(((chunk_id, claimed[chunk_id]) for chunk_id in ids if chunk_id in claimed), None)

    def _insert(self, group: Sequence[Document], chunks: Sequence[Chunk], fingerprints: dict[str, str]) -> None:
        parts = Counter(i for chunk in chunks for i in {section.document_id for section in chunk.sections})
        self._chunks.add_documents(
            DocumentRecord(
                id=d.id,
                title=d.title,
                source=_absolute(d.source),
                metadata=json.dumps(dict(d.metadata), ensure_ascii=False),
                fingerprint=fingerprints[d.id],
                chunks=parts[d.id],
            )
            for d in group
        )
        self._chunks.mset([(chunk.id, chunk) for chunk in chunks])

    def _fingerprint(self, document: Document) -> str:
        settings = self.manifest
        content: list[object] = [
            document.id,
            document.title,
            document.text,
            dict(document.metadata),
            list(document.page_starts),
            document.ready_chunks,
            [settings.chunk_tokens, settings.language, RULES_VERSION],
        ]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def _pending_batches(self) -> Iterator[list[tuple[int, Chunk]]]:
        """Yield the chunks whose sentences are neither embedded nor being so, with their numbers."""
        batch: list[tuple[int, Chunk]] = []
        sentences = 0
        while pending := self._chunks.pending_chunks(_CHUNKS_PER_READ, after=self._submitted):
            for number, chunk in pending:
                self._submitted = number
                batch.append((number, chunk))
                sentences += len(chunk.embedded_texts())
                if sentences >= self._embedder.batch:
                    yield batch
                    batch, sentences = [], 0
        if batch:
            yield batch

    def _vectors(self, texts: Sequence[str], known: Mapping[str, NDArray[np.float32]]) -> tuple[Vectors, int]:
        """Embed texts, each once, but for those whose vectors are known; tell how many were embedded."""
        new = [text for text in dict.fromkeys(texts) if text not in known]
        embedded: dict[str, NDArray[np.float32]] = {}
        if new:
            vectors = self._embedder.embed_documents(new)
            if vectors.shape[1] != self.manifest.dimension:
                raise EmbedderError(
                    f"the embedder {self._embedder.name} gives vectors of {vectors.shape[1]} numbers, the index in "
                    f"{self.folder} holds vectors of {self.manifest.dimension}"
                )
            embedded = dict(zip(new, vectors, strict=True))
        shape = (len(texts), self.manifest.dimension)
        found = [known[text] if text in known else embedded[text] for text in texts]
        return np.asarray(found, dtype=np.float32).reshape(shape), len(new)

    def _write_next(self, on_written: Callable[[int], None] | None) -> None:
        """Write the vectors of the chunks that were submitted first."""
        batch, future = self._embedding.popleft()
        vectors, embedded = future.result()
        counts = [len(chunk.embedded_texts()) for _, chunk in batch]
        parts = np.split(vectors, np.cumsum(counts)[:-1])
        self._chunks.set_vectors(zip((number for number, _ in batch), parts, strict=True))
        self.embedded += embedded
        self._uncommitted += sum(counts)
        if on_written is not None:
            on_written(sum(len(chunk.text) for _, chunk in batch))


@contextmanager
def open_writer(
    folder: Path,
    *,
    embedder: Embedder | None = None,
    chunk_tokens: int | None = None,
    language: str | None = None,
    packed: bool | None = None,
    counter: TokenCounter | None = None,
) -> Iterator[IndexWriter]:
    """Open an index for writing, creating it where there is none; only one writer at a time.

    Args:
        folder: The index's folder.
        embedder: Embeds the sentences; None for the index's own, or the default for a new index.
        chunk_tokens: Most tokens in a chunk, for documents written from now on; None for the index's own setting.
        language: Language of the sentence rules, likewise.
        packed: Whether short documents are packed, likewise.
        counter: Counts tokens, for documents written from now on.

    Raises:
        IndexLockedError: Another process is writing to the index.
        EmbedderError: The index was made with another embedder, or the embedder cannot be loaded.
        InputError: The folder is a file, or holds something that is not an index.
    """
    try:
        str(folder).encode()  # Chroma takes no other names
        _check_folder(folder)
        make_folder(folder)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"the folder {str(folder)!r} cannot be made or looked into: {reason}") from error
    with (
        write_lock(folder),
        locked_writer(
            folder, embedder=embedder, chunk_tokens=chunk_tokens, language=language, packed=packed, counter=counter
        ) as writer,
    ):
        yield writer


@contextmanager
def locked_writer(
    folder: Path,
    *,
    embedder: Embedder | None = None,
    chunk_tokens: int | None = None,
    language: str | None = None,
    packed: bool | None = None,
    counter: TokenCounter | None = None,
) -> Iterator[IndexWriter]:
    """Open an index for writing whose lock the caller holds; the arguments are those of `open_writer`.

    Raises:
        EmbedderError: The index was made with another embedder, or the embedder cannot be loaded.
        StorageError: The files cannot be written.
    """
    with storage_failures(folder):
        manifest, embedder = _prepare(folder, embedder)
        manifest = replace(
            manifest,
            chunk_tokens=manifest.chunk_tokens if chunk_tokens is None else chunk_tokens,
            language=manifest.language if language is None else language,
            packed=manifest.packed if packed is None else packed,
        )
        writer = IndexWriter(folder, manifest, embedder, counter or token_counter())
        try:
            yield writer
        finally:
            writer.close()


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: give a folder for the index")
    if not folder.is_dir() or (folder / FILE_NAME).exists():
        return
    database = {f"{CHUNKS_FILE_NAME}{ending}" for ending in ("", "-wal", "-shm", ".new", ".new-journal")}
    known = {*database, f"{FILE_NAME}.new", LOCK_FILE, HOLDER_FILE, f"{HOLDER_FILE}.new"}
    names = {file.name for file in folder.iterdir()}
    # The first run makes its database first: without one, a file that is called words.1 is another program's.
    others = {name for name in names - known if CHUNKS_FILE_NAME not in names or not is_of_generation(name)}
    if others:
        raise InputError(
            f"{folder} is not empty and holds no index ({min(others)!r} is there): give an empty or new folder"
        )


def _prepare(folder: Path, embedder: Embedder | None) -> tuple[Manifest, Embedder]:
    """Return the manifest of an index, made where there is none, and the embedder to use."""
    if not (folder / FILE_NAME).exists():
        chunks = ChunkStore(folder, create=True)
        try:
            kept = chunks.state(FILE_NAME)
            if kept is not None:  # the manifest was lost, or a run killed just before it was written
                write_manifest(folder, parse_manifest(kept, chunks.file, to_upgrade=True))
            else:
                chosen = embedder or load_embedder()
                dimension = int(chosen.embed_documents(["dimension"]).shape[1])
                empty = Manifest(chosen.name, dimension, CHUNK_TOKENS, "", AUTO, packed=False, generation=-1)
                return publish(folder, chunks, empty), chosen
        finally:
            chunks.close()
    manifest = read_manifest(folder, to_upgrade=True)
    if manifest.format_version != FORMAT_VERSION:
        upgrade_store(folder, manifest)
    embedder = embedder_of_index(embedder, manifest.embedder, folder)
    delete_other_generations(folder, manifest.generation)
    discard_database(folder / f"{CHUNKS_FILE_NAME}.new")
    return manifest, embedder


def _short(document: Document, chunk_tokens: int, count: CountBatch) -> bool:
    return can_be_packed(document) and count([document.text])[0] <= chunk_tokens


def _absolute(source: str) -> str:
    """Make a source's path absolute, so that the file is found again from anywhere."""
    return os.path.abspath(source)  # noqa: PTH100 - what stands behind the path stays


def _is_record(source: str) -> bool:
    return str(file_of(source)) != _absolute(source)
