"""Similarities of sentences on one scale, whatever embedder made their vectors.

Cosine similarities of different embedders lie differently: all-MiniLM-L6-v2 gives unrelated sentences about 0.05, and
multilingual-e5-small 0.78, with less than a third of the differences. On the common scale, equal vectors have
similarity 1, and differences mean what they mean for all-MiniLM-L6-v2. So one constant fits all embedders.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

MIN_SPREAD = 0.05
MAX_SPREAD = 20.0

# An index stores what its embedder made of these sentences when it was new, and rescales all similarities by that. They
# must never change: with others, one embedder would have another scale in new indexes than in old ones. They are
# English, which nearly every embedder knows, and about four subjects, five sentences each, as texts of a corpus are:
# among sentences that have nothing in common, embedders differ less than they do in corpora.
SAMPLE_SENTENCES = (
    "The lighthouse was built in 1852 on a rocky island off the coast.",
    "Its lamp burned oil until it was replaced by an electric light in 1931.",
    "The keeper and his family lived in a small house beside the tower.",
    "Ships that enter the bay still use its light to find the channel.",
    "A storm damaged the roof, and the repairs took two years.",
    "Add the flour slowly and stir until the dough is smooth.",
    "Bake the bread for forty minutes, until the crust is golden brown.",
    "Butter that is too cold does not mix well with sugar.",
    "The recipe was first published in a cookbook for schools.",
    "Salt keeps the yeast from working too fast.",
    "The contract may be ended by either party with thirty days' notice.",
    "The tenant pays the rent in advance on the first day of each month.",
    "A court may reduce the penalty if it is out of proportion.",
    "Both parties keep the terms of this agreement confidential.",
    "The landlord returns the deposit within a month.",
    "The team scored twice in the last ten minutes and won the match.",
    "She set a national record in the long jump at the age of nineteen.",
    "The club moved to a larger stadium after its first title.",
    "He retired as a player in 2008 and became the coach of the youth team.",
    "The final was played in heavy rain before sixty thousand people.",
)

_MINILM_DEVIATION = 0.1128  # of the 190 cosines of these sentences, by all-MiniLM-L6-v2

_Number = TypeVar("_Number", float, NDArray[np.float32], NDArray[np.float64])


def measure_spread(vectors: NDArray[np.float32]) -> float:
    """Return how far apart an embedder's similarities lie, in proportion to those of all-MiniLM-L6-v2.

    Args:
        vectors: The embedder's vectors of SAMPLE_SENTENCES, of length one.

    Returns:
        The spread, with two digits, so that two machines or precisions have the same. It is 1 if the embedder has no
        scale: all its vectors are alike, or each is orthogonal to all others.
    """
    similarities = vectors @ vectors.T
    pairs = similarities[np.triu_indices(len(vectors), 1)]
    spread = round(float(pairs.std()) / _MINILM_DEVIATION, 2)
    # Less is the rounding of vectors to 16 bits, which must not be magnified.
    return spread if MIN_SPREAD <= spread <= MAX_SPREAD else 1.0


def rescale(similarity: _Number, spread: float) -> _Number:
    """Return cosine similarities on the common scale: 1 stays 1, and differences are divided by the spread."""
    return 1 - (1 - similarity) / spread
