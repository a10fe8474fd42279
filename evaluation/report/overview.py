"""Several runs beside each other (paper, Table 1): methods by datasets and models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from arag.evaluation.datasets import name_dataset
from arag.evaluation.files import to_csv, write_file
from arag.evaluation.report.document import (
    INTERVALS,
    UNKNOWN,
    Cell,
    Document,
    Table,
    cell,
    csv_figure,
)
from arag.evaluation.report.figures import Report, make_report, place_of
from arag.evaluation.report.measures import CONTAIN_ACC, LLM_ACC, Measure
from arag.evaluation.scores import Interval


@dataclass(frozen=True, slots=True)
class Run:
    """A run of an overview.

    Attributes:
        name: Its dataset and its model; its folder, too, where another run has the same.
        report: Its report; its methods are without their records.
    """

    name: str
    report: Report

    @property
    def measures(self) -> list[Measure]:
        """What it is measured by."""
        return self.report.measures((LLM_ACC, CONTAIN_ACC))

    def figure(self, method: str, measure: Measure) -> Interval | None:
        """Return a method's figure; None where it has none."""
        found = (each.figures[measure.name] for each in self.report.methods if each.name == method)
        return next(found, None)


@dataclass(frozen=True, slots=True)
class Overview:
    """Several runs.

    Attributes:
        methods: The methods' titles by their names, in the paper's order.
        runs: The runs.
    """

    methods: Mapping[str, str]
    runs: Sequence[Run]

    @property
    def notes(self) -> list[str]:
        """What a reader must know about the figures."""
        of: dict[str, list[str]] = {}
        for run in self.runs:
            for note in run.report.notes:
                of.setdefault(note, []).append(run.name)
        return [note if len(names) == len(self.runs) else f"{'; '.join(names)}: {note}" for note, names in of.items()]


def make_overview(folders: Sequence[Path]) -> Overview:
    """Put runs beside each other.

    Args:
        folders: The runs' folders.

    Raises:
        InputError: One of them holds no run, or no records.
    """
    runs = []
    for folder in folders:  # the records of one at a time are held
        report = make_report(folder)
        methods = [replace(method, records={}) for method in report.methods]
        runs.append(Run(_name(report), replace(report, methods=methods)))
    names = Counter(run.name for run in runs)
    runs = [run if names[run.name] == 1 else replace(run, name=f"{run.name} ({run.report.folder})") for run in runs]
    methods = sorted((method for run in runs for method in run.report.methods), key=place_of)
    return Overview({method.name: method.title for method in methods}, runs)


def write_overview(overview: Overview, folder: Path) -> list[Path]:
    """Write `overview.md`, `overview.csv` and `overview.html`; returns the files.

    Raises:
        StorageError: They cannot be written.
    """
    shown = document(overview)
    return [
        write_file(folder / "overview.md", shown.markdown()),
        write_file(folder / "overview.csv", to_csv([_row(overview, method) for method in overview.methods])),
        write_file(folder / "overview.html", shown.page()),
    ]


def document(overview: Overview) -> Document:
    """Return an overview as tables: the accuracy of all methods, and the runs."""
    columns = [f"{run.name}: {measure.title}" for run in overview.runs for measure in run.measures]
    rows = [
        [
            Cell(title),
            *(cell(measure, run.figure(method, measure)) for run in overview.runs for measure in run.measures),
        ]
        for method, title in overview.methods.items()
    ]
    notes = [
        "Over all questions that were asked, failed ones as wrong, LLM-Acc without the answers that have no verdict.",
        INTERVALS,
    ]
    accuracy = Table("Accuracy", ["Method", *columns], rows, notes)
    runs = Table("Runs", ["Run", "Questions", "Judge", "Embedder", "Folder"], [_about(run) for run in overview.runs])
    return Document("Methods by dataset and model", notes=overview.notes, tables=[accuracy, runs])


def _name(report: Report) -> str:
    dataset = report.paper.dataset if report.paper else name_dataset(Path(report.plan.questions))
    return f"{dataset}, {', '.join(report.models) or report.plan.model}"


def _about(run: Run) -> list[Cell]:
    report = run.report
    embedder = report.manifest.embedder if report.manifest else UNKNOWN
    judge = report.plan.judge or "none"
    return [Cell(run.name), *map(Cell, (f"{len(report.questions):,}", judge, embedder, str(report.folder)))]


def _row(overview: Overview, method: str) -> dict[str, object]:
    row: dict[str, object] = {"method": method, "title": overview.methods[method]}
    for run in overview.runs:
        for measure in run.measures:
            row |= csv_figure(f"{run.name} {measure.name}", run.figure(method, measure))
    return row
