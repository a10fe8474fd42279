"""What a run prints, during the run and at its end."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import ConsoleRenderable
from rich.progress import MofNCompleteColumn, TaskID, TextColumn

from arag.errors import ARAGError
from arag.terminal import err, progress, styled, warn

if TYPE_CHECKING:
    from arag.evaluation.datasets import Question
    from arag.evaluation.runs import Record

_MAX_SHOWN = 3  # problems of each kind


@contextmanager
def preparing(name: str) -> Iterator[Callable[[str, int, int], None]]:
    """Draw a bar for each part of the work before the first question; yield what `Lab.progress` is."""
    with progress(MofNCompleteColumn(), transient=False) as bar:
        tasks: dict[str, TaskID] = {}

        def show(title: str, done: int, total: int) -> None:
            if title not in tasks:
                tasks[title] = bar.add_task(f"{name}: {title}", total=total)
            bar.update(tasks[title], completed=done, total=total)

        yield show


@contextmanager
def answering(
    name: str, questions: Sequence[Question], records: dict[str, Record]
) -> Iterator[Callable[[Record], None]]:
    """Draw a bar with the accuracy so far, the cost and the time left; yield what is called with each new record."""
    columns = MofNCompleteColumn(), TextColumn("{task.fields[state]}", markup=False)
    with progress(*columns, transient=False) as bar:
        task = bar.add_task(name, total=len(questions), state="")

        def add(record: Record) -> None:
            records[record["question_id"]] = record
            if not bar.disable:
                show()

        def show() -> None:
            summary = summarise(name, questions, records)
            bar.update(task, completed=summary["answered"], state=_figures(summary))

        show()
        yield add


def summarise(name: str, questions: Sequence[Question], records: Mapping[str, Record]) -> dict[str, Any]:
    """Return a method's results so far.

    Accuracies are over the questions asked so far: failed ones count as wrong, unjudged ones do not count.
    """
    asked = [records[question.id] for question in questions if question.id in records]
    answered = [record for record in asked if record["error"] is None]
    judgements = [record["judgement"] for record in answered if record["judgement"] is not None]
    verdicts = [judgement["correct"] for judgement in judgements if judgement["correct"] is not None]
    failed = len(asked) - len(answered)
    prices = [record["cost"] for record in asked] + [judgement["cost"] for judgement in judgements]
    return {
        "method": name,
        "questions": len(questions),
        "answered": len(answered),
        "failed": failed,
        "judged": len(verdicts),
        "contain": sum(record["contain"] for record in asked) / len(asked) if answered else None,
        "correct": sum(verdicts) / (len(verdicts) + failed) if verdicts else None,
        "cost": None if None in prices else sum(price or 0 for price in prices),
    }


def describe(summary: Mapping[str, Any]) -> ConsoleRenderable:
    """Return a method's results on one line."""
    answered = f" {summary['answered']:,} of {summary['questions']:,} answered, {_figures(summary)}"
    return styled((summary["method"], "bold"), answered)


def _figures(summary: Mapping[str, Any]) -> str:
    accuracies = {"LLM-Acc": summary["correct"], "Contain-Acc": summary["contain"]}
    parts = [f"{name} {share:.1%}" for name, share in accuracies.items() if share is not None]
    return ", ".join([*parts, "cost unknown" if summary["cost"] is None else f"${summary['cost']:.2f}"])


def show_problems(questions: Sequence[Question], records: Mapping[str, Record], error: Exception | None) -> None:
    """Print which questions have no answer or no verdict, and why, and what ended the run, if anything did."""
    asked = [(question.id, records[question.id]) for question in questions if question.id in records]
    failed = [f"{name}: {record['error']}" for name, record in asked if record["error"]]
    warn_of("Failed", failed)
    if failed:
        err.print("The records hold the traceback of each failed question.")
    judgements = [(name, record["judgement"]) for name, record in asked if record["judgement"]]
    warn_of("Unjudged", [f"{name}: {of['reason']}" for name, of in judgements if of and of["correct"] is None])
    if error is not None:
        missing = len(questions) - len(asked)
        warn(f"The run ended{f', with {missing:,} questions not begun' if missing else ''}: {error}")
        if not isinstance(error, ARAGError):
            err.print("".join(traceback.format_exception(error)).rstrip())


def warn_of(title: str, lines: Sequence[str]) -> None:
    """Print the first few warnings of a kind, and how many more there are."""
    for line in lines[:_MAX_SHOWN]:
        warn(f"{title}: {line}")
    if len(lines) > _MAX_SHOWN:
        warn(f"{title}: {len(lines) - _MAX_SHOWN:,} more")
