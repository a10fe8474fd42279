"""The interface of methods: a graph over an index, built by one function.

A method's graph takes `messages` and ends with the keys of `arag.graph.state.OutputState`: `answer`, `stop_reason`,
`steps`, `trace` (each retrieval), `model_calls` and `usage`. So runs, scores and reports work with any method.

Runs give the graph a checkpointer: a question that a rate limit stops continues at the node that was stopped. State is
saved when a node ends, so a node should make one or a few model calls, and return values that LangGraph can
serialise.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from langchain_core.language_models import BaseChatModel
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, ConfigDict, ValidationError
from typing_extensions import TypedDict

from arag.errors import InputError
from arag.graph.settings import DEFAULT_MAX_CONTEXT_TOKENS, DEFAULT_MAX_STEPS
from arag.retrieval.index import Index
from arag.retrieval.tools import Presentation

if TYPE_CHECKING:
    from arag.evaluation.workplace import Workplace

MethodGraph: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]


class Settings(BaseModel):
    """A method's own settings; methods that have some extend it, with a description of each."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Own = TypeVar("Own", bound=Settings)


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of an experiment that methods share; a method ignores those that it does not use.

    Attributes:
        top_k: Chunks per search (the paper's k).
        presentation: What A-RAG's tools show: `compact`, or the `paper`'s plain lists.
        max_steps: Maximum model calls before an answer is forced.
        max_context_tokens: Maximum tokens of the context.
        settings: Methods' own settings, by the method's name and the setting's.

    Raises:
        InputError: `top_k` is below 1.
    """

    top_k: int = 5
    presentation: Presentation = "compact"
    max_steps: int = DEFAULT_MAX_STEPS
    max_context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check what all methods need."""
        if self.top_k < 1:
            raise InputError(f"top_k is {self.top_k}: it must be at least 1")

    def of(self, method: str, kind: type[Own]) -> Own:
        """Return a method's own settings.

        Args:
            method: The method's name.
            kind: The class of its settings.

        Raises:
            InputError: One does not exist, or has a value that is not valid.
        """
        try:
            return kind.model_validate(self.settings.get(method, {}))
        except ValidationError as error:
            fault = error.errors()[0]
            name = ".".join(map(str, fault["loc"]))
            if fault["type"] == "extra_forbidden":
                valid = ", ".join(kind.model_fields) or "it has none"
                raise InputError(f"{method} has no setting {name!r}; valid settings: {valid}") from None
            raise InputError(f"{method}.{name} is {fault['input']!r}: {fault['msg']}") from None


class MethodFacts(TypedDict):
    """What a run keeps of a method for its reports: by then the method may have changed, or its module be gone."""

    title: str
    description: str
    simplified: str
    settings: dict[str, Any]
    """All of its own settings, also those that were left at their defaults."""
    autonomous: bool | None
    iterative: bool | None
    interleaved: bool | None


@dataclass(frozen=True, slots=True)
class Method:
    """A method.

    Attributes:
        name: Its name on the command line.
        title: Its name in reports, as in the paper.
        description: What it does, in one line.
        make: Builds its graph.
        prepare: Does its index-time work, if it has any, before the first question. It keeps its results in the
            workplace's store, where `make` finds them.
        work: Names its index-time work, if other methods do the same: one process does it at a time. Default: the
            method's name.
        settings: The class of its own settings, which `options.of(name, settings)` returns.
        language_model: Whether it needs a language model; the built-in extractive model is refused.
        missing: Returns what must be installed before it can run, as a sentence, or None.
        simplified: What differs from the published method, in sentences, for reports.
        uses_vectors: Whether it searches by sentence vectors: then the embedder is loaded before the first question.
        autonomous: Whether the model decides what comes next (paper, Table 4); None for "in part".
        iterative: Whether there may be several rounds (Table 4).
        interleaved: Whether tools and reasoning take turns (Table 4).
    """

    name: str
    title: str
    description: str
    make: Callable[[Index, BaseChatModel, Options], MethodGraph]
    prepare: Callable[[Workplace], Coroutine[Any, Any, None]] | None = None
    work: str | None = None
    settings: type[Settings] = Settings
    language_model: bool = False
    missing: Callable[[], str | None] = lambda: None
    simplified: str = ""
    uses_vectors: bool = True
    autonomous: bool | None = False
    iterative: bool | None = False
    interleaved: bool | None = False

    def facts(self, options: Options) -> MethodFacts:
        """Return what a run keeps of it.

        Args:
            options: The settings of the run.

        Raises:
            InputError: One of its settings does not exist, or has a value that is not valid.
        """
        return MethodFacts(
            title=self.title,
            description=self.description,
            simplified=self.simplified,
            settings=options.of(self.name, self.settings).model_dump(mode="json"),
            autonomous=self.autonomous,
            iterative=self.iterative,
            interleaved=self.interleaved,
        )
