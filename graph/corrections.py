"""What the model is told about a reply that cannot be used."""

from __future__ import annotations

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from arag.models.replies.reading import Doubt

_NOTHING = "…"  # stands for an empty reply, which providers refuse
_CORRECTIONS: dict[Doubt, str] = {
    "unread_call": "That call could not be read, and nothing was done. Do not write calls into your text: call one of "
    "your tools by the interface for tool calls, with a JSON object as its arguments. Or answer in plain sentences.",
    "announced": "You announced a search, but called no tool. Call one now, or give your answer.",
    "cut_off": "Your reply was cut off. Write its last sentence again, and go on from there, briefly.",
    "empty": "Your reply was empty. Call one of your tools, or give your answer.",
    "not_searched": "You have not searched yet. Call one of your tools, then answer from the corpus.",
}


def ask_again(reply: AIMessage, doubt: Doubt) -> list[AnyMessage]:
    """Return a reply that cannot be used as it is sent again, and a message that says why."""
    said = AIMessage(reply.text.strip() or _NOTHING)
    return [said, HumanMessage(_CORRECTIONS[doubt])]
