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
from arag.evaluation.report.figures import light_records
from arag.evaluation.report.measures import CONTAIN_ACC, LLM_ACC, Measure, figure
from arag.evaluation.report.paper import count
from arag.evaluation.report.tables import INTERVALS, NONE, Cell, Table, cell, csv_of, ends, escaped, markdown_table
from arag.evaluation.runs import record_file
from arag.evaluation.scores import Interval
from arag.files import written_whole

STEPS = "steps"
EFFORT = "effort"
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
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
        found = light_records(record_file(setting_folder(folder, *setting), method).file).records
        if found:
            asked[setting] = {key: record for key, record in found.items() if key in questions}
    if not asked:
        raise InputError(f"{folder} has no records of {method!r}: nothing can be said of any setting")
    answering = {setting: records for setting, records in asked.items() if _answered(records)}
    shared = set(questions).intersection(*answering.values()) if answering else set()
    if shared:
        measured = {
            setting: {key: record for key, record in records.items() if key in shared}
            for setting, records in asked.items()
        }
    else:
        measured = asked
    judged = {
        setting
        for setting, records in answering.items()
        if any(record["judgement"] is not None for record in records.values())
    }
    headline = LLM_ACC if judged and judged == answering.keys() else CONTAIN_ACC
    points = [_point(setting, list(records.values()), headline) for setting, records in measured.items()]
    notes = _notes(points, {setting: len(records) for setting, records in asked.items()}, len(questions), bool(shared))
    if judged and headline is CONTAIN_ACC:
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


def _answered(records: Mapping[str, Record]) -> bool:
    return any(record["error"] is None for record in records.values())


def _point(setting: Setting, records: Sequence[Record], headline: Measure) -> Point:
    errors = [record["error"] for record in records if record["error"] is not None]
    accuracy = figure(headline, records) if len(errors) < len(records) else None
    failure = ""
    if not records:
        failure = "it was not asked these questions"
    elif errors and len(errors) == len(records):
        told = shorten(errors[0], 200, placeholder=" …")
        failure = f"all of {count(len(records), 'question')} failed, the first with: {told}"
    elif accuracy is None:
        failure = "no answer has a verdict"
    averages = {each.name: figure(each, records) for each in AVERAGES}
    return Point(*setting, len(records), accuracy, averages, failure)


def _notes(points: Sequence[Point], asked: Mapping[Setting, int], wanted: int, shared: bool) -> list[str]:
    counts = ", ".join(f"{point.name} {asked[point.setting, point.value]:,}" for point in points)
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


def table(scaling: Scaling) -> Table:
    """Return the settings as a table."""
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


def write_scaling(scaling: Scaling, folder: Path) -> list[Path]:
    """Write `scale.csv` and `scale.md`; returns the files."""
    of_settings = table(scaling)
    told = "\n\n".join(
        [
            markdown_table(of_settings),
            *(f"**{escaped(note)}**" for note in scaling.notes),
            *map(escaped, of_settings.notes),
        ]
    )
    files = {
        folder / "scale.csv": csv_of([_row(scaling.measure, point) for point in scaling.points]),
        folder / "scale.md": f"{told}\n",
    }
    for file, content in files.items():
        with written_whole(file) as out:
            out.write(content.encode())
    return list(files)


def _row(headline: Measure, point: Point) -> dict[str, object]:
    row: dict[str, object] = {"setting": point.setting, "value": point.value, "questions": point.questions}
    for each, found in [(headline, point.accuracy), *((each, point.averages[each.name]) for each in AVERAGES)]:
        row |= ends(each.name, found)
    return {**row, "failure": point.failure or None}
