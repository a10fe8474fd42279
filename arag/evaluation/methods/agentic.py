"""LangGraph graphs as methods: A-RAG with all its tools, and with fewer (paper, sections 3 and 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from langchain_core.messages import AIMessage, AnyMessage

from arag.evaluation.method import Answer, Method, Session
from arag.evaluation.paper_tools import PAPER_TOOLS, ChunkRead, Presentation
from arag.graph.graph import create_arag_agent
from arag.models.usage import ModelCall, model_call
from arag.retrieval.tools.base import RetrievalTool
from arag.retrieval.tools.sets import TOOL_SETS
from arag.retrieval.tools.shell import Shell

_SEARCHES_BY_MEANING = {"semantic_search", "shell"}


class GraphMethod(Method):
    """Any LangGraph graph that takes `messages` and ends with the keys of `arag.graph.state.OutputState`.

    `prepare` returns the compiled graph, which calls `session.context.model` and searches `session.context.index`.
    """

    autonomous: ClassVar[bool | None] = True
    iterative: ClassVar[bool | None] = True
    interleaved: ClassVar[bool | None] = True

    def answer(self, question: str, session: Session, prepared: Any) -> Answer:
        """Run the graph."""
        state = session.with_retries(lambda: prepared.invoke({"messages": [("user", question)]}))
        session.messages = state["messages"]
        session.calls += state.get("model_calls") or _model_calls(session.messages)
        session.trace += state.get("trace", [])
        return Answer(state["answer"], stop_reason=state.get("stop_reason") or "answered")


def _model_calls(messages: Iterable[AnyMessage]) -> list[ModelCall]:
    """Return the model calls of a graph that does not keep account of them, from the usage that its replies report."""
    calls: list[ModelCall] = []
    for message in messages:
        if isinstance(message, AIMessage) and message.usage_metadata:
            calls.append(model_call(message, step=len(calls) + 1))
    return calls


class ARAG(GraphMethod):
    """keyword_search, semantic_search and chunk_read."""

    name: ClassVar[str] = "arag"
    title: ClassVar[str] = "A-RAG (Full)"
    abilities: ClassVar[str | None] = "words meaning follow cite cheap"
    tools: ClassVar[Sequence[str | type[RetrievalTool]]] = ("keyword_search", "semantic_search", "chunk_read")

    def prepare(self, session: Session) -> Any:
        """Create the agent. The embedder is loaded here, so that the first question does not pay for it."""
        context = session.context
        if not _SEARCHES_BY_MEANING.isdisjoint(self.tools):
            context.index.embedder.load()
        return create_arag_agent(
            context.model,
            context.index,
            tools=self._choose_tools(context.presentation),
            top_k=context.top_k,
            max_steps=context.max_steps,
        )

    def _choose_tools(self, presentation: Presentation) -> Sequence[str | type[RetrievalTool]]:
        if presentation == "compact":
            return self.tools
        return [PAPER_TOOLS.get(tool, tool) if isinstance(tool, str) else tool for tool in self.tools]


class NaiveARAG(ARAG):
    """One tool: a semantic search that returns whole chunks."""

    name: ClassVar[str] = "arag-naive"
    title: ClassVar[str] = "A-RAG (Naive)"
    abilities: ClassVar[str | None] = "meaning follow cite cheap"
    tools: ClassVar[Sequence[str | type[RetrievalTool]]] = ("semantic_search",)


class WithoutKeyword(ARAG):
    """semantic_search and chunk_read."""

    name: ClassVar[str] = "arag-without-keyword"
    title: ClassVar[str] = "w/o Keyword Search"
    abilities: ClassVar[str | None] = "meaning follow cite cheap"
    tools: ClassVar[Sequence[str | type[RetrievalTool]]] = ("semantic_search", "chunk_read")


class WithoutSemantic(ARAG):
    """keyword_search and chunk_read, which reads whole chunks: passages are not compared by their vectors."""

    name: ClassVar[str] = "arag-without-semantic"
    title: ClassVar[str] = "w/o Semantic Search"
    abilities: ClassVar[str | None] = "words follow cite cheap"
    tools: ClassVar[Sequence[str | type[RetrievalTool]]] = ("keyword_search", ChunkRead)


class WithoutRead(ARAG):
    """Both searches, which return whole chunks."""

    name: ClassVar[str] = "arag-without-read"
    title: ClassVar[str] = "w/o Chunk Read"
    abilities: ClassVar[str | None] = "words meaning follow cite cheap"
    tools: ClassVar[Sequence[str | type[RetrievalTool]]] = ("keyword_search", "semantic_search")


class _NamingShell(Shell):
    names_lines: ClassVar[bool] = True


class ShellARAG(ARAG):
    """One tool: a sandboxed shell over the index."""

    name: ClassVar[str] = "arag-shell"
    title: ClassVar[str] = "A-RAG (Shell)"
    abilities: ClassVar[str | None] = "words meaning follow all tables cite cheap"
    tools: ClassVar[Sequence[str | type[RetrievalTool]]] = TOOL_SETS["shell"]

    names_lines: bool = False
    """Whether each line of a file begins with its chunk, as when the recordings were made."""

    def _choose_tools(self, presentation: Presentation) -> Sequence[str | type[RetrievalTool]]:
        return (_NamingShell,) if self.names_lines else super()._choose_tools(presentation)


class AllARAG(ARAG):
    """The paper's three tools, and grep, list_documents and query_tables."""

    name: ClassVar[str] = "arag-all"
    title: ClassVar[str] = "A-RAG (All tools)"
    abilities: ClassVar[str | None] = "words meaning follow all tables cite cheap"
    tools: ClassVar[Sequence[str | type[RetrievalTool]]] = TOOL_SETS["all"]


METHODS = (ARAG, NaiveARAG, WithoutKeyword, WithoutSemantic, WithoutRead, ShellARAG, AllARAG)
