"""What the tools show of a search's results, beyond the paper's ranking.

Each keyword that occurs gets its best chunk before any gets a second. Nothing that the conversation holds is shown
again. Equal texts are shown once. Of a semantic search, what is much less similar than the best is shown in brief.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from arag.retrieval.layout import CUT, bare_title, is_row_of, is_title
from arag.retrieval.snippets import find_rarest
from arag.retrieval.text import fold
from arag.retrieval.tokens import count_tokens
from arag.retrieval.types import Hit, KeywordReport, Snippet
from arag.retrieval.words import place_words, telling_words

FindTopics: TypeAlias = Callable[[Sequence[str]], Mapping[str, tuple[str, ...]]]  # `Index.find_topics`

_MAX_BRIEF = 3  # chunks of a semantic search
_MAX_BRIEF_OF_SEVERAL = 1  # for each of several queries
_LAST = 2  # hits that are shown, too, if they are all that is left
_COMMON = 8  # chunks with a keyword: beside other keywords, a chunk with nothing else is hardly ever what is looked for
_BRIEF = 100  # characters that are left of a long sentence
_LONG = 160  # characters of a sentence: a shorter one is not cut
_FALLING_OFF = 0.15  # of similarity, from the best chunk: beyond it, chunks are shown in brief
_NOISE = 0.3  # the same: beyond it, nothing is shown


@dataclass(frozen=True)
class Held:
    """What a conversation holds of an index's chunks.

    Attributes:
        chunks: Ids of the chunks whose full text it holds, in order.
        sentences: By chunk id, the positions of the sentences that it holds of further chunks.
        question: The question that it is about, or an empty string.
    """

    chunks: Sequence[str] = ()
    sentences: Mapping[str, Collection[int]] = field(default_factory=dict)
    question: str = ""

    def add(self, hits: Iterable[Hit]) -> Held:
        """Return what the conversation holds after hits have been shown."""
        sentences = {chunk_id: set(positions) for chunk_id, positions in self.sentences.items()}
        for hit in hits:
            sentences.setdefault(hit.chunk_id, set()).update(uncut_positions(hit.snippets))
        return replace(self, sentences=sentences)


def uncut_positions(snippets: Iterable[Snippet]) -> list[int]:
    """Return the positions of the sentences that are shown in full, not cut."""
    sentences = (sentence for snippet in snippets for sentence in snippet.sentences)
    return [s.position for s in sentences if CUT not in (s.text[:1], s.text[-1:])]


@dataclass(frozen=True)
class Shown:
    """What is shown of a search's hits.

    Attributes:
        hits: The hits whose sentences are shown, with these sentences only.
        above: Ids of hits that the conversation holds already.
        same: Ids of hits with the text of another one, by its id.
        brief: Further hits, with a part of one sentence.
    """

    hits: Sequence[Hit]
    above: Sequence[str]
    same: Mapping[str, Sequence[str]]
    brief: Sequence[Hit]


@dataclass(frozen=True)
class Spread:
    """Hits of a keyword search that show every keyword.

    Attributes:
        needed: The best chunk of each keyword.
        further: Further chunks.
        common: The best chunks of common keywords that hold none of the others.
    """

    needed: Sequence[Hit]
    further: Sequence[Hit]
    common: Sequence[Hit]


def spread_keywords(
    hits: Sequence[Hit], reports: Sequence[KeywordReport], given: Collection[str], top_k: int
) -> Spread:
    """Choose hits so that each keyword has its best chunk before any has a second.

    A document with a keyword as its title comes before those that mention it, and so does a table's row that it labels.
    If another keyword is less common, of the chunks with nothing but a common one only the best is kept.

    Args:
        hits: The hits by their coverage of the keywords.
        reports: The keywords that were searched for, other spellings included.
        given: The keywords without other spellings.
        top_k: How many hits to return; more if there are more keywords.
    """
    needed: list[Hit] = []
    for report in sorted(reports, key=lambda report: report.chunks):
        holding = [hit for hit in hits if report.keyword in hit.keyword_counts]
        holding.sort(key=lambda hit: not _has_row(hit, report.keyword))
        about = [hit for hit in holding if _is_about(hit, report.keyword)]
        if about or not any(hit in needed for hit in holding):
            needed += [hit for hit in (about or holding)[:1] if hit not in needed]
    needed.sort(key=hits.index)
    rest = [hit for hit in hits if hit not in needed]
    frequent = {report.keyword for report in reports if (report.as_word or report.chunks) >= _COMMON} & set(given)
    common: list[Hit] = []
    if len(given) > 1 and not all(_has_only(hit, frequent) for hit in needed):
        passing = [hit for hit in hits if len(hit.keyword_counts) == 1 and _has_only(hit, frequent)]
        common = [hit for hit in needed if hit in passing]
        needed = [hit for hit in needed if hit not in passing]
        rest = [hit for hit in rest if hit not in passing]
    room = max(0, top_k - len(needed) - len(common))
    return Spread(needed, rest if len(rest) <= room + _LAST else rest[:room], common)


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
    """Choose what to show of hits.

    Args:
        hits: The hits, best first.
        held: What the conversation holds.
        always: How many hits to show whatever their sentences cost.
        tokens: What the sentences of all may cost; beyond it, the others are shown in brief.
        common: Further hits, to be shown in brief.
        query: What the hits are near to; empty for a search by keywords.
        is_one_of_several: Whether the query is one of several: fewer hits are then shown in brief.
    """
    shown: list[Hit] = []
    above: list[str] = []
    brief: list[Hit] = []
    same: dict[str, list[str]] = {}
    by_text: dict[str, str] = {}
    used = 0
    best = max((hit.score for hit in hits), default=0.0)
    named = hits[: next((place for place, hit in enumerate(hits) if hit.score == best), 0)]  # by the query
    for hit in (*hits, *common):
        new = _drop_held(hit, held)
        text = _shown_words(new)
        if hit.chunk_id in held.chunks or (hit.snippets and not new.snippets):
            above.append(hit.chunk_id)
        elif not hit.snippets:  # a keyword across the border of sentences that are no text
            brief.append(hit)
        elif text in by_text:
            same.setdefault(by_text[text], []).append(hit.chunk_id)
        elif query and len(shown) >= always and hit.score < best - _FALLING_OFF:
            if hit.score > best - _NOISE and (hit in named or not is_one_of_several):
                brief.append(_shorten(new, query))
        else:
            cost = count_tokens(shown_text([new]))
            if hit in common or (len(shown) >= always and used + cost > tokens):
                brief.append(_shorten(new, query))
                continue
            used += cost
            by_text[text] = hit.chunk_id
            shown.append(new)
    most = _MAX_BRIEF_OF_SEVERAL if is_one_of_several else _MAX_BRIEF
    return Shown(shown, above, same, brief[:most] if query else brief)


def add_topics(shown: Shown, find_topics: FindTopics) -> Shown:
    """Add to hits in parts of long documents what these are about, where no heading says it."""
    named = name_parts({hit.chunk_id: hit.snippets for hit in (*shown.hits, *shown.brief)}, find_topics)
    hits, brief = ([replace(h, snippets=named[h.chunk_id]) for h in found] for found in (shown.hits, shown.brief))
    return replace(shown, hits=hits, brief=brief)


def name_parts(snippets: Mapping[str, Sequence[Snippet]], find_topics: FindTopics) -> dict[str, tuple[Snippet, ...]]:
    """Add to snippets, by chunk id, what parts of long documents are about, where no heading says it."""
    nameless = [i for i, found in snippets.items() if any(not s.whole and not s.heading for s in found)]
    topics = find_topics(nameless) if nameless else {}
    return {
        i: tuple(s if s.whole or s.heading else replace(s, topics=topics.get(i, ())) for s in found)
        for i, found in snippets.items()
    }


def show_all(hits: Sequence[Hit]) -> Shown:
    """Show all hits with all of their sentences, for a reader who has seen nothing yet."""
    return Shown(hits, (), {}, ())


def shown_text(hits: Sequence[Hit]) -> str:
    """Return the sentences that hits show, for counting their tokens."""
    return "\n".join(s.text for hit in hits for snippet in hit.snippets for s in snippet.sentences)


def _shorten(hit: Hit, query: str) -> Hit:
    """Return a hit with nothing but a part of the sentence that matched best, around a keyword or a word of a query."""
    snippet = max(hit.snippets, key=lambda s: max((each.similarity or 0 for each in s.sentences), default=0))
    sentences = [s for s in snippet.sentences if not is_title(s.text, snippet.title)] or list(snippet.sentences)
    matched = [s for s in sentences if s.matched] or sentences
    spans = {s.position: _find_spans(s.text, hit.keyword_counts, query) for s in matched}
    matched.sort(key=lambda s: (-(s.similarity or 0), -len(spans[s.position])))
    sentence = next((s for s in matched if len(s.text) > _BRIEF // 3), matched[0])
    short = replace(sentence, text=_cut_around(sentence.text, spans[sentence.position]))
    return replace(hit, snippets=(replace(snippet, sentences=(short,), begins=False, ends=False, whole=False),))


def _find_spans(text: str, counts: Mapping[str, int], query: str) -> list[tuple[int, int]]:
    """Return where a text first has keywords, words of those that it has in pieces, or a query's rarest word."""
    found = [re.search(re.escape(keyword), text, re.IGNORECASE) for keyword, count in counts.items() if count]
    spans = [match.span() for match in (*found, find_rarest(text, query)) if match is not None]
    words = {word for keyword, count in counts.items() if not count for word in telling_words(keyword)}
    first = {word: (start, end) for word, start, end in reversed(list(place_words(text))) if word in words}
    return [*spans, *first.values()]


def _cut_around(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Cut a long text at spaces, around the first of some spans of it."""
    if len(text) <= _LONG:
        return text
    first, last = min(spans, default=(0, 0))
    start = min(max(0, first - _BRIEF // 3), len(text) - _BRIEF)
    if start > 0:
        start = max(start, text.find(" ", start, first) + 1)
    stop = start + _BRIEF
    if stop < len(text):
        space = text.rfind(" ", last, stop)
        stop = stop if space < 0 else space
    return f"{CUT * (start > 0)}{text[start:stop]}{CUT * (stop < len(text))}"


def _is_about(hit: Hit, keyword: str) -> bool:
    """Return whether a keyword is the title of a document in a hit."""
    return any(bare_title(snippet.title) == bare_title(keyword) for snippet in hit.snippets)


def _has_only(hit: Hit, keywords: Collection[str]) -> bool:
    """Return whether a hit has no other keywords than these, and is not about one of them."""
    held = hit.keyword_counts
    return all(k in keywords and not _is_about(hit, k) and not _has_row(hit, k) for k in held)


def _has_row(hit: Hit, keyword: str) -> bool:
    """Return whether a hit shows a table's row that a keyword is the label of."""
    return any(is_row_of(s.text, keyword) for snippet in hit.snippets for s in snippet.sentences)


def limit_to(hits: Sequence[Hit], document_ids: Collection[str]) -> tuple[Hit, ...]:
    """Drop from hits in chunks of several documents what is from other documents than these."""
    limited = (replace(h, snippets=tuple(s for s in h.snippets if s.document_id in document_ids)) for h in hits)
    return tuple(hit for hit in limited if hit.snippets)


def _drop_held(hit: Hit, held: Held) -> Hit:
    """Drop the sentences that the conversation holds, and documents of which nothing else matched."""
    known = held.sentences.get(hit.chunk_id, ())
    snippets = []
    for snippet in hit.snippets:
        sentences = tuple(s for s in snippet.sentences if s.position not in known)
        if any(s.matched for s in sentences):
            is_all = len(sentences) == len(snippet.sentences)
            begins = snippet.begins and sentences[0] == snippet.sentences[0]
            ends = snippet.ends and sentences[-1] == snippet.sentences[-1]
            snippets.append(
                replace(snippet, sentences=sentences, begins=begins, ends=ends, whole=snippet.whole and is_all)
            )
    return replace(hit, snippets=tuple(snippets))


def _shown_words(hit: Hit) -> str:
    """Return what a hit shows, apart from titles, for comparing it with another hit."""
    lines = [line for snippet in hit.snippets for line in (snippet.heading, *(s.text for s in snippet.sentences))]
    return fold("\n".join(lines)).lower()
