"""Finds the title of a PDF that does not name it: the text in the largest type of its first page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter

from arag.ingest.formats.headings import LARGER, Line, is_cover
from arag.ingest.formats.title_texts import is_title, match_number
from arag.text.contents import is_heading_of_contents
from arag.text.normalise import collapse_whitespace

_STAMP = re.compile(r"draft|(?:strictly )?confidential|entwurf|vertraulich", re.IGNORECASE)
_NAME_OF_PART = re.compile(
    r"(?:chapter|part|kapitel|teil|chapitre|capítulo|capitolo|глава|часть)\s+(?:\d+|[IVXLC]+|one|two|three)",
    re.IGNORECASE,
)
_MAX_PITCH = 2.2  # times the size of the type, from a line of a title to its next one
_SIZE = attrgetter("size")
_TEXT = attrgetter("text")


def find_title(pages: Sequence[Sequence[Line]]) -> str:
    """Return the title on the first page, or an empty string.

    It is in one place, in larger type than most text. It is on a cover; or no other line is as large; or it is the
    first line, and no other one has its size.

    Args:
        pages: The lines of each page.
    """
    first = [line for line in _printed([pages[0]]) if not _STAMP.fullmatch(line.text)]
    if not first:
        return ""
    size = max(map(_SIZE, first))
    lines = [line for line in first if line.size == size]
    title = _join(lines)
    as_sentence = title[:1].upper() + title[1:]  # the name of a program may begin with a small letter
    if not is_title(as_sentence) or match_number(title) or _names_part(title):
        return ""
    characters = Counter[float]()
    for line in _printed(pages):
        characters[line.size] += len(line.text)
    [(body_size, _)] = characters.most_common(1)
    if size < LARGER * body_size:
        return ""
    if not is_cover([first, *pages[1:]], body_size):
        is_outstanding = size == max(characters) or lines[0] is first[0]
        is_alone = characters[size] == sum(map(len, map(_TEXT, lines)))
        if not is_outstanding or not is_alone:
            return ""
    return collapse_whitespace(title)


def _names_part(title: str) -> bool:
    return is_heading_of_contents(title) or _NAME_OF_PART.fullmatch(title) is not None


def _printed(pages: Iterable[Iterable[Line]]) -> list[Line]:
    """Return the lines of pages, without the values of a form, which have no size."""
    lines: list[Line] = []
    for page in pages:
        lines += filter(_SIZE, page)
    return lines


def _join(lines: Sequence[Line]) -> str:
    """Return the text of lines in one type if they are directly below each other, or an empty string."""
    for line, below in pairwise(lines):
        distance = line.top - below.top
        is_near = 0 < distance < _MAX_PITCH * line.size
        is_in_one_font = line.font == below.font or "" in {line.font, below.font}  # a line may have several
        if not is_near or not is_in_one_font:
            return ""
    return "\n".join(map(_TEXT, lines))
