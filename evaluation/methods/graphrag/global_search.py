"""Global search: a call for each batch of reports, and one that answers from the points that these found."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field, FiniteFloat

from arag.evaluation.methods.baselines.each import Each, merge
from arag.evaluation.methods.baselines.outcome import (
    MethodOutput,
    MethodState,
    Stage,
    find_text,
    finish,
    retrieval_record,
)
from arag.evaluation.methods.graphrag.global_batches import Point, batch_text, choose_points, make_batches, point_text
from arag.evaluation.methods.graphrag.knowledge import Report
from arag.evaluation.methods.graphrag.preparing import Knowledge
from arag.evaluation.methods.graphrag.stages import graph_record, graph_stage, report_line
from arag.evaluation.methods.interface import MethodGraph
from arag.evaluation.structured import StructuredModel, ask_text
from arag.graph.nodes import Body, Node
from arag.graph.prompts import DATA_RULE, as_data
from arag.graph.state import InputState
from arag.models.asking import aask, ask
from arag.models.usage import ModelCall
from arag.retrieval.index import Index
from arag.retrieval.tokens import count_tokens

NO_DATA = "The corpus holds nothing that answers this question."

_MAP = f"""You are given one batch of reports on a corpus, and a question. List the points in these reports that help to
answer the question. Each is a statement that can be understood alone, with a score from 0 to 100 for how much it helps;
0 is for what says nothing about the question. Use nothing but the reports. Reply with one JSON object and nothing else:
{{"points": [{{"description": "...", "score": 50}}]}}
If nothing in the reports helps, the list is empty.

{DATA_RULE}"""

_REDUCE = """You answer a question from points that were found in reports on a corpus, the most helpful first. Leave out
what does not bear on the question, and put the rest together. Use nothing but the points. If they do not hold the
answer, say so and give the one that they support best.

Form of the answer: {response}.

{rule}"""


class FoundPoint(BaseModel):
    """A point that helps to answer the question."""

    description: str = Field(description="A statement that can be understood alone.")
    score: FiniteFloat = Field(description="How much it helps, from 0 to 100.")


class FoundPoints(BaseModel):
    """The points in a batch of reports that help to answer the question."""

    points: list[FoundPoint] = Field(description="The points; empty if nothing helps.")


class GlobalState(MethodState, total=False):
    """The state of global search."""

    found: Annotated[dict[str, Any], merge]
    """What was found in each batch, by its number: `points` and `calls`."""


class GlobalSearch:
    """The nodes of global search.

    Args:
        index: The index.
        model: The model.
        knowledge: What was read of the corpus.
        level: The deepest level of communities whose reports are used.
        max_tokens: Tokens of a batch of reports, and of all points.
        response: The form of the answer.
    """

    def __init__(
        self, index: Index, model: BaseChatModel, knowledge: Knowledge, *, level: int, max_tokens: int, response: str
    ) -> None:
        self._index = index
        self._model = model
        self._knowledge = knowledge
        self._level = level
        self._max_tokens = max_tokens
        self._system = _REDUCE.format(response=response, rule=DATA_RULE)
        self._finder = StructuredModel(model, FoundPoints, "find points in reports")

    def collect(self, state: GlobalState) -> dict[str, Any]:
        """Divide the reports into batches."""
        began, question = time.perf_counter(), find_text(state)
        graph, batches = self._knowledge.graph, self._batches
        lines = [f"{number}: {len(batch)} reports, first {report_line(batch[0])}" for number, batch in batches.items()]
        record = retrieval_record([], {"query": question}, began=began)
        tokens = sum(count_tokens(batch_text(report)) for batch in batches.values() for report in batch)
        return {
            "trace": [record, graph_record(question, tokens)],
            "stages": [graph_stage(graph), Stage(title="Batches", lines=lines)],
            "found": None,
        }

    def bodies(self, state: GlobalState) -> Mapping[str, Body]:
        """Return what finds points in the batches that were not read yet."""
        question = find_text(state)
        return {
            number: self._find(question, batch)
            for number, batch in self._batches.items()
            if number not in state.get("found", {})
        }

    def _find(self, question: str, batch: Sequence[Report]) -> Body:
        reports = "".join(map(batch_text, batch)).rstrip()
        prompt = f"{question}\n\n{as_data('reports', reports)}"
        asked = yield from self._finder.ask([SystemMessage(_MAP), HumanMessage(prompt)])
        points = asked.value.points if asked.value else []
        return {"points": [point.model_dump() for point in points], "calls": asked.calls, "why": asked.why}

    def reduce(self, state: Mapping[str, Any]) -> Body:
        """Answer from the points, best first; without any, there is no call."""
        read = [(number, state["found"][number]) for number in self._batches]
        calls: list[ModelCall] = [call for _, found in read for call in found["calls"]]
        points = [
            Point(batch=int(number), text=point["description"], score=point["score"])
            for number, found in read
            for point in found["points"]
        ]
        chosen = choose_points(points, self._max_tokens)
        if chosen:
            listed = "".join(map(point_text, chosen)).rstrip()
            prompt = f"{find_text(state)}\n\n{as_data('points', listed)}"
            asked = yield from ask_text(self._model, [SystemMessage(self._system), HumanMessage(prompt)])
            answer, calls = asked.value or "", [*calls, *asked.calls]
        else:
            answer = NO_DATA
        unread = [f"batch {number}: {found['why']}" for number, found in read if found["why"]]
        lines = [*(point_text(point).rstrip() for point in chosen), *unread]
        stages = [*state["stages"], Stage(title="Points", lines=lines)]
        return finish(self._index, answer, calls=calls, trace=state["trace"], stages=stages)

    @cached_property
    def _batches(self) -> dict[str, list[Report]]:
        """The batches, which are the same for every question, by their numbers from 1."""
        batches = make_batches(self._knowledge.graph, self._level, self._max_tokens)
        return {str(number): batch for number, batch in enumerate(batches, start=1)}

    def _pending(self, state: GlobalState) -> str:
        return "reduce" if state["found"].keys() >= self._batches.keys() else "find"

    def compile(self) -> MethodGraph:
        """Return the graph."""
        builder = StateGraph(GlobalState, input_schema=InputState, output_schema=MethodOutput)
        builder.add_node("collect", self.collect)
        builder.add_node("find", Each(self.bodies, "found"))
        builder.add_node("reduce", Node(self.reduce, ask, aask))
        builder.add_edge(START, "collect")
        builder.add_conditional_edges("collect", self._pending, ["find", "reduce"])
        builder.add_conditional_edges("find", self._pending, ["find", "reduce"])
        builder.add_edge("reduce", END)
        return builder.compile()
