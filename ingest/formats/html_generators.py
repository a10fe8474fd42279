"""What generators of manuals lay out in a web page: headings, code, lines and tables, and tables that hold no data."""

from __future__ import annotations

from lxml import etree

_DOXYGEN_TITLE = etree.XPath("//div[@class = 'headertitle']/div[@class = 'title'][not(//h1)]")
_SUMMARY = "//div[contains(@class, 'summary-table')]"
_HEADER = "div[contains(@class, 'table-header')]"
_ROW_STARTS = etree.XPath(f"{_SUMMARY}/div[(position() - 1) mod count(../{_HEADER}) = 0]")
# In a manual page of groff, an option or a bullet stands beside its text. A table has more columns.
_GROFF_ITEMS = "//table[@rules = 'none' and @frame = 'void'][not(tr[count(td[normalize-space()]) > 2])]"
# Who wrote a book of DocBook or of HeVeA, and when, below its title.
_CLASSES_OF_AUTHORS = " author corpauthor editor othercredit AUTHOR CORPAUTHOR EDITOR maketitle titlerest "
_AUTHORS = f"//*[self::h2 or self::h3 or self::h4][contains('{_CLASSES_OF_AUTHORS}', concat(' ', @class, ' '))]"
_PROTOTYPE = "//table[@class = 'Prototype']"  # the declaration of a function in Natural Docs
# Footnotes of Jade, menus and indexes of Texinfo, notes of Asciidoctor, the columns of an index of Sphinx, the types of
# functions in gtk-doc, and the options of a manual page of groff hold no data.
_LAYOUT = etree.XPath(
    "//table[@class = 'FOOTNOTES' or @class = 'menu' or contains(@class, 'genindextable')"
    " or starts-with(@class, 'index-') or contains(@class, '-entries-printindex')]"
    " | //table[tbody/tr/td/@class = 'function_name']"
    f" | {_GROFF_ITEMS}"
    " | //div[contains(@class, 'admonitionblock')]/table"
)
# Doxygen, gtk-doc and Natural Docs list parameters and members in tables: each name with what is said about it.
_LISTED = (
    "//table[@class = 'params' or @class = 'tparams' or @class = 'exception' or @class = 'retval'"
    " or @class = 'directory' or @class = 'STable' or @class = 'CDescriptionList'"
    " or tbody/tr/*/@class[. = 'parameter_name' or contains(., 'member_name')]]"
)
_LISTED_ROWS = f"({_LISTED} | {_LISTED}/tbody)/tr"
# A cell that says more, in the next one: [in] before the name of a parameter, and [nullable] or `virtual` at the end.
_GOES_ON = etree.XPath(
    f"{_LISTED_ROWS}/td[@class = 'paramdir' or (position() = 2 and not(../td/@class = 'paramdir'))]"
    "[following-sibling::td]"
)
_SHOWN_AS = {
    "pre": etree.XPath("//div[@class = 'fragment'][div/@class = 'line']"),
    # The declaration of a function, with its labels, is shown as one row.
    "tr": etree.XPath("//table[@class = 'mlabels' or @class = 'memname'][not(ancestor::table/@class = 'mlabels')]"),
    # The letters of an index of Texinfo are links to places in it. They, and its columns, have headers.
    "nav": etree.XPath(
        "//table[not(descendant::table)][descendant::a[starts-with(@class, 'summary-letter')]]"
        " | //table[starts-with(@class, 'index-') or contains(@class, '-entries-printindex')]//tr[th]"
        " | //table[@class = 'navigation']"
    ),
    "span": etree.XPath(
        "//pre/div[@class = 'line'] | //table[@class = 'FOOTNOTES']//p"
        " | //tr[@class = 'mlabels' or @class = 'memname']/descendant::*[self::table or self::tr or self::td]"
        f" | //td/td | {_GROFF_ITEMS}/tr/td/p[1] | {_PROTOTYPE}//td"
    ),
    "dt": etree.XPath(f"{_LISTED_ROWS}/td[1]"),
    "dd": etree.XPath(f"{_LISTED_ROWS}/td"),
    "dl": etree.XPath(_LISTED),
    "p": etree.XPath(_AUTHORS),
    "th": etree.XPath(f"{_SUMMARY}/{_HEADER}"),
    "td": etree.XPath(f"{_SUMMARY}[th]/div"),
    "table": etree.XPath(f"{_SUMMARY}[th]"),
    "div": etree.XPath(
        "//ul[@class = 'summary-list'] | //ul[@class = 'summary-list']/li"  # shown without bullets
        f" | {_PROTOTYPE}/descendant-or-self::*[self::table or self::tr]"
    ),
}


def mark_generated(page: etree._Element) -> None:
    """Give the elements that these programs write the names of what a browser shows."""
    for title in _DOXYGEN_TITLE(page):
        title.tag = "h1"
        for group in title.findall("div"):  # which the page belongs to
            title.addnext(group)
    for cell in _ROW_STARTS(page):
        cell.addprevious(etree.Element("tr"))
    for cell in _GOES_ON(page):
        following = cell.getnext()
        following.text = f" {following.text or ''}"
        cell.append(following)
    for name, find in _SHOWN_AS.items():
        for element in find(page):
            element.tag = name
    for table in _LAYOUT(page):
        table.tag = "div"
