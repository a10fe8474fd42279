"""The retrieval functions as LangChain tools, for this project's agent or anyone else's."""

from arag.retrieval.presentation.retrieve import Retrieved as Retrieved
from arag.retrieval.presentation.selection import SeenChunks as SeenChunks
from arag.retrieval.tools.arguments import RetrievalArguments as RetrievalArguments
from arag.retrieval.tools.base import RetrievalTool as RetrievalTool
from arag.retrieval.tools.sets import TOOL_NAMES as TOOL_NAMES
from arag.retrieval.tools.sets import make_tools as make_tools
