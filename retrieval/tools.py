"""The three retrieval functions as LangChain tools, for this project's agent or anyone else's."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from typing import Annotated, Any, Literal, TypeAlias, get_args

from langchain.tools import InjectedState
from langchain_core.callbacks import dispatch_custom_event
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langchain_core.tools.base import ArgsSchema
from langgraph.config import get_stream_writer
from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, Field, ValidationError, model_validator

from arag.errors import InputError, ModelError, list_faults
from arag.models.names import DEFAULT_EMBEDDER
from arag.models.replies import mend_characters
from arag.retrieval import DEFAULT_TOP_K, MAX_RESULTS
from arag.retrieval.excerpts import for_read
from arag.retrieval.index import Index
from arag.retrieval.present import Held, Shown, arrange_keywords, choose_shown, excerpt_text, uncut_positions
from arag.retrieval.render import FULL_TEXTS, OTHER_SCRIPT, render_chunks, render_keywords, render_semantic
from arag.retrieval.text import is_latin
from arag.retrieval.tokens import count_tokens
from arag.retrieval.types import Chunk, Excerpt, Hit, KeywordResults, ReadResults, SemanticResults

ToolName: TypeAlias = Literal["keyword_search", "semantic_search", "chunk_read"]
TOOL_NAMES: tuple[ToolName, ...] = get_args(ToolName)
Presentation: TypeAlias = Literal["compact", "paper"]
PRESENTATIONS: tuple[Presentation, ...] = get_args(Presentation)
MAX_KEYWORDS = 50  # of one call
MAX_QUERIES = 10  # of one call

_CANDIDATES = 20  # chunks from which those that are shown are chosen
_MAX_SENTENCE_TOKENS = 300  # of a search by meaning: beyond them, chunks are shown in brief
_MAX_FURTHER_TOKENS = 100  # of a keyword search, beyond the best chunk of each keyword
_SHORT_CHUNK_TOKENS = 250  # of a chunk that is read whole, whatever the reader looks for
_MAX_DOCUMENTS = 1_000  # that one search may be limited to
_PARTS = re.compile(r"[,;?!]\s+|[。，；！？]")  # of what a reader looks for: each is looked for by itself
# How artifacts of these tools are recognised.
_ARTIFACT = {"chunk_ids": list, "new_chunks": list, "digests": dict, "retrieved_tokens": int, "evidence_tokens": int}


# --- arguments ---


def _as_list(value: Any) -> Any:
    """Accept what models send for a list: the list as a JSON string, a single item, numbers."""
    if isinstance(value, str) and value.strip().startswith("["):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    items = value if isinstance(value, list) else [value]
    texts = [str(item) if type(item) in {int, float} else item for item in items]
    return [mend_characters(text) if isinstance(text, str) else text for text in texts]


def _check_number(texts: list[str], most: int) -> list[str]:
    if not 1 <= len(texts) <= most:
        raise ValueError(f"there are {len(texts)}: give 1 to {most}")
    return texts


# Models pay for schemas with every prompt: bounds are checked outside of them, and defaults come from factories,
# which schemas do not repeat.
Texts: TypeAlias = Annotated[list[str], BeforeValidator(_as_list)]
Keywords: TypeAlias = Annotated[Texts, AfterValidator(partial(_check_number, most=MAX_KEYWORDS))]
Queries: TypeAlias = Annotated[Texts, AfterValidator(partial(_check_number, most=MAX_QUERIES))]
Within: TypeAlias = Annotated[str, Field(description="Only documents with this in title or id.")]


class RetrievalArguments(BaseModel):
    """Arguments of a tool call; a null counts as an argument that was left out."""

    messages: Annotated[list[Any], InjectedState("messages")] = Field(
        default_factory=list, description="The conversation so far; filled in by the graph, never by the model."
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, values: Any) -> Any:
        return {n: v for n, v in values.items() if v is not None} if isinstance(values, dict) else values


class _KeywordArguments(RetrievalArguments):
    keywords: Keywords = Field(description="1 to 3 words each.", validation_alias=AliasChoices("keywords", "keyword"))
    within: Within = Field(default_factory=str)


class _SemanticArguments(RetrievalArguments):
    queries: Queries = Field(
        description="One short question or statement for each fact.", validation_alias=AliasChoices("queries", "query")
    )
    within: Within = Field(default_factory=str)


class _ReadArguments(RetrievalArguments):
    chunk_ids: Texts = Field(description="Chunk ids.", validation_alias=AliasChoices("chunk_ids", "chunk_id"))
    about: str = Field(default_factory=str, description="What to look for; without it, one chunk in full.")


def _explain(error: ValidationError | Any) -> str:
    """Tell the model which arguments of its call are wrong."""
    return f"The call's arguments are not valid. {list_faults(error)}. Call the tool again with valid arguments."


# --- tools ---


@dataclass(frozen=True)
class Retrieved:
    """What a tool found, and the text that the model is shown of it."""

    text: str
    query: Any
    results: dict[str, Any]
    """The typed results as plain values."""
    chunk_ids: Sequence[str]
    """Chunks shown."""
    new_chunks: Sequence[Chunk] = ()
    """Those of them whose full text is shown for the first time."""
    sentences: Mapping[str, Collection[int]] = field(default_factory=dict)
    """By chunk id, the positions of the sentences shown of chunks that are not shown whole."""
    evidence_tokens: int = 0
    """Tokens of the documents' sentences in the text."""


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
            shown = self.retrieve(held=find_held(messages, self.index), **arguments)
        except InputError as error:
            raise ToolException(str(error)) from error
        event = {
            "query": shown.query,
            "chunk_ids": list(shown.chunk_ids),
            "new_chunks": [chunk.id for chunk in shown.new_chunks],
            "retrieved_tokens": count_tokens(shown.text),
            "evidence_tokens": shown.evidence_tokens,
        }
        _announce({"tool": self.name} | event)
        digests = {chunk_id: _digest(self.index.get(chunk_id)) for chunk_id in shown.sentences}
        digests |= {chunk.id: _digest(chunk) for chunk in shown.new_chunks}
        sentences = {chunk_id: sorted(positions) for chunk_id, positions in shown.sentences.items()}
        return shown.text, event | {"results": shown.results, "sentences": sentences, "digests": digests}


class KeywordSearch(RetrievalTool):
    """keyword_search (paper, section 3.2)."""

    name: str = "keyword_search"
    description: str = "Find chunks by exact terms: names, titles, numbers, labels of table rows, rare words."
    args_schema: ArgsSchema | None = _KeywordArguments

    def retrieve(self, keywords: list[str], within: str, held: Held) -> Retrieved:
        """Search, also for other spellings of the same letters that the corpus has."""
        index = _limit(self.index, within)
        results = index.keyword_search(keywords, _CANDIDATES, by_coverage=True)
        reports = results.keywords
        spellings = {r.keyword: r.closest[0].text for r in reports if r.closest and r.closest[0].respelled}
        if spellings:
            results = index.keyword_search([*keywords, *spellings.values()], _CANDIDATES, by_coverage=True)
        asked = [report.keyword for report in reports]
        needed, further, common = arrange_keywords(results, asked, self.top_k)
        reports = tuple(replace(report, searched_as=spellings.get(report.keyword)) for report in reports)
        results = replace(results, keywords=reports, hits=(*needed, *further, *common))
        shown = choose_shown([*needed, *further], held, always=len(needed), tokens=_MAX_FURTHER_TOKENS, common=common)
        return _show_hits(self, keywords, results, shown, render_keywords(results, shown), held)


class SemanticSearch(RetrievalTool):
    """semantic_search (paper, section 3.2)."""

    name: str = "semantic_search"
    description: str = "Find sentences by meaning, for facts whose wording you do not know."
    args_schema: ArgsSchema | None = _SemanticArguments

    def load(self) -> None:
        """Load the embedder."""
        self.index.embedder.load()

    def retrieve(self, queries: list[str], within: str, held: Held) -> Retrieved:
        """Search for each query; the later ones do not show again what the earlier ones do."""
        index, several, before = _limit(self.index, within), len(queries) > 1, held
        tokens = _MAX_SENTENCE_TOKENS // 2 if several else _MAX_SENTENCE_TOKENS
        texts: list[str] = []
        parts: list[Shown] = []
        is_english = index.embedder.name == DEFAULT_EMBEDDER
        for query in queries:
            if is_english and not is_latin(query):
                texts.append(f"{query}: " * several + OTHER_SCRIPT)
                continue
            hits = index.semantic_search(query, self.top_k, titles_first=True).hits
            shown = choose_shown(hits, held, always=1, tokens=tokens, query=query, is_one_of_several=several)
            held = held.add(shown.hits)
            texts.append(f"{query}: " * several + render_semantic(shown))
            parts.append(shown)
        shown = Shown(
            [hit for part in parts for hit in part.hits],
            [chunk_id for part in parts for chunk_id in part.above],
            {chunk_id: ids for part in parts for chunk_id, ids in part.same.items()},
            [hit for part in parts for hit in part.brief],
        )
        return _show_hits(self, queries, SemanticResults("; ".join(queries), ()), shown, "\n\n".join(texts), before)


class ChunkRead(RetrievalTool):
    """chunk_read (paper, section 3.2)."""

    name: str = "chunk_read"
    description: str = "Read chunks when what a search shows is not enough."
    args_schema: ArgsSchema | None = _ReadArguments

    def retrieve(self, chunk_ids: list[str], about: str, held: Held) -> Retrieved:
        """Read one chunk in full; of several, or for something, the passages that are about it."""
        if not chunk_ids:
            raise InputError("no chunk id given: chunk_read needs at least one, as search results give them")
        results = self.index.read(chunk_ids)
        unread = [chunk for chunk in results.chunks if chunk.id not in held.chunks]
        if len(unread) > 1 and not about.strip():
            about = held.question
        parts = [part for part in _PARTS.split(about) if part.strip()][:MAX_QUERIES]
        long = [chunk for chunk in unread if parts and chunk.tokens > _SHORT_CHUNK_TOKENS]
        try:
            rated = {part: self.index.rate_sentences(part, [chunk.id for chunk in long]) for part in parts if long}
        except ModelError:  # reading must not depend on it
            long, rated = [], {}
        return show_chunks(results, chunk_ids, held, for_read(long, rated, held.sentences))


def _limit(index: Index, within: str) -> Index:
    """Return an index limited to the documents that a call names, or all of it."""
    if not within.strip():
        return index
    documents = index.find_documents(within, _MAX_DOCUMENTS + 1)
    if len(documents) > _MAX_DOCUMENTS:
        raise InputError(f"More than {_MAX_DOCUMENTS:,} documents have {within!r} in title or id. Give more words.")
    if not documents:
        closest = ", ".join(chunk_id for ids in index.read([within]).unknown.values() for chunk_id in ids)
        example = f"Chunk ids look like: {closest}." if closest else "The index is empty."
        raise InputError(f"No document has {within!r} in its title or id. {example}")
    return index.limited_to(documents)


# --- what a conversation holds ---


def find_held(messages: Sequence[Any], index: Index) -> Held:
    """Return what a conversation holds of an index's chunks, as the results of retrieval tools in it say.

    A chunk of another index, or one that has changed since, may have the same id: it does not count.
    """
    digest = cache(lambda chunk_id: _digest(index.get(chunk_id)))
    chunks: dict[str, None] = {}
    sentences: dict[str, set[int]] = {}
    for artifact in find_artifacts(messages):
        shown, digests = artifact.get("sentences", {}), artifact["digests"]
        same = {i for i in (*artifact["new_chunks"], *shown) if digests.get(i) in {None, digest(i)}}
        chunks |= {chunk_id: None for chunk_id in artifact["new_chunks"] if chunk_id in same}
        for chunk_id in shown.keys() & same:
            sentences.setdefault(chunk_id, set()).update(shown[chunk_id])
    question = next((message.text for message in reversed(messages) if isinstance(message, HumanMessage)), "")
    return Held(list(chunks), sentences, question)


def find_read_chunks(messages: Sequence[Any], index: Index) -> list[str]:
    """Return the ids of the chunks whose full text is in a conversation, in order."""
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
    results: ReadResults, query: Any, held: Held, excerpts: Mapping[str, Excerpt] | None = None
) -> Retrieved:
    """Show chunks, except those that were read before; of some, excerpts are shown instead of their full texts."""
    excerpts = excerpts or {}
    new = [chunk for chunk in results.chunks if chunk.id not in held.chunks and chunk.id not in excerpts]
    # The texts are in the message already: the artifact only says what they are.
    plain = {chunk_id: asdict(excerpt) for chunk_id, excerpt in excerpts.items()}
    chunks = [
        {"chunk_id": c.id, "document_id": c.document_id, "tokens": c.tokens, "excerpt": plain.get(c.id)}
        for c in results.chunks
    ]
    shown = "\n".join(sentence.text for excerpt in excerpts.values() for sentence in excerpt.sentences)
    return Retrieved(
        render_chunks(results, held.chunks, excerpts),
        query,
        {"chunks": chunks, "unknown": results.unknown},
        [chunk.id for chunk in results.chunks],
        new,
        {chunk_id: uncut_positions(excerpt) for chunk_id, excerpt in excerpts.items()},
        sum(chunk.tokens for chunk in new) + count_tokens(shown),
    )


def _show_hits(
    tool: RetrievalTool, query: Any, results: KeywordResults | SemanticResults, shown: Shown, text: str, held: Held
) -> Retrieved:
    """Show a search's hits, and their full texts if the model cannot read them."""
    same = (chunk_id for ids in shown.same.values() for chunk_id in ids)
    hits: tuple[Hit, ...] = (*shown.hits, *shown.brief)
    ids = list(dict.fromkeys([*(hit.chunk_id for hit in hits), *same, *shown.above]))
    whole = [hit.chunk_id for hit in shown.hits if hit.excerpt.whole]
    new = tool.index.read(whole).chunks if whole else ()
    plain, tokens = asdict(replace(results, hits=hits)), count_tokens(excerpt_text(hits))
    retrieved = Retrieved(text, query, plain, ids, new, Held().add(shown.hits).sentences, tokens)
    return add_full_texts(tool, retrieved, held) if tool.full_texts else retrieved


def add_full_texts(tool: RetrievalTool, retrieved: Retrieved, held: Held) -> Retrieved:
    """Show the full texts of a search's chunks, too."""
    full = show_chunks(tool.index.read(retrieved.chunk_ids), retrieved.query, held)
    text = f"{retrieved.text}\n\n{FULL_TEXTS}\n\n{full.text}"
    tokens = retrieved.evidence_tokens + full.evidence_tokens
    return replace(full, text=text, results=retrieved.results, evidence_tokens=tokens)


def _announce(event: dict[str, Any]) -> None:
    """Send what a tool found to whoever follows the run."""
    dispatch_custom_event("retrieval", event)
    try:
        write = get_stream_writer()
    except (RuntimeError, KeyError):  # not in a graph
        return
    write(event)


# --- making them ---


def make_tools(
    index: Index,
    *,
    names: Sequence[str | type[RetrievalTool]] = TOOL_NAMES,
    top_k: int = DEFAULT_TOP_K,
    presentation: Presentation = "compact",
) -> list[BaseTool]:
    """Make the retrieval tools.

    Each returns a text for the model, and an artifact for programs: `results` (the typed results as plain values),
    `chunk_ids` (shown or read), `new_chunks` (read for the first time, or shown whole by a search), `digests` (of their
    texts, by id: a chunk that changes can be read again), `retrieved_tokens` (of the whole text), `evidence_tokens` (of
    the documents' sentences in it), and `query`. Each call also reports this, without results and digests, as a custom
    event named `retrieval` (`astream_events`, callbacks) and, in a graph, in the stream mode `custom`.

    They work in any agent. LangGraph's `ToolNode`, and with it LangChain's `create_agent`, fills in the argument
    `messages`, which the model does not see: the conversation says which chunks were read, and those are not returned
    again. Middleware that shortens what the model is sent, and leaves the conversation as it is, goes unnoticed.

    Args:
        index: The index that the tools search.
        names: Names of the tools to make, or classes of your own. Without `chunk_read` both searches return full chunk
            texts (the paper's ablation, Table 2).
        top_k: How many chunks a search shows, 1 to 20; more if more keywords or queries are given.
        presentation: `compact`, or `paper` for the paper's plain lists of chunks and sentences.

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
    from arag.retrieval import paper_tools

    if presentation not in PRESENTATIONS:
        raise InputError(f"presentation is {presentation!r}: valid are {', '.join(PRESENTATIONS)}")
    if not 1 <= top_k <= MAX_RESULTS:
        raise InputError(f"top_k is {top_k}: valid are 1 to {MAX_RESULTS}")
    compact: tuple[type[RetrievalTool], ...] = (KeywordSearch, SemanticSearch, ChunkRead)
    known: dict[Any, type[RetrievalTool]] = dict(
        zip(TOOL_NAMES, compact if presentation == "compact" else paper_tools.TOOLS, strict=True)
    )
    kinds = [known.get(name, name) for name in names if isinstance(name, str | type)]
    classes = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, RetrievalTool)]
    if not classes or len(set(classes)) != len(names):
        raise InputError(f"tools {list(names)!r} are not valid: give one or more of {', '.join(TOOL_NAMES)}, each once")
    can_read = any(issubclass(kind, ChunkRead | paper_tools.ChunkRead) for kind in classes)
    return [kind.model_validate({"index": index, "top_k": top_k, "full_texts": not can_read}) for kind in classes]
