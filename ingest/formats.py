"""Text out of the file formats that hold one document each: plain text, Markdown, HTML and PDF.

Every function takes the bytes of a file, and raises `FormatError` when there is no text to be had from them.
"""

from __future__ import annotations

import logging
import re
import struct
import warnings
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice

from bs4 import BeautifulSoup
from bs4.builder._htmlparser import BeautifulSoupHTMLParser, HTMLParserTreeBuilder
from bs4.dammit import EncodingDetector
from bs4.element import CData, NavigableString, PageElement, PreformattedString, Tag
from bs4.exceptions import ParserRejectedMarkup
from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

from arag.ingest.documents import JSON
from arag.ingest.web_encodings import web_encoding

_LONGEST_TITLE = 120
_PAGE_GAP = "\n\n"
_SENTENCE_END = (".", "!", "?", "。", "！", "？", ":", ";", ",")

# pypdf lets whatever went wrong inside it through when a file is broken.
_PDF_ERRORS = (
    PyPdfError,
    DependencyError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)
_PDF_MESSAGES = (PyPdfError, DependencyError, NotImplementedError)

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


def read_markdown(data: bytes) -> Content:
    """Read Markdown; its title is that of the front matter, else the first heading of level 1.

    Args:
        data: The bytes of the file.

    Returns:
        The content: the text without the front matter, whose other fields are the metadata.

    Raises:
        FormatError: The file is in another encoding.
    """
    fields, text = _split_front_matter(decode_file(data))
    title = fields.pop("title", "") or _first_heading(text)
    return Content(title, text, metadata=fields)


def _split_front_matter(text: str) -> tuple[dict[str, str], str]:
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {}, text
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() in {"---", "..."}), None)
    if end is None:
        return {}, text
    fields: dict[str, str] = {}
    for line in lines[1:end]:
        key, _, rest = line.partition(":")
        key = key.rstrip(" \t")
        if rest.startswith((" ", "\t")) and rest.strip() and re.fullmatch(r"\w[\w .-]*", key):
            value = _front_matter_scalar(rest.strip())
            if value:
                fields[key] = value
    return fields, "\n".join(lines[end + 1 :]).lstrip("\n")


def _front_matter_scalar(value: str) -> str:
    quote = value[0]
    end = value.rfind(quote)
    if quote in "\"'" and end > 0:
        return value[1:end].replace('\\"' if quote == '"' else "''", quote)
    if quote in "[{|>&*!#":
        return ""
    return re.split(r"[ \t]#", value, maxsplit=1)[0].rstrip()


def _first_heading(text: str) -> str:
    fence = ""
    for line in text.split("\n"):
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        heading = re.match(r" {0,3}#[ \t]+(\S.*)", line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
        elif mark:
            fence = mark[1]
        elif heading:
            title = heading[1].rstrip()
            unclosed = title.rstrip("#")
            # Only hash signs that stand apart close a heading: "# About C#" keeps its own.
            if not unclosed or unclosed[-1] in " \t":
                title = unclosed.rstrip()
            if title:
                return title
    return ""


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
    title = _folded("".join(tag.get_text() for tag in islice(titles, 1)))
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


def _folded(text: str) -> str:
    return " ".join(text.split())


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
        lines = [_folded(line) for line in "".join(self.line).split("\n")]
        if self.prefix.startswith("#"):
            block = _folded(" ".join(lines))
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


def read_pdf(data: bytes) -> Content:
    """Read the text of a PDF, page by page.

    Args:
        data: The bytes of the file.

    Returns:
        The content, pages apart by a blank line. A page that cannot be read is empty, and one of the bad
            pages.

    Raises:
        FormatError: The file is broken, needs a password, or has no text.
    """
    with _quiet_pypdf():
        try:
            reader = PdfReader(BytesIO(data))
            number_of_pages = len(reader.pages)
        except FileNotDecryptedError as error:
            raise FormatError("the PDF is encrypted and needs a password") from error
        except _PDF_ERRORS as error:
            raise FormatError(f"broken PDF: {_described(error)}") from error
        pages: list[str] = []
        bad_pages: list[tuple[int, str]] = []
        for number in range(1, number_of_pages + 1):
            try:
                page = clean_text(reader.pages[number - 1].extract_text())
                pages.append("\n".join(line.rstrip() for line in page.split("\n")))
            except _PDF_ERRORS as error:
                pages.append("")
                bad_pages.append((number, _described(error)))
        title = _pdf_title(reader)
    if not any(page.strip() for page in pages):
        if bad_pages:
            raise FormatError(f"broken PDF: no page can be read; page {bad_pages[0][0]}: {bad_pages[0][1]}")
        raise FormatError(
            "no text could be found in the PDF; its pages are probably scanned images: run OCR on it first"
        )
    starts = [0]
    for page in pages[:-1]:
        starts.append(starts[-1] + len(page) + len(_PAGE_GAP))
    return Content(title, _PAGE_GAP.join(pages), page_starts=tuple(starts), bad_pages=tuple(bad_pages))


def _pdf_title(reader: PdfReader) -> str:
    try:
        title = reader.metadata.title if reader.metadata else None
    except _PDF_ERRORS:
        return ""
    return _folded(clean_characters(title)) if isinstance(title, str) else ""


def _described(error: Exception) -> str:
    # The other messages are about the inside of pypdf, and not written for people.
    return str(error) if isinstance(error, _PDF_MESSAGES) else type(error).__name__


@contextmanager
def _quiet_pypdf() -> Iterator[None]:
    logger = logging.getLogger("pypdf")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
