"""The three retrieval functions as LangChain tools, for this project's agent or anyone else's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from langchain_core.tools import BaseTool

from arag.errors import InputError
from arag.retrieval import compact_tools, paper_tools
from arag.retrieval.index import Index
from arag.retrieval.tool_base import DEFAULT_TOP_K, MAX_RESULTS, RetrievalTool

ToolName: TypeAlias = Literal["keyword_search", "semantic_search", "chunk_read"]
TOOL_NAMES: tuple[ToolName, ...] = get_args(ToolName)
Presentation: TypeAlias = Literal["compact", "paper"]
PRESENTATIONS: tuple[Presentation, ...] = get_args(Presentation)

_TOOLS: dict[Presentation, dict[str, type[RetrievalTool]]] = {
    "compact": {
        "keyword_search": compact_tools.KeywordSearch,
        "semantic_search": compact_tools.SemanticSearch,
        "chunk_read": compact_tools.ChunkRead,
    },
    "paper": {
        "keyword_search": paper_tools.KeywordSearch,
        "semantic_search": paper_tools.SemanticSearch,
        "chunk_read": paper_tools.ChunkRead,
    },
}


def make_tools(
    index: Index,
    *,
    names: Sequence[str | type[RetrievalTool]] = TOOL_NAMES,
    top_k: int = DEFAULT_TOP_K,
    presentation: Presentation = "compact",
) -> list[BaseTool]:
    """Make the retrieval tools.

    Each returns a text for the model, and an artifact for programs: `results` (the typed results as plain values),
    `chunk_ids` (shown or read), `new_chunks` (read for the first time, or shown whole by a search), `digests` (of their
    texts, by id: a chunk that changes can be read again),
    `retrieved_tokens` (of retrieved text that enters the context), and `query`.

    They work in any agent. LangGraph's `ToolNode`, and with it LangChain's `create_agent`, fills in the argument
    `messages`, which the model does not see: the conversation says which chunks were read, and those are marked in
    search results and not returned again. A chunk whose text is no longer in the conversation can be read again; but
    middleware that shortens what the model is sent, and leaves the conversation as it is, goes unnoticed.

    Each call reports what it found: as a custom event named `retrieval` (`astream_events`, callbacks) and, in a graph,
    in the stream mode `custom`. Both give `tool` and the artifact without `results` and `digests`.

    Args:
        index: The index that the tools search.
        names: Names of the tools to make, or classes of your own. Without `chunk_read` both searches return full chunk
            texts (the paper's ablation, Table 2).
        top_k: How many chunks a search shows, 1 to 20; more if more keywords or queries are given.
        presentation: `compact`, or `paper` for the paper's plain lists of chunks and sentences.

    Returns:
        The tools, in the order of `names`. By hand, `tool.invoke({"query": "..."})` returns the text, and
        `tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": {...}})` a message with the artifact.

    Raises:
        InputError: A name is unknown or given twice, no name is given, `top_k` is out of bounds, or `presentation` is
            unknown.

    Example:
        >>> from arag import make_tools
        >>> keyword_search, semantic_search, chunk_read = make_tools(index)
        >>> print(keyword_search.invoke({"keywords": ["Oddvar"]}))
        Oddvar: none (closest: Odvár (2 chunks)).
        No chunk holds any of these keywords.
    """
    if presentation not in PRESENTATIONS:
        raise InputError(f"presentation is {presentation!r}: valid are {', '.join(PRESENTATIONS)}")
    known = _TOOLS[presentation]
    kinds = [kind for name in names if (kind := known.get(name) if isinstance(name, str) else _check_class(name))]
    if len(kinds) != len(names) or not kinds or len(set(kinds)) != len(kinds):
        raise InputError(f"tools {list(names)!r} are not valid: give one or more of {', '.join(TOOL_NAMES)}, each once")
    if not 1 <= top_k <= MAX_RESULTS:
        raise InputError(f"top_k is {top_k}: valid are 1 to {MAX_RESULTS}")
    can_read = any(issubclass(kind, compact_tools.ChunkRead | paper_tools.ChunkRead) for kind in kinds)
    return [kind.make(index, top_k=top_k, full_texts=not can_read) for kind in kinds]


def _check_class(name: object) -> type[RetrievalTool] | None:
    return name if isinstance(name, type) and issubclass(name, RetrievalTool) else None
