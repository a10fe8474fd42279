"""What a run prints, during the run and at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.progress import MofNCompleteColumn, TaskID, TextColumn

from arag.terminal import err, out, progress, styled, warn

if TYPE_CHECKING:
    from arag.evaluation.datasets import Question
    from arag.evaluation.records import Record

_MAX_TOLD = 3  # failures of each kind


@contextmanager
def method_progress(
    name: str, questions: Sequence[Question], records: dict[str, Record], *, judged: bool
) -> Iterator[Callable[[Record], None]]:
    """Draw a bar with the accuracy so far, the cost and the time left.

    Args:
        name: The method's name.
        questions: The questions.
        records: The records so far; new ones are added.
        judged: Whether there is a judge.

    Yields:
        A function to call with each new record.
    """
    columns = MofNCompleteColumn(), TextColumn("{task.fields[state]}", markup=False)
    with progress(*columns, transient=False) as bar:
        task = bar.add_task(name, total=len(questions), state="")

        def show() -> None:
            if not bar.disable:
                summary = summarise(name, questions, records, judged=judged)
                bar.update(task, completed=summary["answered"], state=", ".join(_figures(summary)))

        def add(record: Record) -> None:
            records[record["question_id"]] = {**record, "messages": []}  # these take the most memory
            show()

        show()
        yield add


@contextmanager
def work_progress(name: str) -> Iterator[Callable[[str, int, int], None]]:
    """Draw a bar for each part of a method's index-time work.

    Args:
        name: The method's name.

    Yields:
        A function to call with what is being done, how many of its items are done, and how many there are.
    """
    with progress(MofNCompleteColumn(), transient=False) as bar:
        tasks: dict[str, TaskID] = {}

        def show(title: str, done: int, total: int) -> None:
            if title not in tasks:
                tasks[title] = bar.add_task(f"{name}: {title}", total=total)
            bar.update(tasks[title], completed=done, total=total)

        yield show


def summarise(
    name: str, questions: Sequence[Question], records: Mapping[str, Record], *, judged: bool
) -> dict[str, Any]:
    """Return a method's results so far.

    Accuracies are over the questions asked so far: failed ones count as wrong, unjudged ones do not count.
    """
    from arag.evaluation.report.measures import CONTAIN_ACC, LLM_ACC, figure

    mine = [records[question.id] for question in questions if question.id in records]
    done = [record for record in mine if record["error"] is None]
    judgements = [record["judgement"] for record in done if record["judgement"] is not None]
    verdicts = sum(judgement["correct"] is not None for judgement in judgements)
    contain, correct = figure(CONTAIN_ACC, mine), figure(LLM_ACC, mine)
    prices = [price for record in mine for price in (record["paid"], record["judge_paid"])]
    return {
        "method": name,
        "questions": len(questions),
        "answered": len(done),
        "failed": len(mine) - len(done),
        "judged": verdicts,
        "unjudged": len(done if judged else judgements) - verdicts,
        "contain": contain.mean if contain and done else None,
        "correct": correct.mean if correct and judgements else None,
        "cost": None if None in prices else sum(price or 0.0 for price in prices),
    }


def show_summary(summary: Mapping[str, Any]) -> None:
    """Print a method's results on one line."""
    answered = f" {summary['answered']:,} of {summary['questions']:,} answered"
    out.print(styled((summary["method"], "bold"), ", ".join([answered, *_figures(summary)])))


def _figures(summary: Mapping[str, Any]) -> Iterator[str]:
    if summary["correct"] is not None:
        only = f" ({summary['judged']:,} judged)" if summary["judged"] < summary["answered"] else ""
        yield f"LLM-Acc {summary['correct']:.1%}{only}"
    if summary["contain"] is not None:
        yield f"Contain-Acc {summary['contain']:.1%}"
    yield "cost unknown" if summary["cost"] is None else f"${summary['cost']:.2f}"


def show_failures(questions: Sequence[Question], records: Mapping[str, Record], *, judged: bool) -> None:
    """Print which questions have no answer or no verdict, and why."""
    mine = [records[question.id] for question in questions if question.id in records]
    verdicts = [(record["question_id"], record["judgement"]) for record in mine if record["error"] is None]
    warn_of("Failed", [f"{record['question_id']}: {record['error']}" for record in mine if record["error"] is not None])
    warn_of("Unjudged", [f"{name}: {of['reason']}" for name, of in verdicts if of and of["correct"] is None])
    traces: dict[str, str] = {}  # one for each kind of error
    for record in mine:
        if record["traceback"] is not None:
            kind = (record["error"] or "the judge").partition(":")[0]
            traces.setdefault(kind, record["traceback"])
    for trace in traces.values():
        err.print(trace.rstrip())
    not_judged = sum(of is None for _, of in verdicts) if judged else 0
    for title, count in (("Not started", len(questions) - len(mine)), ("Not judged", not_judged)):
        if count:
            warn(f"{title}: {count:,}, because --max-cost was reached")


def warn_of(title: str, lines: Sequence[str]) -> None:
    """Print the first few warnings of a kind, and how many more there are."""
    for line in lines[:_MAX_TOLD]:
        warn(f"{title}: {line}")
    if len(lines) > _MAX_TOLD:
        warn(f"{title}: {len(lines) - _MAX_TOLD:,} more")
