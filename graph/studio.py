"""The graph that `langgraph.json` names, for LangGraph Studio and the LangGraph API server.

A run's context, which Studio shows as a form, sets the index, the model and the rest. The defaults come from the
environment: the index from ARAG_INDEX, the model from ARAG_MODEL, else the built-in one. ARAG_USER_SCOPE names
the field of authenticated users that holds the scope that each may see.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from langgraph.runtime import get_runtime

from arag.errors import InputError, ModelError
from arag.graph.context import Context
from arag.graph.graph import build_graph
from arag.graph.settings import ResourceLoader, Settings
from arag.models.chat import EXTRACTIVE, MODEL_VARIABLE
from arag.models.names import parse_base_url, parse_name
from arag.retrieval.locations import is_address, parse_location, store_at
from arag.retrieval.scope import Scope

INDEX_VARIABLE = "ARAG_INDEX"
ROOT_VARIABLE = "ARAG_INDEX_ROOT"
ADDRESSES_VARIABLE = "ARAG_MODEL_ADDRESSES"
SCOPE_VARIABLE = "ARAG_USER_SCOPE"


class ServerRules:
    """What contexts may name when they come over the network, from anyone who can reach the server.

    A development server has no authentication. Keys are sent only to addresses that its operator has named, and indexes
    are opened only where the operator has put them.

    Args:
        environment: The operator's environment variables.

    Attributes:
        settings: The agent's settings.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._model = environment.get(MODEL_VARIABLE) or EXTRACTIVE
        index = environment.get(INDEX_VARIABLE)
        self._index = store_at(index) if index else None
        root = environment.get(ROOT_VARIABLE)
        self._root = Path(root) if root else None
        listed = environment.get(ADDRESSES_VARIABLE, "").split(",")
        addresses = [parse_name(self._model).base_url, *(parse_base_url(url) for url in listed if url.strip())]
        self._addresses = {address.key: address for address in addresses if address is not None}
        self._scope_field = environment.get(SCOPE_VARIABLE) or None
        self.settings = Settings(model=self._model, index=self._index)

    def find_user_scope(self) -> Scope | None:
        """Return the scope of the run's user, which the server's authentication has set, or None if users have none.

        Raises:
            InputError: The user has no valid scope, or nobody is authenticated: such a run sees nothing.
        """
        if self._scope_field is None:
            return None
        server = get_runtime().server_info
        user = server.user if server is not None else None
        if user is None or self._scope_field not in user:
            raise InputError(
                f"this server gives each user a scope ({SCOPE_VARIABLE}={self._scope_field}), and this run's user has "
                "none: the server's authentication must set it"
            )
        conditions = user[self._scope_field]
        scope = Scope(**conditions) if isinstance(conditions, Mapping) else Scope()
        if scope == Scope():  # what a missing entry of the operator's own table may look like
            raise InputError(f"the user's {self._scope_field} is not a scope: it needs `where`, `documents` or both")
        return scope

    def restrict(self, context: Context) -> Context:
        """Return a context with its model and index, if the operator allows them.

        Raises:
            ModelError: The context's model is at an address that the operator has not named, or runs in this process.
            InputError: The operator does not allow the context's index.
        """
        allowed = {"model": self.allow_model(context.model), "index": self.allow_index(context.index)}
        return context.model_copy(update=allowed)

    def allow_model(self, model: str | None) -> str | None:
        """Return a context's model, with its address as the operator wrote it."""
        if model is None or model == self._model:
            return model
        name = parse_name(model)
        if name.provider.lower() == "huggingface":
            raise ModelError(
                f"the model {name} would be loaded into the server: a run may only name models that a provider serves. "
                f"To use this one, start the server with {MODEL_VARIABLE} set to it"
            )
        if name.base_url is None:
            return model
        address = self._addresses.get(name.base_url.key)
        if address is None:
            raise ModelError(
                f"the model {name} is at an address that this server's operator has not named: start the server with "
                f"{ADDRESSES_VARIABLE}={name.base_url.url} (separate several with commas), or with {MODEL_VARIABLE} "
                "set to this model"
            )
        return f"{name.provider}:{name.model}@{address.full}"

    def allow_index(self, index: str | None) -> str | None:
        """Return the path of a context's index, or None for the server's own; errors reveal nothing about others."""
        if index is None or (self._index is not None and index == str(self._index.location)):
            return None
        if is_address(index):
            if self._index is not None and str(parse_location(index)) == str(self._index.location):
                return None
            raise InputError(
                "this server may not open the index at the address in the run's context: of databases, it opens only "
                f"the one in {INDEX_VARIABLE}"
            )
        try:
            own = self._index.location if self._index is not None else None
            if isinstance(own, Path) and Path(index).resolve() == own.resolve():
                return None
            if self._root is not None:
                root = self._root.resolve()
                path = (root / index).resolve()  # an absolute path is taken as it is
                if path != root and path.is_relative_to(root):
                    return str(path)
        except (OSError, ValueError):  # a name that no file can have, a loop of links
            pass
        raise InputError(
            f"this server may not open the index {index!r}: it opens only the one in {INDEX_VARIABLE} and, if "
            f"{ROOT_VARIABLE} is set, those below that folder"
        )


# The server provides its own checkpointer, and nothing is opened before the first run needs it.
_rules = ServerRules(os.environ)
graph = build_graph(ResourceLoader(_rules.settings, _rules.restrict, _rules.find_user_scope))
