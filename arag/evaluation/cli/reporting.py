"""`arag eval report`: the results of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import MofNCompleteColumn

from arag.errors import InputError
from arag.options import JsonOption
from arag.terminal import out, print_json, progress


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="One or more run folders.")],
    target: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Where to write it; needed for several runs. Default: the run folder."
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="METHOD", help="The method to compare the others of one run with.")
    ] = None,
    pages: Annotated[bool, typer.Option(help="Write a page for each question and each of its runs.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Report the results of a run: report.html with plots, tables and questions, report.md and report.csv for a paper.

    For several runs, one table has the accuracy of all methods (paper, Table 1); runs that differ in steps or effort
    are drawn as a course (paper, Figure 4).
    """
    if target is None and len(folders) > 1:
        raise InputError("a report of several runs needs a folder: give one with --out")
    with progress(MofNCompleteColumn()) as bar:
        files = load_report().write_report(
            folders,
            target or folders[0],
            pages=pages,
            baseline=baseline,
            track=lambda every, number: bar.track(every, number, description="Pages"),
        )
    if as_json:
        print_json({"files": [str(file) for file in files]})
    else:
        show_written(files)


def load_report() -> Any:
    """Return the module that writes reports.

    Raises:
        InputError: The extra `eval` is not installed.
    """
    try:
        from arag.evaluation.report import pages
    except ImportError as error:
        raise InputError(f"a report needs {error.name}: pip install 'langgraph-arag[eval]'") from error
    return pages


def show_written(files: Sequence[Path]) -> None:
    """Print which files were written."""
    for file in files:
        out.print(f"Written: {file}")
