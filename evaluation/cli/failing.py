"""`arag eval failures`: why answers are wrong."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from arag.errors import InputError
from arag.evaluation.cli.options import FAILED, ConcurrencyOption, RunArgument
from arag.terminal import err, out, warn

if TYPE_CHECKING:
    from arag.evaluation.diagnosis import Diagnoser
    from arag.evaluation.failure_labels import Label
    from arag.evaluation.failures import Failure
    from arag.evaluation.records import Record

_SHOWN = 3  # failures that are told of


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
    from arag.evaluation.failures import failures as find_failures
    from arag.evaluation.report.experiment_page import failures_page, write_page
    from arag.evaluation.runs import load_plan, load_records
    from arag.models.chat import load_model
    from arag.retrieval.index import open_index

    file = folder / LABELS_FILE
    diagnoser = None
    with open_index(load_plan(folder).index) as opened:
        records = load_records(folder)
        if not any(records.values()):
            raise InputError(f"the run in {folder} has no records yet: `arag eval run` makes them")
        found = find_failures({name: some.values() for name, some in records.items()}, opened)
        if file.exists():
            found = _with_labels(found, file, records, to_be_written=True)
        if labels is not None:
            found = _with_labels(found, labels, records)
        if judge is not None:
            with _asking(sum(not failure.decided_by for failure in found)) as asked:
                diagnoser = Diagnoser(
                    load_model(judge),
                    opened,
                    concurrency=concurrency,
                    keep=lambda some: write_labels(some, file),
                    on_answer=asked,
                )
                found = diagnoser.run(found)
    write_labels(found, file)
    page = write_page(failures_page(found), folder / "failures.html")
    _show_causes(found)
    _tell_of_methods_without_search(records)
    if diagnoser is not None:
        _show_diagnosis(diagnoser)
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
    from arag.evaluation.failure_labels import keep_former, read_labels, take_over, unmatched
    from arag.evaluation.failures import is_wrong

    def is_right(label: Label) -> bool:
        record = records.get(label.method, {}).get(label.question_id)
        return record is not None and not is_wrong(record)

    labels = read_labels(file)
    labelled = take_over(found, labels)
    lost = unmatched(labels, found)
    right = [label for label in lost if is_right(label)]
    others = [label for label in lost if not is_right(label)]
    notes = []
    if right:
        notes.append(f"Note: rows of {file} dropped, as their answers are not wrong any more: {len(right):,}")
    if others:
        first = others[0]
        notes.append(
            f"Warning: rows of {file} left out, as they match no wrong answer of this run: {len(others):,}; the first "
            f"is of {first.method}, question {first.question_id!r}"
        )
    if to_be_written and any(label.cause for label in lost):
        notes.append(f"Note: the file as it was is kept as {keep_former(file)}")
    for note in notes:
        warn(note)
    return labelled


@contextmanager
def _asking(count: int) -> Iterator[Callable[[], None]]:
    """Draw a bar of the answers that a judge is asked about."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, disable=not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task("Diagnoses", total=count)
        yield lambda: progress.advance(task)


def _show_causes(found: Sequence[Failure]) -> None:
    table = Table(box=None)
    for column in ("method", "cause", "in the reasoning chain", "wrong answers", "share"):
        table.add_column(column, justify="right" if column in {"wrong answers", "share"} else "left")
    counts = Counter((failure.method, failure.cause, failure.chain_cause) for failure in found)
    of_method = Counter(failure.method for failure in found)
    for (name, cause, chain_cause), count in sorted(counts.items(), key=lambda item: (item[0][0], -item[1])):
        table.add_row(name, cause or "(not decided)", chain_cause, f"{count:,}", f"{count / of_method[name]:.0%}")
    out.print(table)


def _tell_of_methods_without_search(records: Mapping[str, Mapping[str, Record]]) -> None:
    from arag.evaluation.failures import is_wrong, taxonomy_of

    for name, some in records.items():
        wrong = sum(map(is_wrong, some.values()))
        if wrong and taxonomy_of(name, some.values()) is None:
            note = f"Note: {name} does not search, so there is nothing to diagnose in its wrong answers ({wrong:,})"
            warn(note)


def _show_diagnosis(diagnoser: Diagnoser) -> None:
    cost = "cost unknown" if diagnoser.cost is None else f"${diagnoser.cost:.2f}"
    diagnosed = diagnoser.asked - len(diagnoser.unusable)
    out.print(f"Diagnosed: {diagnosed:,} of {diagnoser.asked:,} by the judge, {cost}")
    for failure, why in diagnoser.unusable[:_SHOWN]:
        line = f"Not diagnosed: {failure.method}, {failure.record['question_id']}: {why}"
        warn(line)
    if len(diagnoser.unusable) > _SHOWN:
        warn(f"Not diagnosed: {len(diagnoser.unusable) - _SHOWN:,} more")
