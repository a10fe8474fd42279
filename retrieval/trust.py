"""The embedder of an index, and which embedder an index may choose by itself.

An index's settings are data, often somebody else's. An embedder that they name may be a service, which gets the user's
texts and key, or a folder, from which a model is loaded. Such an embedder is used only if the user has named it, too:
as an argument or an option, or in the environment variable ARAG_EMBEDDER.
"""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from arag.errors import IndexNotFoundError, InputError, ModelError
from arag.models.embedders import Embedder, EmbeddingModel, load_embedder, load_embeddings, make_embedder
from arag.models.names import EMBEDDER_VARIABLE, HUGGINGFACE, ModelName, is_hub_id, parse_embedder, parse_name
from arag.retrieval.storage.contract import IndexStore
from arag.retrieval.storage.records import Settings

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


def choose_embedder(
    given: str | Embeddings | Embedder | None,
    settings: Settings,
    location: Path | str,
) -> Embedder:
    """Return the embedder for an index.

    Args:
        given: The embedder that a caller gives, or None for the index's own. The index's own is refused at its first
            use if it sends texts or loads a folder, unless the user has named it.
        settings: The index's settings, which name its embedder and the weights of that.
        location: The index's name, for messages.

    Returns:
        The given embedder, or the index's own. If the given one has other weights, it is the index's own, too.

    Raises:
        ModelError: The given embedder is a different one.
    """
    name = settings.embedder
    if given is not None:
        embedder = load_embedder(given)
        if embedder.name != name:
            raise ModelError(
                f"the index in {location} was made with the embedder {name}, not {embedder.name}: vectors of different "
                "embedders cannot be compared. Use that one, or ingest into another index."
            )
        if embedder.weights == settings.weights:
            return embedder
    return make_embedder(name, lambda: _load(settings, location), settings.weights)


def check_embedder(store: IndexStore) -> None:
    """Refuse the embedder of an index, if there is one, before any work begins.

    Raises:
        ModelError: It sends texts or loads a folder, and the user has not named it.
        IndexFormatError, InputError: The index is damaged, cannot be read, or names no embedder.
    """
    with suppress(IndexNotFoundError):
        _parse_allowed(store.settings().embedder, store.location)


def _parse_allowed(stored: str, location: Path | str) -> ModelName | None:
    """Parse the embedder's name in an index's settings; None if it is the class of an `Embeddings` object.

    One that sends texts or loads a folder is refused, unless the user has named it.
    """
    provider, colon, _ = stored.partition(":")
    if not colon or provider != provider.lower():  # LangChain's providers are in lower case, classes are not
        return None
    name = parse_name(stored)
    variable = os.environ.get(EMBEDDER_VARIABLE)
    is_named = variable and parse_embedder(variable) == name
    is_harmless = name.provider == HUGGINGFACE and is_hub_id(name.model)
    if is_named or is_harmless:
        return name
    raise ModelError(
        f"the embedder {name} is named only by the index in {location}: it would {_consequence(name)}. To allow "
        f"it, set {EMBEDDER_VARIABLE}={shlex.quote(str(name))}, or pass it as the embedder (`arag ingest "
        "--embedder`, `open_index(embedder=...)`). Keyword search and reading work without it"
    )


def _consequence(name: ModelName) -> str:
    """Return what an embedder would do that its user may not want."""
    if name.provider == HUGGINGFACE:
        return f"load the model in the folder {name.model}"
    consequence = f"send your questions and the documents that you ingest to {name.base_url or name.provider}"
    if os.environ.get(name.key_variable):
        consequence += f", with the key in {name.key_variable}"
    return consequence


def _load(settings: Settings, location: Path | str) -> EmbeddingModel:
    name = settings.embedder
    try:
        allowed = _parse_allowed(name, location)
    except InputError as error:
        raise ModelError(f"the embedder of the index in {location} cannot be used: {error}") from error
    if allowed is None:
        raise ModelError(
            f"the index in {location} was made with an embedder object, {name}: pass it as embedder=... in Python; "
            "on the command line, only keywords and patterns find texts in it"
        )
    return load_embeddings(allowed, settings.weights)
