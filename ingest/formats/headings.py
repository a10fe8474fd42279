"""Headings of texts without marks, such as those of PDFs, by the type of their lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from arag.text.normalise import CELL_BOUNDARY, collapse_whitespace

_LARGER = 1.15  # times the size of most text
_MAX_TITLE = 120  # characters
_MAX_TITLE_LINES = 3
_SHORT_DOCUMENT = 2  # pages
_NUMBER = re.compile(r"(?:\d{1,2}|[A-Z](?=\.\d))((?:\.\d{1,2})*)\.?\s+(?=\D)(?!.*\d$)")  # such as 3, 3.4 or A.2
# The end of a sentence or a part of it, of what goes on from the page before, and of a table's row.
_NO_TITLE_END = re.compile(r"(?:[.,;:]|\b(?:and|or)|\(continued\)|[\d%)]\s+[-–(]?\d[\d.,%)]*)$", re.IGNORECASE)


class Line(NamedTuple):
    """A line of a page, and its type: the size in points, and the name of the font if it has only one."""

    text: str
    size: float = 0.0
    font: str = ""


def mark_headings(pages: Sequence[Sequence[Line]]) -> Iterator[str]:
    """Yield the text of each page, with headings as in Markdown.

    A heading is in larger type than most text, or it begins with a section's number and is in another font.
    """
    sizes, fonts = Counter[float](), Counter[str]()
    for line in chain(*pages):
        sizes[line.size] += len(line.text)
        fonts[line.font] += len(line.text)
    body, font = sizes.most_common(1)[0][0], fonts.most_common(1)[0][0]
    blocks = [_join_titles(page, _LARGER * body) for page in pages]
    pages_of: dict[float, set[int]] = {}
    for number, page in enumerate(blocks):
        for block in page:
            if block.size >= _LARGER * body and _is_title(block.text):
                sizes[block.size] -= 2 * len(block.text)
                pages_of.setdefault(block.size, set()).add(number)
    # Text may have a larger size, too, and so may the cover of a document.
    least = 1 if len(pages) <= _SHORT_DOCUMENT else 2
    ranks = sorted((size for size, some in pages_of.items() if len(some) >= least and sizes[size] < 0), reverse=True)

    def level(block: Line) -> int:
        number = _NUMBER.match(block.text)
        if not _is_title(block.text):
            return 0
        if block.size in ranks:
            return min(ranks.index(block.size) + 1, 6)
        if number and block.size >= body and block.font not in {font, ""}:
            return min(len(ranks) + 1 + number[1].count("."), 6)
        return 0

    last: dict[int, str] = {}
    for page in blocks:
        levels = [*map(level, page), 0]
        lines: list[str] = []
        for block, here, after in zip(page, levels, levels[1:], strict=False):
            name = collapse_whitespace(block.text)
            # A title that another one like it follows at once is that of a list, such as a table of contents.
            is_heading = here and here != after and last.get(here) != name
            lines.append(f"{'#' * here} {name}" if is_heading else block.text)
            last[here] = name
        yield "\n".join(lines)


def _join_titles(page: Sequence[Line], larger: float) -> list[Line]:
    """Join lines in the same larger type, unless they have numbers of their own."""
    blocks: list[Line] = []
    for line in page:
        if blocks and line.size >= larger and line[1:] == blocks[-1][1:] and not _NUMBER.match(line.text):
            blocks[-1] = line._replace(text=f"{blocks[-1].text}\n{line.text}")
        else:
            blocks.append(line)
    return blocks


def _is_title(text: str) -> bool:
    number = _NUMBER.match(text)
    title = text[number.end() :] if number else text
    return (
        len(text) <= _MAX_TITLE
        and text.count("\n") < _MAX_TITLE_LINES
        and title[:1].isalpha()
        and not title[0].islower()
        and 2 * sum(map(str.isalpha, title)) >= len(title) > 1
        and not _NO_TITLE_END.search(text)
        and CELL_BOUNDARY not in text
    )
