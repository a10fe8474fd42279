"""Citations of an answer: plain values that survive a JSON round trip, as the graph's state has them."""

from __future__ import annotations

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
    """The sentence."""


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
