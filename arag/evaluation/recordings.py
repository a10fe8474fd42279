"""Recorded replies of a model, which are played again without it: experiments that need neither key nor network.

A recording is a file of JSON lines, compressed by xz. A line holds a part that was shown to the model (the tools, or a
message), or a call: the numbers of its parts, and the reply. Each part is there once, since a conversation shows its
messages again with each call.

While a model is recorded, its calls are appended to a second file, so that a kill loses none.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult, LLMResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from arag.errors import InputError, ModelError
from arag.models.usage import model_call
from arag.system.files import written_whole
from arag.text.normalise import shorten
from arag.text.tokens import count_batch

REPLAY = "replay:"  # before the name of a file, in place of a provider
_FORMAT = {"format": "arag recording", "version": 1}
_METADATA = ("model_name", "model_provider", "finish_reason", "stop_reason", "seconds")  # kept of a reply
_MAX_NAMED = 120  # characters of a question in an error
_SHOWN_BEFORE, _SHOWN_AFTER = 30, 60  # characters around a difference
_PRESET = 9 | lzma.PRESET_EXTREME


class ReplayError(ModelError):
    """The model is shown something that is not in the recording."""


# --- what a model is shown ---


def list_shown(messages: Sequence[BaseMessage], tools: Sequence[Any]) -> list[Any]:
    """Return what a call shows to a model: the tools, and each message, as values that JSON can hold."""
    functions: list[dict[str, Any]] = []
    for tool in tools:
        function = convert_to_openai_tool(tool)["function"]
        functions.append({name: function.get(name) for name in ("name", "description", "parameters")})
    return [{"tools": functions}, *map(_show_message, messages)]


def _show_message(message: BaseMessage) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": message.type, "text": message.text}
    if isinstance(message, AIMessage):
        shown["calls"] = _show_calls(message)
        shown["invalid"] = [call["args"] for call in message.invalid_tool_calls]
    answered = getattr(message, "tool_call_id", None)
    if answered:
        shown["answers"] = answered
    return {name: value for name, value in shown.items() if value}


def _show_calls(message: AIMessage) -> list[dict[str, Any]]:
    return [{"name": call["name"], "args": call["args"], "id": call["id"]} for call in message.tool_calls]


def _write(value: Any) -> str:
    """Return a value as JSON, the same text each time."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


# --- the file ---


@dataclass(slots=True)
class _Call:
    """A recorded call: the numbers of the parts that it showed, and the reply."""

    shown: tuple[int, ...]
    reply: Mapping[str, Any]


@dataclass
class Recording:
    """Parts by their text as JSON, in order, and calls by their parts."""

    parts: dict[str, int] = field(default_factory=dict)
    calls: dict[tuple[int, ...], _Call] = field(default_factory=dict)

    def add(self, shown: Sequence[Any], reply: Mapping[str, Any]) -> Iterator[str]:
        """Add a call; yield the lines of a file that it adds."""
        numbers: list[int] = []
        for part in shown:
            text = _write(part)
            if text not in self.parts:
                self.parts[text] = len(self.parts)
                yield _write({"part": part})
            numbers.append(self.parts[text])
        key = tuple(numbers)
        self.calls[key] = _Call(key, reply)
        yield _write({"shown": numbers, "reply": reply})

    def find(self, shown: Sequence[Any]) -> Mapping[str, Any] | None:
        """Return the reply to a call; None if it is not recorded."""
        numbers = [self.parts.get(_write(part), -1) for part in shown]
        call = self.calls.get(tuple(numbers))
        return None if call is None else call.reply

    def part_texts(self) -> list[str]:
        """Return the parts as JSON, by number."""
        return list(self.parts)

    def merge(self, other: Recording) -> None:
        """Add the calls of another recording."""
        texts = other.part_texts()
        for call in other.calls.values():
            for _ in self.add([json.loads(texts[number]) for number in call.shown], call.reply):
                pass

    def lines(self) -> Iterator[str]:
        """Yield the lines of a file, in an order that does not depend on the order of the calls."""
        texts = self.part_texts()
        ordered = Recording()
        yield _write(_FORMAT)
        for call in sorted(self.calls.values(), key=lambda each: [texts[number] for number in each.shown]):
            yield from ordered.add([json.loads(texts[number]) for number in call.shown], call.reply)


def read_recording(file: Path) -> Recording:
    """Read a recording, compressed or not.

    Raises:
        InputError: The file cannot be read, or is not a recording.
    """
    try:
        data = file.read_bytes()
        text = (lzma.decompress(data) if file.suffix == ".xz" else data).decode()
    except OSError as error:
        raise InputError(f"the recording {file} cannot be read: {error}") from error
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is not a recording: {error}") from error
    return _read_lines(text.split("\n"), file)


def _read_lines(lines: Iterable[str], file: Path) -> Recording:
    recording = Recording()
    try:
        head, *rest = lines
        if json.loads(head) != _FORMAT:
            raise InputError(f"{file} is not a recording of this version: its first line must be {_write(_FORMAT)}")
        for line in rest:
            if not line:
                continue
            value = json.loads(line)
            if "part" in value:
                recording.parts[_write(value["part"])] = len(recording.parts)
            else:
                key = tuple(value["shown"])
                recording.calls[key] = _Call(key, value["reply"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is not a recording: {error}") from error
    return recording


# --- recording ---


class Recorder(BaseCallbackHandler):
    """Records the calls of a model, also those that a cache answers. Use it as a context manager.

    Args:
        file: The recording. What is in it stays.
    """

    raise_error = True

    def __init__(self, file: Path) -> None:
        self.file = file
        self._new = file.with_name(f"{file.name}.new")
        self._recording = Recording()
        self._pending: dict[UUID, list[Any]] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self._take_over_new()
        with self._new.open("w", encoding="utf-8") as out:
            out.write(_write(_FORMAT) + "\n")
        return self

    def __exit__(self, *_: object) -> None:
        self._take_over_new()

    def _take_over_new(self) -> None:
        """Move the calls of the second file, also those that a killed process has left, into the recording."""
        if not self._new.exists():
            return
        whole = self._new.read_text(encoding="utf-8").rpartition("\n")[0]  # a kill may leave half a line
        recording = read_recording(self.file) if self.file.exists() else Recording()
        recording.merge(_read_lines(whole.split("\n"), self._new))
        text = "".join(f"{line}\n" for line in recording.lines())
        with written_whole(self.file) as out:
            out.write(lzma.compress(text.encode(), preset=_PRESET))
        self._new.unlink()

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002 - LangChain gives it by place
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **details: Any,
    ) -> None:
        """Note what a call shows."""
        tools = (details.get("invocation_params") or {}).get("tools") or ()
        shown = list_shown(messages[0], tools)
        with self._lock:
            self._pending[run_id] = shown

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """Record the reply. An empty one, after which the model is asked again, counts until there is another."""
        generation = response.generations[0][0]
        message = getattr(generation, "message", None)
        with self._lock:
            shown = self._pending.pop(run_id)
            if not isinstance(message, AIMessage):
                return
            is_empty = model_call(message, step=0)["empty"]
            if is_empty and self._recording.find(shown) is not None:
                return
            with self._new.open("a", encoding="utf-8") as out:
                for line in self._recording.add(shown, _describe_reply(message, shown)):
                    out.write(f"{line}\n")
                out.flush()
                os.fsync(out.fileno())

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:  # noqa: ARG002 - by place
        """Forget a call that has failed."""
        with self._lock:
            self._pending.pop(run_id, None)


def _describe_reply(message: AIMessage, shown: Sequence[Any]) -> dict[str, Any]:
    """Return a reply, with tokens that are counted here, in the same way for all models."""
    reply: dict[str, Any] = {"text": message.text, "calls": _show_calls(message)}
    metadata = message.response_metadata
    kept = {name: metadata[name] for name in _METADATA if metadata.get(name)}
    sent = sum(count_batch([_write(part) for part in shown]))
    received = sum(count_batch([_write(reply)]))
    return {**reply, "metadata": kept, "tokens": [sent, received]}


# --- replaying ---


class ReplayModel(BaseChatModel):
    """Gives the replies of a recording. Anything else that it is shown is an error, which says what has changed.

    Attributes:
        file: The recording's file.
        digest: A digest of its bytes, so that results of another recording are not taken for its own.
    """

    file: str
    digest: str
    _recording: Recording = PrivateAttr(default_factory=Recording)

    @classmethod
    def open(cls, file: Path) -> ReplayModel:
        """Return the model of a recording.

        Raises:
            InputError: The file cannot be read, or is not a recording.
        """
        recording = read_recording(file)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        model = cls(file=file.name, digest=digest)
        model._recording = recording
        return model

    @property
    def _llm_type(self) -> str:
        return "arag-replay"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"file": self.file, "digest": self.digest}

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools: they are a part of what is shown."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        shown = list_shown(messages, options.get("tools") or ())
        reply = self._recording.find(shown)
        if reply is None:
            raise ReplayError(f"{self.file} has no reply: {describe_difference(self._recording, shown)}")
        sent, received = reply["tokens"]
        message = AIMessage(
            reply["text"],
            tool_calls=[{**call, "type": "tool_call"} for call in reply["calls"]],
            usage_metadata={"input_tokens": sent, "output_tokens": received, "total_tokens": sent + received},
            response_metadata=dict(reply["metadata"]),
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def describe_difference(recording: Recording, shown: Sequence[Any]) -> str:
    """Say in one sentence how what a model is shown differs from the recorded call that is most like it."""
    question = _find_question(shown)
    named = shorten(repr(question), _MAX_NAMED)
    texts = recording.part_texts()
    best: list[str] = []
    most = -1
    now = [_write(part) for part in shown]
    for call in recording.calls.values():
        before = [texts[number] for number in call.shown]
        if _find_question([json.loads(text) for text in before[:3]]) != question:
            continue
        equal = sum(first == second for first, second in zip(before, now, strict=False))
        if equal > most or (equal == most and len(before) == len(now)):
            best, most = before, equal
    if not best:
        return f"{named} was not recorded"
    for number, (before_text, now_text) in enumerate(zip(best, now, strict=False)):
        if before_text != now_text:
            part = _name_part(number, json.loads(now_text))
            return f"for {named}, {part} differs: {_show_change(before_text, now_text)}"
    return f"for {named}, {len(now) - 1} messages are shown, and {len(best) - 1} were recorded"


def _find_question(shown: Sequence[Mapping[str, Any]]) -> str:
    """Return the first message of the user, which has the question."""
    return next((part.get("text", "") for part in shown if part.get("role") == "human"), "")


def _name_part(number: int, part: Mapping[str, Any]) -> str:
    if number == 0:
        return "the description of the tools"
    names = {"system": "the system prompt", "human": "the user's message", "tool": "the result of a tool"}
    role = names.get(part.get("role", ""), "the model's own message")
    return f"{role} (message {number})"


def _show_change(before: str, now: str) -> str:
    """Return the first place where two texts differ, in both."""
    start = next((place for place, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]), None)
    if start is None:
        start = min(len(before), len(now))
    begin = max(start - _SHOWN_BEFORE, 0)
    shown = [repr(text[begin : start + _SHOWN_AFTER]) for text in (before, now)]
    return f"recorded {shown[0]}, now {shown[1]}"
