"""A mapping on disk, for what must be remembered of every document: it takes the same memory for any number."""

from __future__ import annotations

import sqlite3
from typing import Self


class DiskMap:
    """Strings by strings, in a temporary file that SQLite deletes when it is closed."""

    def __init__(self) -> None:
        # The garbage collector may close it in another thread.
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._file.execute("CREATE TABLE map (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
        self._file.execute("BEGIN")  # one transaction: nothing is ever rolled back, or read by others

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def get(self, key: str) -> str | None:
        """Return the value of a key, or None."""
        row = self._file.execute("SELECT value FROM map WHERE key = ?", (_encode(key),)).fetchone()
        return None if row is None else row[0].decode(errors="surrogatepass")

    def add(self, key: str, value: str = "") -> bool:
        """Set the value of a key that has none yet; return whether it had none."""
        added = self._file.execute("INSERT OR IGNORE INTO map VALUES (?, ?)", (_encode(key), _encode(value)))
        return added.rowcount == 1

    def count(self, key: str) -> int:
        """Return how often this was called with a key, this time included."""
        number = int(self.get(key) or 0) + 1
        self._file.execute("INSERT OR REPLACE INTO map VALUES (?, ?)", (_encode(key), str(number).encode()))
        return number


def _encode(text: str) -> bytes:
    return text.encode(errors="surrogatepass")  # names of files may not be Unicode
