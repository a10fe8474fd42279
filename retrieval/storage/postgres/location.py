"""The address of an index on PostgreSQL: a URL as libpq has it, with one parameter of ours, `index`.

Messages quote nothing that may belong to a password, and an address is shown without its password.
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
_INDEX_PARAMETER = "index="
_MAX_NAME = 63  # bytes of a name in PostgreSQL
_RESERVED = re.compile(r"pg_.*|information_schema|public")


@dataclass(frozen=True, slots=True)
class PostgresLocation:
    """The location of an index on PostgreSQL. `str` and `repr` show no password."""

    index: str  # the schema that holds it
    parameters: Mapping[str, str] = field(repr=False, hash=False)  # libpq's, with all secrets
    shown: str  # the address without secrets; for users whose password is in `~/.pgpass`, it is an address, too

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `postgresql://[user[:password]@][host[:port]][/database][?index=NAME&...]`, with libpq's parameters.

        Raises:
            InputError: It is not such a URL, a parameter is unknown or not valid, or the package is not installed.
        """
        try:
            import psycopg  # noqa: F401 - the store needs both
            import psycopg_pool  # noqa: F401
        except ImportError as error:
            raise InputError("PostgreSQL needs packages: pip install 'langgraph-arag[postgres]'") from error
        if not text.startswith(SCHEMES) or not text.isprintable() or " " in text:
            _refuse("it does not begin with postgresql://, or has white space or unprintable characters in it")
        address, index = _split_index(text)
        parameters = _parse_parameters(address)
        _check_index(index)
        public = _without_secrets(parameters)
        return cls(index, parameters, _write(public, index))

    def __str__(self) -> str:
        return self.shown


def _split_index(text: str) -> tuple[str, str]:
    """Split an address into one for libpq and the name of the index."""
    scheme, _, rest = text.partition("://")
    login, at, rest = rest.rpartition("@")
    if set("@/?") & set(login):
        _refuse("in a user name, a password or a value, write @ / ? as %40 %2F %3F")
    place, _, query = rest.partition("?")
    index = DEFAULT_INDEX  # percent-encoded
    others: list[str] = []
    for parameter in query.split("&"):
        if parameter.startswith(_INDEX_PARAMETER):
            index = parameter.removeprefix(_INDEX_PARAMETER)  # the last one counts
        elif parameter:
            others.append(parameter)
    return f"{scheme}://{login}{at}{place}?{'&'.join(others)}", _decode(index)


def _parse_parameters(address: str) -> dict[str, str]:
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        parameters = {name: str(value) for name, value in conninfo_to_dict(address).items()}
    except (ProgrammingError, ValueError):  # their messages quote it
        _refuse_parameters()
    if not re.fullmatch("[0-9,]*", parameters.get("port", "")):
        _refuse("its port is not a number; in a password, write / as %2F")
    return parameters


def _decode(name: str) -> str:
    try:
        return unquote(name, errors="strict")
    except ValueError:
        _refuse_parameters()


def _check_index(index: str) -> None:
    if not 0 < len(index.encode()) <= _MAX_NAME or "\0" in index or _RESERVED.fullmatch(index):
        _refuse(f"the name of its index is empty, longer than {_MAX_NAME} bytes, or one of PostgreSQL's own")


def _without_secrets(parameters: Mapping[str, str]) -> dict[str, str]:
    from psycopg import pq

    secrets = {option.keyword.decode() for option in pq.Conninfo.get_defaults() if option.dispchar == b"*"}
    return {name: value for name, value in parameters.items() if name not in secrets}


def _refuse_parameters() -> NoReturn:
    _refuse("its host or a parameter is not; parameters are index and those of libpq, each with a value")


def _refuse(why: str) -> NoReturn:
    raise InputError(f"the address of the index is not valid: {why}. A valid one looks like {_FORM}") from None


def _write(parameters: Mapping[str, str], index: str) -> str:
    """Write parameters as a URL, always in the same order."""
    others = dict(sorted(parameters.items()))
    user = others.pop("user", "")
    host = others.pop("host", "")
    port = others.pop("port", "")
    database = others.pop("dbname", "")
    if host.startswith("/") or "," in host:  # a socket, or several hosts: they must be parameters
        others["host"] = host
        if port:
            others["port"] = port
        host = ""
        port = ""
    url = "postgresql://"
    if user:
        url += f"{quote(user, safe='')}@"
    url += f"[{host}]" if ":" in host else quote(host, safe="")
    if port:
        url += f":{port}"
    if database:
        url += f"/{quote(database, safe='')}"
    if index != DEFAULT_INDEX:
        others = {"index": index, **others}
    if others:
        url += f"?{urlencode(others, quote_via=quote, safe='/:,')}"
    return url
