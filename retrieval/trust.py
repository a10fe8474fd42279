"""The embedder of an index, and which embedder an index may choose by itself.

An index's manifest is data, often somebody else's. An embedder that it names may be a service, which gets the user's
texts and key, or a folder, from which code is loaded. Such an embedder is used only if the user has named it too.
"""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_config_path

from arag.errors import EmbedderError, IndexNotFoundError, InputError
from arag.models.embedders import Embedder, load_embedder, load_embeddings, make_embedder
from arag.models.names import EMBEDDER_VARIABLE, HUGGINGFACE, KEY_VARIABLES, ModelName, is_hub_id, parse_embedder
from arag.retrieval.backend import Backend
from arag.retrieval.locations import backend_at

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_said = set[str]()  # named in this process, in case the configuration cannot be written


class UnnamedEmbedderError(EmbedderError):
    """An embedder that receives texts or loads files is named by an index's files only, not by the user.

    Attributes:
        name: The embedder's name.
        consequence: What using it would do.
    """

    def __init__(self, name: ModelName, location: Path | str) -> None:
        self.name = name
        self.consequence = _describe_consequence(name)
        super().__init__(
            f"the embedder {name} is named only by the index in {location}: {self.consequence}. To allow it, set "
            f"{EMBEDDER_VARIABLE}={shlex.quote(str(name))}, answer yes when `arag` asks on a terminal, or pass it "
            "as the embedder (`arag ingest --embedder`, `open_index(embedder=...)`). Keyword search and reading work "
            "without it"
        )


def choose_embedder(given: str | Embeddings | Embedder | None, name: str, location: Path | str) -> Embedder:
    """Return the embedder of an index, or check that the one given is it.

    Args:
        given: The embedder that a caller gives; None for the index's own. If that sends texts or loads a folder, it
            is refused at its first use, unless the user has named it too.
        name: The name in the index's manifest.
        location: The backend's location, for messages.

    Raises:
        EmbedderError: The given embedder is a different one.
    """
    if given is None:
        try:
            own = parse_manifest_name(name)
        except InputError as error:
            return Embedder(name, partial(_refuse, f"the embedder of the index in {location} cannot be used: {error}"))
        if own is None:  # everything that needs no vectors works without it
            why = f"the index in {location} was made with an embedder object, {name}: pass it as embedder=..."
            return Embedder(name, partial(_refuse, why))
        return make_embedder(name, own.provider, partial(_load, own, location))
    embedder = load_embedder(given)
    if embedder.name != name:
        raise EmbedderError(
            f"the index in {location} was made with the embedder {name}, not {embedder.name}: vectors of different "
            "embedders cannot be compared. Use that one, or ingest into another index."
        )
    return embedder


def check_embedder(index: str | Path | Backend) -> None:
    """Refuse an index's embedder if the user has to name it first, before any work begins.

    Args:
        index: Where the index is: a folder, an address, or its backend; it need not exist.

    Raises:
        UnnamedEmbedderError: It sends texts or loads a folder, and the user has not named it.
        IndexFormatError: The manifest is damaged.
        InputError: The folder cannot be read, the address is not valid, or the manifest names no embedder.
    """
    backend = backend_at(index)
    with suppress(IndexNotFoundError):
        if name := parse_manifest_name(backend.manifest().embedder):
            check_named(name, backend.location)


def remember_embedder(manifest_name: str, *, given: bool) -> None:
    """Remember the embedder of an index that was written to, if the user has named it.

    Args:
        manifest_name: The name in the index's manifest.
        given: Whether the embedder was given for this index.
    """
    try:
        name = parse_manifest_name(manifest_name)
    except InputError:  # an object's
        return
    if name is not None and (given or find_named(name) is not None):
        remember(name)


def parse_manifest_name(manifest_name: str) -> ModelName | None:
    """Parse the embedder's name in a manifest; None if it is the class of an `Embeddings` object.

    Raises:
        InputError: It is not the name of an embedder.
    """
    provider, colon, _ = manifest_name.partition(":")
    if not colon or provider != provider.lower():  # LangChain's providers are in lower case, classes are not
        return None
    return parse_embedder(manifest_name)


def needs_naming(name: ModelName) -> bool:
    """Return whether an embedder sends texts anywhere, or loads files from disk: then data must not choose it."""
    return name.provider != HUGGINGFACE or name.base_url is not None or not is_hub_id(name.model)


def find_named(name: ModelName) -> ModelName | None:
    """Return an embedder as the user has named it, with its connection settings, or None."""
    variable = os.environ.get(EMBEDDER_VARIABLE)
    if variable and str(chosen := parse_embedder(variable)) == str(name):
        return chosen
    return name if str(name) in _said or str(name) in _read_remembered() else None


def check_named(name: ModelName, location: Path | str) -> ModelName:
    """Return the embedder that an index names, as the user has named it, if that is required.

    Args:
        name: The embedder that the manifest names.
        location: The backend's location, for messages.

    Raises:
        UnnamedEmbedderError: It sends texts or loads a folder, and the user has not named it.
    """
    chosen = find_named(name)
    if chosen is None and needs_naming(name):
        raise UnnamedEmbedderError(name, location)
    return chosen or name


def remember(name: ModelName) -> None:
    """Remember an embedder that the user has named, so that indexes made with it can be used from now on.

    If the user's configuration cannot be written, it is remembered until this process ends.
    """
    names = _read_remembered()
    if str(name) in names:
        return
    _said.add(str(name))
    file = _file()
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, new = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}.")  # readable by the user only
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                json.dump({"embedders": sorted([*names, str(name)])}, out, ensure_ascii=False, indent=2)
                out.flush()
                os.fsync(out.fileno())
            Path(new).replace(file)
        except BaseException:
            Path(new).unlink(missing_ok=True)
            raise


def _load(name: ModelName, location: Path | str) -> Embeddings:
    return load_embeddings(check_named(name, location), named=find_named(name) is not None)


def _refuse(why: str) -> Embeddings:
    raise EmbedderError(why)


def _file() -> Path:
    return user_config_path("arag", appauthor=False) / "embedders.json"


def _read_remembered() -> set[str]:
    try:
        names = json.loads(_file().read_text(encoding="utf-8"))["embedders"]
    except (OSError, ValueError, LookupError, TypeError):  # there is none yet, or it is damaged
        return set()
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def _describe_consequence(name: ModelName) -> str:
    if name.provider == HUGGINGFACE:
        return f"it would load the model in the folder {name.model}"
    where = name.base_url.host if name.base_url else f"the provider {name.provider}"
    key = KEY_VARIABLES.get(name.provider)
    with_key = f", with the key in {key}" if key and os.environ.get(key) else ""
    return f"it would send your questions and the documents that you ingest to {where}{with_key}"
