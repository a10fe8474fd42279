"""What the retrieval tools have in common: arguments, results, and what a conversation holds of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal, Self, TypeAlias

from langchain.tools import InjectedState
from langchain_core.callbacks import dispatch_custom_event
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langchain_core.tools.base import ArgsSchema
from langgraph.config import get_stream_writer
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, model_validator

from arag.errors import InputError
from arag.models.messages import is_question
from arag.models.replies import mend_characters
from arag.retrieval.index import Index
from arag.retrieval.presentation import Held, uncut_positions
from arag.retrieval.render import render_chunks
from arag.retrieval.tokens import count_tokens
from arag.retrieval.types import Chunk, ReadResults, Snippet

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


def check_number(most: int) -> Callable[[list[str]], list[str]]:
    """Return a validator for a list of 1 to `most` texts."""

    def check(texts: list[str]) -> list[str]:
        if not 1 <= len(texts) <= most:
            raise ValueError(f"there are {len(texts)}: give 1 to {most}")
        return texts

    return check


# The bounds are not in the schemas, which models read, and pay for, with every prompt.
Texts: TypeAlias = Annotated[list[str], BeforeValidator(_as_list)]
Keywords: TypeAlias = Annotated[Texts, AfterValidator(check_number(MAX_KEYWORDS))]


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
        sentences: By chunk id, the positions of the sentences shown of chunks that are not shown whole.
        tokens: Tokens of the retrieved text that is shown.

    Example:
        >>> from arag import make_tools
        >>> (chunk_read,) = make_tools(index, names=["chunk_read"])
        >>> found = chunk_read.retrieve(["places/vellin-light.md:0"], about="", held=Held())
        >>> found.chunk_ids, found.text.splitlines()[0]
        (['places/vellin-light.md:0'], '[places/vellin-light.md:0] Vellin Light')
    """

    text: str
    query: Any
    results: dict[str, Any]
    chunk_ids: Sequence[str]
    new_chunks: Sequence[Chunk] = ()
    sentences: Mapping[str, Collection[int]] = field(default_factory=dict)
    tokens: int = 0


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
        ...         return Retrieved(f"{self.index.info().documents} documents", query="", results={}, chunk_ids=[])
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

    @classmethod
    def make(cls, index: Index, *, top_k: int = DEFAULT_TOP_K, full_texts: bool = False) -> Self:
        """Make the tool; `make_tools` explains the arguments."""
        try:
            return cls.model_validate({"index": index, "top_k": top_k, "full_texts": full_texts})
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise InputError(f"{cls.__name__} is not a complete retrieval tool: {faults}") from error

    def load(self) -> None:
        """Load what a call needs. The agent does so before it measures the call's time."""

    def retrieve(self, *args: Any, **arguments: Any) -> Retrieved:
        """Search, and return what the model is shown.

        Args:
            args: Always empty; it lets type checkers accept subclasses that name their arguments.
            arguments: The call's arguments, as `args_schema` has them, and `held`, what the conversation holds.

        Raises:
            InputError: An argument is wrong in a way that the model can correct.
        """
        raise NotImplementedError

    def _run(self, messages: Sequence[Any] = (), **arguments: Any) -> tuple[str, dict[str, Any]]:
        try:
            found = self.retrieve(held=find_held(messages, self.index), **arguments)
        except InputError as error:
            raise ToolException(str(error)) from error
        new = [chunk.id for chunk in found.new_chunks]
        artifact = {
            "query": found.query,
            "results": found.results,
            "chunk_ids": list(found.chunk_ids),
            "new_chunks": new,
            "sentences": {chunk_id: sorted(places) for chunk_id, places in found.sentences.items()},
            "digests": {chunk_id: _digest(self.index.get(chunk_id)) for chunk_id in found.sentences}
            | {chunk.id: _digest(chunk) for chunk in found.new_chunks},
            "retrieved_tokens": found.tokens,
        }
        told = {key: value for key, value in artifact.items() if key not in {"results", "sentences", "digests"}}
        _announce({"tool": self.name} | told)
        return found.text, artifact


# --- what a conversation holds ---


def find_held(messages: Sequence[Any], index: Index) -> Held:
    """Return what a conversation holds of an index's chunks.

    A chunk of another index, or one that has changed since, may have the same id: it does not count.

    Args:
        messages: The conversation; the results of retrieval tools in it say what they hold.
        index: The index.
    """
    chunks: dict[str, None] = {}
    sentences: dict[str, set[int]] = {}
    digests: dict[str, str] = {}

    def is_same(chunk_id: str, digest: str | None) -> bool:
        if chunk_id not in digests:
            digests[chunk_id] = _digest(index.get(chunk_id))
        return digest in {None, digests[chunk_id]}

    for artifact in find_artifacts(messages):
        for chunk_id in artifact["new_chunks"]:
            if is_same(chunk_id, artifact["digests"].get(chunk_id)):
                chunks[chunk_id] = None
        for chunk_id, positions in artifact.get("sentences", {}).items():
            if is_same(chunk_id, artifact["digests"].get(chunk_id)):
                sentences.setdefault(chunk_id, set()).update(positions)
    asked = (message.text for message in reversed(messages) if is_question(message))
    return Held(list(chunks), sentences, next(asked, ""))


def find_read_chunks(messages: Sequence[Any], index: Index) -> list[str]:
    """Return the ids of the chunks whose full text is in a conversation, in order.

    Args:
        messages: The conversation; the results of retrieval tools in it say what they hold.
        index: The index.
    """
    return list(find_held(messages, index).chunks)


def find_artifacts(messages: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the artifacts of retrieval tools in a conversation; another agent's tools may have the same names."""
    for message in messages:
        artifact = message.artifact if isinstance(message, ToolMessage) else None
        if isinstance(artifact, dict) and all(isinstance(artifact.get(key), kind) for key, kind in _ARTIFACT.items()):
            yield artifact


def _digest(chunk: Chunk | None) -> str:
    return hashlib.blake2b(chunk.text.encode(), digest_size=8).hexdigest() if chunk is not None else ""


# --- what a tool shows and reports ---


def show_chunks(
    results: ReadResults, query: Any, held: Held, passages: Mapping[str, Sequence[Snippet]] | None = None
) -> Retrieved:
    """Show chunks, except those that were read before.

    Args:
        results: The chunks.
        query: What was asked for.
        held: What the conversation holds.
        passages: By chunk id, what to show instead of its full text.
    """
    passages = {i: found for i, found in (passages or {}).items() if i not in held.chunks}
    new = [chunk for chunk in results.chunks if chunk.id not in held.chunks and chunk.id not in passages]
    # The texts are in the message already: the artifact only says what they are.
    chunks = [
        {
            "chunk_id": c.id,
            "document_ids": [s.document_id for s in c.sections],
            "tokens": c.tokens,
            "passages": [asdict(snippet) for snippet in passages.get(c.id, ())],
        }
        for c in results.chunks
    ]
    sentences = {i: [s for snippet in found for s in snippet.sentences] for i, found in passages.items()}
    shown = "\n".join(sentence.text for found in sentences.values() for sentence in found)
    return Retrieved(
        render_chunks(results, held.chunks, passages),
        query,
        {"chunks": chunks, "unknown": [asdict(unknown) for unknown in results.unknown]},
        [chunk.id for chunk in results.chunks],
        new,
        {chunk_id: uncut_positions(found) for chunk_id, found in passages.items()},
        sum(chunk.tokens for chunk in new) + count_tokens(shown),
    )


def _announce(event: dict[str, Any]) -> None:
    """Send what a tool found to whoever follows the run."""
    dispatch_custom_event("retrieval", event)
    try:
        write = get_stream_writer()
    except (RuntimeError, KeyError):  # not in a graph
        return
    write(event)
