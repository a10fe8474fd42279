"""The pages: each function answers one address."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from arag.errors import ARAGError, InputError
from arag.page import RunView, render, trace_page
from arag.retrieval.index import Index
from arag.retrieval.presentation.places import name_place
from arag.retrieval.types import Chunk, DocumentInfo
from arag.web.asking import Run, Runs
from arag.web.originals import count_pages, draw_page, find_original, find_page, is_pdf
from arag.web.passages import Filters, Found, find_passages, list_choices
from arag.web.reading import list_headings, list_tables, mark_sentences, marked_texts

_HITS = 10  # more of a search at each request for more
_MAX_HITS = 100
_MAX_QUERY = 1_000  # characters of a search or a question
_DOCUMENTS = 100  # on a page of the list
_MAX_NUMBER = 10**9
_DAY = re.compile(r"(?:\d{4}-\d\d-\d\d)?")
# Pages that were written before: styles of their own, no scripts and no forms, and nothing from elsewhere.
_WRITTEN = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; "
    "frame-ancestors 'none'; sandbox allow-same-origin allow-popups allow-popups-to-escape-sandbox"
}


class _NotFoundError(InputError):
    """There is no such page."""


class Site:
    """The pages of an index.

    Args:
        index: The index, limited to its scope.
        runs: The runs of its model.
        reports: A folder with pages of runs and reports.
    """

    def __init__(self, index: Index, runs: Runs, reports: Path | None) -> None:
        self._index = index
        self._runs = runs
        self._reports = None if reports is None else reports.resolve()
        self._limited = lru_cache(maxsize=32)(self._limit)  # kept, as to limit a large index takes long

    def make_app(self) -> Starlette:
        """Return the application."""
        pages = {"/": self.search, "/passage": self.passage, "/picture": self.picture, "/file": self.original}
        pages |= {"/documents": self.documents, "/document": self.document, "/reports/{path:path}": self.report}
        routes = [Route(path, endpoint) for path, endpoint in pages.items()]
        routes += [
            Route("/style.css", lambda _: _asset("text/css", "base.css", "web/web.css")),
            Route("/web.js", lambda _: _asset("text/javascript", "web/web.js")),
            Route("/ask", self.ask, methods=["POST"]),
            Route("/runs", self.list_runs),
            Route("/runs/{number:int}", self.show_run),
            Route("/runs/{number:int}/events", self.events),
            Route("/runs/{number:int}/stop", self.stop, methods=["POST"]),
            Route("/runs/{number:int}/steps", self.steps),
        ]
        return Starlette(routes=routes, exception_handlers={ARAGError: _show_error, 404: _show_error})

    # --- searching and reading ---

    def search(self, request: Request) -> Response:
        """Show the search box, and what a search found."""
        query = _text(request, "q")
        filters = Filters(*(_text(request, name) for name in ("folder", "kind", "after", "before")))
        if not (_DAY.fullmatch(filters.after) and _DAY.fullmatch(filters.before)):
            raise InputError("a date is not valid: give it as 2020-01-31")
        count = min(_number(request, "count", _HITS), _MAX_HITS)
        found = Found()
        if query:
            found = find_passages(self._limited(filters), query, count)
        more = f"/?{urlencode([(n, v) for n, v in request.query_params.items() if n != 'count'])}&count={count + _HITS}"
        choices = self._index._search(list_choices)  # noqa: SLF001 - kept by view
        is_more = found.more and count < _MAX_HITS
        return _page("search", query=query, filters=filters, found=found, more=more if is_more else "", choices=choices)

    def _limit(self, filters: Filters) -> Index:
        scope = filters.to_scope()
        return self._index if scope is None else self._index.limited_to(scope)

    def passage(self, request: Request) -> Response:
        """Show a passage with its sentences marked: in a picture of the page, and as text."""
        chunk = self._find_chunk(request)
        document = self._find_document(chunk.document_id)
        starts = _starts(request)
        original = find_original(document)
        view: dict[str, Any] = {"picture": "", "fault": "", "pages": 0, "number": 0, "is_found": True}
        if original is not None and is_pdf(original) and chunk.pages:
            try:
                view |= self._show_page(request, original, chunk, starts)
            except InputError as error:
                view["fault"] = str(error)
        return _page(
            "passage",
            chunk=chunk,
            document=document,
            original=original,
            place=name_place(chunk),
            heading=_find_heading(chunk, starts),
            text=mark_sentences(chunk, starts, anchored=not view["picture"]),  # a picture is looked at first
            around=[each for each in self._index.read([chunk.id], adjacent=1).chunks if each.id != chunk.id],
            at="".join(f"&at={start}" for start in sorted(starts)),
            **view,
        )

    def _show_page(self, request: Request, original: Path, chunk: Chunk, starts: set[int]) -> dict[str, Any]:
        """Return the picture of a page for the template: the one that is asked for, or that has the sentences."""
        pages = count_pages(original)
        number = _number(request, "page", 0)
        is_found = True
        if not number and chunk.pages:
            number, is_found = find_page(original, marked_texts(chunk, starts), chunk.pages)
        number = min(max(number, 1), pages)
        query = [("chunk", chunk.id), ("page", number), *(("at", start) for start in sorted(starts))]
        picture = f"/picture?{urlencode(query)}"
        return {"picture": picture, "pages": pages, "number": number, "is_found": is_found or not starts}

    def picture(self, request: Request) -> Response:
        """Send the picture of a page."""
        chunk = self._find_chunk(request)
        original = find_original(self._find_document(chunk.document_id))
        if original is None or not is_pdf(original):
            raise _NotFoundError("there is no picture of this page: its file is not there any more")
        texts = marked_texts(chunk, _starts(request))
        return Response(draw_page(original, _number(request, "page", 1), texts), media_type="image/png")

    def original(self, request: Request) -> Response:
        """Send the file of a document, to be saved: a browser never shows it as a page of this site."""
        path = find_original(self._find_document(_text(request, "document")))
        if path is None:
            raise _NotFoundError("the document's file is not there any more")
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)

    def documents(self, request: Request) -> Response:
        """List the documents, a page at a time."""
        within, sort, start = _text(request, "within"), _text(request, "sort") or "id", _number(request, "start", 0)
        listed = self._index.list_documents(within=within, sort=sort, start=start, limit=_DOCUMENTS)
        following = start + _DOCUMENTS
        return _page("documents", listed=listed, within=within, sort=sort, start=start, following=following)

    def document(self, request: Request) -> Response:
        """Show what is known of a document: its headings, its tables, and what was left out."""
        document = self._find_document(_text(request, "id"))
        chunks = self._index._search(lambda view: view.chunks_of([document.id]))  # noqa: SLF001
        headings, tables = list_headings(chunks), list_tables(chunks)
        original = find_original(document)
        return _page("document", document=document, chunks=chunks, headings=headings, tables=tables, original=original)

    def _find_chunk(self, request: Request) -> Chunk:
        chunk = self._index.get(_text(request, "chunk"))
        if chunk is None:
            raise _NotFoundError("the index has no such passage; it may have been rebuilt: search again")
        return chunk

    def _find_document(self, document_id: str) -> DocumentInfo:
        document = self._index.document(document_id)
        if document is None:
            raise _NotFoundError("the index has no such document; it may have been rebuilt: search again")
        return document

    # --- asking ---

    async def ask(self, request: Request) -> Response:
        """Begin a run."""
        form = parse_qs((await request.body()).decode("utf-8", "replace"))
        question = form.get("q", [""])[0].strip()
        if len(question) > _MAX_QUERY:
            raise InputError(f"the question is longer than {_MAX_QUERY:,} characters")
        return RedirectResponse(f"/runs/{self._runs.begin(question)}", 303)

    async def list_runs(self, _: Request) -> Response:
        """List the runs, and the pages of the folder of reports."""
        written = []
        if self._reports is not None:
            written = sorted(str(page.relative_to(self._reports)) for page in self._reports.rglob("*.html"))
        shown = [page for page in written if "questions/" not in page][:_MAX_HITS]  # a report has links to the others
        return _page("runs", runs=self._runs, reports=[(quote(page), page) for page in shown])

    async def show_run(self, request: Request) -> Response:
        """Show a run: its steps while they happen, then the answer with its sources."""
        run = self._find_run(request)
        view = None
        if run.is_done and run.state:
            view = RunView.from_state(run.state, error=run.error, model=self._runs.model)
        return _page("run", run=run, number=request.path_params["number"], view=view)

    async def events(self, request: Request) -> Response:
        """Send what happens in a run, as it happens."""
        return StreamingResponse(self._find_run(request).follow(), media_type="text/event-stream")

    async def stop(self, request: Request) -> Response:
        """Stop a run."""
        task = self._find_run(request).task
        if task is not None:
            task.cancel()
        return RedirectResponse(f"/runs/{request.path_params['number']}", 303)

    async def steps(self, request: Request) -> Response:
        """Show the page of a run with every step."""
        run = self._find_run(request)
        if not run.state:
            raise _NotFoundError("the run has no steps yet")
        return HTMLResponse(trace_page(run.state, error=run.error, model=self._runs.model), headers=_WRITTEN)

    def _find_run(self, request: Request) -> Run:
        run = self._runs.by_number.get(request.path_params["number"])
        if run is None:
            raise _NotFoundError("there is no such run: runs end with the program that serves this page")
        return run

    def report(self, request: Request) -> Response:
        """Send a page of the folder of reports, without scripts."""
        path = request.path_params["path"]
        page = None if self._reports is None or "\0" in path else (self._reports / path).resolve()
        if page is None or not page.is_relative_to(self._reports) or page.suffix != ".html" or not page.is_file():
            raise _NotFoundError("there is no such report")
        return FileResponse(page, media_type="text/html; charset=utf-8", headers=_WRITTEN)


def _page(template: str, *, status: int = 200, **values: Any) -> Response:
    return HTMLResponse(render(f"web/{template}.html", **values), status)


def _asset(kind: str, *names: str) -> Response:
    texts = [files("arag").joinpath(name).read_text("utf-8") for name in names]
    return Response("\n".join(texts), media_type=kind)


async def _show_error(_: Request, error: Exception) -> Response:
    """Show why a page cannot be shown."""
    if not isinstance(error, ARAGError):
        error = _NotFoundError("there is no such page")
    status = 404 if isinstance(error, _NotFoundError) else 400 if isinstance(error, InputError) else 503
    return _page("error", status=status, message=str(error))


def _text(request: Request, name: str) -> str:
    text = request.query_params.get(name, "").strip()
    if len(text) > _MAX_QUERY and name == "q":
        raise InputError(f"the search is longer than {_MAX_QUERY:,} characters")
    return text


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not re.fullmatch("[0-9]{1,9}", text):
        raise InputError(f"{name} is not valid: it must be a number from 0 to {_MAX_NUMBER:,}")
    return int(text)


def _starts(request: Request) -> set[int]:
    """Return where the sentences to mark start in their chunk."""
    return {int(text) for text in request.query_params.getlist("at") if re.fullmatch("[0-9]{1,9}", text)}


def _find_heading(chunk: Chunk, starts: set[int]) -> str:
    """Return the headings above the first marked sentence."""
    return next((each.heading for each in chunk.sentences if each.start in starts), "")
