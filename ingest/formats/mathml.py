"""Formulas of web pages and e-books in one line: `E=mc^2`."""

from __future__ import annotations

import re
from itertools import zip_longest

from lxml import etree

from arag.text.normalise import collapse_whitespace

_DISPLAY_STYLE = re.compile(r"^\{?\\(?:display|text)style\s*(.*?)\}?$", re.DOTALL)
_NOT_SHOWN = ("annotation", "annotation-xml", "mphantom")
# How the parts of an element are shown, by its tag. Parts with an upper-case name get brackets if they are more than a
# name or a number.
_FORMS = {
    "msup": "{first}^{SECOND}",
    "mover": "{first}^{SECOND}",
    "msub": "{first}_{SECOND}",
    "munder": "{first}_{SECOND}",
    "mfrac": "{FIRST}/{SECOND}",
    "mroot": "{FIRST}^(1/{second})",
}
_FORMS_OF_THREE = dict.fromkeys(("msubsup", "munderover"), "{first}_{SECOND}^{THIRD}")
# Cells of a row, and numbers below each other, as in a sum on paper.
_SEPARATORS = {"mtr": ", ", "mstack": " ", "mlongdiv": " ", "msgroup": " "}


def formula_text(math: etree._Element) -> str:
    """Return a formula as its author wrote it for readers without pictures, else in one line: `E=mc^2`."""
    source = math.get("alttext") or math.findtext(".//annotation") or ""
    plain = collapse_whitespace(source)
    if not plain:
        return _in_one_line(math)
    style = _DISPLAY_STYLE.match(plain)
    if style:
        return style[1].strip()
    return plain


def _in_one_line(element: etree._Element) -> str:
    if element.tag == "mmultiscripts":
        return _with_scripts(element)
    line = _join_parts(element, _lines_of(element))
    if element.tag == "mtext":
        return f" {line} "
    return line


def _lines_of(element: etree._Element) -> list[str]:
    return list(map(_in_one_line, filter(_is_shown, element)))


def _is_shown(element: etree._Element) -> bool:
    return element.tag not in _NOT_SHOWN


def _join_parts(element: etree._Element, parts: list[str]) -> str:
    forms_by_parts = {2: _FORMS, 3: _FORMS_OF_THREE}
    forms = forms_by_parts.get(len(parts), {})
    form = forms.get(element.tag)
    if form:
        return _fill_form(form, parts)
    match element.tag:
        case "msqrt":
            return f"√({''.join(parts)})"
        case "mfenced":
            return _in_fence(element, parts)
        case "mtable":
            return "[" + "; ".join(parts) + "]"
        case _:
            separator = _SEPARATORS.get(element.tag, "")
            return collapse_whitespace(element.text or "") + separator.join(parts)


def _fill_form(form: str, parts: list[str]) -> str:
    names: dict[str, str] = {}
    places = ("first", "second", "third")
    for name, part in zip(places, parts, strict=False):
        names[name] = part
        names[name.upper()] = _in_brackets(part)
    return form.format_map(names)


def _in_fence(fence: etree._Element, parts: list[str]) -> str:
    """Return parts with the brackets and separators that a browser writes around and between them."""
    separators = "".join(fence.get("separators", ",").split())
    last = separators[-1:]  # stands between all further parts
    shown: str = fence.get("open", "(")
    for place, part in enumerate(parts):
        if place > 0:
            shown += separators[place - 1 : place] or last
        shown += part
    closing: str = fence.get("close", ")")
    return shown + closing


def _with_scripts(element: etree._Element) -> str:
    """Return a base with the pairs of lowered and raised parts after it; those before it come first."""
    base, *scripts = element
    before: list[str] = []
    after: list[str] = []
    parts = after
    for script in scripts:
        if script.tag == "mprescripts":
            parts = before
        else:
            parts.append(_in_one_line(script))
    return _scripts(before) + _in_one_line(base) + _scripts(after)


def _scripts(parts: list[str]) -> str:
    marked: list[str] = []
    for lowered, raised in zip_longest(parts[::2], parts[1::2], fillvalue=""):
        if lowered:
            marked.append(f"_{_in_brackets(lowered)}")
        if raised:
            marked.append(f"^{_in_brackets(raised)}")
    return "".join(marked)


def _in_brackets(text: str) -> str:
    if len(text) == 1 or text.isalnum():
        return text
    return f"({text})"
