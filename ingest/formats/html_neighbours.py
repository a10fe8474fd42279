"""Sets apart what stands side by side in a web page without white space, as its style sheet or a bar does."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from arag.text.normalise import collapse_whitespace


def _has_class(name: str) -> str:
    return f"contains(concat(' ', normalize-space(@class), ' '), ' {name} ')"


_TIPS = etree.XPath(f"//*[{_has_class('tooltip')}]/span")  # shown above a word that a mouse points at
_NOTES_IN_MARKS = etree.XPath("//sup/span[string-length(normalize-space()) > 20]")  # shown at the mark of a note
_LINKS = etree.XPath("//a[@href][not(ancestor::pre or ancestor::code)]")
_KEYS_AND_LABELS = etree.XPath(f"//kbd | //*[{_has_class('keycap')}] | //*[{_has_class('mlabel')}]")  # of Doxygen
_BAR_BEFORE_TEXT = re.compile(r"^\s*\|\s+(?=[^\s|])")
_BAR_AT_END = re.compile(r"(?<![\s|])\s*\|\s*$")


def separate_neighbours(page: etree._Element) -> None:
    """Write what a browser shows between elements of a line: a colon, a space, or a comma for a bar."""
    for classifier in list(_find_classifiers(page)):
        _write_before(classifier, " : ")
    for tip in _TIPS(page):
        _write_before(tip, " ")
    for note in _NOTES_IN_MARKS(page):
        _set_beside_mark(note)
    links = _LINKS(page)
    separate = {*links, *_KEYS_AND_LABELS(page)}
    for element in separate:
        if _looks_like_one_word(element, separate):
            element.tail = " "
    for link in links:
        _list_links(link)


def _find_classifiers(page: etree._Element) -> Iterator[etree._Element]:
    """Yield the types behind names of parameters, as docutils and Sphinx write them. Older ones write the colon."""
    for term in page.iter("dt"):
        is_after_name = bool((term.text or "").strip())
        for part in term:
            classes = part.get("class", "").split()
            if "classifier-delimiter" in classes:
                break
            if is_after_name and "classifier" in classes:
                yield part
            is_after_name = is_after_name or "".join(part.itertext()).strip() != ""


def _looks_like_one_word(element: etree._Element, separate: set[etree._Element]) -> bool:
    """Return whether nothing stands between the words of an element and those of another. Two links may be one."""
    following = element.getnext()
    if following not in separate or element.tail:
        return False
    is_one_link = element.get("href", "") == following.get("href")
    last = "".join(element.itertext())[-1:]
    first = "".join(following.itertext())[:1]
    return last.isalnum() and first.isalnum() and not is_one_link


def _write_before(element: etree._Element, text: str) -> None:
    separator = etree.Element("span")
    separator.text = text
    element.addprevious(separator)


def _set_beside_mark(note: etree._Element) -> None:
    """Move a note from its raised mark to a place behind it, in brackets."""
    mark = note.getparent()
    shown = etree.Element("span")
    shown.text = f" ({collapse_whitespace(''.join(note.itertext()))})"
    shown.tail, mark.tail = mark.tail, None
    mark.remove(note)
    mark.addnext(shown)


def _list_links(link: etree._Element) -> None:
    """Write a comma for each bar beside a link: links between bars are a list, and no row of a table."""
    tail = _BAR_BEFORE_TEXT.sub(", ", link.tail or "")
    if link.getnext() is not None:
        tail = _BAR_AT_END.sub(", ", tail)
    link.tail = tail
