"""Web pages as text with headings and lists as in Markdown."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import webencodings
from lxml import etree

from arag.ingest.formats.content import Content, FormatError, decode_text
from arag.ingest.formats.tables import table_lines
from arag.ingest.formats.text import first_heading
from arag.text.normalise import collapse_whitespace

_HIDDEN = frozenset("script style noscript template iframe noembed noframes svg title".split())
# Links to other pages, and the frame around the text of this one.
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

_WHITE_SPACE = re.compile(r"[ \t\n\r\f]+")  # shown as one space, unlike a no-break space
_NO_BREAK_SPACE = "\u00a0"
_ITEM = "\0"  # begins an item of a list; no text of a page has a NUL
_EMPTY_ITEM = re.compile(rf"{_ITEM}[ \n]*(?=$|{_ITEM}|#{{1,6}} )")  # or one that holds a heading
_ITEM_START = re.compile(rf"{_ITEM}[ \n]*")
_GAP_BETWEEN_ITEMS = re.compile(r"^(- .*)\n+(?=- )", re.MULTILINE)

_DECLARATION = re.compile(rb"""(?:<\?xml[^>]+encoding|<meta[^>]+charset)\s*=\s*["']?\s*([^\s"'/;>]+)""", re.IGNORECASE)
_DECLARATION_BYTES = 100_000  # at the start of a page: scripts and styles can come before the declaration
_MAX_SPAN_DIGITS = 4  # of the number of rows or columns that a cell spans: a larger one would fill the memory


def read_html(path: Path, encoding: str = "") -> Content:
    """Read the text of a page without navigation, headers and footers; its title is `<title>`, else an `<h1>`."""
    return html_content(decode_html(path.read_bytes(), encoding))


def decode_html(data: bytes, encoding: str = "") -> str:
    """Decode a page in Unicode, else in the encoding that it declares, else in `encoding`, else in Windows-1252."""
    name = _declared_encoding(data) or encoding
    if name == "gbk":
        name = "gb18030"  # its superset, which browsers read
    return decode_text(data, name, "windows-1252")


def _declared_encoding(data: bytes) -> str:
    declaration = _DECLARATION.search(data, 0, _DECLARATION_BYTES)
    if declaration is None:
        return ""
    declared = webencodings.lookup(declaration[1].decode("latin-1"))
    if declared is None:
        return ""
    name: str = declared.codec_info.name
    return name


def html_content(html: str) -> Content:
    """Return the content of a page as a browser shows it; see `read_html`.

    Raises:
        FormatError: The parser gave up in the middle of the page.
    """
    page = _parse(html)
    text = _page_text(page, _AROUND(page))
    if not text:  # the page has nothing but links
        text = _page_text(page)
    return Content(_title(page) or first_heading(text), text)


def _parse(html: str) -> etree._Element:
    parser = etree.HTMLParser(
        encoding="utf-8",
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
    )
    page = etree.fromstring(b"<html>" + html.encode("utf-8", "replace"), parser)
    fatal_errors = parser.error_log.filter_from_fatals()
    if fatal_errors:  # such as tags that are nested too deeply: the rest of the page would be lost
        raise FormatError(f"cannot be read: {fatal_errors[0].message}")
    after_the_end = list(page.itersiblings())
    page.extend(after_the_end)
    return page


def _title(page: etree._Element) -> str:
    title = page.find("head/title")
    if title is None:
        return ""
    return collapse_whitespace("".join(title.itertext()))


@dataclass(frozen=True)
class _Layout:
    """The elements of a page that are not shown as plain text."""

    hidden: set[etree._Element]
    preformatted: set[etree._Element]
    tables: set[etree._Element]
    cells: set[etree._Element]
    cell_texts: dict[etree._Element, str] = field(default_factory=dict)


def _page_text(page: etree._Element, left_out: Collection[etree._Element] = ()) -> str:
    """Return headings, lists and rows of tables; links, pictures and emphasis become plain text."""
    layout = _find_layout(page, left_out)
    elements = list(page.iter())
    texts: dict[etree._Element, str] = {}
    for element in reversed(elements):  # each element after all elements in it
        text = _join_parts(element, texts, is_preformatted=element in layout.preformatted)
        if element in layout.hidden:
            text = ""
        text = _mark_up(element, text, layout)
        texts[element] = _set_apart(element, text)
    return _tidy(texts[page])


def _find_layout(page: etree._Element, left_out: Collection[etree._Element]) -> _Layout:
    tables = {table for table in page.iter("table") if _is_data_table(table)}
    return _Layout(
        hidden={*left_out, *page.iter(*_HIDDEN)},
        preformatted={element for block in page.iter("pre") for element in block.iter()},
        tables=tables,
        cells={cell for table in tables for cell in table.iter(*_CELLS)},
    )


def _is_data_table(table: etree._Element) -> bool:
    """Return whether a table holds data; one around headings or other tables lays out the page."""
    blocks = table.iter("table", "pre", *_HEADINGS)  # the table itself is the first
    return len(list(islice(blocks, 2))) == 1


def _join_parts(element: etree._Element, texts: dict[etree._Element, str], *, is_preformatted: bool) -> str:
    """Return the text of an element, with the texts of its children, which are taken from `texts`."""
    parts = [_show_spaces(element.text, is_preformatted)]
    for child in element:
        parts.append(texts.pop(child))
        parts.append(_show_spaces(child.tail, is_preformatted))
    return "".join(parts)


def _show_spaces(text: str | None, is_preformatted: bool) -> str:
    if text is None:
        return ""
    if is_preformatted:
        return text.replace(" ", _NO_BREAK_SPACE)
    return _WHITE_SPACE.sub(" ", text)


def _mark_up(element: etree._Element, text: str, layout: _Layout) -> str:
    """Return an element's text as a heading, an item or a table, if it is one."""
    if element in layout.cells:
        layout.cell_texts[element] = _on_one_line(text)
        return " "  # the table shows it
    if element in layout.tables:
        lines = [_on_one_line(text), *_table_rows(element, layout.cell_texts)]
        return "\n".join(lines).replace(" ", _NO_BREAK_SPACE)
    if element.tag in _HEADINGS:
        heading = _on_one_line(text)
        level = int(element.tag[1])
        return f"{'#' * level} {heading}" if heading else text
    if element.tag == "li":
        return f"{_ITEM}{text}"
    return text


def _set_apart(element: etree._Element, text: str) -> str:
    if element.tag == "br":
        return f"\n{text}"
    if element.tag in _BLOCKS:
        return f"\n\n{text}\n\n"
    return text


def _tidy(text: str) -> str:
    """Return a page's text with single spaces, one blank line between blocks, and none between items of a list."""
    text = re.sub(" +", " ", text)
    text = re.sub(" *\n *", "\n", text)
    text = _EMPTY_ITEM.sub("", text)
    text = _ITEM_START.sub("- ", text)
    text = _GAP_BETWEEN_ITEMS.sub(r"\1\n", text)
    text = re.sub("\n{3,}", "\n\n", text)
    return text.strip().replace(_NO_BREAK_SPACE, " ")


def _on_one_line(text: str) -> str:
    return collapse_whitespace(text.replace(_ITEM, " "))


def _table_rows(table: etree._Element, cell_texts: Mapping[etree._Element, str]) -> list[str]:
    """Return the rows of a table as lines."""
    rows = _cells_by_row(table)
    grid = _lay_out(rows, cell_texts)
    return table_lines(map(_fill_row, grid), header=_has_header(rows))


def _cells_by_row(table: etree._Element) -> list[list[etree._Element]]:
    outside: list[etree._Element] = []
    rows = [outside]
    for element in table.iter("tr", *_CELLS):
        if element.tag == "tr":
            rows.append([])
        else:
            rows[-1].append(element)
    return rows if outside else rows[1:]


def _lay_out(
    rows: Sequence[Sequence[etree._Element]],
    cell_texts: Mapping[etree._Element, str],
) -> list[dict[int, str]]:
    """Return the texts of each row by their columns.

    A cell that spans several rows has its text in each of them; one that spans several columns, only in the first.
    """
    grid: list[dict[int, str]] = [{} for _ in rows]
    for row_number, row in enumerate(rows):
        column = 0
        for cell in row:
            while column in grid[row_number]:
                column += 1
            last_row = row_number + _span(cell, "rowspan")
            last_column = column + _span(cell, "colspan")
            empty = dict.fromkeys(range(column + 1, last_column), "")
            for line in grid[row_number:last_row]:
                line[column] = cell_texts[cell]
                line.update(empty)
    return grid


def _fill_row(texts: Mapping[int, str]) -> list[str]:
    width = max(texts, default=-1) + 1
    return [texts.get(column, "") for column in range(width)]


def _has_header(rows: Sequence[Sequence[etree._Element]]) -> bool:
    """Return whether the first row of several cells has no others than header cells."""
    for row in rows:
        if len(row) > 1:
            return all(cell.tag == "th" for cell in row)
    return False


def _span(cell: etree._Element, name: str) -> int:
    digits = cell.get(name, "")
    if not digits.isdecimal():
        return 1
    return max(int(digits[:_MAX_SPAN_DIGITS]), 1)
