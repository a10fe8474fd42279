"""Finds where the paragraphs of a page of a PDF begin, which a text does not say where a word begins small."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from arag.ingest.boundaries import CLOSERS
from arag.ingest.formats.typography import Line
from arag.text.normalise import CELL_BOUNDARY

_PARAGRAPHS = re.compile(rf"[.!?…][{re.escape(CLOSERS)}]*\n\D")  # a number may be that of a page's head
_ITEM = re.compile(r"\[|\W|\S{1,4}[.)]\s")  # its further lines are set in
_APART = 1.3  # times the usual pitch of lines: a gap
_INDENT = 0.8  # times the size of the type


def mark_paragraphs(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of a page, with those marked, too, that begin a paragraph below a line that ends a sentence.

    There is a gap above such a line, or it is set in, or the line above is set in more.
    """
    pitches = Counter(round(line.bottom - below.bottom) for line, below in pairwise(lines))
    usual_pitch = max(pitches, key=lambda pitch: pitches[pitch], default=0)
    marked = list(lines[:1])
    for line, below in pairwise(lines):
        is_below = line.bottom > below.bottom
        is_paragraph = is_below and _ends_paragraph(line, below) and _is_apart(line, below, usual_pitch)
        marked.append(below._replace(begins_paragraph=is_paragraph or below.begins_paragraph))
    return marked


def _ends_paragraph(line: Line, below: Line) -> bool:
    """Return whether a line ends a sentence though the next one begins small, and neither is a row of a table."""
    if below.text[:1].isupper():
        return False
    texts = f"{line.text}\n{below.text}"
    return CELL_BOUNDARY not in texts and _PARAGRAPHS.search(texts) is not None


def _is_apart(line: Line, below: Line, usual_pitch: float) -> bool:
    indent = below.left - line.left
    min_indent = _INDENT * line.size
    if abs(indent) > min_indent:
        is_further_line = indent > 0 and _ITEM.match(line.text) is not None
        return not is_further_line
    return line.bottom - below.bottom > _APART * usual_pitch
