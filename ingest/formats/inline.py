"""What stands in a line of a web page beside plain text: raised numbers, formulas, ruby, pictures, fields of forms."""

from __future__ import annotations

import re
from pathlib import PurePath

from lxml import etree

from arag.text.normalise import collapse_whitespace

_MAX_RAISED = 12  # characters of a raised or lowered text that gets a mark
_NOTE_MARK = re.compile(r"\d{1,3}|[a-z]|[*†‡§¶]{1,3}")
_EXPONENT = re.compile(r"[+−–-]?\d{1,4}|[+−–-]?[a-z]|[a-z0-9+−–-]{2,}")
_BASE_OF_POWER = re.compile(r"(?:(?<!\w)[\w)\]]|(?<![\w.])10|[)\]]|\b(?:sin|cos|tan|log|ln))$")  # 10, 2, x, sin
_BEFORE_NOTE = re.compile(r"(?:[^\W\d]{4}|\b[12]\d{3}|[.,;:!?”\"])$")
_UNIT = re.compile(r"(?<![^\W\d])(?:[kcdmnµμ]?m|s|kg|g|ft|in|yd|mi|K|A|V|N|J|W)$")
_RAISED_DIGITS = str.maketrans("0123456789+-−–", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")
_AFTER_NUMBER = re.compile(r"(?i)st|nd|rd|th|ers?|res?|es?|èmes?|o|a|os|as|mo|ma|ter|me")
_TRADE_MARK = re.compile(r"(?i)tm|sm|[®™℠]|o")  # and n°
_ISOTOPE = re.compile(r"[A-Z][a-z]?(?![a-z])")
_JAPANESE_OR_CHINESE_READING = re.compile("[\u3041-\u30ff]")
_DISPLAY_STYLE = re.compile(r"^\{?\\(?:display|text)style\s*(.*?)\}?$", re.DOTALL)
_FILE_NAME = re.compile(r"(?i).+\.(?:png|jpe?g|gif|svg|webp|bmp|tiff?)")
_DECORATION = frozenset("image img photo picture logo icon spacer bullet arrow avatar banner thumbnail graphic".split())
_MAX_ICON = 24  # pixels
_STANDS_FOR_LETTERS = re.compile("(?i)math|tex|formula|emoji|smiley")
_MAX_OPTIONS = 8  # of a list with a chosen one: the others of a longer list are left out
_TYPED = frozenset("text search email url tel number date time datetime-local month week range color".split())


def raise_text(before: str, element: etree._Element, text: str) -> str:
    """Return a raised or lowered text so that it does not run into the number or word before it.

    10⁶ is `10^6`, m² stays `m²`, and the mark of a note is `[3]`.
    """
    shown = collapse_whitespace(text)
    if not shown or len(shown) > _MAX_RAISED:
        return text
    if element.tag == "sub":
        return f"_{shown}" if before[-1:].isdigit() else text
    last = before[-1:]
    is_isotope = not last.strip() and _ISOTOPE.match(element.tail or "") is not None
    is_ordinal = (last.isdigit() or last.isupper()) and _AFTER_NUMBER.fullmatch(shown) is not None
    if is_isotope or is_ordinal or _TRADE_MARK.fullmatch(shown) or shown.startswith(("[", "(")):
        return text
    if not _is_note(element, before):
        raised = shown.translate(_RAISED_DIGITS)
        if raised != shown and _UNIT.search(before):
            return raised
        if _BASE_OF_POWER.search(before) and _EXPONENT.fullmatch(shown):
            return f"^{shown}"
    return _show_raised(last, shown) or text


def _show_raised(last: str, shown: str) -> str:
    """Return a raised text behind a character with a mark, as the one of a note if it looks so; else nothing."""
    if _NOTE_MARK.fullmatch(shown):
        gap = " " if last.strip() else ""
        return f"{gap}[{shown}]"
    return f"^{shown}" if last.isalnum() and shown[0].isalnum() else ""


def _is_note(element: etree._Element, before: str) -> bool:
    """Return whether a raised text is the mark of a note: it is a link, or it follows a word or a year."""
    parent = element.getparent()
    is_in_link = parent is not None and parent.tag == "a"
    if is_in_link or element.find(".//a[@href]") is not None:
        return True
    return _BEFORE_NOTE.search(before) is not None


def take_ruby(element: etree._Element, texts: dict[etree._Element, str]) -> str:
    """Return a ruby's text with its reading after it: `水車（すいしゃ）`. The texts of its children are taken."""
    base: list[str] = []
    readings: list[str] = []
    _split_ruby(element, texts, base, readings)
    shown = collapse_whitespace("".join(base))
    reading = "".join(readings) if any(map(_JAPANESE_OR_CHINESE_READING.search, readings)) else " ".join(readings)
    return f"{shown}（{reading}）" if reading else shown


def _split_ruby(
    element: etree._Element,
    texts: dict[etree._Element, str],
    base: list[str],
    readings: list[str],
) -> None:
    base.append((element.text or "").strip())
    for child in element:
        text = texts.pop(child)
        if child.tag in {"rt", "rtc"}:
            readings.append(collapse_whitespace(text))
        elif child.tag != "rp":
            base.append(text)
        base.append((child.tail or "").strip())


def formula_text(math: etree._Element) -> str:
    """Return a formula as its author wrote it for readers without pictures, else in one line: `E=mc^2`."""
    source = math.get("alttext", "")
    for note in math.iter("annotation"):
        source = source or (note.text or "")
    if source.strip():
        plain = collapse_whitespace(source)
        style = _DISPLAY_STYLE.match(plain)
        return style[1].strip() if style else plain
    return _in_one_line(math)


def _in_one_line(element: etree._Element) -> str:
    parts = [_in_one_line(child) for child in element if child.tag not in {"annotation", "annotation-xml"}]
    match element.tag, parts:
        case "msup" | "mover", [base, raised]:
            line = f"{base}^{_in_brackets(raised)}"
        case "msub" | "munder", [base, lowered]:
            line = f"{base}_{_in_brackets(lowered)}"
        case "msubsup" | "munderover", [base, lowered, raised]:
            line = f"{base}_{_in_brackets(lowered)}^{_in_brackets(raised)}"
        case "mfrac", [above, below]:
            line = f"{_in_brackets(above)}/{_in_brackets(below)}"
        case "msqrt", _:
            line = f"√({''.join(parts)})"
        case "mroot", [base, degree]:
            line = f"{_in_brackets(base)}^(1/{degree})"
        case "mtable", _:
            line = "[" + "; ".join(parts) + "]"
        case "mtr", _:
            line = ", ".join(parts)
        case _:
            line = collapse_whitespace(element.text or "") + "".join(parts)
    return f" {line} " if element.tag == "mtext" else line


def _in_brackets(text: str) -> str:
    return text if len(text) == 1 or text.isalnum() else f"({text})"


def picture_text(picture: etree._Element) -> str:
    """Return what is shown instead of a picture, if that says more than that there is one."""
    text = collapse_whitespace(picture.get("alt") or picture.get("title") or "")
    is_decoration = picture.get("role") in {"presentation", "none"} or text.lower() in _DECORATION
    if not text or is_decoration or _is_icon(picture) or _FILE_NAME.fullmatch(text):
        return ""
    if text == PurePath(picture.get("src", "")).stem:
        return ""
    figure = next(picture.iterancestors("figure", "a"), None)
    if figure is not None and text in collapse_whitespace("".join(figure.itertext())):
        return ""  # its caption or its link says the same
    return text


def _is_icon(picture: etree._Element) -> bool:
    """Return whether a picture is as small as a letter and stands for no letter."""
    sizes = [picture.get(side, "").removesuffix("px") for side in ("width", "height")]
    is_small = any(size.isdecimal() and int(size) <= _MAX_ICON for size in sizes)
    return is_small and not _STANDS_FOR_LETTERS.search(picture.get("class", ""))


def field_text(field: etree._Element) -> str:
    """Return what is typed or chosen in a field of a form."""
    kind = field.get("type", "text").lower()
    if kind in {"checkbox", "radio"}:
        return "[x] " if field.get("checked") is not None else "[ ] "
    if kind in _TYPED:
        return collapse_whitespace(field.get("value", ""))
    return ""


def option_text(option: etree._Element, text: str) -> str:
    """Return an option of a list, with a mark if one of the list is chosen."""
    text = collapse_whitespace(text or option.get("label", ""))
    choices = next(option.iterancestors("select"), None)
    options = [] if choices is None else list(choices.iter("option"))
    if all(other.get("selected") is None for other in options):
        return text
    if option.get("selected") is not None:
        return f"[x] {text}"
    return f"[ ] {text}" if len(options) <= _MAX_OPTIONS else ""


def drawing_text(drawing: etree._Element) -> str:
    """Return the words of a drawing, such as the labels of a chart."""
    labels = [collapse_whitespace("".join(label.itertext())) for label in drawing.iter("text", "foreignobject")]
    return "; ".join(label for label in labels if label)
