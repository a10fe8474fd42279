"""Answers with their sources in the state of an agent of LangChain's: several subagents may write them at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from langchain.agents.middleware.types import AgentMiddleware, AgentState, OmitFromInput, PrivateStateAttr
from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.managed.is_last_step import RemainingStepsManager
from langgraph.types import Overwrite
from pydantic import Field
from typing_extensions import TypedDict

from arag.graph.cited import Citation
from arag.graph.state import Grounding, StopReason, ToolRecord, split_turn, union
from arag.models.usage import ModelCall, Usage, total

_Record = TypeVar("_Record")


def _join(left: Sequence[_Record], right: Sequence[_Record]) -> list[_Record]:
    """Return records in order. A supervisor that passes its state on gets its own ones back with the new ones."""
    new = [record for record in right if record not in left]
    return [*left, *new]


def _last(_: Any, right: Any) -> Any:
    return right


def merge_citations(left: Sequence[Citation], right: Sequence[Citation]) -> list[Citation]:
    """Return the citations of the last answer, and behind them those of earlier ones, which are not in its text."""
    merged = {citation["chunk_id"]: citation for citation in right}
    for citation in left:
        merged.setdefault(citation["chunk_id"], {**citation, "spans": []})
    return list(merged.values())


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
    stop_reason: StopReason | None
    """Why the run ends with that message; None if it goes on."""
    scope: dict[str, Any] | None
    """The scope with which the run began."""


class ARAGState(AgentState[Any], total=False):
    """The state of an agent with `ARAGMiddleware`. Subagents that end at once may all write it.

    The keys are those of `OutputState`, and `seen_chunks`.
    """

    answer: Annotated[
        str, Field(description="The answer to the last question, or that of the last subagent."), OmitFromInput, _last
    ]
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
    arag_run: Annotated[RunRecord, PrivateStateAttr]
    remaining_steps: Annotated[int, PrivateStateAttr, RemainingStepsManager]


class SourcesMiddleware(AgentMiddleware[ARAGState, Any, Any]):
    """Keeps what subagents found, for an agent that asks them and has no index of its own.

    The state gets the keys that `ARAGMiddleware` writes: `citations` has those of all subagents, `answer` is that of
    the last one.

    Example:
        >>> from langchain.agents import create_agent
        >>> from arag import SourcesMiddleware, load_model
        >>> agent = create_agent(load_model("extractive"), middleware=[SourcesMiddleware()])
        >>> agent.invoke({"messages": [("user", "Who was the engineer of the Vellin Light?")]})["citations"]
        []
    """

    state_schema = ARAGState

    def before_agent(self, state: ARAGState, runtime: Any) -> dict[str, Any]:  # noqa: ARG002
        """Forget what the question before had."""
        return {
            "answer": "",
            "citations": Overwrite([]),
            "seen_chunks": Overwrite([]),
            "trace": Overwrite([]),
            "model_calls": Overwrite([]),
        }

    def after_agent(self, state: ARAGState, runtime: Any) -> dict[str, Any]:  # noqa: ARG002
        """Sum up the model calls, those of subagents included, and collect citations that tools have returned."""
        calls = state["model_calls"]
        return {
            "citations": _collect_citations(split_turn(state["messages"]).turn),
            "steps": sum(not call["forced"] for call in calls),
            "usage": total(calls),
        }


def _collect_citations(turn: Sequence[AnyMessage]) -> list[Citation]:
    """Return the citations in the results of `make_agent_tool`. Artifacts of other tools may have such a key, too."""
    citations: list[Citation] = []
    for message in turn:
        artifact = message.artifact if isinstance(message, ToolMessage) else None
        found = artifact.get("citations") if isinstance(artifact, dict) else None
        if isinstance(found, list) and all(map(_is_citation, found)):
            citations = merge_citations(citations, found)
    return citations


def _is_citation(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == Citation.__required_keys__
