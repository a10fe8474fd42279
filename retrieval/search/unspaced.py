"""Keywords in scripts without spaces between words: where a phrase is not found as a whole, its parts are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from arag.retrieval.storage.contract import View
from arag.retrieval.types import Chunk
from arag.text.normalise import searchable
from arag.text.scripts import KATAKANA, UNSPACED

_PHRASE = re.compile(f"[{UNSPACED}]{{4,16}}")  # shorter ones have one part; of longer ones, too many would be counted
_KATAKANA = re.compile(f"[{KATAKANA}]+")
_CHUNKS_LOOKED_AT = 50  # to find a word
_MIN_PART = 2  # characters: one alone is found everywhere


def find_phrase_parts(keyword: str, view: View) -> list[str]:
    """Return the longest parts of a phrase that the corpus has, in order; none if it is not written without spaces.

    Of words in katakana, such as スクリーンショット, a part is a word of the corpus: other pieces of them mean nothing.
    """
    phrase = searchable(keyword)
    if not _PHRASE.fullmatch(phrase):
        return []
    parts: list[str] = []
    for length in range(_MIN_PART, len(phrase)):
        parts += [phrase[start : start + length] for start in range(len(phrase) - length + 1)]
    distinct = list(dict.fromkeys(parts))
    counts = dict(zip(distinct, view.count_chunks(distinct), strict=True))
    for word in _KATAKANA.findall(phrase):
        pieces = [part for part in distinct if counts[part] and part in word and part != word]
        for piece in set(pieces) - _find_words(pieces, view):
            counts[piece] = 0
    return _split(phrase, counts)


def _find_words(pieces: Sequence[str], view: View) -> set[str]:
    """Return the pieces in katakana that a chunk has with no other katakana before or behind them."""
    chunks_of = view.chunks_holding([[piece] for piece in pieces], _CHUNKS_LOOKED_AT)
    found: set[str] = set()
    for piece, chunks in zip(pieces, chunks_of, strict=True):
        whole = re.compile(f"(?<![{KATAKANA}]){re.escape(piece)}(?![{KATAKANA}])")
        if any(whole.search(searchable(chunk.text)) for chunk in chunks.values()):
            found.add(piece)
    return found


def _split(phrase: str, counts: Mapping[str, int]) -> list[str]:
    """Return the longest part that occurs, between the parts of what is before and behind it."""
    for length in range(len(phrase) - 1, _MIN_PART - 1, -1):
        for start in range(len(phrase) - length + 1):
            part = phrase[start : start + length]
            if counts.get(part):
                behind = start + length
                return [*_split_rest(phrase[:start], counts), part, *_split_rest(phrase[behind:], counts)]
    return []


def _split_rest(rest: str, counts: Mapping[str, int]) -> list[str]:
    if len(rest) >= _MIN_PART and counts.get(rest):
        return [rest]
    return _split(rest, counts)


def choose_nearest(chunks: Mapping[int, Chunk], parts: Sequence[str], most: int) -> dict[int, Chunk]:
    """Return the chunks in which the parts of a phrase stand closest together, by row id."""

    def distance(row_id: int) -> int:
        text = searchable(chunks[row_id].text)
        first = text.find(parts[0])
        return max(abs(text.find(part) - first) for part in parts)

    nearest = sorted(chunks, key=distance)[:most]
    return {row_id: chunks[row_id] for row_id in nearest}
