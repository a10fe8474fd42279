"""The three retrieval functions (paper, section 3.2): they search or read, and write the text that a model is shown.

Nothing here imports LangChain or LangGraph, which take a second: commands that search start at once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from arag.errors import InputError, ModelError
from arag.models.names import knows_script
from arag.retrieval.index import Index
from arag.retrieval.presentation.excerpts import Excerpt
from arag.retrieval.presentation.plain_values import describe_shown
from arag.retrieval.presentation.read_excerpts import excerpts_for_reading
from arag.retrieval.presentation.render import render_chunks, render_keywords, render_semantic
from arag.retrieval.presentation.selection import (
    SeenChunks,
    Selection,
    ShownHit,
    cut_positions,
    evidence_text,
    select_keyword_hits,
    select_semantic_hits,
    uncut_positions,
)
from arag.retrieval.types import Chunk, KeywordResults, ReadResults, SemanticResults
from arag.text.marks import list_marks, without_marks
from arag.text.normalise import collapse_whitespace

MAX_QUERIES = 10  # in one call: each is searched for and adds to the result
NO_CHUNK_ID = "no chunk id given: chunk_read needs at least one, as search results give them"

_OTHER_SCRIPT = "The vectors know Latin letters only: use keyword_search, with words as the documents have them."
_AGAIN_FOR_MORE = " (again for more)"
_GREP_LISTS_ALL = " (grep lists all)"
_CANDIDATES = 20  # chunks that a keyword search finds; the ones to show are chosen from them
_MAX_SENTENCE_TOKENS = 300  # estimated, in a search by meaning: beyond them, chunks are shown in brief
_MAX_KEYWORD_TOKENS = 100  # estimated, in a keyword search: beyond them, only the best chunks are shown in full
_SHORT_CHUNK_TOKENS = 250  # a chunk with no more tokens is always read whole: an excerpt would save little
_WHOLE_TOKENS = 1_500  # of several chunks: the first ones up to here are read whole, as much as `grep` shows at most
_MAX_DOCUMENTS = 1_000  # that `within` may name: more would hardly narrow a search
_PART_BOUNDARY = re.compile(r"[,;?!]\s+|[。，；！？]")  # in a question, whose parts are looked for one by one


@dataclass(frozen=True)
class Retrieved:
    """The result of a retrieval tool, and the text that the model is shown of it."""

    text: str
    chunk_ids: Sequence[str] = ()
    """Ids of the chunks that are shown."""
    results: Mapping[str, Any] = field(default_factory=dict)
    """The typed results as plain values."""
    new_chunks: Sequence[Chunk] = ()
    """The chunks whose full text is shown for the first time."""
    repeated: Sequence[str] = ()
    """Ids of the chunks that were asked for and are not shown again."""
    sentences: Mapping[str, Collection[int]] = field(default_factory=dict)
    """By chunk id, the positions of the sentences shown of chunks that are not shown whole."""
    cut: Mapping[str, Collection[int]] = field(default_factory=dict)
    """By chunk id, the positions of the sentences of which a part is shown, around a match."""
    evidence: Sequence[str] = ()
    """The documents' sentences in the text."""
    has_more: bool = False
    """Whether the same call would show more, and the text says so."""


# --- the three functions ---


def search_keywords(
    index: Index,
    keywords: Sequence[str],
    seen: SeenChunks,
    *,
    top_k: int,
    within: str = "",
    has_grep: bool = False,
) -> Retrieved:
    """Search for keywords; each has its best chunk shown before any has a second.

    Hits that the conversation has seen give their places to the next ones.
    """
    index = _limit(index, within)
    places = 0
    needed_places = top_k
    while places < needed_places:
        places = needed_places
        candidates = max(_CANDIDATES, 2 * places)
        results = index.keyword_search(keywords, candidates, ranking="bm25")
        selection = select_keyword_hits(results, seen, top_k=places, tokens=_MAX_KEYWORD_TOKENS)
        needed_places = top_k + len(selection.seen)
    way_on = ""
    if has_grep:
        way_on = _GREP_LISTS_ALL
    elif seen.question:  # in a conversation
        way_on = _AGAIN_FOR_MORE
    text = render_keywords(results, selection, way_on=way_on)
    has_more = way_on == _AGAIN_FOR_MORE and selection.count_named() < results.total
    return replace(_make_result(index, results, [selection], text), has_more=has_more)


def search_meaning(
    index: Index,
    queries: Sequence[str],
    seen: SeenChunks,
    *,
    top_k: int,
    within: str = "",
) -> Retrieved:
    """Search for sentences close in meaning to each query; later queries do not repeat what earlier ones show."""
    index = _limit(index, within)
    is_one_of_several = len(queries) > 1
    tokens = _MAX_SENTENCE_TOKENS // 2 if is_one_of_several else _MAX_SENTENCE_TOKENS
    texts: list[str] = []
    selections: list[Selection] = []
    shown_now: set[str] = set()  # ids of chunks
    counted: set[str] = set()  # ids of documents
    for query in queries:
        if not knows_script(index.embedder.name, query):
            text = _OTHER_SCRIPT
        else:
            selection = _select_nearest(
                index,
                query,
                seen,
                top_k=top_k,
                tokens=tokens,
                is_one_of_several=is_one_of_several,
                shown_now=shown_now,
            )
            seen = seen.add(selection.full)
            shown_now.update(shown.hit.chunk_id for shown in selection.full)
            selections.append(selection)
            text = render_semantic(selection, counted=counted)
        if is_one_of_several:
            text = f"{without_marks(collapse_whitespace(query))}: {text}"
        texts.append(text)
    all_results = SemanticResults("; ".join(queries), ())
    return _make_result(index, all_results, selections, "\n\n".join(texts))


def read_chunks(index: Index, chunk_ids: Sequence[str], seen: SeenChunks, *, about: str = "") -> Retrieved:
    """Read one chunk in full; of several, or for something, the passages that are about it."""
    if not chunk_ids:
        raise InputError(NO_CHUNK_ID)
    results = index.read(chunk_ids)
    unread = [chunk for chunk in results.chunks if chunk.id not in seen.whole]
    if len(unread) > 1 and not about.strip():
        about = seen.question
        unread = _leave_out_first(unread, _WHOLE_TOKENS)
    excerpts = _find_passages(index, unread, about, seen)
    shown = show_chunks(results, seen, excerpts)
    missing = _name_missing_parts(index, unread, seen)
    return replace(shown, text="\n\n".join([shown.text, *missing]))


def show_chunks(results: ReadResults, seen: SeenChunks, excerpts: Mapping[str, Excerpt]) -> Retrieved:
    """Show chunks, except those that were read before; some as excerpts instead of their full texts."""
    shown_ids: list[str] = []
    new: list[Chunk] = []
    repeated: list[str] = []
    for chunk in results.chunks:
        excerpt = excerpts.get(chunk.id)
        if excerpt is None or excerpt.sentences:
            shown_ids.append(chunk.id)
        if excerpt is not None:
            continue
        if chunk.id in seen.whole:
            repeated.append(chunk.id)
        else:
            new.append(chunk)
    passages: list[str] = []
    sentences: dict[str, list[int]] = {}
    for chunk_id, excerpt in excerpts.items():
        passages += [sentence.text for sentence in excerpt.sentences]
        sentences[chunk_id] = uncut_positions(excerpt)
    return Retrieved(
        text=render_chunks(results, seen.whole, excerpts),
        chunk_ids=shown_ids,
        results={"unknown": results.unknown},  # the texts are in the message already
        new_chunks=new,
        repeated=repeated,
        sentences=sentences,
        evidence=[*(chunk.text for chunk in new), "\n".join(passages)],
    )


def add_full_texts(index: Index, retrieved: Retrieved, seen: SeenChunks) -> Retrieved:
    """Show the full texts of a search's chunks, too."""
    full = show_chunks(index.read(retrieved.chunk_ids), seen, {})
    return replace(
        full,
        text=f"{retrieved.text}\n\nFull texts:\n\n{full.text}",
        results=retrieved.results,
        repeated=(),  # nobody asked for these chunks
        evidence=[*retrieved.evidence, *full.evidence],
    )


# --- steps of these functions ---


def _name_missing_parts(index: Index, chunks: Sequence[Chunk], seen: SeenChunks) -> list[str]:
    """Return a line for each document that is read for the first time and whose text lacks parts of its file.

    Without it, a model would conclude that the document does not say what stands there.
    """
    documents = {chunk.document_id for chunk in chunks}
    documents -= {chunk_id.rpartition(":")[0] for chunk_id in seen.whole}
    lines: list[str] = []
    for document_id in sorted(documents):
        document = index.document(document_id)
        if document is not None and document.left_out:
            lines.append(without_marks(f"Missing in the text of {document_id}: {', '.join(document.left_out)}"))
    return lines


def _select_nearest(
    index: Index,
    query: str,
    seen: SeenChunks,
    *,
    top_k: int,
    tokens: int,
    is_one_of_several: bool,
    shown_now: Collection[str],
) -> Selection:
    """Search by meaning; hits that the conversation has seen give their places to the next ones.

    Hits that another query of the same call shows give no place: several queries would show too much.
    """
    places = 0
    needed_places = top_k
    while places < needed_places:
        places = needed_places
        results = index.semantic_search(query, places, titles_first=True)
        selection = select_semantic_hits(
            results,
            seen,
            tokens=tokens,
            is_one_of_several=is_one_of_several,
        )
        seen_before = [chunk_id for chunk_id in selection.seen if chunk_id not in shown_now]
        needed_places = top_k + len(seen_before)
    return selection


def _limit(index: Index, within: str) -> Index:
    """Return an index limited to the documents that a call names, or all of it."""
    if not within.strip():
        return index
    documents = index.find_meant(within, _MAX_DOCUMENTS + 1)
    if len(documents) > _MAX_DOCUMENTS:
        raise InputError(f"More than {_MAX_DOCUMENTS:,} documents have {within!r} in title or id. Give more words.")
    if not documents:
        raise InputError(f"No document has {within!r} in its title or id. {_show_ids(index, within)}")
    return index.limited_to(documents)


def _show_ids(index: Index, unknown: str) -> str:
    """Give examples of chunk ids, the closest ones to an unknown id."""
    closest: list[str] = []
    for chunk_ids in index.read([unknown]).unknown.values():
        closest += chunk_ids
    if not closest:
        return "The index is empty."
    return f"Chunk ids look like {list_marks(closest)}."


def _leave_out_first(chunks: Sequence[Chunk], tokens: int) -> list[Chunk]:
    """Return chunks without the first ones that fit into a number of tokens."""
    others: list[Chunk] = []
    for chunk in chunks:
        tokens -= chunk.tokens
        if tokens < 0:
            others.append(chunk)
    return others


def _find_passages(index: Index, chunks: Sequence[Chunk], about: str, seen: SeenChunks) -> dict[str, Excerpt]:
    """Return excerpts of the long chunks, with their passages about something; none if there is nothing to look for."""
    queries = [part for part in _PART_BOUNDARY.split(about) if part.strip()][:MAX_QUERIES]
    long = [chunk for chunk in chunks if chunk.tokens > _SHORT_CHUNK_TOKENS]
    if not queries or not long:
        return {}
    ids = [chunk.id for chunk in long]
    similarities: dict[str, Mapping[str, Mapping[int, float]]] = {}
    try:
        for query in queries:
            similarities[query] = index.rate_sentences(query, ids)
    except ModelError:  # reading must not depend on the embedder
        return {}
    return excerpts_for_reading(long, similarities, seen.sentences)


def _make_result(
    index: Index,
    results: KeywordResults | SemanticResults,
    selections: Sequence[Selection],
    text: str,
) -> Retrieved:
    """Build the result of a search from the selections of its queries and their text."""
    full: list[ShownHit] = []
    brief: list[ShownHit] = []
    copies: list[ShownHit] = []
    copies_in_brief: list[ShownHit] = []
    seen: list[str] = []
    for selection in selections:
        full += selection.full
        brief += selection.brief
        copies += selection.list_copies(selection.full)
        copies_in_brief += selection.list_copies(selection.brief)
        seen += selection.seen
    shown = [*full, *brief]
    named = [each.hit.chunk_id for each in [*shown, *copies, *copies_in_brief]]
    whole = [each.hit.chunk_id for each in full if each.excerpt.whole]
    new_chunks: Sequence[Chunk] = ()
    if whole:
        new_chunks = index.read(whole).chunks
    return Retrieved(
        text=text,
        chunk_ids=list(dict.fromkeys([*named, *seen])),  # each once
        results=describe_shown(results, shown),
        new_chunks=new_chunks,
        sentences=SeenChunks().add([*full, *copies]).sentences,
        cut=_list_cut(full),
        evidence=[evidence_text(shown)],
    )


def _list_cut(shown: Sequence[ShownHit]) -> dict[str, list[int]]:
    """Return, by chunk id, the positions of the sentences of which a part is shown."""
    cut: dict[str, list[int]] = {}
    for each in shown:
        positions = cut_positions(each.excerpt)
        if positions:
            cut[each.hit.chunk_id] = positions
    return cut
