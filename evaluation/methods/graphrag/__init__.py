"""GraphRAG (Edge et al. 2024): a model turns the corpus into a knowledge graph whose communities it reports on.

Local search answers from what the graph and the corpus hold about the entities nearest to the question; global search
from all reports.
"""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING

from langchain_core.language_models import BaseChatModel
from pydantic import Field

from arag.evaluation.methods.interface import Method, MethodGraph, Options, Settings
from arag.retrieval.index import Index

if TYPE_CHECKING:
    from arag.evaluation.workplace import Workplace

_SHORT = "the shortest that answers the question: a name, a date, a number, a few words, yes or no"
_LOCAL, _GLOBAL = "graphrag", "graphrag-global"
_WORK = "graphrag"
_INSTALL = "graspologic-native is not installed; install it with pip install 'langgraph-arag[baselines]'"


class GraphRAGSettings(Settings):
    """Settings of both searches; `max_cluster_size` is one of the index-time work."""

    max_cluster_size: int = Field(10, ge=1, description="Communities with more entities are divided further.")
    level: int = Field(2, ge=0, description="The deepest level of communities whose reports are used.")
    max_tokens: int = Field(12_000, ge=1_000, description="Tokens of the context, or of a batch of reports.")
    response: str = Field(_SHORT, description='The form of the answer; GraphRAG\'s own is "multiple paragraphs".')


class LocalSettings(GraphRAGSettings):
    """Settings of local search."""

    entities: int = Field(20, ge=1, description="How many entities nearest to the question are selected.")


def _make_local(index: Index, model: BaseChatModel, options: Options) -> MethodGraph:
    from arag.evaluation.methods.graphrag.local_context import Budgets
    from arag.evaluation.methods.graphrag.local_search import LocalSearch
    from arag.evaluation.methods.graphrag.preparing import Knowledge

    settings = options.of(_LOCAL, LocalSettings)
    return LocalSearch(
        index,
        model,
        Knowledge(index, model, _LOCAL, settings.max_cluster_size),
        level=settings.level,
        entities=settings.entities,
        budgets=Budgets.divide(settings.max_tokens),
        response=settings.response,
        top_k=options.top_k,
    ).compile()


def _make_global(index: Index, model: BaseChatModel, options: Options) -> MethodGraph:
    from arag.evaluation.methods.graphrag.global_search import GlobalSearch
    from arag.evaluation.methods.graphrag.preparing import Knowledge

    settings = options.of(_GLOBAL, GraphRAGSettings)
    return GlobalSearch(
        index,
        model,
        Knowledge(index, model, _GLOBAL, settings.max_cluster_size),
        level=settings.level,
        max_tokens=settings.max_tokens,
        response=settings.response,
    ).compile()


async def _prepare_local(place: Workplace) -> None:
    from arag.evaluation.methods.baselines.dense import embed_passages
    from arag.evaluation.methods.graphrag.preparing import embed_entities, read_corpus

    graph = await read_corpus(place, place.options.of(_LOCAL, LocalSettings).max_cluster_size)
    if not graph.entities:  # questions are answered from the nearest chunks
        await embed_passages(place, "chunk")
        return

    def report(done: int) -> None:
        place.on_progress("Embedding entities", done, len(graph.entities))

    await asyncio.to_thread(embed_entities, graph, place.index, place.store, report)


async def _prepare_global(place: Workplace) -> None:
    from arag.evaluation.methods.graphrag.preparing import read_corpus

    await read_corpus(place, place.options.of(_GLOBAL, GraphRAGSettings).max_cluster_size)


def _missing() -> str | None:
    return None if find_spec("graspologic_native") else _INSTALL


_SIMPLIFIED = (
    "Prompts of our own. The chunks are those of this index, without overlap; replies are structured; reports are made "
    "from all relationships of a community, not only the first of each entity; strengths are limited to 1 to 10; no "
    "claims are extracted."
)

METHODS = (
    Method(
        _LOCAL,
        "GraphRAG",
        "a knowledge graph made by the model; one call, with reports, entities, relationships and chunks",
        _make_local,
        prepare=_prepare_local,
        work=_WORK,
        settings=LocalSettings,
        language_model=True,
        missing=_missing,
        simplified=_SIMPLIFIED,
    ),
    Method(
        _GLOBAL,
        "GraphRAG (global)",
        "the same graph; a call for each batch of reports on its communities, and one that answers from what they say",
        _make_global,
        prepare=_prepare_global,
        work=_WORK,
        uses_vectors=False,
        settings=GraphRAGSettings,
        language_model=True,
        missing=_missing,
        simplified=_SIMPLIFIED,
    ),
)
