"""The pages: each function answers one address."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from arag.errors import ARAGError
from arag.page import render, stream
from arag.retrieval.corpus.documents import list_folders
from arag.retrieval.corpus.moved import find_moved
from arag.retrieval.index import Index
from arag.retrieval.tools.fused import find_passages
from arag.retrieval.types import DocumentInfo
from arag.web import passages
from arag.web.asking import Run
from arag.web.guard import guard
from arag.web.originals import draw_page, find_original, find_page

_MAX_FOLDERS = 1_000  # that the filter offers

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Site:
    """The pages of an index."""

    index: Index  # limited to its scope
    agent: Any  # that answers questions
    model: str  # of the agent
    reports: Path | None  # a folder with pages of runs and reports
    _runs: dict[int, Run] = field(default_factory=dict)
    _limited: dict[frozenset[str], Index] = field(default_factory=dict)  # kept, as to limit a large index takes long

    def make_app(self, token: str, port: int) -> Starlette:
        """Return the application."""
        routes: list[Route | Mount] = [
            Route("/", self.search),
            Route("/passage", self.passage),
            Route("/picture", self.picture),
            Route("/file", self.original),
            Route("/document", self.document),
            Route("/ask", self.list_runs),
            Route("/ask", self.ask, methods=["POST"]),
            Route("/runs/{number:int}", self.show_run),
            Route("/style.css", lambda _: Response(render("web/style.css"), media_type="text/css")),
            Route("/favicon.ico", lambda _: Response(status_code=204)),
        ]
        if self.reports is not None:
            routes.append(Route("/reports/", self.list_reports))
            routes.append(Mount("/reports", StaticFiles(directory=self.reports)))
        handlers: Any = {ARAGError: self._show_error, HTTPException: self._show_error}
        app = Starlette(routes=routes, exception_handlers=handlers)
        app.add_middleware(BaseHTTPMiddleware, dispatch=partial(guard, token=token, port=port))
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
        return app

    def search(self, request: Request) -> Response:
        """Show the search box, and below it what a search found, or else the documents."""
        values = request.query_params
        query = values.get("q", "").strip()
        filters = {name: values.get(name, "").strip("/ ") for name in passages.FILTERS}
        documents = passages.list_all(self.index)
        below = passages.list_below(documents, filters["folder"])
        chosen = [document for document in below if passages.allow(document, filters)]
        index = self.index
        if len(chosen) < len(documents):
            ids = frozenset(document.id for document in chosen)
            index = self._limited.setdefault(ids, index.limited_to(ids))
        hits, missing = find_passages(index, query) if query and chosen else ([], {})
        return self._page(
            "search",
            title=query or "Search",
            query=query,
            filters=filters,
            kinds=sorted({document.kind for document in documents} - {""}),
            folders=list_folders(documents)[:_MAX_FOLDERS],
            paths={document.id: document.path for document in documents},
            hits=hits,
            missing=missing,
            total=len(chosen),
            of_all=len(documents),
            undated=sum(not document.date for document in documents),
            listed=[document for document in chosen if document.id > values.get("from", "")],
        )

    def document(self, request: Request) -> Response:
        """Show what is known of a document: its headings, its tables, and what was left out."""
        document, path, original, warning = self._find(request.query_params.get("id", ""))
        chunks = self.index.chunks_of(document.id)
        return self._page(
            "document",
            title=document.title or path,
            document=document,
            path=path,
            chunks=chunks,
            headings=passages.list_headings(chunks),
            tables=self.index.limited_to([document.id]).query_tables().tables,
            original=original,
            warning=warning,
        )

    def original(self, request: Request) -> Response:
        """Send the file of a document, to be saved: a browser never shows it as a page of this site."""
        original = _check_found(self._find(request.query_params.get("id", ""))[2])
        return FileResponse(original, media_type="application/octet-stream", filename=original.name)

    def passage(self, request: Request) -> Response:
        """Show a passage with its sentences marked: in a picture of the page, and as text."""
        chunk = _check_found(self.index.get(request.query_params.get("chunk", "")))
        _, path, original, warning = self._find(chunk.document_id)
        starts = request.query_params.getlist("at")
        link, page, percent, last_page = passages.address(chunk.id, starts).partition("#")[0], 0, 0, 0
        if original is not None and original.name.lower().removesuffix(".gz").endswith(".pdf") and chunk.pages:
            page, percent, last_page = find_page(original, chunk.text, passages.list_spans(chunk, starts), chunk.pages)
            page = min(_read_number(request.query_params.get("page", "")) or page, last_page)
            shown = passages.find_chunk_on(self.index, chunk, page)
            if shown.id != chunk.id:
                chunk, starts = shown, []
        return self._page(
            "passage",
            title=chunk.title or path,
            chunk=chunk,
            path=path,
            original=original,
            warning=warning,
            around=[] if page else self.index.read(chunk.id, 1).chunks,
            link=link,
            starts=starts,
            page=page,
            percent=percent,
            last_page=last_page,
            place=passages.name_passage(chunk, starts),
            parts=passages.split_marked(chunk, starts),
        )

    def picture(self, request: Request) -> Response:
        """Send the picture of a page, with a passage's sentences marked."""
        values = request.query_params
        chunk = _check_found(self.index.get(values.get("chunk", "")))
        original = _check_found(self._find(chunk.document_id)[2])
        page = _check_found(_read_number(values.get("page", "")))
        first, last = _check_found(chunk.pages)
        spans = passages.list_spans(chunk, values.getlist("at")) if first <= page <= last else []
        return Response(draw_page(original, chunk.text, spans, page), media_type="image/png")

    def list_runs(self, _: Request) -> Response:
        """Show the form for a question, and the questions so far."""
        return self._page("ask", title="Ask", model=self.model, runs=self._runs)

    async def ask(self, request: Request) -> Response:
        """Ask the agent, and go to the page of the run."""
        form = parse_qs((await request.body()).decode())
        number = len(self._runs) + 1
        self._runs[number] = Run(form.get("q", [""])[0], self.agent, self.model)
        return RedirectResponse(f"/runs/{number}", 303)

    def show_run(self, request: Request) -> Response:
        """Show a run: its steps as they happen, then the answer with its sources."""
        run = _check_found(self._runs.get(request.path_params["number"]))
        page = stream("web/run.html", title=run.question, run=run, passages=passages, reports=self.reports)
        return StreamingResponse(page, media_type="text/html")

    def list_reports(self, _: Request) -> Response:
        """Show the pages in the folder of reports: first the reports, then the pages of questions and runs."""
        found = self.reports.rglob("*.html") if self.reports else []
        pages = sorted(found, key=lambda page: (page.name != "report.html", page))
        return self._page("reports", title="Reports", pages=pages)

    def _find(self, document_id: str) -> tuple[DocumentInfo, str, Path | None, str]:
        """Return a document, where it is now, and its file, or why that cannot be shown."""
        document = _check_found(self.index.document(document_id))
        path = self.index.with_view(find_moved).get(document_id, document_id)
        return document, path, *find_original(document)

    def _page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        return HTMLResponse(render(f"web/{template}.html", passages=passages, reports=self.reports, **values), status)

    def _show_error(self, _: Request, error: Exception) -> Response:
        """Show why there is no page."""
        if isinstance(error, HTTPException):
            return self._page("layout", status=error.status_code, title=error.detail)
        return self._page("layout", status=400, title=str(error))


def _read_number(text: str) -> int | None:
    """Return a page's number, or None if the text is none."""
    return int(text) if re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII) else None


def _check_found(value: T | None) -> T:
    if value is None:
        raise HTTPException(404, "It is not there, or not any more: search again.")
    return value
