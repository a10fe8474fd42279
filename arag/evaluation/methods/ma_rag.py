"""MA-RAG: a plan whose steps are solved one by one, by roles of one model (Nguyen et al. 2025)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import BaseModel

from arag.evaluation.method import Answer, Method, Session
from arag.evaluation.methods.shared import Passages, Rating, Text, Texts, list_numbered
from arag.graph.prompts import as_data

_MAX_STEPS = 8  # of a plan; it limits the cost, since each step takes a search and several calls

_PLAN = """You plan how to answer a question from a corpus of passages. A search is made for each step of your plan.

- A step asks for one fact, or puts together what earlier steps found.
- The steps are taken in order. A step may build on the answers of earlier ones: "the birthplace of the person of step \
1".
- Plan as few steps as will do, and no step that only repeats or checks another. A question that asks for one fact has \
one step.

Reply with one JSON object and nothing else:
{"analysis": "in a sentence or two: what must be known to answer the question", "steps": ["each in one sentence"]}"""

_DEFINE = """You prepare one step of a plan for somebody who knows neither the plan nor the earlier steps.

Write the step as a task that stands by itself: put the answers of earlier steps in place of what the step calls them. \
There are two types:
- question: a fact must be looked up in the corpus. The task is one precise question; it is also what is searched for.
- aggregate: the earlier answers are enough. The task states all the facts that it needs, then asks what follows from \
them.

Reply with one JSON object and nothing else:
{"type": "question" or "aggregate", "task": "the task"}"""

_EXTRACT = """You take notes from a passage for somebody who must answer a question and will see only your notes.

Note every fact in the passage that bears on the question, directly or as a step towards the answer, with its names, \
numbers and dates. Add nothing that the passage does not say, and do not answer the question. If nothing in it bears \
on the question, reply: Nothing on this."""

_ANSWER_FORM = """Reply with one JSON object and nothing else:
{"analysis": "how the answer follows, in a sentence or two", "answer": "the answer, as briefly as the question allows",
"success": true or false: whether you found an answer, "rating": how sure you are of it, from 0 to 10}"""

_ANSWER = f"""You answer a question from notes that were taken from passages of a corpus. Each line has the id of a \
passage and what was noted.

Rely on the notes. Only if none of them bears on the question, answer from what you know, with a low rating.

{_ANSWER_FORM}"""

_AGGREGATE = f"""You answer a question from facts that are stated with it: you compare, count, combine or choose.

{_ANSWER_FORM}"""

_SUMMARISE = """You give the final answer to a question from the results of a plan. Each step has its task, its \
answer, and how sure that answer is, from 0 to 10. The plan may have ended early, at a step that failed.

Reply with one JSON object and nothing else:
{"answer": "the answer, as briefly as the question allows", "score": how sure you are of it, from 0 to 10,
"solved": true or false: whether the steps settle the question}"""


class _Plan(BaseModel):
    steps: Texts


class _Task(BaseModel):
    type: Literal["question", "aggregate"]
    task: str


class _Solution(BaseModel):
    answer: Text
    success: bool
    rating: Rating


class _Summary(BaseModel):
    answer: Text
    score: Rating
    solved: bool


@dataclass(frozen=True)
class _Note:
    """The facts that the model noted from a chunk."""

    chunk_id: str
    text: str


@dataclass(frozen=True)
class _Step:
    """A step of the plan that was taken."""

    planned: str
    task: str
    solution: _Solution

    @property
    def answer(self) -> str:
        return self.solution.answer or "none"


class MARAG(Method):
    """A plan, and for each step a search, notes from each passage and an answer."""

    name: ClassVar[str] = "ma-rag"
    title: ClassVar[str] = "MA-RAG"
    abilities: ClassVar[str | None] = "meaning follow cheap"
    needs_model: ClassVar[bool] = True
    differs: ClassVar[str] = (
        "Prompts of our own; plans of at most 8 steps. The published temperatures (0.3 to plan and to answer, "
        "otherwise 0) are not used, because many models refuse them."
    )
    autonomous: ClassVar[bool | None] = None
    iterative: ClassVar[bool | None] = True

    def prepare(self, session: Session) -> Passages:
        """Embed the chunks."""
        return session.context.passages()

    def answer(self, question: str, session: Session, prepared: Passages) -> Answer:
        """Plan, take the steps until one fails, and combine their answers (planner and step definer)."""
        plan = session.ask(_PLAN, f"Question: {question}\n\nEarlier attempts: none.", _Plan)
        planned = plan.steps if plan else []
        steps = planned[:_MAX_STEPS] or [question]
        session.note("Plan", steps)
        shown_plan = "Plan:\n" + as_data("plan", list_numbered(steps))

        taken: list[_Step] = []
        for number, step in enumerate(steps, 1):
            task = self._define(number, step, shown_plan, taken, session)
            solution = self._solve(number, task, session, prepared)
            taken.append(_Step(step, task.task, solution))
            if not solution.success:
                break

        last = taken[-1].solution
        text = self._summarise(question, shown_plan, taken, session) or last.answer
        is_cut = last.success and len(planned) > _MAX_STEPS
        return Answer(text, stop_reason="max_steps" if is_cut else "answered")

    def _define(self, number: int, step: str, shown_plan: str, taken: Sequence[_Step], session: Session) -> _Task:
        """Turn a step of the plan into a task that can be understood alone (step definer)."""
        earlier = "No step has been taken yet."
        if taken:
            answers = list_numbered(f"{each.planned}\nAnswer: {each.answer}" for each in taken)
            earlier = "Steps taken:\n" + as_data("answers", answers)
        shown_step = f"Prepare step {number}:\n{as_data('step', step)}"
        task = session.ask(_DEFINE, f"{shown_plan}\n\n{earlier}\n\n{shown_step}", _Task)
        if task is None or not task.task.strip():
            return _Task(type="question", task=step)
        return task

    def _solve(self, number: int, task: _Task, session: Session, passages: Passages) -> _Solution:
        """Answer a task from notes on the nearest passages, or from the facts in the task (extractor and QA)."""
        lines = [f"{task.type.capitalize()}: {task.task}"]
        question = as_data("question", task.task)
        if task.type == "question":
            shown_notes: list[str] = []
            for note in self._take_notes(task.task, session, passages):
                lines.append(f"Note from [{note.chunk_id}]: {note.text}")
                shown_notes.append(f"{note.chunk_id}: [{note.text}]")
            notes = as_data("notes", "\n".join(shown_notes) or "None.")
            solution = session.ask(_ANSWER, f"{question}\n\n{notes}", _Solution)
        else:
            solution = session.ask(_AGGREGATE, question, _Solution)
        if solution is None:
            solution = _Solution(answer="", success=False, rating=0)

        lines.append(f"Answer: {solution.answer or 'none'}")
        lines.append(_show_rating(solution.rating, "" if solution.success else "not found"))
        session.note(f"Step {number}", lines)
        return solution

    def _take_notes(self, task: str, session: Session, passages: Passages) -> list[_Note]:
        """Let the model note the facts in each of the nearest passages (extractor)."""
        chunks = passages.top(task, session.context.top_k)
        session.retrieved(chunks, task)
        question = as_data("question", task)
        prompts = [f"{question}\n\n{as_data('passage', chunk.text)}" for chunk in chunks]
        texts = session.ask_all(_EXTRACT, prompts)
        return [_Note(chunk.id, text) for chunk, text in zip(chunks, texts, strict=True) if text]

    def _summarise(self, question: str, shown_plan: str, taken: Iterable[_Step], session: Session) -> str:
        """Return the final answer from the results of all steps; empty if there is none."""
        results: list[str] = []
        for step in taken:
            outcome = "Answer" if step.solution.success else "Failed, with the answer"
            result = [
                step.planned,
                f"Task: {step.task}",
                f"{outcome}: {step.answer}",
                f"Rating: {step.solution.rating:g}",
            ]
            results.append("\n".join(result))
        shown_results = as_data("results", list_numbered(results))
        summary = session.ask(_SUMMARISE, f"Question: {question}\n\n{shown_plan}\n\n{shown_results}", _Summary)
        if summary is None:
            return ""
        session.note("Summary", [_show_rating(summary.score, "" if summary.solved else "not solved")])
        return summary.answer


def _show_rating(rating: float, remark: str) -> str:
    shown = f"Rating: {rating:g} of 10"
    return f"{shown}, {remark}" if remark else shown


METHODS = (MARAG,)
