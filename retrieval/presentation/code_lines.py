"""Sentences that are code, or have lines of their own in a web page: they are shown with their lines and indents."""

from __future__ import annotations

import re
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


def _is_code(chunk: Chunk, text: str, start: int) -> bool:
    if any(first < start < last for first, last in _find_fenced(chunk)):
        return True
    if "\n" not in text:
        return False
    if chunk.document_id.lower().endswith((*_PAGES, *_PROGRAMS)):
        return True
    if _INDENTED.search(text) is None or _ITEM.match(text.lstrip()):
        return False
    line_start = chunk.text.rfind("\n", 0, start) + 1
    paragraph = chunk.text[line_start:start] + text.lstrip()
    is_text = _SENTENCE_END.search(text) is not None or _SIGN_OF_CODE.search(text) is None
    return not (is_text and _is_wrapped(paragraph))


def _is_wrapped(text: str) -> bool:
    """Return whether indented lines are those of a paragraph: at one edge, full except the last, without a prompt.

    The first line may have lost its indent at the start of a chunk.
    """
    lines = text.split("\n")
    edges = {len(line) - len(line.lstrip()) for line in lines[1:]}
    shortest = min(len(line.encode()) for line in lines[:-1])
    return len(edges) == 1 and shortest >= _FULL_LINE and _PROMPT.search(text) is None


@lru_cache(maxsize=256)
def _find_fenced(chunk: Chunk) -> list[tuple[int, int]]:
    """Return where fenced code is in a chunk; a fence without a second one is that of a cut, and marks nothing."""
    fences = [fence.start() for fence in _FENCE.finditer(chunk.text)]
    return list(zip(fences[::2], fences[1::2], strict=False))
