"""Writes documents into an index: cut, embedded, stored together with their vectors, and in the end published.

A pool of threads embeds while the main thread cuts and stores. A document is stored once all its sentences have their
vectors; whatever a call of the embedder completes is stored in one transaction. If a run is interrupted, what is stored
is kept, and the next run goes on from there. Readers see all of it when a run publishes.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arag.errors import ModelError
from arag.ingest.chunking import chunk_document
from arag.ingest.documents import Document, Problem
from arag.ingest.progress import Meter
from arag.ingest.sentences import RULES_VERSION
from arag.models.embedders import Embedder, load_embedder
from arag.retrieval.storage import DocumentRecord, Draft, EmbeddedDocument, IndexStore, Settings, Vectors
from arag.retrieval.tokens import TokenCounter, load_token_counter
from arag.retrieval.trust import choose_embedder
from arag.retrieval.types import Chunk

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

DEFAULT_CHUNK_TOKENS = 1_000

_BETWEEN_LOOKS = 0.2  # seconds, at documents that another process is writing
_PATIENCE = 600.0  # seconds, until they are left out


@dataclass(slots=True)
class _Waiting:
    """A document that waits for its vectors."""

    document: Document
    record: DocumentRecord
    chunks: Sequence[Chunk]
    known: Mapping[str, NDArray[np.float32]]  # vectors of its former version, by the sentences' texts
    vectors: list[Vectors] = field(default_factory=list)  # of the first chunks, as they are embedded


_Call: TypeAlias = list[tuple[_Waiting, Chunk]]  # chunks whose sentences are embedded by one call of the embedder


class IndexWriter:
    """An index that is being written to; use `open_writer` to get one.

    Attributes:
        draft: The index's next publication.
        settings: The settings, with the counts of what readers see.
        embedded: Sentences embedded so far.
        written: Ids of the documents stored so far.
        problems: What could not be stored, by the documents' ids.
    """

    def __init__(
        self,
        draft: Draft,
        settings: Settings,
        embedder: Embedder,
        counter: TokenCounter,
        location: Path | str,
        meter: Meter,
    ) -> None:
        self.draft = draft
        self.settings = settings
        self.embedded = 0
        self.written: set[str] = set()
        self.problems: dict[str, Problem] = {}
        self._embedder = embedder
        self._counter = counter
        self._location = location
        self._meter = meter
        self._pool = ThreadPoolExecutor(embedder.concurrency, thread_name_prefix="embed")
        self._waiting: deque[_Waiting] = deque()
        self._next_call: _Call = []
        self._next_sentences = 0
        self._calls: deque[tuple[_Call, Future[tuple[list[Vectors], int]]]] = deque()
        self._claimed_by_others: list[Document] = []

    def close(self) -> None:
        """Stop; embeddings in progress are discarded."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def find_conflict(self, document: Document) -> str:
        """Return why a document must not replace the one that the index has under its id, or an empty string.

        A file that is gone leaves its id to another one. In a database it may be on another machine, and leaves its id
        only to the same content.
        """
        known = None if document.has_own_id else self.draft.document(document.id)
        if known is None or known.source == document.file:
            return ""
        is_gone = bool(known.source) and not os.path.lexists(known.source)
        if is_gone and (isinstance(self._location, Path) or known.fingerprint == self._fingerprint(document)):
            return ""
        owner = known.source or "a document that was given in Python"
        return f"its id {known.id!r} belongs to {owner}: ingest the folder above both"

    def put(self, documents: Sequence[Document]) -> None:
        """Write the documents that are new or have changed. The last ones may still be embedded when it returns."""
        fingerprints = {document.id: self._fingerprint(document) for document in documents}
        changed = self._find_changed(fingerprints)
        claimed = self.draft.claim(changed)
        self._claimed_by_others += [document for document in documents if document.id in changed - claimed]
        # Another writer may have written some of them before they were claimed.
        ours = self._find_changed({document_id: fingerprints[document_id] for document_id in claimed})
        unchanged = [d for d in documents if d.id not in changed or d.id in claimed - ours]
        self.draft.set_sources({document.id: document.file for document in unchanged})
        self._meter.finish(unchanged)
        known = self.draft.vectors_by_text(ours)
        for document in documents:
            if document.id not in ours:
                continue
            if reason := self.find_conflict(document):
                self._refuse(document, reason)
            else:
                self._cut(document, fingerprints[document.id], known)

    def flush(self) -> None:
        """Store everything that was put; wait for documents that another process is writing."""
        self._store_all()
        patience_ends = time.monotonic() + _PATIENCE
        while others := self._claimed_by_others:
            self._claimed_by_others = []
            self.put(others)
            self._store_all()
            if self._claimed_by_others and time.monotonic() < patience_ends:
                time.sleep(_BETWEEN_LOOKS)
            else:
                for document in self._claimed_by_others:
                    self._refuse(document, "another process is writing it: ingest it again")
                self._claimed_by_others = []

    def publish(self) -> None:
        """Let readers see everything that was stored."""
        self.settings = self.draft.publish(self.settings, on_written=self._meter.publish)

    def _find_changed(self, fingerprints: Mapping[str, str]) -> set[str]:
        known = self.draft.fingerprints(fingerprints)
        return {document_id for document_id, new in fingerprints.items() if known.get(document_id) != new}

    def _fingerprint(self, document: Document) -> str:
        """Return what changes when a document, or a setting that its chunks depend on, changes."""
        rules = self.settings.chunk_tokens, self.settings.tokenizer, RULES_VERSION
        content: list[object] = [document.id, document.title, document.text, dict(document.metadata)]
        content += [document.page_starts, document.ready_chunks, rules]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def _refuse(self, document: Document, reason: str) -> None:
        self.problems[document.id] = Problem(document.source, reason)
        self._meter.finish([document])

    def _cut(self, document: Document, fingerprint: str, known: Mapping[str, NDArray[np.float32]]) -> None:
        """Cut a document into chunks, and have them embedded whenever there are enough of them for a call."""
        count = self._counter.count_batch
        chunks = chunk_document(document, chunk_tokens=self.settings.chunk_tokens, count=count)
        record = DocumentRecord(
            id=document.id,
            title=document.title,
            source=document.file,
            metadata=json.dumps(dict(document.metadata), ensure_ascii=False),
            fingerprint=fingerprint,
            chunks=len(chunks),
        )
        waiting = _Waiting(document, record, chunks, known)
        self._waiting.append(waiting)
        for chunk in chunks:
            self._next_call.append((waiting, chunk))
            self._next_sentences += sum(sentence.embedded for sentence in chunk.sentences)
            if self._next_sentences >= self._embedder.batch:
                self._submit()

    def _submit(self) -> None:
        """Have the next call's chunks embedded; store what was embedded before, so that few calls wait."""
        call, self._next_call, self._next_sentences = self._next_call, [], 0
        if any(text not in waiting.known for waiting, chunk in call for text in chunk.embedded_texts()):
            if not self._embedder.is_loaded:  # it may have to be downloaded first
                self._meter.enter("loading")
                self._embedder.load()
            self._meter.enter("embedding")
        self._calls.append((call, self._pool.submit(self._embed, call)))
        while len(self._calls) > self._embedder.concurrency:
            self._store_next()

    def _embed(self, call: _Call) -> tuple[list[Vectors], int]:
        """Embed the sentences of chunks, each text once, unless its vector is known; also count the embedded ones."""
        texts = [(text, waiting.known) for waiting, chunk in call for text in chunk.embedded_texts()]
        vectors = {text: known[text] for text, known in texts if text in known}
        new = list(dict.fromkeys(text for text, _ in texts if text not in vectors))
        if new:
            embedded = self._embedder.embed_documents(new)
            if embedded.shape[1] != self.settings.dimension:
                raise ModelError(
                    f"the embedder {self._embedder.name} returns vectors of {embedded.shape[1]} dimensions, but the "
                    f"index in {self._location} has {self.settings.dimension}"
                )
            vectors |= zip(new, embedded, strict=True)
        by_chunk = [[vectors[text] for text in chunk.embedded_texts()] for _, chunk in call]
        return [np.asarray(rows, np.float32).reshape(-1, self.settings.dimension) for rows in by_chunk], len(new)

    def _store_all(self) -> None:
        if self._next_call:
            self._submit()
        while self._calls:
            self._store_next()

    def _store_next(self) -> None:
        """Wait for the call that was submitted first, and store the documents that are complete with it."""
        call, future = self._calls.popleft()
        vectors, embedded = future.result()
        for (waiting, _), of_chunk in zip(call, vectors, strict=True):
            waiting.vectors.append(of_chunk)
        last = call[-1][0]
        self.embedded += embedded
        self._meter.embed(embedded, last.document, len(last.vectors) / len(last.chunks))
        complete = []
        while self._waiting and len(self._waiting[0].vectors) == len(self._waiting[0].chunks):
            complete.append(self._waiting.popleft())
        conflicts = self.draft.put([EmbeddedDocument(each.record, each.chunks, each.vectors) for each in complete])
        for each in complete:
            if each.record.id in conflicts:
                reason = f"its chunk id {conflicts[each.record.id]!r} is already used by another document"
                self._refuse(each.document, reason)
            else:
                self.written.add(each.record.id)
        self._meter.finish([each.document for each in complete if each.record.id not in conflicts])


@contextmanager
def open_writer(
    store: IndexStore,
    *,
    embedder: str | Embeddings | Embedder | None = None,
    chunk_tokens: int | None = None,
    meter: Meter | None = None,
) -> Iterator[IndexWriter]:
    """Open an index for writing, creating it if it does not exist.

    Args:
        store: Where the index is.
        embedder: Embeds the sentences; None for the index's own, or the default for a new index.
        chunk_tokens: Maximum tokens in a chunk, for documents written from now on; None for the index's own setting.
        meter: Measures the progress.

    Raises:
        ModelError: The index was made with another embedder, or the embedder cannot be loaded.
        InputError, IndexLockedError, IndexFormatError, StorageError: It cannot be written; see `IndexStore.draft`.
    """
    chosen = None if embedder is None else load_embedder(embedder)
    meter = meter or Meter()
    counter = load_token_counter()

    def begin() -> Settings:
        nonlocal chosen
        chosen = chosen or load_embedder()
        meter.enter("loading")
        dimension = int(chosen.embed_documents(["dimension"]).shape[1])
        meter.enter("embedding")
        return Settings(chosen.name, dimension, DEFAULT_CHUNK_TOKENS, counter.name)

    with store.draft(begin) as draft:
        settings = replace(draft.settings, tokenizer=counter.name)
        if chunk_tokens is not None:
            settings = replace(settings, chunk_tokens=chunk_tokens)
        checked = choose_embedder(chosen, settings.embedder, store.location)
        with closing(IndexWriter(draft, settings, checked, counter, store.location, meter)) as writer:
            yield writer
