"""The type of a document's lines, and which of them are headings by it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from statistics import median
from typing import NamedTuple, TypeAlias, TypeVar

from arag.ingest.formats.title_texts import is_code_font, is_other_line, is_title, number_of
from arag.text.contents import is_heading_of_contents

LARGER = 1.15  # times the size of most text; a lower value makes headings of text that is hardly larger
SHORT_DOCUMENT = 2  # pages: in a longer one, headings of one level are on several pages
MAX_LEVEL = 6  # of a heading in Markdown
_LINES_BELOW = 3  # of text below a title
_MAX_GAP = 2.0  # times the size of the type, from a title to the text below it
_STRAIGHT = 2.0  # points: how far lines that begin at one edge may be from it
_COVER = 0.3  # of the lines of other pages are on a cover that also has lines in the size of the text, at most
_MAX_COVER_LINE = 60  # characters of such a line
_UNNAMED = 0.2  # of the titles in one type may be missing in the document's outline

_Key = TypeVar("_Key")
_Type: TypeAlias = tuple[float, str]


class Line(NamedTuple):
    """A line of a page.

    Attributes:
        text: Its text.
        size: The size of its type, in points.
        font: The name of its font, if it has only one.
        left: Where it begins; this and the other places are in points from the lower left corner.
        right: Where it ends.
        bottom: The lower edge of its type.
        top: The upper edge.
        level: Of the heading that the document's own outline says it is, or 0.
        is_bold_title: Whether it is bold, and set apart from what is above it.
        is_entry: Whether it is an entry of contents, and not a heading.
        first_font: The name of its first word's font.
        first_size: The size of its first word's type.
        begins_paragraph: Whether it certainly begins a paragraph.
    """

    text: str
    size: float = 0.0
    font: str = ""
    left: float = 0.0
    right: float = 0.0
    bottom: float = 0.0
    top: float = 0.0
    level: int = 0
    is_bold_title: bool = False
    is_entry: bool = False
    first_font: str = ""
    first_size: float = 0.0
    begins_paragraph: bool = False


@dataclass(frozen=True)
class BodyType:
    """The type of most text of a document.

    Attributes:
        size: In points.
        font: The name of its font.
        characters: How many characters the document has in each size.
    """

    size: float
    font: str
    characters: Counter[float]

    @property
    def larger(self) -> float:
        """The least size of larger type, in points."""
        return LARGER * self.size


def find_body_type(pages: Iterable[Iterable[Line]]) -> BodyType | None:
    """Return the type of most text, or None if no line names its type."""
    by_size = Counter[float]()
    by_font = Counter[str]()
    for line in chain.from_iterable(pages):
        if line.size:  # a form's value has none
            by_size[line.size] += len(line.text)
            by_font[line.font] += len(line.text)
    if not by_size:
        return None
    by_font[""] = 0  # of lines in several fonts: others of the same text have only one
    return BodyType(_most_common(by_size), _most_common(by_font), by_size)


class _LargeLine(NamedTuple):
    """A line, or lines of one title, in larger type than most text."""

    line: Line
    page: int
    place: int  # on its page
    below: Sequence[Line]  # at most `_LINES_BELOW`


@dataclass(frozen=True)
class Typography:
    """The type of a document's text and of its headings."""

    body: BodyType
    heading_sizes: list[float]  # the largest first
    section_sizes: set[float]  # in which most lines in the font of the text are above text, on several pages
    cover_types: set[_Type]  # that may have one of these sizes, but are of names on the first page alone
    outline_levels: int  # how many levels of headings the document's own outline has
    outline_depth: int  # and how many parts its numbers have
    outline_types: Mapping[_Type, int]  # the types of nearly all of these headings alone, and their levels

    def level(self, block: Line) -> int:
        """Return the level of a heading, or 0 for text."""
        if block.level:
            return min(block.level, MAX_LEVEL)
        font = block.first_font if block.text.startswith("\\") else block.font
        is_code = is_code_font(font) and not is_code_font(self.body.font)
        is_no_title = any(
            [
                block.is_entry,
                is_code,
                is_other_line(block.text),
                not is_title(block.text),
            ]
        )
        if is_no_title:
            return 0
        block_type = (block.size, block.font)
        level_in_outline = self.outline_types.get(block_type, 0)
        if level_in_outline:
            return level_in_outline
        if block.size not in self.heading_sizes or block_type in self.cover_types:
            return self._level_of_number(block) or self._level_of_bold_title(block)
        is_in_text_font = self.outline_levels > 0 and block.font == self.body.font
        if is_in_text_font and block.size not in self.section_sizes:
            return 0  # such as an author, or a label of a figure
        order = self.heading_sizes.index(block.size)
        level = self.outline_levels + order + 1
        return min(level, MAX_LEVEL)

    def _level_of_number(self, block: Line) -> int:
        """Return the level of a title in the size of the text, which needs a number and another font."""
        parts = len(number_of(block.text))
        is_named_level = parts == 1 and self.outline_levels > 0  # an outline that names headings names the first ones
        if parts <= self.outline_depth or is_named_level:
            return 0
        has_text_font = block.font in {self.body.font, ""}
        if has_text_font or block.size < self.body.size:
            return 0
        level = self.outline_levels + len(self.heading_sizes) + parts
        return min(level, MAX_LEVEL)

    def _level_of_bold_title(self, block: Line) -> int:
        """Return the level of a bold title in a size that text has, too, if the document's outline names none."""
        if not block.is_bold_title or self.outline_levels:
            return 0
        larger = [size for size in self.heading_sizes if size > block.size]
        level = len(larger) + 1
        return min(level, MAX_LEVEL)


def find_typography(pages: Sequence[Sequence[Line]], body: BodyType) -> Typography:
    """Find the type of a document's headings.

    Args:
        pages: The lines of each page; those of one title are joined.
        body: The type of most text.
    """
    named = [line for line in chain.from_iterable(pages) if line.level]
    depths = [len(number_of(line.text)) for line in named]
    large_lines = _find_large_lines(pages, body.larger)
    is_short = len(pages) <= SHORT_DOCUMENT
    cover_types = _find_types_below_title(pages[0], large_lines, body) if is_short else _find_cover_types(pages)
    return Typography(
        body=body,
        heading_sizes=_find_heading_sizes(large_lines, len(pages), body, named),
        section_sizes=_find_section_sizes(large_lines, body),
        cover_types=cover_types,
        outline_levels=max((line.level for line in named), default=0),
        outline_depth=max(depths, default=0),
        outline_types=_find_outline_types(large_lines),
    )


def is_cover(pages: Sequence[Sequence[Line]], body_size: float) -> bool:
    """Return whether the first page has larger type alone, or a few short lines and far fewer than other pages."""
    first, *others = pages
    small = [line for line in first if line.size <= body_size]
    if not small:
        return True
    lines = [len(page) for page in others if page]
    has_few_lines = bool(lines) and len(first) < _COVER * median(lines)
    return has_few_lines and all(len(line.text) <= _MAX_COVER_LINE for line in small)


def _find_large_lines(pages: Iterable[Sequence[Line]], larger: float) -> list[_LargeLine]:
    """Return the lines in larger type than most text, without entries of contents."""
    large_lines: list[_LargeLine] = []
    for page_number, page in enumerate(pages):
        for place, line in enumerate(page):
            if line.size >= larger and not line.is_entry:
                below = page[place + 1 : place + 1 + _LINES_BELOW]
                large_lines.append(_LargeLine(line, page_number, place, below))
    return large_lines


def _find_outline_types(large_lines: Iterable[_LargeLine]) -> dict[_Type, int]:
    """Return the types in which nearly all titles are in the document's outline, with the level of most."""
    levels: dict[_Type, Counter[int]] = defaultdict(Counter)
    for line, *_ in large_lines:
        if line.level or is_title(line.text):
            levels[line.size, line.font][line.level] += 1
    types: dict[_Type, int] = {}
    for line_type, counts in levels.items():
        level = _most_common(counts)
        unnamed = counts[0]
        max_unnamed = _UNNAMED * counts.total()
        if level and unnamed <= max_unnamed:
            types[line_type] = min(level, MAX_LEVEL)
    return types


def _find_heading_sizes(
    large_lines: Iterable[_LargeLine],
    pages: int,
    body: BodyType,
    named: Iterable[Line],
) -> list[float]:
    """Return the sizes of type in which headings are set, the largest first: smaller than those of the outline.

    A size that only the heading of the contents has is none of them.
    """
    title_characters = Counter[float]()
    pages_of_size: dict[float, set[int]] = defaultdict(set)
    for line, page_number, *_ in large_lines:
        if is_title(line.text) and not is_heading_of_contents(line.text):
            title_characters[line.size] += len(line.text)
            pages_of_size[line.size].add(page_number)
    min_pages = 1 if pages <= SHORT_DOCUMENT else 2  # the cover of a long document may have a size of its own
    named_sizes = [line.size for line in named if line.size]  # an entry that is no line of its page has none
    end = min(named_sizes, default=float("inf"))
    sizes: list[float] = []
    for size, page_numbers in pages_of_size.items():
        is_mostly_titles = 2 * title_characters[size] > body.characters[size]  # text may have a larger size, too
        if size < end and len(page_numbers) >= min_pages and is_mostly_titles:
            sizes.append(size)
    return sorted(sizes, reverse=True)


def _find_section_sizes(large_lines: Iterable[_LargeLine], body: BodyType) -> set[float]:
    """Return the sizes in which most titles in the font of the text are above text, on several pages."""
    titles = Counter[float]()
    titles_above_text = Counter[float]()
    pages_of_size: dict[float, set[int]] = defaultdict(set)
    for line, page_number, _, below in large_lines:
        if line.font != body.font or line.level:
            continue
        titles[line.size] += 1
        if _is_above_text(line, below, body.size):
            titles_above_text[line.size] += 1
            pages_of_size[line.size].add(page_number)
    sizes: set[float] = set()
    for size, page_numbers in pages_of_size.items():
        is_mostly_above_text = 2 * titles_above_text[size] > titles[size]
        if is_mostly_above_text and len(page_numbers) > 1:
            sizes.add(size)
    return sizes


def _is_above_text(title: Line, lines: Sequence[Line], body_size: float) -> bool:
    """Return whether the lines below a title are text: near, and at one edge, unlike those of an author or a label."""
    text = [line for line in lines if line.size == body_size]
    if not text or text[0] is not lines[0]:
        return False
    gap = title.bottom - text[0].top
    shifts = [abs(line.left - below.left) for line, below in pairwise([title, *text])]
    return gap < _MAX_GAP * title.size and min(shifts) < _STRAIGHT


def _find_cover_types(pages: Sequence[Iterable[Line]]) -> set[_Type]:
    """Return the types in which a long document has only lines of its first page, such as its authors."""
    first, *others = ({(line.size, line.font) for line in page if line.font} for page in pages)
    return first.difference(*others)


def _find_types_below_title(page: Sequence[Line], large_lines: Iterable[_LargeLine], body: BodyType) -> set[_Type]:
    """Return the types of names below the title of a short document: right of the text's edge, and nowhere else.

    Args:
        page: The first one.
        large_lines: Those of all pages.
        body: The type of most text.
    """
    first_text = next((place for place, line in enumerate(page) if line.size <= body.size), 0)
    text_edge = min((line.left for line in page if line.size <= body.size), default=0.0)
    names: set[_Type] = set()
    others: set[_Type] = set()
    for large in large_lines:
        is_below_title = large.page == 0 and 0 < large.place < first_text
        is_name = is_below_title and large.line.left - text_edge > _STRAIGHT
        types = names if is_name else others
        types.add((large.line.size, large.line.font))
    return names - others


def _most_common(counts: Counter[_Key]) -> _Key:
    (most_common,) = counts.most_common(1)
    return most_common[0]
