"""Finds the guide words of the pages of a PDF: heads that differ on every page, and repeat what stands below them.

A dictionary names a page's first and last entries, a manual the chapter and the section.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from arag.ingest.formats.headings import Line
from arag.ingest.formats.pdf.edges import MIN_PAGES, Edge

_OUTERMOST = (0, -1)  # ranks of the lines at the edge of a page
_WORD = re.compile(r"[^\W_]+")
_MOSTLY = 0.9  # share of the lines at a place


def find_guides(
    groups: Iterable[Sequence[Edge]],
    pages: Sequence[Sequence[Line]],
    headings: Collection[str],
) -> list[Edge]:
    """Return the lines that are guide words. Nothing is lost with them.

    Args:
        groups: The lines of one type at the same place of their pages.
        pages: The lines of each page.
        headings: The document's headings, for comparison.
    """
    found: list[Edge] = []
    for group in groups:
        edges = list(filter(_may_be_guide, group))
        is_on_few_pages = 2 * len(edges) < len(pages)
        if is_on_few_pages or len(edges) < MIN_PAGES:
            continue
        guides: list[Edge] = []
        for edge in edges:
            if _repeats(edge, pages[edge.page], headings):
                guides.append(edge)
        if len(guides) >= _MOSTLY * len(edges):
            found += guides
    return found


def _may_be_guide(edge: Edge) -> bool:
    return edge.rank in _OUTERMOST and not edge.is_number and comparable(edge.text) != ""


def _repeats(edge: Edge, page: Iterable[Line], headings: Collection[str]) -> bool:
    """Return whether a line consists of two texts that are headings, or begin other lines of its page.

    One such text is enough if the page's number is beside it.
    """
    if comparable(edge.line.text) in headings:
        return False
    starts: list[list[str]] = []
    for line in page:
        if line is not edge.line:
            starts.append(_words(line.text))

    def is_repeated(words: list[str]) -> bool:
        if "".join(words) in headings:
            return True
        return any(start[: len(words)] == words for start in starts)

    words = _words(edge.text)
    if edge.has_number and is_repeated(words):
        return True
    places = range(1, len(words))
    return any(is_repeated(words[:place]) and is_repeated(words[place:]) for place in places)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def comparable(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return "".join(_words(text))
