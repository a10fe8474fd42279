"""What can be measured in a fresh process only; prints what it has measured as JSON.

python benchmarks/speed_fresh.py import
python benchmarks/speed_fresh.py open INDEX [KEYWORD]
python benchmarks/speed_fresh.py semantic INDEX QUERY
python benchmarks/speed_fresh.py ingest FILE INDEX [without-chroma]
python benchmarks/speed_fresh.py shared FILE INDEX [SECONDS]
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from speed_alternative import memory


def fresh(*arguments: str | Path) -> dict[str, Any]:
    """Run this file in a process of its own."""
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure_import() -> dict[str, Any]:
    """Import the package."""
    began = time.perf_counter()
    import arag

    return {"seconds": time.perf_counter() - began, "name": arag.__name__}


def measure_open(folder: str, keyword: str = "") -> dict[str, Any]:
    """Import what opens an index, open one and, with a keyword, search once."""
    began = time.perf_counter()
    from arag import open_index

    imported = time.perf_counter()
    before = memory()
    index = open_index(folder)
    opened = time.perf_counter()
    if keyword:
        index.keyword_search(keyword)
    searched = time.perf_counter()
    return {
        "import": imported - began,
        "open": opened - imported,
        "search": searched - opened,
        "seconds": searched - began,
        "before": before,
        "memory": memory(),
    }


def measure_semantic(folder: str, query: str) -> dict[str, Any]:
    """Open an index and search by meaning twice: the first loads the model and the vectors."""
    began = time.perf_counter()
    from arag import open_index

    index = open_index(folder)
    index.semantic_search(query)
    first = time.perf_counter()
    index.semantic_search(query)
    return {"seconds": first - began, "second": time.perf_counter() - first, "memory": memory()}


def measure_ingest(file: str, folder: str, without_chroma: str = "") -> dict[str, Any]:
    """Ingest a file with an embedder that costs nothing, with or without Chroma's part."""
    from speed_data import FreeEmbeddings

    from arag.ingest.pipeline import run_ingest
    from arag.retrieval.local.next_vectors import NextVectors

    embedder = FreeEmbeddings()
    before = memory()
    if without_chroma:
        NextVectors.go_on = lambda *_: None  # type: ignore[assignment, method-assign]
        NextVectors.finish = lambda *_: None  # type: ignore[assignment, method-assign]
    began = time.perf_counter()
    summary = run_ingest(file, folder, embedder=embedder)  # type: ignore[arg-type]
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "sentences": summary.sentences, "before": before, "memory": memory()}


def measure_shared(file: str, path: str, seconds: str = "0") -> dict[str, Any]:
    """Ingest a file, maybe together with others, with an embedder that takes so many seconds for a sentence.

    Of each publication in PostgreSQL, it also measures how long others had to wait, and after how long readers see it.
    """
    from unittest.mock import patch

    from speed_data import ClusteredEmbeddings

    from arag.ingest.pipeline import run_ingest
    from arag.retrieval.postgres.draft import PostgresDraft
    from arag.retrieval.postgres.workers import Worker

    times: dict[str, float] = {}
    published: list[tuple[float, float]] = []
    publish, hold, delete = PostgresDraft.publish, Worker.hold_publication, PostgresDraft._delete_gone  # noqa: SLF001

    def publishing(self: Any, *values: Any, **options: Any) -> bool:
        times["begun"] = time.perf_counter()
        return publish(self, *values, **options)

    def holding(self: Any) -> None:
        hold(self)
        times["held"] = time.perf_counter()

    def deleting(self: Any, *values: Any) -> None:
        if "held" in times:
            now = time.perf_counter()
            published.append((now - times.pop("held"), now - times["begun"]))
        delete(self, *values)

    embedder = ClusteredEmbeddings(float(seconds))
    with (
        patch.object(PostgresDraft, "publish", publishing),
        patch.object(Worker, "hold_publication", holding),
        patch.object(PostgresDraft, "_delete_gone", deleting),
    ):
        began = time.perf_counter()
        run_ingest(file, path, embedder=embedder)  # type: ignore[arg-type]
        return {"seconds": time.perf_counter() - began, "published": published}


if __name__ == "__main__":
    measures: dict[str, Callable[..., dict[str, Any]]] = {
        "import": measure_import,
        "open": measure_open,
        "semantic": measure_semantic,
        "ingest": measure_ingest,
        "shared": measure_shared,
    }
    print(json.dumps(measures[sys.argv[1]](*sys.argv[2:])))
