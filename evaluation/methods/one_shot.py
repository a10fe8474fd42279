"""Methods that ask the model once: without the corpus, or with the chunks nearest to the question."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph

from arag.evaluation.methods.interface import Method, MethodGraph, Options
from arag.graph.citations import parse_citations
from arag.graph.messages import find_question
from arag.graph.nodes import Body, Node
from arag.graph.prompts import forced_prompt, forced_question
from arag.graph.state import InputState, OutputState, State, ToolRecord
from arag.models.asking import aask, ask
from arag.models.replies import mend_reply
from arag.models.usage import model_call, total
from arag.retrieval.index import Index
from arag.retrieval.types import Chunk

_DIRECT = "Answer the question from what you know: first the answer itself, as briefly as the question allows."


class OneShot:
    """The nodes of a method that asks the model once.

    Args:
        index: The index.
        model: The model.
        top_k: How many chunks are in the prompt; 0 for none.
    """

    def __init__(self, index: Index, model: BaseChatModel, top_k: int) -> None:
        self._index = index
        self._model = model
        self._top_k = top_k

    def retrieve(self, state: State) -> dict[str, object]:
        """Find the chunks with the sentences nearest to the question."""
        began = time.perf_counter()
        question = _question(state)
        ids = [hit.chunk_id for hit in self._index.semantic_search(question, self._top_k).hits]
        chunks = self._chunks(ids)
        record = ToolRecord(
            step=1,
            tool="retrieve",
            arguments={"query": question, "top_k": self._top_k},
            chunk_ids=ids,
            new_chunks=ids,
            retrieved_tokens=sum(chunk.tokens for chunk in chunks),
            evidence_tokens=sum(chunk.tokens for chunk in chunks),
            seconds=time.perf_counter() - began,
            error=None,
        )
        return {"trace": [record], "read_chunks": ids}

    def answer(self, state: State) -> Body:
        """Ask the model."""
        reply, seconds = yield self._model, self._prompt(state)
        return self._finish(state, mend_reply(reply, state["messages"]), seconds)

    def _prompt(self, state: State) -> list[AnyMessage]:
        question = _question(state)
        if not self._top_k:
            return [SystemMessage(_DIRECT), HumanMessage(question)]
        chunks = self._chunks(state["read_chunks"])
        evidence = "\n\n".join(f"[{chunk.id}]\n{chunk.text}" for chunk in chunks)
        return [SystemMessage(forced_prompt()), HumanMessage(forced_question(question, evidence))]

    def _finish(self, state: State, reply: AIMessage, seconds: float) -> dict[str, object]:
        answer = reply.text.strip()
        calls = [model_call(reply, seconds, step=1)]
        read = state.get("read_chunks", [])
        return {
            "messages": [reply] if answer else [],
            "answer": answer,
            "citations": parse_citations(answer, self._index, read, read),
            "stop_reason": "answered",
            "steps": 1,
            "trace": state.get("trace", []),
            "model_calls": calls,
            "usage": total(calls),
        }

    def _chunks(self, ids: Sequence[str]) -> list[Chunk]:
        found = {chunk.id: chunk for chunk in self._index.read(ids).chunks} if ids else {}
        return [found[chunk_id] for chunk_id in ids if chunk_id in found]


def _question(state: State) -> str:
    return state["messages"][find_question(state["messages"])].text


def _make(retrieves: bool, index: Index, model: BaseChatModel, options: Options) -> MethodGraph:
    nodes = OneShot(index, model, options.top_k if retrieves else 0)
    builder = StateGraph(State, input_schema=InputState, output_schema=OutputState)
    builder.add_node("answer", Node(nodes.answer, ask, aask))
    if retrieves:
        builder.add_node("retrieve", nodes.retrieve)
        builder.add_edge(START, "retrieve")
        builder.add_edge("retrieve", "answer")
    else:
        builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile()


METHODS = (
    Method(
        "naive-rag",
        "Naive RAG",
        "one call; the prompt holds the chunks with the sentences nearest to the question",
        partial(_make, True),
    ),
    Method("direct", "Direct Answer", "one call, without the corpus", partial(_make, False), uses_vectors=False),
)
