"""The words of an index in PostgreSQL, for suggestions."""

from __future__ import annotations

import copy
from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import Self

from arag.retrieval.backend import Phrase
from arag.retrieval.postgres.chunk_store import PostgresChunks
from arag.retrieval.postgres.connections import Statements


class PostgresWords:
    """The words of a generation's chunks, or of a part of them.

    Args:
        statements: Runs the statements.
        chunks: The chunks.
    """

    def __init__(self, statements: Statements, chunks: PostgresChunks) -> None:
        self._statements = statements
        self._chunks = chunks

    def part(self, chunks: PostgresChunks) -> Self:
        """Return the words of some chunks."""
        self._by_length  # read once, for all parts  # noqa: B018
        other = copy.copy(self)
        other._chunks = chunks  # noqa: SLF001 - its own
        return other

    def holds(self, word: str) -> bool:
        """Return whether the chunks hold a word."""
        return self._chunks.holds_word(word)

    def of_length(self, shortest: int, longest: int) -> list[str]:
        """Return the words whose lengths lie between two bounds, both included; some may be gone."""
        words = self._by_length
        return words[bisect_left(words, shortest, key=len) : bisect_right(words, longest, key=len)]

    def spellings(self, phrase: Phrase, limit: int) -> list[str]:
        """Return the spellings of a phrase in the chunks."""
        return self._chunks.spellings(phrase, limit)

    @cached_property
    def _by_length(self) -> list[str]:
        rows = self._statements.query("SELECT word FROM vocabulary")
        return sorted((word for (word,) in rows), key=lambda word: (len(word), word))
