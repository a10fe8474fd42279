"""Runs of methods over questions: many at once, resumable after a kill at any moment."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from arag.evaluation.datasets import Question
from arag.evaluation.event_loop import run
from arag.evaluation.judge import Judge
from arag.evaluation.methods import Method, Options
from arag.evaluation.records import Judgement, Record, RecordFile, answered, failed
from arag.evaluation.structured import is_failed_call
from arag.retrieval.errors import ARAGError, InputError
from arag.retrieval.files import written_whole
from arag.retrieval.index import Index

RUN_FILE = "run.json"
CONCURRENCY = 8
_TOO_MUCH = frozenset({429, 529})  # 529 is Anthropic's, when it is overloaded
_NO_MONEY = "insufficient_quota"  # OpenAI's code of a 429 that no waiting helps
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
        InputError: The folder holds records of another plan.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / RUN_FILE
    wanted = asdict(plan)
    if file.exists():
        known = load_plan(folder)
        differing = [name for name, value in wanted.items() if not _agree(name, asdict(known)[name], value)]
        if differing and any(folder.glob("*.jsonl")):  # without records nothing has come of the other plan
            told = "; ".join(f"{name} was {asdict(known)[name]!r}, now {wanted[name]!r}" for name in differing)
            raise InputError(f"{folder} holds another run ({told}): give another folder with --out")
        wanted["judge"] = plan.judge or known.judge
    with written_whole(file) as out:
        out.write((json.dumps(wanted, indent=2, ensure_ascii=False) + "\n").encode())


def _agree(name: str, known: Any, wanted: Any) -> bool:
    if name in {"questions", "index"}:  # the same file, however it is called
        return Path(known).absolute() == Path(wanted).absolute()
    return known == wanted or (name == "judge" and None in (known, wanted))


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


def spent(records: Iterable[Record]) -> float:
    """Return the US dollars that records tell of, as far as prices are known."""
    return sum(map(_cost, records))


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
        run(self.arun(questions, file))

    async def arun(self, questions: Sequence[Question], file: RecordFile) -> None:
        """Do the same in an event loop that is running."""
        with file.locked():
            file.mend()
            records = file.read()
            self._check(questions, records)
            self._spent = spent(records.values())
            self._pause = _Pause()
            self._graph = self.method.make(self.index, self.model, self.options)
            self._saver = InMemorySaver()
            self._graph.checkpointer = self._saver
            work = iter([question for question in questions if self._is_open(records.get(question.id))])
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self.concurrency, len(questions))):
                        group.create_task(self._work(work, records, file))
            except BaseExceptionGroup as several:
                raise several.exceptions[0] from several.exceptions[0].__cause__

    async def _work(self, questions: Iterator[Question], records: Mapping[str, Record], file: RecordFile) -> None:
        for question in questions:
            if self.max_cost is not None and self._spent >= self.max_cost:
                return
            record = records.get(question.id)
            if record is None or record["error"] is not None:
                record = await self._answer(question)
            else:
                self._spent -= _cost(record)
            if self.judge is not None and record["error"] is None:
                record = {**record, "judgement": await self._judged(self.judge, record)}
            self._spent += _cost(record)
            await asyncio.to_thread(file.append, record)
            self.on_record(record)
            if self.max_cost is not None and not _is_priced(record):
                raise InputError("the cost of a model call is not known: there is no --max-cost for this model")

    def _check(self, questions: Sequence[Question], records: Mapping[str, Record]) -> None:
        for question in questions:
            record = records.get(question.id)
            if record is not None and (record["question"], record["answer"]) != (question.text, question.answer):
                raise InputError(
                    f"the question {question.id!r} or its gold answer has changed since it was answered: give another "
                    "folder with --out"
                )

    def _is_open(self, record: Record | None) -> bool:
        if record is None or record["error"] is not None:
            return True
        judgement = record["judgement"]
        return self.judge is not None and (judgement is None or judgement["correct"] is None)

    async def _answer(self, question: Question) -> Record:
        began = time.perf_counter()
        config = RunnableConfig(configurable={"thread_id": question.id})
        try:
            state = await self._pause.patiently(
                lambda: self._go_on(question, config), progress=lambda: self._steps_done(config)
            )
        except Exception as error:
            if not (isinstance(error, ARAGError) or is_failed_call(error)):
                raise  # a bug: the records stay, and the run can be resumed
            reached = await self._graph.aget_state(config)
            seconds = time.perf_counter() - began
            return failed(question, reached.values, f"{type(error).__name__}: {error}", seconds)
        finally:
            self._saver.delete_thread(question.id)
        return await asyncio.to_thread(answered, question, state, time.perf_counter() - began, self.index)

    async def _go_on(self, question: Question, config: RunnableConfig) -> Any:
        """Run the method's graph; after a pause it goes on where it was, and what was paid for is kept."""
        begun = self._saver.get_tuple(config) is not None
        asked = None if begun else {"messages": [HumanMessage(question.text)]}
        # State is kept when the graph ends, by an error too: not after every step, which would take its time.
        return await self._graph.ainvoke(asked, config, durability="exit")

    def _steps_done(self, config: RunnableConfig) -> object:
        saved = self._saver.get_tuple(config)
        return saved and saved.metadata.get("step")

    async def _judged(self, judge: Judge, record: Record) -> Judgement:
        return await judge.judge(
            record["question"], record["answer"], record["prediction"], patiently=self._pause.patiently
        )


class _Pause:
    """Lets everybody wait when a provider says that it is asked too much."""

    def __init__(self) -> None:
        self._until = 0.0

    async def patiently(
        self, ask: Callable[[], Coroutine[Any, Any, Any]], *, progress: Callable[[], object] = lambda: None
    ) -> Any:
        """Ask, and ask again after a pause where a rate limit was met.

        Args:
            ask: Asks.
            progress: Tells how far it has come: patience is lost over pauses without any progress only.
        """
        attempt, reached = 0, progress()
        while True:
            while (left := self._until - time.monotonic()) > 0:  # noqa: ASYNC110 - others may move the end meanwhile
                await asyncio.sleep(left)
            try:
                return await ask()
            except Exception as error:
                if not _is_rate_limit(error):
                    raise
                attempt = attempt + 1 if progress() == reached else 1
                reached = progress()
                if attempt > _PATIENCE:
                    raise
                pause = _asked_for(error) or min(_FIRST_PAUSE * 2 ** (attempt - 1), _LONGEST_PAUSE)
                self._until = max(self._until, time.monotonic() + pause)


def _is_rate_limit(error: Exception) -> bool:
    """Tell whether a provider may answer when it is asked again later; clients have several names for its status."""
    response = getattr(error, "response", None)
    code = getattr(error, "code", None)  # OpenAI's is a word, Google's the status
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None) or code
    return status in _TOO_MUCH and code != _NO_MONEY


def _asked_for(error: Exception) -> float | None:
    """Return the seconds that a provider asks to wait."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        seconds = float(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return min(seconds, _LONGEST_PAUSE) if seconds > 0 else None


def _cost(record: Record) -> float:
    judgement = record["judgement"]
    return (record["cost"] or 0.0) + ((judgement and judgement["cost"]) or 0.0)


def _is_priced(record: Record) -> bool:
    judgement = record["judgement"]
    return record["cost"] is not None and (judgement is None or judgement["cost"] is not None)
