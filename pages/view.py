"""What a run's final state shows, as plain values for a page: the answer's parts, the steps, the chunks.

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
from arag.pages.chunks import ChunkView, SourceView, chunks_of
from arag.pages.results import CallView, Piece, calls_of, ids_in

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
_BOLD = re.compile(r"\*\*(?=\S)([^*\n]+)(?<=\S)\*\*")


@dataclass(frozen=True)
class ModelView:
    """A model call's figures; None where nothing is known."""

    model: str
    seconds: float | None
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost: float | None


@dataclass(frozen=True)
class StepView:
    """A model call, and the tool calls that it asked for."""

    number: int
    model: ModelView | None
    forced: bool = False
    answer: bool = False
    empty: bool = False
    cut_off: bool = False
    thought: str = ""
    said: str = ""
    calls: Sequence[CallView] = ()


@dataclass(frozen=True)
class Totals:
    """A question's figures; None where they are not known, no tokens where none were reported."""

    steps: int
    tool_calls: int
    retrieved_tokens: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    model_seconds: float | None
    tool_seconds: float | None
    cost: float | None
    models: list[str]

    @property
    def seconds(self) -> float | None:
        """The seconds of models and tools."""
        return _sum([self.model_seconds, self.tool_seconds])


@dataclass(frozen=True)
class RunView:
    """A run."""

    question: str
    earlier: list[tuple[str, str]]
    """Earlier turns: who spoke, and what."""
    answer: list[str | SourceView] | None
    status: str
    """answered, forced or failed."""
    reason: str
    errors: list[int]
    """The steps with errors."""
    sources: list[SourceView]
    steps: list[StepView]
    chunks: list[ChunkView]
    totals: Totals


def view_of_run(state: Mapping[str, Any]) -> RunView:
    """Return what a run's final state shows.

    Args:
        state: The state, its messages as objects or as dicts.

    Raises:
        InputError: It holds no conversation.
    """
    messages = _messages(state)
    place = find_question(messages)
    state = state if _belongs(state, messages, place) else {"read_chunks": state.get("read_chunks")}
    later = messages[place + 1 :]
    last = later[-1] if later else None
    ended = isinstance(last, AIMessage) and not _asks(last)
    answer = str(state.get("answer") or (last.text if isinstance(last, AIMessage) else "")) if ended else ""
    stop_reason = str(state.get("stop_reason") or ("answered" if ended else ""))
    cited = {str(citation.get("chunk_id") or ""): citation for citation in state.get("citations") or ()}
    cited.pop("", None)
    sources = [_source(number, chunk_id, citation) for number, (chunk_id, citation) in enumerate(cited.items(), 1)]
    steps = _steps(later, state, stop_reason, _read_in(messages[:place]))
    return RunView(
        question=messages[place].text,
        earlier=[
            ("Question" if turn.type == "human" else "Answer", turn.text) for turn in find_earlier_turns(messages)
        ],
        answer=_linked(answer, sources) if answer else None,
        status="failed" if not answer else "answered" if stop_reason == "answered" else "forced",
        reason=_FORCED.get(stop_reason, stop_reason),
        errors=[step.number for step in steps if any(call.error for call in step.calls)],
        sources=sources,
        steps=steps,
        chunks=chunks_of(messages, state.get("read_chunks") or (), sources, _reading_steps(steps)),
        totals=_totals(state, steps),
    )


# --- messages ---


def _messages(state: Any) -> list[AnyMessage]:
    messages = state.get("messages") if isinstance(state, Mapping) else None
    if not isinstance(messages, list | tuple) or not messages:
        raise InputError(_NEEDED)
    try:
        return [_message(message) for message in messages]
    except (ValueError, TypeError, KeyError, NotImplementedError) as error:
        raise InputError(f"{_NEEDED}; one of its messages is none: {str(error).splitlines()[0]}") from error


def _message(message: Any) -> AnyMessage:
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


def _read_in(messages: Iterable[AnyMessage]) -> set[str]:
    return {chunk_id for message in messages for chunk_id in ids_in(message, "new_chunks")}


# --- the answer ---


def _source(number: int, chunk_id: str, citation: Mapping[str, Any]) -> SourceView:
    if citation.get("read"):
        status = "read"
    elif citation.get("seen"):
        status = "seen"
    else:
        status = "unseen" if citation.get("document_ids") else "unknown"
    titles = [str(title) for title in citation.get("titles") or ()]
    return SourceView(number, chunk_id, titles, status)


def _linked(answer: str, sources: Sequence[SourceView]) -> list[str | SourceView]:
    """Cut an answer into texts and citations; brackets that hold nothing but citations are dropped."""
    by_id = {source.chunk_id: source for source in sources}
    longest_first = sorted(by_id, key=len, reverse=True)
    pattern = "|".join([*(re.escape(f"[{chunk_id}]") for chunk_id in longest_first), _BRACKETED.pattern])
    parts: list[str | SourceView] = []
    end = 0
    for match in re.finditer(pattern, answer):
        inner = match.group()[1:-1]
        names = [inner] if inner in by_id else re.split(r"([,;]\s*)", inner)
        if any(name.strip() in by_id for name in names):
            linked: list[str | SourceView] = [by_id.get(name.strip(), name) for name in names]
            only = all(not isinstance(part, str) or not part.strip(" ,;\t") for part in linked)
            linked = [part for part in linked if not isinstance(part, str)] if only else ["[", *linked, "]"]
            parts += [answer[end : match.start()], *linked]
            end = match.end()
    return [part for part in [*parts, answer[end:]] if part]


def bold(text: str) -> list[Piece]:
    """Cut a text into pieces, marking what stands between double asterisks, as models write bold."""
    parts = _BOLD.split(text)
    return [Piece(part, marked=place % 2 == 1) for place, part in enumerate(parts) if part]


# --- steps ---


def _steps(
    messages: Sequence[AnyMessage], state: Mapping[str, Any], stop_reason: str, read: set[str]
) -> list[StepView]:
    """Walk through the messages behind the question: each reply of the model is a step. Empty ones left no message."""
    figures = {call.get("step"): call for call in state.get("model_calls") or ()}
    places = [n for n, message in enumerate(messages) if isinstance(message, AIMessage)]
    steps: list[StepView] = []
    for place, end in [*pairwise([*places, len(messages)]), (None, 0)]:
        while (call := figures.get(len(steps) + 1)) and call.get("empty"):
            steps.append(StepView(len(steps) + 1, _model_view(call), empty=True))
        if place is None:
            break
        number = len(steps) + 1
        reply = cast("AIMessage", messages[place])
        answer = not _asks(reply)
        forced = bool(call["forced"]) if call and "forced" in call else answer and stop_reason != "answered"
        records = [dict(record) for record in state.get("trace") or () if record.get("step") == number]
        steps.append(
            StepView(
                number=number,
                model=_model_view(call) if call else _reported(reply),
                forced=forced,
                answer=answer,
                cut_off=bool(call and call.get("cut_off")),
                thought=_thought(reply),
                said="" if answer else reply.text.strip(),
                calls=list(calls_of(reply, messages[place + 1 : end], records, read)),
            )
        )
    return steps


def _thought(reply: AIMessage) -> str:
    try:
        blocks = reply.content_blocks
    except (KeyError, TypeError, ValueError, AttributeError):  # blocks that are no provider's
        return ""
    return "\n\n".join(str(block.get("reasoning") or "") for block in blocks if block["type"] == "reasoning").strip()


def _model_view(call: Mapping[str, Any]) -> ModelView:
    return ModelView(
        model=str(call.get("model") or ""),
        seconds=call.get("seconds"),
        input_tokens=call.get("input_tokens") or 0,
        cached_tokens=call.get("cached_tokens") or 0,
        output_tokens=call.get("output_tokens") or 0,
        reasoning_tokens=call.get("reasoning_tokens") or 0,
        cost=cost([call]),
    )


def _reported(reply: AIMessage) -> ModelView | None:
    """Return what the message itself says, for states without `model_calls`."""
    return _model_view({**model_call(reply, 0.0, step=0), "seconds": None}) if reply.usage_metadata else None


# --- totals ---


def _reading_steps(steps: Iterable[StepView]) -> dict[str, list[int]]:
    """Return for each chunk the steps that read it."""
    reading: dict[str, list[int]] = {}
    for step in steps:
        for chunk_id in dict.fromkeys(chunk_id for call in step.calls for chunk_id in call.new_chunks):
            reading.setdefault(chunk_id, []).append(step.number)
    return reading


def _totals(state: Mapping[str, Any], steps: Sequence[StepView]) -> Totals:
    calls = [call for step in steps for call in step.calls]
    models = [step.model for step in steps]
    known = [model for model in models if model is not None]
    costs = [model.cost for model in known]
    complete = bool(models) and len(known) == len(models)
    tokens = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
    usage = state.get("usage") or {key: sum(getattr(model, key) for model in known) for key in tokens}
    return Totals(
        steps=state.get("steps") or sum(not step.forced for step in steps),
        # A method may retrieve without a tool call that stands in the conversation.
        tool_calls=len(calls if state.get("trace") is None else state["trace"]),
        retrieved_tokens=sum(
            [call.retrieved_tokens for call in calls]
            if state.get("trace") is None
            else [record["retrieved_tokens"] for record in state["trace"]]
        ),
        **{key: usage.get(key) or 0 for key in tokens},
        model_seconds=_sum([model.seconds for model in known]),
        tool_seconds=_sum([call.seconds for call in calls]),
        cost=_sum(costs) if complete and None not in costs else None,
        models=list(dict.fromkeys(model.model for model in known if model.model)),
    )


def _sum(numbers: Iterable[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
