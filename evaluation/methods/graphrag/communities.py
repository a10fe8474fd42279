"""Finds communities of closely related entities, and parts of them, with the Leiden algorithm."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from arag.evaluation.methods.graphrag.knowledge import Community, Relationship

_SEED = 0xDEADBEEF


def find_communities(relationships: Sequence[Relationship], max_size: int) -> list[Community]:
    """Find the communities of the largest group of entities that relationships connect.

    Args:
        relationships: The relationships. They count as undirected; of several between two entities, the last one's
            weight counts.
        max_size: Larger communities are divided further, on the next level.

    Returns:
        The communities by level and number. There are none without relationships.
    """
    from graspologic_native import hierarchical_leiden

    weights: dict[tuple[str, str], float] = {}
    for each in relationships:
        pair = min(each.source, each.target), max(each.source, each.target)
        weights.pop(pair, None)  # it moves to the end, which decides between groups of one size
        weights[pair] = each.weight
    if not weights:
        return []
    largest = max(_connected(weights), key=len)
    members: dict[tuple[int, int, int], list[str]] = defaultdict(list)
    for place in hierarchical_leiden(
        edges=sorted((*pair, weight) for pair, weight in weights.items() if pair[0] in largest),
        starting_communities=None,
        resolution=1.0,
        randomness=0.001,
        iterations=1,
        use_modularity=True,
        max_cluster_size=max_size,
        seed=_SEED,
    ):
        parent = -1 if place.parent_cluster is None else place.parent_cluster
        members[place.level, place.cluster, parent].append(place.node)
    return [
        Community(number, level, parent, tuple(sorted(titles)))
        for (level, number, parent), titles in sorted(members.items())
    ]


def find_inner(
    communities: Iterable[Community], relationships: Sequence[Relationship]
) -> dict[int, list[Relationship]]:
    """Return the relationships between members of each community, by its number.

    Communities without any are left out; a chain that the algorithm divided may leave such a community.
    """
    community_of: dict[int, dict[str, int]] = defaultdict(dict)  # by level and title
    for community in communities:
        community_of[community.level] |= dict.fromkeys(community.members, community.number)
    inner: dict[int, list[Relationship]] = defaultdict(list)
    for numbers in community_of.values():
        for each in relationships:
            number = numbers.get(each.source)
            if number is not None and number == numbers.get(each.target):
                inner[number].append(each)
    return dict(inner)


def _connected(pairs: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Return the connected components, by their first node; nodes that are first in a pair come first."""
    pairs = list(pairs)
    neighbours: dict[str, set[str]] = defaultdict(set)
    for one, other in pairs:
        neighbours[one].add(other)
        neighbours[other].add(one)
    components: list[set[str]] = []
    seen: set[str] = set()
    for start in [*(one for one, _ in pairs), *(other for _, other in pairs)]:
        if start in seen:
            continue
        component, waiting = {start}, [start]
        while waiting:
            new = neighbours[waiting.pop()] - component
            component |= new
            waiting += new
        components.append(component)
        seen |= component
    return components
