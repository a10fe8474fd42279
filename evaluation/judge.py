"""Lets a judge model decide whether an answer is correct (LLM-Acc)."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, Field, StrictBool

from arag.evaluation.patience import Patience
from arag.evaluation.records import Judgement
from arag.evaluation.structured import StructuredModel
from arag.graph.prompts import DATA_RULE, as_data
from arag.models.names import drop_credentials
from arag.models.prices import cost

_INSTRUCTION = """You judge whether a predicted answer to a question is correct, by the gold answer.

It is correct if the key information of the gold answer is in it, consistent with the gold answer, and nothing in it
contradicts the gold answer. Other words for the same thing, more detail and a different form of a name, a date or a
number are no fault. It is incorrect if the key information is missing, if it names something else, if it gives several
answers without deciding, or if it says that the question cannot be answered.

Reply with one JSON object and nothing else:
{"reason": "in one sentence: what in the predicted answer meets or misses the gold answer", "correct": true or false}"""


class Verdict(BaseModel):
    """The verdict on a predicted answer."""

    reason: str = Field(description="In one sentence: what in the predicted answer meets or misses the gold answer.")
    correct: StrictBool = Field(description="Whether the predicted answer is correct.")


class Judge:
    """Judges answers with a model.

    Args:
        model: The model.
        name: Its name, for the records.

    Raises:
        InputError: The model is the built-in one, which cannot judge.
    """

    def __init__(self, model: BaseChatModel, name: str) -> None:
        self.name = drop_credentials(name)
        self._model = StructuredModel(model, Verdict, "judge")

    async def judge(self, question: str, gold: str, prediction: str, patience: Patience | None = None) -> Judgement:
        """Judge an answer; without a usable verdict it is unjudged, not wrong.

        Args:
            question: The question.
            gold: The gold answer.
            prediction: The predicted answer.
            patience: Waits at rate limits. Default: a new one.
        """
        predicted = as_data("answer", prediction or "(empty)")
        messages = [
            SystemMessage(f"{_INSTRUCTION}\n\n{DATA_RULE}"),
            HumanMessage(f"Question: {question}\n\nGold answer: {gold}\n\nPredicted answer:\n{predicted}"),
        ]
        reply = await self._model.ask_patiently(messages, patience or Patience())
        correct, reason = (None, reply.why) if reply.value is None else (reply.value.correct, reply.value.reason)
        return Judgement(correct=correct, reason=reason, model=self.name, cost=cost(reply.calls))
