"""Finds the elements of a web page that a browser does not show, and those that only lead to other pages."""

from __future__ import annotations

import re

from lxml import etree

_HIDDEN_BY_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
_MAY_BE_HIDDEN = etree.XPath("//*[@hidden or @aria-hidden or @style]")
_NAVIGATION = etree.XPath(
    "//*[@role = 'navigation'][not(self::html or self::body or ancestor::*[@role = 'navigation'])]"
)
_TEXT_BESIDE_LINKS = etree.XPath(
    ".//text()[not(ancestor::a or ancestor::h1 or ancestor::h2 or ancestor::h3 or ancestor::h4 or ancestor::script)]"
)
_PERMALINKS = etree.XPath("//a[contains(@href, '#')]")
_PERMALINK_MARKS = {"¶", "#", "§", "🔗", "⚓", "∞"}
_HAS_PERMALINK = frozenset("h1 h2 h3 h4 h5 h6 dt caption figcaption".split())


def find_hidden(page: etree._Element) -> set[etree._Element]:
    """Return the elements that a browser does not show. Formulas are kept: pages show pictures of hidden ones."""
    hidden: set[etree._Element] = set()
    for element in _MAY_BE_HIDDEN(page):
        is_page = element.tag in {"html", "body"}
        if is_page or not _is_hidden(element):
            continue
        if element.find(".//math") is None:
            hidden.add(element)
    hidden.update(filter(_is_permalink, _PERMALINKS(page)))
    return hidden


def find_navigation(page: etree._Element) -> list[etree._Element]:
    """Return the elements that are for navigation: by their name, or by a role if they have links and titles only."""
    by_role = filter(_has_only_links, _NAVIGATION(page))
    return [*page.iter("nav"), *by_role]


def _has_only_links(element: etree._Element) -> bool:
    """Return whether an element has no words but links and titles."""
    beside = "".join(_TEXT_BESIDE_LINKS(element))
    return not any(map(str.isalpha, beside))


def _is_permalink(link: etree._Element) -> bool:
    """Return whether a link in a heading or a caption is a mark that leads to it."""
    mark = "".join(link.itertext()).strip()
    if mark not in _PERMALINK_MARKS:
        return False
    return any(parent.tag in _HAS_PERMALINK for parent in link.iterancestors()) or "headerlink" in link.get("class", "")


def _is_hidden(element: etree._Element) -> bool:
    if element.get("role") == "tabpanel":  # a click shows it
        return False
    is_read_out = element.get("aria-hidden") != "true"
    if not is_read_out and element.tag != "figcaption":  # a caption may repeat what is read out for the picture
        return True
    if element.get("hidden", "until-found") != "until-found":
        return True
    return _HIDDEN_BY_STYLE.search(element.get("style", "")) is not None
