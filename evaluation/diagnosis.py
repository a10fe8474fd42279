"""Why answers are wrong where their records do not tell: a model says it, from what was searched and read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from arag.evaluation.event_loop import run
from arag.evaluation.failure_labels import percent, search
from arag.evaluation.failures import (
    CHAIN_ERROR,
    DEEPER,
    ONE_SHOT,
    AgenticCause,
    ChainCause,
    Failure,
    OneShotCause,
    decided,
)
from arag.evaluation.patience import Patience
from arag.evaluation.records import Record
from arag.evaluation.scores import contains
from arag.evaluation.structured import StructuredModel
from arag.graph.prompts import DATA_RULE, as_data
from arag.retrieval.index import Index

CONCURRENCY = 8
_PASSAGES = 12_000  # characters of the chunks that are shown, all in all
_SEARCHES, _ANSWER = 4_000, 2_000  # characters of the tool calls, of an answer


class Diagnosis(BaseModel):
    """What went wrong in a search that ended in a wrong answer."""

    reason: str = Field(description="In one sentence: what in the search led to the wrong answer.")
    cause: AgenticCause = Field(description="The cause.")
    chain_cause: ChainCause | None = Field(description="What went wrong in a reasoning chain; null for other causes.")


class Explanation(BaseModel):
    """Why an answer from chunks that were retrieved once is wrong."""

    chain_cause: ClassVar[None] = None

    reason: str = Field(description="In one sentence: what in the chunks, or in their use, led to the wrong answer.")
    cause: OneShotCause = Field(description="The cause.")


_AGENTIC = """An agent searched a corpus to answer a question, and its answer was found wrong. Say why, from the
question, the gold answer, the agent's answer, its tool calls in order and the chunks that it read.

The causes:
- reasoning chain error: the search or the reasoning went wrong
- judge error: the answer is right after all
- model gave up: it says that it found nothing, or gives no answer
- corpus missing: the corpus does not hold the answer
Of a reasoning chain error, one of:
- entity confusion: it read a chunk that holds the answer, and was distracted
- wrong strategy: poor queries, so that it did not find what holds the answer
- question misunderstanding: it looked for something that was not asked
- exceeded budget: it was on the way, and had no steps or room left

Reply with one JSON object and nothing else:
{"reason": "in one sentence", "cause": "reasoning chain error" or "judge error" or "model gave up" or "corpus missing",
"chain_cause": "entity confusion" or "wrong strategy" or "question misunderstanding" or "exceeded budget" or null}"""

_ONE_SHOT = """A model was given a question and the chunks of a corpus that are nearest to it, and its answer was found
wrong. Say why, from the question, the gold answer, the model's answer and the chunks.

The causes:
- model understanding: the chunks hold the answer, and the model missed it or took it for something else
- multi-hop retrieval: the chunks lack something that the question does not name: what is found first leads to it
- top-k insufficient: the chunks lack the answer, and more of the chunks that are near to the question would hold it
- judge error: the answer is right after all
- corpus missing: the corpus does not hold the answer

Reply with one JSON object and nothing else:
{"reason": "in one sentence", "cause": "model understanding" or "multi-hop retrieval" or "top-k insufficient" or
"judge error" or "corpus missing"}"""


class Diagnoser:
    """Lets a model say the cause of failures that their records do not decide.

    Args:
        model: The model.
        index: The index that was searched.
        concurrency: How many failures are asked about at a time.
        keep: Given all failures with the causes so far, whenever there is another one; not by two threads at once.
        on_answer: Called after every failure that was asked about.

    Attributes:
        asked: How many failures the model was asked about.
        unusable: Those of them that it gave no usable diagnosis of, and why.
        cost: US dollars; None where a price is unknown.

    Raises:
        InputError: The model is the built-in one, which cannot tell.
    """

    def __init__(
        self,
        model: BaseChatModel,
        index: Index,
        *,
        concurrency: int = CONCURRENCY,
        keep: Callable[[Sequence[Failure]], None] = lambda _: None,
        on_answer: Callable[[], None] = lambda: None,
    ) -> None:
        self._agentic = StructuredModel(model, Diagnosis, "judge")
        self._one_shot = StructuredModel(model, Explanation, "judge")
        self._index = index
        self._concurrency = concurrency
        self._keep = keep
        self._on_answer = on_answer
        self._patience = Patience()
        self._keeping = asyncio.Lock()
        self._is_kept = True
        self.asked = 0
        self.unusable: list[tuple[Failure, str]] = []
        self.cost: float | None = 0.0

    def run(self, found: Sequence[Failure]) -> list[Failure]:
        """Return the failures with their causes; what there is no usable diagnosis of stays undecided."""
        return run(self.arun(found))

    async def arun(self, found: Sequence[Failure]) -> list[Failure]:
        """Do the same in an event loop that is running."""
        now = list(found)
        work = iter([place for place, failure in enumerate(now) if not failure.decided_by])
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._concurrency, len(now))):
                    group.create_task(self._work(work, now))
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from several.exceptions[0].__cause__
        return now

    async def _work(self, places: Iterator[int], now: list[Failure]) -> None:
        for place in places:
            now[place] = await self._diagnosed(now[place])
            self._on_answer()
            self._is_kept = False
            async with self._keeping:
                if not self._is_kept:  # by another worker, while this one waited
                    self._is_kept = True
                    await asyncio.to_thread(self._keep, list(now))

    async def _diagnosed(self, failure: Failure) -> Failure:
        model = self._one_shot if failure.taxonomy is ONE_SHOT else self._agentic
        messages = await asyncio.to_thread(self._messages, failure)
        reply = await model.ask(messages, patiently=self._patience.ask)
        self.asked += 1
        self.cost = None if self.cost is None or reply.cost is None else self.cost + reply.cost
        if reply.value is None:
            self.unusable.append((failure, reply.why))
            return failure
        said = reply.value
        chain_cause = (said.chain_cause or "") if said.cause == CHAIN_ERROR else ""
        return decided(failure, "judge", said.cause, chain_cause, said.reason)

    def _messages(self, failure: Failure) -> list[BaseMessage]:
        record = failure.record
        parts = [
            f"Question: {record['question']}",
            f"Gold answer: {record['answer']}",
            f"Predicted answer:\n{as_data('answer', _cut(record['prediction'], _ANSWER) or '(empty)')}",
            *(self._retrieved(record) if failure.taxonomy is ONE_SHOT else _searched(record)),
            *self._passages(record),
        ]
        instruction = _ONE_SHOT if failure.taxonomy is ONE_SHOT else _AGENTIC
        return [SystemMessage(f"{instruction}\n\n{DATA_RULE}"), HumanMessage("\n\n".join(parts))]

    def _retrieved(self, record: Record) -> list[str]:
        """Say whether more chunks would have held the answer."""
        hits = self._index.semantic_search(record["question"], DEEPER).hits
        answers = [record["answer"], *record["aliases"]]
        chunks = [self._index.get(hit.chunk_id) for hit in hits]
        holding = (n for n, chunk in enumerate(chunks, start=1) if chunk is not None and contains(chunk.text, answers))
        first = next(holding, None)
        of_them = "none holds" if first is None else f"number {first} is the first that holds"
        return [f"Of the {len(chunks)} chunks nearest to the question, {of_them} the gold answer word for word."]

    def _passages(self, record: Record) -> list[str]:
        """Return the chunks that the model has read, each cut to its share of the room."""
        ids = dict.fromkeys(chunk_id for entry in record["trace"] for chunk_id in entry["new_chunks"])
        chunks = [chunk for chunk in map(self._index.get, ids) if chunk is not None]
        room = _PASSAGES // max(len(chunks), 1)
        passages = [f"Chunks read: {len(chunks)}"]
        for chunk in chunks:
            is_gold = any(section.document_id in record["gold_documents"] for section in chunk.sections)
            text = as_data("chunk", f"[{chunk.id}]\n{_cut(chunk.text, room, around=record['answer'])}")
            passages.append(f"Of a gold document:\n{text}" if is_gold else text)
        return passages


def _searched(record: Record) -> list[str]:
    calls = "\n".join(f"{entry['step']}. {search(entry)}" for entry in record["trace"])
    seen, read = percent(record["gold_seen"]) or "unknown", percent(record["gold_read"]) or "unknown"
    return [
        f"It ended after {record['steps']} steps: {record['stop_reason']}",
        f"Gold documents of which a snippet was seen: {seen}; read in full: {read}",
        f"Tool calls:\n{as_data('calls', _cut(calls, _SEARCHES) or '(none)')}",
    ]


def _cut(text: str, longest: int, *, around: str = "") -> str:
    """Return a text, or so much of it: the part around some words, where they stand in it."""
    if len(text) <= longest:
        return text
    place = text.lower().find(around.lower()) if around else 0
    begin = max(0, min(place - longest // 2, len(text) - longest))
    cut = text[begin : begin + longest]
    return f"{'...' if begin else ''}{cut}{'...' if begin + longest < len(text) else ''}"
