"""Finds the title of a PDF that does not name it: the text in the largest type of its first page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter

from arag.ingest.formats.joining import join_texts, may_be_same_font
from arag.ingest.formats.title_texts import is_title, match_number
from arag.ingest.formats.typography import LARGER, Line, is_cover
from arag.text.contents import is_heading_of_contents
from arag.text.normalise import collapse_whitespace

_STAMP = re.compile(
    r"draft|entwurf|brouillon|borrador|bozza|rascunho|(?:strictly )?confiden[ct]i[ae]l|vertraulich|riservato",
    re.IGNORECASE,
)
_NAME_OF_PART = re.compile(
    r"(?:chapter|part|kapitel|teil|chapitre|capítulo|capitolo|глава|часть)\s+(?:\d+|[IVXLC]+|one|two|three)",
    re.IGNORECASE,
)
_OPENING = re.compile(r"# (?!\d)(\S+ .+)\n(?:(?!# ).*\n)*?## ")  # of several words, above headings of parts
_MAX_PITCH = 2.2  # times the size of the type, from a line of a title to its next one
_NOTES = re.compile(r"(?:\s?(?:[*∗†‡§¶]|\[\w\]))+$")
_SIZE = attrgetter("size")
_TEXT = attrgetter("text")


def find_title(pages: Sequence[Sequence[Line]]) -> str:
    """Return the title on the first page, or an empty string.

    It is in one place, in larger type than most text. It is on a cover; or no other line is as large; or it is the
    first line, and no other one has its type. Below a title with a footnote, authors may be larger.

    Args:
        pages: The lines of each page.
    """
    noted = [line for line in _printed(pages[:1]) if not _STAMP.fullmatch(line.text)]
    if not noted:
        return ""
    first = list(map(_without_notes, noted))
    printed = list(map(_without_notes, _printed(pages)))
    characters = Counter[float]()
    for line in printed:
        characters[line.size] += len(line.text)
    [(body_size, _)] = characters.most_common(1)
    larger = LARGER * body_size
    size = first[0].size
    lines = _find_block(first, size)
    has_note = size >= larger and not set(lines) <= set(noted)
    if not has_note:
        size = max(map(_SIZE, first))
        lines = _find_block(first, size)
    title = "\n".join(map(_TEXT, lines))
    as_sentence = title[:1].upper() + title[1:]  # the name of a program may begin with a small letter
    is_no_title = any(
        [
            size < larger,
            not is_title(as_sentence),
            match_number(title),
            _names_part(title),
        ]
    )
    if is_no_title:
        return ""
    if not is_cover([first, *pages[1:]], body_size):
        is_outstanding = size == max(characters) or lines[0] is first[0]
        if not is_outstanding or not _is_alone(lines, printed):
            return ""
    return collapse_whitespace(join_texts(map(_TEXT, lines)))


def find_opening_title(text: str) -> str:
    """Return the heading with which a text begins if the next one is below it; of equal ones, each may be of a part."""
    opening = _OPENING.match(text)
    if opening is None or _names_part(opening[1]):
        return ""
    return opening[1]


def _without_notes(line: Line) -> Line:
    """Return a line without the marks of footnotes at its end, which are smaller than its type, or in another font."""
    text = _NOTES.sub("", line.text)
    if text == line.text or line.size == line.first_size:
        return line
    return line._replace(text=text, size=line.first_size, font=line.first_font)


def _find_block(page: Sequence[Line], size: float) -> list[Line]:
    """Return the first lines in type of a size that are directly below each other, in one font.

    Others in this size may only follow at once, such as a subtitle; below the first line of a page, also headings in
    another font.
    """
    lines = [line for line in page if line.size == size and not is_heading_of_contents(line.text)]
    ends = [number for number, (line, below) in enumerate(pairwise(lines), 1) if not _goes_on(line, below)]
    if not ends:
        return lines
    start = page.index(lines[0])
    are_together = page[start : start + len(lines)] == lines
    title, others = lines[: ends[0]], lines[ends[0] :]
    are_headings = start == 0 and not any(may_be_same_font(line, title[0]) for line in others)
    return title if are_together or are_headings else []


def _names_part(title: str) -> bool:
    return is_heading_of_contents(title) or _NAME_OF_PART.fullmatch(title) is not None


def _printed(pages: Iterable[Iterable[Line]]) -> list[Line]:
    """Return the lines of pages, without the values of a form, which have no size."""
    lines: list[Line] = []
    for page in pages:
        lines += filter(_SIZE, page)
    return lines


def _goes_on(line: Line, below: Line) -> bool:
    """Return whether a line of a title may go on in the one below it."""
    distance = line.top - below.top
    is_near = 0 < distance < _MAX_PITCH * line.size
    return is_near and may_be_same_font(line, below)


def _is_alone(title: Sequence[Line], lines: Iterable[Line]) -> bool:
    """Return whether no lines of a document but those of its title have its type."""
    texts = "\n".join(map(_TEXT, title))
    for line in lines:
        is_in_type = line.size == title[0].size and may_be_same_font(line, title[0])
        if is_in_type and line.text not in texts and not is_heading_of_contents(line.text):
            return False
    return True
