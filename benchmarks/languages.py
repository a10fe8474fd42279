"""Measures how often searches by meaning find a fact that is written in the question's language, or in another one.

    python benchmarks/languages.py [--embedder NAME ...]

`examples/languages/facts.tsv` tells 25 invented facts in eight languages, and asks a question about each in each
language. A question searches the 25 documents of one language: of its own, and of each other one. It also searches all
200, where any document with the fact is right.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

from arag.ingest.pipeline import ingest
from arag.models.names import ENGLISH_EMBEDDER, MULTILINGUAL_EMBEDDER
from arag.retrieval.index import Index

FACTS = Path(__file__).parent.parent / "examples" / "languages" / "facts.tsv"
TOP_K = 5


@dataclass(frozen=True)
class Fact:
    """A fact in one language."""

    fact: str
    language: str
    title: str
    text: str
    question: str

    @property
    def id(self) -> str:
        """The id of its document."""
        return f"{self.language}/{self.fact}"


def read_facts() -> list[Fact]:
    """Return all facts in all languages."""
    with FACTS.open(encoding="utf-8", newline="") as lines:
        return [Fact(**row) for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]


def find_rank(index: Index, fact: Fact) -> int:
    """Return the rank of the first document with a question's fact, from 1; a large number if it is not found."""
    for rank, hit in enumerate(index.semantic_search(fact.question, TOP_K).hits, start=1):
        if hit.chunk.document_id.endswith(f"/{fact.fact}"):
            return rank
    return TOP_K + 1


def measure(facts: Sequence[Fact], embedder: str, folder: Path) -> Table:
    """Make an index of the facts and return the share of questions whose fact is first, and among the first five."""
    languages = list(dict.fromkeys(fact.language for fact in facts))
    documents = [{"id": fact.id, "title": fact.title, "text": fact.text} for fact in facts]
    ranks: dict[tuple[str, str], list[int]] = defaultdict(list)
    with ingest(documents, folder, embedder=embedder) as index:
        for target in languages:
            part = index.limited_to([fact.id for fact in facts if fact.language == target])
            for fact in facts:
                kind = "same language" if fact.language == target else "each other language"
                ranks[fact.language, kind].append(find_rank(part, fact))
        for fact in facts:
            ranks[fact.language, "all documents"].append(find_rank(index, fact))
    return _make_table(embedder, languages, ranks)


def _make_table(title: str, languages: Sequence[str], ranks: dict[tuple[str, str], list[int]]) -> Table:
    kinds = list(dict.fromkeys(kind for _, kind in ranks))
    table = Table("question", *kinds, title=title)
    for language in languages:
        table.add_row(language, *(_share(ranks[language, kind]) for kind in kinds))
    totals = []
    for kind in kinds:
        every: list[int] = []
        for language in languages:
            every += ranks[language, kind]
        totals.append(_share(every))
    table.add_row("all", *totals)
    return table


def _share(ranks: Sequence[int]) -> str:
    first = mean(rank == 1 for rank in ranks)
    among = mean(rank <= TOP_K for rank in ranks)
    return f"{first:.2f} / {among:.2f}"


def main() -> None:
    """Measure embedders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder", action="append", help="by default, both that run without PyTorch")
    options = parser.parse_args()
    for embedder in options.embedder or (ENGLISH_EMBEDDER, MULTILINGUAL_EMBEDDER):
        with tempfile.TemporaryDirectory() as scratch:
            Console(width=100).print(measure(read_facts(), embedder, Path(scratch) / "index"))


if __name__ == "__main__":
    main()
