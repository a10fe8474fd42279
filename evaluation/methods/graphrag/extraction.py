"""What the model is asked about each chunk: the entities and relationships in it, and once more for those it missed."""

from __future__ import annotations

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field, FiniteFloat

from arag.graph.prompts import DATA_RULE, as_data

_TYPES = "organization, person, geo, event"

_TASK = f"""You turn a text into a knowledge graph.

1. List every entity in the text that is one of these types: {_TYPES}. Give its name as the text spells it out most
fully, its type, and a description: all that the text says about what it is and does.
2. List the relationships between these entities that the text states or clearly implies. Name both ends exactly as in
your list of entities, say why they are related, and rate the strength of the relationship from 1 (mentioned together)
to 10 (inseparable).

Write in the language of the text, and say nothing that is not in it. Reply with one JSON object and nothing else:
{{"entities": [{{"name": "...", "type": "...", "description": "..."}}],
"relationships": [{{"source": "...", "target": "...", "description": "...", "strength": 1}}]}}
A text without such entities gets two empty lists.

For example, "Ada Venn has run the Tarn Ferry Company since 1911." holds two entities and one relationship:
{{"entities": [{{"name": "Ada Venn", "type": "person", "description": "Has run the Tarn Ferry Company since 1911."}},
{{"name": "Tarn Ferry Company", "type": "organization", "description": "Has been run by Ada Venn since 1911."}}],
"relationships": [{{"source": "Ada Venn", "target": "Tarn Ferry Company", "description": "Ada Venn has run the company
since 1911.", "strength": 9}}]}}

{DATA_RULE}"""

_AGAIN = """Read the text once more: a first reading misses many entities and relationships. Reply with a JSON object
of the same form that holds only those that are not in your list yet. Relationships may join entities of both lists."""


class FoundEntity(BaseModel):
    """An entity in a text."""

    name: str = Field(description="Its name.")
    type: str = Field("", description=f"Its type: {_TYPES}.")
    description: str = Field("", description="What the text says about it.")


class FoundRelationship(BaseModel):
    """A relationship between two entities of a text."""

    source: str = Field(description="The name of the entity that it starts from.")
    target: str = Field(description="The name of the other entity.")
    description: str = Field("", description="Why they are related.")
    strength: FiniteFloat = Field(1, description="How strongly, from 1 to 10.")


class Extraction(BaseModel):
    """The entities and relationships in a text."""

    entities: list[FoundEntity] = Field(description="The entities.")
    relationships: list[FoundRelationship] = Field(description="The relationships between them.")


def extraction_messages(text: str) -> list[BaseMessage]:
    """Return the messages that ask for what is in a text."""
    return [SystemMessage(_TASK), HumanMessage(as_data("text", text))]


def gleaning_messages(text: str, found: Extraction) -> list[BaseMessage]:
    """Return the messages that go on with that conversation and ask for what was missed."""
    return [*extraction_messages(text), AIMessage(found.model_dump_json()), HumanMessage(_AGAIN)]
