"""The paper's results (Table 1), to compare with ours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import PurePath

import pandas as pd

EXPERIMENT = (
    "Du et al. 2026, A-RAG, arXiv 2602.03442, Table 1. Their embedder was Qwen3-Embedding-0.6B, and their judge "
    "GPT-5-mini, which did not see the question. A-RAG's tools showed plain lists (`--presentation paper`). Corpus and "
    "questions may differ."
)
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
