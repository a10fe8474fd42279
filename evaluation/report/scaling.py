"""How accuracy grows with what a run may spend (paper, Figure 4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import TypeAlias

from arag.errors import InputError
from arag.evaluation.records import Record
from arag.evaluation.report import measures
from arag.evaluation.report.document import (
    INTERVALS,
    NONE,
    Cell,
    Document,
    Drawing,
    cell,
    csv_figure,
    in_words,
    make_table,
)
from arag.evaluation.report.figures import light_records
from arag.evaluation.report.measures import CONTAIN_ACC, LLM_ACC, Measure, figure
from arag.evaluation.report.plots import Plane, Point
from arag.evaluation.runs import record_file
from arag.evaluation.scores import Interval
from arag.pages.templates import count

STEPS = "steps"
EFFORT = "effort"
_RANKS = {name: rank for rank, name in enumerate(("none", "minimal", "low", "medium", "high", "xhigh", "max"))}
_END = 0.97  # of the width: the last value's letters need some room
AVERAGES = (measures.STEPS, measures.RETRIEVED, measures.SECONDS)

Setting: TypeAlias = tuple[str, str]
"""What was varied, `steps` or `effort`, and how much of it."""


@dataclass(frozen=True, slots=True)
class Reached:
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
    points: Sequence[Reached]
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
        records = light_records(record_file(setting_folder(folder, *setting), method).file)[0]
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
    steps, efforts = ([sub.name.partition("-")[2] for sub in folder.glob(f"{what}-*")] for what in (STEPS, EFFORT))
    return [
        *((STEPS, most) for most in sorted(filter(str.isdecimal, steps), key=int)),
        *((EFFORT, name) for name in sorted(efforts, key=lambda name: (_RANKS.get(name, len(_RANKS)), name))),
    ]


def _point(setting: Setting, records: Sequence[Record], headline: Measure) -> Reached:
    errors = [record["error"] for record in records if record["error"] is not None]
    accuracy, failure = None, ""
    if not records:
        failure = "it was not asked these questions"
    elif len(errors) == len(records):
        told = shorten(errors[0], 200, placeholder=" …")
        failure = f"all of {count(len(records), 'question')} failed, the first with: {told}"
    elif (accuracy := figure(headline, records)) is None:
        failure = "no answer has a verdict"
    averages = {each.name: figure(each, records) for each in AVERAGES}
    return Reached(*setting, len(records), accuracy, averages, failure)


def _notes(points: Sequence[Reached], counts: str, wanted: int, shared: bool) -> list[str]:
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


def document(scaling: Scaling) -> Document:
    """Return what all settings have reached as a table, and drawn over steps and over effort."""
    headline = scaling.measure
    by_steps = _drawing(scaling, STEPS, "Accuracy by most steps", "most steps before an answer is forced")
    by_effort = _drawing(scaling, EFFORT, "Accuracy by reasoning effort", "reasoning effort")
    rows, figures = [], []
    for point in scaling.points:
        averages = [(average, point.averages[average.name]) for average in AVERAGES]
        accuracy = Cell("failed") if point.failure else cell(headline, point.accuracy)
        questions = NONE if point.failure else point.questions
        rows.append([point.name, accuracy, questions, *(cell(*average) for average in averages)])
        row: dict[str, object] = {"setting": point.setting, "value": point.value, "questions": point.questions}
        for average, found in [(headline, point.accuracy), *averages]:
            row |= csv_figure(average.name, found)
        figures.append({**row, "failure": point.failure or None})
    note = f"{headline.title} over all questions, failed ones as wrong; steps, tokens and seconds of answered ones."
    columns = ["Setting", headline.title, "Questions", *(average.title for average in AVERAGES)]
    return Document(
        "Test-time scaling",
        notes=scaling.notes,
        drawings=[drawing for drawing in (by_steps, by_effort) if drawing.plot],
        tables=[make_table("All settings", columns, rows, [note, INTERVALS])],
        figures=figures,
    )


def _drawing(scaling: Scaling, setting: str, title: str, across: str) -> Drawing:
    reached = [(point, point.accuracy) for point in scaling.points if point.setting == setting and point.accuracy]
    points, ticks = [], [(0.0, "0")] if setting == STEPS else []
    for place, (point, accuracy) in enumerate(reached):
        x = int(point.value) / int(reached[-1][0].value) * _END if setting == STEPS else (place + 0.5) / len(reached)
        told = f"{point.name}: {in_words(scaling.measure.title, accuracy)}"
        points.append(Point("", told, Interval(x, x, x, accuracy.count), accuracy))
        ticks.append((x, point.value))
    caption = f"{scaling.measure.title} in percent; upright lines are 95% confidence intervals."
    return Drawing(title, caption, plot=Plane(points, ticks, joined=True) if points else None, across=across)
