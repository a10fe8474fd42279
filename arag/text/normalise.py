"""How texts are normalised before they are compared."""

from __future__ import annotations

import re
import unicodedata

from arag.text.scripts import BURMESE, KHMER, LAO, THAI

CELL_BOUNDARY = " | "  # between the cells of a table's row
HEADING_BOUNDARY = " > "  # between the headings above a sentence
CUT = "…"  # marks the place where a text was cut
_MINUTE = 60  # seconds
_HOUR = 3_600
_BAR = re.compile(r"(?<!\S)\|(?!\S)")  # by itself
_ESCAPED_BAR = re.compile(r"(?<!\S)\\\|(?!\S)")
# In some scripts, the zero-width space stands between words.
_DIVISION_SIGN = re.compile(f"[\u00ad\u2060\ufeff]|\u200b(?![{THAI}{LAO}{BURMESE}{KHMER}])")
_WORD = re.compile(r"\w+")
_NAME_WORD = re.compile(r"[^\W_]+")
_NOTE = re.compile(r"\s*[(（][^()（）]*[)）]$")
_VOICED_SOUND_MARKS = "\u3099\u309a"  # in Japanese they make another letter
_NEEDS_NO_COLON = (":", "：", "?", "？", "؟", "!", "！", "…")
QUOTES = "\"'“”‘’«»《》「」『』"


def collapse_whitespace(text: str) -> str:
    """Return a trimmed text, with each run of white space (line breaks, tabs, no-break spaces...) as one space."""
    return " ".join(text.split())


def without_division_signs(text: str) -> str:
    """Return a text, or a query, without the invisible signs that show where a word may be divided, or may not be."""
    return text if text.isascii() else _DIVISION_SIGN.sub("", text)


def escape_bars(cell: str) -> str:
    r"""Return a cell with `\|` for each bar by itself, for a row without the names of its columns."""
    return _BAR.sub(r"\\|", cell)


def split_cells(row: str) -> list[str]:
    """Return the cells of a row, the empty ones, too, with their own bars."""
    cells = f" {row} ".split(CELL_BOUNDARY)
    return [collapse_whitespace(_ESCAPED_BAR.sub("|", cell)) for cell in cells]


def count(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 chunk` or `1,204 chunks`."""
    plural = "" if number == 1 else "s"
    return f"{number:,} {noun}{plural}"


def name_duration(seconds: float) -> str:
    """Return a duration, such as `8.2 s`, `12 min 5 s` or `1 h 12 min`."""
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{seconds:.1f} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def name_estimate(seconds: float) -> str:
    """Return an estimate of a time, such as `about 7 minutes` or `about 1 hour 20 minutes`."""
    if seconds < _MINUTE:
        return "less than a minute"
    minutes = round(seconds / _MINUTE)
    if minutes < _HOUR // _MINUTE:
        return f"about {count(minutes, 'minute')}"
    tens = round(seconds / (10 * _MINUTE))  # an estimate of hours is not right to a minute
    hours, rest = divmod(10 * tens, _HOUR // _MINUTE)
    if not rest:
        return f"about {count(hours, 'hour')}"
    return f"about {count(hours, 'hour')} {count(rest, 'minute')}"


def shorten(text: str, length: int) -> str:
    """Return a text on one line, cut to at most `length` characters."""
    text = collapse_whitespace(text)
    if len(text) <= length:
        return text
    return text[: length - 1].rstrip() + CUT


def searchable(text: str) -> str:
    """Return a text, or a keyword, in the form that is matched: white space collapsed, in lower case."""
    return lower(collapse_whitespace(text))


def lower(text: str) -> str:
    """Return a text in lower case, at the same length: only "İ" has a longer lower case."""
    return text.replace("İ", "I").lower()


def plain(text: str) -> str:
    """Return a text without diacritics, width and case."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.lower())
    return "".join(c for c in decomposed if c in _VOICED_SOUND_MARKS or not unicodedata.combining(c))


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return _WORD.findall(searchable(text))


def name_words(text: str) -> list[str]:
    """Return the words of a title or a file name, in lower case; `_` separates words there."""
    return _NAME_WORD.findall(searchable(text))


def is_title(line: str, title: str) -> bool:
    """Return whether a line is a title, as a Markdown heading or plain, ignoring white space."""
    name = collapse_whitespace(title).strip("# ")
    if not name:
        return False
    return collapse_whitespace(line).strip("# ") == name


def with_colon(name: str) -> str:
    """Return a heading or another name with a colon, to stand before its text, unless it ends in a mark that does."""
    return name if name.endswith(_NEEDS_NO_COLON) else f"{name}:"


def without_title(text: str, title: str) -> str:
    """Return a trimmed text without its first line, if that is its title and something follows."""
    text = text.strip()
    first, _, rest = text.partition("\n")
    rest = rest.strip()
    if rest and is_title(first, title):
        return rest
    return text


def bare_title(title: str) -> str:
    """Return a title in lower case, without quotation marks and without a note in brackets at its end."""
    return _NOTE.sub("", collapse_whitespace(title)).strip(QUOTES).lower()
