"""Citations in an answer: checked against the chunks that were shown, with the details that a reader needs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from arag.graph.cited import Citation, CitedDocument, Quote, Span, choose_citations
from arag.graph.claims import KnownIds, find_claims, list_spans
from arag.graph.quotes import choose_quotes
from arag.graph.shown import ShownTexts
from arag.graph.state import Grounding
from arag.retrieval.index import Index
from arag.retrieval.types import Chunk, DocumentInfo
from arag.text.normalise import collapse_whitespace

_WEB_ADDRESS = re.compile(r"https?://[^\s\x00-\x1f\x7f-\x9f\"<>\\^`{|}]+", re.IGNORECASE)


def parse_citations(
    answer: str,
    index: Index,
    seen: Collection[str],
    read: Collection[str],
    *,
    others: Sequence[Citation] = (),
    shown: ShownTexts | None = None,
) -> list[Citation]:
    """Find the chunks that an answer names in brackets: `[a.md:0, b.md:1]`, `【a.md:0】`, `(a.md:0)`.

    In square brackets, chunks that were not shown count, too, and ids that look like a chunk of a file or of a document
    in the index. Other texts in brackets, such as times and ratios, do not.

    Args:
        answer: The answer.
        index: The index.
        seen: Ids of chunks that were shown to the model, in excerpts or in full.
        read: Ids of chunks that were shown in full.
        others: Citations of other agents, whose answers the model was shown. They may be of other indexes.
        shown: What the model was shown, if other middleware may have changed it. By default, quotes are as the index
            has them.

    Returns:
        The citations in the order of the answer, each once. Those of chunks that were shown have quotes: the sentences
        that support the answer, chosen by their words. No model is called. An id that several indexes have stands for
        each chunk that was shown.

    Example:
        >>> answer = "The lens was made at the Emberlane Glassworks [places/vellin-light.md:0]."
        >>> [citation] = parse_citations(answer, index, ["places/vellin-light.md:0"], [])
        >>> [quote["text"] for quote in citation["quotes"]]
        ['The lens of the Vellin Light was made at the Emberlane Glassworks and carried out in a bed of bran, ...']
    """
    seen, read = set(seen), set(read)
    shown_to_others = {citation["chunk_id"] for citation in others if citation["seen"]}
    claims = list(find_claims(answer, KnownIds(seen | shown_to_others, index)))
    spans = list_spans(claims)
    chunks = dict(zip(spans, index.mget(list(spans)), strict=True))
    seen_chunks = {chunk_id: chunk for chunk_id, chunk in chunks.items() if chunk is not None and chunk_id in seen}
    quotes = choose_quotes(claims, seen_chunks, shown)
    own: list[Citation] = []
    for chunk_id, chunk in chunks.items():
        citation = _make_citation(chunk_id, spans[chunk_id], quotes.get(chunk_id, []))
        citation["seen"] = chunk_id in seen
        citation["read"] = chunk_id in read
        if chunk is not None:
            _add_document(citation, chunk, index)
        own.append(citation)
    return _add_others(own, others)


def link_citations(answer: str, others: Sequence[Citation]) -> list[Citation]:
    """Find the chunks that the answer of an agent without an index names, among those that other agents cited.

    Args:
        answer: The answer.
        others: Citations of the other agents.

    Returns:
        The citations in the order of the answer, each once, with the quotes that they have. Ids that look like a chunk
        of a file and that no agent cited are among them, as ones that were not shown.
    """
    known = KnownIds({citation["chunk_id"] for citation in others}, None)
    spans = list_spans(find_claims(answer, known))
    own = [_make_citation(chunk_id, places, []) for chunk_id, places in spans.items()]
    return _add_others(own, others)


def find_grounding(citations: Sequence[Citation]) -> Grounding:
    """Return how far the cited chunks support an answer.

    A citation with quotes supports it: its chunk was shown, and has a sentence for what the answer says there.
    """
    supporting = [citation for citation in citations if citation["quotes"]]
    if not supporting:
        return "none"
    if len(supporting) < len(citations):
        return "partly"
    return "supported"


def name_index(index: Index) -> str:
    """Return the name of an index. It tells nobody where the index is."""
    place = index.path
    if isinstance(place, Path):
        place = place.absolute()
    name = re.split(r"[/\\=]", str(place))[-1]
    checksum = hashlib.blake2b(str(place).encode(), digest_size=4).hexdigest()
    return f"{name}-{checksum}"


def _make_citation(chunk_id: str, spans: Sequence[Span], quotes: Sequence[Quote]) -> Citation:
    """Return the citation of a chunk of which no more is known."""
    return Citation(
        chunk_id=chunk_id,
        index="",
        seen=False,
        read=False,
        pages=None,
        ocr_pages=[],
        document=None,
        quotes=list(quotes),
        spans=list(spans),
    )


def _add_others(own: Sequence[Citation], others: Sequence[Citation]) -> list[Citation]:
    """Return an agent's citations; an id also stands for the chunks that other agents were shown."""
    by_id: dict[str, list[Citation]] = {}
    for other in others:
        by_id.setdefault(other["chunk_id"], []).append(other)
    cited: list[Citation] = []
    for citation in own:
        for chosen in choose_citations([citation, *by_id.get(citation["chunk_id"], ())]):
            chosen["spans"] = citation["spans"]
            cited.append(chosen)
    return cited


# --- documents ---


def is_web_address(text: str) -> bool:
    """Return whether a text is an address that a page may link to: of http or https."""
    return _WEB_ADDRESS.fullmatch(text) is not None


def _add_document(citation: Citation, chunk: Chunk, index: Index) -> None:
    document = index.document(chunk.document_id)
    citation["index"] = name_index(index)
    citation["document"] = _describe_document(chunk, document)
    if chunk.pages:
        citation["pages"] = list(chunk.pages)
        citation["ocr_pages"] = _list_ocr_pages(chunk.pages, document)


def _list_ocr_pages(pages: tuple[int, int], document: DocumentInfo | None) -> list[int]:
    first, last = pages
    read = document.ocr_pages if document is not None else ()
    return [page for page in read if first <= page <= last]


def _describe_document(chunk: Chunk, document: DocumentInfo | None) -> CitedDocument:
    """Return the title, address, author and date of a chunk's document."""
    metadata: dict[str, Any] = {}
    if document is not None:
        metadata = {key.lower(): value for key, value in document.metadata.items()}
    url = _first_value(metadata, "url", "source_url", "link")
    return CitedDocument(
        id=chunk.document_id,
        title=chunk.title,
        url=url if is_web_address(url) else "",
        author=_first_value(metadata, "author", "authors", "creator"),
        date=_first_value(metadata, "date", "published", "created", "year"),
    )


def _first_value(metadata: Mapping[str, Any], *keys: str) -> str:
    """Return the first value that is not empty, on one line; of a list, such as of authors, all items."""
    for key in keys:
        value = metadata.get(key)
        if not value:
            continue
        parts = value if isinstance(value, list) else [value]
        text = ", ".join(map(_name_of, parts))
        return collapse_whitespace(text)
    return ""


def _name_of(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("name", value)
    return str(value)
