"""A question that was made from a corpus, in the form of a line of a questions file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arag.evaluation.datasets import Question, read_questions

KINDS = ("look-up", "two-step", "counting", "list", "comparison", "dates", "arithmetic", "absent")


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with its gold answer.

    Attributes:
        kind: Its kind, one of `KINDS`.
        text: The question.
        gold: The gold answer, as a questions file has it: `answer`, `answers`, `number` or `absent`.
        chunks: The chunks that hold the answer; for an absent fact, those that come close.
        documents: The documents of these chunks.
    """

    kind: str
    text: str
    gold: Mapping[str, Any]
    chunks: tuple[str, ...]
    documents: tuple[str, ...]

    @property
    def id(self) -> str:
        """An id that the same question gets each time."""
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        return f"{self.kind}-{digest[:8]}"

    def row(self, made_by: str) -> dict[str, Any]:
        """Return the line of a questions file. An absent fact has no supporting documents."""
        supporting = [] if self.gold.get("absent") else list(self.documents)
        return {
            "id": self.id,
            "kind": self.kind,
            "question": self.text,
            **self.gold,
            "supporting": supporting,
            "chunks": list(self.chunks),
            "made_by": made_by,
        }

    def question(self) -> Question:
        """Return the question as an experiment reads it."""
        (question,) = read_questions([self.row("")])
        return question
