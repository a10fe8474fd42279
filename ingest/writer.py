"""Writes documents into an index: cut, embedded, stored together with their vectors, and in the end published.

A pool of threads embeds while the main thread cuts and stores. A document is stored once all its sentences have their
vectors; whatever a call of the embedder completes is stored in one transaction. If a run is interrupted, what is stored
is kept, and the next run goes on from there. Readers see all of it when a run publishes.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arag.errors import EmbedderError
from arag.ingest.chunking import chunk_document
from arag.ingest.documents import Document, Problem
from arag.ingest.progress import Tracker
from arag.ingest.sentences import AUTO, RULES_VERSION
from arag.models.embedders import Embedder, load_embedder
from arag.retrieval.storage import DocumentRecord, Draft, EmbeddedDocument, IndexStore, Settings, Vectors
from arag.retrieval.tokens import TokenCounter, load_token_counter
from arag.retrieval.trust import choose_embedder
from arag.retrieval.types import Chunk

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

DEFAULT_CHUNK_TOKENS = 1_000

_BETWEEN_LOOKS = 0.2  # seconds, at documents that another process is writing
_PATIENCE = 600.0  # seconds in which not one of them is finished


@dataclass(slots=True)
class _Waiting:
    """A document that waits for its vectors.

    Attributes:
        source: Where it was read from, for messages.
        record: Its entry.
        chunks: Its chunks.
        known: Vectors of its former version, by the sentences' texts.
        vectors: Of the first chunks, as they are embedded.
    """

    source: str
    record: DocumentRecord
    chunks: Sequence[Chunk]
    known: Mapping[str, NDArray[np.float32]]
    vectors: list[Vectors] = field(default_factory=list)


_Call: TypeAlias = list[tuple[_Waiting, Chunk]]  # chunks whose sentences are embedded by one call of the embedder


class IndexWriter:
    """An index that is being written to; use `open_writer` to get one.

    Args:
        draft: The index's next publication.
        settings: The settings to write with.
        embedder: Embeds the sentences.
        counter: Counts the tokens of texts.
        location: The index, for messages.
        tracker: Follows what is loaded, embedded and published.
        language: Language of the sentence rules.

    Attributes:
        draft: The index's next publication.
        settings: The settings, with the counts of what readers see.
        embedded: Sentences embedded so far.
        written: Ids of the documents stored so far.
        problems: What could not be stored, by the documents' ids.
        may_replace: Says whether a document of the index may be replaced by another one with the same id.
    """

    def __init__(
        self,
        draft: Draft,
        settings: Settings,
        embedder: Embedder,
        counter: TokenCounter,
        location: Path | str,
        tracker: Tracker,
        language: str = AUTO,
    ) -> None:
        self.draft = draft
        self.settings = settings
        self.embedded = 0
        self.written: set[str] = set()
        self.problems: dict[str, Problem] = {}
        self.may_replace: Callable[[DocumentRecord, Document], bool] = lambda *_: True
        self._embedder = embedder
        self._counter = counter
        self._location = location
        self._tracker = tracker
        self._language = language
        self._pool = ThreadPoolExecutor(embedder.concurrency, thread_name_prefix="embed")
        self._waiting: deque[_Waiting] = deque()
        self._next_call: _Call = []
        self._next_sentences = 0
        self._calls: deque[tuple[_Call, Future[tuple[list[Vectors], int]]]] = deque()
        self._claimed_by_others: list[Document] = []

    def close(self) -> None:
        """Stop; embeddings in progress are discarded."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def fingerprint(self, document: Document) -> str:
        """Return what changes when a document, or a setting that its chunks depend on, changes."""
        settings = self.settings
        content: list[object] = [
            document.id,
            document.title,
            document.text,
            dict(document.metadata),
            list(document.page_starts),
            document.ready_chunks,
            [settings.chunk_tokens, self._language, RULES_VERSION],
        ]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def put(self, documents: Sequence[Document]) -> None:
        """Write the documents that are new or have changed. The last ones may still be embedded when it returns.

        Raises:
            EmbedderError: The embedder fails; what was stored is kept.
            StorageError: They cannot be stored.
        """
        fingerprints = {document.id: self.fingerprint(document) for document in documents}
        changed = self._find_changed(fingerprints)
        claimed = self.draft.claim(changed)
        self._claimed_by_others += [document for document in documents if document.id in changed - claimed]
        # Another writer may have written some of them before they were claimed.
        ours = self._find_changed({document_id: fingerprints[document_id] for document_id in claimed})
        unchanged = {d.id: d.kept_source for d in documents if d.id not in changed or d.id in claimed - ours}
        self.draft.set_sources(unchanged)
        self._tracker.settle(unchanged)
        known = self.draft.vectors_by_text(ours)
        for document in documents:
            if document.id in ours and self._is_writable(document):
                self._cut(document, fingerprints[document.id], known)

    def remove(self, document_ids: Collection[str]) -> None:
        """Remove documents with their chunks."""
        self.draft.remove(document_ids)

    def flush(self) -> None:
        """Store everything that was put.

        Raises:
            EmbedderError: The embedder fails; what was stored is kept.
            StorageError: It cannot be stored.
        """
        self._store_all()
        changed = time.monotonic()
        while others := self._claimed_by_others:
            self._claimed_by_others = []
            self.put(others)
            self._store_all()
            if len(self._claimed_by_others) < len(others):
                changed = time.monotonic()
            elif time.monotonic() - changed < _PATIENCE:
                time.sleep(_BETWEEN_LOOKS)
            else:
                for document in others:
                    self._refuse(document.id, document.source, "another process is writing it: ingest it again")
                self._claimed_by_others = []

    def publish(self) -> None:
        """Store everything that was put, and let readers see it.

        Raises:
            EmbedderError: The embedder fails; what was stored is kept.
            StorageError: It cannot be written.
        """
        self.flush()
        self.settings = self.draft.publish(self.settings, on_written=self._tracker.publish)

    def _find_changed(self, fingerprints: Mapping[str, str]) -> set[str]:
        known = self.draft.fingerprints(fingerprints)
        return {document_id for document_id, new in fingerprints.items() if known.get(document_id) != new}

    def _is_writable(self, document: Document) -> bool:
        """Return whether a document's id has not been given to another one meanwhile, by another process."""
        other = self.draft.document(document.id)
        if other is None or self.may_replace(other, document):
            return True
        reason = f"its id {other.id!r} has just been given to {other.source}: ingest it again"
        self._refuse(document.id, document.source, reason)
        return False

    def _refuse(self, document_id: str, source: str, reason: str) -> None:
        self.problems[document_id] = Problem(source, reason)
        self._tracker.settle([document_id])

    def _cut(self, document: Document, fingerprint: str, known: Mapping[str, NDArray[np.float32]]) -> None:
        """Cut a document into chunks, and have them embedded whenever there are enough of them for a call."""
        settings = self.settings
        chunks = chunk_document(
            document, chunk_tokens=settings.chunk_tokens, count=self._counter.count_batch, language=self._language
        )
        record = DocumentRecord(
            id=document.id,
            title=document.title,
            source=document.kept_source,
            metadata=json.dumps(dict(document.metadata), ensure_ascii=False),
            fingerprint=fingerprint,
            chunks=len(chunks),
        )
        waiting = _Waiting(document.source, record, chunks, known)
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
            self._load_embedder()
        self._calls.append((call, self._pool.submit(self._embed, call)))
        while len(self._calls) > self._embedder.concurrency:
            self._store_next()

    def _load_embedder(self) -> None:
        """Load the embedder if it is not loaded, which may take long: it may have to be downloaded first."""
        if not self._embedder.is_loaded:
            self._tracker.load()
            self._embedder.load()
        self._tracker.embed()

    def _embed(self, call: _Call) -> tuple[list[Vectors], int]:
        """Embed the sentences of chunks, each text once, unless its vector is known; also count the embedded ones."""
        texts = [(text, waiting.known) for waiting, chunk in call for text in chunk.embedded_texts()]
        vectors = {text: known[text] for text, known in texts if text in known}
        new = list(dict.fromkeys(text for text, _ in texts if text not in vectors))
        if new:
            embedded = self._embedder.embed_documents(new)
            if embedded.shape[1] != self.settings.dimension:
                raise EmbedderError(
                    f"the embedder {self._embedder.name} returns vectors of {embedded.shape[1]} dimensions, but the "
                    f"index in {self._location} has {self.settings.dimension}"
                )
            vectors |= zip(new, embedded, strict=True)
        found = [[vectors[text] for text in chunk.embedded_texts()] for _, chunk in call]
        return [np.asarray(each, np.float32).reshape(-1, self.settings.dimension) for each in found], len(new)

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
        complete = []
        while self._waiting and len(self._waiting[0].vectors) == len(self._waiting[0].chunks):
            complete.append(self._waiting.popleft())
        taken = self.draft.put([EmbeddedDocument(each.record, each.chunks, each.vectors) for each in complete])
        for each in complete:
            if each.record.id in taken:
                reason = f"its chunk id {taken[each.record.id]!r} is already used by another document"
                self._refuse(each.record.id, each.source, reason)
            else:
                self.written.add(each.record.id)
        self.embedded += embedded
        self._tracker.embedded([chunk for _, chunk in call], embedded)


@contextmanager
def open_writer(
    store: IndexStore,
    *,
    embedder: str | Embeddings | Embedder | None = None,
    chunk_tokens: int | None = None,
    language: str | None = None,
    counter: TokenCounter | None = None,
    tracker: Tracker | None = None,
) -> Iterator[IndexWriter]:
    """Open an index for writing, creating it if it does not exist.

    Args:
        store: Where the index is.
        embedder: Embeds the sentences; None for the index's own, or the default for a new index.
        chunk_tokens: Maximum tokens in a chunk, for documents written from now on; None for the index's own setting.
        language: Language of the sentence rules.
        counter: Counts tokens, for documents written from now on.
        tracker: Follows what is loaded, embedded and published.

    Raises:
        IndexLockedError: Another process is writing to the index.
        IndexFormatError: The index is damaged, or of another format.
        EmbedderError: The index was made with another embedder, or the embedder cannot be loaded.
        InputError: Something other than an index is there.
        StorageError: It cannot be written.
    """
    given = None if embedder is None else load_embedder(embedder)
    tracker = tracker or Tracker()
    counter = counter or load_token_counter()

    def begin() -> Settings:
        nonlocal given
        given = given or load_embedder()
        tracker.load()
        dimension = int(given.embed_documents(["dimension"]).shape[1])
        tracker.embed()
        return Settings(given.name, dimension, DEFAULT_CHUNK_TOKENS, counter.name)

    with store.draft(begin) as draft:
        wanted: dict[str, Any] = {"chunk_tokens": chunk_tokens}
        if not draft.settings.documents:
            wanted["tokenizer"] = counter.name
        settings = replace(draft.settings, **{name: value for name, value in wanted.items() if value is not None})
        chosen = choose_embedder(given, settings.embedder, store.location)
        with closing(
            IndexWriter(draft, settings, chosen, counter, store.location, tracker, language or AUTO)
        ) as writer:
            yield writer
