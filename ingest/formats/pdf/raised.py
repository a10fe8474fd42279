"""Raised characters of a PDF: each run of them gets marks, so that the text shows a power or the number of a note."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, groupby

from arag.ingest.formats.pdf.glyphs import Box, PageText

_TERM = r"(?![A-Za-z]{2}|[A-Z])[\dA-Za-zα-ω∞]+"  # unlike the end of an ordinal, such as 1er
_RAISED = re.compile(rf"[\d*†‡§¶#+,()\[\]–−-]+|[a-z](?:,[a-z])*|[-–−+]?{_TERM}(?:[-–−+]{_TERM})*")
_FUNCTION = "(?:arc)?(?:sin|cos|tan)|cot|log|ln|exp"  # before the power of its value
_EXPONENT_BASE = re.compile(
    rf"(?:(?<![\w.,])\d{{1,2}}|(?<![^\W_])(?:[A-Za-zΑ-Ωα-ω℘]|[cdkmnµμ]m|kg|ft|Hz|{_FUNCTION}))$",
)
_POWER = re.compile(rf"[-–−+]{_TERM}|[jkm-uwyzα-ω∞]")  # notes have the first letters, or Roman numbers
_SUM = re.compile(r"(?=.*[a-zα-ω])\w+[-–−+].*")
_ABBREVIATION = re.compile(r"(?:(?:\d|\b[IVXLC]+)[eo]|\b(?:[Nn]o|Me|[DM]r|St))$")  # 2e, XIXe, n°
_NOTE = re.compile(r"[\[(]?(\d[\d,–−-]*|[a-z](?:,[a-z])*)[\])]?")
_WORD_END = re.compile(r"[^\W\d_]{2}\W*$")
_FRACTION = re.compile(r"\d[/⁄]")  # the characters around its upper number
_SYMBOLS = "CMSY"  # a font of TeX, in which PDFium takes a prime for a 0
_AFTER_LOGO = ("ε", "ϵ")  # of LaTeX2ε, whose number may be smaller than the capitals before it
_LOW = 0.95  # times the height of the type beside it: the height of raised characters
_RISE = 0.15  # times that height: the least rise
_LINE_RISE = 0.05  # times that height: the least rise of the line on which raised characters stand


def set_raised_apart(page: PageText, places: range) -> dict[int, str]:
    """Return the first and last raised characters of a word with marks: `10^6` for a power, `1880 [3]` for a note.

    Args:
        page: The text of the page.
        places: The places of the word's characters in the text.
    """
    if page.is_turned(places[0]):
        return {}
    printed: list[int] = []
    for place in places:
        if page.text[place] not in "\r\n":
            printed.append(place)
    word = "".join([page.text[place] for place in printed])
    boxes = list(map(page.box, printed))
    baselines = list(map(page.baseline, printed))
    base = max(range(len(boxes)), key=lambda number: boxes[number].height)
    changes: dict[int, str] = {}
    for run in _raised_runs(boxes, boxes[base], baselines):
        start = run[0]
        end = run[-1] + 1
        rise = baselines[start] - baselines[base]
        if rise < _LINE_RISE * boxes[base].height:  # digits in old style, which are of different heights
            continue
        raised = word[start:end]
        marked = _mark_raised(
            before=word[:start],
            raised=raised,
            after=word[end : end + 1],
        )
        if not raised.strip("0") and page.font_name(printed[start]).startswith(_SYMBOLS):
            marked = "′" * len(raised)
        if marked == raised:
            continue
        for number in run:
            place = printed[number]
            changes[place] = ""
        first_place = printed[start]
        changes[first_place] = marked
    return changes


def is_note(number: str, before: str, below: str) -> bool:
    """Return whether a raised number after a word is that of a note: a line below begins with it.

    Args:
        number: The number.
        before: The word.
        below: The text of the page after the number.
    """
    if not _WORD_END.search(before) or _EXPONENT_BASE.search(before):
        return False
    return re.search(rf"^{number}(?!\d)", below, re.MULTILINE) is not None


def _raised_runs(boxes: Sequence[Box], base: Box, baselines: Sequence[float]) -> list[list[int]]:
    """Return the numbers of the characters of each raised run, those of a power in a power apart.

    Args:
        boxes: The boxes of the characters of a word.
        base: That of the largest.
        baselines: The heights of the lines on which they stand.
    """
    runs: list[list[int]] = []
    numbers = range(len(boxes))
    highest = list(map(round, accumulate(baselines, max)))
    for height, run in groupby(numbers, key=lambda number: is_raised(boxes[number], base) and highest[number]):
        if height:
            runs.append(list(run))
    return runs


def is_raised(box: Box, base: Box) -> bool:
    """Return whether a character is smaller and higher than the largest one of its word."""
    if box.height >= _LOW * base.height:
        return False
    rise = box.bottom - base.bottom
    return rise > _RISE * base.height


def _mark_raised(before: str, raised: str, after: str) -> str:
    """Return a raised run with its mark.

    Args:
        before: The word up to it.
        raised: The run.
        after: The next character of the word, or an empty string.
    """
    is_inside = before != "" and not after.isalnum()
    begins_word = raised[0].isalpha() and not is_inside
    if begins_word or not _RAISED.fullmatch(raised) or after in _AFTER_LOGO:
        return raised
    if _ABBREVIATION.search(before + raised):
        return raised.replace("o", "°")
    if _FRACTION.fullmatch(before[-1:] + after):
        return f" {raised}"  # such as 3 1/2
    if _POWER.fullmatch(raised) or _EXPONENT_BASE.search(before):
        return f"^({raised})" if _SUM.fullmatch(raised) else f"^{raised}"
    note = _NOTE.fullmatch(raised)
    if not note:
        return raised
    mark = f"[{note[1]}]"
    if before:
        mark = f" {mark}"
    if after.isalnum():
        mark = f"{mark} "
    return mark
