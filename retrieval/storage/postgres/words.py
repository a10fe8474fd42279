"""The word index of an index in PostgreSQL: a row for each segment, in table `word_segments`.

Rows belong to snapshots, as those of `chunks` do. Segments may have chunks that are gone, and lack chunks that another
writer has just published: these are scanned.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from arag.errors import StorageError
from arag.retrieval.storage.check import Passes
from arag.retrieval.storage.postgres.connection import Pool, Session
from arag.retrieval.storage.postgres.schema import FOR_EVER, GENERATION, State, Tables, lock, make_word_segments
from arag.retrieval.storage.words.build import build_segments, find_new
from arag.retrieval.storage.words.index import StoredSegment, WordIndex
from arag.retrieval.storage.words.segment import Integers, Segment, read_segment

_LEAST_LEFT = 0.9  # of a segment's chunks: one with fewer is made again
_PARTS = (
    "SELECT substring(postings FROM first + 1 FOR size) FROM word_segments, "
    "unnest(?::integer[], ?::integer[]) WITH ORDINALITY AS part (first, size, place) WHERE number = ? ORDER BY place"
)


class WordSegments:
    """Reads the word index of each snapshot. Segments are kept, since most are in the next snapshot, too."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._lock = threading.Lock()
        # By the table, which may be made again, and the number.
        self._kept: dict[tuple[int, int], StoredSegment] = {}

    def read(self, state: State) -> WordIndex | None:
        """Return the word index of a snapshot; None if it has none, as in an index of an earlier version."""
        if not state.has_words:
            return None
        with self._lock:
            rows = self._pool.query(f"SELECT tableoid::bigint, number FROM word_segments WHERE {state.visible()}")
            missing = [number for table, number in rows if (table, number) not in self._kept]
            kept = {key: self._kept[key] for key in rows if key in self._kept}
            read = "SELECT tableoid::bigint, number, head FROM word_segments WHERE number = ANY (?)"
            for table, number, head in self._pool.query(read, missing) if missing else ():
                with suppress(ValueError):  # it is damaged: its chunks are scanned
                    kept[table, number] = StoredSegment(_parse(head), partial(self._read_postings, number))
            self._kept = kept
            return WordIndex(list(kept.values()))

    def _read_postings(self, number: int, parts: Sequence[tuple[int, int]]) -> list[bytes]:
        starts = [start for start, _ in parts]
        sizes = [end - start for start, end in parts]
        rows = self._pool.query(_PARTS, starts, sizes, number)
        if len(rows) < len(parts):
            raise StorageError(f"the index {self._pool.location} was replaced by newer snapshots during a search")
        return [postings for (postings,) in rows]


def _parse(head: bytes) -> Segment:
    segment, _ = read_segment(memoryview(head))
    return segment


def read_segments(session: Session, condition: str) -> list[Segment]:
    """Return the segments whose rows meet a condition."""
    rows = session.query(f"SELECT postings || head FROM word_segments WHERE {condition} ORDER BY number")
    return [_parse(stored) for (stored,) in rows]


def update_words(session: Session, chunks: Tables, *, ahead: int = 1, passes: Passes | None = None) -> None:
    """Put chunks that are not in the word index into it; other writers go on until the new segments are stored.

    Args:
        session: The session of a writer.
        chunks: Reads all chunks of the snapshot that the segments are for.
        ahead: How many generations this snapshot is ahead of the last one.
        passes: Counts the chunks that are put into it.
    """
    with session.transaction():
        lock(session, "words")
        make_word_segments(session)
        row_ids = np.array(sorted(chunks.ordered_row_ids()), dtype=np.int64)
        rows = session.query(f"SELECT number, row_ids FROM word_segments WHERE removed = {FOR_EVER} ORDER BY number")
        numbers: list[int] = []
        known: list[Integers] = []
        for number, stored in rows:
            held = np.frombuffer(stored, "<i8").astype(np.int64)
            if np.isin(held, row_ids).mean() >= _LEAST_LEFT:
                numbers.append(number)
                known.append(held)
        kept, new = find_new(known, row_ids)
        # Another writer may remove chunks meanwhile.
        read = chunks.texts_among if passes is None else passes.counting(chunks.texts_among)
        segments = [_row(segment) for segment in build_segments(new, read)]
        lock(session, "snapshot")
        ((generation,),) = session.query(GENERATION)
        session.execute(
            f"UPDATE word_segments SET removed = ? WHERE removed = {FOR_EVER} AND number <> ALL (?)",
            generation + ahead,
            numbers[:kept],
        )
        for row in segments:
            insert = "INSERT INTO word_segments (row_ids, head, postings, added) VALUES (?, ?, ?, ?)"
            session.execute(insert, *row, generation + ahead)


def _row(segment: Segment) -> tuple[bytes, bytes, bytes]:
    return segment.row_ids.astype("<i8").tobytes(), segment.head(), bytes(segment.postings)
