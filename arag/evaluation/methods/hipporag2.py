"""HippoRAG 2 (Gutiérrez et al. 2025): PageRank on a graph of facts that the model finds in the chunks.

Offline, two calls for each chunk find its entities, then its facts as triples. The nodes of the graph are the chunks
and the entities of the facts. Online, a question is compared with all facts ("query to triple"), and the model filters
the nearest ones ("recognition memory"). PageRank starts at the entities of the remaining facts and, with a small
weight, at all chunks.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from numpy.typing import NDArray
from pydantic import BaseModel, Field, OnErrorOmit

from arag.evaluation.method import Answer, Method, Session
from arag.evaluation.methods.shared import Passages, best_first, list_numbered, minmax, pagerank
from arag.graph.prompts import as_data
from arag.models.similarity import rescale
from arag.text.scripts import EAST_ASIAN, OTHER_LETTER

Triple = tuple[str, str, str]
"""Subject, relation and object."""
Item = TypeVar("Item")

# The values are those of the published code, with which the tests compare the graph and the scores.
_FACTS = 5  # facts nearest to the question that the model filters
_ENTITIES = 5  # entities of these facts where PageRank starts
_PASSAGE_WEIGHT = 0.05  # weight of a chunk's similarity among the starts, beside the weights of entities
_MIN_SIMILARITY = 0.8  # of two synonyms
_MAX_SYNONYMS = 101  # synonyms of one entity
_MIN_LETTERS = 3  # letters and digits of an entity that has synonyms

_COSINES_AT_ONCE = 4_000_000  # computed together: 16 MB of float32
_EAST_ASIAN = re.compile(f"[{EAST_ASIAN}]")

# --- prompts ---

_PASSAGE = """Lyme Regis
Mary Anning, who was born in 1799, looked for fossils in the cliffs of Lyme Regis. In 1823 she found the first \
complete plesiosaur. It was bought by the Duke of Buckingham."""
_PASSAGE_ENTITIES = ["Lyme Regis", "Mary Anning", "1799", "1823", "plesiosaur", "Duke of Buckingham"]
_PASSAGE_TRIPLES = [
    ["Mary Anning", "was born in", "1799"],
    ["Mary Anning", "looked for fossils in", "Lyme Regis"],
    ["Mary Anning", "found", "the first complete plesiosaur"],
    ["the first complete plesiosaur", "was found in", "1823"],
    ["Duke of Buckingham", "bought", "the first complete plesiosaur"],
]

_FIND_ENTITIES = """List the entities that a passage names: people, places, organisations, works, events, dates and \
other things with a name, each as the passage writes it.

Reply with one JSON object and nothing else: {"entities": ["...", "..."]}"""

_FIND_TRIPLES = """Write down the facts of a passage as triples of subject, relation and object.

- At least one end of each triple is one of the listed entities.
- In place of a pronoun, write the name that it stands for.
- The relation is a few words. A triple must be clear to someone who does not have the passage.

Reply with one JSON object and nothing else: {"triples": [["subject", "relation", "object"], ...]}"""

_FILTER = """Choose the facts that help to answer a question. They are those of a corpus that are most \
similar to it, each with its number: subject | relation | object. None may help.

A fact helps if it holds a part of the answer, or leads from something that the question names to something that it \
asks for.

Reply with one JSON object and nothing else: {"keep": [the numbers of these facts]}"""

_READER_EXAMPLE = """An example. The question is "When did the builder of the Harwick Observatory die?", and a good \
reply:

[harwick.md:0] says that the engineer Edda Lorne built the observatory. The Edda Lorne of [painters.md:4], who died in \
1871, is a painter. [lorne.md:1] is about the engineer: she died in 1902.
Answer: 1902"""


class Entities(BaseModel):
    """The entities of a chunk; invalid ones are dropped."""

    entities: list[OnErrorOmit[str]]


_Part = Annotated[str, Field(coerce_numbers_to_str=True)]


class Triples(BaseModel):
    """The facts of a chunk; invalid ones are dropped."""

    triples: list[OnErrorOmit[tuple[_Part, _Part, _Part]]]


class _Kept(BaseModel):
    keep: list[int]


# --- the graph ---


def normal_form(text: str) -> str:
    """Return the form in which texts are compared: ASCII letters and digits in lower case.

    A text with letters of other scripts keeps them; it is only converted to lower case.
    """
    lowered = text.lower()
    ascii_form = re.sub("[^a-z0-9 ]", " ", lowered).strip()
    if ascii_form and not OTHER_LETTER.search(lowered):
        return ascii_form
    if any(map(str.isalnum, lowered)):
        return " ".join(lowered.split())
    return ""


def normal_forms(triples: Iterable[Triple]) -> list[Triple]:
    """Return triples in normal form; those without a subject or an object are dropped."""
    forms: list[Triple] = []
    for subject, relation, target in triples:
        form = normal_form(subject), normal_form(relation), normal_form(target)
        if form[0] and form[2]:
            forms.append(form)
    return forms


class ScoredFact(NamedTuple):
    """A fact, and its similarity to the question on a scale from 0 to 1."""

    triple: Triple
    score: float

    @property
    def text(self) -> str:
        """The triple as text."""
        return " | ".join(self.triple)

    def __str__(self) -> str:
        return f"{self.text} ({self.score:.3f})"


class Facts(NamedTuple):
    """The facts of all chunks. Their entities are the subjects and objects of the triples."""

    triples: list[Triple]
    entities: list[str]
    chunk_entities: list[list[str]]
    chunk_counts: Mapping[str, int]
    """The number of chunks that each entity occurs in."""
    links: Mapping[tuple[str, str], int]
    """The number of triples between two different entities, in each direction."""


def collect(chunks: Sequence[Sequence[Triple]]) -> Facts:
    """Collect the triples of all chunks.

    Args:
        chunks: The triples of each chunk, in normal form.

    Returns:
        The facts, each once, in the order in which they were found.
    """
    chunk_entities: list[list[str]] = []
    links: Counter[tuple[str, str]] = Counter()
    for triples in chunks:
        entities: dict[str, None] = {}  # in order, each once
        for subject, _, target in triples:
            entities[subject] = None
            entities[target] = None
            if subject != target:
                links[subject, target] += 1
                links[target, subject] += 1
        chunk_entities.append(list(entities))

    chunk_counts = Counter(chain.from_iterable(chunk_entities))
    different_triples = dict.fromkeys(chain.from_iterable(chunks))
    return Facts(
        triples=list(different_triples),
        entities=list(chunk_counts),
        chunk_entities=chunk_entities,
        chunk_counts=chunk_counts,
        links=links,
    )


def find_synonyms(
    entities: Sequence[str],
    vectors: NDArray[np.float32],
    spread: float,
) -> dict[tuple[str, str], float]:
    """Find the nearest synonyms of each entity by the similarity of their vectors.

    An entity of fewer than three letters has no synonyms, but may be one. A Chinese, Japanese or Korean character
    counts as two letters.

    Args:
        entities: The entities.
        vectors: Their vectors of length one, shape (entities, dimension).
        spread: The spread of the embedder's similarities.

    Returns:
        The similarities of synonyms, by the entity and its synonym.
    """
    synonyms: dict[tuple[str, str], float] = {}
    rows = _COSINES_AT_ONCE // max(len(entities), 1) + 1
    for begin in range(0, len(entities), rows):
        cosines = vectors[begin : begin + rows] @ vectors.T
        for number, similarities in enumerate(rescale(cosines, spread), begin):
            entity = entities[number]
            if _count_letters(entity) < _MIN_LETTERS:
                continue
            near = np.flatnonzero(similarities >= _MIN_SIMILARITY)
            near = near[near != number]
            nearest = near[best_first(similarities[near], _MAX_SYNONYMS)]
            for other in nearest.tolist():
                synonyms[entity, entities[other]] = float(similarities[other])
    return synonyms


def _count_letters(entity: str) -> int:
    """Count letters and digits; a Chinese, Japanese or Korean character counts as two."""
    return sum(map(str.isalnum, entity)) + len(_EAST_ASIAN.findall(entity))


def make_edges(facts: Facts, synonyms: Mapping[tuple[str, str], float]) -> NDArray[np.float64]:
    """Make the edges of the graph, whose nodes are the entities, and after them the chunks.

    As in the published code, the weight of an edge between entities is the number of their triples, in each direction.
    The similarity of a synonym replaces that number in its direction. An edge between a chunk and its entity weighs 1.

    Args:
        facts: The facts of all chunks.
        synonyms: The similarities of synonyms.

    Returns:
        The edges for `pagerank`, shape (edges, 3).
    """
    nodes = {entity: node for node, entity in enumerate(facts.entities)}
    weights: dict[tuple[str, str], float] = {**facts.links, **synonyms}
    edges: list[tuple[int, int, float]] = []
    for (entity, other), weight in weights.items():
        edges.append((nodes[entity], nodes[other], weight))
    for chunk_node, entities in enumerate(facts.chunk_entities, start=len(nodes)):
        edges += [(chunk_node, nodes[entity], 1.0) for entity in entities]
    return np.array(edges, dtype=np.float64).reshape(-1, 3)


def weigh_entities(kept: Iterable[tuple[Triple, float]], chunk_counts: Mapping[str, int]) -> dict[str, float]:
    """Weigh the entities where PageRank starts: the mean score of their facts, divided by the number of their chunks.

    Args:
        kept: Facts with their scores.
        chunk_counts: The number of chunks that each entity occurs in.

    Returns:
        The weights of the five heaviest entities, heaviest first.
    """
    shares: dict[str, list[float]] = defaultdict(list)
    for (subject, _, target), score in kept:
        shares[subject].append(score / chunk_counts[subject])
        shares[target].append(score / chunk_counts[target])
    weights = {entity: sum(scores) / len(scores) for entity, scores in shares.items()}
    heaviest_first = sorted(weights.items(), key=lambda item: -item[1])
    return dict(heaviest_first[:_ENTITIES])


# --- the method ---


class Graph(NamedTuple):
    """The result of the work before the first question."""

    passages: Passages
    facts: Facts
    fact_vectors: NDArray[np.float32]
    edges: NDArray[np.float64]


class HippoRAG2(Method):
    """Two calls; the prompt holds the chunks that PageRank finds in a graph of facts."""

    name: ClassVar[str] = "hipporag2"
    title: ClassVar[str] = "HippoRAG2"
    abilities: ClassVar[str | None] = "meaning cite"
    needs_model: ClassVar[bool] = True
    differs: ClassVar[str] = (
        "Prompts of our own. The model filters facts by their numbers, and the embedder has one prompt for all "
        "questions. A name with letters of another script than the Latin one is only lower-cased; the published code "
        "drops these letters. The complete triples of a reply that was cut off are kept."
    )

    def prepare(self, session: Session) -> Graph:
        """Find the facts and synonyms of all chunks, and make the graph (offline)."""
        passages = session.context.passages()
        texts = [chunk.text for chunk in passages.chunks]
        named = _find_entities(texts, session)
        facts = collect(_find_triples(texts, named, session))
        entity_vectors = session.context.vectors(facts.entities, "Entities embedded")
        synonyms = find_synonyms(facts.entities, entity_vectors, session.context.spread)
        fact_vectors = session.context.vectors([str(triple) for triple in facts.triples], "Facts embedded")
        return Graph(
            passages=passages,
            facts=facts,
            fact_vectors=fact_vectors,
            edges=make_edges(facts, synonyms),
        )

    def answer(self, question: str, session: Session, prepared: Graph) -> Answer:
        """Rank the chunks by PageRank from the facts that the model keeps; without any, by similarity (online)."""
        query = session.context.index.embedder.embed_query(question)
        kept = _filter(question, query, session, prepared)
        starts = weigh_entities(kept, prepared.facts.chunk_counts)
        scores: NDArray[Any] = prepared.passages.vectors @ query
        if starts:
            scores = _rank(prepared, starts, scores)
            lines = [f"{entity}: {weight:.3f}" for entity, weight in starts.items()]
        else:
            lines = ["none: the chunks are ranked by similarity alone"]
        session.note("Entities where PageRank starts", lines)
        chunks = prepared.passages.best(scores, session.context.top_k)
        session.retrieved(chunks, question, kept=len(kept), entities=len(starts))
        return session.read(question, chunks, _READER_EXAMPLE)


def _rank(graph: Graph, starts: Mapping[str, float], similarities: NDArray[Any]) -> NDArray[np.float64]:
    """Return the PageRank of the chunks."""
    entities = graph.facts.entities
    entity_weights = [starts.get(entity, 0.0) for entity in entities]
    chunk_weights = _PASSAGE_WEIGHT * minmax(similarities)
    reset = np.concatenate([entity_weights, chunk_weights])
    return pagerank(graph.edges, reset)[len(entities) :]


def _find_entities(texts: Iterable[str], session: Session) -> list[list[str]]:
    """Let the model list the entities of each chunk."""
    example: list[AnyMessage] = [
        HumanMessage(_show(_PASSAGE)),
        AIMessage(json.dumps({"entities": _PASSAGE_ENTITIES})),
    ]
    conversations = [[*example, HumanMessage(_show(text))] for text in texts]
    replies: list[Entities | None] = session.ask_all(_FIND_ENTITIES, conversations, Entities, title="Entities")
    entities: list[list[str]] = []
    for reply in replies:
        names = reply.entities if reply else []
        entities.append(_different(names))
    return entities


def _find_triples(texts: Iterable[str], named: Iterable[Sequence[str]], session: Session) -> list[list[Triple]]:
    """Let the model write down the facts of each chunk, from its entities; return them in normal form."""
    example: list[AnyMessage] = [
        HumanMessage(_show(_PASSAGE, _PASSAGE_ENTITIES)),
        AIMessage(json.dumps({"triples": _PASSAGE_TRIPLES})),
    ]
    conversations: list[list[AnyMessage]] = []
    for text, entities in zip(texts, named, strict=True):
        conversations.append([*example, HumanMessage(_show(text, entities))])
    replies: list[Triples | None] = session.ask_all(_FIND_TRIPLES, conversations, Triples, title="Facts")
    triples: list[list[Triple]] = []
    for reply in replies:
        written = reply.triples if reply else []
        triples.append(normal_forms(_different(written)))
    return triples


def _filter(question: str, query: NDArray[np.float32], session: Session, graph: Graph) -> list[ScoredFact]:
    """Let the model choose among the facts nearest to the question (recognition memory)."""
    if not graph.facts.triples:
        return []
    scores = minmax(graph.fact_vectors @ query)
    rows = best_first(scores, _FACTS)
    nearest = [ScoredFact(graph.facts.triples[row], float(scores[row])) for row in rows]
    session.note("Nearest facts", map(str, nearest))

    listed = as_data("facts", list_numbered(fact.text for fact in nearest))
    reply = session.ask(_FILTER, f"Question: {question}\n\n{listed}", _Kept)
    chosen = reply.keep if reply else []
    kept = [fact for number, fact in enumerate(nearest, start=1) if number in chosen]
    session.note("Facts kept", map(str, kept) if kept else ["none"])
    return kept


def _show(passage: str, entities: Sequence[str] | None = None) -> str:
    shown = as_data("passage", passage)
    if entities is None:
        return shown
    listed = as_data("entities", json.dumps(entities, ensure_ascii=False))
    return f"{shown}\n\n{listed}"


def _different(items: Iterable[Item]) -> list[Item]:
    """Return items without repetitions, in order."""
    return list(dict.fromkeys(items))


METHODS = (HippoRAG2,)
