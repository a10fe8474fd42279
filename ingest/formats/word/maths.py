"""Formulas of Word on one line: x^2, a_1, (a + b)/2."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from lxml import etree

from arag.ingest.formats.package import attribute, find_child, local_name, value_of

_Properties: TypeAlias = "etree._Element | None"  # noqa: SLF001 - lxml names the type so

_MARKS = {"num": "", "den": "/", "sup": "^", "sub": "_"}
_SEPARATORS = {"m": "; ", "mr": ", ", "eqArr": "; "}  # between the parts of matrices and of lists of equations


def maths(element: etree._Element) -> str:
    """Return a formula on one line."""
    name = local_name(element)
    if name == "t":
        return element.text or ""
    parts: list[str] = []
    for child in element:
        if not local_name(child).endswith("Pr"):
            parts.append(maths(child))
    properties = find_child(element, f"{{*}}{name}Pr")
    text = _separator(name, properties).join(parts)
    if name in _MARKS and text:
        return _MARKS[name] + _in_brackets(text)
    show = _FORMS.get(name, _as_it_is)
    return show(text, properties)


def _separator(name: str, properties: _Properties) -> str:
    if name == "d":
        return _sign(properties, "sepChr", "|")
    return _SEPARATORS.get(name, "")


def _sign(properties: _Properties, name: str, default: str) -> str:
    """Return a sign that the properties of a part name, which may be none at all."""
    named = find_child(properties, f"{{*}}{name}")
    return default if named is None else attribute(named, "val")


def _as_it_is(text: str, _: _Properties) -> str:
    return text


def _between_delimiters(text: str, properties: _Properties) -> str:
    opening = _sign(properties, "begChr", "(")
    closing = _sign(properties, "endChr", ")")
    return f"{opening}{text}{closing}"


def _after_sign(text: str, properties: _Properties) -> str:
    """Return a sum or an integral."""
    sign = value_of(properties, "{*}chr") or "∫"
    return f"{sign}{text}"


def _under_root(text: str, _: _Properties) -> str:
    return f"√{_in_brackets(text)}"


def _in_brackets(text: str) -> str:
    is_one_term = len(text) == 1 or text.isalnum()
    return text if is_one_term else f"({text})"


_FORMS: dict[str, Callable[[str, _Properties], str]] = {
    "d": _between_delimiters,
    "nary": _after_sign,
    "rad": _under_root,
}
