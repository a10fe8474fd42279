"""Finds the title of a PDF that does not name it: what its first page shows in the largest type."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from arag.ingest.formats.headings import LARGER, Line, is_title, match_number
from arag.text.normalise import collapse_whitespace

_CONTENTS = re.compile(
    r"(?:table of )?contents|inhalt(?:sverzeichnis)?|sommaire|table des matières|índice|sumario|indice|inhoud"
    r"|содержание|оглавление|目录|目錄|目次|차례|목차",
    re.IGNORECASE,
)


def find_title(pages: Sequence[Sequence[Line]]) -> str:
    """Return the title on the first page, or an empty string.

    It is in one place, in larger type than most text. It is alone on a cover, or no other line is as large.

    Args:
        pages: The lines of each page.
    """
    printed = [[line for line in page if line.size] for page in pages]
    first = printed[0]
    if not first:
        return ""
    size = max(line.size for line in first)
    title = _join([line for line in first if line.size == size])
    body_size = _size_of_most(printed)
    names_part = match_number(title) or _CONTENTS.fullmatch(title)
    if size < LARGER * body_size or names_part or not is_title(title):
        return ""
    is_cover = all(line.size > body_size for line in first)
    others = [line.size for page in printed[1:] for line in page]
    is_largest = size > max(others, default=0.0)
    return collapse_whitespace(title) if is_cover or is_largest else ""


def _join(lines: Sequence[Line]) -> str:
    """Return the text of lines in one type if they are directly below each other, or an empty string."""
    first = lines[0]
    last_top = first.top
    for line in lines[1:]:
        if line.font != first.font or not 0 < last_top - line.top < 2 * first.size:
            return ""
        last_top = line.top
    return "\n".join(line.text for line in lines)


def _size_of_most(pages: Iterable[Iterable[Line]]) -> float:
    """Return the size of most characters."""
    characters = Counter[float]()
    for page in pages:
        for line in page:
            characters[line.size] += len(line.text)
    return max(characters, key=lambda size: characters[size])
