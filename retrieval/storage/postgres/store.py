"""An index in PostgreSQL: a schema of a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from arag.errors import IndexFormatError
from arag.retrieval.storage.postgres import check
from arag.retrieval.storage.postgres.connection import Pool, open_session
from arag.retrieval.storage.postgres.draft import PostgresDraft
from arag.retrieval.storage.postgres.location import PostgresLocation
from arag.retrieval.storage.postgres.schema import has_tables, make_tables, read_published
from arag.retrieval.storage.postgres.view import PostgresView
from arag.retrieval.storage.postgres.words import WordSegments
from arag.retrieval.storage.records import Damage, Settings, ShowShare

_ONE_SNAPSHOT = {
    "default_transaction_isolation": "repeatable read",
    "default_transaction_read_only": "on",
    "statement_timeout": "0",
}


class PostgresStore:
    """An index in PostgreSQL; see `IndexStore`."""

    def __init__(self, location: PostgresLocation) -> None:
        self.location = str(location)
        self._location = location
        self._pool = Pool(location)
        self._words = WordSegments(self._pool)

    def settings(self) -> Settings:
        return read_published(self._pool).settings

    def stamp(self) -> str:
        try:
            rows = self._pool.query("SELECT token FROM state")
        except IndexFormatError:  # there are no tables
            return ""
        return "".join(token for (token,) in rows)  # there may be no row

    def open(self) -> PostgresView:
        return PostgresView(self._pool, read_published(self._pool), self._words)

    def close(self) -> None:
        self._pool.close()

    def size(self) -> int:
        ((size,),) = self._pool.query(
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class "
            "WHERE relnamespace = to_regnamespace(quote_ident(?)) AND relkind IN ('r', 'p')",
            self._location.index,
        )
        return int(size)

    @contextmanager
    def draft(self, begin: Callable[[], Settings]) -> Iterator[PostgresDraft]:
        """Open the next snapshot for writing, and make the index if there is none; others may write to it, too."""
        with open_session(self._location) as session:
            if not has_tables(session) or not session.query("SELECT FROM state"):
                make_tables(session)
                settings = replace(begin(), token="")
                # If another process has begun the index meanwhile, its settings remain.
                session.execute(
                    "INSERT INTO state (generation, token, settings) VALUES (0, '', ?) ON CONFLICT DO NOTHING",
                    settings.to_json(),
                )
            yield PostgresDraft(session)

    def find_damage(self, show: ShowShare | None = None) -> list[Damage]:
        """Look for damage in all tables, as they are at one moment; writers go on meanwhile."""
        with open_session(self._location, _ONE_SNAPSHOT) as session, session.transaction():
            return list(check.find_damage(session, show))

    def repair(self, show: ShowShare | None = None) -> None:
        """Make everything again that is derived from the documents; writers wait meanwhile."""
        with open_session(self._location) as session:
            check.repair(session, show)
