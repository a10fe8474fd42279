"""The sentences around a match that make it understandable."""

from __future__ import annotations

import re
from collections.abc import Collection

from arag.retrieval.presentation.rows import find_header, is_row
from arag.retrieval.types import Chunk
from arag.text.normalise import collapse_whitespace, without_title

MAX_SHORT_CHARACTERS = 700  # of a document that may be shown whole

_MAX_MISSING_CHARACTERS = 100  # of a short document: if no more is missing, it is shown whole
_WINDOW = (1, 2)  # sentences before and after a match in a part of a long document
# A sentence that begins like this refers to something named before it.
_WITHOUT_SUBJECT = re.compile(
    r"[\"'“‘«(\[\s]*(?:(?:He|She|It|They|His|Her|Hers|Its|Their|Him|Them|This|These|Those|That|Such|Both|"
    r"Neither|Here|There|The (?:former|latter|same|other|two))\b"
    r"|他|她|它|其|这|那|该|此)"
)


def expand(chunk: Chunk, anchors: Collection[int], *, is_subject: bool = False, window: bool = False) -> set[int]:
    """Add to sentences, given by position, those that make them understandable.

    A short document is shown whole if it is the subject, or if little is missing. A row of a table gets its header.
    Other sentences get the one before if it names the subject, and the one after if it continues the topic or follows
    a heading; with `window`, in a part of a long document, one before and two after in any case.
    """
    if anchors and is_short(chunk):
        missing = 0
        for position, sentence in enumerate(chunk.sentences):
            if position not in anchors:
                missing += sentence.end - sentence.start
        if is_subject or missing <= _MAX_MISSING_CHARACTERS:
            return set(range(len(chunk.sentences)))
    shown = set(anchors)
    for anchor in anchors:
        if is_row(collapse_whitespace(chunk.sentence_text(anchor))):
            shown.add(find_header(chunk, anchor))
            continue
        before, after = _find_reach(chunk, anchor, window=window and not chunk.whole)
        shown.update(range(max(0, anchor - before), min(anchor + after + 1, len(chunk.sentences))))
    return shown


def is_short(chunk: Chunk) -> bool:
    """Return whether a chunk is a whole, short document; its title, which is shown anyway, does not count."""
    return chunk.whole and len(without_title(chunk.text, chunk.title)) <= MAX_SHORT_CHARACTERS


def _find_reach(chunk: Chunk, anchor: int, *, window: bool) -> tuple[int, int]:
    """Return how many sentences before and after a match are shown."""
    if window:
        return _WINDOW
    before = 1 if _lacks_subject(chunk, anchor) else 0
    is_heading = not chunk.sentences[anchor].embedded
    after = 1 if is_heading or _lacks_subject(chunk, anchor + 1) else 0
    return before, after


def _lacks_subject(chunk: Chunk, position: int) -> bool:
    if position >= len(chunk.sentences):
        return False
    return _WITHOUT_SUBJECT.match(collapse_whitespace(chunk.sentence_text(position))) is not None
