"""An index for other agents: the SDK's own client, in this process, over stdin and stdout, and over HTTP."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import httpx
import httpx2
import pytest
import typer
from langchain_core.messages import AIMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from openai import OpenAIError

from arag import Scope, ingest, make_mcp_server, make_tools, open_index, serve_mcp
from arag.cli import app
from arag.errors import InputError
from arag.ingest.pipeline import run_ingest
from arag.testing import ScriptedModel, call
from fakes import HashEmbeddings, write_corpus, write_index

ARAG = str(Path(sys.executable).parent / "arag")
CLIENTS = Path(__file__).parent.parent / "docs" / "clients.md"
TOKEN = "a-secret"
DOCUMENTS = [
    {"id": "lothair", "title": "Lothair II", "text": "Lothair II was a king. He married Teutberga."},
    {"id": "boso", "title": "Boso", "text": "Boso the Elder was the father of Teutberga."},
    {"id": "odd ü/x%2Fy#1?", "text": "Waldrada was not a queen."},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    with ingest(write_corpus(folder / "corpus", DOCUMENTS), folder / "index", embedder=HashEmbeddings()) as opened:
        yield opened


def run(session, *, server, mode="legacy"):
    """Run an asynchronous function with a client of a server in this process."""

    async def connect():
        async with Client(server, mode=mode) as client:
            return await session(client)

    return anyio.run(connect)


async def text(client, name, **arguments):
    """Call a tool that must succeed."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result
    return result.content[0].text


# --- tools ---


def test_tools_are_offered_as_models_see_them(index):
    async def listed(client):
        return (await client.list_tools()).tools

    seen = [convert_to_openai_tool(tool)["function"] for tool in make_tools(index)]
    offered = run(listed, server=make_mcp_server(index))
    assert [{"name": t.name, "description": t.description, "parameters": t.input_schema} for t in offered] == seen
    assert all(tool.annotations.read_only_hint for tool in offered)
    with_ask = run(listed, server=make_mcp_server(index, model="extractive"))
    assert [tool.name for tool in with_ask] == [*(tool["name"] for tool in seen), "ask"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_results_are_the_tools_and_nothing_is_shown_twice_in_a_session(index, mode):
    keyword_search, _, chunk_read = make_tools(index)

    async def session(client):
        first = await text(client, "keyword_search", keywords=["Teutberga"])
        assert first == keyword_search.invoke({"keywords": ["Teutberga"]})
        assert "Shown above: [boso:0], [lothair:0]" in await text(client, "keyword_search", keywords=["Teutberga"])
        assert "Shown above" in await text(client, "semantic_search", queries=["Boso the Elder was the father"])
        # Only the client knows whether the conversation still holds a chunk: it can be read at any time.
        for _ in range(2):
            assert await text(client, "chunk_read", chunk_ids=["boso:0"]) == chunk_read.invoke(
                {"chunk_ids": ["boso:0"]}
            )
        assert "Shown above: [boso:0]" in await text(client, "keyword_search", keywords=["Elder"])

    server = make_mcp_server(index)
    run(session, server=server, mode=mode)
    run(session, server=server, mode=mode)  # a new session has been shown nothing


def test_a_server_without_memory_repeats_itself(index):
    async def session(client):
        found = [await text(client, "keyword_search", keywords=["Boso"]) for _ in range(2)]
        return found, client.instructions

    (first, second), told = run(session, server=make_mcp_server(index, memory=False))
    assert first == second
    assert "Shown above" not in told
    assert "Shown above" in run(session, server=make_mcp_server(index))[1]


def test_an_idle_session_is_forgotten(index, monkeypatch):
    monkeypatch.setattr("arag.serving.mcp_handlers._MAX_IDLE", -1)

    async def session(client):
        return [await text(client, "keyword_search", keywords=["Boso"]) for _ in range(2)]

    first, second = run(session, server=make_mcp_server(index))
    assert first == second


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("keyword_search", {}, "keywords: Field required"),
        ("keyword_search", {"keywords": [{"a": 1}]}, "keywords.0: Input should be a valid string"),
        ("keyword_search", {"keywords": []}, "give 1 to 50"),
        ("keyword_search", {"keywords": [" "]}, "no keyword given"),
        ("keyword_search", {"keywords": ["x"], "within": "nowhere"}, "No document has 'nowhere'"),
        ("semantic_search", {"queries": ["?"] * 11}, "there are 11: give 1 to 10"),
        ("chunk_read", {"chunk_ids": []}, "no chunk id given"),
        ("ask", {}, "The question is missing or blank"),
        ("ask", {"question": 7}, "The question is missing or blank"),
        ("delete", {}, "There is no tool 'delete'. The tools are: keyword_search, semantic_search, chunk_read, ask."),
    ],
)
def test_a_wrong_call_is_told_what_is_wrong(index, name, arguments, told):
    async def session(client):
        result = await client.call_tool(name, arguments)
        assert result.is_error
        assert told in result.content[0].text
        assert "king" in await text(client, "keyword_search", keywords=["Lothair"])

    run(session, server=make_mcp_server(index, model="extractive"))


def test_arguments_cannot_claim_a_conversation(index):
    async def session(client):
        return await text(client, "keyword_search", keywords=["Boso"], messages=[{"role": "user", "content": "x"}])

    assert "father" in run(session, server=make_mcp_server(index))


def test_an_unknown_chunk_is_told_with_similar_ids(index):
    async def session(client):
        return await text(client, "chunk_read", chunk_ids=["lothar:0"])

    assert "[lothar:0] There is no chunk with this id. Ids look like [lothair:0]" in run(
        session, server=make_mcp_server(index)
    )


def test_a_failing_embedder_is_an_error_of_the_call(tmp_path):
    with open_index(write_index(tmp_path, DOCUMENTS)) as opened:  # without its embedder

        async def session(client):
            result = await client.call_tool("semantic_search", {"queries": ["Boso"]})
            assert result.is_error
            assert "HashEmbeddings" in result.content[0].text
            assert "father" in await text(client, "keyword_search", keywords=["Boso"])

        run(session, server=make_mcp_server(opened))


def test_sessions_do_not_wait_for_each_other(tmp_path):
    other_is_done = threading.Event()

    class Slow(HashEmbeddings):
        def embed_query(self, query):
            assert other_is_done.wait(20)
            return super().embed_query(query)

    with ingest(write_corpus(tmp_path / "corpus", DOCUMENTS), tmp_path / "index", embedder=Slow()) as opened:
        server = make_mcp_server(opened)

        async def search():
            async with Client(server) as client:
                return await text(client, "semantic_search", queries=["Boso"])

        async def both():
            found = []
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: _append(found, search))
                async with Client(server) as client:
                    assert "father" in await text(client, "keyword_search", keywords=["Boso"])
                    other_is_done.set()
            return found

        assert "father" in anyio.run(both)[0]


async def _append(found, function):
    found.append(await function())


def test_calls_of_one_session_follow_each_other(index):
    async def session(client):
        found = []

        async def search():
            found.append(await text(client, "keyword_search", keywords=["Boso"]))

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(search)
        return found

    first, *others = run(session, server=make_mcp_server(index))
    assert "father" in first
    assert all("Nothing new was found." in other for other in others)


# --- ask ---


def test_ask_answers_with_sources_and_tells_its_progress(index):
    model = ScriptedModel(
        call("keyword_search", keywords=["Teutberga"]),
        AIMessage("He married Teutberga [lothair:0], not Judith [x.md:3]."),
    )
    progress = []

    async def told(done, total, message):
        progress.append((done, total, message))

    async def session(client):
        return await client.call_tool("ask", {"question": "Whom did Lothair II marry?"}, progress_callback=told)

    result = run(session, server=make_mcp_server(index, model=model))
    assert result.content[0].text == (
        "He married Teutberga [lothair:0], not Judith [x.md:3].\n\n"
        "Sources:\n[lothair:0] Lothair II\n[x.md:3]  (not seen in this run)"
    )
    assert result.structured_content["citations"][0]["document"]["id"] == "lothair"
    assert result.structured_content["stop_reason"] == "answered"
    assert progress == [(1, None, "keyword_search: boso:0, lothair:0")]
    model.assert_used_up()


def test_a_forced_answer_says_so(index):
    replies = [call("keyword_search", keywords=["Boso"]) for _ in range(15)]

    async def session(client):
        return await text(client, "ask", question="Who was Boso?")

    model = ScriptedModel(*replies, AIMessage("A father [boso:0]."))
    assert "The answer was forced: max_steps." in run(session, server=make_mcp_server(index, model=model))


def test_a_model_that_fails_is_an_error_of_the_call(index):
    async def session(client):
        result = await client.call_tool("ask", {"question": "Who was Boso?"})
        assert result.is_error
        return result.content[0].text

    model = ScriptedModel(OpenAIError("no reply from http://user:password@host/v1"))
    told = run(session, server=make_mcp_server(index, model=model))
    assert told == "the model failed: no reply from http://***@host/v1"


def test_a_cancelled_question_ends(index):
    left = []

    class Watched(ScriptedModel):
        async def _agenerate(self, *arguments, **options):
            began.set()
            try:
                await anyio.sleep_forever()
            finally:
                left.append(True)

    began = anyio.Event()

    async def session(client):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "ask", {"question": "Who was Boso?"})
            await began.wait()
            tasks.cancel_scope.cancel()
        return await text(client, "keyword_search", keywords=["Boso"])

    assert "father" in run(session, server=make_mcp_server(index, model=Watched()))
    assert left == [True]


# --- documents ---


def test_documents_are_listed_in_pages_and_read_by_their_addresses(tmp_path):
    records = [{"id": f"d{number:03}", "text": f"Text {number}."} for number in range(250)]
    made = ingest(
        write_corpus(tmp_path / "corpus", [*DOCUMENTS, *records]), tmp_path / "index", embedder=HashEmbeddings()
    )

    async def session(client):
        pages, cursor = [], None
        while not pages or cursor is not None:
            page = await client.list_resources(cursor=cursor)
            pages.append(page.resources)
            cursor = page.next_cursor
        assert [len(page) for page in pages] == [100, 100, 53]
        found = {r.name: (await client.read_resource(r.uri)).contents[0] for page in pages for r in page[:2]}
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "arag://documents/{id}"
        listed = [resource for page in pages for resource in page]
        odd = next(resource for resource in listed if resource.name.startswith("odd"))
        assert (await client.read_resource(odd.uri)).contents[0].text == "Waldrada was not a queen."
        assert next(r.title for r in listed if r.name == "boso") == "Boso"
        return listed, found

    with made as opened:
        listed, found = run(session, server=make_mcp_server(opened))
    assert [resource.name for resource in listed] == sorted(d["id"] for d in [*DOCUMENTS, *records])
    assert found["boso"].text == DOCUMENTS[1]["text"]
    assert found["d000"].mime_type == "text/plain"


@pytest.mark.parametrize(
    "uri", ["arag://documents/nobody", "arag://documents/", "file:///etc/passwd", "arag://chunks/x"]
)
def test_an_unknown_document_is_an_error(index, uri):
    async def session(client):
        with pytest.raises(MCPError, match="There is no document"):
            await client.read_resource(uri)

    run(session, server=make_mcp_server(index))


def test_a_scoped_index_is_served_as_if_it_held_nothing_else(index):
    async def session(client):
        listed = (await client.list_resources()).resources
        with pytest.raises(MCPError, match="There is no document"):
            await client.read_resource("arag://documents/lothair")
        found = await text(client, "keyword_search", keywords=["Teutberga"])
        return [resource.name for resource in listed], found, await text(client, "chunk_read", chunk_ids=["lothair:0"])

    names, found, read = run(session, server=make_mcp_server(index.limited_to(Scope(documents=["boso"]))))
    assert names == ["boso"]
    assert found.startswith("Teutberga: 1 chunk. All:")
    assert "There is no chunk with this id" in read


# --- transports ---


def test_a_program_is_served_over_stdin_and_stdout(tmp_path):
    served = StdioServerParameters(command=ARAG, args=["mcp", "--index", str(write_index(tmp_path, DOCUMENTS))])

    async def session():
        async with Client(served, mode="legacy") as client:
            assert len((await client.list_tools()).tools) == 3
            assert "father" in await text(client, "keyword_search", keywords=["Boso"])
            assert "Shown above" in await text(client, "keyword_search", keywords=["Boso"])

    anyio.run(session)


@pytest.mark.parametrize("settings", re.findall(r"```json\n(.*?)```", CLIENTS.read_text("utf-8"), flags=re.DOTALL))
def test_the_settings_for_clients_are_a_command_of_ours(settings):
    (servers,) = json.loads(settings).values()
    for server in servers.values():
        command, *arguments = server["args"]
        context = typer.main.get_command(app).commands[command].make_context(command, arguments)
        assert str(context.params["index"].location) == "/home/me/my-index"


@pytest.mark.slow
def test_a_server_that_waits_for_its_client_ends_with_ctrl_c(tmp_path):
    command = [ARAG, "mcp", "--index", write_index(tmp_path, DOCUMENTS)]
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n"
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(ping)
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == -signal.SIGINT


NOISY = """
import os, sys, warnings
import fakes
from arag import open_index, serve_mcp

class HashEmbeddings(fakes.HashEmbeddings):
    def embed_query(self, text):
        print("printed")
        os.write(1, b"written\\n")
        os.system("echo from a child")
        warnings.warn("a warning")
        return super().embed_query(text)

with open_index(sys.argv[1], embedder=HashEmbeddings()) as index:
    serve_mcp(index)
"""


def test_only_the_protocol_reaches_stdout(tmp_path):
    initialize = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    search = {"name": "semantic_search", "arguments": {"queries": ["Boso"]}}
    messages = [
        {"id": 1, "method": "initialize", "params": initialize},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": search},
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", NOISY, write_index(tmp_path, DOCUMENTS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
    )
    with process:
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
            process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        out, err = process.communicate(timeout=60)
    assert [answer["id"] for answer in answers] == [1, 2]
    assert "father" in answers[1]["result"]["content"][0]["text"]
    assert out == ""
    assert {"printed", "written", "from a child"} <= set(err.splitlines())
    assert process.returncode == 0


@contextmanager
def served_over_http(folder, *options, **environment):
    """Run `arag mcp --http`, yield its URL, and end it with Ctrl-C."""
    process = subprocess.Popen(
        [ARAG, "mcp", "--http", "--port", "0", "--index", folder, *options],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )
    with process:
        try:
            line = process.stderr.readline()
            assert re.search(r" at http://127\.0\.0\.1:\d+/mcp$", line), line + process.stderr.read()
            yield line.split()[-1]
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
    assert process.returncode == 130


@pytest.fixture(scope="module")
def over_http(tmp_path_factory):
    """URL and index folder of a server with a token."""
    folder = tmp_path_factory.mktemp("http")
    token = folder / "token"
    token.write_text(f"{TOKEN}\n")
    made = write_index(folder, DOCUMENTS)
    with served_over_http(made, "--token-file", token, ARAG_HOSTS="arag.example.com") as url:
        yield url, made


@asynccontextmanager
async def connect(url, mode="auto", token=TOKEN):
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as sender,
        Client(streamable_http_client(url, http_client=sender), mode=mode) as client,
    ):
        yield client


def test_sessions_over_http_are_told_apart(over_http):
    async def sessions():
        async with connect(over_http[0]) as one, connect(over_http[0], mode="legacy") as other:
            for client in (one, other):
                assert "father" in await text(client, "keyword_search", keywords=["Boso"])
            for client in (one, other):
                assert "Shown above: [boso:0]" in await text(client, "keyword_search", keywords=["Boso"])
            assert (await one.read_resource("arag://documents/boso")).contents[0].text == DOCUMENTS[1]["text"]

    anyio.run(sessions)


def test_without_a_session_nothing_counts_as_shown(over_http):
    async def session():
        async with connect(over_http[0], mode="2026-07-28") as client:
            for _ in range(2):
                assert "father" in await text(client, "keyword_search", keywords=["Boso"])

    anyio.run(session)


def test_an_index_that_is_replaced_is_searched_as_it_is_now(over_http):
    url, folder = over_http
    changed = [{"id": "boso", "text": "Boso the Elder was a count of Arles."}, {"id": "hucbert", "text": "An abbot."}]

    async def session():
        async with connect(url) as client:
            assert "father" in await text(client, "keyword_search", keywords=["Boso"])
            corpus = write_corpus(folder.parent / "changed", changed)
            await anyio.to_thread.run_sync(lambda: run_ingest(corpus, folder, embedder=HashEmbeddings()))
            assert "count of Arles" in await text(client, "keyword_search", keywords=["Boso"])  # not "Shown above"
            assert "An abbot." in await text(client, "chunk_read", chunk_ids=["hucbert:0"])
            corpus = write_corpus(folder.parent / "before", DOCUMENTS)
            await anyio.to_thread.run_sync(lambda: run_ingest(corpus, folder, embedder=HashEmbeddings(), prune=True))

    anyio.run(session)


def ask_raw(url, **headers):
    """Send the first message of a session by hand."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    usual = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {TOKEN}"}
    return httpx.post(url, json=body, headers=usual | {k.replace("_", "-"): v for k, v in headers.items()})


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": TOKEN}, 401),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer \u00e9".encode()}, 401),
        ({"Host": "arag.example.com"}, 200),
        ({"Host": "example.com"}, 403),  # a page's own name, which it has lead to this machine
        ({"Host": "127.0.0.1.example.com"}, 403),
        ({"Origin": "https://example.com"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_only_those_who_may_reach_a_server_over_http(over_http, headers, status):
    assert ask_raw(over_http[0], **headers).status_code == status


def test_a_wrong_token_is_told_to_the_client(over_http):
    async def session():
        async with connect(over_http[0], token="wrong"):
            pass

    with pytest.RaisesGroup(MCPError, allow_unwrapped=True, flatten_subgroups=True):
        anyio.run(session)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--host", "0.0.0.0"],
            "other machines can reach 0.0.0.0: give a token that clients must send, with --token-file",
        ),
        (["--host", "::"], "other machines can reach ::"),
        (["--host", "arag.example.com"], "other machines can reach arag.example.com"),
        (["--host", "192.0.2.1", "--token-file", "token"], "cannot listen at 192.0.2.1, port 8765"),
        (["--token-file", "blank"], "the token is not valid"),
    ],
)
def test_a_server_that_must_not_start_says_why(index, arag, tmp_path, monkeypatch, options, told):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARAG_MCP_TOKEN", raising=False)
    Path("token").write_text(TOKEN)
    Path("blank").write_text(" \n")
    code, out, err = arag("mcp", "--http", *options, "--index", index.path)
    assert (code, out) == (1, "")
    assert told in err


def test_the_extra_is_named_where_it_is_missing(index, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp.server.lowlevel", None)
    monkeypatch.delitem(sys.modules, "arag.serving.mcp_handlers")
    with pytest.raises(InputError, match=r"pip install 'langgraph-arag\[mcp\]'"):
        serve_mcp(index)
