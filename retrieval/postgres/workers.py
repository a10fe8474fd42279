"""The processes that write to an index, and what they know of each other.

Any number of them write to one generation. Each is a row of table `workers`, which it keeps fresh. One that was killed,
or whose machine is gone, is told by its connection or by its row; what it had claimed is then free again.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from arag.errors import IndexLockedError, StorageError
from arag.retrieval.postgres.connections import Session
from arag.retrieval.postgres.location import PostgresLocation

LEASE = 30.0  # seconds after which a worker that has not been heard of is taken for dead
_HEARTBEAT = 5.0  # seconds

# Locks of the database. Their keys are made from the number that it gives to the index's table `state`.
_WRITERS, _PUBLICATION, _INSERTION, _DERIVATION = range(4)
_KEY = "'state'::regclass::oid::bigint * 8 + {}"

LIVE = (
    f"SELECT id FROM workers WHERE seen > now() - interval '{LEASE} seconds' "
    "AND pid IN (SELECT pid FROM pg_stat_activity)"
)


class Worker:
    """A process that writes, among others.

    Args:
        location: The index.
        alone: Whether to keep all others out.

    Attributes:
        session: Its connection.
        number: Its number.

    Raises:
        IndexLockedError: Others are there, or one of them is alone.
        StorageError: The server cannot be reached, or refuses.
    """

    def __init__(self, location: PostgresLocation, *, alone: bool) -> None:
        self.session = Session(location)
        try:
            self._lock(alone=alone)
            self.session.execute(f"DELETE FROM workers WHERE id NOT IN ({LIVE})")
            ((self.number,),) = self.session.query(
                "INSERT INTO workers (name, pid) VALUES (%s, pg_backend_pid()) RETURNING id",
                (f"process {os.getpid()} on {platform.node()}",),
            )
        except BaseException:
            self.session.close()
            raise
        self._ended = threading.Event()
        self._beating = threading.Thread(target=self._keep_fresh, daemon=True, name="arag-worker")
        self._beating.start()

    def close(self) -> None:
        """Leave; the server releases the locks."""
        self._ended.set()
        self._beating.join()
        with suppress(StorageError):  # the connection is lost: another worker will delete the row
            self.session.execute("DELETE FROM workers WHERE id = %s", (self.number,))
        self.session.close()

    def hold_insertion(self) -> None:
        """In a transaction: keep others from inserting, and from publishing, until it ends."""
        self.session.execute(f"SELECT pg_advisory_xact_lock_shared({_KEY.format(_PUBLICATION)})")
        self.session.execute(f"SELECT pg_advisory_xact_lock({_KEY.format(_INSERTION)})")

    def hold_publication(self) -> None:
        """In a transaction: wait for the insertions that have begun, and keep new ones out, until it ends."""
        self.session.execute(f"SELECT pg_advisory_xact_lock({_KEY.format(_PUBLICATION)})")

    @contextmanager
    def deriving(self) -> Iterator[None]:
        """Keep others from making what is derived from the chunks."""
        self.session.execute(f"SELECT pg_advisory_lock({_KEY.format(_DERIVATION)})")
        try:
            yield
        finally:
            self.session.execute(f"SELECT pg_advisory_unlock({_KEY.format(_DERIVATION)})")

    def is_last(self) -> bool:
        """Say that this worker has nothing left to do; return whether that is so of all others."""
        self.session.execute("UPDATE workers SET is_waiting = TRUE WHERE id = %s", (self.number,))
        return not self.session.query(f"SELECT FROM workers WHERE id IN ({LIVE}) AND NOT is_waiting")

    def _lock(self, *, alone: bool) -> None:
        if alone:
            self._end_hung_workers()
        kind = "" if alone else "_shared"
        ((is_locked,),) = self.session.query(f"SELECT pg_try_advisory_lock{kind}({_KEY.format(_WRITERS)})")
        if not is_locked:
            raise IndexLockedError(
                f"the index {self.session.location} is being written to by {self._name_workers()}; "
                "try again when it is done"
            )

    def _end_hung_workers(self) -> None:
        """Close the connections of workers that have not been heard of, which may hold locks."""
        with suppress(StorageError):  # they are of another role
            self.session.query(
                "SELECT pg_terminate_backend(workers.pid, 5000) FROM workers JOIN pg_stat_activity activity "
                "ON activity.pid = workers.pid AND activity.backend_start <= workers.since "
                f"WHERE seen <= now() - interval '{LEASE} seconds'"
            )

    def _name_workers(self) -> str:
        names = self.session.query(
            f"SELECT name, to_char(since, 'YYYY-MM-DD HH24:MI:SSOF') FROM workers WHERE id IN ({LIVE})"
        )
        return ", ".join(f"{name} (since {since})" for name, since in names) or "another process"

    def _keep_fresh(self) -> None:
        """Keep this worker's row fresh, with a connection of its own: the other one may be busy for long."""
        while not self._ended.wait(_HEARTBEAT):
            with suppress(StorageError):  # the worker's own connection will say so
                beat = Session(self.session.location)
                try:
                    while not self._ended.wait(_HEARTBEAT):
                        beat.execute("UPDATE workers SET seen = now() WHERE id = %s", (self.number,))
                finally:
                    beat.close()
