"""The three retrieval functions as LangChain tools, for this project's agent or anyone else's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias, get_args

from langchain.tools import InjectedState
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langchain_core.tools.base import ArgsSchema
from langgraph.config import get_stream_writer
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, model_validator

from arag.errors import InputError, list_faults
from arag.retrieval import DEFAULT_TOP_K, MAX_CHARACTERS, MAX_RESULTS
from arag.retrieval.index import Index
from arag.retrieval.presentation.choose import Held
from arag.retrieval.presentation.functions import (
    MAX_QUERIES,
    Retrieved,
    add_full_texts,
    read_chunks,
    search_keywords,
    search_meaning,
)
from arag.retrieval.types import Chunk
from arag.text.surrogates import replace_surrogates
from arag.text.tokens import count_tokens

ToolName: TypeAlias = Literal["keyword_search", "semantic_search", "chunk_read"]
TOOL_NAMES: tuple[ToolName, ...] = get_args(ToolName)
MAX_KEYWORDS, MAX_CHUNK_IDS = 50, 100  # of one call
_PLURALS = {"keyword": "keywords", "query": "queries", "chunk_id": "chunk_ids"}

# How artifacts of these tools are recognised.
_ARTIFACT = {"chunk_ids": list, "new_chunks": list, "digests": dict, "retrieved_tokens": int, "evidence_tokens": int}


# --- arguments ---


def _as_list(value: Any) -> Any:
    """Accept what models send for a list: the list as a JSON string, a single item, numbers, blank items."""
    if isinstance(value, str) and value.strip().startswith("["):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    items = value if isinstance(value, list) else [value]
    texts = [str(item) if type(item) in {int, float} else item for item in items]
    mended = [replace_surrogates(text) if isinstance(text, str) else text for text in texts]
    return [text for text in mended if not isinstance(text, str) or text.strip()]


def _check_number(texts: list[str], most: int, least: int = 1) -> list[str]:
    if not least <= len(texts) <= most:
        raise ValueError(f"there are {len(texts):,}: give 1 to {most}")
    return texts


def _check_length(text: str) -> str:  # results and errors repeat it
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"it has {len(text):,} characters: give at most {MAX_CHARACTERS:,}")
    return text


# Models pay for schemas with every prompt: bounds are checked outside of them, and defaults come from factories,
# which schemas do not repeat.
OneText: TypeAlias = Annotated[str, AfterValidator(_check_length)]
Texts: TypeAlias = Annotated[list[OneText], BeforeValidator(_as_list)]
Keywords: TypeAlias = Annotated[Texts, AfterValidator(partial(_check_number, most=MAX_KEYWORDS))]
Queries: TypeAlias = Annotated[Texts, AfterValidator(partial(_check_number, most=MAX_QUERIES))]
# No id at all is an error of the tool, with a text of its own.
ChunkIds: TypeAlias = Annotated[Texts, AfterValidator(partial(_check_number, most=MAX_CHUNK_IDS, least=0))]
Within: TypeAlias = Annotated[OneText, Field(description="Only documents with this in title or id.")]


class RetrievalArguments(BaseModel):
    """Arguments of a tool call; a null counts as an argument that was left out, and lists may have singular names."""

    messages: Annotated[list[Any], InjectedState("messages")] = Field(
        default_factory=list, description="The conversation so far; filled in by the graph, never by the model."
    )

    @model_validator(mode="before")
    @classmethod
    def _tidy(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        names = {name: name if name in cls.model_fields else _PLURALS.get(name, name) for name in values}
        return {names[name]: value for name, value in values.items() if value is not None}


class _KeywordArguments(RetrievalArguments):
    keywords: Keywords = Field(description="1 to 3 words each.")
    within: Within = Field(default_factory=str)


class _SemanticArguments(RetrievalArguments):
    queries: Queries = Field(description="One short question or statement for each fact.")
    within: Within = Field(default_factory=str)


class _ReadArguments(RetrievalArguments):
    chunk_ids: ChunkIds = Field(description="Chunk ids.")
    about: OneText = Field(default_factory=str, description="What to look for; without it, one chunk in full.")


def _explain(error: ValidationError | Any) -> str:
    """Tell the model which arguments of its call are wrong."""
    return f"The call's arguments are not valid. {list_faults(error)}. Call the tool again with valid arguments."


# --- tools ---


class RetrievalTool(BaseTool):
    """A tool that shows chunks of an index.

    Each is a subclass with `name`, `description`, `args_schema` (a subclass of `RetrievalArguments`) and `retrieve`. An
    agent accepts such classes among its `tools`.

    Attributes:
        index: The index.
        top_k: How many chunks a search returns.
        full_texts: Whether searches show full chunks, for a model that has no tool to read them.

    Example:
        >>> from arag import make_tools
        >>> class CorpusSize(RetrievalTool):
        ...     name: str = "corpus_size"
        ...     description: str = "Count the documents of the corpus."
        ...     def retrieve(self, held: Held) -> Retrieved:
        ...         return Retrieved(f"{self.index.info().documents} documents")
        >>> make_tools(index, names=[CorpusSize])[0].invoke({})
        '25 documents'
    """

    index: Index
    top_k: int = DEFAULT_TOP_K
    full_texts: bool = False
    args_schema: ArgsSchema | None = RetrievalArguments
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: bool | str | Callable[[ToolException], str] | None = True
    handle_validation_error: bool | str | Callable[[Any], str] | None = _explain

    def retrieve(self, *args: Any, **arguments: Any) -> Retrieved:
        """Search, and return what the model is shown.

        Args:
            args: Always empty; it lets type checkers accept subclasses that name their arguments.
            arguments: The call's arguments, as `args_schema` has them, and `held`, what the conversation holds.

        Raises:
            InputError: An argument is wrong in a way that the model can correct.
        """
        raise NotImplementedError

    def show(self, retrieved: Retrieved, held: Held) -> Retrieved:
        """Return what a search found, with full texts if the model has no tool to read them."""
        return add_full_texts(self.index, retrieved, held) if self.full_texts else retrieved

    def _run(self, messages: Sequence[Any] = (), **arguments: Any) -> tuple[str, dict[str, Any]]:
        try:
            shown = self.retrieve(held=find_held(messages, self.index), **arguments)
        except InputError as error:
            raise ToolException(str(error)) from error
        event = {
            "query": next(iter(arguments.values()), ""),
            "chunk_ids": list(shown.chunk_ids),
            "new_chunks": [chunk.id for chunk in shown.new_chunks],
            "retrieved_tokens": count_tokens(shown.text),
            "evidence_tokens": sum(map(count_tokens, shown.evidence)),
        }
        with suppress(RuntimeError, KeyError):  # not in a graph
            get_stream_writer()({"tool": self.name} | event)
        digests = find_digests(self.index, shown.chunk_ids) | {chunk.id: _digest(chunk) for chunk in shown.new_chunks}
        sentences = {chunk_id: sorted(positions) for chunk_id, positions in shown.sentences.items()}
        return shown.text, event | {"results": shown.results, "sentences": sentences, "digests": digests}


class KeywordSearch(RetrievalTool):
    """keyword_search (paper, section 3.2)."""

    name: str = "keyword_search"
    description: str = "Find chunks by exact terms: names, titles, numbers, labels of table rows, rare words."
    args_schema: ArgsSchema | None = _KeywordArguments

    def retrieve(self, keywords: list[str], within: str, held: Held) -> Retrieved:
        """Search."""
        return self.show(search_keywords(self.index, keywords, held, top_k=self.top_k, within=within), held)


class SemanticSearch(RetrievalTool):
    """semantic_search (paper, section 3.2)."""

    name: str = "semantic_search"
    description: str = "Find sentences by meaning, for facts whose wording you do not know."
    args_schema: ArgsSchema | None = _SemanticArguments

    def retrieve(self, queries: list[str], within: str, held: Held) -> Retrieved:
        """Search for each query."""
        return self.show(search_meaning(self.index, queries, held, top_k=self.top_k, within=within), held)


class ChunkRead(RetrievalTool):
    """chunk_read (paper, section 3.2)."""

    name: str = "chunk_read"
    description: str = "Read chunks when what a search shows is not enough."
    args_schema: ArgsSchema | None = _ReadArguments

    def retrieve(self, chunk_ids: list[str], about: str, held: Held) -> Retrieved:
        """Read one chunk in full; of several, or for something, the passages that are about it."""
        return read_chunks(self.index, chunk_ids, held, about=about)


# --- what a conversation holds ---


def find_held(messages: Sequence[Any], index: Index) -> Held:
    """Return what a conversation holds of an index's chunks, as the results of retrieval tools in it say.

    A chunk of another index, or one that has changed since, may have the same id: it does not count.
    """
    artifacts = list(find_artifacts(messages))
    known = find_digests(index, {chunk_id for artifact in artifacts for chunk_id in artifact["digests"]})
    chunks: dict[str, None] = {}
    sentences: dict[str, set[int]] = {}
    for artifact in artifacts:
        shown = artifact.get("sentences", {})
        same = {chunk_id for chunk_id, digest in artifact["digests"].items() if digest == known[chunk_id]}
        chunks |= {chunk_id: None for chunk_id in artifact["new_chunks"] if chunk_id in same}
        for chunk_id in shown.keys() & same:
            sentences.setdefault(chunk_id, set()).update(shown[chunk_id])
    question = next((message.text for message in reversed(messages) if isinstance(message, HumanMessage)), "")
    return Held(list(chunks), sentences, question)


def find_artifacts(messages: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the artifacts of retrieval tools in a conversation; another agent's tools may have the same names."""
    for message in messages:
        artifact = message.artifact if isinstance(message, ToolMessage) else None
        if isinstance(artifact, dict) and all(isinstance(artifact.get(key), kind) for key, kind in _ARTIFACT.items()):
            yield artifact


def find_digests(index: Index, chunk_ids: Iterable[str]) -> dict[str, str]:
    """Return digests of the texts of chunks, by id; empty ones of chunks that the index does not hold."""
    ids = list(chunk_ids)
    return dict(zip(ids, map(_digest, index.mget(ids)), strict=True))


def _digest(chunk: Chunk | None) -> str:
    return hashlib.blake2b(chunk.text.encode(), digest_size=8).hexdigest() if chunk is not None else ""


# --- making them ---


def make_tools(
    index: Index,
    *,
    names: Sequence[str | type[RetrievalTool]] = TOOL_NAMES,
    top_k: int = DEFAULT_TOP_K,
) -> list[BaseTool]:
    """Make the retrieval tools.

    Each returns a text for the model, and an artifact for programs: `results` (the typed results as plain values),
    `chunk_ids` (shown or read), `new_chunks` (read for the first time, or shown whole by a search), `digests` (of their
    texts, by id: a chunk that changes can be read again), `retrieved_tokens` (of the whole text), `evidence_tokens` (of
    the documents' sentences in it), and `query`. In a graph, each call also reports this, without results and digests,
    in the stream mode `custom`.

    They work in any agent. LangGraph's `ToolNode`, and with it LangChain's `create_agent`, fills in the argument
    `messages`, which the model does not see: the conversation says which chunks were read, and those are not returned
    again. Middleware that shortens what the model is sent, and leaves the conversation as it is, goes unnoticed.

    Args:
        index: The index that the tools search.
        names: Names of the tools to make, or classes of your own. Without `chunk_read` both searches return full chunk
            texts (the paper's ablation, Table 2).
        top_k: How many chunks a search shows, 1 to 20; more if more keywords or queries are given.

    Returns:
        The tools, in the order of `names`. By hand, `tool.invoke({"query": "..."})` returns the text, and
        `tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": {...}})` a message with the artifact.

    Raises:
        InputError: An argument is not valid.

    Example:
        >>> from arag import make_tools
        >>> keyword_search, semantic_search, chunk_read = make_tools(index)
        >>> print(keyword_search.invoke({"keywords": ["Oddvar"]}))
        Oddvar: none (closest: Odvár (2 chunks)).
        No chunk holds any of these keywords.
    """
    if not 1 <= top_k <= MAX_RESULTS:
        raise InputError(f"top_k is {top_k}: valid are 1 to {MAX_RESULTS}")
    own = (KeywordSearch, SemanticSearch, ChunkRead)
    known: dict[Any, type[RetrievalTool]] = dict(zip(TOOL_NAMES, own, strict=True))
    kinds = [known.get(name, name) for name in names if isinstance(name, str | type)]
    classes = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, RetrievalTool)]
    if not classes or len(set(classes)) != len(names):
        raise InputError(f"tools {list(names)!r} are not valid: give one or more of {', '.join(TOOL_NAMES)}, each once")
    can_read = any(kind.model_fields["name"].default == "chunk_read" for kind in classes)
    return [kind.model_validate({"index": index, "top_k": top_k, "full_texts": not can_read}) for kind in classes]
