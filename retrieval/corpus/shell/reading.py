"""The lines of the files that a command read, in their order: they tell the chunk of a line that it printed."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from arag.retrieval.corpus.lines import Line

MIN_TEXT = 20  # characters of a line that tell its chunk, wherever it is printed
# A shorter one: several words, or a sentence. The command itself may have made a number, a name or `yes`.
_TELLS = re.compile(r"(?=.*[^\W\d_])(?:.*\s.*|.*[.!?。！？])")

_UNKNOWN = -2  # a place that no other is behind


class ReadLines:
    """The lines of the files that a command read.

    Their hashes are kept, and not their texts, which would take up much memory.
    """

    def __init__(self) -> None:
        self._hashes = array("q")
        self._starts: list[int] = []  # where each chunk's lines begin
        self._chunk_ids: list[str] = []

    def add(self, lines: Iterable[Line]) -> None:
        """Remember the lines of a file."""
        for line in lines:
            if not self._chunk_ids or self._chunk_ids[-1] != line.chunk.id:
                self._starts.append(len(self._hashes))
                self._chunk_ids.append(line.chunk.id)
            self._hashes.append(hash(line.text))

    def find(self, printed: Sequence[str]) -> list[str]:
        """Return the chunk of each printed line that is one of these; else an empty text.

        A line is the one behind or before its neighbour's in a file, or the only one with its text.
        """
        places = self._list_places(printed)
        found: list[int | None] = []
        last = -1
        for text in printed:
            place = self._follow(last, text)
            if place is None:
                place = self._find_only(places.get(hash(text), ()), text, last)
            last = _UNKNOWN if place is None else place
            found.append(place)
        for number in reversed(range(len(found) - 1)):
            following = found[number + 1]
            if found[number] is None and following is not None:
                found[number] = self._follow(following - 2, printed[number])
        return ["" if place is None else self._chunk_id(place) for place in found]

    def _list_places(self, printed: Sequence[str]) -> dict[int, list[int]]:
        """Return where each printed line may be from, by its hash."""
        places: dict[int, list[int]] = {hash(text): [] for text in printed}
        for place, known in enumerate(self._hashes):
            if known in places:
                places[known].append(place)
        return places

    def _follow(self, place: int, text: str) -> int | None:
        """Return the place behind another one, if it has a text."""
        following = place + 1
        is_there = 0 <= following < len(self._hashes) and self._hashes[following] == hash(text)
        return following if is_there else None

    def _find_only(self, places: Sequence[int], text: str, last: int) -> int | None:
        """Return the next one of the places that have a text, if all are of one chunk."""
        tells = len(text) >= MIN_TEXT or _TELLS.fullmatch(text) is not None
        if not places or not tells or self._chunk_id(places[0]) != self._chunk_id(places[-1]):
            return None
        later = bisect_right(places, last)
        return places[later] if later < len(places) else places[0]

    def _chunk_id(self, place: int) -> str:
        return self._chunk_ids[bisect_right(self._starts, place) - 1]
