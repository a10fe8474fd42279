"""Answers with their sources in the state of an agent of LangChain's: several subagents may write them at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, TypeVar

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    OmitFromInput,
    PrivateStateAttr,
)
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.managed.is_last_step import RemainingStepsManager
from langgraph.types import Command, Overwrite
from pydantic import Field
from typing_extensions import TypedDict

from arag.graph.annotations import annotate
from arag.graph.cited import Citation, is_citation, merge_citations
from arag.graph.outcome import describe_linked_answer, read_answer
from arag.graph.records import collect_citations
from arag.graph.shown import correct_artifacts, find_removed, hide_parts
from arag.graph.state import Grounding, StopReason, ToolRecord, kind_of_reply, split_turn, union
from arag.models.usage import ModelCall, Usage, total

_Record = TypeVar("_Record")


def _join(left: Sequence[_Record], right: Sequence[_Record]) -> list[_Record]:
    """Return records in order. A supervisor that passes its state on gets its own ones back with the new ones."""
    new = [record for record in right if record not in left]
    return [*left, *new]


def _last(_: Any, right: Any) -> Any:
    return right


class RunRecord(TypedDict):
    """What the middleware knows of a run."""

    question: str
    steps: int
    """Model calls so far, without forced ones."""
    remaining: int
    """Steps that the recursion limit left at the last model call."""
    intact: list[str]
    """Ids of the calls whose results the model was sent unchanged in its last request."""
    forgets: bool
    """Whether a result was taken away from the model that it had before."""
    tools: list[str] | None
    """The retrieval tools that the model got by default; None if somebody chose them."""
    reply_id: str | None
    """The id of the model's last message."""
    reply: str
    """Its text."""
    stop_reason: StopReason | None
    """Why the run ends with that message; None if it goes on."""
    scope: dict[str, Any] | None
    """The scope with which the run began."""
    index: str
    """The index's name."""
    seen: list[str]
    """Chunks of the index that the agent was shown in this run."""
    read: list[str]
    """Chunks of the index that it was shown in full in this conversation."""
    given: list[str]
    """Ids of the calls whose results a model was sent as the tools gave them, in this conversation."""
    rewritten: dict[str, str]
    """By the ids of other calls, what a model was sent as their results."""


class ARAGState(AgentState[Any], total=False):
    """The state of an agent with `ARAGMiddleware`. Subagents that end at once may all write it.

    The keys are those of `OutputState`, and `seen_chunks`.
    """

    answer: Annotated[str, Field(description="The answer to the last question."), OmitFromInput, _last]
    citations: Annotated[
        list[Citation],
        Field(description="The chunks that the answer names, and behind them those that subagents named."),
        OmitFromInput,
        merge_citations,
    ]
    grounding: Annotated[
        Grounding, Field(description="How far the cited chunks support the answer."), OmitFromInput, _last
    ]
    stop_reason: Annotated[StopReason, Field(description="Why the search ended."), OmitFromInput, _last]
    steps: Annotated[
        int, Field(description="Model calls of the search, not counting forced answers."), OmitFromInput, _last
    ]
    read_chunks: Annotated[
        list[str], Field(description="Chunks shown in full in this conversation."), OmitFromInput, union
    ]
    seen_chunks: Annotated[
        list[str],
        Field(description="Chunks shown for the last question, in excerpts or in full."),
        OmitFromInput,
        union,
    ]
    trace: Annotated[
        list[ToolRecord], Field(description="The tool calls for the last question, in order."), OmitFromInput, _join
    ]
    model_calls: Annotated[
        list[ModelCall], Field(description="The model calls for the last question, in order."), OmitFromInput, _join
    ]
    usage: Annotated[
        Usage, Field(description="Token usage for the last question, as the providers report it."), OmitFromInput, _last
    ]
    arag_earlier: Annotated[list[Citation], PrivateStateAttr]
    arag_reply: Annotated[str, PrivateStateAttr]
    arag_run: Annotated[RunRecord, PrivateStateAttr]
    remaining_steps: Annotated[int, PrivateStateAttr, RemainingStepsManager]


class SourcesMiddleware(AgentMiddleware[ARAGState, Any, Any]):
    """Keeps what subagents found, for an agent that asks them and has no index of its own.

    The state gets the keys that `ARAGMiddleware` writes: `answer` is the agent's own, and `citations` has the chunks
    that it names, and behind them the others that subagents cited.

    Example:
        >>> from langchain.agents import create_agent
        >>> from arag import SourcesMiddleware, load_model
        >>> agent = create_agent(load_model("extractive"), middleware=[SourcesMiddleware()])
        >>> agent.invoke({"messages": [("user", "Who was the engineer of the Vellin Light?")]})["citations"]
        []
    """

    state_schema = ARAGState

    def before_agent(self, state: ARAGState, runtime: Any) -> dict[str, Any]:  # noqa: ARG002
        """Forget what the question before had, except for its citations: the next answer may name them."""
        cited = [citation for citation in state.get("citations", []) if is_citation(citation)]
        return {
            "answer": "",
            "citations": Overwrite([]),
            "arag_earlier": merge_citations(state.get("arag_earlier", []), cited),
            "arag_reply": "",
            "seen_chunks": Overwrite([]),
            "trace": Overwrite([]),
            "model_calls": Overwrite([]),
        }

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ExtendedModelResponse[Any]:
        """Keep the model's text, as other middleware may take words out of it."""
        return _with_reply(handler(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ExtendedModelResponse[Any]:
        """Keep the model's text, as other middleware may take words out of it."""
        return _with_reply(await handler(request))

    def after_agent(self, state: ARAGState, runtime: Any) -> dict[str, Any]:  # noqa: ARG002
        """Describe the answer, with what subagents and tools cited, and sum up the model calls."""
        others = find_others(state)
        answer = _read_end(state)
        removed = find_removed(state["arag_reply"], answer)
        hide_parts(others, removed)
        described = describe_linked_answer(answer, [*others, *state["arag_earlier"]])
        hide_parts(described["citations"], removed)
        described["messages"] = [*correct_artifacts(split_turn(state["messages"]).turn)]
        last = state["messages"][-1]
        if isinstance(last, AIMessage) and kind_of_reply(last) == "answer":
            described["messages"].append(annotate(last, described["citations"]))
        described["citations"] = merge_citations(others, described["citations"])
        described["arag_reply"] = ""  # it may have what other middleware took out
        return described | sum_up(state["model_calls"])


def find_others(state: ARAGState) -> list[Citation]:
    """Return what other agents cited for the last question, as subagents and as tools."""
    turn = split_turn(state["messages"]).turn
    return merge_citations(state.get("citations", []), collect_citations(turn))


def sum_up(calls: Sequence[ModelCall]) -> dict[str, Any]:
    """Return how many steps a run took, and its tokens, from its model calls."""
    return {
        "steps": sum(not call["forced"] for call in calls),
        "usage": total(calls),
    }


def _with_reply(response: ModelResponse[Any]) -> ExtendedModelResponse[Any]:
    reply = response.result[0]
    return ExtendedModelResponse(response, Command(update={"arag_reply": reply.text}))


def _read_end(state: ARAGState) -> str:
    """Return the text at the end of a run: of the model, of a tool that answers directly, or of other middleware."""
    turn = split_turn(state["messages"]).turn
    last = turn[-1]
    if isinstance(last, ToolMessage) and state.get("structured_response") is not None:
        last = [message for message in turn if isinstance(message, AIMessage)][-1]
    if isinstance(last, AIMessage):
        return read_answer(last)
    return last.text if isinstance(last, ToolMessage) else ""
