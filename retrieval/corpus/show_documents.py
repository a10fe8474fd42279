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
        within: Only those that this names, as in `Index.find_documents`.
        where: Conditions on their metadata.
        sort: The order, as in `Index.list_documents`.
        titles_only: Whether to show ids and titles alone.
        start: How many documents to leave out at the start.
    """
    listed = index.list_documents(within=within, where=where, sort=sort, start=start, limit=_DOCUMENTS_READ)
    columns = _choose_columns(listed.documents, titles_only=titles_only)
    lines = [_write_head(listed, start)]
    if not titles_only and not start:
        lines += _write_fields(listed.fields)
    if listed.documents:
        lines.append(CELL_BOUNDARY.join(columns))
    tokens = MAX_TOKENS - count_tokens("\n".join(lines))
    shown = 0
    for document in listed.documents:
        line = CELL_BOUNDARY.join(_write_cell(document, column) for column in columns)
        line = without_marks(line.rstrip("| "))
        tokens -= count_tokens(line) + 1
        if tokens < 0 and shown:
            break
        lines.append(line)
        shown += 1
    following = start + shown
    if following < listed.total and shown:
        lines.append(f"{listed.total - following:,} more: start={following}")
    described = describe_documents(replace(listed, documents=listed.documents[:shown]))
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


def _choose_columns(documents: Sequence[ListedDocument], *, titles_only: bool) -> list[str]:
    """Return the columns that say something about these documents."""
    columns = ["id"]
    for name in ("title", "date", "author", "kind", "chunks"):
        is_wanted = name == "title" or not titles_only
        values = {_write_cell(document, name) for document in documents} - {""}
        is_same = name == "author" and len(values) == 1 and len(documents) > 1  # the line of its field names it
        if is_wanted and values and not is_same:
            columns.append(name)
    return columns


def _write_cell(document: ListedDocument, column: str) -> str:
    """Return what a column says of a document; empty if the id says it, or if it is the rule."""
    if column == "title":
        return _title_to_show(document)
    if column == "kind" and document.id.lower().endswith(f".{document.kind}"):
        return ""
    if column == "chunks" and document.chunks == 1:
        return ""
    return collapse_whitespace(str(getattr(document, column))).replace(CELL_BOUNDARY, ", ")


def _title_to_show(document: ListedDocument) -> str:
    """Return a document's title, unless the id has its words."""
    is_said = set(name_words(document.title)) <= set(name_words(document.id))
    return "" if is_said else document.title.replace(CELL_BOUNDARY, ", ")


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
