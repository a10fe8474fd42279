"""What tests of experiments share: questions over the small index, a server that plays a model, and a run of both."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from arag.evaluation.budget import Budget
from arag.evaluation.cache import CallCache, Store
from arag.evaluation.datasets import Question
from arag.evaluation.judge import Judge
from arag.evaluation.method import Lab
from arag.evaluation.methods import find_methods, make_method
from arag.evaluation.runs import RecordFile, answer_questions, prepare
from arag.models.chat import load_model
from openai_server import chat

STEPS = 3
VERDICT = '{"reason": "It is so.", "correct": true}'


def questions(count: int) -> list[Question]:
    """Return questions, each with its number in its text."""
    return [
        Question(
            f"q{n}", f"Question number {n}: who was the father of Teutberga?", "Boso the Elder", ("Boso",), ("boso",)
        )
        for n in range(count)
    ]


@dataclass
class Replies:
    """A model that searches twice and answers; as a judge it finds everything correct.

    Attributes:
        seconds: How long it takes for a reply.
        instead: What comes in place of replies, by the number of the request.
        asked: How often each step of each question was asked for; the judge's step is "judge".
    """

    seconds: float = 0.0
    instead: dict[int, Any] = field(default_factory=dict)
    asked: Counter[Any] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, number: int, request: dict[str, Any]) -> Any:
        time.sleep(self.seconds)
        if number in self.instead:
            return self.instead[number]
        judging = "You judge" in request["messages"][0]["content"]
        step = "judge" if judging else sum(message["role"] == "assistant" for message in request["messages"])
        with self._lock:
            self.asked[number_of(request), step] += 1
        return {**(chat(VERDICT) if judging else self._reply(step)), "model": "gpt-5-mini"}

    def _reply(self, step: int) -> dict[str, Any]:
        if step < STEPS - 1:
            return chat(None, (f"c{step}", "keyword_search", json.dumps({"keywords": ["Teutberga", f"word{step}"]})))
        return chat("Boso the Elder [boso:0]")


def number_of(request: dict[str, Any]) -> int:
    """Return the number of the question that a request is about."""
    text = next(message["content"] for message in request["messages"] if message["role"] == "user")
    return int(re.search(r"number (\d+)", text)[1])


@cache
def load(url: str, max_retries: int = 0):
    """Return a model of a server."""
    return load_model(f"openai:gpt-5-mini@{url}", max_retries=max_retries)


def answer(index, server, asked: list[Question], folder, *, name="arag", judged=False, limit=None, **options: Any):
    """Answer questions with a method, as `arag eval run` does; return the records."""
    kept, ledger = Store(folder / "index.methods"), Store(folder)
    check = Budget([ledger], limit).check
    model = load(server.url)
    lab = Lab(index, model.model_copy(update={"cache": CallCache(ledger, ledger, check)}), kept, **options)
    method = make_method(find_methods([name])[name], {})
    prepared, _ = prepare(method, lab, model.model_copy(update={"cache": CallCache(kept, ledger, check)}))
    file = RecordFile(folder / f"{name}.jsonl")
    answer_questions(method, lab, prepared, asked, file, Judge(lab.model, "a judge") if judged else None)
    return file.read()
