"""Recognises contents and indexes of a PDF, whose rows are in columns as those of tables are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from arag.ingest.boundaries import LEADERS
from arag.ingest.formats.pdf.rows import Row
from arag.text.contents import is_heading_of_contents

_SECTION = r"(?:[^\W\d]+ )?(?:\d{1,3}|[A-Z]|[IVXLC]+)(?:\.\d{1,3})*\.?(?: ?[章节節장절])?"
_PAGE = r"(?:\d{1,4}|[ivxlc]+)"
_PAGES = rf"{_PAGE}(?:(?:, |[-–]){_PAGE})*"
# A number, a title, leaders and pages, each in a cell of its own or not; the next line may have further pages.
_ENTRY = re.compile(
    rf"(?:{_SECTION}\t)?[^\t]*?(?:\t?{LEADERS}|\t[. ]{{1,6}})?[\t ](?P<pages>{_PAGES}),?"
    rf"|[^\t]*\t?{LEADERS}"
)
_LEADERS = re.compile(rf"{LEADERS}|\t\. (?:\. ?)+\t")  # few are enough in a cell of their own
_NUMBERED = re.compile(rf"(?:{_SECTION}[\t ])\S.*")
_SUBSECTION = re.compile(r"(?:\d{1,3}|[A-Z])\.\d")
_MOSTLY = 0.75  # of the rows are entries; a long title has further lines
_MIN_ENTRIES = 3  # without leaders


def begins_contents(text: str) -> bool:
    """Return whether a line is the title of contents, or an entry with leaders: the next lines are entries, too."""
    entry = _ENTRY.fullmatch(text)
    is_entry_with_leaders = entry is not None and _has_leaders(entry)
    return is_entry_with_leaders or is_heading_of_contents(text)


def is_contents(rows: Sequence[Row], *, is_in_contents: bool) -> bool:
    """Return whether rows are contents or an index, which may have titles of parts between the entries.

    Most entries have leaders, or some below others that have. Or their pages follow each other, and the rows are below
    the title of contents. Or all rows are entries, and some have leaders, or they have the numbers of sections and of
    their parts.

    Args:
        rows: The rows.
        is_in_contents: Whether the line above them is the title of contents, or an entry.
    """
    entries = list(filter(None, map(_match_entry, rows)))
    entries_end = rows[-1].extents[0].right
    titles = sum(_is_title_of_part(row, entries_end) for row in rows)
    others = len(rows) - len(entries) - titles
    if len(entries) < max(1, _MOSTLY * (len(entries) + others)):
        return False
    with_leaders = sum(map(_has_leaders, entries))
    goes_on = is_in_contents and with_leaders > 0
    if goes_on or 2 * with_leaders > len(entries):
        return True
    if not _are_in_order(entries):
        return False
    first = [piece.text for piece in rows[0].above[-1:]]
    first.append(rows[0].texts[0])
    if is_in_contents or any(map(begins_contents, first)):
        return True
    if others:
        return False
    has_sections = with_leaders > 0 or _are_sections(entries)
    return has_sections and len(entries) >= _MIN_ENTRIES


def _is_title_of_part(row: Row, entries_end: float) -> bool:
    is_line = len(row.cells) == 1 and not is_entry(row)
    is_letter = len(row.texts[0]) == 1  # of an index, in the middle of the column
    return is_line and (is_letter or row.extents[0].left < entries_end)


def is_entry(row: Row) -> bool:
    """Return whether a row of contents is an entry, and not the title of a part."""
    return _match_entry(row) is not None


def _match_entry(row: Row) -> re.Match[str] | None:
    return _ENTRY.fullmatch("\t".join(row.texts))


def _has_leaders(entry: re.Match[str]) -> bool:
    return _LEADERS.search(entry[0]) is not None


def _are_in_order(entries: Sequence[re.Match[str]]) -> bool:
    """Return whether each entry has one page, and none is before that of the entry above it."""
    pages = [entry["pages"] or "" for entry in entries]
    if not all(map(str.isdecimal, pages)):
        return False
    numbers = list(map(int, pages))
    return numbers == sorted(numbers)


def _are_sections(entries: Sequence[re.Match[str]]) -> bool:
    """Return whether all entries have numbers, and some are those of parts of a section."""
    subsections = 0
    for entry in entries:
        if _NUMBERED.fullmatch(entry[0]) is None:
            return False
        subsections += _SUBSECTION.match(entry[0]) is not None
    return subsections > 0
