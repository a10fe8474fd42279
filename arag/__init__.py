"""A-RAG on LangGraph: an agent that searches a corpus by itself.

Example:
    from arag import create_arag_agent, ingest

    index = ingest(["docs/"], "my-index")
    agent = create_arag_agent("openai:gpt-5-mini", index)
    state = agent.invoke({"messages": [("user", "Who ...?")]})
    print(state["answer"], state["citations"])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arag.errors import ARAGError as ARAGError
    from arag.graph.agent_tool import make_agent_tool as make_agent_tool
    from arag.graph.context import Context as Context
    from arag.graph.graph import ARAGAgent as ARAGAgent
    from arag.graph.graph import create_arag_agent as create_arag_agent
    from arag.graph.middleware import ARAGMiddleware as ARAGMiddleware
    from arag.graph.sources import SourcesMiddleware as SourcesMiddleware
    from arag.ingest.copying import copy_index as copy_index
    from arag.ingest.pipeline import IngestOptions as IngestOptions
    from arag.ingest.pipeline import ingest as ingest
    from arag.ingest.pipeline import run_ingest as run_ingest
    from arag.mcp import make_mcp_server as make_mcp_server
    from arag.mcp import serve_mcp as serve_mcp
    from arag.models.chat import load_model as load_model
    from arag.models.embedders import load_embedder as load_embedder
    from arag.page import trace_page as trace_page
    from arag.retrieval.index import Index as Index
    from arag.retrieval.index import open_index as open_index
    from arag.retrieval.scope import Scope as Scope
    from arag.retrieval.tools.sets import make_tools as make_tools
    from arag.web.server import serve_web as serve_web

# The module of each public name. It is imported when the name is first used, so that `import arag` stays fast.
_MODULES = {
    "ARAGError": "arag.errors",
    "make_agent_tool": "arag.graph.agent_tool",
    "Context": "arag.graph.context",
    "ARAGAgent": "arag.graph.graph",
    "create_arag_agent": "arag.graph.graph",
    "ARAGMiddleware": "arag.graph.middleware",
    "SourcesMiddleware": "arag.graph.sources",
    "copy_index": "arag.ingest.copying",
    "IngestOptions": "arag.ingest.pipeline",
    "ingest": "arag.ingest.pipeline",
    "run_ingest": "arag.ingest.pipeline",
    "make_mcp_server": "arag.mcp",
    "serve_mcp": "arag.mcp",
    "load_model": "arag.models.chat",
    "load_embedder": "arag.models.embedders",
    "trace_page": "arag.page",
    "Index": "arag.retrieval.index",
    "open_index": "arag.retrieval.index",
    "Scope": "arag.retrieval.scope",
    "make_tools": "arag.retrieval.tools.sets",
    "serve_web": "arag.web.server",
}
__all__ = list(_MODULES)


def __dir__() -> list[str]:
    return sorted(_MODULES)


if not TYPE_CHECKING:  # with `__getattr__`, a type checker would accept any name
    # `arag.ingest` is a package and a function. The first import of the package sets the attribute to the package.
    # Later imports do not set it again: once it is deleted, `__getattr__` answers with the function.
    import arag.ingest

    del arag, ingest

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'arag' has no attribute {name!r}")
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value
