"""Marks: how a model tells which chunk a text is from.

Every result starts with a line that starts with a mark: the chunk's id in square brackets, `[a.md:0]`. An id with
brackets, quotes, backslashes or invisible characters is a JSON string: `["a [b].md:0"]`. All text up to the next such
line is from that chunk. No document can write a mark: `without_marks` keeps brackets in its text from passing for one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

_NOT_PLAIN = re.compile(r"[\[\]\"\\]|^\s|\s$|^$")  # in an id
_MARK = re.compile(r'^\[(?:("(?:[^"\\\n]|\\.)*")|([^\[\]\n]*))\]', re.MULTILINE)
# Brackets around a name, a colon and a number. Behind a letter or a digit they are an index, as in `rows[a:10]`.
_LIKE_A_MARK = re.compile(r"(?<!\w)[\[［【〔⟦]([^\[\]［］【】〔〕⟦⟧\n]{1,400})[\]］】〕⟧]")
_LIKE_AN_ID = re.compile(r"\S\s?:\s?\d")
_BRACKET_AT_START = re.compile(r"(?:\A|(?<=[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]))(?=\[)")


def mark(chunk_id: str) -> str:
    """Return the mark of a chunk."""
    if chunk_id.isprintable() and not _NOT_PLAIN.search(chunk_id):
        return f"[{chunk_id}]"
    return f"[{quote_id(chunk_id)}]"


def quote_id(chunk_id: str) -> str:
    """Return an id as a JSON string, on one line, with invisible characters as escapes."""
    quoted = json.dumps(chunk_id, ensure_ascii=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in quoted)


def list_marks(chunk_ids: Iterable[str]) -> str:
    """Return the marks of chunks, separated by commas."""
    return ", ".join(map(mark, chunk_ids))


def with_mark(chunk_id: str, text: str) -> str:
    """Return a chunk's text below its mark."""
    return f"{mark(chunk_id)}\n{without_marks(text)}"


def without_marks(text: str) -> str:
    """Return a text in which nothing can pass for a mark.

    Brackets around what looks like a chunk's id become round. A space goes before any other square bracket that starts
    a line.
    """
    text = _LIKE_A_MARK.sub(lambda m: f"({m[1]})" if _LIKE_AN_ID.search(m[1]) else m[0], text)
    return _BRACKET_AT_START.sub(" ", text)


def read_results(text: str) -> Iterator[tuple[str, str]]:
    """Yield the id of each result in a text, and the text behind its mark."""
    found = list(_MARK.finditer(text))
    for number, match in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else len(text)
        yield json.loads(match[1]) if match[1] else match[2], text[match.end() : end]
