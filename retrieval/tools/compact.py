"""The three retrieval tools: they show little, and what they show saves the next call."""

from __future__ import annotations

from langchain_core.tools.base import ArgsSchema
from pydantic import Field

from arag.retrieval.presentation.retrieve import Retrieved, read_chunks, search_keywords, search_meaning
from arag.retrieval.presentation.selection import SeenChunks
from arag.retrieval.tools.arguments import ChunkIds, Keywords, OneText, Queries, RetrievalArguments, Within
from arag.retrieval.tools.base import RetrievalTool


class _KeywordArguments(RetrievalArguments):
    keywords: Keywords = Field(description="1 to 3 words each.")
    within: Within = Field(default_factory=str)


class _SemanticArguments(RetrievalArguments):
    queries: Queries = Field(description="One short question or statement for each fact.")
    within: Within = Field(default_factory=str)


class _ReadArguments(RetrievalArguments):
    chunk_ids: ChunkIds = Field(description="Chunk ids.")
    about: OneText = Field(default_factory=str, description="What to look for; without it, one chunk in full.")


class KeywordSearch(RetrievalTool):
    """keyword_search (paper, section 3.2)."""

    name: str = "keyword_search"
    description: str = "Find chunks by exact terms: names, titles, numbers, labels of table rows, rare words."
    args_schema: ArgsSchema | None = _KeywordArguments

    def retrieve(self, keywords: list[str], within: str, seen: SeenChunks) -> Retrieved:
        """Search."""
        found = search_keywords(
            self.index,
            keywords,
            seen,
            top_k=self.top_k,
            within=within,
            has_grep=self.has_grep,
        )
        return self.show(found, seen)


class SemanticSearch(RetrievalTool):
    """semantic_search (paper, section 3.2)."""

    name: str = "semantic_search"
    description: str = "Find sentences by meaning, for facts whose wording you do not know."
    args_schema: ArgsSchema | None = _SemanticArguments

    def retrieve(self, queries: list[str], within: str, seen: SeenChunks) -> Retrieved:
        """Search for each query."""
        found = search_meaning(self.index, queries, seen, top_k=self.top_k, within=within)
        return self.show(found, seen)


class ChunkRead(RetrievalTool):
    """chunk_read (paper, section 3.2)."""

    name: str = "chunk_read"
    description: str = "Read chunks when what a search shows is not enough."
    args_schema: ArgsSchema | None = _ReadArguments

    def retrieve(self, chunk_ids: list[str], about: str, seen: SeenChunks) -> Retrieved:
        """Read one chunk in full; of several, or for something, the passages that are about it."""
        return read_chunks(self.index, chunk_ids, seen, about=about)
