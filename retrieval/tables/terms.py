"""The words of texts, as SQLite's full-text search finds them, for suggestions.

Keywords are not matched here: the paper matches them in the chunk texts. The words only tell which terms the corpus
holds, so that a keyword without a hit can be answered with the closest ones.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import weakref
from collections.abc import Iterable

from arag.retrieval.backend import Phrase

TOKENIZER = "unicode61 remove_diacritics 2"
# Bytes that never occur in UTF-8, and so in no text.
HIGHLIGHTED = "CAST(highlight(terms, 0, X'FE', X'FF') AS BLOB)"
_MARKED = re.compile(b"\xfe(.*?)\xff", re.DOTALL)


class Terms:
    """The words of some texts, in memory.

    Args:
        texts: Number and text of each.
    """

    def __init__(self, texts: Iterable[tuple[int, str]]) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._connection.close)
        self._connection.execute(f"CREATE VIRTUAL TABLE terms USING fts5 (text, tokenize='{TOKENIZER}')")
        self._connection.executemany("INSERT INTO terms (rowid, text) VALUES (?, ?)", texts)

    def spelled(self, phrase: Phrase, limit: int) -> list[tuple[int, list[str]]]:
        """Return a phrase's spellings in the first texts that hold it, with the texts' numbers."""
        query = f"SELECT rowid, {HIGHLIGHTED} FROM terms WHERE terms MATCH ? LIMIT ?"
        with self._lock:
            return read_spellings(self._connection.execute(query, (match_query(phrase), limit)).fetchall())

    def holding_all(self, words: Iterable[str]) -> list[int]:
        """Return the numbers of the texts that hold all of some words."""
        query = "SELECT rowid FROM terms WHERE terms MATCH ?"
        with self._lock:
            return [number for (number,) in self._connection.execute(query, (match_all(words),))]

    def words(self) -> dict[int, list[str]]:
        """Return the words of each text that has any, in order."""
        found: dict[int, list[str]] = {}
        with self._lock:
            self._connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS places USING fts5vocab (terms, instance)")
            for number, word in self._connection.execute("SELECT doc, term FROM places ORDER BY doc, offset"):
                found.setdefault(number, []).append(word)
        return found


def match_query(phrase: Phrase) -> str:
    """Return the full-text query for a phrase."""
    quoted = '"' + " ".join(phrase.words).replace('"', '""') + '"'
    return f"{quoted} *" if phrase.is_prefix else quoted


def match_all(words: Iterable[str]) -> str:
    """Return the full-text query for texts with all of some words."""
    return " AND ".join(match_query(Phrase((word,))) for word in words)


def read_spellings(rows: Iterable[tuple[int, bytes]]) -> list[tuple[int, list[str]]]:
    """Return the marked parts of each text, given numbers and `HIGHLIGHTED` texts."""
    return [(n, [spelled.decode() for spelled in dict.fromkeys(_MARKED.findall(marked))]) for n, marked in rows]
