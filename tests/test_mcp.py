"""An index for other agents: the SDK's own client, in this process, over stdin and stdout, and over HTTP."""

from __future__ import annotations

import http.client
import json
import re
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
import typer
from langchain_core.messages import AIMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from openai import OpenAIError

from arag import ingest, make_mcp_server, make_tools, serve_mcp
from arag.cli import app
from arag.errors import IndexNotFoundError, InputError
from arag.ingest.pipeline import run_ingest
from fakes import HashEmbeddings, write_corpus, write_index
from mcp import Client
from mcp_servers import TOKEN, connect, run, served_over_http, text, use
from scripted import ScriptedModel, call

CLIENTS = Path(__file__).parent.parent / "docs" / "tools.md"
DOCUMENTS = [
    {"id": "lothair", "title": "Lothair II", "text": "Lothair II was a king. He married Teutberga."},
    {"id": "boso", "title": "Boso", "text": "Boso the Elder was the father of Teutberga."},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    with ingest(write_corpus(folder / "corpus", DOCUMENTS), folder / "index", embedder=HashEmbeddings()) as opened:
        yield opened


# --- tools ---


def test_tools_are_offered_as_models_see_them(index):
    listed = run(lambda client: client.list_tools(), make_mcp_server(index, model="extractive", tools="paper"))
    *offered, ask = listed.tools
    seen = [convert_to_openai_tool(tool)["function"] for tool in make_tools(index, names="paper")]
    assert [{"name": t.name, "description": t.description, "parameters": t.input_schema} for t in offered] == seen
    assert (ask.name, list(ask.input_schema["properties"])) == ("ask", ["question"])
    with pytest.raises(InputError, match="give one or more of keyword_search"):
        make_mcp_server(index, tools=[])


@pytest.mark.parametrize("kind", [str, Path])
def test_a_server_takes_the_location_of_an_index(index, kind):
    result = use(make_mcp_server(kind(index.path), tools="paper"), "keyword_search", keywords=["Boso"])
    assert not result.is_error
    assert "Boso the Elder" in result.content[0].text


def test_no_server_is_made_for_what_is_no_index(tmp_path):
    with pytest.raises(IndexNotFoundError):
        make_mcp_server(tmp_path / "none")
    with pytest.raises(InputError, match="the location of the index is of the type dict"):
        make_mcp_server({})


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("keyword_search", {}, "keywords: Field required"),
        ("chunk_read", {"chunk_ids": []}, "no chunk id given"),
        ("ask", {}, "The question is missing: give it as a string."),
        ("delete", {}, "There is no tool 'delete'. The tools are: keyword_search, semantic_search, chunk_read, ask."),
    ],
)
def test_a_wrong_call_is_told_what_is_wrong(index, name, arguments, told):
    result = use(make_mcp_server(index, model="extractive", tools="paper"), name, **arguments)
    assert (result.is_error, told in result.content[0].text) == (True, True)


def test_tools_have_titles_and_return_what_programs_read(index):
    async def session(client):
        listed = await client.list_tools()
        return listed.tools, await client.call_tool("keyword_search", {"keywords": ["Boso"]})

    tools, result = run(session, make_mcp_server(index, model="extractive", tools="paper"))
    assert [tool.title for tool in tools] == ["Keyword search", "Semantic search", "Chunk read", "Ask"]
    assert all(tool.output_schema["type"] == "object" for tool in tools)
    assert result.structured_content["text"] == result.content[0].text
    boso = {
        "chunk_id": "boso:0",
        "document_id": "boso",
        "title": "Boso",
        "pages": None,
        "uri": "arag://chunks/boso%3A0",
    }
    assert result.structured_content["chunks"] == [boso]


# --- progress ---


def test_ask_reports_the_calls_of_its_agent(index):
    model = ScriptedModel(call("keyword_search", keywords=["Teutberga"]), AIMessage("Boso [boso:0]."))
    told = []

    async def session(client):
        async def note(progress, total, message):
            told.append((progress, message))

        return await client.call_tool("ask", {"question": "Who was her father?"}, progress_callback=note)

    result = run(session, make_mcp_server(index, model=model, tools="paper"))
    assert told == [(1, "keyword_search: ['Teutberga']")]
    answer = result.structured_content
    assert (answer["answer"], answer["stop_reason"]) == ("Boso [boso:0].", "answered")
    (source,) = answer["sources"]
    assert source == {
        "chunk_id": "boso:0",
        "seen": True,
        "title": "Boso",
        "pages": None,
        "uri": "arag://chunks/boso%3A0",
    }


def test_a_long_call_shows_signs_of_life(index, monkeypatch):
    monkeypatch.setattr("arag.mcp_results.BEAT_SECONDS", 0.01)
    is_told = threading.Event()

    def wait(_):
        assert is_told.wait(60)
        return AIMessage("Boso [boso:0].")

    async def session(client):
        async def note(progress, total, message):
            is_told.set()

        return await client.call_tool("ask", {"question": "Who?"}, progress_callback=note)

    assert not run(
        session, make_mcp_server(index, model=ScriptedModel(wait, AIMessage("Boso.")), tools="paper")
    ).is_error
    assert is_told.is_set()


# --- ask ---


def test_ask_answers_with_sources(index):
    answer = "He married Teutberga [lothair:0], not Judith [x.md:3]."
    model = ScriptedModel(call("keyword_search", keywords=["Teutberga"]), AIMessage(answer))
    result = use(make_mcp_server(index, model=model, tools="paper"), "ask", question="Whom did Lothair II marry?")
    assert result.content[0].text == f"{answer}\n\nSources:\n[lothair:0] Lothair II\n[x.md:3]  (not seen in this run)"


def test_a_model_that_fails_is_an_error_of_the_call(index):
    model = ScriptedModel(OpenAIError("no reply from http://user:password@host/v1"))
    result = use(make_mcp_server(index, model=model, tools="paper"), "ask", question="Who was Boso?")
    assert result.is_error
    assert result.content[0].text == "the model failed: no reply from http://***@host/v1"


# --- stdin and stdout ---


@pytest.mark.parametrize("settings", re.findall(r"```json\n(.*?)```", CLIENTS.read_text("utf-8"), flags=re.DOTALL))
def test_the_settings_for_clients_are_a_command_of_ours(settings):
    (servers,) = json.loads(settings).values()
    for server in servers.values():
        command, *arguments = server["args"]
        context = typer.main.get_command(app).commands[command].make_context(command, arguments)
        assert context.params["index"] == "/home/me/my-index"


NOISY = """
import os, sys
import fakes
from arag import open_index, serve_mcp

class HashEmbeddings(fakes.HashEmbeddings):
    def embed_query(self, text):
        print("printed")
        os.write(1, b"written\\n")
        os.system("echo from a child")
        return super().embed_query(text)

with open_index(sys.argv[1], embedder=HashEmbeddings()) as index:
    serve_mcp(index, tools="paper")
"""


def test_a_program_is_served_over_stdin_and_stdout_which_only_the_protocol_reaches(tmp_path):
    arguments = ["-c", NOISY, str(write_index(tmp_path, DOCUMENTS))]
    environment = {"PYTHONPATH": str(Path(__file__).parent)}
    served = StdioServerParameters(command=sys.executable, args=arguments, env=environment)

    async def session(errors):
        async with Client(stdio_client(served, errlog=errors), mode="legacy") as client:
            return await text(client, "semantic_search", queries=["Boso"])

    with (tmp_path / "stderr").open("w+") as errors:
        assert "father" in anyio.run(session, errors)
        errors.seek(0)
        assert {"printed", "written", "from a child"} <= set(errors.read().splitlines())


# --- HTTP ---


def status(url, **headers):
    """Send the first message of a session by hand; return the status of the response."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    return httpx.post(url, json=body, headers={"Accept": "application/json, text/event-stream"} | headers).status_code


def test_a_server_with_a_token_answers_those_who_send_it_about_the_index_as_it_is_now(tmp_path, monkeypatch):
    monkeypatch.setenv("ARAG_MCP_TOKEN", TOKEN)
    folder = write_index(tmp_path, DOCUMENTS)
    changed = [{"id": "boso", "text": "Boso the Elder was a count of Arles."}]

    async def session(url):
        async with connect(url) as client:
            assert "father" in await text(client, "keyword_search", keywords=["Boso"])
            corpus = write_corpus(tmp_path / "changed", changed)
            await anyio.to_thread.run_sync(lambda: run_ingest(corpus, folder, embedder=HashEmbeddings()))
            assert "count of Arles" in await text(client, "keyword_search", keywords=["Boso"])

    async def refused(url):
        async with connect(url, token="wrong"):
            pass

    with served_over_http(folder) as url:
        anyio.run(session, url)
        with pytest.RaisesGroup(MCPError, allow_unwrapped=True, flatten_subgroups=True):
            anyio.run(refused, url)
        assert status(url, Authorization=f"Bearer {TOKEN}", Host="arag.example.com") == 200
        for wrong in ("Bearer wrong", TOKEN, "", "Bearer \u00e9".encode()):
            assert status(url, Authorization=wrong) == 401


def test_a_server_without_a_token_refuses_web_pages(tmp_path):
    with served_over_http(write_index(tmp_path, DOCUMENTS)) as url:
        assert status(url) == 200
        assert status(url, Host="example.com") == 421  # a page's own name, which it has led to this machine
        assert status(url, Origin="https://example.com") == status(url, Origin="null") == 403


def test_spaces_around_a_headers_value_do_not_count(tmp_path):
    version = "2026-07-28"
    envelope = {"protocolVersion": version, "clientCapabilities": {}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in envelope.items()}
    params = {"name": "keyword_search", "arguments": {"keywords": ["Boso"]}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers |= {"MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": "  keyword_search  "}
    with served_over_http(write_index(tmp_path, DOCUMENTS)) as url:
        connection = http.client.HTTPConnection(urlsplit(url).netloc)  # httpx drops the spaces
        connection.request("POST", "/mcp", json.dumps(body), headers)
        response = connection.getresponse()
        assert (response.status, "father of Teutberga" in response.read().decode()) == (200, True)
        connection.close()


@pytest.mark.parametrize(
    ("host", "token", "told"),
    [
        ("0.0.0.0", None, "other machines can reach 0.0.0.0: give a token that clients must send"),
        ("192.0.2.1", TOKEN, "cannot listen at 192.0.2.1, port 8765"),
        ("127.0.0.1", "", "the token is not valid"),
    ],
)
def test_a_server_that_must_not_start_says_why(index, arag, monkeypatch, host, token, told):
    if token is not None:
        monkeypatch.setenv("ARAG_MCP_TOKEN", token)
    code, out, err = arag("mcp", "--http", "--host", host, "--index", index.path)
    assert (code, out, told in err) == (1, "", True)


def test_the_extra_is_named_where_it_is_missing(index, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    with pytest.raises(InputError, match=r"pip install 'langgraph-arag\[mcp\]'"):
        serve_mcp(index, tools="paper")
