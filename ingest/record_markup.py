"""Texts of records that are pieces of web pages, as forums and sites export them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from arag.ingest.formats.content import join_blocks
from arag.ingest.formats.tables import table_lines
from arag.ingest.outline import escape_structure
from arag.text.normalise import collapse_whitespace

_BLOCKS = "p div h1 h2 h3 h4 h5 h6 ul ol dl table blockquote pre figure aside section article details".split()
_COMMENT = r"<!--[^<>]*-->\s*"
_MARKUP = re.compile(rf"\s*(?:{_COMMENT})*<(?:{'|'.join(_BLOCKS)})\b[^<>]*>.*>\s*", re.DOTALL | re.IGNORECASE)
_HEADING = re.compile(r"h[1-6]")
_SPACES = re.compile(r"\s+")
_HIDDEN = {"script", "style", "template"}


def is_markup(text: object) -> bool:
    """Return whether a value is a piece of a web page: it begins with a paragraph or the like, and ends with a tag."""
    return isinstance(text, str) and _MARKUP.fullmatch(text) is not None


def show_markup(text: str) -> str:
    """Return what a piece of a web page shows, with headings, items and rows of tables; other texts as they are."""
    if not is_markup(text):
        return text
    page = _Page()
    page.feed(text)
    page.close()
    page.end_table()
    page.end_block()
    return join_blocks(page.blocks)


class _Page(HTMLParser):
    """Collects the blocks of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self._texts: list[str] = []  # of the block or the cell that is open
        self._marks = ""  # of the heading that is open
        self._rows: list[list[str]] = []  # of the table that is open
        self._is_in_cell = False
        self._has_names = False
        self._hidden = 0
        self._preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS:
            self._end_paragraph()
        if _HEADING.fullmatch(tag):
            self._marks = "#" * int(tag[1])
        self._hidden += tag in _HIDDEN
        match tag:
            case "pre":
                self._preformatted += 1
            case "br" | "dt" | "dd":
                self._texts.append("\n")
            case "li":
                self._texts.append("\n- ")
            case "img":
                self._texts.append(dict(attrs).get("alt") or "")
            case "tr":
                self._end_cell()
                self._rows.append([])
            case "td" | "th":
                self._begin_cell(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"}:
            self._end_cell()
        if tag == "table":
            self.end_table()
        if tag in _BLOCKS:
            self._end_paragraph()
        if tag in _HIDDEN:
            self._hidden = max(self._hidden - 1, 0)
        if tag == "pre":
            self._preformatted = max(self._preformatted - 1, 0)

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        self._texts.append(data if self._preformatted else _SPACES.sub(" ", data))

    def end_block(self) -> None:
        """End the block that is open."""
        lines = "".join(self._texts).split("\n")
        if not self._preformatted:
            lines = list(filter(None, map(collapse_whitespace, lines)))
        text = "\n".join(lines).strip("\n")
        marks = self._marks
        self._texts = []
        self._marks = ""
        if not text.strip():
            return
        if marks:
            self.blocks.append(f"{marks} {collapse_whitespace(text)}")
        else:
            self.blocks.append(escape_structure(text))

    def end_table(self) -> None:
        """End the table that is open, if one is."""
        if not self._rows:
            return
        self._end_cell()
        lines = table_lines(self._rows, header=self._has_names)
        self.blocks.append("\n".join(lines))
        self._rows = []
        self._has_names = False

    def _end_paragraph(self) -> None:
        """End a paragraph, which in a cell is a line."""
        if self._is_in_cell:
            self._texts.append("\n")
        else:
            self.end_block()

    def _begin_cell(self, tag: str) -> None:
        self._end_cell()
        if not self._rows:
            self._rows.append([])
        is_first_row = len(self._rows) == 1
        self._has_names = self._has_names or (tag == "th" and is_first_row)
        self._is_in_cell = True

    def _end_cell(self) -> None:
        """End the cell that is open; a text between cells, such as a caption, is a block."""
        if self._is_in_cell:
            self._rows[-1].append("".join(self._texts))
            self._texts = []
        else:
            self.end_block()
        self._is_in_cell = False
