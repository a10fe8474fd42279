"""An agent as a tool of another agent: the question goes in, the answer with its citations comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool, tool

_DESCRIPTION = "Have an agent search the documents and answer a question, with the ids of its sources in brackets."
_KEPT = ("answer", "citations", "grounding", "stop_reason", "steps", "usage", "structured_response")  # of the state


def make_agent_tool(
    agent: Runnable[Any, Any],
    *,
    name: str = "ask_documents",
    description: str = _DESCRIPTION,
) -> BaseTool:
    """Make a tool that has an agent answer a question, for a supervisor or an agent of your own.

    The model is shown the answer. The message's artifact has `citations` and the like, and `chunk_ids`: those that the
    answer names and the agent has seen. If an agent of this package calls the tool and its answer names one of them, it
    has the citation as it is here, also of another index. The agent's own scope applies, and so does the scope in the
    context of the run that calls the tool.

    Args:
        agent: An agent of `create_arag_agent`, without a checkpointer.
        name: The tool's name.
        description: What its model reads: which documents the agent has, and when to ask it.

    Returns:
        The tool, with one argument, `question`.

    Example:
        >>> from arag import create_arag_agent, make_agent_tool
        >>> ask = make_agent_tool(create_arag_agent("extractive", index))
        >>> ask.invoke({"question": "Who was the engineer of the Vellin Light?"})
        'The engineer of the Vellin Light was Corrin Ashe-Woldar, ...'
    """

    def describe(state: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        artifact = {key: state[key] for key in _KEPT if key in state}
        cited = [citation["chunk_id"] for citation in state["citations"] if citation["seen"]]
        return state["answer"], artifact | {"chunk_ids": cited}

    @tool(name, description=description, response_format="content_and_artifact")
    def ask(
        question: Annotated[str, "The question, with all that is needed to understand it."],
        config: RunnableConfig,
    ) -> tuple[str, dict[str, Any]]:
        return describe(agent.invoke({"messages": [("user", question)]}, config))

    async def ask_in_background(question: str, config: RunnableConfig) -> tuple[str, dict[str, Any]]:
        return describe(await agent.ainvoke({"messages": [("user", question)]}, config))

    ask.coroutine = ask_in_background
    return ask
