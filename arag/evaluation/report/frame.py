"""The records of runs as one table with a row for each question and method; and the paper's results (Table 1)."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Any

import pandas as pd

from arag.errors import InputError
from arag.evaluation.datasets import name_dataset
from arag.evaluation.failures import read_failures
from arag.evaluation.plan import RECORDS, Plan, load_plan
from arag.evaluation.recordings import REPLAY
from arag.evaluation.records import Record, RecordFile
from arag.graph.outcome import name_end
from arag.models.prices import cost
from arag.models.usage import ModelCall

EXPERIMENT = (
    "Du et al. 2026, A-RAG, arXiv 2602.03442, Table 1. Their embedder was Qwen3-Embedding-0.6B, and their judge "
    "GPT-5-mini, which did not see the question. A-RAG's tools showed plain lists (`--presentation paper`). Corpus and "
    "questions may differ."
)
_PAPERS_DATASETS = {  # by words in the names of files
    "musique": "MuSiQue",
    "hotpotqa": "HotpotQA",
    "hotpot": "HotpotQA",
    "2wikimultihopqa": "2WikiMultiHopQA",
    "2wikimultihop": "2WikiMultiHopQA",
    "2wiki": "2WikiMultiHopQA",
    "medical": "GraphRAG-Bench Medical",
    "novel": "GraphRAG-Bench Novel",
}
_TEXTS = ["question_id", "question", "answer", "aliases", "prediction", "error"]
_SCORES = ["contain", "contain_with_aliases", "exact_match", "f1"]
_LISTS = ["list_precision", "list_recall", "list_f1"]
_JUDGED_LISTS = ["judged_precision", "judged_recall"]
_GOLD = ["gold_seen", "gold_read", "gold_cited"]
_FIGURES = ["steps", "seconds", "retrieved_tokens", "evidence_tokens"]
_TOKENS = ["input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens"]


@dataclass
class Run:
    """A run of a report.

    Attributes:
        name: Its name, different from those of the report's other runs.
        folder: Its folder.
        plan: Its methods and settings.
        models: The models that answered, as their providers report them.
    """

    name: str
    folder: Path
    plan: Plan
    models: list[str]

    @property
    def dataset(self) -> str | None:
        """The paper's dataset; None for another one."""
        return find_dataset(self.plan.questions)

    @property
    def subject(self) -> str:
        """The dataset and the models, as text."""
        dataset = self.dataset or name_dataset(Path(self.plan.questions))
        return f"{dataset}, {self._model}"

    @property
    def _model(self) -> str:
        return ", ".join(self.models) or self.plan.model

    @property
    def replayed_from(self) -> str:
        """The name of the recording that gave the replies; empty if a model did."""
        file = self.plan.model.removeprefix(REPLAY)
        return "" if file == self.plan.model else PurePath(file).name

    def describe(self) -> dict[str, str]:
        """Return the run's settings as texts, without empty ones."""
        plan = self.plan
        sizes = [f"{plan.contents[key]:,} {key}" for key in ("documents", "chunks") if key in plan.contents]
        settings = {
            "Model": self._model,
            "Model options": ", ".join(f"{key} {value}" for key, value in plan.model_options.items()),
            "Judge": plan.judge or "none",
            "Embedder": str(plan.contents.get("embedder", "unknown")),
            "Index": ", ".join(sizes),
            "Top k": str(plan.top_k),
            "Presentation": plan.presentation,
            "Max steps": str(plan.max_steps),
            "Started": plan.date,
        }
        return {name: value for name, value in settings.items() if value}


def load_runs(folders: Sequence[Path]) -> tuple[list[Run], pd.DataFrame]:
    """Read runs.

    Args:
        folders: Their folders; a repeated folder counts once.

    Returns:
        The runs; and a row for each question and method: `run`, `method`, `title`, the fields of the record, and `end`
        (how it ended), `correct`, `cause` (of a wrong answer), `model_calls`, `unusable` (a share of them), `cost`.
        Unknown values are NaN; failed questions are wrong. `right` is NaN in runs whose questions all ask for texts:
        Contain-Acc is enough for these. Methods are in the paper's order.

    Raises:
        InputError: A folder holds no run, or no records.
    """
    runs: list[Run] = []
    rows: list[dict[str, Any]] = []
    different_folders = {folder.resolve(): folder for folder in folders}
    for folder in different_folders.values():
        plan = load_plan(folder)
        rows_of_run = _read_rows(folder, plan)
        if not rows_of_run:
            command = f"arag eval run --out {shlex.quote(str(folder))}"
            raise InputError(f"the run in {folder} has no records yet: run `{command}` first")
        models: set[str] = set()
        for row in rows_of_run:
            models |= row["models"]
        runs.append(Run(name=str(folder), folder=folder, plan=plan, models=sorted(models)))
        rows += rows_of_run
    _name_runs(runs)

    frame = pd.DataFrame(rows)
    frame["run"] = frame["run"].map({str(run.folder): run.name for run in runs})
    scores = ["correct", "right", "refused", *_SCORES, *_LISTS, *_JUDGED_LISTS]
    frame[scores] = frame[scores].astype(float)
    has_forms = frame["form"].ne("text").groupby(frame["run"]).transform("any")
    frame["right"] = frame["right"].where(has_forms)
    is_judged = frame.groupby(["run", "method"])["correct"].transform("count") > 0
    frame.loc[frame["error"].notna() & is_judged, "correct"] = 0.0
    is_wrong = frame["correct"].fillna(frame["right"]).fillna(frame["contain"]) == 0
    frame["cause"] = frame["cause"].where(is_wrong)
    return runs, _in_papers_order(frame)


def _name_runs(runs: Sequence[Run]) -> None:
    """Name runs by their subjects, and by their folders where subjects are equal."""
    counts = Counter(run.subject for run in runs)
    for run in runs:
        run.name = run.subject if counts[run.subject] == 1 else f"{run.subject}, {run.folder}"


def _in_papers_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Sort rows by the places of their methods in the paper, and other methods last."""
    titles = paper_results()["method"].unique()
    places = {title: place for place, title in enumerate(titles)}
    frame["place"] = frame["title"].map(places).fillna(len(places))
    return frame.sort_values("place", kind="stable").reset_index(drop=True)


def _read_rows(folder: Path, plan: Plan) -> list[dict[str, Any]]:
    """Return a row for each question and method of a run, from its last record."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    failures = read_failures(folder)
    for file in sorted((folder / RECORDS).glob("*.jsonl")):
        method = file.stem
        for record in RecordFile(file).each():
            key = method, record["question_id"]
            row = {
                "run": str(folder),
                "method": method,
                "title": plan.methods[method].title,
            }
            rows[key] = row | _figures(record, failures.get(key))
    return list(rows.values())


def _figures(record: Record, failure: Mapping[str, str] | None) -> dict[str, Any]:
    """Return the fields of a record that reports show, and figures of its model calls."""
    judgement = record["judgement"]
    calls = record["model_calls"]
    copied: dict[str, Any] = {}
    for name in (*_TEXTS, *_SCORES, *_GOLD, *_FIGURES):
        copied[name] = record[name]  # type: ignore[literal-required]
    form = record.get("form", "text")
    kind = record.get("kind", "")
    if not kind and form != "text":
        kind = form
    return {
        **copied,
        **_sum_tokens(calls),
        **{name: record.get(name) for name in _LISTS},
        **_judge_list(record),
        "end": record["stop_reason"] and name_end(record["prediction"], record["stop_reason"]),
        "kind": kind,
        "form": form,
        "right": record.get("right", record["contain_with_aliases"]),
        "refused": record.get("refused"),
        "correct": judgement and judgement["correct"],
        "model_calls": len(calls),
        "unusable": record["unusable"] / len(calls) if calls else None,
        "cost": cost(calls),
        "models": {call["model"] for call in calls if call["model"]},
        "cause": failure and (failure["cause"] or "undecided"),
    }


def _judge_list(record: Record) -> dict[str, float | None]:
    """Return precision and recall of a list by the judge; None if there is no list or no verdict."""
    judgement = record["judgement"]
    if judgement is None or "found" not in judgement:
        return dict.fromkeys(_JUDGED_LISTS)
    found = len(judgement["found"])
    named = found + len(judgement["extra"])
    return {
        "judged_precision": found / named if named else 0.0,
        "judged_recall": found / len(record["items"]),
    }


def _sum_tokens(calls: Sequence[ModelCall]) -> dict[str, int | None]:
    """Return the tokens of model calls; None if they are unknown."""
    # Every call takes tokens: if a call has none, its provider did not report them.
    is_reported = all(call["input_tokens"] or call["output_tokens"] for call in calls)
    if not is_reported:
        return dict.fromkeys(_TOKENS)
    return {name: sum(call[name] for call in calls) for name in _TOKENS}  # type: ignore[literal-required]


# --- the paper ---


@cache
def paper_results() -> pd.DataFrame:
    """Return LLM-Acc and Contain-Acc in percent: a row for each dataset, model and method, in the paper's order."""
    return pd.read_csv(str(files("arag.evaluation.report").joinpath("paper.csv")))


def find_dataset(questions: str) -> str | None:
    """Recognise a dataset of the paper by the name of its file, or of the file's folder.

    Args:
        questions: The path of the file of questions.

    Returns:
        The dataset; None if the names show none of the paper's.
    """
    file = PurePath(questions)
    names = f"{file.stem} {file.parent.name}".lower()
    for word in re.split(r"[^a-z0-9]+", names):
        if word in _PAPERS_DATASETS:
            return _PAPERS_DATASETS[word]
    return None
