"""Finds damage in an index in PostgreSQL, and makes everything again that is derived from the documents."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from arag.errors import IndexFormatError
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.check import Passes, check_documents
from arag.retrieval.storage.postgres.connection import Session
from arag.retrieval.storage.postgres.draft import columns, word_rows
from arag.retrieval.storage.postgres.schema import (
    TEXT_INDEXES,
    Tables,
    lock,
    make_indexes,
    make_word_segments,
    missing_indexes,
    read_published,
)
from arag.retrieval.storage.postgres.words import read_segments, update_words
from arag.retrieval.storage.records import Damage, ShowShare
from arag.retrieval.storage.words.build import is_right
from arag.text.normalise import searchable, words

_CHUNKS_PER_QUERY = 500  # more take more memory, fewer more queries
_MANY = 0.1  # of all texts: to make their indexes again is faster than to add so many to them
_PASSES = 3  # over all chunks: the documents, the tables that are derived from them, and the word index


@dataclass(frozen=True, slots=True)
class _Differences:
    """How tables that are derived from texts differ from what they should be.

    Attributes:
        wrong_texts: The numbers of chunks whose text in `lowered` is missing or wrong.
        missing_words: Rows that `words` lacks.
        other_words: Rows of `words` for words that no text has.
    """

    wrong_texts: list[int]
    missing_words: list[tuple[str, str]]
    other_words: list[tuple[str, str]]


def find_damage(session: Session, show: ShowShare | None = None) -> Iterator[Damage]:
    """Look for damage in all tables.

    Args:
        session: A session in a transaction that sees all tables as they are at one moment.
        show: Called with the part that is finished.

    Yields:
        Each fault. Damaged documents are the last: everything else is derived from them.
    """
    state = read_published(session)
    reader = Tables(session, state, state.visible())
    passes = Passes(_PASSES, state.settings.chunks, show)
    try:
        check_documents(reader, passes)
    except IndexFormatError as error:
        yield Damage("tables", str(error), repairable=False)
        return
    differences = _compare(session, reader.ordered_row_ids(), passes)
    counted = reader.counted(state.settings)
    if counted != state.settings:
        yield Damage("table state", "it lists more or less than there is")
    if differences.wrong_texts:
        yield Damage("table lowered", f"the texts of {len(differences.wrong_texts):,} chunks are missing or wrong")
    if differences.missing_words:
        missing = {word for word, _ in differences.missing_words}
        yield Damage("table words", f"{len(missing):,} words are missing")
    if state.has_words and not _has_right_words(session, reader, state.visible(), passes):
        yield Damage("table word_segments", "it does not have the words of the chunks")
    indexes = missing_indexes(session, counted)
    if indexes:
        yield Damage("indexes", f"these are missing: {', '.join(indexes)}")


def _has_right_words(session: Session, reader: Tables, visible: str, passes: Passes) -> bool:
    row_ids = np.array(reader.ordered_row_ids(), dtype=np.int64)
    read = passes.counting(reader.texts_by_row_id)
    try:
        return all(is_right(segment, row_ids, read) for segment in read_segments(session, visible))
    except ValueError:
        return False


def _compare(session: Session, row_ids: Iterable[int], passes: Passes) -> _Differences:
    """Compare `lowered` and `words` with the texts of chunks."""
    wrong_texts: list[int] = []
    distinct: set[str] = set()
    for batch in batches(row_ids, _CHUNKS_PER_QUERY):
        rows = session.query(
            "SELECT number, text, lowered FROM contents LEFT JOIN lowered USING (number) WHERE number = ANY (?)",
            batch,
        )
        for row_id, text, lowered in rows:
            if lowered != searchable(text):
                wrong_texts.append(row_id)
            distinct.update(words(text))
        passes.add(len(batch))
    missing = set(word_rows(distinct))
    others: list[tuple[str, str]] = []
    for word, plain in session.stream("SELECT word, plain FROM words"):
        row = (word, plain)
        if row in missing:
            missing.remove(row)
        else:
            others.append(row)
    return _Differences(wrong_texts, sorted(missing), others)


def repair(session: Session, show: ShowShare | None = None) -> None:
    """Repair everything that is derived from the documents; see `IndexStore.repair`."""
    _drop_slow_indexes(session)
    with session.transaction():
        lock(session, "words")  # first, as writers do
        lock(session, "snapshot")
        state = read_published(session)
        reader = Tables(session, state, state.visible())
        passes = Passes(_PASSES, state.settings.chunks, show)
        check_documents(reader, passes)
        row_ids = [row_id for (row_id,) in session.query("SELECT number FROM contents")]
        _repair_rows(session, _compare(session, row_ids, passes))
        make_word_segments(session)
        session.execute("DELETE FROM word_segments")
        update_words(session, reader, ahead=0, passes=passes)
        settings = replace(reader.counted(state.settings), token=secrets.token_hex(16))  # readers open it again
        session.execute("UPDATE state SET token = ?, settings = ?", settings.token, settings.to_json())
    make_indexes(session, settings)


def _drop_slow_indexes(session: Session) -> None:
    """Drop the indexes of the texts if many texts are lost. Searches do without them until they are made again."""
    ((stored, lost),) = session.query(
        "SELECT count(*), count(*) FILTER (WHERE lowered.number IS NULL) FROM contents LEFT JOIN lowered USING (number)"
    )
    if lost > _MANY * stored:
        session.execute(f"DROP INDEX IF EXISTS {', '.join(TEXT_INDEXES)}")


def _repair_rows(session: Session, differences: _Differences) -> None:
    """Change those rows of `lowered` and `words` that are not what they should be."""
    session.execute(
        "DELETE FROM lowered WHERE NOT EXISTS (SELECT FROM contents WHERE contents.number = lowered.number)"
    )
    for batch in batches(differences.wrong_texts, _CHUNKS_PER_QUERY):
        session.execute("DELETE FROM lowered WHERE number = ANY (?)", batch)
        texts = session.query("SELECT number, text FROM contents WHERE number = ANY (?)", batch)
        lowered = [(row_id, searchable(text)) for row_id, text in texts]
        session.copy("lowered (number, lowered)", ["int8", "text"], lowered)
    session.execute(
        "DELETE FROM words WHERE (word, plain) IN (SELECT * FROM unnest(?::text[], ?::text[]))",
        *columns(differences.other_words, 2),
    )
    session.copy("words (word, plain)", ["text", "text"], differences.missing_words)
