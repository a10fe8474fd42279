"""`arag eval report` and `arag eval failures`: the results of runs, and why answers are wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arag.errors import InputError
from arag.evaluation.cli.running import preparing, show_written, write_report
from arag.options import IndexOption, JsonOption
from arag.terminal import FAILED, out, print_json

if TYPE_CHECKING:
    from arag.evaluation.failures import Failure
    from arag.evaluation.plan import Plan
    from arag.retrieval.index import Index


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

    For several runs, one table has the accuracy of all methods (paper, Table 1).
    Runs that differ in steps or effort are drawn as a course (paper, Figure 4).
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

    Records decide some causes, and a judge or you the others. Causes that are in that file are kept. The report in DIR
    shows them. Exit code 1 means that the judge gave no usable diagnosis for some answers; the next run asks again.
    """
    from arag.evaluation.failures import FAILURES_FILE, read_failures, write_failures
    from arag.evaluation.plan import load_plan
    from arag.retrieval.index import open_index

    plan = load_plan(folder)
    known = read_failures(folder)
    with open_index(index) as opened:
        wrong = _find_all_failures(plan, folder, opened)
        for failure in wrong:
            row = known.get((failure.method, failure.record["question_id"]))
            if row is not None:
                failure.decide(row["cause"], row.get("decided_by") or "", row.get("why") or "")
        if judge is not None:
            _ask_judge(judge, wrong, folder, opened)
    write_failures(wrong, folder)
    undecided = len(_list_undecided(wrong))
    _show_causes(wrong)
    to_do = "; fill in `cause` there and run this again" if undecided else ""
    out.print_line(f"{folder / FAILURES_FILE}: {undecided:,} of {len(wrong):,} undecided{to_do}.")
    show_written(write_report([folder], folder))
    if judge is not None and undecided:
        raise typer.Exit(FAILED)


def _find_all_failures(plan: Plan, folder: Path, index: Index) -> list[Failure]:
    """Return the wrong answers of a run's methods."""
    from arag.evaluation.failures import find_failures
    from arag.evaluation.records import load_records

    wrong: list[Failure] = []
    for name, records in load_records(folder).items():
        iterative = plan.methods[name].iterative
        wrong += find_failures(name, iterative, list(records.values()), index)
    return wrong


def _ask_judge(judge: str, wrong: Sequence[Failure], folder: Path, index: Index) -> None:
    """Let a judge diagnose the failures that are undecided."""
    from arag.evaluation.cache import CallCache, Store
    from arag.evaluation.chat_models import load_without_retries
    from arag.evaluation.failures import diagnose
    from arag.evaluation.method import Session
    from arag.evaluation.run_context import RunContext

    store = Store(folder)
    model = load_without_retries(judge).model_copy(update={"cache": CallCache(store)})
    with preparing("Judge") as show:
        session = Session(RunContext(index, model, store, progress=show))
        session.map_parallel(
            lambda own, failure: diagnose(failure, own),
            _list_undecided(wrong),
            "Diagnoses",
        )


def _list_undecided(wrong: Sequence[Failure]) -> list[Failure]:
    return [failure for failure in wrong if not failure.cause]


def _show_causes(wrong: Sequence[Failure]) -> None:
    """Print how often each method has failed for each cause, the most frequent causes first."""
    counts = Counter((failure.method, failure.cause or "undecided") for failure in wrong)
    for (method, cause), count in sorted(counts.items(), key=lambda item: (item[0][0], -item[1])):
        out.print_line(f"{method}: {cause}: {count:,}")
