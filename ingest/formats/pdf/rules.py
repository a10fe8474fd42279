"""The rules of the tables on a page of a PDF, lines, thin boxes and edges of colour, and the grids that they make."""

from __future__ import annotations

import ctypes
from bisect import bisect, bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, product, starmap
from typing import NamedTuple

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.pdf.glyphs import Box, PageText

_THIN = 3.0  # points: how thick a rule may be
_SHORTEST = 5.0  # points: what is shorter is a corner, a dot or a part of a letter
_NEAR = 3.0  # points: rules that are nearer are one rule, such as double lines, and the borders of two cells
_MAX_OBJECTS = 20_000  # of a page: one with more is a map or a drawing
_MAX_SEGMENTS = 2_000  # of its larger paths
_MAX_RULES = 400  # of a page
_BOX_SEGMENTS = 5  # of a path that is one box
_MIN_EDGES = 3  # across, and down: of two rows of two cells

# A page has thousands of objects: the functions are looked up once.
_get_object = raw.FPDFPage_GetObject
_get_type = raw.FPDFPageObj_GetType
_PATH = raw.FPDF_PAGEOBJ_PATH


class _Rule(NamedTuple):
    """A line across or down a page: its place on the other axis, and where it begins and ends."""

    place: float
    start: float
    end: float

    def touches(self, other: _Rule) -> bool:
        """Return whether a rule at a right angle to it touches it or crosses it."""
        crosses = self.start - _NEAR <= other.place <= self.end + _NEAR
        return crosses and other.start - _NEAR <= self.place <= other.end + _NEAR


class Region(NamedTuple):
    """A cell between rules, which may span several rows and columns of its grid; rows count from the top."""

    first_row: int
    last_row: int
    first_column: int
    last_column: int


@dataclass
class Grid:
    """A grid of rules.

    Attributes:
        lefts: The edges of its columns, from left to right.
        bottoms: The edges of its rows, from bottom to top.
        regions: The cells, by row and column of each place of the grid.
    """

    lefts: list[float]
    bottoms: list[float]
    regions: dict[tuple[int, int], Region]

    @property
    def rows(self) -> int:
        """The number of its rows."""
        return len(self.bottoms) - 1

    @property
    def columns(self) -> int:
        """The number of its columns."""
        return len(self.lefts) - 1

    def region_at(self, x: float, y: float) -> Region | None:
        """Return the cell at a place of the page, or nothing beside the grid."""
        row = self.rows - bisect(self.bottoms, y)
        column = bisect(self.lefts, x) - 1
        return self.regions.get((row, column))


def find_grids(drawn: Iterable[Box], text: PageText) -> list[Grid]:
    """Return the grids of rules on a page whose cells are all boxes, in the direction of the page's text.

    Args:
        drawn: The boxes of what is drawn on the page.
        text: Its text.
    """
    across: list[_Rule] = []
    down: list[_Rule] = []
    filled: list[Box] = []
    for box in drawn:
        turned = text.turn_back(box)
        if max(turned.width, turned.height) < _SHORTEST:
            continue
        if turned.height <= _THIN:
            across.append(_Rule((turned.bottom + turned.top) / 2, turned.left, turned.right))
        elif turned.width <= _THIN:
            down.append(_Rule((turned.left + turned.right) / 2, turned.bottom, turned.top))
        else:
            filled.append(turned)
    down = _join(down)
    if len(filled) + len(down) <= _MAX_RULES:
        across += chain.from_iterable(_edges_of_colour(box, down) for box in filled)
    across = _join(across)
    if len(across) + len(down) > _MAX_RULES:
        return []
    grids = starmap(_make_grid, _connect(across, down))
    return list(filter(None, grids))


def _edges_of_colour(box: Box, down: Iterable[_Rule]) -> list[_Rule]:
    """Return the lower and the upper edge of a filled box from one rule down to another: such as a row of names."""
    lower = _Rule(box.bottom, box.left, box.right)
    upper = _Rule(box.top, box.left, box.right)
    places = [rule.place for rule in down if rule.touches(lower) and rule.touches(upper)]
    reach = max(places, default=0) - min(places, default=0)
    is_between_rules = reach >= box.width - _NEAR
    return [lower, upper] if is_between_rules else []


# --- what is drawn on a page ---


def read_boxes(page: pypdfium2.PdfPage) -> Iterator[Box]:
    """Yield the boxes of thin paths and of filled ones, and those of the straight lines of others."""
    pointer = page.raw
    count = raw.FPDFPage_CountObjects(pointer)
    if count > _MAX_OBJECTS:
        return
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    segments = 0
    for number in range(count):
        drawn = _get_object(pointer, number)
        if _get_type(drawn) != _PATH:
            continue
        raw.FPDFPageObj_GetBounds(drawn, left, bottom, right, top)
        box = Box(left.value, right.value, bottom.value, top.value)
        if box.width <= _THIN or box.height <= _THIN:
            yield box
            continue
        segments += raw.FPDFPath_CountSegments(drawn)
        if segments <= _MAX_SEGMENTS:
            yield from _read_lines(drawn, box)


def _read_lines(path: raw.FPDF_PAGEOBJECT, whole: Box) -> Iterator[Box]:
    """Yield the boxes of the lines of a path if it has no curves; of a path that is only filled, its parts."""
    fill = ctypes.c_int()
    stroke = ctypes.c_int()
    raw.FPDFPath_GetDrawMode(path, fill, stroke)
    if stroke.value:
        for part in _read_parts(path):
            for (x, y), (next_x, next_y) in pairwise(part):
                yield Box(min(x, next_x), max(x, next_x), min(y, next_y), max(y, next_y))
    elif fill.value and raw.FPDFPath_CountSegments(path) > _BOX_SEGMENTS:
        for part in _read_parts(path):
            xs, ys = zip(*part, strict=True)
            yield Box(min(xs), max(xs), min(ys), max(ys))
    elif fill.value:
        yield whole


def _read_parts(path: raw.FPDF_PAGEOBJECT) -> list[list[tuple[float, float]]]:
    """Return the points of each part of a path, or nothing if it has curves."""
    matrix = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(path, matrix)
    x, y = ctypes.c_float(), ctypes.c_float()
    parts: list[list[tuple[float, float]]] = []
    for number in range(raw.FPDFPath_CountSegments(path)):
        segment = raw.FPDFPath_GetPathSegment(path, number)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_BEZIERTO:
            return []
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        if kind == raw.FPDF_SEGMENT_MOVETO or not parts:
            parts.append([])
        parts[-1].append(point)
        if raw.FPDFPathSegment_GetClose(segment):
            parts[-1].append(parts[-1][0])
    return parts


# --- rules that belong together ---


def _join(rules: Iterable[_Rule]) -> list[_Rule]:
    """Join rules in one line that touch each other."""
    lines: list[list[_Rule]] = []
    for rule in sorted(rules):
        if lines and rule.place - lines[-1][-1].place <= _NEAR:
            lines[-1].append(rule)
        else:
            lines.append([rule])
    joined: list[_Rule] = []
    for line in lines:
        joined += _join_line(line)
    return joined


def _join_line(line: list[_Rule]) -> list[_Rule]:
    place = sum(rule.place for rule in line) / len(line)
    line.sort(key=lambda rule: rule.start)
    joined: list[_Rule] = []
    for rule in line:
        if joined and rule.start - joined[-1].end <= _NEAR:
            last = joined.pop()
            joined.append(_Rule(place, last.start, max(last.end, rule.end)))
        else:
            joined.append(_Rule(place, rule.start, rule.end))
    return joined


def _connect(across: Sequence[_Rule], down: Sequence[_Rule]) -> Iterator[tuple[list[_Rule], list[_Rule]]]:
    """Yield the rules across and those down that are connected."""
    touching: dict[int, list[int]] = defaultdict(list)  # those down have the numbers after those across
    for (number, rule), (other_number, other) in product(enumerate(across), enumerate(down, len(across))):
        if rule.touches(other):
            touching[number].append(other_number)
            touching[other_number].append(number)
    left = set(touching)
    while left:
        waiting = [left.pop()]
        connected: list[int] = []
        while waiting:
            number = waiting.pop()
            connected.append(number)
            further = left.intersection(touching[number])
            left -= further
            waiting += further
        connected.sort()
        first_down = bisect_left(connected, len(across))
        yield (
            [across[number] for number in connected[:first_down]],
            [down[number - len(across)] for number in connected[first_down:]],
        )


# --- the cells between rules ---


def _make_grid(across: Sequence[_Rule], down: Sequence[_Rule]) -> Grid | None:
    """Return the grid of connected rules, or nothing if a cell is not a box. The outermost rules may be missing."""
    lefts = _edges(down, across)
    bottoms = _edges(across, down)
    if len(lefts) < _MIN_EDGES or len(bottoms) < _MIN_EDGES:
        return None
    is_wall_left = _walls(down, lefts, bottoms)
    is_wall_below = _walls(across, bottoms, lefts)
    rows = len(bottoms) - 1
    columns = len(lefts) - 1

    def neighbours(row: int, column: int) -> Iterator[tuple[int, int]]:
        """Yield the places beside a place, from the top, that no rule divides from it."""
        from_bottom = rows - 1 - row
        if not is_wall_left(column, from_bottom):
            yield row, column - 1
        if not is_wall_left(column + 1, from_bottom):
            yield row, column + 1
        if not is_wall_below(from_bottom, column):
            yield row + 1, column
        if not is_wall_below(from_bottom + 1, column):
            yield row - 1, column

    regions: dict[tuple[int, int], Region] = {}
    for place in product(range(rows), range(columns)):
        if place in regions:
            continue
        places = _flood(place, neighbours)
        rows_of_it, columns_of_it = zip(*places, strict=True)
        region = Region(min(rows_of_it), max(rows_of_it), min(columns_of_it), max(columns_of_it))
        height = region.last_row - region.first_row + 1
        width = region.last_column - region.first_column + 1
        if len(places) < height * width:
            return None
        regions.update(dict.fromkeys(places, region))
    return Grid(lefts, bottoms, regions)


def _edges(rules: Iterable[_Rule], crossing: Iterable[_Rule]) -> list[float]:
    """Return the places of rules, and where those that cross them begin and end beside all of them.

    Rules that end elsewhere are of a drawing: then there are no edges.
    """
    edges = sorted({rule.place for rule in rules})
    ends = list(chain.from_iterable((rule.start, rule.end) for rule in crossing))
    first = edges[0] - 2 * _NEAR
    last = edges[-1] + 2 * _NEAR
    for end in ends:
        is_inside = first <= end <= last
        if is_inside and not any(abs(edge - end) <= 2 * _NEAR for edge in edges):
            return []
    lowest = min(ends)
    highest = max(ends)
    if lowest < first:
        edges.insert(0, lowest)
    if highest > last:
        edges.append(highest)
    return edges


def _walls(
    rules: Iterable[_Rule],
    edges: Sequence[float],
    crossing_edges: Sequence[float],
) -> Callable[[int, int], bool]:
    """Return a function that tells whether a rule is at an edge, beside the middle of a row or a column.

    At the outermost edges, which may lack their rules, it always tells so.
    """
    middles = [(start + end) / 2 for start, end in pairwise(crossing_edges)]
    outermost = (0, len(edges) - 1)
    walls = set(product(outermost, range(len(middles))))
    for rule in rules:
        edge = edges.index(rule.place)
        for number, middle in enumerate(middles):
            if rule.start <= middle <= rule.end:
                walls.add((edge, number))
    return lambda edge, number: (edge, number) in walls


def _flood(
    place: tuple[int, int],
    neighbours: Callable[[int, int], Iterator[tuple[int, int]]],
) -> set[tuple[int, int]]:
    """Return the places that no rule divides from a place."""
    places = {place}
    waiting = [place]
    while waiting:
        for neighbour in neighbours(*waiting.pop()):
            if neighbour not in places:
                places.add(neighbour)
                waiting.append(neighbour)
    return places
