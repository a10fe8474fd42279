"""What an ingestion would read, without an index and an embedder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

from arag.ingest.chunking import chunk_document
from arag.ingest.documents import Document, Problem
from arag.ingest.pipeline import IngestOptions, check_options, make_source_reader, open_readers
from arag.ingest.writer import DEFAULT_CHUNK_TOKENS
from arag.retrieval.corpus.table_rows import SourceTable, find_tables
from arag.retrieval.storage.locations import parse_location
from arag.retrieval.types import Chunk
from arag.text.tokens import count_batch


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
        id: Its id in a new index.
        title: Its title.
        chunks: How many chunks it would have.
        headings: The paths of headings above its sentences, in order.
        tables: Its tables.
        left_out: Parts of the file that the text lacks.
    """

    source: str
    id: str
    title: str
    chunks: int
    headings: tuple[str, ...]
    tables: tuple[TablePreview, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """What an ingestion would read, skip and leave out; see `IngestSummary`."""

    documents: tuple[DocumentPreview, ...]
    read_as: tuple[Problem, ...]
    skipped: tuple[Problem, ...]
    problems: tuple[Problem, ...]


def preview(sources: list[str], location: str = "", **options: Unpack[IngestOptions]) -> Preview:
    """Read files and folders as `run_ingest` does, and return what it would write.

    Args:
        sources: Files and folders.
        location: The index, which is passed over below a folder; it may be missing.
        **options: Those of `run_ingest`; the embedder is not used.

    Raises:
        InputError: A path or an option is not valid.
    """
    check_options(options)
    chunk_tokens = options.get("chunk_tokens") or DEFAULT_CHUNK_TOKENS
    documents: list[DocumentPreview] = []
    problems: list[Problem] = []
    with open_readers(options) as readers:
        reader = make_source_reader(sources, readers, parse_location(location), options)
        for item in reader.read():
            if isinstance(item, Problem):
                problems.append(item)
            else:
                documents.append(_describe(item, chunk_tokens))
        return Preview(
            documents=tuple(documents),
            read_as=reader.list_read_as(),
            skipped=reader.list_skipped(),
            problems=tuple(problems),
        )


def _describe(document: Document, chunk_tokens: int) -> DocumentPreview:
    chunks = chunk_document(document, chunk_tokens=chunk_tokens, count=count_batch)
    tables = [_describe_table(table) for table in find_tables(chunks)]
    return DocumentPreview(
        source=document.source,
        id=document.id,
        title=document.title,
        chunks=len(chunks),
        headings=_list_headings(chunks),
        tables=tuple(tables),
        left_out=document.left_out,
    )


def _describe_table(table: SourceTable) -> TablePreview:
    return TablePreview(tuple(table.columns), len(table.rows))


def _list_headings(chunks: list[Chunk]) -> tuple[str, ...]:
    headings: dict[str, None] = {}
    for chunk in chunks:
        for sentence in chunk.sentences:
            if sentence.heading:
                headings[sentence.heading] = None
    return tuple(headings)
