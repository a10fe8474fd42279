"""What a conversation has seen of an index, as the results of retrieval tools in it say."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage

from arag.retrieval.index import Index
from arag.retrieval.presentation.selection import SeenChunks
from arag.retrieval.types import Chunk

# The keys of an artifact of these tools, with their types. Another agent's tools may have the same names.
_ARTIFACT = {"chunk_ids": list, "new_chunks": list, "digests": dict, "retrieved_tokens": int, "evidence_tokens": int}


def find_seen_chunks(messages: Sequence[Any], index: Index, query: Any = "") -> SeenChunks:
    """Return what a conversation has seen of an index's chunks.

    A chunk of another index, or one that has changed since, may have the same id: it does not count. Neither does one
    that the model asked for after it was shown: the model may no longer have its text, as middleware can shorten what
    it is sent. A sentence of which a part was shown counts only for the same query: for another one, another part is
    shown.

    Args:
        messages: The conversation.
        index: The index.
        query: The keywords, the queries or the ids of the call for which this is asked.
    """
    artifacts = list(find_artifacts(messages))
    ids: set[str] = set()
    for artifact in artifacts:
        ids |= artifact["digests"].keys()
    known = find_digests(index, ids)
    whole: dict[str, None] = {}
    sentences: dict[str, set[int]] = {}
    asked_again = False
    for artifact in artifacts:
        is_same = bool(query) and artifact.get("query") == query
        asked_again = asked_again or is_same
        shown = [artifact.get("sentences", {})]
        if is_same:
            shown.append(artifact.get("cut", {}))
        unchanged = {chunk_id for chunk_id, digest in artifact["digests"].items() if digest == known[chunk_id]}
        for chunk_id in artifact["new_chunks"]:
            if chunk_id in unchanged:
                whole[chunk_id] = None
        for chunk_id in artifact.get("repeated", []):
            whole.pop(chunk_id, None)
        for positions_by_chunk in shown:
            for chunk_id, positions in positions_by_chunk.items():
                if chunk_id in unchanged:
                    sentences.setdefault(chunk_id, set()).update(positions)
    return SeenChunks(list(whole), sentences, _last_question(messages), asked_again)


def find_artifacts(messages: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the artifacts of retrieval tools in a conversation."""
    for message in messages:
        artifact = message.artifact if isinstance(message, ToolMessage) else None
        if isinstance(artifact, dict) and all(isinstance(artifact.get(key), kind) for key, kind in _ARTIFACT.items()):
            yield artifact


def find_digests(index: Index, chunk_ids: Iterable[str]) -> dict[str, str]:
    """Return digests of the texts of chunks, by id; empty ones of chunks that the index does not hold."""
    ids = list(chunk_ids)
    return {chunk_id: digest_of(chunk) for chunk_id, chunk in zip(ids, index.mget(ids), strict=True)}


def digest_of(chunk: Chunk | None) -> str:
    """Return the digest of a chunk's text; empty for None."""
    return digest(chunk.text) if chunk is not None else ""


def digest(text: str) -> str:
    """Return the digest of a text."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def is_as_given(text: str, artifact: Mapping[str, Any]) -> bool:
    """Return whether a text is that of a result of a retrieval tool, which other middleware may have changed."""
    return digest(text) == artifact.get("digest")


def _last_question(messages: Sequence[Any]) -> str:
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            return message.text
    return ""
