"""The index-time work, and what questions read of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property

import numpy as np
from langchain_core.language_models import BaseChatModel

from arag.evaluation.methods.baselines.passages import Passages
from arag.evaluation.methods.graphrag.building import Work, build
from arag.evaluation.methods.graphrag.knowledge import Entity, KnowledgeGraph
from arag.evaluation.store import Store, Vectors, open_store
from arag.evaluation.workplace import Replies, Workplace
from arag.retrieval.index import Index


async def read_corpus(place: Workplace, max_cluster_size: int) -> KnowledgeGraph:
    """Let the model read the corpus; what it has read before is not asked for again.

    Args:
        place: Where the work is done.
        max_cluster_size: Larger communities are divided further.

    Raises:
        InputError: The budget is too small or used up.
        ModelError: A call failed. What was finished is kept.
    """
    chunks = Passages(place.index, place.store).chunks(place.index.chunk_ids())
    building = build(chunks, max_cluster_size)
    work = next(building)
    announced = ""
    while True:
        if work.title != announced:  # further rounds of one kind are few
            _announce(place, work)
            announced = work.title
        asked = await place.ask(work.requests, work.title)
        try:
            work = building.send(asked)
        except StopIteration as end:
            graph: KnowledgeGraph = end.value
            return graph


def _announce(place: Workplace, work: Work) -> None:
    missing = place.missing(work.requests)
    if not missing:
        return
    calls, tokens = work.later()
    share = len(missing) / len(work.requests)
    place.announce(len(missing) + round(share * calls), place.count_tokens(missing) + round(share * tokens))


def embed_entities(
    graph: KnowledgeGraph, index: Index, store: Store, on_embedded: Callable[[int], None] = lambda _: None
) -> Vectors:
    """Return the vectors of the entities, shape (entities, dimension); those that are not kept yet are embedded.

    Args:
        graph: The graph.
        index: The index, for its embedder.
        store: Keeps the vectors.
        on_embedded: Called with the number of entities embedded so far.
    """
    texts = [f"{entity.title}:{entity.description}" for entity in graph.entities]
    return store.vectors(texts, index.embedder, on_embedded=on_embedded)


class Knowledge:
    """What questions read of the index-time work. It is loaded at the first use, by one thread.

    Args:
        index: The index.
        model: The model that read it.
        method: The method's name, for messages.
        max_cluster_size: As it was read with.
    """

    def __init__(self, index: Index, model: BaseChatModel, method: str, max_cluster_size: int) -> None:
        self._index = index
        self._model = model
        self._method = method
        self._max_cluster_size = max_cluster_size
        self._lock = threading.Lock()
        self._graph: KnowledgeGraph | None = None
        self._vectors: Vectors | None = None

    @cached_property
    def _replies(self) -> Replies:
        return Replies(open_store(self._index), self._model)

    @cached_property
    def passages(self) -> Passages:
        """The chunks by their vectors."""
        return Passages(self._index, self._replies.store)

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph.

        Raises:
            InputError: The index has not been read to the end.
        """
        with self._lock:
            if self._graph is None:
                self._graph = self._load()
            return self._graph

    def nearest(self, question: str, count: int) -> list[Entity]:
        """Return the entities nearest to a question, nearest first."""
        graph = self.graph
        if not graph.entities:
            return []
        with self._lock:
            if self._vectors is None:
                self._vectors = embed_entities(graph, self._index, self._replies.store)
        similarities = self._vectors @ self._index.embedder.embed_query(question)
        return [graph.entities[place] for place in np.argsort(-similarities, kind="stable")[:count]]

    def _load(self) -> KnowledgeGraph:
        building = build(self.passages.chunks(self._index.chunk_ids()), self._max_cluster_size)
        work = next(building)
        while True:
            asked = self._replies.require(work.requests, self._method)
            try:
                work = building.send(asked)
            except StopIteration as end:
                graph: KnowledgeGraph = end.value
                return graph
