"""The methods that experiments compare: one module for each family, which lists its classes in `METHODS`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from arag.errors import InputError, list_faults

if TYPE_CHECKING:
    from arag.evaluation.method import Method

GROUPS = {
    "table1": [
        "direct",
        "naive-rag",
        "graphrag",
        "hipporag2",
        "linear-rag",
        "faithfulrag",
        "ma-rag",
        "ragenta",
        "arag-naive",
        "arag",
    ],
    "ablation": [
        "arag",
        "arag-without-keyword",
        "arag-without-semantic",
        "arag-without-read",
    ],
}
"""The methods of the paper's Tables 1 and 2."""


def all_methods() -> dict[str, type[Method]]:
    """Return the methods of this package, by name."""
    methods: dict[str, type[Method]] = {}
    for module_info in iter_modules(__path__, f"{__name__}."):
        module = import_module(module_info.name)
        methods |= _by_name(getattr(module, "METHODS", ()))
    return methods


def find_methods(names: Iterable[str]) -> dict[str, type[Method]]:
    """Return methods by their names.

    Args:
        names: Names of methods, of groups (`table1`, `ablation`), or of modules with `METHODS`, such as
            `my_package.my_module`. A module may be in the current folder.

    Returns:
        The methods, by name.

    Raises:
        InputError: There is no such method or module.
    """
    known = all_methods()
    methods: dict[str, type[Method]] = {}
    for name in names:
        if name in GROUPS:
            methods |= {member: known[member] for member in GROUPS[name]}
        elif name in known:
            methods[name] = known[name]
        else:
            methods |= _by_name(_import_methods(name, [*known, *GROUPS]))
    return methods


def _by_name(methods: Iterable[type[Method]]) -> dict[str, type[Method]]:
    return {method.name: method for method in methods}


def make_method(kind: type[Method], settings: Mapping[str, Any]) -> Method:
    """Create a method with settings.

    Args:
        kind: The method's class.
        settings: Values of its fields, by name.

    Returns:
        The method.

    Raises:
        InputError: A setting does not exist, or its value is not valid.
    """
    try:
        return kind(**settings)
    except ValidationError as error:
        valid = ", ".join(kind.model_fields) or "none"
        raise InputError(f"{kind.name}: {list_faults(error)}; valid settings: {valid}") from None


def _import_methods(name: str, valid: Iterable[str]) -> Sequence[type[Method]]:
    """Import the methods of a user's own module."""
    current_folder = os.getcwd()  # noqa: PTH109 - sys.path holds strings
    if current_folder not in sys.path:  # `python -m` adds it, the installed command does not
        sys.path.append(current_folder)  # at the end, so that no file there hides an installed package
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:  # also if the module imports another one that is missing
        raise InputError(f"there is no method {name!r} ({error}); valid methods: {', '.join(valid)}") from error
    methods: Sequence[type[Method]] = getattr(module, "METHODS", ())
    if not methods:
        raise InputError(f"the module {name} has no METHODS: a list of classes of arag.evaluation.method.Method")
    return methods
