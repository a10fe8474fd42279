"""Lets only this machine's user in: checks the host, the origin and the token of each request."""

from __future__ import annotations

import hmac
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

MAX_BODY = 100_000  # bytes of a form
_MAX_QUERY = 8_000  # characters behind the ? of an address
_SAFE_METHODS = {"GET", "HEAD"}
_FOREIGN_SITES = {"cross-site", "same-site"}  # the latter are other ports of this machine
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with none at all, browsers hide the origin of forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_WELCOME = '<!DOCTYPE html><html lang="en"><title>A-RAG</title><p><a href="/">Open the page</a></p></html>'
_NO_TOKEN = "Open the address that `arag web` has printed: it holds the token that this page needs.\n"  # noqa: S105


class Guard:
    """An application around another one: it refuses requests of strangers, and sets headers that keep pages harmless.

    Args:
        app: The application.
        token: What the address and then the cookie must have.
        port: The port of the server, which is a part of its host names.
    """

    def __init__(self, app: Any, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._cookie = f"arag-{port}"  # browsers share cookies between ports

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        response = self._answer_stranger(Request(scope))
        await (response or self._app)(scope, receive, send_with_headers)

    def _answer_stranger(self, request: Request) -> Response | None:
        """Return the answer to a request that does not come from the page itself, or None."""
        if request.headers.get("host", "") not in self._hosts:
            return PlainTextResponse("This host is not known here.\n", 421)
        if len(request.url.query) > _MAX_QUERY:
            return PlainTextResponse("The address is too long.\n", 414)
        if request.url.path == "/" and self._is_token(request.query_params.get("token", "")):
            # The next request comes from this site: browsers send no strict cookie along a redirection from another.
            welcome = HTMLResponse(_WELCOME, headers={"refresh": "0; url=/"})
            welcome.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return welcome
        is_foreign = request.headers.get("sec-fetch-site") in _FOREIGN_SITES
        if is_foreign or not self._is_token(request.cookies.get(self._cookie, "")):
            return PlainTextResponse(_NO_TOKEN, 403)
        if request.method not in _SAFE_METHODS:
            return self._check_form(request)
        return None

    def _check_form(self, request: Request) -> Response | None:
        """Return the refusal of a form that another page has sent, or that is too large."""
        origin = urlsplit(request.headers.get("origin", ""))
        if origin.scheme != "http" or origin.netloc != request.headers["host"]:
            return PlainTextResponse("Other pages may not use this one.\n", 403)
        size = request.headers.get("content-length", "")
        if not size.isdecimal() or int(size) > MAX_BODY:
            return PlainTextResponse(f"The form is larger than {MAX_BODY:,} bytes.\n", 413)
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())
