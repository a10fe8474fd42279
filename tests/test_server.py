"""The graph on LangGraph's API server, as Studio has it: a real server, driven by the clients that people use."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client, get_sync_client

from arag.graph import MAX_STEPS
from arag.graph.context import Context
from arag.graph.state import OutputState
from arag.retrieval.tools.sets import PAPER
from langgraph_server import free_port, start_server
from openai_server import Failure, chat, serve

pytestmark = pytest.mark.servers

_ROOT = Path(__file__).resolve().parent.parent

LENS = "Who founded the glassworks that made the lens of the Vellin Light?"
FOUNDER = "Mattick Grevane"
SHIPWRIGHT = "Who was the shipwright of the packet schooner Grey Petrel?"

BUILT_IN = {"model": "extractive"}


@pytest.fixture(scope="module")
def port():
    """The port of the model server that the server's operator has named."""
    return free_port()


@pytest.fixture(scope="module")
def server(tmp_path_factory, example_index, port):
    """The server, started in a folder of its own on what the checkout's langgraph.json says."""
    folder = tmp_path_factory.mktemp("server")
    shutil.copy(_ROOT / "langgraph.json", folder)
    variables = {
        "ARAG_INDEX": str(example_index.path),
        "ARAG_MODEL": f"openai:some-model@http://127.0.0.1:{port}/v1",
        "ARAG_ORIGINS": "https://app.example.com/",
        "ARAG_HOSTS": "arag.example.com",
    }
    with start_server(folder, **variables) as running:
        yield running


@pytest.fixture
def client(server):
    with get_sync_client(url=server.url, api_key=None, timeout=60) as client:
        yield client


@pytest.fixture
def thread(client):
    return client.threads.create()["thread_id"]


def asked(question: str) -> dict[str, Any]:
    """A graph's input, as JSON."""
    return {"messages": [{"role": "user", "content": question}]}


# --- runs and threads ---


def test_the_first_run_opens_index_embedder_and_tokenizer_and_streams_its_answer(client):
    modes = ["values", "messages-tuple", "custom"]
    parts = list(client.runs.stream(None, "arag", input=asked(LENS), context=BUILT_IN, stream_mode=modes))
    data = {mode: [part.data for part in parts if part.event == mode] for mode in ("values", "messages", "custom")}
    state = data["values"][-1]
    assert FOUNDER in state["answer"]
    assert all(citation["seen"] for citation in state["citations"])
    assert state.keys() == set(OutputState.__annotations__) - {"structured_response"}
    assert {event["tool"] for event in data["custom"]} == set(PAPER)
    pieces = [message["content"] for message, _ in data["messages"] if message["type"] == "AIMessageChunk"]
    assert FOUNDER in "".join(pieces)
    assert len(list(filter(None, pieces))) > 5


def test_the_operators_model_answers_two_runs_at_once_and_another_is_cancelled(server, client, thread, port):
    together, is_hanging = threading.Barrier(2, timeout=60), threading.Event()

    def respond(_, request):
        question = request["messages"][-1]["content"]
        if question == LENS:
            is_hanging.set()
            return Failure(hang=True)
        together.wait()  # neither run gets its answer before both have asked for it
        return chat(f"You asked: {question}")

    async def both():
        async with get_client(url=server.url, api_key=None, timeout=120) as client:
            return await asyncio.gather(*(client.runs.wait(None, "arag", input=asked(q)) for q in ("One?", "Two?")))

    with serve(respond, port):
        states = asyncio.run(both())
        run = client.runs.create(thread, "arag", input=asked(LENS))
        assert is_hanging.wait(30)
        client.runs.cancel(thread, run["run_id"], wait=True)
    assert [state["answer"] for state in states] == ["You asked: One?", "You asked: Two?"]
    assert client.runs.get(thread, run["run_id"])["status"] == "interrupted"
    assert FOUNDER in client.runs.wait(thread, "arag", input=asked(LENS), context=BUILT_IN)["answer"]


def test_the_form_for_a_context_has_every_setting(client):
    assistant = next(each for each in client.assistants.search() if each["name"] == "arag")
    schemas = client.assistants.get_schemas(assistant["assistant_id"])
    fields = schemas["context_schema"]["properties"]
    assert list(fields) == [*Context.model_fields]
    assert all(set(field["langgraph_nodes"]) <= {"agent", "tools", "force_answer"} for field in fields.values())
    assert (fields["max_steps"]["minimum"], fields["max_steps"]["maximum"]) == (1, MAX_STEPS)
    assert list(schemas["input_schema"]["properties"]) == schemas["input_schema"]["required"] == ["messages"]
    assert schemas["output_schema"]["properties"].keys() == set(OutputState.__annotations__)


def test_other_agents_ask_over_a2a_and_go_on_in_the_same_context(server, client):
    assistant = client.assistants.create("arag", context=BUILT_IN)["assistant_id"]
    card = httpx.get(f"{server.url}/.well-known/agent-card.json", params={"assistant_id": assistant}).json()
    context: dict[str, str] = {}
    for question, answer in ((LENS, FOUNDER), (SHIPWRIGHT, "Hesper Quillorne")):
        parts = [{"kind": "text", "text": question}]
        message = {"kind": "message", "role": "user", "messageId": question, "parts": parts} | context
        body = {"jsonrpc": "2.0", "id": "1", "method": "message/send", "params": {"message": message}}
        task = httpx.post(card["url"], json=body, headers={"Accept": "application/json"}, timeout=60).json()["result"]
        context = {"contextId": task["contextId"]}
        assert task["status"]["state"] == "completed"
        assert answer in task["artifacts"][-1]["parts"][0]["text"]
    state = client.threads.get_state(task["contextId"])["values"]
    assert [message["content"] for message in state["messages"] if message["type"] == "human"] == [LENS, SHIPWRIGHT]


# --- web pages ---


@pytest.mark.parametrize(
    ("page", "allowed"),
    [
        ("https://eu.smith.langchain.com", True),
        ("https://app.example.com", True),  # the operator's
        ("http://localhost:3000", False),
        ("https://smith.langchain.com.example.com", False),
        ("null", False),
    ],
)
def test_only_pages_that_are_allowed_reach_the_server(server, page, allowed):
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    preflight = httpx.options(f"{server.url}/threads", headers={"Origin": page, **asks})
    assert preflight.is_success == allowed
    told = httpx.get(f"{server.url}/info", headers={"Origin": page})
    assert told.status_code == (200 if allowed else 403)
    assert told.headers.get("access-control-allow-origin") == ("*" if allowed else None)


def test_a_page_starts_no_run_with_a_request_that_browsers_send_unasked_and_opens_no_socket(server, client, thread):
    page = {"Origin": "https://example.com"}
    body = json.dumps({"assistant_id": "arag", "input": asked(LENS)})
    before = len(client.threads.search(limit=1000))
    for path in ("/runs/wait", "/runs", "/threads", "/mcp"):
        refused = httpx.post(server.url + path, content=body, headers=page | {"Content-Type": "text/plain"})
        assert refused.status_code == 403
        assert "ARAG_ORIGINS" in refused.text
    assert len(client.threads.search(limit=1000)) == before
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    upgrade |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", **page}
    assert httpx.get(f"{server.url}/threads/{thread}/stream/events", headers=upgrade).status_code == 403


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost", True),
        ("[::1]:2024", True),
        ("arag.example.com", True),  # the operator's
        ("example.com", False),  # a page's own name, which it has lead to this machine
        ("127.0.0.1.example.com", False),
        ("[::1", False),
    ],
)
def test_the_server_is_used_under_its_own_names(server, host, allowed):
    told = httpx.get(f"{server.url}/info", headers={"Host": host})
    assert told.status_code == (200 if allowed else 400)
    page = {"Host": host, "Origin": f"http://{host}"}
    assert (httpx.get(f"{server.url}/info", headers=page).status_code == 200) == allowed


# --- contexts ---


def test_an_assistant_has_settings_of_its_own_and_a_run_changes_them(client):
    settings = BUILT_IN | {"tools": ["keyword_search"], "max_steps": 2}
    assistant = client.assistants.create("arag", context=settings)["assistant_id"]
    state = client.runs.wait(None, assistant, input=asked(LENS))
    assert (state["stop_reason"], state["steps"]) == ("max_steps", 2)
    longer = client.runs.wait(None, assistant, input=asked(LENS), context={"max_steps": 9})
    assert longer["steps"] > 2
    assert {record["tool"] for record in longer["trace"]} == {"keyword_search"}


def test_a_bad_context_is_named_to_the_client_and_the_thread_stays_usable(client, thread):
    context = {"model": "openai:gpt@https://example.com/v1"}
    parts = client.runs.stream(thread, "arag", input=asked(LENS), context=context, stream_mode="updates")
    [error] = [part.data for part in parts if part.event == "error"]
    assert error["error"] == "InputError"
    assert "without an address" in error["message"]
    assert FOUNDER in client.runs.wait(thread, "arag", input=asked(LENS), context=BUILT_IN)["answer"]


# --- a project of one's own ---


REPORT = """
from arag import create_arag_agent
from langgraph.graph import START, MessagesState, StateGraph

agent = create_arag_agent("extractive", "my-index")


def research(state: MessagesState) -> dict:
    return {"messages": agent.invoke(state)["messages"][-1:]}


graph = StateGraph(MessagesState).add_node("research", research).add_edge(START, "research").compile()
"""


def test_what_the_page_says_of_studio_can_be_followed_in_a_project_of_ones_own(tmp_path, example_index):
    page = (_ROOT / "docs" / "agent.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r'^```json title="langgraph.json"\n(.*?)^```', page, flags=re.MULTILINE | re.DOTALL)
    config = json.loads(shown)
    config["graphs"]["report"] = "./report.py:graph"
    config["http"]["cors"] = {
        "allow_origins": ["https://chat.example.com"],
        "allow_origin_regex": r"http://localhost:\d+",
        "allow_methods": ["*"],
        "allow_headers": ["*"],
    }
    (tmp_path / "langgraph.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "report.py").write_text(REPORT, encoding="utf-8")
    (tmp_path / "my-index").symlink_to(example_index.path)
    with (
        start_server(tmp_path, ARAG_INDEX="my-index") as server,
        get_sync_client(url=server.url, api_key=None) as client,
    ):
        assert FOUNDER in client.runs.wait(None, "arag", input=asked(LENS))["answer"]
        thread = client.threads.create()["thread_id"]
        for question in (LENS, SHIPWRIGHT):
            state = client.runs.wait(thread, "report", input=asked(question))
        assert [message["type"] for message in state["messages"]] == ["human", "ai", "human", "ai"]
        assert "Hesper Quillorne" in json.dumps(state["messages"][-1]["content"])
        for page, allowed in (
            ("https://chat.example.com", True),
            ("http://localhost:3000", True),
            ("https://evil.example", False),
        ):
            asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
            for told in (
                httpx.options(f"{server.url}/threads", headers={"Origin": page, **asks}),
                httpx.get(f"{server.url}/info", headers={"Origin": page}),
            ):
                assert told.status_code == (200 if allowed else 403)
                assert told.headers.get("access-control-allow-origin") == (page if allowed else None)
    assert "blocking" not in server.log.read_text(encoding="utf-8").lower()


# --- the log, of all that was done above ---


def test_nothing_blocked_the_server_and_nothing_failed_but_what_was_meant_to(server):
    lines = server.log.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if "blocking" in line.lower()] == []
    assert [line for line in lines if "Traceback" in line and not line.startswith("{")] == []
    entries = [json.loads(line) for line in lines if line.startswith("{")]
    failures = [entry for entry in entries if entry["level"] in {"error", "critical"} or "exception" in entry]
    meant = ("UserInterrupt", "CancelledError", "InputError")
    assert [entry for entry in failures if not any(kind in json.dumps(entry) for kind in meant)] == []
