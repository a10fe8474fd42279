"""Which sentences of a chunk are shown: for keywords, for a query, or of chunks that are read.

Each kind chooses anchors, the sentences that match best; `_expand` adds what makes them understandable.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, pairwise, zip_longest

from arag.retrieval.types import Chunk, Excerpt, ShownSentence
from arag.text.normalise import (
    CELL_BOUNDARY,
    CUT,
    HEADING_BOUNDARY,
    bare_title,
    collapse_whitespace,
    is_title,
    lower,
    searchable,
    without_title,
    words,
)

# Cosine similarities. A gap is how much less similar something is than the best.
SENTENCE_GAP = 0.2  # of a chunk's second sentence
PASSAGE_GAP = 0.3  # of the passages in a read
DETAILED_GAP = 0.15  # of a hit: beyond it, a hit is shown in brief
BRIEF_GAP = 0.3  # of a hit: beyond it, a hit is not shown
RARE_WORD_BONUS = 0.15  # for each of up to two rare words of the query

_MAX_KEYWORD_ANCHORS = 3  # unless more are needed to show every keyword
_MAX_QUERY_ANCHORS = 2
_OPENING_SENTENCES = 3
_MAX_ROWS = 4  # of tables, for each query
_ROW_SHARE = 0.6  # of a label's words: with more of them in a query, the row is shown
_MAX_RARE_SENTENCES = 3  # of a chunk with a rare word
_MAX_HEADINGS = 2  # that are named, the nearest ones
_MAX_SENTENCE_CHARACTERS = 400
_MAX_SHORT_CHARACTERS = 700  # of a document that may be shown whole
_MAX_MISSING_CHARACTERS = 100  # of a short document that is then shown whole
_READ_CHARACTERS = 1_600  # of passages in one read
_READ_CHARACTERS_PER_QUERY = 600

_ROW = re.compile(r"\S \| .*\d")  # of a table, with a number
_NAMED_ROW = re.compile(r"[^|]*?: ([^|]*) \| [^|]*?: ")  # whose cells have the names of their columns
_NO_STATEMENT = re.compile(r"[?:]$|^[^.!。！]{0,60}$")  # a question, or what may be a heading or an item of a list
# A sentence that begins like this refers to something named before it.
_WITHOUT_SUBJECT = re.compile(
    r"[\"'“‘«(\[\s]*(?:(?:He|She|It|They|His|Her|Hers|Its|Their|Him|Them|This|These|Those|That|Such|Both|"
    r"Neither|Here|There|The (?:former|latter|same|other|two|company|film|song|book|series|band|team|city|town))\b"
    r"|他|她|它|其|这|那|该|此)"
)


# --- the three kinds of excerpts ---


def for_keywords(
    chunk: Chunk,
    keywords: Sequence[str],
    holding: Mapping[str, int],
    apart_words: Sequence[str] = (),
    *,
    is_best: bool = False,
) -> Excerpt:
    """Choose the sentences with the most keywords until each keyword has one; then up to three in all.

    Words of keywords that the chunk holds only apart from each other have a sentence, too. If the chunk is one of the
    best, more is shown of a long document, around the first sentence. `holding` is how many chunks hold each keyword.
    """
    matches = _find_keywords(chunk, keywords, apart_words)
    title = bare_title(chunk.title)
    weights = {k: 0 if bare_title(k) == title else 1 / (1 + holding.get(k, 0)) for k in (*keywords, *apart_words)}

    def score(position: int, wanted: Collection[str]) -> tuple[float, ...]:
        """Rate a sentence: first by the number of wanted keywords, last by how rare they are."""
        text, matching = _sentence(chunk, position), [k for k in matches[position] if k in wanted]
        labels = any(is_row_of(text, keyword) for keyword in matching)
        states = chunk.sentences[position].embedded and not _NO_STATEMENT.search(text)
        return len(matching), labels, states, sum(weights[k] for k in matches[position]), -position

    missing = {keyword for offsets in matches.values() for keyword in offsets}
    anchors: list[int] = []
    while missing:
        best = max((p for p in matches if not missing.isdisjoint(matches[p])), key=lambda p: score(p, missing))
        anchors.append(best)
        missing -= matches[best].keys()
    further = sorted(matches.keys() - set(anchors), key=lambda p: score(p, keywords), reverse=True)
    matched = {*anchors, *further[: max(0, _MAX_KEYWORD_ANCHORS - len(anchors))]}
    names = [bare_title(keyword) for keyword in keywords]
    is_named = any(title == name or (" " in name and title.startswith(f"{name} ")) for name in names)
    shown = _expand(chunk, matched, is_subject=is_named)
    if is_best:
        shown |= _expand(chunk, anchors[:1], window=True)
    offsets = {p: min(matches[p].items(), key=lambda match: holding.get(match[0], 0))[1] for p in matched}
    return _make_excerpt(chunk, shown, matched, offsets=offsets)


def for_query(chunk: Chunk, similarities: Mapping[int, float], query: str, *, is_best: bool = False) -> Excerpt:
    """Choose the two sentences nearest to a query, and rows of tables whose labels are in it.

    If the chunk is one of the best, a short document is shown whole, and more of a long one around each sentence. The
    similarities are those of the sentences that were found, by position.
    """
    rated = _rate(chunk, similarities, query)
    first = max(similarities, key=lambda p: (similarities[p], -p))
    near = [p for p in rated if p != first and rated[p] > similarities[first] - SENTENCE_GAP]
    near.sort(key=lambda p: (-rated[p], p))
    rows = _find_rows(chunk, [query])
    matched = {first, *near[: _MAX_QUERY_ANCHORS - 1], *rows}
    shown = _expand(chunk, matched, is_subject=is_best, window=is_best and not rows)
    long = [p for p in shown if len(chunk.sentence_text(p)) > _MAX_SENTENCE_CHARACTERS]
    places = {p: find_rarest(_sentence(chunk, p), query) for p in long}
    offsets = {p: place.start() for p, place in places.items() if place is not None}
    return _make_excerpt(chunk, shown, matched, similarities=similarities, offsets=offsets)


def for_opening(chunk: Chunk) -> Excerpt:
    """Choose the first sentences: of a table, its header and its first rows."""
    first = chunk.embedded_positions()[:_OPENING_SENTENCES]
    return _make_excerpt(chunk, _expand(chunk, first[:1]) | {*first}, first)


def for_read(
    chunks: Sequence[Chunk],
    similarities: Mapping[str, Mapping[str, Mapping[int, float]]],
    held: Mapping[str, Collection[int]],
) -> dict[str, Excerpt]:
    """Choose the passages of chunks that are near to queries, and rows of tables whose labels are in them.

    The best new passage of each chunk comes first; then the best ones for each query in turn, until there are enough.
    The similarities are by query, chunk id and position; what the reader holds already, by chunk id, is not shown.

    Returns:
        The excerpts by chunk id; without sentences for a chunk that is far from every query.
    """
    room = _READ_CHARACTERS + _READ_CHARACTERS_PER_QUERY * len(similarities)
    room = min(room, sum(len(chunk.text) for chunk in chunks) // 2)
    # A label may have a comma, at which the queries were cut.
    rows = {chunk.id: _find_rows(chunk, [*similarities, " ".join(similarities)]) for chunk in chunks}
    known = {chunk.id: set(held.get(chunk.id, ())) for chunk in chunks}
    matched = {chunk.id: set(rows[chunk.id]) for chunk in chunks}
    shown = {chunk.id: _expand(chunk, rows[chunk.id]) for chunk in chunks}
    ranked = [_rank(chunks, rated, query) for query, rated in similarities.items()]
    turns = [place for places in zip_longest(*ranked) for place in places if place is not None]
    firsts: dict[str, tuple[Chunk, int]] = {}
    for chunk, position in turns:
        if position not in known[chunk.id]:
            firsts.setdefault(chunk.id, (chunk, position))
    for chunk, position in (*firsts.values(), *turns):
        if room < 0:
            break
        new = _expand(chunk, [position], window=not rows[chunk.id]) - shown[chunk.id] - known[chunk.id]
        room -= sum(len(chunk.sentence_text(p)) for p in new)
        matched[chunk.id].add(position)
        shown[chunk.id] |= new
    return {c.id: _make_excerpt(c, shown[c.id] - known[c.id], matched[c.id], longest=_READ_CHARACTERS) for c in chunks}


# --- context ---


def _expand(chunk: Chunk, anchors: Collection[int], *, is_subject: bool = False, window: bool = False) -> set[int]:
    """Add to sentences those that make them understandable.

    A short document is shown whole if it is the subject, or if little is missing. A row of a table has its header. In a
    part of a long document, a window has the sentence before and the two after. Else the sentence before is added if
    it names the subject, and the one after if it goes on about the same or comes below a heading.
    """
    if anchors and _is_short(chunk):
        missing = sum(s.end - s.start for p, s in enumerate(chunk.sentences) if p not in anchors)
        if is_subject or missing <= _MAX_MISSING_CHARACTERS:
            return set(range(len(chunk.sentences)))
    shown = set(anchors)
    for anchor in anchors:
        if _ROW.search(_sentence(chunk, anchor)):
            shown.add(_find_header(chunk, anchor))
            continue
        before, after = 1, 2
        if not window or chunk.whole:
            before = _lacks_subject(chunk, anchor)
            after = not chunk.sentences[anchor].embedded or _lacks_subject(chunk, anchor + 1)
        shown.update(range(max(0, anchor - before), min(anchor + after + 1, len(chunk.sentences))))
    return shown


def _lacks_subject(chunk: Chunk, position: int) -> bool:
    return position < len(chunk.sentences) and bool(_WITHOUT_SUBJECT.match(_sentence(chunk, position)))


def _is_short(chunk: Chunk) -> bool:
    """Return whether a chunk is a whole, short document; its title, which is shown anyway, does not count."""
    return chunk.whole and len(without_title(chunk.text, chunk.title)) <= _MAX_SHORT_CHARACTERS


# --- what matches ---


def _find_keywords(chunk: Chunk, keywords: Sequence[str], whole_words: Sequence[str]) -> dict[int, dict[str, int]]:
    """Return where a chunk holds keywords and words: by position, the offset of each in the folded sentence.

    A keyword that stands across several sentences is in each of them.
    """
    borders = [*(sentence.start for sentence in chunk.sentences), len(chunk.text)]
    pieces = [chunk.text[start:end] for start, end in pairwise(borders)]
    texts = [searchable(piece) + " " * piece[-1:].isspace() for piece in pieces]
    starts = [0, *accumulate(map(len, texts))]
    patterns = {word: rf"\b{re.escape(searchable(word))}\b" for word in whole_words}
    patterns |= {keyword: re.escape(searchable(keyword)) for keyword in keywords}
    matches: dict[int, dict[str, int]] = {}
    for keyword, pattern in patterns.items():
        for match in re.finditer(pattern, "".join(texts)):
            for position in range(bisect_right(starts, match.start()) - 1, bisect_right(starts, match.end() - 1)):
                offset = max(0, match.start() - starts[position])
                matches.setdefault(position, {}).setdefault(keyword, offset)
    return matches


def _rate(chunk: Chunk, similarities: Mapping[int, float], query: str) -> dict[int, float]:
    """Return the similarities, raised for words of the query that are rare in the chunk, without those of its title."""
    lowered = lower(chunk.text)
    texts = [lowered[sentence.start : sentence.end] for sentence in chunk.sentences]
    rare: Counter[int] = Counter()  # words, by sentence
    for word in _long_words(query) - _long_words(bare_title(chunk.title)):
        holding = [p for p, text in enumerate(texts) if word in text and word in words(text)]
        rare.update(holding if len(holding) <= _MAX_RARE_SENTENCES else [])
    return {
        p: similarity + RARE_WORD_BONUS * min(2, rare[p])
        for p, similarity in similarities.items()
        if p < len(texts)  # the chunk may have been replaced after it was rated
    }


def _rank(
    chunks: Sequence[Chunk], similarities: Mapping[str, Mapping[int, float]], query: str
) -> list[tuple[Chunk, int]]:
    """Return the sentences that are near to a query, the best first."""
    least = max((s for rated in similarities.values() for s in rated.values()), default=0.0) - PASSAGE_GAP
    ranks = [
        (-similarity, number, position)
        for number, chunk in enumerate(chunks)
        for position, similarity in _rate(chunk, similarities.get(chunk.id, {}), query).items()
        if similarity >= least
    ]
    return [(chunks[number], position) for _, number, position in sorted(ranks)]


def find_rarest(text: str, query: str) -> re.Match[str] | None:
    """Return the first place in a text of that word of a query that it has least often; None if it has none."""
    asked = _long_words(query)
    places = [match for match in re.finditer(r"\w+", text) if match[0].lower() in asked]
    counts = Counter(match[0].lower() for match in places)
    # Of words that are as rare, a long one tells more.
    return min(places, key=lambda match: (counts[match[0].lower()], -len(match[0])), default=None)


def _long_words(text: str) -> set[str]:
    """Return the words of a text that have three characters or more."""
    return {word for word in words(text) if len(word) > 2}


# --- rows of tables ---


def is_row_of(text: str, keyword: str) -> bool:
    """Return whether a text is the row of a table with this label, which may go on in brackets or after a comma."""
    label, name = _row_label(text), searchable(keyword)
    return label == name or label.startswith((f"{name} (", f"{name}, "))


def _row_label(text: str) -> str:
    """Return the label of a table's row, in lower case, or an empty string for other texts."""
    if not _ROW.search(text):
        return ""
    named = _NAMED_ROW.match(text)
    return (named[1] if named else text.partition(CELL_BOUNDARY)[0]).lower().strip("$: ")


def _find_header(chunk: Chunk, row: int) -> int:
    """Return the position of the header of a row's table, or the row's own if the chunk does not hold it."""
    header = chunk.sentences[row].header
    above = range(row, -1, -1) if header else ()
    return next((p for p in above if _sentence(chunk, p).strip("| ") == header), row)


def _find_rows(chunk: Chunk, queries: Sequence[str]) -> set[int]:
    """Return the positions of the table rows most of whose label is in a query, at most four for each.

    Those with more words of it come first, then those with nothing else, and at last repetitions of a label.
    """
    if CELL_BOUNDARY not in chunk.text:
        return set()
    labels = {p: _row_label(chunk.sentence_text(p)) for p in range(len(chunk.sentences))}
    stems = {position: _stems(label) for position, label in labels.items() if label}
    rows: set[int] = set()
    for query in queries:
        asked, seen, ranks = _stems(query), Counter[str](), []
        for position, label in stems.items():
            shared = len(label & asked)
            if shared > _ROW_SHARE * len(label):
                seen[labels[position]] += 1
                ranks.append((seen[labels[position]], -shared, len(label), position))
        rows.update(rank[-1] for rank in sorted(ranks)[:_MAX_ROWS])
    return rows


def _stems(text: str) -> set[str]:
    return {word.removesuffix("s") for word in _long_words(text)}


# --- the excerpt ---


def _make_excerpt(
    chunk: Chunk,
    shown: Collection[int],
    matched: Collection[int],
    *,
    similarities: Mapping[int, float] | None = None,
    offsets: Mapping[int, int] | None = None,
    longest: int = _MAX_SENTENCE_CHARACTERS,
) -> Excerpt:
    """Make an excerpt of some sentences, each of at most `longest` characters around an offset."""
    positions, last = sorted(shown), len(chunk.sentences) - 1
    if not positions:
        return Excerpt(chunk.title, (), begins=False, ends=False, whole=False)
    is_complete = len(positions) == len(chunk.sentences)
    longest = _MAX_SHORT_CHARACTERS if is_complete and _is_short(chunk) else longest
    sentences = []
    for position in positions:
        whole = _sentence(chunk, position)
        text = cut_around(whole, (offsets or {}).get(position, 0), longest)
        similarity = (similarities or {}).get(position) if position in matched else None
        under = _find_place(chunk, position)
        sentences.append(ShownSentence(position, text, position in matched, similarity, text != whole, under))
    return Excerpt(
        chunk.title,
        tuple(sentences),
        begins=positions[0] == int(positions[0] > 0 and is_title(chunk.sentence_text(0), chunk.title)),
        ends=positions[-1] == last,
        whole=chunk.whole and is_complete and not any(sentence.cut for sentence in sentences),
    )


def _find_place(chunk: Chunk, position: int) -> tuple[str, ...]:
    """Return the headings that a sentence stands under, and the header of its table if the chunk does not hold it."""
    sentence = chunk.sentences[position]
    header = sentence.header if _find_header(chunk, position) == position else ""
    return tuple(filter(None, [*sentence.heading.split(HEADING_BOUNDARY)[-_MAX_HEADINGS:], header]))


def cut_around(text: str, offset: int, longest: int) -> str:
    """Cut a text, at spaces, to about so many characters around an offset; `…` stands for what is left out."""
    if len(text) <= longest:
        return text
    start = max(0, min(offset - longest // 3, len(text) - longest))
    if start > 0:
        start = text.find(" ", start, offset) + 1 or start
    end = start + longest
    if end < len(text):
        space = text.rfind(" ", offset + 1, end)
        end = space if space > end - 40 else end
    return f"{CUT if start > 0 else ''}{text[start:end].strip()}{CUT if end < len(text) else ''}"


def _sentence(chunk: Chunk, position: int) -> str:
    """Return a sentence as it is shown, on one line."""
    return collapse_whitespace(chunk.sentence_text(position))
