"""The titles of all documents of a view, in which patterns are looked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from arag.retrieval.corpus.kept_by_view import KeptByView
from arag.retrieval.corpus.patterns import Pattern
from arag.retrieval.storage.contract import View
from arag.text.normalise import collapse_whitespace

_MAX_KEPT = 4  # views whose titles are kept: those of a hundred thousand documents take up 20 MB


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


_titles_of = KeptByView(_read_titles, most=_MAX_KEPT)
