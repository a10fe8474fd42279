"""Runs of methods on questions: concurrent, and resumable after a kill at any moment."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from traceback import format_exception
from typing import Any
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import TypeAdapter

from arag.errors import ARAGError, InputError, without_credentials
from arag.evaluation.budget import Budget
from arag.evaluation.datasets import Question
from arag.evaluation.event_loop import run, work_through
from arag.evaluation.files import describe_damage, write_file
from arag.evaluation.judge import Judge
from arag.evaluation.methods import Method, MethodFacts, Options
from arag.evaluation.patience import Patience
from arag.evaluation.preparation import load_preparations
from arag.evaluation.records import (
    Judgement,
    Record,
    RecordFile,
    add_attempts,
    add_judgement,
    record_answer,
    record_failure,
    update_price,
)
from arag.evaluation.secrets import without_secrets
from arag.evaluation.store import Store, store_folder
from arag.evaluation.structured import is_failed_call
from arag.models.names import drop_credentials
from arag.models.prices import cost
from arag.options import INDEX_VARIABLE
from arag.retrieval.index import Index
from arag.retrieval.locations import is_address, parse_location, store_at
from arag.retrieval.storage import IndexStore
from arag.retrieval.tokens import warn_of_estimates

RUN_FILE = "run.json"
RECORDS = "records"
DEFAULT_CONCURRENCY = 8
_MAX_BUGS = 5  # questions in a row that fail with an unexpected error
_METHODS = TypeAdapter(dict[str, dict[str, MethodFacts]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The configuration of a run; resuming a run needs the same one.

    It is stored and shown in reports. Users and passwords in URLs of models are removed, passwords in the index's
    address too, and values of model options that may be secrets are replaced with `***`.

    Attributes:
        questions: The file of the questions.
        index: The index's folder, or its address.
        model: The model.
        judge: The judge; None for none.
        model_options: Options of the model's class.
        options: Settings that methods share.
        scope: The scope that the methods search in; None for the whole index.
        contents: What identifies the index; None if it is not known yet.
        methods: The methods that it was started with so far, for reports.
        asked: How many questions it was asked to answer; the maximum if it was run with several limits.
        version: The version of this package that started the run.
        date: The day on which it started, in UTC.
        id: Names the run where it pays for index-time work, wherever its folder is moved.
    """

    questions: str
    index: str
    model: str
    judge: str | None = None
    model_options: Mapping[str, Any] = field(default_factory=dict)
    options: Options = field(default_factory=Options)
    scope: Mapping[str, Any] | None = None
    contents: Mapping[str, Any] | None = None
    methods: Mapping[str, MethodFacts] = field(default_factory=dict, compare=False)
    asked: int = field(default=0, compare=False)
    version: str = field(default="", compare=False)
    date: str = field(default="", compare=False)
    id: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        """Remove possible secrets."""
        for name in ("model", "judge"):
            value = getattr(self, name)
            object.__setattr__(self, name, value and drop_credentials(value))
        object.__setattr__(self, "model_options", without_secrets(self.model_options))
        object.__setattr__(self, "index", str(parse_location(self.index)))


def open_run(folder: Path, plan: Plan) -> Plan:
    """Create a run folder, or check that the existing one has the same plan.

    A judge may be added later: it judges the earlier answers. So may methods, with settings of their own.

    Returns:
        The plan as it is stored.

    Raises:
        InputError: The folder holds records of another plan.
    """
    (folder / RECORDS).mkdir(parents=True, exist_ok=True)
    plan = replace(
        plan,
        questions=str(Path(plan.questions).absolute()),
        index=str(_absolute(plan.index)),
        version=version("langgraph-arag"),
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        id=uuid4().hex,
    )
    if (folder / RUN_FILE).exists():
        plan = _resume(folder, load_plan(folder), plan)
    write_file(folder / RUN_FILE, json.dumps(asdict(plan), indent=2, ensure_ascii=False) + "\n")
    return plan


def _resume(folder: Path, known: Plan, wanted: Plan) -> Plan:
    if not any((folder / RECORDS).glob("*.jsonl")) and not load_preparations(folder):
        return replace(wanted, id=known.id or wanted.id)  # the other plan has no results, but may have paid for some
    by_method = bool(known.methods)
    before, now = _comparable(known, by_method=by_method), _comparable(wanted, by_method=by_method)
    differing = [name for name in before if name in now and before[name] != now[name]]
    if differing:
        told = "; ".join(f"{name} was {before[name]!r}, now {now[name]!r}" for name in differing)
        raise InputError(f"{folder} holds another run ({told}): give another folder with --out")
    return replace(
        known,
        judge=known.judge or wanted.judge,
        contents=known.contents or wanted.contents,
        options=replace(known.options, settings={**wanted.options.settings, **known.options.settings}),
        methods={**wanted.methods, **known.methods},
        asked=max(known.asked, wanted.asked),
    )


def _comparable(plan: Plan, *, by_method: bool) -> dict[str, Any]:
    """Return the known settings that two plans must share, by their names in messages.

    Args:
        plan: The plan.
        by_method: Whether to compare the settings of each method; plans of earlier versions do not have them.
    """
    files = {"questions": str(Path(plan.questions).resolve()), "index": str(_absolute(plan.index, links=True))}
    contents = {f"the {key} of the index in {files['index']}": value for key, value in (plan.contents or {}).items()}
    judge = {"judge": plan.judge} if plan.judge is not None else {}
    shared = asdict(plan.options)
    settings: Any = shared.pop("settings")
    if by_method:
        each = ((name, facts["settings"].items()) for name, facts in plan.methods.items())
        settings = {f"{name}.{key}": value for name, own in each for key, value in own}
    else:
        settings = {"settings": settings}
    options = {"model_options": plan.model_options, "options": shared, "scope": plan.scope}
    return {**files, "model": plan.model, **judge, **options, **settings, **contents}


def _absolute(index: str, *, links: bool = False) -> Path | str:
    """Return where an index is, from any working folder, and with links followed if asked."""
    place = parse_location(index)
    if not isinstance(place, Path):
        return str(place)
    return place.resolve() if links else place.absolute()


def load_plan(folder: Path) -> Plan:
    """Return the plan of a run.

    Raises:
        InputError: There is no run in the folder, or its file is damaged.
    """
    file = folder / RUN_FILE
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        methods = _METHODS.validate_python({"methods": values.get("methods", {})})
        return Plan(**(values | methods | {"options": Options(**values["options"])}))
    except FileNotFoundError:
        raise InputError(
            f"there is no run in {folder}: {RUN_FILE} is missing; start one with `arag eval run`"
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{file} is damaged: {describe_damage(error)}") from error


def find_index(plan: Plan) -> IndexStore:
    """Return the index of a run.

    A run folder may come from somebody else, and libpq sends a password to whichever host it is told. So an address in
    its files is used only if ARAG_INDEX names it too.

    Raises:
        InputError: ARAG_INDEX does not name the address.
    """
    if not is_address(plan.index):
        return store_at(plan.index)
    own = os.environ.get(INDEX_VARIABLE, "")
    if str(parse_location(own)) != plan.index:
        raise InputError(
            f"the run used the index {plan.index}: to open it, set {INDEX_VARIABLE} to this address, as a run's files "
            "may not choose a database"
        )
    return store_at(own)


def record_file(folder: Path, method: str) -> RecordFile:
    """Return the file of one method's records."""
    return RecordFile(folder / RECORDS / f"{method}.jsonl")


def load_records(folder: Path) -> dict[str, dict[str, Record]]:
    """Return the records of a run, by method and question id."""
    return {file.stem: RecordFile(file).read() for file in sorted((folder / RECORDS).glob("*.jsonl"))}


def count_spent(folder: Path, budget: Budget) -> None:
    """Add what a run has cost so far to a budget; the run need not exist.

    Index-time work that was not finished is not recorded in the run folder: its payments are in the store.
    """
    for records in load_records(folder).values():
        for record in records.values():
            budget.count(update_price(record))
    prepared = load_preparations(folder)
    for preparation in prepared.values():
        budget.pay(preparation["cost"], load_plan(folder).model)
    plan = load_plan(folder) if (folder / RUN_FILE).exists() else None
    if plan is None or not plan.id or not (kept := store_folder(_absolute(plan.index))).exists():
        return
    for method, calls in Store(kept).payments(plan.id).items():
        if method not in prepared:
            budget.pay(cost(calls), plan.model)


def name_payer(folder: Path, plan: Plan, method: str) -> str:
    """Return the name under which a method of a run pays for index-time work; see `Store.payments`."""
    return f"{plan.id}/{method}" if plan.id else str(folder.resolve())  # runs of earlier versions have no id


@dataclass
class Runner:
    """Runs one method on questions.

    Args:
        method: The method.
        index: The index.
        model: The model.
        options: Settings that methods share.
        judge: The judge, if there is one.
        concurrency: How many questions to run at a time.
        budget: What may be spent. When it is used up, no more questions are started; running ones finish.
        on_record: Called with every record that is written.
    """

    method: Method
    index: Index
    model: BaseChatModel
    options: Options = field(default_factory=Options)
    judge: Judge | None = None
    concurrency: int = DEFAULT_CONCURRENCY
    budget: Budget = field(default_factory=Budget)
    on_record: Callable[[Record], None] = lambda _: None

    def run(self, questions: Sequence[Question], file: RecordFile) -> None:
        """Answer the questions that have no answer yet, and judge the answers that have no verdict yet.

        An error is recorded with its question, and the others continue. After several unexpected errors in a row, no
        more questions are started and the error is raised.

        Args:
            questions: The questions.
            file: The records, which are read and appended to.

        Raises:
            InputError: A setting is out of range, or there is a cost limit but costs are unknown.
            StorageError: A record cannot be written.
        """
        if self.concurrency < 1:
            raise InputError(f"the concurrency is {self.concurrency}: it must be at least 1")
        run(self.arun(questions, file))

    async def arun(self, questions: Sequence[Question], file: RecordFile) -> None:
        """Do the same in a running event loop."""
        with file.locked():
            file.mend()
            records = file.read()
            self._check(questions, records)
            warn_of_estimates()
            self._bugs = 0
            self._patience = Patience()
            self._graph = self.method.make(self.index, self.model, self.options)
            self._saver = InMemorySaver()
            self._graph.checkpointer = self._saver
            for record in [record for known in records.values() if (record := update_price(known)) != known]:
                records[record["question_id"]] = record
                await self._keep(record, file)
            waiting = [question for question in questions if self._is_open(records.get(question.id))]
            if waiting and not self.budget.is_used_up():
                await asyncio.to_thread(self._load)
            await work_through(waiting, lambda question: self._work(question, records, file), self.concurrency)
            self.budget.check()

    def _load(self) -> None:
        """Make the index load what its first search loads, so that no question's time includes it."""
        if not self.method.uses_vectors:
            return
        with suppress(Exception):  # a question that needs the embedder fails with the same error and records it
            self.index.semantic_search("anything", 1)

    async def _work(self, question: Question, records: Mapping[str, Record], file: RecordFile) -> None:
        if self.budget.is_used_up():
            return
        record, bug = await self._record(question, records.get(question.id))
        await self._keep(record, file)
        self._bugs = self._bugs + 1 if bug is not None else 0
        if bug is not None and self._bugs >= _MAX_BUGS:
            raise bug

    async def _keep(self, record: Record, file: RecordFile) -> None:
        await asyncio.to_thread(file.append, record)
        self.on_record(record)

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

    async def _record(self, question: Question, known: Record | None) -> tuple[Record, Exception | None]:
        """Return a question's new record, and any unexpected error.

        The question is answered if it has no answer, and judged if there is a judge.
        """
        record, bug = known, None
        if record is None or record["error"] is not None:
            record, bug = await self._answer(question)
            self.budget.count(record)
            record = add_attempts(record, known) if known is not None else record
        if self.judge is not None and record["error"] is None:
            judgement, bug = await self._judge(self.judge, record)
            self.budget.pay(judgement["cost"], judgement["model"])
            record = add_judgement(record, judgement)
        traceback = None if bug is None else without_credentials("".join(format_exception(bug)))
        return {**record, "traceback": traceback}, bug

    async def _answer(self, question: Question) -> tuple[Record, Exception | None]:
        """Return the record of an answer or a failure, and any unexpected error."""
        began = time.perf_counter()
        config = RunnableConfig(configurable={"thread_id": question.id})
        try:
            state = await self._patience.ask(
                lambda: self._go_on(question, config), progress=lambda: self._steps_done(config)
            )
            seconds = time.perf_counter() - began
            return await asyncio.to_thread(record_answer, question, state, seconds, self.index), None
        except Exception as error:  # noqa: BLE001 - one failed question does not stop the others
            reached = await self._graph.aget_state(config)
            seconds = time.perf_counter() - began
            return record_failure(question, reached.values, _describe(error), seconds), _unexpected(error)
        finally:
            self._saver.delete_thread(question.id)

    async def _go_on(self, question: Question, config: RunnableConfig) -> Any:
        """Run the method's graph; after a pause it continues where it was, and keeps what was paid for."""
        begun = self._saver.get_tuple(config) is not None
        asked = None if begun else {"messages": [HumanMessage(question.text)]}
        # State is saved when the graph ends, even with an error: saving it after every step would be slow.
        return await self._graph.ainvoke(asked, config, durability="exit")

    def _steps_done(self, config: RunnableConfig) -> object:
        saved = self._saver.get_tuple(config)
        return saved and saved.metadata.get("step")

    async def _judge(self, judge: Judge, record: Record) -> tuple[Judgement, Exception | None]:
        """Return a verdict, and any unexpected error."""
        try:
            return await judge.judge(record["question"], record["answer"], record["prediction"], self._patience), None
        except Exception as error:  # noqa: BLE001 - an answer that was paid for is kept without a verdict
            why = f"the judge failed: {_describe(error)}"
            return Judgement(correct=None, reason=why, model=judge.name, cost=0.0), _unexpected(error)


def _describe(error: Exception) -> str:
    return without_credentials(f"{type(error).__name__}: {error}")


def _unexpected(error: Exception) -> Exception | None:
    """Return an error unless it is one of this library or a failed call to a provider."""
    return None if isinstance(error, ARAGError) or is_failed_call(error) else error
