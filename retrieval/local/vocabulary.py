"""The words of the corpus, for suggestions.

They are in the chunk store's full-text table, which takes seconds to scan in a large corpus. So a file derived from
it lists them by length, to find the words nearest to a misspelt one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from arag.errors import DamagedFileError
from arag.files import written_whole
from arag.retrieval.backend import Phrase
from arag.retrieval.local.chunk_store import ChunkStore
from arag.retrieval.local.manifest import LocalManifest, check_files, vocabulary_file


def write_vocabulary(file: Path, words: Iterable[str]) -> None:
    """Write words (lower case, without diacritics) to a file, one per line; it appears when it is complete."""
    with written_whole(file) as out:
        out.writelines(f"{word}\n".encode() for word in sorted(words, key=lambda word: (len(word), word)))


class LocalWords:
    """The words of one generation of an index.

    Args:
        folder: The index's folder.
        manifest: The generation's manifest.
        chunks: The chunk store, at that generation.
    """

    def __init__(self, folder: Path, manifest: LocalManifest, chunks: ChunkStore) -> None:
        self._folder = folder
        self._manifest = manifest
        self._chunks = chunks

    def holds(self, word: str) -> bool:
        """Return whether the corpus holds a word."""
        return self._chunks.holds_word(word)

    def of_length(self, shortest: int, longest: int) -> list[str]:
        """Return the words whose lengths lie between two bounds, both included."""
        words = self._by_length
        return words[bisect_left(words, shortest, key=len) : bisect_right(words, longest, key=len)]

    def spellings(self, phrase: Phrase, limit: int) -> list[str]:
        """Return the spellings of a phrase in the corpus."""
        return self._chunks.spellings(phrase, limit)

    @cached_property
    def _by_length(self) -> list[str]:
        file = vocabulary_file(self._folder, self._manifest.generation)
        check_files(self._folder, self._manifest, file, contents=True)
        try:
            return file.read_bytes().decode().split("\n")[:-1]
        except (OSError, UnicodeDecodeError) as error:
            raise DamagedFileError(file, str(error)) from error


class PartOfWords:
    """The words of a part of a generation.

    Args:
        whole: The words of the generation.
        chunks: The part's chunks.
    """

    def __init__(self, whole: LocalWords, chunks: ChunkStore) -> None:
        self.of_length = whole.of_length  # with words that `holds` denies
        self.holds = chunks.holds_word
        self.spellings = chunks.spellings
