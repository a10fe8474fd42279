"""Tables as text browsers print them: a frame, and rules between the rows, whose cells may take several lines."""

from __future__ import annotations

import re
import unicodedata

from arag.ingest.formats.lines import LINE_END, show_line_ends
from arag.ingest.formats.restructured_tables import MAX_COLUMNS, cut_grid
from arag.ingest.formats.tables import table_lines
from arag.text.normalise import collapse_whitespace

_SPACES = "[ \u00a0]*"
_FRAME = re.compile(
    rf"^{_SPACES}(\+-{{3,}}+\+){_SPACES}\n((?:{_SPACES}\|[^\n]*\|{_SPACES}\n)+){_SPACES}\1{_SPACES}$",
    re.MULTILINE,
)
_RULE = re.compile(r"\|-+(?:\+-+)+\|")
_PART_OF_RULE = re.compile(r"\|-{3,}[+|]|\+-{2,}\|")  # beside a cell of several rows
_SECOND_PLACE = "\x00"  # of a character that takes two places of a line


def show_printed_tables(text: str) -> str:
    """Return a text with each row of such a table in one line. The first row names the columns."""
    return _FRAME.sub(_show_table, text) if "|--" in text else text


def _show_table(frame: re.Match[str]) -> str:
    lines = list(map(_with_places, frame[2].splitlines()))
    rule = next(filter(_RULE.fullmatch, lines), "")
    width = len(frame[1])
    has_other_widths = any(len(line) != width for line in lines)
    columns = [0, *(sign.start() for sign in re.finditer(r"\+", rule)), width - 1]
    if not rule or has_other_widths or len(columns) > MAX_COLUMNS:
        return frame[0]
    empty = [""] * (len(columns) - 1)
    rows = [empty]
    for line in lines:
        if _RULE.fullmatch(line):
            rows.append(empty)
        elif _PART_OF_RULE.search(line):
            return frame[0]
        else:
            pairs = zip(rows[-1], cut_grid(line, columns), strict=True)
            rows[-1] = [LINE_END.join(filter(None, pair)) for pair in pairs]
    shown = [list(map(_join_cell, row)) for row in rows]
    return "\n".join(table_lines(shown, header=True))


def _with_places(line: str) -> str:
    """Return a line without its margin, in which a character that takes two places has a sign after it."""
    return "".join(map(_with_place, line.strip()))


def _with_place(character: str) -> str:
    is_wide = unicodedata.east_asian_width(character) in "WF"
    return f"{character}{_SECOND_PLACE}" if is_wide else character


def _join_cell(lines: str) -> str:
    """Return a cell in one line."""
    return collapse_whitespace(show_line_ends(lines.replace(_SECOND_PLACE, "")))
