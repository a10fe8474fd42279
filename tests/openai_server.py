"""A server on loopback that speaks enough of OpenAI's protocol, gives scripted responses and keeps every request."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 10,
    "total_tokens": 110,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": {"reasoning_tokens": 3},
}


@dataclass
class Failure:
    """A response that is an error, or none at all.

    Attributes:
        status: The HTTP status.
        headers: Its headers.
        hang: Wait until the server stops instead of responding.
        cut: Start a stream and close the connection in it.
    """

    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    cut: bool = False


@dataclass
class Server:
    """What a test holds of the server.

    Attributes:
        url: The base URL, `http://127.0.0.1:<port>/v1`.
        requests: The JSON of every request, in order.
        paths: Their paths.
    """

    url: str
    respond: Callable[[int, dict[str, Any]], Any]
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)


def chat(
    content: str | None = None, *tool_calls: tuple[str, str, str], usage: dict[str, Any] | None = USAGE
) -> dict[str, Any]:
    """Return a chat completion; a tool call is (id, name, arguments as text)."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if tool_calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in tool_calls
        ]
    return {
        "id": "chatcmpl-always-the-same",
        "object": "chat.completion",
        "created": 0,
        "model": "some-model",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if tool_calls else "stop"}],
        "usage": usage,
    }


def embeddings(vectors: list[list[float]]) -> dict[str, Any]:
    data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    return {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}


@contextmanager
def serve(respond: Callable[[int, dict[str, Any]], Any] | list[Any]):
    """Serve scripted responses, or what a function makes of the request's number and JSON."""
    if isinstance(respond, list):
        script = respond

        def respond(number, request):
            return script[number] if number < len(script) else Failure(418)

    httpd = _QuietServer(("127.0.0.1", 0), _Handler)
    server = httpd.arag = Server(f"http://127.0.0.1:{httpd.server_port}/v1", respond)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        httpd.shutdown()
        httpd.server_close()
        thread.join()


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Say nothing of clients that go away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        server: Server = self.server.arag
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            number = len(server.requests)
            server.requests.append(request)
            server.paths.append(self.path)
        response = server.respond(number, request)
        if isinstance(response, Failure):
            self._fail(server, response)
        elif request.get("stream"):
            self._stream(response, request)
        else:
            self._send(200, "application/json", json.dumps(response).encode())

    def _fail(self, server: Server, failure: Failure):
        if failure.hang:
            server.stopping.wait(30)
            self.close_connection = True
            return
        if failure.cut:
            self._head(200, "text/event-stream", {"Transfer-Encoding": "chunked"})
            self._event({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": []})
            self.close_connection = True
            return
        error = {"error": {"message": f"scripted failure {failure.status}", "type": "server_error"}}
        self._send(failure.status, "application/json", json.dumps(error).encode(), failure.headers)

    def _send(self, status: int, kind: str, body: bytes, headers: dict[str, str] | None = None):
        self._head(status, kind, {"Content-Length": str(len(body)), **(headers or {})})
        self.wfile.write(body)

    def _head(self, status: int, kind: str, headers: dict[str, str]):
        self.send_response(status)
        for name, value in {"Content-Type": kind, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _stream(self, response: dict[str, Any], request: dict[str, Any]):
        """Send a completion in small pieces, the way that OpenAI does."""
        self._head(200, "text/event-stream", {"Transfer-Encoding": "chunked"})
        message = response["choices"][0]["message"]
        self._delta(response, {"role": "assistant", "content": ""})
        for piece in _pieces(message["content"] or ""):
            self._delta(response, {"content": piece})
        for place, call in enumerate(message.get("tool_calls", ())):
            head = {"index": place, "id": call["id"], "type": "function"}
            self._delta(
                response,
                {"tool_calls": [{**head, "function": {"name": call["function"]["name"], "arguments": ""}}]},
            )
            for piece in _pieces(call["function"]["arguments"]):
                self._delta(response, {"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
        self._delta(response, {}, response["choices"][0]["finish_reason"])
        if (request.get("stream_options") or {}).get("include_usage"):
            self._event({**_chunk(response), "choices": [], "usage": response["usage"]})
        self._data(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _delta(self, response: dict[str, Any], delta: dict[str, Any], finish_reason: str | None = None):
        self._event({**_chunk(response), "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})

    def _event(self, value: dict[str, Any]):
        self._data(f"data: {json.dumps(value)}\n\n".encode())

    def _data(self, data: bytes):
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def log_message(self, *_):
        pass


def _chunk(response: dict[str, Any]) -> dict[str, Any]:
    return {key: response[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}


def _pieces(text: str) -> list[str]:
    return [text[i : i + 5] for i in range(0, len(text), 5)]
