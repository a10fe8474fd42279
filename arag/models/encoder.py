"""Makes the ONNX graph of a BERT encoder in int8, from a model's weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from arag.models.weights import Floats, Weights

HEADS = 12
WIDTH = 384
INPUT = "embedded"
_OUTPUT = "vector"
_EPSILON = 1e-12
_MOST = 63  # of a weight: with 127, sums of products overflow on processors without VNNI
_MICROSOFT = "com.microsoft"  # the domain of ONNX Runtime's own operators
_IR_VERSION = 8
_OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid(_MICROSOFT, 1)]


def make_encoder(weights: Weights, loud: Sequence[Sequence[int]]) -> bytes:
    """Return an ONNX model that turns the vectors of a sentence's tokens into the sentence's vector of length one.

    Args:
        weights: The model's weights.
        loud: For each layer, the hidden units that take on far larger values than all others. They are computed in
            fp32: in int8 all units share one scale, and the others would lose most of their digits.
    """
    graph = _Graph(weights)
    x = graph.normalise(INPUT, "embeddings.LayerNorm")
    for number, units in enumerate(loud):
        layer = f"encoder.layer.{number}"
        attended = graph.attend(x, f"{layer}.attention")
        x = graph.normalise(graph.add("Add", x, attended), f"{layer}.attention.output.LayerNorm")
        fed = graph.feed_forward(x, layer, list(units))
        x = graph.normalise(graph.add("Add", x, fed), f"{layer}.output.LayerNorm")
    # The mean of the tokens' vectors has the direction of their sum.
    total = graph.add("ReduceSum", x, graph.constant(np.array([1])), keepdims=0)
    graph.add("LpNormalization", total, output=_OUTPUT, axis=1, p=2)
    return graph.to_bytes()


class _Graph:
    """The nodes and constants of a graph."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []

    def to_bytes(self) -> bytes:
        """Return the graph as an ONNX model."""
        given = helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, [1, "tokens", WIDTH])
        result = helper.make_tensor_value_info(_OUTPUT, TensorProto.FLOAT, [1, WIDTH])
        graph = helper.make_graph(self._nodes, "encoder", [given], [result], self._constants)
        model = helper.make_model(graph, opset_imports=_OPSETS, ir_version=_IR_VERSION)
        serialised: bytes = model.SerializeToString()
        return serialised

    def constant(self, values: NDArray[np.generic]) -> str:
        """Add a constant; return its name."""
        name = f"constant{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def add(self, operator: str, *inputs: str, output: str = "", domain: str = "", **attributes: Any) -> str:
        """Add a node with one output; return the output's name."""
        output = output or f"node{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def normalise(self, x: str, name: str) -> str:
        """Add a layer normalisation."""
        weight = self.constant(self._weights.tensor(f"{name}.weight"))
        bias = self.constant(self._weights.tensor(f"{name}.bias"))
        return self.add("LayerNormalization", x, weight, bias, epsilon=_EPSILON)

    def attend(self, x: str, name: str) -> str:
        """Add an attention."""
        matrices: list[Floats] = []
        biases: list[Floats] = []
        for part in ("query", "key", "value"):
            matrices.append(self._weights.tensor(f"{name}.self.{part}.weight"))
            biases.append(self._weights.tensor(f"{name}.self.{part}.bias"))
        # All three share the inputs, which are so rounded to int8 only once.
        together = self._dense(x, np.concatenate(matrices), np.concatenate(biases))
        parts = [f"{together}.{part}" for part in range(3)]
        sizes = self.constant(np.full(3, WIDTH))
        self._nodes.append(helper.make_node("Split", [together, sizes], parts, axis=2))
        seen = self.add("MultiHeadAttention", *parts, domain=_MICROSOFT, num_heads=HEADS)
        return self._dense(
            seen,
            self._weights.tensor(f"{name}.output.dense.weight"),
            self._weights.tensor(f"{name}.output.dense.bias"),
        )

    def feed_forward(self, x: str, name: str, loud: list[int]) -> str:
        """Add the inner layer, with its loud units beside the others."""
        inner = np.array(self._weights.tensor(f"{name}.intermediate.dense.weight"))
        bias = np.array(self._weights.tensor(f"{name}.intermediate.dense.bias"))
        outer = np.array(self._weights.tensor(f"{name}.output.dense.weight"))
        sums = self.add("MatMul", x, self.constant(inner[loud].T))
        sums = self.add("Add", sums, self.constant(bias[loud]))
        active = self.add("Gelu", sums, domain=_MICROSOFT)
        exact = self.add("MatMul", active, self.constant(outer[:, loud].T))
        inner[loud] = 0
        bias[loud] = 0
        outer[:, loud] = 0
        hidden = self.add("Gelu", self._dense(x, inner, bias), domain=_MICROSOFT)
        rounded = self._dense(hidden, outer, self._weights.tensor(f"{name}.output.dense.bias"))
        return self.add("Add", rounded, exact)

    def _dense(self, x: str, weight: Floats, bias: Floats) -> str:
        """Add a product with a matrix in int8, which has a scale for each output."""
        scales = np.abs(weight).max(axis=1, keepdims=True) / np.float32(_MOST)
        scales = np.maximum(scales, np.finfo(np.float32).tiny)  # a row of zeros has no scale
        rounded = np.rint(weight / scales).astype(np.int8)
        return self.add(
            "DynamicQuantizeMatMul",
            x,
            self.constant(rounded.T),
            self.constant(scales.ravel()),
            self.constant(np.zeros(len(scales), np.int8)),
            self.constant(bias),
            domain=_MICROSOFT,
        )
