"""Runs of a method on questions, several at a time. A killed run can be continued, and pays for nothing twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from filelock import FileLock
from langchain_core.language_models import BaseChatModel

from arag.errors import InputError
from arag.evaluation.cache import CallRefusedError
from arag.evaluation.datasets import Question
from arag.evaluation.judge import judge
from arag.evaluation.method import Answer, Method, Session, threads
from arag.evaluation.plan import add_preparation
from arag.evaluation.records import Record, RecordFile, is_answered, make_record, record_file
from arag.evaluation.run_context import RunContext
from arag.models.usage import ModelCall

MAX_FAILURES = 10  # questions in a row


def prepare(method: Method, context: RunContext, model: BaseChatModel) -> tuple[Any, list[ModelCall]]:
    """Do a method's work before the first question, with a model whose calls are kept for all runs.

    Returns:
        The object that the method's `answer` gets, and the calls that the work takes.
    """
    session = Session(context, model)
    lock = context.store.file.with_name(f"{type(method).__module__}.lock")
    with FileLock(lock):  # without it, two processes would both pay
        prepared = method.prepare(session)
    return prepared, session.calls


def answer_questions(
    method: Method, context: RunContext, prepared: Any, questions: Sequence[Question], file: RecordFile
) -> Iterator[Record]:
    """Answer the questions that have no answer yet or have changed, and judge the answers that have no verdict.

    A question that fails gets a record with its error, and the next run asks it again. If the caller closes the
    iterator, no more calls begin; questions under way are left without a record, and their finished calls are kept.

    Yields:
        The new records, after each was written.

    Raises:
        InputError: Ten questions in a row have failed.
        BudgetError: The budget is used up. Questions under way are left without a record; their calls are kept.
        Timeout: Another process is writing to the file.
    """
    judged = context.judge is not None
    failures = 0  # in a row
    # Another thread may take the next record, and release the lock.
    with FileLock(file.file.with_suffix(".lock"), timeout=0, thread_local=False):
        file.drop_half_line()
        records = file.read()
        with threads(context.concurrency) as pool, _stop_if_left(context.stopped):
            work = []
            for question in list_open(questions, records, judged=judged):
                known = records.get(question.id)
                work.append(pool.submit(_answer_and_judge, method, context, prepared, question, known))
            for done in as_completed(work):
                record = done.result()
                file.append(record)
                yield record
                reason = _why_failed(record)
                failures = 0 if reason is None else failures + 1
                if failures == MAX_FAILURES:
                    raise InputError(f"{failures} questions in a row failed, the last one with: {reason}")


@contextmanager
def _stop_if_left(stopped: Event) -> Iterator[None]:
    """Stop the experiment if the user or the caller leaves the block: its threads may pause for minutes."""
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit):
        stopped.set()
        raise


def list_open(questions: Iterable[Question], records: Mapping[str, Record], *, judged: bool) -> list[Question]:
    """Return the questions that have no answer, or, with a judge, no verdict."""
    return [question for question in questions if _is_open(question, records.get(question.id), judged=judged)]


def _is_open(question: Question, record: Record | None, *, judged: bool) -> bool:
    if not is_answered(record, question):
        return True
    return judged and not _has_verdict(record)


def _why_failed(record: Record) -> str | None:
    """Return why a question that was just asked has no answer or no verdict; None if it has them."""
    if record["error"]:
        return record["error"]
    judgement = record["judgement"]
    if judgement is not None and judgement["correct"] is None:
        return judgement["reason"]
    return None


def _has_verdict(record: Record) -> bool:
    judgement = record["judgement"]
    return judgement is not None and judgement["correct"] is not None


def _answer_and_judge(
    method: Method, context: RunContext, prepared: Any, question: Question, record: Record | None
) -> Record:
    """Return a question's new record: answered if it has no answer, and judged if there is a judge."""
    if not is_answered(record, question):
        record = _answer(method, context, prepared, question)
    if context.judge is None or record["error"] is not None:
        return record
    session = Session(context, context.judge)
    judgement = judge(session, question, record["prediction"])
    return {**record, "judgement": judgement}


def _answer(method: Method, context: RunContext, prepared: Any, question: Question) -> Record:
    """Return the record of a question that is asked now."""
    session = Session(context)
    try:
        answer = method.answer(question.text, session, prepared)
        if isinstance(answer, str):
            answer = Answer(answer)
        if not answer.text.strip() and session.calls and session.calls[-1]["empty"]:
            raise ValueError("the model's reply was empty")  # noqa: TRY301 - another try may give another reply
        return make_record(question, session, answer)
    except CallRefusedError:
        raise
    except Exception as error:  # noqa: BLE001 - one failed question does not stop the others
        return make_record(question, session, Answer(""), error)


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodRun:
    """One method of a run: it answers the questions that have no answer yet.

    Attributes:
        method: The method.
        variant: The name of the run's variant.
        folder: The run's folder.
        questions: The questions, with their gold documents as the index names them.
        context: Everything that the method's sessions share.
        preparing_model: The model for the work before the first question; its calls are kept for all runs.
    """

    method: Method
    variant: str
    folder: Path
    questions: Sequence[Question]
    context: RunContext
    preparing_model: BaseChatModel

    @property
    def file(self) -> RecordFile:
        """The file of the method's records."""
        return record_file(self.folder, self.method.name)

    def list_open(self, records: Mapping[str, Record]) -> list[Question]:
        """Return the questions that have no answer, or, with a judge, no verdict."""
        return list_open(self.questions, records, judged=self.context.judge is not None)

    def is_complete(self) -> bool:
        """Return whether no question is open."""
        return not self.list_open(self.file.read())

    def finished(self) -> list[Record]:
        """Return the records of the questions that are not open, in the order of the questions."""
        records = self.file.read()
        open_ids = {question.id for question in self.list_open(records)}
        return [records[question.id] for question in self.questions if question.id not in open_ids]

    def prepare(self) -> Any:
        """Do the method's work before the first question; return the object that `answer` needs."""
        prepared, calls = prepare(self.method, self.context, self.preparing_model)
        add_preparation(self.folder, self.method.name, calls)
        return prepared

    def answer(self, prepared: Any) -> Iterator[Record]:
        """Answer the open questions, and yield their records as they are written.

        Raises:
            InputError: Ten questions in a row have failed, or the budget is used up.
        """
        return answer_questions(self.method, self.context, prepared, self.questions, self.file)
