"""Judges by its words whether a line may be a title, whatever its type."""

from __future__ import annotations

import re

from arag.ingest.boundaries import LEADERS
from arag.text.normalise import CELL_BOUNDARY, collapse_whitespace

_MAX_TITLE = 120  # characters: longer ones are sentences
_MAX_TITLE_LINES = 3

_NUMBER = re.compile(r"(\d{1,2}(?:\.\d{1,2})*|[A-Z](?:\.\d{1,2})+)\.?\s+(?=\D)(?!.*\d$)")  # such as 3, 3.4 or A.2
# Of a law, statutes or a contract, such as § 3a and Article 3 bis.
_SECTION = r"(?i:§|art(?:\.|ikel|icle|ículo|icolo|igo))\s*(\d{1,3}(?:[a-z]|[ºo°]|er|re|\s?(?:bis|ter|quater))?)\.?"
BARE_SECTION = re.compile(_SECTION)
PART = (
    "chapter|appendix|part|section|kapitel|anhang|teil|abschnitt|chapitre|annexe|partie|capítulo|apéndice|apêndice"
    "|capitolo|appendice|глава|приложение|часть|부록|付録|附录|附錄"
)
NUMBER_IN_CAPITALS = r"(?-i:CHAPTER [A-Z-]+)"  # as Sphinx prints it, in two lines
# The number of a part of a book, above its title.
LABEL_OF_PART = re.compile(
    rf"(?:{PART})\s+(?:\d{{1,3}}|[A-Z]|[IVXL]+)[.:]?|[第제]\s*\d+\s*[章部장]|{NUMBER_IN_CAPITALS}", re.IGNORECASE
)
_SIGN = r"[.$~/\"'“„«‘]"  # at the start of a name: § 2 .register
# In a text, § 7 goes on in small letters.
_NAMED_SECTION = re.compile(rf"{_SECTION}(?:\s?[-–—:]{{1,2}})?\s+(?={_SIGN}\w|[^\W\d_a-zß-öø-ÿ])(?!.*\d$)")
_LEADERS = re.compile(LEADERS)
_BULLET = re.compile(r"[-–—*•‣◦·▪■●○►§©|<>=+]")
_BULLET_APART = re.compile(rf"{_BULLET.pattern}+\s")  # after a number, a sign may begin a name: 5.6.2 --force
# The end of a sentence or of a part of it, of a title that continues one of an earlier page, and of a table's row.
_NO_TITLE_END = re.compile(r"(?:[.,;:]|\b(?:and|or)|\(continued\)|[\d%)]\s+[-–(]?\d[\d.,%)]*)$", re.IGNORECASE)
# Below a document's title: `Leslie Lamport` above `1994/08/09` or `Version 2.1, 1994/08/09`, and `Released 2023-01-16`.
_DATE = r"\d{4}([-/.])\d\d?\1\d\d?"
_VERSION = r"(?:version |release )?v?\d+(?:\.\d+)*[a-z]?,? "
_AUTHOR_AND_DATE = re.compile(rf"(?:[^\W\d_a-z]\S*(?: [^\W\d_a-z]\S*){{1,3}}\n){{1,2}}(?i:{_VERSION})?{_DATE}")
_DATED = re.compile(
    rf"(?:released|published|printed|dated|(?:last )?(?:updated|revised|modified)):? {_DATE}"
    r"|(?:copyright|©|\(c\))[^a-z]* \d{4}\b.*",
    re.IGNORECASE,
)
# The names of commands at the margin and a numbered line of code: `\psfig 5 \def\psfig#1{%`.
_LISTING = re.compile(r"\\\S+(?: \\\S+)* \d+ \\|.*\{%$")
# The word `mono` of a font's name begins large or ends it: not in Monotype or Simonotta.
_CODE_FONT = re.compile(
    r"courier|(?-i:\bmono|Mono|MONO)(?!type)|mono(?![a-z])|nimbusmon|^cm\w*tt|consol|typewriter|menlo"
    r"|sf[a-z]*t[tl]\d|ec\w*tt\d",
    re.IGNORECASE,
)
_SUBSET_TAG = re.compile(r"^[A-Z]{6}\+")  # before the name of a font of which only a part is in the document
# The caption of a figure or a table, and the number of a chapter in a line of its own.
_CAPTION = re.compile(
    r"(?:figure|fig\.|table|listing|abb(?:ildung|\.)|tabelle|tableau|figura|tabla|tabella|tabela|рис(?:унок|\.)|таблица)"
    r" ?\d+(?:[.-]\d+)*[.:] "
    r"|[図表图그림표] ?\d+(?:[.-]\d+)*",
    re.IGNORECASE,
)
_SPELLED_NUMBER = re.compile(
    r"(?:twenty|thirty)?(?:[ -]?(?:one|two|three|four|five|six|seven|eight|nine))?"
    r"|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen",
    re.IGNORECASE,
)


def number_of(title: str) -> list[str]:
    """Return the parts of a title's number."""
    match = match_number(title)
    if match is None:
        return []
    number = match[1]
    return number.split(".")


def match_number(title: str) -> re.Match[str] | None:
    """Return the match of a title's number: of a section, or of one of a law."""
    plain = _NUMBER.match(title)
    return plain or _NAMED_SECTION.match(title)


def is_title(text: str) -> bool:
    """Return whether a text looks like a title: short, mostly letters, and no sentence or row of a table."""
    is_row = CELL_BOUNDARY in text
    is_long = len(text) > _MAX_TITLE or text.count("\n") >= _MAX_TITLE_LINES
    if is_row or is_long:
        return False
    if _NO_TITLE_END.search(text) or _LEADERS.search(text):
        return False
    number = match_number(text)
    if number is None:
        begins_as_text = text[:1].islower() or _BULLET.match(text)
        return not begins_as_text and _is_name(text)
    name = text[number.end() :]
    begins_item = _BULLET_APART.match(name)
    return not begins_item and _is_name(name)


def opening_title(text: str, *, is_centred: bool) -> str:
    """Return the first paragraph of a document as its title, if it is centred and looks like one; else nothing."""
    return collapse_whitespace(text) if is_centred and is_title(text) else ""


def _is_name(text: str) -> bool:
    """Return whether a text has letters: at least half of its letters and digits, and a quarter of all."""
    if len(text) < 2:
        return False
    letters = sum(map(str.isalpha, text))
    signs = sum(map(str.isalnum, text))
    if letters == 0 or 2 * letters < signs:
        return False
    return 4 * letters >= len(text)


def is_other_line(text: str) -> bool:
    """Return whether a text in the type of a title is none: a caption, a date, a spelled number, a line of code."""
    return any(
        [
            _CAPTION.match(text),
            _LISTING.match(text),
            _SPELLED_NUMBER.fullmatch(text),
            _AUTHOR_AND_DATE.fullmatch(text),
            _DATED.fullmatch(text),
        ]
    )


def is_code_font(name: str) -> bool:
    """Return whether all letters of a font have one width, by its name."""
    whole_name = _SUBSET_TAG.sub("", name, count=1)
    return _CODE_FONT.search(whole_name) is not None
