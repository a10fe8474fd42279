"""The address of an index on PostgreSQL: a URL as libpq has it, with one parameter of ours, `index`.

Messages quote nothing that may belong to a password, and what is shown of an address has none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from arag.errors import InputError

SCHEMES = ("postgresql://", "postgres://")
DEFAULT_INDEX = "arag"
MISSING_PACKAGES = (
    "an index on PostgreSQL needs the packages psycopg and psycopg-pool: pip install 'langgraph-arag[postgres]'"
)

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
            InputError: It is not such a URL, a parameter is unknown or not valid, or the packages are not installed.
        """
        if not text.startswith(SCHEMES):
            _refuse("it does not begin with postgresql://")
        if not text.isprintable() or " " in text:
            _refuse("it contains white space or unprintable characters: write a space as %20")
        parameters = _read_url(text)
        index = _check_index(parameters.pop("index", DEFAULT_INDEX))
        secrets = _known_parameters(parameters)
        public = {name: value for name, value in parameters.items() if name not in secrets}
        return cls(index, parameters, _write(public, index))

    def __str__(self) -> str:
        return self.shown


def _refuse(why: str) -> NoReturn:
    raise InputError(f"the address of the index is not valid: {why}. A valid one looks like {_FORM}") from None


def _read_url(text: str) -> dict[str, str]:
    """Return the parameters of a URL. One that may have a part of a password elsewhere is refused."""
    try:
        url = urlsplit(text)
        port = url.port
        query = parse_qsl(url.query, keep_blank_values=True, strict_parsing=bool(url.query), errors="strict")
        parts = {
            "user": unquote(url.username or "", errors="strict"),
            "password": unquote(url.password or "", errors="strict"),
            "host": unquote(url.hostname or "", errors="strict"),
            "port": "" if port is None else str(port),
            "dbname": unquote(url.path[1:], errors="strict"),
        }
    except ValueError:
        _refuse("its host, its port or a parameter is not; in a password, write : / ? # % as %3A %2F %3F %23 %25")
    if url.fragment or any("@" in part for part in (url.path, url.query)) or "/" in url.path[1:]:
        _refuse("in a user name, a password or a value, write @ / ? # as %40 %2F %3F %23")
    parameters = [*((name, value) for name, value in parts.items() if value), *query]
    if len(dict(parameters)) < len(parameters):
        _refuse("a parameter is given twice")
    if any("\0" in value for _, value in parameters):
        _refuse("it has %00")
    return dict(parameters)


def _check_index(name: str) -> str:
    """Return the name of an index if a schema can have it."""
    if not 0 < len(name.encode()) <= _MAX_NAME:
        _refuse(f"the name of its index is empty or longer than {_MAX_NAME} bytes")
    if _RESERVED.fullmatch(name):
        _refuse("the name of its index is one of PostgreSQL's own: pg_..., information_schema or public")
    return name


def _known_parameters(parameters: Mapping[str, str]) -> set[str]:
    """Return which of libpq's parameters are secrets. Of an unknown one, nobody could say whether it is."""
    try:
        import psycopg_pool  # noqa: F401 - the store needs it
        from psycopg import pq
    except ImportError as error:
        raise InputError(MISSING_PACKAGES) from error
    known = {option.keyword.decode(): option.dispchar for option in pq.Conninfo.get_defaults()}
    if not parameters.keys() <= known.keys():
        _refuse("its parameters must be index or those of libpq (sslmode, connect_timeout, ...), each with a value")
    return {name for name, kind in known.items() if kind == b"*"}


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
