"""Prepares the methods that search without a model, and measures what they find and how long they take.

    python benchmarks/baselines.py --data DIR [--corpus NAME ...] [--work DIR]

Each folder in DIR holds `corpus.jsonl` and `questions.json` with `supporting` (ids of the gold documents). Nothing is
asked of a model: every question runs up to the retrieved passages. With `--work` the indexes and what was prepared are
kept there and used again; the seconds to prepare are then those of what was missing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from rich.console import Console
from rich.table import Table

from arag.evaluation.methods import Options, method
from arag.evaluation.methods.baselines.passages import By, Passages
from arag.evaluation.methods.linear_rag import LinearSettings
from arag.evaluation.store import open_store
from arag.evaluation.workplace import Workplace
from arag.graph.state import ToolRecord
from arag.ingest.pipeline import run_ingest
from arag.models.chat import load_model
from arag.retrieval.index import Index, open_index

TOP_K = 5
PRESETS = {"musique": "musique", "hotpotqa": "hotpotqa", "2wikimultihopqa": "2wiki", "medical": "medical"}


@dataclass(frozen=True)
class Found:
    """What a ranking found, in the mean over all questions.

    Attributes:
        gold: The share of gold documents in the top 5.
        first: The seconds that the first question took: it loads what the others share.
        seconds: The seconds of each other question.
        notes: What else there is to know.
    """

    gold: float
    first: float
    seconds: float
    notes: str = ""


def rank_by_method(index: Index, questions: Sequence[dict[str, Any]], name: str, settings: Mapping[str, Any]) -> Found:
    """Run a method up to its first retrieval."""
    graph = method(name).make(index, load_model("extractive"), Options(top_k=TOP_K, settings={name: settings}))
    gold, seconds, figures = [], [], []
    for question in questions:
        began = time.perf_counter()
        update = next(iter(graph.stream({"messages": [HumanMessage(question["question"])]}, stream_mode="updates")))
        seconds.append(time.perf_counter() - began)
        record: ToolRecord = update["retrieve"]["trace"][0]
        gold.append(share(index, question["supporting"], record["chunk_ids"]))
        figures.append(record["arguments"])
    notes = ""
    if name == "linear-rag":
        nameless = sum(not figure["entities"] for figure in figures)
        still = sum(not figure["activated"] for figure in figures) - nameless
        reached = sum(figure["activated"] for figure in figures) / len(figures)
        notes = f"{reached:.0f} entities activated; none in {still} questions; {nameless} without an entity"
    return Found(sum(gold) / len(gold), seconds[0], sum(seconds[1:]) / len(seconds[1:]), notes)


def rank_by_similarity(index: Index, questions: Sequence[dict[str, Any]], by: By) -> Found:
    """Rank the chunks by their similarity alone."""
    passages = Passages(index, open_store(index), by)
    gold, seconds = [], []
    for question in questions:
        began = time.perf_counter()
        ids = passages.top(question["question"], TOP_K)
        seconds.append(time.perf_counter() - began)
        gold.append(share(index, question["supporting"], ids))
    return Found(sum(gold) / len(gold), seconds[0], sum(seconds[1:]) / len(seconds[1:]))


def share(index: Index, gold: Sequence[str], chunk_ids: Sequence[str]) -> float:
    """Return the share of gold documents that are in chunks."""
    found = {chunk.document_id for chunk in index.read(chunk_ids).chunks}
    return len(set(gold) & found) / len(set(gold))


def measure(folder: Path, target: Path) -> None:
    """Ingest one corpus, prepare the methods, ask the questions, and print the figures."""
    questions = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    questions = [question for question in questions if question.get("supporting")]
    run_ingest(folder / "corpus.jsonl", target)
    preset = {"preset": PRESETS.get(folder.name, "other")}
    with open_index(target) as index:
        index.load_embedder()
        options = Options(top_k=TOP_K, settings={"linear-rag": preset})
        began = time.perf_counter()
        place = Workplace(index, load_model("extractive"), options, open_store(index))
        asyncio.run(prepare("linear-rag", place))
        prepared = time.perf_counter() - began
        table = Table(title=f"{folder.name}: {index.info().chunks:,} chunks, {len(questions)} questions")
        for column in ("ranking", f"gold in top {TOP_K}", "first question", "others", ""):
            table.add_column(column)
        rankings = {
            "naive-rag": rank_by_method(index, questions, "naive-rag", {}),
            "similarity of best sentences": rank_by_similarity(index, questions, "sentence"),
            "similarity of whole chunks": rank_by_similarity(index, questions, "chunk"),
        }
        for changed in ({}, {"passages": "sentence"}, {"adjacent": "none"}):
            settings = LinearSettings.model_validate({**preset, **changed}).model_dump()
            name = ", ".join(["linear-rag", *(f"{key}={value}" for key, value in {**preset, **changed}.items())])
            rankings[name] = rank_by_method(index, questions, "linear-rag", settings)
        for name, found in rankings.items():
            table.add_row(
                name, f"{found.gold:.1%}", f"{found.first:.2f} s", f"{found.seconds * 1000:.0f} ms", found.notes
            )
    table.caption = f"linear-rag was prepared in {prepared:.0f} s"
    Console(width=140).print(table)


async def prepare(name: str, place: Workplace) -> None:
    """Do a method's index-time work."""
    work = method(name).prepare
    assert work is not None
    await work(place)


def main() -> None:
    """Measure the corpora."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpus", action="append")
    parser.add_argument("--work", type=Path, help="keep the indexes here; those that are there are used again")
    options = parser.parse_args()
    names = options.corpus or ["musique", "hotpotqa"]
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            measure(options.data / name, (options.work or Path(scratch)) / name)


if __name__ == "__main__":
    main()
