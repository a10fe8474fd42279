"""The results of index-time work, kept beside an index: nothing is computed, or paid for, twice.

Every result has a key made from what it depends on: a reply from the model's provider and name, the schema and the
messages, a vector from the embedder and the text. So another prompt, model or text is another key, whatever changed it,
and what is kept for one document serves until its text changes. A model's options and its server's address are not
part of a key: runs with another reasoning effort or another server share the replies.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from arag.errors import InputError, StorageError
from arag.evaluation.files import beside
from arag.models.embedders import Embedder
from arag.models.usage import ModelCall
from arag.retrieval.index import Index

Vectors = NDArray[np.float32]

_FILE_NAME = "results.sqlite3"
_AT_ONCE = 500  # keys that are looked up together
_TABLES = """
CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, value TEXT NOT NULL, calls TEXT NOT NULL, run TEXT NOT NULL)
WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Result:
    """A result that is kept.

    Attributes:
        value: The value, which JSON can hold.
        calls: The model calls that it took.
        run: The run, and its method, that made and paid for them; see `Store.payments`.
    """

    value: Any
    calls: list[ModelCall]
    run: str = ""


def make_key(kind: str, *parts: Any) -> bytes:
    """Return the key of a result.

    Args:
        kind: What it is.
        *parts: Everything that it depends on, as values that JSON can hold.
    """
    text = json.dumps([kind, *parts], ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class Store:
    """Results in one SQLite file. It may be used in several threads, and opened by several processes.

    Args:
        folder: Its folder; it is created.

    Raises:
        StorageError: The file cannot be opened or created.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / _FILE_NAME
        self._lock = threading.Lock()
        with self._errors():
            folder.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self._file, timeout=60, check_same_thread=False)
            weakref.finalize(self, self._connection.close)
            # A killed process loses nothing; a power failure may lose the last few results.
            self._connection.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; {_TABLES}")

    def find(self, keys: Sequence[bytes]) -> list[Result | None]:
        """Return the results with these keys, or None where there is none.

        Raises:
            StorageError: The file is damaged or cannot be read.
        """
        rows = self._rows("SELECT key, value, calls, run FROM results", keys)
        try:
            found = {key: Result(json.loads(value), json.loads(calls), run) for key, value, calls, run in rows}
        except ValueError as error:
            raise self._damaged(str(error)) from error
        return [found.get(key) for key in keys]

    def keep(self, results: Mapping[bytes, Result]) -> None:
        """Keep results; they are there when this returns.

        Raises:
            StorageError: They cannot be written.
        """
        rows = [(k, json.dumps(r.value), json.dumps(r.calls), r.run) for k, r in results.items()]
        with self._lock, self._errors(), self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)", rows)

    def payments(self, run: str) -> dict[str, list[ModelCall]]:
        """Return the model calls that a run has paid for, by method: those of the results of `RUN/METHOD`.

        Raises:
            StorageError: The file is damaged or cannot be read.
        """
        with self._lock, self._errors():
            rows = self._connection.execute("SELECT run, calls FROM results WHERE run LIKE ?", [f"{run}/%"]).fetchall()
        found: dict[str, list[ModelCall]] = {}
        try:
            for payer, calls in rows:
                found.setdefault(payer.removeprefix(f"{run}/"), []).extend(json.loads(calls))
        except ValueError as error:
            raise self._damaged(str(error)) from error
        return found

    def recall(self, kind: str, texts: Sequence[str]) -> list[Any | None]:
        """Return what was remembered about texts, or None where nothing was; see `remember`."""
        found = self.find([make_key(kind, text) for text in texts])
        return [None if result is None else result.value for result in found]

    def remember(self, kind: str, values: Mapping[str, Any]) -> None:
        """Keep values that were computed from texts without a model.

        Args:
            kind: What they are, and what computed them: "entities en_core_web_sm 3.8.0".
            values: By text, values that JSON can hold.
        """
        self.keep({make_key(kind, text): Result(value, []) for text, value in values.items()})

    def vectors(
        self, texts: Sequence[str], embedder: Embedder, *, on_embedded: Callable[[int], None] = lambda _: None
    ) -> Vectors:
        """Return the vectors of texts; those that are not kept yet are embedded, batch by batch.

        Args:
            texts: The texts.
            embedder: Embeds them as documents.
            on_embedded: Called with the number of texts embedded so far.

        Returns:
            Vectors of length one, shape (texts, dimension); (0, 0) without texts.

        Raises:
            EmbedderError: The embedder fails; what it has embedded before is kept.
            StorageError: The file is damaged, or cannot be read or written.
        """
        keys = [make_key("vector", embedder.name, text) for text in texts]
        found = {
            key: np.frombuffer(vector, dtype="<f4")
            for key, vector in self._rows("SELECT key, vector FROM vectors", list(dict.fromkeys(keys)))
        }
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        done = 0
        # Texts of about the same length together: short ones are not padded.
        waiting = sorted(missing.items(), key=lambda item: len(item[1]))
        for begin in range(0, len(waiting), embedder.batch):
            batch = waiting[begin : begin + embedder.batch]
            vectors = embedder.embed_documents([text for _, text in batch])
            rows = [(key, vector.astype("<f4")) for (key, _), vector in zip(batch, vectors, strict=True)]
            with self._lock, self._errors(), self._connection:
                self._connection.executemany(
                    "INSERT OR REPLACE INTO vectors VALUES (?, ?)", [(key, vector.tobytes()) for key, vector in rows]
                )
            found.update(rows)
            on_embedded(done := done + len(batch))
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        if len({len(vector) for vector in found.values()}) > 1:
            raise self._damaged("it holds vectors of different lengths")
        return np.stack([found[key] for key in keys]).astype(np.float32)

    def locked(self, work: str) -> AbstractContextManager[object]:
        """Keep other processes from doing index-time work, which would be paid for twice.

        Args:
            work: The work's name.

        Raises:
            InputError: Another process is doing it.
        """
        file = self._file.with_name(f"{work}.lock")
        try:
            return FileLock(file).acquire(timeout=0)
        except Timeout:
            raise InputError(f"another process does the index-time work of {work}: wait for it to finish") from None

    def _rows(self, select: str, keys: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
        for begin in range(0, len(keys), _AT_ONCE):
            some = keys[begin : begin + _AT_ONCE]
            marks = ",".join("?" * len(some))
            with self._lock, self._errors():
                rows = self._connection.execute(f"{select} WHERE key IN ({marks})", some).fetchall()
            yield from rows

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                raise StorageError(f"another process is writing to {self._file}: wait for it to finish") from error
            raise self._damaged(str(error)) from error
        except OSError as error:
            raise StorageError(f"{self._file} cannot be used: {error.strerror}") from error

    def _damaged(self, why: str) -> StorageError:
        return StorageError(
            f"{self._file} cannot be used: {why}. If it is damaged, delete it: the work that it keeps is done again"
        )


def open_store(index: Index) -> Store:
    """Open the results that are kept beside an index; see `store_folder`.

    Raises:
        StorageError: They cannot be opened or created.
    """
    return Store(store_folder(index.path))


def store_folder(location: Path | str) -> Path:
    """Return the folder of the results that are kept beside an index: `<index>.methods`; see `beside`."""
    return beside(location, "methods")
