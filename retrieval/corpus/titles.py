"""The titles of all documents of a view, in which patterns are looked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from weakref import WeakKeyDictionary

from arag.retrieval.corpus.patterns import Pattern
from arag.retrieval.storage.contract import View
from arag.text.normalise import collapse_whitespace

_MAX_KEPT = 4  # views whose titles are kept: those of a hundred thousand documents take up 20 MB
_kept: WeakKeyDictionary[View, _Titles] = WeakKeyDictionary()
_lock = Lock()


@dataclass(frozen=True, slots=True)
class _Titles:
    ids: list[str]  # of the documents that have a title, in order
    titles: list[str]
    block: bytes  # the titles, one a line


def find_titles(view: View, pattern: Pattern) -> Iterator[tuple[str, str]]:
    """Yield id and title of each document whose title matches, in the order of ids."""
    titles = _titles_of(view)
    for number in pattern.find_lines(titles.block):
        yield titles.ids[number], titles.titles[number]


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
    titles: list[str] = []
    for document_id, title in view.titles():
        collapsed = collapse_whitespace(title)
        if collapsed:
            ids.append(document_id)
            titles.append(collapsed)
    lines = [f"{title}\n" for title in titles]
    return _Titles(ids, titles, "".join(lines).encode())
