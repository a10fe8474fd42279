"""One checkout of this project, as `speed.py` compares it with another: only public names, and its own `speed_data`.

DIR/.venv/bin/python benchmarks/speed_side.py DIR
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from speed_orders import carry_out, memory, timed


class _Orders:
    """Carries out orders, and says how long each took."""

    def __init__(self, checkout: Path) -> None:
        sys.path.insert(0, str(checkout / "benchmarks"))
        self._checkout = checkout
        self._index: Any = None

    def make_index(self, texts: str, index: str, vectors: str = "") -> dict[str, Any]:
        """Make an index of the texts in a file: a chunk a line, its sentences separated by tabs."""
        import numpy as np
        from speed_data import make_chunk, make_index

        with Path(texts).open(encoding="utf-8") as lines:
            chunks = (
                make_chunk(number, line.rstrip("\n").split("\t"), embedded=bool(vectors))
                for number, line in enumerate(lines)
            )
            seconds = timed(make_index, index, chunks, np.load(vectors) if vectors else None)
        return {"seconds": seconds, "size": _size(Path(index))}

    def open(self, index: str) -> dict[str, Any]:
        """Open an index; the one before is closed."""
        from arag import open_index

        if self._index is not None:
            self._index.close()
        began = time.perf_counter()
        self._index = open_index(index)
        return {"seconds": time.perf_counter() - began}

    def keyword(self, keywords: list[str]) -> dict[str, Any]:
        """Search by keywords, with the paper's score."""
        began = time.perf_counter()
        found = self._index.keyword_search(keywords)
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "ids": [hit.chunk_id for hit in found.hits], "memory": memory()}

    def semantic(self, vectors: str, number: int) -> dict[str, Any]:
        """Search by the vector of this number in a file."""
        import numpy as np

        vector = np.load(vectors, mmap_mode="r")[number].astype(np.float32)
        self._index._embed = lambda _: vector  # noqa: SLF001 - embedding is another measurement
        began = time.perf_counter()
        found = self._index.semantic_search("-", 15)
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "ids": [hit.chunk_id for hit in found.hits], "memory": memory()}

    def ingest(self, files: list[str], index: str) -> dict[str, Any]:
        """Ingest files with the default embedder, in a process of its own."""
        command = [sys.executable, __file__, "ingest", index, *files]
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
        whole = time.perf_counter() - began
        seconds, peak, sentences = map(float, done.stdout.split()[-3:])
        return {
            "seconds": seconds,
            "process": whole,
            "peak": peak,
            "sentences": sentences,
            "size": _size(Path(index)),
        }

    def command(self, arguments: list[str]) -> dict[str, Any]:
        """Run `arag` with these arguments."""
        command = [sys.executable, "-m", "arag", *arguments]
        environment = {**os.environ, "ARAG_MODEL": "extractive"}
        options: dict[str, Any] = {"env": environment, "cwd": self._checkout, "capture_output": True}
        return {"seconds": timed(lambda: subprocess.run(command, check=True, **options))}  # noqa: S603


def _ingest(index: str, files: list[str]) -> None:
    from arag import run_ingest
    from arag.models.embedders import load_embedder

    embedder = load_embedder(None)
    embedder.load()
    began = time.perf_counter()
    summary = run_ingest(files, index, embedder=embedder)
    print(time.perf_counter() - began, memory().get("peak", 0), summary.embedded)


def _size(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6 if folder.is_dir() else 0.0


if __name__ == "__main__":
    if sys.argv[1] == "ingest":
        _ingest(sys.argv[2], sys.argv[3:])
    else:
        carry_out(_Orders(Path(sys.argv[1])))
