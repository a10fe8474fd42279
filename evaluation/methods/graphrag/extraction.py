"""What the model is asked about each chunk: the entities and relationships in it, and once more for those it missed."""

from __future__ import annotations

from typing import Annotated, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    OnErrorOmit,
    ValidatorFunctionWrapHandler,
    field_validator,
)

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

# Small models write null for what they do not know.
_Text = Annotated[str, BeforeValidator(lambda given: "" if given is None else given)]


class FoundEntity(BaseModel):
    """An entity in a text."""

    name: str = Field(description="Its name.")
    type: _Text = Field("", description=f"Its type: {_TYPES}.")
    description: _Text = Field("", description="What the text says about it.")


class FoundRelationship(BaseModel):
    """A relationship between two entities of a text."""

    source: str = Field(description="The name of the entity that it starts from.")
    target: str = Field(description="The name of the other entity.")
    description: _Text = Field("", description="Why they are related.")
    strength: FiniteFloat = Field(1, description="How strongly, from 1 to 10.")


class Extraction(BaseModel):
    """The entities and relationships in a text."""

    # Models are asked for both lists, and one that leaves out the second is not asked again.
    model_config = ConfigDict(json_schema_extra={"required": ["entities", "relationships"]})

    entities: list[OnErrorOmit[FoundEntity]] = Field(description="The entities.")
    relationships: list[OnErrorOmit[FoundRelationship]] = Field(
        default_factory=list, description="The relationships between them."
    )

    @field_validator("entities", mode="wrap")
    @classmethod
    def _require_one(cls, given: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        """Refuse entities of which none is valid: the reply has another form, and is asked for again."""
        found = validate(given)
        if given and not found:
            raise ValueError("no entity is valid")
        return found


def extraction_messages(text: str) -> list[BaseMessage]:
    """Return the messages that ask for what is in a text."""
    return [SystemMessage(_TASK), HumanMessage(as_data("text", text))]


def gleaning_messages(text: str, found: Extraction) -> list[BaseMessage]:
    """Return the messages that go on with that conversation and ask for what was missed."""
    return [*extraction_messages(text), AIMessage(found.model_dump_json()), HumanMessage(_AGAIN)]
