"""Writes documents into an index: chunks, then their vectors, then lets readers see both.

Everything that a run writes belongs to the index's next generation. Chunks wait in the store, marked as pending,
until their vectors are written. `commit` makes that generation the one that readers see. If a run is interrupted,
readers keep seeing the generation that was committed last, and the next run finishes the work.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arag.errors import EmbedderError
from arag.ingest.chunking import can_be_packed, chunk_document, groups, pack_documents
from arag.ingest.documents import Document, Problem
from arag.ingest.progress import Tracker
from arag.ingest.sentences import AUTO, RULES_VERSION
from arag.models.embedders import Embedder, load_embedder
from arag.retrieval.backend import Backend, Chunks, DocumentRecord, Draft, Manifest, Vectors
from arag.retrieval.index import check_finished
from arag.retrieval.packing import CountBatch, keep_documents
from arag.retrieval.tokens import TokenCounter, load_token_counter
from arag.retrieval.trust import choose_embedder
from arag.retrieval.types import Chunk

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

DEFAULT_CHUNK_TOKENS = 1_000

_CHUNKS_PER_READ = 128
_BETWEEN_COMMITS = 30.0  # seconds, at least
_COMMIT_SHARE = 0.2  # new sentences, at least, as a share of those that readers see


class IndexWriter:
    """An index that is being written to; use `open_writer` to get one.

    Args:
        draft: The index's next generation.
        manifest: The settings to write with.
        embedder: Embeds the sentences.
        counter: Counts the tokens of texts.
        location: The index, for messages.
        tracker: Follows what is loaded, embedded and published.

    Attributes:
        manifest: The settings, and the counts of what readers see.
        embedded: Sentences embedded so far.
    """

    def __init__(
        self,
        draft: Draft,
        manifest: Manifest,
        embedder: Embedder,
        counter: TokenCounter,
        location: Path | str,
        tracker: Tracker,
    ) -> None:
        self.manifest = manifest
        self.embedded = 0
        self._draft = draft
        self._tracker = tracker
        self._location = location
        self._embedder = embedder
        self._counter = counter
        self._count: CountBatch = counter.count_batch
        self._counted: set[str] = set()  # documents whose tokens were counted otherwise before, and now by this writer
        self._pool = ThreadPoolExecutor(embedder.concurrency, thread_name_prefix="embed")
        self._embedding: deque[tuple[list[tuple[int, Chunk]], Future[tuple[Vectors, int]]]] = deque()
        self._committed = time.monotonic()
        self._uncommitted = 0  # sentences
        self._submitted = -1  # chunks up to this number are embedded, or being embedded

    def close(self) -> None:
        """Stop; embeddings in progress are discarded."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def find_absent(self, document_ids: Sequence[str]) -> list[str]:
        """Return the ids that no document has, neither in the next generation nor in the one that readers see."""
        known = self._draft.chunks.fingerprints(document_ids)
        known |= self._draft.published.fingerprints(document_ids)
        return [document_id for document_id in document_ids if document_id not in known]

    def compact(self) -> None:
        """Rewrite everything stored, without what was removed."""
        self.commit()  # what a killed run removed leaves the store only with a commit
        self._draft.renew()
        self.commit(rebuild=True)

    @property
    def chunks(self) -> Chunks:
        """The chunks and documents of the next generation."""
        return self._draft.chunks

    def put(
        self,
        groups: Sequence[list[Document]],
        *,
        may_replace: Callable[[DocumentRecord, Document], bool] = lambda *_: True,
    ) -> tuple[set[str], dict[str, Problem]]:
        """Write the documents that are new or have changed.

        Args:
            groups: Documents; those of a group share a chunk.
            may_replace: Says whether a document of the index may be replaced by another one with the same id.

        Returns:
            The ids of the documents that were written, and the problems with those that could not be, by their ids.
        """
        fingerprints = {d.id: self.fingerprint(d) for group in groups for d in group}
        changed = [(group, self._cut(group)) for group in self._find_changed(groups, fingerprints)]
        with self._draft.chunks.transaction():
            # Another writer may have written some of them meanwhile.
            left = {group[0].id for group in self._find_changed([group for group, _ in changed], fingerprints)}
            kept, taken = self._refuse_taken_names([each for each in changed if each[0][0].id in left], may_replace)
            cut, refused = self._refuse_taken_ids(kept)
            refused |= taken
            written = {document.id for group, _ in cut for document in group}
            self._remove(written)
            self._insert(cut, fingerprints)
            self._recount(written)
            ours = [document for group in groups for document in group if document.id not in refused]
            self._draft.chunks.set_sources({document.id: document.kept_source for document in ours})
        return written, refused

    def _find_changed(self, groups: Sequence[list[Document]], fingerprints: Mapping[str, str]) -> list[list[Document]]:
        """Return the groups that the index does not have as they are."""
        known = self._draft.chunks.fingerprints([document.id for group in groups for document in group])
        shared = self._draft.chunks.in_shared_chunks(list(known))
        return [group for group in groups if not self._is_unchanged(group, fingerprints, known, shared)]

    def group(self, documents: Sequence[Document]) -> Iterator[list[Document]]:
        """Group consecutive documents that share a chunk.

        Unchanged documents whose tokens were counted in another way stay together: by the new counts they would
        be grouped otherwise, and cut again.
        """
        settings = self.manifest
        stored = self._stored_groups(documents) if settings.packed and self._is_counted_otherwise() else {}
        rest: list[Document] = []
        at = 0
        while at < len(documents):
            kept = stored.get(documents[at].id, [])
            if kept and [document.id for document in documents[at : at + len(kept)]] == kept:
                yield from groups(rest, pack=True, chunk_tokens=settings.chunk_tokens, count=self._count)
                yield list(documents[at : at + len(kept)])
                rest = []
                at += len(kept)
            else:
                rest.append(documents[at])
                at += 1
        yield from groups(rest, pack=settings.packed, chunk_tokens=settings.chunk_tokens, count=self._count)

    def _stored_groups(self, documents: Sequence[Document]) -> dict[str, list[str]]:
        """Return the ids of unchanged documents that share a chunk, by the first of them."""
        known = self._draft.chunks.fingerprints([document.id for document in documents])
        same = {document.id for document in documents if known.get(document.id) == self.fingerprint(document)}
        found = {}
        for chunk in self._draft.chunks.chunks_of(list(same)):
            ids = list(dict.fromkeys(section.document_id for section in chunk.sections))
            if same.issuperset(ids):
                found[ids[0]] = ids
        return found

    def _is_counted_otherwise(self) -> bool:
        return self.manifest.tokenizer not in ("", self._counter.name)

    def _recount(self, document_ids: set[str]) -> None:
        if self._is_counted_otherwise():
            self._counted |= document_ids

    def remove(self, document_ids: Sequence[str]) -> None:
        """Remove documents; other documents of a packed chunk stay."""
        with self._draft.chunks.transaction():
            self._remove(set(document_ids))

    def flush(self, *, wait: bool = True) -> None:
        """Write the vectors of all pending chunks.

        Args:
            wait: Return only when all are written; otherwise the last ones may still be in progress, or wait until
                there are enough of them for a call of the embedder.

        Raises:
            EmbedderError: The embedder fails; what was written is kept, and the next run does the rest.
        """
        for batch in self._claim_batches(whole=not wait):
            texts = [text for _, chunk in batch for text in chunk.embedded_texts()]
            known = self._draft.chunks.former_vectors([s.document_id for _, chunk in batch for s in chunk.sections])
            if not known.keys() >= set(texts):
                self._load_embedder()
            self._embedding.append((batch, self._pool.submit(self._embed, texts, known)))
            while len(self._embedding) > self._embedder.concurrency:
                self._write_next()
        while wait and self._embedding:
            self._write_next()

    def commit_if_due(self) -> None:
        """Let readers see what was written, if that is worth the time: a part of the index is copied."""
        enough = self._uncommitted >= _COMMIT_SHARE * self.manifest.sentences
        if enough and self._draft.publishes_early and time.monotonic() - self._committed > _BETWEEN_COMMITS:
            self.commit()

    def commit(self, *, rebuild: bool = False) -> None:
        """Let readers see what was written, and delete what it replaces.

        Args:
            rebuild: Rebuild everything that is derived from the chunks, even if nothing was written.

        Raises:
            EmbedderError: The embedder fails.
            StorageError: It cannot be written.
        """
        while True:
            self.flush()
            if self._draft.waits_for_others():
                self._submitted = -1
                continue
            settings = replace(self.manifest, tokenizer=self._name_tokenizer(self._draft.chunks.counts().documents))
            if self._draft.publish(settings, rebuild=rebuild, on_written=self._tracker.publish):
                break
        self._tracker.published()
        self.manifest = self._draft.manifest
        self._committed = time.monotonic()
        self._uncommitted = 0

    def _name_tokenizer(self, documents: int) -> str:
        """Return what counted the tokens of the index's documents: `o200k_base, estimate` if both did."""
        if not self._is_counted_otherwise() or len(self._counted) >= documents > 0:
            return self._counter.name
        counters = [*self.manifest.tokenizer.split(", "), *([self._counter.name] if self._counted else [])]
        return ", ".join(dict.fromkeys(counters))

    def _is_unchanged(
        self, group: Sequence[Document], new: Mapping[str, str], known: Mapping[str, str], shared: Collection[str]
    ) -> bool:
        """Return whether the index has a group unchanged, its documents together and no others with them."""
        if any(known.get(document.id) != new[document.id] for document in group):
            return False
        ids = [document.id for document in group]
        if len(ids) == 1:
            return ids[0] not in shared
        together = self._draft.chunks.chunks_of(ids[:1])
        return all(list(dict.fromkeys(s.document_id for s in chunk.sections)) == ids for chunk in together)

    def _remove(self, gone: set[str]) -> None:
        chunks = self._draft.chunks.chunks_of(list(gone))
        if chunks:
            rest = [
                kept
                for chunk in chunks
                if (kept := keep_documents(chunk, {s.document_id for s in chunk.sections} - gone, count=self._count))
            ]
            self._recount({section.document_id for chunk in rest for section in chunk.sections})
            self._draft.chunks.mdelete([chunk.id for chunk in chunks])
            self._draft.chunks.mset([(chunk.id, chunk) for chunk in rest])
        self._draft.chunks.remove_documents(gone)
        self._counted -= gone

    def _cut(self, group: list[Document]) -> list[Chunk]:
        settings = self.manifest
        if len(group) > 1 or (settings.packed and _is_short(group[0], settings.chunk_tokens, self._count)):
            return [pack_documents(group, count=self._count, language=settings.language)]
        return chunk_document(
            group[0], chunk_tokens=settings.chunk_tokens, count=self._count, language=settings.language
        )

    def _refuse_taken_names(
        self,
        cut: Sequence[tuple[list[Document], list[Chunk]]],
        may_replace: Callable[[DocumentRecord, Document], bool],
    ) -> tuple[list[tuple[list[Document], list[Chunk]]], dict[str, Problem]]:
        """Separate groups that may be written from those with an id that another document has got meanwhile."""
        known = self._draft.chunks.fingerprints([document.id for group, _ in cut for document in group])
        kept = []
        problems: dict[str, Problem] = {}
        for group, chunks in cut:
            there = [(self._draft.chunks.document(d.id), d) for d in group if d.id in known]
            other = next((record for record, d in there if record is not None and not may_replace(record, d)), None)
            if other is None:
                kept.append((group, chunks))
            else:
                reason = f"its id {other.id!r} has just been given to {other.source}: ingest it again"
                problems |= {document.id: Problem(document.source, reason) for document in group}
        return kept, problems

    def _refuse_taken_ids(
        self, cut: list[tuple[list[Document], list[Chunk]]]
    ) -> tuple[list[tuple[list[Document], list[Chunk]]], dict[str, Problem]]:
        """Separate groups whose chunk ids are free, or become free with them, from those that cannot be written."""
        problems: dict[str, Problem] = {}
        while True:
            going = {document.id for group, _ in cut for document in group}
            stored = self._draft.chunks.mget([chunk.id for _, chunks in cut for chunk in chunks])
            owners = {found.id: found.document_id for found in stored if found and found.document_id not in going}
            kept = []
            for group, chunks in cut:
                taken = next((chunk.id for chunk in chunks if chunk.id in owners), None)
                if taken is None:
                    kept.append((group, chunks))
                    owners.update((chunk.id, group[0].id) for chunk in chunks)
                else:
                    reason = f"its chunk id {taken!r} is already used by the document {owners[taken]!r}"
                    problems |= {document.id: Problem(document.source, reason) for document in group}
            if len(kept) == len(cut):  # a group that is refused keeps its old chunks, whose ids are then not free
                return kept, problems
            cut = kept

    def _insert(
        self, cut: Sequence[tuple[Sequence[Document], Sequence[Chunk]]], fingerprints: Mapping[str, str]
    ) -> None:
        chunks = [chunk for _, chunks in cut for chunk in chunks]
        parts = Counter(i for chunk in chunks for i in {section.document_id for section in chunk.sections})
        self._draft.chunks.add_documents(
            DocumentRecord(
                id=d.id,
                title=d.title,
                source=d.kept_source,
                metadata=json.dumps(dict(d.metadata), ensure_ascii=False),
                fingerprint=fingerprints[d.id],
                chunks=parts[d.id],
            )
            for group, _ in cut
            for d in group
        )
        self._draft.chunks.mset([(chunk.id, chunk) for chunk in chunks])

    def fingerprint(self, document: Document) -> str:
        """Return what changes when a document, or a setting that its chunks depend on, changes."""
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

    def _load_embedder(self) -> None:
        """Load the embedder if it is not loaded, which may take long: it may have to be downloaded first."""
        if not self._embedder.is_loaded:
            self._tracker.load()
            self._embedder.load()
        self._tracker.embed()

    def _claim_batches(self, *, whole: bool) -> Iterator[list[tuple[int, Chunk]]]:
        """Yield the chunks whose sentences are neither embedded nor being embedded, with their numbers.

        Args:
            whole: Leave out the last ones if they are too few for a call of the embedder.
        """
        batch: list[tuple[int, Chunk]] = []
        sentences = 0
        last = self._submitted
        while pending := self._draft.chunks.claim(_CHUNKS_PER_READ, after=last):
            for last, chunk in pending:
                batch.append((last, chunk))
                sentences += len(chunk.embedded_texts())
                if sentences >= self._embedder.batch:
                    self._submitted = last
                    yield batch
                    batch, sentences = [], 0
        if batch and not whole:
            self._submitted = last
            yield batch

    def _embed(self, texts: Sequence[str], known: Mapping[str, NDArray[np.float32]]) -> tuple[Vectors, int]:
        """Embed texts, each once, except those whose vectors are known; also return how many were embedded."""
        new = [text for text in dict.fromkeys(texts) if text not in known]
        embedded: dict[str, NDArray[np.float32]] = {}
        if new:
            vectors = self._embedder.embed_documents(new)
            if vectors.shape[1] != self.manifest.dimension:
                raise EmbedderError(
                    f"the embedder {self._embedder.name} returns vectors of {vectors.shape[1]} dimensions, but the "
                    f"index in {self._location} has {self.manifest.dimension}"
                )
            embedded = dict(zip(new, vectors, strict=True))
        shape = (len(texts), self.manifest.dimension)
        found = [known[text] if text in known else embedded[text] for text in texts]
        return np.asarray(found, dtype=np.float32).reshape(shape), len(new)

    def _write_next(self) -> None:
        """Write the vectors of the batch that was submitted first."""
        batch, future = self._embedding.popleft()
        vectors, embedded = future.result()
        counts = [len(chunk.embedded_texts()) for _, chunk in batch]
        parts = np.split(vectors, np.cumsum(counts)[:-1])
        self._draft.chunks.set_vectors(zip((number for number, _ in batch), parts, strict=True))
        self._draft.prepare(sum(counts))
        self.embedded += embedded
        self._uncommitted += sum(counts)
        self._tracker.embedded([chunk for _, chunk in batch], embedded)


@contextmanager
def open_writer(
    backend: Backend,
    *,
    embedder: str | Embeddings | Embedder | None = None,
    chunk_tokens: int | None = None,
    language: str | None = None,
    packed: bool | None = None,
    counter: TokenCounter | None = None,
    locked: bool = False,
    shared: bool = False,
    tracker: Tracker | None = None,
) -> Iterator[IndexWriter]:
    """Open an index for writing, creating it if it does not exist.

    Args:
        backend: Where the index is.
        embedder: Embeds the sentences; None for the index's own, or the default for a new index.
        chunk_tokens: Maximum tokens in a chunk, for documents written from now on; None for the index's own setting.
        language: Language of the sentence rules, likewise.
        packed: Whether short documents are packed, likewise.
        counter: Counts tokens, for documents written from now on.
        locked: Whether the caller holds the index's lock; otherwise it is taken here.
        shared: Whether others may write at the same time, if the index is in a place that allows it.
        tracker: Follows what is loaded, embedded and published.

    Raises:
        IndexLockedError: Another process is writing to the index.
        EmbedderError: The index was made with another embedder, or the embedder cannot be loaded.
        IndexNotFoundError: An unfinished copy is there.
        InputError: Something other than an index is there.
        StorageError: It cannot be written.
    """
    given = None if embedder is None else load_embedder(embedder)
    tracker = tracker or Tracker()

    def begin() -> Manifest:
        nonlocal given
        given = given or load_embedder()
        tracker.load()
        dimension = int(given.embed_documents(["dimension"]).shape[1])
        tracker.embed()
        return Manifest(given.name, dimension, DEFAULT_CHUNK_TOKENS, "", AUTO, packed=False)

    # An embedder that cannot be loaded leaves no folder behind.
    begun = begin() if not locked and not backend.exists() else None
    with ExitStack() as stack:
        if not locked:
            backend.make()
            stack.enter_context(backend.lock(shared=shared))
        draft = stack.enter_context(backend.draft(lambda: begun or begin()))
        check_finished(draft.manifest, backend.location)
        settings: dict[str, Any] = {"chunk_tokens": chunk_tokens, "language": language, "packed": packed}
        manifest = replace(draft.manifest, **{name: value for name, value in settings.items() if value is not None})
        chosen = choose_embedder(given, manifest.embedder, backend.location)
        writer = IndexWriter(draft, manifest, chosen, counter or load_token_counter(), backend.location, tracker)
        yield stack.enter_context(closing(writer))


def _is_short(document: Document, chunk_tokens: int, count: CountBatch) -> bool:
    return can_be_packed(document) and count([document.text])[0] <= chunk_tokens
