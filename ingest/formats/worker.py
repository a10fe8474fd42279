"""The child process's part: readers that a file can make crash, hang or eat memory."""

from __future__ import annotations

import signal
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from arag.ingest.formats.content import Content, FormatError, reason


def read(reader: str, path: str, cpu_seconds: float, *options: str) -> dict[str, Any]:
    """Return the fields of a file's `Content`; the reader is a module of this package and a function in it."""
    module, _, function = reader.partition(".")
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)  # the kernel then ends the process
    try:
        content: Content = getattr(import_module(f"arag.ingest.formats.{module}"), function)(Path(path), *options)
    except MemoryError:
        raise
    except Exception as error:
        raise FormatError(reason(error)) from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return asdict(content)


SERVED = (read,)
