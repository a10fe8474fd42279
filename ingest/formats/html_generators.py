"""What generators of manuals lay out in a web page: headings, code, lines and tables, and tables that hold no data."""

from __future__ import annotations

from lxml import etree

_DOXYGEN_TITLE = etree.XPath("//div[@class = 'headertitle']/div[@class = 'title'][not(//h1)]")
_SUMMARY = "//div[contains(@class, 'summary-table')]"
_HEADER = "div[contains(@class, 'table-header')]"
_ROW_STARTS = etree.XPath(f"{_SUMMARY}/div[(position() - 1) mod count(../{_HEADER}) = 0]")
# Footnotes of Jade, menus of Texinfo, notes of Asciidoctor, and the columns of an index of Sphinx hold no data.
_LAYOUT = etree.XPath(
    "//table[@class = 'FOOTNOTES' or @class = 'menu' or contains(@class, 'genindextable')]"
    " | //div[contains(@class, 'admonitionblock')]/table"
)
_SHOWN_AS = {
    "pre": etree.XPath("//div[@class = 'fragment'][div/@class = 'line']"),
    # The declaration of a function, with its labels, is shown as one row.
    "tr": etree.XPath("//table[@class = 'mlabels' or @class = 'memname'][not(ancestor::table/@class = 'mlabels')]"),
    # The letters of an index of Texinfo are links to places in it.
    "nav": etree.XPath("//table[not(descendant::table)][descendant::a[starts-with(@class, 'summary-letter')]]"),
    "span": etree.XPath(
        "//pre/div[@class = 'line'] | //table[@class = 'FOOTNOTES']//p"
        " | //tr[@class = 'mlabels' or @class = 'memname']/descendant::*[self::table or self::tr or self::td]"
    ),
    "th": etree.XPath(f"{_SUMMARY}/{_HEADER}"),
    "td": etree.XPath(f"{_SUMMARY}[th]/div"),
    "table": etree.XPath(f"{_SUMMARY}[th]"),
    "div": etree.XPath("//ul[@class = 'summary-list'] | //ul[@class = 'summary-list']/li"),  # shown without bullets
}


def mark_generated(page: etree._Element) -> None:
    """Give the elements that these programs write the names of what a browser shows."""
    for title in _DOXYGEN_TITLE(page):
        title.tag = "h1"
        for group in title.findall("div"):  # which the page belongs to
            title.addnext(group)
    for cell in _ROW_STARTS(page):
        cell.addprevious(etree.Element("tr"))
    for name, find in _SHOWN_AS.items():
        for element in find(page):
            element.tag = name
    for table in _LAYOUT(page):
        table.tag = "div"
