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
    from arag.graph.context import Context as Context
    from arag.graph.graph import ARAGAgent as ARAGAgent
    from arag.graph.graph import create_arag_agent as create_arag_agent
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
    from arag.retrieval.tools.compact import make_tools as make_tools

# Names are imported on first use, which keeps `import arag` fast.
_NAMES = {
    "arag.errors": ["ARAGError"],
    "arag.graph.context": ["Context"],
    "arag.graph.graph": ["ARAGAgent", "create_arag_agent"],
    "arag.ingest.copying": ["copy_index"],
    "arag.ingest.pipeline": ["IngestOptions", "ingest", "run_ingest"],
    "arag.mcp": ["make_mcp_server", "serve_mcp"],
    "arag.models.chat": ["load_model"],
    "arag.models.embedders": ["load_embedder"],
    "arag.page": ["trace_page"],
    "arag.retrieval.index": ["Index", "open_index"],
    "arag.retrieval.scope": ["Scope"],
    "arag.retrieval.tools.compact": ["make_tools"],
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = list(_HOMES)

# The first import of a package binds its name here, later ones do not: `arag.ingest` then is the function.
import_module("arag.ingest")
del globals()["ingest"]


def __dir__() -> list[str]:
    return sorted(_HOMES)


if not TYPE_CHECKING:  # with this function, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'arag' has no attribute {name!r}")
        return globals().setdefault(name, getattr(import_module(_HOMES[name]), name))
