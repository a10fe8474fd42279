"""`arag ingest`: writes documents into an index, or shows what would be written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from rich.progress import TextColumn

from arag.cli.summary import show_preview, show_summary
from arag.errors import InputError
from arag.options import INDEX, JsonOption, read_pairs
from arag.terminal import err, print_json, progress

if TYPE_CHECKING:
    from arag.ingest.pipeline import IngestOptions
    from arag.ingest.progress import Progress

_LANGUAGE = re.compile(r"[A-Za-z]+(?:[+_-][A-Za-z]+)*")  # such as deu, eng+fra and zh-Hans
LEFT_OUT = 3  # exit code when something was left out; 2 means a usage error

_ReadAsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--as", metavar=".EXT=.KNOWN", help="Read files with one extension like another: .log=.txt."),
]
_IgnoreOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="PATTERN",
        help="Leave out files and folders, as a line of .gitignore does: drafts/, '*.log'; '!*.css' reads what is left "
        "out by default. A folder's .aragignore has such lines, too. Repeatable.",
    ),
]
_OcrOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--ocr",
        help="Read scanned pages of PDFs, and pictures (png, jpg, tif, bmp, webp), by OCR: about 15 seconds of "
        "processor time a page. It needs the extra `ocr`.",
    ),
]
_TextFieldOption: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", help="Field of records (json, jsonl) that has their text: body, page.body.")
]
_TitleFieldOption: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", help="Field of records that has their title.")
]
_IdFieldOption: TypeAlias = Annotated[str, typer.Option(metavar="NAME", help="Field of records that has their id.")]


def ingest(
    paths: Annotated[
        list[str],  # a Path would make the current folder of an empty name
        typer.Argument(
            metavar="PATH...",
            help="Files and folders to read: txt, md, rst, html, docbook, page, xml (DocBook, Mallard), pdf, docx, "
            "odt, ods, odp, odg, epub, eml, mbox, mht, csv, tsv, ipynb, json, jsonl, programs. Also templates (dotx, "
            "ott...), texts without an extension, and these in gzip (.gz); with the extra "
            "`office` xlsx, xls, pptx, ppt, doc, rtf and msg; with --ocr png, jpg, tif, bmp and webp.",
        ),
    ],
    index: Annotated[str, INDEX] = "",
    embedder: Annotated[
        str | None,
        typer.Option(
            help="Embedder as provider:model, plus @base_url for an OpenAI-compatible server. Default: the index's "
            "embedder, then $ARAG_EMBEDDER, then multilingual-e5-small."
        ),
    ] = None,
    chunk_tokens: Annotated[
        int | None, typer.Option(min=50, help="Maximum tokens per chunk. Default: the index's setting, or 1,000.")
    ] = None,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Remove documents that came from PATH and are gone or ignored now."),
    ] = False,
    read_as: _ReadAsOption = None,
    ignore: _IgnoreOption = None,
    encoding: Annotated[
        str, typer.Option(help="Encoding of text files that are not in Unicode, if it is in doubt: windows-1252.")
    ] = "",
    ocr: _OcrOption = False,
    text_field: _TextFieldOption = "",
    title_field: _TitleFieldOption = "",
    id_field: _IdFieldOption = "",
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Write nothing: show what is new or changed, its headings and tables, and what would be left out.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write documents into an index; later runs embed only what has changed.

    Exit code 3 means that the index was written, but something was left out.
    Parts of files that no reader reads, such as pictures, are named, and change no exit code.
    """
    options: IngestOptions = {
        "chunk_tokens": chunk_tokens,
        "readers": read_pairs("--as", read_as or (), ".log=.txt"),
        "ignore": ignore,
        "encoding": encoding,
        "ocr": ocr,
        "text_field": text_field,
        "title_field": title_field,
        "id_field": id_field,
        "prune": prune,
        "embedder": embedder,
    }
    if ocr:
        _refuse_languages(paths)
    if dry_run:
        has_problems = _preview(paths, index, options, as_json)
    elif index:
        has_problems = _write(paths, index, options, as_json)
    else:
        raise typer.BadParameter("an index is needed, as --index my-index or $ARAG_INDEX, except for --dry-run")
    if has_problems:
        raise typer.Exit(LEFT_OUT)


def _refuse_languages(paths: list[str]) -> None:
    """Refuse a language behind --ocr, which would be taken for a path.

    Raises:
        InputError: A path looks like the name of a language, and there is no such file or folder.
    """
    for path in paths:
        if _LANGUAGE.fullmatch(path) and not Path(path).exists():
            raise InputError(
                f"{path!r} is neither a file nor a folder; --ocr takes no language: it reads English and most others "
                "in Latin letters, Chinese and Japanese"
            )


def _preview(paths: list[str], index: str, options: IngestOptions, as_json: bool) -> bool:
    """Show what would be written; return whether something would be left out."""
    from arag.ingest.preview import preview

    with showing_progress(as_json) as show:
        options["progress"] = show
        shown = preview(paths, index, **options)
    if as_json:
        print_json(asdict(shown))
    else:
        show_preview(shown)
    return bool(shown.problems)


def _write(paths: list[str], index: str, options: IngestOptions, as_json: bool) -> bool:
    """Write documents; return whether something was left out."""
    from arag.ingest.pipeline import run_ingest
    from arag.retrieval.storage.locations import store_at

    store = store_at(index)
    with showing_progress(as_json) as show:
        options["progress"] = show
        summary = run_ingest(paths, store, **options)
    if as_json:
        print_json(asdict(summary))
    else:
        show_summary(summary, str(store.location), pruned=options["prune"])
    return bool(summary.problems)


@contextmanager
def showing_progress(as_json: bool) -> Iterator[Callable[[Progress], None] | bool]:
    """Yield a progress callback for a bar on a terminal; else whether lines every few seconds show the progress."""
    if as_json or not err.is_terminal:
        yield not as_json
        return
    with progress(TextColumn("{task.fields[figures]}")) as bars:
        task = bars.add_task("", total=None, figures="", seconds_left=None)

        def show(now: Progress) -> None:
            figures = f"{now.finished}\n{now.embedded}".rstrip()  # two lines: a terminal may have 80 columns
            bars.update(
                task,
                description=now.step,
                completed=now.done,
                total=now.total,
                figures=figures,
                seconds_left=now.seconds_left,
            )

        yield show
