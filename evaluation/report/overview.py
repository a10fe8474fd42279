"""Several runs side by side (paper, Table 1): methods by dataset and model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from arag.evaluation.datasets import name_dataset
from arag.evaluation.report.document import INTERVALS, UNKNOWN, Document, cell, csv_figure, make_table
from arag.evaluation.report.figures import Report, make_report, place_of
from arag.evaluation.report.measures import CONTAIN_ACC, LLM_ACC


def make_overview(folders: Sequence[Path]) -> Document:
    """Compare runs: the accuracy of all methods, and the settings of the runs.

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
    methods = sorted((method for report in reports for method in report.methods), key=place_of)
    titles = {method.name: method.title for method in methods}
    measures = [
        (name, report, measure) for name, report in runs.items() for measure in report.measures((LLM_ACC, CONTAIN_ACC))
    ]
    rows, figures = [], []
    for method, title in titles.items():
        found = [(name, measure, report.figure(method, measure)) for name, report, measure in measures]
        rows.append([title, *(cell(measure, mean) for _, measure, mean in found)])
        row: dict[str, object] = {"method": method, "title": title}
        for name, measure, mean in found:
            row |= csv_figure(f"{name} {measure.name}", mean)
        figures.append(row)
    told = [
        "Over all questions asked (failed ones count as wrong; LLM-Acc excludes answers without a verdict).",
        INTERVALS,
    ]
    columns = ["Method", *(f"{name}: {measure.title}" for name, _, measure in measures)]
    accuracy = make_table("Accuracy", columns, rows, told)
    about = make_table(
        "Runs",
        ["Run", "Questions", "Judge", "Embedder", "Presentation", "Folder"],
        [_about(*run) for run in runs.items()],
    )
    return Document("Methods by dataset and model", notes=_notes(runs), tables=[accuracy, about], figures=figures)


def _name(report: Report) -> str:
    """Return a run's dataset and model."""
    dataset = report.paper.dataset if report.paper else name_dataset(Path(report.plan.questions))
    return f"{dataset}, {', '.join(report.models) or report.plan.model}"


def _about(name: str, report: Report) -> list[str | int]:
    embedder = report.manifest.embedder if report.manifest else UNKNOWN
    judge, presentation = report.plan.judge or "none", report.plan.options.presentation
    return [name, len(report.questions), judge, embedder, presentation, str(report.folder)]


def _notes(runs: Mapping[str, Report]) -> list[str]:
    """Return the runs' notes, each once, with the names of its runs unless it applies to all."""
    of: dict[str, list[str]] = {}
    for name, report in runs.items():
        for note in report.notes:
            of.setdefault(note, []).append(name)
    return [note if len(names) == len(runs) else f"{'; '.join(names)}: {note}" for note, names in of.items()]
