"""The process that reads PDFs, so that a file that crashes PDFium or never ends affects no other.

`arag.ingest.formats.pdf` runs this file as a script. It imports nothing from arag, so it starts fast. For each PDF it
gets a line of JSON on standard input (the path and the limits) and writes a line of JSON to standard output.
"""

from __future__ import annotations

import faulthandler
import json
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from ctypes import byref
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import pypdfium2
from pypdfium2 import raw

MAX_MEMORY = 4 * 1024**3  # bytes of address space, where the system can limit it

_CELL_GAP = 1.0  # between two cells of a table, at least, as a share of the height of the text
_NEAR_LINES = 2  # a column continues within this many lines
_CELL_BORDER = " | "  # as in tables of HTML


def main() -> None:
    """Answer requests until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the process inside PDFium, too
    with suppress(ImportError, OSError, ValueError):  # no such limit on this system
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    for line in sys.stdin.buffer:
        request = json.loads(line)
        # Python itself may be stuck in PDFium: this ends the process anyway.
        faulthandler.dump_traceback_later(request["max_seconds"], exit=True)
        reply = _read(request["path"], request["max_pages"], request["max_characters"])
        faulthandler.cancel_dump_traceback_later()
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


def _read(path: str, max_pages: int, max_characters: int) -> dict[str, Any]:
    try:
        document = pypdfium2.PdfDocument(Path(path).read_bytes())
    except OSError as error:
        return {"failed": error.strerror or str(error)}
    except pypdfium2.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            return {"failed": "the PDF is encrypted and needs a password"}
        return {"failed": f"broken PDF: {error}"}
    if len(document) > max_pages:
        return {"exceeded": "max_pages"}
    pages: list[str] = []
    bad_pages: list[tuple[int, str]] = []
    characters = 0
    for number in range(len(document)):
        try:
            page = document[number]
            text = page.get_textpage()
        except pypdfium2.PdfiumError as error:
            pages.append("")
            bad_pages.append((number + 1, str(error)))
            continue
        characters += text.count_chars()
        if characters > max_characters:
            return {"exceeded": "max_characters"}
        pages.append(_page_text(text))
        text.close()
        page.close()
    title = document.get_metadata_value("Title")
    document.close()
    return {"title": title, "pages": pages, "bad_pages": bad_pages}


def _page_text(page: pypdfium2.PdfTextPage) -> str:
    """Return the text of a page as PDFium orders it, with the cells of tables set apart."""
    text = page.get_text_range()
    parts = []
    at = 0
    for start, end in _cell_borders(list(_gaps(page, text))):
        parts += [text[at:start], _CELL_BORDER]
        at = end
    text = "".join([*parts, text[at:]])
    # PDFium marks a hyphen at the end of a line with U+FFFE: between lower-case letters, it divides a word.
    return re.sub("(?<=[^\\W\\d_A-Z])\ufffe(?=[^\\W\\d_A-Z])", "", text).replace("\ufffe", "-")


@dataclass(frozen=True, slots=True)
class _Gap:
    """A wide gap between two pieces of text on one line."""

    span: tuple[int, int]  # in the text of the page
    line: int
    left: float
    right: float
    breaks_line: bool  # according to PDFium


def _cell_borders(gaps: list[_Gap]) -> list[tuple[int, int]]:
    """Find the gaps that stand between cells: those above or below others, and those at which PDFium breaks a line.

    A wide blank alone is not a border: it may be in a justified line, or after the number of a heading.
    """
    borders = {gap.span for gap in gaps if gap.breaks_line}
    for number, gap in enumerate(gaps):
        for other in gaps[number + 1 :]:
            if other.line > gap.line + _NEAR_LINES:
                break
            if other.line > gap.line and min(gap.right, other.right) > max(gap.left, other.left):
                borders |= {gap.span, other.span}
    return sorted(borders)


def _gaps(page: pypdfium2.PdfTextPage, text: str) -> Iterator[_Gap]:
    # PDFium counts in UTF-16, Python in characters.
    units = list(accumulate((1 + (character > "\uffff") for character in text), initial=0))
    before, after = raw.FS_RECTF(), raw.FS_RECTF()
    line = 0
    for match in re.finditer(r"(?<=\S)\s+(?=\S)", text):
        for at, box in ((match.start() - 1, before), (match.end(), after)):
            index = raw.FPDFText_GetCharIndexFromTextIndex(page, units[at])
            raw.FPDFText_GetLooseCharBox(page, index, byref(box))
        height = after.top - after.bottom
        on_one_line = min(before.top, after.top) - max(before.bottom, after.bottom) > height / 2
        if height > 0 and on_one_line and after.left - before.right > _CELL_GAP * height:
            yield _Gap(match.span(), line, before.right, after.left, breaks_line="\n" in match[0])
        else:
            line += match[0].count("\n")


if __name__ == "__main__":
    main()
