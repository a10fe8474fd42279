"""Lists of documents as text for a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from arag.retrieval.corpus.types import DocumentList, ListedDocument, MetadataField
from arag.retrieval.index import Index
from arag.retrieval.presentation.retrieve import Retrieved
from arag.text.marks import without_marks
from arag.text.normalise import CELL_BOUNDARY, collapse_whitespace, count, name_words
from arag.text.tokens import count_tokens

MAX_TOKENS = 1_500  # of a result

_COLUMNS = ("id", "title", "date", "author", "kind", "chunks", "missing")
_DOCUMENTS_READ = 500  # of a list: more do not fit into its tokens
_MAX_FIELD_TOKENS = 300  # of what is said of metadata
_MAX_VALUES = 8  # of a field, that are all named
_MAX_EXAMPLES = 4  # of more values


def show_documents(
    index: Index,
    *,
    within: str = "",
    where: Mapping[str, Any] | None = None,
    sort: str = "",
    titles_only: bool = False,
    start: int = 0,
) -> Retrieved:
    """Show the documents of an index, as many as fit, from one of them on.

    Args:
        index: The index.
        within: Only those that this names, as in `Index.find_meant`.
        where: Conditions on their metadata.
        sort: The order, as in `Index.list_documents`.
        titles_only: Whether to show ids and titles alone.
        start: How many documents to leave out at the start.
    """
    listed = index.list_documents(within=within, where=where, sort=sort, start=start, limit=_DOCUMENTS_READ)
    cells = [_write_cells(document) for document in listed.documents]
    columns = ["id", "title"] if titles_only else list(_COLUMNS)
    columns = [name for name in columns if _says_something(name, cells)]
    lines = [_write_head(listed, start)]
    if not titles_only and not start:
        lines += _write_fields(listed.fields)
    if cells:
        lines.append(CELL_BOUNDARY.join(columns))
    rows = [_write_row(each, columns) for each in cells]
    shown = _take_fitting(rows, MAX_TOKENS - count_tokens("\n".join(lines)))
    lines += shown
    following = start + len(shown)
    if shown and following < listed.total:
        lines.append(f"{listed.total - following:,} more: start={following}")
    described = describe_documents(replace(listed, documents=listed.documents[: len(shown)]))
    return Retrieved(text="\n".join(lines), results=described)


def describe_documents(listed: DocumentList) -> dict[str, Any]:
    """Return a list of documents as plain values."""
    fields = [asdict(each) | {"values": list(each.values.items())} for each in listed.fields]
    return {
        "total": listed.total,
        "fields": fields,
        "documents": [asdict(document) for document in listed.documents],
    }


def _write_head(listed: DocumentList, start: int) -> str:
    head = count(listed.total, "document")
    notes: list[str] = []
    if any(document.chunks > 1 for document in listed.documents):
        notes.append("of one chunk unless a number is given")
    if start:
        notes.append(f"from {start} on")
    return f"{head} ({', '.join(notes)})" if notes else head


def _write_cells(document: ListedDocument) -> dict[str, str]:
    """Return what each column says of a document; nothing if the id says it, or if it is the rule."""
    is_in_id = document.id.lower().endswith(f".{document.kind}")
    cells = {
        "id": document.id,
        "title": _title_to_show(document),
        "date": document.date,
        "author": document.author,
        "kind": "" if is_in_id else document.kind,
        "chunks": "" if document.chunks == 1 else str(document.chunks),
        "missing": ", ".join(document.left_out),
    }
    return {name: collapse_whitespace(text).replace(CELL_BOUNDARY, ", ") for name, text in cells.items()}


def _says_something(column: str, cells: Sequence[Mapping[str, str]]) -> bool:
    """Return whether a column is worth its tokens: if all have the same author, the line of the field names it."""
    texts = {each[column] for each in cells} - {""}
    if column == "author" and len(cells) > 1:
        return len(texts) > 1
    return column == "id" or bool(texts)


def _write_row(cells: Mapping[str, str], columns: Sequence[str]) -> str:
    row = CELL_BOUNDARY.join(cells[name] for name in columns)
    return without_marks(row.rstrip("| "))


def _take_fitting(rows: Sequence[str], tokens: int) -> Sequence[str]:
    """Return the first rows that fit into a number of tokens, and at least one."""
    for place, row in enumerate(rows):
        tokens -= count_tokens(row) + 1
        if tokens < 0:
            return rows[: max(1, place)]
    return rows


def _title_to_show(document: ListedDocument) -> str:
    """Return a document's title, unless the id has its words."""
    is_said = set(name_words(document.title)) <= set(name_words(document.id))
    return "" if is_said else document.title


def _write_fields(fields: Sequence[MetadataField]) -> list[str]:
    """Return a line for each field of metadata, as many as fit."""
    lines: list[str] = []
    tokens = _MAX_FIELD_TOKENS
    for each in fields:
        line = without_marks(f"{collapse_whitespace(each.name)}: {_write_values(each)}")
        tokens -= count_tokens(line)
        if tokens < 0:
            lines.append(f"({len(fields) - len(lines):,} more fields)")
            break
        lines.append(line)
    return lines


def _write_values(each: MetadataField) -> str:
    """Say which values a field has: all if they are few, else its range, or the most frequent ones."""
    named = [f"{collapse_whitespace(str(value))} ({times:,})" for value, times in each.values.items()]
    if each.distinct <= _MAX_VALUES:
        return ", ".join(named)
    if each.lowest is not None:
        return f"{each.lowest} to {each.highest} ({count(each.documents, 'document')})"
    return f"{each.distinct:,} values, such as {', '.join(named[:_MAX_EXAMPLES])}"
