"""Formulas of Word on one line: x^2, a_1, (a + b)/2."""

from __future__ import annotations

from lxml import etree

from arag.ingest.formats.package import find_child, local_name, value_of

_MARKS = {"num": "", "den": "/", "sup": "^", "sub": "_"}


def maths(element: etree._Element) -> str:
    """Return a formula on one line."""
    name = local_name(element)
    if name.endswith("Pr"):
        return ""
    text = "".join(map(maths, element))
    if name in _MARKS and text:
        return _MARKS[name] + _in_brackets(text)
    properties = find_child(element, f"{{*}}{name}Pr")
    match name:
        case "t":
            text = element.text or ""
        case "d":
            opening = value_of(properties, "{*}begChr") or "("
            closing = value_of(properties, "{*}endChr") or ")"
            text = f"{opening}{text}{closing}"
        case "nary":
            sign = value_of(properties, "{*}chr") or "∫"
            text = f"{sign}{text}"
        case "rad":
            text = f"√{_in_brackets(text)}"
    return text


def _in_brackets(text: str) -> str:
    is_one_term = len(text) == 1 or text.isalnum()
    return text if is_one_term else f"({text})"
