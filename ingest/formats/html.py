"""Web pages as text with headings and lists as in Markdown."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import islice
from pathlib import Path

import webencodings
from lxml import etree

from arag.ingest.formats.content import Content, FormatError, decode_text
from arag.ingest.formats.tables import table_lines
from arag.ingest.formats.text import first_heading
from arag.text.normalise import collapse_whitespace

_HIDDEN = frozenset("script style noscript template iframe noembed noframes svg title".split())
# What leads to other pages, or stands around what this one says.
_AROUND = etree.XPath(
    "//nav | (//header | //footer | //aside)[not(.//h1 or ancestor::article or ancestor::main or ancestor::section)]"
)
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_CELLS = ("td", "th")
_BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main nav ol optgroup option p pre search section "
    "summary table td th ul".split()
)
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
    name = declared.codec_info.name if declared else encoding
    return decode_text(data, "gb18030" if name == "gbk" else name, "windows-1252")  # browsers read the superset


def html_content(html: str) -> Content:
    """Return what a browser shows of a page; see `read_html`."""
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    page = etree.fromstring(b"<html>" + html.encode("utf-8", "replace"), parser)
    if fatal := parser.error_log.filter_from_fatals():  # such as tags that are nested too deeply: the rest is lost
        raise FormatError(f"cannot be read: {fatal[0].message}")
    page.extend(list(page.itersiblings()))  # what follows `</html>`
    title = page.find("head/title")
    text = _page_text(page, _AROUND(page)) or _page_text(page)
    return Content(
        collapse_whitespace("".join(title.itertext()) if title is not None else "") or first_heading(text), text
    )


def _page_text(page: etree._Element, left_out: Collection[etree._Element] = ()) -> str:
    """Return headings, lists and rows of tables; links, pictures and emphasis become plain text."""
    hidden = {*left_out, *page.iter(*_HIDDEN)}
    # A table with other parts lays out the page: what is in its cells are blocks like others.
    tables = {table for table in page.iter("table") if len([*islice(table.iter("table", "pre", *_HEADINGS), 2)]) == 1}
    cells = {cell: "" for table in tables for cell in table.iter(*_CELLS)}
    preformatted = {element for pre in page.iter("pre") for element in pre.iter()}
    texts: dict[etree._Element, str] = {}
    for element in reversed([*page.iter()]):  # each one after all that is in it
        space, shown = (" ", _NO_BREAK_SPACE) if element in preformatted else (r"[ \t\n\r\f]+", " ")
        parts = [re.sub(space, shown, element.text or "")]
        for child in element:
            parts += [texts.pop(child), re.sub(space, shown, child.tail or "")]
        text = "".join(parts) if element not in hidden else ""
        if element in cells:
            cells[element], text = _fold(text), " "
        elif element in tables:
            text = "\n".join([_fold(text), *_rows(element, cells)]).replace(" ", _NO_BREAK_SPACE)
        elif element.tag in _HEADINGS and (heading := _fold(text)):
            text = f"{'#' * int(element.tag[1])} {heading}"
        elif element.tag == "li":
            text = f"{_ITEM}{text}"
        gap = "\n\n" if element.tag in _BLOCKS else ""
        texts[element] = f"{gap}{text}{gap}" if element.tag != "br" else f"\n{text}"
    text = re.sub(" *\n *", "\n", re.sub(" +", " ", texts[page]))
    text = re.sub(rf"{_ITEM}[ \n]*(?=$|{_ITEM}|#{{1,6}} )", "", text)  # an item without text, or with a heading
    text = re.sub(rf"{_ITEM}[ \n]*", "- ", text)
    text = re.sub(r"^(- .*)\n+(?=- )", r"\1\n", text, flags=re.MULTILINE)
    return re.sub("\n{3,}", "\n\n", text).strip().replace(_NO_BREAK_SPACE, " ")


def _fold(text: str) -> str:
    """Return what a cell or a heading holds, on one line."""
    return collapse_whitespace(text.replace(_ITEM, " "))


def _rows(table: etree._Element, texts: Mapping[etree._Element, str]) -> list[str]:
    """Return the rows of a table as lines; a cell that spans several rows stands in each."""
    rows: list[list[etree._Element]] = [[]]
    for element in table.iter("tr", *_CELLS):
        if element.tag == "tr":
            rows.append([])
        else:
            rows[-1].append(element)
    rows = rows if rows[0] else rows[1:]  # cells may stand outside of rows
    grid: list[dict[int, str]] = [{} for _ in rows]
    for y, row in enumerate(rows):
        x = 0
        for cell in row:
            while x in grid[y]:
                x += 1
            for line in grid[y : y + _span(cell, "rowspan")]:
                line |= {x: texts[cell], **dict.fromkeys(range(x + 1, x + _span(cell, "colspan")), "")}
    first = next((row for row in rows if len(row) > 1), [])
    cells = ([line.get(x, "") for x in range(max(line, default=-1) + 1)] for line in grid)
    return table_lines(cells, header=bool(first) and all(cell.tag == "th" for cell in first))


def _span(cell: etree._Element, name: str) -> int:
    digits = cell.get(name, "")
    return max(int(digits[:4]), 1) if digits.isdecimal() else 1
