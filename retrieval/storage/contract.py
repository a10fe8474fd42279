"""The storage interface: a folder (`folder`) or PostgreSQL (`postgres`) can store an index.

An index is published as a whole. A snapshot has a random token, and its contents never change. `records` has the
classes that are stored and found, and `sql` the reader that views and drafts inherit from.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.storage.records import (
    Damage,
    EmbeddedDocument,
    KeywordRanking,
    Ranking,
    SentenceMatch,
    Settings,
    ShowShare,
)
from arag.retrieval.storage.sql import DOCUMENT_NAME, FILE_NAME, TableReader
from arag.retrieval.storage.words.index import WordIndex
from arag.retrieval.types import Chunk


class View(TableReader):
    """One snapshot of an index, whole or limited to some documents: everything else is as if it were not there.

    Several threads may use it at once. Each kind of search opens its files at its first use. A StorageError may also
    mean that a newer snapshot has replaced this one: then open that.
    """

    @abstractmethod
    def close(self) -> None:
        """Close its files and release its memory."""

    @abstractmethod
    def limited_to(self, document_ids: Collection[str]) -> View:
        """Return this view limited to some of its documents; it shares the open files."""

    def named(self, words: Sequence[str], limit: int) -> list[str]:
        """Return ids of documents whose id and title together hold all of these words, in lower case, in order."""
        return self._find_named(DOCUMENT_NAME, words, limit)

    def of_files_named(self, words: Sequence[str], limit: int) -> list[str]:
        """Return ids of documents whose file's name holds all of these words: a renamed file keeps its id."""
        return self._find_named(FILE_NAME, words, limit)

    def _find_named(self, name: str, words: Sequence[str], limit: int) -> list[str]:
        holds_word = self.HOLDS.format(self.LOWER.format(name))
        holds_all = " AND ".join([holds_word] * len(words)) or "TRUE"
        rows = self.query(
            f"SELECT id FROM {self.documents_table} WHERE {holds_all} ORDER BY id LIMIT ?",
            *words,
            limit,
        )
        return [document_id for (document_id,) in rows]

    # --- keywords: exact, in lower case, with white space collapsed (paper, section 3.2) ---

    @abstractmethod
    def rank(self, keywords: Sequence[str], top_k: int, *, ranking: Ranking = "paper") -> KeywordRanking:
        """Rank the chunks by keywords, ties by chunk id.

        The score is Score(c, K) = sum over k in K of count(k, T_c) * |k|, or a BM25 score (see
        `keywords.rank_chunks`). For BM25, occurrences inside longer words do not count if a keyword occurs as a word.

        Args:
            keywords: Distinct keywords, none of them blank.
            top_k: How many chunks to return at most.
            ranking: `paper` for Score(c, K), or `bm25`, which may return each keyword's best chunk in addition.
        """

    @abstractmethod
    def count_chunks(self, texts: Sequence[str]) -> list[int]:
        """Count the chunks that hold each of some texts."""

    @abstractmethod
    def row_ids_holding(self, groups: Sequence[Sequence[str]], limit: int) -> list[list[int]]:
        """Return, for each group of texts, the row ids of the first `limit` chunks by id that hold all of them."""

    def chunks_holding(self, groups: Sequence[Sequence[str]], limit: int) -> list[dict[int, Chunk]]:
        """Return, for each group of texts, the first `limit` chunks by id that hold all of them, by row id."""
        row_ids_by_group = self.row_ids_holding(groups, limit)
        chunks = self.chunks_by_row_id(set().union(*row_ids_by_group))
        return [{row_id: chunks[row_id] for row_id in row_ids} for row_ids in row_ids_by_group]

    @abstractmethod
    def searchable_texts(self, row_ids: Sequence[int]) -> Iterator[tuple[int, bytes | memoryview]]:
        """Yield row id and text of chunks in the form that keywords are searched in, in UTF-8, in any order."""

    def row_ids_with_letter(self, letter: str) -> list[int]:
        """Return the row ids of all chunks with a rare letter, which is looked for once."""
        if letter not in self._row_ids_by_letter:
            (self._row_ids_by_letter[letter],) = self.row_ids_holding([[letter]], self.settings.chunks)
        return self._row_ids_by_letter[letter]

    @cached_property
    def _row_ids_by_letter(self) -> dict[str, list[int]]:
        return {}

    @abstractmethod
    def word_index(self) -> WordIndex | None:
        """Return the index of the words of all lines, or None if there is none: then the texts are scanned.

        Chunks of other documents, or of removed ones, may be in it.
        """

    # --- words, for spelling: the plain form of a word has no diacritics, width or case (`text.plain`) ---

    @abstractmethod
    def words_present(self, words: Collection[str]) -> set[str]:
        """Return which of some words, in lower case, a text of this view has as whole words."""

    def words_spelled(self, plain: Collection[str]) -> dict[str, list[str]]:
        """Return the words of the corpus, in lower case, that have these plain forms; unknown forms are left out.

        Words of other documents, or of removed ones, may be among them: ask `words_present`.
        """
        rows = self.query_among("SELECT plain, word FROM words", "plain", plain)
        spelled: dict[str, list[str]] = {}
        for form, word in sorted(rows):
            spelled.setdefault(form, []).append(word)
        return spelled

    def words_of_length(self, shortest: int, longest: int) -> list[str]:
        """Return the plain forms of the corpus whose lengths in characters are from `shortest` to `longest`.

        Words of other documents, or of removed ones, may be among them: ask `words_present`.
        """
        found: list[str] = []
        for length in range(shortest, longest + 1):
            found += self._plain_words.get(length, [])
        return found

    @cached_property
    def _plain_words(self) -> dict[int, list[str]]:
        """The plain forms of all words, by their lengths: a scan for each misspelt word would be slow."""
        forms: dict[int, list[str]] = {}
        for (form,) in self.query("SELECT DISTINCT plain FROM words"):
            forms.setdefault(len(form), []).append(form)
        return forms

    # --- sentences by their vectors ---

    @abstractmethod
    def nearest(self, vector: NDArray[np.float32], count: int) -> list[SentenceMatch]:
        """Return the `count` sentences nearest to a vector of length one, nearest first; fewer only if there are fewer.

        Equal vectors have equal similarities.
        """


class Draft(TableReader):
    """The next snapshot of an index, being written. No reader sees its contents before it is published.

    Its settings are those of the last snapshot, or those that it began with.
    """

    def claim(self, document_ids: Collection[str]) -> set[str]:
        """Return the documents that this writer may write until it ends: all, if it is the only writer."""
        return set(document_ids)

    def put(self, documents: Sequence[EmbeddedDocument]) -> dict[str, str]:
        """Store claimed documents with their chunks and vectors, in place of those with the same ids.

        Returns:
            The documents that were not stored, each with the id of a chunk that another document has already.
        """
        taken = self._find_taken(documents)
        accepted = [document for document in documents if document.record.id not in taken]
        if accepted:
            self._store(accepted)
        return taken

    @abstractmethod
    def _store(self, documents: Sequence[EmbeddedDocument]) -> None:
        """Store documents in one transaction."""

    @abstractmethod
    def remove(self, document_ids: Collection[str]) -> None:
        """Remove documents with their chunks."""

    def unpublished(self) -> set[str]:
        """Return the ids of documents that were stored and not published; none where other runs may be at work."""
        return set()

    @abstractmethod
    def publish(self, settings: Settings) -> Settings:
        """Let readers see the changes, if there are any. It is the last call: later changes need another draft.

        Args:
            settings: The settings of the snapshot, without token and counts.

        Returns:
            The settings with token and counts.
        """

    @abstractmethod
    def _update_sources(self, sources: Mapping[str, str]) -> None: ...

    def set_sources(self, sources: Mapping[str, str]) -> None:
        """Record where documents were read from, by their ids. Only changed sources are written."""
        stored = self.query_among(f"SELECT id, source FROM {self.documents_table}", "id", sources)
        changed = {name: sources[name] for name, source in stored if sources[name] != source}
        if changed:
            self._update_sources(changed)

    def vectors_by_text(self, document_ids: Collection[str]) -> dict[str, NDArray[np.float32]]:
        """Return the stored vectors of these documents' sentences, by the sentences' texts."""
        chunks = self._chunks_among("chunks.document_id", document_ids)
        vectors_by_text: dict[str, NDArray[np.float32]] = {}
        for row_id, positions, vectors in self.vectors(chunks):
            for position, vector in zip(positions, vectors, strict=True):
                text = chunks[row_id].sentence_text(position)
                vectors_by_text[text] = vector
        return vectors_by_text

    def _find_taken(self, documents: Sequence[EmbeddedDocument]) -> dict[str, str]:
        """Return the documents with a chunk id that another document has, each with the first such id."""
        chunk_ids = [chunk.id for document in documents for chunk in document.chunks]
        owners = dict(self.query_among(f"SELECT id, document_id FROM {self.chunks_table}", "id", chunk_ids))
        taken: dict[str, str] = {}
        for document in documents:
            document_id = document.record.id
            for chunk in document.chunks:
                owner = owners.setdefault(chunk.id, document_id)
                if owner != document_id:
                    taken.setdefault(document_id, chunk.id)
        return taken


@runtime_checkable
class IndexStore(Protocol):
    """A place that holds an index, or where one can be made."""

    @property
    def location(self) -> Path | str:
        """Its name, for messages: a folder, or an address without a password."""

    def settings(self) -> Settings:
        """Read the settings of the last snapshot."""

    def stamp(self) -> Hashable:
        """Return a value that changes with every snapshot. It is cheap: every search asks for it."""

    def open(self) -> View:
        """Open the last snapshot.

        Raises:
            IndexNotFoundError: There is no index, or nothing was published yet.
            IndexFormatError, InputError, StorageError: It is damaged, of another format, or cannot be read.
        """

    def close(self) -> None:
        """Release the resources that all views share. A later call of the store opens them again."""

    def size(self) -> int:
        """Return the bytes that the index takes up."""

    def draft(self, begin: Callable[[], Settings]) -> AbstractContextManager[Draft]:
        """Open the next snapshot for writing.

        A folder has one writer at a time; a database may have many.

        Args:
            begin: Makes the settings of a new index; called only if there is no index yet.

        Raises:
            IndexLockedError: Another process is writing.
            InputError: The place cannot be made, or something else is there.
            IndexFormatError, StorageError: The index is damaged, of another format, or cannot be written to.
        """

    def find_damage(self, show: ShowShare | None = None) -> list[Damage]:
        """Look for damage in all parts of the index; nothing is locked or written.

        Args:
            show: Called with the part that is finished, 0 to 1.
        """

    def repair(self, show: ShowShare | None = None) -> None:
        """Make everything again that is derived from the documents, unless these are damaged.

        Args:
            show: Called with the part that is finished, 0 to 1.
        """
