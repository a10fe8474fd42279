"""Marks in the text of a web page: what they stand for is written once the whole text is known."""

from __future__ import annotations

import re

from arag.ingest.formats.bars import TEXT_BAR
from arag.ingest.formats.frame import CODE_LINE_END, FRAME_END, FRAME_START
from arag.ingest.formats.html_quotes import QUOTE_END, QUOTE_START
from arag.ingest.formats.lines import LINE_END, show_line_ends
from arag.ingest.outline import escape_structure
from arag.text.normalise import collapse_whitespace

NO_BREAK_SPACE = "\u00a0"
ITEM = "\0"  # begins an item of a list; no text of a page has a NUL
MARK_END = "\x06"  # ends its bullet or number
HEADING = "\x01"  # stands for `#`, which may also begin a line of text
TERM_END = "\x02"  # ends a term of a list of definitions
DEFINITION = "\x03"  # begins its definition
_TERM_AND_DEFINITION = re.compile(
    rf"^([^\n{HEADING}{TERM_END}{CODE_LINE_END}]{{1,100}}?)[:：]?[ \n]*{TERM_END}[\s{TERM_END}]*{DEFINITION}"
    rf"[ \n]*(?=[^\s{HEADING}])",
    re.MULTILINE,
)
ALL_MARKS = (
    f"{HEADING}{MARK_END}{TERM_END}{DEFINITION}{TEXT_BAR}{LINE_END}{CODE_LINE_END}"
    f"{FRAME_START}{FRAME_END}{QUOTE_START}{QUOTE_END}"
)

_LONE_BOX = re.compile(r"^\[[ x]\]$", re.MULTILINE)  # of a form: it opens a menu
_FRAME_MARK = f"[{FRAME_START}{FRAME_END}]*"
_ITEM_START = re.compile(rf"{ITEM}([^{MARK_END}]*){MARK_END}[ \n]*")
_EMPTY_ITEM = re.compile(rf"{_ITEM_START.pattern}(?=$|{_FRAME_MARK}{ITEM}|{HEADING}{{1,6}} )")  # or one of a heading
_ITEM_IN_CELL = re.compile(rf"{ITEM}[{NO_BREAK_SPACE}]*-? ?([^{MARK_END}]*){MARK_END}")
_NUMBER = rf"{ITEM}{NO_BREAK_SPACE}*\d"
_NUMBER_AFTER_TERM = re.compile(rf": (?={_NUMBER})")
# A numbered item follows the line before it at once: by itself, it would look like the title of a section.
_GAP_BEFORE_NUMBER = re.compile(rf"(?<!\n)\n+(?={_FRAME_MARK}{_NUMBER})")
_GAP_BETWEEN_ITEMS = re.compile(
    rf"^({_FRAME_MARK}(?:- |{ITEM})[^\n{CODE_LINE_END}]*)\n+(?={_FRAME_MARK}(?:- |{ITEM}))", re.MULTILINE
)


def tidy(text: str) -> str:
    """Return a page's text with single spaces, one blank line between blocks, and none between items of a list."""
    text = show_line_ends(text)
    text = re.sub(" +", " ", text)
    text = re.sub(" *\n *", "\n", text)
    text = _EMPTY_ITEM.sub("", text)
    text = _ITEM_START.sub(rf"{ITEM}\1 ", text)
    text = _GAP_BETWEEN_ITEMS.sub(r"\1\n", text)
    text = _GAP_BEFORE_NUMBER.sub("\n", text)
    if DEFINITION in text:
        text = _TERM_AND_DEFINITION.sub(r"\1: ", text)
        text = _NUMBER_AFTER_TERM.sub(":\n", text)
    text = text.replace(TERM_END, "").replace(DEFINITION, "")
    if "[" in text:
        text = _LONE_BOX.sub("", text)
    text = re.sub("\n{3,}", "\n\n", text)
    text = text.strip().replace(ITEM, "").replace(NO_BREAK_SPACE, " ")
    return escape_structure(text).replace(HEADING, "#")


def on_one_line(text: str) -> str:
    """Return a text that stands within a line, such as a heading's or a cell's."""
    text = show_line_ends(text)
    text = _ITEM_IN_CELL.sub(r" \1 ", text)
    for mark in (TERM_END, DEFINITION, QUOTE_START, QUOTE_END):
        text = text.replace(mark, " ")
    return collapse_whitespace(text)
