"""The processes that write to an index, and what they know of each other.

Any number of them write to one generation. Each is a row of table `workers`, which it keeps fresh. One that was killed,
or whose machine is gone, is told by its connection or by its row; what it had claimed is then free again.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from arag.errors import IndexLockedError, StorageError
from arag.retrieval.postgres.connections import Session
from arag.retrieval.postgres.location import PostgresLocation

LEASE = 30.0  # seconds after which a worker that has not been heard of is taken for dead
HEARTBEAT = 5.0  # seconds

# Locks of the database. Their keys are made from the number that it gives to the index's table `state`.
_WRITERS, _PUBLICATION, _INSERTION, _DERIVATION = range(4)
_KEY = "'state'::regclass::oid::bigint * 8 + {}"

_BLOCKS = "workers.pid IN (SELECT unnest(pg_blocking_pids(pid)) FROM workers)"
_CONNECTED = "SELECT pid FROM pg_stat_activity"


def live_workers() -> str:
    """Return the query for the ids of the workers that are alive."""
    return f"SELECT id FROM workers WHERE {_is_fresh()} AND pid IN ({_CONNECTED})"


def _is_fresh() -> str:
    return f"seen > now() - interval '{LEASE} seconds'"


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
            # One that hangs keeps its row: it may go on.
            self.session.execute(f"DELETE FROM workers WHERE pid NOT IN ({_CONNECTED})")
            # Before the lock: others must know who holds it.
            ((self.number,),) = self.session.query(
                "INSERT INTO workers (name, pid) VALUES (%s, pg_backend_pid()) RETURNING id",
                (f"process {os.getpid()} on {platform.node()}",),
            )
            self._lock(alone=alone)
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
        return not self.session.query(f"SELECT FROM workers WHERE id IN ({live_workers()}) AND NOT is_waiting")

    def _lock(self, *, alone: bool) -> None:
        if self._try_lock(alone=alone):
            return
        names = self._name_workers()
        end_hung_workers(self.session)
        if not self._try_lock(alone=alone):
            self.session.execute("DELETE FROM workers WHERE id = %s", (self.number,))
            raise IndexLockedError(
                f"the index {self.session.location} is being written to by {names}; try again when it is done"
            )

    def _try_lock(self, *, alone: bool) -> bool:
        kind = "" if alone else "_shared"
        ((is_locked,),) = self.session.query(f"SELECT pg_try_advisory_lock{kind}({_KEY.format(_WRITERS)})")
        return bool(is_locked)

    def _name_workers(self) -> str:
        names = self.session.query(
            f"SELECT name, to_char(since, 'YYYY-MM-DD HH24:MI:SSOF') FROM workers WHERE id IN ({live_workers()}) "
            "AND id <> %s",
            (self.number,),
        )
        return ", ".join(f"{name} (since {since})" for name, since in names) or "another process"

    def _keep_fresh(self) -> None:
        """Keep this worker's row fresh, with a connection of its own: the other one may be busy for long."""
        while not self._ended.wait(HEARTBEAT):
            with suppress(StorageError), closing(Session(self.session.location)) as beat:  # the worker will see it, too
                while True:
                    beat.execute("UPDATE workers SET seen = now() WHERE id = %s", (self.number,))
                    end_hung_workers(beat, _BLOCKS)
                    if self._ended.wait(HEARTBEAT):
                        break


def end_hung_workers(session: Session, condition: str = "TRUE") -> None:
    """Close the connections of workers that have not been heard of, which may hold locks."""
    with suppress(StorageError):  # they are of another role
        session.query(
            "SELECT pg_terminate_backend(workers.pid, 5000) FROM workers JOIN pg_stat_activity activity "
            f"ON activity.pid = workers.pid AND activity.backend_start <= since WHERE NOT {_is_fresh()} AND {condition}"
        )
