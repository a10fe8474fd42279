"""The graph on LangGraph's API server, as Studio has it: a real server, driven by the clients that people use."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import threading
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph_sdk import get_client, get_sync_client
from typing_extensions import TypedDict

from arag.errors import InputError, ModelError
from arag.graph.context import MAX_STEPS, Context
from arag.graph.state import OutputState, State
from arag.graph.studio import ServerRules
from arag.ingest.pipeline import ingest
from arag.retrieval.tools import MAX_RESULTS, TOOL_NAMES
from fakes import change_settings, write_corpus
from langgraph_server import free_port, start_server
from openai_server import Failure, chat, serve
from scripted_model import DOCUMENTS

_ROOT = Path(__file__).resolve().parent.parent

LENS = "Who founded the glassworks that made the lens of the Vellin Light?"
FOUNDER = "Mattick Grevane"
SHIPWRIGHT = "Who was the shipwright of the packet schooner Grey Petrel?"
BORN = "Where was Hesper Quillorne, the shipwright of the packet schooner Grey Petrel, born?"

MODES = ["values", "updates", "messages", "messages-tuple", "custom", "events", "debug", "tasks", "checkpoints"]
CHANNELS = ["values", "updates", "messages", "tools", "custom", "lifecycle"]


@pytest.fixture(scope="module")
def server(tmp_path_factory, example_index, other_index, provider_ports):
    """The server, started in a folder of its own on what the checkout's langgraph.json says."""
    folder = tmp_path_factory.mktemp("server")
    shutil.copy(_ROOT / "langgraph.json", folder)
    variables = {
        "ARAG_INDEX": str(example_index.path),
        "ARAG_INDEX_ROOT": str(other_index.parent),
        "ARAG_MODEL_ADDRESSES": " , ".join(f"http://127.0.0.1:{port}/v1/" for port in provider_ports),
        "ARAG_ORIGINS": "https://app.example.com",
        "ARAG_HOSTS": "arag.example.com",
    }
    with start_server(folder, **variables) as running:
        yield running


@pytest.fixture(scope="module")
def other_index(tmp_path_factory):
    """The folder of another index, which the server opens itself.

    Beside it is one that names a service for its embedder, and a link that leads out of the operator's folder.
    """
    folder = tmp_path_factory.mktemp("other")
    (folder / "out").symlink_to(tmp_path_factory.mktemp("outside"))
    with ingest(write_corpus(folder / "corpus", DOCUMENTS), folder / "index") as index:
        shutil.copytree(index.path, folder / "strange")
    change_settings(folder / "strange", embedder="openai:m@http://127.0.0.1:1/v1")
    return folder / "index"


@pytest.fixture(scope="module")
def provider_ports():
    """Ports of model servers that the server's operator has named."""
    return [free_port() for _ in range(3)]


@pytest.fixture
def provider_port(provider_ports, server):
    """One of them, which no other test has used: the server keeps its connections."""
    return provider_ports.pop()


@pytest.fixture
def client(server):
    with get_sync_client(url=server.url, api_key=None, timeout=60) as client:
        yield client


@pytest.fixture
def thread(client):
    return client.threads.create()["thread_id"]


@pytest.fixture(scope="module")
def streams(server):
    """What runs send in every stream mode, each in a thread of its own, and in all modes at once, all at one time."""

    async def streamed(client, modes):
        thread = await client.threads.create()
        stream = client.runs.stream(thread["thread_id"], "arag", input=asked(LENS), stream_mode=modes)
        return [part async for part in stream]

    async def all_of_them():
        async with get_client(url=server.url, api_key=None, timeout=120) as client:
            return await asyncio.gather(*(streamed(client, modes) for modes in [*MODES, MODES]))

    *single, together = asyncio.run(all_of_them())
    return dict(zip(MODES, single, strict=True)) | {"together": together}


def asked(question: str) -> dict[str, Any]:
    """A graph's input, as JSON."""
    return {"messages": [{"role": "user", "content": question}]}


# --- a run, the first of them on a server that has opened nothing yet ---


def test_the_first_run_opens_index_embedder_and_tokenizer_and_answers(client):
    state = client.runs.wait(None, "arag", input=asked(LENS))
    assert FOUNDER in state["answer"]
    assert state["stop_reason"] == "answered"
    assert all(citation["seen"] for citation in state["citations"])
    assert "semantic_search" in {record["tool"] for record in state["trace"]}
    assert state.keys() == set(OutputState.__annotations__)


def test_a_second_question_counts_anew_and_knows_what_was_shown(client, thread):
    first = client.runs.wait(thread, "arag", input=asked(SHIPWRIGHT))
    second = client.runs.wait(thread, "arag", input=asked(BORN))
    assert "Hesper Quillorne" in second["answer"]
    assert [record["step"] for record in second["trace"]][:1] == [1]
    assert second["steps"] == len(second["model_calls"]) == second["usage"]["model_calls"]
    assert second["read_chunks"][: len(first["read_chunks"])] == first["read_chunks"]
    assert any("Shown above" in str(message["content"]) for message in second["messages"][len(first["messages"]) :])
    assert len(second["messages"]) > len(first["messages"])
    history = client.threads.get_history(thread, limit=100)
    assert {tuple(state["next"]) for state in history} >= {("agent",), ("tools",), ()}


def test_two_runs_at_once(server, provider_port):
    together = threading.Barrier(2, timeout=60)

    def respond(_, request):
        together.wait()  # neither run gets its answer before both have asked for it
        return chat(f"You asked: {request['messages'][-1]['content']}")

    async def run(client, context, question):
        thread = await client.threads.create()
        return await client.runs.wait(thread["thread_id"], "arag", input=asked(question), context=context)

    async def both(context):
        async with get_client(url=server.url, api_key=None, timeout=120) as client:
            return await asyncio.gather(*(run(client, context, question) for question in ("One?", "Two?")))

    with serve(respond, provider_port) as provider:
        states = asyncio.run(both({"model": f"openai:some-model@{provider.url}"}))
    assert [state["answer"] for state in states] == ["You asked: One?", "You asked: Two?"]


# --- streams ---


@pytest.mark.parametrize("mode", MODES)
def test_every_stream_mode(streams, mode):
    parts = streams[mode]
    assert parts[0].event == "metadata"
    kinds = {part.event for part in parts[1:]}
    data = [part.data for part in parts[1:]]
    match mode:
        case "values":
            assert kinds == {"values"}
            assert FOUNDER in data[-1]["answer"]
        case "updates":
            assert kinds == {"updates"}
            assert [name for update in data for name in update][:3] == ["agent", "tools", "agent"]
        case "messages":
            assert kinds == {"messages/metadata", "messages/partial", "messages/complete"}
            assert FOUNDER in data[-1][0]["content"]
        case "messages-tuple":
            assert kinds == {"messages"}
            texts = [message["content"] for message, _ in data if message["type"] == "AIMessageChunk"]
            assert FOUNDER in "".join(texts)
            assert len([text for text in texts if text]) > 5  # the answer comes in pieces
            assert {told["langgraph_node"] for _, told in data} == {"agent", "tools"}
        case "custom":
            assert kinds == {"custom"}
            assert {told["tool"] for told in data} == set(TOOL_NAMES)
        case "events":
            assert kinds == {"events"}
            told = Counter(event["event"] for event in data)
            assert told["on_chat_model_start"] == told["on_chat_model_end"] >= 3
            assert told["on_tool_start"] == told["on_tool_end"] >= 3
            assert told["on_chat_model_stream"] > 5
        case "debug":
            assert kinds == {"debug"}
            assert {"checkpoint", "task", "task_result"} == {told["type"] for told in data}
        case "tasks":
            assert kinds == {"tasks"}
            assert {told["name"] for told in data} == {"agent", "tools"}
            assert not any(told.get("error") for told in data)
        case "checkpoints":
            assert kinds == {"checkpoints"}
            assert FOUNDER in data[-1]["values"]["answer"]
            assert data[-1]["next"] == []


def test_all_stream_modes_together(streams):
    kinds = {part.event.partition("/")[0] for part in streams["together"]}
    assert kinds == {"metadata", *MODES} - {"messages-tuple"}  # which turns `messages` into tuples


def test_the_event_protocol(client):
    with client.threads.stream(assistant_id="arag") as session:
        events = session.subscribe(CHANNELS)
        session.run.start(input=asked(LENS))
        told = [(event["method"], event["params"]["data"]) for event in events]
        assert FOUNDER in session.output["answer"]
    assert {channel for channel, _ in told} == set(CHANNELS)
    calls = [data for channel, data in told if channel == "tools"]
    assert {call["tool_name"] for call in calls if call["event"] == "tool-started"} == set(TOOL_NAMES)
    assert Counter(call["event"] for call in calls).keys() == {"tool-started", "tool-finished"}


# --- what a person sees before a run: the form and the drawing ---


def test_schemas(client):
    assistant = client.assistants.search()[0]
    assert assistant["name"] == assistant["graph_id"] == "arag"
    assert assistant["description"]
    schemas = client.assistants.get_schemas(assistant["assistant_id"])

    fields = schemas["context_schema"]["properties"]
    names = ["index", "scope", "model", "max_steps", "top_k", "presentation", "tools", "system_prompt"]
    assert list(fields) == names == [*Context.model_fields]
    assert "required" not in schemas["context_schema"]
    nodes = {"agent", "tools", "force_answer"}
    for field in fields.values():
        assert len(field["description"]) > 20
        assert field["default"] is None
        assert set(field["langgraph_nodes"]) <= nodes
    assert _limits(fields["max_steps"]) == {"type": "integer", "minimum": 1, "maximum": MAX_STEPS}
    assert _limits(fields["top_k"]) == {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS}
    assert _limits(fields["tools"])["items"]["enum"] == list(TOOL_NAMES)
    assert fields["system_prompt"]["langgraph_type"] == "prompt"

    assert list(schemas["input_schema"]["properties"]) == schemas["input_schema"]["required"] == ["messages"]
    assert "HumanMessage" in json.dumps(schemas["input_schema"]["properties"]["messages"])
    output = schemas["output_schema"]
    assert output["properties"].keys() == set(OutputState.__annotations__)
    assert output["required"] == ["messages"]
    assert all(field.get("description") for name, field in output["properties"].items() if name != "messages")
    assert all(field["description"] for field in output["$defs"]["Citation"]["properties"].values())
    assert all(field["description"] for field in output["$defs"]["ToolRecord"]["properties"].values())
    state = set(schemas["state_schema"]["properties"])
    assert state == set(State.__annotations__) - {"remaining_steps"}


def test_the_drawing(client):
    drawing = client.assistants.get_graph("arag", xray=True)
    assert {node["id"] for node in drawing["nodes"]} == {"__start__", "agent", "tools", "force_answer", "__end__"}
    assert {"source": "force_answer", "target": "__end__"} in drawing["edges"]
    edges = {(edge["source"], edge["target"]) for edge in drawing["edges"] if edge.get("conditional")}
    assert {("agent", "tools"), ("tools", "agent"), ("agent", "force_answer"), ("tools", "force_answer")} <= edges


# --- web pages ---

PAGES = {
    "https://smith.langchain.com": True,
    "https://eu.smith.langchain.com": True,
    "https://app.example.com": True,  # the operator's
    "http://localhost:3000": False,
    "https://example.com": False,
    "https://smith.langchain.com.example.com": False,
    "http://smith.langchain.com": False,
    "null": False,
}


@pytest.mark.parametrize("page", PAGES)
def test_only_pages_that_are_allowed_reach_the_server(server, page):
    allowed = PAGES[page]
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    preflight = httpx.options(f"{server.url}/threads", headers={"Origin": page, **asks})
    assert preflight.is_success == allowed
    told = httpx.get(f"{server.url}/info", headers={"Origin": page})
    assert told.status_code == (200 if allowed else 403)
    assert told.headers.get("access-control-allow-origin") == (page if allowed else None)


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "application/x-www-form-urlencoded", None])
def test_a_page_starts_no_run_with_a_request_that_browsers_send_unasked(server, client, content_type):
    headers = {"Origin": "https://example.com"} | ({"Content-Type": content_type} if content_type else {})
    body = json.dumps({"assistant_id": "arag", "input": asked(LENS)})
    before = len(client.threads.search(limit=1000))
    for path in ("/runs/wait", "/runs", "/threads", "/mcp"):
        refused = httpx.post(server.url + path, content=body, headers=headers)
        assert refused.status_code == 403
        assert "ARAG_ORIGINS" in refused.text
    assert len(client.threads.search(limit=1000)) == before


def test_a_page_opens_no_socket(server, thread):
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    upgrade |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": "https://example.com"}
    assert httpx.get(f"{server.url}/threads/{thread}/stream/events", headers=upgrade).status_code == 403


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost", True),
        ("127.0.0.1:2024", True),
        ("[::1]:2024", True),
        ("192.168.7.9", True),
        ("arag.example.com", True),  # the operator's
        ("example.com", False),  # a page's own name, which it has lead to this machine
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("[::1", False),
        ("", False),
    ],
)
def test_the_server_is_used_under_its_own_names(server, host, allowed):
    told = httpx.get(f"{server.url}/info", headers={"Host": host})
    assert (told.status_code == 200) == allowed
    if not allowed and host:
        assert "ARAG_HOSTS" in told.text
    page = {"Host": host, "Origin": f"http://{host}"}
    assert (httpx.get(f"{server.url}/info", headers=page).status_code == 200) == allowed


def test_documentation_is_served(server):
    assert httpx.get(f"{server.url}/docs").status_code == 200
    described = httpx.get(f"{server.url}/openapi.json").json()
    assert "/runs/wait" in described["paths"]
    # A webhook would send answers to an address that a request names.
    assert "webhook" not in described["components"]["schemas"]["RunCreateStateless"]["properties"]


def test_the_graph_is_a_tool_for_other_agents(server):
    def call(method, **parameters):
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        headers = {"Accept": "application/json, text/event-stream"}
        return httpx.post(f"{server.url}/mcp", json=request, headers=headers, timeout=60).json()["result"]

    (tool,) = call("tools/list")["tools"]
    assert tool["name"] == "arag"
    assert "citations" in tool["description"]
    result = call("tools/call", name="arag", arguments={"messages": LENS})
    assert not result.get("isError")
    assert FOUNDER in json.dumps(result["content"])


# --- context ---


def test_an_assistant_has_settings_of_its_own_and_a_run_changes_them(client, other_index):
    assistant = client.assistants.create(
        "arag", context={"index": str(other_index), "tools": ["keyword_search"], "max_steps": 2}, name="short of breath"
    )["assistant_id"]
    question = asked("Whom did Lothair II marry?")
    state = client.runs.wait(None, assistant, input=question)
    assert state["stop_reason"] == "max_steps"
    assert state["steps"] == 2
    assert state["answer"]
    assert {record["tool"] for record in state["trace"]} == {"keyword_search"}
    assert {citation["chunk_id"] for citation in state["citations"]} <= {"lothair:0", "teutberga:0", "boso:0"}
    longer = client.runs.wait(None, assistant, input=question, context={"max_steps": 9})
    assert longer["stop_reason"] == "answered"
    assert longer["steps"] > 2
    assert {record["tool"] for record in longer["trace"]} == {"keyword_search"}
    client.assistants.update(assistant, context={"index": str(other_index), "tools": [*TOOL_NAMES], "model": " "})
    updated = client.runs.wait(None, assistant, input=question)
    assert len({record["tool"] for record in updated["trace"]}) > 1


BAD = {
    "max_steps is too small": ({"max_steps": 0}, "InputError", "max_steps"),
    "max_steps is no number": ({"max_steps": "many"}, "InputError", "valid integer"),
    "top_k is too large": ({"top_k": MAX_RESULTS + 1}, "InputError", "top_k"),
    "no such tool": ({"tools": ["web"]}, "InputError", "'keyword_search', 'semantic_search' or 'chunk_read'"),
    "no tools": ({"tools": []}, "InputError", "tools"),
    "no index": ({"index": "no/such/folder"}, "IndexNotFoundError", "no/such/folder"),
    "no model's name": ({"model": "gpt"}, "ModelError", "provider:model"),
    "no such provider": ({"model": "nobody:gpt"}, "ModelError", "nobody"),
    "a stranger's address": ({"model": "openai:gpt@https://example.com/v1"}, "ModelError", "example.com"),
    "a port of this machine": ({"model": "openai:gpt@http://127.0.0.1:1/v1"}, "ModelError", "ARAG_MODEL_ADDRESSES"),
    "an address that is none": ({"model": "openai:gpt@http://[::"}, "InputError", "is not a valid URL"),
    "a model inside the server": ({"model": "huggingface:/etc"}, "ModelError", "loaded into the server"),
    "a folder elsewhere": ({"index": "/etc"}, "InputError", "ARAG_INDEX_ROOT"),
    "an index that names a service": ({"index": "strange"}, "UnnamedEmbedderError", "ARAG_EMBEDDER"),
    "no room": ({"system_prompt": "word " * 200_000}, "InputError", "system prompt"),
}


@pytest.fixture(scope="module")
def refused(server):
    """What the client gets for each bad context, and the state of the thread behind it."""

    async def run(client, context):
        thread = (await client.threads.create())["thread_id"]
        with pytest.raises(Exception, match="Error: ") as raised:
            await client.runs.wait(thread, "arag", input=asked(LENS), context=context)
        return str(raised.value), (await client.threads.get(thread))["status"]

    async def all_of_them():
        async with get_client(url=server.url, api_key=None, timeout=120) as client:
            return await asyncio.gather(*(run(client, context) for context, *_ in BAD.values()))

    return dict(zip(BAD, asyncio.run(all_of_them()), strict=True))


@pytest.mark.parametrize("case", BAD)
def test_a_bad_context_is_named_to_the_client(refused, case):
    _, kind, said = BAD[case]
    message, status = refused[case]
    assert message.startswith(kind)
    assert said in message
    assert status == "error"


@pytest.mark.parametrize(
    ("model", "used"),
    [
        ("extractive", "extractive"),
        ("openai:gpt", "openai:gpt"),
        ("openai:gpt@https://MODELS.example.com:443/v1/", "openai:gpt@https://me:secret@models.example.com/v1"),
        ("openai:gpt@https://you:none@models.example.com/v1", "openai:gpt@https://me:secret@models.example.com/v1"),
        ("openai:gpt@http://localhost:8000/v1", "openai:gpt@http://localhost:8000/v1"),
        ("openai:gpt@http://[::1]:9/v1", "openai:gpt@http://[::1]:9/v1"),
        ("openai:gpt@https://models.example.com/v2", None),
        ("openai:gpt@http://models.example.com/v1", None),
        ("openai:gpt@http://localhost:8001/v1", None),
        ("ollama:qwen3@http://example.com", None),
        ("openai:gpt@http://localhost:8000@example.com/v1", None),
        ("openai:gpt@http://localhost.example.com:8000/v1", None),
        ("openai:gpt@http://localhost:8000/v1/../v2", None),
        ("openai:gpt@http://[::", None),
        ("openai:gpt@http://", None),
        ("huggingface:organisation/model", None),
    ],
)
def test_keys_do_not_go_where_a_run_says(model, used):
    settings = ServerRules(
        {
            "ARAG_MODEL": "openai:qwen3@https://me:secret@models.example.com/v1",
            "ARAG_MODEL_ADDRESSES": "http://localhost:8000/v1,,http://[::1]:9/v1",
        }
    )
    if used is not None:
        assert settings.allow_model(model) == used
        return
    with pytest.raises((ModelError, InputError)) as caught:
        settings.allow_model(model)
    assert "secret" not in str(caught.value)


def test_only_indexes_that_the_operator_has_put_there_are_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("root/one/deep", "own", "outside"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "root" / "loop").symlink_to(tmp_path / "root" / "loop")
    with_root = ServerRules({"ARAG_INDEX": "own", "ARAG_INDEX_ROOT": "root"})
    assert with_root.allow_index(None) is None
    for index in ("own", str(tmp_path / "own"), "./root/../own"):
        assert with_root.allow_index(index) is None  # the server's own index
    for index in ("one", "one/deep", str(tmp_path / "root" / "one"), "not/there"):
        assert Path(with_root.allow_index(index)).is_relative_to(tmp_path / "root")
    refused = (
        "outside",
        "nowhere",
        ".",
        "",
        "..",
        "../outside",
        "link",
        "link/x",
        "/etc",
        "loop/..",
        "a\0b",
        "a\ud800",
    )
    for index in (str(tmp_path / refused[0]), str(tmp_path / refused[1]), *refused[2:]):
        with pytest.raises(InputError) as caught:
            with_root.allow_index(index)
        assert str(caught.value).startswith(f"this server may not open the index {index!r}: ")
    without_root = ServerRules({"ARAG_INDEX": "own"})
    assert without_root.allow_index("./own") is None
    with pytest.raises(InputError):
        without_root.allow_index("root/one")


def test_a_bad_context_is_named_in_a_stream_and_the_thread_stays_usable(client, thread):
    parts = client.runs.stream(thread, "arag", input=asked(LENS), context={"max_steps": 0}, stream_mode="updates")
    errors = [part.data for part in parts if part.event == "error"]
    assert [error["error"] for error in errors] == ["InputError"]
    assert "max_steps" in errors[0]["message"]
    parts = client.runs.stream(thread, "arag", input=asked(LENS), context={"index": "nowhere"}, stream_mode="updates")
    assert "nowhere" in next(part.data["message"] for part in parts if part.event == "error")
    assert FOUNDER in client.runs.wait(thread, "arag", input=asked(LENS))["answer"]


# --- a person in the loop ---


def test_a_run_stops_before_the_tools_and_a_person_changes_the_call(client, thread):
    client.runs.wait(thread, "arag", input=asked(SHIPWRIGHT), interrupt_before=["tools"])
    state = client.threads.get_state(thread)
    assert state["next"] == ["tools"]
    assert state["values"]["trace"] == []
    message = state["values"]["messages"][-1]
    (call,) = message["tool_calls"]
    changed = message | {"tool_calls": [call | {"name": "keyword_search", "args": {"keywords": ["Vellin Light"]}}]}
    client.threads.update_state(thread, {"messages": [changed]}, as_node="agent")
    assert client.threads.get_state(thread)["next"] == ["tools"]

    client.runs.wait(thread, "arag", input=None, interrupt_before=["tools"])
    state = client.threads.get_state(thread)
    assert [record["arguments"] for record in state["values"]["trace"]] == [{"keywords": ["Vellin Light"]}]
    assert state["next"] == ["tools"]

    answer = client.runs.wait(thread, "arag", input=None)
    assert answer["stop_reason"] == "answered"
    assert len(answer["trace"]) == answer["steps"] - 1


def test_a_run_goes_on_from_an_earlier_state(client, thread):
    first = client.runs.wait(thread, "arag", input=asked(LENS))
    earlier = [state for state in client.threads.get_history(thread, limit=100) if state["next"] == ["tools"]][-1]
    again = client.runs.wait(thread, "arag", input=None, checkpoint=earlier["checkpoint"], context={"max_steps": 1})
    assert first["steps"] > again["steps"] == 1
    assert again["stop_reason"] == "max_steps"
    assert again["trace"][0]["arguments"] == first["trace"][0]["arguments"]


# --- a model behind HTTP ---


def test_a_model_of_the_runs_own(client, thread, provider_port):
    script = [
        chat(None, ("call-1", "keyword_search", '{"keywords": ["Vellin Light"]}')),
        chat("At the Emberlane Glassworks [places/vellin-light.md:0]."),
    ]
    with serve(script, provider_port) as provider:
        context = {"model": f"openai:some-model@{provider.url}", "system_prompt": "Answer from the index."}
        parts = list(
            client.runs.stream(thread, "arag", input=asked(LENS), context=context, stream_mode="messages-tuple")
        )
    assert [part for part in parts if part.event == "error"] == []
    pieces = [message["content"] for message, _ in (part.data for part in parts[1:]) if message["type"] != "tool"]
    assert "".join(pieces) == "At the Emberlane Glassworks [places/vellin-light.md:0]."
    state = client.threads.get_state(thread)["values"]
    assert [(citation["chunk_id"], citation["seen"]) for citation in state["citations"]] == [
        ("places/vellin-light.md:0", True)
    ]
    assert state["usage"]["input_tokens"] == 200
    assert [request["messages"][0]["content"] for request in provider.requests] == ["Answer from the index."] * 2


def test_a_run_is_cancelled_and_the_next_one_answers(client, thread, provider_port):
    asking = threading.Event()

    def respond(*_):
        asking.set()
        return Failure(hang=True)

    with serve(respond, provider_port) as provider:
        context = {"model": f"openai:some-model@{provider.url}"}
        run = client.runs.create(thread, "arag", input=asked(LENS), context=context)
        assert asking.wait(30)
        client.runs.cancel(thread, run["run_id"], wait=True)
    assert client.runs.get(thread, run["run_id"])["status"] == "interrupted"
    assert FOUNDER in client.runs.wait(thread, "arag", input=asked(LENS))["answer"]


# --- RemoteGraph ---


@pytest.fixture
def remote(server, client):
    return RemoteGraph("arag", url=server.url, sync_client=client)


def test_a_remote_graph_is_used_like_a_local_one(remote):
    state = remote.invoke(asked(LENS), context={"max_steps": 2})
    assert state["stop_reason"] == "max_steps"
    parts = list(remote.stream(asked(LENS), stream_mode=["updates", "custom"]))
    assert {part.event for part in parts} == {"updates", "custom"}
    assert FOUNDER in parts[-1].data["agent"]["answer"]
    assert set(remote.get_graph().nodes) == {"__start__", "agent", "tools", "force_answer", "__end__"}
    with pytest.raises(RemoteException, match="max_steps"):
        remote.invoke(asked(LENS), context={"max_steps": 0})


class Parent(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    answer: str
    citations: list[Any]
    verdict: str


def test_a_remote_graph_is_a_node_of_another_graph(remote, client, thread):
    def judge(state: Parent) -> Parent:
        return {"verdict": "good" if all(citation["seen"] for citation in state["citations"]) else "bad"}

    builder = StateGraph(Parent)
    builder.add_node("research", remote)
    builder.add_node("judge", judge)
    builder.add_edge(START, "research")
    builder.add_edge("research", "judge")
    builder.add_edge("judge", END)
    parent = builder.compile()
    state = parent.invoke(asked(LENS), {"configurable": {"thread_id": thread}})
    assert state["verdict"] == "good"
    assert FOUNDER in state["answer"]
    assert FOUNDER in client.threads.get_state(thread)["values"]["answer"]
    inside = [space[0].partition(":")[0] for space, _ in parent.stream(asked(LENS), subgraphs=True) if space]
    assert set(inside) == {"research"}


def test_an_asynchronous_remote_graph(server):
    async def run():
        async with get_client(url=server.url, api_key=None, timeout=120) as client:
            remote = RemoteGraph("arag", client=client)
            state = await remote.ainvoke(asked(LENS))
            updates = [update async for update in remote.astream(asked(LENS), stream_mode="updates")]
        return state, updates

    state, updates = asyncio.run(run())
    assert FOUNDER in state["answer"]
    assert len(updates) == len(state["trace"]) + state["steps"]


# --- in a project of one's own ---


def test_the_studio_page_can_be_followed_in_a_project_of_ones_own(tmp_path, example_index, other_index):
    page = (_ROOT / "docs" / "studio.md").read_text(encoding="utf-8")
    for name, text in re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', page, flags=re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "my-index").symlink_to(example_index.path)
    stranger = {"origin": "https://evil.example"}
    with (
        start_server(tmp_path, ARAG_INDEX="my-index") as server,
        get_sync_client(url=server.url, api_key=None) as client,
    ):
        assert FOUNDER in client.runs.wait(None, "arag", input=asked(LENS))["answer"]
        refused = client.runs.wait(
            None, "arag", input=asked(LENS), context={"index": str(other_index)}, raise_error=False
        )
        assert "may not open the index" in refused["__error__"]["message"]
        thread = client.threads.create()["thread_id"]
        for question in (LENS, SHIPWRIGHT):  # a context of the parent's run does not reach the agent
            state = client.runs.wait(thread, "report", input=asked(question), context={"index": str(other_index)})
        assert [message["type"] for message in state["messages"]] == ["human", "ai", "human", "ai"]
        assert "Hesper Quillorne" in state["messages"][-1]["content"]
        assert httpx.get(f"{server.url}/info", headers=stranger).status_code == 403
    assert "blocking" not in server.log.read_text(encoding="utf-8").lower()


# --- the log, of all that was done above ---


def test_nothing_blocked_the_server_and_nothing_failed_but_what_was_meant_to(server):
    lines = server.log.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if "blocking" in line.lower()] == []
    assert [line for line in lines if "Traceback" in line and not line.startswith("{")] == []
    entries = [json.loads(line) for line in lines if line.startswith("{")]
    assert entries
    failures = [entry for entry in entries if entry["level"] in {"error", "critical"} or "exception" in entry]
    meant = ("validation error", "UserInterrupt", "CancelledError")
    meant += ("IndexNotFoundError", "ModelError", "InputError", "EmbedderError")
    assert [entry for entry in failures if not any(kind in json.dumps(entry) for kind in meant)] == []


def _limits(field: dict[str, Any]) -> dict[str, Any]:
    """The schema of a field that may be null, without the null."""
    (schema,) = (choice for choice in field["anyOf"] if choice["type"] != "null")
    return schema
