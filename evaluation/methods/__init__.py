"""The methods that experiments compare: one file for each family, discovered automatically."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType

from arag.errors import InputError
from arag.evaluation.methods.interface import Method, MethodFacts, MethodGraph, Options, Settings

__all__ = ["Method", "MethodFacts", "MethodGraph", "Options", "Settings", "all_methods", "find_methods", "method"]


def all_methods() -> dict[str, Method]:
    """Return every method by its name, as listed in `METHODS` of the modules in this folder.

    Raises:
        InputError: Two methods have the same name.
    """
    return _by_name(import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))


def method(name: str) -> Method:
    """Return a method by its name.

    Raises:
        InputError: There is no method with that name.
    """
    known = all_methods()
    if name not in known:
        raise InputError(
            f"unknown method {name!r}; valid methods: {', '.join(sorted(known))}, or a module of yours with METHODS, "
            "such as my_package.my_module"
        )
    return known[name]


def find_methods(names: Iterable[str]) -> dict[str, Method]:
    """Return methods by their names, and those of modules.

    Args:
        names: Names of methods, or of modules with `METHODS`, which may be in the current folder: a name with a dot,
            or one that no method has.

    Raises:
        InputError: There is no such method or module, or two methods have the same name.
    """
    known = all_methods()
    found: dict[str, Method] = {}
    modules: list[ModuleType] = []
    for name in dict.fromkeys(names):
        if name in known:
            found[name] = known[name]
            continue
        module = _import(name)
        if module is None:
            return {**found, name: method(name)}
        modules.append(module)
        outside = _by_name(modules)
        if clash := known.keys() & outside:
            raise InputError(f"the method {min(clash)!r} of {name} has the name of a built-in one")
        found |= outside
    return found


def _by_name(modules: Iterable[ModuleType]) -> dict[str, Method]:
    found: dict[str, Method] = {}
    for module in modules:
        for one in getattr(module, "METHODS", ()):
            if one.name in found:  # their records would go into one file
                raise InputError(f"two methods are named {one.name!r}; the second one is in {module.__name__}")
            found[one.name] = one
    return found


def _import(name: str) -> ModuleType | None:
    """Return a module with methods, or None if there is no such module.

    Raises:
        InputError: It has none.
    """
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    if os.getcwd() not in sys.path:  # noqa: PTH109 - `python -m` has it there, the installed command does not
        sys.path.append(os.getcwd())  # noqa: PTH109 - last, so that no file there hides an installed package
    try:
        if find_spec(name) is None:
            return None
    except (ModuleNotFoundError, ValueError):  # its package; `__main__`, which has no spec
        return None
    module = import_module(name)
    if not getattr(module, "METHODS", ()):
        raise InputError(f"the module {name} has no METHODS: give it a tuple of arag.evaluation.methods.Method")
    return module
