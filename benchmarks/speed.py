"""Compares the speed of this checkout with another one's, and with the authors' code, in one run.

    python benchmarks/speed.py [--against DIR] [--data DIR] [--work DIR] [--json FILE] [--only PART ...] [--quick]

`--against` names another checkout of this project with a `.venv` of its own. The other alternative is the authors' own
code where ARAG_AUTHORS names a checkout of it, and plain loops that do the same where it does not. The data are corpora
as `corpora.py` takes them, made larger by recombining their sentences. Machines have other things to do: the sides are
measured by turns, the best time of each counts, and ratios tell more than times.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from speed_data import Data, mixed_vectors, name, read_data, real_vectors, recombined, write_chunks_file
from speed_orders import Side

from arag.models.names import DEFAULT_EMBEDDER
from arag.models.onnx import find_packaged_model

PARTS = ("commands", "keywords", "semantic", "ingestion", "million")
ROUNDS = 7
_OURS = "ours"
_QUERIES = 40
_SENTENCES_PER_CHUNK = 30


@dataclass
class Row:
    """One figure, of each side that has it."""

    figure: str
    unit: str
    values: dict[str, float] = field(default_factory=dict)

    def ratio(self, side: str) -> str:
        """Return how many times ours is as good: smaller figures are better."""
        ours = self.values.get(_OURS)
        return f"{self.values[side] / ours:.2f}" if ours and side in self.values else ""


class Bench:
    """The sides, the data, and the figures so far."""

    def __init__(self, data: Data, work: Path, checkouts: dict[str, Side], other: Side) -> None:
        self.data = data
        self.work = work
        self.checkouts = checkouts
        self.other = other
        self.rows: list[Row] = []

    def add(self, figure: str, unit: str, values: dict[str, float]) -> None:
        """Add a figure."""
        self.rows.append(Row(figure, unit, values))
        print(figure, {side: round(value, 4) for side, value in values.items()}, unit, file=sys.stderr, flush=True)

    def folder(self, side: str, what: str) -> str:
        """Return an empty place for a side's index."""
        folder = self.work / f"{what}-{side}"
        shutil.rmtree(folder, ignore_errors=True)
        return str(folder)


def measure_commands(bench: Bench) -> None:
    """Measure commands from cold, on the examples."""
    corpus = str(Path(__file__).parents[1] / "examples" / "corpus")
    indexes = {side: bench.folder(side, "examples") for side in bench.checkouts}
    for side, checkout in bench.checkouts.items():
        checkout.ask("ingest", files=[corpus], index=indexes[side])
    commands = {
        "arag info": ["info"],
        "arag read": ["read", "places/skellavy.md:0"],
        "arag search keyword": ["search", "keyword", "Skellavy"],
        "arag search semantic": ["search", "semantic", "Which island lies furthest to the north?"],
    }
    for shown, arguments in commands.items():
        best: dict[str, float] = {}
        for _ in range(3):
            for side, checkout in bench.checkouts.items():
                seconds = checkout.ask("command", arguments=[*arguments, "--index", indexes[side]])["seconds"]
                best[side] = min(best.get(side, seconds), seconds)
        bench.add(f"cold: {shown}", "s", best)


def measure_keywords(bench: Bench, sizes: Sequence[int]) -> None:
    """Measure keyword searches with the paper's score, beside the authors' (paper, Equation 1)."""
    common = max(bench.data.sentences, key=len).split()
    words = sorted({word.strip(".,") for word in common if len(word) > 6 and word.isalpha()})[:2] or [
        "island",
        "harbour",
    ]
    searches = {"a rare name": [name(84)], "three words": [name(84), *words], "the": ["the"], "nowhere": ["zzyzxqua"]}
    for size in sizes:
        texts = bench.work / f"texts-{size}.tsv"
        _write_texts(texts, islice(recombined(bench.data.sentences), size))
        indexes = {side: bench.folder(side, f"keywords-{size}") for side in bench.checkouts}
        for side, checkout in bench.checkouts.items():
            checkout.ask("make_index", texts=str(texts), index=indexes[side])
            checkout.ask("open", index=indexes[side])
        chunks = bench.work / f"chunks-{size}.json"
        with texts.open(encoding="utf-8") as lines:
            write_chunks_file(
                chunks, ((f"d{n}:0", line.rstrip("\n").replace("\t", " ")) for n, line in enumerate(lines))
            )
        bench.other.ask("keyword_load", chunks=str(chunks))
        for shown, keywords in searches.items():
            best = {}
            ids = {}
            for turn in range(ROUNDS):
                for side, checkout in bench.checkouts.items():
                    answer = checkout.ask("keyword", keywords=keywords)
                    best[side] = min(best.get(side, 9e9), 1_000 * answer["seconds"])
                    ids[side] = answer["ids"]
                if turn < 2:
                    seconds = bench.other.ask("keyword", keywords=keywords)["seconds"]
                    best[bench.other.name] = min(best.get(bench.other.name, 9e9), 1_000 * seconds)
            assert len({tuple(found) for found in ids.values()}) == 1, f"different results for {keywords}: {ids}"
            bench.add(f"keywords, {size:,} chunks: {shown}", "ms", best)
        bench.add(f"keywords, {size:,} chunks: memory", "MB", _memory(bench, "keyword", keywords=["the"]))


def measure_semantic(bench: Bench, sizes: Sequence[int]) -> None:
    """Measure semantic searches without the time for embedding the query, and what share of the nearest is found."""
    real = real_vectors(bench.data.sentences[:40_000], bench.work, "sentences")
    questions = real_vectors(bench.data.questions[:_QUERIES], bench.work, "questions")
    queries = bench.work / "queries.npy"
    np.save(queries, questions)
    for size in sizes:
        vectors = np.concatenate([real, mixed_vectors(real, size - len(real))]) if size > len(real) else real[:size]
        file, texts = bench.work / f"vectors-{size}.npy", bench.work / f"sentences-{size}.tsv"
        np.save(file, vectors)
        groups = [range(at, min(at + _SENTENCES_PER_CHUNK, size)) for at in range(0, size, _SENTENCES_PER_CHUNK)]
        _write_texts(texts, ([f"Sentence {number}." for number in group] for group in groups))
        made, sizes_on_disk, best, found = {}, {}, {}, {}
        for side, checkout in bench.checkouts.items():
            index = bench.folder(side, f"semantic-{size}")
            answer = checkout.ask("make_index", texts=str(texts), index=index, vectors=str(file))
            made[side], sizes_on_disk[side] = answer["seconds"], answer["size"]
            checkout.ask("open", index=index)
        for number in range(len(questions)):
            for side, checkout in bench.checkouts.items():
                answers = [checkout.ask("semantic", vectors=str(queries), number=number) for _ in range(3)]
                best.setdefault(side, []).append(min(1_000 * answer["seconds"] for answer in answers))
                found.setdefault(side, []).append(answers[0]["ids"])
        exact = [_nearest_chunks(vectors, question) for question in questions]
        label = f"by meaning, {size:,} sentences"
        bench.add(f"{label}: a search", "ms", {side: float(np.median(times)) for side, times in best.items()})
        bench.add(f"{label}: not among the 15 nearest", "%", {side: _missed(exact, ids) for side, ids in found.items()})
        bench.add(f"{label}: memory", "MB", _memory(bench, "semantic", vectors=str(queries), number=0))
        bench.add(f"{label}: writing the index", "s", made)
        bench.add(f"{label}: size on disk", "MB", sizes_on_disk)


def measure_ingestion(bench: Bench, corpus: Path) -> None:
    """Measure ingestion with the default embedder: a first time, unchanged, and with 1% of the documents changed."""
    records = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    changed = [{**r, "text": f"{r['text']} It was changed."} if n % 100 == 0 else r for n, r in enumerate(records)]
    runs = {"first": records, "unchanged": records, "1% changed": changed}
    indexes = {side: bench.folder(side, "ingestion") for side in bench.checkouts}
    for run, documents in runs.items():
        file = bench.work / "corpus.jsonl"
        file.write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")
        answers = {s: c.ask("ingest", files=[str(file)], index=indexes[s]) for s, c in bench.checkouts.items()}
        seconds = {side: answer["seconds"] for side, answer in answers.items()}
        if run == "first":
            chunks = bench.work / "chunks.json"
            write_chunks_file(chunks, ((record["id"], record["text"]) for record in records))
            model = str(find_packaged_model() or DEFAULT_EMBEDDER.partition(":")[2])
            answer = bench.other.ask(
                "build_index", chunks=str(chunks), folder=bench.folder("other", "ingestion"), model=model
            )
            seconds[bench.other.name] = answer["seconds"]
        bench.add(f"ingestion of {corpus.parent.name}: {run}", "s", seconds)
        bench.add(f"ingestion of {corpus.parent.name}: {run}, memory", "MB", {s: a["peak"] for s, a in answers.items()})
        bench.add(f"ingestion of {corpus.parent.name}: {run}, size", "MB", {s: a["size"] for s, a in answers.items()})


def _write_texts(file: Path, texts: Iterator[list[str]]) -> None:
    with file.open("w", encoding="utf-8") as out:
        out.writelines("\t".join(" ".join(sentence.split()) for sentence in text) + "\n" for text in texts)


def _memory(bench: Bench, order: str, **values: Any) -> dict[str, float]:
    return {side: checkout.ask(order, **values)["memory"].get("now", 0.0) for side, checkout in bench.checkouts.items()}


def _nearest_chunks(vectors: np.ndarray, query: np.ndarray) -> list[str]:
    best = dict.fromkeys(place // _SENTENCES_PER_CHUNK for place in np.argsort(-(vectors @ query))[:1_000].tolist())
    return [f"d{chunk}:0" for chunk in list(best)[:15]]


def _missed(exact: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> float:
    """Return the share of the nearest chunks that was not found, in percent."""
    shares = [len(set(nearest) - set(ids)) / len(nearest) for nearest, ids in zip(exact, found, strict=True)]
    return 100 * sum(shares) / len(shares)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="another checkout of this project, with a .venv")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[1] / "examples", help="a folder of corpora")
    parser.add_argument("--work", type=Path, help="keep the vectors of the data here, and use them again")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    parser.add_argument("--quick", action="store_true", help="small sizes: a minute or two")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS[:-1])
    return parser.parse_args()


def main() -> None:
    """Measure, and print the table."""
    options = _options()
    here = Path(__file__).parent
    data = read_data(options.data, most_sentences=500 if options.quick else None)
    authors = os.environ.get("ARAG_AUTHORS")
    other = [sys.executable, here / "speed_alternative.py", *(["--authors", authors] if authors else [])]
    interpreters = {_OURS: (Path(sys.executable), here.parent)}
    if options.against:
        interpreters["before"] = (options.against / ".venv" / "bin" / "python", options.against)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        work = (options.work or Path(scratch)).absolute()
        work.mkdir(parents=True, exist_ok=True)
        checkouts = {
            side: stack.enter_context(Side(side, [python, here / "speed_side.py", checkout]))
            for side, (python, checkout) in interpreters.items()
        }
        source = {"PYTHONPATH": str(Path(authors) / "src")} if authors else {}
        alternative = stack.enter_context(Side("authors" if authors else "plain loops", other, source))
        bench = Bench(data, work, checkouts, alternative)
        if "commands" in options.only:
            measure_commands(bench)
        if "keywords" in options.only:
            measure_keywords(bench, [600] if options.quick else [12_000, 100_000])
        if "semantic" in options.only:
            measure_semantic(bench, [500] if options.quick else [16_000, 100_000])
        if "million" in options.only:
            measure_semantic(bench, [1_000_000])
        if "ingestion" in options.only:
            corpora = {n: path for n, path in data.corpora.items() if path.suffix == ".jsonl"}
            if corpora:
                measure_ingestion(bench, corpora.get("hotpotqa", next(iter(corpora.values()))))
    sides = list(dict.fromkeys(side for row in bench.rows for side in row.values))
    table = Table("", *sides, *(f"ours to {side}" for side in sides[1:]), "unit")
    for row in bench.rows:
        shown = [f"{row.values[side]:,.3g}" if side in row.values else "" for side in sides]
        table.add_row(row.figure, *shown, *(row.ratio(side) for side in sides[1:]), row.unit)
    Console(width=160).print(table)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in bench.rows], indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
