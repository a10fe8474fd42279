"""A real Chroma server, as `chroma run` starts it: one for each process of pytest that asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from postgres_server import free_port

_HOST = "127.0.0.1"
_STARTS_WITHIN = 60.0  # seconds
# The server ends with its shell's input: when it is killed, and when the process of the tests ends in any way.
_RUN = '"$@" & read -r _; kill -KILL $!; wait'


class ChromaServer:
    """A server on a loopback port, which stays the same when it is started again. It keeps its data when killed.

    Tests get it from the fixtures `chroma` and `chroma_server`. They share it, so each names collections of its own.

    Attributes:
        url: Its address, `http://127.0.0.1:<port>`.
        log: The file that it writes to.
    """

    def __init__(self, folder: Path) -> None:
        self._port = free_port()
        self.url = f"http://{_HOST}:{self._port}"
        self.log = folder / "log"
        self._folder = folder
        self._shell: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._shell is not None

    def start(self) -> None:
        """Start the server, with what it has stored, and wait until it is ready."""
        assert not self.running, "the server is running"
        chroma = [Path(sys.executable).with_name("chroma"), "run", "--host", _HOST, "--port", str(self._port)]
        with self.log.open("ab") as log:
            self._shell = subprocess.Popen(
                ["sh", "-c", _RUN, "sh", *chroma, "--path", self._folder / "data"],
                cwd=self._folder,
                env=os.environ | {"ANONYMIZED_TELEMETRY": "False"},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,  # an interrupt from the keyboard is for pytest, which then stops the server
            )
        deadline = time.monotonic() + _STARTS_WITHIN
        while time.monotonic() < deadline:
            try:
                if httpx.get(f"{self.url}/api/v2/heartbeat", timeout=1).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.01)
        self.kill()
        pytest.fail(f"Chroma did not start:\n{self.log.read_text(encoding='utf-8')[-5000:]}")

    def kill(self) -> None:
        """Kill the server with SIGKILL, if it runs."""
        if self._shell is not None:
            self._shell.communicate()
            self._shell = None


@contextmanager
def start_chroma(folder: Path) -> Iterator[ChromaServer]:
    """Start a server that keeps its data in a folder."""
    server = ChromaServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="session")
def chroma_server(tmp_path_factory):
    """The server, for fixtures of a module or the session; what kills it belongs to `chroma`."""
    with start_chroma(tmp_path_factory.mktemp("chroma")) as server:
        yield server


@pytest.fixture
def chroma(chroma_server):
    """The server; after a test, it runs again."""
    yield chroma_server
    if not chroma_server.running:
        chroma_server.start()
