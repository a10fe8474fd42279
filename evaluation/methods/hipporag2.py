"""HippoRAG 2 (Gutiérrez et al. 2025): PageRank on a graph of facts that the model finds in the chunks.

Index time takes two calls for each chunk: its entities, then its facts, as triples. The nodes of the graph are the
chunks, and the entities that the facts are about. A question is compared with all facts, the model filters the nearest
ones, and PageRank starts at the entities that they name and, with little weight, at all chunks. Then the model is asked
for the answer.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph
from numpy.typing import NDArray
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from arag.errors import InputError
from arag.evaluation.methods.baselines.facts import (
    Edges,
    EdgeWeights,
    Facts,
    Synonyms,
    collect,
    find_synonyms,
    make_edges,
    read_entities,
    read_triples,
    weigh_entities,
)
from arag.evaluation.methods.baselines.outcome import (
    MethodOutput,
    MethodState,
    Stage,
    find_text,
    finish,
    retrieval_record,
)
from arag.evaluation.methods.baselines.pagerank import pagerank
from arag.evaluation.methods.baselines.passages import By, Passages, minmax
from arag.evaluation.methods.baselines.reader import read_answer, reader_messages
from arag.evaluation.methods.interface import Method, MethodGraph, Options, Settings
from arag.evaluation.store import Store, open_store
from arag.evaluation.structured import Asked, StructuredModel, ask_text
from arag.evaluation.workplace import Replies, Request, Workplace
from arag.graph.nodes import Body, Node
from arag.graph.prompts import DATA_RULE, as_data
from arag.graph.state import InputState
from arag.models.asking import aask, ask
from arag.models.embedders import Embedder, Vectors
from arag.retrieval.index import Index

Progress: TypeAlias = Callable[[str, int, int], None]

_NAME = "hipporag2"


# --- the calls for each chunk ---

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

_ENTITY_TASK = f"""List the entities that a passage names: people, places, organisations, works, events, dates and \
other things with a name, each as the passage writes it.

Reply with one JSON object and nothing else: {{"entities": ["...", "..."]}}

{DATA_RULE}"""

_TRIPLE_TASK = f"""Write down the facts of a passage as triples of subject, relation and object.

- At least one end of each triple is one of the listed entities.
- In place of a pronoun, write the name that it stands for.
- The relation is a few words. A triple must be clear to someone who does not have the passage.

Reply with one JSON object and nothing else: {{"triples": [["subject", "relation", "object"], ...]}}

{DATA_RULE}"""

# Both calls ask for text: providers' clients raise an error for structured output that was cut off, and its complete
# triples would be lost.


def _entity_request(text: str) -> Request:
    return _request(_ENTITY_TASK, _passage(_PASSAGE), {"entities": _ENTITIES}, _passage(text))


def _triple_request(text: str, entities: Sequence[str]) -> Request:
    return _request(_TRIPLE_TASK, _passage(_PASSAGE, _ENTITIES), {"triples": _TRIPLES}, _passage(text, entities))


def _request(task: str, example: str, reply: object, wanted: str) -> Request:
    shown = [HumanMessage(example), AIMessage(_dump(reply)), HumanMessage(wanted)]
    return Request([SystemMessage(task), *shown], None)


def _passage(text: str, entities: Sequence[str] | None = None) -> str:
    listed = "" if entities is None else "\n\n" + as_data("entities", _dump(entities))
    return as_data("passage", text) + listed


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- before the first question ---


class HippoSettings(Settings):
    """The settings of HippoRAG2. The defaults are those of the authors' code."""

    facts: int = Field(5, ge=1, description="How many facts nearest to the question the model filters.")
    entities: int = Field(5, ge=1, description="At how many entities of these facts PageRank starts.")
    passage_weight: float = Field(0.05, ge=0, description="Weight of passages beside entities, where PageRank starts.")
    damping: float = Field(0.5, ge=0, lt=1, description="How likely PageRank's walks go on at each step.")
    similarity: float = Field(0.8, gt=0, le=1, description="The least cosine similarity of synonyms.")
    edge_weights: EdgeWeights = Field("reference", description="Weights of edges: those of the code or of the paper.")
    passages: By = Field("chunk", description="What is compared with the question: whole chunks or best sentences.")


@dataclass(frozen=True, slots=True)
class Graph:
    """The graph of an index.

    Attributes:
        passages: Its chunks.
        facts: What they say.
        vectors: The vectors of the facts, of length one, shape (facts, dimension).
        edges: The edges.
        chunks: In how many chunks each entity is.
        figures: What it was made from, in words.
    """

    passages: Passages
    facts: Facts
    vectors: Vectors
    edges: Edges
    chunks: Mapping[str, int]
    figures: list[str]


def load_graph(
    index: Index, replies: Replies, settings: HippoSettings, on_progress: Progress = lambda *_: None
) -> Graph:
    """Make the graph from the replies that are kept. Vectors that are missing are computed.

    Args:
        index: The index.
        replies: The replies.
        settings: The settings.
        on_progress: Called with what is being done, how many of its items are done, and how many there are.

    Raises:
        InputError: Some replies are missing.
        EmbedderError: The embedder fails.
        StorageError: The store is damaged, or cannot be read or written.
    """
    passages = Passages(index, replies.store, settings.passages)
    texts = {chunk.id: chunk.text for chunk in passages.chunks(index.chunk_ids())}
    first = replies.require([_entity_request(text) for text in texts.values()], _NAME)
    second = replies.require(_triple_requests(texts.values(), first), _NAME)

    def report(title: str, total: int) -> Callable[[int], None]:
        return lambda done: on_progress(title, done, total)

    passages.prepare(report("Embedding chunks", len(texts)))
    found = dict(zip(texts, (read_triples(asked.value or "") for asked in second), strict=True))
    facts = collect([found.get(chunk_id) or [] for chunk_id in passages.ids])
    written = [str(triple) for triple in facts.triples]
    vectors = replies.store.vectors(written, index.embedder, on_embedded=report("Embedding facts", len(written)))
    synonyms = _synonyms(replies.store, index.embedder, facts.entities, settings, report)
    counts = Counter(end for ends in facts.chunk_entities for end in ends)
    failed = sum(read_entities(asked.value or "") is None for asked in first) + sum(t is None for t in found.values())
    cut_off = sum(call["cut_off"] for asked in (*first, *second) for call in asked.calls)
    figures = [
        f"{len(facts.triples):,} facts about {len(facts.entities):,} entities in {len(passages.ids):,} chunks",
        f"{len(synonyms.sources) / max(len(facts.entities), 1):.2f} synonyms an entity",
        f"extraction: {failed:,} of {2 * len(texts):,} replies unusable, {cut_off:,} cut off",
    ]
    chunks = {entity: counts[number] for number, entity in enumerate(facts.entities)}
    return Graph(passages, facts, vectors, make_edges(facts, synonyms, settings.edge_weights), chunks, figures)


def _triple_requests(texts: Iterable[str], first: Sequence[Asked[str] | None]) -> list[Request]:
    """Return the second calls for chunks, after the replies to the first ones."""
    entities = [read_entities((asked and asked.value) or "") or [] for asked in first]
    return [_triple_request(text, found) for text, found in zip(texts, entities, strict=True)]


def _synonyms(
    store: Store,
    embedder: Embedder,
    entities: Sequence[str],
    settings: HippoSettings,
    report: Callable[[str, int], Callable[[int], None]],
) -> Synonyms:
    """Return the synonyms; they are kept, since the search takes a minute for tens of thousands of entities."""
    key = json.dumps([embedder.name, settings.similarity, *entities])
    (kept,) = store.recall("hipporag2 synonyms", [key])
    if kept is None:
        vectors = store.vectors(entities, embedder, on_embedded=report("Embedding entities", len(entities)))
        kept = [array.tolist() for array in find_synonyms(entities, vectors, settings.similarity)]
        store.remember("hipporag2 synonyms", {key: kept})
    sources, targets, cosines = kept
    return Synonyms(np.array(sources, int), np.array(targets, int), np.array(cosines, np.float32))


async def _prepare(place: Workplace) -> None:
    """Find the facts of all chunks, and make the graph, so that everything in it is kept."""
    settings = place.options.of(_NAME, HippoSettings)
    passages = Passages(place.index, place.store)
    texts = [chunk.text for chunk in await asyncio.to_thread(passages.chunks, place.index.chunk_ids())]
    first = [_entity_request(text) for text in texts]
    known = place.replies.find(first)
    second = _triple_requests(texts, known)  # without entities where they are not known yet: an estimate
    missing = [*place.missing(first), *place.missing(second)]
    place.announce(len(missing), place.count_tokens(missing))
    entities = await place.ask(first, "Finding entities")
    await place.ask(_triple_requests(texts, entities), "Finding facts")
    await asyncio.to_thread(load_graph, place.index, place.replies, settings, place.on_progress)


# --- a question ---

_FILTER_TASK = f"""Choose the facts that help to answer a question. They are those of a corpus that are most \
similar to it, each with its number: subject | relation | object. None may help.

A fact helps if it holds a part of the answer, or leads from something that the question names to something that it \
asks for.

Reply with one JSON object and nothing else: {{"keep": [the numbers of these facts]}}

{DATA_RULE}"""

_READER_EXAMPLE = """An example. The question is "When did the builder of the Harwick Observatory die?", and a good \
reply:

[harwick.md:0] says that the engineer Edda Lorne built the observatory. The Edda Lorne of [painters.md:4], who died in \
1871, is a painter. [lorne.md:1] is about the engineer: she died in 1902.
Answer: 1902"""


class Kept(BaseModel):
    """The facts that help to answer the question."""

    keep: list[int] = Field(description="Their numbers.")


class Candidate(TypedDict):
    """A fact near to the question."""

    triple: Sequence[str]
    """Subject, relation and object."""
    score: float
    """Its similarity to the question, from 0 for the least similar fact of the corpus to 1."""


class HippoState(MethodState, total=False):
    """The state of a question."""

    query: list[float]
    """The question's vector."""
    candidates: list[Candidate]
    """The facts nearest to the question, nearest first."""
    kept: list[Candidate]
    """Those that the model has kept."""


class HippoRAG:
    """The nodes.

    Args:
        index: The index.
        model: The model.
        top_k: How many chunks are in the prompt.
        settings: The settings.

    Raises:
        InputError: The model is the built-in one, which is not a language model.
    """

    def __init__(self, index: Index, model: BaseChatModel, top_k: int, settings: HippoSettings) -> None:
        self._index = index
        self._model = model
        self._top_k = top_k
        self._settings = settings
        self._filter = StructuredModel(model, Kept, "filter")
        self._lock = threading.Lock()
        self._graph: Graph | None = None

    def find_facts(self, state: HippoState) -> dict[str, object]:
        """Find the facts nearest to the question."""
        graph, question = self._load(), find_text(state)
        if not question.strip():
            raise InputError("the question is blank")
        stages = [Stage(title="Graph", lines=graph.figures)]
        candidates: list[Candidate] = []
        query = self._index.embedder.embed_query(question)
        if graph.facts.triples:
            scores = minmax(graph.vectors @ query)
            best = np.argsort(-scores, kind="stable")[: self._settings.facts].tolist()
            candidates = [Candidate(triple=[*graph.facts.triples[n]], score=float(scores[n])) for n in best]
            stages.append(Stage(title="Nearest facts", lines=_lines(candidates)))
        found = {"query": query.tolist(), "candidates": candidates, "kept": []}
        return {**found, "stages": stages, "model_calls": []}

    def filter_facts(self, state: HippoState) -> Body:
        """Let the model choose among the facts."""
        candidates = state["candidates"]
        asked = yield from self._filter.ask(_filter_messages(find_text(state), candidates))
        numbers = sorted({*asked.value.keep}) if asked.value else []
        kept = [candidates[number - 1] for number in numbers if 1 <= number <= len(candidates)]
        lines = _lines(kept) or ["none"]
        if asked.value is None:
            lines = [asked.why]
        if wrong := len(numbers) - len(kept):
            lines.append(f"{wrong} of {len(numbers)} numbers are not of the list")
        stages = [*state["stages"], Stage(title="Facts kept", lines=lines)]
        return {"kept": kept, "stages": stages, "model_calls": asked.calls}

    def retrieve(self, state: HippoState) -> dict[str, object]:
        """Rank the chunks by PageRank from the facts' entities; without facts, by similarity."""
        began = time.perf_counter()
        graph, settings, question = self._load(), self._settings, find_text(state)
        scores = graph.passages.compare(np.array(state["query"], dtype=np.float32))
        kept = [(fact["triple"], fact["score"]) for fact in state["kept"]]
        starts = weigh_entities(kept, graph.chunks, settings.entities)
        ranks: NDArray[np.floating[Any]] = scores
        if starts:
            weights = [starts.get(entity, 0.0) for entity in graph.facts.entities]
            reset = np.concatenate([weights, settings.passage_weight * minmax(scores)])
            walked = pagerank(*graph.edges, reset, settings.damping)[len(weights) :]
            ranks = walked if walked.any() else scores  # without a place to start at there is no walk
        best = np.argsort(-ranks, kind="stable")[: self._top_k].tolist()
        chunks = graph.passages.chunks(graph.passages.ids[n] for n in best)
        figures = {"facts": len(state["candidates"]), "kept": len(kept), "entities": len(starts)}
        arguments = {"query": question, "top_k": self._top_k, **figures}
        stages = [
            *state["stages"],
            Stage(
                title="Entities where PageRank starts",
                lines=[f"{entity}: {weight:.3f}" for entity, weight in starts.items()]
                or ["none: the chunks are ranked by similarity alone"],
            ),
            Stage(title="Chunks", lines=[f"[{graph.passages.ids[n]}]: {ranks[n]:.4f}" for n in best]),
        ]
        return {"trace": [retrieval_record(chunks, arguments, began=began)], "stages": stages}

    def answer(self, state: HippoState) -> Body:
        """Ask the model."""
        ids = state["trace"][0]["chunk_ids"]
        messages = reader_messages(find_text(state), self._load().passages.chunks(ids), example=_READER_EXAMPLE)
        asked = yield from ask_text(self._model, messages)
        reply = asked.value or ""
        return finish(
            self._index,
            read_answer(reply),
            calls=[*state["model_calls"], *asked.calls],
            trace=state["trace"],
            stages=state["stages"],
            cited=[chunk_id for chunk_id in ids if f"[{chunk_id}]" in reply],
        )

    def _load(self) -> Graph:
        with self._lock:
            if self._graph is None:
                replies = Replies(open_store(self._index), self._model)
                self._graph = load_graph(self._index, replies, self._settings)
            return self._graph


def _filter_messages(question: str, candidates: Sequence[Candidate]) -> list[BaseMessage]:
    facts = "\n".join(f"{n}. {' | '.join(fact['triple'])}" for n, fact in enumerate(candidates, start=1))
    return [SystemMessage(_FILTER_TASK), HumanMessage(f"Question: {question}\n\n{as_data('facts', facts)}")]


def _lines(facts: Sequence[Candidate]) -> list[str]:
    return [f"{' | '.join(fact['triple'])} ({fact['score']:.3f})" for fact in facts]


def _after_facts(state: HippoState) -> str:
    return "filter_facts" if state["candidates"] else "retrieve"


def _make(index: Index, model: BaseChatModel, options: Options) -> MethodGraph:
    nodes = HippoRAG(index, model, options.top_k, options.of(_NAME, HippoSettings))
    builder = StateGraph(HippoState, input_schema=InputState, output_schema=MethodOutput)
    builder.add_node("find_facts", nodes.find_facts)
    builder.add_node("filter_facts", Node(nodes.filter_facts, ask, aask))
    builder.add_node("retrieve", nodes.retrieve)
    builder.add_node("answer", Node(nodes.answer, ask, aask))
    builder.add_edge(START, "find_facts")
    builder.add_conditional_edges("find_facts", _after_facts, ["filter_facts", "retrieve"])
    builder.add_edge("filter_facts", "retrieve")
    builder.add_edge("retrieve", "answer")
    builder.add_edge("answer", END)
    return builder.compile()


METHODS = (
    Method(
        _NAME,
        "HippoRAG2",
        "two calls; the prompt holds the chunks that PageRank finds in a graph of facts",
        _make,
        prepare=_prepare,
        settings=HippoSettings,
        language_model=True,
        simplified="Prompts of our own. The model filters facts by their numbers, and the embedder has one prompt for "
        "all questions. A name with letters of another script than the Latin one is only lower-cased; the published "
        "code drops these letters. The complete triples of a reply that was cut off are kept.",
    ),
)
