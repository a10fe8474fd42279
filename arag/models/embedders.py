"""Embedders by name: any of LangChain's; the default one needs no network if its weights are on this machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from arag.errors import ARAGError, ModelError
from arag.models.names import (
    DEFAULT_EMBEDDER,
    EMBEDDER_VARIABLE,
    HUGGINGFACE,
    ModelName,
    connection_options,
    parse_embedder,
)
from arag.models.onnx_models import ONNX_MODELS, choose_weights
from arag.text.normalise import collapse_whitespace
from arag.text.surrogates import replace_surrogates

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_TIMEOUT = 60.0  # seconds
_RETRIES = 5
_SENTENCES_PER_REQUEST = 256  # more save round trips; a failed request repeats them all
SENTENCES_PER_STEP = 200  # on a processor, a few seconds: an ingestion shows, and keeps, what is finished
_CONCURRENT_REQUESTS = 8  # more are faster, and reach a provider's rate limits sooner
_MIN_LENGTH = 1e-12  # of a vector: a zero vector is not divided by zero

Vectors = NDArray[np.float32]


class EmbeddingModel(Protocol):
    """LangChain's `Embeddings`, or a class with these two of its methods."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed sentences."""

    def embed_query(self, text: str) -> list[float]:
        """Embed a query."""


class Embedder:
    """Embeds sentences and queries as vectors of length one.

    The model is loaded on first use, so that an index opens fast and keyword searches do not load it.

    Args:
        name: The embedder's name for `load_embedder`; stored in the index's settings.
        load: Creates the model.
        batch: Number of sentences per call.
        concurrency: Number of concurrent calls.
        weights: Which weights the model has, where there are several with the same name; stored in the index's
            settings.
    """

    def __init__(
        self,
        name: str,
        load: Callable[[], EmbeddingModel],
        *,
        batch: int = 1_000,
        concurrency: int = 1,
        weights: str = "",
    ) -> None:
        self.name = name
        self.weights = weights
        self.batch = batch
        self.concurrency = concurrency
        self._load = load
        self._loaded: EmbeddingModel | None = None
        self._lock = threading.Lock()

    @property
    def is_loaded(self) -> bool:
        """Whether the model is loaded."""
        return self._loaded is not None

    def load(self) -> None:
        """Load the model now, not on first use."""
        self._ask(lambda _: None)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed sentences.

        Returns:
            Vectors of length one, shape (texts, dimension).

        Raises:
            ModelError: The model cannot be loaded, fails, or does not return a finite vector for each text.
        """
        return self._embed(lambda model: model.embed_documents(list(texts)), len(texts))

    def embed_query(self, text: str) -> Vectors:
        """Embed a query, with the model's own query prompt where it defines one.

        Returns:
            A vector of length one, shape (dimension,).

        Raises:
            ModelError: The model cannot be loaded, fails, or does not return a finite vector.
        """
        query = replace_surrogates(text)  # models send them, and tokenizers refuse them
        vectors = self._embed(lambda model: [model.embed_query(query)], 1)
        vector: Vectors = vectors[0]
        return vector

    def as_embeddings(self) -> Embeddings:
        """Return the embedder as LangChain's `Embeddings`, for vector stores and the like."""
        from arag.models.embeddings import EmbedderEmbeddings

        return EmbedderEmbeddings(self)

    def _embed(self, embed: Callable[[EmbeddingModel], Sequence[Sequence[float]]], count: int) -> Vectors:
        vectors = self._ask(lambda model: np.asarray(embed(model), dtype=np.float32))
        if vectors.ndim != 2 or len(vectors) != count or not vectors.size:
            raise ModelError(f"the embedder {self.name} returned vectors of shape {vectors.shape} for {count} texts")
        if not np.isfinite(vectors).all():
            raise ModelError(f"the embedder {self.name} returned numbers that are not finite")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, _MIN_LENGTH), dtype=np.float32)

    def _ask(self, ask: Callable[[EmbeddingModel], Any]) -> Any:
        try:
            with self._lock:
                if self._loaded is None:
                    self._loaded = self._load()
            return ask(self._loaded)
        except (ARAGError, MemoryError):
            raise
        # Providers' clients have no common error class: the network, a GPU or a missing key in a response may fail.
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".rstrip(": ")  # a timeout has no message
            raise ModelError(f"the embedder {self.name} failed: {reason}") from error


def load_embedder(embedder: str | Embeddings | Embedder | None = None) -> Embedder:
    """Return an embedder by name.

    Args:
        embedder: `provider:model` as in LangChain's `init_embeddings`. For an OpenAI-compatible server, add `@` and
            a base URL (`openai:bge-m3@http://localhost:8000/v1`). After `huggingface:` comes a model from the model
            hub (`name` or `organisation/name`) or a folder (`./name`, `/path/to/name`). A LangChain `Embeddings`
            object works too. None means the one in the environment variable ARAG_EMBEDDER, else multilingual-e5-small.

    Returns:
        The embedder; its model is loaded on first use.

    Raises:
        InputError: The string does not have the form `provider:model`, or its base URL is not valid.

    Example:
        >>> embedder = load_embedder("huggingface:sentence-transformers/all-MiniLM-L6-v2")
        >>> embedder.embed_documents(["The lamp was lit in 1781.", "It burned whale oil."]).shape
        (2, 384)
    """
    if isinstance(embedder, Embedder):
        return embedder
    if embedder is None:
        embedder = os.environ.get(EMBEDDER_VARIABLE) or DEFAULT_EMBEDDER
    if isinstance(embedder, str):
        name = parse_embedder(embedder)
        weights = choose_weights(str(name))
        return make_embedder(str(name), lambda: load_embeddings(name, weights), weights)
    embeddings = embedder
    return Embedder(_name_object(embeddings), lambda: embeddings)


def _name_object(embeddings: Embeddings) -> str:
    """Return the class of a LangChain object, with its model's name if it has one."""
    kind = type(embeddings).__name__
    model = getattr(embeddings, "model_name", None) or getattr(embeddings, "model", None)
    if isinstance(model, str):
        return f"{kind}:{model}"
    return kind


def make_embedder(name: str, load: Callable[[], EmbeddingModel], weights: str) -> Embedder:
    """Return an embedder with the given loader; services get concurrent requests."""
    if name in ONNX_MODELS:
        return Embedder(name, load, batch=SENTENCES_PER_STEP, weights=weights)
    if name.startswith(f"{HUGGINGFACE}:"):
        return Embedder(name, load, weights=weights)
    return Embedder(name, load, batch=_SENTENCES_PER_REQUEST, concurrency=_CONCURRENT_REQUESTS)


def load_embeddings(name: ModelName, weights: str) -> EmbeddingModel:
    """Load a model by name. Each kind imports its own packages, which may take seconds.

    Args:
        name: The name.
        weights: Which weights, where there are several; see `choose_weights`.

    Raises:
        ModelError: The model cannot be loaded.
    """
    onnx_model = ONNX_MODELS.get(str(name))
    if onnx_model is not None:
        from arag.models.onnx import load_onnx

        return load_onnx(onnx_model, weights)
    if name.provider == HUGGINGFACE:
        from arag.models.huggingface import load_huggingface

        return load_huggingface(name.model)
    from langchain.embeddings import init_embeddings

    defaults: dict[str, Any] = {}
    if name.provider == "openai":
        defaults = {
            "timeout": _TIMEOUT,
            "max_retries": _RETRIES,
            # Other servers with this protocol do not accept token ids in place of texts.
            "check_embedding_ctx_length": not name.base_url,
        }
    options = connection_options(name, defaults)
    try:
        return init_embeddings(name.model, provider=name.provider, **options)
    except (ImportError, TypeError, ValueError) as error:
        raise ModelError(f"the embedder {name} cannot be created: {collapse_whitespace(str(error))}") from error
