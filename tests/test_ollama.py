"""Models behind Ollama's own protocol, over real HTTP: what they are sent, what they write, and how they fail."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from arag.errors import ModelError
from arag.graph.graph import create_arag_agent
from arag.models.chat import load_model
from scripted import asked

pytest.importorskip("langchain_ollama")
ANSWER = "Boso the Elder: Teutberga was his daughter [teutberga:0]."
both_ways = pytest.mark.parametrize("streaming", [False, True])


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr("arag.models.pauses._FIRST_PAUSE_SECONDS", 0.0)


@contextmanager
def ollama(respond):
    """Serve replies of Ollama's protocol: a message, the lines of a stream, or a status and an error."""
    requests = []
    stopping = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self._send(200, {"models": [{"name": "qwen3:8b"}]})

        def do_POST(self):
            requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            reply = respond(requests[-1])
            if reply is None:
                stopping.wait(30)
            elif isinstance(reply, tuple):
                self._send(*reply)
            elif isinstance(reply, list):
                self._send(200, *reply)
            else:
                self._send(200, *say(reply))

        def _send(self, status, *lines):
            self.send_response(status)
            self.end_headers()
            for line in lines:
                self.wfile.write(json.dumps(line).encode() + b"\n")

        def log_message(self, *_):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}", requests
    finally:
        stopping.set()
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def say(message, end="stop"):
    """Return the lines of a streamed message: its text comes in two pieces, its calls at once."""
    middle = len(message["content"]) // 2
    pieces = [message["content"][:middle], message["content"][middle:]]
    lines = [{"model": "m", "message": {**message, "content": piece}, "done": False} for piece in pieces if piece]
    if not lines:
        lines = [{"model": "m", "message": message, "done": False}]
    last = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": end}
    return [*lines, {"model": "m", **last, "prompt_eval_count": 100, "eval_count": 10}]


def search(request):
    if request["messages"][-1]["role"] == "tool":
        return {"role": "assistant", "content": ANSWER}
    call = {"function": {"name": "keyword_search", "arguments": {"keywords": ["Lothair II"]}}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def ask(index, respond, *, streaming=False, **options):
    """Ask the question; return the state and the requests."""
    with ollama(respond) as (url, requests):
        agent = create_arag_agent(load_model(f"ollama:qwen3@{url}", **options), index, tools="paper")
        if not streaming:
            return agent.invoke(asked()), requests
        return list(agent.stream(asked(), stream_mode=["messages", "values"]))[-1][1], requests


def test_the_context_is_one_that_a_search_fits_into(small_index):
    state, requests = ask(small_index, search)
    assert state["answer"] == ANSWER
    assert [request["options"]["num_ctx"] for request in requests] == [16384, 16384]
    _, requests = ask(small_index, search, num_ctx=4096)
    assert requests[0]["options"]["num_ctx"] == 4096


@both_ways
def test_thinking_and_calls_as_text_are_repaired(small_index, streaming):
    written = json.dumps({"name": "keyword_search", "parameters": {"keywords": ["Lothair II"]}})

    def respond(request):
        if request["messages"][-1]["role"] == "tool":
            return {"role": "assistant", "content": f"<think>Judith [boso:0]?</think>{ANSWER}"}
        return {"role": "assistant", "content": written}

    state, _ = ask(small_index, respond, streaming=streaming)
    assert (state["answer"], state["stop_reason"], len(state["trace"])) == (ANSWER, "answered", 1)
    assert state["usage"]["input_tokens"] == 200


@both_ways
def test_an_answer_that_is_cut_off_is_asked_for_again(small_index, streaming):
    replies = [
        search({"messages": [{"role": "user"}]}),
        say({"role": "assistant", "content": "Boso the Elder: Teut"}, "length"),
        {"role": "assistant", "content": ANSWER},
    ]

    def respond(_):
        return replies.pop(0)

    state, requests = ask(small_index, respond, streaming=streaming)
    assert (state["answer"], state["stop_reason"], len(requests)) == (ANSWER, "answered", 3)
    assert [made["cut_off"] for made in state["model_calls"]] == [False, True, False]


@both_ways
def test_a_stream_that_just_ends_is_cut_off(small_index, streaming):
    begun = {"model": "m", "message": {"role": "assistant", "content": "Boso the Elder was"}, "done": False}

    replies = [search({"messages": [{"role": "user"}]}), [begun], [begun]]
    state, _ = ask(small_index, lambda _: replies.pop(0), streaming=streaming)
    assert (state["answer"], state["stop_reason"]) == ("Boso the Elder was", "cut_off")


@both_ways
def test_an_error_in_the_middle_of_a_stream_is_the_servers(small_index, streaming):
    begun = {"model": "m", "message": {"role": "assistant", "content": "Boso"}, "done": False}
    with pytest.raises(ModelError, match="unexpected EOF"):
        ask(small_index, lambda _: [begun, {"error": "unexpected EOF"}], streaming=streaming, max_retries=0)


@both_ways
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((404, {"error": "model 'qwen3' not found"}), "the server has no model qwen3; it has qwen3:8b"),
        ((400, {"error": "qwen3 does not support tools"}), "cannot call tools there"),
        (None, r"within 0.5 seconds: allow more with the option timeout"),
    ],
)
def test_failures_have_the_same_words_as_elsewhere(small_index, reply, said, streaming):
    with pytest.raises(ModelError, match=said):
        ask(small_index, lambda _: reply, streaming=streaming, timeout=0.5)


@both_ways
def test_a_passing_failure_is_tried_again(small_index, streaming):
    failures = [(500, {"error": "llama runner process has terminated"})]

    def respond(request):
        return failures.pop() if failures else search(request)

    state, requests = ask(small_index, respond, streaming=streaming)
    assert (state["answer"], len(requests)) == (ANSWER, 3)
