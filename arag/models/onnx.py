"""BERT models in int8 on ONNX Runtime, without PyTorch.

A model's graph is made in memory each time that it is loaded. The table of words is not a part of it: it stays in the
file with the weights.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from arag.models.onnx_models import OnnxModel, find_files, load_axes
from arag.models.weights import Floats, PackedE5, SafetensorsWeights, Weights

_MAX_THREADS = 8  # each holds a sentence's numbers in memory

Encode = Callable[[str], Sequence[int]]


class OnnxEmbeddings:
    """Embeds texts with a BERT model in int8, as the mean of the tokens' vectors.

    A sentence's vector depends on nothing but the sentence: neither on others, nor on the number of threads. This is no
    subclass of LangChain's `Embeddings`, whose import takes a tenth of the time of a search from the command line.

    Args:
        weights: The model's weights.
        encode: Returns the ids of a text's tokens.
        loud: The hidden units of each layer that are computed in fp32; see `make_encoder`.
        query_prompt: Stands in front of queries.
        document_prompt: Stands in front of sentences of documents.
        axes: Directions that are taken out of the vectors, of length one and at right angles, shape (axes, dimension).
    """

    def __init__(
        self,
        weights: Weights,
        encode: Encode,
        loud: Sequence[Sequence[int]],
        query_prompt: str = "",
        document_prompt: str = "",
        axes: Floats | None = None,
    ) -> None:
        # ONNX Runtime sends its makers data about each model, and reads this when it is imported.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        from onnxruntime import InferenceSession, SessionOptions

        from arag.models.encoder import INPUT, make_encoder

        options = SessionOptions()
        options.log_severity_level = 3  # errors
        options.intra_op_num_threads = 1  # cores that share a sentence wait for each other at every step
        self._session = InferenceSession(
            make_encoder(weights, loud),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=["SkipLayerNormFusion"],  # the fused operator takes ten times as long
        )
        self._input = INPUT
        self._weights = weights
        self._encode = encode
        self._query_prompt = query_prompt
        self._document_prompt = document_prompt
        self._axes = axes
        types = weights.tensor("embeddings.token_type_embeddings.weight")
        self._positions = weights.tensor("embeddings.position_embeddings.weight") + types[0]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed sentences, several at a time, each in a run of its own.

        In a batch, int8 numbers would get one scale for all its sentences, and shorter ones would be padded.
        """
        prompted = [self._document_prompt + text for text in texts]
        with ThreadPoolExecutor(count_threads()) as pool:
            vectors = pool.map(self._embed, prompted)
            return [vector.tolist() for vector in vectors]

    def embed_query(self, text: str) -> list[float]:
        """Embed a query."""
        vector: list[float] = self._embed(self._query_prompt + text).tolist()
        return vector

    def _embed(self, text: str) -> Floats:
        ids = self._encode(text)
        tokens = self._weights.word_vectors(ids) + self._positions[: len(ids)]
        outputs = self._session.run(None, {self._input: tokens[np.newaxis]})
        vector: Floats = outputs[0][0]
        if self._axes is None:
            return vector
        neutral = vector - (self._axes @ vector) @ self._axes
        return neutral / np.linalg.norm(neutral)


def count_threads() -> int:
    """Return how many sentences are embedded at a time, each by one core."""
    return min(_MAX_THREADS, os.cpu_count() or 1)


def load_onnx(model: OnnxModel, weights: str) -> OnnxEmbeddings:
    """Load a model.

    Args:
        model: The model.
        weights: Which weights; see `choose_weights`.

    Raises:
        ModelError: The weights are not on this machine and cannot be downloaded, or are damaged.
    """
    files = find_files(model, weights)
    tables: Weights
    encode: Encode
    if files.tokenizer is None:
        packed = PackedE5(files.weights, model.max_tokens)
        tables = packed
        encode = packed.tokenizer.encode
    else:
        tables = SafetensorsWeights(files.weights)
        encode = _load_tokenizer(files.tokenizer, model.max_tokens)
    return OnnxEmbeddings(
        tables,
        encode,
        model.loud,
        query_prompt=model.query_prompt,
        document_prompt=model.document_prompt,
        axes=load_axes(weights),
    )


def _load_tokenizer(file: Path, max_tokens: int) -> Encode:
    """Load a tokenizer of the package `tokenizers`."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return lambda text: tokenizer.encode(text).ids
