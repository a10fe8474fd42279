"""The ReAct loop (paper, section 3.3): `agent` and `tools` alternate; `force_answer` runs when a budget is used up.

Everything about a run is read from its messages. The prompt is the latest earlier questions and answers, and the
current turn: the last question and everything behind it. The tools see the same turn: a chunk that they call shown is
in the prompt.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from langchain_core.messages import (
    AIMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolCallTransformer
from langgraph.prebuilt.tool_node import ToolCallWithContext
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore
from langgraph.stream import CustomTransformer, UpdatesTransformer
from langgraph.types import All, Checkpointer, Command

from arag.errors import ModelError
from arag.graph import MAX_STEPS
from arag.graph.annotations import annotate
from arag.graph.asking import judge
from arag.graph.budgets import find_spent_budget, fit
from arag.graph.context import AnyTool, Context, Loader, Resources, ScopeFinder, make_loader
from arag.graph.costs import would_exceed
from arag.graph.forced import as_answer
from arag.graph.models import Model
from arag.graph.node import Call, Node, Steps
from arag.graph.outcome import describe_answer
from arag.graph.overflow import ask_with_less, drop_left_out, force_with_less, has_results
from arag.graph.prompts import forced_prompt
from arag.graph.records import collect_citations, find_seen, records
from arag.graph.repeats import notice_of_repeat
from arag.graph.review import check_names, make_reviewer, note_call, review
from arag.graph.state import (
    InputState,
    OutputState,
    SplitConversation,
    State,
    StopReason,
    drop_orphans,
    find_run,
    kind_of_reply,
    refuse_call,
    repair_reply,
    split_turn,
    union,
)
from arag.graph.structured import Structurer
from arag.models.failures import is_overflow
from arag.models.usage import ModelCall, model_call, total
from arag.retrieval.index import Index, ensure_open
from arag.retrieval.scope import Scope
from arag.retrieval.tools.seen import find_artifacts, find_seen_chunks
from arag.retrieval.tools.sets import TOOL_NAMES, ToolSet

LAST_STEPS = 4  # of the recursion limit: this step, `agent`, `tools` and a forced answer

ARAGAgent: TypeAlias = CompiledStateGraph[State, Context, InputState, OutputState]


def create_arag_agent(
    model: Model | Sequence[Model],
    index: Index | str | Path,
    *,
    tools: ToolSet | Sequence[AnyTool] | None = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    interrupt_before: All | list[str] | None = None,
    interrupt_after: All | list[str] | None = None,
    name: str = "arag",
    response_format: Any = None,
    interrupt_on: Mapping[str, Any] | None = None,
    output_schema: type | None = None,
    scope_from: ScopeFinder | None = None,
    **settings: Any,
) -> ARAGAgent:
    """Create an agent that answers questions from an index.

    It searches until the model answers or a budget is used up. Then the model must answer without tools, from the
    evidence so far, and `stop_reason` names the budget. Any recursion limit of 3 or more (4 with a `response_format`)
    is safe: the answer is forced before it is reached. A run can change the agent's settings with its context: see
    `Context`.

    Args:
        model: A chat model that calls tools, or a string for `load_model`; also one with fallbacks, bound options or
            fields that a run's config sets. Of a list of models, each takes over if the one before it fails.
        index: The index to search, or where it is (a folder, or the address of a PostgreSQL database): then it stays
            open as long as the agent is used.
        tools: A set of retrieval tools (`paper`, `all` or `shell`), or a list of sets, of tools by name, of subclasses
            of `RetrievalTool`, and of your own LangChain tools or functions with a docstring. Chunks that your own
            tools show count as seen if a result's artifact has their ids as `chunk_ids`. The calls of one message run
            one after another in one step: if one interrupts or fails, a resumed run repeats all of them.
        checkpointer: Saves conversations, for several questions in a thread and for resuming after an error.
        store: LangGraph's long-term store, for tools that use one.
        interrupt_before: Nodes before which a run pauses for a person: `agent`, `tools`, `force_answer`.
        interrupt_after: Nodes after which a run pauses.
        name: The graph's name, for use inside other graphs; its messages have it, too.
        response_format: A pydantic model, a `TypedDict` or a JSON schema with a title: one more model call puts each
            answer into its form, as `structured_response` of the state.
        interrupt_on: Which tools' calls a person must approve, as LangChain's `HumanInTheLoopMiddleware` takes it:
            `{"shell": True}`. The run pauses with a `HITLRequest`, and is resumed with a `HITLResponse`.
        output_schema: A `TypedDict` with the keys of the state that a run returns. With LangGraph's `MessagesState`, a
            graph that has the agent as a node keeps its own `usage` and the like.
        scope_from: Returns the scope in a run's context, if that has no `scope` of ours. Then each run needs one:
            `Scope()` means all documents.
        settings: Settings of `Context`: `top_k`, `system_prompt`, `max_steps`, `max_context_tokens`,
            `max_cost`.

    Returns:
        A compiled graph. Its input is a dictionary with `messages`; LangGraph refuses a plain text ("Expected dict").
        `OutputState` describes its output.

    Raises:
        InputError: A setting is unknown or out of bounds.
        IndexNotFoundError: There is no index there.
        ModelError: The model string is not valid, or the model cannot be created.

    Example:
        >>> agent = create_arag_agent("extractive", index, max_steps=10)
        >>> state = agent.invoke({"messages": [("user", "Who was the engineer of the Vellin Light?")]})
        >>> print(state["answer"])
        The engineer of the Vellin Light was Corrin Ashe-Woldar, ... [places/vellin-light.md:0] ...
    """
    opened = ensure_open(index)
    load = make_loader(
        model,
        lambda: opened,
        tools,
        Context(**settings),
        response_format=response_format,
        reviewer=make_reviewer(interrupt_on),
        scope_from=scope_from,
    )
    resources = load(None, Scope() if scope_from else None)  # reports errors now, not in the first run
    check_names(interrupt_on or {}, [*TOOL_NAMES, *resources.tools.tools_by_name])
    return build_graph(
        load,
        is_structured=response_format is not None,
        output_schema=output_schema or OutputState,
        checkpointer=checkpointer,
        store=store,
        interrupt_before=interrupt_before,
        interrupt_after=interrupt_after,
        name=name,
    )


def build_graph(
    load: Loader,
    *,
    name: str,
    is_structured: bool = False,
    output_schema: Any = OutputState,
    **options: Any,
) -> ARAGAgent:
    """Compile the graph, with options of `StateGraph.compile`; nothing is loaded before a run needs it.

    Args:
        load: Loads what a run needs.
        name: The graph's name.
        is_structured: Whether each answer is also put into the form of a schema.
        output_schema: The keys of the state that a run returns.
        options: The options.
    """
    loop = _Loop(load, name, is_structured=is_structured)
    builder = StateGraph(State, context_schema=Context, input_schema=InputState, output_schema=output_schema)
    builder.add_node("agent", Node(loop.agent))
    builder.add_node("tools", Node(loop.tools))
    builder.add_node("force_answer", Node(loop.force_answer))
    end: str = END
    if is_structured:
        end = "structure_answer"
        builder.add_node(end, Node(loop.structure_answer))
        builder.add_edge(end, END)
    nodes: dict[Hashable, str] = {name: name for name in ("agent", "tools", "force_answer")}
    builder.add_conditional_edges(START, loop.route, ["agent", "tools", "force_answer"])
    builder.add_conditional_edges("agent", loop.route_reply, nodes | {END: end})
    builder.add_conditional_edges("tools", loop.route, ["agent", "force_answer"])
    builder.add_edge("force_answer", end)
    # With these, event streams also report tool calls, custom data and updates: here, and in LangGraph's server.
    transformers = [ToolCallTransformer, CustomTransformer, UpdatesTransformer]
    graph = builder.compile(name=name, transformers=transformers, **options)
    # Two nodes a step, a forced answer and a structured one.
    limit = 2 * MAX_STEPS + 4
    return graph.with_config(recursion_limit=limit, metadata={"lc_agent_name": name})


class _Loop:
    """The nodes, and the routes between them."""

    def __init__(self, load: Loader, name: str, *, is_structured: bool) -> None:
        self._load = load
        self._name = name
        self._last_steps = LAST_STEPS
        if is_structured:
            self._last_steps += 1

    def agent(self, state: State) -> Steps:
        """Ask the model, which has the tools. If it calls none of them, its text is the answer."""
        resources = self._resources(state)
        earlier, turn = self._fit(state)
        instructions = resources.system_prompt(steps=len(_list_replies(state)))
        head = [SystemMessage(instructions), *earlier]
        try:
            reply = yield from ask_with_less(resources.searcher, head, turn)
        except Exception as error:
            if not has_results(turn) or not is_overflow(error):
                raise
            return (yield from self._force(state, "token_budget"))
        reply = self._sign(repair_reply(reply, state["messages"]))
        replies = _list_replies(state)
        steps_left = resources.settings.max_steps - len(replies) - 1
        judged = judge(reply, state["messages"], replies, steps_left)
        if judged.reason is not None:
            return self._end(state, judged.reply, judged.reason, is_forced=False)
        update: dict[str, Any] = {"messages": [judged.reply]}
        scope = resources.settings.scope
        kept = None if scope is None else scope.model_dump()
        if kept != state.get("run_scope"):
            update["run_scope"] = kept
        return update

    def tools(self, state: State) -> Steps:
        """Run the calls of the last message one after another.

        A tool that asks for the conversation gets the turn as the model was sent it, with the results so far, and the
        message at its end. Each call whose arguments are not JSON gets an error. Commands of tools are passed on.
        """
        tools = self._resources(state).tools
        *turn, last = drop_orphans(split_turn(state["messages"]).turn)
        asking = cast("AIMessage", last)
        before = drop_left_out(turn, asking)
        reviewed = review(self._resources(state).reviewer, [*before, asking])
        messages: list[ToolMessage] = []
        commands: list[Command[Any]] = []
        for call in reviewed.calls:
            given = reviewed.results.get(call["id"])
            if given is None:
                tool = tools.tools_by_name.get(call["name"])
                given = notice_of_repeat(call, [*before, asking, *messages], tool)
            if given is not None:
                messages.append(given)
                continue
            visible_state = {**state, **reviewed.edits, "messages": [*before, *messages, asking]}
            results = yield Call(
                tools,
                ToolCallWithContext(tool_call=call, __type="tool_call_with_context", state=visible_state),
            )
            for result in results:
                if isinstance(result, Command):
                    commands.append(result)
                else:
                    messages.append(note_call(result, call, asking))
        messages += [refuse_call(call) for call in asking.invalid_tool_calls]

        read: list[str] = []
        for artifact in find_artifacts(messages):
            read += artifact["new_chunks"]
        update = {"messages": messages, "read_chunks": read}
        return [update, *commands] if commands else update

    def force_answer(self, state: State) -> Steps:
        """Ask the model without tools, with the turn's evidence in place of its calls."""
        return (yield from self._force(state, self._find_spent_budget(state) or "max_steps"))

    def _force(self, state: State, reason: StopReason) -> Steps:
        resources = self._resources(state)
        earlier, turn = self._fit(state)
        head = [SystemMessage(forced_prompt(resources.settings.system_prompt)), *earlier]
        reply = yield from force_with_less(resources.model, head, turn, resources.settings.max_context_tokens)
        answer = as_answer(self._sign(repair_reply(reply, state["messages"])))
        return self._end(state, answer, reason, is_forced=True)

    def structure_answer(self, state: State) -> Steps:
        """Ask the model to put the answer into the form of a schema, twice if need be. The answer itself stays."""
        resources = self._resources(state)
        structurer = cast("Structurer", resources.structurer)
        turn = self._fit(state).turn
        calls = [*state.get("model_calls", ())]  # none if a person wrote the answer
        request = structurer.ask(turn, resources.settings.max_context_tokens)
        for is_last in (False, True):
            [reply] = yield Call(structurer.model, request)
            calls.append(model_call(reply, step=len(calls) + 1))
            try:
                structured = structurer.read(reply)
                break
            except ModelError as error:
                if is_last or _is_spent(resources.settings.max_cost, calls):
                    raise
                request = structurer.ask_again(request, error)
        return {
            "structured_response": structured,
            "model_calls": calls,
            "usage": total(calls),
        }

    def route(self, state: State) -> Literal["agent", "tools", "force_answer"]:
        """Run the calls that a conversation ends with, if it does; else ask the agent while every budget allows it."""
        last = split_turn(state["messages"]).turn[-1]
        if kind_of_reply(last) == "calls":
            return "tools"
        if get_runtime() is None:  # a person edits the thread: the next run has its own budgets
            return "agent"
        if self._find_spent_budget(state) is not None:
            return "force_answer"
        return "agent"

    def route_reply(self, state: State) -> Literal["agent", "tools", "force_answer", "__end__"]:
        """End with an answer, or where a person has cleared the thread; a second unusable reply spends the budget."""
        messages = state["messages"]
        if not messages or kind_of_reply(messages[-1]) == "answer":
            return "__end__"
        return self.route(state)

    def _resources(self, state: State) -> Resources:
        kept = state.get("run_scope")
        scope = Scope(**kept) if kept is not None and _list_replies(state) else None  # else, it is of an earlier run
        return self._load(get_runtime().context, scope)

    def _sign(self, reply: AIMessage) -> AIMessage:
        """Return a reply with the agent's name, by which a supervisor tells who spoke."""
        return reply.model_copy(update={"name": self._name})

    def _fit(self, state: State) -> SplitConversation:
        """Return the turn, behind the latest earlier questions and answers in at most half of the room."""
        return fit(state["messages"], self._resources(state).room)

    def _find_spent_budget(self, state: State) -> StopReason | None:
        """Return the budget that the run has used up, if any."""
        earlier, turn = self._fit(state)
        resources = self._resources(state)
        replies = _list_replies(state)
        spent = find_spent_budget(
            resources,
            replies,
            [*earlier, *turn],
            steps=len(replies),
            calls=[model_call(reply, step=step) for step, reply in enumerate(replies, 1)],
            room=resources.room,
        )
        if spent is not None:
            return spent
        if state["remaining_steps"] < self._last_steps:
            return "max_steps"
        return None

    def _end(self, state: State, reply: AIMessage, reason: StopReason, *, is_forced: bool) -> dict[str, Any]:
        """Return the last update of a run: the answer with its records, without replies that were not used."""
        index = self._resources(state).index
        messages = state["messages"]
        run = find_run(split_turn(messages).turn)
        read = union(state.get("read_chunks"), find_seen_chunks(messages, index).whole)
        seen = union(read, find_seen(messages, index))
        unused = []
        for message in run:
            if kind_of_reply(message) in {"empty", "doubtful"}:
                unused.append(RemoveMessage(cast("str", message.id)))
        described = describe_answer(reply.text, index, seen, read, others=collect_citations(messages))
        return {
            "messages": [*unused, annotate(reply, described["citations"])],
            "stop_reason": reason,
            "read_chunks": read,
            **described,
            **records(run, reply, is_forced=is_forced),
        }


def _is_spent(max_cost: float | None, calls: Sequence[ModelCall]) -> bool:
    return max_cost is not None and would_exceed(max_cost, calls, last_calls=0)


def _list_replies(state: State) -> list[AIMessage]:
    """Return the replies of the model in this run."""
    run = find_run(split_turn(state["messages"]).turn)
    return [message for message in run if isinstance(message, AIMessage)]
