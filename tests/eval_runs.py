"""What tests of experiments share: questions over the small index, models that play their part, and runs of both."""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from langchain_core.messages import AIMessage, convert_to_messages

from arag.evaluation.cache import CallCache, Store
from arag.evaluation.datasets import Question
from arag.evaluation.methods import find_methods, make_method
from arag.evaluation.records import RecordFile
from arag.evaluation.run_context import RunContext
from arag.evaluation.runs import answer_questions, prepare
from arag.models.chat import load_model
from openai_server import chat
from scripted import call

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
    model = load(server.url)
    cached = model.model_copy(update={"cache": CallCache(ledger, ledger, limit)})
    lab = RunContext(index, cached, kept, judge=cached if judged else None, **options)
    method = make_method(find_methods([name])[name], {})
    prepared, _ = prepare(method, lab, model.model_copy(update={"cache": CallCache(kept, ledger, limit)}))
    file = RecordFile(folder / f"{name}.jsonl")
    for _ in answer_questions(method, lab, prepared, asked, file):
        pass
    return file.read()


# --- a model for every method ---

NAMES = re.compile(r"\b[A-Z][a-z]+(?: (?:the )?[A-Z][a-z]+)*")


def extract(text):
    names = list(dict.fromkeys(NAMES.findall(text.partition("<")[2])))[:6]
    return {
        "entities": [{"name": name, "type": "person", "description": f"{name} is in it."} for name in names],
        "relationships": [
            {"source": a, "target": b, "description": "They are related.", "strength": 5}
            for a, b in itertools.pairwise(names)
        ],
    }


def triples(text):
    names = list(dict.fromkeys(NAMES.findall(text)))[:6]
    return {"triples": [[a, "knew", b] for a, b in itertools.pairwise(names)]}


ROLES = {  # by the beginning of the task
    "You turn a text into a knowledge graph": extract,
    "You are given descriptions": lambda _: "One description of all.",
    "You report on a community": lambda _: {
        "title": "Counts", "summary": "They were counts.", "rating": 5, "rating_explanation": "",
        "findings": [{"summary": "Boso", "explanation": "He was a count of Arles."}],
    },
    "You read reports on parts": lambda _: {"points": [{"description": "Boso was a count.", "score": 80}]},
    "You answer a question about a whole corpus": lambda _: "Boso.",
    "List the entities": lambda text: {"entities": NAMES.findall(text)[:6]},
    "Write down the facts": triples,
    "Choose the facts": lambda _: {"keep": [1, 2]},
    "You plan how": lambda text: {"steps": [f"Who was his wife? {text}", f"Who was her father? {text}"]},
    "You prepare one step": lambda text: {"type": "question", "task": text[-200:]},
    "You take notes": lambda text: text[-60:],
    "You answer a question from notes": lambda _: {"analysis": "a", "answer": "Boso", "success": True, "rating": 9},
    "You give the final answer": lambda _: {"answer": "Boso", "score": 8, "solved": True},
    "You list the facts": lambda _: {"facts": ["Whom Lothair II married.", "Who her father was."]},
    "You write the background": lambda _: "Lothair II was a king. He married Teutberga.",
    "You take a passage apart": lambda _: {"facts": ["Lothair II was a king.", "He married Teutberga."]},
    "You answer a question from passages of a corpus, which may": lambda _: {"reason": "r", "answer": "Boso"},
    "You answer a question from one document": lambda _: "Boso.",
    "You judge": lambda text: {"grade": len(text) % 11},
    "You answer a question from numbered documents: first": lambda _: "Boso [1]. He was a count [2].",
    "You check whether": lambda text: {
        "components": [{"question": "Who?", "status": "partial"}],
        "irrelevant_claims": [2],
        "follow_ups": [f"Who was Teutberga? {text[:30]}"],
    },
    "You answer a question from numbered documents, in": lambda _: {"answer": "His daughter [1].", "found": True},
    "You work a finding": lambda _: "Boso [1].",
}  # fmt: skip


def play(messages: list[Any]) -> Any:
    """Return the reply of a model that knows the task of every prompt of every method."""
    for beginning, reply in ROLES.items():
        if messages[0].text.startswith(beginning):
            return reply(messages[-1].text)
    if messages[0].text.startswith("Answer questions from a corpus") and messages[-1].type == "human":
        tool = "keyword_search" if "keyword_search" in messages[0].text else "semantic_search"
        return call(tool, "1", **({"keywords": ["Boso"]} if tool == "keyword_search" else {"query": "Boso"}))
    return "It follows from [boso:0].\nAnswer: Boso"


def reply_in_role(request: dict[str, Any]) -> dict[str, Any]:
    """Return what a server replies that plays a model for every method."""
    reply = play(convert_to_messages(request["messages"]))
    if isinstance(reply, AIMessage):
        calls = [(made["id"], made["name"], json.dumps(made["args"])) for made in reply.tool_calls]
        return {**chat(None, *calls), "model": "gpt-5-mini"}
    return {**chat(reply if isinstance(reply, str) else json.dumps(reply)), "model": "gpt-5-mini"}
