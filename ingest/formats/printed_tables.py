"""Tables as text browsers print them: a frame, and rules between the rows, whose cells may take several lines.

Databases draw only the rule below the names, and a space before each cell: there, each line is a row.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from arag.ingest.formats.lines import LINE_END, show_line_ends
from arag.ingest.formats.restructured_tables import MAX_COLUMNS, cut_grid
from arag.ingest.formats.tables import table_lines
from arag.text.normalise import collapse_whitespace

_SPACES = "[ \u00a0]*"
_FRAME = re.compile(
    rf"^{_SPACES}[+┌][-─+┬]{{3,}}[+┐]{_SPACES}\n(?:{_SPACES}[|│+├└][^\n]*[|│+┤┘]{_SPACES}(?:\n|\Z))+",
    re.MULTILINE,
)
_AS_SIGNS = str.maketrans("─│┌┐└┘├┤┬┴┼", "-|++++||+++")
_BORDER = re.compile(r"\+-[-+]*-\+")
_RULE = re.compile(r"[|+]-+(?:\+-+)+[|+]")
_RULE_BELOW_NAMES = re.compile(r"\|-+(?:\+-+)+\||\|=+(?:\|=+)+\|")
_PART_OF_RULE = re.compile(r"\|-{3,}[+|]|\+-{2,}[+|]")  # beside a cell of several rows
_JOINT = re.compile(r"[+|]")
_NOTE = re.compile(r"\|[^|]*\|")  # in one cell below the rows
_CENTRED = re.compile(r"\| +[^\s|]")  # as names are
_WITHOUT_SPACE = re.compile(r"\|[^\s|]")  # text browsers set no space before a cell
_SECOND_PLACE = "\x00"  # of a character that takes two places of a line


def show_printed_tables(text: str) -> str:
    """Return a text with each row of such a table in one line. The first row names the columns."""
    return _FRAME.sub(_show_table, text) if "---" in text or "──" in text else text


def _show_table(frame: re.Match[str]) -> str:
    signs = frame[0].translate(_AS_SIGNS).rstrip()
    first, *lines, last = map(_with_places, signs.splitlines())
    rule = next(filter(_RULE_BELOW_NAMES.fullmatch, lines), "")
    has_other_widths = any(len(line) != len(first) for line in lines)
    columns = [joint.start() for joint in _JOINT.finditer(rule)]
    if not rule or has_other_widths or not _BORDER.fullmatch(last) or len(columns) > MAX_COLUMNS:
        return frame[0]
    empty = [""] * (len(columns) - 1)
    rows = [empty]
    notes: list[str] = []
    has_row_in_line = _has_row_in_line(lines, rule)
    for line in lines:
        is_note = _NOTE.fullmatch(line) is not None
        if _RULE.fullmatch(line) or _RULE_BELOW_NAMES.fullmatch(line):
            rows.append(empty)
        elif _PART_OF_RULE.search(line) or (notes and not is_note):
            return frame[0]
        elif is_note:
            notes.append(line.strip("|"))
        else:
            cells = cut_grid(line, columns)
            is_below_names = len(rows) > 1
            begins_row = has_row_in_line and is_below_names and cells[0] != ""
            if begins_row and any(rows[-1]):
                rows.append(empty)
            pairs = zip(rows[-1], cells, strict=True)
            rows[-1] = [LINE_END.join(filter(None, pair)) for pair in pairs]
    above = lines[: lines.index(rule)]
    has_names = "=" in rule or any(map(_CENTRED.search, above))
    texts = [list(map(_join_cell, row)) for row in rows]
    has_groups = any(sum(map(bool, row)) == 1 for row in texts)
    if has_groups:  # a row with one cell would be a line by itself, and look like a heading
        return frame[0]
    note = _join_cell(LINE_END.join(notes))
    shown = [*table_lines(filter(any, texts), header=has_names), "", note]
    return "\n".join(shown).rstrip() + "\n"


def _has_row_in_line(lines: Sequence[str], rule: str) -> bool:
    """Return whether a table has a space before each cell, and no other rule than the one below its names.

    Another may be above notes.
    """
    rules: list[str] = []
    for line, below in pairwise([*lines, ""]):
        is_rule = _RULE.fullmatch(line) or _RULE_BELOW_NAMES.fullmatch(line)
        if is_rule and not _NOTE.fullmatch(below):
            rules.append(line)
        elif not is_rule and _WITHOUT_SPACE.search(line):
            return False
    return rules == [rule] and "=" not in rule


def _with_places(line: str) -> str:
    """Return a line without its margin, in which a character that takes two places has a sign after it."""
    return "".join(map(_with_place, line.strip()))


def _with_place(character: str) -> str:
    is_wide = unicodedata.east_asian_width(character) in "WF"
    return f"{character}{_SECOND_PLACE}" if is_wide else character


def _join_cell(lines: str) -> str:
    """Return a cell in one line."""
    return collapse_whitespace(show_line_ends(lines.replace(_SECOND_PLACE, "")))
