"""The child process's part: readers that a file can make crash, hang or eat memory."""

from __future__ import annotations

import signal
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from arag.ingest.formats.content import Content, FormatError, reason

_MODULES = {
    "read_csv": "arag.ingest.formats.tables",
    "read_html": "arag.ingest.formats.html",
    "read_mail": "arag.ingest.formats.mail",
    "read_notebook": "arag.ingest.formats.notebook",
    "read_office": "arag.ingest.formats.office",
    "read_pdf": "arag.ingest.formats.pdf",
}


def read(reader: str, path: str, cpu_seconds: float) -> dict[str, Any]:
    """Return the fields of a file's `Content`, read by one of the readers above."""
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)  # the kernel then ends the process
    try:
        content: Content = getattr(import_module(_MODULES[reader]), reader)(Path(path))
    except MemoryError:
        raise
    except Exception as error:
        raise FormatError(reason(error)) from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return asdict(content)


SERVED = (read,)
