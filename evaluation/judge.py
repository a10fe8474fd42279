"""Whether an answer is correct, as a judge model sees it (LLM-Acc)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable
from pydantic import BaseModel, Field, StrictBool, ValidationError

from arag.evaluation.records import Judgement
from arag.graph.extractive import ExtractiveModel
from arag.graph.models import call_error, is_provider_error
from arag.graph.prices import cost
from arag.graph.usage import model_call
from arag.retrieval.errors import InputError

_ATTEMPTS = 3
_PAUSE = 0.5  # seconds, before the first further attempt
_SHOWN = 200  # characters of a reply or an error in messages
_REFUSED = frozenset({400, 404, 405, 415, 422, 501})  # statuses of servers that know no structured output

_INSTRUCTION = """You judge whether a predicted answer to a question is correct, by the gold answer.

It is correct if the key information of the gold answer is in it, consistent with the gold answer, and nothing in it
contradicts the gold answer. Other words for the same thing, more detail and a different form of a name, a date or a
number are no fault. It is incorrect if the key information is missing, if it names something else, if it gives several
answers without deciding, or if it says that the question cannot be answered.

Reply with one JSON object and nothing else:
{"reason": "in one sentence: what in the predicted answer meets or misses the gold answer", "correct": true or false}"""

Ask: TypeAlias = Callable[[], Coroutine[Any, Any, Any]]


class Verdict(BaseModel):
    """The verdict on a predicted answer."""

    reason: str = Field(description="In one sentence: what in the predicted answer meets or misses the gold answer.")
    correct: StrictBool = Field(description="Whether the predicted answer is correct.")


async def _at_once(ask: Ask) -> Any:
    return await ask()


def is_failed_call(error: Exception) -> bool:
    """Tell whether an error is a model's, its provider's or its client's, rather than a bug of ours."""
    # A tool call whose arguments are JSON, but no object: LangChain cannot make a message of it.
    no_message = isinstance(error, ValidationError) and error.title == AIMessage.__name__
    return is_provider_error(error) or call_error(error) is not None or no_message


class Judge:
    """Judges answers with a model.

    The model is asked for structured output; where its class or its server knows none, for a JSON object in words.

    Args:
        model: The model.
        name: Its name, for the records.

    Raises:
        InputError: The model is the built-in one, which cannot judge.
    """

    def __init__(self, model: BaseChatModel, name: str) -> None:
        if isinstance(model, ExtractiveModel):
            raise InputError("the built-in extractive model cannot judge: give a language model, as provider:model")
        self.name = name
        self._model = model
        self._structured = _structured(model)

    async def judge(
        self,
        question: str,
        gold: str,
        prediction: str,
        *,
        patiently: Callable[[Ask], Coroutine[Any, Any, Any]] = _at_once,
    ) -> Judgement:
        """Judge an answer.

        A verdict that cannot be used is asked for again; without one after all, the answer is unjudged, not wrong.

        Args:
            question: The question.
            gold: The gold answer.
            prediction: The predicted answer.
            patiently: Makes a call of the model; it may wait before it, and make it again.
        """
        content = f"Question: {question}\n\nGold answer: {gold}\n\nPredicted answer: {prediction or '(empty)'}"
        messages = [SystemMessage(_INSTRUCTION), HumanMessage(content)]
        why = ""
        spent: float | None = 0.0
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(_PAUSE * 2**attempt)
            began = time.perf_counter()
            try:
                raw, given = await self._ask(messages, patiently)
            except Exception as error:
                if not is_failed_call(error):
                    raise
                why = f"the judge failed: {str(error)[:_SHOWN]}"
                continue
            price = cost([model_call(raw, time.perf_counter() - began, step=attempt + 1)])
            spent = None if spent is None or price is None else spent + price
            verdict = _verdict(given) or _verdict_in(raw.text)
            if verdict is not None:
                return Judgement(correct=verdict.correct, reason=verdict.reason, model=self.name, cost=spent)
            told = raw.additional_kwargs.get("refusal") or raw.text or "an empty reply"
            why = f"the judge gave no usable verdict: {str(told)[:_SHOWN]}"
        return Judgement(correct=None, reason=why, model=self.name, cost=spent)

    async def _ask(
        self, messages: list[BaseMessage], patiently: Callable[[Ask], Coroutine[Any, Any, Any]]
    ) -> tuple[AIMessage, Any]:
        """Return the model's reply, and what its class has made of it."""
        structured = self._structured
        if structured is not None:
            try:
                reply = await patiently(lambda: structured.ainvoke(messages))
            except Exception as error:
                if getattr(error, "status_code", None) not in _REFUSED:
                    raise
            else:
                return reply["raw"], reply["parsed"]
        raw: AIMessage = await patiently(lambda: self._model.ainvoke(messages))
        self._structured = None  # it answers where it is asked in words only
        return raw, None


def _structured(model: BaseChatModel) -> Runnable[Any, Any] | None:
    # A schema and not the class: OpenAI's client raises errors of pydantic for replies that do not fit a class.
    schema = {"title": Verdict.__name__, "description": Verdict.__doc__, **Verdict.model_json_schema()}
    try:
        return model.with_structured_output(schema, include_raw=True)
    except NotImplementedError:
        return None


def _verdict(given: Any) -> Verdict | None:
    try:
        return Verdict.model_validate(given)
    except ValidationError:
        return None


def _verdict_in(text: str) -> Verdict | None:
    """Return the verdict in a text: the JSON object may stand in a code block, or behind some words."""
    start, end = text.find("{"), text.rfind("}")
    try:
        return Verdict.model_validate_json(text[start : end + 1]) if 0 <= start < end else None
    except ValidationError:
        return None
