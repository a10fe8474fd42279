"""Citations of an answer: plain values that survive a JSON round trip, as the graph's state has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict


@with_config(ConfigDict(use_attribute_docstrings=True))  # for Studio and other clients, which read the JSON schemas
class Span(TypedDict):
    """A part of the answer: `answer[start:end]`."""

    start: int
    """Where it begins, in characters."""
    end: int
    """Where it ends: the position behind its last character."""


@with_config(ConfigDict(use_attribute_docstrings=True))
class Quote(TypedDict):
    """A sentence of a cited chunk that supports the answer: `text[start:end]` of the chunk."""

    start: int
    """Where it begins in the chunk's text, in characters."""
    end: int
    """Where it ends there."""
    text: str
    """The sentence; in an agent with other middleware, as that has left it."""


@with_config(ConfigDict(use_attribute_docstrings=True))
class CitedDocument(TypedDict):
    """The document of a cited chunk. Fields that its metadata does not have are empty."""

    id: str
    """Its id."""
    title: str
    """Its title."""
    url: str
    """Its web address: `url`, `source_url` or `link` in the metadata."""
    author: str
    """Its authors: `author`, `authors` or `creator`."""
    date: str
    """Its date as written there: `date`, `published`, `created` or `year`."""


@with_config(ConfigDict(use_attribute_docstrings=True))
class Citation(TypedDict):
    """A chunk that the answer names."""

    chunk_id: str
    """The chunk's id."""
    index: str
    """The index that has the chunk, as other ones may have chunks with this id: a name and a checksum of its place.
    Empty for an invented id."""
    seen: bool
    """Whether the chunk was shown to the model, in an excerpt or in full."""
    read: bool
    """Whether it was shown in full."""
    pages: list[int] | None
    """First and last page, for documents that have pages."""
    ocr_pages: list[int]
    """Those of these pages whose text was read by OCR: it may have mistakes."""
    document: CitedDocument | None
    """The chunk's document; None if the index has no such chunk."""
    quotes: list[Quote]
    """The sentences that support the answer, in the order of the text; empty if there are none."""
    spans: list[Span]
    """Where the answer names the chunk, with its brackets if nothing else is in them."""


def is_citation(value: Any) -> bool:
    """Return whether a value of somebody's tool is a citation."""
    return isinstance(value, dict) and value.keys() == Citation.__required_keys__


def choose_citations(same: Sequence[Citation]) -> list[Citation]:
    """Return the citations that stand for an id: one of each index.

    They are those of chunks that were shown; if there are none, of chunks that exist.

    Args:
        same: The citations with this id, of several agents. The first one of an index is returned, with the quotes of
            the next one if it has none.
    """
    shown = [citation for citation in same if citation["seen"]]
    existing = [citation for citation in same if citation["document"] is not None]
    by_index: dict[str, Citation] = {}
    for citation in shown or existing or same:
        first = by_index.setdefault(citation["index"], citation.copy())
        first["quotes"] = first["quotes"] or citation["quotes"]
    return list(by_index.values())


def merge_citations(left: Sequence[Citation], right: Sequence[Citation]) -> list[Citation]:
    """Return the citations of the last answer, and behind them those of earlier ones, which are not in its text.

    If an answer repeats an id that its agent was not shown, the chunk that another agent was shown takes its place.
    """
    by_id: dict[str, list[Citation]] = {}
    for citation in right:
        by_id.setdefault(citation["chunk_id"], []).append(citation)
    for citation in left:
        earlier = citation.copy()
        earlier["spans"] = []
        by_id.setdefault(citation["chunk_id"], []).append(earlier)
    merged: list[Citation] = []
    for same in by_id.values():
        chosen = choose_citations(same)
        if not any(citation["spans"] for citation in chosen):
            spans = next((citation["spans"] for citation in same if citation["spans"]), [])
            for citation in chosen:
                citation["spans"] = spans
        merged += chosen
    return merged
