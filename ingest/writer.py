"""Writes documents into an index: cut, embedded, stored together with their vectors, and in the end published.

A pool of threads embeds a batch of documents, as many as one call of the embedder takes, while the main thread cuts the
next one. A batch is stored in one transaction, once it has all its vectors. If a run is interrupted, what is stored is
kept, and the next run goes on from there. Readers see all of it when a run publishes.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arag.errors import ModelError
from arag.ingest.chunking import chunk_document
from arag.ingest.documents import Document, Problem
from arag.ingest.progress import Meter
from arag.ingest.sentences import RULES_VERSION
from arag.models.embedders import Embedder, load_embedder
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.contract import Draft, IndexStore
from arag.retrieval.storage.records import DocumentRecord, EmbeddedDocument, Settings, Vectors
from arag.retrieval.trust import choose_embedder
from arag.retrieval.types import Chunk
from arag.text.tokens import count_batch, name_tokenizer, warn_of_estimates

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

DEFAULT_CHUNK_TOKENS = 1_000

_SENTENCE_CHARACTERS = 100
_BETWEEN_LOOKS = 0.2  # seconds, at documents that another process is writing
_PATIENCE = 600.0  # seconds, until they are left out
_HASH_LENGTH = 32


class _Batch(NamedTuple):
    """Documents that were put together, while their sentences are being embedded."""

    documents: list[tuple[Document, DocumentRecord, list[Chunk]]]  # those that are new or have changed
    vectors: dict[str, NDArray[np.float32]]  # by the sentences' texts; at first those of the documents' former versions
    calls: list[tuple[list[str], Future[Vectors]]]  # calls of the embedder, each with its texts
    end: int  # bytes of all sources up to its end

    @property
    def is_embedded(self) -> bool:
        return all(call.done() for _, call in self.calls)


def content_of(fingerprint: str) -> str:
    """Return the part of a fingerprint that does not change with a document's id and title."""
    return fingerprint[:_HASH_LENGTH]


def _hash(values: tuple[object, ...]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:_HASH_LENGTH]


class IndexWriter:
    """An index that is being written to; use `open_writer` to get one.

    Attributes:
        draft: The index's next publication.
        settings: The settings of the next publication.
        written: Documents stored so far.
        problems: What could not be stored, by the documents' ids.
    """

    def __init__(
        self,
        draft: Draft,
        settings: Settings,
        embedder: Embedder,
        location: Path | str,
        meter: Meter,
    ) -> None:
        self.draft = draft
        self.settings = settings
        self.written = 0
        self.problems: dict[str, Problem] = {}
        self._embedder = embedder
        self._location = location
        self._meter = meter
        self._pool = ThreadPoolExecutor(embedder.concurrency, thread_name_prefix="embed")
        self._batches: deque[_Batch] = deque()
        self._next: list[tuple[Document, DocumentRecord, list[Chunk]]] = []  # of the next batch
        self._next_sentences = 0
        self._end = 0  # bytes of all sources up to the end of the next batch
        self._claimed_by_others: list[Document] = []

    @property
    def batch_characters(self) -> int:
        """Characters of documents that are put together, with about as many sentences as a call of the embedder has."""
        return _SENTENCE_CHARACTERS * self._embedder.batch

    def close(self) -> None:
        """Stop; embeddings in progress are discarded."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def fingerprint(self, document: Document) -> str:
        """Return what changes when a document, or a setting that its chunks depend on, changes."""
        rules = self.settings.chunk_tokens, self.settings.tokenizer, RULES_VERSION
        content = document.text, dict(document.metadata), document.page_starts, document.ready_chunks, rules
        return _hash(content) + _hash((document.id, document.title))

    def put(self, documents: Sequence[Document], end: int) -> None:
        """Write the documents that are new or have changed; `end` is the bytes of all sources up to their end.

        They may still be embedded when it returns.
        """
        fingerprints = {document.id: self.fingerprint(document) for document in documents}
        changed = self._find_changed(fingerprints)
        claimed = self.draft.claim(changed)
        self._claimed_by_others += [document for document in documents if document.id in changed - claimed]
        # Another writer may have written some of them before they were claimed.
        ours = self._find_changed({document_id: fingerprints[document_id] for document_id in claimed})
        unchanged = [d for d in documents if d.id not in changed or d.id in claimed - ours]
        self.draft.set_sources({document.id: document.file for document in unchanged})
        start, more = self._end, max(0, end - self._end)
        for number, document in enumerate(documents, 1):
            if document.id in ours:
                if reason := self._find_conflict(document):
                    self._refuse(document, reason)
                else:
                    self._cut(document, fingerprints[document.id])
            self._end = start + more * number // len(documents)
        self._meter.report(done=None if self._next or self._batches else end, documents=len(unchanged))

    def flush(self) -> None:
        """Store everything that was put; wait for documents that another process is writing."""
        self._store_all()
        patience_ends = time.monotonic() + _PATIENCE
        while self._claimed_by_others and time.monotonic() < patience_ends:
            time.sleep(_BETWEEN_LOOKS)
            others, self._claimed_by_others = self._claimed_by_others, []
            self.put(others, self._meter.done)
            self._store_all()
        for document in self._claimed_by_others:
            self._refuse(document, "another process is writing it: ingest it again")

    def _find_changed(self, fingerprints: Mapping[str, str]) -> set[str]:
        known = self.draft.fingerprints(fingerprints)
        return {document_id for document_id, new in fingerprints.items() if known.get(document_id) != new}

    def _find_conflict(self, document: Document) -> str:
        """Return why a document must not replace the one that the index has under its id, or an empty string.

        A file that is gone leaves its id to another one. In a database it may be on another machine, and leaves its id
        only to the same content.
        """
        known = None if document.has_own_id else self.draft.document(document.id)
        if known is None or known.source == document.file:
            return ""
        is_gone = bool(known.source) and not os.path.lexists(known.source)
        if is_gone and (
            isinstance(self._location, Path) or content_of(known.fingerprint) == content_of(self.fingerprint(document))
        ):
            return ""
        owner = known.source or "a document that was given in Python"
        return f"its id {known.id!r} belongs to {owner}: ingest the folder above both"

    def _refuse(self, document: Document, reason: str) -> None:
        self.problems[document.id] = Problem(document.source, reason)
        self._meter.report(documents=1)

    def _cut(self, document: Document, fingerprint: str) -> None:
        """Cut a document into chunks, for the next batch if its sentences still fit into a call of the embedder."""
        chunks = chunk_document(document, chunk_tokens=self.settings.chunk_tokens, count=count_batch)
        metadata = json.dumps(dict(document.metadata), ensure_ascii=False)
        record = DocumentRecord(document.id, document.title, document.file, metadata, fingerprint, len(chunks))
        sentences = sum(len(chunk.embedded_positions()) for chunk in chunks)
        if self._next_sentences + sentences > self._embedder.batch:
            self._begin()
        self._next.append((document, record, chunks))
        self._next_sentences += sentences

    def _begin(self) -> None:
        """Have the next batch embedded; store earlier ones, so that few wait."""
        if not self._next:
            return
        vectors = self.draft.vectors_by_text([document.id for document, *_ in self._next])
        texts = dict.fromkeys(text for *_, chunks in self._next for chunk in chunks for text in chunk.embedded_texts())
        calls = self._embed(text for text in texts if text not in vectors)
        self._batches.append(_Batch(self._next, vectors, calls, self._end))
        self._next, self._next_sentences = [], 0
        while self._batches and (self._batches[0].is_embedded or self._many_calls_wait()):
            self._store_first()

    def _many_calls_wait(self) -> bool:
        """Return whether the embedder has enough to do while a batch is waited for."""
        return len(self._batches) > 1 and sum(len(batch.calls) for batch in self._batches) > self._embedder.concurrency

    def _embed(self, texts: Iterable[str]) -> list[tuple[list[str], Future[Vectors]]]:
        calls = []
        for some in batches(texts, self._embedder.batch):
            if not self._embedder.is_loaded:  # it may have to be downloaded first
                self._meter.report("loading")
                self._embedder.load()
            self._meter.report("embedding")
            calls.append((some, self._pool.submit(self._embedder.embed_documents, some)))
        return calls

    def _store_all(self) -> None:
        self._begin()
        while self._batches:
            self._store_first()

    def _store_first(self) -> None:
        """Wait for the vectors of the batch that was begun first, and store it."""
        batch, start = self._batches.popleft(), self._meter.done
        for number, (texts, call) in enumerate(batch.calls, 1):
            vectors = call.result()
            if vectors.shape[1] != self.settings.dimension:
                raise ModelError(
                    f"the embedder {self._embedder.name} returns vectors of {vectors.shape[1]} dimensions, but the "
                    f"index in {self._location} has {self.settings.dimension}"
                )
            batch.vectors.update(zip(texts, vectors, strict=True))
            done = start + (batch.end - start) * number // (len(batch.calls) + 1)
            self._meter.report("embedding", done, sentences=len(texts))
        taken = self.draft.put(
            [
                EmbeddedDocument(record, chunks, [self._vectors(chunk, batch.vectors) for chunk in chunks])
                for _, record, chunks in batch.documents
            ]
        )
        for document, *_ in batch.documents:
            if document.id in taken:
                self._refuse(document, f"its chunk id {taken[document.id]!r} is already used by another document")
        stored = len(batch.documents) - len(taken)
        self.written += stored
        self._meter.report(done=batch.end, documents=stored)

    def _vectors(self, chunk: Chunk, vectors: Mapping[str, NDArray[np.float32]]) -> Vectors:
        rows = [vectors[text] for text in chunk.embedded_texts()]
        return np.asarray(rows, np.float32).reshape(-1, self.settings.dimension)


@contextmanager
def open_writer(
    store: IndexStore,
    *,
    embedder: str | Embeddings | Embedder | None,
    chunk_tokens: int | None,
    meter: Meter,
) -> Iterator[IndexWriter]:
    """Open an index for writing, creating it if it does not exist; the arguments are those of `run_ingest`.

    Raises:
        ModelError: The index was made with another embedder, or the embedder cannot be loaded.
        InputError, IndexLockedError, IndexFormatError, StorageError: It cannot be written; see `IndexStore.draft`.
    """
    chosen = None if embedder is None else load_embedder(embedder)
    tokenizer = name_tokenizer()

    def begin() -> Settings:
        nonlocal chosen
        chosen = chosen or load_embedder()
        meter.report("loading")
        dimension = int(chosen.embed_documents(["dimension"]).shape[1])
        meter.report("embedding")
        return Settings(chosen.name, dimension, DEFAULT_CHUNK_TOKENS, tokenizer)

    with store.draft(begin) as draft:
        if not draft.settings.documents or draft.settings.tokenizer != tokenizer:
            warn_of_estimates()
        chunk_tokens = chunk_tokens or draft.settings.chunk_tokens
        settings = replace(draft.settings, tokenizer=tokenizer, chunk_tokens=chunk_tokens)
        checked = choose_embedder(chosen, settings.embedder, store.location)
        with closing(IndexWriter(draft, settings, checked, store.location, meter)) as writer:
            try:
                yield writer
            except KeyboardInterrupt:
                kept = f"{writer.written:,} new or changed documents are kept in {store.location}"
                warnings.warn(f"{kept}: run the same ingestion again to finish it", stacklevel=1)
                raise
