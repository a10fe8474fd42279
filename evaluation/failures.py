"""Why answers are wrong, by the paper's taxonomies (Figure 5, Tables 6 to 8).

What the record of a question shows is decided by it: what the index lacks, what was seen and read, which limit was
met. The rest is for a judge model, or for a person: a CSV to fill in.
"""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from arag.evaluation.event_loop import run
from arag.evaluation.records import Record
from arag.evaluation.scores import share
from arag.evaluation.structured import StructuredModel
from arag.graph.prompts import NO_ANSWER
from arag.graph.state import ToolRecord
from arag.retrieval.errors import InputError
from arag.retrieval.files import written_whole
from arag.retrieval.index import Index

OneShotCause: TypeAlias = Literal[
    "model understanding", "multi-hop retrieval", "judge error", "top-k insufficient", "corpus missing"
]
AgenticCause: TypeAlias = Literal["reasoning chain error", "judge error", "model gave up", "corpus missing"]
ChainCause: TypeAlias = Literal["entity confusion", "wrong strategy", "question misunderstanding", "exceeded budget"]
DecidedBy: TypeAlias = Literal["record", "label", "judge", ""]

_ONE_SHOT_TOOL = "retrieve"
_DEEPER = 100  # chunks among which a gold document that was not among the first k is looked for


@dataclass(frozen=True, slots=True)
class Failure:
    """A wrong answer and its cause; also a row of the CSV that a person fills in.

    Attributes:
        method: The method.
        question_id: The question's id.
        cause: The cause, first level; empty where it is not decided.
        chain_cause: What went wrong in a reasoning chain; empty for other causes, and where it is not decided.
        decided_by: The record, a person's label, a judge; empty where it is not decided.
        why: What in the record decides it, or the judge's reason.
        question: The question.
        answer: The gold answer.
        prediction: The answer that is wrong.
        gold_seen: The share of gold documents seen; empty where none are known.
        gold_read: The share of them read.
        searches: The tool calls, in order.
    """

    method: str
    question_id: str
    cause: str
    chain_cause: str
    decided_by: DecidedBy
    why: str
    question: str
    answer: str
    prediction: str
    gold_seen: str
    gold_read: str
    searches: str


def is_wrong(record: Record) -> bool:
    """Tell whether an answer is wrong: by the judge where there is a verdict, else by Contain-Acc, as in reports."""
    judgement = record["judgement"]
    verdict = judgement["correct"] if judgement is not None else None
    return not (record["contain"] if verdict is None else verdict) and record["error"] is None


def failures(records: Mapping[str, Iterable[Record]], index: Index) -> list[Failure]:
    """Return the wrong answers of methods that search, each with its cause where the record decides it.

    Args:
        records: The records by method.
        index: The index that they were made with.
    """
    found = []
    for method, some in records.items():
        kept = list(some)
        if any(record["trace"] for record in kept):  # the taxonomies are about searching
            found += [_decided(method, record, index) for record in kept if is_wrong(record)]
    return found


def _decided(method: str, record: Record, index: Index) -> Failure:
    one_shot = any(entry["tool"] == _ONE_SHOT_TOOL for entry in record["trace"])
    cause, chain_cause, why = _one_shot(record, index) if one_shot else _agentic(record, index)
    return Failure(
        method=method,
        question_id=record["question_id"],
        cause=cause,
        chain_cause=chain_cause,
        decided_by="record" if cause and (chain_cause or cause != "reasoning chain error") else "",
        why=why,
        question=record["question"],
        answer=record["answer"],
        prediction=record["prediction"],
        gold_seen=_percent(record["gold_seen"]),
        gold_read=_percent(record["gold_read"]),
        searches="; ".join(map(_search, record["trace"])),
    )


def _shared(record: Record, index: Index) -> tuple[str, str]:
    """Return a cause that any method may meet, and what shows it."""
    missing = [document for document in record["gold_documents"] if index.document(document) is None]
    if missing:
        return "corpus missing", f"the index does not hold {', '.join(missing)}"
    judgement = record["judgement"]
    if judgement is not None and judgement["correct"] is False and record["exact_match"]:
        return "judge error", "the prediction is the gold answer"
    if judgement is None and record["contain_with_aliases"]:
        return "judge error", "the prediction holds another form of the gold answer"
    return "", ""


def _agentic(record: Record, index: Index) -> tuple[str, str, str]:
    cause, why = _shared(record, index)
    if cause:
        return cause, "", why
    if record["prediction"] == NO_ANSWER:
        return "model gave up", "", "it gave no answer when it was asked for one"
    if record["stop_reason"] != "answered":
        return "reasoning chain error", "exceeded budget", f"the answer was forced: {record['stop_reason']}"
    if record["gold_read"] == 1:
        return "reasoning chain error", "entity confusion", "every gold document was read in full"
    # Poor queries, or a question that was taken for another: the record does not tell, nor whether it gave up.
    return "", "", ""


def _one_shot(record: Record, index: Index) -> tuple[str, str, str]:
    cause, why = _shared(record, index)
    if cause or not record["gold_documents"]:
        return cause, "", why
    seen = record["gold_seen"] or 0.0
    if seen == 1:
        return "model understanding", "", "every gold document stood in the prompt"
    hits = index.semantic_search(record["question"], _DEEPER).hits
    if share(record["gold_documents"], {document for hit in hits for document in hit.document_ids}) == 1:
        return "top-k insufficient", "", f"every gold document is among the nearest {_DEEPER} chunks"
    return "multi-hop retrieval", "", f"gold documents are not among the nearest {_DEEPER} chunks of the question"


def _search(entry: ToolRecord) -> str:
    return f"{entry['tool']}({', '.join(map(str, entry['arguments'].values()))})"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


# --- labels ---


def write_labels(found: Iterable[Failure], file: Path) -> None:
    """Write failures as a CSV, for a person to fill in `cause` and `chain_cause` where they are empty."""
    with written_whole(file) as out:
        lines = _Lines()
        writer = csv.DictWriter(lines, [field.name for field in fields(Failure)])
        writer.writeheader()
        writer.writerows(asdict(failure) for failure in found)
        out.write("".join(lines.written).encode("utf-8-sig"))  # spreadsheets take it for UTF-8 by its first bytes


class _Lines:
    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, line: str) -> int:
        self.written.append(line)
        return len(line)


def read_labels(found: Iterable[Failure], file: Path) -> list[Failure]:
    """Take over what a person has filled in.

    Args:
        found: The failures.
        file: The CSV.

    Raises:
        InputError: The file is missing or lacks a column, or a cause is none of the taxonomy's.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            rows = list(csv.DictReader(opened))
    except FileNotFoundError:
        raise InputError(f"{file} does not exist") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file} cannot be read as a CSV: {error}") from error
    labels: dict[tuple[str, str], tuple[str, str]] = {}
    for number, row in enumerate(rows, start=2):
        try:
            key = row["method"], row["question_id"]
            cause, chain_cause = (row["cause"] or "").strip().lower(), (row["chain_cause"] or "").strip().lower()
        except KeyError as error:
            raise InputError(f"{file} has no column {error}") from None
        _check(f"{file}, line {number}: the cause", cause, (*get_args(AgenticCause), *get_args(OneShotCause)))
        _check(f"{file}, line {number}: the chain cause", chain_cause, get_args(ChainCause))
        labels[key] = cause, chain_cause
    return [_labelled(failure, *labels.get((failure.method, failure.question_id), ("", ""))) for failure in found]


def _check(what: str, cause: str, valid: tuple[str, ...]) -> None:
    if cause and cause not in valid:
        raise InputError(f"{what} {cause!r} is none of {', '.join(dict.fromkeys(valid))}")


def _labelled(failure: Failure, cause: str, chain_cause: str) -> Failure:
    if not cause or (cause, chain_cause) == (failure.cause, failure.chain_cause):
        return failure
    return _with(failure, cause, chain_cause, "label", "")


def _with(failure: Failure, cause: str, chain_cause: str, decided_by: DecidedBy, why: str) -> Failure:
    changed = {"cause": cause, "chain_cause": chain_cause, "decided_by": decided_by, "why": why or failure.why}
    return Failure(**(asdict(failure) | changed))


class Diagnosis(BaseModel):
    """What went wrong in a search that ended in a wrong answer."""

    reason: str = Field(description="In one sentence: what in the search led to the wrong answer.")
    cause: AgenticCause = Field(
        description="reasoning chain error: the search went wrong; judge error: the answer is right after all; "
        "model gave up: it says that it found nothing; corpus missing: the corpus does not hold the answer."
    )
    chain_cause: ChainCause | None = Field(
        description="Of a reasoning chain error: entity confusion (it saw the right passage and was distracted), wrong "
        "strategy (poor queries), question misunderstanding, exceeded budget; else null."
    )


_INSTRUCTION = """An agent searched a corpus to answer a question, and its answer was found wrong. Say why, from the
question, the gold answer, the agent's answer and its searches in order.

Reply with one JSON object and nothing else:
{{"reason": "in one sentence", "cause": {causes}, "chain_cause": {chains}}}"""
_AT_ONCE = 8  # failures that are asked about at a time


def diagnose(found: Iterable[Failure], model: BaseChatModel) -> list[Failure]:
    """Let a model say the cause of agents' failures that the record does not decide.

    Args:
        found: The failures.
        model: The model; what it gives no usable diagnosis of stays undecided.

    Raises:
        InputError: The model is the built-in one, which cannot tell.
    """
    return run(_diagnosed(list(found), StructuredModel(model, Diagnosis, "diagnose")))


async def _diagnosed(found: list[Failure], model: StructuredModel[Diagnosis]) -> list[Failure]:
    free = asyncio.Semaphore(_AT_ONCE)
    chains = " or ".join(f'"{cause}"' for cause in get_args(ChainCause))
    causes = " or ".join(f'"{cause}"' for cause in get_args(AgenticCause))
    head = SystemMessage(_INSTRUCTION.format(causes=causes, chains=f"{chains} or null"))

    async def diagnosed(failure: Failure) -> Failure:
        if failure.decided_by:
            return failure
        told = f"Question: {failure.question}\nGold answer: {failure.answer}\nAgent's answer: {failure.prediction}\n"
        told += f"Gold passages seen: {failure.gold_seen or 'unknown'}, read: {failure.gold_read or 'unknown'}\n"
        async with free:
            said = (await model.ask([head, HumanMessage(f"{told}Searches: {failure.searches}")])).value
        if said is None:
            return failure
        chain = (said.chain_cause or "") if said.cause == "reasoning chain error" else ""
        return _with(failure, said.cause, chain, "judge", said.reason)

    return await asyncio.gather(*map(diagnosed, found))
