"""The address of an index on PostgreSQL: libpq's own URL with three parameters of ours, and no secret in what it shows.

URLs that could be read in two ways are refused, as libpq would take a part of a password for a host or a database.
Messages quote nothing that may belong to a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Self
from urllib.parse import quote, unquote_to_bytes

from arag.errors import InputError
from arag.models.names import parse_base_url

SCHEMES = ("postgresql://", "postgres://")
DEFAULT_INDEX = "arag"

_FORM = "postgresql://user:password@host:5432/database?index=NAME"
_VECTORS = "chroma+"
_MAX_NAME = 63  # bytes of a name in PostgreSQL
_AUTHORITY = re.compile(r"(?:(?P<user>[^@]*)@)?(?P<hosts>[^@]*)")
_HOST = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+(?:%25[^\]]*)?)\]|(?P<host>[^\[\]:]*))(?::(?P<port>[0-9]*))?")
_ESCAPED = re.compile(r"%(?![0-9A-Fa-f]{2})")

_OURS = {"index", "vectors", "keyword_cache"}
_SECRET = {"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"}
# libpq's parameters (PostgreSQL 18). Of an unknown one, nobody could say whether it is a secret.
_LIBPQ = _SECRET | set(
    "application_name channel_binding client_encoding connect_timeout dbname fallback_application_name gssdelegation "
    "gssencmode gsslib host hostaddr keepalives keepalives_count keepalives_idle keepalives_interval krbsrvname "
    "load_balance_hosts max_protocol_version min_protocol_version oauth_client_id oauth_issuer oauth_scope options "
    "passfile port require_auth requirepeer requiressl service servicefile ssl ssl_max_protocol_version "
    "ssl_min_protocol_version sslcert sslcertmode sslcompression sslcrl sslcrldir sslkey sslkeylogfile sslmode "
    "sslnegotiation sslrootcert sslsni target_session_attrs tcp_user_timeout user".split()
)


@dataclass(frozen=True, slots=True, repr=False)
class PostgresLocation:
    """Where an index is on PostgreSQL. `str` and `repr` show it without secrets.

    Attributes:
        index: The schema that holds the index.
        vectors: Address of the Chroma server that holds the vectors, `http://[user:password@]host:port`; None if
            PostgreSQL holds them.
        keyword_cache: Folder for a copy of the keyword data; None for none.
        conninfo: libpq's URL, with all secrets and without the parameters of ours.
        shown: The whole location without secrets. It is a location too, for those whose password is in `~/.pgpass`.
            It is the same for all spellings of one place.

    Example:
        >>> from arag.retrieval.postgres.location import PostgresLocation
        >>> location = PostgresLocation.parse("postgres://ann:secret@db.example.com/library?index=handbook")
        >>> location.index, location
        ('handbook', PostgresLocation('postgresql://ann@db.example.com/library?index=handbook'))
    """

    index: str
    vectors: str | None
    keyword_cache: Path | None
    conninfo: str
    shown: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a location.

        Args:
            text: `postgresql://[user[:password]@][host[:port]][/database][?parameter=value&...]`. The parameters of
                ours are `index`, `vectors` and `keyword_cache`; all others are libpq's.

        Raises:
            InputError: It is not such a URL, or a parameter is unknown or not valid.
        """
        _, separator, rest = text.partition("://")
        if not separator or not text.startswith(SCHEMES):
            _refuse("it does not begin with postgresql://")
        if not rest.isprintable() or " " in rest:
            _refuse("it contains white space or unprintable characters: write a space as %20")
        if _ESCAPED.search(rest):
            _refuse("a % is not followed by two hexadecimal digits: write % as %25")
        place, _, query = rest.partition("?")
        authority, _, database = place.partition("/")
        found = _AUTHORITY.fullmatch(authority)
        if found is None or "@" in database or "@" in _outside_vectors(query):
            _refuse("in a user name, a password or a value, write @ as %40, / as %2F and ? as %3F")
        given: dict[str, str] = {}
        user, _, password = (found["user"] or "").partition(":")
        hosts, ports = _parse_hosts(found["hosts"])
        parts = {"user": user, "password": password, "host": hosts, "port": ports, "dbname": database}
        for name, value in [*parts.items(), *_parameters(query)]:
            if name in given:
                _refuse(f"{name} is given twice")
            if value or name in _OURS:
                given[name] = value if name == "vectors" and "://" in value else _decode(value)
        index = _check_index(given.pop("index", DEFAULT_INDEX))
        vectors, shown_vectors = _parse_vectors(given.pop("vectors", None))
        cache = given.pop("keyword_cache", None)
        if cache == "":
            _refuse("keyword_cache must be a folder")
        if given.get("port", "").count(",") not in (0, given.get("host", "").count(",")):
            _refuse("it has more ports than hosts, or fewer")
        ours = {
            "index": None if index == DEFAULT_INDEX else index,
            "keyword_cache": cache,
            "vectors": shown_vectors,
        }
        public = {name: value for name, value in given.items() if name not in _SECRET}
        return cls(
            index=index,
            vectors=vectors,
            keyword_cache=None if cache is None else Path(cache),
            conninfo=_write(given),
            shown=_write(public | {name: value for name, value in ours.items() if value is not None}),
        )

    def __str__(self) -> str:
        """Return the location without secrets."""
        return self.shown

    def __repr__(self) -> str:
        return f"PostgresLocation({self.shown!r})"


def _refuse(why: str) -> NoReturn:
    raise InputError(f"the address of the index is not valid: {why}. A valid one looks like {_FORM}") from None


def _outside_vectors(query: str) -> str:
    """Return a query without the address of a Chroma server, which may have a user and a password of its own."""
    return "&".join(each for each in query.split("&") if not each.startswith(f"vectors={_VECTORS}"))


def _parse_hosts(text: str) -> tuple[str, str]:
    """Return the hosts and the ports, each separated by commas, as libpq's parameters have them."""
    hosts, ports = [], []
    for each in text.split(","):
        found = _HOST.fullmatch(each)
        if found is None or not 0 < int(found["port"] or 1) < 1 << 16:
            _refuse("its host or its port is not; in a user name or a password, write : as %3A, / as %2F and ? as %3F")
        hosts.append(found["ipv6"] or found["host"] or "")
        ports.append(found["port"] or "")
    return ",".join(hosts) if any(hosts) else "", ",".join(ports) if any(ports) else ""


def _parameters(query: str) -> Iterator[tuple[str, str]]:
    for each in query.split("&") if query else ():
        name, equals, value = each.partition("=")
        if not equals or name not in _LIBPQ | _OURS:
            _refuse(
                "its parameters must be index, vectors, keyword_cache or those of libpq (sslmode, connect_timeout, "
                "...), each with a value; in a password, write ? as %3F and & as %26"
            )
        yield name, value


def _decode(value: str) -> str:
    decoded = unquote_to_bytes(value).decode("utf-8", "replace")
    if "\0" in decoded or "\ufffd" in decoded:
        _refuse("it has %00, or bytes (%..) that are not UTF-8")
    return decoded


def _check_index(name: str) -> str:
    """Return the name of an index if a schema can have it."""
    if not 0 < len(name.encode()) <= _MAX_NAME:
        _refuse(f"the name of its index is empty or longer than {_MAX_NAME} bytes")
    if name.startswith("pg_") or name in ("information_schema", "public"):
        _refuse("the name of its index is one of PostgreSQL's own: pg_..., information_schema or public")
    return name


def _parse_vectors(address: str | None) -> tuple[str | None, str | None]:
    """Return the address of a Chroma server, and what shows it without a user and a password."""
    if address is None:
        return None, None
    try:
        if address.startswith(_VECTORS) and "&" not in address:
            url = parse_base_url(address.removeprefix(_VECTORS))
            return url.full, f"{_VECTORS}{url.url}"
    except InputError:  # its message would quote the address
        pass
    _refuse("vectors must be the address of a Chroma server, such as chroma+http://localhost:8000")


def _write(given: Mapping[str, str]) -> str:
    """Write parameters as a URL, always in the same order."""
    rest = dict(given)
    user, password = (quote(rest.pop(name, ""), safe="") for name in ("user", "password"))
    login = f"{user}:{password}@" if password else f"{user}@" if user else ""
    hosts, ports = rest.pop("host", "").split(","), rest.pop("port", "").split(",")
    if len(ports) == len(hosts):
        authority = ",".join(map(_write_host, hosts, ports))
    else:  # one port for all hosts
        authority = ",".join(_write_host(host, ports[0]) for host in hosts)
    database = quote(rest.pop("dbname", ""), safe="")
    parameters = "&".join(
        f"{name}={value if name == 'vectors' else quote(value, safe=':/')}" for name, value in sorted(rest.items())
    )
    path = f"/{database}" if database else ""
    return f"postgresql://{login}{authority}{path}" + (f"?{parameters}" if parameters else "")


def _write_host(host: str, port: str) -> str:
    written = f"[{quote(host, safe=':')}]" if ":" in host else quote(host, safe="")
    return f"{written}:{port}" if port else written
