"""The records of runs as one table: a row for each question and method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from arag.errors import InputError
from arag.evaluation.datasets import load_questions, name_dataset
from arag.evaluation.plan import RECORDS, MethodFacts, Plan, load_plan
from arag.evaluation.report.paper import find_dataset, paper_results
from arag.evaluation.runs import Record, RecordFile
from arag.models.prices import cost

_KEPT = (
    *("question_id", "question", "answer", "aliases", "prediction", "error", "stop_reason", "steps", "seconds"),
    *("contain", "contain_with_aliases", "exact_match", "f1", "gold_seen", "gold_read", "gold_cited"),
    *("retrieved_tokens", "evidence_tokens"),
)
_SCORES = ("correct", "contain", "contain_with_aliases", "exact_match", "f1")
_TOKENS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")


@dataclass(frozen=True)
class Runs:
    """Runs, and the records of their questions.

    Attributes:
        plans: Their plans, by the runs' names.
        folders: Their folders, likewise.
        datasets: The paper's datasets, likewise; None for others.
        models: The models that answered, as their providers report them, likewise.
        frame: A row for each question and method: `run`, `method`, `title`, what the record says, and `correct`,
            `model_calls`, `cost`, `tools` (calls by tool), `has_page`. What is unknown is NaN; failed questions are
            wrong, and have no figures.
    """

    plans: dict[str, Plan]
    folders: dict[str, Path]
    datasets: dict[str, str | None]
    models: dict[str, list[str]]
    frame: pd.DataFrame

    def facts(self, method: str) -> MethodFacts:
        """Return what the runs have kept of a method."""
        return next(plan.methods[method] for plan in self.plans.values() if method in plan.methods)


def load_runs(folders: Sequence[Path], dataset: str | None = None) -> Runs:
    """Read runs.

    Args:
        folders: Their folders.
        dataset: The paper's dataset, if the names of the questions' files do not show it.

    Raises:
        InputError: A folder holds no run, or no records; or the paper has no such dataset.
    """
    plans = {folder: load_plan(folder) for folder in folders}
    datasets = {folder: find_dataset(plan.questions, dataset) for folder, plan in plans.items()}
    models: dict[Path, set[str]] = {folder: set() for folder in folders}
    rows = [row for folder in folders for row in _read_rows(folder, plans[folder], models[folder])]
    names = _name_runs(plans, datasets, {folder: sorted(names) for folder, names in models.items()})
    frame = pd.DataFrame(rows)
    frame["run"] = frame["folder"].map(names)
    order = {title: place for place, title in enumerate(paper_results()["method"].unique())}
    frame["place"] = frame["title"].map(order).fillna(len(order))
    # Records are in the order of completion.
    numbers = {key: number for plan in plans.values() for number, key in enumerate(_list_questions(plan))}
    frame["number"] = frame["question_id"].map(numbers).fillna(len(numbers))
    frame = frame.sort_values(["place", "number", "question_id"], kind="stable").reset_index(drop=True)
    return Runs(
        {names[folder]: plan for folder, plan in plans.items()},
        {name: folder for folder, name in names.items()},
        {names[folder]: name for folder, name in datasets.items()},
        {names[folder]: sorted(some) for folder, some in models.items()},
        frame,
    )


def _read_rows(folder: Path, plan: Plan, models: set[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for each record; `models` gets the names of the models that answered."""
    rows = []
    for file in sorted((folder / RECORDS).glob("*.jsonl")):
        records = RecordFile(file).read().values()
        is_judged = any(record["judgement"] is not None for record in records)
        for record in records:
            models |= {call["model"] for call in record["model_calls"] if call["model"]}
            rows.append({"folder": folder, "method": file.stem, "title": plan.methods[file.stem].title})
            rows[-1] |= _read_record(record, is_judged=is_judged)
    if not rows:
        raise InputError(f"the run in {folder} has no records yet: run `arag eval run` first")
    yield from rows


def _read_record(record: Record, *, is_judged: bool) -> dict[str, Any]:
    failed, calls = record["error"] is not None, record["model_calls"]
    # Every call takes tokens: without any, the provider reported none.
    is_reported = all(call["input_tokens"] or call["output_tokens"] for call in calls)
    row: dict[str, Any] = {name: record.get(name) for name in _KEPT}
    row |= {name: float(row[name]) for name in _SCORES if name != "correct"}
    verdict = record["judgement"]["correct"] if record["judgement"] else None
    row["correct"] = None if verdict is None else float(verdict)
    row |= {"model_calls": len(calls), "cost": cost(calls), "has_page": bool(record["messages"])}
    row |= {name: sum(call[name] for call in calls) if is_reported else None for name in _TOKENS}  # type: ignore[literal-required]
    row["tools"] = dict(Counter(entry["tool"] for entry in record["trace"] if not entry["error"]))
    if failed:
        row |= dict.fromkeys((*_KEPT[7:9], *_KEPT[13:], *_TOKENS, "model_calls", "cost"))
        row |= {name: 0.0 for name in _SCORES if name != "correct" or is_judged}
    return row


def _list_questions(plan: Plan) -> list[str]:
    """Return the ids of a run's questions in the order of their file, if it is still there."""
    try:
        return [question.id for question in load_questions(Path(plan.questions))]
    except InputError:
        return []


def _name_runs(
    plans: dict[Path, Plan], datasets: dict[Path, str | None], models: dict[Path, list[str]]
) -> dict[Path, str]:
    """Name runs by what tells them apart: dataset and model, then steps or effort, then the folder."""

    def parts(folder: Path) -> list[str]:
        plan = plans[folder]
        effort = plan.model_options.get("reasoning_effort")
        return [
            f"{datasets[folder] or name_dataset(Path(plan.questions))}, {', '.join(models[folder]) or plan.model}",
            f"{plan.max_steps} steps" + (f", {effort} effort" if effort else ""),
            str(folder),
        ]

    told = {folder: parts(folder) for folder in plans}
    differing = [place for place in range(3) if len({some[place] for some in told.values()}) > 1] or [0]
    for length in range(1, len(differing) + 1):
        names = {folder: ", ".join(some[place] for place in differing[:length]) for folder, some in told.items()}
        if len(set(names.values())) == len(plans):
            break
    return names
