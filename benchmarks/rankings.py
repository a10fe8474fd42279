"""Measures what methods retrieve that search without a model, and how long that takes.

    python benchmarks/rankings.py --data DIR [--corpus NAME ...] [--work DIR]

Each folder in DIR holds `corpus.jsonl` and `questions.json` with `supporting` (ids of the gold documents). A model that
says nothing takes the retrieved passages. With `--work` the indexes and what was prepared are kept there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any, ClassVar

from corpora import TOP_K, gold_share, measure_each
from data import read_questions
from langchain_core.language_models import FakeListChatModel
from rich.console import Console
from rich.table import Table

from arag.evaluation.cache import Store, store_folder
from arag.evaluation.method import Lab, Method, Session
from arag.evaluation.methods.linear_rag import LinearRAG
from arag.evaluation.methods.one_shot import NaiveRAG
from arag.evaluation.methods.shared import Passages
from arag.ingest.pipeline import run_ingest
from arag.retrieval.index import open_index

PRESETS = {"musique": "musique", "hotpotqa": "hotpotqa", "2wikimultihopqa": "2wiki", "medical": "medical"}


class Similarity(Method):
    """The chunks, ranked by their similarity alone."""

    name: ClassVar[str] = "similarity"

    def prepare(self, session: Session) -> Passages:
        return session.lab.passages()

    def answer(self, question: str, session: Session, prepared: Passages) -> str:
        session.retrieved(prepared.top(question, session.lab.top_k), question)
        return ""


def measure(corpus: Path, target: Path) -> None:
    """Ingest one corpus, prepare the methods, ask the questions, and print the figures."""
    name = corpus.parent.name
    questions = [question for question in read_questions(corpus.parent) if question.get("supporting")]
    run_ingest(corpus, target)
    preset = PRESETS.get(name, "other")
    methods = {
        "naive-rag": NaiveRAG(),
        "similarity of whole chunks": Similarity(),
        f"linear-rag, preset={preset}": LinearRAG(preset=preset),
    }
    with open_index(target) as index:
        table = Table(title=f"{name}: {index.info().chunks:,} chunks, {len(questions)} questions")
        for column in ("ranking", f"gold in top {TOP_K}", "prepared in", "a question", ""):
            table.add_column(column)
        lab = Lab(index, FakeListChatModel(responses=["-"]), Store(store_folder(target)), top_k=TOP_K)
        for title, method in methods.items():
            table.add_row(title, *rank(method, lab, questions))
    Console(width=140).print(table)


def rank(method: Method, lab: Lab, questions: Sequence[dict[str, Any]]) -> list[str]:
    """Return what a method finds of the gold, how long it takes, and what else there is to know."""
    began = time.perf_counter()
    prepared = method.prepare(Session(lab))
    seconds = time.perf_counter() - began
    records = []
    for question in questions:
        session = Session(lab)
        method.answer(question["question"], session, prepared)
        records.append(session.trace[0])
    shares = [gold_share(lab.index, q, record["chunk_ids"]) for q, record in zip(questions, records, strict=True)]
    milliseconds = 1_000 * mean(record["seconds"] for record in records)
    note = ""
    if isinstance(method, LinearRAG):
        activated = [record["arguments"]["activated"] for record in records]
        nameless = sum(not record["arguments"]["entities"] for record in records)
        still = activated.count(0) - nameless
        note = f"{mean(activated):.0f} entities activated; none in {still} questions; {nameless} without an entity"
    return [f"{mean(shares):.1%}", f"{seconds:.1f} s", f"{milliseconds:.0f} ms", note]


if __name__ == "__main__":
    measure_each(__doc__, measure, ["musique", "hotpotqa"])
