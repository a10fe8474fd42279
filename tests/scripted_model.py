"""A small corpus with a question about it, and a model that never answers by itself."""

from __future__ import annotations

from typing import Any, Literal, get_args

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from scripted import ScriptedModel, call, calls, invalid_call

Mode = Literal["one_call", "several_calls", "empty", "unknown_tool", "invalid_json"]
MODES: tuple[Mode, ...] = get_args(Mode)

# Three short documents that lead to each other, and a long one.
DOCUMENTS = [
    {
        "id": "lothair",
        "title": "Lothair II",
        "text": "Lothair II was a king of Lotharingia. He married Teutberga in 855.",
    },
    {
        "id": "teutberga",
        "title": "Teutberga",
        "text": "Teutberga was a daughter of Boso the Elder. She died in 875.",
    },
    {"id": "boso", "title": "Boso the Elder", "text": "Boso the Elder was a count of Arles. He had three children."},
    {
        "id": "annals",
        "title": "Annals of Storms",
        "text": " ".join(f"In the year {year} storm number {year * 7} broke the bridges." for year in range(800, 1000)),
    },
]

QUESTION = "Who was the father of the wife of Lothair II?"
ANSWER = AIMessage("Boso the Elder. Teutberga was his daughter [teutberga:0].")
NOTICE = "[lothair:0] Shown in full above."


class EndlessModel(ScriptedModel):
    """Never gives an answer while it has tools.

    Attributes:
        mode: What it does instead.
        calls: What it was sent, call by call.
    """

    mode: Mode

    def _reply(self, messages: list[BaseMessage], options: dict[str, Any]) -> AIMessage:
        if not options.get("tools"):
            return AIMessage("That is all [lothair:0].")
        word = f"word{len(self.calls)}"
        match self.mode:
            case "one_call":
                return call("keyword_search", keywords=[word, "Lothair"])
            case "several_calls":
                return calls(("keyword_search", {"keywords": [word]}), ("chunk_read", {"chunk_ids": ["lothair:0"]}))
            case "empty":
                return AIMessage("  ")
            case "unknown_tool":
                return call("web_search", query=word)
            case "invalid_json":
                return invalid_call("keyword_search", '{"keywords": [')


def asked(question: str = QUESTION) -> dict[str, Any]:
    """Return a graph's input."""
    return {"messages": [HumanMessage(question)]}


def in_thread(name: str = "t") -> dict[str, Any]:
    """Return the config of a thread."""
    return {"configurable": {"thread_id": name}}


def results(state) -> list[ToolMessage]:
    """Return the results of the tools."""
    return [m for m in state["messages"] if isinstance(m, ToolMessage)]


def plain(messages) -> list[tuple]:
    """Return what tells messages apart but for the ids that are made up anew each time."""
    return [(m.type, m.text, [(c["name"], c["args"], c["id"]) for c in getattr(m, "tool_calls", [])]) for m in messages]
