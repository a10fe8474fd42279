"""Local search: one call, with what the graph and the corpus hold about the entities nearest to the question."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph

from arag.evaluation.methods.baselines.outcome import (
    MethodOutput,
    MethodState,
    Stage,
    find_text,
    finish,
    retrieval_record,
)
from arag.evaluation.methods.graphrag.local_context import Budgets, LocalContext, build_context
from arag.evaluation.methods.graphrag.preparing import Knowledge
from arag.evaluation.methods.graphrag.stages import graph_record, graph_stage, report_line
from arag.evaluation.methods.interface import MethodGraph
from arag.evaluation.structured import ask_text
from arag.graph.nodes import Body, Node
from arag.graph.prompts import DATA_RULE, EXAMPLE_ID, as_data
from arag.graph.state import InputState
from arag.models.asking import aask, ask
from arag.retrieval.index import Index
from arag.retrieval.tokens import count_tokens

_LOCAL = """You answer a question from data about a corpus: reports on groups of entities, tables of entities and of the
relationships between them, and sources, which are passages of the corpus with their ids in brackets. Put together what
the parts say; where they differ, the sources are right. If the data does not hold the answer, say so and give the one
that it supports best.

Form of the answer: {response}. After it, name the sources that it rests on, each in square brackets, like [{example}].

{rule}"""


class LocalState(MethodState, total=False):
    """The state of local search."""

    context: str
    """What the model is shown."""


class LocalSearch:
    """The nodes of local search.

    Args:
        index: The index.
        model: The model.
        knowledge: What was read of the corpus.
        level: The deepest level of communities whose reports are used.
        entities: How many entities are selected.
        budgets: Tokens of the context's parts.
        response: The form of the answer.
        top_k: How many chunks are in the context where there are no entities.
    """

    def __init__(
        self,
        index: Index,
        model: BaseChatModel,
        knowledge: Knowledge,
        *,
        level: int,
        entities: int,
        budgets: Budgets,
        response: str,
        top_k: int,
    ) -> None:
        self._index = index
        self._model = model
        self._knowledge = knowledge
        self._level = level
        self._entities = entities
        self._budgets = budgets
        self._system = _LOCAL.format(response=response, example=EXAMPLE_ID, rule=DATA_RULE)
        self._top_k = top_k

    def retrieve(self, state: LocalState) -> dict[str, Any]:
        """Build the context."""
        began, question = time.perf_counter(), find_text(state)
        graph = self._knowledge.graph
        selected = self._knowledge.nearest(question, self._entities)
        if selected:
            context = build_context(graph, selected, self._index.get, self._level, self._budgets)
        else:  # nothing was extracted
            nearest = self._knowledge.passages.top(question, self._top_k)
            context = LocalContext([], [], [], self._knowledge.passages.chunks(nearest))
        stages = [
            graph_stage(graph),
            Stage(title="Entities selected", lines=[f"{entity.title} ({entity.type})" for entity in selected]),
            Stage(title="Communities used", lines=[report_line(report) for report in context.reports]),
            Stage(
                title="Relationships",
                lines=[f"{each.source} -> {each.target}: {each.description}" for each in context.relationships],
            ),
            Stage(title="Chunks", lines=[chunk.id for chunk in context.chunks]),
        ]
        arguments = {"query": question, "entities": len(selected)}
        record = retrieval_record(context.chunks, arguments, began=began)
        return {
            "context": context.text,
            "trace": [record, graph_record(question, count_tokens(context.tables))],
            "stages": stages,
        }

    def answer(self, state: Mapping[str, Any]) -> Body:
        """Ask the model."""
        prompt = f"{find_text(state)}\n\n{as_data('data', state['context'] or 'Nothing.')}"
        asked = yield from ask_text(self._model, [SystemMessage(self._system), HumanMessage(prompt)])
        return finish(self._index, asked.value or "", calls=asked.calls, trace=state["trace"], stages=state["stages"])

    def compile(self) -> MethodGraph:
        """Return the graph."""
        builder = StateGraph(LocalState, input_schema=InputState, output_schema=MethodOutput)
        builder.add_node("retrieve", self.retrieve)
        builder.add_node("answer", Node(self.answer, ask, aask))
        builder.add_edge(START, "retrieve")
        builder.add_edge("retrieve", "answer")
        builder.add_edge("answer", END)
        return builder.compile()
