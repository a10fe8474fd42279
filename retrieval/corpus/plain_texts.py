"""Finds the lines that hold one of some plain texts: what most patterns are.

RE2 gives one match after another, each as an object: for a word in 2,500,000 lines that is most of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.corpus.pattern_parts import Part

_MAX_TEXTS = 20  # each is looked for by itself: RE2 finds more at once
# What RE2 matches with letters of ASCII where case is ignored: "ſ", and the Kelvin sign.
_OTHER_FORMS = {b"s": "ſ".encode(), b"k": "\u212a".encode()}


@dataclass(frozen=True, slots=True)
class PlainTexts:
    """Texts that are alternatives, in UTF-8; in lower case, if case is ignored."""

    texts: tuple[bytes, ...]
    ignore_case: bool

    def knows(self, block: bytes) -> bool:
        """Return whether a block has no other forms of the texts' letters."""
        if not self.ignore_case:
            return True
        letters = b"".join(self.texts)
        return not any(letter in letters and form in block for letter, form in _OTHER_FORMS.items())

    def find_lines(self, block: bytes, newlines: NDArray[np.int64]) -> list[int]:
        """Return the numbers of a block's lines that hold one of the texts, given the places of its newlines."""
        searched = np.frombuffer(block.lower() if self.ignore_case else block, np.uint8)
        holds = np.zeros(len(newlines), np.bool_)
        for text in self.texts:
            holds[np.searchsorted(newlines, _find_all(searched, text))] = True
        numbers: list[int] = np.flatnonzero(holds).tolist()
        return numbers


def find_plain_texts(parts: Sequence[Part], *, ignore_case: bool) -> PlainTexts | None:
    """Return the texts that a pattern is alternatives of, or None if it is something else.

    If case is ignored, all are of ASCII: there are few other forms of its letters.
    """
    texts = [""]
    for part in parts:
        if part.kind == "or":
            texts.append("")
        elif part.letter and part.letter != "\n":
            texts[-1] += part.letter
        else:
            return None
    if not all(texts) or len(texts) > _MAX_TEXTS:
        return None
    if ignore_case and not "".join(texts).isascii():
        return None
    encoded = [text.encode() for text in texts]
    if ignore_case:
        encoded = [text.lower() for text in encoded]
    return PlainTexts(tuple(encoded), ignore_case)


def _find_all(block: NDArray[np.uint8], text: bytes) -> NDArray[np.int64]:
    """Return where a text begins in a block; the places may overlap."""
    size = max(0, len(block) - len(text) + 1)
    is_start = block[:size] == text[0]
    if len(text) > 1:
        is_start &= block[1 : size + 1] == text[1]
    places = np.flatnonzero(is_start)
    for offset in range(2, len(text)):
        if not len(places):
            break
        places = places[block[places + offset] == text[offset]]
    return places
