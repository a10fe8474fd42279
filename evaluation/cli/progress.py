"""How a run tells of itself: while it goes on, and when it has ended."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from arag.terminal import err, out, styled, warn

if TYPE_CHECKING:
    from arag.evaluation.datasets import Question
    from arag.evaluation.records import Record, RecordFile

_SHOWN = 3  # failures that are told of


@dataclass
class _Tally:
    """Sums over the questions of a method so far; a record takes the place of the one before it.

    Attributes:
        judged: Whether there is a judge.
    """

    judged: bool
    _parts: dict[str, Counter[str]] = field(default_factory=dict)
    _sums: Counter[str] = field(default_factory=Counter)

    def add(self, record: Record) -> None:
        """Count a record."""
        verdict = record["judgement"] and record["judgement"]["correct"]
        failed = record["error"] is not None
        part: Counter[str] = Counter(
            begun=1,
            answered=not failed,
            contain=record["contain"],
            decided=failed or verdict is not None,
            correct=verdict is True,
            unpriced=None in (record["paid"], record["judge_paid"]),
        )
        part["microdollars"] = round(((record["paid"] or 0.0) + (record["judge_paid"] or 0.0)) * 1_000_000)
        self._sums.subtract(self._parts.get(record["question_id"], {}))
        self._sums.update(part)
        self._parts[record["question_id"]] = part

    @property
    def answered(self) -> int:
        """How many questions have an answer."""
        return self._sums["answered"]

    def __str__(self) -> str:
        sums = self._sums
        if not sums["begun"]:
            return ""
        parts = [f"Contain-Acc {sums['contain'] / sums['begun']:.1%}"]
        if self.judged and sums["decided"]:
            parts.insert(0, f"LLM-Acc {sums['correct'] / sums['decided']:.1%}")
        parts.append("cost unknown" if sums["unpriced"] else f"${sums['microdollars'] / 1_000_000:.2f}")
        return ", ".join(parts)


@contextmanager
def progress_bar(
    name: str, questions: Sequence[Question], file: RecordFile, *, judged: bool
) -> Iterator[Callable[[Record], None]]:
    """Draw a bar with the accuracy so far, the cost and the time left, where there is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    tally = _Tally(judged)
    known = file.read()
    for question in questions:
        if question.id in known:
            tally.add(known[question.id])
    columns: tuple[Any, ...] = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err) as progress:
        task = progress.add_task(name, total=len(questions), completed=tally.answered, state=str(tally))

        def shown(record: Record) -> None:
            tally.add(record)
            progress.update(task, completed=tally.answered, state=str(tally))

        yield shown


def summarise(
    name: str, questions: Sequence[Question], records: Mapping[str, Record], *, judged: bool
) -> dict[str, Any]:
    """Return what a method has reached.

    Accuracies are of the questions that were begun: failed ones count as wrong, unjudged ones do not count.
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
    """Print what a method has reached, in a line."""
    parts = [f" {summary['answered']:,} of {summary['questions']:,} answered"]
    if summary["correct"] is not None:
        only = f" ({summary['judged']:,} judged)" if summary["judged"] < summary["answered"] else ""
        parts.append(f"LLM-Acc {summary['correct']:.1%}{only}")
    if summary["contain"] is not None:
        parts.append(f"Contain-Acc {summary['contain']:.1%}")
    parts.append("cost unknown" if summary["cost"] is None else f"${summary['cost']:.2f}")
    out.print(styled((summary["method"], "bold"), ", ".join(parts)))


def show_failures(questions: Sequence[Question], records: Mapping[str, Record], *, judged: bool) -> None:
    """Say which questions have no answer or no verdict, and why."""
    mine = [records[question.id] for question in questions if question.id in records]
    failed = [f"{record['question_id']}: {record['error']}" for record in mine if record["error"] is not None]
    verdicts = [(record["question_id"], record["judgement"]) for record in mine if record["error"] is None]
    unjudged = [f"{name}: {of['reason']}" for name, of in verdicts if of is not None and of["correct"] is None]
    for title, some in (("Failed", failed), ("Unjudged", unjudged)):
        for line in some[:_SHOWN]:
            warn(f"{title}: {line}")
        if len(some) > _SHOWN:
            warn(f"{title}: {len(some) - _SHOWN:,} more")
    traces: dict[str, str] = {}  # of each kind of error one
    for record in mine:
        if record["traceback"] is not None:
            kind = (record["error"] or "the judge").partition(":")[0]
            traces.setdefault(kind, record["traceback"])
    for trace in traces.values():
        err.print(trace.rstrip())
    not_judged = sum(of is None for _, of in verdicts) if judged else 0
    for title, count in (("Not begun", len(questions) - len(mine)), ("Not judged", not_judged)):
        if count:
            warn(f"{title}: {count:,}, as --max-cost was reached")
