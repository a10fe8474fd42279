"""Every method, asked again after its records are gone, gives the same answers without a single call."""

import itertools
import re

import pytest

from arag.evaluation.datasets import Question
from arag.evaluation.methods import all_methods, make_method
from arag.evaluation.runs import RecordFile, answer_questions, prepare
from lab import make_lab
from scripted import call

pytest_plugins = ["graph_fixtures"]

NAMES = re.compile(r"\b[A-Z][a-z]+(?: (?:the )?[A-Z][a-z]+)*")
QUESTIONS = [
    Question("q1", "Who was the father of the wife of Lothair II?", "Boso the Elder"),
    Question("q2", "Of which town was Boso the Elder a count?", "Arles"),
]


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
    "You are given one batch of reports": lambda _: {"points": [{"description": "Boso was a count.", "score": 50}]},
    "List the entities": lambda text: {"entities": NAMES.findall(text)[:6]},
    "Write down the facts": triples,
    "Choose the facts": lambda _: {"keep": [1, 2]},
    "You plan how": lambda _: {"analysis": "a", "steps": ["Who was his wife?", "Who was her father?"]},
    "You prepare one step": lambda text: {"type": "question", "task": text[-80:]},
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
    "You check whether": lambda _: {
        "components": [{"question": "Who?", "status": "partial"}],
        "irrelevant_claims": [2],
        "follow_ups": ["Who was Teutberga?"],
    },
    "You answer a question from numbered documents, in": lambda _: {"answer": "His daughter [1].", "found": True},
    "You work a finding": lambda _: "Boso [1].",
}  # fmt: skip


def play(messages):
    for beginning, reply in ROLES.items():
        if messages[0].text.startswith(beginning):
            return reply(messages[-1].text)
    if messages[0].text.startswith("Answer questions from a corpus") and messages[-1].type == "human":
        tool = "keyword_search" if "keyword_search" in messages[0].text else "semantic_search"
        return call(tool, "1", **({"keywords": ["Boso"]} if tool == "keyword_search" else {"query": "Boso"}))
    return "It follows from [boso:0].\nAnswer: Boso"


@pytest.mark.parametrize("name", all_methods())
def test_what_a_method_has_paid_for_is_never_asked_for_again(name, small_index, tmp_path):
    method = make_method(all_methods()[name], {})
    lab = make_lab(small_index, play, tmp_path)

    def answers():
        prepared, preparation = prepare(method, lab, lab.model)
        file = RecordFile(tmp_path / "records.jsonl")
        answer_questions(method, lab, prepared, QUESTIONS, file)
        records = file.read()
        file.file.unlink()
        shares = ("prediction", "error", "retrieved_tokens", "notes", "usage", "gold_seen", "exact_match")
        return [[records[each.id][share] for share in shares] for each in QUESTIONS], preparation

    first, paid = answers()
    calls = len(lab.model.calls)
    lab.model.play = lambda messages: AssertionError(f"asked again: {messages[0].text[:80]}")
    again, free = answers()
    assert [error for _, error, *_ in first] == [None, None]
    assert again == first
    assert (len(lab.model.calls), free.usage, free.cost) == (calls, paid.usage, paid.cost)
    assert len(lab.store.payments()) == calls
