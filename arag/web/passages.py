"""What the pages show of an index: passages that a search finds, chosen documents, marked sentences."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from urllib.parse import urlencode

from arag.retrieval.corpus.documents import list_documents
from arag.retrieval.corpus.kept_by_view import KeptByView
from arag.retrieval.corpus.types import ListedDocument
from arag.retrieval.index import Index
from arag.retrieval.presentation.places import name_place
from arag.retrieval.presentation.selection import ShownHit
from arag.retrieval.types import Chunk

FILTERS = ("folder", "kind", "after", "before")  # the last two are days, such as 2020-01-31

_DAY = len("2020-01-31")
_LAST_DAY = "9999-12-31"
_LISTED = KeptByView(lambda view: list_documents(view, None, "id", 0, sys.maxsize), most=4)


def list_all(index: Index) -> Sequence[ListedDocument]:
    """Return all documents, in the order of ids; they are kept, as to list 10,000 takes half a second."""
    return index.with_view(_LISTED).documents


def allow(document: ListedDocument, filters: Mapping[str, str]) -> bool:
    """Return whether filters, of which empty ones allow all, let a document pass. Its date may be a year or a month."""
    if filters["folder"] and not document.id.startswith(f"{filters['folder']}/"):
        return False
    if filters["kind"] not in {"", document.kind}:
        return False
    if not filters["after"] and not filters["before"]:
        return True
    day = document.date[:_DAY]
    last = filters["before"] or _LAST_DAY
    return bool(day) and filters["after"][: len(day)] <= day <= last[: len(day)]


def list_headings(chunks: Iterable[Chunk]) -> dict[str, str]:
    """Return the headings of a document, each with the address of the first sentence below it."""
    places: dict[str, str] = {}
    for chunk in chunks:
        for sentence in chunk.sentences:
            if sentence.heading:
                places.setdefault(sentence.heading, address(chunk.id, [sentence.start], chunk.pages))
    return places


def list_starts(shown: ShownHit) -> list[str]:
    """Return where the sentences that matched start in their chunk, as addresses have it."""
    matched = [sentence.position for sentence in shown.excerpt.sentences if sentence.matched]
    return [str(shown.hit.chunk.sentences[position].start) for position in matched]


def address(chunk_id: str, starts: Sequence[str | int], pages: Sequence[int] | None) -> str:
    """Return the address of a passage with marked sentences: it leads to the first one, or to the page's picture."""
    marked = [("at", start) for start in starts]
    query = urlencode([("chunk", chunk_id), *marked])
    anchor = f"#{starts[0]}" if starts and not pages else ""
    return f"/passage?{query}{anchor}"


def name_passage(chunk: Chunk, starts: Collection[str]) -> str:
    """Return the headings above the first of some sentences, and the pages of the chunk."""
    headings = [sentence.heading for sentence in chunk.sentences if str(sentence.start) in starts]
    parts = [*headings[:1], name_place(chunk)]
    return " · ".join(filter(None, parts))


def split_marked(chunk: Chunk, starts: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the parts of a chunk's text, each with its start if it is one of some sentences, else an empty string."""
    end = 0
    for sentence in chunk.sentences:
        if str(sentence.start) in starts:
            yield "", chunk.text[end : sentence.start]
            yield str(sentence.start), chunk.text[sentence.start : sentence.end]
            end = sentence.end
    yield "", chunk.text[end:]
