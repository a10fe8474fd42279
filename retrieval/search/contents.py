"""Which sentences of a chunk stand in a table of contents, an index or a list of links."""

from __future__ import annotations

from functools import lru_cache

from arag.retrieval.types import Chunk, Hit
from arag.text.contents import cut_out, find_lists, list_entries, name_section
from arag.text.normalise import searchable


def is_in_contents(hit: Hit) -> bool:
    """Return whether a hit was found in a table of contents, an index, or a list of links."""
    chunk = hit.chunk
    listed = find_listed(chunk)
    if not listed:
        return False
    if hit.similarities:
        nearest = max(hit.similarities, key=lambda position: hit.similarities[position])
        return nearest in listed
    if listed.issuperset(chunk.embedded_positions()):
        return True
    outside = searchable(cut_out(chunk.text, _find_lists(chunk)))
    return bool(hit.keyword_counts) and not any(searchable(keyword) in outside for keyword in hit.keyword_counts)


def find_listed(chunk: Chunk) -> set[int]:
    """Return the positions of the sentences that stand in a table of contents, an index, or a list of links."""
    listed: set[int] = set()
    for run in _find_lists(chunk):
        for position, sentence in enumerate(chunk.sentences):
            if sentence.start in run:
                listed.add(position)
    return listed


def name_entry(chunk: Chunk, position: int) -> str:
    """Return the section that a sentence of contents names; a sentence may be a part of such a name."""
    sentence = chunk.sentences[position]
    _, _, before = chunk.text[: sentence.start].rpartition("\n")
    behind, _, _ = chunk.text[sentence.start :].partition("\n")
    part = name_section(chunk.sentence_text(position))
    for name in list_entries(before + behind):
        if part in name:
            return name
    return part


@lru_cache(maxsize=256)
def _find_lists(chunk: Chunk) -> tuple[range, ...]:
    headings = [(sentence.start, sentence.heading) for sentence in chunk.sentences]
    return find_lists(chunk.text, chunk.title, headings)
