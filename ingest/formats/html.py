"""Extracts text from web pages.

libxml2 reports a page tag by tag, so that time and memory grow with the page and not with how it is nested.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping

import webencodings
from lxml import etree

from arag.ingest.formats.content import Content, FormatError, decode, folded, has_utf16_mark

# A browser shows none of these. (It shows <noscript> where scripts are off: mostly images that the page has anyway.)
_DROPPED_TAGS = frozenset("script style noscript template title iframe noembed noframes".split())
_HEADING_TAGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_BLOCK_TAGS = frozenset(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure"
    " footer form head header hgroup hr html legend main nav optgroup option p search section summary table tbody"
    " td tfoot th thead tr".split()
)
_BLANKS = re.compile(r"\s+")
_LIST_TAGS = frozenset({"ul", "ol", "menu", "dir"})

_DECLARATION = re.compile(
    rb"""<(?:meta[^<>]+?charset|\?xml[^<>]+?encoding)\s*=\s*["']?\s*([^\s"'/>;]+)""", re.IGNORECASE
)
# The HTML standard reads GBK as its superset, and ignores a declaration of UTF-16 that can be read as ASCII.
_CODECS = {"gbk": "gb18030", "utf-16le": "utf-8", "utf-16be": "utf-8"}
_NO_TEXT_ENCODINGS = ("replacement", "x-user-defined")


def read_html(data: bytes) -> Content:
    """Read HTML; its title is `<title>`, else the first `<h1>`.

    Blocks are separated by blank lines, headings are as in Markdown, and a table row is one line.

    Raises:
        FormatError: The file is not in the encoding that it declares (UTF-8 where it declares none), or declares
            one that the HTML standard does not have.
    """
    # Browsers take <noscript> for raw text, so a tag left open in it does no harm. libxml2 does that with <noembed>.
    page = re.sub("(</?)noscript", r"\1noembed", _decode(data), flags=re.IGNORECASE).encode()
    outline, text = _Outline(), _PageText()
    _parse(page, outline)
    text.layout_tables = outline.layout_tables
    _parse(page, text)
    return Content(folded("".join(outline.title)) or text.heading, "".join(text.parts))


def _restore_noscript(text: str) -> str:
    """Undo the substitution where the tag is text, as in a title or a <textarea>."""
    return text.replace("<noembed", "<noscript").replace("</noembed", "</noscript")


def _decode(data: bytes) -> str:
    if has_utf16_mark(data) or data.startswith(codecs.BOM_UTF8):
        return decode(data)
    found = _DECLARATION.search(data, 0, max(2_048, len(data) // 20))
    declared = found[1].decode("ascii", "replace") if found else "utf-8"
    encoding = webencodings.lookup(declared)
    if encoding is None or encoding.name in _NO_TEXT_ENCODINGS:
        raise FormatError(f"declares an unknown encoding, {declared!r}; convert it to UTF-8")
    return decode(data, _CODECS.get(encoding.name, encoding.codec_info.name), encoding=declared)


def _parse(page: bytes, target: _Outline | _PageText) -> None:
    """Call the target for the start and the end of each tag, and for the text between. Every start has its end."""
    parser = etree.HTMLParser(target=target, encoding="utf-8", huge_tree=True)
    parser.feed(page)
    parser.close()


class _Outline:
    """The first pass, which finds what the second needs to know in advance.

    Attributes:
        title: The text of the first `<title>` that does not belong to a picture, in pieces.
        layout_tables: Tables, by number from 1, that hold headings or other tables: their rows are not kept together.
    """

    def __init__(self) -> None:
        self.title: list[str] = []
        self.layout_tables: set[int] = set()
        self._tables = 0
        self._table = 0  # the innermost open table, until it is known to be one of layout
        self._pictures = 0
        self._in_title = False

    def start(self, tag: str, _attributes: Mapping[str, str]) -> None:
        if tag in {"table", "pre", *_HEADING_TAGS}:
            if self._table:
                self.layout_tables.add(self._table)
            self._tables += tag == "table"
            self._table = self._tables if tag == "table" else 0
        elif tag == "svg":
            self._pictures += 1
        elif tag == "title":
            self._in_title = not self._pictures and not self.title

    def end(self, tag: str) -> None:
        if tag == "table":
            self._table = 0
        elif tag == "svg":
            self._pictures -= 1
        elif tag == "title":
            self._in_title = False

    def data(self, text: str) -> None:
        if self._in_title:
            self.title.append(_restore_noscript(text))

    def close(self) -> None:
        pass


class _PageText:
    """The second pass: turns the page into text."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.heading = ""  # the first <h1>
        self.layout_tables: set[int] = set()
        self._line: list[str] = []  # of the current block, where "\n" is a <br>
        self._prefix = ""
        self._gap = ""
        self._tables = 0
        self._list_depth = 0
        self._pre_depth = 0
        self._dropped_depth = 0
        self._in_table = False
        self._row_has_cell = False

    def start(self, tag: str, _attributes: Mapping[str, str]) -> None:
        self._tables += tag == "table"
        self._dropped_depth += tag in _DROPPED_TAGS
        if self._dropped_depth:
            return
        if tag == "pre":
            if not self._pre_depth:
                self._end_block("\n\n")
            self._pre_depth += 1
        elif tag == "br":
            self._line.append(" " if self._in_table else "\n")
        elif not self._pre_depth:
            self._change(tag, leaving=False)

    def end(self, tag: str) -> None:
        if tag in _DROPPED_TAGS:
            self._dropped_depth -= 1
        elif self._dropped_depth:
            return
        elif tag == "pre":
            self._pre_depth -= 1
            if not self._pre_depth:
                text = "".join(self._line).strip("\n")
                self._line = []
                self._add(text if text.strip() else "", "\n\n")
        elif not self._pre_depth:
            self._change(tag, leaving=True)

    def data(self, text: str) -> None:
        if not self._dropped_depth:
            text = _restore_noscript(text)
            self._line.append(text if self._pre_depth else _BLANKS.sub(" ", text))

    def close(self) -> None:
        self._end_block("")

    def _change(self, tag: str, *, leaving: bool) -> None:
        """Handle the start or the end of a tag."""
        if self._in_table and tag != "table":
            self._change_in_table(tag, leaving=leaving)
        elif tag == "li":
            self._end_block("\n")
            self._prefix = "" if leaving else "- "
        elif tag in _HEADING_TAGS:
            self._end_block("\n\n")
            self._prefix = "" if leaving else "#" * int(tag[1]) + " "
        elif tag in _LIST_TAGS:
            is_nested = self._list_depth > (1 if leaving else 0)
            self._end_block("\n" if is_nested else "\n\n")
            self._list_depth += -1 if leaving else 1
        elif tag in _BLOCK_TAGS:
            self._end_block("\n" if self._list_depth else "\n\n")
            self._in_table = tag == "table" and not leaving and self._tables not in self.layout_tables

    def _change_in_table(self, tag: str, *, leaving: bool) -> None:
        if tag in {"tr", "caption"}:
            self._end_block("\n")
            self._row_has_cell = False
        elif tag in {"td", "th"} and not leaving:
            self._line.append(" | " if self._row_has_cell else "")
            self._row_has_cell = True
        elif tag in _BLOCK_TAGS or tag == "li":
            self._line.append(" ")

    def _end_block(self, gap: str) -> None:
        """Write the current block, with at least this gap before the next one."""
        block = "".join(self._line).strip(" |\n")
        if block:
            lines = [folded(line) for line in "".join(self._line).split("\n")]
            if self._prefix.startswith("#"):
                block = folded(" ".join(lines))
            else:
                block = re.sub("\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
        self._line = []
        self._add(block, gap)

    def _add(self, block: str, gap: str) -> None:
        if block:
            if self._prefix == "# " and not self.heading:
                self.heading = block
            self.parts += [self._gap, self._prefix, block]
            self._prefix = ""
            self._gap = gap
        elif self.parts:
            self._gap = max(self._gap, gap, key=len)
