"""The base class of retrieval tools."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, Self

from langchain_core.callbacks import CallbackManagerForToolRun
from langchain_core.tools import BaseTool, ToolException
from langchain_core.tools.base import ArgsSchema
from langgraph.config import get_stream_writer
from langgraph.runtime import get_runtime
from pydantic import Field

from arag.errors import InputError
from arag.retrieval import DEFAULT_TOP_K
from arag.retrieval.index import Index
from arag.retrieval.presentation.retrieve import Retrieved, add_full_texts
from arag.retrieval.presentation.selection import SeenChunks
from arag.retrieval.scope import Scope, find_scope
from arag.retrieval.tools.arguments import RetrievalArguments, explain
from arag.retrieval.tools.documents import list_shown, retriever_run
from arag.retrieval.tools.seen import digest, digest_of, find_digests, find_seen_chunks
from arag.text.tokens import count_tokens

KEPT_SCOPES = 256  # whose limited indexes are kept: more takes memory, fewer makes a server read them again


class RetrievalTool(BaseTool):
    """A tool that shows chunks of an index.

    Each is a subclass with `name`, `description`, `args_schema` (a subclass of `RetrievalArguments`) and `retrieve`. An
    agent accepts such classes among its `tools`.

    Attributes:
        index: The index.
        top_k: How many chunks a search returns.
        full_texts: Whether searches show full chunks, for a model that has no tool to read them.
        has_grep: Whether the model also has the tool `grep`, which lists all matches.
        follows_context: Whether the scope in a run's context limits the tool. An agent of this package limits the index
            itself.
        remembers: Whether chunks that the conversation has seen are not shown again.
        limit: Limits the index to a scope.

    Example:
        >>> from arag import make_tools
        >>> class CorpusSize(RetrievalTool):
        ...     name: str = "corpus_size"
        ...     description: str = "Count the documents of the corpus."
        ...     def retrieve(self, seen: SeenChunks) -> Retrieved:
        ...         return Retrieved(f"{self.index.info().documents} documents")
        >>> make_tools(index, names=[CorpusSize])[0].invoke({})
        '25 documents'
    """

    index: Index
    top_k: int = DEFAULT_TOP_K
    full_texts: bool = False
    has_grep: bool = False
    follows_context: bool = True
    remembers: bool = True
    limit: Callable[[Index, Scope], Index] = Field(default=Index.limited_to, exclude=True, repr=False)
    args_schema: ArgsSchema | None = RetrievalArguments
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: bool | str | Callable[[ToolException], str] | None = True
    handle_validation_error: bool | str | Callable[[Any], str] | None = explain

    def retrieve(self, *args: Any, **arguments: Any) -> Retrieved:
        """Search, and return what the model is shown.

        Args:
            args: Always empty; it lets type checkers accept subclasses that name their arguments.
            arguments: The call's arguments, as `args_schema` has them, and `seen`, what the conversation has seen.

        Raises:
            InputError: An argument is wrong in a way that the model can correct.
        """
        raise NotImplementedError

    def show(self, retrieved: Retrieved, seen: SeenChunks) -> Retrieved:
        """Return what a search found, with full texts if the model has no tool to read them."""
        if not self.full_texts:
            return retrieved
        return add_full_texts(self.index, retrieved, seen)

    def stamp(self) -> str:
        """Return what the tool's results depend on, beside the call: the texts that it sees, and how it shows them."""
        return f"{self.index.stamp()}-{self.top_k}-{self.full_texts}"

    def _run(
        self,
        messages: Sequence[Any] = (),
        run_manager: CallbackManagerForToolRun | None = None,
        **arguments: Any,
    ) -> tuple[str, dict[str, Any]]:
        tool = self._limited_to_run()
        query = next(iter(arguments.values()), "")
        seen = find_seen_chunks(messages, tool.index, query)
        if not self.remembers:
            seen = SeenChunks(question=seen.question)
        stamp = tool.stamp()
        try:
            with retriever_run(run_manager, self.name, query) as documents:
                shown = tool.retrieve(seen=seen, **arguments)
                documents.extend(list_shown(tool.index, shown))
        except InputError as error:
            raise ToolException(str(error)) from error
        event = {
            "query": query,
            "chunk_ids": list(shown.chunk_ids),
            "new_chunks": [chunk.id for chunk in shown.new_chunks],
            "retrieved_tokens": count_tokens(shown.text),
            "evidence_tokens": sum(map(count_tokens, shown.evidence)),
        }
        with suppress(RuntimeError, KeyError):  # not in a graph
            get_stream_writer()({"tool": self.name} | event)
        digests = find_digests(tool.index, shown.chunk_ids)
        for chunk in shown.new_chunks:
            digests[chunk.id] = digest_of(chunk)
        artifact = event | {
            "stamp": stamp,
            "results": shown.results,
            "documents": [document.model_dump() for document in documents],
            "sentences": _sort_positions(shown.sentences),
            "repeated": list(shown.repeated),
            "has_more": shown.has_more,
            "cut": _sort_positions(shown.cut),
            "digests": digests,
            "digest": digest(shown.text),
        }
        return shown.text, artifact

    def _limited_to_run(self) -> Self:
        """Return this tool over the part of the index that the run may see.

        Raises:
            InputError: The scope in the run's context is not valid.
        """
        scope = find_scope_of_run() if self.follows_context else None
        if scope is None:
            return self
        return self.model_copy(update={"index": self.limit(self.index, scope)})


def find_scope_of_run() -> Scope | None:
    """Return the scope in the context of the run that calls this; None outside of graphs, and without one.

    Raises:
        InputError: The scope is not valid.
    """
    context = None
    with suppress(RuntimeError, KeyError):  # not in a graph
        context = getattr(get_runtime(), "context", None)
    return find_scope(context)


def _sort_positions(positions: Mapping[str, Collection[int]]) -> dict[str, list[int]]:
    return {chunk_id: sorted(each) for chunk_id, each in positions.items()}
