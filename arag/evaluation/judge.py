"""Lets a judge model decide whether an answer is correct (LLM-Acc)."""

from __future__ import annotations

from typing import TypedDict

from pydantic import BaseModel, StrictBool

from arag.errors import without_credentials
from arag.evaluation.cache import CallRefusedError
from arag.evaluation.method import Session
from arag.graph.prompts import as_data
from arag.models.prices import cost

_JUDGE = """You judge whether a predicted answer to a question is correct, by the gold answer.

It is correct if the key information of the gold answer is in it, consistent with the gold answer, and nothing in it
contradicts the gold answer. Other words for the same thing, more detail and a different form of a name, a date or a
number are no fault. It is incorrect if the key information is missing, if it names something else, if it gives several
answers without deciding, or if it says that the question cannot be answered.

Reply with one JSON object and nothing else:
{"reason": "in one sentence: what in the predicted answer meets or misses the gold answer", "correct": true or false}"""


class Judgement(TypedDict):
    """A judge's verdict on an answer."""

    correct: bool | None
    """Whether it is correct; None if the judge gave no usable verdict: the answer is then unjudged, not wrong."""
    reason: str
    """The judge's reason, or why there is no verdict."""
    cost: float | None
    """US dollars; None if the price is unknown."""


class Verdict(BaseModel):
    """The verdict on a predicted answer."""

    reason: str
    correct: StrictBool


def judge(session: Session, question: str, gold: str, prediction: str) -> Judgement:
    """Judge a predicted answer by the gold answer; the judge is the session's model."""
    predicted = as_data("answer", prediction or "(empty)")
    user = f"Question: {question}\n\nGold answer: {gold}\n\nPredicted answer:\n{predicted}"
    verdict = None
    reason = "three replies of the judge were no verdict"
    try:
        verdict = session.ask(_JUDGE, user, Verdict)
    except CallRefusedError:
        raise
    except Exception as error:  # noqa: BLE001 - an answer is kept without a verdict; the next run judges it
        message = without_credentials(f"{type(error).__name__}: {error}")
        reason = f"the judge failed: {message}"
    if verdict is None:
        return Judgement(correct=None, reason=reason, cost=cost(session.calls))
    return Judgement(correct=verdict.correct, reason=verdict.reason, cost=cost(session.calls))
