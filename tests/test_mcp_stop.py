"""Calls of the MCP server that their client cancels: what still runs is ended."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import anyio
import psutil
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client

from fakes import write_index
from mcp import Client
from mcp_servers import ARAG, text

DOCUMENTS = [{"id": "boso", "title": "Boso", "text": "Boso the Elder was the father of Teutberga."}]

# A server whose commands may run so long that the test fails before they end by themselves.
PATIENT = """
import sys
import fakes
from arag import open_index, serve_mcp
from arag.retrieval.corpus.shell import run
from scripted import ScriptedModel, call

run.SECONDS = run._SHELL_SECONDS = 3600.0
model = ScriptedModel(call("shell", command="sleep 3000"))
with open_index(sys.argv[1], embedder=fakes.HashEmbeddings()) as index:
    serve_mcp(index, model=model, http=sys.argv[2] == "http", port=0)
"""


CALLS = {"shell": {"command": "sleep 3000"}, "ask": {"question": "Who was Boso?"}}


def list_shells():
    """Return the shells that run below this process."""
    shells = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "arag.retrieval.corpus.shell.worker" in process.cmdline():
                shells.append(process)
    return shells


async def cancel_and_see_it_end(client):
    """Cancel calls whose command runs, and wait until its process has ended; the session goes on."""
    others = set(list_shells())  # which other tests of this process have left for the next command
    for name, arguments in CALLS.items():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, name, arguments)
            await wait_until(lambda: not others.issuperset(list_shells()))
            tasks.cancel_scope.cancel()
        await wait_until(lambda: others.issuperset(list_shells()))
    assert "father" in await text(client, "shell", command="cat boso")


async def wait_until(is_so):
    while not is_so():  # noqa: ASYNC110 - for as long as a test may take
        await anyio.sleep(0.02)


@pytest.mark.parametrize(("transport", "mode"), [("stdio", "legacy"), ("http", "auto")])
def test_a_cancelled_call_ends_its_command(tmp_path, transport, mode):
    program = ["-c", PATIENT, str(write_index(tmp_path, DOCUMENTS)), transport]
    environment = {"PYTHONPATH": str(Path(__file__).parent)}

    async def over_stdio():
        served = StdioServerParameters(command=sys.executable, args=program, env=environment)
        async with Client(stdio_client(served), mode=mode) as client:
            await cancel_and_see_it_end(client)

    async def over_http(url):
        async with Client(url, mode=mode) as client:
            await cancel_and_see_it_end(client)

    if transport == "stdio":
        anyio.run(over_stdio)
        return
    command = [sys.executable, *program]
    with subprocess.Popen(command, env=os.environ | environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = process.stderr.readline().split()[-1]
            anyio.run(over_http, url)
        finally:
            process.kill()


def test_a_cancelled_call_closes_the_connection_to_its_model(tmp_path):
    folder = write_index(tmp_path, DOCUMENTS)
    is_asked, is_closed = threading.Event(), threading.Event()

    def hang():
        connection, _ = model.accept()
        while connection.recv(65536):  # no reply ever comes
            is_asked.set()
        is_closed.set()

    async def session():
        async with Client(stdio_client(served)) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "ask", CALLS["ask"])
                await wait_until(is_asked.is_set)
                tasks.cancel_scope.cancel()
            await wait_until(is_closed.is_set)

    with socket.create_server(("127.0.0.1", 0)) as model:
        threading.Thread(target=hang, daemon=True).start()
        address = f"openai:some-model@http://127.0.0.1:{model.getsockname()[1]}/v1"
        arguments = ["mcp", "--tools", "paper", "--index", str(folder), "--model", address]
        served = StdioServerParameters(command=ARAG, args=arguments, env={"OPENAI_API_KEY": "some-key"})
        anyio.run(session)
