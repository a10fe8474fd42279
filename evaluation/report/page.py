"""A report as pages: one with plots and tables, and one per question with the methods' runs side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from arag.errors import StorageError
from arag.evaluation.files import write_file
from arag.evaluation.records import Record
from arag.evaluation.report.document import number, render_page
from arag.evaluation.report.drawings import drawings
from arag.evaluation.report.figures import MethodFigures, Report
from arag.evaluation.report.measures import ACCURACY, F1
from arag.evaluation.report.tables import csv_text, document, questions_csv
from arag.evaluation.runs import record_file
from arag.pages.page import trace_page

_MARKS = {1.0: ("right", "✓"), 0.0: ("wrong", "✗"), None: ("unjudged", "?")}


class _Asked(NamedTuple):
    """A method's result for a question, on the question's page and as a mark in the report."""

    method: MethodFigures
    record: Record | None  # None if it was not asked
    mark: tuple[str, str]  # a CSS class and a sign
    page: str  # the run's page, relative to the question's; empty if there is none


def write_report(
    report: Report, folder: Path, *, pages: bool = True, told: Callable[[int], None] = lambda _: None
) -> list[Path]:
    """Write a report: `report.md`, `report.csv`, `report.html`, `questions.csv`, and a folder of the questions' pages.

    Args:
        report: The report.
        folder: Where to write it.
        pages: Whether to write the questions' pages.
        told: Called after each of these pages with their number so far, up to `count_pages(report)`.

    Returns:
        The files, without the questions' pages.

    Raises:
        StorageError: It cannot be written.
    """
    files = [
        write_file(folder / "report.md", document(report).markdown()),
        write_file(folder / "report.csv", csv_text(report)),
        folder / "report.html",
        write_file(folder / "questions.csv", questions_csv(report)),
    ]
    for done, (name, text) in enumerate(_pages(report) if pages else (), start=1):
        file = folder / "questions" / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")  # one of thousands: syncing each to disk takes minutes
        except OSError as error:
            raise StorageError(f"{file} cannot be written: {error.strerror}") from error
        told(done)
    write_file(folder / "report.html", report_page(report, pages=pages))
    return files


def count_pages(report: Report) -> int:
    """Return the number of pages of questions and of their runs."""
    return len(report.questions) + sum(len(method.traced) for method in report.methods)


def report_page(report: Report, *, pages: bool = True) -> str:
    """Return the page with plots and tables.

    Args:
        report: The report.
        pages: Whether it links to the questions' pages.
    """
    shown = document(report)
    return replace(shown, drawings=drawings(report, shown.tables)).page(
        "report.html",
        report=report,
        questions=[_asked(report, place) for place in range(len(report.questions))],
        pages=pages,
    )


def question_page(report: Report, place: int) -> str:
    """Return the page of a question, with the methods' runs side by side.

    Args:
        report: The report.
        place: The question's index among the report's questions, from 0.
    """
    return render_page(
        "question.html",
        report=report,
        question=report.questions[place],
        place=place,
        runs=_asked(report, place),
        number=number,
        scores=_scores,
    )


def _pages(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the pages of runs and questions with their files; only one run's messages are in memory at a time."""
    places = {question["question_id"]: place for place, question in enumerate(report.questions)}
    for method in report.methods:
        records = record_file(report.folder, method.name)
        last = {record["question_id"]: line for line, record in enumerate(records.each())}
        for line, record in enumerate(records.each()):
            question = record["question_id"]
            if line == last[question] and question in method.traced:
                page = trace_page(_state(record), error=record["error"] or "", model=report.plan.model)
                yield f"{places[question] + 1}/{method.name}.html", page
    for place in range(len(report.questions)):
        yield f"{place + 1}.html", question_page(report, place)


def _state(record: Record) -> dict[str, Any]:
    """Return the final state of a record's run; the record's own `answer` and `question_id` come from the data."""
    shared = ("messages", "citations", "stop_reason", "steps", "read_chunks", "trace", "model_calls", "usage", "stages")
    return {"answer": record["prediction"], **{name: value for name, value in record.items() if name in shared}}


def _asked(report: Report, place: int) -> list[_Asked]:
    """Return each method's result for a question."""
    question = report.questions[place]["question_id"]
    found = []
    for method in report.methods:
        record, mark = method.records.get(question), ("missing", "–")
        if record is not None:
            mark = ("failed", "!") if record["error"] is not None else _MARKS[report.headline.value(record)]
        page = f"{place + 1}/{quote(method.name)}.html" if question in method.traced else ""
        found.append(_Asked(method, record, mark, page))
    return found


def _scores(record: Record) -> list[tuple[str, str, str]]:
    """Return an answer's scores: name, CSS class and value of each."""
    found = [(measure, measure.value(record)) for measure in ACCURACY if measure.of_failed]
    return [
        (measure.title, "", f"{value:.2f}") if measure is F1 else (measure.title, *_MARKS[value])
        for measure, value in found
        if value is not None
    ]
