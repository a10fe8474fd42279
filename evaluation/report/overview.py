"""Several runs side by side (paper, Table 1): methods by dataset and model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from arag.evaluation.datasets import name_dataset
from arag.evaluation.report.document import (
    INTERVALS,
    NONE,
    UNKNOWN,
    Cell,
    Document,
    Table,
    cell,
    csv_figure,
    make_table,
    number,
    rounded,
)
from arag.evaluation.report.figures import MethodFigures, Report, list_simplifications, make_report, place_of
from arag.evaluation.report.measures import CONTAIN_ACC, LLM_ACC
from arag.evaluation.report.paper import paper_order
from arag.evaluation.report.tables import list_settings


def make_overview(folders: Sequence[Path]) -> Document:
    """Compare runs: the accuracy of all methods beside the paper's, what they cost, and the settings of the runs.

    The paper's figures are shown for runs on one of its datasets with one of its models.

    Args:
        folders: The run folders.

    Raises:
        InputError: One of them holds no run, or no records.
    """
    reports = []
    for folder in folders:  # keep only one run's records in memory
        report = make_report(folder)
        reports.append(replace(report, methods=[replace(method, records={}) for method in report.methods]))
    names = Counter(map(_name, reports))
    runs = {
        name if names[name] == 1 else f"{name} ({report.folder})": report
        for report, name in zip(reports, map(_name, reports), strict=True)
    }
    methods = {
        method.name: method for method in sorted((each for report in reports for each in report.methods), key=place_of)
    }
    accuracy, figures = _compare(runs, {name: method.title for name, method in methods.items()})
    about = make_table(
        "Runs",
        ["Run", "Questions", "Judge", "Embedder", "Presentation", "Settings", "Folder"],
        [_about(*run) for run in runs.items()],
        list_simplifications(methods.values()),
    )
    tables = [accuracy, _costs(runs, methods.values()), about]
    return Document("Methods by dataset and model", notes=_notes(runs), tables=tables, figures=figures)


def _compare(runs: Mapping[str, Report], titles: Mapping[str, str]) -> tuple[Table, list[dict[str, object]]]:
    """Return the table of accuracies, and its rows for the CSV file.

    Args:
        runs: The runs.
        titles: The methods' titles by their names.
    """
    columns, rows, figures = ["Method"], [], []
    theirs = {name: report.paper.find(report.models) if report.paper else {} for name, report in runs.items()}
    for name, report in runs.items():
        columns += [f"{name}: {measure.title}" for measure in report.measures((LLM_ACC, CONTAIN_ACC))]
        columns += [f"{name}: {measure.title} (paper)" for measure in (LLM_ACC, CONTAIN_ACC) if theirs[name]]
    of_paper = paper_order() if any(theirs.values()) else []
    asked = [(title, name) for name, title in titles.items()]
    others = [(title, "") for title in of_paper if title not in titles.values()]
    order = {title: place for place, title in enumerate(of_paper)}
    for title, method in sorted([*asked, *others], key=lambda row: order.get(row[0], len(order))):
        cells, row = [], dict[str, object](method=method, title=title)
        for name, report in runs.items():
            for measure in report.measures((LLM_ACC, CONTAIN_ACC)):
                mean = report.figure(method, measure)
                cells.append(cell(measure, mean))
                row |= csv_figure(f"{name} {measure.name}", mean)
            for measure, value in zip(
                (LLM_ACC, CONTAIN_ACC), theirs[name].get(title, (None, None)) if theirs[name] else (), strict=False
            ):
                cells.append(Cell(NONE if value is None else f"{value:.1f}"))
                row[f"{name} paper_{measure.name}"] = rounded(value and value / 100)
        rows.append([title, *cells])
        figures.append(row)
    told = [
        "Over all questions asked (failed ones count as wrong; LLM-Acc excludes answers without a verdict).",
        INTERVALS,
    ]
    if of_paper:
        told.append("The paper's figures stand beside runs with its dataset and its model; other things may differ.")
    return make_table("Accuracy", columns, rows, told), figures


def _costs(runs: Mapping[str, Report], methods: Iterable[MethodFigures]) -> Table:
    columns = ["Method", *(f"{name}: {what}" for name in runs for what in ("index", "questions", "total"))]
    rows = []
    for method in methods:
        row = [method.title]
        for report in runs.values():
            found = next((each for each in report.methods if each.name == method.name), None)
            costs = [] if found is None else [found.index_cost, found.cost, found.cost_with_index]
            row += [number("dollars", dollars) for dollars in costs] or [NONE] * 3
        rows.append(row)
    note = (
        "US dollars without the judge's. Index: the method's work before the first question, also where another run "
        "has paid for it. Questions: all attempts at all questions."
    )
    return make_table("Cost", columns, rows, [note])


def _name(report: Report) -> str:
    """Return a run's dataset and model."""
    dataset = report.paper.dataset if report.paper else name_dataset(Path(report.plan.questions))
    return f"{dataset}, {', '.join(report.models) or report.plan.model}"


def _about(name: str, report: Report) -> list[str | int]:
    embedder = report.settings.embedder if report.settings else UNKNOWN
    judge, presentation = report.plan.judge or "none", report.plan.options.presentation
    given = report.plan.options.settings
    settings = "; ".join(f"{method}: {list_settings(own)}" for method, own in given.items() if own) or NONE
    return [name, len(report.questions), judge, embedder, presentation, settings, str(report.folder)]


def _notes(runs: Mapping[str, Report]) -> list[str]:
    """Return the runs' notes, each once, with the names of its runs unless it applies to all."""
    of: dict[str, list[str]] = {}
    for name, report in runs.items():
        for note in report.notes:
            of.setdefault(note, []).append(name)
    return [note if len(names) == len(runs) else f"{'; '.join(names)}: {note}" for note, names in of.items()]
