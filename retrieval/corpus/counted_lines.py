"""Counts the lines that match a pattern by the word index, so that only the lines that are shown have to be read."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.corpus.kept_by_view import KeptByView
from arag.retrieval.corpus.patterns import Pattern
from arag.retrieval.storage.contract import View
from arag.retrieval.storage.words.index import Counted

Integers = NDArray[np.int64]

_FEW = 500  # chunks: to read so many takes less time than to read the order of all
_MAX_KEPT = 8  # views whose order is kept: that of a million chunks takes up 24 MB


@dataclass(frozen=True, slots=True)
class CountedLines:
    """The chunks that have lines that match, in the order of documents and of the text."""

    row_ids: Integers
    counts: Integers  # of each chunk's lines
    documents: int


def count_lines(
    view: View,
    pattern: Pattern,
    count_in_texts: Callable[[Collection[int]], dict[int, int]],
) -> CountedLines | None:
    """Count the lines that match a pattern in each chunk.

    Args:
        view: What is searched.
        pattern: The pattern.
        count_in_texts: Counts the lines that match in the texts of chunks, by row id.

    Returns:
        The counts; None if the word index cannot tell, or if so few chunks match that their texts are read sooner.
    """
    index = view.word_index() if pattern.is_in_word else None
    if index is None:
        return None
    found = index.find([*pattern.literals, *([letter] for letter in pattern.rare_letters)])
    if found is None:
        return None
    found = found.where(pattern.matches)
    if found.size() <= _FEW:
        return None
    counted = found.count_lines()
    if len(counted.row_ids) <= _FEW:
        return None
    order = _order_of(view)
    others = order.row_ids[~index.has(order.row_ids)]
    in_texts = count_in_texts(others.tolist())
    counts = order.place(counted)
    counts += order.place(Counted(np.array(list(in_texts), np.int64), np.array(list(in_texts.values()), np.int64)))
    held = np.flatnonzero(counts)
    return CountedLines(
        row_ids=order.row_ids[held],
        counts=counts[held],
        documents=int(np.count_nonzero(np.diff(order.documents[held], prepend=0))),
    )


@dataclass(frozen=True, slots=True)
class _Order:
    """The chunks of a view in the order of documents and of the text."""

    row_ids: Integers
    documents: Integers  # the number of each chunk's document, from 1 on
    by_row_id: Integers  # the places of the chunks, in the order of their row ids

    def place(self, counted: Counted) -> Integers:
        """Return the counts of all chunks, in this order, without those of other chunks."""
        counts = np.zeros(len(self.row_ids), np.int64)
        if not len(counts):
            return counts
        places = np.searchsorted(self.row_ids, counted.row_ids, sorter=self.by_row_id)
        places = self.by_row_id[np.minimum(places, len(counts) - 1)]
        is_here = self.row_ids[places] == counted.row_ids
        counts[places[is_here]] = counted.counts[is_here]
        return counts


def _read_order(view: View) -> _Order:
    row_ids, documents = view.text_order()
    return _Order(row_ids, documents, np.argsort(row_ids))


_order_of = KeptByView(_read_order, most=_MAX_KEPT)
