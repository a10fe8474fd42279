"""The three retrieval functions as LangChain tools, for this project's agent or anyone else's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

from langchain.tools import InjectedState
from langchain_core.callbacks import dispatch_custom_event
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langchain_core.tools.base import ArgsSchema
from langgraph.config import get_stream_writer
from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, ValidationError, create_model, model_validator

from arag.errors import InputError
from arag.models.replies import mend_characters
from arag.retrieval.index import MAX_ADJACENT, Index
from arag.retrieval.render import render_chunks, render_keywords, render_semantic, snippet_text
from arag.retrieval.tokens import count_tokens
from arag.retrieval.types import Chunk, KeywordResults, ReadResults, SemanticResults

ToolName: TypeAlias = Literal["keyword_search", "semantic_search", "chunk_read"]
TOOL_NAMES: tuple[ToolName, ...] = get_args(ToolName)

DEFAULT_TOP_K = 5
MAX_RESULTS = 20
MAX_KEYWORDS = 50  # of one call: each is looked for in the whole corpus

_ARTIFACT = {"chunk_ids": list, "new_chunks": list, "digests": dict, "retrieved_tokens": int}  # how ours are recognised


# --- arguments ---


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
        return mend_characters(item)
    return str(item) if isinstance(item, int | float) and not isinstance(item, bool) else item


def _clamp_to(low: int, high: int) -> Callable[[Any], Any]:
    """Return a function that clamps numbers, also as strings, and leaves anything else for validation to reject."""

    def clamp(value: Any) -> Any:
        if isinstance(value, bool):
            return value
        try:
            return int(min(max(value if isinstance(value, int) else float(value), low), high))
        except (TypeError, ValueError):
            return value

    return clamp


Texts: TypeAlias = Annotated[list[str], BeforeValidator(_as_list)]
TopK: TypeAlias = Annotated[
    int,
    BeforeValidator(_clamp_to(1, MAX_RESULTS)),
    Field(description=f"How many chunks to return, 1 to {MAX_RESULTS}."),
]


class RetrievalArguments(BaseModel):
    """Arguments of a tool call; a null counts as an argument that was left out.

    Example:
        >>> from pydantic import Field
        >>> class OutlineArguments(RetrievalArguments):
        ...     document_id: str = Field(description="The document.")
        >>> OutlineArguments(document_id="places/skellavy.md").document_id
        'places/skellavy.md'
    """

    messages: Annotated[list[Any], InjectedState("messages")] = Field(
        default_factory=list, description="The conversation so far; filled in by the graph, never by the model."
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, values: Any) -> Any:
        return {n: v for n, v in values.items() if v is not None} if isinstance(values, dict) else values


class _KeywordArguments(RetrievalArguments):
    keywords: Texts = Field(
        description="Keywords of one to three words each.",
        max_length=MAX_KEYWORDS,
        validation_alias=AliasChoices("keywords", "keyword"),
    )
    top_k: TopK = DEFAULT_TOP_K


class _SemanticArguments(RetrievalArguments):
    query: str = Field(description="What to look for, in natural language.")
    top_k: TopK = DEFAULT_TOP_K


class _ReadArguments(RetrievalArguments):
    chunk_ids: Texts = Field(
        description="Ids of the chunks to read.", validation_alias=AliasChoices("chunk_ids", "chunk_id")
    )
    adjacent: Annotated[int, BeforeValidator(_clamp_to(0, MAX_ADJACENT))] = Field(
        default=0, description=f"How many chunks before and after each to read too, 0 to {MAX_ADJACENT}."
    )


def _explain(error: ValidationError | Any) -> str:
    """Tell the model which arguments of its call are wrong."""
    faults = "; ".join(
        f"{'.'.join(str(part) for part in fault['loc']) or 'arguments'}: {fault['msg']}" for fault in error.errors()
    )
    return f"The call's arguments are not valid. {faults}. Call the tool again with valid arguments."


# --- tools ---


@dataclass(frozen=True)
class Retrieved:
    """What a tool found, and what the model is shown of it.

    Attributes:
        text: What the model is shown.
        query: What was asked for.
        results: The typed results as plain values.
        chunk_ids: Chunks shown.
        new_chunks: Those of them whose full text is shown for the first time.
        tokens: Tokens of the retrieved text that is shown.

    Example:
        >>> (chunk_read,) = make_tools(index, names=["chunk_read"])
        >>> found = chunk_read.retrieve(["places/vellin-light.md:0"], adjacent=0, read_chunks=[])
        >>> found.chunk_ids, found.text.splitlines()[0]
        (['places/vellin-light.md:0'], '[places/vellin-light.md:0] Vellin Light')
    """

    text: str
    query: Any
    results: dict[str, Any]
    chunk_ids: Sequence[str]
    new_chunks: Sequence[Chunk] = ()
    tokens: int = 0


class RetrievalTool(BaseTool):
    """A tool that shows chunks of an index.

    Each is a subclass with `name`, `description`, `args_schema` (a subclass of `RetrievalArguments`), `prompt_line` and
    `retrieve`. An agent accepts such classes among its `tools`.

    Attributes:
        index: The index.
        prompt_line: What the agent's system prompt says about the tool.
        full_texts: Whether searches show full chunks, for a model that has no tool to read them.

    Example:
        >>> class CorpusSize(RetrievalTool):
        ...     name: str = "corpus_size"
        ...     description: str = "Count the documents of the corpus."
        ...     prompt_line: str = "corpus_size counts the documents."
        ...     def retrieve(self, read_chunks: Sequence[str]) -> Retrieved:
        ...         return Retrieved(f"{self.index.info().documents} documents", query="", results={}, chunk_ids=[])
        >>> make_tools(index, names=[CorpusSize])[0].invoke({})
        '25 documents'
    """

    index: Index
    prompt_line: str
    full_texts: bool = False
    args_schema: ArgsSchema | None = RetrievalArguments
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: bool | str | Callable[[ToolException], str] | None = True
    handle_validation_error: bool | str | Callable[[Any], str] | None = _explain

    @classmethod
    def make(cls, index: Index, *, top_k: int = DEFAULT_TOP_K, full_texts: bool = False) -> Self:
        """Make the tool; `make_tools` explains the arguments."""
        schema = cls.model_fields["args_schema"].default
        if "top_k" in getattr(schema, "model_fields", ()):
            schema = create_model(schema.__name__, __base__=schema, top_k=(TopK, top_k))
        try:
            return cls.model_validate({"index": index, "full_texts": full_texts, "args_schema": schema})
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise InputError(f"{cls.__name__} is not a complete retrieval tool: {faults}") from error

    def load(self) -> None:
        """Load what a call needs. The agent does so before it measures the call's time."""

    def retrieve(self, *args: Any, **arguments: Any) -> Retrieved:
        """Search, and return what the model is shown.

        Args:
            args: Always empty; it lets type checkers accept subclasses that name their arguments.
            arguments: The call's arguments, as `args_schema` has them, and `read_chunks`, the ids of the chunks whose
                full text is in the conversation.

        Raises:
            InputError: An argument is wrong in a way that the model can correct.
        """
        raise NotImplementedError

    def _run(self, messages: Sequence[Any] = (), **arguments: Any) -> tuple[str, dict[str, Any]]:
        try:
            found = self.retrieve(read_chunks=find_read_chunks(messages, self.index), **arguments)
        except InputError as error:
            raise ToolException(str(error)) from error
        artifact = {
            "query": found.query,
            "results": found.results,
            "chunk_ids": list(found.chunk_ids),
            "new_chunks": [chunk.id for chunk in found.new_chunks],
            "digests": {chunk.id: _digest(chunk) for chunk in found.new_chunks},
            "retrieved_tokens": found.tokens,
        }
        told = {key: value for key, value in artifact.items() if key not in {"results", "digests"}}
        _announce({"tool": self.name} | told)
        return found.text, artifact


class KeywordSearch(RetrievalTool):
    """keyword_search (paper, section 3.2)."""

    name: str = "keyword_search"
    description: str = """Find the chunks that contain keywords, matched exactly and case-insensitively.

Use short, specific terms of one to three words: names, titles, technical terms, numbers. Each keyword is matched by
itself, also inside longer words; longer and more frequent matches rank higher, so search a rare term alone rather than
beside a common one. Not for questions, descriptions or long phrases.
Returns for each keyword how many chunks contain it, then the best chunks with their ids and matching sentences."""
    prompt_line: str = (
        "keyword_search finds exact terms: names, titles, rare words, numbers. It says how often each occurs, and "
        "offers the closest terms where one does not."
    )
    args_schema: ArgsSchema | None = _KeywordArguments

    def retrieve(self, keywords: list[str], top_k: int, read_chunks: Sequence[str]) -> Retrieved:
        """Search; a keyword that occurs only in another spelling of the same letters is searched in that spelling.

        The model would otherwise have to ask again for what is clearly meant.
        """
        results = self.index.keyword_search(keywords, top_k, read=read_chunks)
        respelled = {
            report.keyword: report.closest[0].text
            for report in results.keywords
            if not report.chunks and report.closest and report.closest[0].respelled
        }
        if respelled:
            spelled = [respelled.get(report.keyword, report.keyword) for report in results.keywords]
            reports = [replace(report, searched_as=respelled.get(report.keyword)) for report in results.keywords]
            results = replace(self.index.keyword_search(spelled, top_k, read=read_chunks), keywords=tuple(reports))
        return _show_hits(self, keywords, results, render_keywords(results, read_chunks), read_chunks)


class SemanticSearch(RetrievalTool):
    """semantic_search (paper, section 3.2)."""

    name: str = "semantic_search"
    description: str = """Find the chunks with the sentences closest in meaning to a query.

Use it when the exact wording is unknown, with one short question or statement on a single fact.
Returns the best chunks with their ids, similarity and closest sentences. There are always some, related or not: let
the sentences decide."""
    prompt_line: str = "semantic_search finds sentences by meaning, for facts whose wording you do not know."
    args_schema: ArgsSchema | None = _SemanticArguments

    def load(self) -> None:
        """Load the embedder."""
        self.index.load_embedder()

    def retrieve(self, query: str, top_k: int, read_chunks: Sequence[str]) -> Retrieved:
        """Search."""
        results = self.index.semantic_search(query, top_k, read=read_chunks)
        return _show_hits(self, query, results, render_semantic(results, read_chunks), read_chunks)


class ChunkRead(RetrievalTool):
    """chunk_read (paper, section 3.2)."""

    name: str = "chunk_read"
    description: str = """Read the full text of chunks by their ids, as search results give them.

Use it when a snippet is promising but does not hold all of the evidence. A chunk read before is not repeated."""
    prompt_line: str = "chunk_read shows whole chunks, for when a snippet is promising and does not say enough."
    args_schema: ArgsSchema | None = _ReadArguments

    def retrieve(self, chunk_ids: list[str], adjacent: int, read_chunks: Sequence[str]) -> Retrieved:
        """Read."""
        if not chunk_ids:
            raise InputError("no chunk id given: chunk_read needs at least one, as search results give them")
        return _show_chunks(self.index.read(chunk_ids, adjacent), chunk_ids, read_chunks)


_TOOLS: dict[str, type[RetrievalTool]] = {
    "keyword_search": KeywordSearch,
    "semantic_search": SemanticSearch,
    "chunk_read": ChunkRead,
}


def make_tools(
    index: Index, *, names: Sequence[str | type[RetrievalTool]] = TOOL_NAMES, top_k: int = DEFAULT_TOP_K
) -> list[BaseTool]:
    """Make the retrieval tools.

    Each returns a text for the model, and an artifact for programs: `results` (the typed results as plain values),
    `chunk_ids` (shown or read), `new_chunks` (read for the first time, or shown whole by a search), `digests` (of their
    texts, by id: a chunk that changes can be read again),
    `retrieved_tokens` (of retrieved text that enters the context), and `query`.

    They work in any agent. LangGraph's `ToolNode`, and with it LangChain's `create_agent`, fills in the argument
    `messages`, which the model does not see: the conversation says which chunks were read, and those are marked in
    search results and not returned again. A chunk whose text is no longer in the conversation can be read again; but
    middleware that shortens what the model is sent, and leaves the conversation as it is, goes unnoticed.

    Each call reports what it found: as a custom event named `retrieval` (`astream_events`, callbacks) and, in a graph,
    in the stream mode `custom`. Both give `tool` and the artifact without `results` and `digests`.

    Args:
        index: The index that the tools search.
        names: Names of the tools to make, or classes of your own. Without `chunk_read` both searches return full chunk
            texts (the paper's ablation, Table 2).
        top_k: How many chunks a search returns unless the model asks for another number, 1 to 20.

    Returns:
        The tools, in the order of `names`. By hand, `tool.invoke({"query": "..."})` returns the text, and
        `tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": {...}})` a message with the artifact.

    Raises:
        InputError: A name is unknown or given twice, no name is given, or `top_k` is out of bounds.

    Example:
        >>> from arag import make_tools
        >>> keyword_search, semantic_search, chunk_read = make_tools(index)
        >>> print(keyword_search.invoke({"keywords": ["Oddvar"]}))
        Oddvar: none (closest: Odvár (2 chunks)).
        No chunk holds any of these keywords.
    """
    kinds = [kind for name in names if (kind := _find_kind(name))]
    if len(kinds) != len(names) or not kinds or len(set(kinds)) != len(kinds):
        raise InputError(f"tools {list(names)!r} are not valid: give one or more of {', '.join(TOOL_NAMES)}, each once")
    if not 1 <= top_k <= MAX_RESULTS:
        raise InputError(f"top_k is {top_k}: valid are 1 to {MAX_RESULTS}")
    can_read = any(issubclass(kind, ChunkRead) for kind in kinds)
    return [kind.make(index, top_k=top_k, full_texts=not can_read) for kind in kinds]


def _find_kind(name: object) -> type[RetrievalTool] | None:
    if isinstance(name, type) and issubclass(name, RetrievalTool):
        return name
    return _TOOLS.get(name) if isinstance(name, str) else None


# --- what a conversation holds ---


def find_read_chunks(messages: Iterable[Any], index: Index) -> list[str]:
    """Return the ids of the chunks whose full text is in a conversation, in order.

    A chunk of another index, or one that has changed since, may have the same id: it counts as unread.

    Args:
        messages: The conversation; the results of retrieval tools in it say what they hold.
        index: The index.
    """
    found: dict[str, str | None] = {}
    for artifact in find_artifacts(messages):
        for chunk_id in artifact["new_chunks"]:
            found[chunk_id] = artifact["digests"].get(chunk_id)
    return [chunk_id for chunk_id, digest in found.items() if digest in {None, _digest(index.get(chunk_id))}]


def find_artifacts(messages: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the artifacts of retrieval tools in a conversation; another agent's tools may have the same names."""
    for message in messages:
        artifact = message.artifact if isinstance(message, ToolMessage) else None
        if isinstance(artifact, dict) and all(isinstance(artifact.get(key), kind) for key, kind in _ARTIFACT.items()):
            yield artifact


def _digest(chunk: Chunk | None) -> str:
    return hashlib.blake2b(chunk.text.encode(), digest_size=8).hexdigest() if chunk is not None else ""


# --- what a tool shows and reports ---


def _show_hits(
    tool: RetrievalTool, query: Any, results: KeywordResults | SemanticResults, text: str, read_chunks: Sequence[str]
) -> Retrieved:
    """Show a search's hits, and their full texts if the model cannot read them."""
    ids = [hit.chunk_id for hit in results.hits]
    tokens = count_tokens(snippet_text(results.hits))
    if tool.full_texts:
        full = _show_chunks(tool.index.read(ids), query, read_chunks)
        text = f"{text}\n\nFull texts:\n\n{full.text}"
        return replace(full, text=text, results=asdict(results), tokens=tokens + full.tokens)
    whole = [hit.chunk_id for hit in results.hits if hit.whole and hit.chunk_id not in read_chunks]
    new = tool.index.read(whole).chunks if whole else ()
    return Retrieved(text, query, asdict(results), ids, new, tokens)


def _show_chunks(results: ReadResults, query: Any, read_chunks: Sequence[str]) -> Retrieved:
    """Show full chunks, except those that were read before."""
    new = [chunk for chunk in results.chunks if chunk.id not in read_chunks]
    # The texts are in the message already: the artifact only says what they are.
    chunks = [
        {"chunk_id": c.id, "document_ids": [s.document_id for s in c.sections], "tokens": c.tokens}
        for c in results.chunks
    ]
    return Retrieved(
        render_chunks(results, read_chunks),
        query,
        {"chunks": chunks, "unknown": [asdict(unknown) for unknown in results.unknown]},
        [chunk.id for chunk in results.chunks],
        new,
        sum(chunk.tokens for chunk in new),
    )


def _announce(event: dict[str, Any]) -> None:
    """Send what a tool found to whoever follows the run."""
    dispatch_custom_event("retrieval", event)
    try:
        write = get_stream_writer()
    except (RuntimeError, KeyError):  # not in a graph
        return
    write(event)
