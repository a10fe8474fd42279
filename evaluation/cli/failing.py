"""`arag eval failures`: why answers are wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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
    from arag.evaluation.failures import Failure
    from arag.evaluation.records import Record


def failures(
    folder: RunArgument,
    judge: Annotated[str | None, typer.Option("--judge", help="provider:model that says what is left open.")] = None,
    labels: Annotated[
        Path | None, typer.Option("--labels", metavar="CSV", help="Another CSV, filled in, beside DIR/failures.csv.")
    ] = None,
    concurrency: ConcurrencyOption = 8,
) -> None:
    """Say why answers are wrong (paper, Figure 5): by the records, by a judge, by what you fill in DIR/failures.csv.

    Exit code 1 means that the judge gave no usable diagnosis of some answers; they are asked about again the next time.
    """
    from arag.evaluation.diagnosis import Diagnoser
    from arag.evaluation.failure_labels import LABELS_FILE, write_labels
    from arag.evaluation.failures import find_failures
    from arag.evaluation.files import write_file
    from arag.evaluation.report.failures_page import failures_page
    from arag.evaluation.runs import load_plan, load_records
    from arag.models.chat import load_model
    from arag.retrieval.index import open_index

    file = folder / LABELS_FILE
    diagnoser = None
    with open_index(load_plan(folder).index) as index:
        records = load_records(folder)
        if not any(records.values()):
            raise InputError(f"the run in {folder} has no records yet: `arag eval run` makes them")
        found = find_failures({name: some.values() for name, some in records.items()}, index)
        if file.exists():
            found = _with_labels(found, file, records, to_be_written=True)
        if labels is not None:
            found = _with_labels(found, labels, records)
        if judge is not None:
            with progress(MofNCompleteColumn()) as bar:
                task = bar.add_task("Diagnoses", total=sum(not failure.decided_by for failure in found))
                diagnoser = Diagnoser(
                    load_model(judge),
                    index,
                    concurrency=concurrency,
                    keep=lambda some: write_labels(some, file),
                    on_answer=lambda: bar.advance(task),
                )
                found = diagnoser.run(found)
    write_labels(found, file)
    page = write_file(folder / "failures.html", failures_page(found))
    _show_causes(found)
    _tell_of_methods_without_search(records)
    if diagnoser is not None:
        cost = "cost unknown" if diagnoser.cost is None else f"${diagnoser.cost:.2f}"
        diagnosed = diagnoser.asked - len(diagnoser.unusable)
        out.print(f"Diagnosed: {diagnosed:,} of {diagnoser.asked:,} by the judge, {cost}")
        warn_of("Not diagnosed", [f"{of.method}, {of.record['question_id']}: {why}" for of, why in diagnoser.unusable])
    out.print(f"Written: {page}")
    undecided = sum(not failure.decided_by for failure in found)
    todo = "; fill in `cause` there, and run this again" if undecided else ""
    out.print(f"{file}: {undecided:,} of {len(found):,} are not decided{todo}.")
    if diagnoser is not None and diagnoser.unusable:
        raise typer.Exit(FAILED)


def _with_labels(
    found: Sequence[Failure], file: Path, records: Mapping[str, Mapping[str, Record]], *, to_be_written: bool = False
) -> list[Failure]:
    """Take over the labels of a CSV, and tell of those that are for no wrong answer."""
    from arag.evaluation.failure_labels import read_labels, take_over
    from arag.evaluation.failures import is_wrong
    from arag.evaluation.files import write_file

    labels = read_labels(file)
    labelled = take_over(found, labels)
    wrong = {failure.key for failure in found}
    lost = [label for label in labels if label.key not in wrong]
    lost_records = [records.get(label.method, {}).get(label.question_id) for label in lost]
    unknown = [label for label, of in zip(lost, lost_records, strict=True) if of is None or is_wrong(of)]
    if len(lost) > len(unknown):
        warn(f"Note: rows of {file} dropped, as their answers are not wrong any more: {len(lost) - len(unknown):,}")
    if unknown:
        warn(
            f"Warning: rows of {file} left out, as they match no wrong answer of this run: {len(unknown):,}; the first "
            f"is of {unknown[0].method}, question {unknown[0].question_id!r}"
        )
    if to_be_written and any(label.cause for label in lost):
        former = write_file(file.with_name(f"{file.stem}.former{file.suffix}"), file.read_bytes().decode())
        warn(f"Note: the file as it was is kept as {former}")
    return labelled


def _show_causes(found: Sequence[Failure]) -> None:
    table = Table("method", "cause", "in the reasoning chain", box=None)
    for column in ("wrong answers", "share"):
        table.add_column(column, justify="right")
    counts = Counter((failure.method, failure.cause, failure.chain_cause) for failure in found)
    of_method = Counter(failure.method for failure in found)
    for (name, cause, chain_cause), count in sorted(counts.items(), key=lambda item: (item[0][0], -item[1])):
        table.add_row(name, cause or "(not decided)", chain_cause, f"{count:,}", f"{count / of_method[name]:.0%}")
    out.print(table)


def _tell_of_methods_without_search(records: Mapping[str, Mapping[str, Record]]) -> None:
    from arag.evaluation.failures import find_taxonomy, is_wrong

    for name, some in records.items():
        wrong = sum(map(is_wrong, some.values()))
        if wrong and find_taxonomy(name, some.values()) is None:
            warn(f"Note: {name} does not search, so there is nothing to diagnose in its wrong answers ({wrong:,})")
