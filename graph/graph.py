"""The ReAct loop (paper, section 3.3): `agent` and `tools` alternate; `force_answer` runs when a budget is used up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, SystemMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolCallTransformer, ToolNode
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore
from langgraph.stream import CustomTransformer, UpdatesTransformer
from langgraph.types import All, Checkpointer, RetryPolicy

from arag.graph.calls import CallResults
from arag.graph.context import MAX_STEPS, Context
from arag.graph.forced import take_text, write_forced_prompt
from arag.graph.messages import drop_old_results, write_missing_results
from arag.graph.nodes import Body, Node
from arag.graph.questions import (
    Update,
    begin_question,
    check_budgets,
    count_call,
    end_question,
    find_spent_budget,
    is_out_of_steps,
    select_messages,
)
from arag.graph.settings import (
    DEFAULT_MAX_CONTEXT_TOKENS,
    DEFAULT_MAX_INVALID_REPLIES,
    DEFAULT_MAX_STEPS,
    AnyTool,
    Output,
    ResourceLoader,
    Resources,
    Settings,
)
from arag.graph.state import InputState, OutputState, State
from arag.models.asking import aask, ask, is_transient
from arag.models.replies import mend_reply
from arag.retrieval.index import Index, open_index
from arag.retrieval.tools import DEFAULT_TOP_K, TOOL_NAMES, Presentation, RetrievalTool

ARAGAgent: TypeAlias = CompiledStateGraph[State, Context, InputState, OutputState]


def create_arag_agent(
    model: str | BaseChatModel,
    index: Index | str | Path,
    *,
    tools: Sequence[AnyTool] = TOOL_NAMES,
    top_k: int = DEFAULT_TOP_K,
    presentation: Presentation = "compact",
    system_prompt: str | None = None,
    max_steps: int = DEFAULT_MAX_STEPS,
    max_context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS,
    max_invalid_replies: int = DEFAULT_MAX_INVALID_REPLIES,
    output: Output = "messages",
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    interrupt_before: All | list[str] | None = None,
    interrupt_after: All | list[str] | None = None,
    name: str = "arag",
) -> ARAGAgent:
    """Create an agent that answers questions from an index.

    It searches until the model answers or a budget is used up. When a budget is used up, the model must answer without
    tools from what was gathered, and `stop_reason` names the budget. Any recursion limit of 3 or more is safe: the
    answer is forced before it is reached.

    A run can change the agent's settings with its context: see `Context`.

    Args:
        model: A chat model that calls tools, or a string for `load_model`.
        index: The index to search, or where it is (a folder, or the address of a PostgreSQL database): then it stays
            open as long as the agent is used.
        tools: The tools that the model gets: retrieval tools by name, subclasses of `RetrievalTool`, and your own
            LangChain tools or functions with a docstring. The system prompt names only these. Chunks that your own
            tools show count as seen if a result's artifact has their ids as `chunk_ids`, or its text has them in square
            brackets. The calls of one message run one after another in one step: if one interrupts or fails, a resumed
            run repeats all of them.
        top_k: Number of chunks that a search shows, 1 to 20; more if more keywords or queries are given.
        presentation: What searches show: `compact`, or the `paper`'s plain lists, for experiments.
        system_prompt: Replaces the default system prompt.
        max_steps: Maximum model calls per question, at least 1, not counting a forced answer.
        max_context_tokens: Maximum tokens in the model's context.
        max_invalid_replies: Maximum consecutive replies without text or a usable tool call.
        output: What a question adds to `messages`: all messages, or only the `answer`. The second is for a parent graph
            that shares its `messages`: the tool calls and their results are removed when the question is answered, and
            streams show them all the same. The other keys are not affected.
        checkpointer: Saves conversations, for several questions in a thread and for resuming after an error.
        store: LangGraph's long-term store, for tools that use one.
        interrupt_before: Nodes before which a run pauses for a person: `agent`, `tools`, `force_answer`.
        interrupt_after: Nodes after which a run pauses.
        name: The graph's name, for use inside other graphs.

    Returns:
        A compiled graph. Its input is `messages`; its output adds `answer`, `citations`, `stop_reason`, `steps`,
        `read_chunks`, `trace`, `model_calls` and `usage`.

    Raises:
        InputError: A setting is out of bounds.
        IndexNotFoundError: There is no index there.
        ModelError: The model string is not valid, or the model cannot be created.

    Example:
        >>> agent = create_arag_agent("extractive", index, max_steps=10)
        >>> state = agent.invoke({"messages": [("user", "Who was the engineer of the Vellin Light?")]})
        >>> print(state["answer"])
        The engineer of the Vellin Light was Corrin Ashe-Woldar, ... [places/vellin-light.md:0] ...
        >>> [citation["chunk_id"] for citation in state["citations"]], state["stop_reason"]
        (['places/vellin-light.md:0'], 'answered')
    """
    settings = Settings(
        model=model,
        index=open_index(index) if isinstance(index, str | Path) else index,
        tools=tools,
        top_k=top_k,
        presentation=presentation,
        system_prompt=system_prompt,
        max_steps=max_steps,
        max_context_tokens=max_context_tokens,
        max_invalid_replies=max_invalid_replies,
        output=output,
    )
    load = ResourceLoader(settings)
    load(None)  # reports errors now, not in the first run
    return build_graph(
        load,
        checkpointer=checkpointer,
        store=store,
        interrupt_before=interrupt_before,
        interrupt_after=interrupt_after,
        name=name,
    )


def build_graph(load: ResourceLoader, *, name: str = "arag", **options: Any) -> ARAGAgent:
    """Compile the graph; nothing is loaded before a run needs it.

    Args:
        load: Loads what a run works with.
        name: The graph's name.
        options: Further options of `StateGraph.compile`, as described in `create_arag_agent`.
    """
    loop = _Loop(load)
    builder = StateGraph(State, context_schema=Context, input_schema=InputState, output_schema=OutputState)
    retry = RetryPolicy(retry_on=is_transient)
    builder.add_node("agent", Node(loop.agent, ask, aask), retry_policy=retry)
    builder.add_node("tools", Node(loop.tools, ToolNode.invoke, ToolNode.ainvoke))
    builder.add_node("force_answer", Node(loop.force_answer, ask, aask), retry_policy=retry)
    builder.add_conditional_edges(START, loop.route_question, ["agent", "force_answer"])
    builder.add_conditional_edges("agent", loop.route_reply, ["tools", "agent", "force_answer", END])
    builder.add_conditional_edges("tools", loop.route_results, ["agent", "force_answer"])
    builder.add_edge("force_answer", END)
    # What `stream_events(version="v3")` reports in addition to messages and states.
    transformers = [ToolCallTransformer, CustomTransformer, UpdatesTransformer]
    graph = builder.compile(name=name, transformers=transformers, **options)
    # The graph counts its own steps; the limit leaves room for the most that a run's context may set.
    return graph.with_config(recursion_limit=recursion_limit(max(load.settings.max_steps, MAX_STEPS)))


class _Loop:
    """The nodes' bodies and the routes between them.

    Starting a question and checking budgets happen inside these nodes: separate nodes would cost a superstep for each
    question and each step. Routes depend only on the state, because a person who changes the state between two steps
    triggers the route outside any run.
    """

    def __init__(self, load: ResourceLoader) -> None:
        self._load = load

    def _begin(self, state: State) -> tuple[Resources, State, Update]:
        """Return the run's resources, the state with the question's counts, and the changes to the state."""
        resources = self._load(get_runtime().context)
        begun = begin_question(resources.index, state)
        return resources, cast("State", {**state, **begun}), begun

    def route_question(self, state: State) -> Literal["agent", "force_answer"]:
        """Start with the agent if the budgets allow a reply."""
        if get_runtime() is None:  # a person edits the thread: the next run has its own budgets
            return "agent"
        resources, state, _ = self._begin(state)
        return "force_answer" if is_out_of_steps(state) or find_spent_budget(resources, state) else "agent"

    def agent(self, state: State) -> Body:
        """Ask the model for its next tool call, or its answer."""
        resources, state, begun = self._begin(state)
        prompt = [SystemMessage(resources.system_prompt), *select_messages(state, resources.room)]
        reply, seconds = yield resources.searcher, prompt
        reply = mend_reply(reply, state["messages"])
        update = {**begun, "steps": state["steps"] + 1, **count_call(state, reply, seconds)}
        if reply.tool_calls or reply.invalid_tool_calls:
            is_valid = any(call["name"] in resources.tools.tools_by_name for call in reply.tool_calls)
            update["messages"] = [reply]
        elif is_valid := bool(reply.text.strip()):
            update |= end_question(resources, state, reply, "answered")
        else:
            update["messages"] = []
        update["invalid_replies"] = 0 if is_valid else state["invalid_replies"] + 1
        return check_budgets(resources, state, update)

    def route_reply(self, state: State) -> Literal["tools", "agent", "force_answer", "__end__"]:
        """Route a reply: to the tools that it calls, back to the agent if it is empty, or to the end."""
        if state.get("stop_reason"):
            return "__end__"
        last = state["messages"][-1]
        if isinstance(last, AIMessage) and (last.tool_calls or last.invalid_tool_calls):
            return "force_answer" if state.get("out_of_steps") else "tools"
        return self.route_results(state)  # the reply was empty

    def tools(self, state: State) -> Body:
        """Run the calls of one message in order; each sees the chunks that earlier ones read."""
        resources, state, begun = self._begin(state)
        message = cast("AIMessage", state["messages"][-1])
        results = CallResults(resources.index, state, drop_old_results(state["messages"], resources.room))
        for call in message.tool_calls:
            tool = resources.tools.tools_by_name.get(call["name"])
            if tool is not None:
                if isinstance(tool, RetrievalTool):
                    tool.load()
                outcome, seconds = yield resources.tools, results.write_input(call)
                results.add(call, outcome, seconds)
            else:
                names = ", ".join(resources.tools.tools_by_name)
                error = f"There is no tool {call['name']!r}. The tools are: {names}."
                results.add_error(call["id"], call["name"], call["args"], error)
        for invalid in message.invalid_tool_calls:
            error = f"The arguments of this call are not valid JSON: {(invalid['args'] or '')[:200]!r}. "
            results.add_error(invalid["id"], invalid["name"], {}, error + "Call the tool again with a JSON object.")
        update = check_budgets(resources, state, results.collect(begun))
        return [update, *results.commands] if results.commands else update

    def route_results(self, state: State) -> Literal["agent", "force_answer"]:
        """Return to the agent while every budget allows it."""
        return "force_answer" if state.get("out_of_steps") or state.get("spent_budget") else "agent"

    def force_answer(self, state: State) -> Body:
        """Ask the model, without tools, to answer from what was gathered."""
        resources, state, begun = self._begin(state)
        reply, seconds = yield resources.model, write_forced_prompt(resources.settings, state["messages"])
        reply = take_text(mend_reply(reply, state["messages"]))
        reason = find_spent_budget(resources, state) or "max_steps"
        update = {**begun, **count_call(state, reply, seconds, forced=True)}
        update |= end_question(resources, state, reply, reason)
        if resources.settings.output == "messages":
            update["messages"] = [*write_missing_results(state["messages"], len(state["messages"]) - 1), reply]
        return update


def recursion_limit(max_steps: int) -> int:
    """Return the recursion limit for a number of steps: two nodes per step, and a forced answer."""
    return 2 * max_steps + 3
