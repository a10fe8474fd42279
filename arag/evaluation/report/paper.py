"""The paper's results (Table 1), to compare with ours, and how a run differs from the paper's experiment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import PurePath

import pandas as pd

from arag.evaluation.plan import Plan

CITATION = "Du et al. 2026, A-RAG, arXiv 2602.03442, Table 1"
_EMBEDDER, _JUDGE = "Qwen3-Embedding-0.6B", "GPT-5-mini"
_DATASETS = {  # by the words that names of files have for them
    "musique": "MuSiQue",
    **dict.fromkeys(("hotpotqa", "hotpot"), "HotpotQA"),
    **dict.fromkeys(("2wikimultihopqa", "2wikimultihop", "2wiki"), "2WikiMultiHopQA"),
    "medical": "GraphRAG-Bench Medical",
    "novel": "GraphRAG-Bench Novel",
}


@cache
def paper_results() -> pd.DataFrame:
    """Return LLM-Acc and Contain-Acc in percent, a row for each dataset, model and method, in the paper's order."""
    return pd.read_csv(str(files("arag.evaluation.report").joinpath("paper.csv")))


def find_dataset(questions: str) -> str | None:
    """Return the paper's dataset that the name of a questions file or of its folder shows, or None."""
    file = PurePath(questions)
    words = re.split(r"[^a-z0-9]+", f"{file.stem} {file.parent.name}".lower())
    return next((_DATASETS[word] for word in words if word in _DATASETS), None)


def find_model(models: Sequence[str]) -> str | None:
    """Return the paper's model that all of these are, as their providers report them, or None."""
    names = {re.sub(r"-\d{4}-\d{2}-\d{2}$", "", model.lower()) for model in models}
    return next((model for model in paper_results()["model"].unique() if names == {model.lower()}), None)


def differences(plan: Plan, models: Sequence[str], questions: int) -> list[str]:
    """Describe how a run differs from the paper's experiment, or may; `models` are those that answered."""
    embedder = str((plan.contents or {}).get("embedder") or "unknown")
    lines = []
    if find_model(models) is None:
        theirs = " and ".join(paper_results()["model"].unique())
        lines.append(f"Different model: ours {' and '.join(models) or 'unknown'}, the paper's {theirs}.")
    if not embedder.lower().endswith(_EMBEDDER.lower()):
        lines.append(f"Different embedder: ours {embedder}, the paper's {_EMBEDDER}.")
    if plan.judge is None:
        lines.append(f"We used no judge; the paper used {_JUDGE}.")
    elif find_model([plan.judge.partition("@")[0].rpartition(":")[2]]) != _JUDGE:
        lines.append(f"Different judge: ours {plan.judge}, the paper's {_JUDGE}, which does not see the question.")
    if plan.presentation != "paper":
        lines.append(f"A-RAG's tools show a selection ({plan.presentation}); `--presentation paper` shows the paper's.")
    return [*lines, f"The corpus and the {questions:,} questions may differ from the paper's."]
