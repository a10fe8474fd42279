"""Reads entities and relationships in chunks, and merges them into one graph (Edge et al. 2024, 3.1.2, 3.1.3)."""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Annotated

from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel, BeforeValidator, FiniteFloat, OnErrorOmit

from arag.evaluation.method import Session
from arag.evaluation.methods.graphrag.knowledge import Entity, Relationship
from arag.graph.prompts import as_data

TASK = """You turn a text into a knowledge graph.

1. List every entity in the text that is one of these types: organization, person, geo, event. Give its name as the
text spells it out most fully, its type, and a description: all that the text says about what it is and does.
2. List the relationships between these entities that the text states or clearly implies. Name both ends exactly as in
your list of entities, say why they are related, and rate the strength of the relationship from 1 (mentioned together)
to 10 (inseparable).

Write in the language of the text, and say nothing that is not in it. Reply with one JSON object and nothing else:
{"entities": [{"name": "...", "type": "...", "description": "..."}],
"relationships": [{"source": "...", "target": "...", "description": "...", "strength": 1}]}
A text without such entities gets two empty lists.

For example, "Ada Venn has run the Tarn Ferry Company since 1911." holds two entities and one relationship:
{"entities": [{"name": "Ada Venn", "type": "person", "description": "Has run the Tarn Ferry Company since 1911."},
{"name": "Tarn Ferry Company", "type": "organization", "description": "Has been run by Ada Venn since 1911."}],
"relationships": [{"source": "Ada Venn", "target": "Tarn Ferry Company", "description": "Ada Venn has run the company
since 1911.", "strength": 9}]}"""

AGAIN = """Read the text once more: a first reading misses many entities and relationships. Reply with a JSON object
of the same form that holds only those that are not in your list yet. Relationships may join entities of both lists."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MIN_STRENGTH, _MAX_STRENGTH = 1.0, 10.0

Mention = tuple[str, str]
"""The id of a chunk that names something, and how it describes it."""
# Small models write null for what they do not know.
_Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]


class ChunkEntity(BaseModel):
    """An entity as one chunk names it."""

    name: str
    type: _Text = ""
    description: _Text = ""


class ChunkRelationship(BaseModel):
    """A relationship as one chunk names it; its ends are names of entities."""

    source: str
    target: str
    description: _Text = ""
    strength: FiniteFloat = 1


class Extraction(BaseModel):
    """The entities and relationships of one chunk. Those that are not valid are left out."""

    entities: list[OnErrorOmit[ChunkEntity]]
    relationships: list[OnErrorOmit[ChunkRelationship]] = []


def extract(session: Session) -> list[tuple[str, Extraction]]:
    """Let the model read each chunk twice; return what it found, with the chunks' ids."""
    chunks = session.lab.chunks
    texts = [HumanMessage(as_data("text", chunk.text)) for chunk in chunks]
    replies = session.ask_all(TASK, [[text] for text in texts], Extraction, title="Chunks read")
    read = [(chunk.id, text, reply) for chunk, text, reply in zip(chunks, texts, replies, strict=True) if reply]
    conversations = [[text, AIMessage(reply.model_dump_json()), HumanMessage(AGAIN)] for _, text, reply in read]
    again = session.ask_all(TASK, conversations, Extraction, title="Chunks read again")
    both = [(chunk_id, (reply, more)) for (chunk_id, _, reply), more in zip(read, again, strict=True)]
    return [(chunk_id, reading) for chunk_id, readings in both for reading in readings if reading]


def clean(text: str) -> str:
    """Return a text without HTML escapes, control characters and surrounding white space."""
    return _CONTROL.sub(" ", html.unescape(text)).strip()


def merge(extractions: Iterable[tuple[str, Extraction]]) -> tuple[list[Entity], list[Relationship]]:
    """Merge what was read in chunks, of which each may be there several times.

    Names are compared in capitals. Of entities with one name and several types, the first type is kept. Relationships
    are directed; those with an end that is not an entity are dropped.
    """
    types: dict[str, str] = {}
    entities: dict[str, list[Mention]] = defaultdict(list)
    pairs: dict[tuple[str, str], list[Mention]] = defaultdict(list)
    weights: dict[tuple[str, str], float] = defaultdict(float)
    for chunk_id, extraction in extractions:
        for entity in extraction.entities:
            title, kind = clean(entity.name).upper(), clean(entity.type).upper()
            if title and types.setdefault(title, kind) == kind:
                entities[title].append((chunk_id, clean(entity.description)))
        for each in extraction.relationships:
            ends = clean(each.source).upper(), clean(each.target).upper()
            pairs[ends].append((chunk_id, clean(each.description)))
            weights[ends] += min(max(each.strength, _MIN_STRENGTH), _MAX_STRENGTH)
    known = {ends: mentions for ends, mentions in pairs.items() if entities.keys() >= set(ends)}
    degrees = Counter(end for pair in {(min(ends), max(ends)) for ends in known} for end in pair)
    return (
        [
            Entity(number, *_sum_up(mentions), title, types[title], degrees[title])
            for number, (title, mentions) in enumerate(entities.items())
        ],
        [
            Relationship(number, *_sum_up(mentions), *ends, weights[ends], sum(degrees[end] for end in ends))
            for number, (ends, mentions) in enumerate(known.items())
        ],
    )


def _sum_up(mentions: Sequence[Mention]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the different descriptions, sorted, and the chunks in order."""
    descriptions = {description for _, description in mentions} - {""}
    return tuple(sorted(descriptions)), tuple(dict.fromkeys(chunk_id for chunk_id, _ in mentions))
