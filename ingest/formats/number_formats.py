"""Numbers as a workbook shows them, by the code of their format: `#,##0.00 "kg"`, `00000`, `0.0%`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from operator import attrgetter, methodcaller

from arag.ingest.formats.number_codes import COMMA, PERCENT, SLASH, Part, Section, digit_places, literals, read_code

_MAX_DECIMALS = 30
_CONTEXT = Context(prec=100)  # digits: enough for the longest number
_LONGEST = 10**40  # larger numbers are shown in the scientific way
_MAX_DENOMINATOR_DIGITS = 3
_NEGATIVE_AMOUNT = re.compile(r"^([^\d\s(]+) ?\(([\d.,]+)\)$")  # the brackets are then around all of it
_NOT_TIME = re.compile(r'"[^"]*"?|\\.|_.|\*.|\[[^\]hms]*\]|general|[eE][+-]|AM/PM', re.IGNORECASE)
_TIME = re.compile(r"[ymdhs]", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d)(?=(?:\d{3})+$)")  # where they are set apart
_GENERAL = Section([Part("general", "")])


def show_number(value: float, code: str) -> str:
    """Return a number as a workbook shows it.

    Digits that the format sets apart like those of a telephone number are followed by the plain number in brackets, so
    that both are found. A zero that is shown as a dash stays a zero.

    Args:
        value: The number.
        code: The code of its format.
    """
    if is_time(code):
        return plain_number(value)  # it is too long or too early for a time
    section, number = _choose(read_code(code or "General"), value)
    is_fraction = SLASH in section.parts
    if not section.has_digits and section.is_general:
        return _around_general(section, number)
    if not section.has_digits and not is_fraction:
        return _in_words(section, number)
    if section.exponent or abs(number) >= _LONGEST:
        return _scientific(number, section)
    if is_fraction:
        return _fraction(number, section)
    return _in_digits(number, section)


def is_time(code: str) -> bool:
    """Return whether a format shows a number as a date or a time."""
    return _TIME.search(_NOT_TIME.sub("", code)) is not None


def plain_number(value: float) -> str:
    """Return a number with as many digits as Excel keeps: 0.1 + 0.2 is 0.3."""
    return f"{value:.15g}"


def _choose(sections: Sequence[Section], value: float) -> tuple[Section, float]:
    """Return the section for a number, and the number without the sign that the section shows in its own way."""
    has_conditions = any(map(attrgetter("condition"), sections))
    if has_conditions:
        fitting = filter(methodcaller("fits", value), sections)
        return next(fitting, _GENERAL), value
    if value < 0 and len(sections) > 1:
        return sections[1], -value
    if value == 0 and len(sections) > 2:
        return sections[2], value
    return sections[0], value


def _around_general(section: Section, value: float) -> str:
    text = ""
    for part in section.parts:
        is_number = part.kind == "general"
        text += plain_number(value) if is_number else _beside_digits(part)
    return text.strip()


def _in_words(section: Section, value: float) -> str:
    """Return what a section without digits shows; a dash is a zero."""
    text = literals(section.parts).strip()
    has_letters = any(map(str.isalnum, text))
    if not text or has_letters:
        return text
    return "0" if value == 0 else text


def _scientific(value: float, section: Section) -> str:
    _, after = section.split_at_point()
    decimals = min(len(digit_places(after)), _MAX_DECIMALS)
    shown = f"{value:.{decimals}E}"
    mantissa, _, exponent = shown.partition("E")
    sign = exponent[0]
    width = section.exponent.count("0") or 2
    digits = exponent[1:].lstrip("0").zfill(width)
    return f"{mantissa}E{sign}{digits}"


def _fraction(value: float, section: Section) -> str:
    """Return a number with a fraction, such as 2 1/2; its denominator has as many digits as the code has places."""
    below = section.parts[section.parts.index(SLASH) + 1 :]
    digits = len(digit_places(below)) or _MAX_DENOMINATOR_DIGITS
    largest = 10 ** min(digits, _MAX_DENOMINATOR_DIGITS) - 1
    nearest = Fraction(abs(value)).limit_denominator(largest)
    whole, part = divmod(nearest, 1)
    sign = "-" if value < 0 else ""
    if not part:
        return f"{sign}{whole}"
    if not whole:
        return f"{sign}{part}"
    return f"{sign}{whole} {part}"


def _in_digits(value: float, section: Section) -> str:
    before, after = section.split_at_point()
    first, last = _ends_of_digits(before)
    _, last_decimal = _ends_of_digits(after)
    thousands = before[last:].count(COMMA) + after[last_decimal:].count(COMMA)
    percents = section.parts.count(PERCENT)
    plain = plain_number(value)
    scaled = Decimal(plain) * 100**percents / 1000**thousands
    decimals = min(len(digit_places(after)), _MAX_DECIMALS)
    rounded = _round(scaled, decimals)
    digits = f"{rounded.copy_abs():f}"
    whole, _, fraction = digits.partition(".")
    is_grouped = COMMA in before[:last]
    shown = _fill_whole(before, whole, is_grouped=is_grouped)
    shown += _fill_decimals(after, fraction)
    shown = " ".join(shown.split())
    if rounded < 0:
        shown = f"-{shown}"
    shown = _NEGATIVE_AMOUNT.sub(r"(\1\2)", shown)
    are_set_apart = literals(before[first:last]) != ""
    if not are_set_apart:
        return shown
    return f"{shown} ({plain})"


def _round(number: Decimal, decimals: int) -> Decimal:
    last_place = Decimal(1).scaleb(-decimals)
    return number.quantize(last_place, ROUND_HALF_UP, _CONTEXT)


def _ends_of_digits(parts: Sequence[Part]) -> tuple[int, int]:
    """Return the positions of the first and the last place of a digit; 0 and 0 if there is none."""
    kinds = [part.kind for part in parts]
    if "digit" not in kinds:
        return 0, 0
    after_last = kinds[::-1].index("digit")
    return kinds.index("digit"), len(kinds) - 1 - after_last


def _fill_whole(parts: Sequence[Part], digits: str, *, is_grouped: bool) -> str:
    """Return the part before the decimal point: the last digits in the last places, all others in the first one."""
    places = digit_places(parts)
    always_shown = places.lstrip("#?")
    digits = digits.lstrip("0").zfill(len(always_shown))
    in_places = _spread(digits, len(places))
    if is_grouped:
        in_places = [_THOUSANDS.sub(",", digits)]
    text = ""
    for part in parts:
        if part.kind == "digit" and in_places:
            text += in_places.pop(0)
        else:
            text += _beside_digits(part)
    return text + "".join(in_places)  # without any place, all digits are left


def _spread(digits: str, places: int) -> list[str]:
    """Return the digits of each place."""
    surplus = max(len(digits) - places + 1, 0)
    others = digits[surplus:]
    empty = [""] * (places - 1 - len(others))
    return [digits[:surplus], *empty, *others]


def _fill_decimals(parts: Sequence[Part], digits: str) -> str:
    """Return the decimal point and the part after it, without zeros that the format leaves out."""
    always_shown = len(digit_places(parts).rstrip("#?"))
    digits = digits[:always_shown] + digits[always_shown:].rstrip("0")
    beside = "".join(map(_beside_digits, parts))
    return f".{digits}{beside}" if digits else beside


def _beside_digits(part: Part) -> str:
    is_shown = part.kind == "literal" or part == PERCENT
    return part.text if is_shown else ""
