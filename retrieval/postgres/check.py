"""Finds damage in an index in PostgreSQL, and makes again what is derived from the documents."""

from __future__ import annotations

from collections.abc import Sequence

from arag.errors import IndexFormatError
from arag.retrieval.postgres.connection import Session
from arag.retrieval.postgres.draft import columns, word_rows
from arag.retrieval.postgres.schema import State, Tables, list_indexes, lock, make_indexes, missing_indexes, read_state
from arag.retrieval.storage import Damage, batches
from arag.retrieval.tables import parse_places
from arag.retrieval.text import searchable

_CHUNKS_AT_ONCE = 500
_MAX_NAMED = 10  # documents in a message


def find_damage(session: Session) -> list[Damage]:
    """Look for damage in all tables, in a transaction that sees them as they are at one moment."""
    state = read_state(session)
    settings = state.settings
    if not settings.token:
        what = "the first ingestion was interrupted: run the same `arag ingest` again to finish it"
        return [Damage("table state", what, repairable=False)]
    reader = Tables(session, state, state.visible())
    lost = _find_incomplete(session, state, reader)
    wrong, missing = 0, set[str]()
    numbers = session.query(f"SELECT number, document_id FROM {reader.chunks_table} ORDER BY number")
    for some in batches(numbers, _CHUNKS_AT_ONCE):
        rows = session.query(
            "SELECT contents.number, text, places, lowered FROM contents "
            "LEFT JOIN lowered ON lowered.number = contents.number WHERE contents.number = ANY (?)",
            [number for number, _ in some],
        )
        contents = {number: values for number, *values in rows}
        for number, document_id in some:
            text, places, lowered = contents.get(number, ("", "", ""))
            if not _is_readable(places, text):
                lost.add(document_id)
            wrong += lowered != searchable(text)
        words = columns(word_rows(text for text, _, _ in contents.values()), 2)
        asked = "SELECT * FROM unnest(?::text[], ?::text[]) AS asked (word, plain) EXCEPT SELECT word, plain FROM words"
        missing.update(word for word, _ in session.query(asked, *words))
    if lost:
        return [Damage("tables", _name_lost(sorted(lost)), repairable=False)]
    counted = reader.counted(settings)
    damage = []
    if settings != counted:
        damage.append(Damage("table state", "it lists more or less than there is"))
    if wrong:
        damage.append(Damage("table lowered", f"the texts of {wrong:,} chunks are missing or wrong"))
    if missing:
        damage.append(Damage("table words", f"{len(missing):,} words are missing"))
    if indexes := missing_indexes(session, counted):
        damage.append(Damage("indexes", f"these are missing: {', '.join(indexes)}"))
    return damage


def repair(session: Session) -> None:
    """Make everything again that is derived from the documents; see `IndexStore.repair`."""
    with session.transaction():
        lock(session, "publication")
        for damage in find_damage(session):
            if not damage.repairable:
                raise IndexFormatError(f"the index {session.location} is damaged: {damage.what}")
        state = read_state(session)
        settings = Tables(session, state, state.visible()).counted(state.settings)
        session.execute("DELETE FROM lowered; DELETE FROM words")
        words: set[tuple[str, str]] = set()
        numbers = [number for (number,) in session.query("SELECT number FROM contents")]
        for some in batches(numbers, _CHUNKS_AT_ONCE):
            texts = session.query("SELECT number, text FROM contents WHERE number = ANY (?)", some)
            session.copy("lowered (number, lowered)", ["int8", "text"], ((n, searchable(text)) for n, text in texts))
            words.update(word_rows(text for _, text in texts))
        session.copy("words (word, plain)", ["text", "text"], sorted(words))
        session.execute("UPDATE state SET settings = ?", settings.to_json())
    with session.transaction():
        lock(session, "indexes")
        for name in list_indexes(session, settings):
            session.execute(f"DROP INDEX IF EXISTS {name}")
    make_indexes(session, settings)


def _find_incomplete(session: Session, state: State, reader: Tables) -> set[str]:
    """Return the documents that lack chunks or vectors."""
    rows = session.query(
        f"SELECT coalesce(documents.id, document_id) FROM {reader.documents_table} FULL JOIN (SELECT document_id, "
        f"count(*) AS there FROM {reader.chunks_table} GROUP BY document_id) AS counted ON documents.id = document_id "
        "WHERE there IS DISTINCT FROM documents.chunks AND coalesce(there, documents.chunks) > 0 "
        f"UNION SELECT document_id FROM {reader.chunks_table} LEFT JOIN sentences ON sentences.number = chunks.number "
        "GROUP BY chunks.number, document_id, chunks.sentences HAVING count(position) <> chunks.sentences "
        f"OR bool_or({state.vector}.vector_dims(embedding) <> ?)",
        state.settings.dimension,
    )
    return {document_id for (document_id,) in rows}


def _is_readable(places: str, text: str) -> bool:
    try:
        sentences = parse_places(places)
    except (ValueError, TypeError, LookupError):
        return False
    return all(0 <= sentence.start <= sentence.end <= len(text) for sentence in sentences)


def _name_lost(lost: Sequence[str]) -> str:
    more = f" and {len(lost) - _MAX_NAMED:,} others" if len(lost) > _MAX_NAMED else ""
    return (
        f"documents have lost a part ({', '.join(lost[:_MAX_NAMED])}{more}): remove these and ingest them again, or "
        "ingest all into another index"
    )
