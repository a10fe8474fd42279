"""The forced answer: its prompt with the evidence gathered, and the text of its reply."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from arag.graph.messages import count_context_tokens, find_earlier_turns, find_question, gather_evidence, truncate
from arag.graph.prompts import NO_ANSWER, forced_prompt, forced_question
from arag.graph.settings import Settings
from arag.models.replies import mend_characters

_MAX_REPLY_ROOM = 8_000  # tokens reserved for the reply, or a fifth of the budget if that is less


def write_forced_prompt(settings: Settings, messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Write a prompt that fits the budget and has no tool calls, so that every provider accepts it."""
    budget = settings.max_context_tokens
    turns = find_earlier_turns(messages)
    told = "\n\n".join(message.text for message in messages if isinstance(message, SystemMessage))
    instructions = [settings.system_prompt, truncate(told, budget // 4)]
    head = SystemMessage(forced_prompt("\n\n".join(filter(None, instructions))))
    room = budget - min(_MAX_REPLY_ROOM, budget // 5) - count_context_tokens([head])
    question = truncate(mend_characters(messages[find_question(messages)].text), room)
    room -= count_context_tokens([HumanMessage(forced_question(question, ""))])
    while turns and (count_context_tokens(turns) > room // 2 or isinstance(turns[0], AIMessage)):
        turns = turns[1:]
    evidence = gather_evidence(messages, room - count_context_tokens(turns))
    return [head, *turns, HumanMessage(forced_question(question, evidence))]


def take_text(reply: AIMessage) -> AIMessage:
    """Return the text of a forced reply as a message; if it has none, a fixed text ends the run.

    Without tools a reply can only be text, but some models call tools that they do not have. The fixed text was not
    streamed, so it gets its own id: under the reply's id it would not be streamed again.
    """
    text = reply.text.strip() or NO_ANSWER
    called = reply.tool_calls or reply.invalid_tool_calls  # the content may contain the calls as well
    content = text if called or text is NO_ANSWER else reply.content
    reply = reply.model_copy(
        update={"content": content, "tool_calls": [], "invalid_tool_calls": [], "additional_kwargs": {}}
    )
    if content is text:
        reply.id = str(uuid4())
    return reply
