"""The chunks of a run, for a page: those that the answer cites and those that were read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from langchain_core.messages import AnyMessage, ToolMessage
from pydantic import BaseModel, ValidationError, WrapValidator

from arag.graph.citations import is_web_address
from arag.retrieval.render import name_place
from arag.retrieval.types import Excerpt, Hit, KeywordResults, SemanticResults

_FULL_TEXTS = "\n\nFull texts:\n\n"
_OF_DOCUMENT = ("id", "title", "url", "author", "date")


class _ReadChunk(BaseModel):
    chunk_id: str
    tokens: int | None = None
    excerpt: Excerpt | None = None


class _Reads(BaseModel):
    """What `chunk_read` returns about the chunks in its message."""

    chunks: tuple[_ReadChunk, ...]
    unknown: dict[str, tuple[str, ...]]


def _none_of_others(value: Any, read: Any) -> Any:
    try:
        return read(value)
    except ValidationError:
        return None


class Artifact(BaseModel):
    """A result's artifact: a retrieval tool's, or an empty one; other tools' artifacts have no results."""

    results: Annotated[KeywordResults | SemanticResults | _Reads | None, WrapValidator(_none_of_others)] = None
    chunk_ids: list[str]
    new_chunks: list[str]
    retrieved_tokens: int
    evidence_tokens: int = 0


def read_artifact(message: AnyMessage | None) -> Artifact:
    """Return a result's artifact; an empty one if it is not a retrieval tool's."""
    try:
        return Artifact.model_validate(message.artifact if isinstance(message, ToolMessage) else None)
    except ValidationError:
        return Artifact(chunk_ids=[], new_chunks=[], retrieved_tokens=0)


@dataclass
class Chunk:
    """A chunk that was read or cited, with what the conversation shows of it."""

    id: str
    place: int = 0
    """Its number on the page, from 1. Cited chunks come first, so it is also the source's number."""
    cited: str = ""
    """The citation's status: read, seen, unseen or unknown; empty if the answer does not cite it."""
    documents: Sequence[Mapping[str, str]] = ()
    """Its document as the citation describes it."""
    where: str = ""
    """Where it is in its document, from the citation."""
    quotes: Sequence[str] = ()
    """The sentences in it that bear the answer."""
    read: bool = False
    """Whether it was shown in full in this conversation."""
    steps: list[int] = field(default_factory=list)
    """The steps for the last question that showed it in full."""
    title: str = ""
    text: str = ""
    joint: bool = False
    """Whether the text is that of several chunks that cannot be separated."""
    hits: list[Hit] = field(default_factory=list)
    excerpts: list[Excerpt] = field(default_factory=list)
    """What searches, and reads that left something out, showed of it."""
    tokens: int | None = None

    @property
    def excerpt(self) -> Excerpt | None:
        """The sentences that were shown of it, each once, in the order of the text."""
        if not self.excerpts:
            return None
        shown = sorted((s for excerpt in self.excerpts for s in excerpt.sentences), key=lambda s: not s.cut)
        sentences = {sentence.position: sentence for sentence in shown}  # the last one stays: one that is not cut
        return replace(
            self.excerpts[-1],
            sentences=tuple(sentences[position] for position in sorted(sentences)),
            begins=any(excerpt.begins for excerpt in self.excerpts),
            ends=any(excerpt.ends for excerpt in self.excerpts),
        )


def list_chunks(
    messages: Iterable[AnyMessage], read_chunks: Iterable[str], citations: Iterable[Mapping[str, Any]]
) -> dict[str, Chunk]:
    """Return the chunks that are cited or were read, by id.

    Args:
        messages: The conversation, whose tool results hold the texts.
        read_chunks: Chunks that were read, from the state; the conversation may no longer hold their texts.
        citations: The citations.

    Returns:
        The chunks; those that the answer cites come first, in its order.
    """
    seen: dict[str, Chunk] = {}
    read = list(read_chunks)
    for message in messages:
        artifact = read_artifact(message)
        _note_chunks(message.text, artifact, seen)
        read += artifact.new_chunks
    by_id = {str(citation["chunk_id"]): citation for citation in citations if citation.get("chunk_id")}
    found = {}
    for place, chunk_id in enumerate(dict.fromkeys([*by_id, *read]), start=1):
        chunk = found[chunk_id] = seen.get(chunk_id) or Chunk(chunk_id)
        chunk.place, chunk.read = place, chunk_id in read
        if citation := by_id.get(chunk_id):
            known = "unseen" if citation.get("document_ids") else "unknown"
            chunk.cited = next((status for status in ("read", "seen") if citation.get(status)), known)
            chunk.documents, chunk.where, chunk.quotes = _read_citation(citation)
    return found


def _read_citation(citation: Mapping[str, Any]) -> tuple[Sequence[Mapping[str, str]], str, list[str]]:
    """Return a citation's document, its place in it, and its quotes; earlier citations have only titles."""
    documents = citation.get("documents") or [{"title": title} for title in citation.get("titles") or ()]
    known = [{name: str(document.get(name) or "") for name in _OF_DOCUMENT} for document in documents]
    for document in known:
        if not is_web_address(document["url"]):
            document["url"] = ""
    where = name_place(citation.get("part"), citation.get("parts"), citation.get("pages"))
    return known, where, [str(quote["text"]) for quote in citation.get("quotes") or () if quote.get("text")]


def _note_chunks(text: str, artifact: Artifact, seen: dict[str, Chunk]) -> None:
    """Add what a result shows of its chunks."""
    results, ids = artifact.results, artifact.chunk_ids
    if isinstance(results, _Reads):
        ids = [*ids, *results.unknown]
        for read in results.chunks:
            chunk = seen.setdefault(read.chunk_id, Chunk(read.chunk_id))
            chunk.tokens = read.tokens
            chunk.excerpts += [read.excerpt] if read.excerpt else []
    elif results is not None:
        _, _, text = text.partition(_FULL_TEXTS)
        for hit in results.hits:
            chunk = seen.setdefault(hit.chunk_id, Chunk(hit.chunk_id))
            chunk.hits.append(hit)
            chunk.excerpts.append(hit.excerpt)
            chunk.tokens = hit.tokens
    blocks = _cut_blocks(text, ids) if artifact.new_chunks else {}
    for chunk_id in artifact.new_chunks:
        chunk = seen.setdefault(chunk_id, Chunk(chunk_id))
        title, _, block = blocks.get(chunk_id, "").partition("\n")
        if block:
            chunk.title, chunk.text, chunk.joint = title.strip(), block, False
        elif text and not chunk.text:
            chunk.text, chunk.joint = text, True


def _cut_blocks(text: str, chunk_ids: Sequence[str]) -> dict[str, str]:
    """Split the text of several chunks, each of which starts with its id in brackets.

    If a document contains such a start itself, the split is ambiguous and nothing is returned.
    """
    ids = list(dict.fromkeys(chunk_ids))
    _, *parts = re.split(rf"\n\n\[({'|'.join(map(re.escape, ids))})\]", f"\n\n{text}")
    return dict(zip(ids, parts[1::2], strict=True)) if parts[::2] == ids else {}
