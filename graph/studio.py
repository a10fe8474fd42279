"""The graph that `langgraph.json` names, for LangGraph Studio and the LangGraph API server.

A run's context, which Studio shows as a form, chooses the index, the model and the rest. What it leaves out comes from
the environment: the index's folder from ARAG_INDEX, the model from ARAG_MODEL, else the built-in one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from arag.errors import InputError, ModelError
from arag.graph.context import Context
from arag.graph.graph import build_graph
from arag.graph.settings import ResourceLoader, Settings
from arag.models.chat import EXTRACTIVE, MODEL_VARIABLE
from arag.models.names import parse_base_url, parse_name

INDEX_VARIABLE = "ARAG_INDEX"
ROOT_VARIABLE = "ARAG_INDEX_ROOT"
ADDRESSES_VARIABLE = "ARAG_MODEL_ADDRESSES"


class ServerRules:
    """What contexts may name that come over the network, from whoever reaches the server.

    A development server asks nobody who they are. Keys go to addresses that its operator has named, and indexes are
    opened where the operator has put them.

    Args:
        environment: The operator's variables.

    Attributes:
        settings: The agent's settings.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._model = environment.get(MODEL_VARIABLE) or EXTRACTIVE
        self._index = environment.get(INDEX_VARIABLE) or None
        root = environment.get(ROOT_VARIABLE)
        self._root = Path(root) if root else None
        listed = environment.get(ADDRESSES_VARIABLE, "").split(",")
        addresses = [parse_name(self._model).base_url, *(parse_base_url(url) for url in listed if url.strip())]
        self._addresses = {address.key: address for address in addresses if address is not None}
        self.settings = Settings(model=self._model, index=self._index)

    def restrict(self, context: Context) -> Context:
        """Return a context with the model and the index that it names as the operator allows them.

        Raises:
            ModelError: The context's model is at an address that the operator has not named, or runs in this process.
            InputError: The context's index is none that the operator has put here.
        """
        allowed = {"model": self.allow_model(context.model), "index": self.allow_index(context.index)}
        return context.model_copy(update=allowed)

    def allow_model(self, model: str | None) -> str | None:
        """Return a context's model, at the address as the operator has written it."""
        if model is None or model == self._model:
            return model
        name = parse_name(model)
        if name.provider.lower() == "huggingface":
            raise ModelError(
                f"the model {name} would be loaded into the server: a run may name models that a provider serves. For "
                f"this one, start the server with {MODEL_VARIABLE} set to it"
            )
        if name.base_url is None:
            return model
        address = self._addresses.get(name.base_url.key)
        if address is None:
            raise ModelError(
                f"the model {name} is at an address that this server's operator has not named: start the server with "
                f"{ADDRESSES_VARIABLE}={name.base_url.url} (several with commas between), or with {MODEL_VARIABLE} set "
                "to this model"
            )
        return f"{name.provider}:{name.model}@{address.full}"

    def allow_index(self, index: str | None) -> str | None:
        """Return the path of a context's index; of what is elsewhere, nothing is told."""
        if index is None or index == self._index:
            return index
        try:
            if self._index is not None and Path(index).resolve() == Path(self._index).resolve():
                return self._index
            if self._root is not None:
                root = self._root.resolve()
                path = (root / index).resolve()  # an absolute path is taken as it is
                if path != root and path.is_relative_to(root):
                    return str(path)
        except (OSError, ValueError):  # a name that no file can have, a loop of links
            pass
        raise InputError(
            f"the index {index!r} is none that this server may open: it opens the one in {INDEX_VARIABLE}, and those "
            f"below the folder in {ROOT_VARIABLE}, where that is set"
        )


# The server brings its own checkpointer, and nothing is opened before the first run asks for it.
_rules = ServerRules(os.environ)
graph = build_graph(ResourceLoader(_rules.settings, _rules.restrict))
