"""Numbers as a workbook shows them, by the code of their format: `#,##0.00 "kg"`, `00000`, `0.0%`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache

_GENERAL = "general"
_CACHED_CODES = 1_000
_MAX_DECIMALS = 30
_CONTEXT = Context(prec=100)
_MAX_DIGITS = 40  # of a number's whole part: longer ones are shown in the plain way
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)[^\]]*\]|\[(?P<condition>[<>=]+-?[\d.]+)\]|\[[^\]]*\]'
    r"|[_*](?P<space>.)|(?P<general>General)|(?P<exponent>E[+-]0+)|(?P<digit>[0#?])|(?P<mark>[.,%/@])|(?P<literal>.)",
    re.IGNORECASE | re.DOTALL,
)
_NEGATIVE_AMOUNT = re.compile(r"^([^\d\s(]+) ?\(([\d.,]+)\)$")  # the brackets are then around all of it
_NOT_TIME = re.compile(r'"[^"]*"?|\\.|_.|\*.|\[[^\]hms]*\]|general|[eE][+-]|AM/PM', re.IGNORECASE)
_TIME = re.compile(r"[ymdhs]", re.IGNORECASE)
_CONDITION = re.compile(r"([<>=]+)(-?[\d.]+)")


@dataclass
class _Section:
    """One of the parts of a code, for positive or negative numbers or zero."""

    condition: str = ""
    parts: list[tuple[str, str]] = field(default_factory=list)  # kind and text: digit, literal or mark
    is_general: bool = False
    exponent: str = ""

    def fits(self, value: float) -> bool:
        """Return whether the section's condition holds for a number."""
        match = _CONDITION.fullmatch(self.condition)
        if match is None:
            return True
        limit = float(match[2])
        holds = {
            "<": value < limit,
            "<=": value <= limit,
            ">": value > limit,
            ">=": value >= limit,
            "=": value == limit,
            "<>": value != limit,
        }
        return holds.get(match[1], True)


def show_number(value: float, code: str) -> str:
    """Return a number as a workbook shows it.

    Digits that the format sets apart like those of a telephone number are followed by the plain number in brackets, so
    that both are found. A zero that is shown as a dash stays a zero.

    Args:
        value: The number.
        code: The code of its format.
    """
    if _TIME.search(_NOT_TIME.sub("", code)):
        return plain_number(value)  # a time that is too long or too early for one
    section, number = _choose(_sections(code or "General"), value)
    has_digits = any(text in "0#" for kind, text in section.parts if kind == "digit")
    if not has_digits and (section.is_general or ("mark", "@") in section.parts):
        return _around_general(section, number)
    if not has_digits and ("mark", "/") not in section.parts:
        text = _literals(section).strip()
        is_dash = number == 0 and not any(map(str.isalnum, text))
        return "0" if is_dash and text else text
    if abs(number) >= 10**_MAX_DIGITS or section.exponent:
        return _scientific(number, section)
    if ("mark", "/") in section.parts:
        return _fraction(number)
    return _in_digits(number, section)


def plain_number(value: float) -> str:
    """Return a number with as many digits as Excel keeps: 0.1 + 0.2 is 0.3."""
    return f"{value:.15g}"


@lru_cache(_CACHED_CODES)
def _sections(code: str) -> tuple[_Section, ...]:
    sections = [_Section()]
    for match in _TOKEN.finditer(code):
        kind = match.lastgroup or ""
        text = match[kind] if kind else ""
        section = sections[-1]
        match kind:
            case "literal" if text == ";":
                sections.append(_Section())
            case "quoted" | "escaped" | "currency" | "literal":
                section.parts.append(("literal", text))
            case "condition":
                section.condition = text
            case "space":
                section.parts.append(("literal", " "))
            case "general":
                section.is_general = True
                section.parts.append(("general", ""))
            case "exponent":
                section.exponent = text
            case "digit" | "mark":
                section.parts.append((kind, text))
    return tuple(sections)


def _choose(sections: tuple[_Section, ...], value: float) -> tuple[_Section, float]:
    """Return the section for a number, and the number without the sign that the section shows in its own way."""
    if any(section.condition for section in sections):
        for section in sections:
            if section.fits(value):
                return section, value
        return _Section(is_general=True, parts=[("general", "")]), value
    if value < 0 and len(sections) > 1:
        return sections[1], -value
    if value == 0 and len(sections) > 2:
        return sections[2], value
    return sections[0], value


def _literals(section: _Section) -> str:
    return "".join(text for kind, text in section.parts if kind == "literal")


def _around_general(section: _Section, value: float) -> str:
    number = plain_number(value)
    return "".join(text if kind == "literal" else number for kind, text in section.parts).strip()


def _scientific(value: float, section: _Section) -> str:
    decimals = _count_decimals(section)
    mantissa, _, exponent = f"{value:.{decimals}E}".partition("E")
    sign = "-" if exponent.startswith("-") else "+"
    width = section.exponent.count("0") or 2
    return f"{mantissa}E{sign}{exponent[1:].lstrip('0').zfill(width)}"


def _fraction(value: float) -> str:
    """Return a number with a fraction, such as 2 1/2."""
    whole, rest = divmod(abs(value), 1)
    part = Fraction(rest).limit_denominator(99)
    if part == 1:
        whole, part = whole + 1, Fraction(0)
    sign = "-" if value < 0 else ""
    if not part:
        return f"{sign}{whole:.0f}"
    return f"{sign}{whole:.0f} {part}" if whole else f"{sign}{part}"


def _count_decimals(section: _Section) -> int:
    _, after = _split_at_point(section)
    return min(sum(kind == "digit" for kind, _ in after), _MAX_DECIMALS)


def _split_at_point(section: _Section) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    if ("mark", ".") not in section.parts:
        return section.parts, []
    point = section.parts.index(("mark", "."))
    return section.parts[:point], section.parts[point + 1 :]


def _in_digits(value: float, section: _Section) -> str:
    before, after = _split_at_point(section)
    places = [number for number, (kind, _) in enumerate(before) if kind == "digit"]
    last = places[-1] if places else 0
    commas = [number for number, part in enumerate(before) if part == ("mark", ",")]
    percent = sum(part == ("mark", "%") for part in section.parts)
    scaled = Decimal(plain_number(value)) * 100**percent / 1000 ** sum(comma > last for comma in commas)
    decimals = _count_decimals(section)
    rounded = abs(scaled).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, _CONTEXT)
    whole, _, fraction = f"{rounded:f}".partition(".")
    shown = _fill_whole(before, whole, is_grouped=any(comma < last for comma in commas))
    shown += _fill_decimals(after, fraction)
    shown = " ".join(shown.split())
    if scaled < 0 and rounded:
        shown = f"-{shown}"
    shown = _NEGATIVE_AMOUNT.sub(r"(\1\2)", shown)
    is_set_apart = any(kind == "literal" for kind, _ in before[places[0] : last]) if places else False
    return f"{shown} ({plain_number(value)})" if is_set_apart else shown


def _fill_whole(parts: list[tuple[str, str]], digits: str, *, is_grouped: bool) -> str:
    """Return the part before the decimal point: the last digits in the last places, all others in the first one."""
    places = [text for kind, text in parts if kind == "digit"]
    if digits == "0" and "0" not in places:
        digits = ""
    digits = digits.zfill(len(places) - places.index("0")) if "0" in places else digits
    if is_grouped and places:
        digits = _group(digits)
        places = places[:1]
    text = ""
    left = len(places)  # places from here on
    for kind, part in parts:
        if kind == "literal" or part == "%":
            text += part
        elif kind == "digit" and left:
            rest = left - 1
            taken = len(digits) - rest if rest < len(digits) else 0
            text += digits[:taken]
            digits = digits[taken:]
            left = rest
    return text


def _group(digits: str) -> str:
    """Set thousands apart; the number may begin with zeros."""
    first = len(digits) % 3
    groups = [digits[:first]] if first else []
    groups += [digits[start : start + 3] for start in range(first, len(digits), 3)]
    return ",".join(groups)


def _fill_decimals(parts: list[tuple[str, str]], digits: str) -> str:
    """Return the decimal point and the part after it, without zeros that the format leaves out."""
    places = [text for kind, text in parts if kind == "digit"]
    while places and places[-1] != "0" and digits.endswith("0"):
        places.pop()
        digits = digits[:-1]
    text = f".{digits}" if digits else ""
    return text + "".join(part for kind, part in parts if kind == "literal" or part == "%")
