"""The source of truth of an index in PostgreSQL: documents and full chunks in its tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from arag.errors import DamageError
from arag.retrieval.backend import Phrase
from arag.retrieval.postgres.candidates import escape_pattern
from arag.retrieval.postgres.connections import Statements
from arag.retrieval.postgres.schema import INDEXED_CHARACTERS, LONGEST_WORD, WORD_ARRAY
from arag.retrieval.tables.chunks import LATEST, TableChunks, ascii_lower, row_numbers
from arag.retrieval.tables.part import ChunkPart
from arag.retrieval.tables.terms import Terms
from arag.retrieval.tables.words import by_length
from arag.retrieval.types import Chunk

_FEW = 1_000  # numbers: more are sent as a mask


class NumberMask:
    """A set of row numbers as a part of a statement: a list, or a mask with a bit for each number.

    Args:
        numbers: The numbers.

    Raises:
        IndexFormatError: A number is impossible.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        found = row_numbers(numbers)
        if len(found) <= _FEW:
            self._sql = f"= ANY ('{{{','.join(map(str, found.tolist()))}}}'::bigint[])"
            return
        first = int(found.min())
        bits = np.zeros(int(found.max()) - first + 1, dtype=np.uint8)
        bits[found - first] = 1
        packed = np.packbits(bits, bitorder="little").tobytes().hex()
        self._sql = f"BETWEEN {first} AND {found.max()} AND get_bit('\\x{packed}'::bytea, {{column}} - {first}) = 1"

    def holds(self, column: str) -> str:
        """Return the SQL that tells whether the set has a column's number."""
        return f"({column} {self._sql.replace('{column}', column)})"


class PostgresChunks(TableChunks):
    """Full chunks by id, with their documents, as one generation of the index has them.

    Args:
        statements: Runs the statements.
        generation: The generation to read.
    """

    FIND = "strpos"

    def __init__(self, statements: Statements, generation: int = LATEST) -> None:
        super().__init__(generation)
        self.statements = statements

    @property
    def seen(self) -> str:
        """The condition on table `chunks` that this generation's chunks meet."""
        return self._seen

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Readers write nothing."""
        raise NotImplementedError
        yield

    def holds_word(self, word: str) -> bool:
        """Return whether a word (lower case, without diacritics) is in the corpus."""
        return any(self._numbers_with([[Phrase((word,))]], "LIMIT 1"))

    def listed_words(self, words: Collection[str]) -> set[str]:
        """Return which of some words the corpus may hold; see `Words.listed`."""
        asked = [word for word in words if not self.UNSTORABLE.search(word)]
        listed = self._query("SELECT word FROM vocabulary WHERE word = ANY (?)", (asked,)) if asked else ()
        return {word for (word,) in listed} | {word for word in asked if len(word) > LONGEST_WORD}

    def vocabulary(self) -> list[str]:
        """Return the words of all chunks, by length; those of chunks that are gone may be among them."""
        return by_length(word for (word,) in self._query("SELECT word FROM vocabulary"))

    def titled(self, titles: Sequence[str], limit: int) -> list[list[tuple[str, str]]]:
        """Return id and title of documents by each of some titles; see `Chunks.titled`."""
        asked = [ascii_lower(self.UNSTORABLE.sub("\ufffd", title)) for title in titles]
        found: list[list[tuple[str, str]]] = [[] for _ in asked]
        for place, document_id, title in self._query(
            "SELECT place, id, title FROM unnest(?::text[]) WITH ORDINALITY AS asked (name, place) CROSS JOIN LATERAL "
            f"(SELECT id, title FROM documents WHERE {self._documents_seen} "
            f"AND left(lower(title), {INDEXED_CHARACTERS}) BETWEEN left(name, {INDEXED_CHARACTERS}) "
            f"AND left(name || ' )', {INDEXED_CHARACTERS}) "
            "AND (lower(title) = name OR (lower(title) >= name || ' (' AND lower(title) < name || ' )')) "
            "ORDER BY title, id LIMIT ?) AS found ORDER BY place, title, id",
            (asked, limit),
        ):
            found[place - 1].append((document_id, title))
        return found

    def lowered(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the texts, as keywords are matched in them, of those of some chunks that exist."""
        return dict(self._each("SELECT number, lowered FROM lowered WHERE number IN ({marks})", numbers, "TRUE"))

    def number_set(self, numbers: Collection[int]) -> NumberMask:
        """Return a set of row numbers for conditions."""
        return NumberMask(numbers)

    def _query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.statements.query(sql.replace("?", "%s"), parameters)

    def _execute(self, sql: str, rows: Iterable[Sequence[Any]] = ((),)) -> None:
        raise NotImplementedError

    def _insert(self, chunks: Sequence[Chunk]) -> list[int]:
        raise NotImplementedError

    def _spelled(self, phrases: Sequence[Phrase], limit: int) -> list[list[tuple[int, list[str]]]]:
        """Return each phrase's spellings in the first chunks that hold it, with the chunks' numbers."""
        # The planner underestimates how long it takes to find the first rows of a rare phrase by number. So it is asked
        # for any rows first: if these are all, they need no order from it.
        found = self._numbers_with([[phrase] for phrase in phrases], f"LIMIT {limit + 1}")
        frequent = [place for place, numbers in enumerate(found) if len(numbers) > limit]
        first = self._numbers_with([[phrases[place]] for place in frequent], f"ORDER BY chunks.number LIMIT {limit}")
        for place, numbers in zip(frequent, first, strict=True):
            found[place] = numbers
        numbers = sorted({number for each in found for number in each})
        texts = sorted(self._each("SELECT number, text FROM contents WHERE number IN ({marks})", numbers, "TRUE"))
        terms = Terms(texts)
        return [terms.spelled(phrase, limit) for phrase in phrases]

    def holding_all(
        self, groups: Sequence[Collection[str]], limit: int, within: Collection[int] | None = None
    ) -> list[list[int]]:
        """Return the numbers of the chunks that hold all words of each of some groups; see `Words.holding_all`."""
        inside = None if within is None else self.number_set(within)
        seen = self._seen if inside is None else f"{self._seen} AND {inside.holds('chunks.number')}"
        phrases = [[Phrase((word,)) for word in words] for words in groups]
        return self._numbers_with(phrases, f"LIMIT {limit}", seen)

    def _numbers_with(self, groups: Sequence[Sequence[Phrase]], limit: str, seen: str | None = None) -> list[list[int]]:
        """Return the numbers of the chunks with all phrases of each of some groups."""
        found: list[list[int]] = [[] for _ in groups]
        queries, parameters = [], list[Any]()
        for place, phrases in enumerate(groups):
            held = [self._hold(phrase) for phrase in phrases]
            condition = " AND ".join(condition for condition, _ in held)
            # With the limit inside, the planner would read all texts: it expects to come across one soon. From an array
            # it expects few numbers, and looks each of them up.
            queries.append(
                f"(SELECT {place}, chunks.number FROM chunks WHERE chunks.number = "
                f"ANY (ARRAY(SELECT number FROM terms WHERE {condition})) AND {seen or self._seen} {limit})"
            )
            parameters += [value for _, values in held for value in values]
        for place, number in self._query(" UNION ALL ".join(queries), parameters) if queries else ():
            found[place].append(number)
        return found

    def _hold(self, phrase: Phrase) -> tuple[str, list[Any]]:
        """Return the condition on table `terms` that texts with a phrase meet, and its values."""
        words = [self.UNSTORABLE.sub("\ufffd", word) for word in phrase.words]
        conditions, values = [], list[Any]()
        if len(words) > 1 or len(words[0]) > LONGEST_WORD:
            conditions.append("words LIKE ?")
            values.append(f"% {escape_pattern(' '.join(words))}{'' if phrase.is_prefix else ' '}%")
        if phrase.is_prefix and len(words[-1]) <= LONGEST_WORD:
            conditions.append(f"{WORD_ARRAY} && ARRAY(SELECT word FROM vocabulary WHERE word >= ? AND word < ?)")
            values += [words[-1], f"{words[-1]}\U0010ffff"]
        whole = [w for w in words[: -1 if phrase.is_prefix else None] if len(w) <= LONGEST_WORD]
        if whole:
            conditions.append(f"{WORD_ARRAY} @> ?::text[]")
            values.append(whole)
        return " AND ".join(conditions), values

    def _damage(self, what: str) -> DamageError:
        location = str(self.statements.location)
        return DamageError(f"the index {location}", "tables", what, location)


class PostgresChunkPart(ChunkPart, PostgresChunks):
    """A part of the chunks of an index in PostgreSQL."""
