"""Several runs beside each other (paper, Table 1): methods by datasets and models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from arag.evaluation.files import write_file
from arag.evaluation.report.document import (
    INTERVALS,
    NONE,
    UNKNOWN,
    Cell,
    Document,
    Table,
    cell,
    csv_figure,
    to_csv,
)
from arag.evaluation.report.figures import Report, make_report, place_of
from arag.evaluation.report.measures import CONTAIN_ACC, LLM_ACC, Measure
from arag.evaluation.scores import Interval


@dataclass(frozen=True, slots=True)
class Run:
    """What one run adds to the overview.

    Attributes:
        name: Its dataset and its model; its folder, too, where another run has the same.
        folder: Its folder.
        questions: How many questions it has records of.
        judge: The judge; None for none.
        embedder: The embedder of its index.
        measures: What it is measured by.
        figures: The figures of its methods, by the methods' names.
        notes: What a reader must know about it.
    """

    name: str
    folder: Path
    questions: int
    judge: str | None
    embedder: str
    measures: Sequence[Measure]
    figures: Mapping[str, Mapping[str, Interval | None]]
    notes: Sequence[str]


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
            for note in run.notes:
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
    titles: dict[tuple[int, int, str], str] = {}
    for folder in folders:  # the records of one at a time are held
        report = make_report(folder)
        titles |= {place_of(method): method.title for method in report.methods}
        runs.append(_run(folder, report))
    names = Counter(run.name for run in runs)
    runs = [run if names[run.name] == 1 else replace(run, name=f"{run.name} ({run.folder})") for run in runs]
    return Overview({place[-1]: titles[place] for place in sorted(titles)}, runs)


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
    rows = [[Cell(title), *_cells(overview, method)] for method, title in overview.methods.items()]
    notes = [
        "Over all questions that were asked, failed ones as wrong, LLM-Acc without the answers that have no verdict.",
        INTERVALS,
    ]
    accuracy = Table("Accuracy", ["Method", *columns], rows, notes)
    return Document("Methods by dataset and model", notes=overview.notes, tables=[accuracy, _runs(overview)])


def _run(folder: Path, report: Report) -> Run:
    file = Path(report.plan.questions)
    # A name that says nothing is preceded by one that may: musique/questions.json.
    named = file.parent.name if file.stem == "questions" and file.parent.name else file.stem
    model = ", ".join(report.models) or report.plan.model
    return Run(
        name=f"{report.paper.dataset if report.paper else named}, {model}",
        folder=folder,
        questions=len(report.questions),
        judge=report.plan.judge,
        embedder=report.manifest.embedder if report.manifest else UNKNOWN,
        measures=report.measures((LLM_ACC, CONTAIN_ACC)),
        figures={method.name: method.figures for method in report.methods},
        notes=report.notes,
    )


def _cells(overview: Overview, method: str) -> list[Cell]:
    return [
        cell(measure, run.figures[method][measure.name]) if method in run.figures else Cell(NONE)
        for run in overview.runs
        for measure in run.measures
    ]


def _runs(overview: Overview) -> Table:
    rows = [
        [Cell(run.name), *map(Cell, (f"{run.questions:,}", run.judge or "none", run.embedder, str(run.folder)))]
        for run in overview.runs
    ]
    return Table("Runs", ["Run", "Questions", "Judge", "Embedder", "Folder"], rows)


def _row(overview: Overview, method: str) -> dict[str, object]:
    row: dict[str, object] = {"method": method, "title": overview.methods[method]}
    for run in overview.runs:
        for measure in run.measures:
            row |= csv_figure(f"{run.name} {measure.name}", run.figures.get(method, {}).get(measure.name))
    return row
