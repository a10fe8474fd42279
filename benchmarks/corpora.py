"""Ingests real corpora and measures what the searches find and what the extractive model answers.

    python benchmarks/corpora.py --data DIR [--corpus NAME ...] [--work DIR]
    python benchmarks/corpora.py --packages [--work DIR]

Each folder in DIR holds `corpus.jsonl`, or a folder `corpus`, and, where there are questions, `questions.json`. With
`supporting` (ids of the gold documents) the share of gold documents among the top 5 of each search is measured, with
`decomposition` also by sub-question, its placeholders filled in.

With `--packages` the corpus is what the packages installed beside this one say of themselves, and the questions
are those of `packages.json`, as somebody new to a package would ask them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import distributions
from itertools import permutations
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from arag.evaluation.scores import contains, normalise
from arag.graph.graph import create_arag_agent
from arag.ingest.documents import Document
from arag.ingest.formats import Readers
from arag.ingest.pipeline import run_ingest
from arag.ingest.sources import SourceReader
from arag.models.extractive import question_keywords
from arag.retrieval.index import Index, open_index

TOP_K = 5
LONGEST_DESCRIPTION = 20_000  # characters
PACKAGE_QUESTIONS = Path(__file__).with_name("packages.json")


def lost_characters(index: Index, texts: Mapping[str, str]) -> int:
    """Count the characters of documents that the index does not give back as they were."""
    held: dict[str, str] = {}
    for chunk_id in index.chunk_ids():
        chunk = index.get(chunk_id)
        if chunk is not None:
            held[chunk.document_id] = held.get(chunk.document_id, "") + chunk.text
    return sum(len(text) for document_id, text in texts.items() if held.get(document_id) != text)


def gold_shares(index: Index, questions: Sequence[tuple[str, Sequence[str]]]) -> tuple[float, float]:
    """Return the mean share of gold documents in the top 5 of keyword_search and of semantic_search."""
    by_keyword, by_meaning = 0.0, 0.0
    for question, gold in questions:
        keywords = question_keywords(question)
        hits = index.keyword_search(keywords, TOP_K).hits if keywords else ()
        by_keyword += _share(gold, [hit.document_id for hit in hits])
        by_meaning += _share(gold, [h.document_id for h in index.semantic_search(question, TOP_K).hits])
    return by_keyword / len(questions), by_meaning / len(questions)


def _share(gold: Sequence[str], found: Sequence[str]) -> float:
    return len(set(gold) & set(found)) / len(set(gold))


def sub_questions(question: dict[str, Any], texts: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Return a question's parts, each with its gold document; `#1` is the answer to the first part.

    The data does not say which gold document belongs to which part: the assignment is taken that puts most answers
    into their documents, and then most words.
    """
    parts = question.get("decomposition") or []
    filled = []
    for part in parts:
        text = part["question"].replace(" >> ", " ")
        for number, earlier in enumerate(parts, start=1):
            text = text.replace(f"#{number}", earlier["answer"])
        filled.append((text, part["answer"]))

    def fit(assigned: Sequence[str]) -> float:
        score = 0.0
        for (text, answer), gold in zip(filled, assigned, strict=True):
            words = set(normalise(text).split())
            held = len(words & set(normalise(texts[gold]).split())) / max(len(words), 1)
            score += contains(texts[gold], [answer]) + held
        return score

    best = max(permutations(question["supporting"]), key=fit)
    return [(text, [gold]) for (text, _), gold in zip(filled, best, strict=True)]


def write_packages(folder: Path) -> None:
    """Write the descriptions of the installed packages as files, and the questions about those that are there."""
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    files = {}
    for package in distributions():
        description = package.metadata.get("Description") or package.metadata.get_payload()
        if isinstance(description, str) and description.strip():
            suffix = ".md" if "markdown" in (package.metadata.get("Description-Content-Type") or "") else ".txt"
            files[package.name.lower()] = f"{package.name}{suffix}"
            text = description[:LONGEST_DESCRIPTION]  # what comes after it is lists of changes
            (folder / "corpus" / files[package.name.lower()]).write_text(text, encoding="utf-8")
    asked = [q for q in json.loads(PACKAGE_QUESTIONS.read_text(encoding="utf-8")) if q["package"] in files]
    questions = [q | {"supporting": [files[q["package"]]]} for q in asked]
    (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")


def main() -> None:
    """Measure the corpora and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path)
    what.add_argument("--packages", action="store_true")
    parser.add_argument("--corpus", action="append")
    parser.add_argument("--work", type=Path, help="keep the indexes here; those that are there are used again")
    options = parser.parse_args()
    if options.packages:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "packages"
            write_packages(folder)
            measure(folder, (options.work or Path(scratch)) / "packages-index")
        return
    names = options.corpus or sorted({path.parent.name for path in options.data.glob("*/corpus*")})
    if not names:
        parser.error(f"no corpus in {options.data}: expected folders that hold a corpus.jsonl or a folder corpus")
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            measure(options.data / name, (options.work or Path(scratch)) / name)


def measure(folder: Path, target: Path) -> None:
    """Ingest one corpus, ask its questions, and print the figures."""
    table = Table(title=folder.name, show_header=False)
    corpus = folder / "corpus" if (folder / "corpus").is_dir() else folder / "corpus.jsonl"
    with Readers() as readers:
        documents = SourceReader(corpus, readers).read()
        texts = {document.id: document.text for document in documents if isinstance(document, Document)}
    summary = run_ingest(corpus, target)
    with open_index(target) as index:
        info = index.info()
        table.add_row("documents / chunks / sentences", f"{info.documents:,} / {info.chunks:,} / {info.sentences:,}")
        table.add_row("ingestion", f"{summary.seconds:.1f} s, {summary.embedded:,} sentences embedded")
        table.add_row("left out", str(len(summary.problems)))
        table.add_row("characters lost", str(lost_characters(index, texts)))
        table.add_row("index size", f"{info.bytes / 1e6:.1f} MB")
        file = folder / "questions.json"
        if file.exists():
            questions = json.loads(file.read_text(encoding="utf-8"))
            _ask(index, questions, texts, table)
    Console(width=100).print(table)


def _ask(index: Index, questions: Sequence[dict[str, Any]], texts: Mapping[str, str], table: Table) -> None:
    golden = [(q["question"], q["supporting"]) for q in questions if q.get("supporting")]
    if golden:
        keyword, semantic = gold_shares(index, golden)
        table.add_row(f"gold in top {TOP_K}, questions", f"keyword {keyword:.1%}, semantic {semantic:.1%}")
    parts = [part for q in questions if q.get("decomposition") for part in sub_questions(q, texts)]
    if parts:
        keyword, semantic = gold_shares(index, parts)
        table.add_row(f"gold in top {TOP_K}, sub-questions", f"keyword {keyword:.1%}, semantic {semantic:.1%}")
    agent = create_arag_agent("extractive", index)
    began = time.perf_counter()
    states = [agent.invoke({"messages": [("user", q["question"])]}) for q in questions]
    seconds = (time.perf_counter() - began) / len(questions)
    right = sum(
        contains(state["answer"], [q["answer"], *q.get("answer_aliases", ())])
        for q, state in zip(questions, states, strict=True)
    )
    tokens = sum(record["retrieved_tokens"] for state in states for record in state["trace"]) / len(questions)
    seen = [
        _share(q["supporting"], [i for r in state["trace"] for c in r["chunk_ids"] for i in _documents(index, c)])
        for q, state in zip(questions, states, strict=True)
        if q.get("supporting")
    ]
    table.add_row("extractive: Contain-Acc", f"{right}/{len(questions)} = {right / len(questions):.1%}")
    table.add_row(
        "extractive: per question",
        f"{sum(s['steps'] for s in states) / len(states):.1f} steps, {tokens:.0f} tokens, {seconds:.2f} s",
    )
    if seen:
        table.add_row("extractive: gold seen", f"{sum(seen) / len(seen):.1%}")


def _documents(index: Index, chunk_id: str) -> list[str]:
    chunk = index.get(chunk_id)
    return [chunk.document_id] if chunk is not None else []


if __name__ == "__main__":
    main()
