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
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from arag.evaluation.method import Answer, Method, Session
from arag.evaluation.methods.shared import By, Passages, minmax, pagerank
from arag.graph.prompts import as_data
from arag.models.replies import mend_characters
from arag.retrieval.text import EAST_ASIAN

Triple = tuple[str, str, str]
"""Subject, relation and object, in normal form."""
EdgeWeights = Literal["reference", "paper"]
Synonyms = Sequence[Sequence[tuple[int, float]]]
"""For each entity, the numbers of its synonyms and their cosine similarities."""

_MAX_SYNONYMS = 101  # of an entity
_MIN_LETTERS = 3  # letters and digits of an entity that has synonyms
_COSINES_AT_ONCE = 4_000_000
_EAST_ASIAN = re.compile(f"[{EAST_ASIAN}]")
_OTHER_SCRIPT = re.compile(r"[^\W\d_\x00-\u02ff\u1e00-\u1eff]")  # a letter that is not Latin
_BETWEEN_ITEMS = re.compile(r"[\s,]*")

# --- prompts ---

_PASSAGE = """Lyme Regis
Mary Anning, who was born in 1799, looked for fossils in the cliffs of Lyme Regis. In 1823 she found the first \
complete plesiosaur. It was bought by the Duke of Buckingham."""
_ENTITIES = ["Lyme Regis", "Mary Anning", "1799", "1823", "plesiosaur", "Duke of Buckingham"]
_TRIPLES = [
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


class Kept(BaseModel):
    """The numbers of the facts that help."""

    keep: list[int]


# --- what replies say ---


def normal_form(text: str) -> str:
    """Return a text as it is compared: ASCII letters and digits in lower case; other scripts are only lower-cased."""
    lowered = mend_characters(text).lower()
    form = re.sub("[^a-z0-9 ]", " ", lowered).strip()
    if form and not _OTHER_SCRIPT.search(lowered):
        return form
    return " ".join(lowered.split()) if any(map(str.isalnum, lowered)) else ""


def read_items(reply: str, name: str) -> list[Any] | None:
    """Return the complete items of the last list with a name in a reply; None if there is no such list."""
    *_, place = [-1, *(match.end() for match in re.finditer(rf'"{name}"\s*:\s*\[', reply))]
    if place < 0:
        return None
    items: list[Any] = []
    decoder = json.JSONDecoder(strict=False)
    while True:
        try:
            item, place = decoder.raw_decode(reply, _BETWEEN_ITEMS.match(reply, place).end())  # type: ignore[union-attr]
        except (ValueError, RecursionError):  # the list's end, or what was cut off
            return items
        items.append(item)


def read_entities(reply: str) -> list[str] | None:
    """Return the entities of a reply, each once; None if it has no list of them."""
    items = read_items(reply, "entities")
    texts = (mend_characters(item).strip() for item in items or () if isinstance(item, str))
    return None if items is None else list(dict.fromkeys(filter(None, texts)))


def read_triples(reply: str) -> list[Triple] | None:
    """Return the valid triples of a reply in normal form, each once; None if it has no list of them."""
    items = read_items(reply, "triples")
    if items is None:
        return None
    lists = [item for item in items if isinstance(item, list) and len(item) == 3]
    distinct = dict.fromkeys(
        tuple(map(str, item)) for item in lists if all(isinstance(i, str | int | float) for i in item)
    )
    triples = [(normal_form(one), normal_form(relation), normal_form(other)) for one, relation, other in distinct]
    return [triple for triple in triples if triple[0] and triple[2]]


# --- the graph ---


class Facts(NamedTuple):
    """What the triples of all chunks say; entities are their subjects and objects, and have numbers.

    Attributes:
        triples: The triples, each once.
        entities: The entities, by their numbers.
        chunk_entities: The entities of each chunk.
        chunk_counts: In how many chunks each entity is.
        links: How often a triple links two different entities, the smaller number first.
    """

    triples: list[Triple]
    entities: list[str]
    chunk_entities: list[list[int]]
    chunk_counts: Mapping[str, int]
    links: Mapping[tuple[int, int], int]


def collect(chunks: Sequence[Sequence[Triple]]) -> Facts:
    """Return what the triples of chunks say."""
    numbered: dict[str, int] = {}
    links: Counter[tuple[int, int]] = Counter()
    chunk_entities = []
    for triples in chunks:
        ends = [tuple(numbered.setdefault(end, len(numbered)) for end in (one, other)) for one, _, other in triples]
        links.update((min(pair), max(pair)) for pair in ends if pair[0] != pair[1])
        chunk_entities.append(list(dict.fromkeys(end for pair in ends for end in pair)))
    distinct = list(dict.fromkeys(triple for triples in chunks for triple in triples))
    entities = list(numbered)
    chunk_counts = Counter(entities[number] for numbers in chunk_entities for number in numbers)
    return Facts(distinct, entities, chunk_entities, chunk_counts, links)


def find_synonyms(
    rows: Sequence[int], entities: Sequence[str], vectors: NDArray[np.float32], similarity: float
) -> Synonyms:
    """Return the at most 101 nearest synonyms of some entities, whose numbers are `rows`.

    An entity of fewer than three letters has none, but may be one. A Chinese, Japanese or Korean character counts as
    two letters. The vectors are of length one, shape (entities, dimension).
    """
    synonyms = []
    for entity, cosines in zip(rows, vectors[list(rows)] @ vectors.T, strict=True):
        name = entities[entity]
        near = np.flatnonzero(cosines >= similarity)
        near = near[near != entity]
        if sum(map(str.isalnum, name)) + len(_EAST_ASIAN.findall(name)) < _MIN_LETTERS:
            near = near[:0]
        nearest = near[np.argsort(-cosines[near], kind="stable")][:_MAX_SYNONYMS].tolist()
        synonyms.append([(other, float(cosines[other])) for other in nearest])
    return synonyms


def make_edges(facts: Facts, synonyms: Synonyms, weights: EdgeWeights = "reference") -> NDArray[np.float64]:
    """Return the edges for `pagerank`; the entities are numbered before the chunks.

    In the `paper`, an edge between entities weighs the number of their triples, and the cosine if they are synonyms.
    The `reference` has such an edge in each direction, and a synonym's cosine takes the number's place in its
    direction. An edge between a chunk and an entity in it weighs 1.
    """
    between: dict[tuple[int, int], float] = dict(facts.links)
    similar = {(one, other): cosine for one, near in enumerate(synonyms) for other, cosine in near}
    if weights == "reference":
        between |= {(other, one): count for (one, other), count in facts.links.items()}
        between |= similar
    else:
        pairs = {(min(pair), max(pair)): cosine for pair, cosine in similar.items()}
        between |= {pair: between.get(pair, 0.0) + cosine for pair, cosine in pairs.items()}
    first = len(facts.entities)
    edges = [(one, other, weight) for (one, other), weight in between.items()]
    edges += [(first + chunk, end, 1.0) for chunk, ends in enumerate(facts.chunk_entities) for end in ends]
    return np.array(edges, dtype=np.float64).reshape(-1, 3)


def weigh_entities(
    kept: Sequence[tuple[Triple, float]], chunk_counts: Mapping[str, int], most: int
) -> dict[str, float]:
    """Return the heaviest entities of facts with scores: the mean score, over the number of the entity's chunks."""
    scores: dict[str, list[float]] = defaultdict(list)
    for (one, _, other), score in kept:
        for end in (one, other):
            scores[end].append(score / chunk_counts[end])
    means = {end: sum(shares) / len(shares) for end, shares in scores.items()}
    return dict(sorted(means.items(), key=lambda item: -item[1])[:most])


# --- the method ---


class Graph(NamedTuple):
    """What is made before the first question; `figures` say in words what it was made from."""

    passages: Passages
    facts: Facts
    fact_vectors: NDArray[np.float32]
    edges: NDArray[np.float64]
    figures: list[str]


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

    facts: int = Field(5, ge=1, description="How many facts nearest to the question the model filters.")
    entities: int = Field(5, ge=1, description="At how many entities of these facts PageRank starts.")
    passage_weight: float = Field(0.05, ge=0, description="Weight of passages beside entities, where PageRank starts.")
    damping: float = Field(0.5, ge=0, lt=1, description="How likely PageRank's walks go on at each step.")
    similarity: float = Field(0.8, gt=0, le=1, description="The least cosine similarity of synonyms.")
    edge_weights: EdgeWeights = Field("reference", description="Weights of edges: those of the code or of the paper.")
    passages: By = Field("chunk", description="What is compared with the question: whole chunks or best sentences.")

    def prepare(self, session: Session) -> Graph:
        """Find the facts and synonyms of all chunks, and make the graph (offline)."""
        lab = session.lab
        passages = lab.passages(self.passages)
        texts = [chunk.text for chunk in passages.chunks]
        # Texts, not forms: the complete triples of a reply that was cut off are kept.
        example: list[AnyMessage] = [HumanMessage(_show(_PASSAGE)), AIMessage(json.dumps({"entities": _ENTITIES}))]
        users = [[*example, HumanMessage(_show(text))] for text in texts]
        entities = [read_entities(reply) for reply in session.ask_all(_FIND_ENTITIES, users, title="Entities")]
        example = [HumanMessage(_show(_PASSAGE, _ENTITIES)), AIMessage(json.dumps({"triples": _TRIPLES}))]
        named = zip(texts, entities, strict=True)
        users = [[*example, HumanMessage(_show(text, names or ()))] for text, names in named]
        triples = [read_triples(reply) for reply in session.ask_all(_FIND_TRIPLES, users, title="Facts")]
        facts = collect([chunk or () for chunk in triples])
        synonyms = self._find_synonyms(session, facts.entities)
        vectors = lab.vectors([str(triple) for triple in facts.triples], "Facts embedded")
        unusable, cut_off = entities.count(None) + triples.count(None), sum(call["cut_off"] for call in session.calls)
        figures = [
            f"{len(facts.triples):,} facts about {len(facts.entities):,} entities in {len(texts):,} chunks",
            f"{sum(map(len, synonyms)) / max(len(facts.entities), 1):.2f} synonyms an entity",
            f"extraction: {unusable:,} of {2 * len(texts):,} replies unusable, {cut_off:,} cut off",
        ]
        return Graph(passages, facts, vectors, make_edges(facts, synonyms, self.edge_weights), figures)

    def _find_synonyms(self, session: Session, entities: Sequence[str]) -> Synonyms:
        """Return the synonyms of all entities; they are kept, since tens of thousands of entities take minutes."""
        lab, numbers = session.lab, {entity: number for number, entity in enumerate(entities)}
        vectors = lab.vectors(entities, "Entities embedded")
        digest = sha256(json.dumps(entities).encode()).hexdigest()
        return lab.store.each(
            f"synonyms {lab.index.embedder.name} {self.similarity} {digest}",
            entities,
            lambda some: find_synonyms([numbers[name] for name in some], entities, vectors, self.similarity),
            _COSINES_AT_ONCE // max(len(entities), 1) + 1,
            lambda done: lab.progress("Synonyms", done, len(entities)),
        )

    def answer(self, question: str, session: Session, prepared: Graph) -> Answer:
        """Rank the chunks by PageRank from the facts that the model keeps; without any, by similarity (online)."""
        session.note("Graph", prepared.figures)
        query = session.lab.index.embedder.embed_query(question)
        kept = self._filter(question, query, session, prepared)
        ranks: NDArray[Any] = prepared.passages.compare(query)
        starts = weigh_entities(kept, prepared.facts.chunk_counts, self.entities)
        if starts:
            weights = [starts.get(entity, 0.0) for entity in prepared.facts.entities]
            reset = np.concatenate([weights, self.passage_weight * minmax(ranks)])
            ranks = pagerank(prepared.edges, reset, self.damping)[len(weights) :]
        lines = [f"{entity}: {weight:.3f}" for entity, weight in starts.items()]
        session.note("Entities where PageRank starts", lines or ["none: the chunks are ranked by similarity alone"])
        chunks = prepared.passages.best(ranks, session.lab.top_k)
        session.retrieved(chunks, question, kept=len(kept), entities=len(starts))
        return session.read(question, chunks, _READER_EXAMPLE)

    def _filter(
        self, question: str, query: NDArray[np.float32], session: Session, graph: Graph
    ) -> list[tuple[Triple, float]]:
        """Return the facts that the model keeps of those nearest to the question (recognition memory)."""
        if not graph.facts.triples:
            return []
        scores = minmax(graph.fact_vectors @ query)
        nearest = np.argsort(-scores, kind="stable")[: self.facts].tolist()
        facts = [(graph.facts.triples[number], float(scores[number])) for number in nearest]
        lines = [f"{' | '.join(triple)} ({score:.3f})" for triple, score in facts]
        session.note("Nearest facts", lines)
        listed = "\n".join(f"{place}. {' | '.join(triple)}" for place, (triple, _) in enumerate(facts, 1))
        reply = session.ask(_FILTER, f"Question: {question}\n\n{as_data('facts', listed)}", Kept)
        numbers = sorted({*reply.keep}) if reply else []
        kept = [number - 1 for number in numbers if 1 <= number <= len(facts)]
        notes = [lines[place] for place in kept] or ["none" if reply else "no usable reply"]
        if wrong := len(numbers) - len(kept):
            notes.append(f"{wrong} of {len(numbers)} numbers are not of the list")
        session.note("Facts kept", notes)
        return [facts[place] for place in kept]


def _show(passage: str, entities: Sequence[str] | None = None) -> str:
    listed = "" if entities is None else "\n\n" + as_data("entities", json.dumps(entities, ensure_ascii=False))
    return as_data("passage", passage) + listed


METHODS = (HippoRAG2,)
