"""What the sessions of an experiment share: the index, the model, what was computed before, and settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event

import numpy as np
from langchain_core.language_models import BaseChatModel
from numpy.typing import NDArray

from arag.evaluation.cache import Store
from arag.evaluation.methods.shared import Passages
from arag.evaluation.paper_tools import Presentation
from arag.graph import DEFAULT_MAX_STEPS
from arag.retrieval.index import Index
from arag.retrieval.types import Chunk


@dataclass
class RunContext:
    """Everything that the sessions of a run share.

    Attributes:
        index: The index.
        model: The model, with its cache.
        store: Results that were computed for the index before.
        judge: The model that judges answers, with its cache, if there is one.
        top_k: Chunks per search (the paper's k).
        presentation: The texts that A-RAG's tools show: `compact`, or the `paper`'s plain lists.
        max_steps: A-RAG's model calls before an answer is forced.
        concurrency: How many questions are answered at a time, and how many calls `ask_all` makes at a time.
        progress: Called with the name of a piece of work, how much of it is done, and how much there is.
        announce: Called with a sentence before work that may take long.
        stopped: Set when the caller has stopped the run: pauses end, and no more calls begin.
    """

    index: Index
    model: BaseChatModel
    store: Store
    judge: BaseChatModel | None = None
    top_k: int = 5
    presentation: Presentation = "compact"
    max_steps: int = DEFAULT_MAX_STEPS
    concurrency: int = 8
    progress: Callable[[str, int, int], None] = lambda *_: None
    announce: Callable[[str], None] = lambda *_: None
    stopped: Event = field(default_factory=Event)

    @cached_property
    def chunks(self) -> list[Chunk]:
        """All chunks, in the order of the index."""
        return find_chunks(self.index, list(self.index.chunk_ids()))

    @cached_property
    def spread(self) -> float:
        """The spread of the embedder's similarities, which are rescaled by it before anything is compared with them."""
        return self.index.info().spread

    def passages(self) -> Passages:
        """Return the chunks, to be ranked by their vectors; an embedder sees the first few hundred tokens of each."""
        vectors = self.vectors([chunk.text for chunk in self.chunks], "Chunks embedded")
        return Passages(self.chunks, vectors, self.index.embedder)

    def vectors(self, texts: Sequence[str], title: str = "Texts embedded") -> NDArray[np.float32]:
        """Return the vectors of texts, shape (texts, dimension); none is embedded a second time."""
        embedder = self.index.embedder
        total = len(set(texts))

        def embed(some: list[str]) -> list[bytes]:
            return [vector.astype("<f4").tobytes() for vector in embedder.embed_documents(some)]

        values = self.store.each(
            f"vector {embedder.name}",
            texts,
            embed,
            embedder.batch,
            lambda done: self.progress(title, done, total),
        )
        if not values:
            return np.empty((0, 0), dtype=np.float32)
        vectors = [np.frombuffer(value, dtype="<f4") for value in values]
        return np.stack(vectors).astype(np.float32)


def find_chunks(index: Index, chunk_ids: Sequence[str]) -> list[Chunk]:
    """Return the chunks that the index has, in the order of the ids."""
    return [chunk for chunk in index.mget(chunk_ids) if chunk is not None]
