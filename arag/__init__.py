"""A-RAG on LangGraph: an agent that searches a corpus by itself."""

from pkgutil import extend_path

# A Python started in the checkout finds this folder first; the other folders of the package are where it is installed.
__path__ = extend_path(__path__, __name__)
