"""Ingests real corpora and measures what the searches find and what the extractive model answers.

    python benchmarks/corpora.py --data DIR [--work DIR]

DIR, or each folder in it, holds `corpus.jsonl`, or a folder `corpus`, and, where there are questions, `questions.json`.
With `supporting` (ids of the gold documents) the share of gold documents among the top 5 of each search is measured.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from data import find_corpora, read_corpus, read_questions
from rich.console import Console
from rich.table import Table

from arag.evaluation.scores import contains
from arag.graph.graph import create_arag_agent
from arag.ingest.pipeline import run_ingest
from arag.models.questions import question_keywords
from arag.retrieval.index import Index, open_index

TOP_K = 5


def gold_share(index: Index, question: dict[str, Any], chunk_ids: Iterable[str]) -> float:
    """Return the share of a question's gold documents that chunks are of."""
    documents = {chunk.document_id for chunk in map(index.get, chunk_ids) if chunk is not None}
    gold = set(question["supporting"])
    return len(gold & documents) / len(gold)


def count_lost(index: Index, corpus: Path) -> int:
    """Count the characters of the documents that the index does not give back as they were, after their titles."""
    stored: dict[str, str] = {}
    for chunk in map(index.get, index.chunk_ids()):
        assert chunk is not None
        stored[chunk.document_id] = stored.get(chunk.document_id, "") + chunk.text
    return sum(len(text) for id_, _, text in read_corpus(corpus) if not stored.get(id_, "").endswith(text))


def measure(corpus: Path, target: Path) -> None:
    """Ingest one corpus, ask its questions, and print the figures."""
    table = Table(title=corpus.parent.name, show_header=False)
    summary = run_ingest(corpus, target)
    with open_index(target) as index:
        info = index.info()
        table.add_row("documents / chunks / sentences", f"{info.documents:,} / {info.chunks:,} / {info.sentences:,}")
        table.add_row("ingestion", f"{summary.seconds:.1f} s, {summary.embedded:,} sentences embedded")
        table.add_row("left out", str(len(summary.problems)))
        table.add_row("characters lost", str(count_lost(index, corpus)))
        table.add_row("index size", f"{info.bytes / 1e6:.1f} MB")
        if questions := read_questions(corpus.parent):
            measure_searches(index, [question for question in questions if question.get("supporting")], table)
            measure_answers(index, questions, table)
    Console(width=100).print(table)


def measure_searches(index: Index, questions: Sequence[dict[str, Any]], table: Table) -> None:
    """Measure the mean share of gold documents in the top 5 of both searches."""
    keyword, semantic = [], []
    for question in questions:
        keywords = question_keywords(question["question"])
        hits = index.keyword_search(keywords, TOP_K).hits if keywords else ()
        keyword.append(gold_share(index, question, [hit.chunk_id for hit in hits]))
        hits = index.semantic_search(question["question"], TOP_K).hits
        semantic.append(gold_share(index, question, [hit.chunk_id for hit in hits]))
    if questions:
        table.add_row(f"gold in top {TOP_K}", f"keyword {mean(keyword):.1%}, semantic {mean(semantic):.1%}")


def measure_answers(index: Index, questions: Sequence[dict[str, Any]], table: Table) -> None:
    """Measure the extractive model's answers (paper: Contain-Acc), and what they take."""
    agent = create_arag_agent("extractive", index)
    began = time.perf_counter()
    states = [agent.invoke({"messages": [("user", question["question"])]}) for question in questions]
    seconds = (time.perf_counter() - began) / len(questions)
    pairs = list(zip(questions, states, strict=True))
    right = sum(contains(state["answer"], [q["answer"], *q.get("answer_aliases", ())]) for q, state in pairs)
    tokens = mean(sum(record["retrieved_tokens"] for record in state["trace"]) for state in states)
    steps = mean(state["steps"] for state in states)
    table.add_row("extractive: Contain-Acc", f"{right}/{len(questions)} = {right / len(questions):.1%}")
    table.add_row("extractive: per question", f"{steps:.1f} steps, {tokens:.0f} tokens, {seconds:.2f} s")
    seen = [
        gold_share(index, question, [chunk_id for record in state["trace"] for chunk_id in record["chunk_ids"]])
        for question, state in pairs
        if question.get("supporting")
    ]
    if seen:
        table.add_row("extractive: gold seen", f"{mean(seen):.1%}")


def main() -> None:
    """Measure the corpora of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="keep the indexes here; those that are there are used again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for name, corpus in find_corpora(options.data).items():
            measure(corpus, (options.work or Path(scratch)) / name)


if __name__ == "__main__":
    main()
