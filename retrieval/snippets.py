"""Which sentences of a chunk a search result shows."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from arag.retrieval.text import fold
from arag.retrieval.types import Chunk, Section, Snippet, SnippetSentence

_MAX_SENTENCES = 5  # beyond those that every keyword needs
_MAX_SIMILAR = 3
_MAX_SENTENCE_CHARACTERS = 400  # characters
_CUT = "…"
_SHORT_SENTENCE = 200  # characters
_SHORT_DOCUMENT = 700  # characters: shown whole rather than in pieces

# A sentence that begins like this refers to something named before it.
_WITHOUT_SUBJECT = re.compile(
    r"[\"'“‘«(\[\s]*(?:(?:He|She|It|They|His|Her|Hers|Its|Their|Him|Them|This|These|Those|That|Such|Both|"
    r"Neither|Here|There|The (?:former|latter|same|other|two|company|film|song|book|series|band|team|city|town))\b"
    r"|他|她|它|其|这|那|该|此)"
)


def choose_keyword_snippets(
    chunk: Chunk, keywords: Sequence[str], rarity: Mapping[str, int], *, brief: bool = False
) -> tuple[tuple[Snippet, ...], int]:
    """Choose the sentences that show a chunk's keywords.

    Every keyword that the chunk holds gets a sentence, the rarest keyword first; then more sentences follow, up
    to five, again by the rarity of what they hold.

    Args:
        chunk: The chunk.
        keywords: The keywords that it holds.
        rarity: For each keyword, how many chunks of the corpus hold it.
        brief: Show only one sentence, that of the rarest keyword: the reader has the chunk's text already.

    Returns:
        What to show, by document, and how many further sentences hold a keyword.
    """
    places = _find_keywords(chunk, keywords)
    by_rarity = sorted(keywords, key=lambda keyword: (rarity[keyword], keywords.index(keyword)))
    matched: dict[int, set[str]] = {}
    for keyword, spans in places.items():
        for first, last, _ in spans:
            for position in range(first, last + 1):
                matched.setdefault(position, set()).add(keyword)
    chosen: set[int] = set()
    for keyword in by_rarity:
        spans = places[keyword]
        if spans and not any(set(range(first, last + 1)) <= chosen for first, last, _ in spans):
            first, last, _ = max(
                spans, key=lambda span: (chunk.sentences[span[0]].embedded, len(matched[span[0]]), -span[0])
            )
            chosen.update(range(first, last + 1))
        if brief and chosen:
            break
    ranks = {keyword: rank for rank, keyword in enumerate(by_rarity)}
    for position in sorted(matched, key=lambda p: (min(ranks[keyword] for keyword in matched[p]), p)):
        if brief or len(chosen) >= _MAX_SENTENCES:
            break
        chosen.add(position)
    marks = {
        position: _find_offset(chunk, position, places[min(matched[position], key=lambda keyword: ranks[keyword])])
        for position in chosen
    }
    shown = chosen if brief else _add_context(chunk, chosen)
    snippets = _make_snippets(chunk, shown, chosen, {}, marks)
    return snippets, len(matched.keys() - shown)


def choose_semantic_snippets(
    chunk: Chunk, similarities: Mapping[int, float], *, brief: bool = False
) -> tuple[tuple[Snippet, ...], int]:
    """Choose the sentences that show why a chunk is near to a query: the three most similar.

    Args:
        chunk: The chunk.
        similarities: Cosine similarity by position, for the chunk's sentences among those found.
        brief: Show only the most similar sentence: the reader has the chunk's text already.

    Returns:
        What to show, by document, and how many further sentences were found.
    """
    best = sorted(similarities, key=lambda position: (-similarities[position], position))
    chosen = set(best[: 1 if brief else _MAX_SIMILAR])
    shown = chosen if brief else _add_context(chunk, chosen)
    more = 0 if brief else len(similarities.keys() - shown)
    return _make_snippets(chunk, shown, chosen, similarities, {}), more


def _find_keywords(chunk: Chunk, keywords: Sequence[str]) -> dict[str, list[tuple[int, int, int]]]:
    """Return where each keyword occurs: first and last sentence, and its place in the first one's lower-cased text.

    The text is as in the keyword file: white space folded, in lower case. Lower case can be longer than upper case, so
    offsets in one are not offsets in the other.
    """
    starts = [sentence.start for sentence in chunk.sentences]
    # Each sentence, with the space between it and the next where there is one.
    texts = [chunk.text[start:end] for start, end in pairwise([*starts, len(chunk.text)])]
    pieces = [fold(text) + " " * text[-1:].isspace() for text in texts]
    lowered = "".join(pieces).lower()
    ends = list(accumulate(len(piece.lower()) for piece in pieces))
    places: dict[str, list[tuple[int, int, int]]] = {}
    for keyword in keywords:
        needle = fold(keyword).lower()
        spans = places.setdefault(keyword, [])
        at = lowered.find(needle)
        while at >= 0:
            first, last = bisect_right(ends, at), bisect_right(ends, at + len(needle) - 1)
            if not spans or spans[-1][:2] != (first, last):
                spans.append((first, last, at - (ends[first - 1] if first else 0)))
            at = lowered.find(needle, at + len(needle))
    return places


def _find_offset(chunk: Chunk, position: int, spans: Sequence[tuple[int, int, int]]) -> int:
    """Return the offset in a sentence, white space folded, of the first occurrence that reaches into it."""
    first, _, lowered = next(span for span in spans if span[0] <= position <= span[1])
    if first < position:
        return 0
    ends = list(accumulate(len(character.lower()) for character in _fold_sentence(chunk, position)))
    return bisect_right(ends, lowered)


def _add_context(chunk: Chunk, chosen: set[int]) -> set[int]:
    """Add sentences that save a read.

    These are: the rest of short documents; the sentences around one that starts without its subject; the one after a
    chosen one, if it continues with the same subject; and a short one that would be the only one left out of a gap.
    """
    shown = set(chosen)
    for section in chunk.sections:
        inside = _find_positions(chunk, section)
        here = chosen & set(inside)
        if not here:
            continue
        if _is_short(chunk, section):
            shown.update(inside)
            continue
        for position in here:
            text = _fold_sentence(chunk, position)
            if _WITHOUT_SUBJECT.match(text):
                shown.update({position - 1, position + 1} & set(inside))
            elif position + 1 in inside and (
                not chunk.sentences[position].embedded  # a heading alone says nothing
                or _WITHOUT_SUBJECT.match(_fold_sentence(chunk, position + 1))
            ):
                shown.add(position + 1)
        shown.update(
            position
            for position in inside[1:-1]
            if {position - 1, position + 1} <= shown
            and chunk.sentences[position].end - chunk.sentences[position].start <= _SHORT_SENTENCE
        )
    return shown


def _is_short(chunk: Chunk, section: Section) -> bool:
    """Return whether a section is a whole, short document; its title, which is shown anyway, does not count."""
    text = chunk.text[section.start : section.end]
    first, _, rest = text.partition("\n")
    body = rest if is_title(first, section.title) else text
    return section.whole and len(body.strip()) <= _SHORT_DOCUMENT


def is_title(line: str, title: str) -> bool:
    """Return whether a line is a title, as a heading or plain, ignoring white space."""
    name = fold(title).strip("# ")
    return bool(name) and fold(line).strip("# ") == name


def _fold_sentence(chunk: Chunk, position: int) -> str:
    """Return a sentence as it is shown, on one line."""
    return fold(chunk.sentence_text(position))


def _find_positions(chunk: Chunk, section: Section) -> range:
    """Return the positions of a section's sentences."""
    starts = [sentence.start for sentence in chunk.sentences]
    first = bisect_right(starts, section.start - 1)
    return range(first, bisect_right(starts, section.end - 1))


def _make_snippets(
    chunk: Chunk,
    shown: set[int],
    chosen: set[int],
    similarities: Mapping[int, float],
    marks: Mapping[int, int],
) -> tuple[Snippet, ...]:
    snippets = []
    for section in chunk.sections:
        inside = _find_positions(chunk, section)
        here = [position for position in inside if position in shown]
        if not here:
            continue
        complete = len(here) == len(inside)
        cut = _SHORT_DOCUMENT if complete and _is_short(chunk, section) else _MAX_SENTENCE_CHARACTERS
        texts = [_shorten(_fold_sentence(chunk, position), marks.get(position, 0), cut) for position in here]
        first = inside[0]
        if here[0] != first and is_title(chunk.sentence_text(first), section.title):
            first += 1  # the title is shown in front of the sentences anyway
        snippets.append(
            Snippet(
                document_id=section.document_id,
                title=section.title,
                sentences=tuple(
                    SnippetSentence(
                        position, text, position in chosen, similarities.get(position) if position in chosen else None
                    )
                    for position, text in zip(here, texts, strict=True)
                ),
                begins=here[0] == first,
                ends=here[-1] == inside[-1],
                whole=section.whole and complete and not any(_CUT in text[:1] + text[-1:] for text in texts),
            )
        )
    return tuple(snippets)


def _shorten(text: str, at: int, longest: int) -> str:
    """Cut a very long sentence to the text around an offset."""
    if len(text) <= longest:
        return text
    start = max(0, min(at - longest // 3, len(text) - longest))
    end = start + longest
    if start > 0:
        start = text.find(" ", start, at) + 1 or start
    if end < len(text):
        space = text.rfind(" ", at + 1, end)
        end = space if space > end - 40 else end
    return f"{_CUT if start > 0 else ''}{text[start:end].strip()}{_CUT if end < len(text) else ''}"
