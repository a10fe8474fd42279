"""Measures the speed of every part beside an alternative, in the same run, and prints one table.

    python benchmarks/speed.py [--quick] [--data DIR] [--work DIR] [--json FILE] [--only PART ...] [--sweep]

The alternative is the authors' own code where ARAG_AUTHORS names a checkout of it, and plain loops that do the same
where it does not. The data are corpora as `corpora.py` takes them, made larger by recombining their sentences: texts
of any number, of sentences drawn at random, each with two names that no other text has. Machines have other things to
do: both sides are measured by turns, the best time of each counts, and ratios tell more than times.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from pathlib import Path

from speed_alternative import Alternative
from speed_commands import measure_cold_starts
from speed_data import Data, read_data
from speed_ingestion import (
    measure_again,
    measure_ingestion,
    measure_memory,
    measure_million,
    measure_service,
    measure_splitting,
)
from speed_postgres import measure_postgres
from speed_report import Report, say
from speed_retrieval import measure_import, measure_keywords, measure_semantic, sweep
from speed_scopes import measure_scopes

from arag.models.names import DEFAULT_EMBEDDER
from arag.models.onnx import find_packaged_model

_PARTS = ("commands", "keywords", "semantic", "scopes", "ingestion", "again", "memory", "million", "postgres")
_QUICK_SENTENCES = 500  # as many are embedded in some seconds


def main() -> None:
    """Measure, and print the table."""
    options = _options()
    folder = options.data or Path(__file__).parents[1] / "examples" / "corpus"
    # Threads that wait busily for each other take the time that others' processes give back, at random.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    given = os.environ.get("ARAG_AUTHORS")
    authors = Path(given) if given else None
    report = Report(judging=not options.quick, patience=0.2 if options.quick else 2.0)
    began = time.perf_counter()
    say(f"reading {folder}")
    data = read_data(folder, most_sentences=_QUICK_SENTENCES if options.quick else None)
    with tempfile.TemporaryDirectory() as scratch:
        work = options.work or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        _measure(report, data, authors, work, options)
    with Alternative(authors) as alternative:
        name = alternative.name
    report.notes += [
        f"{name}: {authors}" if authors else "plain loops: set ARAG_AUTHORS to a checkout to run the authors' code",
        f"* beyond the {len(data.sentences):,} real vectors: each mixed of two of them",
        f"{platform.platform()}, {os.cpu_count()} processors, {time.perf_counter() - began:,.0f} s",
    ]
    if options.quick:
        report.notes.append("small sizes, at which fixed costs count: targets are told, and not judged")
    report.print("Speed", name)
    if options.json:
        options.json.write_text(json.dumps(report.as_json(), indent=2) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder of corpora, instead of the examples")
    parser.add_argument("--work", type=Path, help="keep the vectors of the data here, and use them again")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    parser.add_argument("--quick", action="store_true", help="small sizes: less than a minute")
    parser.add_argument("--only", nargs="+", choices=_PARTS, default=_PARTS)
    parser.add_argument("--chunks", nargs="+", type=int, help="sizes for keyword search and opening")
    parser.add_argument("--sentences", nargs="+", type=int, help="sizes for semantic search")
    parser.add_argument("--memory", nargs="+", type=int, metavar="MB", help="sizes for the memory of ingestion")
    parser.add_argument("--sweep", action="store_true", help="measure other parameters of the vector index, too")
    options = parser.parse_args()
    quick = options.quick
    options.chunks = options.chunks or ([300, 6_000] if quick else [1_000, 10_000, 100_000])
    options.sentences = options.sentences or ([500] if quick else [1_000, 4_000, 16_000, 43_000, 100_000])
    options.own_memory = [] if quick or options.memory else [30, 100]  # without Chroma: much less work
    options.memory = options.memory or ([1] if quick else [2, 5])
    return options


def _measure(report: Report, data: Data, authors: Path | None, work: Path, options: argparse.Namespace) -> None:
    quick = options.quick
    model = str(find_packaged_model() or DEFAULT_EMBEDDER.partition(":")[2])
    if "commands" in options.only:
        measure_import(report)
        measure_cold_starts(report, work)
    if "keywords" in options.only:
        measure_keywords(report, data, options.chunks, authors, work)
    if "semantic" in options.only:
        measure_semantic(report, data, options.sentences, authors, work, model=model)
    if options.sweep:
        sweep(report, data, work)
    if "scopes" in options.only:
        measure_scopes(report, data, work, chunks=max(options.chunks))
    if "ingestion" in options.only:
        some = 50 if quick else None
        rates = measure_ingestion(report, data, authors, work, model=model, documents=some, rounds=1 if quick else 2)
        measure_splitting(report, data, rates, characters=100_000 if quick else 1_000_000)
        measure_service(report, data, work, documents=1_000 if quick else 4_000)
    if "again" in options.only:
        measure_again(report, data, work, documents=500 if quick else 10_000)
    if "memory" in options.only:
        measure_memory(report, data, work, sizes=options.memory, own_sizes=options.own_memory)
    if "million" in options.only:
        measure_million(report, data, work, sentences=2_000 if quick else 1_000_000)
    if "postgres" in options.only:
        measure_postgres(report, data, work, chunks=1_000 if quick else 20_000)


if __name__ == "__main__":
    main()
