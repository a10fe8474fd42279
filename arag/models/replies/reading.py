"""Makes a provider's reply regular: calls are calls, thinking is kept apart, and how it ended is known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from langchain_core.messages import AIMessage
from langchain_core.messages.tool import tool_call

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
    repaired: list[str] = []
    calls = _repair_calls(reply, tools, repaired)
    separated = separate_thinking(reply.text)
    if separated.thinking:
        repaired.append("thinking")
    written = CallsInText(separated.text, [])
    if not calls and not reply.invalid_tool_calls:
        written = _read_written(separated, tools)
        if written.calls:
            repaired.append("call as text")
            made = [tool_call(name=call.name, args=call.arguments, id="") for call in written.calls]
            calls = made
    text = written.before
    end = find_end(reply)
    doubt = _find_doubt(
        reply, written, has_calls=bool(calls), end=end, is_streamed=is_streamed, is_open=separated.is_open
    )
    if end == "refused" and not text.strip():
        text = _find_refusal(reply) or _REFUSED
    return _update(reply, text, calls, separated.thinking, repaired, doubt)


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
    metadata = {key: value for key, value in message.response_metadata.items() if key != DOUBT}
    if doubt is not None:
        metadata[DOUBT] = doubt
    return message.model_copy(update={"response_metadata": metadata})


def find_end(reply: AIMessage) -> End | None:
    """Return whether a reply was cut off or is a refusal, as its provider says."""
    if _find_refusal(reply):
        return "refused"
    for key in END_KEYS:
        end = ENDS.get(str(reply.response_metadata.get(key)).lower())
        if end is not None:
            return end
    return None


def _find_refusal(reply: AIMessage) -> str:
    """Return the text of a refusal, which OpenAI's models give beside the content."""
    refusal = reply.additional_kwargs.get("refusal")
    if refusal:
        return str(refusal)
    for part in reply.content:
        if isinstance(part, dict) and part.get("type") == "refusal":
            return str(part.get("refusal") or _REFUSED)
    return ""


def _repair_calls(reply: AIMessage, tools: Mapping[str, KnownTool], repaired: list[str]) -> list[Any]:
    """Return the calls of a reply with names of tools that exist, and those whose arguments could be repaired."""
    calls: list[Any] = []
    for call in reply.tool_calls:
        tool = resolve_name(call["name"], tools)
        if tool is not None and tool.name != call["name"]:
            repaired.append("name of a tool")
            call = tool_call(name=tool.name, args=call["args"], id=call["id"])  # noqa: PLW2901 - the repaired one
        calls.append(call)
    for invalid in reply.invalid_tool_calls:
        tool = resolve_name(invalid["name"], tools)
        arguments = repair_arguments(invalid["args"], tool) if tool is not None else None
        if tool is not None and arguments is not None:
            repaired.append("arguments")
            calls.append(tool_call(name=tool.name, args=arguments, id=invalid["id"]))
    return calls


def _read_written(separated: Separated, tools: Mapping[str, KnownTool]) -> CallsInText:
    """Return the calls in a text, or else in its thinking, where a server's parser may have left them."""
    written = find_calls(separated.text, tools)
    if separated.text.strip() or not separated.thinking:
        return written
    thought = find_calls(separated.thinking, tools, marked_only=True)
    return CallsInText("", thought.calls) if thought.calls else written


def _find_doubt(
    reply: AIMessage,
    written: CallsInText,
    *,
    has_calls: bool,
    end: End | None,
    is_streamed: bool,
    is_open: bool,
) -> Doubt | None:
    if has_calls or reply.invalid_tool_calls or end == "refused":
        return None
    text = written.before
    if end == "cut_off" or is_open or (is_streamed and _just_ends(reply, text)):
        return "cut_off"
    if written.is_unread:
        return "unread_call"
    if not text.strip():
        return "empty"
    if _only_announces(text):
        return "announced"
    return None


def _just_ends(reply: AIMessage, text: str) -> bool:
    """Return whether a stream has ended in the middle of a sentence, without a word from the provider."""
    metadata = reply.response_metadata
    is_told = any(metadata.get(key) for key in END_KEYS)
    if is_told or metadata.get("model_provider") not in _TOLD_BY:
        return False
    return _WITHOUT_END.search(text) is not None


def _only_announces(text: str) -> bool:
    if len(text) > _MOST_ANNOUNCED or _ANSWERS.search(text):
        return False
    sentences = [sentence for sentence in _LAST_SENTENCES.split(text.strip()) if sentence.strip(" *_`#")]
    return bool(sentences) and _ANNOUNCEMENT.search(" ".join(sentences[-2:])) is not None


def _update(
    reply: AIMessage,
    text: str,
    calls: Sequence[Any],
    thinking: str,
    repaired: Sequence[str],
    doubt: Doubt | None,
) -> AIMessage:
    """Return the reply with what has changed; the reply itself if nothing has."""
    update: dict[str, Any] = {}
    if text != reply.text:
        update["content"] = _replace_text(reply.content, text)
    if len(calls) != len(reply.tool_calls) or any(
        new is not old for new, old in zip(calls, reply.tool_calls, strict=True)
    ):
        update["tool_calls"] = list(calls)
        kept = {call["id"] for call in calls}
        update["invalid_tool_calls"] = [call for call in reply.invalid_tool_calls if call["id"] not in kept]
    if thinking:
        earlier = str(reply.additional_kwargs.get("reasoning_content") or "")
        both = "\n\n".join(part for part in (earlier, thinking) if part)
        update["additional_kwargs"] = {**reply.additional_kwargs, "reasoning_content": both}
    notes: dict[str, Any] = {}
    if repaired:
        notes[REPAIRED] = list(dict.fromkeys(repaired))
    if doubt is not None:
        notes[DOUBT] = doubt
    if notes:
        update["response_metadata"] = {**reply.response_metadata, **notes}
    return reply.model_copy(update=update) if update else reply


def _replace_text(content: str | list[str | dict[str, Any]], text: str) -> str | list[str | dict[str, Any]]:
    """Return content with another text; other parts than texts stay."""
    if isinstance(content, str):
        return text
    others = [part for part in content if not isinstance(part, str) and part.get("type") not in {"text", "output_text"}]
    return [*others, {"type": "text", "text": text}] if text else list(others)
