"""The three retrieval tools as a model gets them by default: see `arag.retrieval.presentation`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, TypeAlias

from langchain_core.tools.base import ArgsSchema
from pydantic import AfterValidator, AliasChoices, Field

from arag.errors import EmbedderError, InputError
from arag.retrieval.index import Index
from arag.retrieval.presentation import (
    Held,
    Shown,
    Spread,
    add_topics,
    choose_shown,
    limit_to,
    name_parts,
    shown_text,
    spread_keywords,
)
from arag.retrieval.render import render_keywords, render_semantic
from arag.retrieval.snippets import choose_documents, choose_passages
from arag.retrieval.tokens import count_tokens
from arag.retrieval.tool_base import (
    Keywords,
    RetrievalArguments,
    RetrievalTool,
    Retrieved,
    Texts,
    check_number,
    show_chunks,
)
from arag.retrieval.types import Hit, KeywordResults, SemanticResults

MAX_QUERIES = 10  # of one call
# Tokens of a result's sentences: beyond them, chunks are shown in brief.
_MAX_TOKENS = 300  # by meaning; for each of several queries, half as many
_MAX_KEYWORD_TOKENS = 100  # beyond the best chunk of each keyword
_CANDIDATES = 20  # chunks from which those that are shown are chosen
_MAX_FULL = 1  # chunks of one read that are shown in full; of more, the passages that bear on the question
_SHORT_CHUNK = 250  # tokens: read whole, whatever the reader looks for
_PARTS = re.compile(r"[,;:?!。，；：]\s*|\.\s+")  # of what a reader looks for: each is looked for by itself
_MAX_DOCUMENTS = 1_000  # that one search may be limited to

_Queries: TypeAlias = Annotated[Texts, AfterValidator(check_number(MAX_QUERIES))]
_Within: TypeAlias = Annotated[str, Field(description="Only documents with this in title or id.")]


# Optional arguments have factories, because schemas, which models pay for with every prompt, repeat plain defaults.


class _KeywordArguments(RetrievalArguments):
    keywords: Keywords = Field(
        description="1 to 3 words each.",
        validation_alias=AliasChoices("keywords", "keyword"),
    )
    within: _Within = Field(default_factory=str)


class _SemanticArguments(RetrievalArguments):
    queries: _Queries = Field(
        description="One short question or statement for each fact.",
        validation_alias=AliasChoices("queries", "query"),
    )
    within: _Within = Field(default_factory=str)


class _ReadArguments(RetrievalArguments):
    chunk_ids: Texts = Field(description="Chunk ids.", validation_alias=AliasChoices("chunk_ids", "chunk_id"))
    about: str = Field(default_factory=str, description="What to look for; without it, one chunk in full.")


class KeywordSearch(RetrievalTool):
    """keyword_search (paper, section 3.2)."""

    name: str = "keyword_search"
    description: str = "Find chunks by exact terms: names, titles, numbers, labels of table rows, rare words."
    args_schema: ArgsSchema | None = _KeywordArguments

    def retrieve(self, keywords: list[str], within: str, held: Held) -> Retrieved:
        """Search, also for other spellings of the same letters that the corpus has.

        The model would otherwise have to ask again for what is clearly meant.
        """
        documents = _find_documents(self.index, within)
        results, spread = self._search(keywords, [], documents)
        respelled = {
            report.keyword: report.closest[0].text
            for report in results.keywords
            if report.closest and report.closest[0].respelled
        }
        if respelled:
            reports = [replace(report, searched_as=respelled.get(report.keyword)) for report in results.keywords]
            results, spread = self._search(keywords, list(respelled.values()), documents)
            results = replace(results, keywords=tuple(reports))
        shown = choose_shown(
            [*spread.needed, *spread.further],
            held,
            always=len(spread.needed),
            tokens=_MAX_KEYWORD_TOKENS,
            common=spread.common,
        )
        shown = add_topics(shown, self.index.find_topics)
        return _show_hits(self, keywords, results, shown, render_keywords(results, shown), held)

    def _search(
        self, keywords: Sequence[str], respelled: Sequence[str], documents: Sequence[str] | None
    ) -> tuple[KeywordResults, Spread]:
        wanted = [*keywords, *respelled]
        results = self.index.keyword_search(wanted, _CANDIDATES, within=documents, by_coverage=True)
        hits = results.hits if documents is None else limit_to(results.hits, documents)
        spread = spread_keywords(hits, results.keywords, keywords, self.top_k)
        return replace(results, hits=(*spread.needed, *spread.further, *spread.common)), spread


class SemanticSearch(RetrievalTool):
    """semantic_search (paper, section 3.2)."""

    name: str = "semantic_search"
    description: str = "Find sentences by meaning, for facts whose wording you do not know."
    args_schema: ArgsSchema | None = _SemanticArguments

    def load(self) -> None:
        """Load the embedder."""
        self.index.load_embedder()

    def retrieve(self, queries: list[str], within: str, held: Held) -> Retrieved:
        """Search for each query."""
        documents = _find_documents(self.index, within)
        several = len(queries) > 1
        tokens = _MAX_TOKENS // 2 if several else _MAX_TOKENS
        found: list[Hit] = []
        brief: list[Hit] = []
        above: list[str] = []
        same: dict[str, Sequence[str]] = {}
        texts: list[str] = []
        for query in queries:
            hits = self.index.semantic_search(query, self.top_k, within=documents, subjects=True).hits
            hits = hits if documents is None else limit_to(hits, documents)
            shown = choose_shown(hits, held, always=1, tokens=tokens, query=query, is_one_of_several=several)
            shown = add_topics(shown, self.index.find_topics)
            texts.append(f"{query}: " * several + render_semantic(hits, shown))
            held = held.add(shown.hits)
            found += shown.hits
            brief += shown.brief
            above += shown.above
            same |= shown.same
        results = SemanticResults("; ".join(queries), tuple(found))
        return _show_hits(self, queries, results, Shown(found, above, same, brief), "\n\n".join(texts), held)


class ChunkRead(RetrievalTool):
    """chunk_read (paper, section 3.2)."""

    name: str = "chunk_read"
    description: str = "Read chunks when what a search shows is not enough."
    args_schema: ArgsSchema | None = _ReadArguments

    def retrieve(self, chunk_ids: list[str], about: str, held: Held) -> Retrieved:
        """Read."""
        if not chunk_ids:
            raise InputError("no chunk id given: chunk_read needs at least one, as search results give them")
        results = self.index.read(chunk_ids)
        unread = [chunk for chunk in results.chunks if chunk.id not in held.chunks]
        if len(unread) > _MAX_FULL and not about.strip():
            about = held.question
        parts = [part for part in _PARTS.split(about) if part.strip()][:MAX_QUERIES]
        long = [chunk for chunk in unread if parts and chunk.tokens > _SHORT_CHUNK]
        try:
            ids = [chunk.id for chunk in long]
            rated = {part: self.index.rate_sentences(part, ids) for part in parts if long}
        except EmbedderError:  # reading must not depend on it
            long, rated = [], {}
        passages = choose_passages(long, rated, held.sentences)
        for chunk in unread:
            named = [section.document_id for section in chunk.sections if section.document_id in chunk_ids]
            if named and len(chunk.sections) > 1 and chunk.id not in chunk_ids:
                passages[chunk.id] = choose_documents(chunk, named)
        passages = name_parts(passages, self.index.find_topics)
        return show_chunks(results, chunk_ids, held, passages)


def _show_hits(
    tool: RetrievalTool,
    query: Any,
    results: KeywordResults | SemanticResults,
    shown: Shown,
    text: str,
    held: Held,
) -> Retrieved:
    """Show a search's hits, and their full texts if the model cannot read them."""
    same = (chunk_id for ids in shown.same.values() for chunk_id in ids)
    hits = (*shown.hits, *shown.brief)
    ids = list(dict.fromkeys([*(hit.chunk_id for hit in hits), *same, *shown.above]))
    results = replace(results, hits=hits)
    tokens = count_tokens(shown_text(hits))
    if tool.full_texts:
        full = show_chunks(tool.index.read(ids), query, held)
        text = f"{text}\n\nFull texts:\n\n{full.text}"
        return replace(full, text=text, results=asdict(results), tokens=tokens + full.tokens)
    whole = [hit.chunk_id for hit in shown.hits if hit.whole]
    new = tool.index.read(whole).chunks if whole else ()
    return Retrieved(text, query, asdict(results), ids, new, Held().add(shown.hits).sentences, tokens)


def _find_documents(index: Index, within: str) -> list[str] | None:
    """Return the ids of the documents to search in, or None for all.

    Args:
        index: The index.
        within: The call's argument.

    Raises:
        InputError: There is no such document.
    """
    if not within.strip():
        return None
    found = index.find_documents(within, _MAX_DOCUMENTS + 1)
    if len(found) > _MAX_DOCUMENTS:
        raise InputError(f"More than {_MAX_DOCUMENTS:,} documents have {within!r} in title or id. Give more words.")
    if not found:
        closest = ", ".join(chunk_id for unknown in index.read([within]).unknown for chunk_id in unknown.closest)
        example = f"Chunk ids look like: {closest}." if closest else "The index is empty."
        raise InputError(f"No document has {within!r} in its title or id. {example}")
    return found
