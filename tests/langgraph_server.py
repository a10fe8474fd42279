"""LangGraph's API server, as `langgraph dev` starts it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

_STARTS_WITHIN = 120.0  # seconds
_STOPS_WITHIN = 10.0
# Variables that would change the server, or send anything anywhere.
_STRANGE = ("LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_", "LANGSERVE_", "OPENAI_", "ARAG_")


@dataclass
class Server:
    """A running server."""

    url: str
    log: Path  # the file that it writes to


@contextmanager
def start_server(folder: Path, **variables: str) -> Iterator[Server]:
    """Start a server in a folder that has a langgraph.json, with environment variables."""
    port = free_port()
    running = Server(f"http://127.0.0.1:{port}", folder / "server.log")
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
    command += ["--n-jobs-per-worker", "10", "--port", str(port)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_STRANGE)}
    environment = kept | variables | {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LOG_JSON": "true"}
    with (
        running.log.open("wb") as log,
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a process group of its own, which ends with all its children
        ) as process,
    ):
        try:
            _wait_for(running, process)
            yield running
        finally:
            for how in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(process.pid, how)
                    process.wait(_STOPS_WITHIN)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _wait_for(server: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _STARTS_WITHIN
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(httpx.TransportError):
            if httpx.get(f"{server.url}/ok", timeout=1).status_code == 200:
                return
        time.sleep(0.05)
    pytest.fail(f"the server did not start:\n{server.log.read_text(encoding='utf-8')[-5000:]}")
