"""Which sentences of a chunk a search result shows."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

from arag.retrieval.types import Chunk, Section, Snippet, SnippetSentence

_MOST_SENTENCES = 5  # beyond those that every keyword needs
_MOST_SIMILAR = 3
_LONGEST_SENTENCE = 400  # characters
_CUT = "…"
_SHORT_DOCUMENT = 700  # characters: shown whole rather than in pieces

# A sentence that begins so speaks of something named before it.
_WITHOUT_SUBJECT = re.compile(
    r"[\"'“‘«(\[\s]*(?:(?:He|She|It|They|His|Her|Hers|Its|Their|Him|Them|This|These|Those|That|Such|Both|"
    r"Neither|Here|There|The (?:former|latter|same|other|two|company|film|song|book|series|band|team|city|town))\b"
    r"|他|她|它|其|这|那|该|此)"
)


def keyword_snippets(
    chunk: Chunk, keywords: Sequence[str], rarity: Mapping[str, int]
) -> tuple[tuple[Snippet, ...], int]:
    """Choose the sentences that show a chunk's keywords.

    Every keyword that the chunk holds gets a sentence, the rarest keyword first; then more sentences follow, up
    to five, again by the rarity of what they hold.

    Args:
        chunk: The chunk.
        keywords: The keywords that it holds.
        rarity: For each keyword, how many chunks of the corpus hold it.

    Returns:
        What to show, by document, and how many further sentences hold a keyword.
    """
    places = _keyword_places(chunk, keywords)
    by_rarity = sorted(keywords, key=lambda keyword: (rarity[keyword], keywords.index(keyword)))
    matched: dict[int, set[str]] = {}
    for keyword, spans in places.items():
        for first, last in spans:
            for position in range(first, last + 1):
                matched.setdefault(position, set()).add(keyword)
    chosen: set[int] = set()
    for keyword in by_rarity:
        spans = places[keyword]
        if spans and not any(set(range(first, last + 1)) <= chosen for first, last in spans):
            first, last = max(
                spans, key=lambda span: (chunk.sentences[span[0]].embedded, len(matched[span[0]]), -span[0])
            )
            chosen.update(range(first, last + 1))
    ranks = {keyword: rank for rank, keyword in enumerate(by_rarity)}
    for position in sorted(matched, key=lambda p: (min(ranks[keyword] for keyword in matched[p]), p)):
        if len(chosen) >= _MOST_SENTENCES:
            break
        chosen.add(position)
    marks = {position: sorted(matched[position], key=lambda keyword: ranks[keyword]) for position in chosen}
    shown = _with_context(chunk, chosen)
    snippets = _snippets(chunk, shown, chosen, {}, marks)
    return snippets, len(matched.keys() - shown)


def semantic_snippets(chunk: Chunk, similarities: Mapping[int, float]) -> tuple[tuple[Snippet, ...], int]:
    """Choose the sentences that show why a chunk is near to a query: the three most similar.

    Args:
        chunk: The chunk.
        similarities: Cosine similarity by position, for the chunk's sentences among those found.

    Returns:
        What to show, by document, and how many further sentences were found.
    """
    best = sorted(similarities, key=lambda position: (-similarities[position], position))
    chosen = set(best[:_MOST_SIMILAR])
    shown = _with_context(chunk, chosen)
    return _snippets(chunk, shown, chosen, similarities, {}), len(similarities.keys() - shown)


def _keyword_places(chunk: Chunk, keywords: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
    """Return, for each keyword, the first and last sentence of each of its occurrences.

    The text is lower-cased sentence by sentence, because lower-casing can change a text's length: offsets in
    the lower-cased text are not offsets in the text.
    """
    starts = [sentence.start for sentence in chunk.sentences]
    borders = [0, *starts[1:], len(chunk.text)]
    pieces = [chunk.text[borders[i] : borders[i + 1]].lower() for i in range(len(starts))]
    lowered = "".join(pieces)
    ends = list(accumulate(map(len, pieces)))
    places: dict[str, list[tuple[int, int]]] = {}
    for keyword in keywords:
        needle = keyword.lower()
        spans = places.setdefault(keyword, [])
        at = lowered.find(needle)
        while at >= 0:
            span = (bisect_right(ends, at), bisect_right(ends, at + len(needle) - 1))
            if not spans or spans[-1] != span:
                spans.append(span)
            at = lowered.find(needle, at + len(needle))
    return places


def _with_context(chunk: Chunk, chosen: set[int]) -> set[int]:
    """Add what saves a read: neighbours of sentences without their subject, the rest of short documents."""
    shown = set(chosen)
    for position in sorted(chosen):
        section = chunk.section_at(chunk.sentences[position].start)
        inside = _positions(chunk, section)
        if section.whole and section.end - section.start <= _SHORT_DOCUMENT:
            shown.update(inside)
            continue
        text = chunk.sentence_text(position)
        if _WITHOUT_SUBJECT.match(text):
            shown.update({position - 1, position + 1} & set(inside))
        elif not chunk.sentences[position].embedded:  # a heading alone says nothing
            shown.update({position + 1} & set(inside))
    return shown


def _positions(chunk: Chunk, section: Section) -> range:
    """Return the positions of a section's sentences."""
    starts = [sentence.start for sentence in chunk.sentences]
    first = bisect_right(starts, section.start - 1)
    return range(first, bisect_right(starts, section.end - 1))


def _snippets(
    chunk: Chunk,
    shown: set[int],
    chosen: set[int],
    similarities: Mapping[int, float],
    marks: Mapping[int, Sequence[str]],
) -> tuple[Snippet, ...]:
    snippets = []
    for section in chunk.sections:
        inside = _positions(chunk, section)
        here = [position for position in inside if position in shown]
        if not here:
            continue
        sentences = tuple(
            SnippetSentence(
                position=position,
                text=_shortened(chunk.sentence_text(position), marks.get(position, ())),
                matched=position in chosen,
                similarity=similarities.get(position),
            )
            for position in here
        )
        longest = max(chunk.sentences[p].end - chunk.sentences[p].start for p in here)
        complete = section.whole and len(here) == len(inside) and longest <= _LONGEST_SENTENCE
        snippets.append(Snippet(section.document_id, section.title, sentences, complete))
    return tuple(snippets)


def _shortened(text: str, keywords: Sequence[str]) -> str:
    """Fold white space, and cut a very long sentence to the surroundings of its rarest keyword."""
    text = " ".join(text.split())
    if len(text) <= _LONGEST_SENTENCE:
        return text
    places = [text.lower().find(keyword.lower()) for keyword in keywords]
    at = next((place for place in places if place >= 0), 0)
    start = max(0, min(at - _LONGEST_SENTENCE // 3, len(text) - _LONGEST_SENTENCE))
    end = start + _LONGEST_SENTENCE
    if start > 0:
        start = text.find(" ", start, at) + 1 or start
    if end < len(text):
        space = text.rfind(" ", at + 1, end)
        end = space if space > end - 40 else end
    return f"{_CUT if start > 0 else ''}{text[start:end].strip()}{_CUT if end < len(text) else ''}"
