"""An index as a LangChain retriever, for chains and for other people's agents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import run_in_executor
from pydantic import Field, ValidationError

from arag.errors import InputError
from arag.models.findings import list_words
from arag.retrieval.index import Index
from arag.retrieval.text import fold
from arag.retrieval.types import Chunk, Hit, Section

Search: TypeAlias = Literal["semantic", "keyword"]
Granularity: TypeAlias = Literal["chunk", "sentence"]

_QUOTED = re.compile(r"[\"“]([^\"“”]+)[\"”]")
_MAX_KEYWORDS = 50  # of one query: each is looked for in the whole corpus


class IndexRetriever(BaseRetriever):
    """Finds chunks or sentences of an index; `Index.as_retriever` makes it and explains the attributes.

    Attributes:
        index: The index.
        search: How to search.
        k: How many documents to return; `invoke(query, k=...)` changes it for one call.
        granularity: What a document is.

    Example:
        >>> retriever = index.as_retriever("keyword", k=1)
        >>> retriever.invoke("Grey Petrel")[0].metadata["title"]
        'Grey Petrel (packet schooner)'
    """

    index: Index
    search: Search = "semantic"
    k: int = Field(default=5, ge=1)
    granularity: Granularity = "chunk"

    @classmethod
    def make(cls, **settings: Any) -> IndexRetriever:
        """Make the retriever.

        Raises:
            InputError: A setting is not valid.
        """
        try:
            return cls(**settings)
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise InputError(f"the retriever cannot be made: {faults}") from error

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain passes it
        k: int | None = None,
    ) -> list[Document]:
        k = self.k if k is None else k
        keywords = _list_keywords(query) if self.search == "keyword" else []
        found = self._find(query, keywords, k)[:k]
        chunks = {chunk.id: chunk for chunk in self.index.read([hit.chunk_id for hit in found]).chunks}
        hits = [hit for hit in found if hit.chunk_id in chunks]  # a writer may have removed one meanwhile
        if self.granularity == "chunk":
            return [self._chunk_document(chunks[hit.chunk_id], hit.score) for hit in hits]
        scores = self._score_sentences(query, keywords, hits, chunks)
        best = sorted(scores, key=lambda found: -found[2])[:k]  # of equal ones, the better chunk's first
        return [self._sentence_document(chunks[chunk_id], position, score) for chunk_id, position, score in best]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        search = self._get_relevant_documents
        return await run_in_executor(None, search, query, run_manager=run_manager.get_sync(), k=k)

    def _find(self, query: str, keywords: list[str], k: int) -> tuple[Hit, ...]:
        if self.search == "semantic":
            return self.index.semantic_search(query, k).hits
        return self.index.keyword_search(keywords, k, by_coverage=True).hits

    def _score_sentences(
        self, query: str, keywords: list[str], hits: Iterable[Hit], chunks: dict[str, Chunk]
    ) -> Iterator[tuple[str, int, float]]:
        """Yield chunk id, position and score of the sentences that match."""
        if self.search == "semantic":
            rated = self.index.rate_sentences(query, list(chunks))
            for hit in hits:
                yield from ((hit.chunk_id, p, rated[hit.chunk_id][p]) for p in sorted(rated.get(hit.chunk_id, ())))
            return
        for hit in hits:
            chunk = chunks[hit.chunk_id]
            for position in range(len(chunk.sentences)):
                text = fold(chunk.sentence_text(position)).lower()
                if score := sum(text.count(fold(keyword).lower()) * len(keyword) for keyword in keywords):
                    yield chunk.id, position, score

    def _chunk_document(self, chunk: Chunk, score: float) -> Document:
        return Document(id=chunk.id, page_content=chunk.text, metadata=self._metadata(chunk, chunk.sections, score))

    def _sentence_document(self, chunk: Chunk, position: int, score: float) -> Document:
        section = chunk.section_at(chunk.sentences[position].start)
        metadata = self._metadata(chunk, (section,), score)
        return Document(id=f"{chunk.id}#{position}", page_content=chunk.sentence_text(position), metadata=metadata)

    def _metadata(self, chunk: Chunk, sections: tuple[Section, ...], score: float) -> dict[str, Any]:
        """Return what is known about a part of a chunk; fields of the document with a name of ours are renamed."""
        documents = [info for section in sections if (info := self.index.document(section.document_id))]
        found: dict[str, Any] = {
            "chunk_id": chunk.id,
            "document_ids": [section.document_id for section in sections],
            "title": "; ".join(dict.fromkeys(info.title for info in documents if info.title)),
            "source": "; ".join(dict.fromkeys(info.source for info in documents if info.source)),
            "score": float(score),
        }
        if chunk.pages is not None:
            found["pages"] = list(chunk.pages)
        if len(documents) == 1:  # of several documents, a field has no single value
            own = documents[0].metadata
            for name, value in own.items():
                free = name
                while free in found or (free != name and free in own):
                    free = f"document_{free}"
                found[free] = value
        return found


def _list_keywords(query: str) -> list[str]:
    """Return the keywords in a query: what is quoted, and the words except common English ones.

    A query without any is one keyword as a whole.
    """
    rest = _QUOTED.sub(" ", query)
    return [*_QUOTED.findall(query), *list_words(rest)][:_MAX_KEYWORDS] or [query]
