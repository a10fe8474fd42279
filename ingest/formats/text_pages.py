"""Pages of a plain text for a printer, with heads and feet: form feeds divide them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from arag.ingest.formats.pdf.edges import find_edges
from arag.ingest.formats.pdf.running import without_running_lines
from arag.ingest.formats.typography import Line

_PITCH = 12.0  # points from line to line
_HEIGHT = 8.0
_EDGE_SIZE = 1.0  # points: a smaller type for the first and the last lines, up to a blank one, as of heads and feet
_SIZE = 2.0
_TOP = 1_000_000.0  # higher than any page


def without_running_heads(pages: Sequence[str]) -> list[str]:
    """Leave out page numbers, and heads and feet except on the first page that has them, as in a PDF.

    Without page numbers, the form feeds may divide records, whose common lines must stay.
    """
    placed = list(map(_place_lines, pages))
    edges = filter(attrgetter("has_number"), find_edges(placed))
    numbered = set(map(attrgetter("page"), edges))
    if 2 * len(numbered) < len(pages):
        return list(pages)
    return ["\n".join(map(attrgetter("text"), lines)) for lines in without_running_lines(placed)]


def _place_lines(page: str) -> list[Line]:
    """Return lines with their places: in the upper half from the top, and in the lower one from the bottom."""
    texts = page.split("\n")
    blank = [number for number, text in enumerate(texts) if not text.strip()]
    first_blank = min(blank, default=0)
    last_blank = max(blank, default=len(texts))
    lines: list[Line] = []
    for number, text in enumerate(texts):
        size = _SIZE
        if number < first_blank or number > last_blank:
            size = _EDGE_SIZE
        from_end = len(texts) - number
        bottom = from_end * _PITCH
        is_upper = number < from_end
        if is_upper:
            bottom = _TOP - number * _PITCH
        line = Line(
            text,
            size=size,
            bottom=bottom,
            top=bottom + _HEIGHT,
        )
        lines.append(line)
    return lines
