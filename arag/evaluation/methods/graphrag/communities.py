"""Finds communities of closely related entities, and parts of them, with the Leiden algorithm (section 3.1.4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from arag.evaluation.methods.graphrag.knowledge import Community, Relationship

_MAX_MEMBERS = 10  # larger communities are divided further, on the next level
_SEED = 0xDEADBEEF


def find_communities(relationships: Sequence[Relationship]) -> list[Community]:
    """Find the communities of the largest group of entities that relationships connect, by level and number.

    Relationships count as undirected; of several between two entities, the last one's weight counts.
    """
    from graspologic_native import hierarchical_leiden

    weights: dict[tuple[str, str], float] = {}
    for each in relationships:
        pair = min(each.source, each.target), max(each.source, each.target)
        weights.pop(pair, None)  # it moves to the end, which decides between groups of one size
        weights[pair] = each.weight
    if not weights:
        return []
    largest = _find_largest_component(list(weights))
    members: dict[tuple[int, int, int], list[str]] = defaultdict(list)
    for place in hierarchical_leiden(
        edges=sorted((*pair, weight) for pair, weight in weights.items() if pair[0] in largest),
        starting_communities=None,
        resolution=1.0,
        randomness=0.001,
        iterations=1,
        use_modularity=True,
        max_cluster_size=_MAX_MEMBERS,
        seed=_SEED,
    ):
        parent = -1 if place.parent_cluster is None else place.parent_cluster
        members[place.level, place.cluster, parent].append(place.node)
    return [
        Community(number, level, parent, tuple(sorted(titles)))
        for (level, number, parent), titles in sorted(members.items())
    ]


def _find_largest_component(pairs: Sequence[tuple[str, str]]) -> set[str]:
    """Return the largest connected component; of several, the one whose first node comes first in the pairs."""
    component_of: dict[str, set[str]] = {}
    for pair in pairs:
        smaller, larger = sorted((component_of.setdefault(title, {title}) for title in pair), key=len)
        if smaller is not larger:
            larger |= smaller
            component_of |= dict.fromkeys(smaller, larger)
    return max((component_of[title] for title in [*(one for one, _ in pairs), *(other for _, other in pairs)]), key=len)
