"""Finds titles of a PDF that are bold, and need not be larger than its text."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise, takewhile
from operator import attrgetter
from typing import NamedTuple

from arag.ingest.formats.title_texts import is_code_font, is_title, match_number
from arag.ingest.formats.typography import Line

# With the short names that fonts of TeX have.
_BOLD = re.compile(
    r"bold|black|heavy|demi|cmbx|cmb\d|cmssbx|sf[bs]x\d|nimbus.*-medi|lin(?:lib|bio)\w*b$",
    re.IGNORECASE,
)
_CAPTION = re.compile(r"(?!(?:chapter|kapitel|chapitre|part|teil)\b)[^\W\d]+\.? \d+[a-z]?", re.IGNORECASE)  # Table 3
_ABSTRACT = re.compile(r"abstract|zusammenfassung|kurzfassung|résumé|resumen|riassunto|sommario|resumo", re.IGNORECASE)
_TEXT = attrgetter("text")
_TIGHT = 1.5  # times the size of the type: the pitch of the lines of one title, at most
_MAX_GAP = 3.5  # times the size of the type, down to the text below it
_MIN_ABOVE = 1.6  # times the size: the pitch above a title, at least
_MIN_TEXT = 40  # characters of a single line below it: what is shorter may be the value of a label
_MOSTLY = 0.8  # of the lines in a type of titles are titles
_MANY = 5  # titles in one type, which need not be set apart


class _Block(NamedTuple):
    """Lines of a page in one bold type, directly below each other."""

    page_number: int
    start: int
    end: int
    page: Sequence[Line]

    @property
    def lines(self) -> Sequence[Line]:
        """Its lines."""
        return self.page[self.start : self.end]

    @property
    def type(self) -> tuple[float, str]:
        """The size and the font of its type."""
        first = self.page[self.start]
        return first.size, _font(first)

    @property
    def title(self) -> Line:
        """Its lines as one."""
        first, last = self.lines[0], self.lines[-1]
        _, font = self.type
        text = "\n".join(map(_TEXT, self.lines))
        return first._replace(
            text=text,
            font=font,
            bottom=last.bottom,
            is_bold_title=True,
        )

    def may_be_title(self) -> bool:
        """Return whether its words may be a title."""
        text = self.title.text
        return is_title(text) and _CAPTION.fullmatch(text) is None

    def text_below(self) -> list[Line]:
        """Return the first lines of the text below it; none if that is only the value of a label."""
        last_and_below = self.page[self.end - 1 : self.end + 2]
        text = [line for _, line in takewhile(_is_text_below, pairwise(last_and_below))]
        is_value = len(text) == 1 and len(text[0].text) < _MIN_TEXT
        return [] if is_value else text

    def is_set_apart(self) -> bool:
        """Return whether there is more space above it than below, and a sentence begins there."""
        text = self.text_below()
        if not text or text[0].text[:1].islower():
            return False
        above = self.page[self.start - 1]  # before the first line, the last one, which is no higher
        pitch_above = above.bottom - self.lines[0].bottom
        is_at_top = pitch_above <= 0  # of its column
        pitch_below = self.lines[-1].bottom - text[0].bottom
        min_pitch = max(pitch_below + 1, _MIN_ABOVE * text[0].size)
        return is_at_top or pitch_above >= min_pitch


def mark_bold_titles(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return the lines of each page; the lines of a bold title are one, and marked.

    The titles of one type are all marked, or none is. Nearly all lines in that type may be titles, and most have more
    space above them than below, or there are many, and a text below them.

    Args:
        pages: The lines of each page.
    """
    body_size = usual_size(chain.from_iterable(pages))
    blocks_of_types: dict[tuple[float, str], list[_Block]] = defaultdict(list)
    for page_number, page in enumerate(pages):
        for block in _find_blocks(page_number, page, body_size):
            blocks_of_types[block.type].append(block)
    titles = chain.from_iterable(map(_choose_titles, blocks_of_types.values()))
    marked = list(map(list, pages))
    for block in sorted(titles, reverse=True):  # from the last one, so that the places of the others stay
        marked[block.page_number][block.start : block.end] = [block.title]
    return marked


def usual_size(lines: Iterable[Line]) -> float:
    """Return the size of type that most characters have."""
    characters = Counter[float]()
    for line in lines:
        characters[line.size] += len(line.text)
    return max(characters, key=lambda size: characters[size], default=0.0)


def is_bold_font(name: str) -> bool:
    """Return whether a font is bold, by its name."""
    return _BOLD.search(name) is not None


def _is_text_below(lines: tuple[Line, Line]) -> bool:
    above, line = lines
    pitch = above.bottom - line.bottom
    is_near = 0 < pitch < _MAX_GAP * above.size
    return is_near and not is_bold_font(line.font)


def _font(line: Line) -> str:
    """Return the font of a line; a title with a number may have names in other fonts."""
    if line.font or match_number(line.text) is None:
        return line.font
    return line.first_font


def _find_blocks(page_number: int, page: Sequence[Line], body_size: float) -> list[_Block]:
    """Return the bold lines of a page that are not smaller than text; those of one title together.

    Abstracts are often smaller, with their titles.
    """
    blocks: list[_Block] = []
    for number, line in enumerate(page):
        last = blocks[-1] if blocks else _Block(page_number, -1, -1, page)
        if last.end == number and _goes_on(last, line):
            blocks[-1] = last._replace(end=number + 1)
        elif _may_be_bold_title(line, body_size):
            blocks.append(_Block(page_number, number, number + 1, page))
    return blocks


def _may_be_bold_title(line: Line, body_size: float) -> bool:
    font = _font(line)
    is_title_of_abstract = _ABSTRACT.fullmatch(line.text) is not None
    return all(
        [
            is_bold_font(font),
            not is_code_font(font),
            not line.is_entry,
            line.size >= body_size or is_title_of_abstract,
        ]
    )


def _goes_on(block: _Block, line: Line) -> bool:
    """Return whether a line is the next one of a title."""
    is_in_its_type = (line.size, line.font) == block.type
    if not is_in_its_type or match_number(line.text):
        return False
    pitch = block.lines[-1].bottom - line.bottom
    return 0 < pitch < _TIGHT * line.size


def _choose_titles(blocks: Sequence[_Block]) -> list[_Block]:
    """Return which lines in one type are titles; none if the type is not one of titles."""
    titles = list(filter(_Block.may_be_title, blocks))
    if len(titles) < _MOSTLY * len(blocks):
        return []
    set_apart = sum(map(_Block.is_set_apart, titles))
    is_mostly_apart = 2 * set_apart >= len(titles)
    with_text = sum(map(bool, map(_Block.text_below, titles)))
    is_mostly_above_text = 2 * with_text > len(titles)
    are_many = len(titles) >= _MANY
    are_titles = is_mostly_apart or (are_many and is_mostly_above_text)
    return titles if are_titles else []
