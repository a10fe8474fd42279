"""BERT in plain NumPy and fp32: what a model's vectors are, without rounding to int8."""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy.special import erf

HEADS = 12


class Unpacked:
    """Weights whose tensors are unpacked once, not again for each sentence."""

    def __init__(self, weights):
        self.tensor = functools.cache(weights.tensor)
        self.word_vectors = weights.word_vectors


def embed(weights, ids):
    """Return the vector of a sentence's tokens: the mean of their vectors, of length one."""
    positions = weights.tensor("embeddings.position_embeddings.weight")[: len(ids)]
    types = weights.tensor("embeddings.token_type_embeddings.weight")
    x = _normalise(weights, "embeddings.LayerNorm", weights.word_vectors(ids) + positions + types[0])
    number = 0
    while _has_layer(weights, number):
        layer = f"encoder.layer.{number}"
        x = _normalise(weights, f"{layer}.attention.output.LayerNorm", x + _attend(weights, f"{layer}.attention", x))
        inner = _dense(weights, f"{layer}.intermediate.dense", x)
        hidden = inner * (1 + erf(inner / math.sqrt(2))) / 2
        x = _normalise(weights, f"{layer}.output.LayerNorm", x + _dense(weights, f"{layer}.output.dense", hidden))
        number += 1
    mean = x.mean(axis=0)
    return mean / np.linalg.norm(mean)


def _has_layer(weights, number):
    try:
        weights.tensor(f"encoder.layer.{number}.output.dense.bias")
    except KeyError:
        return False
    return True


def _dense(weights, name, x):
    return x @ weights.tensor(f"{name}.weight").T + weights.tensor(f"{name}.bias")


def _normalise(weights, name, x):
    centred = x - x.mean(axis=1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
    return scaled * weights.tensor(f"{name}.weight") + weights.tensor(f"{name}.bias")


def _attend(weights, name, x):
    def split(part):
        return _dense(weights, f"{name}.self.{part}", x).reshape(len(x), HEADS, -1).swapaxes(0, 1)

    query, key, value = map(split, ("query", "key", "value"))
    scores = query @ key.swapaxes(1, 2) / math.sqrt(query.shape[-1])
    exponents = np.exp(scores - scores.max(axis=-1, keepdims=True))
    seen = exponents / exponents.sum(axis=-1, keepdims=True) @ value
    return _dense(weights, f"{name}.output.dense", seen.swapaxes(0, 1).reshape(len(x), -1))
