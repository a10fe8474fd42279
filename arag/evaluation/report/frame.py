"""The records of runs as one table: a row for each question and method; and the paper's results (Table 1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
from arag.evaluation.runs import RecordFile
from arag.models.prices import cost

EXPERIMENT = (
    "Du et al. 2026, A-RAG, arXiv 2602.03442, Table 1. Their embedder was Qwen3-Embedding-0.6B, and their judge "
    "GPT-5-mini, which did not see the question. A-RAG's tools showed plain lists (`--presentation paper`). Corpus and "
    "questions may differ."
)
_PAPERS_DATASETS = {  # by the words that names of files have for them
    "musique": "MuSiQue",
    **dict.fromkeys(("hotpotqa", "hotpot"), "HotpotQA"),
    **dict.fromkeys(("2wikimultihopqa", "2wikimultihop", "2wiki"), "2WikiMultiHopQA"),
    "medical": "GraphRAG-Bench Medical",
    "novel": "GraphRAG-Bench Novel",
}
_TEXTS = ["question_id", "question", "answer", "aliases", "prediction", "error", "stop_reason"]
_SCORES = ["contain", "contain_with_aliases", "exact_match", "f1"]
_GOLD = ["gold_seen", "gold_read", "gold_cited"]
_FIGURES = ["steps", "seconds", "retrieved_tokens", "evidence_tokens"]
_TOKENS = ["input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens"]


@dataclass
class Run:
    """A run, whose name tells it apart from the other runs of a report."""

    name: str
    folder: Path
    plan: Plan
    models: list[str]
    """The models that answered, as their providers report them."""

    @property
    def dataset(self) -> str | None:
        """The paper's dataset; None for others."""
        return find_dataset(self.plan.questions)

    @property
    def subject(self) -> str:
        """Its dataset and models, in words."""
        dataset = self.dataset or name_dataset(Path(self.plan.questions))
        return f"{dataset}, {', '.join(self.models) or self.plan.model}"

    def describe(self) -> dict[str, str]:
        """Return its settings, as far as there is something to say."""
        plan, contents = self.plan, self.plan.contents
        settings = {
            "Model": ", ".join(self.models) or plan.model,
            "Model options": ", ".join(f"{key} {value}" for key, value in plan.model_options.items()),
            "Judge": plan.judge or "none",
            "Embedder": str(contents.get("embedder", "unknown")),
            "Index": ", ".join(f"{contents[key]:,} {key}" for key in ("documents", "chunks") if key in contents),
            "Top k": str(plan.top_k),
            "Presentation": plan.presentation,
            "Max steps": str(plan.max_steps),
            "Started": plan.date,
        }
        return {name: value for name, value in settings.items() if value}


def load_runs(folders: Sequence[Path]) -> tuple[list[Run], pd.DataFrame]:
    """Read runs.

    Args:
        folders: Their folders; one that is given twice counts once.

    Returns:
        The runs; and a row for each question and method: `run`, `method`, `title`, what the record says, and `correct`,
        `cause` (of a wrong answer), `model_calls`, `unusable` (a share of them), `cost`. What is unknown is NaN; failed
        questions are wrong. Methods are in the paper's order.

    Raises:
        InputError: A folder holds no run, or no records.
    """
    runs, rows = [], []
    for folder in {folder.resolve(): folder for folder in folders}.values():
        plan = load_plan(folder)
        own = list(_read_rows(folder, plan))
        if not own:
            raise InputError(f"the run in {folder} has no records yet: run `arag eval run` first")
        runs.append(Run(str(folder), folder, plan, sorted({name for row in own for name in row["models"]})))
        rows += own
    frame = pd.DataFrame(rows)
    subjects = [run.subject for run in runs]
    for run, subject in zip(runs, subjects, strict=True):
        run.name = subject if subjects.count(subject) == 1 else f"{subject}, {run.folder}"
    frame["run"] = frame["run"].map({str(run.folder): run.name for run in runs})

    is_judged = frame.groupby(["run", "method"])["correct"].transform("count") > 0
    frame[["correct", *_SCORES]] = frame[["correct", *_SCORES]].astype(float)
    frame.loc[frame["error"].notna() & is_judged, "correct"] = 0.0
    frame["cause"] = frame["cause"].where(frame["correct"].fillna(frame["contain"]) == 0)
    order = {title: place for place, title in enumerate(paper_results()["method"].unique())}
    frame["place"] = frame["title"].map(order).fillna(len(order))
    return runs, frame.sort_values("place", kind="stable").reset_index(drop=True)


def _read_rows(folder: Path, plan: Plan) -> Iterable[dict[str, Any]]:
    """Return a row for each question and method of a run."""
    rows, failures = {}, read_failures(folder)
    for file in sorted((folder / RECORDS).glob("*.jsonl")):
        for record in RecordFile(file).each():
            calls, judgement = record["model_calls"], record["judgement"]
            # Every call takes tokens: without any, the provider reported none.
            is_reported = all(call["input_tokens"] or call["output_tokens"] for call in calls)
            key = file.stem, record["question_id"]
            failure = failures.get(key)
            rows[key] = {
                "run": str(folder),
                "method": file.stem,
                "title": plan.methods[file.stem].title,
                **{name: record[name] for name in (*_TEXTS, *_SCORES, *_GOLD, *_FIGURES)},  # type: ignore[literal-required]
                **{name: sum(call[name] for call in calls) if is_reported else None for name in _TOKENS},  # type: ignore[literal-required]
                "correct": judgement and judgement["correct"],
                "model_calls": len(calls),
                "unusable": record["unusable"] / len(calls) if calls else None,
                "cost": cost(calls),
                "models": {call["model"] for call in calls if call["model"]},
                "cause": failure and (failure["cause"] or "undecided"),
            }
    return rows.values()


# --- the paper ---


@cache
def paper_results() -> pd.DataFrame:
    """Return LLM-Acc and Contain-Acc in percent, a row for each dataset, model and method, in the paper's order."""
    return pd.read_csv(str(files("arag.evaluation.report").joinpath("paper.csv")))


def find_dataset(questions: str) -> str | None:
    """Return the paper's dataset that the name of a questions file or of its folder shows, or None."""
    file = PurePath(questions)
    words = re.split(r"[^a-z0-9]+", f"{file.stem} {file.parent.name}".lower())
    return next((_PAPERS_DATASETS[word] for word in words if word in _PAPERS_DATASETS), None)
