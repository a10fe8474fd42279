"""Sets apart what stands side by side in a web page without white space, as its style sheet or a bar does."""

from __future__ import annotations

import re

from lxml import etree

_NOT_IN_CODE = "not(ancestor::pre or ancestor::code)"


def _has_class(name: str) -> str:
    return f"contains(concat(' ', normalize-space(@class), ' '), ' {name} ')"


_IS_KEY = f"self::kbd or {_has_class('keycap')}"
_CLASSIFIERS = etree.XPath(f"//dt/*[{_has_class('classifier')}]")  # of docutils and Sphinx: the type of a parameter
_TEXT_BEFORE = etree.XPath("preceding-sibling::node()/descendant-or-self::text()", smart_strings=False)
# The labels of members in Doxygen, keys, and what is shown above a word that a mouse points at.
_LABELS = etree.XPath(
    f"//*[{_has_class('mlabel')}]/following-sibling::node()[1][{_has_class('mlabel')}]"
    f" | //*[{_IS_KEY}]/following-sibling::node()[1][{_IS_KEY}]"
    f" | //*[{_has_class('tooltip')}]/span"
)
_NEIGHBOURING_LINKS = etree.XPath(
    f"//a[@href][{_NOT_IN_CODE}]/following-sibling::node()[1][self::a/@href != preceding-sibling::a[1]/@href]"
)
_LINKS_BEFORE_BAR = etree.XPath(f"//a[@href][contains(following-sibling::text()[1], '|')][{_NOT_IN_CODE}]")
_BAR_BEFORE_TEXT = re.compile(r"^\s*\|\s+(?=[^\s|])")
_BAR_AT_END = re.compile(r"(?<![\s|])\s*\|\s*$")


def separate_neighbours(page: etree._Element) -> None:
    """Write what a browser shows between elements of a line: a colon, a space, or a comma for a bar."""
    for classifier in _CLASSIFIERS(page):
        before = "".join(_TEXT_BEFORE(classifier)).strip()
        if before and not before.endswith(":"):
            _write_before(classifier, " : ")
    for label in _LABELS(page):
        _write_before(label, " ")
    for link in _NEIGHBOURING_LINKS(page):
        before = "".join(link.getprevious().itertext())
        after = "".join(link.itertext())
        if before[-1:].isalnum() and after[:1].isalnum():
            _write_before(link, " ")
    for link in _LINKS_BEFORE_BAR(page):
        _list_links(link)


def _write_before(element: etree._Element, text: str) -> None:
    before = element.getprevious()
    if before is None:
        parent = element.getparent()
        parent.text = (parent.text or "") + text
    else:
        before.tail = (before.tail or "") + text


def _list_links(link: etree._Element) -> None:
    """Write a comma for each bar beside a link: links between bars are a list, and no row of a table."""
    tail = _BAR_BEFORE_TEXT.sub(", ", link.tail or "")
    if link.getnext() is not None:
        tail = _BAR_AT_END.sub(", ", tail)
    link.tail = tail
