"""What the MCP server's tools return to programs, and how calls report progress."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from pydantic import BaseModel, ConfigDict

from arag.mcp_resources import chunk_uri
from arag.retrieval.index import Index
from arag.text.normalise import collapse_whitespace, shorten

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

BEAT_SECONDS = 10.0  # between signs of life: clients give up after a minute or less
_SHOWN_QUERY = 100  # characters of a query that a message of progress repeats


class ShownChunk(BaseModel):
    """A chunk that a tool has shown."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    chunk_id: str
    """The chunk's id."""
    document_id: str
    """The id of its document."""
    title: str
    """The document's title."""
    pages: tuple[int, int] | None
    """First and last page, for documents that have pages."""
    uri: str
    """The address of its text as a resource."""


class ToolOutput(BaseModel):
    """A retrieval tool's result."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    text: str
    """What was found, for a language model."""
    chunks: list[ShownChunk]
    """The chunks in the text, in order."""


class Source(BaseModel):
    """A chunk that an answer names."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    chunk_id: str
    """The chunk's id."""
    seen: bool
    """Whether the agent saw it in this run."""
    title: str
    """The document's title."""
    pages: list[int] | None
    """First and last page, for documents that have pages."""
    uri: str
    """The address of its text as a resource."""


class AskOutput(BaseModel):
    """An answer with its sources."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    text: str
    """The answer and its sources, for a language model."""
    answer: str
    """The answer alone."""
    stop_reason: str
    """Why the search ended; `cut_off` and `refused` say what the answer is; else, except `answered`, it was forced."""
    grounding: str
    """How far the sources support the answer: supported, partly or none."""
    sources: list[Source]
    """The chunks that the answer names."""


def describe_result(index: Index, text: str, artifact: Mapping[str, Any]) -> dict[str, Any]:
    """Return the structured content of a retrieval tool's result."""
    chunks = []
    for chunk in index.mget(artifact["chunk_ids"]):
        if chunk is None:  # another process has removed it since
            continue
        shown = ShownChunk(
            chunk_id=chunk.id,
            document_id=chunk.document_id,
            title=chunk.title,
            pages=chunk.pages,
            uri=chunk_uri(chunk.id),
        )
        chunks.append(shown)
    return ToolOutput(text=text, chunks=chunks).model_dump(mode="json")


class Progress:
    """Reports the progress of one call, if its client asks for that."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._reports = 0

    async def report(self, message: str) -> None:
        """Send a message."""
        self._reports += 1
        await self._session.report_progress(self._reports, message=message)

    async def report_call(self, event: Mapping[str, Any]) -> None:
        """Say which tool the agent has called."""
        query = shorten(collapse_whitespace(str(event["query"])), _SHOWN_QUERY)
        await self.report(f"{event['tool']}: {query}")

    @asynccontextmanager
    async def signs_of_life(self) -> AsyncIterator[None]:
        """Report from time to time that a call still runs."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._beat)
            yield
            tasks.cancel_scope.cancel()

    async def _beat(self) -> None:
        seconds = 0.0
        while True:
            await anyio.sleep(BEAT_SECONDS)
            seconds += BEAT_SECONDS
            await self.report(f"Still running after {seconds:.0f} seconds")
