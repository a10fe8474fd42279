"""Why answers are wrong, by the paper's taxonomies (Figure 5, Tables 6 to 8).

The record of a question decides some causes: what the index lacks, what was seen and read, which limit was reached. A
judge model or a person decides the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arag.evaluation.methods import MethodFacts, all_methods
from arag.evaluation.records import Record, find_gold, find_sources
from arag.evaluation.scores import share
from arag.graph.prompts import NO_ANSWER
from arag.retrieval.index import Index

DEEPER = 100  # chunks to search for a passage that was not among the top k


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """The possible causes of wrong answers, for methods of one kind.

    Attributes:
        title: The kind.
        task: What such a method did and what a judge is shown, for the judge's prompt.
        causes: The causes and what they mean, for the judge's prompt.
    """

    title: str
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

AGENTIC = Taxonomy(
    "Methods that search step by step",
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
        **_MISSING,  # the paper has no such cause for Naive RAG: its indexes are complete
    },
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A wrong answer and its cause.

    Attributes:
        method: The method.
        taxonomy: The possible causes of its wrong answers.
        record: The answer's record.
        cause: The cause that the record or a judge gives; empty if neither does.
        decided_by: Who gave it: `record`, `judge`, or empty.
        why: The reason, or why a judge gave none.
        label: The cause that a person gives, which overrides the other; empty if nobody gave one.
        note: The person's note.
    """

    method: str
    taxonomy: Taxonomy
    record: Record
    cause: str = ""
    decided_by: str = ""
    why: str = ""
    label: str = ""
    note: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The method and the question's id, unique in a run."""
        return self.method, self.record["question_id"]

    @property
    def final(self) -> str:
        """The cause that counts; empty if undecided."""
        return self.label or self.cause


def first_level(cause: str) -> str:
    """Return the first-level cause of Figure 5 that a cause belongs to."""
    return CHAIN_ERROR if cause in CHAIN_CAUSES else cause


def is_wrong(record: Record) -> bool:
    """Return whether an answer is wrong: by the judge's verdict if there is one, else by Contain-Acc, as in reports."""
    judgement = record["judgement"]
    verdict = judgement["correct"] if judgement is not None else None
    return not (record["contain"] if verdict is None else verdict) and record["error"] is None


def find_failures(
    method: str, records: Sequence[Record], index: Index, facts: MethodFacts | None = None
) -> list[Failure]:
    """Return a method's wrong answers, with their causes if the records decide them; none if it does not search.

    Args:
        method: The method's name.
        records: All of its records.
        index: The index that they were made with.
        facts: What the run has kept of the method. If that is nothing and it is not installed, its records show which
            kind it is.
    """
    tools = {entry["tool"] for record in records for entry in record["trace"]}
    known = all_methods().get(method)
    if facts is not None:
        is_agentic = bool(facts["iterative"])
    else:
        is_agentic = bool(known.iterative if known is not None else tools - {"retrieve"})
    if not is_agentic and not tools:
        return []
    taxonomy = AGENTIC if is_agentic else ONE_SHOT
    wrong = filter(is_wrong, records)
    return [Failure(method, taxonomy, record, **_decide(taxonomy, record, index)) for record in wrong]


def _decide(taxonomy: Taxonomy, record: Record, index: Index) -> dict[str, str]:
    """Return what a record decides, as fields of a failure; empty if it decides nothing."""
    judgement = record["judgement"]
    if missing := [document for document in record["gold_documents"] if index.document(document) is None]:
        cause, why = "corpus missing", f"the index does not hold {', '.join(missing)}"
    elif judgement is not None and judgement["correct"] is False and record["exact_match"]:
        cause, why = "judge error", "the prediction is the gold answer"
    elif judgement is None and record["contain_with_aliases"]:
        cause, why = "judge error", "the prediction holds another form of the gold answer"
    else:
        cause, why = _decide_one_shot(record, index) if taxonomy is ONE_SHOT else _decide_agentic(record)
    return {"cause": cause, "decided_by": "record", "why": why} if cause else {}


def _decide_agentic(record: Record) -> tuple[str, str]:
    if record["prediction"] == NO_ANSWER:
        return "model gave up", "the model gave no answer when asked for one"
    if record["stop_reason"] != "answered":
        return "exceeded budget", f"the answer was forced: {record['stop_reason']}"
    if record["gold_read"] == 1:
        return "entity confusion", "all gold was read in full"
    # Poor queries, a misread question, or a model that gave up: the record does not show which.
    return "", ""


def _decide_one_shot(record: Record, index: Index) -> tuple[str, str]:
    if not record["gold_documents"]:
        return "", ""
    if record["gold_seen"] == 1:
        return "model understanding", "all gold was in the prompt"
    hits = index.semantic_search(record["question"], DEEPER).hits
    if share(find_gold(record), find_sources(index, [hit.chunk_id for hit in hits])) == 1:
        return "top-k insufficient", f"all gold is among the nearest {DEEPER} chunks"
    return "multi-hop retrieval", f"some gold is not among the nearest {DEEPER} chunks"
