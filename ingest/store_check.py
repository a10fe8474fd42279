"""The chunk store looked through: what it does not hold as it was written, and what can be made of the rest."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from arag.retrieval.chunk_store import FOR_EVER, ChunkStore, checksum
from arag.retrieval.database import NO_WRITING, error_code, is_damage
from arag.retrieval.errors import DamagedFileError
from arag.retrieval.types import Section, Sentence


@dataclass(frozen=True, slots=True)
class Fault:
    """A chunk that the store does not hold as it was written.

    Attributes:
        number: The chunk's number.
        what: What is wrong with it, said of chunks.
        document_ids: The documents that it holds parts of.
        lost: Whether what was written is lost; else it stands elsewhere in the store.
        kept: Whether the chunk can still be read.
    """

    number: int
    what: str
    document_ids: tuple[str, ...]
    lost: bool
    kept: bool


class CheckedStore(ChunkStore):
    """A chunk store that can be looked through, and mended."""

    def rebuild_indexes(self) -> None:
        """Make all that SQLite finds rows by again from the rows."""
        with self._lock:
            self._connection.execute("REINDEX")

    def table_faults(self) -> Iterator[str]:
        """Yield what is wrong with the file itself: its pages, its tables, the table of words."""
        for (fault,) in self._query("PRAGMA integrity_check"):
            if fault != "ok":
                yield str(fault)
        with self._lock:
            try:
                self._connection.execute("INSERT INTO terms (terms, rank) VALUES ('integrity-check', 1)")
                self._connection.execute("SELECT term FROM vocabulary LIMIT 1")
            except sqlite3.DatabaseError as error:
                if is_damage(error):
                    yield f"the table of words does not fit the texts ({error})"
                elif error_code(error) not in NO_WRITING:  # who may not write cannot ask
                    raise

    def chunk_faults(self) -> Iterator[Fault]:
        """Yield the chunks, of any generation, that the store does not hold as they were written."""
        rows = self._pages(
            "SELECT chunks.number, document_id, embedded_sentences, CAST(sections AS BLOB), "
            "CAST(sentences AS BLOB), CAST(text AS BLOB), checksum, "
            "(SELECT json_group_array(members.document_id) FROM members WHERE members.number = chunks.number) "
            "FROM chunks LEFT JOIN contents ON contents.number = chunks.number WHERE true"
        )
        for number, document_id, embedded, sections, sentences, text, told, members in rows:
            known = set(json.loads(members))
            if text is None:
                yield Fault(number, "have no text", _sorted(known | {document_id}), lost=True, kept=False)
                continue
            parsed = _parsed(sections, sentences, text)
            named = {section.document_id for section in parsed[0]} if parsed else set()
            if checksum(sections, sentences, text) != told or parsed is None:
                whose = _sorted(known or named | {document_id})
                yield Fault(number, "are not as they were written", whose, lost=True, kept=parsed is not None)
            elif known != named or embedded != sum(sentence.embedded for sentence in parsed[1]):
                yield Fault(number, "are not entered as what they hold", _sorted(named), lost=False, kept=True)
        for number, sections in self._query(
            "SELECT rest.number, CAST(sections AS BLOB) FROM "
            "(SELECT number FROM contents UNION SELECT number FROM vectors UNION SELECT number FROM members) rest "
            "LEFT JOIN contents ON contents.number = rest.number WHERE rest.number NOT IN (SELECT number FROM chunks)"
        ):
            members = {row[0] for row in self._query("SELECT document_id FROM members WHERE number = ?", (number,))}
            parsed = _parsed(sections or b"", b"[]", b"")
            named = {section.document_id for section in parsed[0]} if parsed else set()
            yield Fault(number, "are lost but for a part", _sorted(members | named), lost=True, kept=False)

    def mend_chunks(self, faults: Iterable[Fault]) -> None:
        """Drop chunks that cannot be read, and leave the documents of what is lost to be ingested again."""
        with self.transaction():
            for fault in faults:
                if fault.kept:
                    self._enter_again(fault.number)
                else:
                    for table in ("contents", "vectors", "members", "chunks"):
                        self._connection.execute(f"DELETE FROM {table} WHERE number = ?", (fault.number,))
                if fault.lost:
                    self._connection.executemany(
                        "UPDATE documents SET fingerprint = '' WHERE id = ?", [(i,) for i in fault.document_ids]
                    )

    def without_entry(self) -> list[str]:
        """Return the ids of documents that have chunks and no entry."""
        rows = self._query(
            "SELECT DISTINCT members.document_id FROM members JOIN chunks ON chunks.number = members.number "
            f"WHERE removed = {FOR_EVER} "
            f"AND members.document_id NOT IN (SELECT id FROM documents WHERE removed = {FOR_EVER}) ORDER BY 1"
        )
        return [row[0] for row in rows]

    def enter_documents(self, document_ids: Iterable[str]) -> None:
        """Make entries, of which little is known, for documents that have none; they are to be ingested again."""
        with self.transaction():
            self._connection.executemany(
                "INSERT INTO documents (id, title, source, metadata, fingerprint, added) "
                "VALUES (?, '', '', '{}', '', 0)",
                [(i,) for i in document_ids],
            )

    def to_ingest_again(self) -> list[str]:
        """Return the ids of the documents of which something was lost."""
        rows = self._query(f"SELECT id FROM documents WHERE fingerprint = '' AND {self._seen} ORDER BY id")
        return [row[0] for row in rows]

    def _enter_again(self, number: int) -> None:
        """Make a chunk's entries again from what stands in its contents."""
        contents = self._connection.execute(
            "SELECT CAST(sections AS BLOB), CAST(sentences AS BLOB), CAST(text AS BLOB) FROM contents WHERE number = ?",
            (number,),
        ).fetchone()
        parsed = _parsed(*contents)
        if parsed is None:
            raise DamagedFileError(self.file, f"the chunk {number} cannot be read")
        sections, sentences = parsed
        self._connection.execute("UPDATE contents SET checksum = ? WHERE number = ?", (checksum(*contents), number))
        self._connection.execute(
            "UPDATE chunks SET embedded_sentences = ? WHERE number = ?",
            (sum(sentence.embedded for sentence in sentences), number),
        )
        self._connection.execute("DELETE FROM members WHERE number = ?", (number,))
        self._enter_members(number, sections)


def _parsed(sections: bytes, sentences: bytes, text: bytes) -> tuple[list[Section], list[Sentence]] | None:
    """Read a chunk's contents as they are stored, or return None where that is not possible."""
    try:
        length = len(text.decode())
        found = [Section(*values) for values in json.loads(sections)]
        cut = [Sentence(start, end, bool(flag)) for start, end, flag in json.loads(sentences)]
        whole = all(isinstance(s.document_id, str) and isinstance(s.title, str) for s in found)
        inside = all(0 <= s.start <= s.end <= length for s in cut)
    except (ValueError, TypeError):
        return None
    return (found, cut) if found and whole and inside else None


def _sorted(document_ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(document_ids))
