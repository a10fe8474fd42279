"""What a run's final state shows, for a page.

A state may be of an earlier version, of a run that failed, or have come as JSON: what it lacks is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, convert_to_messages, messages_from_dict

from arag.errors import InputError
from arag.graph.messages import find_earlier_turns, find_question
from arag.models.prices import cost
from arag.models.usage import model_call
from arag.pages.calls import Call, calls_of, read_ids
from arag.pages.chunks import Source, chunks_of

_NEEDED = (
    "a run's final state is needed: what `agent.invoke` returns, a dict whose `messages` hold the conversation, or "
    "the same as JSON"
)
_FORCED = {
    "max_steps": "the steps were used up",
    "token_budget": "the context was full",
    "invalid_replies": "too many replies could not be used",
}
_BRACKETED = re.compile(r"\[[^\[\]\n]{1,400}\]")
_TOKENS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")


@dataclass(frozen=True)
class Step:
    """A model call, and the tool calls that it asked for.

    Attributes:
        number: Its number, from 1.
        model: The model call's figures; None where nothing is known.
        reply: What the model said; None where it said nothing.
        forced: Whether an answer was forced.
        cut_off: Whether the reply is cut off.
        calls: The tool calls.
    """

    number: int
    model: Mapping[str, Any] | None
    reply: AIMessage | None = None
    forced: bool = False
    cut_off: bool = False
    calls: Sequence[Call] = ()

    @property
    def answer(self) -> bool:
        """Whether it ends the run."""
        return self.reply is not None and not _asks(self.reply)

    @property
    def said(self) -> str:
        """What the model said beside its calls."""
        return self.reply.text.strip() if self.reply is not None and _asks(self.reply) else ""

    @property
    def thought(self) -> str:
        """What the model thought."""
        try:
            blocks = self.reply.content_blocks if self.reply is not None else []
        except (KeyError, TypeError, ValueError, AttributeError):  # blocks that are no provider's
            return ""
        return "\n\n".join(str(b.get("reasoning") or "") for b in blocks if b["type"] == "reasoning").strip()


def show_run(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run's final state shows, by the names that the page's template uses.

    Args:
        state: The state, its messages as objects or as dicts.

    Raises:
        InputError: It holds no conversation.
    """
    messages = _read_messages(state)
    place = find_question(messages)
    state = state if _belongs(state, messages, place) else {"read_chunks": state.get("read_chunks")}
    later = messages[place + 1 :]
    last = later[-1] if later else None
    reply = last if isinstance(last, AIMessage) and not _asks(last) else None
    answer = str(state.get("answer") or reply.text) if reply is not None else ""
    stop_reason = str(state.get("stop_reason") or ("answered" if reply is not None else ""))
    cited = {str(citation.get("chunk_id") or ""): citation for citation in state.get("citations") or ()}
    cited.pop("", None)
    sources = [_name_source(number, chunk_id, citation) for number, (chunk_id, citation) in enumerate(cited.items(), 1)]
    read_before = {chunk_id for message in messages[:place] for chunk_id in read_ids(message, "new_chunks")}
    steps = _list_steps(later, state, stop_reason, read_before)
    reads = {step.number: {chunk_id for call in step.calls for chunk_id in call.new_chunks} for step in steps}
    return {
        "question": messages[place].text,
        "earlier": find_earlier_turns(messages),
        "answer": _link_citations(answer, sources) if answer else None,
        "status": "failed" if not answer else "answered" if stop_reason == "answered" else "forced",
        "reason": _FORCED.get(stop_reason, stop_reason),
        "errors": [step.number for step in steps if any(call.error for call in step.calls)],
        "sources": sources,
        "steps": steps,
        "chunks": chunks_of(messages, state.get("read_chunks") or (), sources, reads),
        "totals": _sum_up(state, steps),
    }


# --- messages ---


def _read_messages(state: Any) -> list[AnyMessage]:
    messages = state.get("messages") if isinstance(state, Mapping) else None
    if not isinstance(messages, list | tuple) or not messages:
        raise InputError(_NEEDED)
    try:
        return [_read_message(message) for message in messages]
    except (ValueError, TypeError, KeyError, NotImplementedError) as error:
        raise InputError(f"{_NEEDED}; one of its messages is none: {str(error).splitlines()[0]}") from error


def _read_message(message: Any) -> AnyMessage:
    """Return a message, also from the dicts that LangGraph's server and LangChain's `dumps` write."""
    if isinstance(message, dict) and message.get("type") == "constructor" and "kwargs" in message:
        message = message["kwargs"]
    if isinstance(message, dict) and "type" in message:
        wrapped = message if isinstance(message.get("data"), dict) else {"type": message["type"], "data": message}
        return cast("AnyMessage", messages_from_dict([wrapped])[0])
    return cast("AnyMessage", convert_to_messages([message])[0])


def _belongs(state: Mapping[str, Any], messages: Sequence[AnyMessage], place: int) -> bool:
    """Tell whether the state's counts are the last question's: they are not, where its first model call failed."""
    if len(messages) == place + 1:
        return False
    known = state.get("question_id")
    return not known or known in {messages[place].id, messages[place].text}


def _asks(message: AIMessage) -> bool:
    return bool(message.tool_calls or message.invalid_tool_calls)


# --- the answer ---


def _name_source(number: int, chunk_id: str, citation: Mapping[str, Any]) -> Source:
    if citation.get("read"):
        status = "read"
    elif citation.get("seen"):
        status = "seen"
    else:
        status = "unseen" if citation.get("document_ids") else "unknown"
    return Source(number, chunk_id, [str(title) for title in citation.get("titles") or ()], status)


def _link_citations(answer: str, sources: Sequence[Source]) -> list[str | Source]:
    """Cut an answer into texts and citations; brackets that hold nothing but citations are dropped."""
    by_id = {source.chunk_id: source for source in sources}
    longest_first = sorted(by_id, key=len, reverse=True)
    pattern = "|".join([*(re.escape(f"[{chunk_id}]") for chunk_id in longest_first), _BRACKETED.pattern])
    parts: list[str | Source] = []
    end = 0
    for match in re.finditer(pattern, answer):
        inner = match.group()[1:-1]
        names = [inner] if inner in by_id else re.split(r"([,;]\s*)", inner)
        if any(name.strip() in by_id for name in names):
            linked: list[str | Source] = [by_id.get(name.strip(), name) for name in names]
            only = all(not isinstance(part, str) or not part.strip(" ,;\t") for part in linked)
            linked = [part for part in linked if not isinstance(part, str)] if only else ["[", *linked, "]"]
            parts += [answer[end : match.start()], *linked]
            end = match.end()
    return [part for part in [*parts, answer[end:]] if part]


# --- steps ---


def _list_steps(
    messages: Sequence[AnyMessage], state: Mapping[str, Any], stop_reason: str, read: set[str]
) -> list[Step]:
    """Walk through the messages behind the question: each reply of the model is a step. Empty ones left no message."""
    model_calls = {call.get("step"): call for call in state.get("model_calls") or ()}
    places = [n for n, message in enumerate(messages) if isinstance(message, AIMessage)]
    steps: list[Step] = []
    for place, end in [*pairwise([*places, len(messages)]), (None, 0)]:
        while (call := model_calls.get(len(steps) + 1)) and call.get("empty"):
            steps.append(Step(len(steps) + 1, _read_figures(call)))
        if place is None:
            break
        number = len(steps) + 1
        reply = cast("AIMessage", messages[place])
        records = [dict(record) for record in state.get("trace") or () if record.get("step") == number]
        steps.append(
            Step(
                number,
                _read_figures(call) if call else _read_usage(reply),
                reply,
                forced=bool((call or {}).get("forced", not _asks(reply) and stop_reason != "answered")),
                cut_off=bool(call and call.get("cut_off")),
                calls=list(calls_of(reply, messages[place + 1 : end], records, read)),
            )
        )
    return steps


def _read_figures(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model call's figures, also of a state that lacks some of them."""
    tokens = {key: call.get(key) or 0 for key in _TOKENS}
    return {**tokens, "model": str(call.get("model") or ""), "seconds": call.get("seconds"), "cost": cost([call])}


def _read_usage(reply: AIMessage) -> dict[str, Any] | None:
    """Return what the message itself says, for states without `model_calls`."""
    return _read_figures({**model_call(reply, 0.0, step=0), "seconds": None}) if reply.usage_metadata else None


def _sum_up(state: Mapping[str, Any], steps: Sequence[Step]) -> dict[str, Any]:
    """Return a question's figures; None where they are not known, no tokens where none were reported."""
    calls = [call for step in steps for call in step.calls]
    known = [step.model for step in steps if step.model is not None]
    costs = [model["cost"] for model in known]
    usage = state.get("usage") or {key: sum(model[key] for model in known) for key in _TOKENS}
    # A method may retrieve without a tool call that stands in the conversation.
    trace = state.get("trace")
    retrieved = [call.retrieved_tokens for call in calls] if trace is None else [r["retrieved_tokens"] for r in trace]
    model_seconds = _sum(model["seconds"] for model in known)
    tool_seconds = _sum(call.seconds for call in calls)
    return {
        **{key: usage.get(key) or 0 for key in _TOKENS},
        "steps": state.get("steps") or sum(not step.forced for step in steps),
        "tool_calls": len(retrieved),
        "retrieved_tokens": sum(retrieved),
        "seconds": _sum([model_seconds, tool_seconds]),
        "model_seconds": model_seconds,
        "tool_seconds": tool_seconds,
        "cost": _sum(costs) if len(known) == len(steps) and None not in costs else None,
        "models": list(dict.fromkeys(model["model"] for model in known if model["model"])),
    }


def _sum(numbers: Iterable[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
