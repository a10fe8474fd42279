"""An HTTP server on loopback that gives scripted responses, whole or as a stream of events, and keeps every request."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from typing import Any

Events = Iterator[tuple[str | None, dict[str, Any] | str]]  # an event's name, where it has one, and its data


@dataclass
class Failure:
    """A response that is an error, or none at all."""

    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False  # wait until the server stops instead of responding
    page: bool = False  # respond with a web page instead of JSON
    message: str = ""


@dataclass
class Cut:
    """The first events of a response's stream; then nothing more comes until the server stops, or it drops."""

    response: dict[str, Any]
    events: int
    drops: bool = False  # close the connection


@dataclass
class Comments:
    """A stream of nothing but comments, which keep the connection open."""


@dataclass
class Server:
    """What a test holds of the server."""

    url: str  # the base URL, with `/v1` where the protocol has it there
    respond: Callable[[int, dict[str, Any]], Any]
    events: Callable[[dict[str, Any], dict[str, Any]], Events]
    base: str = ""  # the path below which the protocol is; there is nothing elsewhere
    pages: dict[str, Any] = field(default_factory=dict)  # the JSON at other paths
    requests: list[dict[str, Any]] = field(default_factory=list)  # the JSON of each, in order
    headers: list[dict[str, str]] = field(default_factory=list)  # of each request
    page_headers: list[dict[str, str]] = field(default_factory=list)  # of each request for a page
    httpd: Any = None
    stopping: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def secure(self, context: ssl.SSLContext):
        """Speak TLS from now on."""
        self.httpd.socket = context.wrap_socket(self.httpd.socket, server_side=True)


@contextmanager
def serve_http(
    respond: Callable[[int, dict[str, Any]], Any] | list[Any], events: Callable[..., Events], path="", port=0
):
    """Serve scripted responses, which must all be asked for, or what a function makes of a request's number and JSON.

    `events` makes a stream's events of a response and the request.
    """
    script = respond if isinstance(respond, list) else None
    if script is not None:

        def respond(number, request):
            return script[number] if number < len(script) else Failure(418)

    httpd = _QuietServer(("127.0.0.1", port), _Handler)
    server = httpd.arag = Server(f"http://127.0.0.1:{httpd.server_port}{path}", respond, events, path)
    server.httpd = httpd
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
        assert script is None or len(server.requests) == len(script), "not as many requests as responses"
    finally:
        server.stopping.set()
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def pieces(text: str) -> list[str]:
    """Cut a text into the small pieces of a stream."""
    return [text[i : i + 5] for i in range(0, len(text), 5)]


class _QuietServer(ThreadingHTTPServer):
    request_queue_size = 128  # connections that wait to be taken; 5 refuses some where many come at once
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Say nothing of clients that go away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.arag.page_headers.append({name.lower(): value for name, value in self.headers.items()})
        page = self.server.arag.pages.get(self.path)
        self._send(200 if page else 404, "application/json", json.dumps(page or {"detail": "Not Found"}).encode())

    def do_POST(self):
        server: Server = self.server.arag
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.startswith(server.base) or self.path.count("/completions") > 1:
            self._send(404, "application/json", b'{"detail":"Not Found"}')
            return
        with server.lock:
            number = len(server.requests)
            server.requests.append(request)
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
        response = server.respond(number, request)
        if isinstance(response, Failure):
            self._fail(server, response)
        elif isinstance(response, Comments):
            self._send(200, "text/event-stream", headers={"Transfer-Encoding": "chunked"})
            while not server.stopping.wait(0.01):
                self.wfile.write(b"8\r\n: ping\n\n\r\n")
        elif isinstance(response, Cut):
            self._stream(islice(server.events(response.response, request), response.events))
            if not response.drops:
                server.stopping.wait(30)
            self.close_connection = True
        elif request.get("stream"):
            self._stream(server.events(response, request))
            self.wfile.write(b"0\r\n\r\n")
        else:
            self._send(200, "application/json", json.dumps(response).encode())

    def _fail(self, server: Server, failure: Failure):
        if failure.hang:
            server.stopping.wait(30)
            self.close_connection = True
        elif failure.page:
            self._send(failure.status, "text/html", b"<html><body>It works!</body></html>", failure.headers)
        else:  # the shapes of OpenAI's and Anthropic's errors in one
            error = {"message": failure.message or f"scripted failure {failure.status}", "type": "server_error"}
            body = json.dumps({"type": "error", "error": error}).encode()
            self._send(failure.status, "application/json", body, failure.headers)

    def _send(self, status: int, kind: str, body: bytes = b"", headers: dict[str, str] | None = None):
        self.send_response(status)
        size = {"Content-Length": str(len(body))} if body else {}
        for name, value in {"Content-Type": kind, **size, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Events):
        self._send(200, "text/event-stream", headers={"Transfer-Encoding": "chunked"})
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            event = (f"event: {name}\n" if name else "") + f"data: {text}\n\n"
            self.wfile.write(f"{len(event.encode()):x}\r\n{event}\r\n".encode())

    def log_message(self, *_):
        pass
