"""RAGentA: a hybrid search, a filter by judgements, and a check of the cited answer (Besrour et al. 2025)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from arag.evaluation.method import Answer, Method, Session
from arag.evaluation.methods.shared import Passages, Rating, Text, Texts, best_first, list_numbered
from arag.graph.prompts import as_data
from arag.retrieval.types import Chunk
from arag.text.marks import without_marks
from arag.text.scripts import EAST_ASIAN

_OVERSAMPLED = 3  # candidates of each ranking, for each passage that is retrieved
_DENSE_WEIGHT = 0.65  # weight of the ranking by vectors; BM25 has the rest
_DEVIATIONS = 0.5  # a document may be graded this many standard deviations below the mean
_MAX_FOLLOW_UPS = 3  # questions; each one takes two calls
_K1 = 1.2  # Lucene's default
_B = 0.75  # Lucene's default
_WORD = re.compile(rf"[^\W{EAST_ASIAN}]+|(?<![{EAST_ASIAN}])[{EAST_ASIAN}](?![{EAST_ASIAN}])")
_PAIR = re.compile(rf"(?=([{EAST_ASIAN}]{{2}}))")  # all pairs, which overlap

_CITED = r"\[\d{1,4}(?:\s*,\s*\d{1,4})*\]"  # int() refuses thousands of digits
_BEFORE_CITED = re.compile(rf"(?<!\s)\s*{_CITED}")  # the lookbehind keeps it linear in long runs of white space
_BETWEEN_CLAIMS = " \t\n.,;:。，、；："
_CLAIM = re.compile(rf"(.*?)(?:{_CITED}[{_BETWEEN_CLAIMS}]*)+", re.DOTALL)

Ranking = Mapping[int, float]
"""The scores of documents, by number, best first."""
Documents = dict[int, Chunk]
"""Chunks by the numbers under which the model sees and cites them."""

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


class Claim(NamedTuple):
    """A claim of an answer.

    Attributes:
        text: The claim, without its citations.
        part: The part of the answer that holds the claim and its citations.
    """

    text: str
    part: str


# --- the hybrid search ---


def find_words(text: str) -> list[str]:
    """Return the words of a text; Chinese, Japanese and Korean are cut into pairs of neighbouring characters."""
    lowered = text.lower()
    return _WORD.findall(lowered) + _PAIR.findall(lowered)


def fuse(dense: Ranking, sparse: Ranking) -> list[int]:
    """Fuse two rankings. Their scores are scaled to 0 to 1; a document that one of them lacks scores 0 in it.

    Args:
        dense: The ranking by vectors.
        sparse: The ranking by words.

    Returns:
        The documents, best first; ties in the order of the first ranking, then of the second.
    """
    scaled_dense = _scale(dense)
    scaled_sparse = _scale(sparse)
    fused: dict[int, float] = {}
    for document in [*dense, *sparse]:
        by_vectors = scaled_dense.get(document, 0.0)
        by_words = scaled_sparse.get(document, 0.0)
        fused[document] = _DENSE_WEIGHT * by_vectors + (1 - _DENSE_WEIGHT) * by_words
    return sorted(fused, key=lambda document: -fused[document])


def _scale(ranking: Ranking) -> Ranking:
    """Scale scores to 0 to 1; if all are equal, each becomes 0."""
    least = min(ranking.values(), default=0.0)
    most = max(ranking.values(), default=0.0)
    if most <= least:
        return dict.fromkeys(ranking, 0.0)
    return {document: (score - least) / (most - least) for document, score in ranking.items()}


class BM25:
    """Ranks texts by the words of a query, with Lucene's formula and without stop words.

    Args:
        texts: The texts.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._postings: dict[str, list[tuple[int, int]]] = {}  # by word: the texts and its counts in them
        lengths = np.zeros(len(texts))
        for number, text in enumerate(texts):
            words = find_words(text)
            lengths[number] = len(words)
            for word, count in Counter(words).items():
                self._postings.setdefault(word, []).append((number, count))
        words_in_all = max(lengths.sum(), 1)
        self._norms = _K1 * (1 - _B + _B * lengths / words_in_all * len(texts))

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return the score of every text, shape (texts,); 0 for texts without a word of the query."""
        texts = len(self._norms)
        scores = np.zeros(texts)
        for word in find_words(query):
            if word not in self._postings:
                continue
            numbers, counts = np.array(self._postings[word]).T
            document_frequency = len(numbers)
            idf = np.log1p((texts - document_frequency + 0.5) / (document_frequency + 0.5))
            scores[numbers] += idf * counts / (counts + self._norms[numbers])
        return scores


# --- the filter (agent 2) ---


def keep(grades: Sequence[float | None]) -> list[int]:
    """Choose the documents whose grades are not far below the mean.

    Args:
        grades: The grades; None for a document that was not judged, which counts as an average one.

    Returns:
        The positions of these documents, best first.
    """
    known = [grade for grade in grades if grade is not None] or [0.0]
    mean = fmean(known)
    filled = [mean if grade is None else grade for grade in grades]
    threshold = mean - _DEVIATIONS * pstdev(known)
    # If all grades are equal, rounding may lift the mean above them: the best document is always kept.
    threshold = min(threshold, max(filled, default=0.0))
    kept = [position for position, grade in enumerate(filled) if grade >= threshold]
    return sorted(kept, key=lambda position: -filled[position])


# --- the claims (agent 4) ---


def find_claims(answer: str) -> list[Claim]:
    """Return the claims of an answer. A claim ends with the numbers of its documents, in brackets.

    An answer without numbers is one claim.
    """
    matches = list(_CLAIM.finditer(answer))
    if not matches:
        text = answer.strip()
        return [Claim(text, answer)] if text else []
    claims: list[Claim] = []
    for match in matches:
        text = match[1].strip(_BETWEEN_CLAIMS)
        if text:
            claims.append(Claim(text, part=match[0]))
    return claims


def drop_claims(answer: str, numbers: Collection[int]) -> str:
    """Remove claims from an answer, unless these are all of them.

    Args:
        answer: The answer.
        numbers: The numbers of the claims, from 1.

    Returns:
        The rest of the answer.
    """
    claims = find_claims(answer)
    dropped = [claim for number, claim in enumerate(claims, start=1) if number in numbers]
    if len(dropped) < len(claims):
        for claim in dropped:
            answer = answer.replace(claim.part, "", 1)
    return answer.strip()


def find_numbers(answer: str, most: int) -> list[int]:
    """Return the numbers from 1 to `most` that an answer cites, in order, each once."""
    numbers: dict[int, None] = {}
    for cited in re.findall(_CITED, answer):
        for digits in re.findall(r"\d+", cited):
            number = int(digits)
            if 1 <= number <= most:
                numbers[number] = None
    return list(numbers)


# --- the method ---


class RAGentA(Method):
    """A hybrid search, an answer from each passage, a filter by judgements, a cited answer and follow-up questions."""

    name: ClassVar[str] = "ragenta"
    title: ClassVar[str] = "RAGentA"
    abilities: ClassVar[str | None] = "words meaning follow cite cheap"
    needs_model: ClassVar[bool] = True
    differs: ClassVar[str] = (
        "Prompts of our own; at most 3 follow-up questions; the numbers of documents go on in follow-ups. The model "
        "grades the passages from 0 to 10; the published method compares the log probabilities of Yes and No. It was "
        "made for 20 passages, and gets as many as the other methods."
    )
    iterative: ClassVar[bool | None] = None

    def prepare(self, session: Session) -> tuple[Passages, BM25]:
        """Embed the chunks, and count their words."""
        return session.context.passages(), BM25([chunk.text for chunk in session.context.chunks])

    def answer(self, question: str, session: Session, prepared: tuple[Passages, BM25]) -> Answer:
        """Answer from the documents that pass the filter (agent 3), and add the findings of follow-up questions."""
        chunks = _search(question, session, *prepared)
        session.retrieved(chunks, question)
        grades = _judge(question, chunks, session)
        kept = [chunks[position] for position in keep(grades)]
        documents = _number(kept)
        session.note("Kept", _list(documents))
        draft = session.ask(_ANSWER, f"Question: {question}\n\n{_show(documents)}")

        draft, follow_ups = _check(question, draft, session)
        for follow_up in follow_ups[:_MAX_FOLLOW_UPS]:
            chunks = _search(follow_up, session, *prepared, documents.values())
            session.retrieved(chunks, follow_up)
            new = _number(chunks, start=len(documents) + 1)  # numbers are never used twice
            documents |= new
            finding = ""
            if new:
                finding, draft = _follow_up(question, draft, follow_up, _show(new), session)
            session.note("Follow-up question", [follow_up, *_list(new), f"Answer: {finding or 'not found'}"])

        cited = find_numbers(draft, len(documents))
        if draft and not cited:  # then it rests on everything that it was written from
            cited = list(range(1, len(kept) + 1))
        is_cut = len(follow_ups) > _MAX_FOLLOW_UPS
        return Answer(
            text=_BEFORE_CITED.sub("", draft).strip(),
            cited=[documents[number].id for number in cited],
            stop_reason="max_steps" if is_cut else "answered",
        )


def _search(
    question: str,
    session: Session,
    passages: Passages,
    words: BM25,
    excluded: Collection[Chunk] = (),
) -> list[Chunk]:
    """Return the best documents of both rankings together, best first."""
    top_k = session.context.top_k
    candidates = _OVERSAMPLED * top_k
    dense = _best(passages.vectors @ passages.embedder.embed_query(question), candidates)
    sparse = _best(words.scores(question), candidates)
    sparse = {document: score for document, score in sparse.items() if score > 0}
    found: list[Chunk] = []
    for document in fuse(dense, sparse):
        chunk = passages.chunks[document]
        if chunk not in excluded:
            found.append(chunk)
    return found[:top_k]


def _best(scores: NDArray[Any], k: int) -> Ranking:
    return {document: float(scores[document]) for document in best_first(scores, k)}


def _judge(question: str, chunks: Sequence[Chunk], session: Session) -> list[float | None]:
    """Let the model answer from each document (agent 1), and grade each with its answer (agent 2)."""
    shown = [f"Question: {question}\n\n{as_data('document', chunk.text)}" for chunk in chunks]
    predictions = session.ask_all(_PREDICT, shown)
    judged: list[str] = []
    for prompt, prediction in zip(shown, predictions, strict=True):
        judged.append(f"{prompt}\n\n{as_data('answer', prediction or 'None.')}")
    replies: list[_Grade | None] = session.ask_all(_GRADE, judged, _Grade)

    grades: list[float | None] = []
    lines: list[str] = []
    for chunk, prediction, reply in zip(chunks, predictions, replies, strict=True):
        grade = reply.grade if reply else None
        grades.append(grade)
        shown_grade = "not judged" if grade is None else f"{grade:g}"
        lines.append(f"[{chunk.id}] ({shown_grade}) {prediction or 'none'}")
    session.note("Answers from each, with grades", lines)
    return grades


def _check(question: str, draft: str, session: Session) -> tuple[str, list[str]]:
    """Return an answer without irrelevant claims, and questions about its gaps (agent 4)."""
    claims = [claim.text for claim in find_claims(draft)]
    session.note("Claims", claims)
    shown_claims = as_data("claims", list_numbered(claims))
    coverage = session.ask(_CHECK, f"Question: {question}\n\n{shown_claims}", _Coverage)
    if coverage is None:
        return draft, []
    is_complete = all(component.status == "full" for component in coverage.components)
    follow_ups = [] if is_complete else list(dict.fromkeys(coverage.follow_ups))
    return drop_claims(draft, coverage.irrelevant_claims), follow_ups


def _follow_up(question: str, draft: str, follow_up: str, documents: str, session: Session) -> tuple[str, str]:
    """Ask a follow-up question, and add its answer to the draft.

    Returns:
        The answer to the follow-up question, empty if it was not found; and the new draft.
    """
    reply = session.ask(_FOLLOW_UP, f"{as_data('question', follow_up)}\n\n{documents}", _Finding)
    if reply is None or not reply.found or not reply.answer:
        return "", draft
    shown_draft = as_data("answer", draft or "None.")
    finding = as_data("finding", f"{follow_up}\n{reply.answer}")
    integrated = session.ask(_INTEGRATE, f"Question: {question}\n\n{shown_draft}\n\n{finding}")
    return reply.answer, integrated or draft


def _number(chunks: Iterable[Chunk], start: int = 1) -> Documents:
    return dict(enumerate(chunks, start))


def _show(documents: Documents) -> str:
    texts = [f"[{number}]\n{without_marks(chunk.text)}" for number, chunk in documents.items()]
    return as_data("documents", "\n\n".join(texts))


def _list(documents: Documents) -> list[str]:
    return [f"{number}: [{chunk.id}]" for number, chunk in documents.items()]


METHODS = (RAGentA,)
