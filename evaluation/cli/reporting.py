"""`arag eval report`: the results of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import MofNCompleteColumn

from arag.errors import InputError
from arag.options import JsonOption
from arag.terminal import out, print_json, progress, warn


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="One or more run folders.")],
    target: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Where to write it. Default: the run folder; for several runs, print it."
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="METHOD", help="The method to compare the others with.")
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The paper's dataset, if the questions' file name does not show it."),
    ] = None,
    pages: Annotated[bool, typer.Option(help="Write a page for each question and each of its runs.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Report the results of a run: report.md and report.csv for a paper, report.html with plots and every question.

    For several runs, one table has the accuracy of all methods (paper, Table 1).
    """
    from arag.evaluation.report.figures import make_report
    from arag.evaluation.report.page import count_pages, write_report

    if len(folders) > 1:
        if baseline is not None or dataset is not None:
            raise InputError("--baseline and --dataset only work with one run")
        _report_several(folders, target, as_json)
        return
    (folder,) = folders
    found = make_report(folder, baseline=baseline, dataset=dataset)
    with progress(MofNCompleteColumn(), hidden=not pages) as bar:
        task = bar.add_task("Pages", total=count_pages(found))
        files = write_report(found, target or folder, pages=pages, told=lambda done: bar.update(task, completed=done))
    show_written(files, found.notes, as_json)


def _report_several(folders: Sequence[Path], target: Path | None, as_json: bool) -> None:
    from arag.evaluation.report.overview import make_overview

    found = make_overview(folders)
    if target is not None:
        show_written(found.write(target, "overview"), found.notes, as_json)
    elif as_json:
        raise InputError("--json lists the written files: give a folder for them with --out")
    else:
        out.print(found.markdown(), end="")


def show_written(files: Sequence[Path], notes: Sequence[str], as_json: bool) -> None:
    """Print which files were written, and notes for their readers."""
    if as_json:
        print_json({"files": [str(file) for file in files], "notes": list(notes)})
        return
    for note in notes:
        warn(f"Note: {note}")
    for file in files:
        out.print(f"Written: {file}")
