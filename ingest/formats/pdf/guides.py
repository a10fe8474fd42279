"""Finds the guide words of the pages of a PDF: heads that differ on every page, and repeat what stands below them.

A dictionary names a page's first and last entries, a manual the chapter and the section.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

from arag.ingest.formats.pdf.edges import MIN_PAGES, Edge
from arag.ingest.formats.pdf.outline import SECTION_NUMBER
from arag.ingest.formats.typography import LARGER, Line

_OUTERMOST = (0, -1)  # ranks of the lines at the edge of a page
_WORD = re.compile(r"[^\W_]+")
_CUT_OFF = ("…", "⋯", "...")
_MOSTLY = 0.9  # share of the lines at a place


def find_guides(
    groups: Iterable[Sequence[Edge]],
    pages: Sequence[Sequence[Line]],
    headings: Mapping[str, float],
) -> list[Edge]:
    """Return the lines that are guide words. Nothing is lost with them.

    Args:
        groups: The lines of one type at the same place of their pages.
        pages: The lines of each page.
        headings: The document's headings, for comparison, and their sizes.
    """
    found: list[Edge] = []
    for group in groups:
        edges = list(filter(_may_be_guide, group))
        min_pages = max(MIN_PAGES, len(pages) / 2)
        if len(edges) < min_pages:
            continue
        constant = _constant_texts(edges)
        guides: list[Edge] = []
        beside_constant: list[Edge] = []
        for edge in edges:
            if _repeats(edge, pages[edge.page], headings):
                guides.append(edge)
            elif _is_beside_constant(edge, constant, headings):
                beside_constant.append(edge)
        if len(guides) + len(beside_constant) >= _MOSTLY * len(edges):
            found += guides
            found += beside_constant[1:]  # the first one has the constant text, which may be nowhere else
    return found


def _may_be_guide(edge: Edge) -> bool:
    return edge.rank in _OUTERMOST and comparable(edge.text) != ""


def _repeats(edge: Edge, page: Iterable[Line], headings: Mapping[str, float]) -> bool:
    """Return whether a line consists of two texts that are headings, or begin other lines of its page.

    One such text is enough if the page's number is beside it, or if it is a heading in larger type.
    """
    if repeats_heading(edge, headings):
        return True
    if comparable(edge.line.text) in headings:
        return False
    starts: list[list[str]] = []
    for line in page:
        if line is not edge.line:
            starts.append(_words(line.text))

    def is_repeated(text: str) -> bool:
        if is_heading(text, headings):
            return True
        words = _words(text)
        return any(start[: len(words)] == words for start in starts)

    if edge.has_number and is_repeated(edge.text):
        return True
    return any(is_repeated(left) and is_repeated(right) for left, right in _divide(edge.text))


def _is_beside_constant(edge: Edge, constant: Collection[str], headings: Collection[str]) -> bool:
    """Return whether a line consists of a heading and of a text that most lines at its place have."""
    pairs = _divide(edge.text)
    pairs += [(right, left) for left, right in pairs]
    return any(comparable(text) in constant and is_heading(other, headings) for text, other in pairs)


def _constant_texts(edges: Sequence[Edge]) -> set[str]:
    """Return the texts with which most lines at a place begin or end, such as the title of the book."""
    counts = Counter[str]()
    for edge in edges:
        parts = chain.from_iterable(_divide(edge.text))
        counts.update(set(map(comparable, parts)))
    return {text for text, lines in counts.items() if 2 * lines > len(edges)}


def _divide(text: str) -> list[tuple[str, str]]:
    """Return the two parts of a text for each place between its words."""
    places = [match.start() for match in _WORD.finditer(text)]
    return [(text[:place], text[place:]) for place in places[1:]]


def repeats_heading(edge: Edge, headings: Mapping[str, float]) -> bool:
    """Return whether the text of a line is a heading, in larger type than the line."""
    sizes = [headings.get(name, 0.0) for name in names(edge.text)]
    return max(sizes, default=0.0) > LARGER * edge.line.size


def is_heading(text: str, headings: Collection[str]) -> bool:
    """Return whether a text is a heading, with its number or without it; a head may cut a long one off."""
    found = names(text)
    if not found.isdisjoint(headings):
        return True
    if not text.rstrip().endswith(_CUT_OFF):
        return False
    beginnings = tuple(found)
    return any(heading.startswith(beginnings) for heading in headings)


def names(text: str) -> set[str]:
    """Return a title for comparison, with the number of its section and without it."""
    without_number = SECTION_NUMBER.sub("", text)
    return {comparable(text), comparable(without_number)} - {""}


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def comparable(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return "".join(_words(text))
