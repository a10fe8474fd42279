"""Embedding models of the model hub and of folders, on PyTorch; and the download of models."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from arag.errors import ModelError
from arag.models.names import is_hub_id

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]  # no code, and no weights that are pickled
# Models that were trained with prompts, but whose files do not name them.
_E5 = re.compile(r"(?:^|/)(?:multilingual-)?e5-(?:small|base|large)(?:-v2)?/?$")
_MAX_REASON = 300  # characters of a library's error
_E5_PROMPTS = {"query": "query: ", "document": "passage: "}


def load_huggingface(model: str) -> Embeddings:
    """Load a sentence-transformers model, without running code of its own.

    Args:
        model: Its name on the model hub, or a folder.

    Raises:
        ModelError: PyTorch is not installed, or the model cannot be downloaded or loaded.
    """
    if not importlib.util.find_spec("sentence_transformers"):
        raise ModelError(
            f"the embedder {model} runs on PyTorch, which is not installed: pip install 'langgraph-arag[torch]'"
        )
    from langchain_huggingface import HuggingFaceEmbeddings
    from transformers.utils import logging

    folder = model
    if is_hub_id(model):
        full_name = model if "/" in model else f"sentence-transformers/{model}"  # that library's default organisation
        folder = str(download(full_name, _FILES))
    logging.disable_progress_bar()  # of the loading, which is short
    try:
        return HuggingFaceEmbeddings(
            model_name=folder,
            model_kwargs={
                "trust_remote_code": False,
                "model_kwargs": {"use_safetensors": True},
                "prompts": _E5_PROMPTS if _E5.search(model) else None,
            },
            encode_kwargs={"prompt_name": "document", "normalize_embeddings": True},
            query_encode_kwargs={"prompt_name": "query", "normalize_embeddings": True},
        )
    except (OSError, ValueError) as error:
        raise ModelError(
            f"the embedder {model} cannot be loaded ({_first_line(error)}): it must be a sentence-transformers model "
            "with weights in the safetensors format, and without code of its own, which is never run"
        ) from error


def download(model: str, files: Sequence[str], hint: str = "") -> Path:
    """Return the folder of a model from the hub: downloaded, or from the hub's cache if the hub cannot be reached.

    A terminal shows the progress. A download that breaks off goes on from there.

    Args:
        model: Its name on the model hub.
        files: Names of files, or patterns.
        hint: A sentence of the error's message, on what else helps.

    Raises:
        ModelError: The model is not there.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    if not sys.stderr.isatty():
        disable_progress_bars()
    try:
        return Path(snapshot_download(model, allow_patterns=list(files)))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"the embedder {model} is not on this machine, and downloading it from the model hub failed "
            f"({_first_line(error)}). {hint}A folder with a model works too: huggingface:/path/to/model"
        ) from error


def _first_line(error: Exception) -> str:
    line = f"{type(error).__name__}: {error}".splitlines()[0]
    return line[:_MAX_REASON]
