"""Plays a model for every method of experiments by fixed rules. It is no language model, and its replies say so.

It exists to exercise the machinery: recordings of it show what each method shows to a model, not how good a method is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from weak_player import list_plan, quote_lines

from arag.models.extractive import question_keywords
from arag.text.words import find_names

NAME = "scripted player (fixed rules, no language model)"
_MAX_NAMES = 4  # of a passage
_MAX_QUOTED = 400  # characters of an answer


def _names(text: str) -> list[str]:
    """Return the first names of a text's data."""
    return find_names(text.partition("<")[2])[:_MAX_NAMES]


def _extract(text: str) -> dict[str, Any]:
    names = _names(text)
    relationships = [
        {"source": first, "target": second, "description": f"{first} stands beside {second}.", "strength": 5}
        for first, second in pairwise(names)
    ]
    entities = [{"name": name, "type": "thing", "description": f"{name} is named."} for name in names]
    return {"entities": entities, "relationships": relationships}


def _report(text: str) -> dict[str, Any]:
    name = (_names(text) or ["Names"])[0]
    findings = [{"summary": name, "explanation": f"{name} is named."}]
    return {"title": name, "summary": f"About {name}.", "rating": 5, "rating_explanation": "", "findings": findings}


def _triples(text: str) -> dict[str, Any]:
    return {"triples": [[first, "stands beside", second] for first, second in pairwise(_names(text))]}


def _quote(text: str) -> str:
    """Return the line of a text that shares most words with its first one, which has the question."""
    question, _, rest = text.partition("\n")
    quoted = quote_lines([HumanMessage(question), ToolMessage(rest, tool_call_id="0")])
    return quoted.partition("\n")[0][:_MAX_QUOTED].strip() or "Nothing."


def _check(text: str) -> dict[str, Any]:
    return {"components": [{"question": text[:60], "status": "full"}], "irrelevant_claims": [], "follow_ups": []}


def _answer_step(text: str) -> dict[str, Any]:
    return {"analysis": "", "answer": _quote(text), "success": True, "rating": 5}


_ROLES: dict[str, Callable[[str], Any]] = {  # by the beginning of the task
    "You turn a text into a knowledge graph": _extract,
    "You are given descriptions": lambda text: text[:_MAX_QUOTED],
    "You report on a community": _report,
    "You read reports on parts": lambda text: {"points": [{"description": _quote(text), "score": 50}]},
    "You answer a question about a whole corpus": _quote,
    "List the entities": lambda text: {"entities": _names(text)},
    "Write down the facts": _triples,
    "Choose the facts": lambda _: {"keep": [1, 2]},
    "You plan how": lambda text: {"steps": [text.partition("\n")[0]]},
    "You prepare one step": lambda text: {"type": "question", "task": text.partition("\n")[0]},
    "You take notes": _quote,
    "You answer a question from notes": lambda text: {
        "analysis": "",
        "answer": _quote(text),
        "success": True,
        "rating": 5,
    },
    "You give the final answer": lambda text: {"answer": _quote(text), "score": 5, "solved": True},
    "You list the facts": lambda text: {"facts": [text.partition("\n")[0]]},
    "You write the background": _quote,
    "You take a passage apart": lambda text: {"facts": [_quote(text)]},
    "You answer a question from passages of a corpus, which may": lambda text: {"reason": "", "answer": _quote(text)},
    "You judge": lambda text: {"grade": len(text) % 11},
    "You check whether": _check,
    "You answer a question from numbered documents, in": lambda text: {"answer": _quote(text), "found": True},
}


class ScriptedPlayer(BaseChatModel):
    """A model with a fixed reply to each task."""

    @property
    def _llm_type(self) -> str:
        return "scripted-player"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[Any, AIMessage]:
        """Bind the tools."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        names = {tool["function"]["name"] for tool in options.get("tools", ())}
        reply = _call_tool(messages, names) if names else None
        if reply is None:
            reply = AIMessage(_answer(messages))
        reply.response_metadata = {"model_name": NAME, "model_provider": "none"}
        return ChatResult(generations=[ChatGeneration(message=reply)])


def _call_tool(messages: Sequence[BaseMessage], tools: set[str]) -> AIMessage | None:
    """Return the next call of the plan; None after its end."""
    question = next(message.text for message in messages if isinstance(message, HumanMessage))
    results = [message for message in messages if isinstance(message, ToolMessage)]
    plan = list_plan(question, results, tools)
    if "bash" in tools:
        words = "|".join(map(re.escape, question_keywords(question)[:3]))
        plan = [("bash", {"command": f"grep -rniE '{words}' . | sort | cut -c1-300 | head -20".replace("\\", "")})]
    plan = [(name, arguments) for name, arguments in plan if name in tools]
    if len(results) >= len(plan):
        return None
    name, arguments = plan[len(results)]
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{len(results)}"}])


def _answer(messages: Sequence[BaseMessage]) -> str:
    for beginning, reply in _ROLES.items():
        if messages[0].text.startswith(beginning):
            value = reply(messages[-1].text)
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if any(isinstance(message, ToolMessage) for message in messages):
        return quote_lines(messages)[:_MAX_QUOTED]
    return f"Answer: {_quote(messages[-1].text)}"
