"""`arag eval failures`: why answers are wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import MofNCompleteColumn
from rich.table import Table

from arag.errors import InputError
from arag.evaluation.cli.options import ConcurrencyOption, RunArgument
from arag.evaluation.cli.progress import warn_of
from arag.terminal import FAILED, out, progress, warn

if TYPE_CHECKING:
    from arag.evaluation.failure_labels import Row
    from arag.evaluation.failures import Failure


def failures(
    folder: RunArgument,
    judge: Annotated[
        str | None, typer.Option("--judge", help="provider:model that diagnoses what the records do not show.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option("--labels", metavar="CSV", help="A second CSV with labels, besides DIR/failures.csv.")
    ] = None,
    concurrency: ConcurrencyOption = 8,
) -> None:
    """Find why answers are wrong (paper, Figure 5): from the records, a judge, and your labels in DIR/failures.csv.

    Exit code 1 means that the judge gave no usable diagnosis for some answers; the next run asks about them again.
    """
    from arag.evaluation.diagnosis import diagnose
    from arag.evaluation.event_loop import run
    from arag.evaluation.failure_labels import LABELS_FILE, merge_labels, write_labels
    from arag.evaluation.failures import find_failures, is_wrong
    from arag.evaluation.files import write_file
    from arag.evaluation.report.failures_page import failures_page
    from arag.evaluation.runs import find_index, load_plan, load_records
    from arag.models.chat import load_model
    from arag.retrieval.index import open_index

    file = folder / LABELS_FILE
    others: list[Row] = []
    plan = load_plan(folder)
    with open_index(find_index(plan)) as index:
        records = {name: list(some.values()) for name, some in load_records(folder).items()}
        if not any(records.values()):
            raise InputError(f"the run in {folder} has no records yet: run `arag eval run` first")
        found = [
            failure
            for name, some in records.items()
            for failure in find_failures(name, some, index, plan.methods.get(name))
        ]
        for source in dict.fromkeys([*([file] if file.exists() else []), *([labels] if labels else [])]):
            found, unmatched = merge_labels(found, source)
            if source == file:
                others = unmatched
            if unmatched:
                first = f"{unmatched[0]['method']}, question {unmatched[0]['question_id']!r}"
                rows = f"{len(unmatched):,}, the first for {first}"
                warn(f"Warning: some rows of {source} match no wrong answer of this run and are ignored: {rows}")
        asked = [failure.key for failure in found if not failure.final]
        cost: float | None = None
        if judge is not None:
            with progress(MofNCompleteColumn()) as bar:
                task = bar.add_task("Diagnoses", total=len(asked))

                def keep(some: Sequence[Failure]) -> None:
                    write_labels(some, file, others)
                    bar.advance(task)

                found, cost = run(diagnose(found, load_model(judge), index, concurrency=concurrency, keep=keep))
    write_labels(found, file, others)
    page = write_file(folder / "failures.html", failures_page(found))
    _show_causes(found)
    searching = {failure.method for failure in found}
    for name, some in records.items():
        if name not in searching and (wrong := sum(map(is_wrong, some))):
            warn(f"Note: {name} does not search, so its wrong answers ({wrong:,}) are not diagnosed")
    undecided = [failure for failure in found if not failure.final]
    if judge is not None:
        told = "cost unknown" if cost is None else f"${cost:.2f}"
        out.print(f"Diagnosed: {len(asked) - len(undecided):,} of {len(asked):,} by the judge, {told}")
        warn_of("Not diagnosed", [f"{', '.join(failure.key)}: {failure.why}" for failure in undecided])
    out.print(f"Written: {page}")
    todo = "; fill in `label` there and run this again" if undecided else ""
    out.print(f"{file}: {len(undecided):,} of {len(found):,} undecided{todo}.")
    if judge is not None and undecided:
        raise typer.Exit(FAILED)


def _show_causes(found: Sequence[Failure]) -> None:
    from arag.evaluation.failures import CHAIN_CAUSES, first_level

    table = Table("method", "cause", "reasoning chain error", box=None)
    for column in ("wrong answers", "share"):
        table.add_column(column, justify="right")
    counts = Counter((failure.method, failure.final) for failure in found)
    of_method = Counter(failure.method for failure in found)
    for (name, cause), count in sorted(counts.items(), key=lambda item: (item[0][0], -item[1])):
        chain_cause = cause if cause in CHAIN_CAUSES else ""
        share = f"{count / of_method[name]:.0%}"
        table.add_row(name, first_level(cause) or "(undecided)", chain_cause, f"{count:,}", share)
    out.print(table)
