"""From files to an index: read, cut, embed, store, publish."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from arag.errors import InputError
from arag.ingest.documents import Document, IngestSummary, Problem
from arag.ingest.formats import Reader, Readers
from arag.ingest.ids import Ids
from arag.ingest.progress import Meter, ShowProgress
from arag.ingest.sources import SourceReader
from arag.ingest.writer import IndexWriter, open_writer
from arag.models.embedders import Embedder, load_embedder
from arag.models.names import DEFAULT_EMBEDDER, MULTILINGUAL_EMBEDDER
from arag.retrieval.index import Index, open_index
from arag.retrieval.storage.contract import IndexStore
from arag.retrieval.storage.locations import store_at, using_store
from arag.retrieval.trust import check_embedder
from arag.text.normalise import count
from arag.text.scripts import SAMPLE_CHARACTERS, is_latin

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from arag.ingest.sources import Sources

MIN_CHUNK_TOKENS = 50

_BATCH_DOCUMENTS = 500  # that are looked up in the index at once
_MAX_NAMES = 5  # of what was left out, in a message
_MANY_OTHERS = 0.05  # of the documents


def ingest(
    sources: Sources,
    index: str | Path | IndexStore,
    *,
    embedder: str | Embeddings | Embedder | None = None,
    chunk_tokens: int | None = None,
    prune: bool = False,
    readers: Mapping[str, str | Reader] | None = None,
    encoding: str = "",
    progress: bool | ShowProgress = False,
) -> Index:
    """Write files, folders and documents into an index and open it.

    Running it again embeds only what has changed. If something had to be left out, one warning says how much and names
    the first; `run_ingest` returns all of it in a summary.

    Args:
        sources: A file or a folder, a LangChain document, a dictionary with `id`, `title`, `text` and further fields,
            or an iterable of any of these. An iterable such as a loader's `lazy_load()` is read as it goes. What can be
            checked is checked before anything is written.
        index: Where the index is, made if it does not exist: a folder, the address of a PostgreSQL database
            (`postgresql://user@host/database?index=NAME`), or its store.
        embedder: See `load_embedder`; by default the index's own, or the default one for a new index.
        chunk_tokens: Maximum tokens in a chunk; by default the index's value, or 1,000 for a new one.
        prune: Remove documents that came from the given files and folders and are no longer there.
        readers: How files are read, by their endings, beside the formats that are built in: another ending to read them
            like (`{".log": ".txt"}`), or a function that takes a path and returns the text or a `Content`. The message
            of a ValueError that it raises says why the file is left out.
        encoding: Of text files, tables, web pages and programs that are not in Unicode and declare no encoding:
            `windows-1252`. By default, they are read if there is no doubt about it, else left out.
        progress: True prints a line about the progress on stderr every few seconds. A function is called with each
            `Progress` instead, in this thread.

    Returns:
        The index, open.

    Raises:
        InputError: A path does not exist or holds nothing readable, no source can be read, or a setting is out of
            bounds.
        IndexLockedError: Another process is writing to the index.
        ModelError: The embedder cannot be loaded or fails, the index was made with another one, or only the
            index's files name it.

    Example:
        >>> from arag import ingest
        >>> with ingest("examples/corpus", "my-index") as corpus:
        ...     corpus
        Index('my-index', documents=25, chunks=26, embedder='huggingface:sentence-transformers/all-MiniLM-L6-v2')
    """
    chosen = None if embedder is None else load_embedder(embedder)
    store = store_at(index)
    summary = run_ingest(
        sources,
        store,
        embedder=chosen,
        chunk_tokens=chunk_tokens,
        prune=prune,
        readers=readers,
        encoding=encoding,
        progress=progress,
    )
    _warn_of_omissions(summary)
    return open_index(store, embedder=chosen)


async def aingest(
    sources: Sources,
    index: str | Path | IndexStore,
    *,
    embedder: str | Embeddings | Embedder | None = None,
    chunk_tokens: int | None = None,
    prune: bool = False,
    readers: Mapping[str, str | Reader] | None = None,
    encoding: str = "",
    progress: bool | ShowProgress = False,
) -> Index:
    """Do the same as `ingest` in a thread, so that the event loop stays free.

    If the task is cancelled, the thread goes on to the end. If the program ends before, what was written is kept, and
    the next run continues from there.

    It takes the arguments of `ingest` and raises the same errors. A function for the progress is called in the thread.

    Returns:
        The index, open.

    Example:
        >>> import asyncio
        >>> from arag import aingest
        >>> with asyncio.run(aingest({"id": "note-1", "text": "The mill stands."}, "notes")) as index:
        ...     index.info().documents
        1
    """
    work = partial(ingest, sources, index, embedder=embedder, chunk_tokens=chunk_tokens, prune=prune, readers=readers)
    return await asyncio.to_thread(work, encoding=encoding, progress=progress)


def run_ingest(
    sources: Sources,
    index: str | Path | IndexStore,
    *,
    embedder: str | Embeddings | Embedder | None = None,
    chunk_tokens: int | None = None,
    prune: bool = False,
    readers: Mapping[str, str | Reader] | None = None,
    encoding: str = "",
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
    """
    began = time.perf_counter()
    if chunk_tokens is not None and chunk_tokens < MIN_CHUNK_TOKENS:
        raise InputError(f"chunk_tokens is {chunk_tokens}: it must be at least {MIN_CHUNK_TOKENS}")
    with using_store(index) as store, Readers(readers, encoding) as by_ending:
        reader = SourceReader(sources, by_ending, store.location if isinstance(store.location, Path) else None)
        meter = Meter(progress, reader.total)
        problems: list[Problem] = []
        documents = _sort_out(reader.read(), problems)
        first = next(documents, None)  # so that nothing is made where nothing can be read
        if first is None:
            raise InputError(f"no document could be read: {_name_first(problems) or 'the sources are empty'}")
        if embedder is None:
            check_embedder(store)
        with open_writer(store, embedder=embedder, chunk_tokens=chunk_tokens, meter=meter) as writer:
            ids, others, is_said = Ids(writer, reader), 0, False
            is_english = writer.settings.embedder == DEFAULT_EMBEDDER
            named = _sort_out(map(ids.assign, chain([first], documents)), problems)
            while batch := _take_batch(named, writer.batch_characters):
                if is_english:
                    others += sum(not is_latin(document.text[:SAMPLE_CHARACTERS]) for document in batch)
                    is_said = is_said or _warn_of_scripts(others, len(ids.used))
                writer.put(batch, reader.bytes)
            writer.flush()
            removed = _prune(writer, ids, reader) if prune else 0
            _warn_of_others(writer.draft.unpublished() - ids.used.keys())
            problems += writer.problems.values()
            read = len(ids.used) - len(writer.problems)
            meter.report("publishing")
            settings = writer.draft.publish(writer.settings)
            meter.end()
            return IngestSummary(
                read=read,
                written=writer.written,
                removed=removed,
                other_scripts=others,
                absent=settings.documents - read,
                skipped=tuple(Problem(str(path), reason) for path, reason in sorted(reader.skipped.items())),
                embedded=meter.sentences,
                documents=settings.documents,
                chunks=settings.chunks,
                sentences=settings.sentences,
                problems=tuple(problems),
                seconds=time.perf_counter() - began,
            )


def _sort_out(items: Iterator[Document | Problem], problems: list[Problem]) -> Iterator[Document]:
    """Yield the documents, and collect the problems."""
    for item in items:
        if isinstance(item, Problem):
            problems.append(item)
        else:
            yield item


def _take_batch(documents: Iterator[Document], enough: int) -> list[Document]:
    """Return the next documents, until they have enough characters, or are a few hundred."""
    batch: list[Document] = []
    characters = 0
    while characters < enough and len(batch) < _BATCH_DOCUMENTS and (document := next(documents, None)):
        batch.append(document)
        characters += len(document.text)
    return batch


def _warn_of_scripts(others: int, read: int) -> bool:
    """Warn if many of the documents read so far are in scripts that the default embedder does not know."""
    if others < _MANY_OTHERS * read:
        return False
    warnings.warn(
        f"{others:,} of the first {count(read, 'document')} are not in Latin letters, but this index's embedder is for "
        "English: to find them by meaning, ingest them into a new index with a multilingual embedder, such as "
        f"{MULTILINGUAL_EMBEDDER}",
        stacklevel=4,
    )
    return True


def _warn_of_others(documents: Collection[str]) -> None:
    """Warn of documents that another run has stored, but not published."""
    if documents:
        warnings.warn(
            f"{count(len(documents), 'document')} of a run that did not finish, such as {min(documents)!r}, are "
            "published with this one; for those that it did not reach, ingest its files again",
            stacklevel=4,
        )


def _prune(writer: IndexWriter, ids: Ids, reader: SourceReader) -> int:
    """Remove documents that are gone: from a file that was read without problems, or below a folder with their file.

    A file that is there but was not read says nothing: it may be hidden, or have no reader this time.
    """
    if not (reader.files or reader.folders):
        warnings.warn("nothing was pruned: pruning needs files or folders, and none were given", stacklevel=4)
    read = reader.files - reader.failures
    gone = [
        document.id
        for document in writer.draft.documents()
        if document.source and document.id not in ids.used
        if document.source in read or reader.is_gone(document.source)
    ]
    writer.draft.remove(gone)
    return len(gone)


def _name_first(problems: Sequence[Problem]) -> str:
    more = f"; and {len(problems) - _MAX_NAMES:,} more" if len(problems) > _MAX_NAMES else ""
    return "; ".join(map(str, problems[:_MAX_NAMES])) + more


def _warn_of_omissions(summary: IngestSummary) -> None:
    """Warn once of everything that was left out, where `ingest` was called."""
    if omissions := [*summary.problems, *summary.skipped]:
        more = ": run_ingest returns all" if len(omissions) > _MAX_NAMES else ""
        warnings.warn(f"left out {count(len(omissions), 'item')}: {_name_first(omissions)}{more}", stacklevel=3)
