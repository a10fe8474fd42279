"""What an ingestion would write, and about how long it would take."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, Unpack

from arag.errors import IndexNotFoundError, ModelError
from arag.ingest.chunking import chunk_document
from arag.ingest.documents import Document, Problem
from arag.ingest.ids import IdAssigner
from arag.ingest.pipeline import IngestOptions, check_options, make_source_reader, open_readers
from arag.ingest.progress import Meter
from arag.ingest.pruning import find_gone
from arag.ingest.reading import SourceReader
from arag.ingest.writer import DEFAULT_CHUNK_TOKENS, fingerprint_of
from arag.models.embedders import SENTENCES_PER_STEP, Embedder, load_embedder
from arag.models.onnx import count_threads
from arag.models.onnx_models import is_on_this_machine
from arag.retrieval.corpus.table_rows import SourceTable, find_tables
from arag.retrieval.storage.contract import View
from arag.retrieval.storage.fingerprints import file_hash_of, version_of
from arag.retrieval.storage.locations import parse_location, using_store
from arag.retrieval.storage.records import DocumentRecord
from arag.retrieval.types import Chunk
from arag.text.tokens import count_batch, name_tokenizer

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_SAMPLE_SENTENCES = 64  # at least, that are embedded for an estimate...
_SAMPLE_SECONDS = 3.0  # ...unless that takes longer
_ROUND_SENTENCES = 16  # of the sample, for each core, that are embedded together
_STORING = 6.5e-4  # seconds, for a sentence: beside its embedding
_MIN_SENTENCES = 2_000  # to be embedded: fewer take less than a minute

Change: TypeAlias = Literal["new", "changed", "unchanged"]


@dataclass(frozen=True, slots=True)
class TablePreview:
    """A table of a document: the names of its columns, and how many rows it has."""

    columns: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class DocumentPreview:
    """A document as it would be ingested.

    Attributes:
        source: The file, as the user names it, with the place of a record.
        id: Its id in the index.
        title: Its title.
        chunks: How many chunks it would have.
        sentences: How many sentences would have a vector.
        headings: The paths of headings above its sentences, in order.
        tables: Its tables.
        left_out: Parts of the file that the text lacks.
        change: What it is to the index: `new`, `changed` or `unchanged`.
        new_sentences: How many sentences would be embedded: those that neither it nor a document that is written with
            it had before.
        is_same_file: Whether its file is as it was, though the document has changed.
    """

    source: str
    id: str
    title: str
    chunks: int
    sentences: int
    headings: tuple[str, ...]
    tables: tuple[TablePreview, ...]
    left_out: tuple[str, ...]
    change: Change = "new"
    new_sentences: int = 0
    is_same_file: bool = False


@dataclass(frozen=True, slots=True)
class Preview:
    """What an ingestion would read, skip, leave out and remove; see `IngestSummary`.

    `seconds` is an estimate of what it takes on this machine if nothing else runs there, and `seconds_now` while it is
    as busy as it is now. Both are None for a short ingestion, and for an embedder that is not on this machine or needs
    PyTorch.
    """

    documents: tuple[DocumentPreview, ...]
    read_as: tuple[Problem, ...]
    skipped: tuple[Problem, ...]
    problems: tuple[Problem, ...]
    removed_ids: tuple[str, ...]
    seconds: float | None
    seconds_now: float | None


def preview(sources: list[str], location: str = "", **options: Unpack[IngestOptions]) -> Preview:
    """Read files and folders as `run_ingest` does, and return what it would write.

    Args:
        sources: Files and folders.
        location: The index, with which the documents are compared; it may be missing.
        **options: Those of `run_ingest`; the embedder is used for the estimate of seconds.

    Raises:
        InputError: A path or an option is not valid.
        IndexFormatError, StorageError: The index cannot be read.
    """
    check_options(options)
    documents: list[DocumentPreview] = []
    problems: list[Problem] = []
    target = parse_location(location) if location else None
    with open_readers(options) as readers, _open_known(location) as view:
        meter = Meter(options.get("progress", False), phase="listing")
        reader = make_source_reader(sources, readers, target, options, meter, is_preview=True)
        known = _Known(view, options.get("chunk_tokens"), reader)
        for item in reader.read():
            assigned = item if isinstance(item, Problem) else known.assign(item)
            if isinstance(assigned, Problem):
                problems.append(assigned)
            else:
                documents.append(known.describe(assigned))
            meter.report(done=reader.bytes, documents=0 if isinstance(assigned, Problem) else 1)
        known.end_batch()
        meter.end()
        embedder = _name_embedder(options.get("embedder"), view)
        seconds, seconds_now = known.sample.estimate_seconds(embedder, meter.seconds)
        return Preview(
            documents=tuple(replace(item, new_sentences=known.new_sentences[item.id]) for item in documents),
            read_as=reader.list_read_as(),
            skipped=reader.list_skipped(),
            problems=tuple(problems),
            removed_ids=tuple(known.find_gone()) if options.get("prune") else (),
            seconds=seconds,
            seconds_now=seconds_now,
        )


def _name_embedder(embedder: str | Embeddings | Embedder | None, view: View | None) -> str:
    """Return the name of the embedder that would be used."""
    if embedder is None and view is not None:
        return view.settings.embedder
    return load_embedder(embedder).name


@contextmanager
def _open_known(location: str) -> Iterator[View | None]:
    """Yield the index as it is, or None if there is none."""
    if not location:
        yield None
        return
    with using_store(location) as store, ExitStack() as opened:
        view: View | None = None
        with suppress(IndexNotFoundError):
            view = opened.enter_context(closing(store.open()))
        yield view


class _Sample:
    """Sentences to be embedded: a few of them show how long all will take."""

    def __init__(self) -> None:
        self._sentences = 0
        self._characters = 0
        self._some: list[str] = []
        self._step = 1  # between the sentences that are kept

    def add(self, texts: Collection[str]) -> None:
        """Count sentences, and keep some that are evenly spread."""
        for text in texts:
            self._sentences += 1
            self._characters += len(text)
            if self._sentences % self._step == 0:
                self._some.append(text)
        if len(self._some) > 2 * _SAMPLE_SENTENCES:
            self._some = self._some[::2]
            self._step *= 2

    def estimate_seconds(self, embedder: str, reading: float) -> tuple[float, float] | tuple[None, None]:
        """Return the seconds for everything if nothing else runs on this machine, and while it is as busy as now.

        Args:
            embedder: Without its weights on this machine there is no estimate, nor for few sentences.
            reading: The seconds that reading took.
        """
        if self._sentences < _MIN_SENTENCES or not is_on_this_machine(embedder):
            return None, None
        chosen = load_embedder(embedder)
        try:
            chosen.load()
        except ModelError:  # a damaged file: the ingestion says so
            return None, None
        by_character, slowdown = self._measure(chosen)
        writing = by_character * self._characters + _STORING * self._sentences
        return writing + reading / slowdown, writing * slowdown + reading

    def _measure(self, embedder: Embedder) -> tuple[float, float]:
        """Embed the sample, and return the seconds a character if nothing else runs, and how much slower it is now."""
        threads = count_threads()
        embedder.embed_documents(self._some[:threads])  # the first ones take longer
        began = time.monotonic()
        began_processor = time.process_time()
        characters = 0
        rounds = math.ceil(len(self._some) / (_ROUND_SENTENCES * threads))
        for first in range(rounds):
            texts = self._some[first::rounds]  # from all documents
            embedder.embed_documents(texts)
            characters += sum(map(len, texts))
            elapsed = time.monotonic() - began
            if elapsed > _SAMPLE_SECONDS:
                break
        # The processor's time does not count what else runs on this machine.
        unhindered = (time.process_time() - began_processor) / threads
        return unhindered / characters, max(elapsed / unhindered, 1.0)


class _Known:
    """The index that documents are compared with; None for a new one."""

    def __init__(self, view: View | None, chunk_tokens: int | None, reader: SourceReader) -> None:
        self._view = view
        self._reader = reader
        self.sample = _Sample()
        self.new_sentences = Counter[str]()  # by the documents' ids
        self._batch: dict[str, list[str]] = {}  # the sentences of documents to be written together
        self._chunk_tokens = chunk_tokens or DEFAULT_CHUNK_TOKENS
        if view is not None:
            self._chunk_tokens = chunk_tokens or view.settings.chunk_tokens
            self._settings = replace(view.settings, tokenizer=name_tokenizer(), chunk_tokens=self._chunk_tokens)
            self._ids = IdAssigner(view, self._settings, reader)

    def assign(self, document: Document) -> Document | Problem:
        """Return a document with its id in the index."""
        return document if self._view is None else self._ids.assign(document)

    def describe(self, document: Document) -> DocumentPreview:
        """Describe a document, and what it is to the index."""
        chunks = chunk_document(document, chunk_tokens=self._chunk_tokens, count=count_batch)
        tables = [_describe_table(table) for table in find_tables(chunks)]
        record = self._view.document(document.id) if self._view is not None else None
        change = self._compare(document, record)
        texts: list[str] = []
        for chunk in chunks:
            texts += chunk.embedded_texts()
        if change != "unchanged":
            self._add_to_batch(document.id, texts)
        return DocumentPreview(
            source=document.source,
            id=document.id,
            title=document.title,
            chunks=len(chunks),
            sentences=len(texts),
            headings=_list_headings(chunks),
            tables=tuple(tables),
            left_out=document.left_out,
            change=change,
            is_same_file=change == "changed" and _is_same_file(document, record),
        )

    def _add_to_batch(self, document_id: str, texts: list[str]) -> None:
        waiting = sum(map(len, self._batch.values()))
        if waiting + len(texts) > SENTENCES_PER_STEP:
            self.end_batch()
        self._batch[document_id] = texts

    def end_batch(self) -> None:
        """Count the sentences that have no vector yet, as the writer of an index does: equal ones are embedded once."""
        known = self._list_sentences(self._batch)
        distinct: dict[str, None] = {}
        for document_id, texts in self._batch.items():
            new = [text for text in texts if text not in known]
            self.new_sentences[document_id] = len(new)
            distinct |= dict.fromkeys(new)
        self.sample.add(distinct)
        self._batch = {}

    def _list_sentences(self, document_ids: Collection[str]) -> set[str]:
        """Return the sentences of documents in the index: they need no new vector."""
        texts: set[str] = set()
        if self._view is not None:
            for chunk in self._view.chunks_of(document_ids):
                texts.update(chunk.embedded_texts())
        return texts

    def find_gone(self) -> list[str]:
        """Return the ids of the documents that --prune would remove."""
        return [] if self._view is None else find_gone(self._view, self._ids.used, self._reader)

    def _compare(self, document: Document, record: DocumentRecord | None) -> Change:
        if record is None:
            return "new"
        fingerprint = fingerprint_of(document, self._settings)
        is_same = version_of(record.fingerprint) == version_of(fingerprint)
        return "unchanged" if is_same else "changed"


def _is_same_file(document: Document, record: DocumentRecord | None) -> bool:
    """Return whether a document's file has not changed: then what other pages of its folder take from it has."""
    return record is not None and document.file_hash != "" and document.file_hash == file_hash_of(record.fingerprint)


def _describe_table(table: SourceTable) -> TablePreview:
    return TablePreview(tuple(table.columns), len(table.rows))


def _list_headings(chunks: list[Chunk]) -> tuple[str, ...]:
    headings: dict[str, None] = {}
    for chunk in chunks:
        for sentence in chunk.sentences:
            if sentence.heading:
                headings[sentence.heading] = None
    return tuple(headings)
