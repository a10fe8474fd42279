"""RAGentA: a hybrid search, a filter by judgements, and a check of the cited answer (Besrour et al. 2025)."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph
from numpy.typing import NDArray
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from arag.evaluation.methods.baselines.bm25 import BM25
from arag.evaluation.methods.baselines.dense import DenseSettings, passage_work
from arag.evaluation.methods.baselines.each import Each, merge
from arag.evaluation.methods.baselines.outcome import (
    InputState,
    MethodOutput,
    MethodState,
    Stage,
    find_text,
    finish,
    retrieval_record,
)
from arag.evaluation.methods.baselines.passages import Passages
from arag.evaluation.methods.baselines.ratings import Rating
from arag.evaluation.methods.interface import Method, MethodGraph, Options
from arag.evaluation.store import open_store
from arag.evaluation.structured import StructuredModel, ask_text
from arag.graph.citations import parse_citations
from arag.graph.nodes import Body, Node
from arag.graph.prompts import DATA_RULE, as_data
from arag.models.asking import aask, ask
from arag.models.usage import ModelCall, model_call
from arag.retrieval.index import Index

_NAME = "ragenta"
_OVERSAMPLED = 3  # candidates of each ranking, for each passage wanted
_ALTERNATIVES = 20  # tokens whose log probabilities are listed; the most that providers offer
# Statuses of servers without log probabilities. OpenAI has 403 for reasoning models; a key without access to the model
# meets it again at the grades.
_REFUSED = frozenset({400, 403, 404, 422, 501})

_CITED = re.compile(r"\[(\d{1,4}(?:\s*,\s*\d{1,4})*)\]")  # int() fails for thousands of digits
_BEFORE_CITED = re.compile(rf"(?<!\s)\s*{_CITED.pattern}")  # tried once for each run of white space
_BETWEEN_CLAIMS = " \t\n.,;:。，、；："
_NOT_LETTERS = re.compile(r"[\W_]")

_PREDICT = f"""You answer a question from one document. If the document does not settle it, say what comes closest. \
Answer in one or two sentences.

{DATA_RULE}"""

_JUDGED = """You judge a document that was found for a question, and the answer that somebody gave from it: does the \
document give specific information on the question, and does the answer follow from it?"""

_JUDGE = f"""{_JUDGED} Reply with one word: Yes if both hold, otherwise No.

{DATA_RULE}"""

_GRADE = f"""{_JUDGED} Reply with one JSON object and nothing else:
{{"grade": from 0, neither holds, to 10, both hold without doubt}}

{DATA_RULE}"""

_ANSWER = f"""You answer a question from numbered documents: first the answer itself, as briefly as the question \
allows, then in a sentence or two the facts that lead to it. After each statement give the numbers of its documents in \
square brackets, like [1] or [1,3]. State nothing that no document says.

{DATA_RULE}"""

_CHECK = f"""You check whether an answer covers a question. The answer is given as numbered claims.

- Split the question into the parts that need an answer of their own; a simple question is one part. Say of each \
whether the claims answer it in full, in part, or not at all.
- List the numbers of claims that have nothing to do with the question. A claim that leads to the answer is not one.
- For each part that is not answered in full, write one short question that finds what is missing and stands by itself.

Reply with one JSON object and nothing else:
{{"components": [{{"question": "a part of the question", "status": "full" or "partial" or "none"}}],
"irrelevant_claims": [numbers], "follow_ups": ["questions"]}}

{DATA_RULE}"""

_FOLLOW_UP = f"""You answer a question from numbered documents, in one or two sentences. After each statement give the \
numbers of its documents in square brackets, like [6] or [6,8]. State nothing that no document says.

Reply with one JSON object and nothing else:
{{"answer": "the answer, with its numbers", "found": true or false: whether the documents hold the answer}}

{DATA_RULE}"""

_INTEGRATE = f"""You work a finding into the answer to a question. Begin with the answer to the question itself, as \
briefly as the question allows, and correct it where the finding settles what was open. Keep the numbers in square \
brackets after the statements that they belong to. Reply with the new answer alone.

{DATA_RULE}"""


class RAGentASettings(DenseSettings):
    """Settings of RAGentA."""

    dense_weight: float = Field(
        default=0.65, ge=0, le=1, description="The weight of the ranking by vectors; the rest is that of BM25's."
    )
    deviations: float = Field(
        default=0.5, ge=0, description="How many standard deviations below the mean a document may score and be kept."
    )
    follow_ups: int = Field(default=3, ge=0, description="How many follow-up questions are asked at most.")


class Grade(BaseModel):
    """A grade for a document."""

    grade: Rating = Field(description="From 0, neither holds, to 10, both hold without doubt.")


class Component(BaseModel):
    """A part of a question."""

    question: str = Field(description="The part.")
    status: Literal["full", "partial", "none"] = Field(description="How far the claims answer it.")


class Coverage(BaseModel):
    """How far an answer covers a question."""

    components: list[Component] = Field(description="The parts of the question.")
    irrelevant_claims: list[int] = Field(description="The numbers of claims that have nothing to do with it.")
    follow_ups: list[str] = Field(description="Questions to search for what is missing.")


class Finding(BaseModel):
    """The answer to a follow-up question."""

    answer: str = Field(description="The answer, with its numbers.")
    found: bool = Field(description="Whether the documents hold the answer.")


@dataclass(frozen=True, slots=True)
class Claim:
    """A part of an answer that ends with the numbers of its documents.

    Attributes:
        text: What it says.
        start: Its offset in the answer.
        end: The offset after its numbers.
    """

    text: str
    start: int
    end: int


Scale: TypeAlias = Literal["log probabilities", "grades"]


class Candidate(TypedDict):
    """A document that was found for the question."""

    chunk_id: str
    score: float
    """Of the fused rankings."""


class Prediction(TypedDict):
    """The answer from one document."""

    text: str
    calls: list[ModelCall]


class Judgement(TypedDict):
    """The judgement on a document and the answer from it."""

    score: float | None
    """None without a usable reply."""
    refused: bool
    """Whether the model does not give log probabilities."""
    calls: list[ModelCall]


class FollowUp(TypedDict):
    """A follow-up question."""

    question: str
    numbers: list[int]
    """The numbers of the documents that were found for it."""
    answer: str
    """Empty if they do not hold the answer."""


class RAGentAState(MethodState, total=False):
    """The state of RAGentA's graph."""

    candidates: list[Candidate]
    """The documents that were found, best first."""
    predictions: Annotated[dict[str, Prediction], merge]
    """The answers from one document each, by chunk id."""
    judgements: Annotated[dict[str, Judgement], merge]
    """The judgements on these, by chunk id."""
    scale: Scale
    """How all documents of this question are judged."""
    documents: list[str]
    """The ids of the documents that have a number; the first one is number 1."""
    kept: int
    """How many of them passed the filter; the others were found for follow-ups."""
    draft: str
    """The answer, with numbers."""
    questions: list[str]
    """The follow-up questions."""
    follow_ups: list[FollowUp]
    """Those that were asked."""


# --- on plain values ---


def fuse(
    dense: Sequence[tuple[str, float]],
    sparse: Sequence[tuple[str, float]],
    k: int,
    *,
    excluded: Collection[str] = (),
    dense_weight: float = 0.65,
) -> list[tuple[str, float]]:
    """Fuse two rankings: each is scaled to 0 to 1, and what it lacks has 0 in it.

    Args:
        dense: The ids and scores of the ranking by vectors, best first.
        sparse: Those of the ranking by words.
        k: How many to return.
        excluded: Ids that are left out after scaling.
        dense_weight: The weight of the first ranking; the rest is that of the second.

    Returns:
        The ids and scores, best first; ties in the order of the first ranking, then of the second.

    Example:
        >>> from arag.evaluation.methods.ragenta import fuse
        >>> fuse([("a", 0.9), ("b", 0.5)], [("b", 12.0), ("c", 3.0)], 2)
        [('a', 0.65), ('b', 0.35)]
    """
    by_vectors, by_words = _scale(dense), _scale(sparse)
    fused = {
        each: dense_weight * by_vectors.get(each, 0.0) + (1 - dense_weight) * by_words.get(each, 0.0)
        for each in [*by_vectors, *by_words]
        if each not in excluded
    }
    return sorted(fused.items(), key=lambda item: -item[1])[:k]


def _scale(ranking: Sequence[tuple[str, float]]) -> dict[str, float]:
    scores = [score for _, score in ranking]
    least, most = min(scores, default=0.0), max(scores, default=0.0)
    return {each: (score - least) / (most - least) if most > least else 0.0 for each, score in ranking}


def rate_yes(listed: Sequence[tuple[str, float]]) -> float | None:
    """Return log P(Yes) - log P(No) from the alternatives of a reply's first token.

    Args:
        listed: The tokens and their log probabilities. Spellings of a word are added up; a word that is absent has the
            smallest of them.

    Returns:
        The difference; None if both words are absent.

    Example:
        >>> from arag.evaluation.methods.ragenta import rate_yes
        >>> rate_yes([("No", -0.25), (" no", -9.0), ("Maybe", -2.0)]) < 0
        True
    """
    words: dict[str, list[float]] = {"yes": [], "no": []}
    for token, log_probability in listed:
        words.get(_NOT_LETTERS.sub("", token).lower(), []).append(log_probability)
    if not any(words.values()):
        return None
    least = min(log_probability for _, log_probability in listed)
    yes, no = (float(np.logaddexp.reduce(found)) if found else least for found in words.values())
    return yes - no


def keep(scores: Sequence[float | None], deviations: float) -> list[int]:
    """Return the positions of the scores that are not far below the mean, best first; there is always one.

    Args:
        scores: The scores. Where there is none, the mean of the others stands for it.
        deviations: How many (population) standard deviations below the mean are allowed.

    Example:
        >>> from arag.evaluation.methods.ragenta import keep
        >>> keep([1.0, 6.0, -9.0, None], 0.5)
        [1, 0, 3]
    """
    known = [score for score in scores if score is not None]
    mean = fmean(known) if known else 0.0
    filled = [mean if score is None else score for score in scores]
    spread = pstdev(known) if known else 0.0
    least = min(mean - deviations * spread, max(filled, default=0.0))  # the mean of equal scores may be rounded up
    return sorted((place for place, score in enumerate(filled) if score >= least), key=lambda place: -filled[place])


def find_claims(answer: str) -> list[Claim]:
    """Find the claims of an answer: each ends with numbers in brackets. Without numbers, the whole answer is one.

    Example:
        >>> from arag.evaluation.methods.ragenta import find_claims
        >>> [claim.text for claim in find_claims("Grevane [2]. It was built in 1746 [1, 2][3].")]
        ['Grevane', 'It was built in 1746']
    """
    claims: list[Claim] = []
    start = 0
    for match in _CITED.finditer(answer):
        text = answer[start : match.start()].strip(_BETWEEN_CLAIMS)
        if text:
            claims.append(Claim(text, start, match.end()))
        elif claims:  # more numbers of the same claim
            claims[-1] = Claim(claims[-1].text, claims[-1].start, match.end())
        start = match.end()
    if not claims and answer.strip():
        claims.append(Claim(answer.strip(), 0, len(answer)))
    return claims


def drop_claims(answer: str, numbers: Collection[int]) -> str:
    """Return an answer without some of its claims, which are numbered from 1; all of them are never dropped."""
    claims = find_claims(answer)
    dropped = [claim for number, claim in enumerate(claims, start=1) if number in numbers]
    if len(dropped) == len(claims):
        return answer
    for claim in reversed(dropped):
        answer = answer[: claim.start] + answer[claim.end :]
    return answer.lstrip(_BETWEEN_CLAIMS)


def find_numbers(answer: str, most: int) -> list[int]:
    """Return the numbers that an answer cites, in order, each once; those above `most` are left out."""
    numbers = (int(number) for match in _CITED.finditer(answer) for number in match[1].split(","))
    return list(dict.fromkeys(number for number in numbers if 1 <= number <= most))


# --- the graph ---


class RAGentA:
    """The nodes of RAGentA's graph.

    Args:
        index: The index.
        model: The model.
        top_k: How many documents are retrieved for a question.
        passages: Retrieves them by their vectors.
        settings: The settings.
    """

    def __init__(
        self, index: Index, model: BaseChatModel, top_k: int, passages: Passages, settings: RAGentASettings
    ) -> None:
        self._index = index
        self._model = model
        self._top_k = top_k
        self._passages = passages
        self._settings = settings
        self._words: BM25 | None = None
        self._lock = threading.Lock()
        self._has_log_probabilities = _offers_log_probabilities(model)
        self._grader = StructuredModel(model, Grade, "judge")
        self._checker = StructuredModel(model, Coverage, "check an answer")
        self._follower = StructuredModel(model, Finding, "answer")

    def retrieve(self, state: RAGentAState) -> dict[str, object]:
        """Find documents for the question."""
        began = time.perf_counter()
        question = find_text(state)
        found = self._search(question)
        chunks = self._passages.chunks(chunk_id for chunk_id, _ in found)
        return {
            "candidates": [Candidate(chunk_id=chunk_id, score=score) for chunk_id, score in found],
            "predictions": None,
            "judgements": None,
            "scale": "log probabilities" if self._has_log_probabilities else "grades",
            "documents": [],
            "kept": 0,
            "draft": "",
            "questions": [],
            "follow_ups": [],
            "model_calls": [],
            "trace": [retrieval_record(chunks, {"query": question, "top_k": self._top_k}, began=began)],
        }

    def predict(self, state: RAGentAState) -> Mapping[str, Body]:
        """Return what answers from each document that has no answer yet."""
        question = find_text(state)
        return {each: self._predict(question, each) for each in _ids(state) if each not in state["predictions"]}

    def judge(self, state: RAGentAState) -> Mapping[str, Body]:
        """Return what judges each document that has no judgement yet."""
        judge = self._rate if state["scale"] == "log probabilities" else self._grade
        return {each: judge(self._judged(state, each)) for each in _ids(state) if each not in state["judgements"]}

    def use_grades(self, state: RAGentAState) -> dict[str, object]:
        """Begin the judgements again, with grades for all documents."""
        if all(judgement["score"] is None for judgement in state["judgements"].values()):
            self._has_log_probabilities = False  # later questions do not ask for them
        calls = _calls(state["predictions"], _ids(state)) + _calls(state["judgements"], _ids(state))
        return {"scale": "grades", "judgements": None, "model_calls": calls}

    def choose(self, state: RAGentAState) -> dict[str, object]:
        """Drop the documents that were judged worst."""
        ids = _ids(state)
        scores = [state["judgements"][each]["score"] for each in ids]
        kept = [ids[place] for place in keep(scores, self._settings.deviations)]
        told = {**state["trace"][0], "arguments": {**state["trace"][0]["arguments"], "judged_by": state["scale"]}}
        calls = state["model_calls"] or _calls(state["predictions"], ids)
        return {
            "documents": kept,
            "kept": len(kept),
            "trace": [told],
            "model_calls": calls + _calls(state["judgements"], ids),
        }

    def answer(self, state: RAGentAState) -> Body:
        """Answer from the documents that were kept, with their numbers."""
        shown = f"Question: {find_text(state)}\n\n{self._show(state, range(1, state['kept'] + 1))}"
        asked = yield from ask_text(self._model, _messages(_ANSWER, shown))
        return {"draft": asked.value or "", "model_calls": state["model_calls"] + asked.calls}

    def check(self, state: RAGentAState) -> Body:
        """Check which parts of the question the answer covers."""
        claims = "\n".join(f"{n}. {claim.text}" for n, claim in enumerate(find_claims(state["draft"]), start=1))
        shown = f"Question: {find_text(state)}\n\n{as_data('claims', claims)}"
        asked = yield from self._checker.ask(_messages(_CHECK, shown))
        update: dict[str, object] = {"model_calls": state["model_calls"] + asked.calls}
        if asked.value is None:
            return update
        questions = list(dict.fromkeys(text.strip() for text in asked.value.follow_ups if text.strip()))
        complete = all(part.status == "full" for part in asked.value.components)
        draft = drop_claims(state["draft"], asked.value.irrelevant_claims)
        return {**update, "draft": draft, "questions": [] if complete else questions}

    def search_further(self, state: RAGentAState) -> dict[str, object]:
        """Find more documents, for the next follow-up question."""
        began = time.perf_counter()
        question = state["questions"][len(state["follow_ups"])]
        chunks = self._passages.chunks(each for each, _ in self._search(question, excluded=state["documents"]))
        record = retrieval_record(
            chunks,
            {"query": question, "top_k": self._top_k},
            began=began,
            step=len(state["model_calls"]),
            known=[each for earlier in state["trace"] for each in earlier["chunk_ids"]],
        )
        first = len(state["documents"]) + 1
        numbers = list(range(first, first + len(chunks)))
        return {
            "documents": state["documents"] + record["chunk_ids"],
            "follow_ups": [*state["follow_ups"], FollowUp(question=question, numbers=numbers, answer="")],
            "trace": [*state["trace"], record],
        }

    def follow_up(self, state: RAGentAState) -> Body:
        """Answer the follow-up question."""
        *earlier, current = state["follow_ups"]
        shown = f"{as_data('question', current['question'])}\n\n{self._show(state, current['numbers'])}"
        asked = yield from self._follower.ask(_messages(_FOLLOW_UP, shown))
        answer = asked.value.answer.strip() if asked.value and asked.value.found else ""
        found = FollowUp(question=current["question"], numbers=current["numbers"], answer=answer)
        return {"follow_ups": [*earlier, found], "model_calls": state["model_calls"] + asked.calls}

    def integrate(self, state: RAGentAState) -> Body:
        """Work what was found into the answer."""
        found = state["follow_ups"][-1]
        finding = f"{found['question']}\n{found['answer']}"
        shown = (
            f"Question: {find_text(state)}\n\n{as_data('answer', state['draft'] or 'None.')}\n\n"
            f"{as_data('finding', finding)}"
        )
        asked = yield from ask_text(self._model, _messages(_INTEGRATE, shown))
        return {"draft": asked.value or state["draft"], "model_calls": state["model_calls"] + asked.calls}

    def finish(self, state: RAGentAState) -> dict[str, Any]:
        """Take the numbers out of the answer, and cite their documents."""
        draft, documents = state["draft"], state["documents"]
        update = finish(
            self._index,
            _BEFORE_CITED.sub("", draft).strip(),
            calls=state["model_calls"],
            trace=state["trace"],
            stages=_stages(state),
            stop_reason="max_steps" if len(state["questions"]) > self._settings.follow_ups else "answered",
        )
        named = _CITED.sub(lambda match: _name(find_numbers(match[0], len(documents)), documents), draft)
        if draft and not find_numbers(draft, len(documents)):
            named += _name(range(1, state["kept"] + 1), documents)
        read = update["read_chunks"]
        return {**update, "citations": parse_citations(named, self._index, read, read)}

    # --- edges ---

    def after_predictions(self, state: RAGentAState) -> str:
        """Go on when there is an answer from each document."""
        return "predict" if set(_ids(state)) - set(state["predictions"]) else "judge"

    def after_judgements(self, state: RAGentAState) -> str:
        """Go on when each document is judged, on one scale."""
        if set(_ids(state)) - set(state["judgements"]):
            return "judge"
        found = state["judgements"].values()
        useless = any(each["refused"] for each in found) or all(each["score"] is None for each in found)
        return "use_grades" if useless and state["scale"] == "log probabilities" else "choose"

    def next_question(self, state: RAGentAState) -> str:
        """Go on with the next follow-up question, if there is one."""
        most = min(len(state["questions"]), self._settings.follow_ups)
        return "search_further" if len(state["follow_ups"]) < most else "finish"

    def after_search(self, state: RAGentAState) -> str:
        """Answer the follow-up question, if documents were found for it."""
        return "follow_up" if state["follow_ups"][-1]["numbers"] else self.next_question(state)

    def after_follow_up(self, state: RAGentAState) -> str:
        """Use the answer to the follow-up question, if there is one."""
        return "integrate" if state["follow_ups"][-1]["answer"] else self.next_question(state)

    # --- what the nodes share ---

    def _search(self, question: str, excluded: Collection[str] = ()) -> list[tuple[str, float]]:
        count = _OVERSAMPLED * self._top_k
        dense = self._best(self._passages.scores(question), count)
        sparse = [pair for pair in self._best(self._bm25().scores(question), count) if pair[1] > 0]
        return fuse(dense, sparse, self._top_k, excluded=excluded, dense_weight=self._settings.dense_weight)

    def _bm25(self) -> BM25:
        with self._lock:
            if self._words is None:
                self._words = BM25([chunk.text for chunk in self._passages.chunks(self._passages.ids)])
            return self._words

    def _best(self, scores: NDArray[Any], count: int) -> list[tuple[str, float]]:
        order = np.argsort(-scores, kind="stable")[:count]
        return [(self._passages.ids[place], float(scores[place])) for place in order]

    def _predict(self, question: str, chunk_id: str) -> Body:
        shown = f"Question: {question}\n\n{as_data('document', self._text(chunk_id))}"
        asked = yield from ask_text(self._model, _messages(_PREDICT, shown))
        return Prediction(text=asked.value or "", calls=asked.calls)

    def _judged(self, state: RAGentAState, chunk_id: str) -> str:
        answer = state["predictions"][chunk_id]["text"] or "None."
        document = as_data("document", self._text(chunk_id))
        return f"Question: {find_text(state)}\n\n{document}\n\n{as_data('answer', answer)}"

    def _rate(self, shown: str) -> Body:
        model = self._model.bind(logprobs=True, top_logprobs=_ALTERNATIVES)
        try:
            reply, seconds = yield model, _messages(_JUDGE, shown)
        except Exception as error:
            if getattr(error, "status_code", None) not in _REFUSED:
                raise
            return Judgement(score=None, refused=True, calls=[])
        listed = _first_alternatives(reply)
        return Judgement(
            score=rate_yes(listed or []), refused=listed is None, calls=[model_call(reply, seconds, step=1)]
        )

    def _grade(self, shown: str) -> Body:
        asked = yield from self._grader.ask(_messages(_GRADE, shown))
        score = None if asked.value is None else asked.value.grade
        return Judgement(score=score, refused=False, calls=asked.calls)

    def _show(self, state: RAGentAState, numbers: Iterable[int]) -> str:
        shown = [f"[{number}]\n{self._text(state['documents'][number - 1])}" for number in numbers]
        return as_data("documents", "\n\n".join(shown))

    def _text(self, chunk_id: str) -> str:
        chunk = self._index.get(chunk_id)
        return chunk.text if chunk else ""


def _offers_log_probabilities(model: BaseChatModel) -> bool:
    """Return whether a model's class takes the options for log probabilities."""
    fields = type(model).model_fields
    return {"logprobs", "top_logprobs"} <= fields.keys() and not getattr(model, "use_responses_api", None)


def _first_alternatives(reply: AIMessage) -> list[tuple[str, float]] | None:
    """Return the alternatives of a reply's first token; None if it comes without log probabilities."""
    content = (reply.response_metadata.get("logprobs") or {}).get("content")
    if not content:
        return None
    return [(each["token"], each["logprob"]) for each in content[0].get("top_logprobs") or [content[0]]]


def _ids(state: RAGentAState) -> list[str]:
    return [candidate["chunk_id"] for candidate in state["candidates"]]


def _calls(made: Mapping[str, Prediction] | Mapping[str, Judgement], ids: Iterable[str]) -> list[ModelCall]:
    return [call for each in ids for call in made[each]["calls"]]


def _name(numbers: Iterable[int], documents: Sequence[str]) -> str:
    return " ".join(f"[{documents[number - 1]}]" for number in numbers)


def _messages(instruction: str, shown: str) -> list[BaseMessage]:
    return [SystemMessage(instruction), HumanMessage(shown)]


def _stages(state: RAGentAState) -> list[Stage]:
    candidates = [f"[{each['chunk_id']}] {each['score']:.3f}" for each in state["candidates"]]
    predictions = []
    for chunk_id in _ids(state):
        score = state["judgements"][chunk_id]["score"]
        told = "not judged" if score is None else f"{score:.2f}"
        predictions.append(f"[{chunk_id}] ({told}) {state['predictions'][chunk_id]['text'] or 'none'}")
    kept = [f"{number}: [{each}]" for number, each in enumerate(state["documents"][: state["kept"]], start=1)]
    stages = [
        Stage(title="Candidates", lines=candidates),
        Stage(title=f"Answers from each, judged by {state['scale']}", lines=predictions),
        Stage(title="Kept", lines=kept),
        Stage(title="Claims", lines=[claim.text for claim in find_claims(state["draft"])]),
    ]
    for follow_up in state["follow_ups"]:
        found = [f"{number}: [{state['documents'][number - 1]}]" for number in follow_up["numbers"]]
        lines = [follow_up["question"], *found, f"Answer: {follow_up['answer'] or 'not found'}"]
        stages.append(Stage(title="Follow-up question", lines=lines))
    return stages


def _make(index: Index, model: BaseChatModel, options: Options) -> MethodGraph:
    settings = options.of(_NAME, RAGentASettings)
    passages = Passages(index, open_store(index), settings.passages)
    nodes = RAGentA(index, model, options.top_k, passages, settings)
    builder = StateGraph(RAGentAState, input_schema=InputState, output_schema=MethodOutput)
    builder.add_node("retrieve", nodes.retrieve)
    builder.add_node("predict", Each(nodes.predict, "predictions"))
    builder.add_node("judge", Each(nodes.judge, "judgements"))
    builder.add_node("use_grades", nodes.use_grades)
    builder.add_node("choose", nodes.choose)
    builder.add_node("answer", Node(nodes.answer, ask, aask))
    builder.add_node("check", Node(nodes.check, ask, aask))
    builder.add_node("search_further", nodes.search_further)
    builder.add_node("follow_up", Node(nodes.follow_up, ask, aask))
    builder.add_node("integrate", Node(nodes.integrate, ask, aask))
    builder.add_node("finish", nodes.finish)
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "predict")
    builder.add_conditional_edges("predict", nodes.after_predictions, ["predict", "judge"])
    builder.add_conditional_edges("judge", nodes.after_judgements, ["judge", "use_grades", "choose"])
    builder.add_edge("use_grades", "judge")
    builder.add_edge("choose", "answer")
    builder.add_edge("answer", "check")
    builder.add_conditional_edges("check", nodes.next_question, ["search_further", "finish"])
    builder.add_conditional_edges("search_further", nodes.after_search, ["follow_up", "search_further", "finish"])
    builder.add_conditional_edges("follow_up", nodes.after_follow_up, ["integrate", "search_further", "finish"])
    builder.add_conditional_edges("integrate", nodes.next_question, ["search_further", "finish"])
    builder.add_edge("finish", END)
    return builder.compile()


METHODS = (
    Method(
        _NAME,
        "RAGentA",
        "a hybrid search, an answer from each passage, a filter by judgements, a cited answer and follow-up questions",
        _make,
        passage_work(_NAME, RAGentASettings),
        settings=RAGentASettings,
        language_model=True,
        simplified="Prompts of our own; at most 3 follow-up questions; the numbers of documents go on in follow-ups. "
        "Models without log probabilities grade the passages from 0 to 10 instead; in questions that begin before the "
        "model is known to ignore them, each passage is judged twice. The method was made for 20 passages; it gets as "
        "many as the other methods.",
        iterative=None,
    ),
)
