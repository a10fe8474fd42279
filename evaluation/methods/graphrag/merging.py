"""Merges what was found in single chunks into one graph."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from arag.evaluation.methods.graphrag.extraction import Extraction
from arag.evaluation.methods.graphrag.knowledge import Entity, Relationship

_BREAKS = re.compile(r"[\t-\r\x85]")  # become spaces: the words around them stay two
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MIN_STRENGTH, _MAX_STRENGTH = 1.0, 10.0


@dataclass
class _Gathered:
    """What chunks say about one entity or relationship."""

    descriptions: set[str] = field(default_factory=set)
    chunk_ids: dict[str, None] = field(default_factory=dict)
    weight: float = 0.0

    def add(self, chunk_id: str, description: str, weight: float = 0.0) -> None:
        self.descriptions |= {clean(description)} - {""}
        self.chunk_ids[chunk_id] = None
        self.weight += weight


def clean(text: str) -> str:
    """Return a text without HTML escapes, control characters and surrounding white space."""
    return _CONTROL.sub("", _BREAKS.sub(" ", html.unescape(text))).strip()


def merge(found: Iterable[tuple[str, Extraction]]) -> tuple[list[Entity], list[Relationship]]:
    """Merge what was found in chunks.

    Names are compared in capitals. Of entities with one name and several types, the first type is kept. Relationships
    are directed; those with an end that is not an entity are dropped.

    Args:
        found: Ids of chunks with what was found in them; a chunk may be there several times.
    """
    entities: dict[str, dict[str, _Gathered]] = {}
    pairs: dict[tuple[str, str], _Gathered] = {}
    for chunk_id, extraction in found:
        for entity in extraction.entities:
            if title := clean(entity.name).upper():
                kind = clean(entity.type).upper()
                entities.setdefault(title, {}).setdefault(kind, _Gathered()).add(chunk_id, entity.description)
        for each in extraction.relationships:
            ends = clean(each.source).upper(), clean(each.target).upper()
            strength = min(max(each.strength, _MIN_STRENGTH), _MAX_STRENGTH)
            pairs.setdefault(ends, _Gathered()).add(chunk_id, each.description, strength)
    pairs = {ends: gathered for ends, gathered in pairs.items() if entities.keys() >= set(ends)}
    degrees = Counter(end for pair in {(min(ends), max(ends)) for ends in pairs} for end in pair)
    return (
        [_entity(number, title, kinds, degrees) for number, (title, kinds) in enumerate(entities.items())],
        [
            Relationship(
                number,
                *ends,
                tuple(sorted(gathered.descriptions)),
                tuple(gathered.chunk_ids),
                gathered.weight,
                rank=degrees[ends[0]] + degrees[ends[1]],
            )
            for number, (ends, gathered) in enumerate(pairs.items())
        ],
    )


def _entity(number: int, title: str, kinds: dict[str, _Gathered], degrees: Counter[str]) -> Entity:
    kind, gathered = next(iter(kinds.items()))
    descriptions, chunk_ids = tuple(sorted(gathered.descriptions)), tuple(gathered.chunk_ids)
    return Entity(number, title, kind, descriptions, chunk_ids, degrees[title])
