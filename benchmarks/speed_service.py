"""An embedding service on loopback that takes a while for each request, as one behind a network does.

    python benchmarks/speed_service.py SECONDS

It prints its port, answers `/v1/embeddings` as OpenAI's service does, and `/seen` with how many requests there were
and how many at once.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

import numpy as np
from speed_data import FreeEmbeddings

_EMBEDDINGS = FreeEmbeddings()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    requests = at_once = most_at_once = 0
    seconds = 0.0

    def do_GET(self) -> None:
        self._answer({"requests": _Handler.requests, "at_once": _Handler.most_at_once})

    def do_POST(self) -> None:
        with _Handler.lock:
            _Handler.requests += 1
            _Handler.at_once += 1
            _Handler.most_at_once = max(_Handler.most_at_once, _Handler.at_once)
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
        vectors = np.asarray(_EMBEDDINGS.embed_documents(texts), dtype=np.float32)
        time.sleep(_Handler.seconds)
        with _Handler.lock:
            _Handler.at_once -= 1
        coded = request.get("encoding_format") == "base64"
        data = [
            {
                "object": "embedding",
                "index": i,
                "embedding": base64.b64encode(vector.tobytes()).decode() if coded else vector.tolist(),
            }
            for i, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        self._answer({"object": "list", "data": data, "model": request["model"], "usage": usage})

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _answer(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def service(seconds: float) -> Iterator[str]:
    """Run a service in a process of its own; gives its address."""
    command = [sys.executable, __file__, str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def seen(address: str) -> tuple[int, int]:
    """Return how many requests a service has had, and how many at once."""
    with urlopen(f"{address}/seen", timeout=10) as answer:  # noqa: S310 - loopback
        values = json.load(answer)
    return values["requests"], values["at_once"]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


if __name__ == "__main__":
    _Handler.seconds = float(sys.argv[1])
    with _Server(("127.0.0.1", 0), _Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
