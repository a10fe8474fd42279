"""`arag info`, `remove`, `verify` and `copy`: look after an index."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.progress import TextColumn
from rich.table import Table

from arag.cli.showing import show_progress
from arag.options import DocumentsOption, IndexOption, JsonOption, WhereOption, open_scoped
from arag.terminal import FAILED, err, out, print_json, progress, styled


def info(
    index: IndexOption, where: WhereOption = None, documents: DocumentsOption = None, as_json: JsonOption = False
) -> None:
    """Show what an index contains and how it was built."""
    with open_scoped(index, where, documents) as opened:
        values = asdict(opened.info())
    if as_json:
        print_json(values)
        return
    table = Table(show_header=False, box=None)
    for name, value in values.items():
        if name == "bytes" and not value:  # of a scope, whose share of the files is not known
            continue
        shown = f"{value / 1e6:,.1f} MB" if name == "bytes" else f"{value:,}" if isinstance(value, int) else value
        table.add_row(name.replace("_", " "), str(shown))
    out.print(table)


def remove(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Document ids.")],
    index: IndexOption,
) -> None:
    """Remove documents from an index."""
    from arag.ingest.maintenance import remove as remove_documents

    out.print(f"Documents removed: {remove_documents(ids, index):,}.")


def verify(
    index: IndexOption,
    repair: Annotated[bool, typer.Option("--repair", help="Repair the damage.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check every part of an index for damage. Exit code 1 means that damage remains."""
    from arag.ingest.maintenance import verify as verify_index

    found, left = verify_index(index, repair=repair)
    if as_json:
        print_json({"found": [asdict(damage) for damage in found], "left": [asdict(damage) for damage in left]})
    else:
        for damage in dict.fromkeys([*found, *left]):
            mark = ("Damaged", "red") if damage in left else ("Repaired", "green")
            out.print(styled(mark, f" {damage}"))
        if not found:
            out.print(f"No damage found in {index.location}.")
        elif not repair and any(damage.repairable for damage in left):
            out.print(f"Run `arag verify --repair --index {index.location}` to repair it.")
    if left:
        raise typer.Exit(FAILED)


def copy(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The index: a folder, or postgresql://...")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Where to copy it to, likewise.")],
    as_json: JsonOption = False,
) -> None:
    """Copy an index to another place without embedding anything again; an interrupted copy is continued."""
    from arag.ingest.copying import copy_index

    with progress(TextColumn("{task.fields[figures]}"), hidden=as_json) as bars:
        shown = False if as_json else show_progress(bars) if err.is_terminal else True
        summary = copy_index(source, target, progress=shown)
    if as_json:
        print_json(asdict(summary))
    else:
        out.print(
            f"Copied {summary.documents:,} documents, {summary.chunks:,} chunks and {summary.sentences:,} sentences in "
            f"{summary.seconds:.1f} s; {summary.chunks - summary.written:,} chunks were there already."
        )
