"""A-RAG, with all tools and with fewer (paper, sections 3 and 4.3)."""

from __future__ import annotations

from functools import partial

from langchain_core.language_models import BaseChatModel

from arag.evaluation.methods.interface import Method, MethodGraph, Options
from arag.graph.graph import create_arag_agent
from arag.retrieval.index import Index
from arag.retrieval.tools import ToolName


def _make(tools: tuple[ToolName, ...], index: Index, model: BaseChatModel, options: Options) -> MethodGraph:
    return create_arag_agent(
        model,
        index,
        tools=tools,
        top_k=options.top_k,
        presentation=options.presentation,
        max_steps=options.max_steps,
        max_context_tokens=options.max_context_tokens,
    )


def _method(name: str, title: str, description: str, *tools: ToolName) -> Method:
    return Method(
        name,
        title,
        description,
        partial(_make, tools),
        uses_vectors="semantic_search" in tools,
        autonomous=True,
        iterative=True,
        interleaved=True,
    )


METHODS = (
    _method(
        "arag",
        "A-RAG (Full)",
        "keyword_search, semantic_search and chunk_read",
        "keyword_search",
        "semantic_search",
        "chunk_read",
    ),
    _method("arag-naive", "A-RAG (Naive)", "one tool: a semantic search that returns whole chunks", "semantic_search"),
    _method(
        "arag-without-keyword", "w/o Keyword Search", "semantic_search and chunk_read", "semantic_search", "chunk_read"
    ),
    _method(
        "arag-without-semantic", "w/o Semantic Search", "keyword_search and chunk_read", "keyword_search", "chunk_read"
    ),
    _method(
        "arag-without-read",
        "w/o Chunk Read",
        "both searches, which return whole chunks",
        "keyword_search",
        "semantic_search",
    ),
)
