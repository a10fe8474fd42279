"""The child process's part: readers that a file can make crash, hang or eat memory."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from arag.ingest.formats.content import Content, FormatError, reason


def read(reader: str, path: str, cpu_seconds: float, *options: str) -> dict[str, Any]:
    """Read a file.

    Args:
        reader: A module of this package and a function in it, such as `pdf.reader.read_pdf`.
        path: The file.
        cpu_seconds: The processor time after which the kernel ends this process.
        options: Further arguments of the function.

    Returns:
        The fields of the file's `Content`.

    Raises:
        FormatError: It cannot be read.
        MemoryError: It needs more memory than this process may use.
    """
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        content = _load(reader)(Path(path), *options)
    except MemoryError:
        raise
    except Exception as error:
        raise FormatError(reason(error)) from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return asdict(content)


def find_scans(path: str, cpu_seconds: float) -> list[int]:
    """Return the numbers of the pages of a PDF that are pictures, from 1."""
    from arag.ingest.formats.pdf import scans

    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        return scans.find_scans(Path(path))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _load(reader: str) -> Callable[..., Content]:
    module_name, _, function_name = reader.rpartition(".")
    module = import_module(f"arag.ingest.formats.{module_name}")
    function: Callable[..., Content] = getattr(module, function_name)
    return function


SERVED = (read, find_scans)
