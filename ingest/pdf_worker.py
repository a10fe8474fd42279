"""The process that reads PDFs, so that a file which crashes PDFium or never ends costs only itself.

`arag.ingest.pdf` runs this file as a script. It imports nothing from arag, so it starts fast. For each PDF it gets a
line of JSON on standard input (the path and the limits) and writes a line of JSON to standard output.
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
from itertools import accumulate
from pathlib import Path
from typing import Any

import pypdfium2
from pypdfium2 import raw

MAX_MEMORY = 4 * 1024**3  # bytes of address space, where the system can limit it

_CELL_GAP = 1.0  # between two cells of a table, at least, as a share of the height of the text
_NEAR_LINES = 2  # a column goes on within so many lines
_CELL_BORDER = " | "  # as in tables of HTML


def main() -> None:
    """Answer requests until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the process inside PDFium, too
    _limit_memory()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        # Python itself may be stuck in PDFium: this ends the process all the same.
        faulthandler.dump_traceback_later(request["max_seconds"], exit=True)
        reply = _read(request["path"], request["max_pages"], request["max_characters"])
        faulthandler.cancel_dump_traceback_later()
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


def _limit_memory() -> None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


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
    for start, end in sorted(match.span() for match in _cell_borders(page, text)):
        parts += [text[at:start], _CELL_BORDER]
        at = end
    return _joined_words("".join([*parts, text[at:]]))


def _joined_words(text: str) -> str:
    """Join words that a hyphen divides at the end of a line, which PDFium marks with U+FFFE."""
    return re.sub("(?<=[^\\W\\d_A-Z])\ufffe(?=[^\\W\\d_A-Z])", "", text).replace("\ufffe", "-")


def _cell_borders(page: pypdfium2.PdfTextPage, text: str) -> Iterator[re.Match[str]]:
    """Find the blanks that stand between cells: wide ones, above or below other wide ones.

    A wide blank alone is no cell border: it may stand in a justified line, or after the number of a heading.
    """
    gaps = list(_wide_gaps(page, text))
    aligned = set()
    for first, (line, left, right, _) in enumerate(gaps):
        for second in range(first + 1, len(gaps)):
            other_line, other_left, other_right, _ = gaps[second]
            if other_line > line + _NEAR_LINES:
                break
            if other_line > line and min(right, other_right) > max(left, other_left):
                aligned |= {first, second}
    for number in aligned:
        yield gaps[number][3]


def _wide_gaps(page: pypdfium2.PdfTextPage, text: str) -> Iterator[tuple[int, float, float, re.Match[str]]]:
    """Yield the wide blanks within lines: the number of the line, where they begin and end, and where in the text."""
    # PDFium counts in UTF-16, Python in characters.
    units = list(accumulate((1 + (character > "\uffff") for character in text), initial=0))
    before, after = raw.FS_RECTF(), raw.FS_RECTF()
    line = 0
    for match in re.finditer(r"\n|(?<=\S)[ \xa0]+(?=\S)", text):
        if match[0] == "\n":
            line += 1
            continue
        for at, box in ((match.start() - 1, before), (match.end(), after)):
            index = raw.FPDFText_GetCharIndexFromTextIndex(page, units[at])
            raw.FPDFText_GetLooseCharBox(page, index, byref(box))
        height = after.top - after.bottom
        if height > 0 and after.left - before.right > _CELL_GAP * height:
            yield line, before.right, after.left, match


if __name__ == "__main__":
    main()
