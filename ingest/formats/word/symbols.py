"""Signs of Word that are in a font of symbols, in Unicode."""

from __future__ import annotations

from lxml import etree

from arag.ingest.formats.package import attribute

_PRIVATE = range(0xF000, 0xF100)  # where fonts of symbols have their signs
# Keys of letters at which the font Symbol has Greek ones.
_LATIN_KEYS = "abgdezhqiklmnxoprstufcyw"
_GREEK_LETTERS = "αβγδεζηθικλμνξοπρστυφχψω"
_LATIN = map(ord, _LATIN_KEYS + _LATIN_KEYS.upper())
_GREEK = _GREEK_LETTERS + _GREEK_LETTERS.upper()
_SYMBOL = dict(zip(_LATIN, _GREEK, strict=True))
_SYMBOL |= {0xA3: "≤", 0xB3: "≥", 0xB1: "±", 0xB4: "×", 0xB0: "°", 0xB9: "≠", 0xBB: "≈", 0xA5: "∞", 0xB7: "•"}
_SYMBOL |= {0xAC: "←", 0xAE: "→", 0xDE: "⇒", 0xD6: "√", 0xE5: "∑", 0xB8: "÷", 0xA2: "′"}
_WINGDINGS = {0xFC: "✓", 0xFB: "✗", 0xFE: "☑", 0xA8: "☐", 0x6F: "☐", 0xFD: "☒", 0xE0: "→", 0xDF: "←", 0xA7: "▪"}
_LAST_OF_ASCII = 0x7E


def symbol(element: etree._Element) -> str:
    """Return a sign of a font of symbols in Unicode; an unknown one is left out."""
    font = attribute(element, "font").lower()
    try:
        code = int(attribute(element, "char"), 16)
    except ValueError:
        return ""
    if code not in _PRIVATE:
        return chr(code)
    key = code - _PRIVATE.start
    if font.startswith("wingdings"):
        return _WINGDINGS.get(key, "")
    if font != "symbol":
        return ""
    as_in_ascii = chr(key) if key <= _LAST_OF_ASCII else ""
    return _SYMBOL.get(key, as_in_ascii)
