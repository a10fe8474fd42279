"""The source of truth: documents and full chunks in one SQLite file, as a LangChain key-value store."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.stores import BaseStore

from arag.retrieval.errors import IndexFormatError
from arag.retrieval.types import Chunk, Section, Sentence

FILE_NAME = "chunks.sqlite3"

# `terms` is not what keywords are matched in (the paper matches them in the chunk texts): it only knows which
# words the corpus holds, so that a keyword without a hit can be answered with the closest terms.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    source TEXT NOT NULL,
    metadata TEXT NOT NULL,
    fingerprint TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS documents_by_title ON documents (title COLLATE NOCASE);
CREATE TABLE IF NOT EXISTS chunks (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    document_id TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    text TEXT NOT NULL,
    sections TEXT NOT NULL,
    sentences TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    first_page INTEGER,
    last_page INTEGER,
    embedded_sentences INTEGER NOT NULL,
    pending INTEGER NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS chunks_by_place ON chunks (document_id, ordinal);
CREATE INDEX IF NOT EXISTS chunks_pending ON chunks (number) WHERE pending;
CREATE TABLE IF NOT EXISTS members (
    document_id TEXT NOT NULL,
    chunk_id TEXT NOT NULL,
    PRIMARY KEY (document_id, chunk_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS members_by_chunk ON members (chunk_id);
CREATE TABLE IF NOT EXISTS stale_sentences (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS terms USING fts5 (
    text, content='chunks', content_rowid='number', tokenize='unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE IF NOT EXISTS vocabulary USING fts5vocab (terms, row);
CREATE TRIGGER IF NOT EXISTS chunk_added AFTER INSERT ON chunks BEGIN
    INSERT INTO terms (rowid, text) VALUES (new.number, new.text);
END;
CREATE TRIGGER IF NOT EXISTS chunk_removed AFTER DELETE ON chunks BEGIN
    INSERT INTO terms (terms, rowid, text) VALUES ('delete', old.number, old.text);
END;
"""

_COLUMNS = "id, document_id, ordinal, text, sections, sentences, tokens, first_page, last_page"
_MARKED = re.compile("\x02(.*?)\x03", re.DOTALL)
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_IDS_PER_QUERY = 500  # SQLite bounds the variables of a statement


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document's entry in the store; its text is in its chunks.

    Attributes:
        id: The document's id.
        title: Its title, or an empty string.
        source: Where it was read from.
        metadata: Further fields, as a JSON object.
        fingerprint: Changes when the document, or a setting that its chunks depend on, changes.
    """

    id: str
    title: str
    source: str
    metadata: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """Totals over the store.

    Attributes:
        documents: Number of documents.
        chunks: Number of chunks.
        sentences: Number of sentences that have a vector, or will have.
        tokens: Tokens of all chunks.
    """

    documents: int
    chunks: int
    sentences: int
    tokens: int


def sentence_id(chunk_id: str, position: int) -> str:
    """Return the id under which a sentence's vector is kept."""
    return f"{chunk_id}#{position}"


class ChunkStore(BaseStore[str, Chunk]):
    """Full chunks by id, with their documents.

    One connection serves all threads, one at a time; the file is in write-ahead mode, so that readers in other
    processes are not held up by a writer.

    Args:
        folder: The index's folder.
        create: Whether to create the file where there is none.

    Raises:
        IndexFormatError: The file is missing or is no such store.
    """

    def __init__(self, folder: Path, *, create: bool = False) -> None:
        self.file = folder / FILE_NAME
        if not create and not self.file.exists():
            raise IndexFormatError(f"{self.file} is missing: the index is incomplete; ingest the documents again")
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(self.file, check_same_thread=False, isolation_level=None, timeout=30)
        try:
            if create:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.executescript(_SCHEMA)
            self._connection.execute("SELECT count(*) FROM chunks WHERE pending").fetchone()
            self._inode = self.file.stat().st_ino
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise IndexFormatError(f"{self.file} cannot be read: {error}") from error

    def was_replaced(self) -> bool:
        """Tell whether the file that is open here is no longer the one in the folder."""
        try:
            return self.file.stat().st_ino != self._inode
        except FileNotFoundError:
            return True

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    # --- LangChain's key-value interface ---

    def mget(self, keys: Sequence[str]) -> list[Chunk | None]:
        """Return the chunks with these ids, None for those that are not there."""
        found: dict[str, Chunk] = {}
        unique = list(dict.fromkeys(keys))
        for some in _slices(unique):
            marks = ",".join("?" * len(some))
            for row in self._query(f"SELECT {_COLUMNS} FROM chunks WHERE id IN ({marks})", some):
                found[row[0]] = _chunk(row)
        return [found.get(key) for key in keys]

    def mset(self, key_value_pairs: Sequence[tuple[str, Chunk]]) -> None:
        """Add chunks, replacing those with the same ids; they wait for their vectors.

        Raises:
            ValueError: A key is not its chunk's id.
        """
        with self.transaction():
            for key, chunk in key_value_pairs:
                if key != chunk.id:
                    raise ValueError(f"the key {key!r} is not the id of its chunk, {chunk.id!r}")
                self._delete_chunk(key)
                self._insert_chunk(chunk)

    def mdelete(self, keys: Sequence[str]) -> None:
        """Delete the chunks with these ids; their vectors are marked as stale."""
        with self.transaction():
            for key in keys:
                self._delete_chunk(key)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yield the ids of all chunks, or of those that begin with a prefix, in the order of ingestion."""
        for row in self._pages("SELECT number, id FROM chunks"):
            if prefix is None or row[1].startswith(prefix):
                yield row[1]

    # --- reading ---

    def yield_texts(self) -> Iterator[tuple[str, str]]:
        """Yield id and text of every chunk, in the order of ingestion."""
        for row in self._pages("SELECT number, id, text FROM chunks"):
            yield row[1], row[2]

    def neighbours(self, chunk: Chunk, reach: int) -> list[Chunk]:
        """Return a chunk and those up to `reach` before and after it in its document, in order."""
        if reach == 0:
            return [chunk]
        rows = self._query(
            f"SELECT {_COLUMNS} FROM chunks WHERE document_id = ? AND ordinal BETWEEN ? AND ? ORDER BY ordinal",
            (chunk.document_id, chunk.ordinal - reach, chunk.ordinal + reach),
        )
        return [_chunk(row) for row in rows]

    def chunks_in_document(self, document_id: str) -> int:
        """Return how many chunks start in a document."""
        return int(self._query("SELECT count(*) FROM chunks WHERE document_id = ?", (document_id,))[0][0])

    def documents(self) -> Iterator[DocumentRecord]:
        """Yield all documents, by id."""
        for row in self._query("SELECT id, title, source, metadata, fingerprint FROM documents ORDER BY id"):
            yield DocumentRecord(*row)

    def document(self, document_id: str) -> DocumentRecord | None:
        """Return a document's entry, or None."""
        rows = self._query(
            "SELECT id, title, source, metadata, fingerprint FROM documents WHERE id = ?", (document_id,)
        )
        return DocumentRecord(*rows[0]) if rows else None

    def fingerprints(self, document_ids: Sequence[str]) -> dict[str, str]:
        """Return the fingerprints of those documents that are there."""
        found: dict[str, str] = {}
        for some in _slices(document_ids):
            marks = ",".join("?" * len(some))
            found.update(self._query(f"SELECT id, fingerprint FROM documents WHERE id IN ({marks})", some))
        return found

    def chunks_of(self, document_ids: Sequence[str]) -> list[Chunk]:
        """Return every chunk that holds a part of one of these documents, each once, in order."""
        numbered: dict[int, Chunk] = {}
        columns = ", ".join(f"c.{name}" for name in _COLUMNS.split(", "))
        for some in _slices(document_ids):
            marks = ",".join("?" * len(some))
            rows = self._query(
                f"SELECT {columns}, c.number FROM members m JOIN chunks c ON c.id = m.chunk_id "
                f"WHERE m.document_id IN ({marks})",
                some,
            )
            numbered.update({row[-1]: _chunk(row) for row in rows})
        return [numbered[number] for number in sorted(numbered)]

    def counts(self) -> StoreCounts:
        """Count documents, chunks, sentences and tokens."""
        documents = self._query("SELECT count(*) FROM documents")[0][0]
        chunks, sentences, tokens = self._query(
            "SELECT count(*), coalesce(sum(embedded_sentences), 0), coalesce(sum(tokens), 0) FROM chunks"
        )[0]
        return StoreCounts(documents, chunks, sentences, tokens)

    def phrase_matches(self, expression: str, limit: int) -> list[str]:
        """Return what an FTS5 phrase matches in the chunks, as it is spelled there.

        Spelling differences that the tokenizer does not see (case, diacritics, hyphens, spaces, punctuation) do
        not matter to the match.

        Args:
            expression: A query in FTS5's syntax, of quoted phrases.
            limit: How many chunks to look at.
        """
        rows = self._query(
            "SELECT highlight(terms, 0, char(2), char(3)) FROM terms WHERE terms MATCH ? LIMIT ?",
            (expression, limit),
        )
        return [spelled for (marked,) in rows for spelled in dict.fromkeys(_MARKED.findall(marked))]

    def titled(self, title: str, limit: int) -> list[tuple[str, str]]:
        """Return id and title of documents with a title, in any case, or with that title and a note in brackets."""
        return self._query(
            "SELECT id, title FROM documents WHERE title = ?1 COLLATE NOCASE "
            "OR (title >= ?1 || ' (' COLLATE NOCASE AND title < ?1 || ' )' COLLATE NOCASE) ORDER BY title, id LIMIT ?2",
            (title, limit),
        )

    def words(self, shortest: int, longest: int) -> list[str]:
        """Return the corpus' words (lower case, without diacritics) of a length between two bounds."""
        return [
            row[0]
            for row in self._query(
                "SELECT term FROM vocabulary WHERE length(term) BETWEEN ? AND ?", (shortest, longest)
            )
        ]

    def holds_word(self, word: str) -> bool:
        """Tell whether a word (lower case, without diacritics) is in the corpus."""
        return bool(self._query("SELECT 1 FROM vocabulary WHERE term = ?", (word,)))

    # --- writing ---

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all writes inside one transaction: all of them last, or none."""
        with self._lock:
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def add_documents(self, documents: Iterable[DocumentRecord]) -> None:
        """Add documents' entries."""
        with self.transaction():
            self._connection.executemany(
                "INSERT INTO documents (id, title, source, metadata, fingerprint) VALUES (?, ?, ?, ?, ?)",
                [(d.id, d.title, d.source, d.metadata, d.fingerprint) for d in documents],
            )

    def set_sources(self, sources: Mapping[str, str]) -> None:
        """Note where documents were read from, by their ids."""
        with self.transaction():
            self._connection.executemany(
                "UPDATE documents SET source = ?1 WHERE id = ?2 AND source <> ?1",
                [(source, document_id) for document_id, source in sources.items()],
            )

    def remove_documents(self, document_ids: Iterable[str]) -> None:
        """Remove documents' entries; their chunks are the caller's to delete or rewrite."""
        with self.transaction():
            self._connection.executemany("DELETE FROM documents WHERE id = ?", [(i,) for i in document_ids])

    def pending_chunks(self, limit: int) -> list[Chunk]:
        """Return chunks whose vectors are not written yet."""
        rows = self._query(f"SELECT {_COLUMNS} FROM chunks WHERE pending ORDER BY number LIMIT ?", (limit,))
        return [_chunk(row) for row in rows]

    def mark_embedded(self, chunk_ids: Iterable[str]) -> None:
        """Note that the vectors of these chunks are written."""
        with self.transaction():
            self._connection.executemany("UPDATE chunks SET pending = 0 WHERE id = ?", [(i,) for i in chunk_ids])

    def written_sentences(self) -> int:
        """Count the sentences whose vectors should be in Chroma."""
        return int(self._query("SELECT coalesce(sum(embedded_sentences), 0) FROM chunks WHERE NOT pending")[0][0])

    def mark_all_pending(self) -> None:
        """Note that all vectors are to be written again."""
        with self.transaction():
            self._connection.execute("UPDATE chunks SET pending = 1")

    def stale_sentences(self) -> list[str]:
        """Return the ids of vectors that belong to no chunk any more and are to be deleted."""
        return [row[0] for row in self._query("SELECT id FROM stale_sentences ORDER BY id")]

    def forget_stale(self, sentence_ids: Iterable[str]) -> None:
        """Note that these vectors are deleted."""
        with self.transaction():
            self._connection.executemany("DELETE FROM stale_sentences WHERE id = ?", [(i,) for i in sentence_ids])

    def _insert_chunk(self, chunk: Chunk) -> None:
        embedded = sum(sentence.embedded for sentence in chunk.sentences)
        first_page, last_page = chunk.pages or (None, None)
        self._connection.execute(
            f"INSERT INTO chunks ({_COLUMNS}, embedded_sentences, pending) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)",
            (
                chunk.id,
                chunk.document_id,
                chunk.ordinal,
                chunk.text,
                _dump([[s.document_id, s.title, s.start, s.end, s.whole] for s in chunk.sections]),
                _dump([[s.start, s.end, int(s.embedded)] for s in chunk.sentences]),
                chunk.tokens,
                first_page,
                last_page,
                embedded,
            ),
        )
        self._connection.executemany(
            "INSERT OR IGNORE INTO members (document_id, chunk_id) VALUES (?, ?)",
            [(section.document_id, chunk.id) for section in chunk.sections],
        )
        # A vector with one of these ids is about to be overwritten: it is not stale any more.
        self._connection.executemany(
            "DELETE FROM stale_sentences WHERE id = ?",
            [(sentence_id(chunk.id, i),) for i, s in enumerate(chunk.sentences) if s.embedded],
        )

    def _delete_chunk(self, chunk_id: str) -> None:
        rows = self._connection.execute("SELECT sentences FROM chunks WHERE id = ?", (chunk_id,)).fetchall()
        if not rows:
            return
        stale = [(sentence_id(chunk_id, i),) for i, (_, _, embedded) in enumerate(json.loads(rows[0][0])) if embedded]
        self._connection.executemany("INSERT OR IGNORE INTO stale_sentences (id) VALUES (?)", stale)
        self._connection.execute("DELETE FROM members WHERE chunk_id = ?", (chunk_id,))
        self._connection.execute("DELETE FROM chunks WHERE id = ?", (chunk_id,))

    def _query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._connection.execute(sql, parameters).fetchall()

    def _pages(self, select: str, size: int = 2_000) -> Iterator[tuple[Any, ...]]:
        """Yield rows page by page, so that no cursor stays open while the caller works."""
        last = -1
        while rows := self._query(f"{select} WHERE number > ? ORDER BY number LIMIT ?", (last, size)):
            yield from rows
            last = rows[-1][0]


def _chunk(row: Sequence[Any]) -> Chunk:
    chunk_id, document_id, ordinal, text, sections, sentences, tokens, first_page, last_page = row[:9]
    return Chunk(
        id=chunk_id,
        document_id=document_id,
        ordinal=ordinal,
        text=text,
        sections=tuple(Section(*values) for values in json.loads(sections)),
        sentences=tuple(Sentence(start, end, bool(flag)) for start, end, flag in json.loads(sentences)),
        tokens=tokens,
        pages=(first_page, last_page) if first_page is not None else None,
    )


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _slices(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    # A model may send half a surrogate pair: no id holds one, and SQLite refuses it.
    known = [key for key in keys if _HALF_PAIR.search(key) is None]
    for start in range(0, len(known), _IDS_PER_QUERY):
        yield known[start : start + _IDS_PER_QUERY]
