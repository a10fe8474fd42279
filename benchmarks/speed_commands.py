"""Cold starts: how long commands take in a new process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from speed_alternative import timed
from speed_report import Report, say

from arag.ingest.pipeline import run_ingest

_EXAMPLES = Path(__file__).parents[1] / "examples" / "corpus"
_COMMANDS = {
    "info": ["info"],
    "read": ["read", "places/skellavy.md:0"],
    "search keyword": ["search", "keyword", "ship"],
    "search semantic": ["search", "semantic", "Which ship carried letters?"],
    "ask, the built-in model": ["ask", "Who founded the Emberlane Glassworks?", "--model", "extractive"],
}


def measure_cold_starts(report: Report, work: Path) -> None:
    """Measure five commands on the example corpus, each beside importing sentence-transformers in a new process."""
    say("cold starts")
    folder = work / "examples"
    run_ingest([_EXAMPLES], folder)
    for name, command in _COMMANDS.items():
        best = report.best_of(
            {
                "ours": lambda command=command: timed(_run, ["-m", "arag", *command, "--index", str(folder)]),
                "other": lambda: timed(_run, ["-c", "import sentence_transformers"]),
            }
        )
        report.add("Commands in a new process", name, "s", best["ours"], other=best["other"], beside="import PyTorch")


def _run(arguments: Sequence[str]) -> None:
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)  # noqa: S603
