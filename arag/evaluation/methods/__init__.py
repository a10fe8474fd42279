"""The methods that experiments compare: one module for each family, with its classes in `METHODS`."""

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
    "table1": "direct naive-rag graphrag hipporag2 linear-rag faithfulrag ma-rag ragenta arag-naive arag".split(),
    "ablation": "arag arag-without-keyword arag-without-semantic arag-without-read".split(),
}
"""Methods of the paper's Tables 1 and 2."""


def all_methods() -> dict[str, type[Method]]:
    """Return the methods of this package, by name."""
    modules = [import_module(module.name) for module in iter_modules(__path__, f"{__name__}.")]
    return {method.name: method for module in modules for method in getattr(module, "METHODS", ())}


def find_methods(names: Iterable[str]) -> dict[str, type[Method]]:
    """Return methods by their names.

    Args:
        names: Names of methods, groups (`table1`, `ablation`), or modules with `METHODS`, such as
            `my_package.my_module`, also in the current folder.

    Raises:
        InputError: There is no such method or module.
    """
    known = all_methods()
    methods: dict[str, type[Method]] = {}
    for name in names:
        if name in known or name in GROUPS:
            methods |= {each: known[each] for each in GROUPS.get(name, [name])}
        else:
            methods |= {method.name: method for method in _import_methods(name, [*known, *GROUPS])}
    return methods


def make_method(kind: type[Method], settings: Mapping[str, Any]) -> Method:
    """Return a method with settings.

    Raises:
        InputError: A setting does not exist, or has a value that is not valid.
    """
    try:
        return kind(**settings)
    except ValidationError as error:
        valid = ", ".join(kind.model_fields) or "none"
        raise InputError(f"{kind.name}: {list_faults(error)}; valid settings: {valid}") from None


def _import_methods(name: str, valid: Iterable[str]) -> Sequence[type[Method]]:
    """Return the methods of a module of one's own."""
    if os.getcwd() not in sys.path:  # noqa: PTH109 - `python -m` has it there, the installed command does not
        sys.path.append(os.getcwd())  # noqa: PTH109 - last, so that no file there hides an installed package
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:  # also of another one, which the module imports
        raise InputError(f"there is no method {name!r} ({error}); valid methods: {', '.join(valid)}") from error
    methods: Sequence[type[Method]] = getattr(module, "METHODS", ())
    if not methods:
        raise InputError(f"the module {name} has no METHODS: a list of classes of arag.evaluation.method.Method")
    return methods
