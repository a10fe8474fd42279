"""Finds the elements of a web page that a browser does not show, and those that only lead to other pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

from arag.ingest.boundaries import ENDS
from arag.ingest.formats.package import to_int
from arag.text.normalise import collapse_whitespace

_HIDDEN_BY_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
_MAY_BE_HIDDEN = etree.XPath("//*[@hidden or @aria-hidden or @style][not(self::html or self::body)]")
_NAVIGATION = etree.XPath(
    "//*[@role = 'navigation'][not(self::html or self::body or ancestor::*[@role = 'navigation'])]"
)
_MAIN = etree.XPath("(//main | //*[@role = 'main'])[1]")
_WORD = re.compile(r"[^\W\d_]{3,}|[\u3040-\u9fff\uac00-\ud7af]")
# Javadoc leads to another page by a script, or else by a refresh for browsers without scripts.
_REFRESH = etree.XPath(
    "//meta[@http-equiv and @content]"
    "[not(ancestor::noscript) or /html/head/script[starts-with(normalize-space(), 'window.location.replace(')]]"
)
_AT_ONCE_TO = re.compile(r"\s*0(?:\.0*)?\s*[;,]\s*\S")  # browsers need no `url=`
_MAX_REDIRECT = 500  # characters of a page that only leads to another
_TEXT_BESIDE_LINKS = etree.XPath(
    ".//text()[not(ancestor::a or ancestor::h1 or ancestor::h2 or ancestor::h3 or ancestor::h4 or ancestor::script)]"
)
# The label above links to related pages: LibreOffice, too, names it so.
_RELATED = etree.XPath("//*[@class = 'related'][not(.//a[@href] or self::table or .//table or .//p or .//li)]")
_LABEL = re.compile(rf"(?!.*[{re.escape(ENDS)}])\S+(?: \S+){{0,3}}")
_MAX_LABEL = 60  # characters: some scripts have no spaces
_HAS_LINK = etree.XPath("boolean(descendant-or-self::a[@href])")
# A script shows one of the texts, by the reader's system or program, as in the help of LibreOffice.
_SWITCHES = etree.XPath(
    "//span[span[@hidden]][count(span[@hidden]) = count(*)][count(*) > 1 or starts-with(@class, 'switch')]"
)
_HAS_BLOCKS = etree.XPath("boolean(.//p | .//div | .//ul | .//ol | .//table | .//h1 | .//h2 | .//h3 | .//h4)")
# A click on a heading shows what it controls, such as the answer to a question.
_CONTROLLED = etree.XPath(
    "//*[@aria-controls][ancestor-or-self::*[self::h2 or self::h3 or self::h4 or self::h5 or self::h6 or self::dt]]"
    "/@aria-controls"
)
# What LibreOffice hides for its authors; DocBook's link `[D]` below a picture, and its word "Note" where that would be
# the definition of a term; Doxygen's links to what is below and above, tips and numbers of lines; buttons of Javadoc
# and RDoc; the logo in headings of R's help; Sphinx's contents of the page beside it; menus of Node.js; what rustdoc
# shows on a click.
_BESIDE_TEXT = etree.XPath(
    "//*[@id = 'DEBUG'] | //*[@class = 'longdesc-link'] | //img[@class = 'toplogo']"
    " | //dd/div[@class = 'note'][not(preceding-sibling::node()[normalize-space()])]//th"
    " | //div[@class = 'header']/div[@class = 'summary']"
    " | //a[contains(@href, '#')][normalize-space() = 'More...']"
    " | //div[@id = 'nav-path' or @class = 'ttc'] | //pre/span[@class = 'line']/span[@class = 'lineno']"
    " | //div[@class = 'table-tabs'] | //span[@class = 'method-click-advice']"
    " | //li[contains(@class, 'picker-header')]"
    " | //span[@class = 'notable-traits'] | //*[contains(@class, 'out-of-band')] | //summary[@class = 'hideme']"
    " | //div[contains(@class, 'sphinxsidebar')]//ul[.//a][not(.//a[not(starts-with(@href, '#'))])]"
)
_BESIDE_CODE = etree.XPath("//pre/ancestor::td[1]/preceding-sibling::td")
_PERMALINKS = etree.XPath(
    "//a[contains(@href, '#')][contains(@class, 'headerlink') or ancestor::*[self::h1 or self::h2 or self::h3"
    " or self::h4 or self::h5 or self::h6 or self::dt or self::caption or self::figcaption]]"
)
_PERMALINK_MARKS = {"¶", "#", "§", "🔗", "⚓", "∞", "◆"}


def find_hidden(page: etree._Element) -> set[etree._Element]:
    """Return the elements that a browser does not show. Formulas are kept: pages show pictures of hidden ones."""
    hidden: set[etree._Element] = set()
    alternatives = _find_alternatives(page)
    controlled = set(" ".join(_CONTROLLED(page)).split())
    for element in _MAY_BE_HIDDEN(page):
        can_be_shown = element in alternatives or element.get("id") in controlled
        if can_be_shown or not _is_hidden(element):
            continue
        if element.find(".//math") is None:
            hidden.add(element)
    hidden.update(_BESIDE_TEXT(page))
    hidden.update(filter(_numbers_lines, _BESIDE_CODE(page)))
    hidden.update(filter(_is_permalink, _PERMALINKS(page)))
    return hidden


def _numbers_lines(cell: etree._Element) -> bool:
    """Return whether a cell has nothing but the numbers of the lines of code beside it, in the only row of a table."""
    row = cell.getparent()
    numbers = "".join(cell.itertext()).split()
    first = to_int("".join(numbers[:1]), -1)
    return all(
        [
            first >= 0,
            row.getprevious() is None,
            row.getnext() is None,
            numbers == list(map(str, range(first, first + len(numbers)))),
        ]
    )


def _find_alternatives(page: etree._Element) -> set[etree._Element]:
    """Return what is read of texts of which a script shows one: the default, or all different blocks."""
    read: set[etree._Element] = set()
    for switch in _SWITCHES(page):
        if not _HAS_BLOCKS(switch):
            read.add(next(filter(_is_default, switch), switch[0]))
            continue
        by_text: dict[str, etree._Element] = {}
        for alternative in switch:
            text = "".join("".join(alternative.itertext()).split())
            by_text.setdefault(text, alternative)
        read.update(by_text.values())
    return read


def _is_default(alternative: etree._Element) -> bool:
    names = [alternative.get("id", ""), alternative.get("class", "")]
    return any(name.startswith("default") for name in names)


def shows_others(page: etree._Element) -> bool:
    """Return whether a browser shows other pages in the frames of this one, which has hardly any text of its own."""
    frames = page.find(".//frameset")
    return frames is not None and len("".join(frames.itertext()).strip()) < _MAX_REDIRECT


def leads_elsewhere(page: etree._Element) -> bool:
    """Return whether a browser shows another page at once, and this one has hardly any text.

    Nor has a page of Doxygen's in which a script shows links that a search finds.
    """
    if page.find("body[@class='SRPage']") is not None:
        return True
    if not any(map(_refreshes_at_once, _REFRESH(page))):
        return False
    body = page.find("body")
    return body is None or len("".join(body.itertext()).strip()) < _MAX_REDIRECT


def _refreshes_at_once(declaration: etree._Element) -> bool:
    is_refresh = declaration.get("http-equiv").lower() == "refresh"
    return is_refresh and _AT_ONCE_TO.match(declaration.get("content")) is not None


def find_navigation(page: etree._Element, not_shown: set[etree._Element]) -> list[etree._Element]:
    """Return the elements that are for navigation: by their name, or by a role.

    One that is only named so by its role is beside the main text of the page, or shows links and titles only. A label
    above links to related pages goes with these.
    """
    own_words = _words(page.findtext("head/title", ""))
    navigation = [*page.iter("nav"), *_find_beside_main(page), *_find_related(page)]
    for element in _NAVIGATION(page):
        shown = [text for text in _TEXT_BESIDE_LINKS(element) if _parent_of(text) not in not_shown]
        beside_links = " ".join(shown)
        if _words(beside_links) <= own_words:  # the links to the pages above may end with this page's own name
            navigation.append(element)
    return navigation


def _find_beside_main(page: etree._Element) -> set[etree._Element]:
    """Return the elements with a role for navigation that are neither around the main text of a page nor in it."""
    beside: set[etree._Element] = set()
    for main in _MAIN(page):  # one, if the page names it
        beside.update(_NAVIGATION(page))
        beside -= {*main.iterancestors(), *main.iter()}
    return beside


def _find_related(page: etree._Element) -> Iterator[etree._Element]:
    """Yield the label above links to related pages and the blocks of links below it, if nothing else is below it."""
    for label in _RELATED(page):
        parent = label.getparent()
        stands_alone = len(parent) == 1 and parent.tag == "div"
        start = parent if stands_alone else label
        text = collapse_whitespace("".join(start.itertext()))
        if len(text) > _MAX_LABEL or not _LABEL.fullmatch(text):
            continue
        if not all(map(_has_only_links, start.itersiblings())):
            continue
        below = list(filter(_HAS_LINK, start.itersiblings()))
        if below:
            yield start
            yield from below


def _has_only_links(block: etree._Element) -> bool:
    """Return whether no words of a block are beside links."""
    return not "".join(_TEXT_BESIDE_LINKS(block)).strip()


def _parent_of(text: Any) -> etree._Element:
    """Return the element around a text that a search in a page has found."""
    element = text.getparent()
    return element.getparent() if text.is_tail else element


def _words(text: str) -> set[str]:
    """Return the words of a text, without those as short as the name of a language."""
    return set(_WORD.findall(text.lower()))


def _is_permalink(link: etree._Element) -> bool:
    """Return whether a link in a heading or a caption is a mark that leads to it."""
    mark = "".join(link.itertext()).strip()
    return mark in _PERMALINK_MARKS


def _is_hidden(element: etree._Element) -> bool:
    if element.get("role") == "tabpanel":  # a click shows it
        return False
    is_read_out = element.get("aria-hidden") != "true"
    if not is_read_out and element.tag != "figcaption":  # a caption may repeat what is read out for the picture
        return True
    if element.get("hidden", "until-found") != "until-found":
        return True
    return _HIDDEN_BY_STYLE.search(element.get("style", "")) is not None
