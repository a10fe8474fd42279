"""Times the authors' code, and prints seconds as JSON. It runs with CHECKOUT/src in PYTHONPATH.

    python benchmarks/authors.py CHECKOUT keywords CHUNKS SEARCHES
    python benchmarks/authors.py CHECKOUT ingestion CHUNKS FOLDER MODEL

CHUNKS is a file of chunks in their format, SEARCHES a JSON list of lists of keywords. The authors' package has the name
of this one: here, theirs is imported, and nothing of ours.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path

import arag
from arag.core.context import AgentContext

ROUNDS = 2


def time_keywords(chunks: str, searches: str) -> list[float]:
    """Return the seconds of each search, the best of two."""
    from arag.tools.keyword_search import KeywordSearchTool

    tool = KeywordSearchTool(chunks)
    return [
        min(seconds(lambda: tool.execute(AgentContext(), keywords=keywords)) for _ in range(ROUNDS))  # noqa: B023
        for keywords in json.loads(searches)
    ]


def time_ingestion(checkout: Path, chunks: str, folder: str, model: str) -> float:
    """Return the seconds of building an index, with the loading of their model and libraries."""
    build_index = runpy.run_path(str(checkout / "scripts" / "build_index.py"))["build_index"]
    return seconds(lambda: build_index(chunks, folder, model))


def seconds(work: Callable[[], object]) -> float:
    """Return how many seconds some work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    """Time one case."""
    checkout, case, *arguments = sys.argv[1:]
    if Path(checkout).resolve() not in Path(arag.__file__ or "").resolve().parents:
        raise SystemExit(f"{arag.__file__} was imported in place of the package in {checkout}")
    # What libraries print must not come before the result.
    result = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    times = time_keywords(*arguments) if case == "keywords" else time_ingestion(Path(checkout), *arguments)
    result.write(json.dumps(times))


if __name__ == "__main__":
    main()
