"""Tool calls with their results, for a page; results of other tools than this project's are shown as plain text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from markupsafe import Markup, escape
from pydantic import BaseModel, TypeAdapter, ValidationError

from arag.retrieval.snippets import is_title
from arag.retrieval.types import Hit, KeywordResults, SemanticResults, Snippet, SnippetSentence, UnknownChunk


class _ReadChunk(BaseModel):
    chunk_id: str
    tokens: int | None = None


class Reads(BaseModel):
    """What `chunk_read` says of the chunks whose texts stand in its message."""

    chunks: tuple[_ReadChunk, ...]
    unknown: tuple[UnknownChunk, ...] = ()


Results: TypeAlias = KeywordResults | SemanticResults | Reads
_RESULTS: TypeAdapter[Results] = TypeAdapter(Results)


@dataclass(frozen=True)
class Call:
    """A tool call and its result.

    Attributes:
        tool: The tool's name.
        arguments: The arguments that the results do not show: name, value, and whether the value is JSON.
        results: The results, of one of this project's tools.
        text: The result's text, where the results do not show it.
        error: What went wrong; None where nothing did.
        seconds: How long it took; None where that is not known.
        retrieved_tokens: The retrieved tokens.
        new_chunks: Ids of the chunks that it showed in full.
        read_before: Ids of the chunks that had been shown in full before.
    """

    tool: str
    arguments: Sequence[tuple[str, str | list[str], bool]]
    results: Results | None
    text: str
    error: str | None
    seconds: float | None
    retrieved_tokens: int
    new_chunks: Sequence[str]
    read_before: frozenset[str]


def calls_of(
    reply: AIMessage, results: Sequence[AnyMessage], records: list[dict[str, Any]], read: set[str]
) -> Iterator[Call]:
    """Yield the calls of a message with their results.

    Args:
        reply: The message.
        results: The messages between it and the next reply.
        records: The trace's records of its step.
        read: Ids of the chunks that were read before; those that are read are added.
    """
    by_id = {result.tool_call_id: result for result in results if isinstance(result, ToolMessage)}
    for call in [*reply.tool_calls, *reply.invalid_tool_calls]:
        message = by_id.get(call["id"] or "")
        name, arguments = call["name"] or "unknown", call["args"] or ({} if call["type"] == "tool_call" else "")
        shown = _call(name, arguments, message, _take_record(records, name, arguments), frozenset(read))
        read.update(shown.new_chunks)
        yield shown


def _take_record(records: list[dict[str, Any]], name: str, arguments: Any) -> dict[str, Any]:
    """Take a call's record out of its step's; a call that was not made has none."""
    arguments = arguments if isinstance(arguments, dict) else {}
    for place, record in enumerate(records):
        if record.get("tool") == name and record.get("arguments") == arguments:
            return records.pop(place)
    return {}


def _call(
    name: str, arguments: Any, message: ToolMessage | None, record: Mapping[str, Any], read: frozenset[str]
) -> Call:
    results = read_results(message)
    if isinstance(results, KeywordResults):
        shown, hidden = bool(results.hits), "keywords" if results.keywords else ""
    elif isinstance(results, SemanticResults):
        shown, hidden = bool(results.hits), ""
    else:
        shown = results is not None and bool(results.chunks or results.unknown)
        hidden = "chunk_ids" if shown else ""
    artifact = message.artifact if message is not None and isinstance(message.artifact, dict) else {}
    tokens = record.get("retrieved_tokens", artifact.get("retrieved_tokens"))
    error = record.get("error")
    if message is None:
        error = error or "The call has no result."
    elif message.status == "error":
        error = error or message.text or None
    return Call(
        tool=name,
        arguments=list(_arguments(arguments, hidden)),
        results=results,
        text=message.text if message is not None and not shown else "",
        error=error,
        seconds=record.get("seconds"),
        retrieved_tokens=tokens if isinstance(tokens, int) else 0,
        new_chunks=read_ids(message, "new_chunks"),
        read_before=read,
    )


def _arguments(arguments: Any, hidden: str) -> Iterator[tuple[str, str | list[str], bool]]:
    if not isinstance(arguments, dict):
        yield "", str(arguments), True
        return
    for name, value in arguments.items():
        if name != hidden:
            texts = value if isinstance(value, list) and value else [value]
            is_json = not all(isinstance(text, str) for text in texts)
            yield name, json.dumps(value, ensure_ascii=False, default=str) if is_json else value, is_json


def read_ids(message: AnyMessage | None, key: str) -> list[str]:
    """Return the ids that a result's artifact has under a key; none where it is no retrieval tool's."""
    artifact = message.artifact if isinstance(message, ToolMessage) else None
    found = artifact.get(key) if isinstance(artifact, dict) else None
    return [item for item in found if isinstance(item, str)] if isinstance(found, list | tuple) else []


def read_results(message: ToolMessage | None) -> Results | None:
    """Return the results of one of this project's tools; None for what others left."""
    artifact = message.artifact if message is not None else None
    if not isinstance(artifact, dict) or not {"chunk_ids", "new_chunks", "retrieved_tokens"} <= artifact.keys():
        return None
    try:
        return _RESULTS.validate_python(artifact.get("results"))
    except ValidationError:
        return None


# --- what the template calls ---


def keyword_pattern(hits: Iterable[Hit]) -> re.Pattern[str] | None:
    """Return what finds the keywords of hits in any case; of two that begin at the same place, the longer one."""
    words = [keyword.split() for keyword in dict.fromkeys(key for hit in hits for key in hit.keyword_counts)]
    alternatives = sorted((r"\s+".join(map(re.escape, parts)) for parts in words if parts), key=len, reverse=True)
    return re.compile(f"({'|'.join(alternatives)})", re.IGNORECASE) if alternatives else None


def wrap_matches(text: str, pattern: re.Pattern[str] | None, tag: str) -> Markup:
    """Return a text, escaped, in which what a pattern's only group finds stands in a tag."""
    parts = pattern.split(text) if pattern else [text]
    wrapped = Markup(f"<{tag}>{{}}</{tag}>")  # noqa: S704 - a tag of the template's
    return Markup().join(wrapped.format(part) if place % 2 else escape(part) for place, part in enumerate(parts))


def sentences_of(snippet: Snippet) -> list[tuple[bool, SnippetSentence]]:
    """Return a snippet's sentences but its title, each with whether there is a gap before it in the document."""
    gaps = [not snippet.begins]
    gaps += [after.position != before.position + 1 for before, after in pairwise(snippet.sentences)]
    return [
        (gap, sentence)
        for gap, sentence in zip(gaps, snippet.sentences, strict=False)  # a snippet may have no sentence
        if not is_title(sentence.text, snippet.title)
    ]
