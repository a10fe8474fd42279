"""What plays a model of several roles, for methods whose calls are made side by side."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from lab import ask, make_lab
from scripted import QUESTION


class Roles:
    """Plays each role by words of the system message.

    Args:
        roles: The reply of each role: what `lab.Player` plays, or a function from the messages to it; a list has one
            for each call, in order.

    Attributes:
        made: The roles of the calls, in order.
    """

    def __init__(self, roles: dict[str, Any]) -> None:
        self.made: list[str] = []
        self._replies = {role: [*each] if isinstance(each, list) else each for role, each in roles.items()}
        self._shown: dict[str, list[str]] = {}
        self._lock = threading.Lock()

    def __call__(self, messages: list[Any]) -> Any:
        with self._lock:
            role = next(role for role in self._replies if role in messages[0].text)
            self.made.append(role)
            self._shown.setdefault(role, []).append(messages[-1].text)
            reply = self._replies[role]
            if isinstance(reply, list):
                reply = reply.pop(0)
        return reply(messages) if callable(reply) else reply

    def of(self, role: str) -> list[str]:
        """Return what a role was shown in each of its calls."""
        return self._shown.get(role, [])

    def assert_used_up(self) -> None:
        assert not {role: each for role, each in self._replies.items() if isinstance(each, list) and each}


def answer_with(method, index, roles, folder, question=QUESTION, **options):
    """Ask a method a question; return the answer, the session and the roles that were played."""
    play = Roles(roles)
    answer, session = ask(method, make_lab(index, play, folder, **options), question)
    play.assert_used_up()
    assert [call["step"] for call in session.calls] == list(range(1, len(session.calls) + 1))
    return answer, session, play


def lines(session, title):
    """Return the lines of a session's note, by the beginning of its title."""
    return next(note["lines"] for note in session.notes if note["title"].startswith(title))


UNUSABLE = pytest.mark.parametrize(
    "unusable",
    [
        pytest.param(" ", id="empty"),
        pytest.param(AIMessage("", additional_kwargs={"refusal": "I cannot help with that."}), id="refusal"),
    ],
)
