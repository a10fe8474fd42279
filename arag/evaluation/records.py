"""Records: what a method did on a question, and how its answer scores, one JSON line each."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, NotRequired, TypedDict, TypeGuard

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, messages_to_dict

from arag.errors import without_credentials
from arag.evaluation.datasets import Form, Number, Question, Source
from arag.evaluation.judge import Judgement
from arag.evaluation.list_scores import score_list
from arag.evaluation.method import Answer, Note, Session
from arag.evaluation.number_scores import has_number
from arag.evaluation.plan import RECORDS
from arag.evaluation.refusals import is_refusal
from arag.evaluation.scores import contains, exact_match, f1, share
from arag.graph.citations import parse_citations
from arag.graph.cited import Citation
from arag.graph.state import ToolRecord, union
from arag.models.prices import cost
from arag.models.usage import ModelCall, Usage, total
from arag.retrieval.index import Index
from arag.text.marks import mark


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


def is_answered(record: Record | None, question: Question) -> TypeGuard[Record]:
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


def make_record(question: Question, session: Session, answer: Answer, error: Exception | None = None) -> Record:
    """Return the record of a question: the calls, the retrievals, and the answer, or the error in its place."""
    text = answer.text.strip()
    answers = [question.answer, *question.aliases]
    list_score = score_list(text, question.items, question.text) if question.items else None
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
        right=is_right(question, text),
        list_precision=list_score and list_score.precision,
        list_recall=list_score and list_score.recall,
        list_f1=list_score and list_score.f1,
        refused=is_refusal(text),
    )


def _shows_texts_alone(trace: Sequence[ToolRecord]) -> bool:
    """Return whether the tools have shown texts and no ids of chunks, as bash does."""
    shows_chunks = any(entry["chunk_ids"] for entry in trace)
    return not shows_chunks and any(entry["evidence_tokens"] for entry in trace)


def is_right(question: Question, text: str) -> bool:
    """Return whether an answer is right by the rule for its form."""
    if question.items:
        return score_list(text, question.items, question.text).f1 == 1
    if question.number is not None:
        return has_number(text, question.number, question.text)
    if question.absent:
        return is_refusal(text)
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
