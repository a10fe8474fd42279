"""The next publication of an index in a folder, being written.

It is a copy of the index's file, made when the first change comes. A publication is one `os.replace` of the index's
file by it, after everything derived has been written. A draft that a killed run has left is continued.
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
from arag.retrieval.storage.contract import Draft, EmbeddedDocument, Settings
from arag.retrieval.storage.folder.chroma_draft import EmbeddedChunk, NextGraph
from arag.retrieval.storage.folder.derived import delete_others, keyword_file
from arag.retrieval.storage.folder.sqlite import DRAFT_FILE, INDEX_FILE, SCHEMA, Database, connect, name_write_failures
from arag.retrieval.storage.folder.view import FolderView
from arag.retrieval.storage.keywords import write_keywords
from arag.retrieval.storage.rows import CHUNK_COLUMNS, DOCUMENT_COLUMNS, MAX_WORD_CHARACTERS, chunk_row, format_places
from arag.system.files import delete, publish_path, sync_path
from arag.text.normalise import plain, words


class FolderDraft(Database, Draft):
    """The next publication of an index in a folder; use `FolderStore.draft` to get one."""

    def __init__(self, folder: Path, published: FolderView | None, begin: Callable[[], Settings]) -> None:
        self._folder = folder
        self._published = published
        self._draft = folder / DRAFT_FILE
        self._graph = NextGraph(folder, published)
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
        """Close the files. What was written and not published is kept for the next run."""
        self._graph.close()
        if self._is_writing:
            self.connection.close()
        if self._published is not None:
            self._published.close()

    def _store(self, documents: Sequence[EmbeddedDocument]) -> None:
        self._begin_writing()
        with self._transaction():
            self._delete([document.record.id for document in documents])
            rows = [row for document in documents for row in self._insert(document)]
            new_words = _word_rows(chunk.text for _, chunk, _ in rows)
            self.connection.executemany("INSERT OR IGNORE INTO words VALUES (?, ?)", new_words)
        self._graph.add(rows)

    def remove(self, document_ids: Collection[str]) -> None:
        if self.fingerprints(document_ids):
            self._begin_writing()
            with self._transaction():
                self._delete(document_ids)

    def _update_sources(self, sources: Mapping[str, str]) -> None:
        self._begin_writing()
        with self._transaction():
            changes = ((source, document_id) for document_id, source in sources.items())
            self.connection.executemany("UPDATE documents SET source = ? WHERE id = ?", changes)

    def unpublished(self) -> set[str]:
        # Numbers grow: chunks that were stored since have larger ones.
        last = self._published.query("SELECT coalesce(max(number), 0) FROM chunks")[0][0] if self._published else 0
        return {name for (name,) in self.query("SELECT DISTINCT document_id FROM chunks WHERE number > ?", last)}

    def publish(self, settings: Settings, *, rebuild: bool = False) -> Settings:
        """Let readers see what was written; see `Draft.publish`.

        With `rebuild`, everything that is derived from the documents is made again, even if nothing has changed.
        """
        token = secrets.token_hex(16)
        new = self.counted(replace(settings, token=token))
        if not (self._is_writing or rebuild) and new == replace(self.settings, token=token):
            return self.settings
        self._begin_writing()
        with self._transaction():
            self.connection.execute("UPDATE settings SET value = ?", (new.to_json(),))
        with name_write_failures(self._folder):
            write_keywords(keyword_file(self._folder, token), (text for _, text in self.chunk_texts()))
            self._graph.publish(self, new, rebuild=rebuild)
            self._finish_file()
            publish_path(self._draft, self._folder / INDEX_FILE)
            delete_others(self._folder, token)
        self.settings = new
        return new

    def _open_kept(self) -> sqlite3.Connection | None:
        """Open the draft of a killed run, if it was made from what is published."""
        _delete_database(_beside(self._draft, ".new"))
        delete(_beside(self._draft, "-journal"))  # of the change of the journal's mode only, if it is ours
        for ending in ("", "-wal", "-shm"):
            if _beside(self._draft, ending).is_symlink() or not self._draft.is_file():
                _delete_database(self._draft)
                return None
        token = self._published.settings.token if self._published else ""
        with suppress(IndexFormatError), ExitStack() as stack:
            connection = stack.enter_context(closing(_open(self._draft)))
            draft = Database(connection, self._draft)
            is_sound = draft.query("PRAGMA quick_check(1)") == [("ok",)]
            if is_sound and draft.query("SELECT previous FROM settings") == [(token,)]:
                stack.pop_all()
                return connection
        _delete_database(self._draft)
        return None

    def _begin_writing(self) -> None:
        """Copy what is published, unless that is done."""
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
        numbers = self.query(f"SELECT number FROM chunks WHERE {condition}", value)
        for table in ("contents", "vectors", "chunks"):
            self.connection.executemany(f"DELETE FROM {table} WHERE number = ?", numbers)
        self.connection.executemany("DELETE FROM documents WHERE id = ?", [(i,) for i in document_ids])

    def _insert(self, document: EmbeddedDocument) -> Iterator[EmbeddedChunk]:
        """Insert a document's rows; yield its chunks with their numbers."""
        self.connection.execute(
            f"INSERT INTO documents ({DOCUMENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", astuple(document.record)
        )
        for chunk, vectors in zip(document.chunks, document.vectors, strict=True):
            entry = self.connection.execute(
                f"INSERT INTO chunks ({CHUNK_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", chunk_row(chunk)
            )
            number = entry.lastrowid or 0
            self.connection.execute(
                "INSERT INTO contents VALUES (?, ?, ?)", (number, chunk.text, format_places(chunk.sentences))
            )
            rows = np.full((len(chunk.sentences), self.settings.dimension), np.nan, dtype=np.float16)
            rows[[sentence.embedded for sentence in chunk.sentences]] = vectors
            self.connection.execute("INSERT INTO vectors VALUES (?, ?)", (number, rows.tobytes()))
            yield number, chunk, vectors

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
    listed = {word for text in texts for word in words(text) if len(word) <= MAX_WORD_CHARACTERS}
    return [(word, plain(word)) for word in sorted(listed)]


@contextmanager
def _made_whole(file: Path) -> Iterator[Path]:
    """Give a name to make a database under, which then gets its own."""
    unfinished = _beside(file, ".new")
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
    connection.execute("PRAGMA secure_delete = ON")  # no removed text stays in what is published
    return connection


def _delete_database(file: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        delete(_beside(file, ending))


def _beside(file: Path, ending: str) -> Path:
    return file.with_name(f"{file.name}{ending}")
