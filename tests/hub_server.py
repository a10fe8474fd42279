"""A server that has models as the model hub has them."""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0" * 40
_LARGE = 1_000_000  # bytes


class HubServer:
    """Serves the files of models.

    Attributes:
        url: Its address.
        asked: Every file that was asked for, with the first byte of it.
        cut: How many answers with a large file still break off in the middle.
        damaged: Whether large files have another last byte.
    """

    def __init__(self, models):
        self.models = models
        self.asked = []
        self.cut = 0
        self.damaged = False

    def answer(self, path, start):
        """Return the contents of a page, from a byte on, and their hash; None if there is no such page."""
        for model, files in self.models.items():
            siblings = [{"rfilename": name} for name in files]
            entries = [{"type": "file", "path": name, "size": 1, "oid": COMMIT} for name in files]
            pages = {
                f"/api/models/{model}/revision/main": {"id": model, "sha": COMMIT, "siblings": siblings},
                f"/api/models/{model}/revision/{COMMIT}": {"id": model, "sha": COMMIT, "siblings": siblings},
                f"/api/models/{model}/tree/{COMMIT}": entries,
            }
            if path in pages:
                return json.dumps(pages[path]).encode(), ""
            name = path.removeprefix(f"/{model}/resolve/{COMMIT}/")
            if name in files:
                data = files[name].read_bytes()
                digest = hashlib.sha256(data).hexdigest()
                if self.damaged and len(data) > _LARGE:
                    data = data[:-1] + bytes([data[-1] ^ 1])
                return data[start:], digest
        return None


@contextmanager
def serve_hub(models):
    """Serve models: the paths of their files, by the names of the files and the models."""
    hub = HubServer(models)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self):
            self.respond(with_body=False)

        def do_GET(self):
            self.respond(with_body=True)

        def respond(self, *, with_body):
            path = self.path.partition("?")[0]
            start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
            answer = hub.answer(path, start)
            if answer is None:
                self.send_error(404)
                return
            data, digest = answer
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(data)))
            if start:
                self.send_header("Content-Range", f"bytes {start}-{start + len(data) - 1}/{start + len(data)}")
            if digest:
                self.send_header("ETag", f'"{digest}"')
                self.send_header("X-Repo-Commit", COMMIT)
            self.end_headers()
            if not with_body:
                return
            if digest:
                hub.asked.append((path.rpartition("/")[2], start))
            if hub.cut and len(data) > _LARGE:
                hub.cut -= 1
                self.wfile.write(data[: len(data) // 2])
                self.close_connection = True
                return
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
