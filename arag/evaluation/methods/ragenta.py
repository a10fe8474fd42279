"""RAGentA: a hybrid search, a filter by judgements, and a check of the cited answer (Besrour et al. 2025)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from arag.evaluation.method import Answer, Method, Session
from arag.evaluation.methods.shared import Passages, Rating, Text, Texts
from arag.graph.prompts import as_data
from arag.retrieval.types import Chunk
from arag.text.marks import with_mark
from arag.text.scripts import EAST_ASIAN

_OVERSAMPLED = 3  # candidates of each ranking, for each passage that is retrieved
_DENSE_WEIGHT = 0.65  # of the ranking by vectors; the rest is BM25's
_DEVIATIONS = 0.5  # standard deviations below the mean that a document's grade may be
_MAX_FOLLOW_UPS = 3
_K1, _B = 1.2, 0.75  # Lucene's defaults
_WORD = re.compile(rf"[^\W{EAST_ASIAN}]+|(?<![{EAST_ASIAN}])[{EAST_ASIAN}](?![{EAST_ASIAN}])")
_PAIR = re.compile(rf"(?=([{EAST_ASIAN}]{{2}}))")  # all pairs: they overlap

_CITED = r"\[\d{1,4}(?:\s*,\s*\d{1,4})*\]"  # int() fails for thousands of digits
_BEFORE_CITED = re.compile(rf"(?<!\s)\s*{_CITED}")  # tried once for each run of white space
_BETWEEN_CLAIMS = " \t\n.,;:。，、；："
_CLAIM = re.compile(rf"(.*?)(?:{_CITED}[{_BETWEEN_CLAIMS}]*)+", re.DOTALL)

Ranking = Mapping[int, float]
"""Scores of documents by their numbers, best first."""

_PREDICT = """You answer a question from one document. If the document does not settle it, say what comes closest. \
Answer in one or two sentences."""

_GRADE = """You judge a document that was found for a question, and the answer that somebody gave from it: does the \
document give specific information on the question, and does the answer follow from it? Reply with one JSON object \
and nothing else:
{"grade": from 0, neither holds, to 10, both hold without doubt}"""

_ANSWER = """You answer a question from numbered documents: first the answer itself, as briefly as the question \
allows, then in a sentence or two the facts that lead to it. After each statement give the numbers of its documents in \
square brackets, like [1] or [1,3]. State nothing that no document says."""

_CHECK = """You check whether an answer covers a question. The answer is given as numbered claims.

- Split the question into the parts that need an answer of their own; a simple question is one part. Say of each \
whether the claims answer it in full, in part, or not at all.
- List the numbers of claims that have nothing to do with the question. A claim that leads to the answer is not one.
- For each part that is not answered in full, write one short question that finds what is missing and stands by itself.

Reply with one JSON object and nothing else:
{"components": [{"question": "a part of the question", "status": "full" or "partial" or "none"}],
"irrelevant_claims": [numbers], "follow_ups": ["questions"]}"""

_FOLLOW_UP = """You answer a question from numbered documents, in one or two sentences. After each statement give the \
numbers of its documents in square brackets, like [6] or [6,8]. State nothing that no document says.

Reply with one JSON object and nothing else:
{"answer": "the answer, with its numbers", "found": true or false: whether the documents hold the answer}"""

_INTEGRATE = """You work a finding into the answer to a question. Begin with the answer to the question itself, as \
briefly as the question allows, and correct it where the finding settles what was open. Keep the numbers in square \
brackets after the statements that they belong to. Reply with the new answer alone."""


class _Grade(BaseModel):
    grade: Rating


class _Component(BaseModel):
    status: Literal["full", "partial", "none"]


class _Coverage(BaseModel):
    components: list[_Component]
    irrelevant_claims: list[int]
    follow_ups: Texts


class _Finding(BaseModel):
    answer: Text
    found: bool


# --- the hybrid search ---


def find_words(text: str) -> list[str]:
    """Return the words of a text; Chinese, Japanese and Korean are cut into pairs of neighbouring characters."""
    lowered = text.lower()
    return _WORD.findall(lowered) + _PAIR.findall(lowered)


def fuse(dense: Ranking, sparse: Ranking) -> list[int]:
    """Fuse two rankings, best first: each is scaled to 0 to 1, and what it lacks has 0 in it.

    Ties are in the order of the first ranking, then of the second.
    """
    by_vectors, by_words = _scale(dense), _scale(sparse)
    fused = {
        item: _DENSE_WEIGHT * by_vectors.get(item, 0.0) + (1 - _DENSE_WEIGHT) * by_words.get(item, 0.0)
        for item in [*dense, *sparse]
    }
    return sorted(fused, key=lambda item: -fused[item])


def _scale(ranking: Ranking) -> Ranking:
    least, most = min(ranking.values(), default=0.0), max(ranking.values(), default=0.0)
    return {item: (score - least) / (most - least) if most > least else 0.0 for item, score in ranking.items()}


class BM25:
    """Ranks texts by the words of a query, as Lucene does; there are no stop words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._holding: dict[str, list[tuple[int, int]]] = {}  # the texts with a word, and how often it is in each
        words = [find_words(text) for text in texts]
        for number, counts in enumerate(map(Counter, words)):
            for word, count in counts.items():
                self._holding.setdefault(word, []).append((number, count))
        lengths = np.array([len(each) for each in words], dtype=np.float64)
        self._norms = _K1 * (1 - _B + _B * lengths / max(lengths.sum(), 1) * len(texts))

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return the score of every text, shape (texts,); 0 where no word of the query occurs."""
        scores = np.zeros(len(self._norms))
        for word in find_words(query):
            if word in self._holding:
                numbers, counts = np.array(self._holding[word]).T
                idf = np.log1p((len(scores) - len(numbers) + 0.5) / (len(numbers) + 0.5))
                scores[numbers] += idf * counts / (counts + self._norms[numbers])
        return scores


# --- the filter (agent 2) ---


def keep(grades: Sequence[float | None]) -> list[int]:
    """Return the positions of the grades that are not far below the mean, best first; a missing one counts as it."""
    known = [grade for grade in grades if grade is not None] or [0.0]
    mean = fmean(known)
    filled = [mean if grade is None else grade for grade in grades]
    least = min(mean - _DEVIATIONS * pstdev(known), max(filled, default=0.0))  # the mean may be rounded up
    return sorted((place for place, grade in enumerate(filled) if grade >= least), key=lambda place: -filled[place])


# --- the claims (agent 4) ---


def find_claims(answer: str) -> list[tuple[str, str]]:
    """Return the claims of an answer, which end with numbers in brackets, and the part of the answer that each is.

    Without numbers, the whole answer is one.
    """
    claims = [(match[1].strip(_BETWEEN_CLAIMS), match[0]) for match in _CLAIM.finditer(answer)]
    return [(claim, part) for claim, part in claims or [(answer.strip(), answer)] if claim]


def drop_claims(answer: str, numbers: Collection[int]) -> str:
    """Return an answer without some of its claims, which are numbered from 1; all of them are never dropped."""
    claims = find_claims(answer)
    dropped = [part for number, (_, part) in enumerate(claims, start=1) if number in numbers]
    if len(dropped) < len(claims):
        for part in dropped:
            answer = answer.replace(part, "", 1)
    return answer.strip()


def find_numbers(answer: str, most: int) -> list[int]:
    """Return the numbers that an answer cites, in order, each once; those above `most` are left out."""
    numbers = (int(number) for cited in re.findall(_CITED, answer) for number in re.findall(r"\d+", cited))
    return list(dict.fromkeys(number for number in numbers if 1 <= number <= most))


# --- the method ---


class RAGentA(Method):
    """A hybrid search, an answer from each passage, a filter by judgements, a cited answer and follow-up questions."""

    name: ClassVar[str] = "ragenta"
    title: ClassVar[str] = "RAGentA"
    needs_model: ClassVar[bool] = True
    differs: ClassVar[str] = (
        "Prompts of our own; at most 3 follow-up questions; the numbers of documents go on in follow-ups. The model "
        "grades the passages from 0 to 10; the published method compares the log probabilities of Yes and No. It was "
        "made for 20 passages, and gets as many as the other methods."
    )
    iterative: ClassVar[bool | None] = None

    def prepare(self, session: Session) -> tuple[Passages, BM25]:
        """Embed the chunks, and count their words."""
        return session.lab.passages(), BM25([chunk.text for chunk in session.lab.chunks])

    def answer(self, question: str, session: Session, prepared: tuple[Passages, BM25]) -> Answer:
        """Answer from the documents that pass the filter (agent 3), and work in what follow-up questions find."""
        chunks = _search(question, session, *prepared)
        session.retrieved(chunks, question)
        grades = _judge(question, chunks, session)
        documents = dict(enumerate([chunks[place] for place in keep(grades)], start=1))
        kept = list(documents)
        session.note("Kept", _list(documents))
        draft = session.ask(_ANSWER, f"Question: {question}\n\n{_show(documents)}")
        draft, follow_ups = _check(question, draft, session)
        for follow_up in follow_ups[:_MAX_FOLLOW_UPS]:
            chunks = _search(follow_up, session, *prepared, documents.values())
            session.retrieved(chunks, follow_up)
            new = dict(enumerate(chunks, start=len(documents) + 1))  # numbers are never used twice
            documents |= new
            finding = ""
            if new:
                finding, draft = _follow_up(question, draft, follow_up, _show(new), session)
            session.note("Follow-up question", [follow_up, *_list(new), f"Answer: {finding or 'not found'}"])
        cited = find_numbers(draft, len(documents)) or (kept if draft else [])
        text = _BEFORE_CITED.sub("", draft).strip()
        is_cut = len(follow_ups) > _MAX_FOLLOW_UPS
        return Answer(text, [documents[number].id for number in cited], "max_steps" if is_cut else "answered")


def _search(
    question: str, session: Session, passages: Passages, words: BM25, excluded: Collection[Chunk] = ()
) -> list[Chunk]:
    """Return the documents that both rankings find, best first."""
    top_k = session.lab.top_k

    def rank(scores: NDArray[Any]) -> Ranking:
        return {n: float(scores[n]) for n in np.argsort(-scores, kind="stable")[: _OVERSAMPLED * top_k].tolist()}

    dense = rank(passages.vectors @ passages.embedder.embed_query(question))
    sparse = {n: score for n, score in rank(words.scores(question)).items() if score > 0}
    fused = [passages.chunks[n] for n in fuse(dense, sparse)]
    return [chunk for chunk in fused if chunk not in excluded][:top_k]


def _judge(question: str, chunks: Sequence[Chunk], session: Session) -> list[float | None]:
    """Let the model answer from each document (agent 1), and grade each with its answer (agent 2)."""
    shown = [f"Question: {question}\n\n{as_data('document', chunk.text)}" for chunk in chunks]
    predictions = session.ask_all(_PREDICT, shown)
    answered = zip(shown, predictions, strict=True)
    judged = [f"{text}\n\n{as_data('answer', prediction or 'None.')}" for text, prediction in answered]
    grades = [None if reply is None else reply.grade for reply in session.ask_all(_GRADE, judged, _Grade)]
    session.note(
        "Answers from each, with grades",
        [
            f"[{chunk.id}] ({'not judged' if grade is None else f'{grade:g}'}) {prediction or 'none'}"
            for chunk, grade, prediction in zip(chunks, grades, predictions, strict=True)
        ],
    )
    return grades


def _check(question: str, draft: str, session: Session) -> tuple[str, list[str]]:
    """Return an answer without irrelevant claims, and questions about what it lacks (agent 4)."""
    claims = [claim for claim, _ in find_claims(draft)]
    session.note("Claims", claims)
    listed = as_data("claims", "\n".join(f"{number}. {claim}" for number, claim in enumerate(claims, 1)))
    coverage = session.ask(_CHECK, f"Question: {question}\n\n{listed}", _Coverage)
    if coverage is None:
        return draft, []
    is_complete = all(part.status == "full" for part in coverage.components)
    questions = [] if is_complete else list(dict.fromkeys(coverage.follow_ups))
    return drop_claims(draft, coverage.irrelevant_claims), questions


def _follow_up(question: str, draft: str, follow_up: str, documents: str, session: Session) -> tuple[str, str]:
    """Work the answer to a follow-up question into an answer; return both. The first is empty if there is none."""
    reply = session.ask(_FOLLOW_UP, f"{as_data('question', follow_up)}\n\n{documents}", _Finding)
    if reply is None or not reply.found or not reply.answer:
        return "", draft
    finding = as_data("finding", f"{follow_up}\n{reply.answer}")
    shown = f"Question: {question}\n\n{as_data('answer', draft or 'None.')}\n\n{finding}"
    return reply.answer, session.ask(_INTEGRATE, shown) or draft


def _show(documents: Mapping[int, Chunk]) -> str:
    return as_data("documents", "\n\n".join(with_mark(str(number), chunk.text) for number, chunk in documents.items()))


def _list(documents: Mapping[int, Chunk]) -> list[str]:
    return [f"{number}: [{chunk.id}]" for number, chunk in documents.items()]


METHODS = (RAGentA,)
