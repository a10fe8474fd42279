"""Whether an answer is correct, as a judge model sees it (LLM-Acc)."""

from __future__ import annotations

import asyncio
import time

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from arag.evaluation.records import Judgement
from arag.graph.models import is_provider_error
from arag.graph.prices import cost
from arag.graph.usage import model_call

_ATTEMPTS = 3

_INSTRUCTION = """You judge whether a predicted answer to a question is correct, by the gold answer.

It is correct if the key information of the gold answer is in it, consistent with the gold answer, and nothing in it
contradicts the gold answer. Other words for the same thing, more detail and a different form of a name, a date or a
number are no fault. It is incorrect if the key information is missing, if it names something else, if it gives several
answers without deciding, or if it says that the question cannot be answered."""


class Verdict(BaseModel):
    """The verdict on a predicted answer."""

    reason: str = Field(description="In one sentence: what in the predicted answer meets or misses the gold answer.")
    correct: bool = Field(description="Whether the predicted answer is correct.")


class Judge:
    """Judges answers with a model.

    Args:
        model: The model.
        name: Its name, for the records.
    """

    def __init__(self, model: BaseChatModel, name: str) -> None:
        self.name = name
        self._model = model.with_structured_output(Verdict, include_raw=True)

    async def judge(self, question: str, gold: str, prediction: str) -> Judgement:
        """Judge an answer.

        A verdict that cannot be used is asked for again; without one after all, the answer is unjudged, not wrong.

        Args:
            question: The question.
            gold: The gold answer.
            prediction: The predicted answer.
        """
        content = f"Question: {question}\n\nGold answer: {gold}\n\nPredicted answer: {prediction or '(empty)'}"
        why, spent = "", 0.0
        prices_known = True
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(0.5 * 2**attempt)
            began = time.perf_counter()
            try:
                reply = await self._model.ainvoke([SystemMessage(_INSTRUCTION), HumanMessage(content)])
            except Exception as error:
                if not is_provider_error(error):
                    raise
                why = f"the judge failed: {error}"
                continue
            assert isinstance(reply, dict)  # noqa: S101 - as include_raw has it
            raw, verdict = reply["raw"], reply["parsed"]
            if isinstance(raw, AIMessage):
                price = cost([model_call(raw, time.perf_counter() - began, step=attempt + 1)])
                prices_known = prices_known and price is not None
                spent += price or 0.0
            if isinstance(verdict, Verdict):
                return Judgement(
                    correct=verdict.correct,
                    reason=verdict.reason,
                    model=self.name,
                    cost=spent if prices_known else None,
                )
            why = f"the judge gave no usable verdict: {reply['parsing_error'] or raw.text[:200]}"
        return Judgement(correct=None, reason=why, model=self.name, cost=spent if prices_known else None)
