"""The commands of an index: write, list, search, read, check and copy it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.progress import TextColumn

from arag.options import DocumentsOption, IndexOption, JsonOption, TopKOption, WhereOption, open_scoped, read_pairs
from arag.retrieval import DEFAULT_TOP_K
from arag.terminal import FAILED, err, out, print_json, progress
from arag.text.normalise import count, shorten
from arag.text.visible import visible_line

if TYPE_CHECKING:
    from arag.ingest.documents import IngestSummary
    from arag.ingest.progress import Progress
    from arag.retrieval.storage.contract import IndexStore

LEFT_OUT = 3  # exit code of `ingest` when it left something out; 2 means a usage error
_MAX_NAMES = 500  # characters of the names of files that were skipped for a reason


# --- writing ---


def ingest(
    paths: Annotated[
        list[str],  # a Path would make the current folder of an empty name
        typer.Argument(
            metavar="PATH...",
            help="Files and folders to read: txt, md, html, pdf, csv, tsv, ipynb, json, jsonl, programs, and with the "
            "extra `office` docx, pptx, xlsx, odt, epub, eml and others.",
        ),
    ],
    index: IndexOption,
    embedder: Annotated[
        str | None,
        typer.Option(
            help="Embedder as provider:model, plus @base_url for an OpenAI-compatible server. Default: the index's "
            "embedder, then $ARAG_EMBEDDER, then huggingface:sentence-transformers/all-MiniLM-L6-v2."
        ),
    ] = None,
    chunk_tokens: Annotated[
        int | None, typer.Option(min=50, help="Maximum tokens per chunk. Default: the index's setting, or 1,000.")
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove documents that came from PATH and are no longer there.")
    ] = False,
    read_as: Annotated[
        list[str] | None,
        typer.Option("--as", metavar=".ENDING=.KNOWN", help="Read files with an ending like another: .log=.txt."),
    ] = None,
    encoding: Annotated[
        str, typer.Option(help="Encoding of text files that are not in Unicode and declare none: windows-1252.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Write documents into an index; later runs embed only what has changed.

    Exit code 3 means that the index was written, but something was left out.
    """
    from arag.ingest.pipeline import run_ingest

    readers = read_pairs("--as", read_as or (), ".log=.txt")
    reading: Any = {"readers": readers, "encoding": encoding, "prune": prune}
    with _showing_progress(as_json) as show:
        summary = run_ingest(paths, index, embedder=embedder, chunk_tokens=chunk_tokens, **reading, progress=show)
    if as_json:
        print_json(asdict(summary))
    else:
        _show_summary(summary, index)
    if summary.problems:
        raise typer.Exit(LEFT_OUT)


def copy(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The index: a folder, or postgresql://...")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Where to copy it to, likewise.")],
    as_json: JsonOption = False,
) -> None:
    """Copy an index to another place without embedding anything again; an interrupted copy is continued."""
    from arag.ingest.copying import copy_index

    with _showing_progress(as_json) as show:
        summary = copy_index(source, target, progress=show)
    if as_json:
        print_json(asdict(summary))
    else:
        out.print(
            f"Copied {summary.documents:,} documents, {summary.chunks:,} chunks and {summary.sentences:,} sentences in "
            f"{summary.seconds:.1f} s; {summary.chunks - summary.written:,} chunks were there already."
        )


def remove(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Document ids, or patterns such as handbook/*.")],
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
            out.print_line(mark, f" {damage}")
        if not found:
            out.print_line(f"No damage found in {index.location}.")
        elif not repair and any(damage.repairable for damage in left):
            out.print_line(f"Run `arag verify --repair --index {index.location}` to repair it.")
    if left:
        raise typer.Exit(FAILED)


@contextmanager
def _showing_progress(as_json: bool) -> Iterator[Callable[[Progress], None] | bool]:
    """Give what shows the progress of an ingestion or a copy: a bar on a terminal, else a line every few seconds."""
    if as_json or not err.is_terminal:
        yield not as_json
        return
    with progress(TextColumn("{task.fields[figures]}")) as bars:
        task = bars.add_task("", total=None, figures="")

        def show(now: Progress) -> None:
            figures = f"{now.finished}\n{now.embedded}".rstrip()  # two lines: a terminal may have 80 columns
            bars.update(task, description=now.step, completed=now.done, total=now.total, figures=figures)

        yield show


def _show_summary(summary: IngestSummary, index: IndexStore) -> None:
    out.print(
        f"Read {count(summary.read, 'document')}: {summary.written:,} new or changed, "
        f"{count(summary.embedded, 'sentence')} embedded, {count(summary.removed, 'document')} removed, "
        f"{summary.seconds:.1f} s."
    )
    size = f" holds {count(summary.documents, 'document')}, {count(summary.chunks, 'chunk')}, "
    out.print_line((str(index.location), "bold"), size + f"{count(summary.sentences, 'sentence')}.")
    if summary.absent:
        out.print(
            f"Kept, but not read this time: {count(summary.absent, 'document')}. --prune removes those that are gone."
        )
    if summary.other_scripts:
        told = "in a script that the embedder does not know: find them by keywords."
        out.print(f"{count(summary.other_scripts, 'document')} {told}")
    skipped: dict[str, list[str]] = {}
    for problem in summary.skipped:
        skipped.setdefault(problem.reason, []).append(problem.source)
    for reason, files in skipped.items():
        names = shorten(", ".join(files), _MAX_NAMES)
        err.print_line(("Skipped:", "yellow"), f" {reason} ({len(files):,}): {names}")
    for problem in summary.problems:
        err.print_line(("Left out:", "yellow"), f" {problem}")


# --- looking ---


def info(
    index: IndexOption, where: WhereOption = None, documents: DocumentsOption = None, as_json: JsonOption = False
) -> None:
    """Show what an index contains and how it was built."""
    with open_scoped(index, where, documents) as opened:
        values = asdict(opened.info())
    if as_json:
        print_json(values)
        return
    for name, value in values.items():
        if name != "bytes" or value:  # not known of a scope
            out.print_line(f"{name.replace('_', ' '):<14}{format(value, ',') if isinstance(value, int) else value}")


def list_documents(
    index: IndexOption, where: WhereOption = None, documents: DocumentsOption = None, as_json: JsonOption = False
) -> None:
    """List the documents of an index: id, title, number of chunks and source, separated by tabs.

    With --json, print their metadata, too.
    """
    with open_scoped(index, where, documents) as opened:
        if as_json:
            print_json({"documents": [asdict(document) for document in opened.documents()]})
            return
        listed = list(opened.documents())
        if not listed:
            err.print("No document of the index is in the scope." if where or documents else "The index is empty.")
        elif out.is_terminal:
            print("ID", "TITLE", "CHUNKS", "SOURCE", sep="\t")  # noqa: T201
        for document in listed:
            fields = (document.id, document.title, f"{document.chunks:,}", document.source)
            print("\t".join(visible_line(field) for field in fields))  # noqa: T201 - a console would write spaces


def search(
    kind: Annotated[Literal["keyword", "semantic"], typer.Argument(help="How to search.")],
    text: Annotated[
        list[str],
        typer.Argument(metavar="TEXT", help="Keywords, matched exactly, ignoring case; or a text close in meaning."),
    ],
    index: IndexOption,
    top_k: TopKOption = DEFAULT_TOP_K,
    where: WhereOption = None,
    documents: DocumentsOption = None,
    paper: Annotated[bool, typer.Option("--paper", help="List chunks by the paper's scores.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Search an index without a model, and print what an agent would see.

    With --json, print the chunks that rank first by the paper's scores, too.
    """
    from arag.retrieval.presentation.choose import SeenChunks, show_keyword_hits, show_semantic_hits
    from arag.retrieval.presentation.functions import describe_results, search_keywords, search_meaning
    from arag.retrieval.presentation.render import render_keywords, render_semantic

    query = " ".join(text)
    ranked: dict[str, Any] = {}
    with open_scoped(index, where, documents) as opened:
        if kind == "keyword":
            if paper or as_json:
                by_keyword = opened.keyword_search(text, top_k)
                ranked = describe_results(by_keyword)
            if paper:
                shown = render_keywords(by_keyword, show_keyword_hits(by_keyword))
            else:
                shown = search_keywords(opened, text, SeenChunks(), top_k=top_k).text
        else:
            if paper or as_json:
                by_meaning = opened.semantic_search(query, top_k)
                ranked = describe_results(by_meaning)
            if paper:
                shown = render_semantic(show_semantic_hits(by_meaning))
            else:
                shown = search_meaning(opened, [query], SeenChunks(), top_k=top_k).text
    if as_json:
        print_json(ranked | {"shown": shown})
    else:
        out.print(shown)


def read(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Chunk ids.")],
    index: IndexOption,
    adjacent: Annotated[int, typer.Option(min=0, max=2, help="Chunks to add before and after each one.")] = 0,
    where: WhereOption = None,
    documents: DocumentsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print chunks in full. Exit code 1 means that an id is unknown."""
    from arag.retrieval.presentation.render import render_chunks

    with open_scoped(index, where, documents) as opened:
        results = opened.read(ids, adjacent)
    if as_json:
        print_json(asdict(results))
    else:
        out.print(render_chunks(results, (), {}))
    if results.unknown:
        raise typer.Exit(FAILED)
