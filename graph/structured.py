"""Structured answers: the answer once more, as an object of a schema, for programs that call the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from arag.errors import InputError, ModelError
from arag.graph.forced import ask_from_evidence
from arag.graph.models import bind_tools, find_chat_model
from arag.graph.prompts import STRUCTURED, STRUCTURED_AGAIN, STRUCTURED_REQUEST
from arag.models.extractive import ExtractiveModel
from arag.models.replies.model import as_regular

if TYPE_CHECKING:
    from langchain.agents.structured_output import OutputToolBinding


@dataclass(frozen=True)
class Structurer:
    """A model that puts answers into the form of a schema: it calls a tool whose arguments the schema describes."""

    model: Runnable[Any, AIMessage]
    forms: Mapping[str, OutputToolBinding[Any]]
    """The schema, or each one of a union, by the name of its tool."""

    def ask(self, turn: Sequence[AnyMessage], max_context_tokens: int) -> list[AnyMessage]:
        """Return what the model is sent: the question with the turn's evidence, and the answer at the turn's end."""
        answer = AIMessage(turn[-1].text.strip())
        instructions = SystemMessage(STRUCTURED)
        request = HumanMessage(STRUCTURED_REQUEST)
        question = ask_from_evidence(turn[0].text, turn, [instructions, answer, request], max_context_tokens)
        return [instructions, question, answer, request]

    def ask_again(self, request: Sequence[AnyMessage], problem: ModelError) -> list[AnyMessage]:
        """Return a request that says what was wrong with the reply to it."""
        return [*request[:-1], HumanMessage(STRUCTURED_AGAIN.format(problem=problem))]

    def read(self, reply: AIMessage) -> Any:
        """Return the structured answer of a reply.

        Raises:
            ModelError: It has none, or one that the schema does not allow.
        """
        for call in reply.tool_calls:
            form = self.forms.get(call["name"])
            if form is not None:
                try:
                    return form.parse(call["args"])
                except ValueError as error:
                    raise ModelError(f"the model's structured answer is not valid: {error}") from error
        raise ModelError(f"the model gave no structured answer: it called no tool named {' or '.join(self.forms)}")


def make_structurer(model: Runnable[Any, AIMessage], response_format: Any) -> Structurer:
    """Return what makes structured answers.

    Args:
        model: The model.
        response_format: A schema, as LangChain's `create_agent` takes it: a pydantic model, a dataclass, a `TypedDict`,
            a union of these, or a JSON schema with a title. `ToolStrategy(schema)` and `ProviderStrategy(schema)` mean
            the same here.

    Raises:
        InputError: It is not a schema.
        ModelError: The model is the built-in one, or cannot call tools.
    """
    from langchain.agents.structured_output import OutputToolBinding, ProviderStrategy, ToolStrategy

    if isinstance(find_chat_model(model), ExtractiveModel):
        raise ModelError("the built-in model gives no structured answers: name a language model")
    if isinstance(response_format, ToolStrategy | ProviderStrategy):
        response_format = response_format.schema
    try:
        strategy = ToolStrategy(response_format)
    except ValueError:
        raise InputError(
            f"response_format is {response_format!r}: give a pydantic model, a dataclass, a TypedDict or a JSON schema"
        ) from None
    forms = {}
    for spec in strategy.schema_specs:
        forms[spec.name] = OutputToolBinding.from_schema_spec(spec)
    tools = [form.tool for form in forms.values()]
    return Structurer(as_regular(bind_tools(model, tools, tool_choice="any"), tools), forms)
