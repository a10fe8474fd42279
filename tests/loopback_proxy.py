"""A TCP proxy on loopback, which loses connections where a test says so.

It reads what clients send, the statements of PostgreSQL's protocol. A connection is therefore cut at the same statement
in every run, however the network divides what is sent.
"""

from __future__ import annotations

import re
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count

from postgres_server import free_port

_HOST = "127.0.0.1"
_GONE_WITHIN = 10.0  # seconds


@contextmanager
def proxy_postgres(server_port: int) -> Iterator[Proxy]:
    """Forward connections to PostgreSQL on a port."""
    proxy = Proxy(server_port)
    try:
        yield proxy
    finally:
        proxy.refuse()
        proxy.cut()


@dataclass
class _Cut:
    left: int  # statements that pass before
    containing: str
    after: bool
    refuse: bool


class Proxy:
    """Forwards connections to a server. Made by `proxy_postgres`.

    Statements are counted over all connections: queries, each execution of a prepared one, each piece of data in a COPY
    (which reads `COPY data`), and the end of a COPY (`COPY end`).

    Attributes:
        port: The port that it listens on.
        statements: What passed, or was to pass when a connection was cut, in order.
        connections: How many connections clients have made.
        delay: How many seconds each statement waits before it is forwarded.
    """

    def __init__(self, server_port: int) -> None:
        self.port = free_port()
        self.statements: list[str] = []
        self.connections = 0
        self.delay = 0.0
        self._server_port = server_port
        self._lock = threading.Lock()
        self._open: set[_Connection] = set()
        self._cut: _Cut | None = None
        self._listener: _Listener | None = None
        self.accept()

    def url(self, url: str) -> str:
        """Return the server's URL with the proxy's port."""
        return re.sub(rf":{self._server_port}(?=[/?]|$)", f":{self.port}", url, count=1)

    def cut_at(self, n: int, *, containing: str = "", after: bool = False, refuse: bool = False) -> None:
        """Cut the connection that sends the n-th statement from now on, once; this replaces what was asked before.

        The client sees that it is cut only when the server's side has ended, so that nothing of it is left behind.

        Args:
            n: Which one, from 1; 0 for none.
            containing: Count only statements that contain this.
            after: Cut when the server has answered, before the client gets the answer. If not, the server never gets
                the statement.
            refuse: Refuse new connections from then on, until `accept`.
        """
        with self._lock:
            self._cut = _Cut(n - 1, containing, after, refuse) if n else None

    @property
    def was_cut(self) -> bool:
        """Whether what `cut_at` asked for has happened."""
        return self._cut is None

    def cut(self) -> None:
        """Cut all connections now."""
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            connection.end()
        for connection in connections:
            connection.wait_for_end()

    def refuse(self) -> None:
        """Refuse new connections, as if no server ran."""
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            listener.shutdown()
            listener.server_close()

    def accept(self) -> None:
        """Take new connections again, on the same port."""
        with self._lock:
            if self._listener is None:
                self._listener = _Listener((_HOST, self.port), self._serve)
                threading.Thread(target=self._listener.serve_forever, args=(0.01,), daemon=True).start()

    def _serve(self, client: socket.socket, *_) -> None:
        with suppress(OSError), socket.create_connection((_HOST, self._server_port)) as server:
            connection = _Connection(self, client, server)
            with self._lock:
                self.connections += 1
                self._open.add(connection)
            try:
                connection.run()
            finally:
                with self._lock:
                    self._open.discard(connection)

    def _cut_here(self, statement: str) -> _Cut | None:
        """Count a statement; return how to cut the connection, if this is where."""
        with self._lock:
            self.statements.append(statement)
            cut = self._cut
            if cut is None or cut.containing not in statement:
                return None
            cut.left -= 1
            if cut.left >= 0:
                return None
            self._cut = None
            return cut


class _Listener(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    block_on_close = False  # connections outlive the listener
    daemon_threads = True
    request_queue_size = 128


class _Connection:
    """Two threads: one forwards what the client sends, one what the server replies."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._protocol = _Messages()
        self._lock = threading.Lock()  # held around the protocol
        self._silent = False  # replies are read and thrown away
        self._ended = False
        self._replies = threading.Thread(target=self._forward_replies, daemon=True)

    def run(self) -> None:
        for side in (self._client, self._server):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._replies.start()
        with suppress(OSError):
            while not self._ended and (data := self._client.recv(1 << 16)):
                self._protocol.sent += data
                self._forward_messages()
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_WR)
        self._replies.join()

    def end(self) -> None:
        """Let the server see that the client is gone; the client sees it when the server has ended its side."""
        self._silent = self._ended = True
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_WR)

    def wait_for_end(self) -> None:
        self._replies.join(_GONE_WITHIN)
        with suppress(OSError):  # a server that is busy with a statement does not notice
            self._client.shutdown(socket.SHUT_RDWR)

    def _forward_messages(self) -> None:
        while not self._ended:
            with self._lock:
                message, statement = self._protocol.next_message()
            if not message:
                return
            cut = None
            if statement is not None:
                time.sleep(self._proxy.delay)
                cut = self._proxy._cut_here(statement)
            if cut is not None and cut.refuse:
                self._proxy.refuse()
            if cut is not None and not cut.after:
                self.end()
                self.wait_for_end()
                return
            if cut is not None:
                with self._lock:
                    self._protocol.expect_answer(message)
                self._silent = True
            self._server.sendall(message)
            self._end_if_answered()

    def _forward_replies(self) -> None:
        with suppress(OSError):
            while data := self._server.recv(1 << 16):
                with self._lock:
                    self._protocol.replied(data)
                if self._silent:
                    self._end_if_answered()
                else:
                    self._client.sendall(data)
        with suppress(OSError):
            self._client.shutdown(socket.SHUT_RDWR)

    def _end_if_answered(self) -> None:
        with self._lock:
            answered = self._protocol.answered
        if answered:
            self.end()


_ENCRYPTION = (80877103, 80877104)  # requests for TLS and GSSAPI, which the server declines with one byte


class _Messages:
    """Reads messages: a kind, which the first ones lack, a length, which counts itself, and data."""

    def __init__(self) -> None:
        self.sent = b""
        self.answered = False
        self._started = False
        self._declines = 0  # how many single bytes the server owes
        self._received = b""
        self._queries: dict[bytes, str] = {}  # of prepared statements
        self._portals: dict[bytes, str] = {}
        # What the server has not finished: queries (Q), executions (E) and synchronizations (S), numbered.
        self._owed: list[tuple[bytes, int]] = []
        self._numbers = count()
        self._expected: tuple[bytes, int] | None = None
        self._execution: tuple[bytes, int] | None = None  # expected, with the next synchronization or flush

    def next_message(self) -> tuple[bytes, str | None]:
        message, self.sent = _take(self.sent, kind=self._started)
        if not message:
            return b"", None
        if not self._started:
            self._started = int.from_bytes(message[4:8]) not in _ENCRYPTION
            self._declines += not self._started
            return message, None
        return message, self._read(message[:1], message[5:])

    def _read(self, kind: bytes, data: bytes) -> str | None:
        if kind in {b"Q", b"E", b"S"}:
            self._owed.append((kind, next(self._numbers)))
        first, _, rest = data.partition(b"\0")
        second = rest.partition(b"\0")[0]
        if kind == b"Q":
            return first.decode()
        if kind == b"E":
            return self._portals.get(first, "")
        if kind == b"P":
            self._queries[first] = second.decode()
        elif kind == b"B":
            self._portals[first] = self._queries.get(second, "")
        elif kind in {b"S", b"H"} and self._execution:
            self._expected = self._owed[-1] if kind == b"S" else self._execution
            self._execution = None
        return {b"d": "COPY data", b"c": "COPY end"}.get(kind)

    def expect_answer(self, message: bytes) -> None:
        kind = message[:1]
        if kind == b"d":
            self.answered = True  # there is no reply to it
        elif self._owed[-1][0] == b"Q":
            self._expected = self._owed[-1]
        else:
            self._execution = self._owed[-1]

    def replied(self, data: bytes) -> None:
        self._received += data
        while self._received:
            if self._declines:
                self._declines -= 1
                self._received = self._received[1:]
                continue
            message, self._received = _take(self._received, kind=True)
            if not message:
                return
            self._finish(message[:1])
            if message[:1] == b"G":  # COPY waits for data, which a client that gets no reply does not send
                self.answered |= bool(self._expected or self._execution)
            if self._expected and self._expected not in self._owed:
                self.answered = True

    def _finish(self, kind: bytes) -> None:
        """Take from what is owed what a reply of this kind ends."""
        owed = [one[0] for one in self._owed]
        if kind == b"Z":  # ready for the next query
            ends = min(i for i, one in enumerate(owed) if one != b"E") if owed else -1  # none after the login
            del self._owed[: ends + 1]
        elif kind in {b"C", b"I", b"s"} and owed[:1] == [b"E"]:  # complete, empty, suspended
            del self._owed[0]
        elif kind == b"E" and owed and owed[0] != b"Q":  # an error: what follows is skipped up to the synchronization
            while self._owed and self._owed[0][0] == b"E":
                del self._owed[0]
        elif kind == b"G" and owed[:2] == [b"E", b"S"]:  # COPY takes data: a synchronization sent before is ignored
            del self._owed[1]


def _take(data: bytes, *, kind: bool) -> tuple[bytes, bytes]:
    """Split the first message from what follows; an empty one if it is not complete."""
    start = int(kind)
    if len(data) < start + 4:
        return b"", data
    end = start + int.from_bytes(data[start : start + 4])
    return (data[:end], data[end:]) if len(data) >= end else (b"", data)
