"""Text out of files that hold one document each: plain text and HTML, and what all such readers share.

Every function takes the bytes of a file, and raises `FormatError` when there is no text to be had from them.
"""

from __future__ import annotations

import math
import re
import unicodedata
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePath

from bs4 import BeautifulSoup
from bs4.builder._htmlparser import BeautifulSoupHTMLParser, HTMLParserTreeBuilder
from bs4.dammit import EncodingDetector
from bs4.element import CData, NavigableString, PageElement, PreformattedString, Tag
from bs4.exceptions import ParserRejectedMarkup

from arag.ingest.documents import JSON, Problem
from arag.ingest.web_encodings import web_encoding

MAX_JSON_DEPTH = 100

_LONGEST_TITLE = 120
_SENTENCE_END = (".", "!", "?", "。", "！", "？", ":", ";", ",")

# Tags and comments that do not end; a page that is broken by mistake has one or two.
_MOST_UNENDED = 20

_DROPPED_TAGS = ("script", "style", "noscript", "template", "title")
_HEADING_TAGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BLOCK_TAGS = frozenset(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure"
    " footer form head header hgroup hr html legend main nav optgroup option p search section summary table tbody"
    " td tfoot th thead tr".split()
)
_LIST_TAGS = frozenset({"ul", "ol", "menu", "dir"})


class FormatError(Exception):
    """The bytes of a file, or a record, do not hold a document; the message says why."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds.

    Attributes:
        title: The title that the file gives, or an empty string.
        text: The whole text.
        metadata: Further fields.
        page_starts: The offset in the text at which each page starts; empty for what has no pages.
        bad_pages: Pages left out of the text, as (page number, why).
    """

    title: str
    text: str
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    page_starts: tuple[int, ...] = ()
    bad_pages: tuple[tuple[int, str], ...] = ()


def clean_characters(text: str) -> str:
    """Return the text without NUL characters and with U+FFFD for what is not a character."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text).replace("\0", "")


def clean_text(text: str) -> str:
    r"""Return the text with clean characters, and with `\n` as the only line end."""
    return clean_characters(text).replace("\r\n", "\n").replace("\r", "\n")


def clean_json(value: JSON, depth: int = 0) -> JSON:
    """Return the value with clean characters, and with null for numbers that are not finite.

    NaN and Infinity are no JSON, but pandas and others write them for what is missing.

    Raises:
        RecursionError: The value is nested deeper than `json` can write it again.
    """
    if depth > MAX_JSON_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        return clean_characters(value)
    if isinstance(value, list):
        return [clean_json(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean_characters(key): clean_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def has_control_characters(text: str) -> bool:
    """Say whether there are line ends or other control characters in the text."""
    return any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in text)


def problem_at(source: PurePath | str, reason: Exception | str) -> Problem:
    """Return the problem of a file, or of a place in one."""
    if isinstance(reason, OSError):
        reason = reason.strerror or str(reason)
    return Problem(clean_characters(str(source)), clean_characters(str(reason)))


def folded(text: str) -> str:
    """Return the text on one line, with single spaces for runs of white space."""
    return " ".join(text.split())


def has_utf16_mark(data: bytes) -> bool:
    """Say whether the data begin with the byte order mark of UTF-16 (and not that of UTF-32)."""
    return data.startswith((b"\xff\xfe", b"\xfe\xff")) and not data.startswith(b"\xff\xfe\0\0")


def decode(data: bytes, encoding: str = "utf-8") -> str:
    """Decode strictly, without the byte order mark and with clean line ends.

    Args:
        data: The bytes.
        encoding: The name of a codec.

    Returns:
        The text.

    Raises:
        FormatError: The bytes are not in that encoding.
    """
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        byte = error.object[error.start : error.start + 1].hex()
        raise FormatError(
            f"not valid {encoding.upper()} (byte 0x{byte} at offset {error.start}); convert it to UTF-8"
        ) from error
    return clean_text(text.removeprefix("\ufeff"))


def decode_file(data: bytes) -> str:
    """Decode a text file: UTF-8, or UTF-16 where its byte order mark says so.

    Args:
        data: The bytes of the whole file.

    Returns:
        The text.

    Raises:
        FormatError: The bytes are not in that encoding.
    """
    return decode(data, "utf-16" if has_utf16_mark(data) else "utf-8")


def read_text(data: bytes) -> Content:
    """Read plain text; its title is a short first line that stands by itself.

    Args:
        data: The bytes of the file.

    Returns:
        The content.

    Raises:
        FormatError: The file is in another encoding.
    """
    text = decode_file(data)
    first, _, rest = text.partition("\n")
    second, second_ends, _ = rest.partition("\n")
    title = first.strip()
    stands_apart = bool(second_ends) and not second.strip()
    if not stands_apart or len(title) > _LONGEST_TITLE or title.endswith(_SENTENCE_END):
        title = ""
    return Content(title, text)


def read_html(data: bytes) -> Content:
    """Read HTML; its title is `<title>`, else the first `<h1>`.

    Args:
        data: The bytes of the file.

    Returns:
        The content. Blocks stand apart by blank lines, headings are Markdown's, table rows are one line each.

    Raises:
        FormatError: The file is not in the encoding that it declares (UTF-8 where it declares none), or
            cannot be taken for HTML.
    """
    text = _decode_html(data)
    try:
        with warnings.catch_warnings():
            # Beautiful Soup's warnings are for programmers: "looks like a file name", "looks like XML".
            warnings.simplefilter("ignore")
            soup = BeautifulSoup(text, builder=_PageBuilder)
    except (ParserRejectedMarkup, ValueError) as error:
        raise FormatError("broken HTML, which cannot be parsed") from error
    titles = (tag for tag, _ in _walk(soup, {"svg"}) if isinstance(tag, Tag) and tag.name == "title")
    title = folded("".join(tag.get_text() for tag in islice(titles, 1)))
    headings = (tag for tag, _ in _walk(soup, _DROPPED_TAGS) if isinstance(tag, Tag) and tag.name == "h1")
    heading = next(headings, None)
    if not title and heading:
        title = _HtmlText().convert(heading).removeprefix("# ")
    return Content(clean_characters(title), clean_characters(_HtmlText().convert(soup)))


def _decode_html(data: bytes) -> str:
    _, encoding = EncodingDetector.strip_byte_order_mark(data)
    if encoding:
        return decode(data, encoding)
    declared = EncodingDetector.find_declared_encoding(data, is_html=True) or "utf-8"
    encoding = web_encoding(declared)
    if encoding is None:
        raise FormatError(f"declares an unknown encoding, {declared!r}; convert it to UTF-8")
    return decode(data, encoding)


class _PageParser(BeautifulSoupHTMLParser):
    """Takes the rest of a page for text after many tags and comments that do not end.

    For the end of each the standard library's parser looks through all that follows.
    """

    unended = 0

    def parse_starttag(self, i: int) -> int:
        return self.checked(i, super().parse_starttag(i))

    def parse_endtag(self, i: int) -> int:
        return self.checked(i, super().parse_endtag(i))

    def parse_comment(self, i: int, report: bool = True) -> int:
        return self.checked(i, super().parse_comment(i, report))

    def parse_html_declaration(self, i: int) -> int:
        return self.checked(i, super().parse_html_declaration(i))

    def parse_pi(self, i: int) -> int:
        return self.checked(i, super().parse_pi(i))

    def checked(self, start: int, end: int) -> int:
        """Take note of what has no end."""
        self.unended += end < 0
        if end >= 0 or self.unended <= _MOST_UNENDED:
            return end
        self.handle_data(self.rawdata[start:])
        return len(self.rawdata)


class _PageBuilder(HTMLParserTreeBuilder):
    def feed(self, markup: str | bytes, _parser_class: type[BeautifulSoupHTMLParser] = _PageParser) -> None:
        super().feed(markup, _parser_class)


def _walk(root: Tag, closed: Collection[str]) -> Iterator[tuple[PageElement, bool]]:
    """Yield what is in a tag, in order, and itself: each tag where it starts and, with True, where it ends.

    Args:
        root: The tag.
        closed: Names of tags that are not looked into.
    """
    # A stack, because pages may be nested deeper than Python recurses.
    stack: list[tuple[PageElement, bool]] = [(root, False)]
    while stack:
        node, leaving = stack.pop()
        yield node, leaving
        if isinstance(node, Tag) and not leaving:
            stack.append((node, True))
            if node.name not in closed:
                stack.extend((child, False) for child in reversed(node.contents))


def _layout_tables(root: Tag) -> set[int]:
    """Return the `id()`s of the tables around headings or other tables: no rows to be kept together."""
    found = set()
    table: Tag | None = None  # the innermost that is open, until it is found to be one
    for node, leaving in _walk(root, _DROPPED_TAGS):
        if leaving:
            table = None if node is table else table
        elif isinstance(node, Tag) and node.name in {"table", "pre", *_HEADING_TAGS}:
            if table is not None:
                found.add(id(table))
            table = node if node.name == "table" else None
    return found


class _HtmlText:
    """Turns a parsed page into text, tag by tag."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.line: list[str] = []  # of the block at hand, where "\n" is a <br>
        self.prefix = ""
        self.gap = ""
        self.list_depth = 0
        self.in_table = False
        self.row_has_cell = False
        self.layout_tables: set[int] = set()

    def convert(self, root: Tag) -> str:
        self.layout_tables = _layout_tables(root)
        for node, leaving in _walk(root, {*_DROPPED_TAGS, "pre"}):
            if isinstance(node, NavigableString) and not isinstance(node, PreformattedString):
                self.line.append(re.sub(r"\s+", " ", node))
            elif isinstance(node, Tag) and node.name == "pre":
                if not leaving:
                    self.add_preformatted(node)
            elif isinstance(node, Tag):
                change = self.change_in_table if self.in_table else self.change
                change(node, leaving=leaving)
        self.end_block("")
        return "".join(self.parts)

    def change(self, tag: Tag, *, leaving: bool) -> None:
        """Take note of the start or the end of a tag outside tables."""
        if tag.name == "br" and not leaving:
            self.line.append("\n")
        elif tag.name == "li":
            self.end_block("\n")
            self.prefix = "" if leaving else "- "
        elif tag.name in _HEADING_TAGS:
            self.end_block("\n\n")
            self.prefix = "" if leaving else "#" * int(tag.name[1]) + " "
        elif tag.name in _LIST_TAGS:
            is_nested = self.list_depth > (1 if leaving else 0)
            self.end_block("\n" if is_nested else "\n\n")
            self.list_depth += -1 if leaving else 1
        elif tag.name in _BLOCK_TAGS:
            self.end_block("\n" if self.list_depth else "\n\n")
            self.in_table = tag.name == "table" and not leaving and id(tag) not in self.layout_tables

    def change_in_table(self, tag: Tag, *, leaving: bool) -> None:
        """Take note of the start or the end of a tag in a table."""
        if tag.name == "table":
            self.in_table = False
            self.change(tag, leaving=leaving)
        elif tag.name in {"tr", "caption"}:
            self.end_block("\n")
            self.row_has_cell = False
        elif tag.name in {"td", "th"} and not leaving:
            self.line.append(" | " if self.row_has_cell else "")
            self.row_has_cell = True
        elif tag.name in _BLOCK_TAGS or tag.name in {"br", "li"}:
            self.line.append(" ")

    def end_block(self, gap: str) -> None:
        """Write the block at hand, and have at least the gap before the next one."""
        lines = [folded(line) for line in "".join(self.line).split("\n")]
        if self.prefix.startswith("#"):
            block = folded(" ".join(lines))
        else:
            block = re.sub("\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
        self.line = []
        self.add(block if block.strip(" |") else "", gap)

    def add_preformatted(self, tag: Tag) -> None:
        self.end_block("\n\n")
        parts = []
        for node, leaving in _walk(tag, _DROPPED_TAGS):
            if isinstance(node, Tag):
                parts.append("\n" if node.name == "br" and not leaving else "")
            elif type(node) in {NavigableString, CData}:  # no comments
                parts.append(str(node))
        text = "".join(parts).strip("\n")
        self.add(text if text.strip() else "", "\n\n")

    def add(self, block: str, gap: str) -> None:
        if not block:
            self.gap = max(self.gap, gap, key=len) if self.parts else ""
            return
        self.parts += [self.gap, self.prefix, block]
        self.prefix = ""
        self.gap = gap
