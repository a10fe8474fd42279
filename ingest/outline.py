"""The headings and the tables that sentences of a document stand under, followed line by line."""

from __future__ import annotations

import re

from arag.text.normalise import CELL_BOUNDARY, HEADING_BOUNDARY, collapse_whitespace

BARE = 7  # the level of a heading that is a plain line, below the six of Markdown

_MAX_NAME = 100  # characters of a heading that are kept
_MAX_HEADER = 2_000  # characters of a table's header: each chunk of the table keeps it
_PAGE_HEADER = re.compile(r"table of contents|\(continued\)|^see ", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_MARKDOWN_RULE = re.compile(r"[\s:|]*-[\s:|-]*")
_NUMBER = r"(?:(?:(?:Item |Note |Part )?\d[\d.]*|[A-Z](?:\.\d+)+)\s+)"
# A line by itself is a heading if it begins with a capital, and has no numbers but its own and years.
_PLAIN_HEADING = re.compile(rf"{_NUMBER}?(?=\w)[^\Wa-z\d_](?:\D|\b(?:19|20)\d\d\b)+")
# A line of a paragraph must also have at least two words, each with a capital but for short ones, and not end with some
# of them said twice, as a table's header: `Planned Actual Planned Actual`. One word is enough after a number as 3.4.
_TITLE_CASE = re.compile(
    rf"(?=.{{6,80}}$)(?!.*\b(\w.*) \1$){_NUMBER}?"
    r"[A-Z][\w’'/-]*(?:,? (?:[A-Z(&–—][\w’'/)–-]*|and|of|the|for|in|on|to|with|by|or|from|at|a|an|\d{4}|–|—))+"
    r"|(?:\d{1,2}|[A-Z])(?:\.\d{1,2})+\s+[A-Z][\w’'/-]+"
)


class Outline:
    """Where in its document a reader is. The document's title is not one of its headings."""

    def __init__(self, title: str) -> None:
        self._title = collapse_whitespace(title).strip("# ")
        self._headings: list[tuple[int, str]] = []
        self._header = ""  # of the table that was entered last

    @property
    def path(self) -> str:
        """The headings down to here, outermost first."""
        return HEADING_BOUNDARY.join(name for _, name in self._headings)

    def enter(self, level: int, line: str) -> str:
        """Go on below a heading of a level as in Markdown, or `BARE`; return the path that it stands under itself."""
        name = collapse_whitespace(line).strip("# ")
        if level == BARE and (name == self._title or _PAGE_HEADER.search(name) or not _PLAIN_HEADING.fullmatch(name)):
            return self.path
        self._headings = [(above, heading) for above, heading in self._headings if above < level]
        parents = self.path
        if name and name != self._title:
            self._headings.append((level, name[:_MAX_NAME]))
        if level < BARE:
            self.leave_table()
        return parents

    def leave_table(self) -> None:
        """Go on outside of tables."""
        self._header = ""

    def enter_row(self, row: str, following: str) -> str:
        """Go on to a row with a line after it, and return its table's header unless the row has it."""
        cells = _split(row)
        if _MARKDOWN_RULE.fullmatch(following) or _names_cells(cells, following) or len(_YEAR.findall(row)) > 1:
            header = collapse_whitespace(row).strip("| ")
            self._header = header if len(header) <= _MAX_HEADER else ""
            return ""
        return "" if _names_cells(_split(self._header), row) else self._header


def is_heading_line(line: str) -> bool:
    """Return whether a line inside a paragraph, as PDFs have them, looks like a heading."""
    return _TITLE_CASE.fullmatch(line) is not None


def _split(row: str) -> list[str]:
    return [cell.strip() for cell in collapse_whitespace(row).strip("| ").split(CELL_BOUNDARY)]


def _names_cells(names: list[str], row: str) -> bool:
    """Return whether the first cell of a row has its column's name before it."""
    name, colon, _ = collapse_whitespace(row).partition(": ")
    return bool(colon) and name in [each.rstrip(":") for each in names if each]
