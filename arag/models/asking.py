"""Errors of model calls: which are the provider's, and not a bug."""

from __future__ import annotations

import sys
from traceback import walk_tb

_CLIENTS = frozenset({"openai", "anthropic", "google", "ollama", "groq", "mistralai", "cohere", "httpx", "httpx2"})
_LANGUAGE_MODELS = "langchain_core.language_models."
_BUILT_IN = (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError)


def is_provider_error(error: BaseException) -> bool:
    """Return whether an error comes from a model's provider or its client, rather than from a bug in this package.

    Each client has its own exceptions, and a client that is not installed cannot be imported to name them. So this
    checks the packages that define the error's class and its bases or, for built-in classes, the one that raised it.
    """
    if any(_is_client(kind.__module__) for kind in type(error).__mro__):
        return True
    # LangChain and the clients raise built-in errors where a response contains no reply, or is no JSON.
    module = _raised_in(error)
    return isinstance(error, _BUILT_IN) and (_is_client(module) or module.startswith(_LANGUAGE_MODELS))


def _is_client(module: str) -> bool:
    package = module.partition(".")[0]
    return package in _CLIENTS or (package.startswith("langchain_") and package != "langchain_core")


def _raised_in(error: BaseException) -> str:
    """Return the name of the module that raised an error, or that called the standard library code that did."""
    module = ""
    for frame, _ in walk_tb(error.__traceback__):
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in sys.stdlib_module_names:
            module = name
    return module
