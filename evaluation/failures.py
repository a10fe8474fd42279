"""Why answers are wrong, by the paper's taxonomies (Figure 5, Tables 6 to 8).

What the record of a question shows is decided by it: what the index lacks, what was seen and read, which limit was
met. The rest is for a judge model, or for a person: a CSV to fill in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from arag.evaluation.methods import all_methods
from arag.evaluation.records import Record
from arag.evaluation.scores import share
from arag.graph.prompts import NO_ANSWER
from arag.retrieval.index import Index

DecidedBy: TypeAlias = Literal["record", "label", "judge", ""]

CHAIN_ERROR = "reasoning chain error"
WHY = "; "  # stands between a cause and why it is the cause
DEEPER = 100  # chunks among which a passage that was not among the first k is looked for

_ONE_SHOT_TOOL = "retrieve"


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """What may be the cause of a wrong answer, for methods of one kind.

    Attributes:
        title: The kind.
        task: What such a method did, and what a judge is shown of it.
        causes: The causes, first level, and what they mean.
        chain_causes: What may go wrong in a reasoning chain, the second level; none where there is no such chain.
    """

    title: str
    task: str
    causes: Mapping[str, str]
    chain_causes: Mapping[str, str] = field(default_factory=dict)


_JUDGE_ERROR = {"judge error": "the answer is right after all"}
_MISSING = {"corpus missing": "the corpus does not hold the answer"}

ONE_SHOT = Taxonomy(
    "Methods that retrieve once",
    "A model was given a question and the chunks of a corpus that are nearest to it, and its answer was found wrong. "
    "Say why, from the question, the gold answer, the model's answer and the chunks.",
    {
        "model understanding": "the chunks hold the answer, and the model missed it or took it for something else",
        "multi-hop retrieval": "the chunks lack something that the question does not name: what is found first leads "
        "to it",
        **_JUDGE_ERROR,
        "top-k insufficient": "the chunks lack the answer, and more of the chunks that are near to the question would "
        "hold it",
        **_MISSING,  # the paper's indexes lack nothing: of Naive RAG it has no such cause
    },
)
AGENTIC = Taxonomy(
    "Methods that search step by step",
    "An agent searched a corpus to answer a question, and its answer was found wrong. Say why, from the question, the "
    "gold answer, the agent's answer, its tool calls in order and the chunks that it read.",
    {
        CHAIN_ERROR: "the search or the reasoning went wrong",
        **_JUDGE_ERROR,
        "model gave up": "it says that it found nothing, or gives no answer",
        **_MISSING,
    },
    {
        "entity confusion": "it read a chunk that holds the answer, and was distracted",
        "wrong strategy": "poor queries, so that it did not find what holds the answer",
        "question misunderstanding": "it looked for something that was not asked",
        "exceeded budget": "it was on the way, and had no steps or room left",
    },
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A wrong answer and its cause.

    Attributes:
        method: The method.
        taxonomy: The causes that its wrong answers may have.
        record: The answer's record.
        cause: The cause, first level; empty where it is not decided.
        chain_cause: What went wrong in a reasoning chain; empty for other causes, and where it is not decided.
        decided_by: The record, a person's label, a judge; empty where it is not decided.
        why: What in the record decides it, or the judge's reason.
        without_label: What the record or a judge says, and why: a person's label may say something else.
    """

    method: str
    taxonomy: Taxonomy
    record: Record
    cause: str = ""
    chain_cause: str = ""
    decided_by: DecidedBy = ""
    why: str = ""
    without_label: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What no other failure of a run has: the method and the question's id."""
        return self.method, self.record["question_id"]


def name_cause(cause: str, chain_cause: str) -> str:
    """Return a cause of both levels in words."""
    return f"{cause}: {chain_cause}" if chain_cause else cause


def decide(failure: Failure, by: DecidedBy, cause: str, chain_cause: str, why: str) -> Failure:
    """Return a failure with the cause that its record or a judge says."""
    words = f"{name_cause(cause, chain_cause)}{WHY}{why}"
    return replace(failure, cause=cause, chain_cause=chain_cause, decided_by=by, why=why, without_label=words)


def is_wrong(record: Record) -> bool:
    """Tell whether an answer is wrong: by the judge where there is a verdict, else by Contain-Acc, as in reports."""
    judgement = record["judgement"]
    verdict = judgement["correct"] if judgement is not None else None
    return not (record["contain"] if verdict is None else verdict) and record["error"] is None


def find_taxonomy(method: str, records: Iterable[Record]) -> Taxonomy | None:
    """Return the taxonomy of a method's wrong answers; None where it does not search: the taxonomies are about that.

    Args:
        method: The method's name; of one that is not installed its records tell what it is.
        records: All of its records.
    """
    tools = {entry["tool"] for record in records for entry in record["trace"]}
    known = all_methods().get(method)
    if known.iterative if known is not None else tools - {_ONE_SHOT_TOOL}:
        return AGENTIC
    return ONE_SHOT if tools else None


def find_failures(records: Mapping[str, Iterable[Record]], index: Index) -> list[Failure]:
    """Return the wrong answers of methods that search, each with its cause where the record decides it.

    Args:
        records: The records by method.
        index: The index that they were made with.
    """
    found = []
    for method, some in records.items():
        kept = list(some)
        if (taxonomy := find_taxonomy(method, kept)) is not None:
            found += [_by_record(Failure(method, taxonomy, record), index) for record in kept if is_wrong(record)]
    return found


def _by_record(failure: Failure, index: Index) -> Failure:
    cause, chain_cause, why = _decide(failure.taxonomy, failure.record, index)
    return decide(failure, "record", cause, chain_cause, why) if cause else failure


def _decide(taxonomy: Taxonomy, record: Record, index: Index) -> tuple[str, str, str]:
    """Return the cause that a record shows, of both levels, and what shows it; nothing where it does not tell."""
    judgement = record["judgement"]
    if missing := [document for document in record["gold_documents"] if index.document(document) is None]:
        return "corpus missing", "", f"the index does not hold {', '.join(missing)}"
    if judgement is not None and judgement["correct"] is False and record["exact_match"]:
        return "judge error", "", "the prediction is the gold answer"
    if judgement is None and record["contain_with_aliases"]:
        return "judge error", "", "the prediction holds another form of the gold answer"
    return _decide_one_shot(record, index) if taxonomy is ONE_SHOT else _decide_agentic(record)


def _decide_agentic(record: Record) -> tuple[str, str, str]:
    if record["prediction"] == NO_ANSWER:
        return "model gave up", "", "it gave no answer when it was asked for one"
    if record["stop_reason"] != "answered":
        return CHAIN_ERROR, "exceeded budget", f"the answer was forced: {record['stop_reason']}"
    if record["gold_read"] == 1:
        return CHAIN_ERROR, "entity confusion", "every gold document was read in full"
    # Poor queries, or a question that was taken for another: the record does not tell, nor whether it gave up.
    return "", "", ""


def _decide_one_shot(record: Record, index: Index) -> tuple[str, str, str]:
    if not record["gold_documents"]:
        return "", "", ""
    if record["gold_seen"] == 1:
        return "model understanding", "", "every gold document stood in the prompt"
    hits = index.semantic_search(record["question"], DEEPER).hits
    if share(record["gold_documents"], {document for hit in hits for document in hit.document_ids}) == 1:
        return "top-k insufficient", "", f"every gold document is among the nearest {DEEPER} chunks"
    return "multi-hop retrieval", "", f"gold documents are not among the nearest {DEEPER} chunks of the question"
