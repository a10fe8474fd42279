"""FaithfulRAG: what the model believes is compared with the passages, sentence by sentence (Zhang et al. 2025)."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph
from numpy.typing import NDArray
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from arag.evaluation.methods.baselines.dense import DenseSettings, passage_work
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
from arag.evaluation.methods.interface import Method, MethodGraph, Options
from arag.evaluation.store import open_store
from arag.evaluation.structured import Asked, StructuredModel, ask_text
from arag.graph.nodes import Body, Node
from arag.graph.prompts import DATA_RULE, as_data
from arag.ingest.sentences import split_sentences
from arag.models.asking import aask, ask
from arag.retrieval.index import Index
from arag.retrieval.text import EAST_ASIAN

_NAME = "faithfulrag"
_GROUP_WORDS = 20
_GROUPS_OF_A_FACT = 5
_GROUPS = 5

_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)")  # in Markdown
_BRACKETS = re.compile(r"<(?:/?[A-Za-z]|!--)[^<>\n]*>|\[[^\[\]]*\]")  # of tags and comments, or square
_UNSPACED = EAST_ASIAN.replace("\uac00-\ud7a3", "")  # Korean has spaces
_WORD = re.compile(rf"[{_UNSPACED}][^\w\s]*|[^\s{_UNSPACED}]+")

_FACTS = """You list the facts that one must know to answer a question.

Each fact is one sentence that stands by itself, as you would expect to find it in a reference work. Leave out what \
has nothing to do with the question, and do not answer it.

Reply with one JSON object and nothing else:
{"facts": ["each fact in one sentence"]}"""

_BACKGROUND = f"""You write the background of a question from what you know: a passage of about 100 words, as in an \
encyclopedia, with the names, dates and numbers that matter for the question and for the listed facts. Decide where \
you are not sure. Write nothing but the passage.

{DATA_RULE}"""

_STATEMENTS = f"""You take a passage apart into atomic facts: each one is a sentence that says one thing, with names \
in place of pronouns, and keeps the names, dates and numbers of the passage. Add nothing.

Reply with one JSON object and nothing else:
{{"facts": ["each fact in one sentence"]}}

{DATA_RULE}"""

_ANSWER = """You answer a question from passages of a corpus, which may contradict what you believe; the passages are \
right."""

_FACTS_FIRST = """The sentences listed as facts were chosen from them: look there first, and in the whole context \
where they are not enough."""

_ANSWER_FORM = f"""Reply with one JSON object and nothing else:
{{"reason": "in one or two sentences: what the answer follows from",
"answer": "the answer, as briefly as the question allows"}}

{DATA_RULE}"""


class Facts(BaseModel):
    """Facts, each in one sentence."""

    facts: list[str] = Field(description="The facts.")


class Answer(BaseModel):
    """The answer to a question."""

    reason: str = Field(description="What the answer follows from.")
    answer: str = Field(description="The answer, as briefly as the question allows.")


class Group(TypedDict):
    """A few sentences of the passages that bear on what the model believes."""

    text: str
    score: float
    """Cosine similarity to the fact that it is nearest to."""


class FaithfulState(MethodState, total=False):
    """The state of FaithfulRAG's graph."""

    context: list[str]
    """The ids of the passages."""
    needed: list[str]
    """The facts that one must know, by the model."""
    background: str
    """What the model believes about the question."""
    statements: list[str]
    """The same, in atomic facts."""
    groups: list[Group]
    """The sentences of the passages that are nearest to these."""


def group_sentences(sentences: Sequence[str], most_words: int = _GROUP_WORDS) -> list[str]:
    """Join neighbouring sentences to groups of at most so many words; a longer sentence is a group by itself.

    Words are what spaces separate. In Chinese and Japanese, each character counts as one.

    Args:
        sentences: The sentences, in order.
        most_words: The most words of a group.

    Example:
        >>> from arag.evaluation.methods.faithful_rag import group_sentences
        >>> group_sentences(["It was lit.", "Who lit it?", "Nobody knows any more."], most_words=6)
        ['It was lit. Who lit it?', 'Nobody knows any more.']
    """
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


def cut_context(texts: Sequence[str], language: str) -> list[str]:
    """Return the sentences of texts, in groups, without tags and what stands in square brackets.

    Of a link in Markdown, its text remains.

    Args:
        texts: The texts.
        language: Their language, as in an index.
    """
    sentences: list[str] = []
    for text in texts:
        plain = _BRACKETS.sub("", _LINK.sub(r"\1", text))
        found = (plain[each.start : each.end] for each in split_sentences(plain, language=language))
        sentences += [" ".join(sentence.split()) for sentence in found]
    return group_sentences(sentences)


def choose_groups(similarities: NDArray[np.float32], groups: Sequence[str]) -> list[Group]:
    """Return the groups that are nearest to any fact: of each fact's five nearest, the five nearest of all.

    Args:
        similarities: Shape (facts, groups).
        groups: The groups; equal texts count once.
    """
    nearest = np.argsort(-similarities, axis=1, kind="stable")[:, :_GROUPS_OF_A_FACT]
    pooled = [
        (float(row[place]), groups[place])
        for row, places in zip(similarities, nearest, strict=True)
        for place in places
    ]
    best: dict[str, float] = {}
    for score, text in sorted(pooled, key=lambda pair: -pair[0]):
        best.setdefault(text, score)
    return [Group(text=text, score=score) for text, score in islice(best.items(), _GROUPS)]


class FaithfulRAG:
    """The nodes of FaithfulRAG's graph.

    Args:
        index: The index.
        model: The model.
        top_k: How many passages are retrieved.
        passages: Retrieves them.
    """

    def __init__(self, index: Index, model: BaseChatModel, top_k: int, passages: Passages) -> None:
        self._index = index
        self._model = model
        self._top_k = top_k
        self._passages = passages
        self._lister = StructuredModel(model, Facts, "list facts")
        self._answerer = StructuredModel(model, Answer, "answer")

    def retrieve(self, state: FaithfulState) -> dict[str, object]:
        """Find the passages nearest to the question."""
        began = time.perf_counter()
        question = find_text(state)
        chunks = self._passages.chunks(self._passages.top(question, self._top_k))
        record = retrieval_record(chunks, {"query": question, "top_k": self._top_k}, began=began)
        empty = {"needed": [], "background": "", "statements": [], "groups": [], "model_calls": []}
        return {**empty, "context": record["chunk_ids"], "trace": [record]}

    def list_needed(self, state: FaithfulState) -> Body:
        """List the facts that one must know."""
        asked = yield from self._lister.ask(_messages(_FACTS, f"Question: {find_text(state)}"))
        return {"needed": _read_facts(asked), "model_calls": asked.calls}

    def recall(self, state: FaithfulState) -> Body:
        """Let the model write what it believes."""
        facts = as_data("facts", _lines(state["needed"]) or "None.")
        shown = f"Question: {find_text(state)}\n\n{facts}"
        asked = yield from ask_text(self._model, _messages(_BACKGROUND, shown))
        return {"background": asked.value or "", "model_calls": state["model_calls"] + asked.calls}

    def take_apart(self, state: FaithfulState) -> Body:
        """Take what the model believes apart into atomic facts."""
        shown = as_data("passage", state["background"])
        asked = yield from self._lister.ask(_messages(_STATEMENTS, shown))
        return {"statements": _read_facts(asked), "model_calls": state["model_calls"] + asked.calls}

    def align(self, state: FaithfulState) -> dict[str, object]:
        """Find the sentences of the passages that bear on what the model believes."""
        chunks = self._passages.chunks(state["context"])
        groups = cut_context([chunk.text for chunk in chunks], "auto")
        if not groups:
            return {}
        embedder = self._index.embedder
        similarities = embedder.embed_documents(state["statements"]) @ embedder.embed_documents(groups).T
        return {"groups": choose_groups(similarities, groups)}

    def answer(self, state: FaithfulState) -> Body:
        """Answer from the aligned sentences and the passages."""
        facts = _lines(group["text"] for group in state["groups"])
        texts = "\n\n".join(chunk.text for chunk in self._passages.chunks(state["context"]))
        parts = [f"Question: {find_text(state)}", as_data("facts", facts) if facts else "", as_data("context", texts)]
        instruction = [_ANSWER, _FACTS_FIRST if facts else "", _ANSWER_FORM]
        asked = yield from self._answerer.ask(_messages(_join(instruction), _join(parts)))
        return finish(
            self._index,
            (asked.value.answer if asked.value else asked.text).strip(),
            calls=state["model_calls"] + asked.calls,
            trace=state["trace"],
            stages=[
                Stage(title="Facts that one must know", lines=state["needed"]),
                Stage(title="Background, by the model", lines=[state["background"] or "none"]),
                Stage(title="Facts in it", lines=state["statements"]),
                Stage(
                    title="Sentences nearest to them", lines=[f"{g['score']:.3f} {g['text']}" for g in state["groups"]]
                ),
            ],
        )


def _has_background(state: FaithfulState) -> str:
    return "take_apart" if state["background"] else "answer"


def _has_statements(state: FaithfulState) -> str:
    return "align" if state["statements"] else "answer"


def _read_facts(asked: Asked[Facts]) -> list[str]:
    return [fact.strip() for fact in asked.value.facts if fact.strip()] if asked.value else []


def _messages(instruction: str, shown: str) -> list[BaseMessage]:
    return [SystemMessage(instruction), HumanMessage(shown)]


def _join(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part)


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _make(index: Index, model: BaseChatModel, options: Options) -> MethodGraph:
    settings = options.of(_NAME, DenseSettings)
    nodes = FaithfulRAG(index, model, options.top_k, Passages(index, open_store(index), settings.passages))
    builder = StateGraph(FaithfulState, input_schema=InputState, output_schema=MethodOutput)
    builder.add_node("retrieve", nodes.retrieve)
    builder.add_node("list_needed", Node(nodes.list_needed, ask, aask))
    builder.add_node("recall", Node(nodes.recall, ask, aask))
    builder.add_node("take_apart", Node(nodes.take_apart, ask, aask))
    builder.add_node("align", nodes.align)
    builder.add_node("answer", Node(nodes.answer, ask, aask))
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "list_needed")
    builder.add_edge("list_needed", "recall")
    builder.add_conditional_edges("recall", _has_background, ["take_apart", "answer"])
    builder.add_conditional_edges("take_apart", _has_statements, ["align", "answer"])
    builder.add_edge("align", "answer")
    builder.add_edge("answer", END)
    return builder.compile()


METHODS = (
    Method(
        _NAME,
        "FaithfulRAG",
        "four calls: the model writes what it believes, and answers from the sentences of the passages that bear on it",
        _make,
        passage_work(_NAME, DenseSettings),
        settings=DenseSettings,
        language_model=True,
        simplified="Prompts of our own. The passages nearest to the question are its context; the published method is "
        "given one with each question. The third call takes the background passage apart into facts, as in the paper; "
        "the published code asks for the facts needed to understand it, and cuts each at its first digit.",
    ),
)
