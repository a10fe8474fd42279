"""Finds damage in an index in PostgreSQL, and makes everything again that is derived from the documents."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from arag.errors import IndexFormatError
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.postgres.connection import Session
from arag.retrieval.storage.postgres.draft import columns, word_rows
from arag.retrieval.storage.postgres.schema import (
    Tables,
    lock,
    make_indexes,
    make_word_segments,
    missing_indexes,
    read_published,
)
from arag.retrieval.storage.postgres.words import read_segments, update_words
from arag.retrieval.storage.records import Damage
from arag.retrieval.storage.words.build import is_right
from arag.text.normalise import searchable

_CHUNKS_PER_QUERY = 500  # more take more memory, fewer more queries


def find_damage(session: Session) -> Iterator[Damage]:
    """Look for damage in all tables.

    Args:
        session: A session in a transaction that sees all tables as they are at one moment.

    Yields:
        Each fault. Damaged documents are the last: everything else is derived from them.
    """
    state = read_published(session)
    reader = Tables(session, state, state.visible())
    try:
        reader.check_documents()
    except IndexFormatError as error:
        yield Damage("tables", str(error), repairable=False)
        return
    wrong_texts = 0
    missing_words: set[str] = set()
    for row_ids in batches(reader.ordered_row_ids(), _CHUNKS_PER_QUERY):
        texts = session.query(
            "SELECT text, lowered FROM contents LEFT JOIN lowered USING (number) WHERE number = ANY (?)",
            row_ids,
        )
        wrong_texts += sum(lowered != searchable(text) for text, lowered in texts)
        missing_words |= _find_missing_words(session, (text for text, _ in texts))
    counted = reader.counted(state.settings)
    if counted != state.settings:
        yield Damage("table state", "it lists more or less than there is")
    if wrong_texts:
        yield Damage("table lowered", f"the texts of {wrong_texts:,} chunks are missing or wrong")
    if missing_words:
        yield Damage("table words", f"{len(missing_words):,} words are missing")
    if state.has_words and not _has_right_words(session, reader, state.visible()):
        yield Damage("table word_segments", "it does not have the words of the chunks")
    indexes = missing_indexes(session, counted)
    if indexes:
        yield Damage("indexes", f"these are missing: {', '.join(indexes)}")


def _has_right_words(session: Session, reader: Tables, visible: str) -> bool:
    row_ids = np.array(reader.ordered_row_ids(), dtype=np.int64)
    try:
        segments = read_segments(session, visible)
        return all(is_right(segment, row_ids, reader.texts_by_row_id) for segment in segments)
    except ValueError:
        return False


def _find_missing_words(session: Session, texts: Iterable[str]) -> set[str]:
    """Return the words of texts that table `words` lacks."""
    rows = session.query(
        "SELECT * FROM unnest(?::text[], ?::text[]) AS asked (word, plain) EXCEPT SELECT word, plain FROM words",
        *columns(word_rows(texts), 2),
    )
    return {word for word, _ in rows}


def repair(session: Session) -> None:
    """Make everything again that is derived from the documents; see `IndexStore.repair`."""
    with session.transaction():
        lock(session, "words")  # first, as writers do
        lock(session, "snapshot")
        state = read_published(session)
        reader = Tables(session, state, state.visible())
        reader.check_documents()
        settings = replace(reader.counted(state.settings), token=secrets.token_hex(16))  # readers open it again
        make_word_segments(session)
        session.execute("DELETE FROM lowered; DELETE FROM words; DELETE FROM word_segments")
        words: set[tuple[str, str]] = set()
        row_ids = [row_id for (row_id,) in session.query("SELECT number FROM contents")]
        for batch in batches(row_ids, _CHUNKS_PER_QUERY):
            texts = session.query("SELECT number, text FROM contents WHERE number = ANY (?)", batch)
            lowered = [(row_id, searchable(text)) for row_id, text in texts]
            session.copy("lowered (number, lowered)", ["int8", "text"], lowered)
            words.update(word_rows(text for _, text in texts))
        session.copy("words (word, plain)", ["text", "text"], sorted(words))
        update_words(session, reader, ahead=0)
        session.execute("UPDATE state SET token = ?, settings = ?", settings.token, settings.to_json())
    make_indexes(session, settings)
