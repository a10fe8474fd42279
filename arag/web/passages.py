"""What the pages show of an index: passages that a search finds, chosen documents, marked sentences."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import urlencode

from arag.retrieval.corpus.documents import list_documents
from arag.retrieval.corpus.kept_by_view import KeptByView
from arag.retrieval.corpus.types import ListedDocument
from arag.retrieval.index import Index
from arag.retrieval.presentation.excerpts import ShownSentence, complete
from arag.retrieval.presentation.for_people import end_heading, without_heading_mark
from arag.retrieval.presentation.places import name_place
from arag.retrieval.tools.fused import Passage
from arag.retrieval.types import Chunk
from arag.text.normalise import CUT, plain

FILTERS = ("folder", "kind", "after", "before")  # the last two are days, such as 2020-01-31

_DAY = len("2020-01-31")
_HEADING_LINE = re.compile(r"(#{1,6}) +(.*)")
_LEADER = re.compile(r"\s*(?:\. ?){4,}\s*(?=\d|[ivxl]+\b)|\s*…{2,}\s*")  # to the number of a page
_BAR = re.compile(r"(?<!\|)\|(?!\|)")  # of a table: `||` means "or"
_LISTED = KeptByView(lambda view: list_documents(view, None, "id", 0, sys.maxsize), most=4)


def list_all(index: Index) -> Sequence[ListedDocument]:
    """Return all documents, in the order of ids; they are kept, as to list 10,000 takes half a second."""
    return index.with_view(_LISTED).documents


def list_below(documents: Sequence[ListedDocument], folder: str) -> Sequence[ListedDocument]:
    """Return the documents with these names of folders in their paths, or else with a part of such names."""
    below = [document for document in documents if plain(f"/{folder}/") in plain(f"/{document.path}")]
    return below or [document for document in documents if plain(folder) in plain(document.path.rpartition("/")[0])]


def allow(document: ListedDocument, filters: Mapping[str, str]) -> bool:
    """Return whether the filters for kinds and days let a document pass; empty ones do."""
    if filters["kind"] not in {"", document.kind}:
        return False
    if not filters["after"] and not filters["before"]:
        return True
    day = document.date[:_DAY]  # it may be a year or a month
    last = filters["before"] or "9999"
    return bool(day) and filters["after"][: len(day)] <= day <= last[: len(day)]


def list_headings(chunks: Iterable[Chunk]) -> dict[str, str]:
    """Return the headings of a document, each with the address of the first sentence below it."""
    places: dict[str, str] = {}
    for chunk in chunks:
        for sentence in chunk.sentences:
            if sentence.heading:
                places.setdefault(sentence.heading, address(chunk.id, [sentence.start]))
    return places


def list_starts(passage: Passage) -> list[str]:
    """Return where the sentences that matched start in their chunk, as addresses have it, the best one first."""
    return [str(passage.shown.hit.chunk.sentences[position].start) for position in passage.matched]


def list_sections(passage: Passage) -> Iterator[tuple[str, list[str]]]:
    """Yield the sentences of a hit, in the document's order, below their headings; the first names pages, too."""
    chunk = passage.shown.hit.chunk
    excerpt = complete(chunk, passage.shown.excerpt)
    shown = [without_heading_mark(sentence, chunk) for sentence in excerpt.sentences]
    starts = [str(chunk.sentences[sentence.position].start) for sentence in shown]
    name = name_passage(chunk, starts)
    for heading, section in groupby(shown, lambda sentence: chunk.sentences[sentence.position].heading):
        yield name or end_heading(heading), list(_mark_gaps(section))
        name = ""


def _mark_gaps(section: Iterable[ShownSentence]) -> Iterator[str]:
    """Yield sentences as a reader wants to see them: code with its lines, and `…` where some are left out."""
    next_position: int | None = None
    for sentence in section:
        text = sentence.lines or _without_markup(sentence.text)
        if next_position not in {None, sentence.position} and not text.startswith(CUT):
            text = f"{CUT}\n{text}" if sentence.lines else f"{CUT} {text}"
        if not sentence.is_rule():
            yield text
        next_position = sentence.position + 1


def _without_markup(text: str) -> str:
    """Return a sentence without the dots of a table of contents, and without empty cells."""
    text = _LEADER.sub(" … ", text)
    cells = [cell.strip() for cell in _BAR.split(text)]
    return " | ".join(filter(None, cells)) if "" in cells else text


def address(chunk_id: str, starts: Sequence[str | int]) -> str:
    """Return the address of a passage with marked sentences: it leads to the first one."""
    query = urlencode([("chunk", chunk_id), *[("at", start) for start in starts]])
    return f"/passage?{query}#{starts[0]}" if starts else f"/passage?{query}"


def respell(query: str, keyword: str, term: str, filters: Mapping[str, str]) -> str:
    """Return the address's part that searches with a term in place of a keyword."""
    respelled = re.sub(rf"(?<!\w){re.escape(keyword)}(?!\w)", lambda _: term, query, flags=re.IGNORECASE)
    return urlencode({**filters, "q": respelled})


def name_passage(chunk: Chunk, starts: Sequence[str]) -> str:
    """Return the headings above the first of some sentences, as addresses name them, and the pages of the chunk."""
    headings = [end_heading(sentence.heading) for sentence in chunk.sentences if str(sentence.start) in starts[:1]]
    return " · ".join(filter(None, [*headings, name_place(chunk, with_sheets=not any(headings))]))


def list_spans(chunk: Chunk, starts: Sequence[str]) -> list[tuple[int, int]]:
    """Return where the sentences of a chunk that start at some places start and end, in the order of these."""
    spans = {str(sentence.start): (sentence.start, sentence.end) for sentence in chunk.sentences}
    return [spans[start] for start in starts if start in spans]


def find_chunk_on(index: Index, chunk: Chunk, page: int) -> Chunk:
    """Return the chunk of the same document that is nearest to a chunk, and has a page or all but has it."""
    with_pages = [(other, other.pages) for other in index.chunks_of(chunk.document_id) if other.pages]

    def distance(pair: tuple[Chunk, tuple[int, int]]) -> tuple[int, int]:
        other, (first, last) = pair
        return max(first - page, page - last, 0), abs(other.ordinal - chunk.ordinal)

    return min(with_pages, key=distance)[0]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a passage."""

    text: str
    start: str = ""  # of a sentence that is marked
    level: int = 0  # of a heading


def split_marked(chunk: Chunk, starts: Collection[str]) -> Iterator[Part]:
    """Yield the parts of a chunk's text: headings without their marks, some sentences, and the text between them."""
    end = 0
    for sentence in chunk.sentences:
        text = chunk.text[sentence.start : sentence.end]
        start = str(sentence.start) if str(sentence.start) in starts else ""
        heading = None if sentence.embedded else _HEADING_LINE.fullmatch(text)
        if not start and heading is None:
            continue
        yield Part(chunk.text[end : sentence.start])
        yield Part(text, start) if heading is None else Part(heading[2], start, len(heading[1]))
        end = sentence.end
    yield Part(chunk.text[end:])
