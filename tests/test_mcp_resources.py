"""Documents and chunks as resources of the MCP server."""

from __future__ import annotations

import anyio
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceTemplateReference

from arag import Scope, ingest, make_mcp_server
from fakes import HashEmbeddings, write_corpus
from mcp import Client
from mcp_servers import ARAG, TOKEN, connect, run, served_over_http, use

LONG = "\n\n".join(f"Entry {number}. " + "The keeper wrote down the weather of the day. " * 100 for number in range(24))
ODD = "a b/ü?#50%,{x}.md"
DOCUMENTS = [
    {"id": "boso", "title": "Boso", "text": "Boso the Elder was the father of Teutberga."},
    {"id": ODD, "title": "Odd", "text": "A name that addresses must spell out."},
    {"id": "log/keeper", "title": "The keeper's log", "text": LONG},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    with ingest(write_corpus(folder / "corpus", DOCUMENTS), folder / "index", embedder=HashEmbeddings()) as opened:
        yield opened


async def list_all(client):
    """Return the documents of all pages, and how many pages there are."""
    pages = [await client.list_resources()]
    while pages[-1].next_cursor is not None:
        pages.append(await client.list_resources(cursor=pages[-1].next_cursor))
    return [resource for page in pages for resource in page.resources], len(pages)


async def read_all(client, uri):
    """Return the texts of a document, which are read page by page."""
    texts = []
    while uri is not None:
        contents = (await client.read_resource(uri)).contents
        texts += [content.text for content in contents if content.uri.startswith("arag://chunks/")]
        uri = next((content.uri for content in contents if content.uri.startswith("arag://documents/")), None)
    return texts


async def check_session(client, index):
    """Check that a client can list and read everything."""
    resources, _ = await list_all(client)
    assert {resource.name for resource in resources} == {document["id"] for document in DOCUMENTS}
    for resource in resources:
        expected = [chunk.text for chunk in index.mget(list(index.chunk_ids())) if chunk.document_id == resource.name]
        assert await read_all(client, resource.uri) == expected
    found = await client.call_tool("keyword_search", {"keywords": ["Teutberga"]})
    (chunk,) = found.structured_content["chunks"]
    (content,) = (await client.read_resource(chunk["uri"])).contents
    assert (content.uri, content.text) == (chunk["uri"], DOCUMENTS[0]["text"])


def test_documents_are_listed_and_read_over_stdin_and_stdout(index):
    served = StdioServerParameters(command=ARAG, args=["mcp", "--tools", "paper", "--index", str(index.path)])

    async def session():
        async with Client(stdio_client(served)) as client:
            await check_session(client, index)

    anyio.run(session)


def test_documents_are_listed_and_read_over_http_and_a_scope_hides_the_others(index, monkeypatch):
    monkeypatch.setenv("ARAG_MCP_TOKEN", TOKEN)

    async def session(url):
        async with connect(url) as client:
            await check_session(client, index)

    async def limited(url):
        async with connect(url) as client:
            resources, _ = await list_all(client)
            assert [resource.name for resource in resources] == ["log/keeper"]
            for hidden in ("arag://documents/boso", "arag://chunks/boso:0"):
                with pytest.raises(MCPError, match="There is no resource 'arag://"):
                    await client.read_resource(hidden)

    with served_over_http(index.path) as url:
        anyio.run(session, url)
    with served_over_http(index.path, "--documents", "log/*") as url:
        anyio.run(limited, url)


def test_long_lists_and_long_documents_have_pages(tmp_path):
    documents = [{"id": f"note-{number:03}", "text": f"Note {number}."} for number in range(230)]
    with ingest(write_corpus(tmp_path / "c", documents), tmp_path / "index", embedder=HashEmbeddings()) as index:
        resources, pages = run(list_all, make_mcp_server(index))
    assert (pages, [resource.name for resource in resources]) == (3, [document["id"] for document in documents])


def test_a_page_of_a_document_says_where_the_next_one_is(index):
    async def session(client):
        return (await client.read_resource("arag://documents/log%2Fkeeper")).contents

    *shown, following = run(session, make_mcp_server(index))
    assert [content.uri for content in shown] == [f"arag://chunks/log%2Fkeeper%3A{number}" for number in range(20)]
    left = index.document("log/keeper").chunks - 20
    assert following.text == f"{left} more chunks: read arag://documents/log%2Fkeeper?start=20"


@pytest.mark.parametrize(
    "uri",
    [
        "arag://documents/nobody",
        "arag://documents/boso?start=1",
        "arag://documents/boso?start=-1",
        "arag://documents/boso?start=99999999999",
        "arag://chunks/boso",
        "arag://chunks/",
        "arag://elsewhere/boso:0",
        "file:///etc/passwd",
        "boso:0",
        "\x1b]0;title\x07" * 100,
    ],
)
def test_what_does_not_exist_is_an_error_that_says_what_does(index, uri):
    async def session(client):
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
        return caught.value

    error = run(session, make_mcp_server(index))
    assert error.code == -32602
    assert str(error).endswith("Addresses are arag://documents/{document_id}{?start} and arag://chunks/{chunk_id}.")
    assert len(str(error)) < 300
    assert "\x1b" not in str(error)


def test_clients_complete_ids_within_the_scope(index):
    def complete(server, name, value):
        reference = ResourceTemplateReference(uri=f"arag://{name.removesuffix('_id')}s/{{{name}}}")
        argument = {"name": name, "value": value}
        return run(lambda client: client.complete(reference, argument), server).completion

    server = make_mcp_server(index)
    assert complete(server, "document_id", "keeper").values == ["log/keeper"]
    assert set(complete(server, "document_id", "").values) == {document["id"] for document in DOCUMENTS}
    assert complete(server, "chunk_id", "log/keeper:1").values[:2] == ["log/keeper:1", "log/keeper:10"]
    assert complete(server, "start", "1").values == []
    limited = make_mcp_server(index.limited_to(Scope(documents=["log/*"])))
    assert complete(limited, "document_id", "boso").values == complete(limited, "chunk_id", "boso").values == []


def test_a_call_of_which_every_id_is_unknown_is_an_error(index):
    server = make_mcp_server(index, tools="paper")
    unknown = use(server, "chunk_read", chunk_ids=["nobody:0", "nobody:1"])
    assert (unknown.is_error, "There is no chunk with this id" in unknown.content[0].text) == (True, True)
    partly = use(server, "chunk_read", chunk_ids=["nobody:0", "boso:0"])
    assert (partly.is_error, "There is no chunk with this id" in partly.content[0].text) == (False, True)
