"""Web pages as text with headings and lists as in Markdown."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from pathlib import Path

import webencodings
from bs4 import BeautifulSoup, Tag
from bs4.dammit import EncodingDetector
from markdownify import MarkdownConverter

from arag.ingest.formats.content import Content, FormatError, decode, folded, has_utf16_mark
from arag.ingest.formats.tables import table_lines
from arag.ingest.formats.text import first_heading

_HIDDEN = frozenset("script style noscript template iframe noembed noframes svg title".split())
_HEADINGS = "h1 h2 h3 h4 h5 h6".split()
_BLOCKS = frozenset(
    "address article aside blockquote body center dd details dialog dl dt fieldset figcaption figure footer form "
    "header hgroup hr html legend main nav optgroup option p search section summary".split()
)
_HEADING_LINE = re.compile("#{1,6} ")
_NO_BREAK_SPACE = "\u00a0"
# The HTML standard reads GBK as its superset, and ignores a declaration of UTF-16 that can be read as ASCII.
_CODECS = {"gbk": "gb18030", "utf-16-le": "utf-8", "utf-16-be": "utf-8"}


def read_html(path: Path) -> Content:
    """Read what a browser shows of a page; its title is `<title>`, else the first `<h1>`.

    The encoding is the one that the page declares, else UTF-8, else Windows-1252.
    """
    return html_content(_decode(path.read_bytes()))


def html_content(html: str) -> Content:
    """Return what a browser shows of a page; see `read_html`."""
    page = BeautifulSoup(html, "lxml")
    title = folded(page.head.title.get_text()) if page.head and page.head.title else ""
    for tag in page(True):
        if tag.name in _HIDDEN:
            tag.decompose()
        elif tag.name in _BLOCKS:
            tag.name = "div"
        elif tag.name == "table" and tag.find(["table", "pre", *_HEADINGS]):
            tag.name = "div"  # it lays out the page
        elif tag.name in {"td", "th", "caption"} and tag.find_parent("table") is None:
            tag.name = "div"
    text = _Converter().convert_soup(page)
    text = re.sub(" *\n *", "\n", re.sub(" +", " ", text)).replace(_NO_BREAK_SPACE, " ")
    text = re.sub("\n{3,}", "\n\n", text).strip()
    return Content(title or first_heading(text), text)


def _decode(data: bytes) -> str:
    if has_utf16_mark(data) or data.startswith(codecs.BOM_UTF8):
        return decode(data)
    declared = EncodingDetector.find_declared_encoding(data, is_html=True)
    encoding = webencodings.lookup(declared) if declared else None
    names = [encoding.codec_info.name, "utf-8"] if encoding else ["utf-8"] if declared else ["utf-8", "windows-1252"]
    for name in names:
        with suppress(UnicodeError, LookupError):
            return data.decode(_CODECS.get(name, name))
    raise FormatError(f"not valid {' or '.join(dict.fromkeys(names)).upper()}; convert it to UTF-8")


# ruff: noqa: ARG002 - the base class passes all arguments by name
class _Converter(MarkdownConverter):
    """Writes headings, lists and rows of tables; links, pictures and emphasis become plain text."""

    class Options:
        heading_style = "atx"
        wrap = True  # line ends of the source are spaces
        wrap_width = None
        escape_asterisks = escape_underscores = False
        convert = ("[document]", "div", "br", "li", "ul", "ol", "pre", "q", "table", "caption", "td", "th", *_HEADINGS)

    def __init__(self) -> None:
        super().__init__()
        self._cells: dict[int, str] = {}

    def convert_br(self, tag: Tag, text: str, parent_tags: set[str]) -> str:
        return text + (" " if "_inline" in parent_tags else "\n")

    def convert_li(self, tag: Tag, text: str, parent_tags: set[str]) -> str:
        text = text.strip()
        if "_inline" in parent_tags or not text:
            return f" {text} "
        return f"{text}\n" if _HEADING_LINE.match(text) else f"- {text}\n"

    def convert_pre(self, tag: Tag, text: str, parent_tags: set[str]) -> str:
        return "\n\n" + text.strip("\n").replace(" ", _NO_BREAK_SPACE) + "\n\n" if text.strip() else "\n\n"

    def convert_td(self, tag: Tag, text: str, parent_tags: set[str]) -> str:
        self._cells[id(tag)] = text
        return ""

    convert_th = convert_td

    def convert_table(self, table: Tag, caption: str, parent_tags: set[str]) -> str:
        first = next((row for row in table("tr") if len(row(["td", "th"])) > 1), None)
        lines = table_lines(self._rows(table), header=first is not None and not first("td"))
        return "\n\n" + "\n".join([caption.strip(), *lines]).strip() + "\n\n"

    def _rows(self, table: Tag) -> list[list[str]]:
        """Return the cells of each row; a cell that spans several rows stands in each."""
        rows = table("tr")
        grid: list[dict[int, str]] = [{} for _ in rows]
        for y, row in enumerate(rows):
            x = 0
            for cell in row(["td", "th"]):
                while x in grid[y]:
                    x += 1
                for cells in grid[y : y + _span(cell, "rowspan")]:
                    cells |= {x: self._cells[id(cell)], **dict.fromkeys(range(x + 1, x + _span(cell, "colspan")), "")}
        return [[cells.get(x, "") for x in range(max(cells, default=-1) + 1)] for cells in grid]


def _span(cell: Tag, name: str) -> int:
    digits = str(cell.get(name))
    return max(int(digits[:4]), 1) if digits.isdecimal() else 1
