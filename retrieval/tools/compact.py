"""The three retrieval tools: they show little, and what they show saves the next call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

from langchain_core.tools import BaseTool
from langchain_core.tools.base import ArgsSchema
from pydantic import Field

from arag.errors import InputError
from arag.retrieval import DEFAULT_TOP_K, MAX_RESULTS
from arag.retrieval.index import Index
from arag.retrieval.presentation.retrieve import Retrieved, read_chunks, search_keywords, search_meaning
from arag.retrieval.presentation.selection import SeenChunks
from arag.retrieval.tools.arguments import ChunkIds, Keywords, OneText, Queries, RetrievalArguments, Within
from arag.retrieval.tools.base import RetrievalTool

ToolName: TypeAlias = Literal["keyword_search", "semantic_search", "chunk_read"]
TOOL_NAMES: tuple[ToolName, ...] = get_args(ToolName)


class _KeywordArguments(RetrievalArguments):
    keywords: Keywords = Field(description="1 to 3 words each.")
    within: Within = Field(default_factory=str)


class _SemanticArguments(RetrievalArguments):
    queries: Queries = Field(description="One short question or statement for each fact.")
    within: Within = Field(default_factory=str)


class _ReadArguments(RetrievalArguments):
    chunk_ids: ChunkIds = Field(description="Chunk ids.")
    about: OneText = Field(default_factory=str, description="What to look for; without it, one chunk in full.")


class KeywordSearch(RetrievalTool):
    """keyword_search (paper, section 3.2)."""

    name: str = "keyword_search"
    description: str = "Find chunks by exact terms: names, titles, numbers, labels of table rows, rare words."
    args_schema: ArgsSchema | None = _KeywordArguments

    def retrieve(self, keywords: list[str], within: str, seen: SeenChunks) -> Retrieved:
        """Search."""
        found = search_keywords(self.index, keywords, seen, top_k=self.top_k, within=within)
        return self.show(found, seen)


class SemanticSearch(RetrievalTool):
    """semantic_search (paper, section 3.2)."""

    name: str = "semantic_search"
    description: str = "Find sentences by meaning, for facts whose wording you do not know."
    args_schema: ArgsSchema | None = _SemanticArguments

    def retrieve(self, queries: list[str], within: str, seen: SeenChunks) -> Retrieved:
        """Search for each query."""
        found = search_meaning(self.index, queries, seen, top_k=self.top_k, within=within)
        return self.show(found, seen)


class ChunkRead(RetrievalTool):
    """chunk_read (paper, section 3.2)."""

    name: str = "chunk_read"
    description: str = "Read chunks when what a search shows is not enough."
    args_schema: ArgsSchema | None = _ReadArguments

    def retrieve(self, chunk_ids: list[str], about: str, seen: SeenChunks) -> Retrieved:
        """Read one chunk in full; of several, or for something, the passages that are about it."""
        return read_chunks(self.index, chunk_ids, seen, about=about)


def make_tools(
    index: Index,
    *,
    names: Sequence[str | type[RetrievalTool]] = TOOL_NAMES,
    top_k: int = DEFAULT_TOP_K,
) -> list[BaseTool]:
    """Make the retrieval tools.

    Each returns a text for the model, and an artifact for programs: `results` (the typed results as plain values),
    `chunk_ids` (shown or read), `new_chunks` (read for the first time, or shown whole by a search), `digests` (of their
    texts, by id: a chunk that changes can be read again), `retrieved_tokens` (of the whole text), `evidence_tokens` (of
    the documents' sentences in it), and `query`. In a graph, each call also reports this, without results and digests,
    in the stream mode `custom`.

    They work in any agent. LangGraph's `ToolNode`, and with it LangChain's `create_agent`, fills in the argument
    `messages`, which the model does not see: the conversation says which chunks were read, and those are not returned
    again. Middleware that shortens what the model is sent, and leaves the conversation as it is, goes unnoticed.

    Args:
        index: The index that the tools search.
        names: Names of the tools to make, or classes of your own. Without `chunk_read` both searches return full chunk
            texts (the paper's ablation, Table 2).
        top_k: How many chunks a search shows, 1 to 20; more if more keywords or queries are given.

    Returns:
        The tools, in the order of `names`. By hand, `tool.invoke({"query": "..."})` returns the text, and
        `tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": {...}})` a message with the artifact.

    Raises:
        InputError: An argument is not valid.

    Example:
        >>> from arag import make_tools
        >>> keyword_search, semantic_search, chunk_read = make_tools(index)
        >>> print(keyword_search.invoke({"keywords": ["Oddvar"]}))
        Oddvar: none (closest: Odvár (2 chunks)).
        No chunk holds any of these keywords.
    """
    if not 1 <= top_k <= MAX_RESULTS:
        raise InputError(f"top_k is {top_k}: valid are 1 to {MAX_RESULTS}")
    classes: list[type[RetrievalTool]] = []
    for name in names:
        kind: Any = _TOOLS.get(name, name) if isinstance(name, str) else name
        if isinstance(kind, type) and issubclass(kind, RetrievalTool) and kind not in classes:
            classes.append(kind)
    if not classes or len(classes) != len(names):
        raise InputError(f"tools {list(names)!r} are not valid: give one or more of {', '.join(TOOL_NAMES)}, each once")
    can_read = any(issubclass(kind, ChunkRead) or kind.model_fields["name"].default == "chunk_read" for kind in classes)
    settings = {"index": index, "top_k": top_k, "full_texts": not can_read}
    return [kind.model_validate(settings) for kind in classes]


_TOOLS: dict[str, type[RetrievalTool]] = {
    "keyword_search": KeywordSearch,
    "semantic_search": SemanticSearch,
    "chunk_read": ChunkRead,
}
