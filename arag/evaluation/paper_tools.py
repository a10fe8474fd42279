"""The three retrieval tools as plain as in the paper (section 3.2), for experiments.

A search lists the chunks by the paper's scores, each with the sentences that matched (Equations 2 and 3), whatever the
conversation holds. There are no suggestions, no context, and no selection.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from langchain_core.tools.base import ArgsSchema
from pydantic import Field

from arag.errors import InputError
from arag.retrieval import DEFAULT_TOP_K, MAX_RESULTS
from arag.retrieval.presentation.matches import matched_sentences
from arag.retrieval.presentation.plain_values import describe_results
from arag.retrieval.presentation.retrieve import NO_CHUNK_ID, Retrieved, show_chunks
from arag.retrieval.presentation.selection import SeenChunks
from arag.retrieval.tools.arguments import ChunkIds, Keywords, OneText, RetrievalArguments
from arag.retrieval.tools.base import RetrievalTool
from arag.retrieval.types import KeywordResults, SemanticResults
from arag.text.marks import mark, without_marks
from arag.text.normalise import collapse_whitespace

TopK: TypeAlias = Annotated[
    int,  # 0 for the tool's own
    Field(description=f"How many chunks to return, 1 to {MAX_RESULTS}; {DEFAULT_TOP_K} is usual."),
]


class _KeywordArguments(RetrievalArguments):
    keywords: Keywords = Field(description="Keywords of one to three words each.")
    top_k: TopK = Field(default_factory=int)


class _SemanticArguments(RetrievalArguments):
    query: OneText = Field(description="What to look for, in natural language.")
    top_k: TopK = Field(default_factory=int)


class _ReadArguments(RetrievalArguments):
    chunk_ids: ChunkIds = Field(description="Ids of the chunks to read.")


class KeywordSearch(RetrievalTool):
    """keyword_search: chunks by Score(c, K), with the sentences that hold a keyword (Equation 2)."""

    name: str = "keyword_search"
    description: str = (
        "Find the chunks that contain keywords, matched exactly and case-insensitively. Longer and more frequent "
        "matches rank higher. Returns the best chunks with their ids and the sentences that hold a keyword."
    )
    args_schema: ArgsSchema | None = _KeywordArguments

    def retrieve(self, keywords: list[str], top_k: int, seen: SeenChunks) -> Retrieved:
        """Search."""
        results = self.index.keyword_search(keywords, _bound(top_k or self.top_k))
        return _show_sentences(self, results, seen)


class SemanticSearch(RetrievalTool):
    """semantic_search: chunks by their best sentence, with the sentences that were found (Equation 3)."""

    name: str = "semantic_search"
    description: str = (
        "Find the chunks with the sentences closest in meaning to a query. Returns the best chunks with their ids and "
        "closest sentences."
    )
    args_schema: ArgsSchema | None = _SemanticArguments

    def retrieve(self, query: str, top_k: int, seen: SeenChunks) -> Retrieved:
        """Search."""
        results = self.index.semantic_search(query, _bound(top_k or self.top_k))
        return _show_sentences(self, results, seen)


class ChunkRead(RetrievalTool):
    """chunk_read: full texts; a notice in place of one that was read before."""

    name: str = "chunk_read"
    description: str = "Read the full text of chunks by their ids, as search results give them."
    args_schema: ArgsSchema | None = _ReadArguments

    def retrieve(self, chunk_ids: list[str], seen: SeenChunks) -> Retrieved:
        """Read."""
        if not chunk_ids:
            raise InputError(NO_CHUNK_ID)
        return show_chunks(self.index.read(chunk_ids), seen, {})


Presentation: TypeAlias = Literal["compact", "paper"]
PAPER_TOOLS: dict[str, type[RetrievalTool]] = {
    "keyword_search": KeywordSearch,
    "semantic_search": SemanticSearch,
    "chunk_read": ChunkRead,
}


def _show_sentences(tool: RetrievalTool, results: KeywordResults | SemanticResults, seen: SeenChunks) -> Retrieved:
    """Show the sentences of each hit that matched, and full texts if the model cannot read them."""
    blocks: list[str] = []
    texts: list[str] = []
    for hit in results.hits:
        sentences = [collapse_whitespace(hit.chunk.sentence_text(place)) for place in matched_sentences(hit)]
        text = " ".join(sentences)
        texts.append(text)
        blocks.append(f"{mark(hit.chunk_id)} score {hit.score:.4g}\n{without_marks(text)}")
    retrieved = Retrieved(
        text="\n\n".join(blocks) or "No chunk was found.",
        chunk_ids=[hit.chunk_id for hit in results.hits],
        results=describe_results(results),
        evidence=["\n".join(texts)],
    )
    return tool.show(retrieved, seen)


def _bound(top_k: int) -> int:
    return min(max(top_k, 1), MAX_RESULTS)
