"""A report as pages: one with plots and tables, and for each question one with the methods' runs side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Template
from markupsafe import Markup

from arag.errors import StorageError
from arag.evaluation.records import Record
from arag.evaluation.report import plots
from arag.evaluation.report.figures import OTHER_TOOLS, MethodFigures, Report, is_right, stop_reason
from arag.evaluation.report.measures import ACCURACY, CONTAIN_ACC, F1, LLM_ACC, RETRIEVED, STEPS, figure
from arag.evaluation.report.paper import same_model
from arag.evaluation.report.tables import (
    cell,
    csv_text,
    facts,
    in_words,
    markdown,
    number,
    questions_csv,
    tables,
    title,
)
from arag.evaluation.report.templates import Row, templates
from arag.evaluation.runs import record_file
from arag.files import written_whole
from arag.models.replies import mend_characters
from arag.pages.page import trace_page

_FOLDER = "questions"
_COLOURS = 6  # tools beyond them are drawn as others
_MARKS = {True: ("right", "✓"), False: ("wrong", "✗"), None: ("unjudged", "?")}


@dataclass(frozen=True, slots=True)
class Run:
    """A method's run of a question, on the question's page and as a mark in the report.

    Attributes:
        method: The method.
        record: Its record; None where it was not asked.
        mark: What came of it: a CSS class and a sign.
        page: Its page's address from the question's page; empty where there is none.
    """

    method: MethodFigures
    record: Record | None
    mark: tuple[str, str]
    page: str


def write_report(
    report: Report, folder: Path, *, pages: bool = True, told: Callable[[int], None] = lambda _: None
) -> Path:
    """Write a report: `report.md`, `report.csv`, `questions.csv`, `report.html`, and a folder of the questions' pages.

    Args:
        report: The report.
        folder: Where it goes.
        pages: Whether the questions get pages.
        told: Told after each of the folder's pages how many there are; in the end they are `count_pages(report)`.

    Returns:
        The page's file.

    Raises:
        StorageError: It cannot be written.
    """
    page = folder / "report.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(page.with_suffix(".md"), markdown(report))
        _write(page.with_suffix(".csv"), csv_text(report))
        _write(folder / "questions.csv", questions_csv(report))
        if pages:
            for done, (file, text) in enumerate(_pages(report), start=1):
                _write_page(folder / _FOLDER / file, text)
                told(done)
        _write(page, report_page(report, pages=pages))
    except OSError as error:
        raise StorageError(f"the report cannot be written to {folder}: {error.strerror}") from error
    return page


def count_pages(report: Report) -> int:
    """Return how many pages questions and runs of them have."""
    return len(report.questions) + sum(len(method.traced) for method in report.methods)


def report_page(report: Report, *, pages: bool = True) -> str:
    """Return the page with plots and tables.

    Args:
        report: The report.
        pages: Whether it leads to the questions' pages.
    """
    kinds = _kinds(report)
    return _template("page.html").render(
        report=report,
        title=title(report),
        facts=facts(report),
        accuracy=_accuracy(report),
        beside=_backbone(report) if _is_beside(report) else None,
        measures=_drawn(report),
        plane=_plane(report),
        tools=_tools(report, kinds),
        kinds=kinds,
        stops=_stops(report),
        tables=tables(report),
        questions=[_runs(report, place) for place in range(len(report.questions))],
        pages=pages,
    )


def question_page(report: Report, place: int) -> str:
    """Return the page of a question, with the methods' runs side by side.

    Args:
        report: The report.
        place: The question's place among the report's questions, from 0.
    """
    return _template("question.html").render(
        report=report, question=report.questions[place], place=place, runs=_runs(report, place)
    )


def _pages(report: Report) -> Iterator[tuple[str, str]]:
    """Make the pages of runs and questions, each with its file; of the messages, one run's at a time are held."""
    places = {question["question_id"]: place for place, question in enumerate(report.questions)}
    for method in report.methods:
        records = record_file(report.folder, method.name)
        last = {record["question_id"]: line for line, record in enumerate(records.each())}
        for line, record in enumerate(records.each()):
            question = record["question_id"]
            if line == last[question] and question in method.traced:
                yield (
                    f"{places[question] + 1}/{method.name}.html",
                    trace_page(_state(record), error=record["error"] or "", model=report.plan.model),
                )
    for place in range(len(report.questions)):
        yield f"{place + 1}.html", question_page(report, place)


def _state(record: Record) -> dict[str, Any]:
    """Return the final state that a record was made of: its `answer` and `question_id` are the data's."""
    shared = ("messages", "citations", "stop_reason", "steps", "read_chunks", "trace", "model_calls", "usage")
    return {"answer": record["prediction"], **{name: value for name, value in record.items() if name in shared}}


def _write(file: Path, text: str) -> None:
    with written_whole(file) as out:
        out.write(mend_characters(text).encode())


def _write_page(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(mend_characters(text).encode())  # one of thousands: waiting for the disk each time takes minutes


def _runs(report: Report, place: int) -> list[Run]:
    question = report.questions[place]["question_id"]
    return [_run(method, method.records.get(question), report, place) for method in report.methods]


def _run(method: MethodFigures, record: Record | None, report: Report, place: int) -> Run:
    if record is None:
        return Run(method, None, ("missing", "–"), "")
    page = f"{place + 1}/{quote(method.name)}.html" if record["question_id"] in method.traced else ""
    failed = record["error"] is not None
    return Run(method, record, ("failed", "!") if failed else _MARKS[is_right(record, report.headline)], page)


# --- plots ---


def _drawn(report: Report) -> list[str]:
    return [measure.title for measure in report.measures((LLM_ACC, CONTAIN_ACC))]


def _backbone(report: Report) -> str | None:
    """Return the paper's model to stand beside ours: the same one, else its first."""
    if report.paper is None:
        return None
    models = list(report.paper.backbones)
    return next((model for model in models for name in report.models if same_model(name, model)), models[0])


def _accuracy(report: Report) -> list[Row]:
    rows = []
    for method in report.methods:
        for kind, measure in zip(("headline", "second"), report.measures((LLM_ACC, CONTAIN_ACC)), strict=False):
            found = method.figures[measure.name]
            dots = [] if found is None else [plots.Dot(found, kind, in_words(measure.title, found))]
            drawing = plots.shares(dots, _paper_value(report, method, measure is LLM_ACC))
            rows.append(Row(method.title if kind == "headline" else "", drawing, cell(measure, found).text))
    return rows


def _paper_value(report: Report, method: MethodFigures, of_judge: bool) -> list[tuple[float, str]]:
    backbone = _backbone(report)
    if report.paper is None or backbone is None:
        return []
    value = report.paper.backbones[backbone].get(method.title, (None, None))[0 if of_judge else 1]
    return [] if value is None else [(value / 100, f"{value:.1f} in the paper, with {backbone}")]


def _is_beside(report: Report) -> bool:
    measures = report.measures((LLM_ACC, CONTAIN_ACC))
    return any(_paper_value(report, method, each is LLM_ACC) for method in report.methods for each in measures)


def _plane(report: Report) -> Markup | None:
    points = []
    for method in report.methods:
        x, y = method.figures[RETRIEVED.name], method.figures[report.headline.name]
        if x is not None and y is not None:
            points.append(plots.Point(method.title, x, y))
    return plots.plane(points, "tokens", report.headline.title) if points else None


def _kinds(report: Report) -> dict[str, str]:
    """Return the tools, most used first, each with its colour's CSS class."""
    calls: dict[str, int] = {}
    for method in report.methods:
        for tool, count in method.tools.items():
            calls[tool] = calls.get(tool, 0) + count
    named = sorted((tool for tool in calls if tool != OTHER_TOOLS), key=lambda tool: -calls[tool])
    kinds = {tool: f"c{number}" for number, tool in enumerate(named[:_COLOURS], 1)}
    return kinds | ({OTHER_TOOLS: "c0"} if len(calls) > len(kinds) else {})


def _tools(report: Report, kinds: Mapping[str, str]) -> list[Row]:
    largest = max((sum(m.tools.values()) / m.answered for m in report.methods if m.answered), default=0.0)
    rows = []
    for method in report.methods:
        found = method.figures[STEPS.name]
        if found is None:
            continue
        calls = dict.fromkeys(kinds, 0.0)
        for tool, count in method.tools.items():
            calls[tool if tool in calls else OTHER_TOOLS] += count / method.answered
        told = ", ".join(f"{tool} {count:.1f}" for tool, count in calls.items() if count) or "no tools"
        drawing = plots.stack(list(calls.values()), list(kinds.values()), largest or 1.0, told)
        rows.append(Row(method.title, drawing, f"{number('number', found.mean)} steps"))
    return rows


def _stops(report: Report) -> list[Row]:
    rows = []
    for method in report.methods:
        for place, (reason, count) in enumerate(method.stop_reasons.items()):
            found = figure(report.headline, [record for record in method.answers if stop_reason(record) == reason])
            dots = [] if found is None else [plots.Dot(found, "headline", in_words(report.headline.title, found))]
            name = "" if place else method.title
            detail = f"{reason.replace('_', ' ')}: {count:,}"
            rows.append(Row(name, plots.shares(dots), cell(report.headline, found).text, detail))
    return rows


# --- templates ---


@cache
def _template(name: str) -> Template:
    environment = templates().overlay()
    environment.filters |= {"number": lambda value, unit: number(unit, value), "scores": _scores}
    return environment.get_template(name)


def _scores(record: Record) -> list[tuple[str, str, str]]:
    """Return what an answer scores: each score's name, CSS class and value."""
    found = [(measure, measure.value(record)) for measure in ACCURACY if measure.of_failed]
    return [
        (measure.title, "", f"{value:.2f}") if measure is F1 else (measure.title, *_MARKS[bool(value)])
        for measure, value in found
        if value is not None
    ]
