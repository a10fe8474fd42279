"""Makes a provider's reply regular: calls are calls, thinking is kept apart, and how it ended is known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall
from langchain_core.messages.tool import tool_call

from arag.models.raw_replies import REASONING, read_sent_calls
from arag.models.replies.arguments import KnownTool, repair_arguments, resolve_name
from arag.models.replies.calls import CallsInText, find_calls
from arag.models.replies.forms import ANNOUNCEMENTS, END_KEYS, ENDS, End
from arag.models.replies.thinking import Separated, separate_thinking

Doubt: TypeAlias = Literal["unread_call", "announced", "cut_off", "empty", "not_searched"]
"""Why a reply is asked for again."""

ASKED_AGAIN: dict[Doubt, str] = {
    "unread_call": "a call in the text could not be read",
    "announced": "a search was announced, but no tool called",
    "cut_off": "the reply was cut off",
    "empty": "the reply was empty",
    "not_searched": "nothing was searched",
}
REPAIRED, DOUBT = "arag_repaired", "arag_doubt"  # keys of a reply's metadata
_ANNOUNCEMENT = re.compile("|".join(ANNOUNCEMENTS), re.IGNORECASE)
_LAST_SENTENCES = re.compile(r"(?:(?<=[.!?。！？])\s*|\n+)")
_MOST_ANNOUNCED = 600  # characters of a reply that only announces a search
_ANSWERS = re.compile(r"[\[【(][^\[\]【】()\n]*:\d+")  # it cites
_WITHOUT_END = re.compile(r"[\w,;:(\[–—-]\s*\Z")  # a text that ends so, and whose stream just ends, is cut off
_TOLD_BY = {"openai", "anthropic"}  # providers whose streams say how a reply ended
_TEXTS = {"text", "output_text"}  # types of content
_REFUSED = "The model refused to answer."


def read_reply(reply: AIMessage, tools: Mapping[str, KnownTool], *, is_streamed: bool = False) -> AIMessage:
    """Return a reply as a regular message.

    Calls that are written as text become calls, names and arguments are repaired, and thinking moves to
    `additional_kwargs["reasoning_content"]`. A regular reply is returned unchanged.

    Args:
        reply: The reply, whole or merged from a stream.
        tools: The tools that the model has, by name.
        is_streamed: Whether it was streamed: a reply that says nothing of its end may be cut off.

    Returns:
        The message. `list_repairs` says what was repaired, and `find_doubt` why it should be asked for again.
    """
    reply = read_sent_calls(reply)
    separated = separate_thinking(reply.text)
    read = _Read(text=separated.text, thinking=separated.thinking)
    if separated.thinking:
        read.repaired.append("thinking")
    _repair_calls(reply, tools, read)
    is_unread = False
    if not _has_calls(reply, read):
        written = _read_written(separated, tools)
        _take_written(written, read)
        is_unread = written.is_unread
    end = find_end(reply)
    if end == "refused":
        _take_refusal(reply, read)
    elif not _has_calls(reply, read):
        has_end = end is None and not separated.is_open
        just_ends = is_streamed and _just_ends(reply, read.text)
        read.doubt = _find_doubt(
            read.text,
            is_cut_off=just_ends or not has_end,
            is_unread=is_unread,
        )
    return _update(reply, read)


def without_thinking(reply: AIMessage) -> AIMessage:
    """Return a reply whose text has no thinking, for models that have no tools."""
    separated = separate_thinking(reply.text)
    if not separated.thinking:
        return reply
    read = _Read(
        text=separated.text,
        thinking=separated.thinking,
        calls=list(reply.tool_calls),
    )
    return _update(reply, read)


def list_repairs(message: AIMessage) -> list[str]:
    """Return what was repaired in a reply."""
    repaired: list[str] = message.response_metadata.get(REPAIRED, [])
    return repaired


def find_doubt(message: AIMessage) -> Doubt | None:
    """Return why a reply should be asked for again, if it should."""
    doubt: Doubt | None = message.response_metadata.get(DOUBT)
    return doubt


def with_doubt(message: AIMessage, doubt: Doubt | None) -> AIMessage:
    """Return a reply with a reason to ask again, or without one."""
    metadata = dict(message.response_metadata)
    metadata.pop(DOUBT, None)
    if doubt is not None:
        metadata[DOUBT] = doubt
    return message.model_copy(update={"response_metadata": metadata})


def find_end(reply: AIMessage) -> End | None:
    """Return whether a reply was cut off or is a refusal, as its provider says."""
    if _find_refusal(reply):
        return "refused"
    for key in END_KEYS:
        word = str(reply.response_metadata.get(key)).lower()
        if word in ENDS:
            return ENDS[word]
    return None


@dataclass
class _Read:
    """What was read in a reply."""

    text: str
    thinking: str
    calls: list[ToolCall] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    doubt: Doubt | None = None

    def list_notes(self) -> dict[str, Any]:
        """Return what the reply's metadata say of it."""
        notes: dict[str, Any] = {}
        if self.repaired:
            notes[REPAIRED] = list(dict.fromkeys(self.repaired))
        if self.doubt is not None:
            notes[DOUBT] = self.doubt
        return notes


def _has_calls(reply: AIMessage, read: _Read) -> bool:
    """Return whether a reply has calls; those whose arguments cannot be read count."""
    return bool(read.calls or reply.invalid_tool_calls)


def _take_refusal(reply: AIMessage, read: _Read) -> None:
    if not read.text.strip():
        read.text = _find_refusal(reply) or _REFUSED


def _find_refusal(reply: AIMessage) -> str:
    """Return the text of a refusal, which OpenAI's models give beside the content."""
    refusal = reply.additional_kwargs.get("refusal")
    if refusal:
        return str(refusal)
    for part in reply.content:
        if isinstance(part, dict) and part.get("type") == "refusal":
            return str(part.get("refusal") or _REFUSED)
    return ""


def _repair_calls(reply: AIMessage, tools: Mapping[str, KnownTool], read: _Read) -> None:
    """Add the calls of a reply, with names of tools that exist, and those whose arguments could be repaired."""
    for call in reply.tool_calls:
        tool = resolve_name(call["name"], tools)
        if tool is None or tool.name == call["name"]:
            read.calls.append(call)
        else:
            renamed = tool_call(
                name=tool.name,
                args=call["args"],
                id=call["id"],
            )
            read.calls.append(renamed)
            read.repaired.append("name of a tool")
    for invalid in reply.invalid_tool_calls:
        tool = resolve_name(invalid["name"], tools)
        if tool is None:
            continue
        arguments = repair_arguments(invalid["args"], tool)
        if arguments is not None:
            made = tool_call(
                name=tool.name,
                args=arguments,
                id=invalid["id"],
            )
            read.calls.append(made)
            read.repaired.append("arguments")


def _read_written(separated: Separated, tools: Mapping[str, KnownTool]) -> CallsInText:
    """Return the calls in a text, or else in its thinking, where a server's parser may have left them."""
    written = find_calls(separated.text, tools)
    if separated.text.strip():
        return written
    thought = find_calls(separated.thinking, tools, marked_only=True)
    if thought.calls:
        return CallsInText("", thought.calls)
    return written


def _take_written(written: CallsInText, read: _Read) -> None:
    read.text = written.before
    for call in written.calls:
        made = tool_call(
            name=call.name,
            args=call.arguments,
            id="",
        )
        read.calls.append(made)
    if written.calls:
        read.repaired.append("call as text")


def _find_doubt(text: str, *, is_cut_off: bool, is_unread: bool) -> Doubt | None:
    if is_cut_off:
        return "cut_off"
    if is_unread:
        return "unread_call"
    if not text.strip():
        return "empty"
    if _only_announces(text):
        return "announced"
    return None


def _just_ends(reply: AIMessage, text: str) -> bool:
    """Return whether a stream has ended in the middle of a sentence, without a word from the provider."""
    metadata = reply.response_metadata
    if metadata.get("model_provider") not in _TOLD_BY:
        return False
    words = [metadata.get(key) for key in END_KEYS]
    return not any(words) and _WITHOUT_END.search(text) is not None


def _only_announces(text: str) -> bool:
    if len(text) > _MOST_ANNOUNCED or _ANSWERS.search(text):
        return False
    sentences = [sentence for sentence in _LAST_SENTENCES.split(text.strip()) if sentence.strip(" *_`#")]
    return _ANNOUNCEMENT.search(" ".join(sentences[-2:])) is not None


def _update(reply: AIMessage, read: _Read) -> AIMessage:
    """Return the reply with what has changed; the reply itself if nothing has."""
    update: dict[str, Any] = {}
    if read.text != reply.text:
        update["content"] = _replace_text(reply.content, read.text)
    if read.calls != reply.tool_calls:
        update["tool_calls"] = read.calls
        update["invalid_tool_calls"] = _list_invalid(reply, read)
    if read.thinking:
        update["additional_kwargs"] = {
            **reply.additional_kwargs,
            REASONING: _join_thinking(reply, read),
        }
    notes = read.list_notes()
    if notes:
        update["response_metadata"] = {
            **reply.response_metadata,
            **notes,
        }
    if not update:
        return reply
    return reply.model_copy(update=update)


def _list_invalid(reply: AIMessage, read: _Read) -> list[InvalidToolCall]:
    """Return the calls that could not be repaired."""
    made = {call["id"] for call in read.calls}
    return [call for call in reply.invalid_tool_calls if call["id"] not in made]


def _join_thinking(reply: AIMessage, read: _Read) -> str:
    """Return the thinking that was sent apart and that in the text."""
    sent = reply.additional_kwargs.get(REASONING)
    if not sent:
        return read.thinking
    return f"{sent}\n\n{read.thinking}"


def _replace_text(content: str | list[str | dict[str, Any]], text: str) -> str | list[str | dict[str, Any]]:
    """Return content with another text; other parts than texts stay."""
    if isinstance(content, str):
        return text
    parts: list[str | dict[str, Any]] = []
    for part in content:
        if isinstance(part, dict) and part.get("type") not in _TEXTS:
            parts.append(part)
    if text:
        parts.append({"type": "text", "text": text})
    return parts
