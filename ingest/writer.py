"""Writes documents into an index: they are cut, embedded, stored with their vectors, and finally published.

A batch has as many documents as fit into one call of the embedder. A pool of threads embeds it while the main thread
cuts the next one. A batch is stored in one transaction, once it has all its vectors. If a run is interrupted, the
stored batches are kept, and the next run continues from there. Readers see everything when a run publishes.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arag.errors import ModelError
from arag.ingest.chunking import chunk_document
from arag.ingest.documents import Document, Problem
from arag.ingest.progress import Meter
from arag.ingest.sentences import RULES_VERSION
from arag.models.embedders import Embedder, load_embedder
from arag.models.similarity import SAMPLE_SENTENCES, measure_spread
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.contract import Draft, IndexStore
from arag.retrieval.storage.fingerprints import HASH_LENGTH, content_of, file_hash_of, version_of
from arag.retrieval.storage.metadata import format_metadata
from arag.retrieval.storage.records import DocumentRecord, EmbeddedDocument, Reading, Settings, Vectors
from arag.retrieval.trust import choose_embedder
from arag.retrieval.types import Chunk
from arag.text.normalise import count
from arag.text.tokens import count_batch, name_tokenizer, warn_of_estimates
from arag.text.visible import visible_line

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

DEFAULT_CHUNK_TOKENS = 1_000

_SENTENCE_CHARACTERS = 100  # about as many as a sentence has; decides how many documents are looked up together
_SECONDS_BETWEEN_LOOKS = 0.2  # at documents that another process is writing
_PATIENCE_SECONDS = 600.0  # until such documents are left out: a batch of another process may take minutes to embed


@dataclass(frozen=True, slots=True)
class _CutDocument:
    """A document that is new or has changed, with its chunks."""

    document: Document
    record: DocumentRecord
    chunks: list[Chunk]

    def count_sentences(self) -> int:
        return sum(len(chunk.embedded_positions()) for chunk in self.chunks)

    def texts(self) -> Iterator[str]:
        """Yield the sentences that get a vector."""
        for chunk in self.chunks:
            yield from chunk.embedded_texts()


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of the embedder."""

    texts: list[str]
    vectors: Future[Vectors]
    sentences: int
    """The sentences that have these texts: equal ones are embedded once."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """Documents that are stored together, while their sentences are being embedded."""

    documents: list[_CutDocument]
    vectors: dict[str, NDArray[np.float32]]  # by the sentences' texts; at first those of the documents' former versions
    calls: list[_Call]

    @property
    def end(self) -> int:
        """Bytes of all sources up to the end of the batch."""
        return self.documents[-1].document.end

    @property
    def characters(self) -> int:
        return sum(len(cut.document.text) for cut in self.documents)

    @property
    def is_embedded(self) -> bool:
        return all(call.vectors.done() for call in self.calls)


def fingerprint_of(document: Document, settings: Settings) -> str:
    """Return hashes of a document's content with the settings that it is cut with, its names, and its file."""
    content: tuple[object, ...] = (
        document.text,
        dict(document.metadata),
        document.page_starts,
        document.ready_chunks,
        (settings.chunk_tokens, settings.tokenizer, RULES_VERSION),
    )
    reading = (document.left_out, document.ocr_pages)
    if any(reading):  # others have the fingerprints of indexes from before
        content = (*content, reading)
    if document.marks_headings:
        content = (*content, "marks headings")
    if document.headings_apart:
        content = (*content, "headings apart")
    return _hash(content) + _hash((document.id, document.title)) + document.file_hash


def _hash(values: tuple[object, ...]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:HASH_LENGTH]


class IndexWriter:
    """An index that is being written to; use `open_writer` to get one.

    Attributes:
        draft: The index's next snapshot.
        settings: The settings of the next snapshot.
        written: Documents stored so far.
        problems: The problems with documents that could not be stored, by the documents' ids.
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
        self._next: list[_CutDocument] = []  # the documents of the next batch
        self._next_sentences = 0
        self._batches: deque[_Batch] = deque()  # those that are being embedded, in order
        self._claimed_by_others: list[Document] = []

    @property
    def lookup_characters(self) -> int:
        """Characters of documents to give to one `put`: they have about as many sentences as a call of the embedder."""
        return _SENTENCE_CHARACTERS * self._embedder.batch

    def close(self) -> None:
        """Stop; embeddings in progress are discarded."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def put(self, documents: Sequence[Document]) -> None:
        """Write the documents that are new or have changed. They may still be embedded when it returns."""
        fingerprints = {document.id: fingerprint_of(document, self.settings) for document in documents}
        changed = self._find_changed(fingerprints)
        claimed = self.draft.claim(changed)
        # Another writer may have written some of them before they were claimed.
        ours = self._find_changed({document_id: fingerprints[document_id] for document_id in claimed})
        others = changed - claimed
        unchanged: dict[str, str] = {}  # the files by the ids of their documents
        for document in documents:
            if document.id in others:
                self._claimed_by_others.append(document)
                continue
            is_changed = document.id in ours
            self._meter.workload.compare(
                document.file,
                len(document.text),
                is_changed=is_changed,
            )
            if not is_changed:
                unchanged[document.id] = document.file
        self.draft.set_sources(unchanged)
        for document in documents:
            if document.id in ours:
                self._put_changed(document, fingerprints[document.id])
        is_idle = not self._next and not self._batches
        if is_idle:
            self._meter.report("reading", documents[-1].end)
        self._meter.report(documents=len(unchanged))

    def flush(self) -> None:
        """Store everything that was put; wait for documents that another process is writing."""
        self._store_all()
        patience_ends = time.monotonic() + _PATIENCE_SECONDS
        while self._claimed_by_others and time.monotonic() < patience_ends:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            documents = self._claimed_by_others
            self._claimed_by_others = []
            self.put(documents)
            self._store_all()
        for document in self._claimed_by_others:
            self._refuse(document, "another process is writing it: ingest it again")

    def _find_changed(self, fingerprints: Mapping[str, str]) -> set[str]:
        """Return the ids of the documents that the draft does not have in this version."""
        known = self.draft.fingerprints(fingerprints)
        changed: set[str] = set()
        for document_id, new in fingerprints.items():
            if version_of(known.get(document_id, "")) != version_of(new):
                changed.add(document_id)
        return changed

    def _put_changed(self, document: Document, fingerprint: str) -> None:
        """Add a document to the next batch, unless it conflicts with another one."""
        conflict = self._find_conflict(document)
        if conflict:
            self._refuse(document, conflict)
            return
        cut = self._cut(document, fingerprint)
        sentences = cut.count_sentences()
        if self._next_sentences + sentences > self._embedder.batch:
            self._begin_batch()
        self._next.append(cut)
        self._next_sentences += sentences

    def _find_conflict(self, document: Document) -> str:
        """Return why a document must not replace the one that the index has under its id, or an empty string."""
        if document.has_own_id:
            return ""
        known = self.draft.document(document.id)
        if known is None or known.source == document.file or self._may_take_id(document, known):
            return ""
        owner = known.source or "a document that was given in Python"
        return f"its id {known.id!r} belongs to {owner}: ingest the folder above both"

    def _may_take_id(self, document: Document, known: DocumentRecord) -> bool:
        """Return whether a document may take the id of a known one.

        In a folder, a file that is gone leaves its id to any other. In a database, the file may be on another machine,
        and leaves its id only to the same file or content.
        """
        is_gone = known.source != "" and not os.path.lexists(known.source)
        if not is_gone:
            return False
        if isinstance(self._location, Path):
            return True
        fingerprint = fingerprint_of(document, self.settings)
        is_same_file = document.file_hash != "" and document.file_hash == file_hash_of(known.fingerprint)
        return is_same_file or content_of(known.fingerprint) == content_of(fingerprint)

    def _refuse(self, document: Document, reason: str) -> None:
        self.problems[document.id] = Problem(document.source, reason)
        self._meter.report()

    def _cut(self, document: Document, fingerprint: str) -> _CutDocument:
        """Cut a document into chunks."""
        chunks = chunk_document(document, chunk_tokens=self.settings.chunk_tokens, count=count_batch)
        record = DocumentRecord(
            id=document.id,
            title=document.title,
            source=document.file,
            metadata=format_metadata(document.metadata, Reading(document.left_out, document.ocr_pages)),
            fingerprint=fingerprint,
            chunks=len(chunks),
        )
        return _CutDocument(document, record, chunks)

    def _begin_batch(self) -> None:
        """Begin to embed the next batch, and store earlier ones, so that few wait."""
        if not self._next:
            return
        documents = self._next
        self._next = []
        self._next_sentences = 0
        vectors = self.draft.vectors_by_text([cut.record.id for cut in documents])
        sentences: Counter[str] = Counter()  # by their texts, in order
        for cut in documents:
            sentences.update(cut.texts())
        calls = self._embed({text: times for text, times in sentences.items() if text not in vectors})
        self._batches.append(_Batch(documents, vectors, calls))
        while self._batches and (self._batches[0].is_embedded or self._has_enough_calls()):
            self._store_first()

    def _has_enough_calls(self) -> bool:
        """Return whether the embedder has enough to do while the main thread waits for the first batch."""
        calls = sum(len(batch.calls) for batch in self._batches)
        return len(self._batches) > 1 and calls > self._embedder.concurrency

    def _embed(self, sentences: Mapping[str, int]) -> list[_Call]:
        """Begin to embed texts; `sentences` has for each how many sentences have it."""
        calls: list[_Call] = []
        for some in batches(sentences, self._embedder.batch):
            if not self._embedder.is_loaded:  # it may have to be downloaded first
                self._meter.report("loading")
                self._embedder.load()
            self._meter.begin_writing()
            vectors = self._pool.submit(self._embedder.embed_documents, some)
            calls.append(_Call(some, vectors, sum(sentences[text] for text in some)))
        return calls

    def _store_all(self) -> None:
        self._begin_batch()
        while self._batches:
            self._store_first()

    def _store_first(self) -> None:
        """Wait for the vectors of the batch that was begun first, and store it."""
        batch = self._batches.popleft()
        self._collect_vectors(batch)
        taken = self.draft.put([self._with_vectors(cut, batch.vectors) for cut in batch.documents])
        for cut in batch.documents:
            if cut.document.id in taken:
                chunk_id = taken[cut.document.id]
                self._refuse(cut.document, f"its chunk id {chunk_id!r} is already used by another document")
        stored = len(batch.documents) - len(taken)
        self.written += stored
        if not batch.calls:  # all its vectors were known
            self._meter.write(batch.characters)
        self._meter.report(done=batch.end, documents=stored)

    def _collect_vectors(self, batch: _Batch) -> None:
        """Wait for the calls of a batch. Each moves the progress on: a long document has many."""
        characters = batch.characters / max(len(batch.calls), 1)
        for call in batch.calls:
            vectors = call.vectors.result()
            if vectors.shape[1] != self.settings.dimension:
                raise ModelError(
                    f"the embedder {self._embedder.name} returns vectors of {vectors.shape[1]} dimensions, but the "
                    f"index in {self._location} has {self.settings.dimension}"
                )
            batch.vectors.update(zip(call.texts, vectors, strict=True))
            self._meter.write(characters)
            self._meter.report("embedding", sentences=call.sentences)

    def _with_vectors(self, cut: _CutDocument, vectors: Mapping[str, NDArray[np.float32]]) -> EmbeddedDocument:
        by_chunk: list[Vectors] = []
        for chunk in cut.chunks:
            rows = [vectors[text] for text in chunk.embedded_texts()]
            by_chunk.append(np.asarray(rows, np.float32).reshape(-1, self.settings.dimension))
        return EmbeddedDocument(cut.record, cut.chunks, by_chunk)


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
        InputError, IndexLockedError, IndexFormatError, StorageError: The index cannot be written; see
            `IndexStore.draft`.
    """
    chosen = None if embedder is None else load_embedder(embedder)
    tokenizer = name_tokenizer()

    def make_settings() -> Settings:
        """Make the settings of a new index."""
        nonlocal chosen
        chosen = chosen or load_embedder()
        meter.report("loading")
        chosen.load()
        began = time.monotonic()
        vectors = chosen.embed_documents(SAMPLE_SENTENCES)
        meter.workload.expect_rate((time.monotonic() - began) / sum(map(len, SAMPLE_SENTENCES)))
        meter.report("reading")
        return Settings(
            embedder=chosen.name,
            dimension=vectors.shape[1],
            chunk_tokens=DEFAULT_CHUNK_TOKENS,
            tokenizer=tokenizer,
            weights=chosen.weights,
            spread=measure_spread(vectors),
        )

    with store.draft(make_settings) as draft:
        if not draft.settings.documents or draft.settings.tokenizer != tokenizer:
            warn_of_estimates()
        chunk_tokens = chunk_tokens or draft.settings.chunk_tokens
        settings = replace(draft.settings, tokenizer=tokenizer, chunk_tokens=chunk_tokens)
        checked = choose_embedder(chosen, settings, store.location)
        with closing(IndexWriter(draft, settings, checked, store.location, meter)) as writer:
            try:
                yield writer
            except KeyboardInterrupt:
                kept = count(writer.written, "new or changed document")
                message = f"{store.location} keeps {kept}: run the same ingestion again to finish it"
                warnings.warn(visible_line(message), stacklevel=1)
                raise
