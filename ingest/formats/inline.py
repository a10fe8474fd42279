"""What stands in a line of a web page beside plain text: raised numbers, formulas, ruby, pictures, fields of forms."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePath

from lxml import etree

from arag.text.normalise import collapse_whitespace

_MAX_RAISED = 12  # characters of a raised or lowered text that gets a mark
_NOTE_MARK = re.compile(r"\d{1,3}|[a-z]|[*†‡§¶]{1,3}")
_EXPONENT = re.compile(r"[+−–-]?\d{1,4}|[+−–-]?[a-z]|[a-z0-9+−–-]{2,}")
# The base of a power: 10, 2, x, sin.
_BASE_OF_POWER = re.compile(
    r"(?:(?<!\w)[\w)\]]|(?<![\w.])10|[)\]]|\b(?:sin|cos|tan|log|ln))$",
)
_BEFORE_NOTE = re.compile(r"(?:[^\W\d]{4}|\b[12]\d{3}|[.,;:!?”\"])$")
_UNIT = re.compile(r"(?<![^\W\d])(?:[kcdmnµμ]?m|s|kg|g|ft|in|yd|mi|K|A|V|N|J|W)$")
_RAISED_DIGITS = str.maketrans("0123456789+-−–", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")
_AFTER_NUMBER = re.compile(r"(?i)st|nd|rd|th|ers?|res?|es?|èmes?|o|a|os|as|mo|ma|ter|me")
_TRADE_MARK = re.compile(r"(?i)tm|sm|[®™℠]|o")  # and n°
_ISOTOPE = re.compile(r"[A-Z][a-z]?(?![a-z])")

_JAPANESE_OR_CHINESE = re.compile("[\u3041-\u30ff]")  # a reading in kana or bopomofo
_READINGS = ("rt", "rtc")
_BRACKET_OF_READING = "rp"

_DISPLAY_STYLE = re.compile(r"^\{?\\(?:display|text)style\s*(.*?)\}?$", re.DOTALL)
_SOURCES_OF_FORMULAS = ("annotation", "annotation-xml")
# Formulas in one line: how the parts of an element are shown, by its tag. Parts with an upper-case name get brackets if
# they are more than a name or a number.
_FORMS = {
    "msup": "{first}^{SECOND}",
    "mover": "{first}^{SECOND}",
    "msub": "{first}_{SECOND}",
    "munder": "{first}_{SECOND}",
    "mfrac": "{FIRST}/{SECOND}",
    "mroot": "{FIRST}^(1/{second})",
}
_FORMS_OF_THREE = dict.fromkeys(("msubsup", "munderover"), "{first}_{SECOND}^{THIRD}")

_FILE_NAME = re.compile(r"(?i).+\.(?:png|jpe?g|gif|svg|webp|bmp|tiff?)")
_DECORATION = frozenset(
    "image img photo picture logo icon spacer bullet arrow avatar banner thumbnail graphic".split(),
)
_MAX_ICON = 24  # pixels
_STANDS_FOR_LETTERS = re.compile("(?i)math|tex|formula|emoji|smiley")

_MAX_OPTIONS = 8  # of a list with a chosen one: the others of a longer list are left out
_TICKED = ("checkbox", "radio")
_TYPED = frozenset(
    "text search email url tel number date time datetime-local month week range color".split(),
)
_CHOSEN = "[x] "
_NOT_CHOSEN = "[ ] "


def raise_text(before: str, element: etree._Element, text: str) -> str:
    """Return a raised or lowered text so that it does not run into the number or word before it.

    10⁶ is `10^6`, m² stays `m²`, and the mark of a note is `[3]`.
    """
    shown = collapse_whitespace(text)
    last = before[-1:]
    if not shown or len(shown) > _MAX_RAISED:
        return text
    if element.tag == "sub":
        return f"_{shown}" if last.isdigit() else text
    if _belongs_to_word(last, element, shown):
        return text
    if not _is_note(element, before):
        power = _power(before, shown)
        if power:
            return power
    return _show_raised(last, shown) or text


def _belongs_to_word(last: str, element: etree._Element, shown: str) -> bool:
    """Return whether a raised text is a part of a word, such as 1st, n° and a trade mark, or has brackets."""
    if shown.startswith(("[", "(")) or _TRADE_MARK.fullmatch(shown):
        return True
    is_apart = not last.strip()
    if is_apart and _ISOTOPE.match(element.tail or ""):
        return True
    is_after_number = last.isdigit() or last.isupper()
    return is_after_number and _AFTER_NUMBER.fullmatch(shown) is not None


def _power(before: str, shown: str) -> str:
    """Return a raised text as the power of a unit or a number, or an empty string."""
    raised = shown.translate(_RAISED_DIGITS)
    if raised != shown and _UNIT.search(before):
        return raised
    if _BASE_OF_POWER.search(before) and _EXPONENT.fullmatch(shown):
        return f"^{shown}"
    return ""


def _show_raised(last: str, shown: str) -> str:
    """Return a raised text behind a character with a mark, as the one of a note if it looks so; else nothing."""
    if _NOTE_MARK.fullmatch(shown):
        gap = " " if last.strip() else ""
        return f"{gap}[{shown}]"
    if last.isalnum() and shown[0].isalnum():
        return f"^{shown}"
    return ""


def _is_note(element: etree._Element, before: str) -> bool:
    """Return whether a raised text is the mark of a note: it is a link, or it follows a word or a year."""
    parent = element.getparent()
    is_in_link = parent is not None and parent.tag == "a"
    if is_in_link:
        return True
    has_link = element.find(".//a[@href]") is not None
    return has_link or _BEFORE_NOTE.search(before) is not None


@dataclass
class _Ruby:
    """The parts of a text with its readings."""

    base: list[str] = field(default_factory=list)
    readings: list[str] = field(default_factory=list)


def take_ruby(element: etree._Element, texts: dict[etree._Element, str]) -> str:
    """Return a ruby's text with its reading after it: `水車（すいしゃ）`. The texts of its children are taken."""
    ruby = _split_ruby(element, texts)
    shown = collapse_whitespace("".join(ruby.base))
    together = "".join(ruby.readings)
    has_spaces = _JAPANESE_OR_CHINESE.search(together) is None
    reading = " ".join(ruby.readings) if has_spaces else together
    return f"{shown}（{reading}）" if reading else shown


def _split_ruby(element: etree._Element, texts: dict[etree._Element, str]) -> _Ruby:
    ruby = _Ruby()
    ruby.base.append((element.text or "").strip())
    for child in element:
        text = texts.pop(child)
        if child.tag in _READINGS:
            ruby.readings.append(collapse_whitespace(text))
        elif child.tag != _BRACKET_OF_READING:
            ruby.base.append(text)
        ruby.base.append((child.tail or "").strip())
    return ruby


def formula_text(math: etree._Element) -> str:
    """Return a formula as its author wrote it for readers without pictures, else in one line: `E=mc^2`."""
    source = collapse_whitespace(_formula_source(math))
    if not source:
        return _in_one_line(math)
    style = _DISPLAY_STYLE.match(source)
    return style[1].strip() if style else source


def _formula_source(math: etree._Element) -> str:
    alternative: str = math.get("alttext", "")
    if alternative:
        return alternative
    for note in math.iter("annotation"):
        if note.text:
            return str(note.text)
    return ""


def _in_one_line(element: etree._Element) -> str:
    parts: list[str] = []
    for child in element:
        if child.tag not in _SOURCES_OF_FORMULAS:
            parts.append(_in_one_line(child))
    line = _join_formula(element, parts)
    return f" {line} " if element.tag == "mtext" else line


def _join_formula(element: etree._Element, parts: list[str]) -> str:
    forms = {2: _FORMS, 3: _FORMS_OF_THREE}.get(len(parts), {})
    form = forms.get(element.tag)
    if form:
        return _fill_form(form, parts)
    match element.tag:
        case "msqrt":
            return f"√({''.join(parts)})"
        case "mtable":
            return "[" + "; ".join(parts) + "]"
        case "mtr":
            return ", ".join(parts)
        case _:
            return collapse_whitespace(element.text or "") + "".join(parts)


def _fill_form(form: str, parts: list[str]) -> str:
    names: dict[str, str] = {}
    for name, part in zip(("first", "second", "third"), parts, strict=False):
        names[name] = part
        names[name.upper()] = _in_brackets(part)
    return form.format_map(names)


def _in_brackets(text: str) -> str:
    if len(text) == 1 or text.isalnum():
        return text
    return f"({text})"


def picture_text(picture: etree._Element) -> str:
    """Return what is shown instead of a picture, if that says more than that there is one."""
    text = collapse_whitespace(picture.get("alt") or picture.get("title") or "")
    if not text or _is_decoration(picture, text) or _is_icon(picture):
        return ""
    is_name = _FILE_NAME.fullmatch(text) is not None
    if is_name or text == PurePath(picture.get("src", "")).stem:
        return ""
    figure = next(picture.iterancestors("figure", "a"), None)
    if figure is None:
        return text
    caption = collapse_whitespace("".join(figure.itertext()))
    return "" if text in caption else text  # its caption or its link says the same


def _is_decoration(picture: etree._Element, text: str) -> bool:
    return picture.get("role") in {"presentation", "none"} or text.lower() in _DECORATION


def _is_icon(picture: etree._Element) -> bool:
    """Return whether a picture is as small as a letter and stands for no letter."""
    if _STANDS_FOR_LETTERS.search(picture.get("class", "")):
        return False
    for side in ("width", "height"):
        size = picture.get(side, "").removesuffix("px")
        if size.isdecimal() and int(size) <= _MAX_ICON:
            return True
    return False


def field_text(form_field: etree._Element) -> str:
    """Return what is typed or chosen in a field of a form."""
    kind = form_field.get("type", "text").lower()
    if kind in _TICKED:
        is_chosen = form_field.get("checked") is not None
        return _CHOSEN if is_chosen else _NOT_CHOSEN
    if kind in _TYPED:
        return collapse_whitespace(form_field.get("value", ""))
    return ""


def option_text(option: etree._Element, text: str) -> str:
    """Return an option of a list, with a mark if one of the list is chosen."""
    text = collapse_whitespace(text or option.get("label", ""))
    if option.get("selected") is not None:
        return f"{_CHOSEN}{text}"
    choices = next(option.iterancestors("select"), None)
    if choices is None or choices.find(".//option[@selected]") is None:
        return text
    options = choices.iter("option")
    is_long = len(list(options)) > _MAX_OPTIONS
    return "" if is_long else f"{_NOT_CHOSEN}{text}"


def drawing_text(drawing: etree._Element) -> str:
    """Return the words of a drawing, such as the labels of a chart."""
    labels: list[str] = []
    for label in drawing.iter("text", "foreignobject"):
        text = collapse_whitespace("".join(label.itertext()))
        if text:
            labels.append(text)
    return "; ".join(labels)
