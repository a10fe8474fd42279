"""The three retrieval functions (paper, section 3.2), with the text that a model is shown of what they find.

Nothing here imports LangChain or LangGraph, which take a second: commands that search start at once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from arag.errors import InputError, ModelError
from arag.models.names import DEFAULT_EMBEDDER
from arag.retrieval.index import Index
from arag.retrieval.presentation.choose import (
    Held,
    Shown,
    arrange_keywords,
    choose_shown,
    excerpt_text,
    uncut_positions,
)
from arag.retrieval.presentation.excerpts import for_read
from arag.retrieval.presentation.render import render_chunks, render_keywords, render_semantic
from arag.retrieval.types import Chunk, Excerpt, KeywordResults, ReadResults, SemanticResults
from arag.text.marks import list_marks, without_marks
from arag.text.normalise import collapse_whitespace
from arag.text.scripts import is_latin

MAX_QUERIES = 10  # of one call
NO_CHUNK_ID = "no chunk id given: chunk_read needs at least one, as search results give them"

_OTHER_SCRIPT = "The vectors know Latin letters only: use keyword_search, with words as the documents have them."
_CANDIDATES = 20  # chunks from which those that are shown are chosen
_MAX_SENTENCE_TOKENS = 300  # of a search by meaning: beyond them, chunks are shown in brief
_MAX_FURTHER_TOKENS = 100  # of a keyword search, beyond the best chunk of each keyword
_SHORT_CHUNK_TOKENS = 250  # of a chunk that is read whole, whatever the reader looks for
_MAX_DOCUMENTS = 1_000  # that one search may be limited to
_PARTS = re.compile(r"[,;?!]\s+|[。，；！？]")  # of what a reader looks for: each is looked for by itself


@dataclass(frozen=True)
class Retrieved:
    """What a tool found, and the text that the model is shown of it."""

    text: str
    chunk_ids: Sequence[str] = ()
    """Chunks shown."""
    results: Mapping[str, Any] = field(default_factory=dict)
    """The typed results as plain values."""
    new_chunks: Sequence[Chunk] = ()
    """Those of them whose full text is shown for the first time."""
    sentences: Mapping[str, Collection[int]] = field(default_factory=dict)
    """By chunk id, the positions of the sentences shown of chunks that are not shown whole."""
    evidence: Sequence[str] = ()
    """The documents' sentences in the text."""


def search_keywords(index: Index, keywords: Sequence[str], held: Held, *, top_k: int, within: str = "") -> Retrieved:
    """Search for keywords, each of which has its best chunk shown before any has a second."""
    index = _limit(index, within)
    results = index.keyword_search(keywords, _CANDIDATES, ranking="bm25")
    needed, further, common = arrange_keywords(results, top_k)
    shown = choose_shown([*needed, *further], held, always=len(needed), tokens=_MAX_FURTHER_TOKENS, common=common)
    return _list_hits(index, results, [shown], render_keywords(results, shown))


def search_meaning(index: Index, queries: Sequence[str], held: Held, *, top_k: int, within: str = "") -> Retrieved:
    """Search for sentences close in meaning to each query; later ones do not repeat what earlier ones show."""
    index, several = _limit(index, within), len(queries) > 1
    tokens = _MAX_SENTENCE_TOKENS // 2 if several else _MAX_SENTENCE_TOKENS
    is_english = index.embedder.name == DEFAULT_EMBEDDER
    texts: list[str] = []
    parts: list[Shown] = []
    for query in queries:
        text = _OTHER_SCRIPT
        if not is_english or is_latin(query):
            hits = index.semantic_search(query, top_k, titles_first=True).hits
            shown = choose_shown(hits, held, always=1, tokens=tokens, query=query, is_one_of_several=several)
            held = held.add(shown.hits)
            parts.append(shown)
            text = render_semantic(shown)
        texts.append(f"{without_marks(collapse_whitespace(query))}: {text}" if several else text)
    return _list_hits(index, SemanticResults("; ".join(queries), ()), parts, "\n\n".join(texts))


def read_chunks(index: Index, chunk_ids: Sequence[str], held: Held, *, about: str = "") -> Retrieved:
    """Read one chunk in full; of several, or for something, the passages that are about it."""
    if not chunk_ids:
        raise InputError(NO_CHUNK_ID)
    results = index.read(chunk_ids)
    unread = [chunk for chunk in results.chunks if chunk.id not in held.chunks]
    if len(unread) > 1 and not about.strip():
        about = held.question
    parts = [part for part in _PARTS.split(about) if part.strip()][:MAX_QUERIES]
    long = [chunk for chunk in unread if parts and chunk.tokens > _SHORT_CHUNK_TOKENS]
    try:
        rated = {part: index.rate_sentences(part, [chunk.id for chunk in long]) for part in parts if long}
    except ModelError:  # reading must not depend on it
        long, rated = [], {}
    return show_chunks(results, held, for_read(long, rated, held.sentences))


def _limit(index: Index, within: str) -> Index:
    """Return an index limited to the documents that a call names, or all of it."""
    if not within.strip():
        return index
    documents = index.find_documents(within, _MAX_DOCUMENTS + 1)
    if len(documents) > _MAX_DOCUMENTS:
        raise InputError(f"More than {_MAX_DOCUMENTS:,} documents have {within!r} in title or id. Give more words.")
    if not documents:
        closest = [chunk_id for ids in index.read([within]).unknown.values() for chunk_id in ids]
        example = f"Chunk ids look like {list_marks(closest)}." if closest else "The index is empty."
        raise InputError(f"No document has {within!r} in its title or id. {example}")
    return index.limited_to(documents)


def show_chunks(results: ReadResults, held: Held, excerpts: Mapping[str, Excerpt]) -> Retrieved:
    """Show chunks, except those that were read before; of some, excerpts are shown instead of their full texts."""
    new = [chunk for chunk in results.chunks if chunk.id not in held.chunks and chunk.id not in excerpts]
    shown = "\n".join(sentence.text for excerpt in excerpts.values() for sentence in excerpt.sentences)
    return Retrieved(
        render_chunks(results, held.chunks, excerpts),
        [chunk.id for chunk in results.chunks if chunk.id not in excerpts or excerpts[chunk.id].sentences],
        {"unknown": results.unknown},  # the texts are in the message already
        new,
        {chunk_id: uncut_positions(excerpt) for chunk_id, excerpt in excerpts.items()},
        [*(chunk.text for chunk in new), shown],
    )


def _list_hits(index: Index, results: KeywordResults | SemanticResults, parts: Sequence[Shown], text: str) -> Retrieved:
    """Say what of a search is in a text: for each query, a part."""
    full = [hit for part in parts for hit in part.hits]
    hits = (*full, *(hit for part in parts for hit in part.brief))
    others = [chunk_id for part in parts for ids in (*part.same.values(), part.above) for chunk_id in ids]
    whole = [hit.chunk_id for hit in full if hit.excerpt.whole]
    return Retrieved(
        text,
        list(dict.fromkeys([*(hit.chunk_id for hit in hits), *others])),
        asdict(replace(results, hits=hits)),
        index.read(whole).chunks if whole else (),
        Held().add(full).sentences,
        [excerpt_text(hits)],
    )


def add_full_texts(index: Index, retrieved: Retrieved, held: Held) -> Retrieved:
    """Show the full texts of a search's chunks, too."""
    full = show_chunks(index.read(retrieved.chunk_ids), held, {})
    text = f"{retrieved.text}\n\nFull texts:\n\n{full.text}"
    return replace(full, text=text, results=retrieved.results, evidence=[*retrieved.evidence, *full.evidence])
