"""The titles of all documents of a view, in which patterns are looked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from weakref import WeakKeyDictionary

from arag.retrieval.corpus.patterns import Pattern
from arag.retrieval.storage.contract import View
from arag.text.normalise import collapse_whitespace

_SEPARATOR = b"\xff"  # never occurs in UTF-8: no match crosses it
_MAX_KEPT = 4  # views whose titles are kept: those of a hundred thousand documents take up 20 MB
_kept: WeakKeyDictionary[View, _Titles] = WeakKeyDictionary()
_lock = Lock()


@dataclass(frozen=True, slots=True)
class _Titles:
    ids: list[str]  # of the documents that have a title, in order
    starts: list[int]  # where each title starts in the text
    text: bytes  # the titles, each with a separator behind it


def find_titles(view: View, pattern: Pattern) -> Iterator[tuple[str, str]]:
    """Yield id and title of each document whose title matches, in the order of ids."""
    titles = _titles_of(view)
    position = 0
    while position < len(titles.text):
        found = pattern.find_loosely(titles.text, position)
        if found is None:
            return
        place = bisect_right(titles.starts, found) - 1
        end = titles.text.index(_SEPARATOR, titles.starts[place])
        title = titles.text[titles.starts[place] : end].decode()
        if pattern.matches(title):
            yield titles.ids[place], title
        position = end + 1


def _titles_of(view: View) -> _Titles:
    with _lock:
        titles = _kept.get(view)
    if titles is None:
        titles = _read_titles(view)
        with _lock:
            _kept[view] = titles
            for other in list(_kept)[:-_MAX_KEPT]:
                del _kept[other]
    return titles


def _read_titles(view: View) -> _Titles:
    ids: list[str] = []
    starts: list[int] = []
    pieces: list[bytes] = []
    size = 0
    for document_id, title in view.titles():
        collapsed = collapse_whitespace(title)
        if collapsed:
            piece = collapsed.encode() + _SEPARATOR
            ids.append(document_id)
            starts.append(size)
            pieces.append(piece)
            size += len(piece)
    return _Titles(ids, starts, b"".join(pieces))
