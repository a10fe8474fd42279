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
from arag.evaluation.datasets import Question
from arag.evaluation.methods import method
from arag.evaluation.records import RecordFile, update_price
from arag.evaluation.runs import Runner
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
        judging: Whether it is asked as a judge.
        instead: What comes in place of replies, by the number of the request.
        asked: How often each step of each question was asked for.
        most: How many requests there were at once, at most.
    """

    seconds: float = 0.0
    judging: bool = False
    instead: dict[int, Any] = field(default_factory=dict)
    asked: Counter[tuple[int, int]] = field(default_factory=Counter)
    most: int = 0
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, number: int, request: dict[str, Any]) -> Any:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            time.sleep(self.seconds)
            if number in self.instead:
                return self.instead[number]
            step = sum(message["role"] == "assistant" for message in request["messages"])
            with self._lock:
                self.asked[number_of(request), step] += 1
            return {**self._reply(step), "model": "gpt-5-mini"}
        finally:
            with self._lock:
                self._now -= 1

    def _reply(self, step: int) -> dict[str, Any]:
        if self.judging:
            return chat(VERDICT)
        if step < STEPS - 1:
            return chat(None, (f"c{step}", "keyword_search", json.dumps({"keywords": ["Teutberga", f"word{step}"]})))
        return chat("Boso the Elder [boso:0]")


def number_of(request: dict[str, Any]) -> int:
    """Return the number of the question that a request is about."""
    text = next(message["content"] for message in request["messages"] if message["role"] == "user")
    return int(re.search(r"number (\d+)", text)[1])


def load(server, max_retries: int = 0):
    """Return a model of a server."""
    return _load(server.url, max_retries)


@cache
def _load(url: str, max_retries: int):
    return load_model(f"openai:gpt-5-mini@{url}", max_retries=max_retries)


def runner(index, model, **options: Any) -> Runner:
    """Return what runs A-RAG."""
    return Runner(method("arag"), index, model, **options)


def answer(index, server, asked: list[Question], file, **options: Any) -> dict[str, Any]:
    """Answer questions with A-RAG; return the records. What they have cost before is a part of a `max_cost`."""
    if "max_cost" in options:
        options["budget"] = budget(options.pop("max_cost"), file)
    runner(index, load(server), **options).run(asked, RecordFile(file))
    return RecordFile(file).read()


def budget(limit: float, file) -> Budget:
    """Return a budget that counts what the records in a file have cost."""
    made = Budget(limit)
    for record in RecordFile(file).read().values():
        made.count(update_price(record))
    return made
