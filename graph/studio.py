"""The graph that `langgraph.json` names, for LangGraph Studio and the LangGraph API server.

A run's context, which Studio shows as a form, chooses the index, the model and the rest. What it leaves out comes from
the environment: the index's folder from ARAG_INDEX, the model from ARAG_MODEL, else the built-in one.
"""

from __future__ import annotations

import os

import httpx

from arag.graph.context import Context
from arag.graph.graph import build_graph
from arag.graph.models import EXTRACTIVE, MODEL_VARIABLE
from arag.graph.settings import Defaults, Settings, SettingsOfRuns
from arag.retrieval.embedders import split_base_url
from arag.retrieval.errors import ModelError

INDEX_VARIABLE = "ARAG_INDEX"

_THIS_MACHINE = {"localhost", "127.0.0.1", "::1"}


class ServerSettings(SettingsOfRuns):
    """Makes settings from contexts that come over the network, from whoever reaches the server.

    A development server asks nobody who they are, and any web page that its user visits can make it start a run. To
    a model's address goes the key for it, so that a context may not name just any address.
    """

    def __call__(self, context: object) -> Settings:
        """Return the settings of a run.

        Raises:
            ModelError: The context's model is at an address that is neither on this machine nor in ARAG_MODEL.
        """
        if isinstance(context, Context) and context.model is not None:
            own = self.defaults.model
            _check_address(context.model, own if isinstance(own, str) else EXTRACTIVE)
        return super().__call__(context)


def _check_address(model: str, own: str) -> None:
    _, address = split_base_url(model)
    if address is None or address == split_base_url(own)[1]:
        return
    try:
        host = httpx.URL(address).host  # as the clients read it
    except httpx.InvalidURL as error:
        raise ModelError(f"the model {model} has an address that is no URL: {error}") from error
    if host not in _THIS_MACHINE:
        raise ModelError(
            f"the model {model} is on {host or 'an unnamed host'}: a run may name models of providers and of servers "
            f"on this machine. For one elsewhere start this server with {MODEL_VARIABLE} set to it."
        )


# The server brings its own checkpointer, and nothing is opened before the first run asks for it.
graph = build_graph(
    ServerSettings(
        Defaults(
            model=os.environ.get(MODEL_VARIABLE) or EXTRACTIVE,
            index=os.environ.get(INDEX_VARIABLE) or None,
        )
    )
)
