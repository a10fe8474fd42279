"""Measures what the agent's loop adds to a bare loop of LangGraph, with the same scripted model and the same tools.

    python benchmarks/overhead.py [--corpus DIR] [--questions 20] [--rounds 7] [--at-most RATIO]

The bare loop is a model, a `ToolNode` and an edge: it has no budgets, citations, records or rules about what was shown.
The model answers at once, so that nothing but the loops and the tools takes time. All questions run at once, the loops
by turns. Machines have other things to do: the processor's time counts, in the best round of each. With `--at-most`, a
higher ratio is an error.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from arag import ARAGMiddleware, create_arag_agent, ingest, make_tools
from arag.retrieval.index import Index

_EXAMPLES = Path(__file__).parents[1] / "examples" / "corpus"
_TOOLS = ("keyword_search", "chunk_read")
_NAMES = ("Vellin Light", "Corrin Ashe-Woldar", "Emberlane Glassworks", "Grey Petrel", "Hesper Quillorne")


class Scripted(BaseChatModel):
    """Searches for one name after another, reads what it finds first, and then answers."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Runnable[Any, Any]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        results = [message for message in messages if isinstance(message, ToolMessage)]
        step = len(results)
        if step < len(_NAMES):
            call = tool_call(name="keyword_search", args={"keywords": [_NAMES[step]]}, id=f"call-{step}")
            reply = AIMessage("", tool_calls=[call])
        else:
            chunk_id = results[0].artifact["chunk_ids"][0]
            reply = AIMessage(f"The answer stands there [{chunk_id}].")
        return ChatResult(generations=[ChatGeneration(message=reply)])


def make_bare_loop(index: Index) -> Any:
    """Return the loop that every tutorial of LangGraph has."""
    tools = make_tools(index, names=_TOOLS)
    model = Scripted().bind_tools(tools)

    async def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile()


def make_loops(index: Index) -> dict[str, Any]:
    """Return the loops by name, the bare one first."""
    tools = list(_TOOLS)
    return {
        "bare LangGraph": make_bare_loop(index),
        "create_arag_agent": create_arag_agent(Scripted(), index, tools=tools),
        "create_agent": create_agent(Scripted(), make_tools(index, names=_TOOLS)),
        "create_agent, ARAGMiddleware": create_agent(Scripted(), middleware=[ARAGMiddleware(index, tools=tools)]),
    }


async def ask_all(loop: Any, questions: int) -> float:
    """Ask all questions at once; return the seconds of the processor."""
    began = time.process_time()
    asked = [{"messages": [HumanMessage(f"Question {number}?")]} for number in range(questions)]
    states = await asyncio.gather(*(loop.ainvoke(each) for each in asked))
    seconds = time.process_time() - began
    for state in states:
        calls = [message for message in state["messages"] if isinstance(message, ToolMessage)]
        if len(calls) != len(_NAMES):
            raise RuntimeError(f"a run made {len(calls)} calls in place of {len(_NAMES)}")
    return seconds


def measure(index: Index, questions: int, rounds: int) -> dict[str, float]:
    """Return the processor's seconds of each loop's best round."""
    loops = make_loops(index)
    best = dict.fromkeys(loops, float("inf"))
    for _ in range(rounds):
        for name, loop in loops.items():
            best[name] = min(best[name], asyncio.run(ask_all(loop, questions)))
    return best


def main() -> None:
    """Measure, and print the times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=_EXAMPLES, help="the documents; those of examples/ by default")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--at-most", type=float, help="the highest ratio of our loops to the bare one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ingest(options.corpus, Path(folder) / "index") as index:
        best = measure(index, options.questions, options.rounds)
    bare = best["bare LangGraph"]
    for name, seconds in best.items():
        each = 1000 * seconds / options.questions
        print(f"{name:<30} {each:6.1f} ms a question {seconds / bare:6.2f} times the bare loop")
    ratio = max(best["create_arag_agent"], best["create_agent, ARAGMiddleware"]) / bare
    if options.at_most is not None and ratio > options.at_most:
        sys.exit(f"The ratio is {ratio:.2f}: above {options.at_most}.")


if __name__ == "__main__":
    main()
