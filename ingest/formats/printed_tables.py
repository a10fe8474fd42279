"""Tables as text browsers print them: a frame, and rules between the rows, whose cells may take several lines.

Databases draw only the rule below the names, and a space before each cell: there, each line is a row.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import filterfalse, pairwise

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
    lines = list(map(_with_places, signs.splitlines()))
    inside = lines[1:-1]
    rule = next(filter(_RULE_BELOW_NAMES.fullmatch, inside), "")
    columns = [joint.start() for joint in _JOINT.finditer(rule)]
    if not rule or len(columns) > MAX_COLUMNS or not _is_whole(lines):
        return frame[0]
    rows = _read_rows(inside, rule, columns)
    has_groups = any(sum(map(bool, row)) == 1 for row in rows)
    if has_groups:  # a row with one cell would be a line by itself, and look like a heading
        return frame[0]
    above = inside[: inside.index(rule)]
    has_names = "=" in rule or any(map(_CENTRED.search, above))
    notes = [line.strip("|") for line in inside if _is_note(line)]
    note = _join_cell(LINE_END.join(notes))
    shown = [*table_lines(filter(any, rows), header=has_names), "", note]
    return "\n".join(shown).rstrip() + "\n"


def _is_whole(lines: Sequence[str]) -> bool:
    """Return whether lines are a table in a frame: of one width, without rules beside a cell, and with notes last."""
    first, *inside, last = lines
    if not _BORDER.fullmatch(last):
        return False
    has_other_widths = any(len(line) != len(first) for line in inside)
    if has_other_widths:
        return False
    texts = list(filterfalse(_is_rule, inside))
    if any(map(_PART_OF_RULE.search, texts)):
        return False
    are_notes = list(map(_is_note, texts))
    return are_notes == sorted(are_notes)


def _read_rows(lines: Sequence[str], rule: str, columns: Sequence[int]) -> list[list[str]]:
    """Return the cells of each row, without notes; a row may be empty.

    Args:
        lines: The lines inside the frame.
        rule: The one below the names.
        columns: The places of the bars.
    """
    empty = [""] * (len(columns) - 1)
    rows = [empty]
    has_row_in_line = _has_row_in_line(lines, rule)
    for line in lines:
        if _is_rule(line):
            rows.append(empty)
            continue
        if _is_note(line):
            continue
        cells = cut_grid(line, columns)
        is_below_names = len(rows) > 1
        begins_row = has_row_in_line and is_below_names and cells[0] != ""
        if begins_row and any(rows[-1]):
            rows.append(empty)
        pairs = zip(rows[-1], cells, strict=True)
        rows[-1] = [LINE_END.join(filter(None, pair)) for pair in pairs]
    return [list(map(_join_cell, row)) for row in rows]


def _has_row_in_line(lines: Sequence[str], rule: str) -> bool:
    """Return whether a table has a space before each cell, and no other rule than the one below its names.

    Another may be above notes.
    """
    rules: list[str] = []
    for line, below in pairwise([*lines, ""]):
        is_rule = _is_rule(line)
        if is_rule and not _NOTE.fullmatch(below):
            rules.append(line)
        elif not is_rule and _WITHOUT_SPACE.search(line):
            return False
    return rules == [rule] and "=" not in rule


def _is_rule(line: str) -> bool:
    return _RULE.fullmatch(line) is not None or _RULE_BELOW_NAMES.fullmatch(line) is not None


def _is_note(line: str) -> bool:
    return not _is_rule(line) and _NOTE.fullmatch(line) is not None


def _with_places(line: str) -> str:
    """Return a line without its margin, in which a character that takes two places has a sign after it."""
    return "".join(map(_with_place, line.strip()))


def _with_place(character: str) -> str:
    is_wide = unicodedata.east_asian_width(character) in "WF"
    return f"{character}{_SECOND_PLACE}" if is_wide else character


def _join_cell(lines: str) -> str:
    """Return a cell in one line."""
    return collapse_whitespace(show_line_ends(lines.replace(_SECOND_PLACE, "")))
