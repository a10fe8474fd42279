"""The base class of retrieval tools."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from langchain_core.tools import BaseTool, ToolException
from langchain_core.tools.base import ArgsSchema
from langgraph.config import get_stream_writer

from arag.errors import InputError
from arag.retrieval import DEFAULT_TOP_K
from arag.retrieval.index import Index
from arag.retrieval.presentation.retrieve import Retrieved, add_full_texts
from arag.retrieval.presentation.selection import SeenChunks
from arag.retrieval.tools.arguments import RetrievalArguments, explain
from arag.retrieval.tools.seen import digest_of, find_digests, find_seen_chunks
from arag.text.tokens import count_tokens


class RetrievalTool(BaseTool):
    """A tool that shows chunks of an index.

    Each is a subclass with `name`, `description`, `args_schema` (a subclass of `RetrievalArguments`) and `retrieve`. An
    agent accepts such classes among its `tools`.

    Attributes:
        index: The index.
        top_k: How many chunks a search returns.
        full_texts: Whether searches show full chunks, for a model that has no tool to read them.
        has_grep: Whether the model also has the tool `grep`, which lists all matches.

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

    def _run(self, messages: Sequence[Any] = (), **arguments: Any) -> tuple[str, dict[str, Any]]:
        query = next(iter(arguments.values()), "")
        try:
            shown = self.retrieve(seen=find_seen_chunks(messages, self.index, query), **arguments)
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
        digests = find_digests(self.index, shown.chunk_ids)
        for chunk in shown.new_chunks:
            digests[chunk.id] = digest_of(chunk)
        artifact = event | {
            "results": shown.results,
            "sentences": _sort_positions(shown.sentences),
            "cut": _sort_positions(shown.cut),
            "digests": digests,
        }
        return shown.text, artifact


def _sort_positions(positions: Mapping[str, Collection[int]]) -> dict[str, list[int]]:
    return {chunk_id: sorted(each) for chunk_id, each in positions.items()}
