"""Finds damage in an index in PostgreSQL, and makes again what is derived from the documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from arag.errors import IndexFormatError
from arag.retrieval.postgres.connection import Session
from arag.retrieval.postgres.draft import columns, word_rows
from arag.retrieval.postgres.schema import Tables, list_indexes, lock, make_indexes, missing_indexes, read_state
from arag.retrieval.storage import Damage, Settings, batches
from arag.retrieval.tables import parse_places
from arag.retrieval.text import searchable

_CHUNKS_AT_ONCE = 500
_MAX_NAMED = 10  # documents in a message


class _Report(NamedTuple):
    settings: Settings  # as they were published
    counted: Settings  # the same, with the counts of what is there
    lost: list[str]  # ids of documents that have lost a part
    texts: dict[int, str]  # missing or wrong in table `lowered`, by the chunks' numbers
    words: list[tuple[str, str]]  # missing in table `words`
    indexes: list[str]  # missing


def find_damage(session: Session) -> list[Damage]:
    """Look for damage in all tables, in a transaction that sees them as they are at one moment."""
    settings, counted, lost, texts, words, indexes = _check(session)
    if not settings.token:
        what = "the first ingestion was interrupted: run the same `arag ingest` again to finish it"
        return [Damage("table state", what, repairable=False)]
    damage = []
    if settings != counted and not lost:
        what = (
            f"it lists {settings.documents:,} documents, {settings.chunks:,} chunks and {settings.sentences:,} "
            f"sentences, and there are {counted.documents:,}, {counted.chunks:,} and {counted.sentences:,}"
        )
        damage.append(Damage("table state", what))
    if texts:
        damage.append(Damage("table lowered", f"the texts of {len(texts):,} chunks are missing or wrong"))
    if words:
        damage.append(Damage("table words", f"{len(words):,} words are missing"))
    if indexes:
        damage.append(Damage("indexes", f"these are missing: {', '.join(indexes)}"))
    if lost:
        damage.append(Damage("tables", _name_lost(lost), repairable=False))
    return damage


def repair(session: Session, on_written: Callable[[int, int], None] | None) -> None:
    """Make everything again that is derived from the documents; see `IndexStore.repair`."""
    with session.transaction():
        lock(session, "publication")
        report = _check(session)
        if report.lost:
            raise IndexFormatError(f"the index {session.location} is damaged: {_name_lost(report.lost)}")
        session.execute("DELETE FROM lowered WHERE number = ANY (?)", list(report.texts))
        session.copy("lowered (number, lowered)", ["int8", "text"], report.texts.items())
        session.copy("words (word, plain)", ["text", "text"], report.words)
        session.execute("UPDATE state SET settings = ?", report.counted.to_json())
    with session.transaction():
        lock(session, "indexes")
        for name in list_indexes(session, report.counted):
            session.execute(f"DROP INDEX IF EXISTS {name}")
    make_indexes(session, report.counted, on_written)


def _check(session: Session) -> _Report:
    state = read_state(session)
    reader = Tables(session, state, state.visible())
    chunks, documents = reader.chunks_table, reader.documents_table
    rows = session.query(
        f"SELECT coalesce(documents.id, document_id) FROM {documents} FULL JOIN (SELECT document_id, count(*) AS "
        f"there FROM {chunks} GROUP BY document_id) AS counted ON documents.id = document_id "
        "WHERE there IS DISTINCT FROM documents.chunks AND coalesce(there, documents.chunks) > 0 "
        f"UNION SELECT document_id FROM {chunks} LEFT JOIN sentences ON sentences.number = chunks.number "
        "GROUP BY chunks.number, document_id, chunks.sentences HAVING count(position) <> chunks.sentences "
        f"OR bool_or({state.vector}.vector_dims(embedding) <> ?)",
        state.settings.dimension,
    )
    lost = {document_id for (document_id,) in rows}
    texts: dict[int, str] = {}
    words: set[tuple[str, str]] = set()
    known: set[str] = set()
    for some in batches(session.query(f"SELECT number, document_id FROM {chunks} ORDER BY number"), _CHUNKS_AT_ONCE):
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
            elif lowered != searchable(text):
                texts[number] = searchable(text)
        new = word_rows([text for text, _, _ in contents.values()], known)
        known.update(word for word, form in new if form)
        missing = (
            "SELECT * FROM unnest(?::text[], ?::text[]) AS asked (word, plain) EXCEPT SELECT word, plain FROM words"
        )
        words.update(session.query(missing, *columns(new, 2)))
    counted = reader.counted(state.settings)
    missing_names = list(missing_indexes(session, counted))
    return _Report(state.settings, counted, sorted(lost), texts, sorted(words), missing_names)


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
