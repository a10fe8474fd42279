"""A page that shows a run: the answer with its sources, and every step with the text that the model got."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage, convert_to_messages
from langgraph.types import GraphOutput
from markupsafe import Markup

from arag.errors import InputError
from arag.graph.messages import has_calls, split_turn
from arag.models.prices import cite_prices, cost
from arag.models.usage import model_call, total
from arag.pages.markdown import render_answer
from arag.pages.templates import render
from arag.retrieval.tools import find_artifacts

# Nothing in the page runs, but it shows texts from documents and models: the frame may only open links, in new tabs.
_FRAME = (
    '<iframe title="Agent run" sandbox="allow-popups allow-popups-to-escape-sandbox" srcdoc="{}" style="display:block;'
    "width:100%;height:40rem;max-height:85vh;border:1px solid rgba(128,128,128,.35);border-radius:8px;"
    'resize:vertical"></iframe>'
)
_FORCED = {
    "max_steps": "the step limit was reached",
    "token_budget": "the context was full",
    "empty_reply": "the model's reply was empty",
}


class TracePage(str):
    """An HTML page; a notebook shows it."""

    __slots__ = ()

    def __repr__(self) -> str:
        # A notebook stores it next to the page.
        return "<HTML page of a run>"

    def _repr_html_(self) -> str:
        # Without a base, links within the page would point into the notebook's own page.
        page = self.replace("<head>", '<head>\n<base href="about:srcdoc">', 1)
        return _FRAME.format(escape(page))


def trace_page(state: Mapping[str, Any] | GraphOutput[Any], *, error: str = "", model: str = "") -> TracePage:
    """Return a page that shows a run.

    The page is one piece of HTML that loads nothing and runs no scripts. A notebook displays it.

    Args:
        state: What `agent.invoke` returned, in either version, or the same as JSON; for a failed run, what there is.
        error: Why the run failed.
        model: The model's name, for a run that failed.

    Returns:
        The page, a string: `Path("run.html").write_text(trace_page(state), encoding="utf-8")`.

    Raises:
        InputError: The state has no conversation.

    Example:
        >>> state = agent.invoke({"messages": [("user", "Who founded the Emberlane Glassworks?")]})
        >>> "Mattick Grevane" in trace_page(state)
        True
    """
    values: Mapping[str, Any] = state.value if isinstance(state, GraphOutput) else state
    earlier, turn = split_turn(_read_messages(values))
    question, replies = turn[0], [message for message in turn if isinstance(message, AIMessage)]
    is_done = bool(replies) and not has_calls(replies[-1])
    answer = str(values.get("answer") or replies[-1].text) if is_done else ""
    reason = str(values.get("stop_reason") or "answered")
    # A failed run has no records of its own: those in its state are of the question before.
    calls = (is_done and values.get("model_calls")) or [model_call(reply, step=n) for n, reply in enumerate(replies, 1)]
    results = [message for message in turn if isinstance(message, ToolMessage)]
    retrievals = [] if results or not is_done else values.get("trace") or []
    sources = (values.get("citations") or ()) if is_done else ()
    links = {number: _cite(number, source) for number, source in enumerate(sources, 1)}
    numbers = {source["chunk_id"]: number for number, source in enumerate(sources, 1)}
    steps = [_read_step(number, reply, results, calls) for number, reply in enumerate(replies, 1)]
    page = render(
        "run.html",
        question=question.text,
        earlier=[(message.type, message.text) for message in earlier if message.type != "system"],
        status="failed" if not answer else "answered" if reason == "answered" else "forced",
        reason=_FORCED.get(reason, reason),
        error=error,
        models=list(dict.fromkeys(call["model"] for call in calls if call.get("model"))) or [model] * bool(model),
        answer=render_answer(answer, numbers, links),
        sources=list(zip(links.values(), sources, strict=True)),
        totals=_sum_up(calls, [call for step in steps for call in step["calls"]] or retrievals),
        notes=values.get("notes") or (),
        steps=steps,
        retrievals=retrievals,
        model_calls=calls if len(calls) > len(steps) else (),
        price_source=cite_prices(),
    )
    return TracePage(page)


def _read_messages(state: Any) -> list[AnyMessage]:
    messages = state.get("messages") if isinstance(state, Mapping) else None
    if not isinstance(messages, list | tuple) or not messages:
        raise InputError("a run's final state is needed: what `agent.invoke` returns, or the same as JSON")
    try:
        return cast("list[AnyMessage]", convert_to_messages([_unpack(message) for message in messages]))
    except (ValueError, TypeError, KeyError, NotImplementedError) as error:
        raise InputError(f"one of the run's messages is not valid: {str(error).splitlines()[0]}") from error


def _unpack(message: Any) -> Any:
    """Return a message's fields, or the message itself if it has invalid calls: LangChain's conversion loses them."""
    if not isinstance(message, dict):
        return message
    flat = message["data"] if isinstance(message.get("data"), dict) else message
    return AIMessage(**flat) if flat.get("invalid_tool_calls") else flat


def _cite(number: int, source: Mapping[str, Any]) -> Markup:
    title = (source.get("document") or {}).get("title") or source["chunk_id"]
    return Markup('<a class="cite{}" href="#source-{}" title="{}">{}</a>').format(
        "" if source["seen"] else " bad", number, title, number
    )


def _read_step(
    number: int, reply: AIMessage, results: Sequence[ToolMessage], calls: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what a step's template shows: the reply, its figures, and its calls with their results."""
    by_id: dict[str | None, ToolMessage] = {result.tool_call_id: result for result in results}
    return {
        "number": number,
        "reply": reply,
        "reasoning": _read_reasoning(reply),
        "figures": calls[number - 1] if number <= len(calls) else None,
        "calls": [_read_call(call, by_id.get(call["id"])) for call in (*reply.tool_calls, *reply.invalid_tool_calls)],
    }


def _read_call(call: Any, result: ToolMessage | None) -> dict[str, Any]:
    artifact = next(find_artifacts([result] if result else []), {})
    return {
        "tool": call["name"] or "unknown",
        "arguments": call["args"],
        "text": result.text if result else "The call has no result.",
        "is_error": result is None or result.status == "error",
        "new_chunks": artifact.get("new_chunks", ()),
        "retrieved_tokens": artifact.get("retrieved_tokens", 0),
        "evidence_tokens": artifact.get("evidence_tokens", 0),
        "seconds": result.response_metadata.get("seconds") if result else None,
    }


def _read_reasoning(reply: AIMessage) -> str:
    try:
        texts = [str(b.get("reasoning") or "") for b in reply.content_blocks if b["type"] == "reasoning"]
    except (KeyError, TypeError, ValueError, AttributeError):  # blocks of an unknown form
        return ""
    return "\n\n".join(texts).strip()


def _sum_up(calls: Sequence[Any], retrievals: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a question's figures; what is unknown is None."""
    return {
        **total(calls),
        "steps": sum(not call["forced"] for call in calls),
        "tool_calls": len(retrievals),
        "retrieved_tokens": sum(call["retrieved_tokens"] for call in retrievals),
        "evidence_tokens": sum(call["evidence_tokens"] for call in retrievals),
        "read": len({chunk_id for call in retrievals for chunk_id in call["new_chunks"]}),
        "model_seconds": _sum(call["seconds"] for call in calls),
        "tool_seconds": _sum(call["seconds"] for call in retrievals),
        "cost": cost(calls) if calls else None,
    }


def _sum(numbers: Iterable[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
