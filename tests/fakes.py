"""Stand-ins for what the tests must not wait for or reach."""

from __future__ import annotations

import re
import zlib

import numpy as np
from langchain_core.embeddings import Embeddings

DIMENSION = 64


class HashEmbeddings(Embeddings):
    """A bag of words: every lower-case word counts at the place that its checksum gives.

    Attributes:
        model: Part of the embedder's name in an index, `HashEmbeddings:hash-64`.
        embedded: Every text that was embedded as a document, in order.
        fail_after: How many texts are embedded before an error is raised; None for no error.
    """

    model = "hash-64"

    def __init__(self, *, fail_after: int | None = None) -> None:
        self.embedded: list[str] = []
        self.fail_after = fail_after

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.fail_after is not None and len(self.embedded) + len(texts) > self.fail_after:
            raise ConnectionError("the embedding service went away")
        self.embedded += texts
        return [hash_vector(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return hash_vector(text).tolist()


def hash_vector(text: str) -> np.ndarray:
    vector = np.zeros(DIMENSION)
    for word in re.findall(r"\w+", text.lower()):
        vector[zlib.crc32(word.encode()) % DIMENSION] += 1
    return vector / max(np.linalg.norm(vector), 1e-12)
