"""What stands in a line of a web page beside plain text: raised numbers, ruby, pictures, fields of forms."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePath

from lxml import etree

from arag.ingest.formats.pictures import SAYS_NOTHING
from arag.text.normalise import collapse_whitespace

_WITH_CAPTION = ("figure", "a")
_DOCBOOK_WITH_CAPTION = frozenset("figure informalfigure note tip warning caution important".split())
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
# A number or a capital with the end of its word, such as 1st and Mme.
_ORDINAL = re.compile(r"(?:\d|[A-Z])(?i:st|nd|rd|th|ers?|res?|es?|èmes?|o|a|os|as|mo|ma|ter|me)")
# A trade mark, the end of n°, and what has brackets of its own.
_PART_OF_WORD = re.compile(r"(?i)tm|sm|[®™℠]|o|[\[(].*")
_IS_LINKED = etree.XPath("boolean(parent::a or .//a[@href])")
_ISOTOPE = re.compile(r"[A-Z][a-z]?(?![a-z])")

_JAPANESE_OR_CHINESE = re.compile("[\u3041-\u30ff]")  # a reading in kana or bopomofo
_READINGS = ("rt", "rtc")
_BRACKET_OF_READING = "rp"

_DECORATION_ROLES = ("presentation", "none")
_ICON_SIZE = re.compile(r"(?:1?\d|2[0-4])(?:px)?")  # pixels, at most 24
_CELLS_OF_NOTE = 2
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
    is_long = len(shown) > _MAX_RAISED
    if not shown or is_long:
        return text
    if element.tag == "sub":
        is_after_number = last.isdigit()
        return f"_{shown}" if is_after_number else text
    if _belongs_to_word(last, element, shown):
        return text
    marked = ""
    if not _is_note(element, before):
        marked = _power(before, shown)
    return marked or _show_raised(last, shown) or text


def _belongs_to_word(last: str, element: etree._Element, shown: str) -> bool:
    """Return whether a raised text is a part of a word, such as 1st and n°, or of an isotope's name."""
    is_part = _PART_OF_WORD.fullmatch(shown)
    is_ordinal = _ORDINAL.fullmatch(f"{last}{shown}")
    if is_part or is_ordinal:
        return True
    is_apart = not last.strip()
    if not is_apart:
        return False
    following = element.tail or ""
    return _ISOTOPE.match(following) is not None


def _power(before: str, shown: str) -> str:
    """Return a raised text as the power of a unit or a number, or an empty string."""
    raised = shown.translate(_RAISED_DIGITS)
    has_digits = raised != shown
    if has_digits and _UNIT.search(before):
        return raised
    is_exponent = _EXPONENT.fullmatch(shown)
    if is_exponent and _BASE_OF_POWER.search(before):
        return f"^{shown}"
    return ""


def _show_raised(last: str, shown: str) -> str:
    """Return a raised text behind a character with a mark, as the one of a note if it looks so; else nothing."""
    if _NOTE_MARK.fullmatch(shown):
        gap = " " if last.strip() else ""
        return f"{gap}[{shown}]"
    first = shown[0]
    joins_word = last.isalnum() and first.isalnum()
    return f"^{shown}" if joins_word else ""


def _is_note(element: etree._Element, before: str) -> bool:
    """Return whether a raised text is the mark of a note: it is a link, or it follows a word or a year."""
    if _IS_LINKED(element):
        return True
    return _BEFORE_NOTE.search(before) is not None


@dataclass
class _Ruby:
    """The parts of a text with its readings."""

    base: list[str] = field(default_factory=list)
    readings: list[str] = field(default_factory=list)


def take_ruby(element: etree._Element, texts: dict[etree._Element, str]) -> str:
    """Return a ruby's text with its reading after it: `水車（すいしゃ）`. The texts of its children are taken."""
    ruby = _split_ruby(element, texts)
    shown = collapse_whitespace("".join(ruby.base))
    reading = "".join(ruby.readings)
    has_spaces = _JAPANESE_OR_CHINESE.search(reading) is None
    if has_spaces:
        reading = " ".join(ruby.readings)
    if not reading:
        return shown
    return f"{shown}（{reading}）"


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


def picture_text(picture: etree._Element) -> str:
    """Return what is shown instead of a picture, if that says more than that there is one."""
    title = picture.get("title", "")
    text = collapse_whitespace(picture.get("alt") or title)
    if SAYS_NOTHING.fullmatch(text) or _is_decoration(picture):
        return ""
    source = picture.get("src", "")
    file_name = PurePath(source).stem
    if text == file_name:
        return ""
    figure = next(filter(_is_figure, picture.iterancestors()), None)
    if figure is None:
        return text
    if text.strip("[]") in _text_of(figure):  # its caption, its link or the title of the note says the same
        return ""
    return text


def _is_figure(element: etree._Element) -> bool:
    """Return whether an element is a picture with its caption, a link, or one of DocBook's figures and notes."""
    if element.tag in _WITH_CAPTION:
        return True
    return element.tag == "div" and element.get("class") in _DOCBOOK_WITH_CAPTION


def _is_decoration(picture: etree._Element) -> bool:
    """Return whether a picture is named as decoration, or is as small as a letter and stands for no letter."""
    if picture.get("role") in _DECORATION_ROLES:
        return True
    if _STANDS_FOR_LETTERS.search(picture.get("class", "")):
        return False
    width = picture.get("width", "")
    height = picture.get("height", "")
    is_icon = _ICON_SIZE.fullmatch(width) or _ICON_SIZE.fullmatch(height)
    return is_icon is not None and not _fills_cell(picture)


def _fills_cell(picture: etree._Element) -> bool:
    """Return whether a picture is all that a cell has, beside others with texts, as a tick in a table of features."""
    cell = next(picture.iterancestors("td", "th"), None)
    if cell is None or _text_of(cell):
        return False
    row = cell.getparent()
    is_beside_text_alone = len(row) == _CELLS_OF_NOTE  # the icon of a note, or the mark of an item
    return not is_beside_text_alone and _text_of(row) != ""


def field_text(form_field: etree._Element) -> str:
    """Return what is typed or chosen in a field of a form."""
    kind = form_field.get("type", "text").lower()
    if kind in _TICKED and "toggle" in form_field.get("class", "").lower():
        return ""  # a theme's, which opens a menu
    if kind in _TICKED:
        is_chosen = "checked" in form_field.attrib
        return _CHOSEN if is_chosen else _NOT_CHOSEN
    if kind in _TYPED:
        return collapse_whitespace(form_field.get("value", ""))
    return ""


def option_text(option: etree._Element, text: str) -> str:
    """Return an option of a list, with a mark if one of the list is chosen."""
    label = option.get("label", "")
    text = collapse_whitespace(text or label)
    if "selected" in option.attrib:
        return f"{_CHOSEN}{text}"
    choices = next(option.iterancestors("select"), None)
    if choices is None:
        return text
    chosen = choices.find(".//option[@selected]")
    if chosen is None:
        return text
    options = list(choices.iter("option"))
    is_long = len(options) > _MAX_OPTIONS
    return "" if is_long else f"{_NOT_CHOSEN}{text}"


def drawing_text(drawing: etree._Element) -> str:
    """Return the words of a drawing, such as the labels of a chart."""
    labels = map(_text_of, drawing.iter("text", "foreignobject"))
    return "; ".join(filter(None, labels))


def _text_of(element: etree._Element) -> str:
    return collapse_whitespace("".join(element.itertext()))
