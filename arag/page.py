"""A page that shows a run: the answer with its sources, and every step with the text that the model got.

Nothing in it is loaded or runs. Evaluation's pages are made from the same templates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, TypeAlias, cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolMessage, messages_from_dict
from markdown_it import MarkdownIt
from markupsafe import Markup

from arag.errors import InputError
from arag.graph.citations import is_web_address
from arag.graph.outcome import NO_ANSWER_FOUND, name_end
from arag.graph.records import tool_record, total_retrieval
from arag.graph.review import find_call
from arag.graph.state import find_run, kind_of_reply, list_calls, split_turn
from arag.models.prices import cost, format_dollars
from arag.models.replies.reading import ASKED_AGAIN
from arag.models.usage import ModelCall, Usage, model_call, total
from arag.retrieval.presentation.code_lines import needs_one_width
from arag.retrieval.presentation.places import name_cited_pages
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
        # Without a base, links within the page would lead into the notebook's own page.
        page = self.replace("<head>", '<head>\n<base href="about:srcdoc">', 1)
        return _FRAME.format(escape(page))


def trace_page(state: Mapping[str, Any], *, error: str = "", model: str = "") -> TracePage:
    """Return a page that shows a run.

    The page is one piece of HTML that loads nothing and runs no scripts. A notebook displays it.

    Args:
        state: The result of `agent.invoke`, or the same as JSON; of a failed run, the state so far.
        error: Why the run failed.
        model: The model's name, for a run whose messages do not have it.

    Returns:
        The page, a string: `Path("run.html").write_text(trace_page(state), encoding="utf-8")`.

    Raises:
        InputError: The state has no question, or one of its messages is not valid.

    Example:
        >>> state = agent.invoke({"messages": [("user", "Who founded the Emberlane Glassworks?")]})
        >>> "Mattick Grevane" in trace_page(state)
        True
    """
    run = RunView.from_state(state, error=error, model=model)
    return TracePage(render("run.html", run=run))


# --- the data of the template ---


@dataclass(frozen=True)
class StepView:
    """One model call of a run, with the tool calls that it asked for."""

    text: str
    reasoning: str
    figures: ModelCall
    calls: list[dict[str, Any]]
    """Records of the tool calls, each with the `text` of its result."""

    @classmethod
    def from_reply(cls, reply: AIMessage, results: Mapping[str, ToolMessage]) -> StepView:
        """Make the view of a reply; `results` has the tools' results by the id of their call."""
        calls = []
        for call in list_calls(reply):
            result = results.get(call["id"] or "")
            calls.append(_read_call(call, result))
        return cls(
            text=reply.text.strip(),
            reasoning=_read_reasoning(reply),
            figures=model_call(reply, step=0),
            calls=calls,
        )


_Status: TypeAlias = Literal["answered", "unanswered", "forced", "failed"]
_OTHER_ENDS = {"cut off": "Answer cut off", "refused": "Refused by the model"}


@dataclass(frozen=True)
class RunView:
    """A run as `run.html` shows it."""

    question: str
    earlier: list[str]
    """The texts of earlier questions and answers."""
    status: _Status
    reason: str
    """How the run ended, in words."""
    error: str
    models: list[str]
    answer: Markup
    sources: Sequence[Mapping[str, Any]]
    """The citations."""
    usage: Usage
    retrieval: Mapping[str, int]
    seconds: float
    cost: float | None
    """In US dollars; None if it is not known."""
    notes: Sequence[Mapping[str, Any]]
    """Lists of lines that a method of the evaluation adds, each with a title."""
    steps: list[StepView]
    retrievals: Sequence[Mapping[str, Any]]
    """Records of retrievals that no message holds, of methods that call no tools."""

    @property
    def is_from_memory(self) -> bool:
        """Whether the model answered without a search, in this conversation."""
        is_empty = not self.sources and not self.retrieval["tool_calls"] and not self.notes
        return bool(self.answer) and is_empty and not self.earlier and self.reason != "refused"

    @property
    def verdict(self) -> str:
        """How the run ended, as a heading says it."""
        if self.status in {"answered", "unanswered"}:
            return self.reason.capitalize()
        if self.reason in _OTHER_ENDS:
            return _OTHER_ENDS[self.reason]
        if self.status == "forced":
            return f"Answer forced: {self.reason}"
        return "Failed" if self.error else "No answer"

    @classmethod
    def from_state(cls, state: Mapping[str, Any], *, error: str, model: str) -> RunView:
        """Read a state, of a failed run, too, and with messages as JSON.

        Args:
            state: The state.
            error: Why the run failed.
            model: The model's name, if no reply has one.

        Raises:
            InputError: The state has no question, or one of its messages is not valid.
        """
        messages = [_read_message(message) for message in state.get("messages") or ()]
        earlier, turn = split_turn(messages)
        is_done = kind_of_reply(turn[-1]) == "answer"
        # A failed run has no records of its own: those in its state are of the question before.
        records = state if is_done else {}
        run = _find_shown_run(turn, is_done=is_done)
        results = {message.tool_call_id: message for message in run if isinstance(message, ToolMessage)}
        steps = [StepView.from_reply(reply, results) for reply in run if isinstance(reply, AIMessage)]
        retrievals = [] if results else list(records.get("trace") or ())
        calls = _join_calls(steps) or retrievals
        _insert_unused(steps, records.get("model_calls") or ())
        model_calls = records.get("model_calls") or [step.figures for step in steps]
        answer = _read_answer(records, turn[-1])
        sources = records.get("citations") or ()
        reason = name_end(answer, str(records.get("stop_reason") or "answered"))
        return cls(
            question=turn[0].text,
            earlier=[message.text for message in earlier if not isinstance(message, SystemMessage)],
            status=_choose_status(answer, reason),
            reason=reason.replace("_", " "),
            error=error,
            models=_list_models(model_calls, model),
            answer=_render_answer(answer, sources),
            sources=sources,
            usage=total(model_calls),
            retrieval=total_retrieval(calls),
            seconds=_sum_seconds([*model_calls, *calls]),
            cost=cost(model_calls) if model_calls else None,
            notes=state.get("notes") or (),
            steps=steps,
            retrievals=retrievals,
        )


def _insert_unused(steps: list[StepView], calls: Iterable[ModelCall]) -> None:
    """Insert the steps whose replies were not used: the conversation does not hold them."""
    for call in calls:
        if call.get("asked_again"):
            steps.insert(call["step"] - 1, StepView("", "", call, []))


def _read_message(message: AnyMessage | dict[str, Any]) -> AnyMessage:
    """Return a message, also from JSON: as LangGraph's server sends it, or as `messages_to_dict` writes it."""
    if not isinstance(message, dict):
        return message
    try:
        data = message.get("data") or message
        [read] = messages_from_dict([{"type": message["type"], "data": data}])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"one of the run's messages is not valid: {str(error).splitlines()[0]}") from error
    return cast("AnyMessage", read)


def _find_shown_run(turn: Sequence[AnyMessage], *, is_done: bool) -> list[AnyMessage]:
    """Return the messages of a turn that belong to the run, with its answer.

    In a larger graph, other agents' messages come first. Messages of the evaluation's methods have no seconds: then all
    behind the question belong to the run.
    """
    answer: list[AnyMessage] = []
    if is_done:
        *turn, last = turn
        answer = [last]
    run = find_run(turn) or turn[1:]
    return [*run, *answer]


def _join_calls(steps: Iterable[StepView]) -> list[Mapping[str, Any]]:
    """Return the records of the tool calls of all steps."""
    calls: list[Mapping[str, Any]] = []
    for step in steps:
        calls += step.calls
    return calls


def _read_answer(records: Mapping[str, Any], last: AnyMessage) -> str:
    """Return the answer of a run; records without one are of a graph that is not ours, which ends with the answer."""
    if not records:
        return ""
    return str(records.get("answer") or last.text)


def _choose_status(answer: str, reason: str) -> _Status:
    if not answer:
        return "failed"
    if reason == NO_ANSWER_FOUND:
        return "unanswered"
    return "answered" if reason == "answered" else "forced"


def _list_models(model_calls: Iterable[ModelCall], default: str) -> list[str]:
    """Return the names of the models that were called, each once; the default if no call has a name."""
    names = [call["model"] for call in model_calls if call["model"]]
    if not names and default:
        names = [default]
    return list(dict.fromkeys(names))


def _sum_seconds(calls: Iterable[Mapping[str, Any]]) -> float:
    return sum(call["seconds"] or 0 for call in calls)


def _read_reasoning(reply: AIMessage) -> str:
    try:
        thoughts = [str(block.get("reasoning") or "") for block in reply.content_blocks if block["type"] == "reasoning"]
    except (KeyError, TypeError, ValueError, AttributeError):  # LangChain cannot read all that it stores
        return ""
    return "\n\n".join(thoughts).strip()


def _read_call(call: Any, result: ToolMessage | None) -> dict[str, Any]:
    """Return the record of a tool call, with its tool's name and the text of its result."""
    name = call["name"] or "unknown"
    if result is None:
        result = ToolMessage("The call has no result.", tool_call_id="", name=name, status="error")
    record = tool_record(result, 0, call)
    arguments = find_call(result, call)["args"]  # also those that are not JSON
    return {**record, "tool": record["tool"] or name, "arguments": arguments, "text": result.text}


# --- the answer ---

_MARK_START, _MARK_END = "\ue000", "\ue001"  # characters for private use, which Markdown leaves alone

# Without HTML and pictures. Indented code and definitions of links would hide citations, and answers do not mean them.
_MARKDOWN = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
_MARKDOWN.disable(["code", "image", "reference"])
_MARKDOWN.validateLink = is_web_address  # type: ignore[method-assign, assignment]


def _render_answer(answer: str, sources: Sequence[Mapping[str, Any]]) -> Markup:
    """Render an answer's Markdown, with links in place of its citations; HTML in it is shown as text.

    While the Markdown is rendered, each citation is a mark with the number of its source.
    """
    answer = re.sub(f"[{_MARK_START}{_MARK_END}]", "\ufffd", answer)
    marks: dict[tuple[int, int], str] = {}  # by their places; an id of two indexes has two
    for number, source in enumerate(sources, 1):
        for span in source.get("spans", ()):
            place = span["start"], span["end"]
            marks[place] = f"{marks.get(place, '')} {_mark_citation(number)}".strip()
    for start, end in sorted(marks, reverse=True):  # from the end: earlier places stay valid
        answer = answer[:start] + marks[start, end] + answer[end:]
    html = _MARKDOWN.render(answer).replace("<a href=", '<a target="_blank" rel="noopener noreferrer" href=')

    links: dict[str, str] = {}
    for number, source in enumerate(sources, 1):
        kind = "cite" if source["seen"] else "cite bad"
        links[_mark_citation(number)] = f'<a class="{kind}" href="#source-{number}">{number}</a>'

    def replace_mark(match: re.Match[str]) -> str:
        return links.get(match[0], match[0])

    # Tags are matched as well, and stay as they are: their attributes may hold marks, too.
    html = re.sub(f"<[^>]*>|{_MARK_START}\\d+{_MARK_END}", replace_mark, html)
    return Markup(html)  # noqa: S704 - the renderer escapes HTML


def _mark_citation(number: int) -> str:
    return f"{_MARK_START}{number}{_MARK_END}"


# --- templates ---


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.2f} s"
    return f"{seconds // 60:,.0f} min {seconds % 60:.0f} s"


def _show_argument(value: Any) -> str:
    """Return an argument of a tool call as text: the items of a list beside each other, an object as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " · ".join(_show_argument(item) for item in value)
    return json.dumps(value, ensure_ascii=False, default=str)


_TEMPLATES = Environment(
    loader=PackageLoader("arag", ""),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals["reasons"] = ASKED_AGAIN
_TEMPLATES.filters["argument"] = _show_argument
_TEMPLATES.filters["count"] = count
_TEMPLATES.filters["dollars"] = format_dollars
_TEMPLATES.filters["duration"] = _duration
_TEMPLATES.filters["pages"] = name_cited_pages
_TEMPLATES.filters["short"] = shorten
_TEMPLATES.tests["of_one_width"] = needs_one_width
_TEMPLATES.tests["web_address"] = is_web_address


def render(template: str, **values: Any) -> str:
    """Render a template below `arag/`: values are escaped, surrogates replaced, and control characters written out.

    Args:
        template: The path of the template.
        values: The variables of the template.

    Returns:
        The page.
    """
    page = _TEMPLATES.get_template(template).render(values)
    return visible(replace_surrogates(page.lstrip()))


def stream(template: str, **values: Any) -> Iterator[str]:
    """Render a template as `render` does, piece by piece: a loop in it may wait for its values."""
    for piece in _TEMPLATES.get_template(template).generate(values):
        yield visible(replace_surrogates(piece))
