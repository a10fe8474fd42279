"""An embedder as LangChain's `Embeddings`, for vector stores and other people's code."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from arag.models.embedders import Embedder, load_embedder


class EmbedderEmbeddings(Embeddings):
    """Embeds texts with an embedder; `Embedder.as_embeddings` makes it.

    Args:
        embedder: The embedder, or its name for `load_embedder`.

    Example:
        >>> embeddings = index.embedder.as_embeddings()
        >>> len(embeddings.embed_query("Who kept the lamp?"))
        384
    """

    def __init__(self, embedder: str | Embedder | None = None) -> None:
        self.embedder = load_embedder(embedder)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts as vectors of length one.

        Raises:
            ModelError: The model cannot be loaded, or fails.
        """
        vectors: list[list[float]] = []
        for start in range(0, len(texts), self.embedder.batch):
            batch = texts[start : start + self.embedder.batch]
            vectors += self.embedder.embed_documents(batch).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Embed a query as a vector of length one.

        Raises:
            ModelError: The model cannot be loaded, or fails.
        """
        vector: list[float] = self.embedder.embed_query(text).tolist()
        return vector
