"""The retrieval tools by name, and the sets of them that an agent may get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from langchain_core.tools import BaseTool

from arag.errors import InputError
from arag.retrieval import DEFAULT_TOP_K, MAX_RESULTS
from arag.retrieval.index import Index, ensure_open
from arag.retrieval.tools.base import KEPT_SCOPES, RetrievalTool
from arag.retrieval.tools.compact import ChunkRead, KeywordSearch, SemanticSearch
from arag.retrieval.tools.corpus import Grep, ListDocuments
from arag.retrieval.tools.shell import Shell
from arag.retrieval.tools.tables import QueryTables

ToolName: TypeAlias = Literal[
    "keyword_search",
    "semantic_search",
    "chunk_read",
    "grep",
    "list_documents",
    "query_tables",
    "shell",
]
TOOL_NAMES: tuple[ToolName, ...] = get_args(ToolName)

ToolSet: TypeAlias = Literal["paper", "all", "shell"]
ToolChoice: TypeAlias = Literal[ToolSet, ToolName]  # what a list of tools may name
PAPER: tuple[ToolName, ...] = ("keyword_search", "semantic_search", "chunk_read")
TOOL_SETS: Mapping[str, tuple[ToolName, ...]] = {
    "paper": PAPER,  # section 3.2
    "all": (*PAPER, "grep", "list_documents", "query_tables"),
    "shell": ("shell",),
}
DEFAULT_TOOLS: ToolSet = "shell"
READERS = frozenset({"chunk_read", "shell"})  # with these, a model can read a chunk that a search shows in part


def expand_sets(tools: ToolSet | Sequence[Any]) -> list[Any]:
    """Return a list of tools with the names of a set's tools in place of the set's name.

    Raises:
        InputError: It is a text that is not the name of a set, or no list.
    """
    if isinstance(tools, str):
        if tools not in TOOL_SETS:
            raise InputError(f"tools is the string {tools!r}: give {', '.join(TOOL_SETS)}, or a list")
        tools = [tools]
    if not isinstance(tools, Iterable):
        raise InputError(f"tools is {tools!r}: give {', '.join(TOOL_SETS)}, or a list")
    expanded: list[Any] = []
    for tool in tools:
        if isinstance(tool, str) and tool in TOOL_SETS:
            expanded += TOOL_SETS[tool]
        else:
            expanded.append(tool)
    return expanded


def make_tools(
    index: Index | str | Path,
    *,
    names: ToolSet | Sequence[str | type[RetrievalTool]] = DEFAULT_TOOLS,
    top_k: int = DEFAULT_TOP_K,
    remember: bool = True,
) -> list[BaseTool]:
    """Make the retrieval tools.

    Each returns a text for the model, and an artifact for programs. It has `results` (the typed results as plain
    values), and `documents` (the sentences shown of each chunk, as the fields of LangChain's `Document`). `chunk_ids`
    were shown or read, `new_chunks` read for the first time, or shown whole by a search. `digests` are those of their
    texts, by id: a chunk that changes can be read again. There are also `query`, `retrieved_tokens` of the whole text,
    and `evidence_tokens` of the documents' sentences in it. In a graph, the stream mode `custom` reports each call,
    with all but results, documents and digests.

    They work in any agent. LangGraph's `ToolNode`, and with it LangChain's `create_agent`, fills in the argument
    `messages`, which the model does not see: the conversation says which chunks were read, and those are not returned
    again. With middleware that shortens what the model is sent, such as `ContextEditingMiddleware`, give
    `remember=False`.

    If a run's context has a scope (an attribute or a key `scope`, as `Context` has it), the tools see only its
    documents.

    Args:
        index: The index that the tools search, or where it is: then it stays open as long as the tools are used.
        names: A set of tools (`paper`, `all` or `shell`), or a list of names, sets and classes of your own. Without
            `chunk_read` and `shell` both searches return full chunk texts (the paper's ablation, Table 2).
        top_k: How many chunks a search shows, 1 to 20; more if more keywords or queries are given.
        remember: Whether chunks that the conversation has seen are not shown again. Without it, a chunk that is read
            twice costs its tokens twice.

    Returns:
        The tools, in the order of `names`. By hand, `tool.invoke({"query": "..."})` returns the text, and
        `tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": {...}})` a message with the artifact.

    Raises:
        InputError: An argument is not valid.
        IndexNotFoundError: There is no index there.

    Example:
        >>> from arag import make_tools
        >>> keyword_search, semantic_search, chunk_read = make_tools(index, names="paper")
        >>> print(keyword_search.invoke({"keywords": ["Oddvar"]}))
        Oddvar: none (closest: Odvár (2 chunks)).
        No chunk holds any of these keywords.
    """
    if not 1 <= top_k <= MAX_RESULTS:
        raise InputError(f"top_k is {top_k}: valid are 1 to {MAX_RESULTS}")
    wanted = expand_sets(names)
    classes: list[type[RetrievalTool]] = []
    for name in wanted:
        kind: Any = _TOOLS.get(name, name) if isinstance(name, str) else name
        if isinstance(kind, type) and issubclass(kind, RetrievalTool) and kind not in classes:
            classes.append(kind)
    if not classes or len(classes) != len(wanted):
        raise InputError(f"tools {wanted!r} are not valid: give one or more of {', '.join(TOOL_NAMES)}, each once")
    opened = ensure_open(index)
    tool_names = {kind.model_fields["name"].default for kind in classes}
    settings = {
        "index": opened,
        "top_k": top_k,
        "full_texts": tool_names.isdisjoint(READERS),
        "has_grep": "grep" in tool_names,
        "remembers": remember,
        "limit": lru_cache(KEPT_SCOPES)(Index.limited_to),  # one for all: they share what a scope has open
    }
    return [kind.model_validate(settings) for kind in classes]


_TOOLS: dict[str, type[RetrievalTool]] = {
    "keyword_search": KeywordSearch,
    "semantic_search": SemanticSearch,
    "chunk_read": ChunkRead,
    "grep": Grep,
    "list_documents": ListDocuments,
    "query_tables": QueryTables,
    "shell": Shell,
}
