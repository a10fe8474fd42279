"""Lets only this machine's user in, and keeps pages harmless."""

from __future__ import annotations

from secrets import compare_digest

from starlette.middleware.base import RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Reports are files that may come from elsewhere, with styles of their own: they run nothing and send nothing.
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'; "
    "sandbox allow-same-origin allow-popups allow-popups-to-escape-sandbox"
)
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with `no-referrer`, browsers hide the origin of our own forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
# A page of its own, as browsers send no strict cookie along a redirection that another page began.
_WELCOME = (
    '<!DOCTYPE html><html lang="en"><meta http-equiv="refresh" content="0; url=/"><title>A-RAG</title>'
    '<a href="/">Open the page</a></html>'
)
_NO_TOKEN = "Open the address that `arag web` has printed: it holds the token that this page needs.\n"  # noqa: S105


async def guard(request: Request, call_next: RequestResponseEndpoint, token: str, port: int) -> Response:
    """Answer a request: itself if it comes from a stranger, else as the application does."""
    response = _answer_stranger(request, token, f"arag-{port}")  # browsers send cookies to all ports
    if response is None:
        response = await call_next(request)
    is_report = request.url.path.startswith("/reports/") and request.url.path != "/reports/"
    response.headers.update(_HEADERS)
    response.headers["content-security-policy"] = _REPORT_POLICY if is_report else _POLICY
    return response


def _answer_stranger(request: Request, token: str, cookie: str) -> Response | None:
    """Return the answer to a request that does not come from our own pages, or None."""
    given = request.query_params.get("token", "")
    if request.url.path == "/" and compare_digest(given.encode(), token.encode()):
        welcome = HTMLResponse(_WELCOME)
        welcome.set_cookie(cookie, token, httponly=True, samesite="strict")
        return welcome
    given = request.cookies.get(cookie, "")
    if not compare_digest(given.encode(), token.encode()):
        return PlainTextResponse(_NO_TOKEN, 403)
    own = f"http://{request.headers['host']}"
    if request.method == "POST" and request.headers.get("origin") != own:
        return PlainTextResponse("Other pages may not use this one.\n", 403)
    return None
