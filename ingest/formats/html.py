"""Web pages as text with headings and lists as in Markdown."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import webencodings
from lxml import etree

from arag.ingest.formats.content import Content, FormatError, decode, folded
from arag.ingest.formats.encodings import guess_encoding
from arag.ingest.formats.tables import table_lines
from arag.ingest.formats.text import first_heading

_HIDDEN = frozenset("script style noscript template iframe noembed noframes svg title".split())
_FRAME = frozenset({"header", "footer", "aside"})  # unless they are parts of...
_CONTENT = ("article", "main", "section")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_CELLS = ("td", "th")
_BREAKS = {"br": "\n", "caption": "\n"} | dict.fromkeys(
    "address article aside blockquote body center dd details dialog div dl dt fieldset figcaption figure footer form "
    "header hgroup hr html legend li main nav ol optgroup option p pre search section summary table td th ul".split(),
    "\n\n",
)
_WHITE_SPACE = re.compile(r"[ \t\n\r\f]+")
_NO_BREAK_SPACE = "\u00a0"
_ITEM = "\0"  # begins an item of a list; no text of a page has a NUL
_DECLARATION = re.compile(rb"""(?:<\?xml[^>]+encoding|<meta[^>]+charset)\s*=\s*["']?\s*([^\s"'/;>]+)""", re.IGNORECASE)
_DECLARATION_BYTES = 100_000  # at the start of a page, that are searched for it


def read_html(path: Path, encoding: str = "") -> Content:
    """Read what a page says, without navigation and what stands around it; its title is `<title>`, else an `<h1>`."""
    return html_content(decode_html(path.read_bytes(), encoding))


def decode_html(data: bytes, encoding: str = "") -> str:
    """Decode a page in Unicode, else in the encoding that it declares, else in `encoding`, else in Windows-1252."""
    declaration = _DECLARATION.search(data, 0, _DECLARATION_BYTES)
    declared = webencodings.lookup(declaration[1].decode("latin-1")) if declaration else None
    if declared is None or declared.name != "iso-2022-jp":  # whose bytes are all ASCII
        with suppress(FormatError):
            return decode(data)
    name = declared.codec_info.name if declared else encoding or guess_encoding(data) or "windows-1252"
    try:
        return data.decode("gb18030" if name == "gbk" else name)  # browsers read the superset
    except (LookupError, UnicodeError) as error:
        raise FormatError(f"not valid {name.upper()}; convert it to UTF-8") from error


def html_content(html: str) -> Content:
    """Return what a browser shows of a page; see `read_html`."""
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    page = etree.fromstring(b"<html>" + html.encode("utf-8", "replace"), parser)
    if fatal := parser.error_log.filter_from_fatals():  # such as tags that are nested too deeply: the rest is lost
        raise FormatError(f"cannot be read: {fatal[0].message}")
    page.extend(list(page.itersiblings()))  # what follows `</html>`
    title = page.find("head/title")
    text = _Writer(page, left_out={e for e in page.iter("nav", *_FRAME) if _is_frame(e)}).text() or _Writer(page).text()
    return Content(folded("".join(title.itertext()) if title is not None else "") or first_heading(text), text)


def _is_frame(element: etree._Element) -> bool:
    """Return whether a part of a page leads to other pages, or stands around what this one says."""
    is_part = element.find(".//h1") is not None or next(element.iterancestors(*_CONTENT), None) is not None
    return element.tag == "nav" or not is_part


class _Writer:
    """Writes headings, lists and rows of tables; links, pictures and emphasis become plain text."""

    def __init__(self, page: etree._Element, left_out: Collection[etree._Element] = ()) -> None:
        self._page = page
        self._left_out = {*left_out, *page.iter(*_HIDDEN)}
        self._parts: list[str] = []
        self._line: etree._Element | None = None  # the heading or cell that is open, whose text is one line
        self._line_start = 0
        self._rows: list[list[tuple[etree._Element, str]]] | None = None  # the cells and their texts of the open table
        self._pre_depth = 0
        # A table with such parts lays out the page: what is in its cells are blocks like others.
        inner = page.iter("table", "pre", *_HEADINGS)
        self._layouts = {table for element in inner for table in (next(element.iterancestors("table"), None),)}

    def text(self) -> str:
        walk = etree.iterwalk(self._page, events=("start", "end"))
        for event, element in walk:
            if event == "start" and element in self._left_out:
                walk.skip_subtree()
                self._break(element.tag)
            elif event == "start":
                self._start(element)
                self._add(element.text)
            else:
                if element not in self._left_out:
                    self._end(element)
                self._add(element.tail)
        text = re.sub(" *\n *", "\n", re.sub(" +", " ", "".join(self._parts)))
        text = re.sub(rf"{_ITEM}[ \n]*(?=$|{_ITEM}|#{{1,6}} )", "", text)  # an item without text, or with a heading
        text = re.sub(rf"{_ITEM}[ \n]*", "- ", text)
        text = re.sub(r"^(- .*)\n+(?=- )", r"\1\n", text, flags=re.MULTILINE)
        return re.sub("\n{3,}", "\n\n", text).strip().replace(_NO_BREAK_SPACE, " ")

    def _start(self, element: etree._Element) -> None:
        tag = element.tag
        self._break(tag)
        if self._line is not None:
            return
        if tag in _HEADINGS or (tag in _CELLS and self._rows is not None):
            self._line, self._line_start = element, len(self._parts)
        elif tag == "li":
            self._parts.append(_ITEM)
        elif tag == "pre":
            self._pre_depth += 1
        elif tag == "table" and element not in self._layouts:
            self._rows = []
        elif tag == "tr" and self._rows is not None:
            self._rows.append([])

    def _end(self, element: etree._Element) -> None:
        tag = element.tag
        if element is self._line:
            text = folded("".join(self._parts[self._line_start :]))
            del self._parts[self._line_start :]
            self._line = None
            if tag in _HEADINGS:
                self._parts.append(f"\n\n{'#' * int(tag[1])} {text}\n\n" if text else "")
            else:
                self._rows = self._rows or [[]]
                self._rows[-1].append((element, text))
        elif self._line is None and tag == "pre":
            self._pre_depth -= 1
        elif tag == "table" and self._rows is not None:
            first = next((row for row in self._rows if len(row) > 1), [])
            lines = table_lines(_grid(self._rows), header=bool(first) and all(cell.tag == "th" for cell, _ in first))
            self._parts.append("\n" + "\n".join(lines).replace(" ", _NO_BREAK_SPACE))
            self._rows = None
        if tag != "br":
            self._break(tag)

    def _break(self, tag: str) -> None:
        gap = _BREAKS.get(tag, "")
        self._parts.append(" " if gap and (self._line is not None or self._rows is not None) else gap)

    def _add(self, text: str | None) -> None:
        if text and self._pre_depth and self._line is None:
            self._parts.append(text.replace(" ", _NO_BREAK_SPACE))
        elif text:
            self._parts.append(_WHITE_SPACE.sub(" ", text))


def _grid(rows: list[list[tuple[etree._Element, str]]]) -> list[list[str]]:
    """Return the cells of each row; a cell that spans several rows stands in each."""
    grid: list[dict[int, str]] = [{} for _ in rows]
    for y, row in enumerate(rows):
        x = 0
        for cell, text in row:
            while x in grid[y]:
                x += 1
            for line in grid[y : y + _span(cell, "rowspan")]:
                line |= {x: text, **dict.fromkeys(range(x + 1, x + _span(cell, "colspan")), "")}
    return [[line.get(x, "") for x in range(max(line, default=-1) + 1)] for line in grid]


def _span(cell: etree._Element, name: str) -> int:
    digits = cell.get(name, "")
    return max(int(digits[:4]), 1) if digits.isdecimal() else 1
