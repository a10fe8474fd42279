"""Several runs beside each other (paper, Table 1): methods by datasets and models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from arag.errors import StorageError
from arag.evaluation.report.figures import Report, make_report, place_of
from arag.evaluation.report.measures import CONTAIN_ACC, LLM_ACC, Measure
from arag.evaluation.report.tables import (
    INTERVALS,
    NONE,
    UNKNOWN,
    Cell,
    Table,
    cell,
    csv_of,
    ends,
    escaped,
    markdown_table,
)
from arag.evaluation.report.templates import templates
from arag.evaluation.scores import Interval
from arag.files import written_whole
from arag.models.replies import mend_characters

_TITLE = "Methods by dataset and model"


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
    page = templates().get_template("summary.html")
    files = {
        folder / "overview.md": overview_markdown(overview),
        folder / "overview.csv": csv_of([_row(overview, method) for method in overview.methods]),
        folder / "overview.html": page.render(
            title=_TITLE, notes=overview.notes, drawings=[], tables=overview_tables(overview)
        ),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            with written_whole(file) as out:
                out.write(mend_characters(text).encode())
    except OSError as error:
        raise StorageError(f"the overview cannot be written to {folder}: {error.strerror}") from error
    return list(files)


def overview_markdown(overview: Overview) -> str:
    """Return an overview as Markdown."""
    parts = [f"# {_TITLE}", *(f"**{escaped(note)}**" for note in overview.notes)]
    for table in overview_tables(overview):
        parts += [f"## {escaped(table.title)}", markdown_table(table), *map(escaped, table.notes)]
    return "\n\n".join(parts) + "\n"


def overview_tables(overview: Overview) -> list[Table]:
    """Return an overview's tables."""
    columns = [f"{run.name}: {measure.title}" for run in overview.runs for measure in run.measures]
    rows = [[Cell(title), *_cells(overview, method)] for method, title in overview.methods.items()]
    notes = [
        "Over all questions that were asked, failed ones as wrong, LLM-Acc without the answers that have no verdict.",
        INTERVALS,
    ]
    return [Table("Accuracy", ["Method", *columns], rows, notes), _runs(overview)]


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
            row |= ends(f"{run.name} {measure.name}", run.figures.get(method, {}).get(measure.name))
    return row
