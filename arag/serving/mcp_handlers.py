"""What an MCP server answers: the retrieval tools, `ask`, and the documents as resources.

The protocol ties nothing to a conversation: a client may serve several conversations in one session, and shorten them.
So only searches leave out what a session was shown before. A read shows what it is asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import quote, unquote

import anyio
from anyio.to_thread import run_sync
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_function
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    DiscoverResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestParams,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from arag.errors import ARAGError, InputError, without_credentials
from arag.models.asking import is_provider_error
from arag.models.replies import mend_characters
from arag.retrieval.index import Index
from arag.retrieval.tools import make_tools

if TYPE_CHECKING:
    from arag.graph.graph import ARAGAgent
    from arag.graph.state import OutputState

_DOCUMENTS = "arag://documents/"
_PAGE = 100  # documents listed at once
_MAX_RESULTS = 100  # tool results that a session remembers
_MAX_IDLE = 600.0  # seconds without a call, after which a session remembers nothing
_READ = "chunk_read"
_HINTS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ASK = {
    "name": "ask",
    "description": "Have an agent search these documents and answer a question, with sources. It takes longer than a "
    "search.",
    "parameters": {
        "type": "object",
        "properties": {
            "question": {
                "type": "string",
                "description": "The question, with all that is needed to understand it.",
            }
        },
        "required": ["question"],
    },
}
_INSTRUCTIONS = (
    "Search and read a collection of documents. Search for all that you look for, read chunks where what a search "
    "shows is not enough, and cite chunk ids in square brackets."
)
_MEMORY = (
    " A search does not repeat what it has shown in this session, and lists it as 'Shown above'. If it is not above, "
    "read the chunk: that shows it again."
)


@dataclass
class _Session:
    """What one session was shown.

    Attributes:
        lock: Held during a call: each call sees what the ones before were shown.
        results: The results of its tool calls, without their texts.
        used: When it was last used, by the event loop's clock.
    """

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    results: deque[ToolMessage] = field(default_factory=partial(deque, maxlen=_MAX_RESULTS))
    used: float = 0.0


Sessions: TypeAlias = dict[str, _Session]


class Service:
    """The handlers of a server's requests; `make_mcp_server` explains the arguments.

    Attributes:
        server: The server.
    """

    def __init__(self, index: Index, model: str | BaseChatModel | None, *, memory: bool) -> None:
        self._index = index
        self._memory = memory
        self._tools = {tool.name: tool for tool in make_tools(index)}
        self._agent: ARAGAgent | None = None
        self._listed = [_describe(convert_to_openai_function(tool)) for tool in self._tools.values()]
        if model is not None:
            from arag.graph.graph import create_arag_agent

            self._agent = create_arag_agent(model, index)
            self._listed.append(_describe(_ASK))
        self.server: Server[Sessions] = Server(
            "arag",
            version=version("langgraph-arag"),
            instructions=_INSTRUCTIONS + _MEMORY * memory,
            lifespan=_keep_sessions,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_resource_templates,
            on_read_resource=self.read_resource,
        )
        self.server.add_request_handler("server/discover", RequestParams, self.discover)

    async def discover(self, context: Any, _: RequestParams) -> DiscoverResult:
        """Name the protocol versions: over HTTP only those with sessions, if the server is to remember anything."""
        has_sessions = self._memory and context.request is not None
        return DiscoverResult(
            supported_versions=list(HANDSHAKE_PROTOCOL_VERSIONS if has_sessions else MODERN_PROTOCOL_VERSIONS),
            capabilities=self.server.get_capabilities(protocol_version=context.protocol_version),
            instructions=self.server.instructions,
        )

    # --- tools ---

    async def list_tools(self, _context: Any, _: PaginatedRequestParams | None) -> ListToolsResult:
        """List the tools."""
        return ListToolsResult(tools=self._listed)

    async def call_tool(self, context: Any, params: CallToolRequestParams) -> CallToolResult:
        """Call a tool; errors are results."""
        try:
            if params.name == "ask" and self._agent is not None:
                return await self._ask(context, self._agent, params.arguments or {})
            if params.name in self._tools:
                return await self._retrieve(context, params.name, params.arguments or {})
        except ARAGError as error:
            return _result(str(error), is_error=True)
        names = ", ".join(tool.name for tool in self._listed)
        return _result(f"There is no tool {params.name!r}. The tools are: {names}.", is_error=True)

    async def _retrieve(self, context: Any, name: str, arguments: dict[str, Any]) -> CallToolResult:
        session = self._find_session(context)
        async with session.lock:
            held = [] if name == _READ else list(session.results)
            call = {"type": "tool_call", "id": "mcp", "name": name, "args": {**arguments, "messages": held}}
            message = cast("ToolMessage", await run_sync(self._tools[name].invoke, call, abandon_on_cancel=True))
            if self._memory and message.artifact:
                shown = {key: value for key, value in message.artifact.items() if key != "results"}
                session.results.append(ToolMessage("", tool_call_id="mcp", artifact=shown))
        return _result(message.text, is_error=message.status == "error")

    def _find_session(self, context: Any) -> _Session:
        """Return the session of a request, and forget idle ones."""
        sessions, now, key = context.lifespan_context, anyio.current_time(), ""
        if context.request is not None:  # over HTTP; other transports have one client each
            key = context.request.headers.get("mcp-session-id", "")
            if not key or context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                return _Session()
        for other, session in list(sessions.items()):
            if now - session.used > _MAX_IDLE:
                del sessions[other]
        session = cast("_Session", sessions.setdefault(key, _Session()))
        session.used = now
        return session

    async def _ask(self, context: Any, agent: ARAGAgent, arguments: dict[str, Any]) -> CallToolResult:
        question = arguments.get("question")
        if not isinstance(question, str) or not question.strip():
            raise InputError("The question is missing or blank: give it as a string.")
        state: Any = {}
        searches = 0
        try:
            async for mode, event in agent.astream(
                {"messages": [HumanMessage(mend_characters(question))]}, stream_mode=["updates", "values"]
            ):
                if mode == "values":
                    state = event
                elif searched := cast("dict[str, Any]", event).get("tools"):
                    searches += 1
                    await context.session.report_progress(searches, message=_tell(searched))
        except Exception as error:
            if not is_provider_error(error):
                raise
            return _result(f"the model failed: {without_credentials(str(error))}", is_error=True)
        return _answer(state)

    # --- resources ---

    async def list_resources(self, _: Any, params: PaginatedRequestParams | None) -> ListResourcesResult:
        """List one page of documents; the cursor is the last one's id."""
        after = (params.cursor if params else None) or ""
        found = await self._call(lambda: list(islice(self._index.documents(after), _PAGE + 1)))
        listed = [
            Resource(uri=_uri(info.id), name=info.id, title=info.title or None, mime_type="text/plain")
            for info in found[:_PAGE]
        ]
        return ListResourcesResult(resources=listed, next_cursor=found[_PAGE - 1].id if len(found) > _PAGE else None)

    async def list_resource_templates(self, _: Any, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        """List the template of documents' addresses."""
        template = ResourceTemplate(
            uri_template=f"{_DOCUMENTS}{{id}}",
            name="document",
            title="Document",
            description="A document's whole text, by its id.",
            mime_type="text/plain",
        )
        return ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, _: Any, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Read a document."""
        text = None
        if params.uri.startswith(_DOCUMENTS):
            text = await self._call(partial(self._index.document_text, unquote(params.uri.removeprefix(_DOCUMENTS))))
        if text is None:
            message = f"There is no document {params.uri!r}. Addresses look like {_DOCUMENTS}{{id}}."
            raise MCPError(code=INVALID_PARAMS, message=message, data={"uri": params.uri})
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, mime_type="text/plain", text=text)])

    async def _call(self, function: Any) -> Any:
        try:
            return await run_sync(function, abandon_on_cancel=True)
        except ARAGError as error:
            raise MCPError(code=INTERNAL_ERROR, message=str(error)) from error


@asynccontextmanager
async def _keep_sessions(_: Server[Sessions]) -> AsyncIterator[Sessions]:
    yield {}


def _describe(function: dict[str, Any]) -> Tool:
    return Tool(
        name=function["name"],
        description=function["description"],
        input_schema=function["parameters"],
        annotations=_HINTS,
    )


def _result(text: str, *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=is_error)


def _tell(searched: dict[str, Any]) -> str:
    """Describe what one step of the agent found."""
    artifacts = [(m.name, m.artifact if isinstance(m.artifact, dict) else {}) for m in searched["messages"]]
    return "; ".join(f"{name}: {', '.join(artifact.get('chunk_ids', ())) or 'nothing'}" for name, artifact in artifacts)


def _answer(state: OutputState) -> CallToolResult:
    """Return the answer with its sources, as text and as values."""
    text = state["answer"]
    if state["stop_reason"] != "answered":
        text += f"\n\nThe answer was forced: {state['stop_reason']}."
    if state["citations"]:
        text += "\n\nSources:"
    for cited in state["citations"]:
        note = "" if cited["seen"] else " (not seen in this run)"
        text += f"\n[{cited['chunk_id']}] {cited['document']['title'] if cited['document'] else ''}{note}"
    values = {key: state[key] for key in ("answer", "citations", "stop_reason")}
    return CallToolResult(content=[TextContent(text=text)], structured_content=values)


def _uri(document_id: str) -> str:
    return _DOCUMENTS + quote(document_id, safe="")
