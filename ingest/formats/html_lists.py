"""Lists of web pages: what stands before each item, as a browser shows it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from lxml import etree

from arag.ingest.formats.package import to_int
from arag.ingest.formats.word.numbers import BULLET, show_in_form

_LISTS = ("ol", "ul", "menu", "dir")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_INDENTATION = "\u00a0\u00a0"  # of an item in a list in another one: no-break spaces, which stay
_MAX_INDENTATIONS = 4  # old pages do not end their lists
_STYLE = re.compile(r"(?:^|;)\s*list-style(?:-type)?\s*:([^;]*)", re.IGNORECASE)
_FORM_OF = {  # by the names in CSS, HTML, docutils and DocBook
    "1": "decimal",
    "a": "lowerLetter",
    "A": "upperLetter",
    "i": "lowerRoman",
    "I": "upperRoman",
    "decimal": "decimal",
    "arabic": "decimal",
    "decimal-leading-zero": "decimalZero",
    "lower-alpha": "lowerLetter",
    "lower-latin": "lowerLetter",
    "loweralpha": "lowerLetter",
    "upper-alpha": "upperLetter",
    "upper-latin": "upperLetter",
    "upperalpha": "upperLetter",
    "lower-roman": "lowerRoman",
    "lowerroman": "lowerRoman",
    "upper-roman": "upperRoman",
    "upperroman": "upperRoman",
    **dict.fromkeys(["none", "disc", "circle", "square", "breadcrumb", "breadcrumbs"], "bullet"),
}
_OWN_NUMBER = re.compile(r"\s*[(\[]?(?:(?:\w+\.)+(\w+)|(\w+)[.)\]])[.)\]]?\s")  # such as 2.3 and (3)
_SHORT_NUMBER = re.compile(r"\d{1,3}")  # which begins an item by itself; another one has a bullet before it


def find_items(page: etree._Element) -> dict[etree._Element, str]:
    """Return what stands before each item of a page's lists: a bullet or a number, set in below other items."""
    items_of: dict[etree._Element, list[etree._Element]] = defaultdict(list)
    for item in page.iter("li"):
        around = next(item.iterancestors(*_LISTS), page)
        items_of[around].append(item)
    with_headings: set[etree._Element] = set()  # these items lay out the page
    for heading in page.iter(*_HEADINGS):
        with_headings.update(heading.iterancestors("li"))
    marks: dict[etree._Element, str] = {}
    for around, items in items_of.items():
        lists = list(around.iterancestors(*_LISTS))
        depth = len(lists) - len(with_headings.intersection(around.iterancestors("li")))
        indentation = min(max(depth, 0), _MAX_INDENTATIONS) * _INDENTATION
        for item, number in zip(items, _count(around, items), strict=True):
            marks[item] = f"{indentation}{number}"
    return marks


def without_own_number(mark: str, text: str) -> str:
    """Return a bullet in place of the number of an item whose text begins with that number."""
    own = _OWN_NUMBER.match(text)
    number = mark.strip(f"{_INDENTATION}{BULLET} .")
    if own is None or number not in own.groups():
        return mark
    indentation = mark.count(_INDENTATION) * _INDENTATION
    return f"{indentation}{BULLET}"


def _count(around: etree._Element, items: list[etree._Element]) -> Iterator[str]:
    """Yield the number of each item of a list, or a bullet."""
    is_reversed = around.get("reversed") is not None
    step = -1 if is_reversed else 1
    first = len(items) if is_reversed else 1
    form = _form_of(around, default="decimal" if around.tag == "ol" else "bullet")
    number = to_int(around.get("start", ""), first)
    for item in items:
        number = to_int(item.get("value", ""), number)
        yield _show_number(_form_of(item, default=form), number)
        number += step


def _form_of(element: etree._Element, *, default: str) -> str:
    """Return the form of the numbers that the style, the type or the class of a list or an item names."""
    style = _STYLE.search(element.get("style", ""))
    names = style[1].lower().split() if style else []
    names += [element.get("type", ""), *element.get("class", "").split()]
    return next(filter(None, map(_FORM_OF.get, names)), default)


def _show_number(form: str, number: int) -> str:
    shown = show_in_form(form, number)
    if not shown:
        return BULLET
    return f"{shown}." if _SHORT_NUMBER.fullmatch(shown) else f"{BULLET} {shown}."
