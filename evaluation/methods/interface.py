"""The interface of methods: a graph over an index, built by one function.

A method's graph takes `messages` and ends with the keys of `arag.graph.state.OutputState`: `answer`, `stop_reason`,
`steps`, `trace` (each retrieval), `model_calls` and `usage`. So runs, scores and reports work with any method.

Runs give the graph a checkpointer: a question that a rate limit stops continues at the node that was stopped. State is
saved when a node ends, so a node should make one or a few model calls, and return values that LangGraph can
serialise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langgraph.graph.state import CompiledStateGraph

from arag.graph.settings import DEFAULT_MAX_CONTEXT_TOKENS, DEFAULT_MAX_STEPS
from arag.models.usage import ModelCall
from arag.retrieval.index import Index
from arag.retrieval.tools import Presentation

MethodGraph: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of an experiment that methods share; a method ignores those that it does not use.

    Attributes:
        top_k: Chunks per search (the paper's k).
        presentation: What A-RAG's tools show: `compact`, or the `paper`'s plain lists.
        max_steps: Maximum model calls before an answer is forced.
        max_context_tokens: Maximum tokens of the context.
    """

    top_k: int = 5
    presentation: Presentation = "compact"
    max_steps: int = DEFAULT_MAX_STEPS
    max_context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS


@dataclass(frozen=True, slots=True)
class Method:
    """A method.

    Attributes:
        name: Its name on the command line.
        title: Its name in reports, as in the paper.
        description: What it does, in one line.
        make: Builds its graph.
        prepare: Does its index-time work, if it has any, before the first question, and returns its model calls.
            Work that was done before is not repeated.
        uses_vectors: Whether it searches by sentence vectors: then the embedder is loaded before the first question.
        autonomous: Whether the model decides what comes next (paper, Table 4).
        iterative: Whether there may be several rounds (Table 4).
        interleaved: Whether tools and reasoning take turns (Table 4).
    """

    name: str
    title: str
    description: str
    make: Callable[[Index, BaseChatModel, Options], MethodGraph]
    prepare: Callable[[Index, BaseChatModel, Options], Sequence[ModelCall]] | None = None
    uses_vectors: bool = True
    autonomous: bool = False
    iterative: bool = False
    interleaved: bool = False
