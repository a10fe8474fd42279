"""MA-RAG: a plan whose steps are solved one by one, by roles of one model (Nguyen et al. 2025)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from arag.evaluation.methods.baselines.dense import DenseSettings, passage_work
from arag.evaluation.methods.baselines.each import Each, merge
from arag.evaluation.methods.baselines.outcome import (
    InputState,
    MethodOutput,
    MethodState,
    Stage,
    find_text,
    finish,
    retrieval_record,
)
from arag.evaluation.methods.baselines.passages import Passages
from arag.evaluation.methods.baselines.ratings import Rating
from arag.evaluation.methods.interface import Method, MethodGraph, Options
from arag.evaluation.store import open_store
from arag.evaluation.structured import StructuredModel, ask_text
from arag.graph.nodes import Body, Node
from arag.graph.prompts import DATA_RULE, as_data
from arag.models.asking import aask, ask
from arag.models.usage import ModelCall
from arag.retrieval.index import Index

_NAME = "ma-rag"
_MAX_STEPS = 8  # of a plan
_TEMPERATURE = 0.3  # of the planner, the step definer and the answers; 0 for the others

_PLAN = f"""You plan how to answer a question from a corpus of passages. A search is made for each step of your plan.

- A step asks for one fact, or puts together what earlier steps found.
- The steps are taken in order. A step may build on the answers of earlier ones: "the birthplace of the person of step \
1".
- Plan as few steps as will do, and no step that only repeats or checks another. A question that asks for one fact has \
one step.

Reply with one JSON object and nothing else:
{{"analysis": "in a sentence or two: what must be known to answer the question", "steps": ["each in one sentence"]}}

{DATA_RULE}"""

_DEFINE = f"""You prepare one step of a plan for somebody who knows neither the plan nor the earlier steps.

Write the step as a task that stands by itself: put the answers of earlier steps in place of what the step calls them. \
There are two types:
- question: a fact must be looked up in the corpus. The task is one precise question; it is also what is searched for.
- aggregate: the earlier answers are enough. The task states all the facts that it needs, then asks what follows from \
them.

Reply with one JSON object and nothing else:
{{"type": "question" or "aggregate", "task": "the task"}}

{DATA_RULE}"""

_EXTRACT = f"""You take notes from a passage for somebody who must answer a question and will see only your notes.

Note every fact in the passage that bears on the question, directly or as a step towards the answer, with its names, \
numbers and dates. Add nothing that the passage does not say, and do not answer the question. If nothing in it bears \
on the question, reply: Nothing on this.

{DATA_RULE}"""

_ANSWER_FORM = """Reply with one JSON object and nothing else:
{"analysis": "how the answer follows, in a sentence or two", "answer": "the answer, as briefly as the question allows",
"success": true or false: whether you found an answer, "rating": how sure you are of it, from 0 to 10}"""

_ANSWER = f"""You answer a question from notes that were taken from passages of a corpus. Each line has the id of a \
passage and what was noted.

Rely on the notes. Only if none of them bears on the question, answer from what you know, with a low rating.

{_ANSWER_FORM}

{DATA_RULE}"""

_AGGREGATE = f"""You answer a question from facts that are stated with it: you compare, count, combine or choose.

{_ANSWER_FORM}

{DATA_RULE}"""

_SUMMARISE = f"""You give the final answer to a question from the results of a plan. Each step has its task, its \
answer, and how sure that answer is, from 0 to 10. The plan may have ended early, at a step that failed.

Reply with one JSON object and nothing else:
{{"answer": "the answer, as briefly as the question allows", "score": how sure you are of it, from 0 to 10,
"solved": true or false: whether the steps settle the question}}

{DATA_RULE}"""

_RATING = "How sure the answer is, from 0 to 10."


class Plan(BaseModel):
    """A plan for a question."""

    analysis: str = Field(description="What must be known to answer the question.")
    steps: list[str] = Field(description="The steps, in order.")


class Task(BaseModel):
    """A step's task, which stands by itself."""

    type: Literal["question", "aggregate"] = Field(description="Whether a fact must be looked up.")
    task: str = Field(description="The task.")


class Answer(BaseModel):
    """The answer to a task."""

    analysis: str = Field(description="How the answer follows.")
    answer: str = Field(description="The answer.")
    success: bool = Field(description="Whether an answer was found.")
    rating: Rating = Field(description=_RATING)


class Summary(BaseModel):
    """The final answer."""

    answer: str = Field(description="The answer, as briefly as the question allows.")
    score: Rating = Field(description=_RATING)
    solved: bool = Field(description="Whether the steps settle the question.")


class StepResult(TypedDict):
    """A step of the plan, as far as it has been taken."""

    step: str
    """The step as planned."""
    type: str
    """`question` or `aggregate`."""
    task: str
    """The step as the definer wrote it."""
    chunk_ids: list[str]
    """The passages that were retrieved for it."""
    notes: list[str]
    """What was noted from each passage; empty where there was no usable reply."""
    answer: str
    success: bool
    rating: float


class Note(TypedDict):
    """What was noted from a passage."""

    text: str
    calls: list[ModelCall]


class MARAGState(MethodState, total=False):
    """The state of MA-RAG's graph."""

    plan: list[str]
    """The steps."""
    plan_was_cut: bool
    """Whether the model planned more steps than are taken."""
    done: list[StepResult]
    """The steps that were taken."""
    current: StepResult
    """The step that is being taken."""
    notes: Annotated[dict[str, Note], merge]
    """The notes for the current step, by chunk id."""


class MARAG:
    """The nodes of MA-RAG's graph.

    Args:
        index: The index.
        model: The model.
        top_k: How many passages are retrieved for a step.
        passages: Retrieves them.
    """

    def __init__(self, index: Index, model: BaseChatModel, top_k: int, passages: Passages) -> None:
        warm, cold = _at(_TEMPERATURE, model), _at(0, model)
        self._index = index
        self._top_k = top_k
        self._passages = passages
        self._planner = StructuredModel(warm, Plan, "plan")
        self._definer = StructuredModel(warm, Task, "define a step")
        self._answerer = StructuredModel(warm, Answer, "answer")
        self._note_taker = cold
        self._summariser = StructuredModel(cold, Summary, "summarise")

    def plan(self, state: MARAGState) -> Body:
        """Plan the steps."""
        question = find_text(state)
        asked = yield from self._planner.ask(_messages(_PLAN, f"Question: {question}\n\nEarlier attempts: none."))
        steps = [step.strip() for step in asked.value.steps if step.strip()] if asked.value else []
        return {
            "plan": steps[:_MAX_STEPS] or [question],
            "plan_was_cut": len(steps) > _MAX_STEPS,
            "done": [],
            "notes": None,
            "trace": [],
            "model_calls": asked.calls,
        }

    def define(self, state: MARAGState) -> Body:
        """Turn the next step into a task that stands by itself."""
        step = state["plan"][len(state["done"])]
        wanted = f"Prepare step {len(state['done']) + 1}:\n{as_data('step', step)}"
        shown = f"{_show_plan(state)}\n\n{_show_answers(state)}\n\n{wanted}"
        asked = yield from self._definer.ask(_messages(_DEFINE, shown))
        kind, task = (asked.value.type, asked.value.task.strip()) if asked.value else ("question", "")
        current = StepResult(
            step=step, type=kind, task=task or step, chunk_ids=[], notes=[], answer="", success=False, rating=0
        )
        return {"current": current, "notes": None, "model_calls": state["model_calls"] + asked.calls}

    def retrieve(self, state: MARAGState) -> dict[str, object]:
        """Find the passages nearest to the task."""
        began = time.perf_counter()
        current = state["current"]
        chunks = self._passages.chunks(self._passages.top(current["task"], self._top_k))
        record = retrieval_record(
            chunks,
            {"query": current["task"], "top_k": self._top_k},
            began=began,
            step=len(state["model_calls"]),
            known=[chunk_id for earlier in state["trace"] for chunk_id in earlier["chunk_ids"]],
        )
        return {"current": {**current, "chunk_ids": record["chunk_ids"]}, "trace": [*state["trace"], record]}

    def extract(self, state: MARAGState) -> Mapping[str, Body]:
        """Return what takes notes from the passages that have none yet."""
        current = state["current"]
        left = (chunk_id for chunk_id in current["chunk_ids"] if chunk_id not in state["notes"])
        return {chunk_id: self._note(current["task"], chunk_id) for chunk_id in left}

    def answer(self, state: MARAGState) -> Body:
        """Answer the task from the notes, or from the facts that it states."""
        current = state["current"]
        taken = [state["notes"][chunk_id] for chunk_id in current["chunk_ids"]]
        if current["type"] == "question":
            noted = zip(current["chunk_ids"], taken, strict=True)
            lines = "\n".join(f"{chunk_id}: [{note['text']}]" for chunk_id, note in noted if note["text"])
            shown = f"{as_data('question', current['task'])}\n\n{as_data('notes', lines or 'None.')}"
            messages = _messages(_ANSWER, shown)
        else:
            messages = _messages(_AGGREGATE, as_data("question", current["task"]))
        asked = yield from self._answerer.ask(messages)
        found = asked.value or Answer(analysis="", answer="", success=False, rating=0)
        result = StepResult(
            **{
                **current,
                "notes": [note["text"] for note in taken],
                "answer": found.answer.strip(),
                "success": found.success,
                "rating": found.rating,
            }
        )
        calls = [call for note in taken for call in note["calls"]] + asked.calls
        return {"done": [*state["done"], result], "model_calls": state["model_calls"] + calls}

    def summarise(self, state: MARAGState) -> Body:
        """Give the final answer."""
        shown = f"Question: {find_text(state)}\n\n{_show_plan(state)}\n\n{_show_results(state)}"
        asked = yield from self._summariser.ask(_messages(_SUMMARISE, shown))
        answer = asked.value.answer.strip() if asked.value else ""
        cut = state["plan_was_cut"] and state["done"][-1]["success"]
        return finish(
            self._index,
            answer or state["done"][-1]["answer"],
            calls=state["model_calls"] + asked.calls,
            trace=state["trace"],
            stages=_stages(state, asked.value),
            stop_reason="max_steps" if cut else "answered",
        )

    def _note(self, task: str, chunk_id: str) -> Body:
        chunk = self._index.get(chunk_id)
        shown = f"{as_data('question', task)}\n\n{as_data('passage', chunk.text if chunk else '')}"
        asked = yield from ask_text(self._note_taker, _messages(_EXTRACT, shown))
        return Note(text=asked.value or "", calls=asked.calls)


def _after_definition(state: MARAGState) -> str:
    return "retrieve" if state["current"]["type"] == "question" else "answer"


def _after_notes(state: MARAGState) -> str:
    return "extract" if set(state["current"]["chunk_ids"]) - set(state["notes"]) else "answer"


def _after_answer(state: MARAGState) -> str:
    ended = len(state["done"]) == len(state["plan"]) or not state["done"][-1]["success"]
    return "summarise" if ended else "define"


def _at(temperature: float, model: BaseChatModel) -> BaseChatModel:
    """Return a model at another temperature, if the user has set one: providers refuse it for many models."""
    if getattr(model, "temperature", None) is None:
        return model
    return model.model_copy(update={"temperature": temperature})


def _messages(instruction: str, shown: str) -> list[BaseMessage]:
    return [SystemMessage(instruction), HumanMessage(shown)]


def _show_plan(state: MARAGState) -> str:
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(state["plan"], start=1))
    return f"Plan:\n{as_data('plan', steps)}"


def _show_answers(state: MARAGState) -> str:
    if not state["done"]:
        return "No step has been taken yet."
    lines = [
        f"{number}. {result['step']}\nAnswer: {result['answer'] or 'none'}"
        for number, result in enumerate(state["done"], start=1)
    ]
    answers = "\n".join(lines)
    return f"Steps taken:\n{as_data('answers', answers)}"


def _show_results(state: MARAGState) -> str:
    lines = [
        f"{number}. {result['step']}\nTask: {result['task']}\n"
        f"{'Answer' if result['success'] else 'Failed, with the answer'}: {result['answer'] or 'none'}\n"
        f"Rating: {result['rating']:g}"
        for number, result in enumerate(state["done"], start=1)
    ]
    return as_data("results", "\n".join(lines))


def _stages(state: MARAGState, summary: Summary | None) -> list[Stage]:
    stages = [Stage(title="Plan", lines=state["plan"])]
    for number, result in enumerate(state["done"], start=1):
        noted = zip(result["chunk_ids"], result["notes"], strict=True)
        lines = [
            f"{result['type'].capitalize()}: {result['task']}",
            *(f"Note from [{chunk_id}]: {note or 'none'}" for chunk_id, note in noted),
            f"Answer: {result['answer'] or 'none'}",
            f"Rating: {result['rating']:g} of 10{'' if result['success'] else ', not found'}",
        ]
        stages.append(Stage(title=f"Step {number}", lines=lines))
    if summary is not None:
        told = f"Rating: {summary.score:g} of 10{'' if summary.solved else ', not solved'}"
        stages.append(Stage(title="Summary", lines=[told]))
    return stages


def _make(index: Index, model: BaseChatModel, options: Options) -> MethodGraph:
    settings = options.of(_NAME, DenseSettings)
    nodes = MARAG(index, model, options.top_k, Passages(index, open_store(index), settings.passages))
    builder = StateGraph(MARAGState, input_schema=InputState, output_schema=MethodOutput)
    builder.add_node("plan", Node(nodes.plan, ask, aask))
    builder.add_node("define", Node(nodes.define, ask, aask))
    builder.add_node("retrieve", nodes.retrieve)
    builder.add_node("extract", Each(nodes.extract, "notes"))
    builder.add_node("answer", Node(nodes.answer, ask, aask))
    builder.add_node("summarise", Node(nodes.summarise, ask, aask))
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "define")
    builder.add_conditional_edges("define", _after_definition, ["retrieve", "answer"])
    builder.add_edge("retrieve", "extract")
    builder.add_conditional_edges("extract", _after_notes, ["extract", "answer"])
    builder.add_conditional_edges("answer", _after_answer, ["define", "summarise"])
    builder.add_edge("summarise", END)
    return builder.compile()


METHODS = (
    Method(
        _NAME,
        "MA-RAG",
        "a plan, and for each step a search, notes from each passage and an answer",
        _make,
        passage_work(_NAME, DenseSettings),
        settings=DenseSettings,
        language_model=True,
        simplified="Prompts of our own; plans of at most 8 steps. The published temperatures (0.3 to plan and to "
        "answer, otherwise 0) are used only if the run sets a temperature.",
        autonomous=None,
        iterative=True,
    ),
)
