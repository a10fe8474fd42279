"""Why answers are wrong where their records do not tell: a model says it, from what was searched and read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field, create_model

from arag.evaluation.event_loop import run, work_through
from arag.evaluation.failure_labels import percent, search
from arag.evaluation.failures import AGENTIC, CHAIN_ERROR, DEEPER, ONE_SHOT, Failure, Taxonomy, decide
from arag.evaluation.patience import Patience
from arag.evaluation.records import Record
from arag.evaluation.scores import contains
from arag.evaluation.structured import StructuredModel
from arag.graph.prompts import DATA_RULE, as_data
from arag.retrieval.index import Index

DEFAULT_CONCURRENCY = 8
_MAX_PASSAGES = 12_000  # characters of the chunks that are shown, all in all
_MAX_SEARCHES, _MAX_ANSWER = 4_000, 2_000  # characters of the tool calls, of an answer


class Diagnosis(BaseModel):
    """What led to a wrong answer."""

    reason: str = Field(description="In one sentence: what in the search, or in its use, led to the wrong answer.")
    cause: str = Field(description="The cause.")


def _form(taxonomy: Taxonomy) -> type[Diagnosis]:
    """Return the form that knows a taxonomy's causes only."""
    fields: dict[str, Any] = {"cause": (Literal[tuple(taxonomy.causes)], Diagnosis.model_fields["cause"])}
    if taxonomy.chain_causes:
        told = Field(description="What went wrong in a reasoning chain; null for other causes.")
        fields["chain_cause"] = (Literal[tuple(taxonomy.chain_causes)] | None, told)
    return create_model("Diagnosis", __base__=Diagnosis, __doc__=Diagnosis.__doc__, **fields)


def _instruction(taxonomy: Taxonomy) -> str:
    parts = [taxonomy.task, "", "The causes:", *_list_causes(taxonomy.causes)]
    reply = f'{{"reason": "in one sentence", "cause": {_one_of(taxonomy.causes)}'
    if taxonomy.chain_causes:
        parts += [f"Of a {CHAIN_ERROR}, one of:", *_list_causes(taxonomy.chain_causes)]
        reply += f', "chain_cause": {_one_of(taxonomy.chain_causes)} or null'
    return "\n".join([*parts, "", "Reply with one JSON object and nothing else:", f"{reply}}}", "", DATA_RULE])


def _list_causes(causes: Mapping[str, str]) -> list[str]:
    return [f"- {name}: {meaning}" for name, meaning in causes.items()]


def _one_of(causes: Iterable[str]) -> str:
    return " or ".join(f'"{cause}"' for cause in causes)


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
        concurrency: int = DEFAULT_CONCURRENCY,
        keep: Callable[[Sequence[Failure]], None] = lambda _: None,
        on_answer: Callable[[], None] = lambda: None,
    ) -> None:
        self._models = {each.title: StructuredModel(model, _form(each), "judge") for each in (AGENTIC, ONE_SHOT)}
        self._index = index
        self._concurrency = concurrency
        self._keep = keep
        self._on_answer = on_answer
        self._patience = Patience()
        self._keeping = asyncio.Lock()
        self.asked = 0
        self.unusable: list[tuple[Failure, str]] = []
        self.cost: float | None = 0.0

    def run(self, found: Sequence[Failure]) -> list[Failure]:
        """Return the failures with their causes; what there is no usable diagnosis of stays undecided."""
        return run(self.arun(found))

    async def arun(self, found: Sequence[Failure]) -> list[Failure]:
        """Do the same in an event loop that is running."""
        now = list(found)

        async def diagnose(place: int) -> None:
            now[place] = await self._diagnose(now[place])
            self._on_answer()
            async with self._keeping:
                await asyncio.to_thread(self._keep, list(now))

        await work_through(
            [place for place, failure in enumerate(now) if not failure.decided_by], diagnose, self._concurrency
        )
        return now

    async def _diagnose(self, failure: Failure) -> Failure:
        messages = await asyncio.to_thread(self._messages, failure)
        reply = await self._models[failure.taxonomy.title].ask(messages, self._patience)
        self.asked += 1
        self.cost = None if self.cost is None or reply.cost is None else self.cost + reply.cost
        if reply.value is None:
            self.unusable.append((failure, reply.why))
            return failure
        said = reply.value
        chain_cause = (getattr(said, "chain_cause", "") or "") if said.cause == CHAIN_ERROR else ""
        return decide(failure, "judge", said.cause, chain_cause, said.reason)

    def _messages(self, failure: Failure) -> list[BaseMessage]:
        record = failure.record
        parts = [
            f"Question: {record['question']}",
            f"Gold answer: {record['answer']}",
            f"Predicted answer:\n{as_data('answer', _cut(record['prediction'], _MAX_ANSWER) or '(empty)')}",
            *(self._describe_retrieval(record) if failure.taxonomy is ONE_SHOT else _describe_search(record)),
            *self._passages(record),
        ]
        return [SystemMessage(_instruction(failure.taxonomy)), HumanMessage("\n\n".join(parts))]

    def _describe_retrieval(self, record: Record) -> list[str]:
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
        room = _MAX_PASSAGES // max(len(chunks), 1)
        passages = [f"Chunks read: {len(chunks)}"]
        for chunk in chunks:
            is_gold = any(section.document_id in record["gold_documents"] for section in chunk.sections)
            text = as_data("chunk", f"[{chunk.id}]\n{_cut(chunk.text, room, around=record['answer'])}")
            passages.append(f"Of a gold document:\n{text}" if is_gold else text)
        return passages


def _describe_search(record: Record) -> list[str]:
    calls = "\n".join(f"{entry['step']}. {search(entry)}" for entry in record["trace"])
    seen, read = percent(record["gold_seen"]) or "unknown", percent(record["gold_read"]) or "unknown"
    return [
        f"It ended after {record['steps']} steps: {record['stop_reason']}",
        f"Gold documents of which a snippet was seen: {seen}; read in full: {read}",
        f"Tool calls:\n{as_data('calls', _cut(calls, _MAX_SEARCHES) or '(none)')}",
    ]


def _cut(text: str, longest: int, *, around: str = "") -> str:
    """Return a text, or so much of it: the part around some words, where they stand in it."""
    if len(text) <= longest:
        return text
    place = text.lower().find(around.lower()) if around else 0
    begin = max(0, min(place - longest // 2, len(text) - longest))
    cut = text[begin : begin + longest]
    return f"{'...' if begin else ''}{cut}{'...' if begin + longest < len(text) else ''}"
