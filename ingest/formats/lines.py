"""Line ends that divide a word or a sentence: of scripts without spaces, and after hyphens."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from itertools import pairwise

from arag.ingest.boundaries import LIST_ITEM
from arag.ingest.formats.joining import JOINS_COMPOUNDS
from arag.ingest.formats.markdown import split_code
from arag.text.normalise import CELL_BOUNDARY
from arag.text.scripts import UNSPACED

# Of Chinese and Japanese, and its full-width and half-width forms.
_PUNCTUATION = "\u3001-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
_WITHOUT_SPACES = f"[{UNSPACED}{_PUNCTUATION}]"
LINE_END = "\v"  # stands for a line end of a page's source, which is shown as a space or not at all
_GAP = f"[ {LINE_END}]*{LINE_END}[ {LINE_END}]*"
_NOT_SHOWN = re.compile(f"(?<={_WITHOUT_SPACES}){_GAP}(?={_WITHOUT_SPACES})")

_PARAGRAPH = re.compile(r"(?:^[^\n]*\S[^\n]*(?:\n|\Z))+", re.MULTILINE)
_QUOTATION = re.compile(r"(?:^> ?[^\n>]*[^\s>][^\n]*(?:\n|\Z)){2,}", re.MULTILINE)
_QUOTE_MARK = re.compile(r"^> ?", re.MULTILINE)
_LINE_START = re.compile(r"^(?=.)", re.MULTILINE)
_IN_SENTENCE = re.compile(f"[{UNSPACED}\u3001\uff0c]$")  # also after a comma
_DIVIDED = re.compile(f"[{UNSPACED}\u3001\uff0c][ \\t]*\\n\\s*[{UNSPACED}]")
_CONTINUES = re.compile(f"\\s*[{UNSPACED}]")
_STRUCTURE = re.compile(r"\s*[#|>=]")  # begins a line of Markdown that is no part of a paragraph
_MIN_LENGTH = 8  # characters of a line that is full; lines of poems are shorter
_FULL = 0.8  # of the paragraph's longest line: its lines end earlier for the sake of punctuation

_WORD = re.compile(r"[^\W\d_]{2,}")
_COMPOUND = re.compile(r"(?<![^\W\d_])[^\W\d_]{2,}-[^\W\d_]{2,}")
_MIN_KNOWN = 4  # letters of a word, whose two divided parts together have as many, at least
_SOFT_HYPHEN = "\u00ad"  # it always divides a word
_PRINTED_HYPHEN = "\u2010"  # as manual pages have it: nobody types it, but it may also be within a compound
_HYPHENS = f"-{_PRINTED_HYPHEN}{_SOFT_HYPHEN}"
_DIVIDED_WORD = re.compile(
    rf"(?<!\S)(\S*?)\b([^\W\d_]{{2,}})([{_HYPHENS}])\n([ \t]*)([^\W\d_]{{2,}})\b(\S*)(?:[ \t]*\n|[ \t]*)"
)
# Words that hyphens join to others: where one ends a line, it may be the word's own.
_PREFIXES = frozenset("anti auto co cross inter meta micro mini multi non post pre pseudo re self semi sub un".split())
_MIN_DIVIDED = 2  # words that a text divides, and has undivided, too: then it divides others
_OF_NAME = re.compile(r"(?<!\w)-|[/\\_=$@<>{}|]")  # before a hyphen in an option, a path or a name of a program


def show_line_ends(text: str) -> str:
    """Return a page's text with a space for each `LINE_END`, but with none between words of scripts without spaces."""
    if LINE_END not in text:
        return text
    shown = _NOT_SHOWN.sub("", text)
    return shown.replace(LINE_END, " ")


def join_lines(text: str) -> str:
    """Join the lines of a paragraph whose line ends divide a word: of scripts without spaces, and after a hyphen.

    Code between fences stays as it is.
    """
    words: set[str] = set()
    if _may_divide_words(text):
        undivided = _DIVIDED_WORD.sub("", text)
        words.update(_WORD.findall(undivided.lower()))
        words.update(_COMPOUND.findall(undivided.lower().replace(_PRINTED_HYPHEN, "-")))
    parts = [part if is_code else _join_part(part, words) for part, is_code in split_code(text)]
    return "".join(parts)


def _may_divide_words(text: str) -> bool:
    return any(f"{hyphen}\n" in text for hyphen in _HYPHENS)


def _join_part(text: str, words: AbstractSet[str]) -> str:
    if not text.isascii():
        text = _QUOTATION.sub(_join_quotation, text)
        text = _PARAGRAPH.sub(_join_paragraph, text)
    if _may_divide_words(text):
        text = _join_divided_words(text, words)
    return text


def _join_quotation(match: re.Match[str]) -> str:
    """Join the lines of a quotation in Markdown, which all begin with a mark, as those of a paragraph."""
    quoted = _QUOTE_MARK.sub("", match[0])
    if not _DIVIDED.search(quoted):
        return match[0]
    joined = _PARAGRAPH.sub(_join_paragraph, quoted)
    return _LINE_START.sub("> ", joined)


def _join_paragraph(match: re.Match[str]) -> str:
    """Join the full lines of a paragraph that end and go on in a script without spaces.

    So are lines of an item that are set in from the left, as a poem has none.
    """
    paragraph = match[0]
    if not _DIVIDED.search(paragraph):
        return paragraph
    is_item = LIST_ITEM.match(paragraph) is not None
    lines = paragraph.split("\n")
    lengths = [len(line.strip()) for line in lines]
    full_length = max(_MIN_LENGTH, _FULL * max(lengths))
    joined = lines[0]
    for line, following in pairwise(lines):
        is_full = len(line.strip()) >= full_length
        is_of_item = is_item and following.startswith(" ")
        if (is_full or is_of_item) and _is_divided(line, following):
            joined = joined.rstrip() + following.lstrip()
        else:
            joined += f"\n{following}"
    return joined


def _is_divided(line: str, following: str) -> bool:
    """Return whether a sentence goes on from one line to the next, without a space. Rows of tables do not."""
    if _STRUCTURE.match(line) or CELL_BOUNDARY in line:
        return False
    ends_inside = _IN_SENTENCE.search(line.rstrip())
    return ends_inside is not None and _CONTINUES.match(following) is not None


def _join_divided_words(text: str, words: AbstractSet[str]) -> str:
    """Join words that a hyphen divides at the end of a line; one that people type must divide a word of the document.

    In a document with several such words it divides others, too, unless both parts are words. The hyphen of a manual
    page stays where the document also has it within a line, and the word not without it.
    """
    divides_words = _divides_words(text, words)

    def join(match: re.Match[str]) -> str:
        before, first, hyphen, indentation, second, after = match.groups()
        if _OF_NAME.search(before):
            return match[0]
        word = f"{first}{second}"
        is_known = len(word) >= _MIN_KNOWN and word.lower() in words
        is_compound = f"{first}-{second}".lower() in words
        is_divided = all([divides_words, not is_compound, _has_part(first, second, words)])
        is_certain = any([hyphen != "-", is_divided]) and f"{first[-1]}{second[0]}".islower()
        if not (is_known or is_certain):
            return match[0]
        if is_compound and not is_known:
            kept = hyphen.replace(_SOFT_HYPHEN, "")
            word = f"{first}{kept}{second}"
        ends_line = match[0].endswith("\n")
        line_start = "\n" if ends_line else f"\n{indentation}"
        return f"{before}{word}{after}{line_start}"

    return _DIVIDED_WORD.sub(join, text)


def _divides_words(text: str, words: AbstractSet[str]) -> bool:
    """Return whether the hyphens at line ends mostly divide words of a text, and are rarely those of its compounds."""
    divided = 0
    compounds = 0
    for _, first, _, _, second, _ in _DIVIDED_WORD.findall(text):
        divided += f"{first}{second}".lower() in words
        compounds += f"{first}-{second}".lower() in words
    return divided >= max(_MIN_DIVIDED, compounds)


def _has_part(first: str, second: str, words: AbstractSet[str]) -> bool:
    """Return whether what stands before or after a hyphen is only a part of a word."""
    is_compound = first.lower() in _PREFIXES or JOINS_COMPOUNDS.match(f"{second} ")
    are_words = words >= {first.lower(), second.lower()}
    return not is_compound and not are_words
