"""Finds the frame around the text of a web page: menus, heads and feet, which other pages of its folder may repeat."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import filterfalse, islice
from operator import attrgetter

from lxml import etree

from arag.ingest.boundaries import ENDS
from arag.ingest.formats.inline import picture_text
from arag.text.normalise import collapse_whitespace

FRAME_START = "\x04"  # before a text that may be part of the frame, and before each line of it in a page's text
FRAME_END = "\x05"
CODE_LINE_END = "\x1e"  # stands for a line end in code, whose lines stay as they are

_MIN_LINKS = 2
_MIN_SIDEBAR_LINKS = 5
_JUMP = re.compile(r"#.*|(?:\.\.?/)*index\.html?")  # to a place in the page, or to the first page of the site
_MOSTLY = 0.9  # share of a row's letters that are in links
_MIN_WORDS = 4  # of a text that says something
# Themes put the whole page into a section.
_OUTSIDE = "not(ancestor::article or ancestor::main or ancestor::section[not(.//main or .//*[@role = 'main'])])"
# Elements that stand around a text by their kind.
_AROUND = etree.XPath(f"(//header | //footer | //aside)[not(.//h1) and {_OUTSIDE}]")
_FEET = etree.XPath(f"//div[contains(@class, 'footer') or contains(@id, 'footer')][{_OUTSIDE}]")
# In and below an element.
_TEXTS_FROM = etree.XPath(
    "(descendant::text() | following::text())"
    "[not(ancestor::a or ancestor::script or ancestor::style or ancestor::footer)]",
    smart_strings=False,
)
_FOOT = re.compile(r"(?:(?:site|page|main|bottom|global|md|mw|wiki|nav|doc)[-_]?)?footer")
_LINKS = etree.XPath("boolean(.//a[@href])")
_TEXTS_BESIDE_LINKS = etree.XPath(".//text()[not(ancestor::a)]", smart_strings=False)
_SEARCHES = etree.XPath(f"//form[contains(@action, 'search') and {_OUTSIDE}]")
_AROUND_TITLES = etree.XPath("//h1/ancestor::*")
_TEXT_PARTS = etree.XPath("//article | //main | //section[not(.//main or .//*[@role = 'main'])]")
_NAME = re.compile(
    r"(?:(?:site|page|main|top|bottom|left|right|global|md|mw|wiki)[-_]?)?"
    r"(?:nav(?:bar|header|footer|igation)?"
    r"|menu(?:[-_]?bar)?|toolbar|breadcrumbs?"
    r"|(?:sphinx)?sidebar(?:wrapper)?"
    r"|header|masthead|banner|titlearea"
    r"|footer|copyright|contentinfo"
    r"|related|search|toc[-_]?\w*)",
    re.IGNORECASE,
)
_TEXT_BLOCKS = ("p", "li", "div", "td", "center", "small", "address")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_LISTS = ("ul", "ol", "table")
_PARTS = ("ul", "ol", "li", "p")  # of the frame, which are looked at one by one
# The first of several main headings, if it leads to the site's start.
_SITE_NAME = etree.XPath(
    "(//h1)[1][count(//h1) > 1][a[@href and not(starts-with(@href, '#'))]][normalize-space(.) = normalize-space(a)]"
)
_NO_TEXT = ("a", "script", "style")
_NAMING = ("class", "id", "role")  # attributes
NOTE_ON_PAGE = re.compile(  # not on what the page is about
    r"(?i)©|\(c\) \d{4}|copyright"
    r"|all rights reserved|alle rechte|tous droits"
    r"|licen[cs]ed? under|permission is granted"
    r"|\bcookies?\b|privacy policy|terms of (?:use|service)"
    r"|powered by|(?:generated|built|created) (?:by|with|using)|^hosted (?:at|by|on)\b"
    r"|(?:\blast (?:modified|updated|changed|edited)\b|\b(?:generated|rendered) (?:on|at)\b"
    r"|zuletzt (?:geändert|aktualisiert)|derni[èe]re (?:mise à jour|modification)"
    r"|última (?:modificación|actualización|modificação|atualização)|ultim[oa] (?:aggiornamento|modifica)"
    r"|laatst (?:gewijzigd|bijgewerkt)|senast (?:ändrad|uppdaterad)|最終更新|最后(?:更新|修改))[^.!?。]*\d"
    r"|\b(?:page|seite|página|pagina) \d+ (?:of|von|de|di|van|sur) \d+$"
)
_MAX_BEFORE_NOTE = 300  # characters
_FIELD = re.compile(r"[^:：]{1,40}[:：](?!\d)\s*\S")  # such as `Status: open`, which is an answer; 20:07 is none


def find_empty_frame(page: etree._Element) -> list[etree._Element]:
    """Return the parts of headers, footers and asides around a page's text that say nothing: a few words, or links."""
    empty: list[etree._Element] = []
    for element in _AROUND(page):
        text = "".join(element.itertext()).strip()
        has_several_words = len(text.split()) >= _MIN_WORDS
        is_sentence = has_several_words or text.endswith(tuple(ENDS))
        if not is_sentence or _is_mostly_links(element):
            empty.append(element)
            continue
        empty += element.iter("form")
        empty += filter(_is_mostly_links, element.iter(*_PARTS))
    empty += filter(_has_only_links, _find_feet(page))
    return empty


def _find_feet(page: etree._Element) -> Iterator[etree._Element]:
    """Yield the feet of a page, the last one first: they and what is below them have no text beside links."""
    for foot in reversed(list(filter(_is_foot, _FEET(page)))):
        if any(map(_has_letters, _TEXTS_FROM(foot))):
            return
        yield foot


def _is_foot(element: etree._Element) -> bool:
    """Return whether an element is named a foot: one of class `no-footer` is the text above it."""
    names = [*element.get("class", "").split(), element.get("id", "")]
    return any(map(_FOOT.fullmatch, names))


def _has_letters(text: str) -> bool:
    return any(map(str.isalnum, text))


def _has_only_links(foot: etree._Element) -> bool:
    """Return whether no letter of a foot stands beside its links, such as one to report a bug."""
    beside = "".join(_TEXTS_BESIDE_LINKS(foot))
    return _LINKS(foot) and not _has_letters(beside)


def find_frame(page: etree._Element) -> set[etree._Element]:
    """Return the elements that are part of the frame if they are on most pages of a folder.

    They are named as such, or they are links, notes on rights and cookies and on the page itself, or lists, sentences
    and pictures above the title.
    A text right under a heading is never one, as it may be the answer that the heading asks for; nor is a field.
    """
    frame = {*_AROUND(page), *_find_named(page), *_find_unnamed(page), *_SEARCHES(page), *page.iter("address")}
    return set(filterfalse(_is_field, frame))


def _find_named(page: etree._Element) -> Iterator[etree._Element]:
    # Found once, and the elements by no XPath, which is slow where it finds thousands.
    text_parts = set(_TEXT_PARTS(page))
    with_title = set(_AROUND_TITLES(page))
    for element in page.iter("*"):
        names = " ".join(filter(None, map(element.get, _NAMING)))
        if not _is_name_of_frame(names) or element in with_title:
            continue
        if text_parts.isdisjoint(element.iterancestors()):
            yield element


@lru_cache(maxsize=10_000)
def _is_name_of_frame(names: str) -> bool:
    return any(map(_NAME.fullmatch, names.split()))


def _find_unnamed(page: etree._Element) -> Iterator[etree._Element]:
    yield from filter(_is_links, page.iterfind("body/a"))
    yield from filter(is_sidebar, page.iter("td"))
    headings = map(attrgetter("tag"), page.iter(*_HEADINGS))
    title = min(headings, default="")  # a frame may have lower headings above the page's own
    site_names = _SITE_NAME(page)
    is_above_title = bool(title)
    is_below_heading = False
    for element in page.iter(*_HEADINGS, *_LISTS, *_TEXT_BLOCKS, "a"):
        if element.tag == "a":
            may_be_logo = is_above_title or not title
            if may_be_logo and _is_logo(element):
                yield element
            continue
        if element.tag in _HEADINGS:
            if element in site_names:
                yield element
                continue
            is_below_heading = True
            is_title = element.tag == title
            if is_title:
                is_above_title = False
            continue
        text = _own_text(element)
        if not text:
            continue
        was_below_heading = is_below_heading
        is_below_heading = False
        if was_below_heading:
            continue
        if _says_nothing(element, text, is_above_title):
            yield element


def _is_logo(link: etree._Element) -> bool:
    """Return whether a link is a picture that stands alone in a block of other blocks."""
    is_picture = link.find("img") is not None and not _has_text(link)
    has_text_after = (link.tail or "").strip() != ""
    return is_picture and link.getparent().tag == "div" and not has_text_after


def _own_text(element: etree._Element) -> str:
    """Return the text of a list, or of a block with no other block in it."""
    if element.tag in _TEXT_BLOCKS:
        blocks = element.iter(*_LISTS, *_TEXT_BLOCKS, *_HEADINGS)  # the element itself is the first
        first_two = list(islice(blocks, 2))
        if len(first_two) > 1:
            return ""
    return collapse_whitespace(_all_text(element))


def _all_text(element: etree._Element) -> str:
    """Return the text of an element and what is shown for its pictures, which is not in their place."""
    pictures = map(picture_text, element.iter("img"))
    return " ".join(["".join(element.itertext()), *pictures])


def _says_nothing(element: etree._Element, text: str, is_above_title: bool) -> bool:
    if _is_links(element):
        return True
    if element.tag in _LISTS:
        return is_above_title and _is_menu(element)
    is_sentence = text.count(" ") + 1 >= _MIN_WORDS
    is_picture = not _has_text(element)
    if is_above_title and (is_sentence or is_picture):
        return True
    return NOTE_ON_PAGE.search(text, 0, _MAX_BEFORE_NOTE) is not None


def _is_links(element: etree._Element) -> bool:
    """Return whether an element is a row of links; one alone may be an answer, unless it is a jump."""
    links = list(element.iter("a"))
    is_jump = len(links) == 1 and _JUMP.fullmatch(links[0].get("href", "")) is not None
    if len(links) < _MIN_LINKS and not is_jump:
        return False
    of_links = sum(map(_count_letters, links))
    return of_links >= _MOSTLY * _count_letters(element)


def is_sidebar(cell: etree._Element) -> bool:
    """Return whether a cell of a table has several links and hardly anything else, beside a cell with other text."""
    links = len(list(cell.iter("a")))
    if links < _MIN_SIDEBAR_LINKS or not _is_links(cell):
        return False
    others = [*cell.itersiblings("td"), *cell.itersiblings("td", preceding=True)]
    return not all(map(_has_links_only, others))


def _has_links_only(cell: etree._Element) -> bool:
    """Return whether a cell has no text beside its links."""
    return _is_links(cell) or not _has_text(cell)


def _count_letters(element: etree._Element) -> int:
    return sum(map(str.isalnum, _all_text(element)))


def _is_menu(element: etree._Element) -> bool:
    """Return whether a list has several items, none of which is a field."""
    items = list(filter(_has_text, element.iter("li", "td")))
    return len(items) > 1 and not any(map(_is_field, items))


def _has_text(element: etree._Element) -> bool:
    return "".join(element.itertext()).strip() != ""


def _is_field(element: etree._Element) -> bool:
    """Return whether an element has a name and a value, and is not a note on the page itself."""
    text = "".join(element.itertext())
    text = collapse_whitespace(text)
    if _FIELD.match(text) is None:
        return False
    if NOTE_ON_PAGE.search(text):
        return False
    return not _is_mostly_links(element)


def _is_mostly_links(element: etree._Element) -> bool:
    of_links = sum(map(_count_characters, element.iter(*_NO_TEXT)))
    return 2 * of_links >= _count_characters(element)


def _count_characters(element: etree._Element) -> int:
    return sum(map(len, element.itertext()))


def mark_lines(text: str) -> str:
    """Return a page's text with a mark before each line of the frame, instead of those around the whole of it."""
    lines: list[str] = []
    depth = 0
    for line in text.split("\n"):
        starts = line.count(FRAME_START)
        is_frame = depth > 0 or starts > 0
        depth += starts - line.count(FRAME_END)
        plain = line.replace(FRAME_START, "").replace(FRAME_END, "").rstrip()
        has_words = plain.strip("- ") != ""
        if has_words and is_frame:
            marked_code = plain.replace(CODE_LINE_END, f"{CODE_LINE_END}{FRAME_START}")
            lines.append(f"{FRAME_START}{marked_code}")
        elif has_words or not line:  # others have nothing but marks
            lines.append(plain)
    marked = "\n".join(lines).strip("\n")
    return re.sub("\n{3,}", "\n\n", marked)
