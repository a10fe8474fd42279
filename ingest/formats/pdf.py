"""Extracts text from PDFs in a separate process: see `arag.ingest.formats.pdf_worker`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, cast

from arag.ingest.documents import Limits
from arag.ingest.formats.content import Content, FormatError, clean_text

_PAGE_GAP = "\n\n"
# Programs also write file names and numbers into a PDF as its title.
_NO_TITLE = re.compile(r"^microsoft \w+ - |^untitled|\.\w{2,4}$|\d{6}|^[\W\d_]*$", re.IGNORECASE)


class PdfReader:
    """Reads PDFs in one process, which is started for the first PDF and again after a PDF that ended it.

    Args:
        limits: How much of a PDF is read, and for how long.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(BrokenPipeError), process:  # which closes its pipes and waits for it
                pass

    def read(self, file: Path) -> Content:
        """Read the text of a PDF, page by page.

        Args:
            file: The PDF.

        Returns:
            The content, with a blank line between pages. A page that cannot be read is empty, and in `left_out`.

        Raises:
            FormatError: The file is broken, needs a password, has no text, or exceeds a limit.
        """
        reply = self._ask(file)
        if "exceeded" in reply:
            raise FormatError(self._limits.exceeded(reply["exceeded"]))
        if "failed" in reply:
            raise FormatError(reply["failed"])
        pages = ["\n".join(line.rstrip() for line in clean_text(page).split("\n")) for page in reply["pages"]]
        bad_pages = tuple((f"page {number}", reason) for number, reason in reply["bad_pages"])
        if not any(page.strip() for page in pages):
            if bad_pages:
                raise FormatError(f"broken PDF: no page can be read; {bad_pages[0][0]}: {bad_pages[0][1]}")
            raise FormatError(
                "no text could be found in the PDF; its pages are probably scanned images: run OCR on it first"
            )
        starts = accumulate((len(page) + len(_PAGE_GAP) for page in pages[:-1]), initial=0)
        title = "" if _NO_TITLE.search(reply["title"]) else reply["title"]
        return Content(title, _PAGE_GAP.join(pages), page_starts=tuple(starts), left_out=bad_pages)

    def _ask(self, file: Path) -> dict[str, Any]:
        """Let the process read a file and return its reply."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = _start()
        request = {"path": os.path.abspath(file), **asdict(self._limits)}  # noqa: PTH100 - links stay what they are
        process, began = self._process, time.monotonic()
        stdin, stdout = cast("BinaryIO", process.stdin), cast("BinaryIO", process.stdout)
        with suppress(BrokenPipeError):  # the process has ended: there is no reply either
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
        line = stdout.readline()
        if line.endswith(b"\n"):
            reply: dict[str, Any] = json.loads(line)
            return reply
        seconds, code = time.monotonic() - began, process.wait()
        self.close()
        if seconds >= self._limits.max_seconds:
            return {"exceeded": "max_seconds"}
        return {"failed": f"the PDF cannot be read: the process that reads it ended (exit code {code})"}


def _start() -> subprocess.Popen[bytes]:
    # A script, so that it imports little; -P, so that no file beside it, or in the current folder, is imported.
    return subprocess.Popen(  # noqa: S603 - it is our own file
        [sys.executable, "-P", str(Path(__file__).with_name("pdf_worker.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
