"""The retrieval functions as LangChain tools."""

from arag.retrieval.presentation.choose import Held as Held
from arag.retrieval.presentation.functions import Retrieved as Retrieved
from arag.retrieval.tools.base import RetrievalArguments as RetrievalArguments
from arag.retrieval.tools.base import RetrievalTool as RetrievalTool
from arag.retrieval.tools.base import make_tools as make_tools
