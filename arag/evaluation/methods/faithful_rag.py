"""FaithfulRAG: what the model believes is compared with the passages, sentence by sentence (Zhang et al. 2025)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from arag.evaluation.method import Answer, Method, Session
from arag.evaluation.methods.shared import Passages, Text, Texts, read_json
from arag.graph.prompts import as_data
from arag.ingest.sentences import split_sentences
from arag.text.scripts import EAST_ASIAN

_GROUP_WORDS = 20
_GROUPS_OF_A_FACT = 5
_GROUPS = 5

_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\n]*\)")  # in Markdown
_BRACKETS = re.compile(r"<(?:/?[A-Za-z]|!--)[^<>\n]*>|\[[^\[\]]*\]")  # of tags and comments, or square
_UNSPACED = EAST_ASIAN.replace("\uac00-\ud7a3", "")  # Korean has spaces
_WORD = re.compile(rf"[{_UNSPACED}][^\w\s]*|[^\s{_UNSPACED}]+")

_FACTS = """You list the facts that one must know to answer a question.

Each fact is one sentence that stands by itself, as you would expect to find it in a reference work. Leave out what \
has nothing to do with the question, and do not answer it.

Reply with one JSON object and nothing else:
{"facts": ["each fact in one sentence"]}"""

_BACKGROUND = """You write the background of a question from what you know: a passage of about 100 words, as in an \
encyclopedia, with the names, dates and numbers that matter for the question and for the listed facts. Decide where \
you are not sure. Write nothing but the passage."""

_STATEMENTS = """You take a passage apart into atomic facts: each one is a sentence that says one thing, with names \
in place of pronouns, and keeps the names, dates and numbers of the passage. Add nothing.

Reply with one JSON object and nothing else:
{"facts": ["each fact in one sentence"]}"""

_ANSWER = """You answer a question from passages of a corpus, which may contradict what you believe; the passages are \
right."""

_FACTS_FIRST = """The sentences listed as facts were chosen from them: look there first, and in the whole context \
where they are not enough."""

_ANSWER_FORM = """Reply with one JSON object and nothing else:
{"reason": "in one or two sentences: what the answer follows from",
"answer": "the answer, as briefly as the question allows"}"""


class _Facts(BaseModel):
    facts: Texts


class _Reply(BaseModel):
    answer: Text


def group_sentences(sentences: Sequence[str], most_words: int = _GROUP_WORDS) -> list[str]:
    """Join neighbouring sentences to groups of at most so many words, or characters in Chinese and Japanese."""
    groups: list[list[str]] = []
    words = 0
    for sentence in sentences:
        count = len(_WORD.findall(sentence))
        if not groups or words + count > most_words:
            groups.append([])
            words = 0
        groups[-1].append(sentence)
        words += count
    return [" ".join(group) for group in groups]


def cut_context(texts: Iterable[str]) -> list[str]:
    """Return the sentences of texts, in groups, without tags, addresses of links and what is in square brackets."""
    sentences: list[str] = []
    for text in texts:
        plain = _BRACKETS.sub("", _LINK.sub(r"\1", text))
        sentences += [" ".join(plain[each.start : each.end].split()) for each in split_sentences(plain)]
    return group_sentences(sentences)


def choose_groups(similarities: NDArray[np.float32], groups: Sequence[str]) -> list[tuple[str, float]]:
    """Return the groups that are nearest to any fact: of each fact's five nearest, the five nearest of all.

    The similarities have shape (facts, groups). Groups of equal texts count once.
    """
    nearest = np.argsort(-similarities, axis=1, kind="stable")[:, :_GROUPS_OF_A_FACT]
    pooled = [
        (groups[place], float(row[place]))
        for row, places in zip(similarities, nearest, strict=True)
        for place in places
    ]
    best: dict[str, float] = {}
    for text, similarity in sorted(pooled, key=lambda pair: -pair[1]):
        best.setdefault(text, similarity)
    return list(islice(best.items(), _GROUPS))


class FaithfulRAG(Method):
    """Four calls: the model writes what it believes, and answers from the sentences of the passages that bear on it."""

    name: ClassVar[str] = "faithfulrag"
    title: ClassVar[str] = "FaithfulRAG"
    needs_model: ClassVar[bool] = True
    differs: ClassVar[str] = (
        "Prompts of our own. The passages nearest to the question are its context; the published method is given one "
        "with each question. The third call takes the background passage apart into facts, as in the paper; the "
        "published code asks for the facts needed to understand it, and cuts each at its first digit."
    )

    def prepare(self, session: Session) -> Passages:
        """Embed the chunks."""
        return session.lab.passages()

    def answer(self, question: str, session: Session, prepared: Passages) -> Answer:
        """Mine what the model believes, align it with the passages, and answer from both (self-think)."""
        chunks = prepared.top(question, session.lab.top_k)
        session.retrieved(chunks, question)
        texts = [chunk.text for chunk in chunks]
        sentences = self._align(self._recall(question, session), texts, session)
        shown = [f"Question: {question}"]
        if sentences:
            shown.append(as_data("facts", _list(sentences)))
        shown.append(as_data("context", "\n\n".join(texts)))
        task = "\n\n".join([_ANSWER, _FACTS_FIRST, _ANSWER_FORM] if sentences else [_ANSWER, _ANSWER_FORM])
        reply = session.ask(task, "\n\n".join(shown))
        try:
            return Answer(read_json(reply, _Reply).answer)
        except ValidationError:
            return Answer(reply)

    def _recall(self, question: str, session: Session) -> list[str]:
        """Return what the model believes about the question, in atomic facts (self-fact mining)."""
        needed = session.ask(_FACTS, f"Question: {question}", _Facts) or _Facts(facts=[])
        session.note("Facts that one must know", needed.facts)
        shown = as_data("facts", _list(needed.facts) or "None.")
        background = session.ask(_BACKGROUND, f"Question: {question}\n\n{shown}")
        session.note("Background, by the model", [background or "none"])
        reply = session.ask(_STATEMENTS, as_data("passage", background), _Facts) if background else None
        statements = reply.facts if reply else []
        session.note("Facts in it", statements)
        return statements

    def _align(self, statements: Sequence[str], texts: Sequence[str], session: Session) -> list[str]:
        """Return the sentences of the passages nearest to statements (contextual knowledge alignment)."""
        groups = cut_context(texts)
        if not statements or not groups:
            return []
        embedder = session.lab.index.embedder
        nearest = choose_groups(embedder.embed_documents(statements) @ embedder.embed_documents(groups).T, groups)
        session.note("Sentences nearest to them", [f"{similarity:.3f} {text}" for text, similarity in nearest])
        return [text for text, _ in nearest]


def _list(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


METHODS = (FaithfulRAG,)
