"""How accuracy grows with what a run may spend (paper, Figure 4)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from arag.evaluation.report.figures import CONTAIN_ACC, LLM_ACC, figure
from arag.evaluation.runs import record_file
from arag.retrieval.errors import InputError
from arag.retrieval.files import written_whole

STEPS = "steps"
EFFORT = "effort"


@dataclass(frozen=True, slots=True)
class Point:
    """What one setting has reached.

    Attributes:
        setting: What was varied: `steps` or `effort`.
        value: How much of it.
        measure: What accuracy is: LLM-Acc where a judge was asked, else Contain-Acc.
        accuracy: It, over all questions: failed ones count as wrong.
        low: The 95% interval's lower end.
        high: Its upper end.
        questions: Questions.
        steps: Steps taken, on average.
        retrieved_tokens: Tokens retrieved, on average.
        seconds: Seconds, on average.
    """

    setting: str
    value: str
    measure: str
    accuracy: float
    low: float
    high: float
    questions: int
    steps: float
    retrieved_tokens: float
    seconds: float


def measure(folder: Path, method: str, setting: str, value: str) -> Point:
    """Return what one setting has reached.

    Raises:
        InputError: No question was answered.
    """
    asked = list(record_file(folder, method).read().values())
    records = [record for record in asked if record["error"] is None]
    headline = LLM_ACC if any(record["judgement"] is not None for record in records) else CONTAIN_ACC
    found = figure(headline, asked)
    if found is None or not records:
        raise InputError(f"no question was answered in {folder}")
    return Point(
        setting,
        value,
        headline.title,
        found.mean,
        found.low,
        found.high,
        len(asked),
        sum(record["steps"] for record in records) / len(records),
        sum(record["retrieved_tokens"] for record in records) / len(records),
        sum(record["seconds"] for record in records) / len(records),
    )


def write_scaling(points: Sequence[Point], folder: Path) -> list[Path]:
    """Write `scale.csv` and `scale.md`; returns the files."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Point)])
    writer.writeheader()
    writer.writerows(asdict(point) for point in points)
    rows = [
        f"| | {points[0].measure} | 95% | steps | retrieved tokens | seconds |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    rows += [
        f"| {p.setting} {p.value} | {p.accuracy:.1%} | {p.low:.1%} to {p.high:.1%} | {p.steps:.1f} "
        f"| {p.retrieved_tokens:,.0f} | {p.seconds:.1f} |"
        for p in points
    ]
    files = {
        folder / "scale.csv": text.getvalue(),
        folder / "scale.md": "\n".join(rows) + "\n",
    }
    for file, content in files.items():
        with written_whole(file) as out:
            out.write(content.encode())
    return list(files)
