"""From files to an index: read, cut, store, embed."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

from arag.errors import InputError
from arag.ingest.bridge import Bridge
from arag.ingest.documents import DEFAULT_LIMITS, Document, Limits, Position, Problem, file_of
from arag.ingest.english import LanguageSample
from arag.ingest.names import Names
from arag.ingest.progress import ShowProgress, Tracker, showing
from arag.ingest.readers import count_bytes, read_documents
from arag.ingest.registry import Reader, Readers
from arag.ingest.sentences import check_language
from arag.ingest.writer import IndexWriter, open_writer
from arag.models.embedders import Embedder, load_embedder
from arag.models.names import DEFAULT_EMBEDDER, MULTILINGUAL_EMBEDDER
from arag.retrieval.index import Index, open_index
from arag.retrieval.locations import store_at, using_store
from arag.retrieval.storage import IndexStore
from arag.retrieval.tokens import load_token_counter, warn_of_estimates
from arag.retrieval.trust import check_embedder

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from arag.ingest.given import Source, Sources

MIN_CHUNK_TOKENS = 50

_BATCH_CHARACTERS = 100_000  # cut while the sentences before them are embedded
_BATCH_DOCUMENTS = 500
_MAX_NAMED = 5  # of what was left out, in a message

T = TypeVar("T")


class IngestOptions(TypedDict, total=False):
    """The options of `ingest` that `aingest` passes on."""

    chunk_tokens: int | None
    prune: bool
    language: str | None
    readers: Mapping[str, str | Reader] | None
    limits: Limits


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """What an ingestion run did.

    Attributes:
        read: Documents read in this run that are in the index now.
        written: Those of them that were new or had changed.
        removed: Documents that were pruned.
        absent: Documents in the index that were not read in this run.
        skipped: What was skipped in the folders, and why: files without a reader, links and indexes.
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
    sources: Sources,
    index: str | Path | IndexStore,
    *,
    embedder: str | Embeddings | Embedder | None = None,
    chunk_tokens: int | None = None,
    prune: bool = False,
    language: str | None = None,
    readers: Mapping[str, str | Reader] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: bool | ShowProgress = False,
) -> Index:
    """Write files, folders and documents into an index and open it.

    Running it again embeds only what has changed. If something had to be left out, one warning says how much and names
    the first; `run_ingest` returns all of it in a summary.

    Args:
        sources: A file or a folder, a LangChain document, a dictionary with `id`, `title`, `text` and further fields,
            or an iterable of any of these. An iterable such as a loader's `lazy_load()` is read as it goes. What can be
            checked is checked before anything is written. Files may be text, Markdown, HTML, PDF, Word, PowerPoint,
            Excel, OpenDocument texts, e-books, csv, emails, notebooks, reStructuredText, programs and records (.json,
            .jsonl).
        index: Where the index is, made if it does not exist: a folder, the address of a PostgreSQL database
            (`postgresql://user@host/database?index=NAME`), or its store.
        embedder: See `load_embedder`; by default the index's own, or the default one for a new index.
        chunk_tokens: Maximum tokens in a chunk. By default this and `language` keep the index's values; for a new
            index they are 1,000 and `auto`.
        prune: Remove documents that came from the given files and folders and are no longer there.
        language: Language of the sentence rules, as a spaCy code; `auto` is English, with Chinese and Japanese
            recognised by their script.
        readers: How files are read, by their endings, where the ending alone does not say it: the name of a format
            (`{".log": "text"}`), or a function as for `reader`.
        limits: How much of a document is read; a document that exceeds a limit is left out.
        progress: True prints a line about the progress on stderr every few seconds. A function is called with each
            `Progress` instead, in this thread.

    Returns:
        The index, open.

    Raises:
        InputError: A path does not exist or holds nothing readable, nothing that is given can be read, or a setting is
            out of bounds.
        IndexLockedError: Another process is writing to the index.
        EmbedderError: The embedder cannot be loaded or fails, the index was made with another one, or only the
            index's files name it.

    Example:
        >>> from arag import ingest
        >>> with ingest("examples/corpus", "my-index") as corpus:
        ...     corpus
        Index('my-index', documents=25, chunks=26, embedder='huggingface:sentence-transformers/all-MiniLM-L6-v2')

        With LangChain documents, from any loader:

        >>> from langchain_core.documents import Document
        >>> pages = [Document("The mill stands.", metadata={"source": "mill.pdf", "page": n}) for n in range(2)]
        >>> with ingest(iter(pages), "mills") as mills:
        ...     [document.id for document in mills.documents()]
        ['mill.pdf#page=0', 'mill.pdf#page=1']

        With a function that shows the progress in your own way:

        >>> def show(progress):
        ...     if progress.phase == "done":
        ...         print(f"{progress.share:.0%}, {progress.documents} documents")
        >>> ingest("examples/corpus", "my-index", progress=show).close()
        100%, 25 documents
    """
    chosen = None if embedder is None else load_embedder(embedder)
    store = store_at(index)
    summary = run_ingest(
        sources,
        store,
        embedder=chosen,
        chunk_tokens=chunk_tokens,
        prune=prune,
        language=language,
        readers=readers,
        limits=limits,
        progress=progress,
    )
    _warn_of_omissions(summary)
    return open_index(store, embedder=chosen)


async def aingest(
    sources: Sources | AsyncIterable[Source],
    index: str | Path | IndexStore,
    *,
    embedder: str | Embeddings | Embedder | None = None,
    progress: bool | ShowProgress = False,
    **options: Unpack[IngestOptions],
) -> Index:
    """Do the same as `ingest` in a thread, so that the event loop is free meanwhile.

    If the task is cancelled, the thread stops at the next document. What was written is kept, and the next run
    continues from there.

    Args:
        sources: As for `ingest`; also an asynchronous iterable, such as a loader's `alazy_load()`.
        index: As for `ingest`.
        embedder: As for `ingest`.
        progress: As for `ingest`; a function is called in the thread.
        **options: The other options of `ingest`.

    Returns:
        The index, open.

    Raises:
        InputError, IndexLockedError, EmbedderError: As for `ingest`.

    Example:
        >>> import asyncio
        >>> from arag import aingest
        >>> async def notes():
        ...     yield {"id": "note-1", "text": "The mill stands."}
        >>> with asyncio.run(aingest(notes(), "notes")) as index:
        ...     index.info().documents
        1
    """
    chosen = None if embedder is None else load_embedder(embedder)
    store = store_at(index)
    with showing(progress) as show:
        bridge = Bridge()
        taken = bridge.take(sources) if isinstance(sources, AsyncIterable) else sources
        summary = await bridge.run(
            partial(_ingest, taken, store, embedder=chosen, show=show, check=bridge.check, **options)
        )
    _warn_of_omissions(summary)
    return await asyncio.to_thread(open_index, store, embedder=chosen)


def run_ingest(
    sources: Sources,
    index: str | Path | IndexStore,
    *,
    embedder: str | Embeddings | Embedder | None = None,
    chunk_tokens: int | None = None,
    prune: bool = False,
    language: str | None = None,
    readers: Mapping[str, str | Reader] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: bool | ShowProgress = False,
) -> IngestSummary:
    """Write files, folders and documents into an index and return a summary.

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
    with using_store(index) as store, showing(progress) as show:
        return _ingest(
            sources,
            store,
            embedder=embedder,
            chunk_tokens=chunk_tokens,
            prune=prune,
            language=language,
            readers=readers,
            limits=limits,
            show=show,
        )


def _ingest(
    sources: Sources,
    store: IndexStore,
    *,
    embedder: str | Embeddings | Embedder | None,
    chunk_tokens: int | None = None,
    prune: bool = False,
    language: str | None = None,
    readers: Mapping[str, str | Reader] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    show: ShowProgress | None = None,
    check: Callable[[], None] | None = None,
) -> IngestSummary:
    began = time.perf_counter()
    if chunk_tokens is not None and chunk_tokens < MIN_CHUNK_TOKENS:
        raise InputError(f"chunk_tokens is {chunk_tokens}: it must be at least {MIN_CHUNK_TOKENS}")
    if language is not None:
        check_language(language)
    by_ending = Readers(readers)
    # Bad sources are found before anything is created: the first document is read before the index is opened.
    position = Position()
    target = store.location if isinstance(store.location, Path) else None  # a folder that is not read
    found = read_documents(sources, index=target, readers=by_ending, limits=limits, position=position)
    items = _measured(found, position)
    total = None if show is None else count_bytes(sources, index=target, readers=by_ending)
    tracker = Tracker(show, total, check)
    first: list[tuple[Document | Problem, int]] = []
    for item in items:
        first.append(item)
        if isinstance(item[0], Document):
            break
    else:
        raise InputError(_say_nothing_read([problem for problem, _ in first if isinstance(problem, Problem)]))
    if embedder is None:
        check_embedder(store)
    counter = load_token_counter()
    warn_of_estimates()
    with open_writer(
        store, embedder=embedder, chunk_tokens=chunk_tokens, language=language, counter=counter, tracker=tracker
    ) as writer:
        settings = writer.settings
        names = Names(writer.draft, writer.fingerprint, position.folders)
        writer.may_replace = names.may_replace
        read = 0
        problems: list[Problem] = []
        documents = _select(chain(first, items), names, problems, tracker)
        sample = LanguageSample() if settings.embedder == DEFAULT_EMBEDDER and not settings.documents else None
        while batch := list(_take(documents)):
            writer.put(batch)
            read += len(batch)
            if sample is not None and _is_foreign(sample, batch):
                sample = None  # said once
                warnings.warn(
                    "most of the text is not English, but this index's embedder is for English: to find it by meaning, "
                    f"ingest it into a new index with a multilingual embedder, such as {MULTILINGUAL_EMBEDDER}",
                    stacklevel=3,
                )
        writer.flush()
        problems += writer.problems.values()
        read -= len(writer.problems)
        removed = _prune(writer, names, position, problems, tracker) if prune else 0
        kept = len(writer.draft.fingerprints(writer.problems))  # former versions
        writer.publish()
        tracker.finish()
        if counter.name != settings.tokenizer and writer.written:
            _warn_of_counters(settings.tokenizer, counter.name, len(writer.written))
        return IngestSummary(
            read=read,
            written=len(writer.written),
            removed=removed,
            absent=writer.settings.documents - read - kept,
            skipped=tuple(position.skipped),
            embedded=writer.embedded,
            documents=writer.settings.documents,
            chunks=writer.settings.chunks,
            sentences=writer.settings.sentences,
            problems=tuple(problems),
            seconds=time.perf_counter() - began,
        )


def _say_nothing_read(problems: Sequence[Problem]) -> str:
    if not problems:
        return "no document could be read: the sources are empty"
    more = f"; and {len(problems) - _MAX_NAMED:,} more" if len(problems) > _MAX_NAMED else ""
    return f"no document could be read: {'; '.join(map(str, problems[:_MAX_NAMED]))}{more}"


def _warn_of_omissions(summary: IngestSummary) -> None:
    """Warn once of everything that was left out, where `ingest` was called."""
    omitted = [*summary.problems, *summary.skipped]
    if omitted:
        more = f"; and {len(omitted) - _MAX_NAMED:,} more: run_ingest returns all" if len(omitted) > _MAX_NAMED else ""
        said = f"left out {len(omitted):,} item{'' if len(omitted) == 1 else 's'}"
        warnings.warn(f"{said}: {'; '.join(map(str, omitted[:_MAX_NAMED]))}{more}", stacklevel=3)


def _warn_of_counters(before: str, now: str, written: int) -> None:
    """Warn if the documents of an index were counted in another way than now."""
    warnings.warn(
        f"the tokens of this index were counted by {before}, now by {now}: unchanged documents keep their chunks, what "
        f"is new or has changed ({written:,}) is cut by the new counts. Ingest everything into a new index for chunks "
        "of one size.",
        stacklevel=4,
    )


def _measured(items: Iterable[T], position: Position) -> Iterator[tuple[T, int]]:
    """Yield the items, each with the number of bytes by which it advanced the position."""
    before = 0
    for item in items:
        yield item, position.bytes - before
        before = position.bytes


def _select(
    items: Iterable[tuple[Document | Problem, int]], names: Names, problems: list[Problem], tracker: Tracker
) -> Iterator[Document]:
    """Yield the documents with their ids in the index, and collect the problems."""
    for item, size in items:
        named = names.name(item) if isinstance(item, Document) else item
        if isinstance(named, Problem):
            tracker.skip(size)
            problems.append(named)
        else:
            tracker.read(named.id, size, len(named.text))
            yield named


def _take(documents: Iterator[Document]) -> Iterator[Document]:
    """Yield the next documents, until they have enough characters, or are a few hundred."""
    characters = number = 0
    while characters < _BATCH_CHARACTERS and number < _BATCH_DOCUMENTS and (document := next(documents, None)):
        yield document
        characters += len(document.text)
        number += 1


def _is_foreign(sample: LanguageSample, documents: Iterable[Document]) -> bool:
    """Return whether most of the text up to these documents is not English."""
    for document in documents:
        sample.add(document.text)
    return sample.is_foreign


def _prune(writer: IndexWriter, names: Names, position: Position, problems: Sequence[Problem], tracker: Tracker) -> int:
    """Remove documents that are gone from the given files and folders; those of a file that was not read now stay."""
    if not position.paths:
        warnings.warn("nothing was pruned: pruning needs files or folders, and none were given", stacklevel=4)
    unread = {file_of(problem.source) for problem in problems}
    gone = []
    for document in writer.draft.documents():
        if document.source and document.id not in names:
            file = file_of(document.source)
            if unread.isdisjoint([file, *file.parents]) and names.is_gone(document):
                gone.append(document.id)
    if gone:
        tracker.prune(len(gone))
        writer.remove(gone)
    return len(gone)
