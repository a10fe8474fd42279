"""A-RAG on LangGraph: an agent that searches a corpus by itself.

from arag import create_arag_agent, ingest

index = ingest(["docs/"], "my-index")
agent = create_arag_agent("openai:gpt-5-mini", index)
state = agent.invoke({"messages": [("user", "Who ...?")]})
print(state["answer"], state["citations"])
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arag.errors import ARAGError
    from arag.graph.context import Context
    from arag.graph.graph import ARAGAgent, create_arag_agent
    from arag.ingest.copying import copy_index
    from arag.ingest.pipeline import aingest, ingest, run_ingest
    from arag.models.chat import load_model
    from arag.models.embedders import load_embedder
    from arag.page import trace_page
    from arag.retrieval.index import Index, open_index
    from arag.retrieval.scope import Scope
    from arag.retrieval.tools import make_tools
    from arag.serving.mcp import make_mcp_server, serve_mcp

__all__ = [
    "ARAGAgent",
    "ARAGError",
    "Context",
    "Index",
    "Scope",
    "aingest",
    "copy_index",
    "create_arag_agent",
    "ingest",
    "load_embedder",
    "load_model",
    "make_mcp_server",
    "make_tools",
    "open_index",
    "run_ingest",
    "serve_mcp",
    "trace_page",
]

# Names are imported on first use, which keeps `import arag` fast.
_HOMES = {
    "ARAGAgent": "arag.graph.graph",
    "ARAGError": "arag.errors",
    "Context": "arag.graph.context",
    "Index": "arag.retrieval.index",
    "Scope": "arag.retrieval.scope",
    "aingest": "arag.ingest.pipeline",
    "copy_index": "arag.ingest.copying",
    "create_arag_agent": "arag.graph.graph",
    "ingest": "arag.ingest.pipeline",  # see _Package
    "load_embedder": "arag.models.embedders",
    "load_model": "arag.models.chat",
    "make_mcp_server": "arag.serving.mcp",
    "make_tools": "arag.retrieval.tools",
    "open_index": "arag.retrieval.index",
    "run_ingest": "arag.ingest.pipeline",
    "serve_mcp": "arag.serving.mcp",
    "trace_page": "arag.page",
}


if not TYPE_CHECKING:  # with this function, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'arag' has no attribute {name!r}")
        module = import_module(_HOMES[name])
        return globals().setdefault(name, getattr(module, name))

    class _Package(ModuleType):
        """The package `arag`, whose `ingest` is the function, also after an import of the package `arag.ingest`."""

        @property
        def ingest(self) -> Any:
            from arag.ingest.pipeline import ingest

            # The package's modules are found through the function: `import arag.ingest.sources` binds only `arag`.
            package = vars(sys.modules["arag.ingest"])
            vars(ingest).update({name: value for name, value in package.items() if isinstance(value, ModuleType)})
            return ingest

        @ingest.setter
        def ingest(self, package: ModuleType) -> None:
            """Ignore the package, which every import of one of its modules binds here."""

    sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted(__all__)
