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


@dataclass
class Server:
    """A running server.

    Attributes:
        url: Its address.
        log: The file that it writes to.
    """

    url: str
    log: Path


@contextmanager
def start_server(folder: Path, **variables: str) -> Iterator[Server]:
    """Start a server in a folder that has a langgraph.json, with environment variables."""
    port = free_port()
    running = Server(f"http://127.0.0.1:{port}", folder / "server.log")
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
    command += ["--n-jobs-per-worker", "10", "--port", str(port)]
    with running.log.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=_environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a process group of its own, which ends with all its children
        )
        try:
            _wait_for(running, process)
            yield running
        finally:
            _stop(process)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _environment(**variables: str) -> dict[str, str]:
    """This process' environment without what would change the server or send anything anywhere, and with variables."""
    strange = ("LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_", "LANGSERVE_", "OPENAI_", "ARAG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
    return kept | variables | {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LOG_JSON": "true"}


def _wait_for(server: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _STARTS_WITHIN
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            if httpx.get(f"{server.url}/ok", timeout=1).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    pytest.fail(f"the server did not start:\n{server.log.read_text(encoding='utf-8')[-5000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, how)
            process.wait(_STOPS_WITHIN)
