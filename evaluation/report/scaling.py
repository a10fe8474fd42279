"""How accuracy grows with what a run may spend (paper, Figure 4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import TypeAlias

from arag.errors import InputError
from arag.evaluation.files import to_csv, write_file
from arag.evaluation.records import Record
from arag.evaluation.report import measures, plots
from arag.evaluation.report.document import (
    INTERVALS,
    NONE,
    Cell,
    Document,
    Drawing,
    Table,
    cell,
    csv_figure,
    in_words,
)
from arag.evaluation.report.figures import light_records
from arag.evaluation.report.measures import CONTAIN_ACC, LLM_ACC, Measure, figure
from arag.evaluation.runs import record_file
from arag.evaluation.scores import Interval
from arag.pages.templates import count

STEPS = "steps"
EFFORT = "effort"
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_DRAWN = {
    STEPS: ("Accuracy by most steps", "most steps before an answer is forced"),
    EFFORT: ("Accuracy by reasoning effort", "reasoning effort"),
}
_END = 0.97  # of the width: the last value's letters need some room
AVERAGES = (measures.STEPS, measures.RETRIEVED, measures.SECONDS)

Setting: TypeAlias = tuple[str, str]
"""What was varied, `steps` or `effort`, and how much of it."""


@dataclass(frozen=True, slots=True)
class Point:
    """What one setting has reached.

    Attributes:
        setting: What was varied: `steps` or `effort`.
        value: How much of it.
        questions: How many questions it was measured on.
        accuracy: The mean over them, failed ones as wrong; None where it has failed.
        averages: The means of `AVERAGES` over the answered ones, by name.
        failure: Why there is no accuracy; empty where there is one.
    """

    setting: str
    value: str
    questions: int
    accuracy: Interval | None
    averages: Mapping[str, Interval | None]
    failure: str = ""

    @property
    def name(self) -> str:
        """The setting, for readers."""
        return count(int(self.value), "step") if self.setting == STEPS else f"{self.value} effort"


@dataclass(frozen=True, slots=True)
class Scaling:
    """What all settings have reached.

    Attributes:
        measure: What accuracy is: LLM-Acc where all settings were judged, else Contain-Acc.
        points: The settings, fewer steps and less effort first.
        notes: What a reader must know about them.
    """

    measure: Measure
    points: Sequence[Point]
    notes: Sequence[str]


def setting_folder(folder: Path, setting: str, value: str) -> Path:
    """Return where a setting's run goes."""
    return folder / f"{setting}-{value}"


def measure(folder: Path, method: str, questions: Collection[str]) -> Scaling:
    """Return what all settings that a folder has runs of have reached, on the same questions where there are such.

    Args:
        folder: The folder of the settings' folders.
        method: The method.
        questions: The ids of the questions that count.

    Raises:
        InputError: The folder has no records of the method.
    """
    asked = {}
    for setting in _settings(folder):
        records = light_records(record_file(setting_folder(folder, *setting), method).file).records
        if records:
            asked[setting] = {key: record for key, record in records.items() if key in questions}
    if not asked:
        raise InputError(f"{folder} has no records of {method!r}: nothing can be said of any setting")
    answering = [records for records in asked.values() if any(record["error"] is None for record in records.values())]
    shared = set(questions).intersection(*answering) if answering else set()
    judged = [any(record["judgement"] is not None for record in records.values()) for records in answering]
    headline = LLM_ACC if judged and all(judged) else CONTAIN_ACC
    points = [
        _point(setting, [record for key, record in records.items() if key in (shared or questions)], headline)
        for setting, records in asked.items()
    ]
    counts = ", ".join(f"{point.name} {len(records):,}" for point, records in zip(points, asked.values(), strict=True))
    notes = _notes(points, counts, len(questions), bool(shared))
    if any(judged) and headline is CONTAIN_ACC:
        notes.append("Not all settings were judged: accuracy is Contain-Acc.")
    return Scaling(headline, points, notes)


def _settings(folder: Path) -> list[Setting]:
    """Return the settings that a folder has folders of, fewer steps and less effort first."""
    named = (sub.name.partition("-") for sub in folder.iterdir() if sub.is_dir())
    return sorted(
        ((what, value) for what, _, value in named if what == EFFORT or (what == STEPS and value.isdecimal())),
        key=_order,
    )


def _order(setting: Setting) -> tuple[bool, int, str]:
    what, value = setting
    if what == STEPS:
        return False, int(value), value
    return True, EFFORTS.index(value) if value in EFFORTS else len(EFFORTS), value


def _point(setting: Setting, records: Sequence[Record], headline: Measure) -> Point:
    errors = [record["error"] for record in records if record["error"] is not None]
    accuracy = figure(headline, records) if len(errors) < len(records) else None
    if accuracy is not None:
        failure = ""
    elif not records:
        failure = "it was not asked these questions"
    elif len(errors) == len(records):
        told = shorten(errors[0], 200, placeholder=" …")
        failure = f"all of {count(len(records), 'question')} failed, the first with: {told}"
    else:
        failure = "no answer has a verdict"
    averages = {each.name: figure(each, records) for each in AVERAGES}
    return Point(*setting, len(records), accuracy, averages, failure)


def _notes(points: Sequence[Point], counts: str, wanted: int, shared: bool) -> list[str]:
    if not shared and len(points) > 1:
        return [f"The settings have no question in common, so that their figures do not compare ({counts})."]
    notes = []
    measured = max(point.questions for point in points)
    if measured < wanted:
        notes.append(
            f"The figures are of {measured:,} of {count(wanted, 'question')}, as some settings were not asked all "
            f"({counts}): run it again to go on. Questions that take little time are recorded first, so that the "
            "figures may not be those of all."
        )
    notes += [f"{point.name}: {point.failure}." for point in points if point.failure]
    return notes


def write_scaling(scaling: Scaling, folder: Path) -> list[Path]:
    """Write `scale.csv`, `scale.md` and `scale.html`; returns the files.

    Raises:
        StorageError: They cannot be written.
    """
    shown = document(scaling)
    return [
        write_file(folder / "scale.csv", to_csv([_row(scaling.measure, point) for point in scaling.points])),
        write_file(folder / "scale.md", shown.markdown()),
        write_file(folder / "scale.html", shown.page()),
    ]


def document(scaling: Scaling) -> Document:
    """Return what all settings have reached as a table, and drawn over steps and over effort."""
    found = [_drawing(scaling, *of) for of in _DRAWN.items()]
    drawings = [drawing for drawing in found if drawing is not None]
    return Document("Test-time scaling", notes=scaling.notes, drawings=drawings, tables=[_table(scaling)])


def _drawing(scaling: Scaling, setting: str, told: tuple[str, str]) -> Drawing | None:
    points = [point for point in scaling.points if point.setting == setting]
    reached = [(point, point.accuracy) for point in points if point.accuracy is not None]
    if not reached:
        return None
    stops = []
    for place, (point, accuracy) in enumerate(reached):
        most = reached[-1][0].value
        across = int(point.value) / int(most) * _END if setting == STEPS else (place + 0.5) / len(reached)
        words = f"{point.name}: {in_words(scaling.measure.title, accuracy)}"
        stops.append(plots.Stop(across, point.value, accuracy, words))
    caption = f"{scaling.measure.title} in percent; upright lines are 95% confidence intervals."
    title, below = told
    return Drawing(title, caption, plot=plots.course(stops, from_zero=setting == STEPS), across=below)


def _table(scaling: Scaling) -> Table:
    columns = ["Setting", scaling.measure.title, "Questions", *(each.title for each in AVERAGES)]
    rows = [
        [
            Cell(point.name),
            Cell("failed") if point.failure else cell(scaling.measure, point.accuracy),
            Cell(f"{point.questions:,}" if not point.failure else NONE),
            *(cell(each, point.averages[each.name]) for each in AVERAGES),
        ]
        for point in scaling.points
    ]
    note = (
        f"{scaling.measure.title} over all questions, failed ones as wrong; steps, tokens and seconds of answered ones."
    )
    return Table("All settings", columns, rows, [note, INTERVALS])


def _row(headline: Measure, point: Point) -> dict[str, object]:
    row: dict[str, object] = {"setting": point.setting, "value": point.value, "questions": point.questions}
    for each, found in [(headline, point.accuracy), *((each, point.averages[each.name]) for each in AVERAGES)]:
        row |= csv_figure(each.name, found)
    return {**row, "failure": point.failure or None}
