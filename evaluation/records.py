"""The record of each question: one JSON line, written completely or not at all when the question is done."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import Any, TypedDict

from filelock import FileLock, Timeout
from langchain_core.messages import BaseMessage, messages_to_dict

from arag.errors import InputError, StorageError
from arag.evaluation.datasets import Question, Source
from arag.evaluation.scores import contains, exact_match, f1, share
from arag.graph.state import Citation, ToolRecord
from arag.models.prices import cost
from arag.models.usage import ModelCall, Usage, total
from arag.retrieval.index import Index


class Judgement(TypedDict):
    """A judge's verdict on an answer."""

    correct: bool | None
    """Whether it is correct; None if the judge gave no usable verdict."""
    reason: str
    """The judge's reason, or why there is no verdict."""
    model: str
    """The judge."""
    cost: float | None
    """US dollars; None if the price is unknown."""


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
    """The traceback of an unexpected error, of the method or of the judge."""
    seconds: float
    steps: int
    retrieved_tokens: int
    """Tokens of all that the tools returned."""
    evidence_tokens: int
    """Tokens of the sentences and chunks in it, as the paper counts them."""
    usage: Usage | None
    cost: float | None
    """US dollars; None if a model's price is unknown."""
    paid: float | None
    """US dollars of the method's model calls over all attempts at the question, including this one; None if a price is
    unknown."""
    judge_paid: float | None
    """The same for all verdicts on its answers; 0 if there are none."""
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
    earlier_calls: list[ModelCall]
    """The model calls of earlier attempts at the question, which failed."""
    read_chunks: list[str]
    messages: list[dict[str, Any]]
    stages: list[dict[str, Any]]
    """What a method found and decided on its way, for its page: each with a `title` and `lines`. Empty for methods that
    tell nothing, and in the records of earlier versions."""


def record_answer(question: Question, state: Mapping[str, Any], seconds: float, index: Index) -> Record:
    """Return the record of a question that a method answered."""
    record = _record(question, state, seconds)
    prediction, answers = state["answer"], [question.answer, *question.aliases]
    record["prediction"] = prediction
    record["stop_reason"] = state["stop_reason"]
    record["citations"] = state.get("citations", [])
    record["contain"] = contains(prediction, [question.answer])
    record["contain_with_aliases"] = contains(prediction, answers)
    record["exact_match"] = exact_match(prediction, answers)
    record["f1"] = f1(prediction, answers)
    seen = [chunk_id for entry in record["trace"] for chunk_id in entry["chunk_ids"]]
    read = [chunk_id for entry in record["trace"] for chunk_id in entry["new_chunks"]]
    cited = [citation["chunk_id"] for citation in record["citations"]]
    gold = find_gold(record)
    record["gold_seen"] = share(gold, find_sources(index, seen))
    record["gold_read"] = share(gold, find_sources(index, read))
    record["gold_cited"] = share(gold, find_sources(index, cited))
    return record


def record_failure(question: Question, state: Mapping[str, Any], error: str, seconds: float) -> Record:
    """Return the record of a question that a method failed to answer.

    Args:
        question: The question.
        state: The state that the method's graph had reached, with the calls that were paid for.
        error: What went wrong.
        seconds: How long it took.
    """
    return {**_record(question, state, seconds), "error": error}


def add_attempts(record: Record, previous: Record) -> Record:
    """Return the record of another attempt at a question, with the cost of the earlier attempts."""
    earlier = [*previous["earlier_calls"], *previous["model_calls"]]
    paid = cost([*earlier, *record["model_calls"]])
    return {**record, "earlier_calls": earlier, "paid": paid, "judge_paid": previous["judge_paid"]}


def add_judgement(record: Record, judgement: Judgement) -> Record:
    """Return a record with a verdict on its answer, which may replace an unusable one."""
    before, price = record["judge_paid"], judgement["cost"]
    return {**record, "judgement": judgement, "judge_paid": None if before is None or price is None else before + price}


def update_price(record: Record) -> Record:
    """Return a record with the cost of its calls, if prices have become known since it was written."""
    if record["paid"] is not None:
        return record
    calls = record["model_calls"]
    return {**record, "cost": cost(calls), "paid": cost([*record["earlier_calls"], *calls])}


def _record(question: Question, state: Mapping[str, Any], seconds: float) -> Record:
    """Return a record with what a state holds whether or not there is an answer."""
    calls, trace = state.get("model_calls") or [], state.get("trace") or []
    messages = [message for message in state.get("messages") or [] if isinstance(message, BaseMessage)]
    return Record(
        question_id=question.id,
        question=question.text,
        answer=question.answer,
        aliases=list(question.aliases),
        gold_documents=list(question.gold_documents),
        gold_pages=list(question.gold_pages),
        fields=dict(question.fields),
        prediction="",
        stop_reason=None,
        error=None,
        traceback=None,
        seconds=seconds,
        steps=state.get("steps") or 0,
        retrieved_tokens=sum(entry["retrieved_tokens"] for entry in trace),
        evidence_tokens=sum(entry.get("evidence_tokens", entry["retrieved_tokens"]) for entry in trace),
        usage=total(calls),
        cost=cost(calls),
        paid=cost(calls),
        judge_paid=0.0,
        contain=False,
        contain_with_aliases=False,
        exact_match=False,
        f1=0.0,
        gold_seen=None,
        gold_read=None,
        gold_cited=None,
        judgement=None,
        citations=[],
        trace=trace,
        model_calls=calls,
        earlier_calls=[],
        read_chunks=state.get("read_chunks") or [],
        messages=messages_to_dict(messages),
        stages=state.get("stages") or [],
    )


def find_gold(record: Record) -> list[Source]:
    """Return where the answer to a record's question is: pages if they are known, otherwise documents."""
    pages = record.get("gold_pages", [])  # records of earlier versions have none
    return [(document, page) for document, page in pages] or [*record["gold_documents"]]


def find_sources(index: Index, chunk_ids: Iterable[str]) -> set[Source]:
    """Return the documents and the pages that chunks come from."""
    found: set[Source] = set()
    for chunk in map(index.get, dict.fromkeys(chunk_ids)):
        if chunk is None:
            continue
        found.add(chunk.document_id)
        if chunk.pages is not None:
            first, last = chunk.pages
            found.update((PurePosixPath(chunk.document_id).stem, page) for page in range(first, last + 1))
    return found


class RecordFile:
    """The records of one method, appended to as they come.

    A line that a kill cut off is removed when the file is opened for writing. If a question has several records, the
    last one counts.

    Args:
        file: The file; it need not exist.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lock = threading.Lock()

    def read(self) -> dict[str, Record]:
        """Return the records by question id.

        Raises:
            InputError: A line other than the last is not a record.
        """
        return {record["question_id"]: record for record in self.each()}

    def each(self) -> Iterator[Record]:
        """Yield the records as they were written, one at a time; a question may have several.

        Raises:
            InputError: A line other than the last is not a record.
        """
        if not self.file.exists():
            return
        with self.file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n"):  # cut off by a kill
                    return
                try:
                    record: Record = json.loads(line)
                    record["question_id"]
                    record.setdefault("stages", [])  # earlier versions wrote none
                except (ValueError, KeyError, TypeError) as error:
                    raise InputError(f"{self.file}, line {number} is not a record of a run: {error}") from error
                yield record

    def mend(self) -> None:
        """Remove an incomplete last line, left by a kill."""
        if not self.file.exists():
            return
        with self.file.open("r+b") as opened:
            opened.truncate(opened.read().rfind(b"\n") + 1)

    def append(self, record: Record) -> None:
        """Write a record durably.

        Raises:
            StorageError: It cannot be written; the file stays as it was.
        """
        # What JSON lacks (a provider's own objects in a message) is written as a string, lone surrogates as "?".
        line = (json.dumps(record, ensure_ascii=False, default=str) + "\n").encode("utf-8", "replace")
        try:
            with self._lock, self.file.open("ab", buffering=0) as out:
                self._write(out, line)
        except OSError as error:
            raise StorageError(f"a record cannot be written to {self.file}: {error.strerror}") from error

    def _write(self, out: FileIO, line: bytes) -> None:
        before = out.seek(0, os.SEEK_END)
        try:
            while line:
                line = line[out.write(line) :]
            os.fsync(out.fileno())
        except OSError:
            with suppress(OSError):  # later records must not follow half a line
                out.truncate(before)
            raise

    def locked(self) -> AbstractContextManager[object]:
        """Keep other processes from writing to the file.

        Raises:
            InputError: Another process is writing to it.
        """
        try:
            return FileLock(self.file.with_suffix(".lock")).acquire(timeout=0)
        except Timeout:
            raise InputError(
                f"another process is writing to {self.file}: wait for it, or give another folder with --out"
            ) from None
