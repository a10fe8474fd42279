"""Lets a judge model find why answers are wrong, from what was searched and read, if the records do not show it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import Field, create_model

from arag.evaluation.event_loop import work_through
from arag.evaluation.failure_labels import describe
from arag.evaluation.failures import AGENTIC, DEEPER, ONE_SHOT, Failure, Taxonomy
from arag.evaluation.patience import Patience
from arag.evaluation.records import Record, find_gold, find_sources
from arag.evaluation.scores import contains
from arag.evaluation.structured import StructuredModel
from arag.graph.prompts import DATA_RULE, as_data
from arag.models.prices import cost
from arag.retrieval.index import Index

DEFAULT_CONCURRENCY = 8
_MAX_PASSAGES = 12_000  # characters of all chunks that are shown
_MAX_SEARCHES, _MAX_ANSWER = 4_000, 2_000  # characters of the tool calls and of an answer


async def diagnose(
    found: Iterable[Failure],
    model: BaseChatModel,
    index: Index,
    *,
    concurrency: int = DEFAULT_CONCURRENCY,
    keep: Callable[[Sequence[Failure]], None] = lambda _: None,
) -> tuple[list[Failure], float | None]:
    """Let a model decide the causes of undecided failures.

    Args:
        found: The failures.
        model: The model.
        index: The index that was searched.
        concurrency: How many failures are asked about at a time.
        keep: Called with the current state of all failures after each diagnosis, never by two threads at once.

    Returns:
        The failures, and the cost in US dollars, None if a price is unknown. A failure without a usable diagnosis
        stays undecided, with the reply in `why`.

    Raises:
        InputError: The model is the built-in one, which cannot diagnose.
    """
    models: dict[str, StructuredModel[Any]]
    models = {each.title: StructuredModel(model, _form(each), "judge") for each in (AGENTIC, ONE_SHOT)}
    patience, keeping = Patience(), asyncio.Lock()
    now = list(found)
    costs: list[float | None] = []

    async def ask(place: int) -> None:
        failure = now[place]
        messages = await asyncio.to_thread(_messages, failure, index)
        reply = await models[failure.taxonomy.title].ask_patiently(messages, patience)
        costs.append(cost(reply.calls))
        if reply.value is None:
            now[place] = replace(failure, why=reply.why)
        else:
            now[place] = replace(failure, cause=reply.value.cause, decided_by="judge", why=reply.value.reason)
        async with keeping:
            await asyncio.to_thread(keep, list(now))

    await work_through([place for place, failure in enumerate(now) if not failure.final], ask, concurrency)
    return now, None if None in costs else sum(each or 0.0 for each in costs)


def _form(taxonomy: Taxonomy) -> Any:
    """Return the schema of a diagnosis, limited to a taxonomy's causes."""
    told = Field(description="In one sentence: what in the search, or in its use, led to the wrong answer.")
    causes = Field(description="The cause.")
    fields: dict[str, Any] = {"reason": (str, told), "cause": (Literal[tuple(taxonomy.causes)], causes)}
    return create_model("Diagnosis", __doc__="What led to a wrong answer.", **fields)


# --- what the model is shown ---


def _messages(failure: Failure, index: Index) -> list[BaseMessage]:
    record, row, causes = failure.record, describe(failure), failure.taxonomy.causes
    one_of = " or ".join(f'"{name}"' for name in causes)
    instruction = [
        f"{failure.taxonomy.task}\n\nThe causes:",
        *(f"- {name}: {meaning}" for name, meaning in causes.items()),
        "\nReply with one JSON object and nothing else:",
        f'{{"reason": "in one sentence", "cause": {one_of}}}',
        f"\n{DATA_RULE}",
    ]
    parts = [
        f"Question: {row['question']}",
        f"Gold answer: {row['answer']}",
        f"Predicted answer:\n{as_data('answer', _cut(row['prediction'], _MAX_ANSWER) or '(empty)')}",
    ]
    if failure.taxonomy is ONE_SHOT:
        parts.append(_describe_retrieval(record, index))
    else:
        parts += [
            f"It ended after {record['steps']} steps: {record['stop_reason']}",
            f"Gold of which a snippet was seen: {row['gold_seen']}; read in full: {row['gold_read']}",
            f"Tool calls:\n{as_data('calls', _cut(row['searches'], _MAX_SEARCHES) or '(none)')}",
        ]
    parts += _passages(record, index)
    return [SystemMessage("\n".join(instruction)), HumanMessage("\n\n".join(parts))]


def _describe_retrieval(record: Record, index: Index) -> str:
    """Describe whether retrieving more chunks would have found the answer."""
    hits = index.semantic_search(record["question"], DEEPER).hits
    answers = [record["answer"], *record["aliases"]]
    chunks = [index.get(hit.chunk_id) for hit in hits]
    holding = (n for n, chunk in enumerate(chunks, start=1) if chunk is not None and contains(chunk.text, answers))
    first = next(holding, None)
    of_them = "none holds" if first is None else f"number {first} is the first that holds"
    return f"Of the {len(chunks)} chunks nearest to the question, {of_them} the gold answer word for word."


def _passages(record: Record, index: Index) -> Iterator[str]:
    """Yield the chunks that the model read, each cut to its share of the available length."""
    ids = dict.fromkeys(chunk_id for entry in record["trace"] for chunk_id in entry["new_chunks"])
    chunks = [chunk for chunk in map(index.get, ids) if chunk is not None]
    gold = set(find_gold(record))
    yield f"Chunks read: {len(chunks)}"
    for chunk in chunks:
        text = _cut(chunk.text, _MAX_PASSAGES // len(chunks), around=record["answer"])
        shown = as_data("chunk", f"[{chunk.id}]\n{text}")
        yield f"With gold:\n{shown}" if gold & find_sources(index, [chunk.id]) else shown


def _cut(text: str, longest: int, *, around: str = "") -> str:
    """Return a text, cut to a length; the part around some words, if they occur in it."""
    if len(text) <= longest:
        return text
    place = text.lower().find(around.lower()) if around else 0
    begin = max(0, min(place - longest // 2, len(text) - longest))
    cut = text[begin : begin + longest]
    return f"{'...' if begin else ''}{cut}{'...' if begin + longest < len(text) else ''}"
