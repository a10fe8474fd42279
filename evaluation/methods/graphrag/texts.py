"""Texts for prompts: rows of tables, and as many of them as fit into a number of tokens."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from typing import TypeVar

from arag.evaluation.methods.graphrag.knowledge import Entity, Relationship
from arag.retrieval.tokens import count_tokens

Row = TypeVar("Row")


def make_row(*cells: object) -> str:
    """Return the line of a table's row: cells between bars, quoted where they hold bars or quotes."""
    line = io.StringIO()
    csv.writer(line, delimiter="|", lineterminator="\n").writerow([" ".join(str(cell).split()) for cell in cells])
    return line.getvalue()


ENTITIES = "Entities\n" + make_row("id", "entity", "description", "relationships")
RELATIONSHIPS = "\nRelationships\n" + make_row("id", "source", "target", "description", "weight")


def entity_row(entity: Entity) -> str:
    """Return an entity's row in the table ENTITIES."""
    return make_row(entity.number, entity.title, entity.description, entity.degree)


def relationship_row(relationship: Relationship) -> str:
    """Return a relationship's row in the table RELATIONSHIPS."""
    r = relationship
    return make_row(r.number, r.source, r.target, r.description, f"{r.weight:g}")


def fitting(rows: Iterable[Row], text: Callable[[Row], str], max_tokens: int) -> list[Row]:
    """Return the rows up to the first one whose text does not fit into a number of tokens beside those before it."""
    taken: list[Row] = []
    for row in rows:
        max_tokens -= count_tokens(text(row))
        if max_tokens < 0:
            break
        taken.append(row)
    return taken
