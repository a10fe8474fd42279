"""Imports of libraries without others that they import if these are installed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder


class _Refusal(MetaPathFinder):
    """Finds nothing, and refuses one module to one thread."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._thread = threading.get_ident()

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == self._module and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{fullname} is not imported here", name=fullname)


@contextmanager
def without(module: str) -> Iterator[None]:
    """Let this thread's imports inside do without a module, unless it is imported already; later ones find it."""
    refusal = _Refusal(module)
    sys.meta_path.insert(0, refusal)
    try:
        yield
    finally:
        sys.meta_path.remove(refusal)
