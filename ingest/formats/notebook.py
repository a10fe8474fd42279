"""Text of Jupyter notebooks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from arag.ingest.formats.content import Content, FormatError, decode
from arag.ingest.formats.text import first_heading

_FENCE = "```"
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # of terminals


def read_notebook(path: Path) -> Content:
    """Read a notebook: its texts, its code and what the code printed, without pictures.

    Its title is the first heading of level 1.
    """
    try:
        notebook = json.loads(decode(path.read_bytes()))
        language = notebook["metadata"].get("language_info", {}).get("name", "")
        cells = [(cell["cell_type"], _joined(cell["source"]).strip(), cell) for cell in notebook["cells"]]
        blocks = [block for kind, source, cell in cells for block in _blocks(kind, source, cell, language)]
    except (AttributeError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise FormatError("not a notebook of format 4: open it in Jupyter and save it again") from error
    headings = "\n\n".join(source for kind, source, _ in cells if kind == "markdown")
    return Content(first_heading(headings), "\n\n".join(filter(None, blocks)))


def _blocks(kind: str, source: str, cell: dict[str, Any], language: str) -> Iterator[str]:
    if kind != "code":
        yield source
        return
    yield _fenced(source, language)
    for output in cell["outputs"]:
        if output["output_type"] == "error":
            text = f"{output['ename']}: {output['evalue']}"
        else:
            text = _joined(output.get("text") or output.get("data", {}).get("text/plain", ""))
        yield _fenced(_COLOURS.sub("", text).strip())


def _joined(lines: str | list[str]) -> str:
    """Return a text of a notebook, which is a string or a list of lines."""
    return "".join(lines)


def _fenced(text: str, language: str = "") -> str:
    return f"{_FENCE}{language}\n{text}\n{_FENCE}" if text else ""
