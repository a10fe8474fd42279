"""The paper's results, to compare with ours, and how the experiments differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import Any

from arag.errors import InputError
from arag.pages.templates import count
from arag.retrieval.storage import Settings
from arag.retrieval.tools import Presentation

_WORDS = re.compile(r"[^a-z0-9]+")
_VERSION = re.compile(r"-\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True, slots=True)
class PaperResults:
    """What the paper reports for a dataset.

    Attributes:
        dataset: The dataset, as the paper calls it.
        citation: Where the paper reports it.
        backbones: LLM-Acc and Contain-Acc in percent by model and method; None if the paper gives none.
    """

    dataset: str
    citation: str
    backbones: Mapping[str, Mapping[str, Sequence[float | None]]]

    def methods(self) -> list[str]:
        """Return the methods, in the paper's order."""
        return list(dict.fromkeys(method for results in self.backbones.values() for method in results))

    def find(self, models: Sequence[str]) -> Mapping[str, Sequence[float | None]]:
        """Return the results of a model by method; empty if the models are not one of the paper's."""
        same = (name for name in self.backbones if models and all(same_model(model, name) for model in models))
        return self.backbones.get(next(same, ""), {})


def paper_results(questions: str, dataset: str | None = None) -> PaperResults | None:
    """Return the paper's results for the dataset of the questions.

    Args:
        questions: The questions' file; its name or its folder's name may show the dataset.
        dataset: The dataset, if the names do not show it.

    Returns:
        The results; None if the names show no dataset of the paper.

    Raises:
        InputError: The paper has no such dataset.
    """
    file = PurePath(questions)
    found = _named(dataset) if dataset is not None else _named(file.stem) or _named(file.parent.name)
    if found is None and dataset is not None:
        raise InputError(f"the paper has no dataset {dataset!r}; valid datasets: {', '.join(sorted(_by_name()))}")
    if found is None:
        return None
    return PaperResults(found, _paper()["citation"], _paper()["datasets"][found]["backbones"])


def paper_order() -> list[str]:
    """Return the paper's methods in its order."""
    first = next(iter(_paper()["datasets"].values()))
    return list(dict.fromkeys(method for results in first["backbones"].values() for method in results))


def same_model(name: str, backbone: str) -> bool:
    """Return whether a model's name, as its provider reports it, is a given model of the paper."""
    return _VERSION.sub("", name.lower()) == backbone.lower()


def differences(
    paper: PaperResults,
    models: Iterable[str],
    judge: str | None,
    presentation: Presentation,
    index: Settings | None,
    questions: int,
) -> list[str]:
    """Describe how a run differs from the paper's experiment, or may differ.

    Args:
        paper: The paper's results.
        models: The models that answered, as their providers report them.
        judge: The judge.
        presentation: What A-RAG's tools show.
        index: The index's settings, if the index still exists.
        questions: How many questions were asked.
    """
    found, backbones, judged = sorted(models), list(paper.backbones), _paper()["judge"]
    told = []
    if not found or not all(any(same_model(name, backbone) for backbone in backbones) for name in found):
        told.append(f"Different model: ours {_listed(found)}, the paper's {_listed(backbones)}.")
    embedder, theirs = index.embedder if index else None, _paper()["embedder"]
    if embedder is None:
        told.append(f"Our embedder is unknown, because the index is missing; the paper's is {theirs}.")
    elif not embedder.lower().endswith(theirs.lower()):
        told.append(f"Different embedder: ours {embedder}, the paper's {theirs}.")
    if judge is None:
        told.append(f"We used no judge; the paper used {judged}.")
    elif not same_model(judge.partition("@")[0].rpartition(":")[2], judged):
        told.append(f"Different judge: ours {judge}, the paper's {judged}, which does not see the question.")
    if presentation != "paper":
        told.append(f"A-RAG's tools show another selection: {presentation}. `--presentation paper` shows the paper's.")
    corpus = f"{count(index.documents, 'document')} in {count(index.chunks, 'chunk')}" if index else "an index"
    asked = count(questions, "question")
    told.append(f"The questions and the corpus ({asked}, {corpus}) may differ from the paper's.")
    return told


def _named(text: str) -> str | None:
    """Return the dataset that a word of a text names."""
    return next((_by_name()[word] for word in _WORDS.split(text.lower()) if word in _by_name()), None)


def _listed(names: Iterable[str]) -> str:
    return " and ".join(names) or "unknown"


@cache
def _by_name() -> dict[str, str]:
    return {name: dataset for dataset, entry in _paper()["datasets"].items() for name in entry["names"]}


@cache
def _paper() -> dict[str, Any]:
    return dict(json.loads(files("arag.evaluation.report").joinpath("paper.json").read_text("utf-8")))
