"""The retrieval agent as middleware for LangChain's own agents: `create_agent`, and what is built on it.

It follows the rules of `arag.graph.graph`, and calls the same functions. But the conversation is that of somebody's own
agent: earlier results stay in it while they fit, and other middleware may shorten what the model is sent. So a chunk
counts as shown if the last request still had it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, cast

from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables.config import run_in_executor
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import INVALID_TOOL_NAME_ERROR_TEMPLATE, ToolCallRequest
from langgraph.types import Command
from pydantic import ValidationError

from arag.errors import InputError
from arag.graph.annotations import annotate
from arag.graph.citations import name_index
from arag.graph.cited import merge_citations
from arag.graph.context import (
    AnyTool,
    Context,
    Resources,
    ScopeFinder,
    default_tools,
    fit_to_model,
    make_loader,
    settle,
)
from arag.graph.model_step import Asking, ModelStep, Reply, ToolFactsCache, describe_results, list_results
from arag.graph.node import advance, as_unread_reply, fail, with_seconds
from arag.graph.outcome import describe_answer, read_answer
from arag.graph.records import find_seen
from arag.graph.repeats import notice_of_repeat
from arag.graph.review import edit_request, note_call
from arag.graph.sent import current_sent, watch_sent
from arag.graph.shown import correct_artifacts, find_removed, hide_parts, list_shown
from arag.graph.sources import ARAGState, RunRecord, SourcesMiddleware, find_others, sum_up
from arag.graph.state import kind_of_reply, split_turn, union
from arag.models.chat import load_model
from arag.retrieval.index import Index, ensure_open
from arag.retrieval.scope import Scope
from arag.retrieval.tools.base import RetrievalTool
from arag.retrieval.tools.seen import find_seen_chunks
from arag.retrieval.tools.sets import DEFAULT_TOOLS, ToolSet

_Result: TypeAlias = ToolMessage | Command[Any]


class ARAGMiddleware(SourcesMiddleware):
    """Lets an agent of LangChain's answer questions from an index.

    The agent gets the retrieval tools, instructions for them behind its own system prompt, and the budgets: if one is
    used up, the model must answer without tools, from the evidence so far. The state gets the keys that
    `create_arag_agent` returns, and `seen_chunks`. A run's context can change the settings, as there; of a context of
    another class, its `scope` counts.

    The whole conversation stays in the model's context while it fits. A chunk that was shown is not shown again while
    the model's last request still had its text. The tools of other middleware and of the agent count as steps, too.
    An agent takes one such middleware: for several indexes, give each a subagent of its own.

    Args:
        index: The index to search, or where it is: then it stays open as long as the middleware is used.
        tools: As in `create_arag_agent`.
        scope_from: As in `create_arag_agent`.
        settings: As in `create_arag_agent`; `system_prompt` replaces the instructions only.

    Raises:
        InputError: A setting is unknown or out of bounds.
        IndexNotFoundError: There is no index there.

    Example:
        >>> from langchain.agents import create_agent
        >>> from arag import ARAGMiddleware, load_model
        >>> agent = create_agent(load_model("extractive"), middleware=[ARAGMiddleware(index)])
        >>> state = agent.invoke({"messages": [("user", "Who was the engineer of the Vellin Light?")]})
        >>> state["citations"][0]["chunk_id"], state["stop_reason"]
        ('places/vellin-light.md:0', 'answered')
    """

    def __init__(
        self,
        index: Index | str | Path,
        *,
        tools: ToolSet | Sequence[AnyTool] | None = None,
        scope_from: ScopeFinder | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        opened = ensure_open(index)
        self._settings = Context(**settings)
        self._index_name = name_index(opened)
        self._has_tools = tools is not None
        self._scope_from = scope_from
        # The loader's model goes unused: the agent has one.
        choice = DEFAULT_TOOLS if tools is None else tools
        self._load = make_loader("extractive", lambda: opened, choice, self._settings)
        self._load_model = lru_cache(load_model)
        self._facts = ToolFactsCache()
        self._registered: dict[str, BaseTool] = self._load(None, None).tools.tools_by_name
        self.tools = list(self._registered.values())

    def before_agent(self, state: ARAGState, runtime: Any) -> dict[str, Any]:
        """Begin a run."""
        scope = settle(self._settings, runtime.context, self._scope_from).scope
        previous: dict[str, Any] = {**state.get("arag_run", {})}
        if previous.get("index") != self._index_name:  # of a version before this one, or of another agent
            previous = {}
        run = RunRecord(
            question=split_turn(state["messages"]).turn[0].text,
            steps=0,
            remaining=0,
            intact=[],
            forgets=False,
            tools=None,
            reply_id=None,
            reply="",
            stop_reason=None,
            scope=None if scope is None else scope.model_dump(),
            index=self._index_name,
            seen=[],
            read=previous.get("read", []),
            given=previous.get("given", []),
            rewritten=previous.get("rewritten", {}),
        )
        return super().before_agent(state, runtime) | {"arag_run": run}

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ExtendedModelResponse[Any]:
        """Ask the model for the next step, or for the answer if a budget is used up."""
        steps = self._ask(request)
        step = advance(steps)
        while isinstance(step, ModelRequest):
            began = time.perf_counter()
            with watch_sent(step) as sent:
                try:
                    response = handler(step)
                except ValidationError as error:
                    response = ModelResponse([as_unread_reply(error)])
                except Exception as error:  # noqa: BLE001 - the step may go on; else, it is raised again there
                    step = fail(steps, error)
                    continue
            step = advance(steps, _make_reply(response, sent.messages, step, began))
        return cast("ExtendedModelResponse[Any]", step)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ExtendedModelResponse[Any]:
        """Ask the model for the next step, or for the answer if a budget is used up."""
        steps = self._ask(request)
        step = await run_in_executor(None, advance, steps)
        while isinstance(step, ModelRequest):
            began = time.perf_counter()
            with watch_sent(step) as sent:
                try:
                    response = await handler(step)
                except ValidationError as error:
                    response = ModelResponse([as_unread_reply(error)])
                except Exception as error:  # noqa: BLE001
                    step = await run_in_executor(None, fail, steps, error)
                    continue
            step = advance(steps, _make_reply(response, sent.messages, step, began))
        return cast("ExtendedModelResponse[Any]", step)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], _Result]) -> _Result:
        """Run a call, of a retrieval tool over what the run may see."""
        began = time.perf_counter()
        request = edit_request(request)
        prepared = self._prepare_call(request)
        result = prepared if isinstance(prepared, ToolMessage) else handler(prepared)
        return _stamp(result, request, began)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[_Result]],
    ) -> _Result:
        """Run a call, of a retrieval tool over what the run may see."""
        began = time.perf_counter()
        request = edit_request(request)
        prepared = await run_in_executor(None, self._prepare_call, request)
        result = prepared if isinstance(prepared, ToolMessage) else await handler(prepared)
        return _stamp(result, request, began)

    def after_agent(self, state: ARAGState, runtime: Any) -> dict[str, Any]:
        """Describe the answer as other middleware has left it."""
        run = state["arag_run"]
        index = self._find_resources(runtime.context, run).index
        messages = state["messages"]
        turn = split_turn(messages).turn
        update = sum_up(state["model_calls"])
        replies = [message for message in turn if isinstance(message, AIMessage)]
        is_answer = bool(replies) and replies[-1].id == run["reply_id"] and run["stop_reason"] is not None
        if is_answer:
            text = read_answer(replies[-1])
            update["stop_reason"] = run["stop_reason"]
        else:
            text = messages[-1].text
            update |= describe_results(list_results(turn, run["reply_id"]), index, run)
            update["stop_reason"] = "ended"
        read = union(run["read"], find_seen_chunks(messages, index).whole)
        seen = union([*read, *run["seen"]], find_seen(messages, index))
        others = find_others(state)
        removed = find_removed(run["reply"], replies[-1].text) if is_answer else []
        hide_parts(others, removed)
        earlier = [citation for citation in state["arag_earlier"] if citation["index"] != self._index_name]
        shown = list_shown(messages, run["given"], run["rewritten"])
        described = describe_answer(text, index, seen, read, others=[*others, *earlier], shown=shown)
        hide_parts(described["citations"], removed)
        update["messages"] = [*correct_artifacts(turn)]
        if is_answer and not replies[-1].tool_calls:
            unused = [message for message in turn if kind_of_reply(message) == "doubtful"]
            update["messages"] += [RemoveMessage(cast("str", message.id)) for message in unused]
            update["messages"].append(annotate(replies[-1], described["citations"]))
        described["citations"] = merge_citations(others, described["citations"])
        run = RunRecord(**{**run, "read": read, "reply": ""})  # which may be what other middleware took out
        return update | {"read_chunks": read, "seen_chunks": seen, "arag_run": run} | described

    async def aafter_agent(self, state: ARAGState, runtime: Any) -> dict[str, Any]:
        """Describe the answer as other middleware has left it."""
        return await run_in_executor(None, self.after_agent, state, runtime)

    def _ask(self, request: ModelRequest[Any]) -> Asking[ExtendedModelResponse[Any]]:
        """Take a step. What waits for the index comes before the first request: in asynchronous runs, in a thread."""
        return (yield from self._begin_step(request).ask())

    def _begin_step(self, request: ModelRequest[Any]) -> ModelStep:
        outer = current_sent()
        if outer is not None and outer.request.runtime is request.runtime:
            raise InputError("an agent takes one ARAGMiddleware: for several indexes, give each a subagent of its own")
        run = RunRecord(**cast("ARAGState", request.state)["arag_run"])
        context = request.runtime.context
        settings = self._settle(context, run)
        if settings.model is not None:
            request = request.override(model=self._load_model(settings.model))
        run["tools"] = None
        if not self._has_tools and settings.tools is None:
            run["tools"] = list(default_tools(request.model))
        resources = self._find_resources(context, run)
        resources = replace(resources, settings=fit_to_model(resources.settings, request.model))
        return ModelStep(request, resources, self._registered, run, self._facts)

    def _find_resources(self, context: object, run: RunRecord) -> Resources:
        """Return the resources of a run, with the tools that it has by default, if nobody chose them."""
        settings = self._settle(context, run)
        if run["tools"] is not None:
            settings = settings.model_copy(update={"tools": tuple(run["tools"])})
        return self._load(settings, None)

    def _settle(self, context: object, run: RunRecord) -> Context:
        kept = run["scope"]
        return settle(self._settings, context, self._scope_from, None if kept is None else Scope(**kept))

    def _prepare_call(self, request: ToolCallRequest) -> ToolCallRequest | ToolMessage:
        """Return the request with the tool of this run, which sees what the model has; an error if there is none."""
        name = request.tool_call["name"]
        run: RunRecord = request.state["arag_run"]
        tools = self._find_resources(request.runtime.context, run).tools.tools_by_name
        registered = self._registered.get(name)
        if request.tool is not registered:  # a tool of somebody else
            return request
        if name not in tools:
            if registered is None:
                return request
            error = INVALID_TOOL_NAME_ERROR_TEMPLATE.format(requested_tool=name, available_tools=", ".join(tools))
            return ToolMessage(error, tool_call_id=request.tool_call["id"], name=name, status="error")
        tool = tools[name]
        request = request.override(tool=tool)
        if not isinstance(tool, RetrievalTool):
            return request
        visible = _list_visible(request.state["messages"], run)
        notice = notice_of_repeat(request.tool_call, visible, tool)
        if notice is not None:
            return notice
        runtime = replace(request.runtime, state={**request.state, "messages": visible})
        return replace(request, runtime=runtime)


def _list_visible(messages: Sequence[AnyMessage], run: RunRecord) -> list[AnyMessage]:
    """Return the question, and what is behind it without the results that the model was not sent as they are."""
    intact = set(run["intact"])
    visible: list[AnyMessage] = [HumanMessage(run["question"])]
    for message in messages:
        is_lost = isinstance(message, ToolMessage) and message.tool_call_id not in intact
        if not is_lost and not isinstance(message, HumanMessage):
            visible.append(message)
    return visible


def _make_reply(
    response: ModelResponse[Any], sent: Sequence[Any] | None, request: ModelRequest[Any], began: float
) -> Reply:
    """Return what came back for a request, which says how long it took."""
    seconds = time.perf_counter() - began
    first, *others = response.result
    stamped = with_seconds(cast("AIMessage", first), seconds)
    return Reply(
        ModelResponse([stamped, *others], response.structured_response),
        request.messages if sent is None else sent,
    )


def _stamp(result: _Result, request: ToolCallRequest, began: float) -> _Result:
    """Return the result of a call, which says how long it took, and what was called if that is not the model's call."""
    if not isinstance(result, ToolMessage):
        return result
    stamped = cast("ToolMessage", with_seconds(result, time.perf_counter() - began))
    asking = next(message for message in reversed(request.state["messages"]) if isinstance(message, AIMessage))
    return note_call(stamped, request.tool_call, asking)
