"""HippoRAG 2 (Gutiérrez et al. 2025): PageRank on a graph of facts that the model finds in the chunks.

Offline, two calls for each chunk find its entities, then its facts, as triples. The nodes of the graph are the chunks,
and the entities that the facts are about. Online, a question is compared with all facts ("query to triple"), the model
filters the nearest ones ("recognition memory"), and PageRank starts at the entities that they name and, with little
weight, at all chunks.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from numpy.typing import NDArray
from pydantic import BaseModel, Field, OnErrorOmit

from arag.evaluation.method import Answer, Method, Session
from arag.evaluation.methods.shared import Passages, minmax, pagerank
from arag.graph.prompts import as_data
from arag.text.scripts import EAST_ASIAN, OTHER_LETTER

Triple = tuple[str, str, str]
"""Subject, relation and object, in normal form."""

_FACTS = 5  # nearest to the question, which the model filters
_ENTITIES = 5  # of these facts, where PageRank starts
_PASSAGE_WEIGHT = 0.05  # of chunks beside entities, where PageRank starts
_MIN_SIMILARITY = 0.8  # of synonyms
_MAX_SYNONYMS = 101  # of an entity
_MIN_LETTERS = 3  # letters and digits of an entity that has synonyms
_COSINES_AT_ONCE = 4_000_000
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
    """The entities of a chunk; those that are not valid are left out."""

    entities: list[OnErrorOmit[str]]


_Part = Annotated[str, Field(coerce_numbers_to_str=True)]


class Triples(BaseModel):
    """The facts of a chunk; those that are not valid are left out."""

    triples: list[OnErrorOmit[tuple[_Part, _Part, _Part]]]


class _Kept(BaseModel):
    keep: list[int]


# --- the graph ---


def normal_form(text: str) -> str:
    """Return a text as it is compared: ASCII letters and digits in lower case; other scripts are only lower-cased."""
    lowered = text.lower()
    form = re.sub("[^a-z0-9 ]", " ", lowered).strip()
    if form and not OTHER_LETTER.search(lowered):
        return form
    return " ".join(lowered.split()) if any(map(str.isalnum, lowered)) else ""


def normal_forms(triples: Iterable[Triple]) -> list[Triple]:
    """Return different triples in normal form, without those that lack an end."""
    forms = [(normal_form(one), normal_form(relation), normal_form(other)) for one, relation, other in triples]
    return [triple for triple in forms if triple[0] and triple[2]]


class Facts(NamedTuple):
    """What the triples of all chunks say; entities are their subjects and objects."""

    triples: list[Triple]
    entities: list[str]
    chunk_entities: list[list[str]]
    chunk_counts: Mapping[str, int]
    """In how many chunks each entity is."""
    links: Mapping[tuple[str, str], int]
    """How many triples link two different entities, in each direction."""


def collect(chunks: Sequence[Sequence[Triple]]) -> Facts:
    """Return what the triples of chunks say."""
    chunk_entities = [list(dict.fromkeys(end for one, _, other in each for end in (one, other))) for each in chunks]
    links: Counter[tuple[str, str]] = Counter()
    for one, _, other in chain(*chunks):
        if one != other:
            links.update([(one, other), (other, one)])
    chunk_counts = Counter(chain(*chunk_entities))
    return Facts(list(dict.fromkeys(chain(*chunks))), list(chunk_counts), chunk_entities, chunk_counts, links)


def find_synonyms(entities: Sequence[str], vectors: NDArray[np.float32]) -> dict[tuple[str, str], float]:
    """Return the cosine similarity of each entity to its nearest synonyms, from the first of a pair to the second.

    An entity of fewer than three letters has none, but may be one. A Chinese, Japanese or Korean character counts as
    two letters. The vectors are of length one, shape (entities, dimension).
    """
    synonyms = {}
    rows = _COSINES_AT_ONCE // max(len(entities), 1) + 1
    for begin in range(0, len(entities), rows):
        for number, cosines in enumerate(vectors[begin : begin + rows] @ vectors.T, begin):
            entity = entities[number]
            if sum(map(str.isalnum, entity)) + len(_EAST_ASIAN.findall(entity)) < _MIN_LETTERS:
                continue
            near = np.flatnonzero(cosines >= _MIN_SIMILARITY)
            near = near[near != number]
            for other in near[np.argsort(-cosines[near], kind="stable")][:_MAX_SYNONYMS].tolist():
                synonyms[entity, entities[other]] = float(cosines[other])
    return synonyms


def make_edges(facts: Facts, synonyms: Mapping[tuple[str, str], float]) -> NDArray[np.float64]:
    """Return the edges for `pagerank`; the entities are numbered before the chunks.

    As in the published code, an edge between entities weighs the number of their triples, in each direction, and a
    synonym's cosine takes that number's place in its direction. An edge between a chunk and an entity in it weighs 1.
    """
    numbers = {entity: number for number, entity in enumerate(facts.entities)}
    between: dict[tuple[str, str], float] = {**facts.links, **synonyms}
    edges = [(numbers[one], numbers[other], weight) for (one, other), weight in between.items()]
    for chunk, entities in enumerate(facts.chunk_entities, len(numbers)):
        edges += [(chunk, numbers[entity], 1.0) for entity in entities]
    return np.array(edges, dtype=np.float64).reshape(-1, 3)


def weigh_entities(kept: Sequence[tuple[Triple, float]], chunk_counts: Mapping[str, int]) -> dict[str, float]:
    """Return the heaviest entities of facts with scores: the mean score, over the number of the entity's chunks."""
    scores: dict[str, list[float]] = defaultdict(list)
    for (one, _, other), score in kept:
        for end in (one, other):
            scores[end].append(score / chunk_counts[end])
    means = {end: sum(shares) / len(shares) for end, shares in scores.items()}
    return dict(sorted(means.items(), key=lambda item: -item[1])[:_ENTITIES])


# --- the method ---


class Graph(NamedTuple):
    """What is made before the first question."""

    passages: Passages
    facts: Facts
    fact_vectors: NDArray[np.float32]
    edges: NDArray[np.float64]


class HippoRAG2(Method):
    """Two calls; the prompt holds the chunks that PageRank finds in a graph of facts."""

    name: ClassVar[str] = "hipporag2"
    title: ClassVar[str] = "HippoRAG2"
    needs_model: ClassVar[bool] = True
    differs: ClassVar[str] = (
        "Prompts of our own. The model filters facts by their numbers, and the embedder has one prompt for all "
        "questions. A name with letters of another script than the Latin one is only lower-cased; the published code "
        "drops these letters. The complete triples of a reply that was cut off are kept."
    )

    def prepare(self, session: Session) -> Graph:
        """Find the facts and synonyms of all chunks, and make the graph (offline)."""
        passages = session.lab.passages()
        texts = [chunk.text for chunk in passages.chunks]
        example: list[AnyMessage] = [
            HumanMessage(_show(_PASSAGE)),
            AIMessage(json.dumps({"entities": _PASSAGE_ENTITIES})),
        ]
        users = [[*example, HumanMessage(_show(text))] for text in texts]
        named = session.ask_all(_FIND_ENTITIES, users, Entities, title="Entities")
        example = [
            HumanMessage(_show(_PASSAGE, _PASSAGE_ENTITIES)),
            AIMessage(json.dumps({"triples": _PASSAGE_TRIPLES})),
        ]
        users = [
            [*example, HumanMessage(_show(text, list(dict.fromkeys(reply.entities)) if reply else ()))]
            for text, reply in zip(texts, named, strict=True)
        ]
        read = session.ask_all(_FIND_TRIPLES, users, Triples, title="Facts")
        facts = collect([normal_forms(dict.fromkeys(reply.triples)) if reply else () for reply in read])
        synonyms = find_synonyms(facts.entities, session.lab.vectors(facts.entities, "Entities embedded"))
        vectors = session.lab.vectors([str(triple) for triple in facts.triples], "Facts embedded")
        return Graph(passages, facts, vectors, make_edges(facts, synonyms))

    def answer(self, question: str, session: Session, prepared: Graph) -> Answer:
        """Rank the chunks by PageRank from the facts that the model keeps; without any, by similarity (online)."""
        query = session.lab.index.embedder.embed_query(question)
        kept = _filter(question, query, session, prepared)
        ranks: NDArray[Any] = prepared.passages.vectors @ query
        starts = weigh_entities(kept, prepared.facts.chunk_counts)
        if starts:
            weights = [starts.get(entity, 0.0) for entity in prepared.facts.entities]
            reset = np.concatenate([weights, _PASSAGE_WEIGHT * minmax(ranks)])
            ranks = pagerank(prepared.edges, reset)[len(weights) :]
        lines = [f"{entity}: {weight:.3f}" for entity, weight in starts.items()]
        session.note("Entities where PageRank starts", lines or ["none: the chunks are ranked by similarity alone"])
        chunks = prepared.passages.best(ranks, session.lab.top_k)
        session.retrieved(chunks, question, kept=len(kept), entities=len(starts))
        return session.read(question, chunks, _READER_EXAMPLE)


def _filter(question: str, query: NDArray[np.float32], session: Session, graph: Graph) -> list[tuple[Triple, float]]:
    """Return the facts that the model keeps of those nearest to the question (recognition memory)."""
    if not graph.facts.triples:
        return []
    scores = minmax(graph.fact_vectors @ query)
    nearest = np.argsort(-scores, kind="stable")[:_FACTS].tolist()
    facts = [(graph.facts.triples[number], float(scores[number])) for number in nearest]
    lines = [f"{' | '.join(triple)} ({score:.3f})" for triple, score in facts]
    session.note("Nearest facts", lines)
    listed = "\n".join(f"{place}. {' | '.join(triple)}" for place, (triple, _) in enumerate(facts, 1))
    reply = session.ask(_FILTER, f"Question: {question}\n\n{as_data('facts', listed)}", _Kept)
    kept = [number - 1 for number in sorted({*reply.keep}) if 1 <= number <= len(facts)] if reply else []
    session.note("Facts kept", [lines[place] for place in kept] or ["none"])
    return [facts[place] for place in kept]


def _show(passage: str, entities: Sequence[str] | None = None) -> str:
    listed = "" if entities is None else "\n\n" + as_data("entities", json.dumps(entities, ensure_ascii=False))
    return as_data("passage", passage) + listed


METHODS = (HippoRAG2,)
