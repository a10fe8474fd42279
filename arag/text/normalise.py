"""How texts are normalised before they are compared."""

from __future__ import annotations

import re
import unicodedata

# Chinese, Japanese and Korean characters, for a character class of a regular expression.
EAST_ASIAN = (
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
CELL_BOUNDARY = " | "  # between the cells of a table's row
HEADING_BOUNDARY = " > "  # between the headings that a sentence stands under
CUT = "…"  # stands for what is left out of a text
SAMPLE_CHARACTERS = 500  # of a document, which show what script it is in
_WORD = re.compile(r"\w+")
_LETTER = re.compile(r"[^\W\d_]")
OTHER_LETTER = re.compile(r"[^\W\d_\x00-\u02ff\u1e00-\u1eff]")  # that is not Latin
_NAME_WORD = re.compile(r"[^\W_]+")
_NOTE = re.compile(r"\s*[(（][^()（）]*[)）]$")
_QUOTES = "\"'“”‘’«»《》「」『』"


def collapse_whitespace(text: str) -> str:
    """Return a text with each run of white space (line breaks, tabs, no-break spaces...) as one space, none around."""
    return " ".join(text.split())


def count(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 chunk` or `1,204 chunks`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def shorten(text: str, length: int) -> str:
    """Return a text on one line of at most so many characters."""
    text = collapse_whitespace(text)
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}{CUT}"


def searchable(text: str) -> str:
    """Return a text, or a keyword, as it is matched: white space folded, in lower case."""
    return lower(collapse_whitespace(text))


def lower(text: str) -> str:
    """Return a text in lower case, with as many characters: "İ" is the only one whose lower case has more."""
    return text.replace("İ", "I").lower()


def plain(text: str) -> str:
    """Return a text without diacritics, width and case."""
    decomposed = unicodedata.normalize("NFKD", text.lower())
    # Japanese voiced sounds are other letters, although they are written with a mark.
    return "".join(c for c in decomposed if not unicodedata.combining(c) or c in "\u3099\u309a")


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return _WORD.findall(searchable(text))


def name_words(text: str) -> list[str]:
    """Return the words of a title or a file name, in lower case; `_` is a blank in them."""
    return _NAME_WORD.findall(searchable(text))


def is_latin(text: str) -> bool:
    """Return whether at least half of a text's letters are Latin."""
    return 2 * len(OTHER_LETTER.findall(text)) <= len(_LETTER.findall(text))


def is_east_asian(text: str) -> bool:
    """Return whether a text has Chinese, Japanese or Korean characters."""
    return re.search(f"[{EAST_ASIAN}]", text) is not None


def is_title(line: str, title: str) -> bool:
    """Return whether a line is a title, as a Markdown heading or plain, ignoring white space."""
    name = collapse_whitespace(title).strip("# ")
    return bool(name) and collapse_whitespace(line).strip("# ") == name


def without_title(text: str, title: str) -> str:
    """Return a text without a first line that is its title, and without white space around it."""
    first, _, rest = text.strip().partition("\n")
    return rest.strip() if rest.strip() and is_title(first, title) else text.strip()


def bare_title(title: str) -> str:
    """Return a title in lower case, without quotation marks and without a note in brackets at its end."""
    return _NOTE.sub("", collapse_whitespace(title)).strip(_QUOTES).lower()
