"""Sentences that are code, or have lines of their own in a web page: they are shown with their lines and indents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from arag.retrieval.presentation.sentences import sentence_line
from arag.retrieval.types import Chunk
from arag.text.normalise import CUT, collapse_whitespace

_FENCE = re.compile(r"^ {0,3}(?:```|~~~).*$", re.MULTILINE)
_INDENTED = re.compile(r"\n(?: {2,}|\t)\s*\S")
_FULL_LINE = 45  # bytes at least, in wrapped text: a character of Chinese has three, and the width of two letters
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)]*$")
# The last ones are the name of a setting, and columns.
_SIGN_OF_CODE = re.compile(r"[={}\[\]\\;|<>$@]|--|://|\w\(|^\s*\S+: |\S[^\S\n]{3,}\S", re.MULTILINE)
_PROMPT = re.compile(r"^\s*[$#%>]\s+\S", re.MULTILINE)  # in front of a command; a comment begins like it
_COMMAND = re.compile(r"^\$ [A-Za-z./~]", re.MULTILINE)  # at the start of a line, where an amount has a digit
_WIDE_GAP = re.compile(r"[^\s.!?:] {2,}(?=\S)")  # some put two spaces behind a sentence
_LISTING_WIDTH = 80  # characters of a line at most, as in a terminal: a page of text has longer ones
_ITEM = re.compile(r"(?:[-*+•|]|\d+[.)])\s")  # its further lines are indented, too
# Line ends in the text of a page are those that a browser shows.
_PAGES = (".html", ".htm", ".xhtml", ".page", ".docbook", ".dbk", ".xml")
_PROGRAMS = tuple(
    ".bash .c .cc .cpp .cs .go .h .hpp .java .jl .js .jsx .kt .lua .mjs .php .pl .ps1 .py .pyi .r .rb .rs .scala .sh "
    ".sql .swift .ts .tsx .zsh".split()
)


def code_lines(chunk: Chunk, position: int) -> str:
    """Return a sentence with its lines and their indents, or an empty string if it is to be shown on one line."""
    sentence = chunk.sentences[position]
    start = chunk.text.rfind("\n", 0, sentence.start) + 1
    if chunk.text[start : sentence.start].strip():  # it begins in the middle of a line
        start = sentence.start
    text = chunk.text[start : sentence.end].rstrip()
    if not _is_code(chunk, text, sentence.start):
        return ""
    return "\n".join(line.rstrip() for line in text.split("\n"))


def code_lines_of_part(chunk: Chunk, position: int, part: str) -> str:
    """Return the whole lines within a part of long code, or an empty string if there are none.

    Args:
        chunk: The chunk.
        position: The sentence that is the code.
        part: What is shown of it, on one line.
    """
    line_of_all = sentence_line(chunk, position)
    shown = part.strip(CUT)
    begin = line_of_all.find(shown)
    end = begin + len(shown)
    within: list[str] = []
    offset = 0  # on one line
    for line in code_lines(chunk, position).split("\n"):
        words = collapse_whitespace(line)
        if begin <= offset and offset + len(words) <= end:
            within.append(line)
        offset += len(f"{words} ".lstrip())
    if not any(within):
        return ""
    before = [CUT] if begin > 0 else []
    after = [CUT] if end < len(line_of_all) else []
    return "\n".join([*before, *within, *after])


def needs_one_width(paragraph: str) -> bool:
    """Return whether a paragraph loses its form in proportional letters: with columns, commands or indented lines."""
    if "   " in paragraph or "\t" in paragraph:
        return True
    lines = paragraph.split("\n")
    if len(lines) == 1 or max(map(len, lines)) > _LISTING_WIDTH:
        return False
    is_code = _COMMAND.search(paragraph) is not None or _is_indented_code(paragraph, paragraph)
    return is_code or _has_columns(lines)


def _has_columns(lines: Iterable[str]) -> bool:
    """Return whether words of two lines begin at the same place, behind two spaces or more."""
    places: Counter[int] = Counter()
    for line in lines:
        places.update(gap.end() for gap in _WIDE_GAP.finditer(line))
    return max(places.values(), default=0) > 1


def _is_code(chunk: Chunk, text: str, start: int) -> bool:
    if any(first < start < last for first, last in _find_fenced(chunk)):
        return True
    if "\n" not in text:
        return False
    if chunk.document_id.lower().endswith((*_PAGES, *_PROGRAMS)):
        return True
    line_start = chunk.text.rfind("\n", 0, start) + 1
    paragraph = chunk.text[line_start:start] + text.lstrip()
    return _COMMAND.search(text) is not None or _is_indented_code(text, paragraph)


def _is_indented_code(text: str, paragraph: str) -> bool:
    """Return whether some lines are indented, and neither an item of a list nor the end of a wrapped paragraph."""
    if _INDENTED.search(text) is None or _ITEM.match(text.lstrip()):
        return False
    is_text = _SENTENCE_END.search(text) is not None or _SIGN_OF_CODE.search(text) is None
    return not (is_text and _is_wrapped(paragraph))


def _is_wrapped(text: str) -> bool:
    """Return whether indented lines are those of a paragraph: at one edge, full except the last, without a prompt.

    The first line may have lost its indent at the start of a chunk. Of more than two, it may be a name: `License:`.
    """
    lines = text.split("\n")
    edges = {len(line) - len(line.lstrip()) for line in lines[1:]}
    between = lines[1:-1] or lines[:1]
    shortest = min(len(line.encode()) for line in between)
    return len(edges) == 1 and shortest >= _FULL_LINE and _PROMPT.search(text) is None


@lru_cache(maxsize=256)
def _find_fenced(chunk: Chunk) -> list[tuple[int, int]]:
    """Return where fenced code is in a chunk; a fence without a second one is that of a cut, and marks nothing."""
    fences = [fence.start() for fence in _FENCE.finditer(chunk.text)]
    return list(zip(fences[::2], fences[1::2], strict=False))
