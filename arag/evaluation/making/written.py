"""Lets a model write questions from chunks of a corpus, and checks each before it is kept.

A question is kept if a reader who gets its chunks gives the gold answer and no other. The same reader must find no
answer when the nearest other chunks take the place of one of them, nor without any text. A question about an absent
fact is kept if neither its chunks nor the nearest ones answer it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any

from pydantic import BaseModel

from arag.evaluation.judge import judge
from arag.evaluation.making.drafts import Draft
from arag.evaluation.method import Session
from arag.evaluation.methods.shared import Text, Texts
from arag.evaluation.records import is_right
from arag.evaluation.refusals import is_refusal
from arag.graph.prompts import as_data
from arag.retrieval.types import Chunk
from arag.text.marks import with_mark

NEAREST = 5  # other chunks that a question is checked against
_TWO_STEP = (
    "it needs a fact of each passage: describe something by what one passage says of it, without its name, and ask for "
    "what the other passage says of it."
)
_SKIP = "the passages allow no such question"
_POINTS_AT_TEXT = re.compile(
    r"\b(?:passages?|excerpts?|the (?:above|given|following|provided) |this (?:document|text|table|section|page)|"
    r"the (?:document|text|author)s?\b(?! of )|according to the)\b",
    re.IGNORECASE,
)
_MIN_QUESTION, _MAX_QUESTION, _MAX_ANSWER = 20, 300, 200  # characters

_WRITER = """You write a question for a test of search systems, from passages of a collection of documents.

The people who answer it search the whole collection and do not know which passages you saw. So the question:
- names whatever it is about in full: it must make sense alone, and have one answer only in any collection;
- is one that somebody who uses these documents would ask; nothing trivial, and nothing about wording or layout;
- never speaks of passages, texts or tables, and does not contain its answer, except where it asks which of several;
- uses other words than the passages, where that stays exact; it is in the language of the passages.

The kind of question: {kind}

Reply with one JSON object and nothing else: {form}
If the passages do not allow a good question of this kind, leave "question" empty."""

_TEXT_FORM = '{"question": "...", "answer": "the answer in its shortest form"}'
_LIST_FORM = '{"question": "...", "answers": ["each item of the complete list"]}'
_NUMBER_FORM = '{"question": "...", "number": the number alone, "unit": "its unit, or empty"}'
_ABSENT_FORM = '{"question": "..."}'

_KINDS = {
    "look-up": ("one fact of the passage.", _TEXT_FORM),
    "two-step": (_TWO_STEP, _TEXT_FORM),
    "counting": ("how many things of one sort the passage has; it must show all of them, three or more.", _NUMBER_FORM),
    "list": ("all things that fit a condition; the passage must show all of them, two to eight.", _LIST_FORM),
    "comparison": (
        "which of two or more things is larger, older, longer, or the like; it needs a fact of each passage.",
        _TEXT_FORM,
    ),
    "dates": ("when something happened, or which of several things came first.", _TEXT_FORM),
    "arithmetic": ("a sum, a difference or a span of time that has to be computed from two numbers.", _NUMBER_FORM),
    "absent": (
        "a fact that somebody who has read the passage would look for in the collection, and that it does not give.",
        _ABSENT_FORM,
    ),
}
PAIRED = {"two-step", "comparison"}
"""Kinds that need two chunks."""
_NAME_CHOICES = {"comparison", "dates"}  # kinds that may ask which of the named things is larger, or came first

_READER = """You answer a question from passages of a collection, and from nothing else.

Reply with one JSON object and nothing else:
{"answer": "the answer in its shortest form; of a list, all items, with semicolons between them; empty if the passages
do not hold the answer", "others": ["each other answer that the passages allow as well, if there are any"]}"""

_FROM_MEMORY = """You answer a question from what you know. Reply with one JSON object and nothing else:
{"answer": "the answer in its shortest form; empty if you do not know it", "others": []}"""


class _Written(BaseModel):
    question: Text
    answer: Text = ""
    answers: Texts = []
    number: float | None = None
    unit: Text = ""

    def gold(self, kind: str) -> dict[str, Any]:
        """Return the gold answer as a questions file has it; empty if the reply lacks it."""
        if kind == "absent":
            return {"absent": True}
        if self.answers:
            return {"answers": self.answers}
        if self.number is not None:
            unit = {"unit": self.unit} if self.unit else {}
            return {"number": {"value": self.number, **unit}}
        return {"answer": self.answer} if self.answer else {}


class _Reading(BaseModel):
    answer: Text
    others: Texts = []


@dataclass(frozen=True, slots=True)
class Attempt:
    """A kind of question, and the chunks to make it from."""

    kind: str
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question, or why there is none."""

    attempt: Attempt
    draft: Draft | None = None
    dropped: str = ""


def write_question(session: Session, attempt: Attempt) -> Outcome:
    """Let the model write a question, and check it."""
    kind, form = _KINDS[attempt.kind]
    passages = as_data("passages", _show(attempt.chunks))
    written = session.ask(_WRITER.format(kind=kind, form=form), passages, _Written)
    if written is None or not written.question:
        return Outcome(attempt, dropped=_SKIP)
    gold = written.gold(attempt.kind)
    fault = _find_fault(written.question, gold, attempt.kind)
    if fault:
        return Outcome(attempt, dropped=fault)
    documents = dict.fromkeys(chunk.document_id for chunk in attempt.chunks)
    chunk_ids = tuple(chunk.id for chunk in attempt.chunks)
    draft = Draft(attempt.kind, written.question, gold, chunk_ids, tuple(documents))
    dropped = _check(session, draft, attempt.chunks)
    return Outcome(attempt, None if dropped else draft, dropped)


def _show(chunks: Sequence[Chunk]) -> str:
    """Return chunks with their ids and their documents' titles."""
    texts = {chunk.id: f"{chunk.title}\n{chunk.text}" for chunk in chunks}
    return "\n\n".join(starmap(with_mark, texts.items()))


def _find_fault(question: str, gold: dict[str, Any], kind: str) -> str:
    """Return what is wrong with a question by its form alone."""
    answer = str(gold.get("answer", ""))
    if not gold:
        return "it has no answer"
    if not _MIN_QUESTION <= len(question) <= _MAX_QUESTION or len(answer) > _MAX_ANSWER:
        return "the question or the answer is too short or too long"
    if _POINTS_AT_TEXT.search(question):
        return "it speaks of the passages"
    if answer and answer.casefold() in question.casefold() and kind not in _NAME_CHOICES:
        return "it contains its answer"
    return ""


# --- checks ---


def _check(session: Session, draft: Draft, chunks: Sequence[Chunk]) -> str:
    """Return why a question is not kept; empty if it is."""
    nearest = _find_nearest(session, draft)
    if draft.gold.get("absent"):
        is_found = _is_answered(_read(session, draft.text, [*chunks, *nearest]))
        return "the corpus answers it" if is_found else ""
    return _check_with(session, draft, chunks) or _check_without(session, draft, chunks, nearest)


def _check_with(session: Session, draft: Draft, chunks: Sequence[Chunk]) -> str:
    """Return why a question's chunks do not give the gold answer, and no other; empty if they do."""
    reading = _read(session, draft.text, chunks)
    if not _is_answered(reading):
        return "its chunks do not answer it"
    if reading.others:
        return "it has several answers"
    return "" if _agrees(session, draft, reading) else "its chunks give another answer"


def _check_without(session: Session, draft: Draft, chunks: Sequence[Chunk], nearest: Sequence[Chunk]) -> str:
    """Return how a question can be answered without one of its chunks; empty if it cannot."""
    for missing in chunks:
        rest = [chunk for chunk in chunks if chunk is not missing]
        if _is_answered(_read(session, draft.text, [*rest, *nearest])):
            return "other chunks answer it, too"
    known = _read(session, draft.text, [])
    if _is_answered(known) and _agrees(session, draft, known):
        return "it can be answered from memory"
    return ""


def _find_nearest(session: Session, draft: Draft) -> list[Chunk]:
    """Return the chunks nearest to a question in meaning, without its own."""
    results = session.context.index.semantic_search(draft.text, NEAREST + len(draft.chunks))
    others = [hit.chunk for hit in results.hits if hit.chunk_id not in draft.chunks]
    return others[:NEAREST]


def _read(session: Session, question: str, chunks: Sequence[Chunk]) -> _Reading:
    if chunks:
        passages = as_data("passages", _show(chunks))
        reading = session.ask(_READER, f"{question}\n\n{passages}", _Reading)
    else:
        reading = session.ask(_FROM_MEMORY, question, _Reading)
    return reading or _Reading(answer="")


def _is_answered(reading: _Reading) -> bool:
    return bool(reading.answer) and not is_refusal(reading.answer)


def _agrees(session: Session, draft: Draft, reading: _Reading) -> bool:
    """Return whether an answer is the gold one, by the rule for its form, or else by the model as a judge."""
    question = draft.question()
    if is_right(question, reading.answer):
        return True
    return judge(session, question, reading.answer)["correct"] is True
