"""FaithfulRAG: compares the model's beliefs with the passages, sentence by sentence (Zhang et al. 2025)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from arag.evaluation.method import Answer, Method, Session
from arag.evaluation.methods.shared import Passages, Text, Texts, list_bullets, read_json
from arag.graph.prompts import as_data
from arag.ingest.sentences import split_sentences
from arag.models.similarity import rescale
from arag.text.scripts import UNSPACED

# The next three limits trade context for precision: more text shows more facts, and more that is off the point.
_GROUP_WORDS = 20  # words of neighbouring sentences that are compared as one group
_GROUPS_OF_A_FACT = 5  # groups taken for each fact
_GROUPS = 5  # groups shown to the model, of those of all facts

_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\n]*\)")  # Markdown
_BRACKETS = re.compile(r"<(?:/?[A-Za-z]|!--)[^<>\n]*>|\[[^\[\]]*\]")  # tags, comments, and square brackets
_WORD = re.compile(rf"[{UNSPACED}][^\w\s]*|[^\s{UNSPACED}]+")

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
    """Join neighbouring sentences into groups of a limited length. A longer sentence is a group of its own.

    Args:
        sentences: The sentences.
        most_words: Words of a group; in scripts without spaces, characters.

    Returns:
        The groups, as texts.
    """
    groups: list[list[str]] = []
    words_in_group = 0
    for sentence in sentences:
        words = len(_WORD.findall(sentence))
        if not groups or words_in_group + words > most_words:
            groups.append([])
            words_in_group = 0
        groups[-1].append(sentence)
        words_in_group += words
    return [" ".join(group) for group in groups]


def cut_context(texts: Iterable[str]) -> list[str]:
    """Cut texts into groups of sentences, without tags, addresses of links and text in square brackets."""
    sentences: list[str] = []
    for text in texts:
        plain = _LINK.sub(r"\1", text)
        plain = _BRACKETS.sub("", plain)
        for span in split_sentences(plain):
            words = plain[span.start : span.end].split()
            sentences.append(" ".join(words))
    return group_sentences(sentences)


def choose_groups(similarities: NDArray[np.float32], groups: Sequence[str]) -> list[tuple[str, float]]:
    """Choose the groups nearest to any fact: the five nearest of the five nearest of each fact.

    Args:
        similarities: Of each fact to each group, shape (facts, groups).
        groups: The groups; equal texts count once.

    Returns:
        The texts of the groups with their similarities, nearest first.
    """
    nearest = np.argsort(-similarities, axis=1, kind="stable")[:, :_GROUPS_OF_A_FACT]
    pooled: list[tuple[str, float]] = []
    for row, columns in zip(similarities, nearest, strict=True):
        pooled += [(groups[column], float(row[column])) for column in columns]
    pooled.sort(key=lambda group: -group[1])

    best: dict[str, float] = {}
    for text, similarity in pooled:
        best.setdefault(text, similarity)
    return list(best.items())[:_GROUPS]


class FaithfulRAG(Method):
    """Four calls: the model writes what it believes, and answers from the sentences of the passages that bear on it."""

    name: ClassVar[str] = "faithfulrag"
    title: ClassVar[str] = "FaithfulRAG"
    abilities: ClassVar[str | None] = "meaning cheap"
    needs_model: ClassVar[bool] = True
    differs: ClassVar[str] = (
        "Prompts of our own. The passages nearest to the question are its context; the published method is given one "
        "with each question. The third call takes the background passage apart into facts, as in the paper; the "
        "published code asks for the facts needed to understand it, and cuts each at its first digit."
    )

    def prepare(self, session: Session) -> Passages:
        """Embed the chunks."""
        return session.context.passages()

    def answer(self, question: str, session: Session, prepared: Passages) -> Answer:
        """Mine the model's beliefs, align them with the passages, and answer from both (self-think)."""
        chunks = prepared.top(question, session.context.top_k)
        session.retrieved(chunks, question)
        texts = [chunk.text for chunk in chunks]
        beliefs = self._recall(question, session)
        facts = self._align(beliefs, texts, session)
        context = as_data("context", "\n\n".join(texts))
        if facts:
            task = [_ANSWER, _FACTS_FIRST, _ANSWER_FORM]
            shown = [f"Question: {question}", as_data("facts", list_bullets(facts)), context]
        else:
            task = [_ANSWER, _ANSWER_FORM]
            shown = [f"Question: {question}", context]
        reply = session.ask("\n\n".join(task), "\n\n".join(shown))
        try:
            return Answer(read_json(reply, _Reply).answer)
        except ValidationError:
            return Answer(reply)

    def _recall(self, question: str, session: Session) -> list[str]:
        """Return the model's beliefs about the question, as atomic facts (self-fact mining)."""
        needed = session.ask(_FACTS, f"Question: {question}", _Facts) or _Facts(facts=[])
        session.note("Facts that one must know", needed.facts)

        listed = as_data("facts", list_bullets(needed.facts) or "None.")
        background = session.ask(_BACKGROUND, f"Question: {question}\n\n{listed}")
        session.note("Background, by the model", [background or "none"])

        beliefs: list[str] = []
        if background:
            reply = session.ask(_STATEMENTS, as_data("passage", background), _Facts)
            beliefs = reply.facts if reply else []
        session.note("Facts in it", beliefs)
        return beliefs

    def _align(self, beliefs: Sequence[str], texts: Sequence[str], session: Session) -> list[str]:
        """Return the sentences of the passages that are nearest to beliefs (contextual knowledge alignment)."""
        groups = cut_context(texts)
        if not beliefs or not groups:
            return []
        embedder = session.context.index.embedder
        belief_vectors = embedder.embed_documents(beliefs)
        group_vectors = embedder.embed_documents(groups)
        similarities = rescale(belief_vectors @ group_vectors.T, session.context.spread)
        nearest = choose_groups(similarities, groups)
        session.note("Sentences nearest to them", [f"{similarity:.3f} {text}" for text, similarity in nearest])
        return [text for text, _ in nearest]


METHODS = (FaithfulRAG,)
