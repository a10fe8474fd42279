"""The MCP server's resources: the documents of an index and their chunks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypedDict
from urllib.parse import quote, unquote

import anyio

from arag.retrieval.index import Index
from arag.retrieval.types import Chunk, DocumentInfo
from arag.text.normalise import shorten

if TYPE_CHECKING:
    import mcp_types as types

DOCUMENTS = "arag://documents/"
CHUNKS = "arag://chunks/"
_DOCUMENT_TEMPLATE = f"{DOCUMENTS}{{document_id}}{{?start}}"
_CHUNK_TEMPLATE = f"{CHUNKS}{{chunk_id}}"
_DOCUMENT = re.compile(rf"{DOCUMENTS}([^?]*)(?:\?start=(\d{{0,9}}))?")

_LISTED_AT_ONCE = 100  # documents of a page
_READ_AT_ONCE = 20  # chunks of a document: more may be too much for a model
_MAX_COMPLETIONS = 100  # the protocol's limit
SHOWN_NAME = 100  # characters of an unknown name or address that an error repeats; clients may send any text
_TEXT = "text/plain"


class Handlers(TypedDict):
    """The handlers that the SDK's server takes."""

    on_list_resources: Any
    on_list_resource_templates: Any
    on_read_resource: Any
    on_completion: Any


def chunk_uri(chunk_id: str) -> str:
    """Return the address of a chunk."""
    return f"{CHUNKS}{quote(chunk_id, safe='', errors='replace')}"


def document_uri(document_id: str) -> str:
    """Return the address of a document."""
    return f"{DOCUMENTS}{quote(document_id, safe='')}"


def make_resource_handlers(index: Index) -> Handlers:
    """Make the handlers for an index's documents and chunks; a limited index shows its own only."""
    import mcp_types as types

    async def list_resources(_: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        after = params.cursor if params and params.cursor else ""
        return await anyio.to_thread.run_sync(_list_page, index, after)

    async def list_templates(_context: Any, _params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=_make_templates())

    async def read(_: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        contents = await anyio.to_thread.run_sync(_read, index, params.uri)
        return types.ReadResourceResult(contents=contents)

    async def complete(_: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
        argument = params.argument
        found = await anyio.to_thread.run_sync(_complete, index, argument.name, argument.value)
        return types.CompleteResult(completion=found)

    return Handlers(
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read,
        on_completion=complete,
    )


def _list_page(index: Index, after: str) -> types.ListResourcesResult:
    """Return the documents whose ids come next after one, in the order of ids."""
    import mcp_types as types

    page = list(islice(index.documents(after=after), _LISTED_AT_ONCE + 1))
    listed = page[:_LISTED_AT_ONCE]
    return types.ListResourcesResult(
        resources=[_describe(document) for document in listed],
        next_cursor=listed[-1].id if len(page) > len(listed) else None,
    )


def _describe(document: DocumentInfo) -> types.Resource:
    import mcp_types as types

    return types.Resource(
        uri=document_uri(document.id),
        name=document.id,
        title=document.title or None,
        mime_type=_TEXT,
    )


def _make_templates() -> list[types.ResourceTemplate]:
    import mcp_types as types

    document = types.ResourceTemplate(
        uri_template=_DOCUMENT_TEMPLATE,
        name="document",
        title="Document",
        description=f"A document's text: {_READ_AT_ONCE} chunks from number `start` (from 0), and where to read on.",
        mime_type=_TEXT,
    )
    chunk = types.ResourceTemplate(
        uri_template=_CHUNK_TEMPLATE,
        name="chunk",
        title="Chunk",
        description="The text of a chunk that a search has named.",
        mime_type=_TEXT,
    )
    return [document, chunk]


def _read(index: Index, uri: str) -> Sequence[types.TextResourceContents]:
    """Return the texts at an address.

    Raises:
        MCPError: There is nothing.
    """
    named = _DOCUMENT.fullmatch(uri)
    if named:
        contents = _read_document(index, unquote(named[1]), int(named[2] or 0))
    else:
        chunk = index.get(unquote(uri.removeprefix(CHUNKS)))
        contents = [_make_content(chunk)] if chunk and uri.startswith(CHUNKS) else []
    if not contents:
        raise _not_found(uri)
    return contents


def _read_document(index: Index, document_id: str, first: int) -> list[types.TextResourceContents]:
    """Return some chunks of a document, each at its own address, and where the next ones are."""
    import mcp_types as types

    chunks = index.chunks_of(document_id)
    end = first + _READ_AT_ONCE
    contents = [_make_content(chunk) for chunk in chunks[first:end]]
    if contents and end < len(chunks):
        following = f"{document_uri(document_id)}?start={end}"
        text = f"{len(chunks) - end} more chunks: read {following}"
        contents.append(types.TextResourceContents(uri=following, mime_type=_TEXT, text=text))
    return contents


def _make_content(chunk: Chunk) -> types.TextResourceContents:
    import mcp_types as types

    return types.TextResourceContents(uri=chunk_uri(chunk.id), mime_type=_TEXT, text=chunk.text)


def _not_found(uri: str) -> Exception:
    import mcp_types as types
    from mcp.shared.exceptions import MCPError

    shown = shorten(repr(uri), SHOWN_NAME)
    text = f"There is no resource {shown}. Addresses are {_DOCUMENT_TEMPLATE} and {_CHUNK_TEMPLATE}."
    return MCPError(types.INVALID_PARAMS, text, {"uri": uri[:SHOWN_NAME]})


def _complete(index: Index, argument: str, value: str) -> types.Completion:
    """Return the documents that a part of a name may mean, or the chunks whose ids begin with a text."""
    import mcp_types as types

    wanted = _MAX_COMPLETIONS + 1
    ids: list[str] = []
    if argument == "chunk_id":
        ids = index.chunk_ids_beginning_with(value, wanted)
    elif argument == "document_id" and value.strip():
        ids = index.find_documents(value, limit=wanted)
    elif argument == "document_id":
        ids = [document.id for document in islice(index.documents(), wanted)]
    return types.Completion(values=ids[:_MAX_COMPLETIONS], has_more=len(ids) > _MAX_COMPLETIONS)
