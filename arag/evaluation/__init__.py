"""The paper's experiments: data, methods, runs, scores, reports.

Example:
    from arag.evaluation import run_experiment

    for record in run_experiment("questions.json", "my-index", ["arag", "naive-rag"], model="openai:gpt-5-mini"):
        print(record["method"], record["question"], record["prediction"])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arag.evaluation.datasets import Question as Question
    from arag.evaluation.datasets import load_questions as load_questions
    from arag.evaluation.experiment import ExperimentRecord as ExperimentRecord
    from arag.evaluation.experiment import run_experiment as run_experiment
    from arag.evaluation.method import Answer as Answer
    from arag.evaluation.method import Method as Method
    from arag.evaluation.method import Session as Session
    from arag.evaluation.records import Record as Record
    from arag.evaluation.records import load_records as load_records

# Names are imported on first use: the command line imports this package at every start.
_HOMES = {
    "Answer": "arag.evaluation.method",
    "ExperimentRecord": "arag.evaluation.experiment",
    "Method": "arag.evaluation.method",
    "Question": "arag.evaluation.datasets",
    "Record": "arag.evaluation.records",
    "Session": "arag.evaluation.method",
    "load_questions": "arag.evaluation.datasets",
    "load_records": "arag.evaluation.records",
    "run_experiment": "arag.evaluation.experiment",
}
__all__ = list(_HOMES)


def __dir__() -> list[str]:
    return sorted(_HOMES)


if not TYPE_CHECKING:  # with this function, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'arag.evaluation' has no attribute {name!r}")
        return globals().setdefault(name, getattr(import_module(_HOMES[name]), name))
