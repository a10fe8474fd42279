"""Marks: how a model tells which chunk a text is from.

Every result starts with a line that starts with a mark: the chunk's id in square brackets, `[a.md:0]`. An unusual id is
a JSON string: `["a [b].md:0"]`. All text up to the next such line is from that chunk.

No document can write a mark. `without_marks` puts a space where its text could pass for one, so that a mark in what an
answer quotes from a document is not a citation, either: `[a.md: 0]`. Times, addresses and JSON stay as they are: an id
that looks like one has its mark in quotes, `["11:59:1"]`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator

from arag.text.visible import OBEYED

_PAIRS = ("[]", "［］", "【】", "〔〕", "⟦⟧", "〚〛", "❲❳", "⦋⦌", "(（)）")
_SEPARATORS = ",;，；、"
_NO_WORD = rf"\s\[\]［］【】〔〕⟦⟧〚〛❲❳⦋⦌()（）{_SEPARATORS}`*\"'“”"
# A word in front of a colon and a number, from its start: to begin at each character takes minutes in a long word.
# A number of a chunk has no zero in front, and ends there.
_WORD = rf"(?<![^{_NO_WORD}])[^{_NO_WORD}]+"
_WORD_AND_NUMBER = rf"({_WORD}):(?:0|[1-9]\d*+)(?![\dA-Za-z_/]|[.:]\d)"
_LAST_WORD = re.compile(rf"{_WORD}$")
POSSIBLE_ID = re.compile(_WORD_AND_NUMBER)
# Behind it is a closing bracket, also where brackets are nested.
_LAST_ID = re.compile(rf"{_WORD_AND_NUMBER}(?=\s*+[\"'”’]?\s*+[\])）］】〕⟧〛❳⦌])")
# Words that name no document: without a letter, an address of IPv6 or of hardware, a moment, a host.
_NO_NAME = re.compile(r"[\W\d_]+|[\da-f]*(?::[\da-f]*)+|[\d-]+t[\d:.+-]+|\w+://[^/]+", re.IGNORECASE)
_COLON = re.compile(r":(?=\d)")
_NUMBERS = re.compile(r"\d+:\d+")  # the id of a chunk whose document's id is a number
# Alone in square brackets, or in a list there. In round ones, it is a time, a verse or a ratio.
_NUMBERS_ALONE = re.compile(
    rf"(?<=[\[［【〔⟦〚❲⦋{_SEPARATORS}])(\s*\d+):(?=(?:0|[1-9]\d*)\s*[\]］】〕⟧〛❳⦌{_SEPARATORS}])"
)
_MAX_INSIDE = 2_000  # characters between brackets


def _between(pair: str) -> re.Pattern[str]:
    """Return the pattern of text in brackets of one kind, also behind brackets in them. An answer may join lines."""
    both, closing = re.escape(pair), re.escape(pair[len(pair) // 2 :])
    return re.compile(rf"[{both}][^{both}]{{1,{_MAX_INSIDE}}}(?=[{closing}])")


_BRACKETS = [_between(pair) for pair in _PAIRS]
_LINE_BREAK = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Characters that cannot be seen, besides those that terminals obey: blank letters, joiners, selectors of glyphs.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U00013430-\U0001345f\U00016fe4\U000e0000-\U000e0fff]"
)
_JOINER = re.compile("[\u200c\u200d]")
# Scripts and emoji need joiners between letters only.
_LOOSE_JOINERS = re.compile(
    r"(?<![\u200c\u200d])[\u200c\u200d]++(?=[\s\[\]:\d\"]|$)|(?:(?<=[\s\[\]:\d\"])|^)[\u200c\u200d]+"
)
_JSON_STRING = r'"(?:[^"\\\n]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
_MARK = re.compile(rf"^\[(?:({_JSON_STRING})|([^\[\]\n]*))\]", re.MULTILINE)


def mark(chunk_id: str) -> str:
    """Return the mark of a chunk."""
    return f"[{chunk_id if is_usual(chunk_id) else quote_id(chunk_id)}]"


def is_usual(chunk_id: str) -> bool:
    """Return whether an id needs no quotes: its document has a name, and it has no bracket, quote or control."""
    if not chunk_id.isprintable() or chunk_id != chunk_id.strip() or not is_plain(chunk_id):
        return False
    if _INVISIBLE.search(chunk_id) or _JOINER.search(chunk_id):
        return False
    return not any(c in '"\\' or (unicodedata.category(c) in {"Ps", "Pe"} and c not in "()") for c in chunk_id)


def is_plain(chunk_id: str) -> bool:
    """Return whether an id ends in a number behind a word that may name a document: no text has it in brackets."""
    if _NUMBERS.fullmatch(chunk_id):
        return True
    ending = _LAST_WORD.search(chunk_id)
    possible_id = POSSIBLE_ID.fullmatch(ending[0]) if ending else None
    return possible_id is not None and _may_be_name(possible_id[1])


def _may_be_name(word: str) -> bool:
    return _NO_NAME.fullmatch(word) is None


def quote_id(chunk_id: str) -> str:
    """Return an id as a JSON string, on one line, with invisible characters as escapes."""
    quoted = json.dumps(chunk_id, ensure_ascii=False)
    return "".join(json.dumps(c)[1:-1] if _is_invisible(c) else c for c in quoted)


def _is_invisible(character: str) -> bool:
    return not character.isprintable() or bool(_INVISIBLE.match(character) or _JOINER.match(character))


def list_marks(chunk_ids: Iterable[str]) -> str:
    """Return the marks of chunks, separated by commas."""
    return ", ".join(map(mark, chunk_ids))


def with_mark(chunk_id: str, text: str) -> str:
    """Return a chunk's text below its mark."""
    return f"{mark(chunk_id)}\n{without_marks(text)}"


def without_marks(text: str) -> str:
    """Return a text in which nothing can pass for a mark.

    A space goes before a square bracket that starts a line, into `["`, and behind a colon in brackets that is between a
    name and a number. Characters that cannot be seen are left out, and all line breaks are newlines.
    """
    text = _INVISIBLE.sub("", OBEYED.sub("", _LINE_BREAK.sub("\n", text)))
    text = _LOOSE_JOINERS.sub("", text)
    if _COLON.search(text):
        text = _LAST_ID.sub(_space_colons, text)
        for brackets in _BRACKETS:
            text = brackets.sub(_space_ids, text)
        text = _NUMBERS_ALONE.sub(r"\1: ", text)
    text = text.replace('["', '[ "')
    text = text.replace("\n[", "\n [")
    return f" {text}" if text.startswith("[") else text


def _space_ids(brackets: re.Match[str]) -> str:
    return POSSIBLE_ID.sub(_space_colons, brackets[0])


def _space_colons(possible_id: re.Match[str]) -> str:
    if not _may_be_name(possible_id[1]):
        return possible_id[0]
    return _COLON.sub(": ", possible_id[0])


def read_results(text: str) -> Iterator[tuple[str, str]]:
    """Yield the id of each result in a text, and the text behind its mark."""
    found = list(_MARK.finditer(text))
    for number, match in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else len(text)
        yield json.loads(match[1]) if match[1] else match[2], text[match.end() : end]
