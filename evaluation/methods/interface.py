"""What every method is: a graph over an index, made by one function.

A method's graph takes `messages` and ends with the keys of `arag.graph.state.OutputState`: `answer`, `stop_reason`,
`steps`, `trace` (each retrieval), `model_calls` and `usage`, so that runs, scores and reports need to know no method.

Runs give the graph a checkpointer: a question that a rate limit stops goes on at the node that it stopped. What a node
has paid for is kept when it ends, so a node makes one model call, or few; what it keeps are values that LangGraph can
write down.
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

MethodGraph: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of an experiment that methods share; one that has no use for a setting ignores it.

    Attributes:
        top_k: Chunks of a search (the paper's k).
        max_steps: Most model calls before an answer is forced.
        max_context_tokens: Most tokens of the context.
    """

    top_k: int = 5
    max_steps: int = DEFAULT_MAX_STEPS
    max_context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS


@dataclass(frozen=True, slots=True)
class Method:
    """A method.

    Attributes:
        name: Its name on the command line.
        title: Its name in reports, as the paper has it.
        description: What it does, in a line.
        make: Makes its graph.
        prepare: Its work at index time, before the first question, where it has any; what is found again the next
            time costs nothing. Returns its model calls.
        uses_vectors: Whether it searches by sentence vectors: their embedder is loaded before the first question.
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
