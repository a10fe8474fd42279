"""Facts that a model finds in texts, as triples, and the graph of their entities."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arag.models.embedders import Vectors
from arag.retrieval.text import EAST_ASIAN

Triple: TypeAlias = tuple[str, str, str]
"""Subject, relation and object, in normal form."""

EdgeWeights: TypeAlias = Literal["reference", "paper"]

_MAX_SYNONYMS = 101  # of an entity
_MIN_LETTERS = 3  # letters and digits of an entity that has synonyms
_EAST_ASIAN = re.compile(f"[{EAST_ASIAN}]")
_OTHER_SCRIPT = re.compile(r"[^\W\d_\x00-\u02ff\u1e00-\u1eff]")  # a letter that is not Latin
_BLOCK = 4_000_000  # cosines held at a time
_BETWEEN = re.compile(r"[\s,]*")  # items


def normal_form(text: str) -> str:
    """Return the form in which entities and relations are compared.

    It is lower-cased, and all but ASCII letters and digits are spaces. A text with letters of another script is only
    lower-cased, so that they tell it from others.

    Example:
        >>> from arag.evaluation.methods.baselines.facts import normal_form
        >>> normal_form(" St. Lanth (Isle)"), normal_form("第17窟"), normal_form("--")
        ('st  lanth  isle', '第17窟', '')
    """
    lowered = _repair(text).lower()
    form = re.sub("[^a-z0-9 ]", " ", lowered).strip()
    if form and not _OTHER_SCRIPT.search(lowered):
        return form
    return " ".join(lowered.split()) if any(map(str.isalnum, lowered)) else ""


def read_items(reply: str, name: str) -> list[Any] | None:
    """Return the items of a list in a JSON object; if the reply was cut off, those that are complete.

    Args:
        reply: The reply, which may hold other text around the object.
        name: The list's name. If there are several of that name, it is the last one.

    Returns:
        The items; None if there is no such list.

    Example:
        >>> from arag.evaluation.methods.baselines.facts import read_items
        >>> read_items('{"triples": [["Ada", "wrote", "notes"], ["Ada", "kn', "triples")
        [['Ada', 'wrote', 'notes']]
    """
    places = [match.end() for match in re.finditer(rf'"{name}"\s*:\s*\[', reply)]
    if not places:
        return None
    items: list[Any] = []
    place = places[-1]
    decoder = json.JSONDecoder(strict=False)
    while True:
        place = _BETWEEN.match(reply, place).end()  # type: ignore[union-attr]  # it matches nothing as well
        try:
            item, place = decoder.raw_decode(reply, place)  # fails at the list's end, too
        except (ValueError, RecursionError):
            return items
        items.append(item)


def read_entities(reply: str) -> list[str] | None:
    """Return the entities of a reply, each once; None if it has no list of them."""
    items = read_items(reply, "entities")
    texts = (_repair(item).strip() for item in items or () if isinstance(item, str))
    return None if items is None else list(dict.fromkeys(filter(None, texts)))


def read_triples(reply: str) -> list[Triple] | None:
    """Return the triples of a reply in normal form; None if it has no list of them.

    Those that do not have three parts, repeat another one, or have no subject or object in normal form are left out.

    Example:
        >>> from arag.evaluation.methods.baselines.facts import read_triples
        >>> read_triples('{"triples": [["Ada", "born in", 1815], ["Ada", "wrote"], ["?", "wrote", "notes"]]}')
        [('ada', 'born in', '1815')]
    """
    items = read_items(reply, "triples")
    if items is None:
        return None
    lists = [item for item in items if isinstance(item, list) and len(item) == 3]
    valid = [item for item in lists if all(isinstance(part, str | int | float) for part in item)]
    distinct = dict.fromkeys(tuple(str(part) for part in item) for item in valid)
    triples = [(normal_form(one), normal_form(relation), normal_form(other)) for one, relation, other in distinct]
    return [triple for triple in triples if triple[0] and triple[2]]


def _repair(text: str) -> str:
    """Return a text without lone surrogates, which JSON can hold and neither requests nor embedders can."""
    return text.encode(errors="replace").decode()


@dataclass(frozen=True, slots=True)
class Facts:
    """What the triples of all chunks say.

    Attributes:
        triples: The distinct triples.
        entities: Their subjects and objects.
        chunk_entities: The numbers of the entities in each chunk.
        links: How often two different entities are linked by a triple, by their numbers, the smaller one first.
    """

    triples: list[Triple]
    entities: list[str]
    chunk_entities: list[list[int]]
    links: Mapping[tuple[int, int], int]


def collect(chunks: Sequence[Sequence[Triple]]) -> Facts:
    """Return what the triples of chunks say.

    Example:
        >>> from arag.evaluation.methods.baselines.facts import collect
        >>> facts = collect([[("ada", "wrote", "notes")], []])
        >>> facts.entities, facts.chunk_entities, facts.links
        (['ada', 'notes'], [[0, 1], []], {(0, 1): 1})
    """
    numbers: dict[str, int] = {}
    links: Counter[tuple[int, int]] = Counter()
    chunk_entities = []
    for triples in chunks:
        ends = [tuple(numbers.setdefault(end, len(numbers)) for end in (one, other)) for one, _, other in triples]
        links.update((min(pair), max(pair)) for pair in ends if pair[0] != pair[1])
        chunk_entities.append(list(dict.fromkeys(end for pair in ends for end in pair)))
    distinct = dict.fromkeys(triple for triples in chunks for triple in triples)
    return Facts(list(distinct), list(numbers), chunk_entities, dict(links))


class Synonyms(NamedTuple):
    """Pairs of similar entities, in each direction that has them.

    Attributes:
        sources: The entities' numbers, shape (pairs,).
        targets: The numbers of their synonyms, shape (pairs,).
        cosines: Their cosine similarities, shape (pairs,).
    """

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    cosines: NDArray[np.float32]


def find_synonyms(entities: Sequence[str], vectors: Vectors, similarity: float) -> Synonyms:
    """Find the entities with similar names.

    An entity of fewer than three letters and digits has none, but may be one; each has at most the nearest 101. A
    Chinese, Japanese or Korean character counts as two letters.

    Args:
        entities: The entities.
        vectors: Their vectors of length one, shape (entities, dimension).
        similarity: The smallest cosine.

    Example:
        >>> import numpy as np
        >>> from arag.evaluation.methods.baselines.facts import find_synonyms
        >>> vectors = np.array([[1, 0], [0.8, 0.6], [0, 1]], dtype=np.float32)
        >>> find_synonyms(["vellin", "vellin light", "us"], vectors, 0.7)
        Synonyms(sources=array([0, 1]), targets=array([1, 0]), cosines=array([0.8, 0.8], dtype=float32))
    """
    named = np.array([n for n, entity in enumerate(entities) if _count_letters(entity) >= _MIN_LETTERS], int)
    found = [(np.zeros(0, int), np.zeros(0, int), np.zeros(0, np.float32))]
    for block in np.array_split(named, len(named) * len(entities) // _BLOCK + 1):
        cosines = vectors[block] @ vectors.T
        cosines[np.arange(len(block)), block] = -1
        rows, targets = np.nonzero(cosines >= similarity)
        near = cosines[rows, targets]
        order = np.lexsort((targets, -near, rows))
        rows, targets, near = rows[order], targets[order], near[order]
        kept = np.arange(len(rows)) - np.searchsorted(rows, rows) < _MAX_SYNONYMS
        found.append((block[rows[kept]], targets[kept], near[kept]))
    return Synonyms(*map(np.concatenate, zip(*found, strict=True)))


def _count_letters(entity: str) -> int:
    return sum(map(str.isalnum, entity)) + len(_EAST_ASIAN.findall(entity))


class Edges(NamedTuple):
    """Undirected edges: of several between two nodes, the weights add up.

    Attributes:
        sources: Numbers of nodes, the entities before the chunks; shape (edges,).
        targets: The other ends, shape (edges,).
        weights: The weights, shape (edges,).
    """

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    weights: NDArray[np.float64]


def make_edges(facts: Facts, synonyms: Synonyms, weights: EdgeWeights = "reference") -> Edges:
    """Return the edges of the graph.

    Args:
        facts: What the triples say.
        synonyms: The synonyms.
        weights: How they are weighted. In the `paper`, an edge between entities has the number of their triples, and
            the cosine if they are synonyms. The `reference` has it for each direction, and with a synonym in a
            direction, the cosine takes the number's place there. An edge between a chunk and an entity in it has 1.

    Example:
        >>> import numpy as np
        >>> from arag.evaluation.methods.baselines.facts import Synonyms, collect, make_edges
        >>> nothing = Synonyms(np.zeros(0, int), np.zeros(0, int), np.zeros(0, np.float32))
        >>> [array.tolist() for array in make_edges(collect([[("ada", "wrote", "notes")]]), nothing, "paper")]
        [[0, 2, 2], [1, 0, 1], [1.0, 1.0, 1.0]]
    """
    between: dict[tuple[int, int], float] = dict(facts.links)
    similar = {(int(a), int(b)): float(cosine) for a, b, cosine in zip(*synonyms, strict=True)}
    if weights == "reference":
        between |= {(b, a): count for (a, b), count in facts.links.items()}
        between |= similar
    else:
        for a, b in {(min(pair), max(pair)) for pair in similar}:
            between[a, b] = between.get((a, b), 0.0) + (similar[a, b] if (a, b) in similar else similar[b, a])
    first = len(facts.entities)
    within = [(first + chunk, end) for chunk, ends in enumerate(facts.chunk_entities) for end in ends]
    pairs = np.array([*between, *within], dtype=np.int64).reshape(-1, 2)
    return Edges(pairs[:, 0], pairs[:, 1], np.array([*between.values(), *[1.0] * len(within)]))


def weigh_entities(
    kept: Sequence[tuple[Sequence[str], float]], chunks: Mapping[str, int], most: int
) -> dict[str, float]:
    """Return where PageRank starts: the entities of the kept facts, the heaviest first.

    Args:
        kept: The facts and their scores.
        chunks: In how many chunks each entity is.
        most: How many entities are kept.

    Returns:
        For each entity, the mean of its facts' scores, divided by the number of its chunks.

    Example:
        >>> from arag.evaluation.methods.baselines.facts import weigh_entities
        >>> kept = [(("ada", "wrote", "notes"), 1.0), (("ada", "met", "babbage"), 0.5)]
        >>> weigh_entities(kept, {"ada": 3, "notes": 1, "babbage": 2}, most=2)
        {'notes': 1.0, 'ada': 0.25}
    """
    shares: dict[str, list[float]] = {}
    for (one, _, other), score in kept:
        for end in (one, other):
            shares.setdefault(end, []).append(score / chunks[end])
    means = {end: sum(given) / len(given) for end, given in shares.items()}
    return dict(sorted(means.items(), key=lambda item: -item[1])[:most])
