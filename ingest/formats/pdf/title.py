"""Finds the title of a PDF that does not name it: the text in the largest type of its first page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter

from arag.ingest.formats.headings import LARGER, Line, is_title, match_number
from arag.ingest.formats.pdf.contents import CONTENTS
from arag.text.normalise import collapse_whitespace

# The name of a part, or the words of a stamp.
_NO_TITLE = re.compile(
    rf"{CONTENTS}"
    r"|(?:chapter|part|kapitel|teil|chapitre|capítulo|capitolo|глава|часть)\s+(?:\d+|[IVXLC]+|one|two|three)"
    r"|draft|(?:strictly )?confidential|entwurf|vertraulich",
    re.IGNORECASE,
)
_MAX_PITCH = 2  # times the size of the type, from a line of a title to its next one
_SIZE = attrgetter("size")
_TEXT = attrgetter("text")


def find_title(pages: Sequence[Sequence[Line]]) -> str:
    """Return the title on the first page, or an empty string.

    It is in one place, in larger type than most text. It is alone on a cover, or no other line is as large.

    Args:
        pages: The lines of each page.
    """
    first = _printed([pages[0]])
    if not first:
        return ""
    size = max(map(_SIZE, first))
    lines = [line for line in first if line.size == size]
    title = _join(lines)
    if not is_title(title) or match_number(title) or _NO_TITLE.fullmatch(title):
        return ""
    characters = Counter[float]()
    for line in _printed(pages):
        characters[line.size] += len(line.text)
    [(body_size, _)] = characters.most_common(1)
    if size < LARGER * body_size:
        return ""
    is_cover = min(map(_SIZE, first)) > body_size
    if not is_cover:
        is_largest = size == max(characters)
        is_alone = characters[size] == sum(map(len, map(_TEXT, lines)))
        if not is_largest or not is_alone:
            return ""
    return collapse_whitespace(title)


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
        if line.font != below.font or not 0 < distance < _MAX_PITCH * line.size:
            return ""
    return "\n".join(map(_TEXT, lines))
