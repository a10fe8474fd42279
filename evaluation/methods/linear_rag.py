"""LinearRAG: a graph of passages and entities without relations, searched by activation and PageRank.

Index time takes no model calls: a named entity recogniser finds the entities of every chunk. A question activates the
corpus entities nearest to its own; activation spreads through the sentences that mention an active entity and are
nearest to the question, to the other entities in them. PageRank from the active entities and all passages ranks the
passages, and the model is asked once.

The authors' settings differ by corpus. They are presets, `--set linear-rag.preset=musique`, and settings that are
given as well take precedence:

| preset | `max_iterations` | `threshold` | `passage_ratio` | `sentences` |
| --- | --- | --- | --- | --- |
| `musique` | 5 | 0.1 | 2 | 4 |
| `hotpotqa`, `2wiki` | 3 | 0.4 | 0.05 | 1 |
| `medical` | 3 | 0.5 | 1.5 | 1 |
| `other` | 3 | 0.4 | 2 | 3 |

The thresholds are for products of cosine similarities of all-mpnet-base-v2. With another embedder activation may not
spread at all: the record of each retrieval says how many entities were `activated` beyond the first ones.
"""

from __future__ import annotations

import asyncio
import threading
import time
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Literal

import numpy as np
from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, START, StateGraph
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from arag.errors import InputError
from arag.evaluation.methods.baselines.entities import Entities, missing_pipeline
from arag.evaluation.methods.baselines.outcome import (
    MethodOutput,
    MethodState,
    Stage,
    find_text,
    finish,
    retrieval_record,
)
from arag.evaluation.methods.baselines.pagerank import pagerank
from arag.evaluation.methods.baselines.passages import By, Passages, minmax
from arag.evaluation.methods.baselines.reader import read_answer, reader_messages
from arag.evaluation.methods.interface import Method, MethodGraph, Options, Settings
from arag.evaluation.store import Store, open_store
from arag.evaluation.structured import ask_text
from arag.evaluation.workplace import Workplace
from arag.graph.nodes import Body, Node
from arag.graph.state import InputState
from arag.models.asking import aask, ask
from arag.retrieval.index import Index
from arag.retrieval.types import Chunk

_NAME = "linear-rag"
_PASSAGE_WEIGHT = 0.05  # of passages beside entities, where walks start
_AT_ONCE = 64  # chunks whose entities are found, and kept, together
_MAX_SHOWN = 12  # entities in a stage

_PRESETS: dict[str, dict[str, float]] = {
    "musique": {"max_iterations": 5, "threshold": 0.1, "passage_ratio": 2, "sentences": 4},
    "hotpotqa": {"max_iterations": 3, "threshold": 0.4, "passage_ratio": 0.05, "sentences": 1},
    "2wiki": {"max_iterations": 3, "threshold": 0.4, "passage_ratio": 0.05, "sentences": 1},
    "medical": {"max_iterations": 3, "threshold": 0.5, "passage_ratio": 1.5, "sentences": 1},
    "other": {"max_iterations": 3, "threshold": 0.4, "passage_ratio": 2, "sentences": 3},
}

Adjacent = Literal["corpus", "document", "none"]
Active = dict[int, tuple[float, int]]


class LinearSettings(Settings):
    """The settings of LinearRAG."""

    preset: Literal["musique", "hotpotqa", "2wiki", "medical", "other"] = Field(
        "other", description="The authors' settings for a corpus; those that are given as well take precedence."
    )
    max_iterations: int = Field(3, ge=1, description="Rounds of activation, the first entities included.")
    threshold: float = Field(0.4, description="The least activation that spreads: a product of cosine similarities.")
    passage_ratio: float = Field(2, ge=0, description="Weight of a passage's similarity beside its active entities.")
    sentences: int = Field(3, ge=1, description="How many sentences an active entity spreads through in a round.")
    passages: By = Field("chunk", description="What is compared with the question: whole chunks or best sentences.")
    adjacent: Adjacent = Field(
        "corpus", description="Which neighbouring passages are linked: all, those of one document, or none."
    )
    ner: str | None = Field(
        None, description="The spaCy pipeline that finds entities; by default the best English one installed."
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, given: Any) -> Any:
        """Fill in what the preset says."""
        if not isinstance(given, Mapping):
            return given
        preset = given.get("preset", "other")
        return {**_PRESETS.get(preset, {}), **given} if isinstance(preset, str) else given

    @field_validator("ner")
    @classmethod
    def _check_installed(cls, ner: str | None) -> str | None:
        """Refuse a pipeline that is not installed before any work is done."""
        return Entities(ner).name if ner else None


def spread(
    seeds: Mapping[int, float],
    sentences_of: Sequence[Sequence[int]],
    entities_of: Sequence[Sequence[int]],
    compare: Callable[[Sequence[int]], NDArray[Any]],
    settings: LinearSettings,
    order: Callable[[Mapping[int, float]], Iterable[int]],
) -> tuple[dict[int, float], Active]:
    """Spread activation from entities to those that share a sentence with them.

    Args:
        seeds: The first entities, with their scores.
        sentences_of: For each entity, the sentences that mention it.
        entities_of: For each sentence, the entities that it mentions.
        compare: Returns the cosine similarities of sentences to the question.
        settings: The settings.
        order: The order in which entities spread. It matters: a sentence is used once.

    Returns:
        What each entity received in all; and for each its latest score with the round, from 1, in which that came.
    """
    weights = dict(seeds)
    active = {entity: (score, 1) for entity, score in seeds.items()}
    used: set[int] = set()
    current = dict(seeds)
    for tier in range(2, settings.max_iterations + 1):
        arrived: dict[int, float] = {}
        for entity in order(current):
            unused = [sentence for sentence in sentences_of[entity] if sentence not in used]
            if current[entity] < settings.threshold or not unused:
                continue
            similarities = compare(unused)
            for place in np.argsort(-similarities, kind="stable")[: settings.sentences].tolist():
                used.add(unused[place])
                score = current[entity] * float(similarities[place])
                if score >= settings.threshold:
                    for other in entities_of[unused[place]]:
                        weights[other] = weights.get(other, 0.0) + score
                        arrived[other] = score
        active |= {entity: (score, tier) for entity, score in arrived.items()}
        current = arrived
    return weights, active


def rate_passages(
    similarities: NDArray[Any],
    active: Active,
    count: Callable[[int], tuple[NDArray[np.int64], NDArray[np.float64]]],
    passage_ratio: float,
) -> NDArray[np.float64]:
    """Return how likely a walk starts at each passage: by its similarity, and by its active entities.

    Args:
        similarities: Of the passages to the question, shape (passages,).
        active: For each active entity, its score and round.
        count: Returns the passages that an entity's text occurs in, and how often.
        passage_ratio: The weight of the similarity.
    """
    bonus = np.zeros(len(similarities))
    for entity, (score, tier) in active.items():
        passages, counts = count(entity)
        bonus[passages] += score * np.log1p(counts) / tier
    with np.errstate(invalid="ignore", divide="ignore"):  # far below 0; no walk starts there
        return np.asarray(_PASSAGE_WEIGHT * (passage_ratio * minmax(similarities) + np.log1p(bonus)), dtype=np.float64)


class OccurrenceCounter:
    """Counts texts in passages, in lower case and inside longer words, too.

    A text's longest word is looked up among the words of all passages: only passages with a word that contains it are
    searched.

    Args:
        passages: The passages' texts.
    """

    def __init__(self, passages: Sequence[str]) -> None:
        self._passages = [text.lower() for text in passages]
        self._holding: dict[str, list[int]] = {}  # which passages hold a word
        for number, text in enumerate(self._passages):
            for word in set(text.split()):
                self._holding.setdefault(word, []).append(number)
        self._words = list(self._holding)
        self._joined = "\n".join(self._words)
        self._begins = list(accumulate((len(word) + 1 for word in self._words), initial=0))

    def count(self, text: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the numbers of the passages that a text occurs in, ascending, and how often it does in each."""
        text = text.lower()
        part = max(text.split(), key=len, default="")
        holding: set[int] = set()
        at = self._joined.find(part) if part else -1
        while at >= 0:
            word = bisect(self._begins, at) - 1
            holding.update(self._holding[self._words[word]])
            at = self._joined.find(part, self._begins[word + 1])
        counts = {number: found for number in sorted(holding) if (found := self._passages[number].count(text))}
        return np.fromiter(counts, np.int64, len(counts)), np.fromiter(counts.values(), np.float64, len(counts))


class EntityGraph:
    """The graph of a corpus: passages, their entities, and the sentences that mention several.

    Args:
        passages: The passages' texts.
        entities: The entities' texts.
        mentioned: For each passage, the entities in it, each once.
        entities_of: For each sentence, the entities in it, each once.
        links: Pairs of passages that are neighbours.
    """

    def __init__(
        self,
        passages: Sequence[str],
        entities: Sequence[str],
        mentioned: Sequence[Sequence[int]],
        entities_of: Sequence[Sequence[int]],
        links: Iterable[tuple[int, int]],
    ) -> None:
        self.entities = list(entities)
        self.entities_of = entities_of
        self.sentences_of: list[list[int]] = [[] for _ in self.entities]
        for sentence, found in enumerate(entities_of):
            for entity in found:
                self.sentences_of[entity].append(sentence)
        self._counter = OccurrenceCounter(passages)
        self._counts: dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
        edges = [(one, other, 1.0) for one, other in links]
        for number, (text, found) in enumerate(zip(passages, mentioned, strict=True)):
            counts = [text.count(self.entities[entity]) for entity in found]
            total = sum(counts)
            edges += [(number, len(passages) + e, n / total) for e, n in zip(found, counts, strict=True)]
        self._sources = np.array([source for source, _, _ in edges], dtype=np.int64)
        self._targets = np.array([target for _, target, _ in edges], dtype=np.int64)
        self._weights = np.array([weight for _, _, weight in edges])

    def count(self, entity: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the passages that an entity's text occurs in, in any case, and how often."""
        if entity not in self._counts:  # two threads may both count it, with the same result
            self._counts[entity] = self._counter.count(self.entities[entity])
        return self._counts[entity]

    def rank(self, passages: NDArray[np.float64], weights: Mapping[int, float]) -> NDArray[np.float64]:
        """Return the PageRank of the passages.

        Args:
            passages: How likely a walk starts at each passage, shape (passages,).
            weights: The same for active entities.
        """
        reset = np.concatenate([passages, np.zeros(len(self.entities))])
        reset[len(passages) + np.fromiter(weights, np.int64, len(weights))] = list(weights.values())
        return pagerank(self._sources, self._targets, self._weights, reset)[: len(passages)]


class Corpus:
    """What questions are compared with: the chunks that the index holds, and what the store keeps about them.

    Args:
        index: The index.
        store: The store.
        names: Finds entities.
        settings: The settings.

    Raises:
        InputError: The entities of some chunks have not been found yet.
    """

    def __init__(self, index: Index, store: Store, names: Entities, settings: LinearSettings) -> None:
        self.passages = Passages(index, store, settings.passages)
        placed = {chunk.id: (chunk, positions, rows) for chunk, positions, rows in index.sentence_vectors()}
        chunks = [placed[chunk_id][0] for chunk_id in self.passages.ids]
        found = _recall(store, names, chunks)
        texts = _entity_texts(chunks, found)
        numbers = {text: number for number, text in enumerate(texts)}
        self.entity_vectors = store.vectors(texts, index.embedder)

        sentences: dict[str, int] = {}  # equal ones are one
        entities_of: list[dict[int, None]] = []
        vectors: list[NDArray[np.float32]] = []
        for chunk, places in zip(chunks, found, strict=True):
            _, positions, rows = placed[chunk.id]
            begins = [chunk.sentences[position].start for position in positions]
            for start, end in places:
                row = bisect(begins, start) - 1
                if row < 0 or start >= chunk.sentences[positions[row]].end:
                    continue  # in a heading
                sentence = sentences.setdefault(chunk.sentence_text(positions[row]), len(sentences))
                if sentence == len(vectors):
                    vectors.append(rows[row])
                    entities_of.append({})
                entities_of[sentence][numbers[chunk.text[start:end]]] = None
        self.sentence_vectors = np.stack(vectors) if vectors else np.empty((0, 0), dtype=np.float32)
        self.graph = EntityGraph(
            [chunk.text for chunk in chunks],
            texts,
            [
                list(dict.fromkeys(numbers[chunk.text[start:end]] for start, end in places))
                for chunk, places in zip(chunks, found, strict=True)
            ],
            [list(mentioned) for mentioned in entities_of],
            _links(chunks, settings.adjacent),
        )


class LinearRAG:
    """The nodes.

    Args:
        index: The index.
        model: The model that answers.
        top_k: How many chunks are in the prompt.
        settings: The settings.

    Raises:
        InputError: No recogniser of entities is installed.
    """

    def __init__(self, index: Index, model: BaseChatModel, top_k: int, settings: LinearSettings) -> None:
        self._index = index
        self._model = model
        self._top_k = top_k
        self._settings = settings
        self._names = Entities(settings.ner)
        self._lock = threading.Lock()
        self._corpus: Corpus | None = None

    def retrieve(self, state: MethodState) -> dict[str, object]:
        """Rank the chunks."""
        began = time.perf_counter()
        question = str(find_text(state))  # of a plain string only, spaCy takes a text
        corpus = self._load()
        scores, stages, figures = self.rank(question, corpus)
        best = np.argsort(-scores, kind="stable")[: self._top_k]
        chunks = corpus.passages.chunks(corpus.passages.ids[place] for place in best)
        arguments = {"query": question, "top_k": self._top_k, "ner": self._names.name, **figures}
        return {"trace": [retrieval_record(chunks, arguments, began=began)], "stages": stages}

    def answer(self, state: Any) -> Body:
        """Ask the model."""
        ids = state["trace"][0]["chunk_ids"]
        messages = reader_messages(find_text(state), self._load().passages.chunks(ids))
        asked = yield from ask_text(self._model, messages)
        reply = asked.value or ""
        return finish(
            self._index,
            read_answer(reply),
            calls=asked.calls,
            trace=state["trace"],
            stages=state["stages"],
            cited=[chunk_id for chunk_id in ids if f"[{chunk_id}]" in reply],
        )

    def rank(self, question: str, corpus: Corpus) -> tuple[NDArray[Any], list[Stage], dict[str, int]]:
        """Return the score of every chunk, what was found on the way, and figures about it."""
        if not question.strip():
            raise InputError("the question is blank")
        query = self._index.embedder.embed_query(question)
        similarities = corpus.passages.compare(query)
        spans = next(self._names.find([question]))
        asked_for = list(dict.fromkeys(question[start:end].lower() for start, end in spans))
        recogniser = Stage(title="Entity recogniser", lines=[f"{self._names.name} {self._names.version}"])
        graph = corpus.graph
        if not asked_for or not graph.entities:
            why = "none in the corpus" if asked_for else "none in the question"
            lines = [f"{why}: the passages are ranked by similarity alone"]
            figures = {"entities": len(asked_for), "activated": 0}
            return similarities, [recogniser, Stage(title="Entities", lines=lines)], figures

        compared = corpus.entity_vectors @ self._index.embedder.embed_documents(asked_for).T
        nearest = [(int(column.argmax()), float(column.max())) for column in compared.T]
        weights, active = spread(
            dict(nearest),
            graph.sentences_of,
            graph.entities_of,
            lambda sentences: corpus.sentence_vectors[sentences] @ query,
            self._settings,
            # The entities are sorted by their texts.
            lambda current: sorted(current, key=lambda entity: (-current[entity], entity)),
        )
        rated = rate_passages(similarities, active, graph.count, self._settings.passage_ratio)
        scores = graph.rank(rated, weights)
        activated = len(weights) - len(dict(nearest))
        first = [
            f"{name} → {graph.entities[entity]} ({similarity:.2f})"
            for name, (entity, similarity) in zip(asked_for, nearest, strict=True)
        ]
        best = sorted(weights, key=lambda entity: (-weights[entity], entity))[:_MAX_SHOWN]
        reached = [f"{activated or 'none'} beyond the first ones"]
        reached += [f"{graph.entities[entity]}: {weights[entity]:.2f}, round {active[entity][1]}" for entity in best]
        stages = [
            recogniser,
            Stage(title="Entities of the question → of the corpus", lines=first),
            Stage(title="Active entities", lines=reached),
        ]
        # Without a place to start from there is no walk.
        return scores if scores.any() else similarities, stages, {"entities": len(first), "activated": activated}

    def _load(self) -> Corpus:
        with self._lock:
            if self._corpus is None:
                self._corpus = Corpus(self._index, open_store(self._index), self._names, self._settings)
            return self._corpus


def _kind(names: Entities) -> str:
    return f"entities {names.name} {names.version}"


def _recall(store: Store, names: Entities, chunks: Sequence[Chunk]) -> list[list[tuple[int, int]]]:
    """Return the places of the entities in chunks."""
    kept = store.recall(_kind(names), [chunk.text for chunk in chunks])
    if missing := sum(places is None for places in kept):
        raise InputError(
            f"{_NAME} has not read the whole index yet: the entities of {missing:,} of {len(chunks):,} chunks are "
            "missing: do its index-time work first, with arag.evaluation.preparation.prepare"
        )
    return [[(start, end) for start, end in places] for places in kept if places is not None]


def _entity_texts(chunks: Sequence[Chunk], places: Iterable[Sequence[tuple[int, int]]]) -> list[str]:
    """Return the different texts of entities, sorted."""
    found = zip(chunks, places, strict=True)
    return sorted({chunk.text[start:end] for chunk, spans in found for start, end in spans})


def _links(chunks: Sequence[Chunk], adjacent: Adjacent) -> list[tuple[int, int]]:
    """Return the pairs of neighbouring passages."""
    if adjacent == "none":
        return []
    return [
        (number, number + 1)
        for number, (one, other) in enumerate(pairwise(chunks))
        if adjacent == "corpus" or one.document_id == other.document_id
    ]


async def _prepare(place: Workplace) -> None:
    settings = place.options.of(_NAME, LinearSettings)
    names = Entities(settings.ner)
    passages = Passages(place.index, place.store, settings.passages)
    ids = list(place.index.chunk_ids())
    chunks = await asyncio.to_thread(passages.chunks, ids)
    texts = list(dict.fromkeys(chunk.text for chunk in chunks))
    missing = [text for text, kept in zip(texts, place.store.recall(_kind(names), texts), strict=True) if kept is None]

    def find(some: Sequence[str]) -> None:
        place.store.remember(_kind(names), dict(zip(some, names.find(some), strict=True)))

    for begin in range(0, len(missing), _AT_ONCE):
        place.on_progress("Finding entities", len(texts) - len(missing) + begin, len(texts))
        await asyncio.to_thread(find, missing[begin : begin + _AT_ONCE])
    place.on_progress("Finding entities", len(texts), len(texts))
    await asyncio.to_thread(passages.prepare, lambda done: place.on_progress("Embedding chunks", done, len(chunks)))
    entities = _entity_texts(chunks, _recall(place.store, names, chunks))
    await asyncio.to_thread(
        place.store.vectors,
        entities,
        place.index.embedder,
        on_embedded=lambda done: place.on_progress("Embedding entities", done, len(entities)),
    )


def _make(index: Index, model: BaseChatModel, options: Options) -> MethodGraph:
    nodes = LinearRAG(index, model, options.top_k, options.of(_NAME, LinearSettings))
    builder = StateGraph(MethodState, input_schema=InputState, output_schema=MethodOutput)
    builder.add_node("retrieve", nodes.retrieve)
    builder.add_node("answer", Node(nodes.answer, ask, aask))
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "answer")
    builder.add_edge("answer", END)
    return builder.compile()


METHODS = (
    Method(
        _NAME,
        "LinearRAG",
        "one call; the prompt holds the chunks that PageRank finds in a graph of named entities",
        _make,
        prepare=_prepare,
        settings=LinearSettings,
        language_model=False,
        missing=missing_pipeline,
        simplified="The reader's prompt is our own. Entities of one round spread in the order of their scores; in the "
        "published code, in no fixed order. Sentences are those of the index, where the published code uses spaCy's; "
        "equal ones are merged. The default recogniser may be spaCy's small one.",
    ),
)
