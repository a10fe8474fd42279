"""From files to an index: read, cut, embed, store, publish."""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from arag.errors import InputError
from arag.ingest.documents import Document, IngestSummary, Note, Problem
from arag.ingest.formats import Reader, Readers
from arag.ingest.ids import IdAssigner
from arag.ingest.omissions import name_first, warn_of_omissions
from arag.ingest.progress import Meter, ShowProgress
from arag.ingest.pruning import drop_unfinished, find_gone
from arag.ingest.reading import SourceReader
from arag.ingest.record_fields import FieldNames
from arag.ingest.writer import IndexWriter, open_writer
from arag.models.embedders import Embedder, load_embedder
from arag.models.names import MULTILINGUAL_EMBEDDER, knows_only_english
from arag.retrieval.index import Index, open_index
from arag.retrieval.storage.contract import IndexStore
from arag.retrieval.storage.locations import store_at, using_store
from arag.retrieval.trust import check_embedder
from arag.text.languages import SAMPLE_CHARACTERS, is_english
from arag.text.normalise import count

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from arag.ingest.listing import Sources

MIN_CHUNK_TOKENS = 50  # a chunk of fewer would hold a sentence or two

_BATCH_DOCUMENTS = 500  # looked up in the index at once; small ones would otherwise be held in memory by the thousand
_KEPT = "its earlier text stays in the index until you remove it (arag remove)"
_MANY_OTHERS = 0.05  # the share of documents in other languages that is worth a warning


class IngestOptions(TypedDict, total=False):
    """The options of `ingest` and `run_ingest`; each is a keyword argument.

    Attributes:
        embedder: See `load_embedder`; by default the index's own, or the default one for a new index.
        chunk_tokens: Maximum tokens in a chunk; by default the index's value, or 1,000 for a new one.
        prune: Remove documents that came from the given files and folders and are no longer there; by default not.
        readers: How files are read, by extension, beside the formats that are built in: a known extension to read them
            like (`{".log": ".txt"}`), or a function that takes a path and returns the text or a `Content`. If it raises
            a ValueError, the file is left out, and the message says why.
        ignore: Patterns of files and folders, below the given folders, to leave out, in gitignore's syntax:
            `["drafts/", "*.log"]`, or `["!*.css"]` for what is left out by default. A folder's `.aragignore` has such
            lines, too.
        encoding: The encoding of text files, tables, web pages and programs whose encoding is in doubt:
            `windows-1252`. By default, such files are left out.
        ocr: Read scanned pages of PDFs, and pictures (png, jpg, tif, bmp, webp), by OCR, which needs the extra `ocr`
            and takes about 15 seconds of processor time a page; by default not. What was read is kept in the user's
            cache folder.
        text_field: The field of records that has their text: `body`, or `page.body` for the `body` of `page`. By
            default `text`, else another common name, a chat's turns, or all that a nested record says.
        title_field: The field of records that has their title; by default `title`, or another common name.
        id_field: The field of records that has their id; by default `id`, or another common name.
        progress: True prints a line about the progress on stderr every few seconds. A function is called with each
            `Progress` instead, in this thread. By default, nothing is shown.

    Example:
        >>> from arag import IngestOptions, ingest
        >>> options: IngestOptions = {"chunk_tokens": 500}
        >>> with ingest({"id": "note-1", "text": "The mill stands."}, "notes", **options) as notes:
        ...     notes.info().chunk_tokens
        500
    """

    embedder: str | Embeddings | Embedder | None
    chunk_tokens: int | None
    prune: bool
    readers: Mapping[str, str | Reader] | None
    ignore: Sequence[str] | None
    encoding: str
    ocr: bool
    text_field: str
    title_field: str
    id_field: str
    progress: bool | ShowProgress


def ingest(sources: Sources, index: str | Path | IndexStore, **options: Unpack[IngestOptions]) -> Index:
    """Write files, folders and documents into an index and open it.

    Running it again embeds only new and changed documents. If something had to be left out, one warning says how much
    and names the first items, another one the first files of which parts were not read, and a third how many files were
    skipped for each reason; `run_ingest` returns all of them in a summary. It blocks until everything is written: in a
    program with an event loop, use `await asyncio.to_thread(ingest, sources, index)`.

    Args:
        sources: A file or a folder, a LangChain document, a dictionary with `id`, `title`, `text` and further fields,
            or an iterable of any of these. An iterable such as a loader's `lazy_load()` is read as it goes. Everything
            that can be checked is checked before anything is written.
        index: The place of the index, which is made if it does not exist: a folder, the address of a PostgreSQL
            database (`postgresql://user@host/database?index=NAME`), or its store.
        **options: `embedder`, `chunk_tokens`, `prune`, `readers`, `ignore`, `encoding`, `ocr`, `text_field`,
            `title_field`, `id_field` and `progress`; see `IngestOptions`.

    Returns:
        The index, open.

    Raises:
        InputError: A path does not exist or holds nothing readable, no source can be read, or a setting is out of
            bounds.
        IndexLockedError: Another process is writing to the index.
        ModelError: The embedder cannot be loaded or fails, the index was made with another one, or only the
            index's files name it.
        TypeError: An option has another name.

    Example:
        >>> from arag import ingest
        >>> with ingest("examples/corpus", "my-index") as corpus:
        ...     corpus
        Index('my-index', documents=25, chunks=26, embedder='huggingface:intfloat/multilingual-e5-small')
    """
    embedder = options.get("embedder")
    chosen = None if embedder is None else load_embedder(embedder)
    options["embedder"] = chosen  # the same one writes and searches
    store = store_at(index)
    summary = run_ingest(sources, store, **options)
    warn_of_omissions(summary)
    return open_index(store, embedder=chosen)


def run_ingest(sources: Sources, index: str | Path | IndexStore, **options: Unpack[IngestOptions]) -> IngestSummary:
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
    check_options(options)
    embedder = options.get("embedder")
    chunk_tokens = options.get("chunk_tokens")
    with using_store(index) as store, open_readers(options) as readers:
        meter = Meter(options.get("progress", False), phase="listing")
        reader = make_source_reader(sources, readers, store.location, options, meter)
        if readers.scans is not None:
            readers.scans.show_page = lambda: meter.report(ocr_pages=1)
        problems: list[Problem] = []
        documents = _require_one(_set_aside_problems(reader.read(), problems), problems, reader)
        if embedder is None:
            check_embedder(store)
        with open_writer(store, embedder=embedder, chunk_tokens=chunk_tokens, meter=meter) as writer:
            reader.workload.expect_unchanged({document.source for document in writer.draft.documents()})
            reader.read_sample(lambda: meter.report("sampling"))
            meter.report("reading")
            ids = IdAssigner(writer.draft, writer.settings, reader)
            identified = _set_aside_problems(map(ids.assign, documents), problems)
            languages = _LanguageCheck(writer.settings.embedder)
            notes: list[Note] = []
            for batch in _batches(identified, writer.lookup_characters):
                languages.add(batch)
                notes += _notes_on(batch)
                writer.put(batch)
            writer.flush()
            removed = _prune(writer, ids, reader) if options.get("prune") else []
            problems = _say_what_is_kept(problems, writer, ids, reader)
            _warn_of_unpublished(drop_unfinished(writer.draft, store, ids.used, reader))
            meter.report("publishing", reader.bytes)
            folders = {*writer.settings.folders, *reader.folders}
            settings = writer.draft.publish(replace(writer.settings, folders=tuple(sorted(folders))))
            meter.end()
            read = len(ids.used) - len(writer.problems)
            return IngestSummary(
                read=read,
                written=writer.written,
                removed=len(removed),
                removed_ids=tuple(removed),
                other_languages=languages.others,
                absent=settings.documents - read,
                skipped=reader.list_skipped(),
                read_as=reader.list_read_as(),
                embedded=meter.sentences,
                documents=settings.documents,
                chunks=settings.chunks,
                sentences=settings.sentences,
                notes=tuple(notes),
                problems=(*problems, *writer.problems.values()),
                seconds=time.perf_counter() - began,
            )


class _LanguageCheck:
    """Counts documents in languages that the embedder does not know, and warns once if they are many."""

    def __init__(self, embedder: str) -> None:
        self.others = 0
        self._embedder = embedder
        self._is_english = knows_only_english(embedder)
        self._read = 0
        self._has_warned = False

    def add(self, documents: Sequence[Document]) -> None:
        if not self._is_english:
            return
        self._read += len(documents)
        self.others += sum(not is_english(document.text[:SAMPLE_CHARACTERS]) for document in documents)
        if self._has_warned or self.others < _MANY_OTHERS * self._read:
            return
        self._has_warned = True
        warnings.warn(
            f"{self.others:,} of the first {count(self._read, 'document')} are not in English, the only language of "
            f"this index's embedder, {self._embedder}: to find them by meaning, ingest them into a new index with the "
            f"embedder {MULTILINGUAL_EMBEDDER}",
            stacklevel=4,
        )


def open_readers(options: IngestOptions) -> Readers:
    """Return the readers of an ingestion, to be closed."""
    return Readers(options.get("readers"), options.get("encoding", ""), ocr=options.get("ocr", False))


def make_source_reader(
    sources: Sources,
    readers: Readers,
    location: object,
    options: IngestOptions,
    meter: Meter,
    *,
    is_preview: bool = False,
) -> SourceReader:
    """Return what reads the sources of an ingestion. An index that is a folder is passed over below another one."""
    names = FieldNames(
        text=options.get("text_field", ""),
        title=options.get("title_field", ""),
        id=options.get("id_field", ""),
    )
    folder = location if isinstance(location, Path) else None
    reader = SourceReader(sources, readers, folder, names, options.get("ignore") or (), meter.report_found)
    reader.show_large_file = meter.begin_file
    reader.show_file_read = meter.report
    meter.begin_reading(reader.total, reader.workload, is_estimated=not is_preview)
    return reader


def check_options(options: IngestOptions) -> None:
    """Check the names of options, and the size of chunks."""
    unknown = options.keys() - IngestOptions.__optional_keys__
    if unknown:
        valid = ", ".join(IngestOptions.__annotations__)
        raise TypeError(f"ingestion has no option {min(unknown)!r}; there are {valid}")
    chunk_tokens = options.get("chunk_tokens")
    if chunk_tokens is not None and chunk_tokens < MIN_CHUNK_TOKENS:
        raise InputError(f"chunk_tokens is {chunk_tokens}: it must be at least {MIN_CHUNK_TOKENS}")


def _set_aside_problems(items: Iterator[Document | Problem], problems: list[Problem]) -> Iterator[Document]:
    """Yield the documents, and collect the problems."""
    for item in items:
        if isinstance(item, Problem):
            problems.append(item)
        else:
            yield item


def _notes_on(documents: Iterable[Document]) -> list[Note]:
    return [Note(document.source, document.left_out) for document in documents if document.left_out]


def _require_one(
    documents: Iterator[Document], problems: Sequence[Problem], reader: SourceReader
) -> Iterator[Document]:
    """Return the documents if there are any, so that no index is made if nothing can be read.

    Raises:
        InputError: There is none; the message names the first problems, and files that were skipped.
    """
    first = next(documents, None)
    if first is None:
        reasons = name_first([*problems, *reader.list_skipped()])
        raise InputError(f"no document could be read: {reasons or 'the sources are empty'}")
    return chain([first], documents)


def _batches(documents: Iterator[Document], characters: int) -> Iterator[list[Document]]:
    """Yield documents together until they have enough characters, or are a few hundred."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += len(document.text)
        if size >= characters or len(batch) >= _BATCH_DOCUMENTS:
            yield batch
            batch = []
            size = 0
    if batch:
        yield batch


def _prune(writer: IndexWriter, ids: IdAssigner, reader: SourceReader) -> list[str]:
    """Remove the documents that are gone, and return their ids."""
    if not (reader.files or reader.folders):
        warnings.warn("nothing was pruned: pruning needs files or folders, and none were given", stacklevel=4)
    gone = find_gone(writer.draft, ids.used, reader)
    writer.draft.remove(gone)
    return gone


def _say_what_is_kept(
    problems: list[Problem],
    writer: IndexWriter,
    ids: IdAssigner,
    reader: SourceReader,
) -> list[Problem]:
    """Return the problems, with a hint for files that could be read before: their earlier text stays in the index."""
    if not reader.failed:
        return problems
    kept = {document.source for document in writer.draft.documents() if document.id not in ids.used}
    explained: list[Problem] = []
    for problem in problems:
        is_kept = reader.failed.get(problem.source, "") in kept - {""}
        hint = f"; {_KEPT}" if is_kept else ""
        explained.append(replace(problem, reason=problem.reason + hint))
    return explained


def _warn_of_unpublished(documents: Collection[str]) -> None:
    """Warn about documents that another run has stored, but not published."""
    if documents:
        warnings.warn(
            f"{count(len(documents), 'document')} of a run that did not finish, such as {min(documents)!r}, are "
            "published with this one; for those that it did not reach, ingest its files again",
            stacklevel=4,
        )
