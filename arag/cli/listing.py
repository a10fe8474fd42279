"""`arag list`: list the documents of an index."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from arag.options import DocumentsOption, IndexOption, JsonOption, WhereOption, open_scoped
from arag.terminal import err, out, print_json, visible

if TYPE_CHECKING:
    from arag.retrieval.index import Index
    from arag.retrieval.types import DocumentInfo


def list_documents(
    index: IndexOption,
    pattern: Annotated[
        str | None,
        typer.Argument(metavar="PATTERN", help="A part of ids or titles, or a pattern such as 'people/*', in quotes."),
    ] = None,
    where: WhereOption = None,
    documents: DocumentsOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the documents of an index: ids, titles, chunks and sources; with --json, metadata too."""
    with open_scoped(index, where, documents) as opened:
        found = find_documents(opened, pattern)
        if as_json:
            print_json({"documents": [asdict(document) for document in found]})
        else:
            show_documents(found, pattern)


def find_documents(index: Index, pattern: str | None) -> Iterator[DocumentInfo]:
    """Yield the documents whose id or title has a text as a part, or matches it if it has a `*`, ignoring case."""
    from arag.retrieval.scope import compile_pattern

    text = (pattern or "*").lower()
    compiled = compile_pattern(text if "*" in text else f"*{text}*")
    for document in index.documents():
        if compiled.match(document.id.lower()) or compiled.match(document.title.lower()):
            yield document


def show_documents(documents: Iterable[DocumentInfo], pattern: str | None) -> None:
    """Print documents: on a terminal as a table, elsewhere one a line, with tabs between the fields."""
    is_empty = True
    table = Table(box=None, pad_edge=False)
    table.add_column("Id", overflow="fold")
    table.add_column("Title")
    table.add_column("Chunks", justify="right")
    table.add_column("Source", overflow="fold")
    here = f"{Path.cwd()}{os.sep}"
    for document in documents:
        is_empty = False
        fields = [document.id, document.title, f"{document.chunks:,}", document.source]
        if out.is_terminal:
            # Short: from the working directory, and without the part of a path that is the id.
            fields[-1] = re.sub(rf"(?<=/){re.escape(document.id)}$", "…", document.source.removeprefix(here))
            table.add_row(*map(visible, fields))
        else:
            print("\t".join(map(visible, fields)))  # noqa: T201 - a console would write spaces for tabs
    if is_empty:
        err.print(f"No document matches {pattern!r}." if pattern else "The index holds no documents.")
    elif out.is_terminal:
        out.print(table, soft_wrap=False)
