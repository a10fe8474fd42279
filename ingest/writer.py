"""Writes documents into an index: first to the chunk store, in one transaction, then their vectors to Chroma.

Chunks wait in the store, marked as pending, until their vectors are written; vectors of removed chunks wait there,
too, until they are deleted. Whatever interrupts a run, the next one finds both lists and finishes the work.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from arag.ingest.chunking import CountBatch, can_be_packed, chunk_document, pack_documents, without_documents
from arag.ingest.documents import Document, Problem, file_of
from arag.ingest.sentences import AUTO, RULES_VERSION
from arag.retrieval.chunk_store import ChunkStore, DocumentRecord, sentence_id
from arag.retrieval.embedders import Embedder, embedder_of_index, load_embedder
from arag.retrieval.errors import EmbedderError, IndexLockedError, InputError
from arag.retrieval.manifest import FILE_NAME, Manifest, read_manifest, write_manifest
from arag.retrieval.sentence_store import SentenceRecord, SentenceStore
from arag.retrieval.tokens import TokenCounter
from arag.retrieval.types import Chunk

CHUNK_TOKENS = 1_000

_CHUNKS_PER_FLUSH = 128
_LOCK_FILE = "write.lock"
_WRITER_FILE = "writer.json"
_OWN_FILES = frozenset({_LOCK_FILE, _WRITER_FILE, f"{FILE_NAME}.new"})  # what a run that died at once may leave


class IndexWriter:
    """An index that is being written to; use `open_writer` to get one.

    Args:
        folder: The index's folder.
        manifest: Its manifest.
        embedder: Embeds the sentences.
        count: Counts the tokens of texts.

    Attributes:
        folder: The index's folder.
        manifest: Its manifest.
        embedded: Sentences embedded so far.
    """

    def __init__(self, folder: Path, manifest: Manifest, embedder: Embedder, count: CountBatch) -> None:
        self.folder = folder
        self.manifest = manifest
        self.embedded = 0
        self._embedder = embedder
        self._count = count
        self._chunks = ChunkStore(folder, create=True)
        self._sentences = SentenceStore(folder, create=True)
        self._known_vectors: dict[str, NDArray[np.float32]] = {}
        if self._sentences.count() < self._chunks.written_sentences():  # Chroma's folder was lost, or put back
            self._chunks.mark_all_pending()

    def close(self) -> None:
        """Close the index's files."""
        self._chunks.close()
        self._sentences.close()

    def document_sources(self) -> dict[str, str]:
        """Return the source of every document in the index, by id."""
        return {record.id: record.source for record in self._chunks.documents()}

    def put(self, groups: Sequence[list[Document]]) -> tuple[int, list[Problem]]:
        """Write those documents that are new or have changed.

        Args:
            groups: Documents; those of a group share a chunk.

        Returns:
            How many documents were written, and what could not be.
        """
        fingerprints = {d.id: self._fingerprint(d) for group in groups for d in group}
        known = self._chunks.fingerprints(list(fingerprints))
        problems = [
            p for group in groups for d in group if (p := self._taken(d, fingerprints[d.id], known)) is not None
        ]
        others = {problem.source for problem in problems}
        ours = [kept for group in groups if (kept := [d for d in group if d.source not in others])]
        changed = [group for group in ours if not self._unchanged(group, fingerprints, known)]
        with self._chunks.transaction():
            cut, refused = self._free([(group, self._cut(group)) for group in changed])
            problems += refused
            failed = {problem.source for problem in refused}
            ours = [group for group in ours if group[0].source not in failed]
            written = [document.id for group, _ in cut for document in group]
            self._remove(written)
            for group, chunks in cut:
                self._insert(group, chunks, fingerprints)
            self._chunks.set_sources({d.id: _absolute(d.source) for group in ours for d in group})
        return len(written), problems

    def remove(self, document_ids: Sequence[str]) -> None:
        """Remove documents; other documents of a packed chunk stay."""
        with self._chunks.transaction():
            self._remove(document_ids)

    def flush(self, on_written: Callable[[Sequence[Chunk]], None] | None = None) -> None:
        """Write the vectors of all pending chunks, and delete those of removed ones.

        Args:
            on_written: Told of chunks whose vectors are written.

        Raises:
            EmbedderError: The embedder fails; what was written stays, and the next run does the rest.
        """
        while pending := self._chunks.pending_chunks(_CHUNKS_PER_FLUSH):
            self._write_vectors(pending)
            self._chunks.mark_embedded(chunk.id for chunk in pending)
            if on_written is not None:
                on_written(pending)
        stale = self._chunks.stale_sentences()
        if stale:
            self._sentences.delete(stale)
            self._chunks.forget_stale(stale)
        self._known_vectors.clear()

    def commit(self) -> None:
        """Bring the manifest up to date, which tells readers that there is something new."""
        counts = self._chunks.counts()
        self.manifest = replace(
            self.manifest,
            documents=counts.documents,
            chunks=counts.chunks,
            sentences=counts.sentences,
            generation=self.manifest.generation + 1,
        )
        write_manifest(self.folder, self.manifest)

    def _taken(self, document: Document, new: str, known: dict[str, str]) -> Problem | None:
        """Tell whether an id that was made from a path belongs to another file, which is still there.

        Files of the same name in two folders are two documents; a record's id is the same document wherever it is.
        """
        if known.get(document.id, new) == new or _is_record(document.source):
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

    def _unchanged(self, group: Sequence[Document], new: dict[str, str], known: dict[str, str]) -> bool:
        """Tell whether a group is in the index as it is, its documents together and no other with them."""
        if any(known.get(document.id) != new[document.id] for document in group):
            return False
        if len(group) == 1 and group[0].ready_chunks is not None:
            return True
        ids = [document.id for document in group]
        together = self._chunks.chunks_of(ids[:1])
        return all(list(dict.fromkeys(s.document_id for s in chunk.sections)) == ids for chunk in together)

    def _remove(self, document_ids: Sequence[str]) -> None:
        gone = set(document_ids)
        chunks = self._chunks.chunks_of(list(gone))
        if chunks:
            self._remember_vectors(chunks)
            rest = [r for chunk in chunks if (r := without_documents(chunk, gone, count=self._count)) is not None]
            self._chunks.mdelete([chunk.id for chunk in chunks])
            self._chunks.mset([(chunk.id, chunk) for chunk in rest])
        self._chunks.remove_documents(gone)

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
        self._chunks.add_documents(
            DocumentRecord(
                id=d.id,
                title=d.title,
                source=_absolute(d.source),
                metadata=json.dumps(dict(d.metadata), ensure_ascii=False),
                fingerprint=fingerprints[d.id],
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
            [settings.chunk_tokens, settings.tokenizer, settings.language, RULES_VERSION],
        ]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def _remember_vectors(self, chunks: Sequence[Chunk]) -> None:
        ids = [
            sentence_id(chunk.id, position)
            for chunk in chunks
            for position, sentence in enumerate(chunk.sentences)
            if sentence.embedded
        ]
        self._known_vectors.update(self._sentences.vectors_by_text(ids))

    def _write_vectors(self, chunks: Sequence[Chunk]) -> None:
        records = [
            SentenceRecord(
                id=sentence_id(chunk.id, position),
                chunk_id=chunk.id,
                document_id=(section := chunk.section_at(sentence.start)).document_id,
                position=position,
                title=section.title,
                text=chunk.sentence_text(position),
            )
            for chunk in chunks
            for position, sentence in enumerate(chunk.sentences)
            if sentence.embedded
        ]
        if not records:
            return
        new = list(dict.fromkeys(r.text for r in records if r.text not in self._known_vectors))
        embedded_now: dict[str, NDArray[np.float32]] = {}
        vectors = ChainMap(embedded_now, self._known_vectors)
        if new:
            embedded = self._embedder.embed_documents(new)
            if embedded.shape[1] != self.manifest.dimension:
                raise EmbedderError(
                    f"the embedder {self._embedder.name} gives vectors of {embedded.shape[1]} numbers, the index in "
                    f"{self.folder} holds vectors of {self.manifest.dimension}"
                )
            embedded_now.update(zip(new, embedded, strict=True))
        self.embedded += len(new)
        self._sentences.add(records, np.stack([vectors[r.text] for r in records]))


@contextmanager
def open_writer(
    folder: Path,
    *,
    embedder: Embedder | None,
    chunk_tokens: int | None,
    language: str | None,
    packed: bool | None,
    counter: TokenCounter,
) -> Iterator[IndexWriter]:
    """Open an index for writing, creating it where there is none; only one writer at a time.

    Args:
        folder: The index's folder.
        embedder: Embeds the sentences; None for the index's own, or the default for a new index.
        chunk_tokens: Most tokens in a chunk, for documents written from now on; None for the index's own setting.
        language: Language of the sentence rules, likewise.
        packed: Whether short documents are packed, likewise.
        counter: Counts tokens.

    Raises:
        IndexLockedError: Another process is writing to the index.
        EmbedderError: The index was made with another embedder, or the embedder cannot be loaded.
        InputError: The folder is a file, or holds something that is not an index.
    """
    _check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made: {error.strerror}") from error
    lock = FileLock(folder / _LOCK_FILE, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise IndexLockedError(
            f"the index in {folder} is being written to by {_holder(folder)}; try again when it is done"
        ) from None
    try:
        (folder / _WRITER_FILE).write_text(json.dumps({"pid": os.getpid()}), encoding="utf-8")
        manifest, embedder = _prepare(folder, embedder)
        manifest = replace(
            manifest,
            chunk_tokens=manifest.chunk_tokens if chunk_tokens is None else chunk_tokens,
            language=manifest.language if language is None else language,
            packed=manifest.packed if packed is None else packed,
            tokenizer=counter.name,
        )
        write_manifest(folder, manifest)
        writer = IndexWriter(folder, manifest, embedder, counter.count_batch)
        try:
            yield writer
        finally:
            writer.close()
    finally:
        (folder / _WRITER_FILE).unlink(missing_ok=True)
        lock.release()


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: give a folder for the index")
    if folder.is_dir() and not (folder / FILE_NAME).exists():
        others = [file.name for file in folder.iterdir() if file.name not in _OWN_FILES]
        if others:
            raise InputError(
                f"{folder} is not empty and holds no index ({min(others)!r} is there): give an empty or new folder"
            )


def _prepare(folder: Path, embedder: Embedder | None) -> tuple[Manifest, Embedder]:
    """Return the index's manifest, a new one for a new index, and the embedder to use."""
    if not (folder / FILE_NAME).exists():
        chosen = embedder or load_embedder()
        dimension = int(chosen.embed_documents(["dimension"]).shape[1])
        return Manifest(chosen.name, dimension, CHUNK_TOKENS, "", AUTO, packed=False), chosen
    manifest = read_manifest(folder)
    return manifest, embedder_of_index(embedder, manifest.embedder, folder)


def _holder(folder: Path) -> str:
    try:
        return f"process {json.loads((folder / _WRITER_FILE).read_text(encoding='utf-8'))['pid']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _short(document: Document, chunk_tokens: int, count: CountBatch) -> bool:
    return can_be_packed(document) and count([document.text])[0] <= chunk_tokens


def _absolute(source: str) -> str:
    """Make a source's path absolute, so that the file is found again from anywhere."""
    return os.path.abspath(source)  # noqa: PTH100 - what stands behind the path stays


def _is_record(source: str) -> bool:
    return str(file_of(source)) != _absolute(source)
