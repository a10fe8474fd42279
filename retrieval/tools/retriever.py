"""An index as a LangChain retriever, for chains and for other people's agents."""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables.config import run_in_executor
from pydantic import Field

from arag.retrieval.index import Index
from arag.retrieval.tools.documents import make_document
from arag.retrieval.types import Hit
from arag.text.normalise import without_division_signs
from arag.text.scripts import SPACED
from arag.text.words import list_terms

Search: TypeAlias = Literal["semantic", "keyword"]

_QUOTED = re.compile(r"[\"“]([^\"“”]+)[\"”]")
# Also a version or a time of the day. A space sets thousands apart where no other number begins so, as in 1 024.
_NUMBER = re.compile(r"(?<![\w.,:/-])(?:[1-9]\d{0,2} 0\d\d(?: \d{3})*(?:[.,]\d+)?|v?\d+(?:[.,:]\d+)+)(?![\w/-])")
_PART = f"[{SPACED}]+(?:['’-][{SPACED}]+)*"
_ABBREVIATION = r"[a-z]\.(?:[A-Za-z]\.)+"  # such as "e.g."
# A shortcut, a unit, an address...: `Ctrl+Z`, `Ctrl+-`, `C++11`, `AT&T`, `km/h`, `python3.1`.
_JOINED = re.compile(
    rf"(?<![{SPACED}_./:#+&@-])(?!{_ABBREVIATION}){_PART}(?:\++{_PART}|[&@/.:]{_PART}|\+[^\w\s,.;:?!)])+"
)
# Other words that a slash, a full stop or a colon joins are words of their own, such as `read/write`.
_IS_ONE_WORD = re.compile(rf"[+&@]|(?<![{SPACED}'’-])[{SPACED}](?![{SPACED}'’-])|(?<=[/.:])\d")
_MAX_KEYWORDS = 50  # of one query: each is looked for in the whole corpus


class IndexRetriever(BaseRetriever):
    """Finds chunks of an index; `Index.as_retriever` makes it.

    Example:
        >>> retriever = index.as_retriever("keyword", k=1)
        >>> retriever.invoke("Grey Petrel")[0].metadata["title"]
        'Grey Petrel (packet schooner)'
    """

    index: Index
    search: Search = "semantic"
    k: int = Field(default=5, ge=1)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain passes it
        k: int | None = None,
    ) -> list[Document]:
        return self._find(query, k)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain passes it
        k: int | None = None,
    ) -> list[Document]:
        return await run_in_executor(None, self._find, query, k)

    def _find(self, query: str, k: int | None) -> list[Document]:
        """Return the best documents: `k` of them if a call gave it, as LangChain's convention is."""
        wanted = self.k if k is None else k
        if self.search == "semantic":
            hits = self.index.semantic_search(query, wanted).hits
        else:
            hits = self.index.keyword_search(list_keywords(query), wanted, ranking="bm25").hits[:wanted]
        return [self._make_document(hit) for hit in hits]

    def _make_document(self, hit: Hit) -> Document:
        document = make_document(hit.chunk, hit.chunk.text)
        info = self.index.document(hit.chunk.document_id)
        own_fields = info.metadata if info else {}
        document.metadata = {
            **own_fields,
            **document.metadata,
            "source": info.source if info else "",
            "score": float(hit.score),
        }
        return document

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        params = super()._get_ls_params(**kwargs)
        if self.search == "semantic":
            params["ls_embedding_provider"] = self.index.embedder.name
        return params


def list_keywords(query: str) -> list[str]:
    """Return what is quoted in a query, numbers such as `8.50`, what signs join, and words; else all of it.

    Common English words are left out.
    """
    query = without_division_signs(query)
    quoted = list_quoted(query)
    rest = _QUOTED.sub(" ", query)
    numbers = _NUMBER.findall(rest)
    rest = _NUMBER.sub(" ", rest)
    joined = [term for term in _JOINED.findall(rest) if _IS_ONE_WORD.search(term)]
    terms = list_terms(_JOINED.sub(_without_joined, rest))
    return [*quoted, *numbers, *joined, *terms][:_MAX_KEYWORDS] or [query]


def _without_joined(term: re.Match[str]) -> str:
    return " " if _IS_ONE_WORD.search(term[0]) else term[0]


def list_quoted(query: str) -> list[str]:
    """Return what is in quotation marks in a query."""
    return _QUOTED.findall(query)


def is_quoted(query: str) -> bool:
    """Return whether all words of a query are in quotation marks."""
    return bool(_QUOTED.search(query)) and not _QUOTED.sub("", query).strip()
