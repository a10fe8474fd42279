"""Finds the title of a PDF that does not name it: what its first page shows in the largest type."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise
from operator import attrgetter

from arag.ingest.formats.headings import LARGER, Line, is_title, match_number
from arag.text.normalise import collapse_whitespace

_CONTENTS = re.compile(
    r"(?:table of )?contents|inhalt(?:sverzeichnis)?|sommaire|table des matières|índice|sumario|indice|inhoud"
    r"|содержание|оглавление|目录|目錄|目次|차례|목차",
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
    first = [line for line in pages[0] if line.size]  # a form's value has no size
    if not first:
        return ""
    size = max(map(_SIZE, first))
    lines = [line for line in first if line.size == size]
    title = _join(lines)
    names_part = match_number(title) or _CONTENTS.fullmatch(title)
    if names_part or not is_title(title):
        return ""
    characters = Counter[float]()
    for line in chain.from_iterable(pages):
        characters[line.size] += len(line.text)
    [(body_size, _)] = characters.most_common(1)
    if size < LARGER * body_size:
        return ""
    is_cover = min(map(_SIZE, first)) > body_size
    is_largest = size == max(characters) and characters[size] == sum(map(len, map(_TEXT, lines)))
    return collapse_whitespace(title) if is_cover or is_largest else ""


def _join(lines: Sequence[Line]) -> str:
    """Return the text of lines in one type if they are directly below each other, or an empty string."""
    for line, below in pairwise(lines):
        distance = line.top - below.top
        if line.font != below.font or not 0 < distance < _MAX_PITCH * line.size:
            return ""
    return "\n".join(map(_TEXT, lines))
