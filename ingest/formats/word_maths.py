"""Formulas of Word on one line: x^2, a_1, (a + b)/2."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from lxml import etree

from arag.ingest.formats.package import find_child, local_name, value_of

_Properties: TypeAlias = "etree._Element | None"  # noqa: SLF001 - lxml names the type so

_MARKS = {"num": "", "den": "/", "sup": "^", "sub": "_"}


def maths(element: etree._Element) -> str:
    """Return a formula on one line."""
    name = local_name(element)
    if name == "t":
        return element.text or ""
    if name.endswith("Pr"):
        return ""
    text = "".join(map(maths, element))
    if name in _MARKS and text:
        return _MARKS[name] + _in_brackets(text)
    show = _FORMS.get(name, _as_it_is)
    properties = find_child(element, f"{{*}}{name}Pr")
    return show(text, properties)


def _as_it_is(text: str, _: _Properties) -> str:
    return text


def _between_delimiters(text: str, properties: _Properties) -> str:
    opening = value_of(properties, "{*}begChr") or "("
    closing = value_of(properties, "{*}endChr") or ")"
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
