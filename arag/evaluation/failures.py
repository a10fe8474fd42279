"""Why answers are wrong, by the paper's taxonomies (Figure 5, Tables 6 to 8).

The record of a question decides some causes: documents that the index lacks, chunks that were seen and read, a limit
that was reached. A judge model or a person decides the rest. A cause that is in the run's CSV is kept.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import create_model

from arag.errors import InputError
from arag.evaluation.method import Session
from arag.evaluation.records import Record, find_gold, find_sources
from arag.evaluation.scores import normalise, share
from arag.graph.prompts import NO_ANSWER, as_data
from arag.graph.state import ToolRecord
from arag.retrieval.index import Index
from arag.system.files import written_whole
from arag.text.marks import with_mark
from arag.text.scripts import UNSPACED

FAILURES_FILE = "failures.csv"
# Chunks to search for a passage that was not among the top k. With more, fewer failures count as multi-hop retrieval.
DEEPER = 100

_NAIVE_RAG = "naive-rag"  # the method whose ranking `semantic_search` repeats
_SPACED_LETTER = rf"[^\W{UNSPACED}]"  # or a digit, of a script that puts spaces between words
_FORMULA = tuple("=+-@\t\r＝＋－＠")  # spreadsheets run a text that begins with one of these


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """The possible causes of wrong answers for methods of one kind, as a judge is told of them."""

    task: str
    causes: Mapping[str, str]


CHAIN_ERROR = "reasoning chain error"
CHAIN_CAUSES = {  # the second level of Figure 5
    "entity confusion": "it read a chunk that holds the answer, and was distracted",
    "wrong strategy": "poor queries, so that it did not find what holds the answer",
    "question misunderstanding": "it looked for something that was not asked",
    "exceeded budget": "it was on the way, and had no steps or room left",
}
_JUDGE_ERROR = {"judge error": "the answer is right after all"}
_MISSING = {"corpus missing": "the corpus does not hold the answer"}

ITERATIVE = Taxonomy(
    "An agent searched a corpus to answer a question, and its answer was found wrong. Say why, from the question, the "
    "gold answer, the agent's answer, its tool calls in order and the chunks that it read.",
    {
        **CHAIN_CAUSES,
        CHAIN_ERROR: "the search or the reasoning went wrong in another way",
        **_JUDGE_ERROR,
        "model gave up": "it says that it found nothing, or gives no answer",
        **_MISSING,
    },
)
ONE_SHOT = Taxonomy(
    "A model was given a question and the chunks of a corpus that were retrieved for it, and its answer was found "
    "wrong. Say why, from the question, the gold answer, the model's answer and the chunks.",
    {
        "model understanding": "the chunks hold the answer, and the model missed it or took it for something else",
        "multi-hop retrieval": "the chunks lack something that the question does not name: what is found first leads "
        "to it",
        **_JUDGE_ERROR,
        "top-k insufficient": "the chunks lack the answer, and more of the chunks that are near to the question would "
        "hold it",
        **_MISSING,  # the paper has no such cause for Naive RAG: its indexes are complete
    },
)


@dataclass(slots=True)
class Failure:
    """A wrong answer and its cause, if one is known, by the record, a judge or a person."""

    method: str
    taxonomy: Taxonomy
    record: Record
    cause: str = ""
    decided_by: str = ""
    why: str = ""

    def decide(self, cause: str, decided_by: str, why: str) -> None:
        """Note its cause, if there is one."""
        if not cause:
            return
        self.cause = cause
        self.decided_by = decided_by
        self.why = why

    def describe(self) -> dict[str, str]:
        """Return it as a row of the CSV: the decision, then the facts in the record."""
        record = self.record
        return {
            "method": self.method,
            "question_id": record["question_id"],
            "cause": self.cause,
            "decided_by": self.decided_by,
            "why": self.why,
            "question": record["question"],
            "answer": record["answer"],
            "prediction": record["prediction"],
            "gold_seen": _show_share(record["gold_seen"]),
            "gold_read": _show_share(record["gold_read"]),
            "searches": "\n".join(map(_show_call, record["trace"])),
        }


def _show_share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0%}"


def _show_call(call: ToolRecord) -> str:
    arguments = ", ".join(map(str, call["arguments"].values()))
    return f"{call['step']}. {call['tool']}({arguments})"


def _is_wrong(record: Record) -> bool:
    """Return whether an answer is wrong: by the judge's verdict if there is one, else by a rule, as in reports."""
    if record["error"] is not None:
        return False
    judgement = record["judgement"]
    if judgement is None or judgement["correct"] is None:
        return not (record["contain"] if record.get("form", "text") == "text" else record["right"])
    return not judgement["correct"]


def find_failures(method: str, iterative: bool | None, records: Sequence[Record], index: Index) -> list[Failure]:
    """Return a method's wrong answers, with their causes if the records decide them; none if it does not search."""
    searches = any(record["trace"] for record in records)
    if not searches and iterative is False:
        return []
    taxonomy = ONE_SHOT if iterative is False else ITERATIVE
    failures = []
    for record in records:
        if not _is_wrong(record):
            continue
        failure = Failure(method, taxonomy, record)
        cause, why = _decide(failure, index)
        failure.decide(cause, "record", why)
        failures.append(failure)
    return failures


def _decide(failure: Failure, index: Index) -> tuple[str, str]:
    """Return the cause that a record decides, and why; empty texts if it decides none."""
    record = failure.record
    judgement = record["judgement"]
    missing = [document for document in record["gold_documents"] if index.document(document) is None]
    if missing:
        return "corpus missing", f"the index does not hold {', '.join(missing)}"
    if judgement is not None and judgement["correct"] is False and record["exact_match"]:
        return "judge error", "the prediction is the gold answer"
    if judgement is None and _names_alias(record):
        return "judge error", "no judge was asked, and the prediction has an alias of the gold answer"
    if failure.taxonomy is ONE_SHOT:
        return _decide_one_shot(failure.method, record, index)
    return _decide_iterative(record)


def _names_alias(record: Record) -> bool:
    """Return whether a prediction has an alias of the gold text, as words of its own; other forms have other rules."""
    if record.get("form", "text") != "text":
        return False
    prediction = normalise(record["prediction"])
    for alias in map(normalise, record["aliases"]):
        as_words = rf"(?<!{_SPACED_LETTER}){re.escape(alias)}(?!{_SPACED_LETTER})"
        if alias and re.search(as_words, prediction):
            return True
    return False


def _decide_iterative(record: Record) -> tuple[str, str]:
    if record["prediction"] == NO_ANSWER:
        return "model gave up", "the model gave no answer when asked for one"
    if record["stop_reason"] != "answered":
        return "exceeded budget", f"the answer was forced: {record['stop_reason']}"
    if record["gold_read"] == 1:
        return "entity confusion", "all gold was read in full"
    return "", ""  # poor queries, a misread question, or a model that gave up: the record does not show which


def _decide_one_shot(method: str, record: Record, index: Index) -> tuple[str, str]:
    if record["gold_documents"] and record["gold_seen"] == 1:
        return "model understanding", "all gold was in the prompt"
    if not record["gold_documents"] or method != _NAIVE_RAG:
        return "", ""
    hits = index.semantic_search(record["question"], DEEPER).hits
    found = find_sources(index, [hit.chunk_id for hit in hits])
    if share(find_gold(record), found) == 1:
        return "top-k insufficient", f"all gold is among the nearest {DEEPER} chunks"
    return "multi-hop retrieval", f"some gold is not among the nearest {DEEPER} chunks"


def diagnose(failure: Failure, session: Session) -> None:
    """Let a judge decide the cause of an undecided failure; it stays undecided if there is no usable diagnosis."""
    causes = failure.taxonomy.causes
    valid: Any = Literal[tuple(causes)]
    form: Any = create_model("Diagnosis", reason=(str, ...), cause=(valid, ...))
    listed = "\n".join(f"- {name}: {meaning}" for name, meaning in causes.items())
    one_of = " or ".join(f'"{name}"' for name in causes)
    task = (
        f"{failure.taxonomy.task}\n\nThe causes:\n{listed}\n\nReply with one JSON object and nothing else:\n"
        f'{{"reason": "in one sentence", "cause": {one_of}}}'
    )
    parts = _yield_evidence(failure, session.context.index)
    diagnosis: Any = session.ask(task, "\n\n".join(parts), form)
    if diagnosis is not None:
        failure.decide(diagnosis.cause, "judge", diagnosis.reason)


def _yield_evidence(failure: Failure, index: Index) -> Iterator[str]:
    """Yield the parts of a failure's description for a judge."""
    record = failure.record
    row = failure.describe()
    yield f"Question: {row['question']}"
    yield f"Gold answer: {row['answer']}"
    yield f"Predicted answer:\n{as_data('answer', row['prediction'] or '(empty)')}"
    if failure.taxonomy is ITERATIVE:
        yield f"It ended after {record['steps']} steps: {record['stop_reason']}"
        yield f"Gold of which a snippet was seen: {row['gold_seen']}; read in full: {row['gold_read']}"
        yield f"Tool calls:\n{as_data('calls', row['searches'] or '(none)')}"
    chunks = [chunk for chunk in index.mget(record["read_chunks"]) if chunk is not None]
    gold = set(find_gold(record))
    yield f"Chunks read: {len(chunks)}"
    for chunk in chunks:
        data = as_data("chunk", with_mark(chunk.id, chunk.text))
        has_gold = not gold.isdisjoint(find_sources(index, [chunk.id]))
        yield f"With gold:\n{data}" if has_gold else data


def write_failures(failures: Iterable[Failure], folder: Path) -> None:
    """Write the wrong answers of a run as a CSV, in which a person may fill in or correct `cause`."""
    rows = pd.DataFrame([failure.describe() for failure in failures]).map(csv_cell)
    text = rows.to_csv(index=False, lineterminator="\r\n")  # cells with a line break are quoted
    with written_whole(folder / FAILURES_FILE) as out:
        out.write(text.encode("utf-8-sig", "replace"))  # spreadsheets need the byte order mark


def csv_cell(text: str) -> str:
    """Return a text as a cell that no spreadsheet runs as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def read_failures(folder: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Return the rows of a run's CSV by method and question, as it was written or as a spreadsheet saved it.

    Raises:
        InputError: It is not such a CSV.
    """
    file = folder / FAILURES_FILE
    if not file.exists():
        return {}
    found = {}
    try:
        text = file.read_text("utf-8-sig")
        header = text.partition("\n")[0]
        delimiter = max(",;\t", key=header.count)
        for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter):
            row["cause"] = row["cause"].strip().lower()
            found[row["method"], row["question_id"]] = row
    except (UnicodeDecodeError, KeyError, AttributeError) as error:
        raise InputError(f"{file} is not a CSV in UTF-8 with the columns method, question_id and cause") from error
    return found
