"""`arag eval report` and `arag eval failures`: the results of runs, and why answers are wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arag.errors import InputError
from arag.evaluation.cli.running import load_without_retries, preparing, show_written, write_report
from arag.options import IndexOption, JsonOption
from arag.terminal import FAILED, out, print_json

if TYPE_CHECKING:
    from arag.evaluation.failures import Failure


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="One or more run folders.")],
    target: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where to write it. Default: the folder of the run.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="METHOD", help="The method to compare the others of one run with.")
    ] = None,
    pages: Annotated[bool, typer.Option(help="Write a page for each question and each of its runs.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Report the results of a run: report.html with plots, tables and questions, and report.csv.

    For several runs, one table has the accuracy of all methods (paper, Table 1); runs that differ in steps or effort
    are drawn as a course (paper, Figure 4).
    """
    if target is None and len(folders) > 1:
        raise InputError("a report of several runs needs a folder: give one with --out")
    files = write_report(folders, target or folders[0], pages=pages, baseline=baseline)
    if as_json:
        print_json({"files": [str(file) for file in files]})
    else:
        show_written(files)


def failures(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")],
    index: IndexOption,
    judge: Annotated[
        str | None, typer.Option(help="provider:model that diagnoses what the records do not show.")
    ] = None,
) -> None:
    """Find why methods that search answer wrongly (paper, Figure 5), and write it to DIR/failures.csv.

    Records decide some causes, and a judge or you the others: causes that stand in that file stay. The report in DIR
    shows them. Exit code 1 means that the judge gave no usable diagnosis for some answers; the next run asks again.
    """
    from arag.evaluation.cache import CallCache, Store
    from arag.evaluation.failures import FAILURES_FILE, diagnose, find_failures, read_failures, write_failures
    from arag.evaluation.method import Lab, Session
    from arag.evaluation.plan import load_plan
    from arag.evaluation.runs import load_records
    from arag.retrieval.index import open_index

    plan, known = load_plan(folder), read_failures(folder)
    wrong: list[Failure] = []
    with open_index(index) as searched:
        for name, records in load_records(folder).items():
            wrong += find_failures(name, plan.methods[name].iterative, list(records.values()), searched)
        for failure in wrong:
            if row := known.get((failure.method, failure.record["question_id"])):
                failure.decide(row["cause"], row.get("decided_by") or "", row.get("why") or "")
        if judge is not None:
            store = Store(folder)
            model = load_without_retries(judge).model_copy(update={"cache": CallCache(store)})
            with preparing("Judge") as show:
                session = Session(Lab(searched, model, store, progress=show))
                undecided = [failure for failure in wrong if not failure.cause]
                session.map_parallel(lambda own, failure: diagnose(failure, own), undecided, "Diagnoses")
    write_failures(wrong, folder)
    counts = Counter((failure.method, failure.cause or "undecided") for failure in wrong)
    for (name, cause), count in sorted(counts.items(), key=lambda item: (item[0][0], -item[1])):
        out.print_line(f"{name}: {cause}: {count:,}")
    left = sum(not failure.cause for failure in wrong)
    todo = "; fill in `cause` there and run this again" if left else ""
    out.print_line(f"{folder / FAILURES_FILE}: {left:,} of {len(wrong):,} undecided{todo}.")
    show_written(write_report([folder], folder))
    if judge is not None and left:
        raise typer.Exit(FAILED)
