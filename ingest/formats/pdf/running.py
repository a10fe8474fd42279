"""Leaves out the heads, the feet and the numbers of the pages of a PDF."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, compress, groupby, pairwise

from arag.ingest.formats.pdf.bold import usual_size
from arag.ingest.formats.pdf.edges import MAX_PITCH, MIN_PAGES, Beside, Edge, Place, find_edges, min_feet
from arag.ingest.formats.pdf.guides import comparable, find_guides, is_heading, names, repeats_heading
from arag.ingest.formats.typography import LARGER, Line
from arag.text.normalise import CELL_BOUNDARY

_INNER_RANKS = {1, -2}
_PLACE = 3.0  # points: lines that are nearer are at the same place of their pages
_NEAR_HEADING = 1.8  # times the height of the type: a heading is nearer to its text, a running head farther off
_FAR = 4.0  # times the height of the type: text is nearer to the line above it
_MAX_VARIANTS = 0.05  # share of pages that may have another text at the place of a running line
_LINE_PITCH = 1.5  # times the height of the type, between the lines of one head
_MIN_RUN = 2  # pages of a chapter, on average

_NAME_ENDS = (":", "：")


def without_running_lines(pages: Sequence[Sequence[Line]], titles: Iterable[str] = ()) -> list[list[Line]]:
    """Leave out page numbers, and heads and feet except on the first page that has them.

    A line is a head or a foot if it is at the same place of most pages, or of most pages on the left or on the right,
    and no page has another text there. One that changes with the chapter must be a heading of the document, too, or
    have the page's number beside it. Headings with their text below them and rows of tables are none. Guide words are
    left out, too: see `find_guides`.

    Args:
        pages: The lines of each page.
        titles: The entries of the document's outline.
    """
    edges = find_edges(pages)
    headings = _headings(pages, titles)
    found: list[Edge] = []
    groups = _group_by_place(edges)
    with_text = list(compress(range(len(pages)), pages))  # others may be scanned
    for group in groups:
        found += _find_running(group, with_text, headings)
    found += _find_further_lines(found, edges)
    left_out = _choose(found, pages, headings)
    without_numbers = {edge.place: edge.text.strip(CELL_BOUNDARY) for edge in found}
    guides = {edge.place for edge in find_guides(groups, pages, headings)}
    left_out |= guides - without_numbers.keys()
    left_out |= _find_small_heads(edges, pages)
    kept: list[list[Line]] = []
    for number, page in enumerate(pages):
        lines: list[Line] = []
        for position, line in enumerate(page):
            is_heading = line.level > 0  # that the outline names: the section above it ends there
            if (number, position) in left_out and not is_heading:
                continue
            text = without_numbers.get((number, position), line.text)
            lines.append(line._replace(text=text))
        kept.append(lines)
    return kept


def _choose(
    found: list[Edge],
    pages: Sequence[Sequence[Line]],
    headings: Mapping[str, float],
) -> set[Place]:
    """Return the places of the lines to leave out: page numbers, and all but the first of equal lines.

    The first is left out, too, where it is a heading of the document.
    """
    running = _by_place(found)
    left_out: set[Place] = set()
    seen: set[tuple[str, bool, bool]] = set()
    found.sort(key=lambda edge: (edge.page, edge.position))
    for edge in found:
        outer = running.get(edge.outward)
        is_inner = edge.rank in _INNER_RANKS
        if is_inner and not _is_next_to(edge, outer):
            continue
        page = pages[edge.page]
        if not edge.has_number and _belongs_to_text(edge, page, running):
            continue
        key = (edge.text, edge.has_number, edge.is_top)
        is_repeated = key in seen or repeats_heading(edge, headings) or _is_in_larger_type(edge, page)
        if edge.is_number or is_repeated:
            left_out.add(edge.place)
        seen.add(key)
    return left_out


def _find_small_heads(edges: Iterable[Edge], pages: Sequence[Sequence[Line]]) -> set[Place]:
    """Return the places of first lines in smaller type than the text below that earlier pages have, as in letters."""
    first_pages: dict[tuple[str, float], int] = {}
    for number, page in enumerate(pages):
        for line in page:
            first_pages.setdefault((line.text, line.size), number)
    found: set[Place] = set()
    for edge in edges:
        line = edge.line
        below = pages[edge.page][edge.position + 1 :]
        is_above_text = usual_size(below[:1]) > LARGER * line.size
        if edge.is_top and is_above_text and first_pages[line.text, line.size] < edge.page:
            found.add(edge.place)
    return found


def _is_in_larger_type(edge: Edge, page: Iterable[Line]) -> bool:
    """Return whether the page has the text of a head or a foot in larger type."""
    text = comparable(edge.text)
    larger = [line for line in page if line.size > LARGER * edge.line.size]
    return any(comparable(line.text) == text for line in larger)


def _is_next_to(edge: Edge, outer: Edge | None) -> bool:
    """Return whether a line is the next one of a head or a foot: text far from it is none."""
    if outer is None:
        return False
    distance = abs(edge.line.bottom - outer.line.bottom)
    height = outer.line.top - outer.line.bottom
    return distance < MAX_PITCH * height


# --- places ---


def _group_by_place(edges: Iterable[Edge]) -> list[list[Edge]]:
    """Return together the lines of one type that are at the same height of their pages."""
    groups: list[list[Edge]] = []
    in_order = sorted(
        edges,
        key=lambda edge: (edge.is_top, edge.line.size, edge.line.bottom),
    )
    for edge in in_order:
        if groups and _is_same_place(groups[-1][-1], edge):
            groups[-1].append(edge)
        else:
            groups.append([edge])
    return groups


def _by_place(edges: Iterable[Edge]) -> dict[Beside, Edge]:
    return {edge.beside(0): edge for edge in edges}


def _is_same_place(lower: Edge, edge: Edge) -> bool:
    is_same_type = (lower.is_top, lower.line.size) == (edge.is_top, edge.line.size)
    distance = edge.line.bottom - lower.line.bottom
    return is_same_type and distance <= _PLACE


def _find_running(edges: Sequence[Edge], pages: Sequence[int], headings: Mapping[str, float]) -> list[Edge]:
    """Return the lines of one place that are heads or feet, among the pages that have text."""
    numbers: list[Edge] = []
    others: list[Edge] = []
    for edge in edges:
        kind = numbers if edge.is_number else others
        kind.append(edge)
    if len(numbers) == 1 and not numbers[0].is_lone_number:
        numbers = []  # such as the number of an equation, which may be that of its page
    if _is_one_text(others, len(pages)) or _is_chapters(others, len(pages), headings):
        return [*numbers, *_without_variants(others, headings)]
    sides: tuple[list[Edge], list[Edge]] = ([], [])
    for edge in others:
        sides[edge.page % 2].append(edge)
    even, odd = sides
    odd_pages = sum(number % 2 for number in pages)
    return [
        *numbers,
        *_find_on_side(even, odd, len(pages) - odd_pages, headings),
        *_find_on_side(odd, even, odd_pages, headings),
    ]


def _find_on_side(
    edges: Sequence[Edge],
    opposite: Iterable[Edge],
    pages: int,
    headings: Mapping[str, float],
) -> list[Edge]:
    """Return the lines of one place that are heads or feet of the pages on the left or on the right."""
    opposite_texts = {edge.text for edge in opposite}
    is_opposite_one_text = len(opposite_texts) < 2
    is_one_text = is_opposite_one_text and _is_one_text(edges, pages)
    if is_one_text or _is_chapters(edges, pages, headings):
        return _without_variants(edges, headings)
    return []


def _is_one_text(edges: Sequence[Edge], pages: int) -> bool:
    """Return whether most pages have the same text at a place, and hardly any page another one."""
    counts = _count_texts(edges)
    most = max(counts.values(), default=0)
    are_certain = all(edge.has_number or edge.is_foot for edge in edges)
    min_pages = min_feet(pages) if are_certain else MIN_PAGES
    is_on_most_pages = most >= max(min_pages, pages // 2 + 1)
    variants = len(edges) - most
    max_variants = _MAX_VARIANTS * len(edges)
    return is_on_most_pages and variants <= max_variants


def _find_further_lines(found: Sequence[Edge], edges: Iterable[Edge]) -> list[Edge]:
    """Return the second lines of heads and feet: directly beside a first one, and the same wherever that is."""
    places = _by_place(edges)
    for place in _by_place(found):
        places.pop(place, None)
    firsts = _count_texts(found)
    inner: dict[tuple[str, str], list[Edge]] = defaultdict(list)
    for edge in found:
        following = places.get(edge.inward)
        if edge.text and following and _is_directly_beside(edge, following):
            inner[edge.text, following.text].append(following)
    further: list[Edge] = []
    for (text, _), lines in inner.items():
        if len(lines) == firsts[text] > 1:
            further += lines
    return further


def _is_directly_beside(edge: Edge, following: Edge) -> bool:
    distance = abs(edge.line.bottom - following.line.bottom)
    height = edge.line.top - edge.line.bottom
    return distance < _LINE_PITCH * height


def _count_texts(edges: Iterable[Edge]) -> Counter[str]:
    """Return how many lines have each text."""
    return Counter(edge.text for edge in edges)


def _is_chapters(edges: Sequence[Edge], pages: int, headings: Mapping[str, float]) -> bool:
    """Return whether the text at a place changes with the chapter."""
    if len(edges) < max(MIN_PAGES, pages / 2):
        return False
    with_number = sum(edge.has_number for edge in edges)
    if 2 * with_number > len(edges):
        return True
    in_order = sorted(edges, key=lambda edge: edge.page)
    texts = [text for text, _ in groupby(edge.text for edge in in_order)]
    comes_again = len(texts) > len(set(texts))
    has_short_runs = _MIN_RUN * len(texts) > len(edges)
    if comes_again or has_short_runs:
        return False
    in_headings = sum(is_heading(text, headings) for text in texts)
    return 2 * in_headings >= len(texts)


def _without_variants(edges: Sequence[Edge], headings: Mapping[str, float]) -> list[Edge]:
    """Return the lines whose text is on several pages, or is a heading in larger type or beside the page's number."""
    counts = _count_texts(edges)
    found: list[Edge] = []
    for edge in edges:
        is_numbered_heading = edge.has_number and is_heading(edge.text, headings)
        if is_numbered_heading or counts[edge.text] > 1 or repeats_heading(edge, headings):
            found.append(edge)
    return found


def _headings(pages: Sequence[Sequence[Line]], titles: Iterable[str]) -> dict[str, float]:
    """Return the texts of lines in larger type than most, with their sizes, and the document's own entries."""
    lines = list(chain.from_iterable(pages))
    body_size = usual_size(lines)
    headings: dict[str, float] = {}
    for line in lines:
        if line.size > LARGER * body_size:
            for name in names(line.text):
                headings[name] = max(line.size, headings.get(name, 0.0))
    entries = chain.from_iterable(map(names, titles))
    return headings | dict.fromkeys(entries, float("inf"))


# --- lines that belong to the text ---


def _belongs_to_text(edge: Edge, page: Iterable[Line], running: Collection[Beside]) -> bool:
    """Return whether a line is under a heading of its own, is a heading, or is a row of a table."""
    line = edge.line
    with_text = [other for other in page if other.text]
    by_height = sorted(with_text, key=lambda other: -other.bottom)
    place = by_height.index(line)
    near = by_height[max(0, place - 1) : place + 2]
    is_above_apart = _is_apart(by_height[place + 1 : place + 3])
    for upper, lower in pairwise(near):
        other = edge.beside(-1 if lower is line else 1)
        is_in_head = other in running or (upper is line and is_above_apart)
        is_heading = _is_heading_of(upper, lower) and not is_in_head
        is_named = upper.text.endswith(_NAME_ENDS)
        if is_heading or is_named or _are_rows(upper, lower):
            return True
    return False


def _is_apart(lines: Sequence[Line]) -> bool:
    """Return whether the first of two lines is far above the second one, as the last line of a head is above text."""
    if len(lines) < 2:
        return False
    line, below = lines
    height = line.top - line.bottom
    return line.bottom - below.bottom >= _FAR * height


def _are_rows(line: Line, below: Line) -> bool:
    """Return whether two lines are rows of a table."""
    return CELL_BOUNDARY in line.text and CELL_BOUNDARY in below.text


def _is_heading_of(line: Line, below: Line) -> bool:
    """Return whether a line is in other type than the one below it, and near to it."""
    height = line.top - line.bottom
    distance = line.bottom - below.bottom
    if distance >= _NEAR_HEADING * height:
        return False
    if line.size >= LARGER * below.size:
        return True
    is_in_other_font = line.font != below.font
    return is_in_other_font and line.size >= below.size
