"""The words of the corpus, by length, from which the nearest to a misspelt one are found.

The file is derived from the chunk store's table of words, which takes seconds to look through in a large corpus.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path

from arag.retrieval.errors import IndexFormatError
from arag.retrieval.files import written_whole


def write_vocabulary(file: Path, words: Iterable[str]) -> None:
    """Write words (lower case, without diacritics) to a file, which appears when it is complete."""
    with written_whole(file) as out:
        out.writelines(f"{word}\n".encode() for word in sorted(words, key=lambda word: (len(word), word)))


class Vocabulary:
    """The words of a vocabulary file.

    Args:
        file: The file.

    Raises:
        IndexFormatError: The file is missing or damaged.
    """

    def __init__(self, file: Path) -> None:
        try:
            self._words = file.read_text(encoding="utf-8").split("\n")[:-1]
        except (OSError, UnicodeDecodeError) as error:
            raise IndexFormatError(f"{file}: {error}; run `arag verify --index {file.parent} --repair`") from error
        counts = [0] * (len(self._words[-1]) + 2 if self._words else 1)
        for word in self._words:
            counts[len(word) + 1] += 1
        self._starts = list(accumulate(counts))  # where the words of each length begin

    def of_length(self, shortest: int, longest: int) -> list[str]:
        """Return the words whose lengths lie between two bounds, both included."""
        last = len(self._starts) - 1
        return self._words[self._starts[min(max(shortest, 0), last)] : self._starts[min(longest + 1, last)]]
