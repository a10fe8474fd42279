"""Which embedders an index may bring along.

An index's manifest is data, often somebody else's. An embedder that it names may be a service, which gets the user's
texts and key, or a folder, from which code is loaded. Such a one is used only when the user has named it, too.
"""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from contextlib import suppress
from pathlib import Path

from platformdirs import user_config_path

from arag.errors import EmbedderError
from arag.models.names import HUGGINGFACE, ModelName, is_hub_id, parse_embedder

EMBEDDER_VARIABLE = "ARAG_EMBEDDER"

_said = set[str]()  # in this process, where the configuration cannot be written

_KEYS = {
    "openai": "OPENAI_API_KEY",
    "azure_openai": "AZURE_OPENAI_API_KEY",
    "cohere": "COHERE_API_KEY",
    "google_genai": "GOOGLE_API_KEY",
    "mistralai": "MISTRAL_API_KEY",
}


class UnnamedEmbedderError(EmbedderError):
    """Only an index's files name its embedder, which gets texts or loads files; the user has not.

    Attributes:
        name: The embedder's name.
        consequence: What using it would do.
    """

    def __init__(self, name: ModelName, folder: Path | str) -> None:
        self.name = name
        self.consequence = _consequence(name)
        super().__init__(
            f"the embedder {name} is named only by the index in {folder}: {self.consequence}. To allow it, set "
            f"{EMBEDDER_VARIABLE}={shlex.quote(str(name))}, answer yes when `arag` asks on a terminal, or pass it "
            "as the embedder (`arag ingest --embedder`, `open_index(embedder=...)`). Keyword search and reading work "
            "without it"
        )


def needs_naming(name: ModelName) -> bool:
    """Tell whether an embedder sends texts anywhere, or loads what stands on disk: then data must not choose it."""
    return name.provider != HUGGINGFACE or name.base_url is not None or not is_hub_id(name.model)


def named_by_user(name: ModelName) -> ModelName | None:
    """Return an embedder as the user has named it, with what the connection needs, or None where nobody has."""
    variable = os.environ.get(EMBEDDER_VARIABLE)
    if variable:
        chosen = parse_embedder(variable)
        if str(chosen) == str(name):
            return chosen
    return name if str(name) in _said or str(name) in _remembered() else None


def check_named(name: ModelName, folder: Path | str) -> ModelName:
    """Return the embedder that an index names, as the user has named it where that is needed.

    Args:
        name: The embedder that the manifest names.
        folder: The index's folder, for messages.

    Raises:
        UnnamedEmbedderError: It sends texts or loads a folder, and the user has not named it.
    """
    chosen = named_by_user(name)
    if chosen is None and needs_naming(name):
        raise UnnamedEmbedderError(name, folder)
    return chosen or name


def remember(name: ModelName) -> None:
    """Keep an embedder that the user has named, so that indexes made with it can be used from now on.

    Where the user's configuration cannot be written, they can until this process ends.
    """
    names = _remembered()
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


def _file() -> Path:
    return user_config_path("arag", appauthor=False) / "embedders.json"


def _remembered() -> set[str]:
    try:
        names = json.loads(_file().read_text(encoding="utf-8"))["embedders"]
    except (OSError, ValueError, LookupError, TypeError):  # there is none yet, or it is damaged
        return set()
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def _consequence(name: ModelName) -> str:
    if name.provider == HUGGINGFACE:
        return f"it would load the model in the folder {name.model}"
    where = name.base_url.host if name.base_url else f"the provider {name.provider}"
    key = _KEYS.get(name.provider)
    with_key = f", with the key in {key}" if key and os.environ.get(key) else ""
    return f"it would send your questions and the documents that you ingest to {where}{with_key}"
