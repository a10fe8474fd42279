"""Runs of methods over questions: many at once, resumable after a kill at any moment."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from arag.evaluation.datasets import Question
from arag.evaluation.judge import Judge
from arag.evaluation.methods import Method, Options
from arag.evaluation.methods.interface import MethodGraph
from arag.evaluation.records import Record, RecordFile, answered, failed
from arag.graph.models import is_provider_error
from arag.retrieval.errors import ARAGError, InputError
from arag.retrieval.files import written_whole
from arag.retrieval.index import Index

RUN_FILE = "run.json"
CONCURRENCY = 8
_RATE_LIMIT = 429
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 60.0  # seconds
_PATIENCE = 8  # pauses in a row before a question fails


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run is made of; a run that is resumed has the same.

    Attributes:
        questions: The file of the questions.
        index: The index's folder.
        model: The model.
        judge: The judge; None for none.
        model_options: Options of the model's class.
        options: Settings that methods share.
    """

    questions: str
    index: str
    model: str
    judge: str | None = None
    model_options: Mapping[str, Any] = field(default_factory=dict)
    options: Options = field(default_factory=Options)


def open_run(folder: Path, plan: Plan) -> None:
    """Make a run's folder, or check that the one that is there is of the same plan.

    A judge may come later: what was answered before is judged then.

    Raises:
        InputError: The folder holds a run of another plan.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / RUN_FILE
    wanted = asdict(plan)
    if file.exists():
        known = load_plan(folder)
        differing = [name for name, value in wanted.items() if name != "judge" and asdict(known)[name] != value]
        if differing:
            told = "; ".join(f"{name} was {asdict(known)[name]!r}, now {wanted[name]!r}" for name in differing)
            raise InputError(f"{folder} holds another run ({told}): give another folder with --out")
        wanted["judge"] = plan.judge or known.judge
    with written_whole(file) as out:
        out.write((json.dumps(wanted, indent=2, ensure_ascii=False) + "\n").encode())


def load_plan(folder: Path) -> Plan:
    """Return the plan of a run.

    Raises:
        InputError: There is no run in the folder, or its file is damaged.
    """
    file = folder / RUN_FILE
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        return Plan(**(values | {"options": Options(**values["options"])}))
    except FileNotFoundError:
        raise InputError(f"there is no run in {folder}: {RUN_FILE} is missing; `arag eval run` makes one") from None
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{file} is damaged: {error}") from error


def record_file(folder: Path, method: str) -> RecordFile:
    """Return the file of one method's records."""
    return RecordFile(folder / f"{method}.jsonl")


def load_records(folder: Path) -> dict[str, dict[str, Record]]:
    """Return the records of a run, by method and question id."""
    return {file.stem: RecordFile(file).read() for file in sorted(folder.glob("*.jsonl"))}


@dataclass
class Runner:
    """Runs one method over questions.

    Args:
        method: The method.
        index: The index.
        model: The model.
        options: Settings that methods share.
        judge: The judge, where there is one.
        concurrency: How many questions at once.
        max_cost: US dollars after which no more questions are begun; what is under way is finished.
        on_record: Told of every record that is written.
    """

    method: Method
    index: Index
    model: BaseChatModel
    options: Options = field(default_factory=Options)
    judge: Judge | None = None
    concurrency: int = CONCURRENCY
    max_cost: float | None = None
    on_record: Callable[[Record], None] = lambda _: None

    def run(self, questions: Sequence[Question], file: RecordFile) -> None:
        """Answer the questions that have no answer yet, and judge what is not judged yet.

        Args:
            questions: The questions.
            file: Where the records are, and go.

        Raises:
            InputError: A setting is out of bounds, or costs are to be limited and cannot be known.
        """
        if self.concurrency < 1:
            raise InputError(f"the concurrency is {self.concurrency}: it must be at least 1")
        asyncio.run(self.arun(questions, file))

    async def arun(self, questions: Sequence[Question], file: RecordFile) -> None:
        """Do the same in an event loop that is running."""
        file.mend()
        records = file.read()
        self._spent = sum(map(_cost, records.values()))
        self._pause = _Pause()
        graph = self.method.make(self.index, self.model, self.options)
        work = iter([question for question in questions if self._is_open(records.get(question.id))])

        async def worker() -> None:
            for question in work:
                if self.max_cost is not None and self._spent >= self.max_cost:
                    return
                record = records.get(question.id)
                if record is None or record["error"] is not None:
                    record = await self._answer(graph, question)
                if self.judge is not None and record["error"] is None:
                    record = {**record, "judgement": await self._judged(self.judge, record)}
                if self.max_cost is not None and record["error"] is None and record["cost"] is None:
                    raise InputError("the cost of a model call is not known: there is no --max-cost for this model")
                self._spent += _cost(record)
                await asyncio.to_thread(file.append, record)
                self.on_record(record)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.concurrency, len(questions))):
                    group.create_task(worker())
        except ExceptionGroup as several:
            raise several.exceptions[0] from None

    def _is_open(self, record: Record | None) -> bool:
        if record is None or record["error"] is not None:
            return True
        judgement = record["judgement"]
        return self.judge is not None and (judgement is None or judgement["correct"] is None)

    async def _answer(self, graph: MethodGraph, question: Question) -> Record:
        began = time.perf_counter()
        try:
            state = await self._pause.patiently(lambda: graph.ainvoke({"messages": [HumanMessage(question.text)]}))
        except Exception as error:
            if not (isinstance(error, ARAGError) or is_provider_error(error)):
                raise  # a bug: the records stay, and the run can be resumed
            return failed(question, f"{type(error).__name__}: {error}", time.perf_counter() - began)
        return await asyncio.to_thread(answered, question, state, time.perf_counter() - began, self.index)

    async def _judged(self, judge: Judge, record: Record) -> Any:
        return await self._pause.patiently(
            lambda: judge.judge(record["question"], record["answer"], record["prediction"])
        )


class _Pause:
    """Lets everybody wait when a provider says that it is asked too much."""

    def __init__(self) -> None:
        self._until = 0.0

    async def patiently(self, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Ask, and ask again after a pause where a rate limit was met."""
        for attempt in range(_PATIENCE + 1):
            while (left := self._until - time.monotonic()) > 0:  # noqa: ASYNC110 - others may move the end meanwhile
                await asyncio.sleep(left)
            try:
                return await ask()
            except Exception as error:
                if getattr(error, "status_code", None) != _RATE_LIMIT or attempt == _PATIENCE:
                    raise
                pause = _asked_for(error) or min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE)
                self._until = max(self._until, time.monotonic() + pause)
        raise AssertionError  # the last attempt returns or raises


def _asked_for(error: Exception) -> float | None:
    """Return the seconds that a provider asks to wait."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    try:
        return min(float(headers["retry-after"]), _LONGEST_PAUSE)
    except (KeyError, ValueError):
        return None


def _cost(record: Record) -> float:
    judgement = record["judgement"]
    return (record["cost"] or 0.0) + ((judgement and judgement["cost"]) or 0.0)
