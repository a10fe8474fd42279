"""How accuracy depends on the step limit and the reasoning effort (paper, Figure 4)."""

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
    Document,
    Drawing,
    Table,
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
_END = 0.97  # of the width: the last tick label needs some room
_AVERAGES = (measures.STEPS, measures.RETRIEVED, measures.SECONDS)

Setting: TypeAlias = tuple[str, str]
"""What was varied, `steps` or `effort`, and its value."""


@dataclass(frozen=True, slots=True)
class _Reached:
    """The results of one setting.

    Attributes:
        setting: What was varied: `steps` or `effort`.
        value: Its value.
        questions: How many questions it was measured on.
        accuracy: The mean over them, with failed ones as wrong; None if there is none.
        averages: The means of `_AVERAGES` over the answered ones, by name.
        failure: Why there is no accuracy; empty if there is one.
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


def setting_folder(folder: Path, setting: str, value: str) -> Path:
    """Return the folder of a setting's run."""
    return folder / f"{setting}-{value}"


def make_scaling(folder: Path, method: str, questions: Collection[str]) -> Document:
    """Return the results of all settings in a folder, on the questions that they have in common, if there are any.

    There is a table of the settings, fewer steps and less effort first, and plots over steps and over effort. Accuracy
    is LLM-Acc if all settings were judged, else Contain-Acc.

    Args:
        folder: The folder with the settings' folders.
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
        raise InputError(f"{folder} has no records of {method!r}")
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
    return Document(
        "Test-time scaling",
        notes=notes,
        drawings=_drawings(headline, points),
        tables=[_table(headline, points)],
        figures=[_row(headline, point) for point in points],
    )


def _settings(folder: Path) -> list[Setting]:
    """Return the settings of a folder's subfolders, fewer steps and less effort first."""
    steps, efforts = ([sub.name.partition("-")[2] for sub in folder.glob(f"{what}-*")] for what in (STEPS, EFFORT))
    return [
        *((STEPS, most) for most in sorted(filter(str.isdecimal, steps), key=int)),
        *((EFFORT, name) for name in sorted(efforts, key=lambda name: (_RANKS.get(name, len(_RANKS)), name))),
    ]


def _point(setting: Setting, records: Sequence[Record], headline: Measure) -> _Reached:
    errors = [record["error"] for record in records if record["error"] is not None]
    accuracy, failure = None, ""
    if not records:
        failure = "it was not asked these questions"
    elif len(errors) == len(records):
        told = shorten(errors[0], 200, placeholder=" …")
        failure = f"all of {count(len(records), 'question')} failed, the first with: {told}"
    elif (accuracy := figure(headline, records)) is None:
        failure = "no answer has a verdict"
    averages = {each.name: figure(each, records) for each in _AVERAGES}
    return _Reached(*setting, len(records), accuracy, averages, failure)


def _notes(points: Sequence[_Reached], counts: str, wanted: int, shared: bool) -> list[str]:
    if not shared and len(points) > 1:
        return [f"The settings have no question in common, so their figures are not comparable ({counts})."]
    notes = []
    measured = max(point.questions for point in points)
    if measured < wanted:
        notes.append(
            f"The figures cover {measured:,} of {count(wanted, 'question')}, because some settings were not asked all "
            f"of them ({counts}). Run it again to continue. Fast questions are recorded first, so these figures may be "
            "biased."
        )
    notes += [f"{point.name}: {point.failure}." for point in points if point.failure]
    return notes


def _drawings(headline: Measure, points: Sequence[_Reached]) -> list[Drawing]:
    drawings = [
        _drawing(headline, points, STEPS, "Accuracy by max steps", "max steps"),
        _drawing(headline, points, EFFORT, "Accuracy by reasoning effort", "reasoning effort"),
    ]
    return [drawing for drawing in drawings if drawing.plot]


def _drawing(headline: Measure, points: Sequence[_Reached], setting: str, title: str, across: str) -> Drawing:
    reached = [(point, point.accuracy) for point in points if point.setting == setting and point.accuracy]
    drawn, ticks = [], [(0.0, "0")] if setting == STEPS else []
    for place, (point, accuracy) in enumerate(reached):
        x = int(point.value) / int(reached[-1][0].value) * _END if setting == STEPS else (place + 0.5) / len(reached)
        told = f"{point.name}: {in_words(headline.title, accuracy)}"
        drawn.append(Point("", told, Interval(x, x, x, accuracy.count), accuracy))
        ticks.append((x, point.value))
    caption = f"{headline.title} in percent; vertical lines are 95% confidence intervals."
    return Drawing(title, caption, plot=Plane(drawn, ticks, joined=True) if drawn else None, across=across)


def _table(headline: Measure, points: Sequence[_Reached]) -> Table:
    rows = [
        [
            point.name,
            "failed" if point.failure else cell(headline, point.accuracy),
            NONE if point.failure else point.questions,
            *(cell(average, point.averages[average.name]) for average in _AVERAGES),
        ]
        for point in points
    ]
    columns = ["Setting", headline.title, "Questions", *(average.title for average in _AVERAGES)]
    note = f"{headline.title} over all questions, failed ones as wrong; steps, tokens and seconds over answered ones."
    return make_table("Settings", columns, rows, [note, INTERVALS])


def _row(headline: Measure, point: _Reached) -> dict[str, object]:
    row: dict[str, object] = {"setting": point.setting, "value": point.value, "questions": point.questions}
    for name, found in {headline.name: point.accuracy, **point.averages}.items():
        row |= csv_figure(name, found)
    return {**row, "failure": point.failure or None}
