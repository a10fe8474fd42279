"""Finds damage in an index in PostgreSQL, and makes again what is derived from the documents."""

from __future__ import annotations

from collections.abc import Iterator

from arag.errors import IndexFormatError
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.postgres.connection import Session
from arag.retrieval.storage.postgres.draft import columns, word_rows
from arag.retrieval.storage.postgres.schema import Tables, lock, make_indexes, missing_indexes, read_published
from arag.retrieval.storage.records import Damage
from arag.text.normalise import searchable

_CHUNKS_AT_ONCE = 500


def find_damage(session: Session) -> Iterator[Damage]:
    """Look for damage in all tables, in a transaction that sees them as they are at one moment."""
    state = read_published(session)
    reader = Tables(session, state, state.visible())
    try:
        reader.check_documents()
    except IndexFormatError as error:
        yield Damage("tables", str(error), repairable=False)
        return
    wrong, missing = 0, set[str]()
    for some in batches(reader.numbers_by_id(), _CHUNKS_AT_ONCE):
        texts = session.query(
            "SELECT text, lowered FROM contents LEFT JOIN lowered USING (number) WHERE number = ANY (?)", some
        )
        wrong += sum(lowered != searchable(text) for text, lowered in texts)
        words = columns(word_rows(text for text, _ in texts), 2)
        asked = "SELECT * FROM unnest(?::text[], ?::text[]) AS asked (word, plain) EXCEPT SELECT word, plain FROM words"
        missing.update(word for word, _ in session.query(asked, *words))
    counted = reader.counted(state.settings)
    if counted != state.settings:
        yield Damage("table state", "it lists more or less than there is")
    if wrong:
        yield Damage("table lowered", f"the texts of {wrong:,} chunks are missing or wrong")
    if missing:
        yield Damage("table words", f"{len(missing):,} words are missing")
    if indexes := missing_indexes(session, counted):
        yield Damage("indexes", f"these are missing: {', '.join(indexes)}")


def repair(session: Session) -> None:
    """Make everything again that is derived from the documents; see `IndexStore.repair`."""
    with session.transaction():
        lock(session, "publication")
        state = read_published(session)
        reader = Tables(session, state, state.visible())
        reader.check_documents()
        settings = reader.counted(state.settings)
        session.execute("DELETE FROM lowered; DELETE FROM words")
        words: set[tuple[str, str]] = set()
        numbers = [number for (number,) in session.query("SELECT number FROM contents")]
        for some in batches(numbers, _CHUNKS_AT_ONCE):
            texts = session.query("SELECT number, text FROM contents WHERE number = ANY (?)", some)
            session.copy("lowered (number, lowered)", ["int8", "text"], ((n, searchable(text)) for n, text in texts))
            words.update(word_rows(text for _, text in texts))
        session.copy("words (word, plain)", ["text", "text"], sorted(words))
        session.execute("UPDATE state SET settings = ?", settings.to_json())
    make_indexes(session, settings)
