"""Titles of plain texts that are marked as in AsciiDoc and wikis, or underlined with other signs than in Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from arag.ingest.formats.restructured import find_title
from arag.ingest.outline import escape_code, escape_marks

_MARKED = re.compile(r"(={1,6})[ \t]+(\S.{0,100}?)(?P<end>[ \t]+(?:\1|={2,}))?[ \t]*$")
_OF_WIKI = re.compile(r"^(={5,6})[ \t]+\S.*[ \t]\1[ \t]*$", re.MULTILINE)  # where more signs are a higher level
_ATTRIBUTES = re.compile(r"\[.*\]\s*$")  # such as [[name]], above a title of AsciiDoc
_ANCHOR = re.compile(r"\[\[[^\]\n]*\]\]$")
_ANCHOR_OF_WORDS = re.compile(r"(?<=\w)\[\[\w[\w-]*\]\]$", re.MULTILINE)  # without a space, unlike a link of a wiki
_NO_TITLE = re.compile(r"[*+-] |\[.*\]$")  # an item, and the name of a block
_ASCIIDOC = re.compile(r"^(?:\[.+\]|.*\S::|\w+::\S*\[.*\])$", re.MULTILINE)  # the name of a block, a term, a macro
_CHARACTERS = {  # with names in AsciiDoc, and in the manual of Git
    "apostrophe": "'",
    "asterisk": "*",
    "backtick": "`",
    "caret": "^",
    "endsb": "]",
    "litdd": "--",
    "plus": "+",
    "startsb": "[",
    "tilde": "~",
}
_CHARACTER = re.compile(rf"(?<!\\)\{{({'|'.join(_CHARACTERS)})\}}")
_DELIMITER = re.compile(r"([-=.*_+])\1{3,}$")  # above and below a block of AsciiDoc, such as code
_GAP = re.compile(r"\S(?: {3}|\t)|\|")  # between the headers of a table's columns
_UNDERLINES = "=-~^*+#\"'"
_AS_MARKDOWN = ("under =", "under -")  # which need no marks
_MAX_DIFFERENCE = 2  # characters between the lengths of a title and its underline; more below the last line of a block
_MIN_TITLES = 2  # a text with one that is not closed may show a drawing or what a program prints
_MANY_TITLES = 4  # underlined ones: then those of a text are, and other short lines are none
_MAX_LEVEL = 6
_MOST = 0.75  # of the equal lines: half of those around blocks are below a blank line and above a text, too
_INDENTATION = "    "  # of a line that is shown as it is


def mark_sections(text: str) -> tuple[str, bool]:
    """Return a plain text and whether its titles are marked: if some are not underlined as in Markdown, or many are.

    The order of the underlines gives the levels, and so do the signs of AsciiDoc. Other lines that would be headings in
    Markdown are indented, and so is the end of a block of code, which is not an underline.
    """
    lines = text.split("\n")
    is_of_wiki = _OF_WIKI.search(text) is not None
    in_block = _indent_blocks(lines)
    lines_of_title = 2 if _ASCIIDOC.search(text) else 3  # between two lines, AsciiDoc has code
    marked: list[str] = []
    styles: list[str] = []
    others = 0
    underlines = 0
    number = 0
    is_apart = True
    while number < len(lines):
        line = lines[number]
        may_be_title = is_apart and number not in in_block and not _NO_TITLE.match(line)
        title = _MARKED.match(line) if may_be_title else None
        underlined = find_title(lines[number : number + lines_of_title]) if may_be_title else None
        if title:
            signs = len(title[1])
            level = _MAX_LEVEL + 1 - signs if is_of_wiki else signs
            marked.append(f"{'#' * level} {_without_anchor(title[2])}")
            styles = styles or ["under ="]
            others += _MIN_TITLES if title["end"] else 1
            number += 1
        elif underlined and underlined.style[-1] in _UNDERLINES and not _GAP.search(underlined.text):
            if underlined.style not in styles:
                styles.append(underlined.style)
            others += underlined.style not in _AS_MARKDOWN
            underlines += 1
            level = min(styles.index(underlined.style) + 1, _MAX_LEVEL)
            marked.append(f"{'#' * level} {_without_anchor(underlined.text)}")
            number += underlined.lines
        else:
            marked.append(escape_marks(line))
            number += 1
        is_apart = not line.strip() or _ATTRIBUTES.match(line) is not None
    are_titles = others >= _MIN_TITLES
    shown = "\n".join(marked) if are_titles else escape_marks("\n".join(lines))
    if _ASCIIDOC.search(text):
        shown = _CHARACTER.sub(_show_character, _ANCHOR_OF_WORDS.sub("", shown))
    return shown, are_titles or underlines >= _MANY_TITLES


def _show_character(name: re.Match[str]) -> str:
    return _CHARACTERS[name[1]]


def _indent_blocks(lines: list[str]) -> set[int]:
    """Escape each block between two equal lines, indent the second one, and return the numbers of lines in blocks."""
    last_places = _find_delimiters(lines)
    inside: set[int] = set()
    first = -1  # the line that begins the block
    for number, line in enumerate(lines):
        is_inside = first >= 0
        if is_inside:
            inside.add(number)
        if line not in last_places:
            continue
        if is_inside:
            if line == lines[first].lstrip():
                is_title = number == first + 2
                if not is_title:
                    inner = slice(first + 1, number)
                    lines[inner] = escape_code(lines[inner])
                    lines[number] = f"{_INDENTATION}{line}"
                first = -1
            continue
        before = lines[number - 1].strip() if number else ""
        is_below_name = _ATTRIBUTES.match(before) is not None  # such as [NOTE]
        if is_below_name:
            lines[number] = f"{_INDENTATION}{line}"
        is_underline = before and abs(len(before) - len(line)) <= _MAX_DIFFERENCE and not is_below_name
        has_end = last_places[line] > number
        if has_end and not is_underline and lines[number + 1].strip():
            first = number
    return inside


def _find_delimiters(lines: Sequence[str]) -> dict[str, int]:
    """Return the last place of each line that may begin and end blocks; others are rules between sections."""
    last_places: dict[str, int] = {}
    places = Counter[str]()
    rules = Counter[str]()
    for number, line in enumerate(lines):
        if _DELIMITER.match(line):
            last_places[line] = number
            places[line] += 1
            rules[line] += _divides_text(lines, number)
    return {line: place for line, place in last_places.items() if rules[line] < _MOST * places[line]}


def _divides_text(lines: Sequence[str], rule: int) -> bool:
    """Return whether a rule is below a blank line and above a text: the end of a block is not."""
    is_below_blank = rule == 0 or not lines[rule - 1].strip()
    return is_below_blank and any(map(str.strip, lines[rule + 1 : rule + 2]))


def _without_anchor(title: str) -> str:
    return _ANCHOR.sub("", title)
