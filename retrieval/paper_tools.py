"""The three retrieval tools as plain as in the paper (section 3.2), for experiments.

A search lists the chunks by the paper's scores, each with the sentences that matched (Equations 2 and 3), whatever the
conversation holds. There are no suggestions, no context, and no selection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Annotated, Any, TypeAlias

from langchain_core.tools.base import ArgsSchema
from pydantic import AliasChoices, BeforeValidator, Field

from arag.errors import InputError
from arag.retrieval.presentation import Held
from arag.retrieval.text import fold
from arag.retrieval.tokens import count_tokens
from arag.retrieval.tool_base import (
    DEFAULT_TOP_K,
    MAX_RESULTS,
    Keywords,
    RetrievalArguments,
    RetrievalTool,
    Retrieved,
    Texts,
    show_chunks,
)
from arag.retrieval.types import Chunk, KeywordResults, SemanticResults


def _clamp_to(low: int, high: int) -> Callable[[Any], Any]:
    """Return a function that clamps numbers, also as strings, and leaves anything else for validation to reject."""

    def clamp(value: Any) -> Any:
        if isinstance(value, bool):
            return value
        try:
            return int(min(max(value if isinstance(value, int) else float(value), low), high))
        except (TypeError, ValueError):
            return value

    return clamp


TopK: TypeAlias = Annotated[
    int,  # 0 for the tool's own
    BeforeValidator(_clamp_to(1, MAX_RESULTS)),
    Field(description=f"How many chunks to return, 1 to {MAX_RESULTS}; {DEFAULT_TOP_K} is usual."),
]


class _KeywordArguments(RetrievalArguments):
    keywords: Keywords = Field(
        description="Keywords of one to three words each.", validation_alias=AliasChoices("keywords", "keyword")
    )
    top_k: TopK = Field(default_factory=int)


class _SemanticArguments(RetrievalArguments):
    query: str = Field(description="What to look for, in natural language.")
    top_k: TopK = Field(default_factory=int)


class _ReadArguments(RetrievalArguments):
    chunk_ids: Texts = Field(
        description="Ids of the chunks to read.", validation_alias=AliasChoices("chunk_ids", "chunk_id")
    )


class KeywordSearch(RetrievalTool):
    """keyword_search: chunks by Score(c, K), with the sentences that hold a keyword (Equation 2)."""

    name: str = "keyword_search"
    description: str = (
        "Find the chunks that contain keywords, matched exactly and case-insensitively. Longer and more frequent "
        "matches rank higher. Returns the best chunks with their ids and the sentences that hold a keyword."
    )
    args_schema: ArgsSchema | None = _KeywordArguments

    def retrieve(self, keywords: list[str], top_k: int, held: Held) -> Retrieved:
        """Search."""
        results = self.index.keyword_search(keywords, top_k or self.top_k)
        needles = [fold(keyword).lower() for keyword in keywords if keyword.strip()]

        def is_match(text: str) -> bool:
            return any(needle in text.lower() for needle in needles)

        return _show_sentences(self, keywords, results, lambda chunk, place: is_match(_text(chunk, place)), held)


class SemanticSearch(RetrievalTool):
    """semantic_search: chunks by their best sentence, with the sentences that were found (Equation 3)."""

    name: str = "semantic_search"
    description: str = (
        "Find the chunks with the sentences closest in meaning to a query. Returns the best chunks with their ids and "
        "closest sentences."
    )
    args_schema: ArgsSchema | None = _SemanticArguments

    def load(self) -> None:
        """Load the embedder."""
        self.index.load_embedder()

    def retrieve(self, query: str, top_k: int, held: Held) -> Retrieved:
        """Search."""
        results = self.index.semantic_search(query, top_k or self.top_k)
        found = {hit.chunk_id: hit.matches for hit in results.hits}
        return _show_sentences(self, query, results, lambda chunk, place: place in found[chunk.id], held)


class ChunkRead(RetrievalTool):
    """chunk_read: full texts; a notice in place of one that was read before."""

    name: str = "chunk_read"
    description: str = "Read the full text of chunks by their ids, as search results give them."
    args_schema: ArgsSchema | None = _ReadArguments

    def retrieve(self, chunk_ids: list[str], held: Held) -> Retrieved:
        """Read."""
        if not chunk_ids:
            raise InputError("no chunk id given: chunk_read needs at least one, as search results give them")
        return show_chunks(self.index.read(chunk_ids), chunk_ids, held)


def _show_sentences(
    tool: RetrievalTool,
    query: Any,
    results: KeywordResults | SemanticResults,
    is_match: Callable[[Chunk, int], bool],
    held: Held,
) -> Retrieved:
    """Show the sentences of each hit that matched, and full texts if the model cannot read them."""
    ids = [hit.chunk_id for hit in results.hits]
    found = tool.index.read(ids)
    texts = {
        chunk.id: " ".join(_text(chunk, place) for place in range(len(chunk.sentences)) if is_match(chunk, place))
        for chunk in found.chunks
    }
    blocks = [f"[{hit.chunk_id}] score {hit.score:.4g}\n{texts.get(hit.chunk_id, '')}" for hit in results.hits]
    text = "\n\n".join(blocks) or "No chunk was found."
    tokens = count_tokens("\n".join(texts.values()))
    if not tool.full_texts:
        return Retrieved(text, query, asdict(results), ids, tokens=tokens)
    full = show_chunks(found, query, held)
    text = f"{text}\n\nFull texts:\n\n{full.text}"
    return replace(full, text=text, results=asdict(results), tokens=tokens + full.tokens)


def _text(chunk: Chunk, position: int) -> str:
    return fold(chunk.sentence_text(position))
