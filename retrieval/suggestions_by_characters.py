"""The closest terms for keywords in scripts that do not separate words, or join endings to them.

Chinese and Japanese have no spaces, and Korean joins particles to words: the words of the corpus, which are what stands
between spaces and marks, are whole clauses there. So terms are found by the characters that they share.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from rapidfuzz import fuzz

from arag.retrieval.backend import Chunks, Keywords
from arag.retrieval.text import EAST_ASIAN, fold
from arag.retrieval.types import Term

_MAX_UNITS = 16  # characters of a keyword, a word of another script counting as one
_CHUNKS_LOOKED_AT = 20  # for similar terms
_SIMILAR = 66.0  # rapidfuzz ratio, 0 to 100: two characters of three
_SIMILAR_KANA = 75.0  # kana are few
_MAX_SIMILAR = 2
_MARKS = " ,.;:!?()[]#、。，；：！？「」『』（）《》“”·・"
_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}

_UNIT = re.compile(f"[{EAST_ASIAN}]|[^\\W_{EAST_ASIAN}]+")
_KANA = re.compile("[\u3040-\u30ff]+")
_JOINED = re.compile("[a-z0-9]{2}|[\u30a1-\u30fc]{2}")  # no term begins or ends between two such characters
_GAPS = re.compile(r"\s+")


def find_other_widths(keyword: str, keywords: Keywords) -> list[Term]:
    """Find a keyword in other forms of the same characters: half or full width, without spaces."""
    normal = unicodedata.normalize("NFKC", keyword)
    forms = dict.fromkeys([normal, normal.translate(_FULL_WIDTH), _GAPS.sub("", normal)])
    others = [form for form in forms if form.lower() != keyword.lower()]
    counts = keywords.chunks_holding(others)
    return [Term(form, count, respelled=True) for form, count in zip(others, counts, strict=True) if count]


def find_by_characters(keyword: str, most: int, keywords: Keywords, chunks: Chunks) -> list[Term]:
    """Find terms that share most characters with a keyword that no chunk holds, and the longest parts of it.

    Both are looked for in the chunks that hold most pairs of its characters.

    Args:
        keyword: The keyword, white space folded.
        most: A part of the keyword that more chunks hold is too common to help.
        keywords: Finds the chunks that hold parts of the keyword.
        chunks: Their texts.

    Returns:
        The most similar terms, then parts of the keyword, the longest first.
    """
    units = [match.span() for match in _UNIT.finditer(keyword)]
    if not 2 <= len(units) <= _MAX_UNITS:
        return []
    pairs = [keyword[units[i][0] : units[i + 1][1]] for i in range(len(units) - 1)]
    # In a name of three characters, the one in the middle may be wrong.
    ends = [keyword[slice(*units[0])], keyword[slice(*units[-1])]] if len(units) == 3 else []
    ranking = keywords.rank(list(dict.fromkeys([*pairs, *ends])), _CHUNKS_LOOKED_AT, by_coverage=True)
    found = chunks.numbered([ranked.number for ranked in ranking.chunks])
    texts = [fold(chunk.text) for chunk in found.values()]
    term = keyword[units[0][0] : units[-1][1]].lower()
    similar: dict[str, float] = {}
    if len(units) > 2:
        for spelled, score in (_find_similar(term, text) for text in texts):
            if spelled.lower() not in term:
                similar[spelled] = max(score, similar.get(spelled, 0.0))
    best = sorted(similar, key=lambda spelled: (-similar[spelled], spelled))[:_MAX_SIMILAR]
    parts = dict.fromkeys(_find_parts(keyword, units, "\n".join(texts).lower()))
    others = [part for part in parts if not any(part in spelled for spelled in best)]
    counts = dict(zip([*best, *others], keywords.chunks_holding([*best, *others]), strict=True))
    terms = [Term(spelled, counts[spelled]) for spelled in best]
    few = [Term(part, counts[part]) for part in others if 0 < counts[part] <= most]
    return terms + sorted(few, key=lambda term: (-len(term.text), term.chunks, term.text))


def _find_similar(term: str, text: str) -> tuple[str, float]:
    """Return the part of a text that is most like a term in lower case, and the similarity; or an empty string."""
    lowered = text.lower()
    text = text if len(lowered) == len(text) else lowered
    least = _SIMILAR_KANA if _KANA.fullmatch(term) else _SIMILAR
    found = fuzz.partial_ratio_alignment(term, lowered, score_cutoff=least) if len(term) <= len(text) else None
    if found is None:
        return "", 0.0
    start, end = found.dest_start, found.dest_end
    # It is as long as the term, but may lie a little before or after what is meant.
    if lowered[start] != term[0] and lowered[end - 1] != term[-1]:
        moved = next(i for i in range(start, end) if lowered[i] in term) - start
        start, end = start + moved, min(end + moved, len(text))
        last = next(i for i in range(end - 1, start - 1, -1) if lowered[i] in term) + 1
        end = end if end - last == 1 and lowered[last].isalnum() else last  # one wrong character at the end
    while start > 0 and (lowered[start - 1] in term or _JOINED.match(lowered, start - 1)):
        start -= 1
    while end < len(text) and (lowered[end] in term or _JOINED.match(lowered, end - 1)):
        end += 1
    return text[start:end].strip(_MARKS), found.score


def _find_parts(keyword: str, units: list[tuple[int, int]], texts: str) -> Iterator[str]:
    """Yield the longest part of a keyword that texts hold, and those of what is left before and after it."""
    for length in range(len(units), 1, -1):
        for i in range(len(units) - length + 1):
            part = keyword[units[i][0] : units[i + length - 1][1]]
            if part.lower() in texts:
                if length > 2 or not _KANA.fullmatch(part):  # two kana are rarely a word
                    yield part
                yield from _find_parts(keyword, units[:i], texts)
                yield from _find_parts(keyword, units[i + length :], texts)
                return
