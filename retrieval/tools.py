"""The three retrieval functions as LangChain tools, for this project's agent or anyone else's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args

from langchain.tools import InjectedState
from langchain_core.callbacks import dispatch_custom_event
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.config import get_stream_writer
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from arag.errors import InputError
from arag.retrieval.index import MAX_ADJACENT, Index
from arag.retrieval.render import render_chunks, render_keywords, render_semantic, snippet_text
from arag.retrieval.tokens import count_tokens
from arag.retrieval.types import Chunk, Hit, KeywordResults, ReadResults

ToolName: TypeAlias = Literal["keyword_search", "semantic_search", "chunk_read"]
TOOL_NAMES: tuple[ToolName, ...] = get_args(ToolName)

MOST_RESULTS = 20
MOST_KEYWORDS = 50  # of one call: each is looked for in the whole corpus

_T = TypeVar("_T")

_ARTIFACT = {"chunk_ids": list, "new_chunks": list, "digests": dict, "retrieved_tokens": int}  # what tells ours apart

_KEYWORD_SEARCH = """Find the chunks that contain keywords, matched exactly and case-insensitively.

Use short, specific terms of one to three words: names, titles, technical terms, numbers. Each keyword is matched by
itself, also inside longer words; longer and more frequent matches rank higher, so search a rare term alone rather than
beside a common one. Not for questions, descriptions or long phrases.
Returns for each keyword how many chunks contain it, then the best chunks with their ids and matching sentences."""

_SEMANTIC_SEARCH = """Find the chunks with the sentences closest in meaning to a query.

Use it when the exact wording is unknown, with one short question or statement on a single fact.
Returns the best chunks with their ids, similarity and closest sentences. There are always some, related or not: let
the sentences decide."""

_CHUNK_READ = """Read the full text of chunks by their ids, as search results give them.

Use it when a snippet is promising but does not hold all of the evidence. A chunk read before is not repeated."""


def _as_list(value: Any) -> Any:
    """Accept what models send for a list: the list as a JSON string, a single item, numbers."""
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = [value]
    return [_as_text(item) for item in (value if isinstance(value, list) else [value])]


def _as_text(item: Any) -> Any:
    if isinstance(item, str):
        return whole_characters(item)
    return str(item) if isinstance(item, int | float) and not isinstance(item, bool) else item


def whole_characters(text: str) -> str:
    """Replace lone surrogates, the halves of characters that models write as escapes and that nothing can encode."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _within(low: int, high: int, default: int) -> Callable[[Any], Any]:
    """Clamp numbers, also those sent as strings, to a range; leave anything else for validation to refuse."""

    def clamp(value: Any) -> Any:
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        try:
            return int(min(max(value if isinstance(value, int) else float(value), low), high))
        except (TypeError, ValueError):
            return value

    return clamp


class _Arguments(BaseModel):
    """Arguments of a tool call; a model's singular for a list's plural name is understood."""

    messages: Annotated[list[Any], InjectedState("messages")] = Field(
        default_factory=list, description="The conversation so far; filled in by the graph, never by the model."
    )

    @model_validator(mode="before")
    @classmethod
    def _plural(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        for plural in ("keywords", "chunk_ids"):
            singular = plural[:-1]
            if plural in cls.model_fields and plural not in values and singular in values:
                values = {**values, plural: values[singular]}
        return values


def make_tools(index: Index, *, names: Sequence[str] = TOOL_NAMES, top_k: int = 5) -> list[BaseTool]:
    """Make the retrieval tools.

    Each returns a text for the model, and an artifact for programs: `results` (the typed results as plain values),
    `chunk_ids` (shown or read), `new_chunks` (read for the first time, or shown whole by a search), `digests` (of their
    texts, by id: a chunk that changes can be read again),
    `retrieved_tokens` (of retrieved text that enters the context), and `query`.

    They fit any agent. LangGraph's `ToolNode`, and with it LangChain's `create_agent`, fills in the argument
    `messages`, which the model does not see: the conversation says which chunks were read, and those are marked in
    search results and not returned again. A chunk whose text is in the conversation no more can be read again; but
    middleware that shortens what the model is sent, and leaves the conversation as it is, is not seen here.

    Each call tells what it found: as a custom event named `retrieval` (`astream_events`, callbacks) and, in a graph,
    in the stream mode `custom`. Both give `tool` and the artifact without `results` and `digests`.

    Args:
        index: The index that the tools search.
        names: Which tools to make. Without `chunk_read` both searches return full chunk texts (the paper's
            ablation, Table 2).
        top_k: How many chunks a search returns unless the model asks for another number, 1 to 20.

    Returns:
        The tools, in the order of `names`. By hand, `tool.invoke({"query": "..."})` returns the text, and
        `tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": {...}})` a message with the artifact.

    Raises:
        InputError: A name is unknown or given twice, there is none, or `top_k` is out of bounds.
    """
    unknown = [name for name in names if name not in TOOL_NAMES]
    if unknown or not names or len(set(names)) != len(names):
        raise InputError(f"tools {list(names)!r} are not valid: give one or more of {', '.join(TOOL_NAMES)}, each once")
    if not 1 <= top_k <= MOST_RESULTS:
        raise InputError(f"top_k is {top_k}: valid are 1 to {MOST_RESULTS}")
    full_texts = "chunk_read" not in names
    Results = Annotated[int, BeforeValidator(_within(1, MOST_RESULTS, top_k))]  # noqa: N806
    results_field = Field(default=top_k, description=f"How many chunks to return, 1 to {MOST_RESULTS}.")

    class KeywordSearch(_Arguments):
        keywords: Annotated[list[str], BeforeValidator(_as_list)] = Field(
            description="Keywords of one to three words each.", max_length=MOST_KEYWORDS
        )
        top_k: Results = results_field

    class SemanticSearch(_Arguments):
        query: str = Field(description="What to look for, in natural language.")
        top_k: Results = results_field

    class ChunkRead(_Arguments):
        chunk_ids: Annotated[list[str], BeforeValidator(_as_list)] = Field(description="Ids of the chunks to read.")
        adjacent: Annotated[int, BeforeValidator(_within(0, MAX_ADJACENT, 0))] = Field(
            default=0, description=f"How many chunks before and after each to read too, 0 to {MAX_ADJACENT}."
        )

    def keyword_search(keywords: list[str], top_k: int, messages: list[Any]) -> tuple[str, dict[str, Any]]:
        read = chunks_read(messages, index)
        results = _mendable(lambda: _keyword_results(index, keywords, top_k, read))
        return _searched(render_keywords(results, read), results.hits, asdict(results), keywords, read)

    def semantic_search(query: str, top_k: int, messages: list[Any]) -> tuple[str, dict[str, Any]]:
        read = chunks_read(messages, index)
        results = _mendable(lambda: index.semantic_search(query, top_k, read=read))
        return _searched(render_semantic(results, read), results.hits, asdict(results), query, read)

    def _searched(
        text: str, hits: Sequence[Hit], results: dict[str, Any], query: Any, read: Sequence[str]
    ) -> tuple[str, dict[str, Any]]:
        ids = [hit.chunk_id for hit in hits]
        if not full_texts:
            tokens = count_tokens(snippet_text(hits))
            whole = [hit.chunk_id for hit in hits if hit.whole and hit.chunk_id not in read]
            return text, _artifact(results, query, ids, index.read(whole).chunks if whole else (), tokens)
        chunks = index.read(ids)
        content, artifact = _read(chunks, query, read)
        tokens = artifact["retrieved_tokens"] + count_tokens(snippet_text(hits))
        return f"{text}\n\nFull texts:\n\n{content}", artifact | {"results": results, "retrieved_tokens": tokens}

    def chunk_read(chunk_ids: list[str], adjacent: int, messages: list[Any]) -> tuple[str, dict[str, Any]]:
        if not chunk_ids:
            raise ToolException("no chunk id given: chunk_read needs at least one, as search results give them")
        return _read(index.read(chunk_ids, adjacent), chunk_ids, chunks_read(messages, index))

    functions: dict[str, tuple[Callable[..., Any], str, type[BaseModel]]] = {
        "keyword_search": (keyword_search, _KEYWORD_SEARCH, KeywordSearch),
        "semantic_search": (semantic_search, _SEMANTIC_SEARCH, SemanticSearch),
        "chunk_read": (chunk_read, _CHUNK_READ, ChunkRead),
    }
    return [
        StructuredTool.from_function(
            _announced(functions[name][0], name),
            name=name,
            description=functions[name][1],
            args_schema=functions[name][2],
            response_format="content_and_artifact",
            handle_tool_error=True,
            handle_validation_error=_explain,
        )
        for name in names
    ]


def chunks_read(messages: Iterable[Any], index: Index) -> list[str]:
    """Return the ids of the chunks whose full text is in a conversation, in order.

    A chunk of another index, or one that has changed since, may have the same id: it has not been read.

    Args:
        messages: The conversation; the results of this module's tools in it say what they hold.
        index: The index.
    """
    found: dict[str, str | None] = {}
    for artifact in artifacts(messages):
        for chunk_id in artifact["new_chunks"]:
            found[chunk_id] = artifact["digests"].get(chunk_id)
    return [chunk_id for chunk_id, digest in found.items() if digest in {None, _digest(index.get(chunk_id))}]


def artifacts(messages: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the artifacts of this module's tools in a conversation; another agent's tools may have the same names."""
    for message in messages:
        if isinstance(message, ToolMessage) and message.name in TOOL_NAMES and isinstance(message.artifact, dict):
            artifact = message.artifact
            if all(isinstance(artifact.get(key), kind) for key, kind in _ARTIFACT.items()):
                yield artifact


def _digest(chunk: Chunk | None) -> str:
    return hashlib.blake2b(chunk.text.encode(), digest_size=8).hexdigest() if chunk is not None else ""


def _announced(
    function: Callable[..., tuple[str, dict[str, Any]]], name: str
) -> Callable[..., tuple[str, dict[str, Any]]]:
    """Make a tool's function tell what it found to whoever follows the run."""

    def announced(**arguments: Any) -> tuple[str, dict[str, Any]]:
        text, artifact = function(**arguments)
        event = {"tool": name} | {key: value for key, value in artifact.items() if key not in {"results", "digests"}}
        dispatch_custom_event("retrieval", event)
        try:
            write = get_stream_writer()
        except (RuntimeError, KeyError):  # not in a graph
            return text, artifact
        write(event)
        return text, artifact

    return announced


def _keyword_results(index: Index, keywords: list[str], top_k: int, read: Sequence[str]) -> KeywordResults:
    """Search; a keyword that no chunk holds, but only in another spelling of the same letters, is searched as that.

    A model would have to ask again for what can only be meant.
    """
    results = index.keyword_search(keywords, top_k, read=read)
    respelled = {
        report.keyword: report.closest[0].text
        for report in results.keywords
        if not report.chunks and report.closest and report.closest[0].respelled
    }
    if not respelled:
        return results
    again = index.keyword_search([respelled.get(r.keyword, r.keyword) for r in results.keywords], top_k, read=read)
    reports = (replace(report, searched_as=respelled.get(report.keyword)) for report in results.keywords)
    return replace(again, keywords=tuple(reports))


def _read(results: ReadResults, query: Any, read: Sequence[str]) -> tuple[str, dict[str, Any]]:
    new = [chunk for chunk in results.chunks if chunk.id not in read]
    # The texts are in the message already: the artifact only says what they are.
    found = [
        {"chunk_id": c.id, "document_ids": [s.document_id for s in c.sections], "tokens": c.tokens}
        for c in results.chunks
    ]
    artifact = _artifact(
        {"chunks": found, "unknown": [asdict(unknown) for unknown in results.unknown]},
        query,
        [chunk.id for chunk in results.chunks],
        new,
        sum(chunk.tokens for chunk in new),
    )
    return render_chunks(results, read), artifact


def _artifact(
    results: dict[str, Any], query: Any, chunk_ids: list[str], new: Sequence[Chunk], tokens: int
) -> dict[str, Any]:
    return {
        "query": query,
        "results": results,
        "chunk_ids": chunk_ids,
        "new_chunks": [chunk.id for chunk in new],
        "digests": {chunk.id: _digest(chunk) for chunk in new},
        "retrieved_tokens": tokens,
    }


def _mendable(search: Callable[[], _T]) -> _T:
    """Give an error that the model can mend back to it."""
    try:
        return search()
    except InputError as error:
        raise ToolException(str(error)) from error


def _explain(error: ValidationError | Any) -> str:
    """Say to the model which arguments of its call are wrong."""
    faults = "; ".join(
        f"{'.'.join(str(part) for part in fault['loc']) or 'arguments'}: {fault['msg']}" for fault in error.errors()
    )
    return f"The call's arguments are not valid. {faults}. Call the tool again with valid arguments."
