"""A page that shows a run: the answer with its sources, and every step with the text that the model got.

Nothing in it is loaded or runs. Evaluation's pages are made from the same templates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from typing import Any, cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage, messages_from_dict
from markdown_it import MarkdownIt
from markupsafe import Markup

from arag.errors import InputError
from arag.graph.citations import is_web_address
from arag.graph.records import tool_record, total_retrieval
from arag.graph.state import find_run, kind_of_reply, split_turn
from arag.models.prices import cost, format_dollars
from arag.models.usage import model_call, total
from arag.retrieval.presentation.render import name_pages
from arag.text.normalise import count, shorten
from arag.text.surrogates import replace_surrogates
from arag.text.visible import visible

# The page shows texts from documents and models: the frame may only open links, in new tabs.
_FRAME = (
    '<iframe title="Agent run" sandbox="allow-popups allow-popups-to-escape-sandbox" srcdoc="{}" style="display:block;'
    "width:100%;height:40rem;max-height:85vh;border:1px solid rgba(128,128,128,.35);border-radius:8px;"
    'resize:vertical"></iframe>'
)


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


def trace_page(state: Mapping[str, Any], *, error: str = "", model: str = "") -> TracePage:
    """Return a page that shows a run.

    The page is one piece of HTML that loads nothing and runs no scripts. A notebook displays it.

    Args:
        state: What `agent.invoke` returned, or the same as JSON; for a failed run, what there is.
        error: Why the run failed.
        model: The model's name, for a run that failed.

    Returns:
        The page, a string: `Path("run.html").write_text(trace_page(state), encoding="utf-8")`.

    Raises:
        InputError: The state has no question.

    Example:
        >>> state = agent.invoke({"messages": [("user", "Who founded the Emberlane Glassworks?")]})
        >>> "Mattick Grevane" in trace_page(state)
        True
    """
    earlier, turn = split_turn([_read_message(message) for message in state.get("messages") or ()])
    is_done = kind_of_reply(turn[-1]) == "answer"
    before = turn[:-1] if is_done else turn
    # In a larger graph, other agents' messages come first; those of evaluation's methods have no seconds.
    run = [*(find_run(before) or before[1:]), *turn[len(before) :]]
    results = {message.tool_call_id: message for message in run if isinstance(message, ToolMessage)}
    steps = [_read_step(reply, results) for reply in run if isinstance(reply, AIMessage)]
    # A failed run has no records of its own: those in its state are of the question before.
    records = state if is_done else {}
    model_calls = records.get("model_calls") or [step["figures"] for step in steps]
    # Of methods that call no tools, no message holds the retrievals.
    retrievals = () if results else records.get("trace") or ()
    calls = [call for step in steps for call in step["calls"]] or retrievals
    answer = str(records.get("answer") or (turn[-1].text if is_done else ""))
    sources = records.get("citations") or ()
    reason = str(records.get("stop_reason") or "answered")
    page = render(
        "run.html",
        question=turn[0].text,
        earlier=[message.text for message in earlier if message.type != "system"],
        status="failed" if not answer else "answered" if reason == "answered" else "forced",
        reason=reason.replace("_", " "),
        error=error,
        models=list(dict.fromkeys(call["model"] for call in model_calls if call["model"])) or [model] * bool(model),
        answer=_render_answer(answer, sources),
        sources=sources,
        usage=total(model_calls),
        retrieval=total_retrieval(calls),
        seconds=sum(call["seconds"] or 0 for call in (*model_calls, *calls)),
        cost=cost(model_calls) if model_calls else None,
        notes=state.get("notes") or (),
        steps=steps,
        retrievals=retrievals,
    )
    return TracePage(page)


# --- what the template shows ---


def _read_message(message: AnyMessage | dict[str, Any]) -> AnyMessage:
    """Return a message, also from JSON: as LangGraph's server sends it, or as `messages_to_dict` writes it."""
    if not isinstance(message, dict):
        return message
    try:
        (read,) = messages_from_dict([{"type": message["type"], "data": message.get("data") or message}])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"one of the run's messages is not valid: {str(error).splitlines()[0]}") from error
    return cast("AnyMessage", read)


def _read_step(reply: AIMessage, results: Mapping[str, ToolMessage]) -> dict[str, Any]:
    """Return what a step shows: the reply, its figures, and its calls with their results."""
    try:
        thoughts = [str(block.get("reasoning") or "") for block in reply.content_blocks if block["type"] == "reasoning"]
    except (KeyError, TypeError, ValueError, AttributeError):  # LangChain cannot read all that it stores
        thoughts = []
    return {
        "text": reply.text.strip(),
        "reasoning": "\n\n".join(thoughts).strip(),
        "figures": model_call(reply, step=0),
        "calls": [_read_call(c, results.get(c["id"] or "")) for c in (*reply.tool_calls, *reply.invalid_tool_calls)],
    }


def _read_call(call: Any, result: ToolMessage | None) -> dict[str, Any]:
    name = call["name"] or "unknown"
    if result is None:
        result = ToolMessage("The call has no result.", tool_call_id="", name=name, status="error")
    return {**tool_record(result, 0, call["args"]), "tool": name, "text": result.text}


# --- the answer ---

# Without HTML and pictures. Indented code and definitions of links, which answers do not mean, would hide citations.
_MARKDOWN = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
_MARKDOWN.disable(["code", "image", "reference"])
_MARKDOWN.validateLink = is_web_address  # type: ignore[method-assign, assignment]


def _render_answer(answer: str, sources: Sequence[Mapping[str, Any]]) -> Markup:
    """Render an answer's Markdown, with links in place of its citations; HTML in it is shown as text."""
    answer = re.sub("[\ue000\ue001]", "\ufffd", answer)
    cited = [(span, number) for number, source in enumerate(sources, 1) for span in source["spans"]]
    # Marks stand for citations while the Markdown is rendered.
    for span, number in sorted(cited, key=lambda entry: entry[0]["start"], reverse=True):
        answer = f"{answer[: span['start']]}\ue000{number}\ue001{answer[span['end'] :]}"
    html = _MARKDOWN.render(answer).replace("<a href=", '<a target="_blank" rel="noopener noreferrer" href=')

    links = {
        f"\ue000{number}\ue001": f'<a class="{kind}" href="#source-{number}">{number}</a>'
        for number, kind in enumerate(("cite" if source["seen"] else "cite bad" for source in sources), 1)
    }
    # Tags stay as they are: their attributes may hold ids, too.
    html = re.sub("<[^>]*>|\ue000\\d+\ue001", lambda match: links.get(match[0], match[0]), html)
    return Markup(html)  # noqa: S704 - the renderer escapes HTML


# --- templates ---


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 60 else f"{seconds // 60:,.0f} min {seconds % 60:.0f} s"


_TEMPLATES = Environment(
    loader=PackageLoader("arag", ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_TEMPLATES.filters |= {"duration": _duration, "dollars": format_dollars, "count": count, "short": shorten}
_TEMPLATES.filters |= {"json": partial(json.dumps, ensure_ascii=False, default=str)}
_TEMPLATES.filters |= {"pages": name_pages}
_TEMPLATES.tests["web_address"] = is_web_address


def render(template: str, **values: Any) -> str:
    """Render a template below `arag/`; values are escaped, surrogates replaced, and controls written out."""
    return visible(replace_surrogates(_TEMPLATES.get_template(template).render(values).lstrip()))
