"""MCP servers of an index, and the SDK's client of them: in this process, and over HTTP."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client

from mcp import Client

ARAG = str(Path(sys.executable).parent / "arag")
TOKEN = "a-secret"


def run(session, server):
    """Run an asynchronous function with a client of a server in this process."""

    async def connect():
        async with Client(server) as client:
            return await session(client)

    return anyio.run(connect)


def use(server, name, **arguments):
    """Call a tool of a server in this process."""
    return run(lambda client: client.call_tool(name, arguments), server)


async def text(client, name, **arguments):
    """Call a tool that must succeed."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result
    return result.content[0].text


@contextmanager
def served_over_http(folder, *options):
    """Run `arag mcp --http`, yield its URL, and end it with Ctrl-C."""
    command = [ARAG, "mcp", "--tools", "paper", "--http", "--port", "0", "--index", folder, *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stderr.readline()
            assert re.search(r" at http://[\d.]*:\d+/mcp$", line), line + process.stderr.read()
            yield line.split()[-1]
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
    assert process.returncode == 130


@asynccontextmanager
async def connect(url, token=TOKEN):
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as sender,
        Client(streamable_http_client(url, http_client=sender)) as client,
    ):
        yield client
