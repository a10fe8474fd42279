"""A chunk's sentences as they are shown, each on one line."""

from __future__ import annotations

from arag.retrieval.types import Chunk
from arag.text.normalise import CUT, collapse_whitespace

_MAX_TRIMMED_CHARACTERS = 40  # that are given up at the end of a cut text to end it at a space


def sentence_line(chunk: Chunk, position: int) -> str:
    """Return the sentence at a position, on one line."""
    return collapse_whitespace(chunk.sentence_text(position))


def cut_around(text: str, offset: int, longest: int) -> str:
    """Cut a text, at spaces, to about `longest` characters around an offset; `…` marks what is left out."""
    if len(text) <= longest:
        return text
    start = max(0, min(offset - longest // 3, len(text) - longest))
    if start > 0:
        start = text.find(" ", start, offset) + 1 or start
    end = start + longest
    if end < len(text):
        space = text.rfind(" ", offset + 1, end)
        if space > end - _MAX_TRIMMED_CHARACTERS:
            end = space
    before = CUT if start > 0 else ""
    after = CUT if end < len(text) else ""
    return f"{before}{text[start:end].strip()}{after}"
