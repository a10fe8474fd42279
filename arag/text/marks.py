"""Marks: how a model tells which chunk a text is from.

Every result starts with a line that starts with a mark: the chunk's id in square brackets, `[a.md:0]`. An unusual id is
a JSON string: `["a [b].md:0"]`. All text up to the next such line is from that chunk.

No document can write a mark. `without_marks` puts a space where its text could pass for one, so that a mark in what an
answer quotes from a document is not a citation, either: `[a.md: 0]`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator

from arag.text.visible import OBEYED

_PAIRS = ("[]", "［］", "【】", "〔〕", "⟦⟧", "〚〛", "❲❳", "⦋⦌", "{}", "｛｝", "(（)）")
_COLON = re.compile(r":(?=\d)")
# A colon before the number that ends an id, in front of a closing bracket, also where brackets are nested.
_LAST_COLON = re.compile(r":(?=\d+\s*[\"'”’]?\s*[\])}）】］〕⟧〛❳⦌｝])")
_MAX_INSIDE = 2_000  # characters between brackets


def _between(pair: str) -> re.Pattern[str]:
    """Return the pattern of brackets of one kind on one line, with none of that kind in them."""
    half = len(pair) // 2
    opening, closing, both = (re.escape(some) for some in (pair[:half], pair[half:], pair))
    return re.compile(rf"[{opening}][^{both}\n]{{1,{_MAX_INSIDE}}}[{closing}]")


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
_USUAL = re.compile(r"\S(?:.*\S)?:\d+")


def mark(chunk_id: str) -> str:
    """Return the mark of a chunk."""
    return f"[{chunk_id if is_usual(chunk_id) else quote_id(chunk_id)}]"


def is_usual(chunk_id: str) -> bool:
    """Return whether an id needs no quotes: it ends in its number, and has no bracket, quote or invisible character."""
    if not chunk_id.isprintable() or not _USUAL.fullmatch(chunk_id):
        return False
    if _INVISIBLE.search(chunk_id) or _JOINER.search(chunk_id):
        return False
    return not any(c in '"\\' or (unicodedata.category(c) in {"Ps", "Pe"} and c not in "()") for c in chunk_id)


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

    A space goes before a square bracket that starts a line, into `["`, and behind a colon before a digit in brackets.
    Characters that cannot be seen are left out, and all line breaks are newlines.
    """
    text = _INVISIBLE.sub("", OBEYED.sub("", _LINE_BREAK.sub("\n", text)))
    text = _LOOSE_JOINERS.sub("", text)
    if ":" in text:
        text = _LAST_COLON.sub(": ", text)
        for brackets in _BRACKETS:
            text = brackets.sub(_space_colons, text)
    text = text.replace('["', '[ "')
    text = text.replace("\n[", "\n [")
    return f" {text}" if text.startswith("[") else text


def _space_colons(brackets: re.Match[str]) -> str:
    return _COLON.sub(": ", brackets[0])


def read_results(text: str) -> Iterator[tuple[str, str]]:
    """Yield the id of each result in a text, and the text behind its mark."""
    found = list(_MARK.finditer(text))
    for number, match in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else len(text)
        yield json.loads(match[1]) if match[1] else match[2], text[match.end() : end]
