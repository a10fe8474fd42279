"""The next snapshot of an index in a folder, being written.

It is a copy of the index's file, made at the first change. To publish it, all derived files are written, and then one
`os.replace` puts it in the place of the index's file. If a run was killed, the next one continues its draft.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np

from arag.errors import IndexFormatError
from arag.retrieval.storage.contract import Draft
from arag.retrieval.storage.folder.chroma_draft import EmbeddedChunk, NextVectorIndex
from arag.retrieval.storage.folder.derived import delete_others, keyword_file, words_file
from arag.retrieval.storage.folder.sqlite import DRAFT_FILE, INDEX_FILE, SCHEMA, Database, connect, name_write_failures
from arag.retrieval.storage.folder.view import FolderView
from arag.retrieval.storage.folder.words import write_words
from arag.retrieval.storage.keywords import write_keywords
from arag.retrieval.storage.records import EmbeddedDocument, Settings, Vectors
from arag.retrieval.storage.rows import CHUNK_COLUMNS, DOCUMENT_COLUMNS, MAX_WORD_CHARACTERS, chunk_row, format_places
from arag.retrieval.types import Chunk
from arag.system.files import delete, publish_path, sync_path
from arag.text.normalise import plain, words

_DATABASE_SUFFIXES = ("", "-wal", "-shm", "-journal")  # of the files that SQLite keeps for a database
_UNFINISHED_SUFFIX = ".new"


class FolderDraft(Database, Draft):
    """The next snapshot of an index in a folder; use `FolderStore.draft` to get one."""

    def __init__(self, folder: Path, published: FolderView | None, begin: Callable[[], Settings]) -> None:
        self._folder = folder
        self._published = published
        self._draft = folder / DRAFT_FILE
        self._graph = NextVectorIndex(folder, published)
        kept = self._open_kept()
        self._is_writing = kept is not None or published is None
        if kept is not None:
            super().__init__(kept, self._draft)
        elif published is None:
            _begin(self._draft, begin())
            super().__init__(_open(self._draft), self._draft)
        else:
            super().__init__(published.connection, folder / INDEX_FILE)
        if published is not None:
            self.settings = published.settings

    def close(self) -> None:
        """Close the files. The draft is kept for the next run unless it was published."""
        self._graph.close()
        if self._is_writing:
            self.connection.close()
        if self._published is not None:
            self._published.close()

    def _store(self, documents: Sequence[EmbeddedDocument]) -> None:
        self._begin_writing()
        with self._transaction():
            self._delete([document.record.id for document in documents])
            embedded_chunks: list[EmbeddedChunk] = []
            for document in documents:
                embedded_chunks += self._insert(document)
            new_words = _word_rows(chunk.text for _, chunk, _ in embedded_chunks)
            self.connection.executemany("INSERT OR IGNORE INTO words VALUES (?, ?)", new_words)
        self._graph.add(embedded_chunks)

    def remove(self, document_ids: Collection[str]) -> None:
        if not self.fingerprints(document_ids):
            return
        self._begin_writing()
        with self._transaction():
            self._delete(document_ids)

    def _update_sources(self, sources: Mapping[str, str]) -> None:
        self._begin_writing()
        changes = [(source, document_id) for document_id, source in sources.items()]
        with self._transaction():
            self.connection.executemany("UPDATE documents SET source = ? WHERE id = ?", changes)

    def unpublished(self) -> set[str]:
        last_published = 0
        if self._published is not None:
            ((last_published,),) = self._published.query("SELECT coalesce(max(number), 0) FROM chunks")
        # Row ids grow, so chunks that were stored later have larger ones.
        rows = self.query("SELECT DISTINCT document_id FROM chunks WHERE number > ?", last_published)
        return {document_id for (document_id,) in rows}

    def publish(self, settings: Settings, *, rebuild: bool = False) -> Settings:
        """Let readers see the changes; see `Draft.publish`.

        Args:
            settings: The settings of the snapshot, without token and counts.
            rebuild: Whether to make everything again that is derived from the documents, even if nothing has changed.

        Returns:
            The settings with token and counts.
        """
        token = secrets.token_hex(16)
        new = self.counted(replace(settings, token=token))
        has_changed = self._is_writing or new != replace(self.settings, token=token)
        if not has_changed and not rebuild:
            return self.settings
        self._begin_writing()
        with self._transaction():
            self.connection.execute("UPDATE settings SET value = ?", (new.to_json(),))
        with name_write_failures(self._folder):
            write_keywords(keyword_file(self._folder, token), (text for _, text in self.chunk_texts()))
            words_before = None
            if self._published is not None and not rebuild:
                words_before = words_file(self._folder, self._published.settings.token)
            write_words(words_file(self._folder, token), self, words_before)
            self._graph.publish(self, new, rebuild=rebuild)
            self._finish_file()
            publish_path(self._draft, self._folder / INDEX_FILE)
            delete_others(self._folder, token)
        self.settings = new
        return new

    def _open_kept(self) -> sqlite3.Connection | None:
        """Open the draft of a killed run, if it was made from the last snapshot; else delete it."""
        _delete_database(_beside(self._draft, _UNFINISHED_SUFFIX))
        delete(_beside(self._draft, "-journal"))  # ours would only hold the change of the journal's mode
        has_links = any(_beside(self._draft, suffix).is_symlink() for suffix in ("", "-wal", "-shm"))
        if self._draft.is_file() and not has_links:
            with suppress(IndexFormatError), ExitStack() as stack:
                connection = stack.enter_context(closing(_open(self._draft)))
                if self._can_continue(Database(connection, self._draft)):
                    stack.pop_all()  # it stays open
                    return connection
        _delete_database(self._draft)
        return None

    def _can_continue(self, draft: Database) -> bool:
        """Return whether a draft is sound, and was made from the last snapshot."""
        token = self._published.settings.token if self._published is not None else ""
        is_sound = draft.query("PRAGMA quick_check(1)") == [("ok",)]
        return is_sound and draft.query("SELECT previous FROM settings") == [(token,)]

    def _begin_writing(self) -> None:
        """Copy the last snapshot, unless there is a copy already."""
        if self._is_writing:
            return
        with name_write_failures(self._folder), _made_whole(self._draft) as unfinished:
            self.connection.execute("VACUUM INTO ?", (str(unfinished),))
            with closing(connect(unfinished, writing=True)) as connection:
                connection.execute("UPDATE settings SET previous = ?", (self.settings.token,))
        self.connection = _open(self._draft)
        self._file = self._draft
        self._is_writing = True

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, name_write_failures(self._folder):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:  # a full disk has rolled back by itself
                    self.connection.execute("ROLLBACK")
                raise

    def _delete(self, document_ids: Collection[str]) -> None:
        condition, value = self.among("document_id", document_ids)
        row_ids = self.query(f"SELECT number FROM chunks WHERE {condition}", value)
        for table in ("contents", "vectors", "chunks"):
            self.connection.executemany(f"DELETE FROM {table} WHERE number = ?", row_ids)
        ids = [(document_id,) for document_id in document_ids]
        self.connection.executemany("DELETE FROM documents WHERE id = ?", ids)

    def _insert(self, document: EmbeddedDocument) -> Iterator[EmbeddedChunk]:
        """Insert a document's rows; yield its chunks with their row ids."""
        self.connection.execute(
            f"INSERT INTO documents ({DOCUMENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
            astuple(document.record),
        )
        for chunk, vectors in zip(document.chunks, document.vectors, strict=True):
            yield self._insert_chunk(chunk, vectors), chunk, vectors

    def _insert_chunk(self, chunk: Chunk, vectors: Vectors) -> int:
        """Insert a chunk's rows, and return its row id."""
        inserted = self.connection.execute(
            f"INSERT INTO chunks ({CHUNK_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
            chunk_row(chunk),
        )
        row_id = inserted.lastrowid or 0
        self.connection.execute(
            "INSERT INTO contents VALUES (?, ?, ?)",
            (row_id, chunk.text, format_places(chunk.sentences)),
        )
        rows = np.full((len(chunk.sentences), self.settings.dimension), np.nan, dtype=np.float16)
        rows[chunk.embedded_positions()] = vectors
        self.connection.execute("INSERT INTO vectors VALUES (?, ?)", (row_id, rows.tobytes()))
        return row_id

    def _finish_file(self) -> None:
        """Write everything into the draft's file itself, and sync it."""
        ((busy, *_),) = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        ((mode,),) = self.connection.execute("PRAGMA journal_mode = DELETE").fetchall()
        if busy or mode != "delete":
            raise sqlite3.OperationalError("another process has opened the draft")
        self.connection.close()
        sync_path(self._draft)


def _word_rows(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return the rows of table `words` for texts, in order: each word and its plain form."""
    distinct: set[str] = set()
    for text in texts:
        distinct.update(words(text))
    return [(word, plain(word)) for word in sorted(distinct) if len(word) <= MAX_WORD_CHARACTERS]


@contextmanager
def _made_whole(file: Path) -> Iterator[Path]:
    """Yield a name for a database to be written under. When it is complete, it gets the name of the file."""
    unfinished = _beside(file, _UNFINISHED_SUFFIX)
    try:
        yield unfinished
        sync_path(unfinished)
        publish_path(unfinished, file)
    except BaseException:
        _delete_database(unfinished)
        raise


def _begin(file: Path, settings: Settings) -> None:
    """Make the file of an index without documents."""
    with _made_whole(file) as unfinished, closing(sqlite3.connect(unfinished)) as connection:
        connection.executescript(SCHEMA)
        connection.execute("INSERT INTO settings VALUES (?, '')", (settings.to_json(),))
        connection.commit()


def _open(file: Path) -> sqlite3.Connection:
    """Open a draft."""
    connection = connect(file, writing=True)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA secure_delete = ON")  # removed texts must not stay in the published file
    return connection


def _delete_database(file: Path) -> None:
    for suffix in _DATABASE_SUFFIXES:
        delete(_beside(file, suffix))


def _beside(file: Path, suffix: str) -> Path:
    return file.with_name(f"{file.name}{suffix}")
