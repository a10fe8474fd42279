"""Runs of a method on questions, several at a time. A killed run can be continued, and pays for nothing twice."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, NotRequired, TypedDict, TypeGuard

from filelock import FileLock
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, messages_to_dict

from arag.errors import InputError, without_credentials
from arag.evaluation.cache import CallRefusedError
from arag.evaluation.datasets import Form, Number, Question, Source
from arag.evaluation.judge import Judgement, judge
from arag.evaluation.list_scores import ListScore, score_list
from arag.evaluation.method import Answer, Method, Note, RunContext, Session, threads
from arag.evaluation.number_scores import has_number
from arag.evaluation.plan import RECORDS
from arag.evaluation.refusals import is_refusal
from arag.evaluation.scores import contains, exact_match, f1, share
from arag.graph.citations import parse_citations
from arag.graph.state import Citation, ToolRecord, union
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
    """Pages with the answer, each with its document's name. If there are any, shares of gold count pages."""
    fields: dict[str, Any]
    """The other fields of the question's data."""
    prediction: str
    stop_reason: str | None
    error: str | None
    """Why there is no prediction; the next run tries again."""
    traceback: str | None
    seconds: float
    """The model's time: the sum of its calls' seconds, without pauses while its server was busy."""
    steps: int
    retrieved_tokens: int
    """Tokens of everything that the retrievals returned."""
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
    """The share of gold documents or pages of which a snippet or a chunk was shown; None if none are known."""
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
    """The method's findings and decisions on its way."""
    unusable: int
    """Replies that were not the JSON object that was asked for."""
    # Records of older versions lack these.
    kind: NotRequired[str]
    """The kind of question; empty if the data does not say."""
    form: NotRequired[Form]
    """What a right answer is: a `text`, a complete `list`, a `number`, or that the fact is `absent`."""
    items: NotRequired[list[list[str]]]
    """The items of the complete list that is asked for, each with its accepted names."""
    number: NotRequired[dict[str, Any] | None]
    """The number that is asked for, with its units and its tolerance."""
    right: NotRequired[bool]
    """Whether the answer is right by a rule for its form; for a text, whether it contains the answer or an alias."""
    list_precision: NotRequired[float | None]
    """The share of the answer's items that are in the gold list; None if no list is asked for."""
    list_recall: NotRequired[float | None]
    """The share of the gold list that is in the answer."""
    list_f1: NotRequired[float | None]
    """The harmonic mean of both."""
    refused: NotRequired[bool]
    """Whether the answer says that the corpus does not hold the fact."""


class RecordFile:
    """The records of one method, one JSON line each. The last record of a question counts."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def read(self) -> dict[str, Record]:
        """Return the records by question id."""
        return {record["question_id"]: record for record in self.each()}

    def each(self) -> Iterator[Record]:
        """Yield the records in the order of the file. Damaged lines are skipped: the next run adds their questions."""
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
        # Objects that JSON cannot hold, such as a provider's own in a message, are written as strings.
        text = json.dumps(record, ensure_ascii=False, default=str)
        line = f"{text}\n".encode("utf-8", "replace")  # lone surrogates become "?"
        with self.file.open("ab") as out:
            out.write(line)
            out.flush()
            os.fsync(out.fileno())

    def drop_half_line(self) -> None:
        """Cut off half a line at the end, so that the next record begins a new one."""
        if not self.file.exists():
            return
        with self.file.open("rb+") as lines:
            end_of_last_line = lines.read().rfind(b"\n") + 1
            lines.truncate(end_of_last_line)


def record_file(folder: Path, method: str) -> RecordFile:
    """Return the file of one method's records in a run folder."""
    return RecordFile(folder / RECORDS / f"{method}.jsonl")


def load_records(folder: str | Path) -> dict[str, dict[str, Record]]:
    """Return the records of a run.

    Args:
        folder: The run's folder.

    Returns:
        The records by method, and then by question id.

    Example:
        >>> from arag.evaluation import load_records, run_experiment
        >>> records = list(run_experiment("examples/questions.json", "my-index", "naive-rag", limit=1, out="runs/one"))
        >>> load_records("runs/one")["naive-rag"]["q01"]["answer"]
        '1783'
    """
    records = {}
    for file in sorted((Path(folder) / RECORDS).glob("*.jsonl")):
        records[file.stem] = RecordFile(file).read()
    return records


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
        with threads(context.concurrency) as pool:
            work = []
            for question in list_open(questions, records, judged=judged):
                known = records.get(question.id)
                work.append(pool.submit(_answer_and_judge, method, context, prepared, question, known))
            for done in as_completed(work):
                record = done.result()
                file.append(record)
                try:
                    yield record
                except GeneratorExit:
                    context.stopped.set()
                    raise
                reason = _why_failed(record)
                failures = 0 if reason is None else failures + 1
                if failures == MAX_FAILURES:
                    raise InputError(f"{failures} questions in a row failed, the last one with: {reason}")


def list_open(questions: Iterable[Question], records: Mapping[str, Record], *, judged: bool) -> list[Question]:
    """Return the questions that have no answer, or, with a judge, no verdict."""
    return [question for question in questions if _is_open(question, records.get(question.id), judged=judged)]


def _is_open(question: Question, record: Record | None, *, judged: bool) -> bool:
    if not _is_answered(record, question):
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


def _is_answered(record: Record | None, question: Question) -> TypeGuard[Record]:
    """Return whether a record has an answer to a question, which may have changed since."""
    if record is None or record["error"] is not None:
        return False
    return (
        record["question"] == question.text
        and record["answer"] == question.answer
        and record["aliases"] == list(question.aliases)
        and record["gold_documents"] == list(question.gold_documents)
        and _pages_of(record) == list(question.gold_pages)
        and record.get("kind", "") == question.kind
        and record.get("form", "text") == question.form
        and record.get("items", []) == _list_items(question)
        and record.get("number") == _describe_number(question.number)
    )


def _pages_of(record: Record) -> list[tuple[str, int]]:
    """Return the gold pages of a record; JSON has made lists of them."""
    return [(document, page) for document, page in record["gold_pages"]]


def _list_items(question: Question) -> list[list[str]]:
    return [list(names) for names in question.items]


def _describe_number(number: Number | None) -> dict[str, Any] | None:
    """Return a number as JSON holds it."""
    if number is None:
        return None
    return {"value": number.value, "units": list(number.units), "tolerance": number.tolerance}


def _has_verdict(record: Record) -> bool:
    judgement = record["judgement"]
    return judgement is not None and judgement["correct"] is not None


def _answer_and_judge(
    method: Method, context: RunContext, prepared: Any, question: Question, record: Record | None
) -> Record:
    """Return a question's new record: answered if it has no answer, and judged if there is a judge."""
    if not _is_answered(record, question):
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


def make_record(question: Question, session: Session, answer: Answer, error: Exception | None = None) -> Record:
    """Return the record of a question: the calls, the retrievals, and the answer, or the error in its place."""
    text = answer.text.strip()
    answers = [question.answer, *question.aliases]
    list_score = score_list(text, question.items, question.text) if question.items else None
    refused = is_refusal(text)
    index = session.context.index
    seen = union(None, chain.from_iterable(entry["chunk_ids"] for entry in session.trace))
    read = union(None, chain.from_iterable(entry["new_chunks"] for entry in session.trace))
    marks = map(mark, answer.cited)
    citations = parse_citations(" ".join([text, *marks]), index, seen, read)

    def share_of_gold(chunk_ids: list[str]) -> float | None:
        if error is not None or _shows_texts_alone(session.trace):
            return None
        gold = question.gold_pages or question.gold_documents
        return share(gold, find_sources(index, chunk_ids))

    return Record(
        question_id=question.id,
        question=question.text,
        answer=question.answer,
        aliases=list(question.aliases),
        gold_documents=list(question.gold_documents),
        gold_pages=list(question.gold_pages),
        fields=dict(question.fields),
        prediction=text,
        stop_reason=answer.stop_reason if error is None else None,
        error=_describe_error(error),
        traceback=_format_traceback(error),
        seconds=sum((call["seconds"] for call in session.calls), start=0.0),
        steps=sum(not call["forced"] for call in session.calls),
        retrieved_tokens=sum(entry["retrieved_tokens"] for entry in session.trace),
        evidence_tokens=sum(entry["evidence_tokens"] for entry in session.trace),
        usage=total(session.calls),
        cost=cost(session.calls),
        contain=contains(text, [question.answer]),
        contain_with_aliases=contains(text, answers),
        exact_match=exact_match(text, answers),
        f1=f1(text, answers),
        gold_seen=share_of_gold(seen),
        gold_read=share_of_gold(read),
        gold_cited=share_of_gold([citation["chunk_id"] for citation in citations]),
        judgement=None,
        citations=citations,
        trace=session.trace,
        model_calls=session.calls,
        read_chunks=read,
        messages=messages_to_dict(_list_messages(question, session, text)),
        notes=session.notes,
        unusable=session.unusable,
        kind=question.kind,
        form=question.form,
        items=_list_items(question),
        number=_describe_number(question.number),
        right=_is_right(question, text, list_score, refused=refused),
        list_precision=list_score and list_score.precision,
        list_recall=list_score and list_score.recall,
        list_f1=list_score and list_score.f1,
        refused=refused,
    )


def _shows_texts_alone(trace: Sequence[ToolRecord]) -> bool:
    """Return whether the tools have shown texts and no ids of chunks, as bash does."""
    shows_chunks = any(entry["chunk_ids"] for entry in trace)
    return not shows_chunks and any(entry["evidence_tokens"] for entry in trace)


def _is_right(question: Question, text: str, list_score: ListScore | None, *, refused: bool) -> bool:
    """Return whether an answer is right by the rule for its form."""
    if list_score is not None:
        return list_score.f1 == 1
    if question.number is not None:
        return has_number(text, question.number, question.text)
    if question.absent:
        return refused
    return contains(text, [question.answer, *question.aliases])


def _describe_error(error: Exception | None) -> str | None:
    if error is None:
        return None
    return without_credentials(f"{type(error).__name__}: {error}")


def _format_traceback(error: Exception | None) -> str | None:
    if error is None:
        return None
    return without_credentials("".join(traceback.format_exception(error)))


def _list_messages(question: Question, session: Session, text: str) -> Sequence[AnyMessage]:
    """Return the conversation, or the question and its answer if the method holds none."""
    if session.messages:
        return session.messages
    messages: list[AnyMessage] = [HumanMessage(question.text)]
    if text:
        messages.append(AIMessage(text))
    return messages


def find_gold(record: Record) -> list[Source]:
    """Return where the answer to a record's question is: pages if they are known, otherwise documents."""
    pages = _pages_of(record)
    if pages:
        return [*pages]
    return [*record["gold_documents"]]


def find_sources(index: Index, chunk_ids: Iterable[str]) -> set[Source]:
    """Return the documents and the pages that chunks come from."""
    sources: set[Source] = set()
    for chunk in index.mget(list(chunk_ids)):
        if chunk is None:
            continue
        sources.add(chunk.document_id)
        if chunk.pages is not None:
            document = PurePosixPath(chunk.document_id).stem
            first, last = chunk.pages
            for page in range(first, last + 1):
                sources.add((document, page))
    return sources
