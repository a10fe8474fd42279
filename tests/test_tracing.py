"""What traces, evaluations and supervisors read: retriever runs, documents of results, and names of agents."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from arag.graph.graph import create_arag_agent
from arag.retrieval.tools.sets import make_tools
from scripted import ANSWER, ScriptedModel, asked, call, calls, in_thread, results


class Trace(BaseCallbackHandler):
    """Keeps the runs of tools and retrievers."""

    def __init__(self):
        self.tools = {}
        self.retrievers = []
        self.metadata = []

    def on_tool_start(self, serialized, input_str, *, run_id, **_):
        self.tools[run_id] = serialized["name"]

    def on_retriever_start(self, serialized, query, *, parent_run_id=None, name=None, tags=None, metadata=None, **_):
        self.retrievers.append([self.tools.get(parent_run_id), name, query, metadata.get("ls_retriever_name")])
        self.metadata.append((tags, metadata))

    def on_retriever_end(self, documents, **_):
        self.retrievers[-1].append([document.id for document in documents])

    def on_retriever_error(self, error, **_):
        self.retrievers[-1].append(str(error))


SEARCHES = calls(
    ("keyword_search", {"keywords": ["Teutberga", "Arles"]}),
    ("chunk_read", {"chunk_ids": ["annals:0"]}),
    ("keyword_search", {"keywords": ["Boso"], "within": "nowhere"}),
)


@pytest.mark.parametrize("is_async", [False, True])
def test_each_call_of_a_retrieval_tool_is_a_run_of_a_retriever_in_traces(small_index, is_async):
    trace = Trace()
    agent = create_arag_agent(ScriptedModel(SEARCHES, ANSWER), small_index, tools="paper")
    if is_async:
        asyncio.run(agent.ainvoke(asked(), {"callbacks": [trace]}))
    else:
        agent.invoke(asked(), {"callbacks": [trace]})
    search, read, failed = trace.retrievers
    name = "keyword_search"
    assert search == [name, name, "Teutberga; Arles", name, ["boso:0", "teutberga:0", "lothair:0"]]
    assert read == ["chunk_read", "chunk_read", "annals:0", "chunk_read", ["annals:0"]]
    assert "No document has 'nowhere'" in failed[-1]


def test_a_retriever_has_the_tags_and_metadata_of_langchains(small_index):
    trace = Trace()
    retriever = small_index.as_retriever(tags=["mine"], metadata={"team": "ops"})
    retriever.invoke("Who was Boso?", {"callbacks": [trace], "tags": ["run"]})
    [(tags, metadata)] = trace.metadata
    assert set(tags) == {"mine", "run"}
    assert metadata == {"team": "ops", "ls_retriever_name": "index", "ls_embedding_provider": small_index.embedder.name}


def test_results_have_what_they_show_of_each_chunk_as_documents(small_index):
    by_name = {tool.name: tool for tool in make_tools(small_index, names=["all", "shell"])}

    def shown(name, **args):
        message = by_name[name].invoke({"type": "tool_call", "id": "1", "name": name, "args": args})
        documents = [Document(**fields) for fields in json.loads(json.dumps(message.artifact))["documents"]]
        assert {document.id for document in documents} <= set(message.artifact["chunk_ids"])
        return {document.id: document for document in documents}

    read = shown("chunk_read", chunk_ids=["boso:0"])["boso:0"]
    assert read.page_content == "Boso the Elder was a count of Arles. He had three children."
    assert read.metadata == {"chunk_id": "boso:0", "document_id": "boso", "title": "Boso the Elder"}
    years = shown("keyword_search", keywords=["815", "836"])["annals:0"].page_content
    assert "In the year 815 storm number 5705 broke the bridges. In the year" in years
    assert " … In the year 836 storm" in years
    for name, args in (("grep", {"pattern": "Arles"}), ("shell", {"command": "rg Arles"})):
        assert shown(name, **args)["boso:0"].page_content == "Boso the Elder was a count of Arles."
    assert shown("list_documents") == {}


def test_a_chunk_that_is_not_shown_again_is_no_document_of_the_result(small_index):
    model = ScriptedModel(*[call("chunk_read", chunk_ids=["lothair:0"])] * 2, ANSWER)
    state = create_arag_agent(model, small_index, tools="paper").invoke(asked())
    assert [len(result.artifact["documents"]) for result in results(state)] == [1, 0]


# --- names ---


def test_messages_and_traces_say_which_agent_spoke_and_its_own_model_is_not_told(small_index):
    model = ScriptedModel(call("keyword_search", keywords=["Boso"]), ANSWER, AIMessage("So."))
    agent = create_arag_agent(
        model, small_index, tools="paper", name="research", max_steps=1, checkpointer=InMemorySaver()
    )
    trace = Trace()
    state = agent.invoke(asked(), {**in_thread(), "callbacks": [trace], "metadata": {"team": "ops"}})
    agent.invoke(asked(), in_thread())
    assert [message.name for message in state["messages"]] == [None, "research", "keyword_search", "research"]
    [(_, metadata)] = trace.metadata
    assert (metadata["lc_agent_name"], metadata["team"]) == ("research", "ops")
    for request in model.calls:
        assert not [message.name for message in request.messages if message.type == "ai" and message.name]


def test_the_names_of_other_agents_stay_in_the_prompt(small_index):
    model = ScriptedModel(ANSWER)
    handoff = AIMessage("", name="boss", tool_calls=call("transfer", "t").tool_calls)
    messages = [*asked()["messages"], handoff, ToolMessage("Transferred.", tool_call_id="t")]
    create_arag_agent(model, small_index, tools="paper").invoke({"messages": messages})
    assert model.calls[0].messages[2].name == "boss"


# --- LangSmith ---


class Collector(BaseHTTPRequestHandler):
    """Accepts what LangSmith's client sends."""

    def do_POST(self):
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(202)

    def do_GET(self):
        self.answer(200)

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


TRACED = """
import sys
import fakes
from arag import create_arag_agent, open_index
from langchain_core.tracers.langchain import wait_for_all_tracers

with open_index(sys.argv[1], embedder=fakes.HashEmbeddings()) as index:
    create_arag_agent("extractive", index).invoke({"messages": [("user", "Who was the father of Teutberga?")]})
wait_for_all_tracers()
"""


def test_langsmith_gets_every_step_where_the_environment_says_so(small_index):
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector:
        collector.bodies = []
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        settings = {
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_DISABLE_RUN_COMPRESSION": "true",
            "LANGSMITH_API_KEY": "some-key",
            "LANGSMITH_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
            "PYTHONPATH": str(Path(__file__).parent),
        }
        command = [sys.executable, "-c", TRACED, str(small_index.path)]
        subprocess.run(command, check=True, env=os.environ | settings, timeout=120)
        collector.shutdown()
    kinds = set(re.findall(rb'"run_type": ?"(\w+)"', b"".join(collector.bodies)))
    assert kinds == {b"chain", b"llm", b"tool", b"retriever"}
