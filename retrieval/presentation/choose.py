"""What of a search's hits the tools show.

Each keyword that occurs has its best chunk before any has a second. Nothing that the conversation holds is shown again,
and equal texts are shown once. Of a search by meaning, what is much less similar than the best is shown in brief.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from arag.retrieval.presentation.excerpts import BRIEF_GAP, DETAILED_GAP, cut_around, find_rarest, is_row_of
from arag.retrieval.types import Excerpt, Hit, KeywordResults
from arag.text.normalise import bare_title, is_title, searchable, words
from arag.text.tokens import estimate_tokens

MAX_BRIEF_HITS = 3  # of a search by meaning
MAX_BRIEF_HITS_OF_SEVERAL = 1  # for each of several queries
COMMON_KEYWORD_CHUNKS = 8  # chunks that hold a common keyword
MAX_LAST_HITS = 2  # of a keyword search, beyond the number asked for, if no others are left
BRIEF_CHARACTERS = 100  # of a sentence in brief...
UNCUT_CHARACTERS = 160  # ...unless it has no more than this


@dataclass(frozen=True)
class Held:
    """What a conversation holds of an index's chunks."""

    chunks: Sequence[str] = ()  # ids of the chunks whose full text it holds, in order
    # By chunk id, the positions of the sentences that it holds of further chunks.
    sentences: Mapping[str, Collection[int]] = field(default_factory=dict)
    question: str = ""  # the question that it is about, or an empty string

    def add(self, hits: Iterable[Hit]) -> Held:
        """Return what the conversation holds after hits have been shown."""
        sentences = {chunk_id: set(positions) for chunk_id, positions in self.sentences.items()}
        for hit in hits:
            sentences.setdefault(hit.chunk_id, set()).update(uncut_positions(hit.excerpt))
        return replace(self, sentences=sentences)


def uncut_positions(excerpt: Excerpt) -> list[int]:
    """Return the positions of the sentences that are shown in full."""
    return [sentence.position for sentence in excerpt.sentences if not sentence.cut]


@dataclass
class Shown:
    """What is shown of a search's hits."""

    hits: list[Hit] = field(default_factory=list)  # those whose sentences are shown, with these sentences only
    above: list[str] = field(default_factory=list)  # ids of hits that the conversation holds already
    same: dict[str, list[str]] = field(default_factory=dict)  # ids of hits with the text of another, by its id
    brief: list[Hit] = field(default_factory=list)  # further hits, with a part of one sentence


def arrange_keywords(results: KeywordResults, top_k: int) -> tuple[list[Hit], list[Hit], list[Hit]]:
    """Choose `top_k` hits, or more, so that each keyword has its best chunk before any has a second.

    A document with a keyword as its title comes before those that mention it, and so does a table's row that it labels.
    If another keyword is less common, of the chunks with nothing but a common one only the best is kept.

    Returns:
        The best chunk of each keyword, further chunks, and best chunks of common keywords that hold none of the others.
    """
    hits, reports = results.hits, results.keywords
    chunks = {report.keyword: report.chunks for report in reports}
    chunks |= {report.searched_as: report.closest[0].chunks for report in reports if report.searched_as}
    needed: list[Hit] = []
    for keyword in sorted(chunks, key=lambda keyword: chunks[keyword]):
        holding = [hit for hit in hits if keyword in hit.keywords]
        holding.sort(key=lambda hit: (not _is_about(hit, keyword), not _has_row(hit, keyword)))
        if holding and (_is_about(holding[0], keyword) or not any(hit in needed for hit in holding)):
            needed += [hit for hit in holding[:1] if hit not in needed]
    needed.sort(key=hits.index)
    common = {report.keyword for report in reports if (report.as_word or report.chunks) >= COMMON_KEYWORD_CHUNKS}
    passing: list[Hit] = []
    if len(reports) > 1 and not all(_has_only(hit, common) for hit in needed):
        passing = [hit for hit in hits if len(hit.keywords) == 1 and _has_only(hit, common)]
    further = [hit for hit in hits if hit not in needed and hit not in passing]
    room = max(0, top_k - len(needed))
    further = further if len(further) <= room + MAX_LAST_HITS else further[:room]
    return [hit for hit in needed if hit not in passing], further, [hit for hit in needed if hit in passing]


def choose_shown(
    hits: Sequence[Hit],
    held: Held,
    *,
    always: int,
    tokens: int,
    common: Sequence[Hit] = (),
    query: str = "",
    is_one_of_several: bool = False,
) -> Shown:
    """Choose what to show of hits, best first.

    Args:
        hits: The hits.
        held: What the conversation holds.
        always: How many hits to show whatever their sentences cost.
        tokens: What the sentences of all may cost; beyond it, the others are shown in brief.
        common: Further hits, to be shown in brief.
        query: What the hits are near to; empty for a search by keywords.
        is_one_of_several: Whether the query is one of several: fewer hits are then shown in brief.
    """
    shown = Shown()
    by_text: dict[str, str] = {}
    used = 0
    best = max((hit.score for hit in hits), default=0.0)
    for hit in (*hits, *common):
        new = _drop_held(hit, held)
        text = searchable("\n".join(part for s in new.excerpt.sentences for part in (*s.under, s.text)))
        if hit.chunk_id in held.chunks or (hit.excerpt.sentences and not new.excerpt.sentences):
            shown.above.append(hit.chunk_id)
        elif not hit.excerpt.sentences:  # a keyword in what is no sentence
            shown.brief.append(hit)
        elif text in by_text:
            shown.same.setdefault(by_text[text], []).append(hit.chunk_id)
        elif query and len(shown.hits) >= always and hit.score < best - DETAILED_GAP:
            if hit.score > best - BRIEF_GAP and not is_one_of_several:
                shown.brief.append(_shorten(new, query))
        else:
            cost = estimate_tokens(excerpt_text([new]))
            if hit in common or (len(shown.hits) >= always and used + cost > tokens):
                shown.brief.append(_shorten(new, query))
                continue
            used += cost
            by_text[text] = hit.chunk_id
            shown.hits.append(new)
    if query:
        del shown.brief[MAX_BRIEF_HITS_OF_SEVERAL if is_one_of_several else MAX_BRIEF_HITS :]
    return shown


def excerpt_text(hits: Iterable[Hit]) -> str:
    """Return the sentences that hits show, for counting their tokens."""
    return "\n".join(sentence.text for hit in hits for sentence in hit.excerpt.sentences)


def _shorten(hit: Hit, query: str) -> Hit:
    """Return a hit with a part of its best sentence only, around a keyword or the query's rarest word."""
    sentences = [s for s in hit.excerpt.sentences if s.matched and not is_title(s.text, hit.excerpt.title)]
    sentences = sentences or list(hit.excerpt.sentences)
    places = {s.position: _find_places(s.text, hit, query) for s in hit.excerpt.sentences}
    sentences.sort(key=lambda s: (-(s.similarity or 0), -len(places[s.position])))
    best = next((s for s in sentences if len(s.text) > BRIEF_CHARACTERS // 3), sentences[0])
    heading = best.text.strip("# ")
    best = next((s for s in hit.excerpt.sentences if s.under[-1:] == (heading,)), best)  # what stands below it
    text = best.text
    if len(text) > UNCUT_CHARACTERS:
        text = cut_around(text, min(places[best.position], default=0), BRIEF_CHARACTERS)
    short = replace(best, text=text, cut=best.cut or text != best.text)
    return replace(hit, excerpt=replace(hit.excerpt, sentences=(short,), begins=False, ends=False, whole=False))


def _find_places(text: str, hit: Hit, query: str) -> list[int]:
    """Return where a text first has each keyword, each word of a keyword apart, and the query's rarest word."""
    patterns = [re.escape(keyword) for keyword in hit.keyword_counts]
    patterns += [rf"\b{re.escape(word)}\b" for keyword in hit.apart for word in words(keyword) if len(word) > 2]
    matches = [re.search(pattern, text, re.IGNORECASE) for pattern in patterns]
    return [match.start() for match in (*matches, find_rarest(text, query)) if match is not None]


def _is_about(hit: Hit, keyword: str) -> bool:
    """Return whether a keyword is the title of a hit's document."""
    return bare_title(hit.excerpt.title) == bare_title(keyword)


def _has_row(hit: Hit, keyword: str) -> bool:
    """Return whether a hit shows a table's row that a keyword is the label of."""
    return any(is_row_of(sentence.text, keyword) for sentence in hit.excerpt.sentences)


def _has_only(hit: Hit, keywords: Collection[str]) -> bool:
    """Return whether a hit has no other keywords than these, and is not about one of them."""
    return all(k in keywords and not _is_about(hit, k) and not _has_row(hit, k) for k in hit.keywords)


def _drop_held(hit: Hit, held: Held) -> Hit:
    """Drop the sentences that the conversation holds, and all if no other one matched."""
    excerpt, known = hit.excerpt, held.sentences.get(hit.chunk_id, ())
    new = tuple(sentence for sentence in excerpt.sentences if sentence.position not in known)
    if new == excerpt.sentences:
        return hit
    if not any(sentence.matched for sentence in new):
        new = ()
    begins = excerpt.begins and new[:1] == excerpt.sentences[:1]
    ends = excerpt.ends and new[-1:] == excerpt.sentences[-1:]
    return replace(hit, excerpt=replace(excerpt, sentences=new, begins=begins, ends=ends, whole=False))
