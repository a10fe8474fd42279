"""The address of an index on PostgreSQL: a URL as libpq has it, with one parameter of ours, `index`.

Messages quote nothing that may belong to a password, and what is shown of an address has none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn, Self
from urllib.parse import quote, unquote, urlencode

from arag.errors import InputError

SCHEMES = ("postgresql://", "postgres://")
DEFAULT_INDEX = "arag"

_FORM = "postgresql://user:password@host:5432/database?index=NAME"
_MAX_NAME = 63  # bytes of a name in PostgreSQL
_RESERVED = re.compile(r"pg_.*|information_schema|public")


@dataclass(frozen=True, slots=True)
class PostgresLocation:
    """Where an index is on PostgreSQL. `str` and `repr` show no password."""

    index: str  # the schema that holds it
    parameters: Mapping[str, str] = field(repr=False, hash=False)  # libpq's, with all secrets
    shown: str  # the address without secrets; an address, too, for those whose password is in `~/.pgpass`

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `postgresql://[user[:password]@][host[:port]][/database][?index=NAME&...]`, with libpq's parameters.

        Raises:
            InputError: It is not such a URL, a parameter is unknown or not valid, or the package is not installed.
        """
        try:
            import psycopg_pool  # noqa: F401 - the store needs it
            from psycopg import ProgrammingError, pq
            from psycopg.conninfo import conninfo_to_dict
        except ImportError as error:
            raise InputError("PostgreSQL needs packages: pip install 'langgraph-arag[postgres]'") from error
        if not text.startswith(SCHEMES) or not text.isprintable() or " " in text:
            _refuse("it does not begin with postgresql://, or has white space or unprintable characters in it")
        scheme, _, rest = text.partition("://")
        login, at, place = rest.rpartition("@")
        if set("@/?") & set(login):
            _refuse("in a user name, a password or a value, write @ / ? as %40 %2F %3F")
        place, _, query = place.partition("?")
        values = [value for value in query.split("&") if value]
        named = [value.removeprefix("index=") for value in values if value.startswith("index=")]
        others = "&".join(value for value in values if not value.startswith("index="))
        try:
            index = unquote(named[-1], errors="strict") if named else DEFAULT_INDEX
            address = f"{scheme}://{login}{at}{place}?{others}"
            parameters = {name: str(value) for name, value in conninfo_to_dict(address).items()}
        except (ProgrammingError, ValueError):  # their messages quote it
            _refuse("its host or a parameter is not; parameters are index and those of libpq, each with a value")
        if not re.fullmatch("[0-9,]*", parameters.get("port", "")):
            _refuse("its port is not a number; in a password, write / as %2F")
        if not 0 < len(index.encode()) <= _MAX_NAME or "\0" in index or _RESERVED.fullmatch(index):
            _refuse(f"the name of its index is empty, longer than {_MAX_NAME} bytes, or one of PostgreSQL's own")
        secrets = {option.keyword.decode() for option in pq.Conninfo.get_defaults() if option.dispchar == b"*"}
        public = {name: value for name, value in parameters.items() if name not in secrets}
        return cls(index, parameters, _write(public, index))

    def __str__(self) -> str:
        return self.shown


def _refuse(why: str) -> NoReturn:
    raise InputError(f"the address of the index is not valid: {why}. A valid one looks like {_FORM}") from None


def _write(parameters: Mapping[str, str], index: str) -> str:
    """Write parameters as a URL, always in the same order."""
    rest = dict(sorted(parameters.items()))
    user, host, port, database = (rest.pop(name, "") for name in ("user", "host", "port", "dbname"))
    if host.startswith("/") or "," in host:  # sockets, and several hosts
        rest |= {"host": host} | ({"port": port} if port else {})
        host = port = ""
    login = f"{quote(user, safe='')}@" if user else ""
    place = f"[{host}]" if ":" in host else quote(host, safe="")
    place += f":{port}" if port else ""
    place += f"/{quote(database, safe='')}" if database else ""
    shown = ({} if index == DEFAULT_INDEX else {"index": index}) | rest
    return f"postgresql://{login}{place}" + (f"?{urlencode(shown, quote_via=quote, safe='/:,')}" if shown else "")
