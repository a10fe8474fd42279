"""Runs of a method on questions: several at a time, and continued after a kill with nothing paid for twice."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from pathlib import Path, PurePosixPath
from typing import Any, TypedDict, TypeGuard

from filelock import FileLock
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, messages_to_dict

from arag.errors import InputError, without_credentials
from arag.evaluation.cache import BudgetError
from arag.evaluation.datasets import Question, Source
from arag.evaluation.judge import Judgement, judge
from arag.evaluation.method import Answer, Lab, Method, Note, Session, threads
from arag.evaluation.plan import RECORDS
from arag.evaluation.scores import contains, exact_match, f1, share
from arag.graph.citations import parse_citations
from arag.graph.state import Citation, ToolRecord
from arag.models.prices import cost
from arag.models.usage import ModelCall, Usage, total
from arag.retrieval.index import Index
from arag.text.marks import mark

MAX_FAILURES = 10  # questions in a row


class Record(TypedDict):
    """One question of a run."""

    question_id: str
    question: str
    answer: str
    """The gold answer."""
    aliases: list[str]
    gold_documents: list[str]
    gold_pages: list[tuple[str, int]]
    """Pages with the answer, each with its document's name; if there are any, shares of gold count pages."""
    fields: dict[str, Any]
    """The other fields of the question's data."""
    prediction: str
    stop_reason: str | None
    error: str | None
    """Why there is no prediction; the next run tries again."""
    traceback: str | None
    seconds: float
    """Those of the calls and the work; without pauses while the model's server was busy."""
    steps: int
    retrieved_tokens: int
    """Tokens of all that the retrievals returned."""
    evidence_tokens: int
    """Tokens of the sentences and chunks in it, as the paper counts them."""
    usage: Usage
    cost: float | None
    """US dollars; None if a model's price is unknown."""
    contain: bool
    contain_with_aliases: bool
    exact_match: bool
    f1: float
    gold_seen: float | None
    """The share of gold documents or pages of which a snippet or chunk was shown; None if none are known."""
    gold_read: float | None
    """The share of them of which a chunk was shown in full."""
    gold_cited: float | None
    """The share of them of which a chunk is cited."""
    judgement: Judgement | None
    """None if no judge was asked."""
    citations: list[Citation]
    trace: list[ToolRecord]
    model_calls: list[ModelCall]
    read_chunks: list[str]
    messages: list[dict[str, Any]]
    notes: list[Note]
    """What the method found and decided on its way."""
    unusable: int
    """Replies that were not the JSON object that was asked for."""


class RecordFile:
    """The records of one method, one JSON line each; of several for a question, the last one counts."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def read(self) -> dict[str, Record]:
        """Return the records by question id."""
        return {record["question_id"]: record for record in self.each()}

    def each(self) -> Iterator[Record]:
        """Yield the records as they were written, without lines that are damaged: the next run adds their questions."""
        if not self.file.exists():
            return
        with self.file.open("rb") as lines:
            for line in lines:
                try:
                    record: Record = json.loads(line)
                except ValueError:  # half a line, left by a kill
                    continue
                yield record

    def append(self, record: Record) -> None:
        """Write a record durably."""
        # What JSON lacks (a provider's own objects in a message) is written as a string, lone surrogates as "?".
        line = (json.dumps(record, ensure_ascii=False, default=str) + "\n").encode("utf-8", "replace")
        with self.file.open("ab") as out:
            out.write(line)
            out.flush()
            os.fsync(out.fileno())

    def drop_half_line(self) -> None:
        """Cut off half a line at the end, so that the next record begins a new one."""
        if self.file.exists():
            with self.file.open("rb+") as lines:
                lines.truncate(lines.read().rfind(b"\n") + 1)


def record_file(folder: Path, method: str) -> RecordFile:
    """Return the file of one method's records in a run folder."""
    return RecordFile(folder / RECORDS / f"{method}.jsonl")


def load_records(folder: Path) -> dict[str, dict[str, Record]]:
    """Return the records of a run, by method and question id."""
    return {file.stem: RecordFile(file).read() for file in sorted((folder / RECORDS).glob("*.jsonl"))}


def prepare(method: Method, lab: Lab, model: BaseChatModel) -> tuple[Any, list[ModelCall]]:
    """Do a method's work before the first question, with a model whose calls are kept for all runs.

    Returns:
        What the method's `answer` gets, and the calls that the work takes.
    """
    session = Session(lab, model)
    with FileLock(lab.store.file.with_name(f"{type(method).__module__}.lock")):  # two processes would both pay
        prepared = method.prepare(session)
    return prepared, session.calls


def answer_questions(
    method: Method,
    lab: Lab,
    prepared: Any,
    questions: Sequence[Question],
    file: RecordFile,
    on_record: Callable[[Record], None] = lambda _: None,
) -> None:
    """Answer the questions that have no answer yet or have changed, and judge the answers that have no verdict.

    A question that fails gets a record with its error, and the next run asks it again.

    Raises:
        InputError: Ten questions in a row have failed.
        BudgetError: The budget is used up. Questions under way are left without a record; their calls are kept.
    """
    with FileLock(file.file.with_suffix(".lock"), timeout=0):  # raises a Timeout if another process is writing there
        file.drop_half_line()
        records, judged, failures = file.read(), lab.judge is not None, 0
        with threads(lab.at_once) as pool:
            work = [
                pool.submit(_answer_and_judge, method, lab, prepared, question, records.get(question.id))
                for question in list_open(questions, records, judged=judged)
            ]
            for done in as_completed(work):
                record = done.result()
                file.append(record)
                on_record(record)
                failures = failures + 1 if record["error"] or (judged and not _has_verdict(record)) else 0
                if failures == MAX_FAILURES:
                    reason = record["error"] or (record["judgement"] and record["judgement"]["reason"])
                    raise InputError(f"{failures} questions in a row failed, the last one with: {reason}")


def list_open(questions: Iterable[Question], records: Mapping[str, Record], *, judged: bool) -> list[Question]:
    """Return the questions that have no answer, or, with a judge, no verdict."""
    known = [(question, records.get(question.id)) for question in questions]
    return [q for q, record in known if not _is_answered(record, q) or (judged and not _has_verdict(record))]


def _is_answered(record: Record | None, question: Question) -> TypeGuard[Record]:
    """Return whether a record has an answer to a question, which may have changed since."""
    if record is None or record["error"] is not None:
        return False
    asked = question.text, question.answer, [*question.aliases], [*question.gold_documents], [*question.gold_pages]
    pages = list(map(tuple, record["gold_pages"]))
    return asked == (record["question"], record["answer"], record["aliases"], record["gold_documents"], pages)


def _has_verdict(record: Record) -> bool:
    return record["judgement"] is not None and record["judgement"]["correct"] is not None


def _answer_and_judge(method: Method, lab: Lab, prepared: Any, question: Question, record: Record | None) -> Record:
    """Return a question's new record: answered if it has no answer, and judged if there is a judge."""
    if not _is_answered(record, question):
        session, began = Session(lab), time.perf_counter()
        try:
            answer = method.answer(question.text, session, prepared)
            text = answer if isinstance(answer, str) else answer.text
            if not text.strip() and session.calls and session.calls[-1]["empty"]:
                raise ValueError("the model's reply was empty")  # noqa: TRY301 - it may be another the next time
            record = make_record(question, session, answer, time.perf_counter() - began)
        except BudgetError:
            raise
        except Exception as error:  # noqa: BLE001 - one failed question does not stop the others
            record = make_record(question, session, "", time.perf_counter() - began, error)
    if lab.judge is not None and record["error"] is None:
        judgement = judge(Session(lab, lab.judge), question.text, question.answer, record["prediction"])
        record = {**record, "judgement": judgement}
    return record


def make_record(
    question: Question, session: Session, answer: Answer | str, seconds: float, error: Exception | None = None
) -> Record:
    """Return the record of a question: what was called and retrieved, and the answer, or the error in its place."""
    answer = Answer(answer) if isinstance(answer, str) else answer
    text, answers, index = answer.text.strip(), [question.answer, *question.aliases], session.lab.index
    seen = list(dict.fromkeys(chunk_id for entry in session.trace for chunk_id in entry["chunk_ids"]))
    read = list(dict.fromkeys(chunk_id for entry in session.trace for chunk_id in entry["new_chunks"]))
    citations = parse_citations(" ".join([text, *map(mark, answer.cited)]), index, seen, read)
    gold: list[Source] = [*(question.gold_pages or question.gold_documents)]
    messages: list[AnyMessage] = session.messages or [HumanMessage(question.text), *([AIMessage(text)] if text else [])]
    return Record(
        question_id=question.id,
        question=question.text,
        answer=question.answer,
        aliases=list(question.aliases),
        gold_documents=list(question.gold_documents),
        gold_pages=list(question.gold_pages),
        fields=dict(question.fields),
        prediction=text,
        stop_reason=None if error else answer.stop_reason,
        error=without_credentials(f"{type(error).__name__}: {error}") if error else None,
        traceback=without_credentials("".join(traceback.format_exception(error))) if error else None,
        seconds=seconds + session.adjustment,
        steps=sum(not call["forced"] for call in session.calls),
        retrieved_tokens=sum(entry["retrieved_tokens"] for entry in session.trace),
        evidence_tokens=sum(entry["evidence_tokens"] for entry in session.trace),
        usage=total(session.calls),
        cost=cost(session.calls),
        contain=contains(text, answers[:1]),
        contain_with_aliases=contains(text, answers),
        exact_match=exact_match(text, answers),
        f1=f1(text, answers),
        gold_seen=None if error else share(gold, find_sources(index, seen)),
        gold_read=None if error else share(gold, find_sources(index, read)),
        gold_cited=None if error else share(gold, find_sources(index, (each["chunk_id"] for each in citations))),
        judgement=None,
        citations=citations,
        trace=session.trace,
        model_calls=session.calls,
        read_chunks=read,
        messages=messages_to_dict(messages),
        notes=session.notes,
        unusable=session.unusable,
    )


def find_gold(record: Record) -> list[Source]:
    """Return where the answer to a record's question is: pages if they are known, otherwise documents."""
    return [(document, page) for document, page in record["gold_pages"]] or [*record["gold_documents"]]


def find_sources(index: Index, chunk_ids: Iterable[str]) -> set[Source]:
    """Return the documents and the pages that chunks come from."""
    sources: set[Source] = set()
    for chunk in filter(None, index.mget(list(chunk_ids))):
        sources.add(chunk.document_id)
        if chunk.pages is not None:
            first, last = chunk.pages
            sources.update((PurePosixPath(chunk.document_id).stem, page) for page in range(first, last + 1))
    return sources
