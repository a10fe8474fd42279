"""Lets a judge model decide whether an answer is correct (LLM-Acc)."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from pydantic import BaseModel, StrictBool

from arag.errors import without_credentials
from arag.evaluation.cache import CallRefusedError
from arag.evaluation.datasets import Question
from arag.evaluation.method import Session
from arag.evaluation.methods.shared import Texts, list_numbered
from arag.graph.prompts import as_data
from arag.models.prices import cost

_JUDGE = """You judge whether a predicted answer to a question is correct, by the gold answer.

It is correct if the key information of the gold answer is in it, consistent with the gold answer, and nothing in it
contradicts the gold answer. Other words for the same thing, more detail and a different form of a name, a date or a
number are no fault. It is incorrect if the key information is missing, if it names something else, if it gives several
answers without deciding, or if it says that the question cannot be answered.

Reply with one JSON object and nothing else:
{"reason": "in one sentence: what in the predicted answer meets or misses the gold answer", "correct": true or false}"""

_JUDGE_LIST = """You judge an answer to a question that asks for a complete list, by the gold list.

Say which items of the gold list the answer names as items of its list, by their numbers. Other words for the same
thing, and a different form of a name, a date or a number are no fault. An item that the answer names only to exclude
it is not named. Then say which other items the answer's list has that the gold list lacks. Facts about an item, such as
its date, do not count.

Reply with one JSON object and nothing else:
{"reason": "in one sentence: what the answer's list misses or has too much", "found": [the numbers of the gold items
that it names], "extra": ["each item that the gold list lacks"]}"""

_JUDGE_ABSENT = """You judge an answer to a question that the corpus does not answer: the fact is not in it.

The answer is correct if it says that the corpus, or what was searched, does not hold or settle the fact. It may name
what comes closest, if it says that this is not the answer. It is incorrect if it gives an answer, also with doubt
("probably", "it seems"), if it answers from general knowledge, if it answers another question as if that was asked, or
if it is empty.

Reply with one JSON object and nothing else:
{"reason": "in one sentence: what the answer says about the fact", "correct": true or false}"""


class Judgement(TypedDict):
    """A judge's verdict on an answer."""

    correct: bool | None
    """Whether it is correct; None if the judge gave no usable verdict: the answer is then unjudged, not wrong."""
    reason: str
    """The judge's reason, or why there is no verdict."""
    cost: float | None
    """US dollars; None if the price is unknown."""
    found: NotRequired[list[str]]
    """Of a complete list: the gold items that the answer names."""
    extra: NotRequired[list[str]]
    """Of a complete list: the items that the answer names and the gold list lacks."""


class Verdict(BaseModel):
    """The verdict on a predicted answer."""

    reason: str
    correct: StrictBool


class _ListVerdict(BaseModel):
    reason: str
    found: list[int]
    extra: Texts


def judge(session: Session, question: Question, prediction: str) -> Judgement:
    """Judge a predicted answer by the question's gold answer; the judge is the session's model."""
    predicted = as_data("answer", prediction or "(empty)")
    judgement = None
    reason = "three replies of the judge were no verdict"
    try:
        if question.form == "list":
            judgement = _judge_list(session, question, predicted)
        else:
            judgement = _judge_text(session, question, predicted)
    except CallRefusedError:
        raise
    except Exception as error:  # noqa: BLE001 - an answer is kept without a verdict; the next run judges it
        message = without_credentials(f"{type(error).__name__}: {error}")
        reason = f"the judge failed: {message}"
    if judgement is None:
        return Judgement(correct=None, reason=reason, cost=cost(session.calls))
    return judgement


def _judge_text(session: Session, question: Question, predicted: str) -> Judgement | None:
    if question.form == "absent":
        task = _JUDGE_ABSENT
        shown = f"Question: {question.text}\n\nAnswer:\n{predicted}"
    else:
        task = _JUDGE
        shown = f"Question: {question.text}\n\nGold answer: {_show_gold(question)}\n\nPredicted answer:\n{predicted}"
    verdict = session.ask(task, shown, Verdict)
    if verdict is None:
        return None
    return Judgement(correct=verdict.correct, reason=verdict.reason, cost=cost(session.calls))


def _show_gold(question: Question) -> str:
    number = question.number
    if number is None or not number.tolerance:
        return question.answer
    return f"{question.answer} (right within {number.tolerance:.15g})"


def _judge_list(session: Session, question: Question, predicted: str) -> Judgement | None:
    """Let the judge match the items; the answer is correct if it has all of them and no other."""
    gold = list_numbered(" / ".join(names) for names in question.items)
    shown = f"Question: {question.text}\n\nGold list:\n{gold}\n\nAnswer:\n{predicted}"
    verdict = session.ask(_JUDGE_LIST, shown, _ListVerdict)
    if verdict is None:
        return None
    found: list[str] = []
    for number, names in enumerate(question.items, start=1):
        if number in verdict.found:
            found.append(names[0])
    return Judgement(
        correct=len(found) == len(question.items) and not verdict.extra,
        reason=verdict.reason,
        cost=cost(session.calls),
        found=found,
        extra=verdict.extra,
    )
