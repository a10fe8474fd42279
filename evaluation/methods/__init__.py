"""The methods that experiments compare: one file for each family, discovered automatically."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from arag.errors import InputError
from arag.evaluation.methods.interface import Method, Options

__all__ = ["Method", "Options", "all_methods", "method"]


def all_methods() -> dict[str, Method]:
    """Return every method by its name, as listed in `METHODS` of the modules in this folder.

    Raises:
        ValueError: Two methods have the same name.
    """
    found: dict[str, Method] = {}
    for module in (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)):
        for one in getattr(module, "METHODS", ()):
            if one.name in found:  # their records would go into one file
                raise ValueError(f"two methods are named {one.name!r}; the second one is in {module.__name__}")
            found[one.name] = one
    return found


def method(name: str) -> Method:
    """Return a method by its name.

    Raises:
        InputError: There is no method with that name.
    """
    known = all_methods()
    if name not in known:
        raise InputError(f"unknown method {name!r}; valid methods: {', '.join(sorted(known))}")
    return known[name]
