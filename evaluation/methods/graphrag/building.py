"""Builds the knowledge graph: which calls it takes, and what is made of their replies."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from arag.evaluation.methods.graphrag.communities import find_communities, find_inner
from arag.evaluation.methods.graphrag.descriptions import Described, summarise
from arag.evaluation.methods.graphrag.extraction import Extraction, extraction_messages, gleaning_messages
from arag.evaluation.methods.graphrag.knowledge import Community, Entity, KnowledgeGraph, Relationship
from arag.evaluation.methods.graphrag.merging import merge
from arag.evaluation.methods.graphrag.reports import CommunityReport, make_report, make_tables, report_messages
from arag.evaluation.structured import Asked
from arag.evaluation.workplace import Request
from arag.retrieval.tokens import count_tokens
from arag.retrieval.types import Chunk

# What follows from 1,000 tokens of chunks: calls, and their input tokens. Only estimates need it. With the names that
# spaCy finds, related to the next one in the sentence, it is 3 to 8 summaries and 0.5 to 9 reports.
_REPLY_TOKENS = 1_000  # of an extraction, which the gleaning sends back
_SUMMARIES, _SUMMARY_TOKENS = 5, 300
_REPORTS, _REPORT_TOKENS = 5, 1_500

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Work:
    """Calls that may be made side by side.

    Attributes:
        title: What they are for.
        requests: What the model is sent.
        later: Estimates how many further calls depend on their replies, and the input tokens of those.
    """

    title: str
    requests: list[Request]
    later: Callable[[], tuple[int, int]] = lambda: (0, 0)


# A step yields calls, is sent their replies in the same order, and returns what it made of them.
Step: TypeAlias = Generator[Work, list[Asked[Any]], Made]


def build(chunks: Sequence[Chunk], max_cluster_size: int) -> Step[KnowledgeGraph]:
    """Build the graph of a corpus.

    Args:
        chunks: The chunks, in the order of the index.
        max_cluster_size: Larger communities are divided further.
    """
    found, lost_chunks = yield from _extract(chunks)
    entities, relationships = merge(found)
    communities = find_communities(relationships, max_cluster_size)
    entities, relationships, lost_summaries = yield from _summarise(entities, relationships, communities)
    wanted, requests = _report_requests(entities, relationships, communities)
    asked = yield Work("Community reports", requests)
    reports = [make_report(community, each.value) for community, each in zip(wanted, asked, strict=True) if each.value]
    return KnowledgeGraph(
        entities,
        relationships,
        sorted(reports, key=lambda report: report.community.number),
        losses={"chunks": lost_chunks, "summaries": lost_summaries, "reports": len(wanted) - len(reports)},
    )


def _extract(chunks: Sequence[Chunk]) -> Step[tuple[list[tuple[str, Extraction]], int]]:
    """Return what was found in each chunk, and of how many chunks a reply was not usable."""
    size = math.ceil(sum(chunk.tokens for chunk in chunks) / 1_000)

    def after_gleaning() -> tuple[int, int]:
        return size * (_SUMMARIES + _REPORTS), size * (_SUMMARIES * _SUMMARY_TOKENS + _REPORTS * _REPORT_TOKENS)

    def after_extraction() -> tuple[int, int]:
        calls, tokens = after_gleaning()
        return len(chunks) + calls, _count(requests) + size * _REPLY_TOKENS + tokens

    requests = [Request(extraction_messages(chunk.text), Extraction) for chunk in chunks]
    asked = yield Work("Extraction", requests, after_extraction)
    first = [(chunk, each.value) for chunk, each in zip(chunks, asked, strict=True) if each.value is not None]
    again = [Request(gleaning_messages(chunk.text, extraction), Extraction) for chunk, extraction in first]
    gleaned = yield Work("Gleaning", again, after_gleaning)
    found: list[tuple[str, Extraction]] = []
    lost = len(chunks) - len(first)
    for (chunk, extraction), more in zip(first, gleaned, strict=True):
        found.append((chunk.id, extraction))
        if more.value is None:
            lost += 1
        else:
            found.append((chunk.id, more.value))
    return found, lost


def _summarise(
    entities: list[Entity], relationships: list[Relationship], communities: Sequence[Community]
) -> Step[tuple[list[Entity], list[Relationship], int]]:
    """Return entities and relationships with one description each, and how many kept several."""

    def later() -> tuple[int, int]:
        _, requests = _report_requests(entities, relationships, communities)
        return len(requests), _count(requests)

    described: list[Described] = [*entities, *relationships]
    summaries = [summarise(each) for each in described]
    done: dict[int, tuple[Described, bool]] = {}
    replies: dict[int, str | None] = dict.fromkeys(range(len(summaries)))
    while replies:
        requests: dict[int, Request] = {}
        for place, reply in replies.items():
            try:
                requests[place] = Request(summaries[place].send(reply))
            except StopIteration as end:
                done[place] = end.value
        if not requests:
            break
        asked = yield Work("Descriptions", list(requests.values()), later)
        replies = {place: each.value for place, each in zip(requests, asked, strict=True)}
    described = [done[place][0] for place in range(len(summaries))]
    return (
        [each for each in described if isinstance(each, Entity)],
        [each for each in described if isinstance(each, Relationship)],
        sum(not usable for _, usable in done.values()),
    )


def _report_requests(
    entities: Sequence[Entity], relationships: Sequence[Relationship], communities: Sequence[Community]
) -> tuple[list[Community], list[Request]]:
    """Return the communities with relationships inside, deepest level first, and the requests for their reports."""
    by_title = {entity.title: entity for entity in entities}
    inner = find_inner(communities, relationships)
    wanted = [community for community in communities if community.number in inner]
    wanted.sort(key=lambda community: (-community.level, community.number))
    tables = (make_tables(by_title, inner[community.number]) for community in wanted)
    return wanted, [Request(report_messages(each), CommunityReport) for each in tables]


def _count(requests: Sequence[Request]) -> int:
    return sum(count_tokens(str(message.content)) for request in requests for message in request.messages)
