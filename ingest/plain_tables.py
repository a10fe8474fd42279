"""Finds the rows of tables in texts and in code, in which a bar may also be a part of code or of syntax."""

from __future__ import annotations

import re
from collections import Counter

from arag.text.normalise import CELL_BOUNDARY

# After its marks, a fence may have a name, but no further marks, as in `outline.FENCE_LINE`.
_FENCED = re.compile(
    r"^[^\S\n]*(`{3,}+(?=[^`\n]*$)|~{3,}+(?=[^~^\n]*$)).*?(?:^[^\S\n]*\1|\Z)", re.DOTALL | re.MULTILINE
)
_RULE = re.compile(r"^(?=.*-)(?=.*[|+])[^\S\n]*[|+:=-][ |+:=-]*$", re.MULTILINE)  # below a header, or a border
# Lines with bars, and rules, that follow each other.
_RUN = re.compile(
    r"(?:^(?:[^\S\n]*\||[^\n]* \| |[^\S\n]*[+:=-][ |+:=-]*$)[^\n]*(?:\n|\Z))+",
    re.MULTILINE,
)
_DASHES = re.compile(r" \| [^\n]*\n[^\S\n]*-{3,}[^\S\n]*\n[^\n]* \| ")  # a rule without the places of the bars
_RECORD = re.compile(r"(?<=^-)\[ RECORD \d+ \]|(?<=-)\u200b(?=-)", re.MULTILINE)  # in a rule of psql, as of its manual
_BETWEEN_BARS = re.compile(r"[^|\n]")
_LINE = re.compile(r"^[^\n]+", re.MULTILINE)
_PRINTED_LINE = re.compile(r"^(?![^\S\n]*(?:[#$%]|\w*[=>#-]*[>#]) [^|])[^\n]+", re.MULTILINE)  # unlike a prompt
_NAMED_ROW = re.compile(r"^([^|:\n]{1,60}): [^|\n]* \| [^|:\n]{1,60}: ", re.MULTILINE)  # as of other files
_OPEN_AT_ONE_END = re.compile(r"^\s*\|[^\n]*[^|\s]\s*$|^\s*[^|\s][^\n]*\|\s*$", re.MULTILINE)
_SYNTAX = re.compile(
    r"&&"
    r"|(?:^|[\s'\"|])--?[A-Za-z]"  # an option
    r"|^[^\S\n]*(?:[#%*$]|//|\.\.)"  # a comment, a prompt or a directive
    r"|\| +\d+ [+-]+$"  # lines that a change adds and takes away
    r"|[^\S\n]:?=[^\S\n]"
    r"|\bNone$"
    r"|[;,=({]$"
    r"|\([^()|\n]*(?:\||$)"  # a bracket that is open at the end of a cell
    r"|\[[^\[\]|\n]*(?:\||$)",
    re.MULTILINE,
)
_MAX_WIDTH = 1_000  # characters of a row as programs print it
_CODE = re.compile(rf"[`\\{{}}<>]|\$ ?[A-Za-z_(]|{_SYNTAX.pattern}", re.MULTILINE)


def is_barred(line: str) -> bool:
    """Return whether bars may divide a line into cells."""
    return CELL_BOUNDARY in line or line.lstrip().startswith("|")


def find_rows(text: str) -> set[int]:
    """Return the starts of the lines that are certainly rows of tables."""
    if "|" not in text:
        return set()
    unfenced = _FENCED.sub(_blank, text)
    names = set(_NAMED_ROW.findall(unfenced))
    rows: set[int] = set()
    for run in _RUN.finditer(unfenced):
        lines = run[0]
        first_cell, _, _ = lines.partition(CELL_BOUNDARY)
        is_header = first_cell.strip() in names
        has_names = is_header or _NAMED_ROW.search(lines) is not None
        is_written = has_names and not _CODE.search(lines)
        if is_written or _repeats_header(lines) or _is_table(lines):
            rows.update(_line_starts(_LINE, run))
    return rows


def find_printed_rows(code: str) -> set[int]:
    """Return the starts of the lines of tables as programs print them: with a rule, or with bars below each other."""
    rows: set[int] = set()
    code = _RECORD.sub(_rule, code)
    for run in _RUN.finditer(code):
        if _RULE.search(run[0]) or _DASHES.search(run[0]) or _is_aligned(run[0]):
            rows.update(_line_starts(_PRINTED_LINE, run))
    return rows


def _rule(part: re.Match[str]) -> str:
    """Return a part of a rule that has as many characters and none but those of rules."""
    return "+".ljust(len(part[0]), "-")


def _is_aligned(lines: str) -> bool:
    """Return whether several lines have all their bars at the same places, and no code in them."""
    bars = _BETWEEN_BARS.sub(" ", lines).splitlines()
    places = Counter(map(str.rstrip, bars))
    del places[""]  # of rules
    if len(places) != 1 or places.total() == 1:
        return False
    (width,) = map(len, places)
    return width <= _MAX_WIDTH and not _SYNTAX.search(lines)


def _line_starts(line: re.Pattern[str], run: re.Match[str]) -> list[int]:
    return [found.start() for found in line.finditer(run.string, *run.span())]


def _blank(code: re.Match[str]) -> str:
    """Return as many characters without a bar."""
    return code[0].replace("|", " ")


def _repeats_header(lines: str) -> bool:
    """Return whether each row begins with the name of a column, as readers write tables."""
    header, *rows = lines.splitlines()
    names = set(header.strip().split(CELL_BOUNDARY))
    firsts = [row.strip().partition(": ") for row in rows]
    return bool(rows) and all(sign and name in names for name, sign, _ in firsts)


def _is_table(lines: str) -> bool:
    """Return whether lines have a rule, or the same number of cells without code in them; a header may lack one."""
    bars = [line.count("|") for line in lines.splitlines()]
    if len(bars) == 1:
        return False
    if _RULE.search(lines):
        return True
    is_code = _OPEN_AT_ONE_END.search(lines) or _CODE.search(lines)
    header, *rows = bars
    is_regular = len(set(rows)) == 1 and rows[0] - header in {0, 1}
    return is_regular and not is_code
