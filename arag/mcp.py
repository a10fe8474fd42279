"""An index as a server for other agents, over the Model Context Protocol (MCP).

The SDK is the extra `mcp`: it is imported when a server is made.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import socket
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import anyio
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langchain_core.utils.function_calling import convert_to_openai_function

from arag.errors import ARAGError, InputError
from arag.mcp_resources import SHOWN_NAME, chunk_uri, make_resource_handlers
from arag.mcp_results import AskOutput, Progress, Source, ToolOutput, describe_result
from arag.models.chat import naming_failures
from arag.retrieval.index import Index, ensure_open
from arag.retrieval.tools.sets import DEFAULT_TOOLS, ToolSet, make_tools
from arag.system.stopping import stopping_at_exit
from arag.terminal import err
from arag.text.marks import mark, without_marks
from arag.text.normalise import collapse_whitespace, shorten
from arag.text.surrogates import replace_surrogates

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server.lowlevel import Server

    from arag.graph.cited import Citation
    from arag.graph.state import InputState, State

T = TypeVar("T")

TOKEN_VARIABLE = "ARAG_MCP_TOKEN"  # noqa: S105 - a variable's name
_LOOPBACK_HOSTS = ("127.0.0.1", "localhost")
_SHUTDOWN_SECONDS = 2  # for open requests after Ctrl-C: enough for a search, and short for whoever waits
_INSTRUCTIONS = (
    "Search and read a collection of documents. Look for all that you need in one call, and cite chunk ids in square "
    "brackets."
)


def make_mcp_server(
    index: Index | str | Path,
    *,
    model: str | BaseChatModel | None = None,
    tools: ToolSet | Sequence[str] | None = None,
) -> Server[Any]:
    """Make an MCP server for an index: the SDK's `Server`, to run with any of its transports.

    It offers retrieval tools, with the schemas and texts that the agent's model gets, and the documents and chunks as
    resources. Calls share no memory: a search shows everything, whatever the client was shown before. Errors are
    results with `isError`, which a model can correct. A call that its client cancels ends its command, its SQL and its
    search for a pattern, and asks no model again; a search by keywords or meaning runs to its end.

    Args:
        index: The index, or where it is. It must stay open while the server runs.
        model: A chat model, or a string for `load_model`: then there is also the tool `ask`, for which the agent
            answers a question.
        tools: The retrieval tools to offer, as for `make_tools`; the agent of `ask` has them, too.

    Returns:
        The server.

    Raises:
        InputError: The package `mcp` is not installed.
        IndexNotFoundError: There is no index there.

    Example:
        >>> server = make_mcp_server(index, model="extractive")
        >>> server.name
        'arag'
    """
    try:
        import mcp_types as types
        from mcp.server.lowlevel import Server
    except ModuleNotFoundError as error:
        raise InputError("an MCP server needs the package mcp: pip install 'langgraph-arag[mcp]'") from error

    opened = ensure_open(index)
    offered = {tool.name: tool for tool in make_tools(opened, names=DEFAULT_TOOLS if tools is None else tools)}
    if model is not None:
        offered["ask"] = _make_ask(opened, model, tools)
    offers = [_describe_tool(each) for each in offered.values()]

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=offers)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in offered:
            name = shorten(repr(params.name), SHOWN_NAME)
            return make_error(f"There is no tool {name}. The tools are: {', '.join(offered)}.")
        call = {
            "type": "tool_call",
            "id": "mcp",
            "name": params.name,
            "args": {**(params.arguments or {}), "messages": []},  # a client cannot make up a conversation
        }
        progress = Progress(context.session)
        async with progress.signs_of_life():
            try:
                with stopping_at_exit():
                    invocation = offered[params.name].ainvoke(call, {"configurable": {"progress": progress}})
                    message = await _cancelling_once(invocation)
            except ARAGError as error:
                return make_error(str(error))
        if message.status == "error" or _has_nothing_known(message.artifact):
            return make_error(message.text)
        structured = message.artifact
        if params.name != "ask":
            structured = await anyio.to_thread.run_sync(describe_result, opened, message.text, message.artifact)
        content = [types.TextContent(text=message.text)]
        return types.CallToolResult(content=content, structured_content=structured)

    def make_error(text: str) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)

    return Server(
        "arag",
        title="A-RAG",
        version=version("langgraph-arag"),
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        **make_resource_handlers(opened),
    )


def _describe_tool(offered: BaseTool) -> types.Tool:
    """Return what clients are told about a tool."""
    import mcp_types as types

    function = convert_to_openai_function(offered)
    output = AskOutput if offered.name == "ask" else ToolOutput
    return types.Tool(
        name=function["name"],
        title=offered.name.replace("_", " ").capitalize(),
        description=function["description"],
        input_schema=function["parameters"],
        output_schema=output.model_json_schema(mode="serialization"),
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )


async def _cancelling_once(call: Coroutine[Any, Any, T]) -> T:
    """Await a call; if this is cancelled, cancel the call once.

    The SDK's cancellations interrupt every later `await`, too: LangGraph could not end what a run has started.
    """
    task = asyncio.create_task(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task])
        raise


def _has_nothing_known(artifact: Mapping[str, Any]) -> bool:
    """Return whether all ids that a call named are unknown."""
    return bool(artifact.get("results", {}).get("unknown")) and not artifact["chunk_ids"]


def _make_ask(index: Index, model: str | BaseChatModel, tools: ToolSet | Sequence[str] | None) -> BaseTool:
    """Make the tool that has the agent answer a question."""
    from arag.graph.graph import create_arag_agent

    agent = create_arag_agent(model, index, tools=tools)

    @tool(response_format="content_and_artifact")
    async def ask(
        question: Annotated[str, "The question, with all that is needed to understand it."],
        config: RunnableConfig,
    ) -> tuple[str, dict[str, Any]]:
        """Have an agent search these documents and answer a question, with sources. It takes longer than a search."""
        progress: Progress = config["configurable"]["progress"]
        asked: InputState = {"messages": [HumanMessage(replace_surrogates(question))]}
        state: dict[str, Any] = {}
        with naming_failures("the model"):
            streamed: AsyncIterator[Any] = agent.astream(asked, stream_mode=["values", "custom"])
            async for mode, part in streamed:
                if mode == "custom":
                    await progress.report_call(part)
                else:
                    state = part
        return _write_answer(state)

    ask.handle_validation_error = "The question is missing: give it as a string."
    return ask


def _write_answer(state: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return an answer with its sources as a text, and as structured content."""
    from arag.graph.outcome import describe_end

    answer = state["answer"]
    end = describe_end(cast("State", state))
    if end:
        answer = f"{answer}\n\n{end}"
    lines = [_write_source(citation) for citation in state["citations"]] or ["none"]
    sources = []
    for citation in state["citations"]:
        document = citation["document"]
        source = Source(
            chunk_id=citation["chunk_id"],
            seen=citation["seen"],
            title=document["title"] if document else "",
            pages=citation["pages"],
            uri=chunk_uri(citation["chunk_id"]),
        )
        sources.append(source)
    # An answer may quote such a line, too: the last line "Sources:" is always ours.
    text = "\n".join([answer, "", "Sources:", *lines])
    output = AskOutput(
        text=text,
        answer=state["answer"],
        stop_reason=state["stop_reason"],
        grounding=state["grounding"],
        sources=sources,
    )
    return text, output.model_dump(mode="json")


def _write_source(citation: Citation) -> str:
    """Return the line of a source: its mark and title."""
    document = citation["document"]
    title = ""
    if document is not None:
        title = without_marks(collapse_whitespace(document["title"]))
    note = "" if citation["seen"] else " (not seen in this run)"
    return f"{mark(citation['chunk_id'])} {title}{note}"


def serve_mcp(
    index: Index | str | Path,
    *,
    model: str | BaseChatModel | None = None,
    tools: ToolSet | Sequence[str] | None = None,
    http: bool = False,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str | None = None,
) -> None:
    """Serve an index over MCP until the client disconnects, or until Ctrl-C.

    Args:
        index: The index, or where it is.
        model: A chat model, or a string for `load_model`, for the tool `ask`; without it, there is no such tool.
        tools: The retrieval tools to offer, as for `make_tools`.
        http: Serve over streamable HTTP, instead of stdin and stdout. The address is printed on stderr.
        host: The address to listen at.
        port: The port; 0 for any that is free.
        token: Clients must send it as `Authorization: Bearer <token>`. Without one, web pages are refused.

    Raises:
        InputError: The package `mcp` is not installed, the token is not valid, or other machines could reach the server
            without one; or it cannot listen at the address.
        IndexNotFoundError: There is no index there.
        KeyboardInterrupt: The user stopped a server over HTTP.

    Example:
        >>> serve_mcp(index, http=True, host="0.0.0.0")
        Traceback (most recent call last):
            ...
        arag.errors.InputError: other machines can reach 0.0.0.0: ...
    """
    if http and token is not None and not re.fullmatch("[!-~]+", token):
        raise InputError("the token is not valid: it must be of ASCII characters, at least one, and without spaces")
    if http and token is None and host not in _LOOPBACK_HOSTS:
        raise InputError(
            f"other machines can reach {host}: give a token that clients must send ({TOKEN_VARIABLE} or token=...), or "
            f"listen at {_LOOPBACK_HOSTS[0]}"
        )
    opened = ensure_open(index)
    server = make_mcp_server(opened, model=model, tools=tools)
    if http:
        _serve_http(server, opened, host, port, token)
    else:
        anyio.run(_serve_stdio, server)


async def _serve_stdio(server: Server[Any]) -> None:
    from mcp.server.stdio import stdio_server

    # The SDK redirects the file descriptor, but text that `print` still buffers at the end would reach the client.
    async with stdio_server() as (requests, replies):
        with redirect_stdout(sys.stderr):
            await server.run(requests, replies, server.create_initialization_options())


def _serve_http(server: Server[Any], index: Index, host: str, port: int, token: str | None) -> None:
    import uvicorn
    from starlette.responses import PlainTextResponse

    # At a loopback address, the SDK refuses the host names and origins of web pages. With a token, it need not: no page
    # knows the token.
    app = server.streamable_http_app(host=host if token is None else "")
    refusal = PlainTextResponse("The token is missing or wrong.", 401, {"WWW-Authenticate": "Bearer"})

    async def check(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or token is None or _is_authorized(scope, token):
            await app(scope, receive, send)
        else:
            await refusal(scope, receive, send)

    try:
        listener = socket.create_server((host, port))
    except OSError as error:
        raise InputError(f"cannot listen at {host}, port {port}: {error}") from error
    _, actual_port = listener.getsockname()[:2]
    err.print_line(f"Serving {index.path} at http://{host}:{actual_port}/mcp")
    config = uvicorn.Config(
        check,
        http="h11",  # httptools keeps spaces behind a header's value, and clients' names then fit nothing
        log_level="warning",
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _is_authorized(request: Any, token: str) -> bool:
    """Return whether a request has the token in its header `Authorization`, as `Bearer <token>`."""
    headers = dict(request.get("headers", ()))
    kind, _, sent = headers.get(b"authorization", b"").partition(b" ")
    return kind.lower() == b"bearer" and hmac.compare_digest(sent, token.encode())
