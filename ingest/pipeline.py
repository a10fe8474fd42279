"""From files to an index: read, cut, store, embed."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from arag.errors import InputError
from arag.ingest.chunking import groups
from arag.ingest.documents import DEFAULT_LIMITS, Document, Limits, Position, Problem, file_of
from arag.ingest.english import LanguageSample
from arag.ingest.progress import ShowProgress, Tracker, showing
from arag.ingest.readers import count_bytes, find_skipped, read_documents
from arag.ingest.sentences import check_language
from arag.ingest.writer import IndexWriter, open_writer
from arag.models.embedders import Embedder, load_embedder
from arag.models.names import DEFAULT_EMBEDDER, MULTILINGUAL_EMBEDDER
from arag.retrieval.backend import Backend, Manifest
from arag.retrieval.index import Index
from arag.retrieval.locations import backend_at
from arag.retrieval.packing import CountBatch
from arag.retrieval.tokens import load_token_counter
from arag.retrieval.trust import check_embedder, remember_embedder

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

MIN_CHUNK_TOKENS = 50

_BATCH_CHARACTERS = 100_000  # cut while the sentences before them are embedded
_BATCH_DOCUMENTS = 2_000
_PACKED_CHARACTERS = 1_000_000  # of documents that are packed together
_MAX_REASONS = 8


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """What an ingestion run did.

    Attributes:
        read: Documents read in this run that are in the index now.
        written: Those of them that were new or had changed.
        removed: Documents that were pruned.
        absent: Documents in the index that were not read in this run.
        skipped: What was skipped in the folders, and why: files without a reader, and links to folders.
        embedded: Sentences embedded in this run.
        documents: Documents in the index now.
        chunks: Chunks in the index now.
        sentences: Sentences with a vector in the index now.
        problems: What was left out, and why.
        seconds: How long it took.
    """

    read: int
    written: int
    removed: int
    absent: int
    skipped: tuple[Problem, ...]
    embedded: int
    documents: int
    chunks: int
    sentences: int
    problems: tuple[Problem, ...]
    seconds: float


def ingest(
    paths: Sequence[str | Path] | str | Path,
    index: str | Path | Backend,
    *,
    embedder: str | Embeddings | Embedder | None = None,
    chunk_tokens: int | None = None,
    pack: bool | None = None,
    prune: bool = False,
    language: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: bool | ShowProgress = False,
) -> Index:
    """Write files and folders into an index and open it.

    Running it again embeds only what has changed. What had to be left out is reported as warnings; `run_ingest`
    returns it in a summary instead.

    Args:
        paths: Files and folders: .txt, .md, .html, .pdf, .json and .jsonl.
        index: The index's folder, created if it does not exist; or its backend.
        embedder: See `load_embedder`; by default the index's own, or the default one for a new index. A given name
            is remembered: the index can be opened without it from then on.
        chunk_tokens: Maximum tokens in a chunk. By default this, `pack` and `language` keep the index's values;
            for a new index they are 1,000, false and `auto`.
        pack: Pack consecutive short documents into chunks of that size, as in the paper's corpora.
        prune: Remove documents that are in the index and not in `paths`.
        language: Language of the sentence rules, as a spaCy code; `auto` is English, with Chinese and Japanese
            recognised by their script.
        limits: How much of a document is read; a document that exceeds a limit is left out.
        progress: True prints a line about the progress on stderr every few seconds. A function is called with each
            `Progress` instead, in this thread.

    Returns:
        The index, open.

    Raises:
        InputError: A path does not exist or holds nothing readable, or a setting is out of bounds.
        IndexLockedError: Another process is writing to the index.
        EmbedderError: The embedder cannot be loaded or fails, the index was made with another one, or only the
            index's files name it.

    Example:
        >>> from arag import ingest
        >>> with ingest("examples/corpus", "my-index") as corpus:
        ...     corpus
        Index('my-index', documents=25, chunks=26, embedder='huggingface:sentence-transformers/all-MiniLM-L6-v2')

        With a function that shows the progress in your own way:

        >>> def show(progress):
        ...     if progress.phase == "done":
        ...         print(f"{progress.share:.0%}, {progress.documents} documents")
        >>> ingest("examples/corpus", "my-index", progress=show).close()
        100%, 25 documents
    """
    chosen = None if embedder is None else load_embedder(embedder)
    backend = backend_at(index)
    summary = run_ingest(
        paths,
        backend,
        embedder=chosen,
        chunk_tokens=chunk_tokens,
        pack=pack,
        prune=prune,
        language=language,
        limits=limits,
        progress=progress,
    )
    if summary.skipped:
        warnings.warn(f"skipped: {count_reasons(summary.skipped)}", stacklevel=3)
    for problem in summary.problems:
        warnings.warn(f"left out: {problem}", stacklevel=3)  # the caller of the callable package
    return Index(backend, embedder=chosen)


def run_ingest(
    paths: Sequence[str | Path] | str | Path,
    index: str | Path | Backend,
    *,
    embedder: str | Embeddings | Embedder | None = None,
    chunk_tokens: int | None = None,
    pack: bool | None = None,
    prune: bool = False,
    language: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: bool | ShowProgress = False,
) -> IngestSummary:
    """Write files and folders into an index and return a summary.

    It takes the arguments of `ingest` and raises the same errors.

    Returns:
        The summary, with everything that was left out and why.

    Example:
        >>> from arag import run_ingest
        >>> summary = run_ingest(["examples/corpus"], "my-index")
        >>> summary.read, summary.written, summary.problems
        (25, 0, ())

        With the progress, of which the last phase is shown here:

        >>> phases = []
        >>> summary = run_ingest(["examples/corpus"], "my-index", progress=lambda now: phases.append(now.phase))
        >>> phases[-1]
        'done'
    """
    if chunk_tokens is not None and chunk_tokens < MIN_CHUNK_TOKENS:
        raise InputError(f"chunk_tokens is {chunk_tokens}: it must be at least {MIN_CHUNK_TOKENS}")
    if language is not None:
        check_language(language)
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    backend = backend_at(index)
    with showing(progress) as show:
        return _ingest(
            given,
            backend,
            embedder=embedder,
            chunk_tokens=chunk_tokens,
            pack=pack,
            prune=prune,
            language=language,
            limits=limits,
            show=show,
        )


def _ingest(
    given: Sequence[str | Path],
    backend: Backend,
    *,
    embedder: str | Embeddings | Embedder | None,
    chunk_tokens: int | None,
    pack: bool | None,
    prune: bool,
    language: str | None,
    limits: Limits,
    show: ShowProgress | None,
) -> IngestSummary:
    began = time.perf_counter()
    # Bad paths are found before anything is created: the first item is read before the index is opened.
    position = Position()
    items = read_documents(given, index=str(backend.location), limits=limits, position=position)
    tracker = Tracker(show, 0 if show is None else count_bytes(given, index=str(backend.location)))
    problems: list[Problem] = []
    stream = _select(items, position, problems, tracker)
    first = next(stream, None)
    if first is None:
        reasons = "; ".join(map(str, problems[:5]))
        raise InputError(f"no document could be read: {reasons}")
    if embedder is None:
        check_embedder(backend)
    counter = load_token_counter()
    with open_writer(
        backend,
        embedder=embedder,
        chunk_tokens=chunk_tokens,
        language=language,
        packed=pack,
        counter=counter,
        tracker=tracker,
    ) as writer:
        settings = writer.manifest
        remember_embedder(settings.embedder, given=embedder is not None)
        written = 0
        seen: set[str] = set()
        refused: dict[str, str] = {}  # sources by id
        sample = LanguageSample() if settings.embedder == DEFAULT_EMBEDDER and not settings.documents else None
        grouped = _group(chain([first], stream), settings, counter.count_batch)
        while some := list(_take(grouped, _BATCH_CHARACTERS)):
            batch = list(chain.from_iterable(some))
            seen.update(document.id for document in batch)
            new, failed = writer.put(some)
            problems += failed
            failed_sources = {problem.source for problem in failed}
            refused |= {document.id: document.source for document in batch if document.source in failed_sources}
            written += len(new)
            if sample is not None and _is_foreign(sample, batch):
                sample = None  # said once
                warnings.warn(
                    "most of the text is not English, but this index's embedder is for English: to find it by meaning, "
                    f"ingest it into a new folder with a multilingual embedder, such as {MULTILINGUAL_EMBEDDER}",
                    stacklevel=3,
                )
            tracker.settle(document.id for document in batch if document.id not in new)
            writer.flush(wait=False)
            writer.commit_if_due()
        removed = _prune(writer, seen, problems) if prune else 0
        writer.commit()
        tracker.finish()
        if written and writer.manifest.tokenizer != counter.name:
            warnings.warn(
                f"the tokens of this index were counted in different ways ({writer.manifest.tokenizer}), now by "
                f"{counter.name}, so its chunks vary in size. Ingest everything into a new folder for uniform chunks.",
                stacklevel=3,
            )
        read = len(seen) - len(refused)
        return IngestSummary(
            read=read,
            written=written,
            removed=removed,
            absent=writer.manifest.documents - read - sum(writer.holds(*document) for document in refused.items()),
            skipped=find_skipped(given, index=str(backend.location)),
            embedded=writer.embedded,
            documents=writer.manifest.documents,
            chunks=writer.manifest.chunks,
            sentences=writer.manifest.sentences,
            problems=tuple(problems),
            seconds=time.perf_counter() - began,
        )


def count_reasons(skipped: Sequence[Problem]) -> str:
    """Return how often each reason occurs, the most frequent first: `no reader for .png (12)`."""
    counts = Counter(problem.reason for problem in skipped).most_common()
    shown = [f"{reason} ({count:,})" for reason, count in counts[:_MAX_REASONS]]
    return ", ".join([*shown, *(["others"] if len(counts) > _MAX_REASONS else [])])


def _select(
    items: Iterable[Document | Problem], position: Position, problems: list[Problem], tracker: Tracker
) -> Iterator[Document]:
    """Yield the documents, of which the tracker learns how many bytes were read for each, and collect the problems."""
    before = 0
    for item in items:
        size, before = position.bytes - before, position.bytes
        if isinstance(item, Problem):
            tracker.skip(size)
            problems.append(item)
        else:
            tracker.read(item.id, size, len(item.text))
            yield item
    tracker.skip(position.bytes - before)


def _group(documents: Iterable[Document], settings: Manifest, count: CountBatch) -> Iterator[list[Document]]:
    """Group the documents that share a chunk. Without packing, none is read before the last one was taken."""
    alone = ([document] for document in documents)
    if not settings.packed:
        yield from alone
    while batch := list(chain.from_iterable(_take(alone, _PACKED_CHARACTERS))):
        yield from groups(batch, pack=True, chunk_tokens=settings.chunk_tokens, count=count)


def _take(grouped: Iterator[list[Document]], most: int) -> Iterator[list[Document]]:
    """Yield the next groups, until their documents have this many characters, or are a few thousand."""
    characters = number = 0
    while characters < most and number < _BATCH_DOCUMENTS and (group := next(grouped, None)):
        yield group
        characters += sum(len(document.text) for document in group)
        number += len(group)


def _is_foreign(sample: LanguageSample, documents: Iterable[Document]) -> bool:
    """Return whether most of the text up to these documents is not English."""
    for document in documents:
        sample.add(document.text)
    return sample.is_foreign


def _prune(writer: IndexWriter, seen: set[str], problems: Sequence[Problem]) -> int:
    """Remove documents that are gone; those of a file that could not be read this time stay."""
    unread = {file_of(problem.source) for problem in problems}
    sources = {i: file_of(source) for i, source in writer.document_sources().items() if i not in seen}
    gone = [i for i, file in sources.items() if unread.isdisjoint([file, *file.parents])]
    writer.remove(gone)
    return len(gone)
